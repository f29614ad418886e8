//! Agents in the database: the tables `agents` and `agent_former_ids`. Gives each slug its uid,
//! once and for good.
//!
//! A removed agent keeps its row. Its slug is then `archive/…`, no valid agent id, so no lookup by
//! id finds the row.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use uuid::Uuid;

use crate::domain::{AgentId, AgentUid};

/// An agent in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentRow {
    pub uid: AgentUid,
    /// Its first turn has finished.
    pub bootstrapped: bool,
    pub created_at: i64,
    /// The last time of a rename, a removal or a return; before these, the time of creation.
    pub updated_at: i64,
}

pub type AgentRows = HashMap<AgentId, AgentRow>;

pub fn load(connection: &Connection) -> rusqlite::Result<AgentRows> {
    let mut statement = connection.prepare(
        "SELECT slug, uid, bootstrapped_at IS NOT NULL, created_at, updated_at FROM agents",
    )?;
    let mut rows = statement.query([])?;
    let mut agent_rows = AgentRows::new();
    while let Some(row) = rows.next()? {
        let (slug, uid): (String, String) = (row.get(0)?, row.get(1)?);
        if let (Ok(id), Ok(uid)) = (AgentId::parse(&slug), Uuid::parse_str(&uid)) {
            let known = AgentRow {
                uid: AgentUid(uid),
                bootstrapped: row.get(2)?,
                created_at: row.get(3)?,
                updated_at: row.get(4)?,
            };
            agent_rows.insert(id, known);
        }
    }
    Ok(agent_rows)
}

/// Adds new agents of the config.
pub fn add(tx: &Transaction<'_>, ids: &[AgentId], now: i64) -> rusqlite::Result<()> {
    let mut insert =
        tx.prepare("INSERT INTO agents (uid, slug, created_at, updated_at) VALUES (?1, ?2, ?3, ?3) ON CONFLICT (slug) DO NOTHING")?;
    for id in ids {
        insert.execute(params![Uuid::now_v7().to_string(), id.as_str(), now])?;
    }
    Ok(())
}

pub fn mark_bootstrapped(tx: &Transaction<'_>, uid: AgentUid, now: i64) -> rusqlite::Result<()> {
    let mut update = tx.prepare_cached(
        "UPDATE agents SET bootstrapped_at = ?2 WHERE uid = ?1 AND bootstrapped_at IS NULL",
    )?;
    update.execute(params![uid.to_string(), now]).map(drop)
}

/// Failures before this time do not count for the agent's state.
pub fn mark_restarted(tx: &Transaction<'_>, uid: AgentUid, now: i64) -> rusqlite::Result<()> {
    tx.execute(
        "UPDATE agents SET restarted_at = ?2 WHERE uid = ?1",
        params![uid.to_string(), now],
    )
    .map(drop)
}

/// A former id of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Former {
    pub id: AgentId,
    pub uid: AgentUid,
    /// The end of the time in which the former id still works.
    pub until: i64,
}

pub fn former(connection: &Connection, now: i64) -> rusqlite::Result<Vec<Former>> {
    let mut statement =
        connection.prepare("SELECT id, agent_uid, until FROM agent_former_ids WHERE until > ?1")?;
    let rows = statement.query_map([now], |row| {
        Ok((
            row.get::<_, String>(0)?,
            row.get::<_, String>(1)?,
            row.get(2)?,
        ))
    })?;
    let mut all = Vec::new();
    for row in rows {
        let (id, uid, until) = row?;
        if let (Ok(id), Ok(uid)) = (AgentId::parse(&id), Uuid::parse_str(&uid)) {
            all.push(Former {
                id,
                uid: AgentUid(uid),
                until,
            });
        }
    }
    Ok(all)
}

/// The living agent of this id, if any.
pub fn uid_of(connection: &Connection, id: &AgentId) -> rusqlite::Result<Option<AgentUid>> {
    let found = connection.query_row(
        "SELECT uid FROM agents WHERE slug = ?1",
        [id.as_str()],
        |row| row.get::<_, String>(0),
    );
    Ok(found
        .optional()?
        .and_then(|uid| Uuid::parse_str(&uid).ok())
        .map(AgentUid))
}

/// Whether the database has an agent of this uid, living or not.
pub fn knows(connection: &Connection, uid: &str) -> rusqlite::Result<bool> {
    connection
        .prepare("SELECT 1 FROM agents WHERE uid = ?1")?
        .exists([uid])
}

/// The id of a living agent.
pub fn living_id(connection: &Connection, uid: AgentUid) -> rusqlite::Result<Option<AgentId>> {
    let sql = "SELECT slug FROM agents WHERE uid = ?1 AND archived_at IS NULL";
    let slug = connection
        .query_row(sql, [uid.to_string()], |row| row.get::<_, String>(0))
        .optional()?;
    Ok(slug.and_then(|slug| AgentId::parse(&slug).ok()))
}

/// Adds a new agent. An older agent of this id, without a table in the config, loses the id.
pub fn add_new(
    tx: &Transaction<'_>,
    uid: AgentUid,
    id: &AgentId,
    now: i64,
) -> rusqlite::Result<()> {
    retire(tx, id, now)?;
    let sql = "INSERT INTO agents (uid, slug, created_at, updated_at) VALUES (?1, ?2, ?3, ?3)";
    tx.execute(sql, params![uid.to_string(), id.as_str(), now])
        .map(drop)
}

/// Takes the agent out of everyone's sight. `archive` is the name of the folder its files went to.
pub fn archive(
    tx: &Transaction<'_>,
    uid: AgentUid,
    archive: &str,
    now: i64,
) -> rusqlite::Result<()> {
    let sql = "UPDATE agents SET archived_id = slug, slug = 'archive/' || ?2, archived_at = ?3, updated_at = ?3 WHERE uid = ?1 AND archived_at IS NULL";
    tx.execute(sql, params![uid.to_string(), archive, now])
        .map(drop)
}

/// Undoes [`archive`], under this id.
pub fn restore(
    tx: &Transaction<'_>,
    uid: AgentUid,
    id: &AgentId,
    now: i64,
) -> rusqlite::Result<()> {
    if uid_of(tx, id)? != Some(uid) {
        retire(tx, id, now)?;
    }
    let sql = "UPDATE agents SET slug = ?2, archived_id = NULL, archived_at = NULL, updated_at = ?3 WHERE uid = ?1";
    tx.execute(sql, params![uid.to_string(), id.as_str(), now])
        .map(drop)
}

/// Gives an agent another id; the old id works until `until`.
pub fn rename(
    tx: &Transaction<'_>,
    from: &AgentId,
    to: &AgentId,
    until: i64,
    now: i64,
) -> rusqlite::Result<()> {
    let Some(uid) = uid_of(tx, from)? else {
        return Ok(());
    };
    retire(tx, to, now)?;
    tx.execute(
        "UPDATE agents SET slug = ?2, updated_at = ?3 WHERE uid = ?1",
        params![uid.to_string(), to.as_str(), now],
    )?;
    tx.execute(
        "DELETE FROM agent_former_ids WHERE id = ?1 OR until <= ?2",
        params![to.as_str(), now],
    )?;
    let sql = "INSERT OR REPLACE INTO agent_former_ids (id, agent_uid, until) VALUES (?1, ?2, ?3)";
    tx.execute(sql, params![from.as_str(), uid.to_string(), until])
        .map(drop)
}

/// Forgets an agent. Its other rows must be gone.
pub fn purge(tx: &Transaction<'_>, uid: AgentUid) -> rusqlite::Result<()> {
    tx.execute(
        "DELETE FROM agent_former_ids WHERE agent_uid = ?1",
        [uid.to_string()],
    )?;
    tx.execute("DELETE FROM agents WHERE uid = ?1", [uid.to_string()])
        .map(drop)
}

/// Frees the id of an agent in the database. The agent's table was taken out of the config by hand.
fn retire(tx: &Transaction<'_>, id: &AgentId, now: i64) -> rusqlite::Result<()> {
    match uid_of(tx, id)? {
        Some(uid) => {
            super::memory::archive(tx, uid)?;
            archive(tx, uid, &uid.to_string(), now)
        }
        None => Ok(()),
    }
}
