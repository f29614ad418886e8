//! Agents the store knows: the `agents` table. Gives each slug its uid, once and for good.

use std::collections::HashMap;

use rusqlite::{Connection, Transaction, params};
use uuid::Uuid;

use crate::domain::{AgentId, AgentUid};

/// What the store knows of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    pub uid: AgentUid,
    /// Its first turn has finished.
    pub bootstrapped: bool,
}

pub type Roster = HashMap<AgentId, Known>;

pub fn load(connection: &Connection) -> rusqlite::Result<Roster> {
    let mut statement = connection.prepare("SELECT slug, uid, bootstrapped_at IS NOT NULL FROM agents")?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get(2)?)))?;
    let mut roster = Roster::new();
    for row in rows {
        let (slug, uid, bootstrapped) = row?;
        if let (Ok(id), Ok(uid)) = (AgentId::parse(&slug), Uuid::parse_str(&uid)) {
            roster.insert(id, Known { uid: AgentUid(uid), bootstrapped });
        }
    }
    Ok(roster)
}

/// Writes down agents that are new in the config.
pub fn add(tx: &Transaction<'_>, ids: &[AgentId], now: i64) -> rusqlite::Result<()> {
    let mut insert =
        tx.prepare("INSERT INTO agents (uid, slug, created_at) VALUES (?1, ?2, ?3) ON CONFLICT (slug) DO NOTHING")?;
    for id in ids {
        insert.execute(params![Uuid::now_v7().to_string(), id.as_str(), now])?;
    }
    Ok(())
}

pub fn mark_bootstrapped(tx: &Transaction<'_>, uid: AgentUid, now: i64) -> rusqlite::Result<()> {
    let mut update = tx.prepare_cached("UPDATE agents SET bootstrapped_at = ?2 WHERE uid = ?1 AND bootstrapped_at IS NULL")?;
    update.execute(params![uid.to_string(), now]).map(drop)
}
