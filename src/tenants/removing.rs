//! Agents that go: put aside, brought back, or destroyed.

use std::path::Path;

use rusqlite::Transaction;

use super::archive::{self, Archive, archives};
use super::editing::Editing;
use super::survey::{Rows, rows_of, stored};
use super::unfinished::{self, Change};
use super::{Site, TenantError, blocking, folder_of, folders};
use crate::agents::{memory, roster};
use crate::clock::now_ms;
use crate::config::edit::{self, NewAgent};
use crate::domain::{AgentId, AgentUid};
use crate::records::{journal, ledger, subagents, summaries, transcript, turn_log};
use crate::routing::pins;

/// What became of an agent that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    pub archive: Archive,
    /// Bindings that went with it.
    pub bindings: Vec<String>,
    /// Lists that named it.
    pub mentions: Vec<String>,
    /// Kept, and out of everyone's sight.
    pub rows: Rows,
}

/// Whether an agent can go, and its id.
async fn may_remove(site: &Site, word: &str) -> Result<AgentId, TenantError> {
    let editing = Editing::begin(site).await?;
    let id = one_to_go(site, &editing, word).await?;
    may_go(&editing, &id)?;
    Ok(id)
}

/// Puts an agent aside: tables and files into the archive, rows out of sight. Nothing is lost.
pub async fn remove(site: &Site, word: &str) -> Result<Removed, TenantError> {
    let editing = Editing::begin(site).await?;
    let id = one_to_go(site, &editing, word).await?;
    may_go(&editing, &id)?;
    let (row_id, now) = (id.clone(), now_ms());
    let uid = site.db.write(move |tx| {
        roster::add(tx, std::slice::from_ref(&row_id), now)?;
        roster::uid_of(tx, &row_id)
    });
    let uid = uid.await?.ok_or_else(|| TenantError::unknown(format!("the store has no agent {id}")))?;
    let taken = edit::take_out_agent(&editing.text, &id)?;
    let (piece, text, mentions) = (taken.piece, taken.text, taken.mentions.clone());
    let (committing, new_text) = (editing.clone(), text.clone());
    let (archive, _note) = blocking(move || {
        let (editing, text) = (committing, new_text);
        editing.check(&text)?;
        let archive = Archive { mentions, ..archive::create(&editing.home, &id, uid, now)? };
        let change = Change::Remove { id: id.clone(), uid: uid.to_string(), archive: archive.name.clone() };
        let folder = folder_of(&editing.home, &id);
        let done = unfinished::note(&editing.home, &change).and_then(|note| {
            archive.fill(&piece)?;
            folders::relocate(&folder, &archive.files())?;
            editing.commit(&text).map(|()| note)
        });
        let note = done.inspect_err(|_| put_back(&archive, &folder))?;
        Ok((archive, note))
    })
    .await?;
    let name = archive.name.clone();
    let rows = match site.db.write(move |tx| put_aside(tx, uid, &name, now)).await {
        Ok(rows) => rows,
        Err(error) => {
            editing.take_back(&text);
            put_back(&archive, &folder_of(&site.home, &archive.id));
            return Err(error.into());
        }
    };
    Ok(Removed { archive, bindings: taken.bindings, mentions: taken.mentions, rows })
}

/// An agent of the config, or what is left of one: a folder that no config names, or rows.
async fn one_to_go(site: &Site, editing: &Editing, word: &str) -> Result<AgentId, TenantError> {
    let unknown = match editing.find(word) {
        Ok(spec) => return Ok(spec.id.clone()),
        Err(unknown) => unknown,
    };
    let Ok(id) = AgentId::parse(word) else { return Err(unknown) };
    let is_left = folder_of(&site.home, &id).is_dir() || stored(site, &id).await?.is_some();
    if is_left { Ok(id) } else { Err(unknown) }
}

/// Undoes what a removal has done to the files.
fn put_back(archive: &Archive, folder: &Path) {
    folders::move_back(&archive.files(), folder);
    folders::discard(&archive.folder);
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

pub(super) fn put_aside(tx: &Transaction<'_>, uid: AgentUid, archive: &str, now: i64) -> rusqlite::Result<Rows> {
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
    /// Lists that named it, and that it did not come back into.
    pub lost_mentions: Vec<String>,
}

/// Brings an agent back, under its own id or another.
pub async fn restore(site: &Site, which: &str, as_id: Option<&str>) -> Result<Restored, TenantError> {
    let editing = Editing::begin(site).await?;
    let archive = find_archive(&site.home, which)?;
    is_put_aside(site, &archive).await?;
    let id = editing.free_as(as_id, &archive.id)?;
    let (committing, back, new_id) = (editing.clone(), archive.clone(), id.clone());
    let (fitting, _note) = blocking(move || {
        let mut tables = edit::rename_agent(&back.tables()?, &back.id, &new_id)?;
        if tables.trim().is_empty() {
            tables = edit::add_agent("", &new_id, &NewAgent::default())?;
        }
        let folder = folder_of(&committing.home, &new_id);
        // The files first: the skills that the tables name must be where they say.
        let change = Change::Restore { id: new_id.clone(), uid: back.uid.to_string(), archive: back.name.clone() };
        let note = unfinished::note(&committing.home, &change)?;
        folders::relocate(&back.files(), &folder)?;
        let fitting = fitting(&committing, &tables, &back.mentions, &new_id);
        let done = fitting.and_then(|fitting| committing.commit(&fitting.text).map(|()| fitting));
        done.map(|fitting| (fitting, note)).inspect_err(|_| folders::move_back(&folder, &back.files()))
    })
    .await?;
    let (uid, row_id) = (archive.uid, id.clone());
    let rows = match site.db.write(move |tx| take_up(tx, uid, &row_id)).await {
        Ok(rows) => rows,
        Err(error) => {
            editing.take_back(&fitting.text);
            folders::move_back(&folder_of(&site.home, &id), &archive.files());
            return Err(error.into());
        }
    };
    blocking(move || archive.destroy()).await?;
    let Fitting { lost_bindings, lost_mentions, .. } = fitting;
    Ok(Restored { id, rows, lost_bindings, lost_mentions })
}

/// An archive of somebody who is in use, such as a copy, must not take that one's rows.
async fn is_put_aside(site: &Site, archive: &Archive) -> Result<(), TenantError> {
    let uid = archive.uid;
    let living = site.db.read(move |connection| roster::living_id(connection, uid)).await?;
    // A store that was put back from a copy may have forgotten the removal. The config has not.
    let in_use = living.filter(|id| unfinished::config_has(&site.home, id).unwrap_or(true));
    match in_use {
        None => Ok(()),
        Some(id) => Err(TenantError::conflict(format!(
            "the agent of archive/{} is in use, as {id}. If nothing in that folder is needed, delete it by hand",
            archive.name
        ))),
    }
}

pub(super) fn take_up(tx: &Transaction<'_>, uid: AgentUid, id: &AgentId) -> rusqlite::Result<Rows> {
    memory::restore(tx, uid)?;
    roster::restore(tx, uid, id, now_ms())?;
    rows_of(tx, uid)
}

/// A config with an agent back in it.
struct Fitting {
    text: String,
    lost_bindings: Vec<String>,
    lost_mentions: Vec<String>,
}

/// With its bindings and in its lists, as far as those still fit.
fn fitting(editing: &Editing, tables: &str, mentions: &[String], id: &AgentId) -> Result<Fitting, TenantError> {
    let (mut text, lost_bindings) = with_tables(editing, tables)?;
    let mut lost_mentions = Vec::new();
    for list in mentions {
        match edit::add_mention(&text, list, id)?.filter(|more| editing.check(more).is_ok()) {
            Some(more) => text = more,
            None => lost_mentions.push(list.clone()),
        }
    }
    Ok(Fitting { text, lost_bindings, lost_mentions })
}

fn with_tables(editing: &Editing, tables: &str) -> Result<(String, Vec<String>), TenantError> {
    let put_back = |tables: &str| -> Result<String, TenantError> {
        let text = edit::put_back(&editing.text, tables)?;
        editing.check(&text)?;
        Ok(text)
    };
    if let Ok(whole) = put_back(tables) {
        return Ok((whole, Vec::new()));
    }
    let (agent_only, bindings) = edit::without_bindings(tables)?;
    Ok((put_back(&agent_only)?, bindings))
}

/// What a purge would destroy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stake {
    pub id: AgentId,
    /// None for an agent that is in use.
    pub archive: Option<Archive>,
    pub rows: Rows,
    pub files: usize,
}

/// The one agent that a word means, in use or removed, and what there is of it.
pub async fn at_stake(site: &Site, which: &str) -> Result<Stake, TenantError> {
    let living = may_remove(site, which).await;
    let all = archives(&site.home);
    let of_id: Vec<Archive> = all.iter().filter(|archive| archive.id.as_str() == which).cloned().collect();
    let by_name = all.into_iter().find(|archive| archive.name == which);
    let archive = match living {
        _ if by_name.is_some() => by_name,
        Ok(_) | Err(TenantError::Conflict(_)) if !of_id.is_empty() => {
            return Err(TenantError::unknown(format!(
                "{which} is in use, and one of that id was removed earlier. Name the earlier one: {}; or remove the one in use first",
                names(&of_id)
            )));
        }
        Ok(id) => return stake_of(site, id, None).await,
        Err(TenantError::Unknown(_)) => Some(find_archive(&site.home, which)?),
        Err(error) => Some(find_archive(&site.home, which).map_err(|_| error)?),
    };
    let archive = archive.ok_or_else(|| TenantError::unknown(format!("no agent is called {which}")))?;
    stake_of(site, archive.id.clone(), Some(archive)).await
}

async fn stake_of(site: &Site, id: AgentId, archive: Option<Archive>) -> Result<Stake, TenantError> {
    let folder = archive.as_ref().map_or_else(|| folder_of(&site.home, &id), Archive::files);
    let files = blocking(move || Ok(folders::walk(&folder)?.files.len())).await?;
    let (known, row_id) = (archive.as_ref().map(|archive| archive.uid), id.clone());
    let rows =
        site.db.read(move |connection| match known.map_or_else(|| roster::uid_of(connection, &row_id), |uid| Ok(Some(uid)))? {
            Some(uid) => rows_of(connection, uid),
            None => Ok(Rows::default()),
        });
    Ok(Stake { id, archive, rows: rows.await?, files })
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
    super::settle(site).await?;
    let archive = find_archive(&site.home, which)?;
    is_put_aside(site, &archive).await?;
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
    let turns = turn_log::purge(tx, uid)?;
    journal::purge(tx, uid)?;
    subagents::purge(tx, uid)?;
    summaries::purge(tx, uid)?;
    ledger::purge(tx, uid)?;
    let share = transcript::purge(tx, uid)?;
    let memories = memory::purge(tx, uid)?;
    roster::purge(tx, uid)?;
    Ok(Rows { memories, messages: share.messages, sessions: share.sessions, pins, turns })
}

/// The archive of this name, or the only one of an agent that had this id.
fn find_archive(home: &Path, which: &str) -> Result<Archive, TenantError> {
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
