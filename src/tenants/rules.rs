//! Adds imported sections and bindings. Each is checked alone, so an invalid one keeps out no other.

use std::sync::Arc;

use toml_edit::Table as TomlTable;

use super::editing::Editing;
use super::error::TenantError;
use super::site::blocking;
use crate::config::edit::{self, NewAgent, NewRule};
use crate::config::{self, Config, Secrets, Source};
use crate::domain::AgentId;
use crate::home;
use crate::routing::Table;

/// A section such as `[telegram]`.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    /// `["providers", "openai"]`
    pub(crate) path: Vec<String>,
    pub(crate) keys: TomlTable,
}

/// What is to be added to the config.
#[derive(Debug, Clone, Default)]
pub(crate) struct Additions {
    /// Agents that the import will add. The check needs them before they exist.
    pub(crate) agents: Vec<AgentId>,
    pub(crate) sections: Vec<Section>,
    pub(crate) rules: Vec<NewRule>,
}

/// The config as it would be with everything that fits.
#[derive(Debug)]
pub(crate) struct Trial {
    /// A result per section, in order. The error says why a section is left out.
    pub(crate) sections: Vec<Result<(), String>>,
    /// In the order of the rules.
    pub(crate) rules: Vec<Result<(), String>>,
    pub(crate) config: Config,
    pub(crate) table: Table,
}

pub(super) async fn try_out(
    editing: Arc<Editing>,
    additions: Additions,
) -> Result<Trial, TenantError> {
    blocking(move || Ok(trial(&editing, &additions)?.1)).await
}

pub(super) async fn add(editing: Arc<Editing>, additions: Additions) -> Result<Trial, TenantError> {
    blocking(move || {
        let (text, trial) = trial(&editing, &additions)?;
        if text != editing.text {
            editing.commit(&text)?;
        }
        Ok(trial)
    })
    .await
}

fn trial(editing: &Editing, additions: &Additions) -> Result<(String, Trial), TenantError> {
    let mut text = editing.text.clone();
    let missing = additions.agents.iter();
    for id in missing.filter(|id| editing.spec(id).is_none()) {
        text = edit::add_agent(&text, id, &NewAgent::default())?;
    }
    let mut sections = Vec::new();
    for section in &additions.sections {
        let path: Vec<&str> = section.path.iter().map(String::as_str).collect();
        let added = edit::add_section(&text, &path, section.keys.clone());
        sections.push(take(editing, &mut text, added));
    }
    // Most often all rules fit, and one check is enough.
    let all = additions.rules.iter().try_fold(text.clone(), |text, rule| {
        edit::add_rule(&text, rule).map_err(|error| error.to_string())
    });
    let mut rules = Vec::new();
    match all {
        Ok(all) if check(editing, &all).is_ok() => {
            rules = vec![Ok(()); additions.rules.len()];
            text = all;
        }
        _ => {
            for rule in &additions.rules {
                let added = edit::add_rule(&text, rule);
                rules.push(take(editing, &mut text, added));
            }
        }
    }
    let (config, table) =
        check(editing, &text).map_err(|report| TenantError::Problems(Box::new(report)))?;
    let trial = Trial {
        sections,
        rules,
        config,
        table,
    };
    Ok((text, trial))
}

/// Keeps a text that passes the check.
fn take(
    editing: &Editing,
    text: &mut String,
    added: Result<String, edit::EditError>,
) -> Result<(), String> {
    let added = added.map_err(|error| error.to_string())?;
    check(editing, &added).map_err(|report| {
        let first = report.problems.first();
        first.map_or_else(String::new, |problem| problem.message.clone())
    })?;
    *text = added;
    Ok(())
}

fn check(editing: &Editing, text: &str) -> Result<(Config, Table), config::Report> {
    let source = Source {
        path: editing.home.join("config.toml"),
        text: text.to_owned(),
    };
    let draft = config::draft(source, &editing.home, Secrets::WherePresent);
    home::check(draft, &editing.home)
}
