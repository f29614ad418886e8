//! Inventory: the config entries, folders and rows of each agent.

use std::path::Path;

use rusqlite::Connection;
use serde::Serialize;

use super::folders;
use super::site::{Site, folder_of};
use crate::agents::{agent_rows, memory};
use crate::config::Config;
use crate::domain::{AgentId, AgentUid};
use crate::records::{transcript, turn_log};
use crate::routing::pins;
use crate::storage::StoreError;

/// Where an agent is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Origin {
    Configured,
    /// A folder without a table in the config.
    Discovered,
    /// Rows without a table in the config or a folder: the table was taken out by hand.
    Stored,
    Archived,
}

/// Rows that hang on an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Rows {
    pub memories: usize,
    /// Messages of the agent itself.
    pub messages: usize,
    /// Places without an answer of any other agent.
    pub sessions: usize,
    pub pins: usize,
    pub turns: usize,
}

pub(crate) fn rows_of(connection: &Connection, uid: AgentUid) -> rusqlite::Result<Rows> {
    let share = transcript::share_of(connection, uid)?;
    Ok(Rows {
        memories: memory::count_of(connection, uid)? as usize,
        messages: share.messages,
        sessions: share.sessions,
        pins: pins::count_of(connection, uid)?,
        turns: turn_log::count_of(connection, uid)?,
    })
}

/// When and why the agent last failed to answer.
pub(crate) fn last_error(
    connection: &Connection,
    uid: AgentUid,
) -> rusqlite::Result<Option<(i64, String)>> {
    turn_log::last_error(connection, uid)
}

/// The rows of an agent of this id, if the database has any.
pub(super) async fn stored(site: &Site, id: &AgentId) -> Result<Option<Rows>, StoreError> {
    let id = id.clone();
    let rows = site.db.read(
        move |connection| match agent_rows::uid_of(connection, &id)? {
            Some(uid) => rows_of(connection, uid),
            None => Ok(Rows::default()),
        },
    );
    Ok(Some(rows.await?).filter(|rows| *rows != Rows::default()))
}

/// Agents without a table in the config and without a folder, but with memories, messages or pins.
pub(crate) async fn stored_only(
    site: &Site,
    config: &Config,
) -> Result<Vec<(AgentId, Rows)>, StoreError> {
    let known = site.db.read(agent_rows::load).await?;
    let mut ids: Vec<AgentId> = known
        .into_keys()
        .filter(|id| config.agents.iter().all(|spec| spec.id != *id))
        .collect();
    ids.retain(|id| !folder_of(&site.home, id).is_dir());
    ids.sort();
    let mut found = Vec::new();
    for id in ids {
        found.extend(stored(site, &id).await?.map(|rows| (id, rows)));
    }
    Ok(found)
}

/// Folders below `agents/` with an agent's id as name that the config does not list. Blocks on the
/// disk.
pub(crate) fn discovered(config: &Config, home: &Path) -> Vec<AgentId> {
    let Ok(entries) = std::fs::read_dir(home.join("agents")) else {
        return Vec::new();
    };
    let folders = entries.flatten().filter(|entry| {
        let path = entry.path();
        path.is_dir() && !folders::leads_beside(&path)
    });
    let ids = folders.filter_map(|entry| AgentId::parse(entry.file_name().to_str()?).ok());
    let mut unknown: Vec<AgentId> = ids
        .filter(|id| config.agents.iter().all(|spec| spec.id != *id))
        .collect();
    unknown.sort();
    unknown
}
