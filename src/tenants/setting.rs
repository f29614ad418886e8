//! Changes keys in the table of an agent. Comments and other keys stay as they are.

use std::sync::Arc;

use super::editing::Editing;
use super::error::TenantError;
use super::site::blocking;
use crate::config::edit;
use crate::domain::AgentId;

/// A key of `[agents.<id>]`, or of a table in it, such as `limits.max_steps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) key: &'static str,
    /// The value in TOML. None takes the key out.
    pub(crate) value: Option<String>,
}

impl Setting {
    pub(crate) fn text(key: &'static str, value: Option<String>) -> Self {
        let value = value.map(|value| toml_edit::Value::from(value).to_string());
        Setting { key, value }
    }

    pub(crate) fn number(key: &'static str, value: Option<impl ToString>) -> Self {
        let value = value.map(|value| value.to_string());
        Setting { key, value }
    }

    pub(crate) fn list(key: &'static str, value: Option<Vec<String>>) -> Self {
        let value = value.map(|value| toml_edit::Array::from_iter(value).to_string());
        Setting { key, value }
    }
}

/// A config with other keys.
pub(crate) struct Edited {
    pub(crate) agent: AgentId,
    /// The text of the file.
    pub(crate) before: String,
    pub(crate) after: String,
}

impl Edited {
    pub(crate) fn is_new(&self) -> bool {
        self.before != self.after
    }
}

/// Whether an edited text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Commit,
    OnlyShow,
}

pub(super) async fn set(
    editing: Arc<Editing>,
    word: &str,
    settings: Vec<Setting>,
    then: Then,
) -> Result<Edited, TenantError> {
    let word = word.to_owned();
    blocking(move || {
        let agent = editing.find(&word)?.id.clone();
        let after = edited(&editing.text, &agent, settings)?;
        let edited = Edited {
            before: editing.text.clone(),
            agent,
            after,
        };
        if edited.is_new() && then == Then::Commit {
            editing.commit(&edited.after)?;
        }
        Ok(edited)
    })
    .await
}

fn edited(text: &str, agent: &AgentId, settings: Vec<Setting>) -> Result<String, TenantError> {
    let mut text = text.to_owned();
    for Setting { key, value } in settings {
        let (section, key) = match key.split_once('.') {
            Some((table, key)) => (format!("agents.{agent}.{table}"), key),
            None => (format!("agents.{agent}"), key),
        };
        text = match value {
            Some(value) => edit::set_section(&text, &section, &[(key, value)])?,
            None => edit::unset(&text, &section, key)?,
        };
    }
    Ok(text)
}
