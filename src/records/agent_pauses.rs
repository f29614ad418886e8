//! Paused agents: the tables `paused_agents` and `pause_notices`.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::audit::Actor;
use crate::domain::{AgentUid, SessionKey};
use crate::routing::places;

/// The author and the time of an agent's pause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pause {
    /// Unix milliseconds.
    pub(crate) at: i64,
    /// A person's id, or `cli`.
    pub(crate) by: String,
    pub(crate) by_name: Option<String>,
}

impl Pause {
    pub(crate) fn by(actor: &Actor, now: i64) -> Self {
        let (by, by_name) = actor.columns();
        Pause {
            at: now,
            by,
            by_name: by_name.map(str::to_owned),
        }
    }

    /// The person's name, else the id.
    pub(crate) fn who(&self) -> &str {
        self.by_name.as_deref().unwrap_or(&self.by)
    }
}

pub(crate) fn all(connection: &Connection) -> rusqlite::Result<HashMap<AgentUid, Pause>> {
    let mut statement =
        connection.prepare_cached("SELECT at, by, by_name, agent_uid FROM paused_agents")?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(3)?, pause(row)?)))?;
    let known = rows.map(|row| {
        let (uid, pause) = row?;
        Ok(Uuid::parse_str(&uid).ok().map(|uid| (AgentUid(uid), pause)))
    });
    known.filter_map(Result::transpose).collect()
}

pub(crate) fn of(connection: &Connection, uid: AgentUid) -> rusqlite::Result<Option<Pause>> {
    connection
        .prepare_cached("SELECT at, by, by_name FROM paused_agents WHERE agent_uid = ?1")?
        .query_row([uid.to_string()], pause)
        .optional()
}

fn pause(row: &Row<'_>) -> rusqlite::Result<Pause> {
    Ok(Pause {
        at: row.get(0)?,
        by: row.get(1)?,
        by_name: row.get(2)?,
    })
}

/// False if the agent is paused already.
pub(crate) fn set(tx: &Transaction<'_>, uid: AgentUid, pause: &Pause) -> rusqlite::Result<bool> {
    let sql = "INSERT INTO paused_agents (agent_uid, at, by, by_name) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
    let new = tx.execute(
        sql,
        params![uid.to_string(), pause.at, pause.by, pause.by_name],
    )?;
    Ok(new > 0)
}

/// False if the agent is not paused.
pub(crate) fn clear(tx: &Transaction<'_>, uid: AgentUid) -> rusqlite::Result<bool> {
    let uid = uid.to_string();
    tx.execute("DELETE FROM pause_notices WHERE agent_uid = ?1", [&uid])?;
    let gone = tx.execute("DELETE FROM paused_agents WHERE agent_uid = ?1", [&uid])?;
    Ok(gone > 0)
}

/// Notes that a place is told of the pause. False if the place was told before.
pub(crate) fn tell(
    tx: &Transaction<'_>,
    uid: AgentUid,
    place: &SessionKey,
    now: i64,
) -> rusqlite::Result<bool> {
    let sql =
        "INSERT INTO pause_notices (agent_uid, place_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    let new = tx.execute(
        sql,
        params![uid.to_string(), places::ensure(tx, place, now)?],
    )?;
    Ok(new > 0)
}

/// Deletes the pause of a purged agent.
pub(crate) fn purge(tx: &Transaction<'_>, uid: AgentUid) -> rusqlite::Result<()> {
    clear(tx, uid).map(drop)
}
