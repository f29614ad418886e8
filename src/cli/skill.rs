//! `parlor skill …`: lists the skills of each agent with the reason, and checks `SKILL.md` files.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use comfy_table::{Table, presets};
use serde::Serialize;

use super::{Failure, Outcome, data, data_json, note};
use crate::agents::skills::{self, Entry, SkillOrigin};
use crate::agents::{Agent, Registry, Skills};
use crate::config::Secrets;
use crate::home::{CheckedConfig, Home};
use crate::storage::Db;

#[derive(Subcommand)]
pub(super) enum Verb {
    /// Tell which agent has which skill, and why
    List {
        /// Only what is there for this agent
        #[arg(long)]
        agent: Option<String>,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Tell what is wrong with skills: all of them, those of a folder, or one
    Check {
        /// A SKILL.md, a skill's folder, or a folder of skills
        path: Option<PathBuf>,
    },
}

pub(super) async fn run(home: Home, verb: Verb) -> Outcome {
    match verb {
        Verb::List { agent, json } => list(&home, agent.as_deref(), json).await,
        Verb::Check { path: Some(path) } => check(entries_at(&path)?),
        Verb::Check { path: None } => check(all_entries(home.path())),
    }
}

/// A skill from an agent's point of view.
#[derive(Serialize)]
struct Row {
    agent: String,
    skill: String,
    origin: SkillOrigin,
    usable: bool,
    why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

async fn list(home: &Home, agent: Option<&str>, json: bool) -> Outcome {
    let checked = CheckedConfig::load(home, Secrets::WherePresent)?;
    let db = Db::open(&home.database()).await?;
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
        data(format_args!("{}", table(&rows).trim_fmt()));
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
        agent: agent.id.to_string(),
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

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(["AGENT", "SKILL", "FROM", "", "WHY"]);
    for row in rows {
        let mark = if row.usable { "has it" } else { "no" };
        table.add_row([
            row.agent.as_str(),
            &row.skill,
            &row.origin.to_string(),
            mark,
            &row.why,
        ]);
    }
    table
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

fn check(entries: Vec<Entry>) -> Outcome {
    let mut broken = 0;
    for entry in &entries {
        let (flaws, kind) = match &*entry.state {
            Ok(manifest) => (&manifest.remarks, "note: "),
            Err(flaws) => (flaws, ""),
        };
        broken += usize::from(entry.state.is_err());
        for flaw in flaws {
            data(format_args!(
                "{}:{}: {kind}{}",
                entry.path.display(),
                flaw.line,
                flaw.message
            ));
        }
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
