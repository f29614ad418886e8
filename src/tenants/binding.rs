//! Bindings of single places, written into the config and taken out again.

use std::sync::Arc;

use super::editing::Editing;
use super::error::TenantError;
use super::site::blocking;
use crate::config::edit;
use crate::domain::{AgentId, SessionKey};

/// A changed binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bound {
    /// The agent named by the binding before.
    pub(crate) before: Option<AgentId>,
    /// The binding's first line in the file, counted from 1: as written, or before its removal.
    pub(crate) line: usize,
}

pub(super) async fn bind(
    editing: Arc<Editing>,
    place: &SessionKey,
    agent: &AgentId,
) -> Result<Option<Bound>, TenantError> {
    let (place, agent) = (place.to_string(), agent.clone());
    blocking(move || {
        let before = editing.binding_of(&place);
        if before.as_ref() == Some(&agent) {
            return Ok(None);
        }
        let text = edit::bind(&editing.text, &place, &agent)?;
        editing.commit(&text)?;
        let line = edit::line_of_binding(&text, &place).unwrap_or(1);
        Ok(Some(Bound { before, line }))
    })
    .await
}

pub(super) async fn unbind(
    editing: Arc<Editing>,
    place: &SessionKey,
) -> Result<Option<Bound>, TenantError> {
    let place = place.to_string();
    blocking(move || {
        let before = editing.binding_of(&place);
        if before.is_none() {
            return Ok(None);
        }
        let line = edit::line_of_binding(&editing.text, &place).unwrap_or(1);
        editing.commit(&edit::unbind(&editing.text, &place)?)?;
        Ok(Some(Bound { before, line }))
    })
    .await
}

impl Editing {
    /// The agent of the binding for exactly this place, without filters.
    fn binding_of(&self, place: &str) -> Option<AgentId> {
        let mut bindings = self.config.bindings.iter();
        let found = bindings.find(|binding| {
            let has_filters = binding.users.is_some()
                || binding.roles.is_some()
                || binding.name.is_some()
                || binding.tag.is_some();
            binding.pattern.value == place && !has_filters
        });
        found.map(|binding| binding.agent.value.clone())
    }
}
