//! Sessions as an operator sees them: a place with its conversation and everything that waits there.
//! Reads only; each table has its own file that writes it.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::domain::{AgentUid, PersonId, SessionKey};
use crate::routing::places::PlaceId;

/// A place that people have used.
#[derive(Debug, Clone)]
pub(crate) struct Used {
    pub(crate) id: PlaceId,
    pub(crate) key: SessionKey,
    pub(crate) conversation: i64,
    pub(crate) created_at: i64,
    /// Absent: nothing was ever answered there.
    pub(crate) active_at: Option<i64>,
}

const USED: &str = "SELECT id, key, conversation, created_at, active_at FROM places";

fn used(row: &Row<'_>) -> rusqlite::Result<Option<Used>> {
    let key = row.get::<_, String>(1)?.parse().ok();
    let (id, conversation) = (row.get(0)?, row.get(2)?);
    let (created_at, active_at) = (row.get(3)?, row.get(4)?);
    Ok(key.map(|key| Used {
        id,
        key,
        conversation,
        created_at,
        active_at,
    }))
}

/// Places with a conversation or a waiting message, the latest first. Sessions of subagents and
/// imported conversations are left out.
pub(crate) fn all(connection: &Connection, since: i64) -> rusqlite::Result<Vec<Used>> {
    let mut statement = connection.prepare_cached(&format!(
        "{USED} WHERE key NOT GLOB 'child:*' AND key NOT GLOB 'import:*'
           AND coalesce(active_at, created_at) >= ?1
           AND (active_at IS NOT NULL OR id IN (SELECT place_id FROM inbox WHERE state = 'waiting'))
         ORDER BY coalesce(active_at, created_at) DESC, id DESC"
    ))?;
    let rows = statement.query_map([since], used)?;
    rows.filter_map(Result::transpose).collect()
}

/// A place by its key, if it has a row.
pub(crate) fn of(connection: &Connection, place: &SessionKey) -> rusqlite::Result<Option<Used>> {
    let mut statement = connection.prepare_cached(&format!("{USED} WHERE key = ?1"))?;
    let found = statement.query_row([place.to_string()], used).optional()?;
    Ok(found.flatten())
}

/// The number of messages in the running conversation of a place.
pub(crate) fn messages(connection: &Connection, place: &Used) -> rusqlite::Result<i64> {
    let sql = "SELECT count(*) FROM messages WHERE place_id = ?1 AND conversation = ?2";
    connection
        .prepare_cached(sql)?
        .query_row(params![place.id, place.conversation], |row| row.get(0))
}

/// The people with words in the running conversation of a place, those who wrote last first.
pub(crate) fn people(connection: &Connection, place: &Used) -> rusqlite::Result<Vec<PersonId>> {
    let mut statement = connection.prepare_cached(
        "SELECT person FROM messages WHERE place_id = ?1 AND conversation = ?2 AND kind = 'person' AND person IS NOT NULL
         GROUP BY person ORDER BY max(id) DESC",
    )?;
    let ids = statement.query_map(params![place.id, place.conversation], |row| {
        row.get::<_, String>(0)
    })?;
    ids.filter_map(|id| id.map(|id| id.parse().ok()).transpose())
        .collect()
}

/// Numbers of rows by place.
#[derive(Debug, Default)]
pub(crate) struct Open {
    waiting: HashMap<PlaceId, i64>,
    unanswered: HashMap<PlaceId, i64>,
    undelivered: HashMap<PlaceId, i64>,
}

/// What is open in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OpenIn {
    /// Messages that wait for an answer, or are being answered.
    pub(crate) waiting: i64,
    /// Messages whose turn failed, and which can be tried again.
    pub(crate) unanswered: i64,
    /// Parts of answers that could not be delivered.
    pub(crate) undelivered: i64,
}

impl Open {
    pub(crate) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        let count = |table: &str, which: &str| {
            let sql = format!(
                "SELECT place_id, count(*) FROM {table} WHERE place_id IS NOT NULL AND {which} GROUP BY place_id"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            statement
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<HashMap<PlaceId, i64>>>()
        };
        Ok(Open {
            waiting: count("inbox", "state = 'waiting'")?,
            unanswered: count("inbox", "state = 'failed' AND payload IS NOT NULL")?,
            undelivered: count("outbox", "state = 'failed'")?,
        })
    }

    pub(crate) fn of(&self, place: PlaceId) -> OpenIn {
        let number = |counts: &HashMap<PlaceId, i64>| counts.get(&place).copied().unwrap_or(0);
        OpenIn {
            waiting: number(&self.waiting),
            unanswered: number(&self.unanswered),
            undelivered: number(&self.undelivered),
        }
    }
}

/// The last ended turn of a place, with the rule that chose its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EndedTurn {
    pub(crate) agent: Option<AgentUid>,
    pub(crate) model: String,
    pub(crate) route: String,
    pub(crate) outcome: String,
    pub(crate) ended_at: i64,
}

pub(crate) fn last_turn(
    connection: &Connection,
    place: PlaceId,
) -> rusqlite::Result<Option<EndedTurn>> {
    let mut statement = connection.prepare_cached(
        "SELECT agent_uid, model, route, outcome, ended_at FROM turns
         WHERE place_id = ?1 AND route <> 'a summary' ORDER BY id DESC LIMIT 1",
    )?;
    let read = |row: &Row<'_>| {
        Ok(EndedTurn {
            agent: row.get::<_, String>(0)?.parse().ok(),
            model: row.get(1)?,
            route: row.get(2)?,
            outcome: row.get(3)?,
            ended_at: row.get(4)?,
        })
    };
    statement.query_row([place], read).optional()
}

/// Whether a turn runs, waits or is parked in a place, or a subagent works for one.
pub(crate) fn is_busy(tx: &Transaction<'_>, place: PlaceId) -> rusqlite::Result<bool> {
    tx.query_row(
        "SELECT EXISTS (SELECT 1 FROM inbox WHERE state = 'waiting' AND place_id = ?1)
             OR EXISTS (SELECT 1 FROM open_turns WHERE place_id = ?1)
             OR EXISTS (SELECT 1 FROM subagents WHERE state = 'running' AND parent_place_id = ?1)",
        [place],
        |row| row.get(0),
    )
}
