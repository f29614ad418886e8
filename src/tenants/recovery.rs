//! Recovery: finishes or undoes the unfinished change of a killed process.
//!
//! The config decides. A change visible in the config is finished; any other is undone.

use std::fs;
use std::path::Path;

use super::error::TenantError;
use super::note::{self, Change};
use super::site::{Site, blocking, folder_of};
use super::{archive, editing, folders, rows};
use crate::agents::agent_rows;
use crate::clock::now_ms;
use crate::config::edit;
use crate::config::store::{self, EditLock};
use crate::domain::{AgentId, AgentUid};

/// Settles the change in the note of a killed process, if any. A failure keeps the note for the
/// next attempt.
pub(super) async fn settle(site: &Site, lock: &EditLock) -> Result<(), TenantError> {
    let home = site.home.clone();
    let left = blocking(move || {
        folders::clear_staging(&home);
        Ok(note::left_over(&home))
    });
    let Some((note, change)) = left.await? else {
        return Ok(());
    };
    match settle_change(site, lock, &change).await {
        Ok(told) => {
            tracing::warn!("{told}");
            Ok(())
        }
        Err(error) => {
            note.keep();
            Err(error)
        }
    }
}

async fn settle_change(
    site: &Site,
    lock: &EditLock,
    change: &Change,
) -> Result<String, TenantError> {
    match change {
        Change::Remove { id, uid, archive } => settle_removal(site, id, uid, archive).await,
        Change::Restore { id, uid, archive } => settle_return(site, id, uid, archive).await,
        Change::Rename { from, to } => settle_rename(site, from, to).await,
        Change::Clone { id, uid } => settle_clone(site, id, uid).await,
        Change::Import { id, uid } => settle_import(site, lock, id, uid).await,
    }
}

async fn settle_removal(
    site: &Site,
    id: &AgentId,
    uid: &str,
    name: &str,
) -> Result<String, TenantError> {
    let archive = archive::folder(&site.home, name);
    let files = archive.join(archive::FILES);
    let folder = folder_of(&site.home, id);
    // An agent that the config never named may be removed too; then the archive tells whether its
    // files or tables have moved.
    if editing::config_has(&site.home, id)? || !archive::has_anything(&site.home, name) {
        move_unless_there(&files, &folder)?;
        folders::discard(&archive);
        return Ok(format!("an interrupted removal of {id} was undone"));
    }
    move_unless_there(&folder, &files)?;
    if let (Ok(uid), name) = (uid.parse::<AgentUid>(), name.to_owned()) {
        site.db
            .write(move |tx| rows::put_aside(tx, uid, &name, now_ms()))
            .await?;
    }
    Ok(format!(
        "an interrupted removal of {id} was finished; it is in archive/{name}"
    ))
}

async fn settle_return(
    site: &Site,
    id: &AgentId,
    uid: &str,
    name: &str,
) -> Result<String, TenantError> {
    let archive = archive::folder(&site.home, name);
    if !editing::config_has(&site.home, id)? {
        move_unless_there(&folder_of(&site.home, id), &archive.join(archive::FILES))?;
        return Ok(format!(
            "an interrupted return of {id} was undone; it is in archive/{name}"
        ));
    }
    if let (Ok(uid), id) = (uid.parse::<AgentUid>(), id.clone()) {
        site.db.write(move |tx| rows::take_up(tx, uid, &id)).await?;
    }
    folders::discard(&archive);
    Ok(format!("an interrupted return of {id} was finished"))
}

async fn settle_rename(site: &Site, from: &AgentId, to: &AgentId) -> Result<String, TenantError> {
    let (old, new) = (folder_of(&site.home, from), folder_of(&site.home, to));
    if !editing::config_has(&site.home, to)? {
        move_unless_there(&new, &old)?;
        return Ok(format!(
            "an interrupted change of {from} to {to} was undone"
        ));
    }
    rows::record_rename(site, from, to).await?;
    Ok(format!(
        "an interrupted change of {from} to {to} was finished"
    ))
}

async fn settle_clone(site: &Site, id: &AgentId, uid: &str) -> Result<String, TenantError> {
    if editing::config_has(&site.home, id)? {
        if let Ok(uid) = uid.parse::<AgentUid>() {
            rows::record_clone(site, id, uid).await?;
        }
        return Ok(format!("{id} is complete"));
    }
    folders::discard(&folder_of(&site.home, id));
    Ok(format!(
        "what an interrupted making of {id} had left was taken away; begin again"
    ))
}

/// An import writes its rows last and all at once, so an agent that has rows is complete.
async fn settle_import(
    site: &Site,
    lock: &EditLock,
    id: &AgentId,
    uid: &str,
) -> Result<String, TenantError> {
    let uid = uid.to_owned();
    if site
        .db
        .read(move |connection| agent_rows::knows(connection, &uid))
        .await?
    {
        return Ok(format!("the import of {id} was complete"));
    }
    if editing::config_has(&site.home, id)? {
        let text = store::read(&site.home)?;
        store::replace(
            &site.home,
            lock,
            &text,
            &edit::take_out_agent(&text, id)?.text,
        )?;
    }
    folders::discard(&folder_of(&site.home, id));
    Ok(format!(
        "an interrupted import of {id} was undone; import it again"
    ))
}

/// Folders move in a single step, so a folder at the target is whole.
fn move_unless_there(from: &Path, to: &Path) -> Result<(), TenantError> {
    if fs::symlink_metadata(to).is_ok() {
        Ok(())
    } else {
        folders::relocate(from, to)
    }
}
