//! The log of ended turns: the `turns` table, with a row for each turn.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::domain::{AgentUid, Labels, Platform, SessionKey};
use crate::models::{ModelError, Usage};
use crate::routing::places;

/// An ended turn, answered or not.
#[derive(Debug, Clone)]
pub(crate) struct TurnRow {
    pub(crate) inbox_id: i64,
    pub(crate) place: SessionKey,
    pub(crate) agent: AgentUid,
    pub(crate) model: String,
    /// The rule behind the choice of the agent.
    pub(crate) route: String,
    pub(crate) started_at: i64,
    pub(crate) outcome: String,
    pub(crate) steps: u32,
    pub(crate) usage: Usage,
    /// The labels of everything that the turn has read.
    pub(crate) read: Labels,
}

/// Returns the number of the row.
pub(crate) fn record(tx: &Transaction<'_>, turn: &TurnRow, now: i64) -> rusqlite::Result<i64> {
    let mut statement = tx.prepare_cached(
        "INSERT INTO turns (inbox_id, place_id, agent_uid, model, route, started_at, ended_at, outcome, steps,
                            input_tokens, output_tokens, cached_tokens, labels)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?;
    statement
        .execute(params![
            turn.inbox_id,
            places::ensure(tx, &turn.place, now)?,
            turn.agent.to_string(),
            turn.model,
            turn.route,
            turn.started_at,
            now,
            turn.outcome,
            turn.steps,
            turn.usage.input_tokens.cast_signed(),
            turn.usage.output_tokens.cast_signed(),
            turn.usage.cached_tokens.cast_signed(),
            turn.read.bits(),
        ])
        .map(|_| tx.last_insert_rowid())
}

/// The row of an ended turn.
#[derive(Debug, Clone)]
pub(crate) struct StoredTurn {
    pub(crate) id: i64,
    pub(crate) place: Option<String>,
    pub(crate) agent: AgentUid,
    pub(crate) model: String,
    pub(crate) route: String,
    pub(crate) started_at: i64,
    pub(crate) ended_at: i64,
    pub(crate) outcome: String,
    pub(crate) usage: Usage,
}

/// Turns behind a turn, oldest first.
pub(crate) fn rows_after(
    connection: &Connection,
    id: i64,
    limit: u32,
) -> rusqlite::Result<Vec<StoredTurn>> {
    let mut statement = connection.prepare_cached(
        "SELECT model, outcome, input_tokens, output_tokens, cached_tokens, turns.id, key, agent_uid, route, started_at, ended_at
         FROM turns LEFT JOIN places ON places.id = place_id WHERE turns.id > ?1 ORDER BY turns.id LIMIT ?2",
    )?;
    let rows = statement.query_map(params![id, limit], |row| {
        let tokens = |column| {
            row.get::<_, i64>(column)
                .map(|tokens| u64::try_from(tokens).unwrap_or(0))
        };
        let uid: String = row.get(7)?;
        Ok(StoredTurn {
            id: row.get(5)?,
            place: row.get(6)?,
            agent: AgentUid(uuid::Uuid::parse_str(&uid).unwrap_or_default()),
            model: row.get(0)?,
            route: row.get(8)?,
            started_at: row.get(9)?,
            ended_at: row.get(10)?,
            outcome: row.get(1)?,
            usage: Usage {
                input_tokens: tokens(2)?,
                output_tokens: tokens(3)?,
                cached_tokens: tokens(4)?,
            },
        })
    })?;
    rows.collect()
}

/// Zero without turns.
pub(crate) fn newest_id(connection: &Connection) -> rusqlite::Result<i64> {
    let sql = "SELECT coalesce(max(id), 0) FROM turns";
    connection.query_row(sql, [], |row| row.get(0))
}

/// The last ended turn of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LastTurn {
    /// The answering model, possibly a fallback.
    pub(crate) model: String,
    pub(crate) answered: bool,
    pub(crate) usage: Usage,
    /// The labels of everything that the turn has read; none in rows older than labels.
    pub(crate) read: Option<Labels>,
}

pub(crate) fn last_of(
    connection: &Connection,
    place: &SessionKey,
) -> rusqlite::Result<Option<LastTurn>> {
    let mut statement = connection.prepare_cached(
        "SELECT model, outcome = 'answered', input_tokens, output_tokens, cached_tokens, labels FROM turns
         WHERE place_id = (SELECT id FROM places WHERE key = ?1) AND route <> 'a summary' ORDER BY id DESC LIMIT 1",
    )?;
    statement
        .query_row([place.to_string()], last_turn)
        .optional()
}

fn last_turn(row: &Row<'_>) -> rusqlite::Result<LastTurn> {
    let tokens = |column| {
        row.get::<_, i64>(column)
            .map(|tokens| u64::try_from(tokens).unwrap_or(0))
    };
    let usage = Usage {
        input_tokens: tokens(2)?,
        output_tokens: tokens(3)?,
        cached_tokens: tokens(4)?,
    };
    Ok(LastTurn {
        model: row.get(0)?,
        answered: row.get(1)?,
        usage,
        read: row.get::<_, Option<u32>>(5)?.map(Labels::from_bits),
    })
}

/// The turn that answered, or did not answer, a message of a platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnsweredTurn {
    pub(crate) agent: String,
    pub(crate) model: String,
    pub(crate) outcome: String,
    pub(crate) is_answered: bool,
    pub(crate) usage: Usage,
    pub(crate) took_ms: i64,
}

pub(crate) fn of_update(
    connection: &Connection,
    platform: Platform,
    update_id: &str,
) -> rusqlite::Result<Option<AnsweredTurn>> {
    let sql = "SELECT model, turns.outcome = 'answered', input_tokens, output_tokens, cached_tokens, turns.labels,
                      agent_uid, turns.outcome, ended_at - received_at
               FROM turns JOIN inbox ON inbox.id = inbox_id
               WHERE platform = ?1 AND update_id = ?2 AND route <> 'a summary' ORDER BY turns.id DESC LIMIT 1";
    let read = |row: &Row<'_>| {
        let LastTurn {
            model,
            answered,
            usage,
            ..
        } = last_turn(row)?;
        Ok(AnsweredTurn {
            agent: row.get(6)?,
            model,
            outcome: row.get(7)?,
            is_answered: answered,
            usage,
            took_ms: row.get(8)?,
        })
    };
    connection
        .query_row(sql, params![platform.to_string(), update_id], read)
        .optional()
}

/// The rule of a row for a summary, which the agent made without a question.
pub(crate) const SUMMARY: &str = "a summary";

/// Whether a pin for a single message had chosen the agent of a turn.
pub(crate) fn was_chosen_once(
    connection: &Connection,
    place: &SessionKey,
    inbox_id: i64,
) -> rusqlite::Result<bool> {
    let sql =
        "SELECT EXISTS (SELECT 1 FROM turns WHERE place_id = (SELECT id FROM places WHERE key = ?1)
                              AND inbox_id = ?2 AND route LIKE 'pin for one turn%')";
    connection.query_row(sql, params![place.to_string(), inbox_id], |row| row.get(0))
}

/// Ended turns that count as failures: all but answers, stopped turns and summaries.
const FAILED: &str = "outcome NOT IN ('answered', 'stopped')";

/// A failed turn whose question was answered later, after a Retry.
const MADE_UP_FOR: &str = "outcome NOT IN ('answered', 'stopped') AND EXISTS (
    SELECT 1 FROM turns AS later WHERE later.place_id = turns.place_id AND later.id > turns.id
    AND later.inbox_id = turns.inbox_id AND later.outcome = 'answered')";

/// The number of turns ended since `since` by agent, and the number of failures among them.
pub(crate) fn since(
    connection: &Connection,
    since: i64,
) -> rusqlite::Result<HashMap<AgentUid, (u64, u64)>> {
    // The `+` keeps SQLite from going through all turns of each agent.
    let sql = format!(
        "SELECT agent_uid, count(*), count(*) FILTER (WHERE {FAILED}) FROM turns
         WHERE ended_at >= ?1 AND route <> 'a summary' AND NOT ({MADE_UP_FOR}) GROUP BY +agent_uid"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([since], |row| {
        let counts: (i64, i64) = (row.get(1)?, row.get(2)?);
        Ok((row.get::<_, String>(0)?, counts))
    })?;
    let unsigned = |number: i64| u64::try_from(number).unwrap_or(0);
    let known = rows.map(|row| {
        let (uid, (turns, failed)) = row?;
        let uid: Option<AgentUid> = uid.parse().ok();
        Ok(uid.map(|uid| (uid, (unsigned(turns), unsigned(failed)))))
    });
    known.filter_map(Result::transpose).collect()
}

/// A turn without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) outcome: String,
    pub(crate) at: i64,
    /// `provider/model`.
    pub(crate) model: String,
}

/// The reason for the failure of an agent's last turn, if any. Turns before `since` or before the
/// agent's last restart do not count, nor do stopped turns.
pub(crate) fn failing(
    connection: &Connection,
    uid: AgentUid,
    since: i64,
) -> rusqlite::Result<Option<Failure>> {
    let sql = format!(
        "SELECT outcome, {FAILED}, ended_at, model FROM turns WHERE agent_uid = ?1 AND outcome <> 'stopped' AND route <> 'a summary'
         AND ended_at >= max(?2, coalesce((SELECT restarted_at FROM agents WHERE uid = ?1), 0))
         ORDER BY ended_at DESC, id DESC LIMIT 1"
    );
    let last = connection
        .prepare_cached(&sql)?
        .query_row(params![uid.to_string(), since], |row| {
            let failure = Failure {
                outcome: row.get(0)?,
                at: row.get(2)?,
                model: row.get(3)?,
            };
            Ok((row.get::<_, bool>(1)?, failure))
        })
        .optional()?;
    Ok(last.and_then(|(has_failed, failure)| has_failed.then_some(failure)))
}

/// Whether a model whose name begins so has answered after this time.
pub(crate) fn has_answered(
    connection: &Connection,
    model: &str,
    after: i64,
) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM turns WHERE ended_at > ?1 AND outcome = 'answered'
               AND substr(model, 1, length(?2)) = ?2)";
    connection
        .prepare_cached(sql)?
        .query_row(params![after, model], |row| row.get(0))
}

/// When an agent last answered.
pub(crate) fn last_success(
    connection: &Connection,
    uid: AgentUid,
) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT ended_at FROM turns WHERE agent_uid = ?1 AND outcome = 'answered' AND route <> 'a summary'
               ORDER BY ended_at DESC LIMIT 1";
    connection
        .prepare_cached(sql)?
        .query_row([uid.to_string()], |row| row.get(0))
        .optional()
}

/// How turns ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) all: i64,
    pub(crate) failed: i64,
    /// Turns stopped by people.
    pub(crate) stopped: i64,
}

/// The turns ended since `since`. A question counts once, with the answer after its Retry.
pub(crate) fn count_since(connection: &Connection, since: i64) -> rusqlite::Result<Counts> {
    let sql = format!(
        "SELECT count(*), count(*) FILTER (WHERE {FAILED}), count(*) FILTER (WHERE outcome = 'stopped') FROM turns
         WHERE ended_at >= ?1 AND route <> 'a summary' AND NOT ({MADE_UP_FOR})"
    );
    connection.query_row(&sql, [since], |row| {
        Ok(Counts {
            all: row.get(0)?,
            failed: row.get(1)?,
            stopped: row.get(2)?,
        })
    })
}

/// The time and outcome of an agent's last failed turn. A turn stopped by a person has not failed.
pub(crate) fn last_error(
    connection: &Connection,
    uid: AgentUid,
) -> rusqlite::Result<Option<(i64, String)>> {
    let sql = format!(
        "SELECT ended_at, outcome FROM turns WHERE agent_uid = ?1 AND {FAILED} AND route <> 'a summary'
         ORDER BY ended_at DESC LIMIT 1"
    );
    connection
        .query_row(&sql, [uid.to_string()], |row| {
            let outcome: String = row.get(1)?;
            Ok((row.get(0)?, ModelError::without_time(&outcome).to_owned()))
        })
        .optional()
}

/// A turn without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FailedTurn {
    pub(crate) at: i64,
    /// The agent's uid.
    pub(crate) agent: String,
    pub(crate) place: String,
    pub(crate) reason: String,
}

/// Turns without an answer since a time, the newest first. A turn that a person stopped is none.
pub(crate) fn errors(
    connection: &Connection,
    since: i64,
    limit: u32,
) -> rusqlite::Result<Vec<FailedTurn>> {
    let mut statement = connection.prepare_cached(
        "SELECT ended_at, agent_uid, coalesce(key, ''), outcome FROM turns LEFT JOIN places ON places.id = place_id
         WHERE ended_at >= ?1 AND outcome NOT IN ('answered', 'stopped') AND route <> 'a summary'
         ORDER BY ended_at DESC LIMIT ?2",
    )?;
    let rows = statement.query_map(rusqlite::params![since, limit], |row| {
        Ok(FailedTurn {
            at: row.get(0)?,
            agent: row.get(1)?,
            place: row.get(2)?,
            reason: row.get(3)?,
        })
    })?;
    rows.collect()
}

pub(crate) fn count_of(connection: &Connection, uid: AgentUid) -> rusqlite::Result<usize> {
    let sql = "SELECT count(*) FROM turns WHERE agent_uid = ?1";
    connection
        .query_row(sql, [uid.to_string()], |row| row.get::<_, i64>(0))
        .map(|count| usize::try_from(count).unwrap_or(0))
}

pub(crate) fn forget_old(tx: &Transaction<'_>, now: i64, most: u32) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM turns WHERE id IN (SELECT id FROM turns WHERE ended_at < ?1 LIMIT ?2)";
    tx.execute(sql, params![now - KEPT_MS, most])
}

/// Turns are kept this long, for looking into failures. Spending is kept longer, in sums by day.
const KEPT_MS: i64 = 90 * 24 * 60 * 60 * 1000;

/// Deletes the turns of an agent.
pub(crate) fn purge(tx: &Transaction<'_>, uid: AgentUid) -> rusqlite::Result<usize> {
    tx.execute("DELETE FROM turns WHERE agent_uid = ?1", [uid.to_string()])
}
