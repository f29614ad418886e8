//! Sessions as an operator sees them: a place with its conversation and all waiting work. Reads
//! only; each table is written by a file of its own.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::domain::{AgentUid, PersonId, SessionKey};
use crate::routing::places::PlaceId;

/// A place used by people.
#[derive(Debug, Clone)]
pub(crate) struct Used {
    pub(crate) id: PlaceId,
    pub(crate) key: SessionKey,
    /// As the platform told it.
    pub(crate) name: Option<String>,
    pub(crate) conversation: i64,
    pub(crate) created_at: i64,
    /// Absent: nothing was ever answered there.
    pub(crate) active_at: Option<i64>,
}

const USED: &str = "SELECT id, key, conversation, created_at, active_at, name FROM places";

/// With a conversation or a waiting message, since `?1`.
const IS_USED: &str =
    "key NOT GLOB 'child:*' AND key NOT GLOB 'import:*' AND coalesce(active_at, created_at) >= ?1
    AND (active_at IS NOT NULL OR id IN (SELECT place_id FROM inbox WHERE state = 'waiting'))";
const LATEST_FIRST: &str = "ORDER BY coalesce(active_at, created_at) DESC, id DESC";

fn used(row: &Row<'_>) -> rusqlite::Result<Option<Used>> {
    let key = row.get_ref(1)?.as_str()?.parse().ok();
    let (id, conversation) = (row.get(0)?, row.get(2)?);
    let (created_at, active_at, name) = (row.get(3)?, row.get(4)?, row.get(5)?);
    Ok(key.map(|key| Used {
        id,
        key,
        name,
        conversation,
        created_at,
        active_at,
    }))
}

/// Places with a conversation or a waiting message, the latest first. Sessions of subagents and
/// imported conversations are left out.
pub(crate) fn all(connection: &Connection, since: i64) -> rusqlite::Result<Vec<Used>> {
    let mut statement =
        connection.prepare_cached(&format!("{USED} WHERE {IS_USED} {LATEST_FIRST}"))?;
    let rows = statement.query_map([since], used)?;
    rows.filter_map(Result::transpose).collect()
}

/// The same one by one, behind a place in this order, until the caller has enough. A place that is
/// not in the list has all behind it.
pub(crate) fn walk(
    connection: &Connection,
    since: i64,
    behind: Option<&SessionKey>,
    mut take: impl FnMut(Used) -> rusqlite::Result<ControlFlow<()>>,
) -> rusqlite::Result<()> {
    let spot = behind.map(|place| spot(connection, place)).transpose()?;
    let (at, id) = spot.flatten().unwrap_or((i64::MAX, i64::MAX));
    let mut statement = connection.prepare_cached(&format!(
        "{USED} WHERE {IS_USED} AND (coalesce(active_at, created_at), id) < (?2, ?3) {LATEST_FIRST}"
    ))?;
    let mut rows = statement.query(params![since, at, id])?;
    while let Some(row) = rows.next()? {
        let Some(place) = used(row)? else { continue };
        if take(place)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Where a place stands in the order of the list.
fn spot(connection: &Connection, place: &SessionKey) -> rusqlite::Result<Option<(i64, i64)>> {
    let sql = "SELECT coalesce(active_at, created_at), id FROM places WHERE key = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row([place.to_string()], |row| Ok((row.get(0)?, row.get(1)?)));
    found.optional()
}

/// Every place with a row, but for sessions of subagents, jobs and imported conversations.
pub(crate) fn with_rows(connection: &Connection) -> rusqlite::Result<Vec<Used>> {
    let mut statement = connection.prepare_cached(&format!(
        "{USED} WHERE key NOT GLOB 'child:*' AND key NOT GLOB 'import:*' AND key NOT GLOB 'cron:*'"
    ))?;
    let rows = statement.query_map([], used)?;
    rows.filter_map(Result::transpose).collect()
}

/// A place by its key, if the place has a row.
pub(crate) fn of(connection: &Connection, place: &SessionKey) -> rusqlite::Result<Option<Used>> {
    let mut statement = connection.prepare_cached(&format!("{USED} WHERE key = ?1"))?;
    let found = statement.query_row([place.to_string()], used).optional()?;
    Ok(found.flatten())
}

/// Whether the bot has answered in a group or in a part of the group.
pub(crate) fn is_group_used(connection: &Connection, group: &SessionKey) -> rusqlite::Result<bool> {
    let mut statement =
        connection.prepare_cached("SELECT key FROM places WHERE active_at IS NOT NULL")?;
    let keys = statement.query_map([], |row| row.get::<_, String>(0))?;
    for key in keys {
        if key?.parse::<SessionKey>().is_ok_and(|key| key.is_in(group)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The number of messages in the running conversation of a place. A switch of the agent is none.
pub(crate) fn messages(connection: &Connection, place: &Used) -> rusqlite::Result<i64> {
    let sql = "SELECT count(*) FROM messages WHERE place_id = ?1 AND conversation = ?2 AND kind <> 'handoff'";
    connection
        .prepare_cached(sql)?
        .query_row(params![place.id, place.conversation], |row| row.get(0))
}

/// The people with words in the running conversation of a place, the latest writer first.
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
    unsent: HashMap<PlaceId, i64>,
}

/// The open work of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct OpenIn {
    /// Messages that wait for an answer, or are being answered.
    pub(crate) waiting: i64,
    /// Messages with a failed turn, which can be tried again.
    pub(crate) unanswered: i64,
    /// Undeliverable parts of answers.
    pub(crate) undelivered: i64,
    /// Messages to people, waiting to be sent.
    pub(crate) unsent: i64,
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
            unsent: count("outbox", "state IN ('waiting', 'sending')")?,
        })
    }

    pub(crate) fn of(&self, place: PlaceId) -> OpenIn {
        let number = |counts: &HashMap<PlaceId, i64>| counts.get(&place).copied().unwrap_or(0);
        OpenIn {
            waiting: number(&self.waiting),
            unanswered: number(&self.unanswered),
            undelivered: number(&self.undelivered),
            unsent: number(&self.unsent),
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
    statement.query_row([place], ended_turn).optional()
}

fn ended_turn(row: &Row<'_>) -> rusqlite::Result<EndedTurn> {
    Ok(EndedTurn {
        agent: row.get::<_, String>(0)?.parse().ok(),
        model: row.get(1)?,
        route: row.get(2)?,
        outcome: row.get(3)?,
        ended_at: row.get(4)?,
    })
}

/// The last ended turns of all Discord channels and threads, for rules that only a message can tell.
pub(crate) fn last_turns_on_discord(
    connection: &Connection,
) -> rusqlite::Result<HashMap<PlaceId, EndedTurn>> {
    let mut statement = connection.prepare_cached(
        "SELECT agent_uid, model, route, outcome, ended_at, places.id FROM places JOIN turns ON turns.id = (
             SELECT id FROM turns WHERE place_id = places.id AND route <> 'a summary' ORDER BY id DESC LIMIT 1)
         WHERE key GLOB 'discord:channel:*' OR key GLOB 'discord:thread:*'",
    )?;
    let rows = statement.query_map([], |row| Ok((row.get(5)?, ended_turn(row)?)))?;
    rows.collect()
}

/// Places in whose running conversation one of these ids has words.
pub(crate) fn with_words_of(
    connection: &Connection,
    ids: &[PersonId],
) -> rusqlite::Result<HashSet<PlaceId>> {
    let ids: Vec<String> = ids.iter().map(PersonId::to_string).collect();
    let mut statement = connection.prepare_cached(
        "SELECT DISTINCT place_id FROM messages JOIN places ON places.id = place_id
         WHERE kind = 'person' AND person IN (SELECT value FROM json_each(?1))
           AND messages.conversation = places.conversation",
    )?;
    let rows = statement.query_map([serde_json::Value::from(ids).to_string()], |row| row.get(0))?;
    rows.collect()
}

/// Whether a turn runs, waits or is parked in a place, or a subagent works for a turn there.
pub(crate) fn is_busy(tx: &Transaction<'_>, place: PlaceId) -> rusqlite::Result<bool> {
    tx.query_row(
        "SELECT EXISTS (SELECT 1 FROM inbox WHERE state = 'waiting' AND place_id = ?1)
             OR EXISTS (SELECT 1 FROM open_turns WHERE place_id = ?1)
             OR EXISTS (SELECT 1 FROM subagents WHERE state = 'running' AND parent_place_id = ?1)",
        [place],
        |row| row.get(0),
    )
}
