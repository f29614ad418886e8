//! `parlor skill …`: lists the skills of each agent with the reason, and checks `SKILL.md` files.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;

use super::agent::named;
use super::json::Named;
use super::table::{Column, table};
use super::{Failure, Outcome, data, data_json, database, note, running_config};
use crate::agents::skills::{self, Entry, SkillOrigin};
use crate::agents::{Agent, Registry, Skills};
use crate::home::Home;

/// Without a verb, skills are listed.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Print the result as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// List which agent has which skill, and why
    #[command(visible_alias = "ls")]
    List {
        /// Only the skills of this agent
        #[arg(long, short)]
        agent: Option<String>,
    },
    /// Report mistakes in skills: in all of them, in a folder, or in one
    Check {
        /// A SKILL.md, the folder of a skill, or a folder of skills
        path: Option<PathBuf>,
    },
}

impl Arguments {
    /// A skill that is not in a home can be checked without one.
    pub(super) fn names_a_path(&self) -> bool {
        matches!(self.verb, Some(Verb::Check { path: Some(_) }))
    }
}

pub(super) async fn run(home: Home, Arguments { verb, json }: Arguments) -> Outcome {
    match verb.unwrap_or(Verb::List { agent: None }) {
        Verb::List { agent } => list(&home, agent.as_deref(), json).await,
        Verb::Check { path: Some(path) } => check(&entries_at(&path)?, json),
        Verb::Check { path: None } => check(&all_entries(home.path()), json),
    }
}

/// A skill from an agent's point of view.
#[derive(Serialize)]
struct Row {
    agent: Named,
    skill: String,
    origin: SkillOrigin,
    usable: bool,
    why: String,
    description: Option<String>,
}

async fn list(home: &Home, agent: Option<&str>, json: bool) -> Outcome {
    let checked = running_config::checked(home).await?;
    let db = database::open(&home.database()).await?;
    let (registry, _) = checked.registry(home, &db).await?;
    let rows: Vec<Row> = chosen(&registry, agent)?
        .into_iter()
        .flat_map(rows_of)
        .collect();
    if json {
        data_json(&rows)?;
    } else if rows.is_empty() {
        note(format_args!(
            "There are no skills yet. Write one as skills/<name>/SKILL.md in {}.",
            home.path().display()
        ));
    } else {
        data(format_args!("{}", shown(rows)));
    }
    Ok(())
}

fn chosen<'a>(registry: &'a Registry, word: Option<&str>) -> Result<Vec<&'a Agent>, Failure> {
    let Some(word) = word else {
        return Ok(registry.all().iter().map(AsRef::as_ref).collect());
    };
    super::agent::find(registry, word).map(|agent| vec![agent.as_ref()])
}

fn rows_of(agent: &Agent) -> Vec<Row> {
    let skills = Skills::load(agent);
    let row = |skill: &str, origin, usable, why: String, description| Row {
        agent: named(agent),
        skill: skill.to_owned(),
        origin,
        usable,
        why,
        description,
    };
    let has = skills.readable.iter().map(|skill| {
        row(
            &skill.name,
            skill.origin,
            true,
            skill.because.to_string(),
            Some(skill.description.clone()),
        )
    });
    let lacks = skills.left_out.iter().map(|left| {
        row(
            &left.name,
            left.origin,
            false,
            left.reason.to_string(),
            None,
        )
    });
    let mut rows: Vec<Row> = has.chain(lacks).collect();
    rows.sort_by(|a, b| (&a.skill, !a.usable).cmp(&(&b.skill, !b.usable)));
    rows
}

fn shown(rows: Vec<Row>) -> String {
    let columns = [
        Column::Whole("AGENT"),
        Column::Whole("SKILL"),
        Column::Whole("FROM"),
        Column::Whole("USABLE"),
        Column::Words("WHY"),
    ];
    let cells = rows.into_iter().map(|row| {
        let usable = if row.usable { "yes" } else { "no" };
        let origin = row.origin.to_string();
        [row.agent.id, row.skill, origin, usable.to_owned(), row.why]
    });
    table(columns, cells.collect())
}

/// The pool, and the folders of all agents, with or without a table in the config.
fn all_entries(home: &Path) -> Vec<Entry> {
    let agents = std::fs::read_dir(home.join("agents"))
        .map(|entries| entries.flatten().collect())
        .unwrap_or_else(|_| Vec::new());
    let mut shelves: Vec<PathBuf> = agents
        .iter()
        .map(|entry| entry.path().join("skills"))
        .collect();
    shelves.sort();
    [skills::pool(home)]
        .iter()
        .chain(&shelves)
        .flat_map(|shelf| skills::read_shelf(shelf))
        .collect()
}

fn entries_at(path: &Path) -> Result<Vec<Entry>, Failure> {
    let path = std::path::absolute(path)?;
    let folder = if path.is_file() {
        path.parent().unwrap_or(&path).to_owned()
    } else {
        path
    };
    if !folder.is_dir() {
        return Err(Failure::WrongUse(format!(
            "there is no {}",
            folder.display()
        )));
    }
    match (
        folder.join("SKILL.md").exists(),
        folder.parent(),
        folder.file_name(),
    ) {
        (true, Some(shelf), Some(name)) => {
            let all = skills::read_shelf(shelf).into_iter();
            Ok(all
                .filter(|entry| Some(entry.name.as_str()) == name.to_str())
                .collect())
        }
        _ => Ok(skills::read_shelf(&folder)),
    }
}

/// A mistake in a SKILL.md, or a remark about it.
#[derive(Serialize)]
struct Finding {
    file: String,
    line: usize,
    /// `error` makes the skill unusable, `note` does not.
    level: &'static str,
    message: String,
}

fn check(entries: &[Entry], json: bool) -> Outcome {
    let broken = entries.iter().filter(|entry| entry.state.is_err()).count();
    let findings: Vec<Finding> = entries.iter().flat_map(findings).collect();
    if json {
        data_json(&json!({
            "skills": entries.len(),
            "unusable": broken,
            "findings": findings,
        }))?;
        return if broken == 0 {
            Ok(())
        } else {
            Err(Failure::told())
        };
    }
    for finding in findings {
        let kind = if finding.level == "note" {
            "note: "
        } else {
            ""
        };
        let Finding {
            file,
            line,
            message,
            ..
        } = finding;
        data(format_args!("{file}:{line}: {kind}{message}"));
    }
    match (broken, entries.len()) {
        (0, 1) => data(format_args!("1 skill is fine.")),
        (0, count) => data(format_args!("{count} skills are fine.")),
        (broken, count) => {
            return Err(Failure::Failed(format!(
                "{broken} of {count} skills cannot be used"
            )));
        }
    }
    Ok(())
}

fn findings(entry: &Entry) -> Vec<Finding> {
    let (flaws, level) = match &*entry.state {
        Ok(manifest) => (&manifest.remarks, "note"),
        Err(flaws) => (flaws, "error"),
    };
    let finding = |flaw: &skills::Flaw| Finding {
        file: entry.path.display().to_string(),
        line: flaw.line,
        level,
        message: flaw.message.clone(),
    };
    flaws.iter().map(finding).collect()
}
