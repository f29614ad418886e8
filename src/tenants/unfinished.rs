//! A change that is under way: noted before the first file moves, so that a kill in the middle leaves nothing half done.
//!
//! An agent is tables, a folder and rows, and no system changes the three at once. The config decides: what it says after
//! the interruption is finished or undone by whoever changes agents or starts the gateway next.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml_edit::{DocumentMut, Item};

use super::adding::record_clone;
use super::removing::{put_aside, take_up};
use super::renaming::record_rename;
use super::{Site, TenantError, archive, blocking, folder_of, folders};
use crate::agents::roster;
use crate::clock::now_ms;
use crate::config::edit::{self, EditError};
use crate::config::store::{self, EditLock};
use crate::domain::{AgentId, AgentUid};

const FILE: &str = "unfinished.json";
/// What is half there has a name that begins so: a package that is being unpacked, a folder that is being copied.
pub(super) const STAGING: &str = ".incoming-";

/// What is being done, as far as it must be known to finish or undo it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "lowercase")]
pub(super) enum Change {
    Remove { id: AgentId, uid: String, archive: String },
    Restore { id: AgentId, uid: String, archive: String },
    Rename { from: AgentId, to: AgentId },
    Clone { id: AgentId, uid: String },
    Import { id: AgentId, uid: String },
}

/// Goes when the change is over, well or not; only the end of the process leaves it behind.
#[derive(Debug)]
pub(super) struct Note(PathBuf);

impl Drop for Note {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0) {
            tracing::warn!("{} is left over: {error}", self.0.display());
        }
    }
}

/// Whoever calls this holds the config's lock, so that there is one change at a time. Blocks on the disk.
pub(super) fn note(home: &Path, change: &Change) -> Result<Note, TenantError> {
    let path = home.join(FILE);
    let json = serde_json::to_vec(change).expect("texts become JSON");
    let note = File::create(&path).map(|file| (file, Note(path.clone()))).map_err(TenantError::disk(&path))?;
    let (mut file, note) = note;
    file.write_all(&json).and_then(|()| file.sync_all()).map_err(TenantError::disk(&path))?;
    Ok(note)
}

/// Finishes or undoes what a killed process was doing.
pub(super) async fn settle(site: &Site, lock: &EditLock) -> Result<(), TenantError> {
    let home = site.home.clone();
    let left = blocking(move || {
        clear_staging(&home);
        Ok(read(&home).map(|change| (Note(home.join(FILE)), change)))
    });
    let Some((note, change)) = left.await? else { return Ok(()) };
    let outcome = match &change {
        Change::Remove { id, uid, archive } => settle_removal(site, id, uid, archive).await,
        Change::Restore { id, uid, archive } => settle_return(site, id, uid, archive).await,
        Change::Rename { from, to } => settle_rename(site, from, to).await,
        Change::Clone { id, uid } => settle_clone(site, id, uid).await,
        Change::Import { id, uid } => settle_import(site, lock, id, uid).await,
    };
    match outcome {
        Ok(told) => {
            tracing::warn!("{told}");
            drop(note);
            Ok(())
        }
        Err(error) => {
            // The note stays for the next attempt.
            std::mem::forget(note);
            Err(error)
        }
    }
}

/// A note that cannot be read was being written: nothing had begun.
fn read(home: &Path) -> Option<Change> {
    let path = home.join(FILE);
    let bytes = fs::read(&path).ok()?;
    let change = serde_json::from_slice(&bytes).ok();
    if change.is_none() {
        drop(Note(path));
    }
    change
}

fn clear_staging(home: &Path) {
    let entries = [home.to_owned(), home.join("agents")].into_iter().flat_map(fs::read_dir).flatten().flatten();
    let left = entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(STAGING)));
    left.for_each(|entry| folders::discard(&entry.path()));
}

pub(super) fn is_noted(home: &Path) -> bool {
    home.join(FILE).exists()
}

/// Whether the config names the agent, whatever else may be wrong with it.
pub(super) fn config_has(home: &Path, id: &AgentId) -> Result<bool, TenantError> {
    let text = store::read(home)?;
    let document: DocumentMut = text.parse().map_err(|_| EditError::NotToml)?;
    Ok(document.get("agents").and_then(Item::as_table_like).is_some_and(|agents| agents.contains_key(id.as_str())))
}

async fn settle_removal(site: &Site, id: &AgentId, uid: &str, name: &str) -> Result<String, TenantError> {
    let archive = archive::folder(&site.home, name);
    let files = archive.join(archive::FILES);
    let folder = folder_of(&site.home, id);
    // The config never had what is only left of an agent; then the archive tells whether anything has moved.
    if config_has(&site.home, id)? || !archive::has_anything(&site.home, name) {
        move_unless_there(&files, &folder)?;
        folders::discard(&archive);
        return Ok(format!("an interrupted removal of {id} was undone"));
    }
    move_unless_there(&folder, &files)?;
    if let (Ok(uid), name) = (uid.parse::<AgentUid>(), name.to_owned()) {
        site.db.write(move |tx| put_aside(tx, uid, &name, now_ms())).await?;
    }
    Ok(format!("an interrupted removal of {id} was finished; it is in archive/{name}"))
}

async fn settle_return(site: &Site, id: &AgentId, uid: &str, name: &str) -> Result<String, TenantError> {
    let archive = archive::folder(&site.home, name);
    if !config_has(&site.home, id)? {
        move_unless_there(&folder_of(&site.home, id), &archive.join(archive::FILES))?;
        return Ok(format!("an interrupted return of {id} was undone; it is in archive/{name}"));
    }
    if let (Ok(uid), id) = (uid.parse::<AgentUid>(), id.clone()) {
        site.db.write(move |tx| take_up(tx, uid, &id)).await?;
    }
    folders::discard(&archive);
    Ok(format!("an interrupted return of {id} was finished"))
}

async fn settle_rename(site: &Site, from: &AgentId, to: &AgentId) -> Result<String, TenantError> {
    let (old, new) = (folder_of(&site.home, from), folder_of(&site.home, to));
    if !config_has(&site.home, to)? {
        move_unless_there(&new, &old)?;
        return Ok(format!("an interrupted change of {from} to {to} was undone"));
    }
    record_rename(site, from, to).await?;
    Ok(format!("an interrupted change of {from} to {to} was finished"))
}

async fn settle_clone(site: &Site, id: &AgentId, uid: &str) -> Result<String, TenantError> {
    if config_has(&site.home, id)? {
        if let Ok(uid) = uid.parse::<AgentUid>() {
            record_clone(site, id, uid).await?;
        }
        return Ok(format!("{id} is complete"));
    }
    folders::discard(&folder_of(&site.home, id));
    Ok(format!("what an interrupted making of {id} had left was taken away; begin again"))
}

/// Its rows come last and all at once, so an agent that has them is complete.
async fn settle_import(site: &Site, lock: &EditLock, id: &AgentId, uid: &str) -> Result<String, TenantError> {
    let uid = uid.to_owned();
    if site.db.read(move |connection| roster::knows(connection, &uid)).await? {
        return Ok(format!("the import of {id} was complete"));
    }
    if config_has(&site.home, id)? {
        let text = store::read(&site.home)?;
        store::replace(&site.home, lock, &text, &edit::take_out_agent(&text, id)?.text)?;
    }
    folders::discard(&folder_of(&site.home, id));
    Ok(format!("an interrupted import of {id} was undone; import it again"))
}

/// What is at the target already is whole, because folders move in one step.
fn move_unless_there(from: &Path, to: &Path) -> Result<(), TenantError> {
    if fs::symlink_metadata(to).is_ok() { Ok(()) } else { folders::relocate(from, to) }
}
