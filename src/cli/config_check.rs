//! `parlor config check`: tells all problems of config.toml at once.

use super::{Outcome, data, note};
use crate::config::Secrets;
use crate::home::{CheckedConfig, ConfigError, Home};

pub(super) fn run(home: &Home) -> Outcome {
    let checked = CheckedConfig::load(home, Secrets::WherePresent)?;
    let (agents, bindings) = (checked.config.agents.len(), checked.config.bindings.len());
    data(format_args!(
        "config.toml is fine: {}, {}.",
        count(agents, "agent"),
        count(bindings, "binding")
    ));
    note_missing_secrets(home);
    Ok(())
}

/// A config can be right on a machine without its secrets; starting there would fail.
fn note_missing_secrets(home: &Home) {
    if let Err(ConfigError::Problems(report)) = CheckedConfig::load(home, Secrets::Required) {
        for problem in report.problems {
            note(format_args!(
                "note: {}; `parlor run` needs it",
                problem.message
            ));
        }
    }
}

fn count(number: usize, noun: &str) -> String {
    if number == 1 {
        format!("1 {noun}")
    } else {
        format!("{number} {noun}s")
    }
}
