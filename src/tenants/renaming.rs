//! Another id for an agent, and another agent as the default.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::editing::Editing;
use super::error::TenantError;
use super::note::{self, Change};
use super::site::{Site, blocking, folder_of};
use super::{folders, rows};
use crate::agents::agent_rows;
use crate::clock::now_ms;
use crate::config::edit;
use crate::domain::AgentId;
use crate::storage::{Db, StoreError};

/// Changes an agent's id. History, memory, pins and bindings stay, because rows hang on the uid and
/// every mention in the config is changed.
pub(super) async fn rename(
    site: &Site,
    editing: Arc<Editing>,
    (from, to): (&str, &str),
    old_folder: OldFolder,
) -> Result<(AgentId, AgentId), TenantError> {
    let (from, to) = (editing.find(from)?.id.clone(), editing.free(to)?);
    if from == AgentId::main() {
        return Err(TenantError::conflict(
            "`main` keeps its id, because Parlor always has an agent with it. `name` is what people see",
        ));
    }
    let text = edit::rename_agent(&editing.text, &from, &to)?;
    let folders = (folder_of(&site.home, &from), folder_of(&site.home, &to));
    let (committing, moving, new_text) = (editing.clone(), folders.clone(), text.clone());
    let (old_id, new_id) = (from.clone(), to.clone());
    let change = Change::Rename {
        from: from.clone(),
        to: to.clone(),
    };
    let _note = blocking(move || {
        let note = note::write(&committing.home, &change)?;
        // The folder comes first, because the check of the new table looks for its skills.
        folders::relocate(&moving.0, &moving.1)?;
        if old_folder == OldFolder::LeadsToNew {
            folders::lead(&committing.home, &old_id, &new_id);
        }
        committing.commit(&new_text).inspect_err(|_| {
            stop_leading(&committing.home, &old_id);
            folders::move_back(&moving.1, &moving.0);
        })?;
        Ok(note)
    })
    .await?;
    if let Err(error) = rows::record_rename(site, &from, &to).await {
        editing.take_back(&text);
        stop_leading(&site.home, &from);
        folders::move_back(&folders.1, &folders.0);
        return Err(error);
    }
    Ok((from, to))
}

/// The fate of the old folder of a renamed agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OldFolder {
    Goes,
    /// The old folder leads to the new folder, because turns under way still write there.
    /// [`stop_leading`] removes the link.
    LeadsToNew,
}

/// Takes away the link in the place of a renamed agent's old folder.
pub(crate) fn stop_leading(home: &Path, old_id: &AgentId) {
    let old = folder_of(home, old_id);
    if folders::leads_beside(&old)
        && let Err(error) = fs::remove_file(&old)
    {
        tracing::warn!("{} is left over: {error}", old.display());
    }
}

/// Takes away all links that a killed gateway left in the place of old folders.
pub(crate) async fn stop_leading_all(home: &Path, db: &Db) -> Result<(), StoreError> {
    let former = db.read(|connection| agent_rows::former(connection, now_ms()));
    for former in former.await? {
        stop_leading(home, &former.id);
    }
    Ok(())
}

/// Makes an agent the default, and tells whether the config changed.
pub(super) async fn set_default(
    editing: Arc<Editing>,
    word: &str,
) -> Result<(AgentId, bool), TenantError> {
    let word = word.to_owned();
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
