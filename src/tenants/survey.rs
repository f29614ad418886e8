//! What there is of each agent.

use std::path::Path;

use rusqlite::Connection;
use serde::Serialize;

use crate::agents::memory;
use crate::config::Config;
use crate::domain::{AgentId, AgentUid};
use crate::routing::pins;
use crate::sessions::{transcript, usage};

/// Where an agent is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    Configured,
    /// A folder that no config names.
    Discovered,
    Archived,
}

/// Rows that hang on an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Rows {
    pub memories: usize,
    /// What it said.
    pub messages: usize,
    /// Places in which no other agent ever answered.
    pub sessions: usize,
    pub pins: usize,
    pub turns: usize,
}

pub fn rows_of(connection: &Connection, uid: AgentUid) -> rusqlite::Result<Rows> {
    let share = transcript::share_of(connection, uid)?;
    Ok(Rows {
        memories: memory::count_of(connection, uid)? as usize,
        messages: share.messages,
        sessions: share.sessions,
        pins: pins::count_of(connection, uid)?,
        turns: usage::count_of(connection, uid)?,
    })
}

/// When and why the agent last failed to answer.
pub fn last_error(connection: &Connection, uid: AgentUid) -> rusqlite::Result<Option<(i64, String)>> {
    usage::last_error(connection, uid)
}

/// Folders below `agents/` that could be an agent and that the config does not name. Blocks on the disk.
pub fn discovered(config: &Config, home: &Path) -> Vec<AgentId> {
    let Ok(entries) = std::fs::read_dir(home.join("agents")) else { return Vec::new() };
    let folders = entries.flatten().filter(|entry| entry.path().is_dir());
    let ids = folders.filter_map(|entry| AgentId::parse(entry.file_name().to_str()?).ok());
    let mut unknown: Vec<AgentId> = ids.filter(|id| config.agents.iter().all(|spec| spec.id != *id)).collect();
    unknown.sort();
    unknown
}
