//! Another id for an agent, and another agent as the default.

use std::time::Duration;

use super::editing::Editing;
use super::unfinished::{self, Change};
use super::{Site, TenantError, blocking, folder_of, folders};
use crate::agents::roster;
use crate::clock::now_ms;
use crate::config::edit;
use crate::domain::AgentId;

/// How long people may go on using the old id.
pub const KEEPS_OLD_ID: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// History, memory, pins and bindings stay, because rows hang on the uid and the config is changed wherever it names the agent.
pub async fn rename(site: &Site, from: &str, to: &str) -> Result<(AgentId, AgentId), TenantError> {
    let editing = Editing::begin(site).await?;
    let (from, to) = (editing.find(from)?.id.clone(), editing.free(to)?);
    if from == AgentId::main() {
        return Err(TenantError::conflict(
            "`main` is the agent that every house has, so it keeps its id. `name` is what people see",
        ));
    }
    let text = edit::rename_agent(&editing.text, &from, &to)?;
    let folders = (folder_of(&site.home, &from), folder_of(&site.home, &to));
    let (committing, moving, new_text) = (editing.clone(), folders.clone(), text.clone());
    let change = Change::Rename { from: from.clone(), to: to.clone() };
    let _note = blocking(move || {
        let note = unfinished::note(&committing.home, &change)?;
        // The folder first: the skills that the new table names must be where it says.
        folders::relocate(&moving.0, &moving.1)?;
        committing.commit(&new_text).inspect_err(|_| folders::move_back(&moving.1, &moving.0))?;
        Ok(note)
    })
    .await?;
    if let Err(error) = record_rename(site, &from, &to).await {
        editing.take_back(&text);
        folders::move_back(&folders.1, &folders.0);
        return Err(error);
    }
    Ok((from, to))
}

/// In the store. Nothing to do if it knows no agent of the old id.
pub(super) async fn record_rename(site: &Site, from: &AgentId, to: &AgentId) -> Result<(), TenantError> {
    let until = now_ms() + i64::try_from(KEEPS_OLD_ID.as_millis()).unwrap_or(i64::MAX);
    let (from, to) = (from.clone(), to.clone());
    Ok(site.db.write(move |tx| roster::rename(tx, &from, &to, until, now_ms())).await?)
}

/// Whether anything changed.
pub async fn set_default(site: &Site, word: &str) -> Result<(AgentId, bool), TenantError> {
    let (editing, word) = (Editing::begin(site).await?, word.to_owned());
    blocking(move || {
        let id = editing.find(&word)?.id.clone();
        if editing.config.default_agent == id {
            return Ok((id, false));
        }
        editing.commit(&edit::set_default(&editing.text, &id)?)?;
        Ok((id, true))
    })
    .await
}
