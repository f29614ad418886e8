//! Removes an agent: tables and files go into the archive, rows are hidden.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Transaction;

use super::archive::{self, Archive};
use super::editing::Editing;
use super::error::TenantError;
use super::inventory::{Rows, stored};
use super::note::{self, Change};
use super::site::{Site, blocking, folder_of};
use super::{folders, rows};
use crate::agents::agent_rows;
use crate::clock::now_ms;
use crate::config::edit;
use crate::domain::AgentId;
use crate::records::audit::Action;

/// A removed agent.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Removed {
    pub archive: Archive,
    /// Bindings removed with the agent.
    pub bindings: Vec<String>,
    /// Lists that named the agent.
    pub mentions: Vec<String>,
    /// Rows in the database, hidden now.
    pub rows: Rows,
}

/// Puts an agent aside: tables and files go into the archive, rows are hidden. Nothing is lost.
pub(super) async fn remove(
    site: &Site,
    editing: Arc<Editing>,
    word: &str,
) -> Result<Removed, TenantError> {
    let id = removable(site, &editing, word).await?;
    let (row_id, now) = (id.clone(), now_ms());
    let uid = site.db.write(move |tx| {
        agent_rows::add(tx, std::slice::from_ref(&row_id), now)?;
        agent_rows::uid_of(tx, &row_id)
    });
    let uid = uid
        .await?
        .ok_or_else(|| TenantError::unknown(format!("the store has no agent {id}")))?;
    let taken = edit::take_out_agent(&editing.text, &id)?;
    let (piece, text, mentions) = (taken.piece, taken.text, taken.mentions.clone());
    let (committing, new_text) = (editing.clone(), text.clone());
    let (archive, _note) = blocking(move || {
        let (editing, text) = (committing, new_text);
        editing.check(&text)?;
        let archive = Archive {
            mentions,
            ..archive::create(&editing.home, &id, uid, now)?
        };
        let change = Change::Remove {
            id: id.clone(),
            uid: uid.to_string(),
            archive: archive.name.clone(),
        };
        let folder = folder_of(&editing.home, &id);
        let done = note::write(&editing.home, &change).and_then(|note| {
            archive.fill(&piece)?;
            folders::relocate(&folder, &archive.files())?;
            editing.commit(&text).map(|()| note)
        });
        let note = done.inspect_err(|_| put_back(&archive, &folder))?;
        Ok((archive, note))
    })
    .await?;
    let (name, row_id, by) = (archive.name.clone(), archive.id.clone(), site.by.clone());
    let put_aside = move |tx: &Transaction<'_>| {
        rows::note(tx, &by, Action::AgentRemove, &row_id)?;
        rows::put_aside(tx, uid, &name, now)
    };
    let rows = match site.db.write(put_aside).await {
        Ok(rows) => rows,
        Err(error) => {
            editing.take_back(&text);
            put_back(&archive, &folder_of(&site.home, &archive.id));
            return Err(error.into());
        }
    };
    Ok(Removed {
        archive,
        bindings: taken.bindings,
        mentions: taken.mentions,
        rows,
    })
}

/// The id of an agent that can be removed: an agent of the config, or leftovers (a folder without a
/// table, or rows).
pub(super) async fn removable(
    site: &Site,
    editing: &Editing,
    word: &str,
) -> Result<AgentId, TenantError> {
    let id = existing(site, editing, word).await?;
    refuse_main_and_default(editing, &id)?;
    Ok(id)
}

async fn existing(site: &Site, editing: &Editing, word: &str) -> Result<AgentId, TenantError> {
    let unknown = match editing.find(word) {
        Ok(spec) => return Ok(spec.id.clone()),
        Err(unknown) => unknown,
    };
    let Ok(id) = AgentId::parse(word) else {
        return Err(unknown);
    };
    let is_left = folder_of(&site.home, &id).is_dir() || stored(site, &id).await?.is_some();
    if is_left { Ok(id) } else { Err(unknown) }
}

/// Moves the files of a failed removal back.
fn put_back(archive: &Archive, folder: &Path) {
    folders::move_back(&archive.files(), folder);
    folders::discard(&archive.folder);
}

fn refuse_main_and_default(editing: &Editing, id: &AgentId) -> Result<(), TenantError> {
    if *id == AgentId::main() {
        return Err(TenantError::conflict(
            "`main` is the agent that every house has, so it cannot go",
        ));
    }
    if editing.config.default_agent == *id {
        return Err(TenantError::conflict(format!(
            "{id} is the default agent. Make another one the default first: `parlor agent default main`"
        )));
    }
    Ok(())
}
