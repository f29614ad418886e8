//! Destroys a removed agent.

use std::sync::Arc;

use rusqlite::Transaction;

use super::archive::{self, Archive, archives, refuse_in_use};
use super::editing::Editing;
use super::error::TenantError;
use super::inventory::{Rows, rows_of};
use super::removing::removable;
use super::site::{Site, blocking, folder_of};
use super::{folders, rows};
use crate::agents::{Memories, agent_rows};
use crate::channels::outgoing;
use crate::domain::AgentId;
use crate::records::audit::Action;
use crate::storage::{Db, Scrub};
use rows::Destroyed;

/// An agent before its purge.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Stake {
    pub id: AgentId,
    /// None for an agent in use.
    pub archive: Option<Archive>,
    pub rows: Rows,
    pub files: usize,
}

/// Finds the only agent with this id or archive name, in use or removed, and counts its files and
/// rows. An archive is found even when the config cannot be edited.
pub(super) async fn at_stake(
    site: &Site,
    editing: Result<Arc<Editing>, TenantError>,
    which: &str,
) -> Result<Stake, TenantError> {
    let living = living(site, editing, which).await;
    let all = archives(&site.home);
    let of_id: Vec<Archive> = all
        .iter()
        .filter(|archive| archive.id.as_str() == which)
        .cloned()
        .collect();
    let by_name = all.into_iter().find(|archive| archive.name == which);
    let archive = match living {
        _ if by_name.is_some() => by_name,
        Ok(_) | Err(TenantError::Conflict(_)) if !of_id.is_empty() => {
            return Err(TenantError::unknown(format!(
                "{which} is in use, and one of that id was removed earlier. Name the earlier one: {}; or remove the one in use first",
                archive::names(&of_id)
            )));
        }
        Ok(id) => return stake_of(site, id, None).await,
        Err(TenantError::Unknown(_)) => Some(archive::find(&site.home, which)?),
        Err(error) => Some(archive::find(&site.home, which).map_err(|_| error)?),
    };
    let archive =
        archive.ok_or_else(|| TenantError::unknown(format!("no agent is called {which}")))?;
    stake_of(site, archive.id.clone(), Some(archive)).await
}

async fn living(
    site: &Site,
    editing: Result<Arc<Editing>, TenantError>,
    which: &str,
) -> Result<AgentId, TenantError> {
    removable(site, &*editing?, which).await
}

async fn stake_of(
    site: &Site,
    id: AgentId,
    archive: Option<Archive>,
) -> Result<Stake, TenantError> {
    let folder = archive
        .as_ref()
        .map_or_else(|| folder_of(&site.home, &id), Archive::files);
    let files = blocking(move || Ok(folders::walk(&folder)?.files.len())).await?;
    let (known, row_id) = (archive.as_ref().map(|archive| archive.uid), id.clone());
    let rows = site.db.read(move |connection| {
        match known.map_or_else(
            || agent_rows::uid_of(connection, &row_id),
            |uid| Ok(Some(uid)),
        )? {
            Some(uid) => rows_of(connection, uid),
            None => Ok(Rows::default()),
        }
    });
    Ok(Stake {
        id,
        archive,
        rows: rows.await?,
        files,
    })
}

/// A destroyed agent.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Purged {
    pub archive: Archive,
    pub rows: Rows,
    pub files: usize,
    /// Why copies of its words may be left in the database file, if they may.
    pub left: Option<String>,
}

/// Destroys a removed agent: its files and rows, and traces of the rows in the database file.
pub(super) async fn purge(site: &Site, which: &str) -> Result<Purged, TenantError> {
    let archive = archive::find(&site.home, which)?;
    refuse_in_use(site, &archive).await?;
    let (uid, id, by) = (archive.uid, archive.id.clone(), site.by.clone());
    let destroy = move |tx: &Transaction<'_>| {
        rows::note(tx, &by, Action::AgentPurge, &id)?;
        rows::destroy(tx, uid)
    };
    let Destroyed { rows, outgoing } = site.db.write(destroy).await?;
    let copies = outgoing::folder(&site.home);
    let (archive, files) = blocking(move || {
        for copy in outgoing {
            folders::discard(&copies.join(copy));
        }
        let files = folders::walk(&archive.files())?.files.len();
        archive.destroy()?;
        Ok((archive, files))
    })
    .await?;
    Ok(Purged {
        archive,
        rows,
        files,
        left: scrub(&site.db).await,
    })
}

/// The agent is gone already, so a failure is told and fails nothing.
async fn scrub(db: &Db) -> Option<String> {
    if let Err(error) = Memories::new(db.clone()).wipe().await {
        return Some(error.to_string());
    }
    match db.scrub(Scrub::Rewrite).await {
        Ok(true) => None,
        Ok(false) => Some("another program is reading the database".to_owned()),
        Err(error) => Some(error.to_string()),
    }
}
