//! Agents that go: put aside, brought back, or destroyed.

use std::path::Path;

use rusqlite::Transaction;

use super::archive::{self, Archive, archives};
use super::editing::Editing;
use super::survey::{Rows, rows_of};
use super::{Site, TenantError, blocking, folder_of, folders};
use crate::agents::{memory, roster};
use crate::clock::now_ms;
use crate::config::edit;
use crate::domain::{AgentId, AgentUid};
use crate::routing::pins;
use crate::sessions::{children, journal, ledger, summaries, transcript, usage};

/// What became of an agent that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    pub archive: Archive,
    /// Bindings that went with it.
    pub bindings: Vec<String>,
    /// Agents whose lists named it.
    pub mentions: Vec<String>,
    /// Kept, and out of everyone's sight.
    pub rows: Rows,
}

/// Whether an agent can go, and its id.
pub async fn may_remove(site: &Site, word: &str) -> Result<AgentId, TenantError> {
    let editing = Editing::begin(site).await?;
    let id = editing.find(word)?.id.clone();
    may_go(&editing, &id)?;
    Ok(id)
}

/// Puts an agent aside: tables and files into the archive, rows out of sight. Nothing is lost.
pub async fn remove(site: &Site, word: &str) -> Result<Removed, TenantError> {
    let editing = Editing::begin(site).await?;
    let id = editing.find(word)?.id.clone();
    may_go(&editing, &id)?;
    let (row_id, now) = (id.clone(), now_ms());
    let uid = site.db.write(move |tx| {
        roster::add(tx, std::slice::from_ref(&row_id), now)?;
        roster::uid_of(tx, &row_id)
    });
    let uid = uid.await?.ok_or_else(|| TenantError::unknown(format!("the store has no agent {id}")))?;
    let taken = edit::take_out_agent(&editing.text, &id)?;
    let (piece, text) = (taken.piece, taken.text);
    let archive = blocking(move || {
        editing.check(&text)?;
        let archive = archive::create(&editing.home, &id, uid, &piece, now)?;
        let folder = folder_of(&editing.home, &id);
        let done = folders::relocate(&folder, &archive.files()).and_then(|()| editing.commit(&text));
        done.inspect_err(|_| {
            folders::move_back(&archive.files(), &folder);
            folders::discard(&archive.folder);
        })?;
        Ok(archive)
    })
    .await?;
    let name = archive.name.clone();
    let rows = site.db.write(move |tx| put_aside(tx, uid, &name, now)).await?;
    Ok(Removed { archive, bindings: taken.bindings, mentions: taken.mentions, rows })
}

fn may_go(editing: &Editing, id: &AgentId) -> Result<(), TenantError> {
    if *id == AgentId::main() {
        return Err(TenantError::conflict("`main` is the agent that every house has, so it cannot go"));
    }
    if editing.config.default_agent == *id {
        return Err(TenantError::conflict(format!(
            "{id} is the default agent. Make another one the default first: `parlor agent default main`"
        )));
    }
    Ok(())
}

fn put_aside(tx: &Transaction<'_>, uid: AgentUid, archive: &str, now: i64) -> rusqlite::Result<Rows> {
    memory::archive(tx, uid)?;
    roster::archive(tx, uid, archive, now)?;
    rows_of(tx, uid)
}

/// What became of an agent that was brought back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    pub id: AgentId,
    pub rows: Rows,
    /// Bindings that did not come back, because other agents have their places now.
    pub lost_bindings: Vec<String>,
}

/// Brings an agent back, under its own id or another.
pub async fn restore(site: &Site, which: &str, as_id: Option<&str>) -> Result<Restored, TenantError> {
    let archive = find_archive(&site.home, which)?;
    let editing = Editing::begin(site).await?;
    let id = editing.free_as(as_id, &archive.id)?;
    let (committing, back, new_id) = (editing.clone(), archive.clone(), id.clone());
    let (text, lost_bindings) = blocking(move || {
        let tables = edit::rename_agent(&back.tables()?, &back.id, &new_id)?;
        let folder = folder_of(&committing.home, &new_id);
        // The files first: the skills that the tables name must be where they say.
        folders::relocate(&back.files(), &folder)?;
        let fitting = fitting(&committing, &tables);
        let done = fitting.and_then(|(text, lost)| committing.commit(&text).map(|()| (text, lost)));
        done.inspect_err(|_| folders::move_back(&folder, &back.files()))
    })
    .await?;
    let (uid, row_id) = (archive.uid, id.clone());
    let rows = match site.db.write(move |tx| take_up(tx, uid, &row_id)).await {
        Ok(rows) => rows,
        Err(error) => {
            editing.take_back(&text);
            folders::move_back(&folder_of(&site.home, &id), &archive.files());
            return Err(error.into());
        }
    };
    blocking(move || archive.destroy()).await?;
    Ok(Restored { id, rows, lost_bindings })
}

fn take_up(tx: &Transaction<'_>, uid: AgentUid, id: &AgentId) -> rusqlite::Result<Rows> {
    memory::restore(tx, uid)?;
    roster::restore(tx, uid, id, now_ms())?;
    rows_of(tx, uid)
}

/// The config with the tables in it: with their bindings if those still fit.
fn fitting(editing: &Editing, tables: &str) -> Result<(String, Vec<String>), TenantError> {
    let whole = edit::put_back(&editing.text, tables)?;
    if editing.check(&whole).is_ok() {
        return Ok((whole, Vec::new()));
    }
    let (agent_only, bindings) = edit::without_bindings(tables)?;
    let text = edit::put_back(&editing.text, &agent_only)?;
    editing.check(&text)?;
    Ok((text, bindings))
}

/// What was destroyed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purged {
    pub archive: Archive,
    pub rows: Rows,
    pub files: usize,
}

/// Destroys a removed agent: its files and everything that hangs on it.
pub async fn purge(site: &Site, which: &str) -> Result<Purged, TenantError> {
    let archive = find_archive(&site.home, which)?;
    let uid = archive.uid;
    let rows = site.db.write(move |tx| destroy_rows(tx, uid)).await?;
    blocking(move || {
        let files = folders::walk(&archive.files())?.files.len();
        archive.destroy()?;
        Ok(Purged { archive, rows, files })
    })
    .await
}

fn destroy_rows(tx: &Transaction<'_>, uid: AgentUid) -> rusqlite::Result<Rows> {
    let pins = pins::purge(tx, uid)?;
    let turns = usage::purge(tx, uid)?;
    journal::purge(tx, uid)?;
    children::purge(tx, uid)?;
    summaries::purge(tx, uid)?;
    ledger::purge(tx, uid)?;
    let share = transcript::purge(tx, uid)?;
    let memories = memory::purge(tx, uid)?;
    roster::purge(tx, uid)?;
    Ok(Rows { memories, messages: share.messages, sessions: share.sessions, pins, turns })
}

/// The archive of this name, or the only one of an agent that had this id.
pub fn find_archive(home: &Path, which: &str) -> Result<Archive, TenantError> {
    let all = archives(home);
    if let Some(archive) = all.iter().find(|archive| archive.name == which) {
        return Ok(archive.clone());
    }
    let of_id: Vec<&Archive> = all.iter().filter(|archive| archive.id.as_str() == which).collect();
    match of_id.as_slice() {
        [] if all.is_empty() => Err(TenantError::unknown(format!("no removed agent is called {which}; the archive is empty"))),
        [] => Err(TenantError::unknown(format!("no removed agent is called {which}. There are: {}", names(&all)))),
        [only] => Ok((*only).clone()),
        several => {
            let several: Vec<Archive> = several.iter().map(|archive| (*archive).clone()).collect();
            Err(TenantError::unknown(format!("{which} was removed more than once. Name one of: {}", names(&several))))
        }
    }
}

fn names(archives: &[Archive]) -> String {
    archives.iter().map(|archive| archive.name.as_str()).collect::<Vec<_>>().join(", ")
}
