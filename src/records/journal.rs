//! The progress of turns with tools: the `open_turns`, `rounds` and `tool_calls` tables.
//!
//! A call is written before its run and again at its end, so another process can go on without
//! running the call twice.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::{Deserialize, Serialize};

use super::turn_notes::ToolNote;
use super::{approvals, inbox};
use crate::domain::{AgentUid, Around, Extras, Inbound, Labels, Role, SessionKey};
use crate::fail_points::{self, Write};
use crate::models::{ToolCall, Usage};
use crate::routing::places;
use crate::tools::Effect;
use crate::turn::{ModelCall, Round};

/// A message of a question, in the words of the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AskedMessage {
    /// The message with the words of all parts, and attachments among its extras.
    pub(crate) inbound: Inbound,
    /// The role of the writer with the agent.
    pub(crate) role: Role,
    /// The inbox rows of the message.
    pub(crate) rows: Vec<i64>,
}

/// A turn that has asked for tools and is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenTurn {
    /// The first message of the turn.
    pub(crate) inbox_id: i64,
    /// All rows to close with the turn.
    pub(crate) members: Vec<i64>,
    pub(crate) place: SessionKey,
    pub(crate) agent: AgentUid,
    /// The question in the words of the prompt. Empty for a turn of an earlier version.
    pub(crate) question: Vec<AskedMessage>,
    /// The newest row of the transcript when the turn began.
    pub(crate) read_upto: i64,
    pub(crate) started_at: i64,
    /// The labels of everything that the turn had read before its last round.
    pub(crate) read: Labels,
}

/// The journal's record of a turn from an earlier process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) turn: OpenTurn,
    /// The turn was parked, and the transcript has its question.
    pub(crate) is_asked: bool,
    /// Each round with the results of its calls.
    pub(crate) rounds: Vec<(Round, Vec<Recall>)>,
    /// The other messages of the turn, with their rows.
    pub(crate) others: Vec<(i64, Inbound)>,
}

/// The recorded result of a call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Recall {
    /// The text for the model; none if the outcome of the call is unknown.
    pub(crate) result: Option<String>,
    /// Effects to carry out at the end of the turn.
    pub(crate) effects: Vec<Effect>,
    /// Where the words of the result come from.
    pub(crate) read: Labels,
}

/// Writes a round before its tools run, with the model calls since the round before. `number`
/// counts the turn's rounds from 0.
pub(crate) fn wanted(
    tx: &Transaction<'_>,
    turn: &OpenTurn,
    number: u32,
    (round, calls): (&Round, &[ModelCall]),
    now: i64,
) -> rusqlite::Result<()> {
    fail_points::writes(Write::ToolRound);
    tx.prepare_cached(
        "INSERT INTO open_turns (inbox_id, members, place_id, agent_uid, question, read_upto, started_at, labels)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (inbox_id) DO UPDATE SET labels = excluded.labels",
    )?
    .execute(params![
        turn.inbox_id,
        serde_json::json!(turn.members).to_string(),
        places::ensure(tx, &turn.place, turn.started_at)?,
        turn.agent.to_string(),
        in_json(&turn.question)?,
        turn.read_upto,
        turn.started_at,
        turn.read.bits()
    ])?;
    let Usage {
        input_tokens,
        output_tokens,
        cached_tokens,
    } = round.usage;
    tx.prepare_cached(
        "INSERT INTO rounds (inbox_id, number, text, input_tokens, output_tokens, cached_tokens, calls, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        turn.inbox_id,
        number,
        round.text,
        input_tokens.cast_signed(),
        output_tokens.cast_signed(),
        cached_tokens.cast_signed(),
        in_json(calls)?,
        now
    ])?;
    let mut call = tx.prepare_cached(
        "INSERT INTO tool_calls (inbox_id, round, number, call_id, tool, arguments) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for (index, wish) in (0_u32..).zip(&round.calls) {
        call.execute(params![
            turn.inbox_id,
            number,
            index,
            wish.id,
            wish.name,
            wish.arguments.to_string()
        ])?;
    }
    Ok(())
}

/// Names a call of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallId {
    pub(crate) inbox_id: i64,
    pub(crate) round: u32,
    pub(crate) number: usize,
}

/// Writes the result of a call.
pub(crate) fn ran(
    tx: &Transaction<'_>,
    call: CallId,
    result: &str,
    effects: &[Effect],
    read: Labels,
    now: i64,
) -> rusqlite::Result<()> {
    fail_points::writes(Write::ToolResult);
    let number = i64::try_from(call.number).unwrap_or(i64::MAX);
    let effects = in_json(effects)?;
    tx.prepare_cached("UPDATE tool_calls SET result = ?4, effects = ?5, labels = ?6, ended_at = ?7 WHERE inbox_id = ?1 AND round = ?2 AND number = ?3")?
        .execute(params![
            call.inbox_id,
            call.round,
            number,
            result,
            effects,
            read.bits(),
            now
        ])
        .map(drop)
}

/// Marks a turn as parked. The transcript has its question from here on.
pub(crate) fn park(tx: &Transaction<'_>, inbox_id: i64) -> rusqlite::Result<()> {
    fail_points::writes(Write::TurnParked);
    tx.prepare_cached("UPDATE open_turns SET parked = 1 WHERE inbox_id = ?1")?
        .execute([inbox_id])
        .map(drop)
}

/// Takes the words of a deleted message out of the question of its turn.
pub(crate) fn blank(tx: &Transaction<'_>, inbox_id: i64) -> rusqlite::Result<()> {
    let mut find = tx.prepare_cached(
        "SELECT inbox_id, question FROM open_turns
         WHERE EXISTS (SELECT 1 FROM json_each(open_turns.members) AS each WHERE each.value = ?1)",
    )?;
    let found = find.query_row([inbox_id], |row| Ok((row.get(0)?, row.get(1)?)));
    let Some((turn, question)): Option<(i64, String)> = found.optional()? else {
        return Ok(());
    };
    let mut question = question_of(&question);
    for message in question
        .iter_mut()
        .filter(|message| message.rows.contains(&inbox_id))
    {
        message.inbound.text.clear();
        message.inbound.extras = Extras {
            around: vec![Around::Deleted],
            ..Extras::default()
        };
    }
    tx.prepare_cached("UPDATE open_turns SET question = ?2 WHERE inbox_id = ?1")?
        .execute(params![turn, in_json(&question)?])
        .map(drop)
}

/// Empty for the question of an earlier version, which did not tell people apart.
fn question_of(json: &str) -> Vec<AskedMessage> {
    serde_json::from_str(json).unwrap_or_default()
}

fn in_json<T: Serialize + ?Sized>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

/// Hands a turn to another agent, which begins anew. The rounds of the earlier agent are of no use
/// then.
pub(crate) fn hand_over(
    tx: &Transaction<'_>,
    inbox_id: i64,
    to: AgentUid,
    now: i64,
) -> rusqlite::Result<()> {
    approvals::cancel(tx, inbox_id, now)?;
    tx.execute("DELETE FROM rounds WHERE inbox_id = ?1", [inbox_id])?;
    tx.execute(
        "UPDATE open_turns SET agent_uid = ?2 WHERE inbox_id = ?1",
        params![inbox_id, to.to_string()],
    )
    .map(drop)
}

/// The usage of a turn's rounds. The ledger booked each round already.
pub(crate) fn counted(tx: &Transaction<'_>, inbox_id: i64) -> rusqlite::Result<Usage> {
    let sums = "SELECT coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0), coalesce(sum(cached_tokens), 0)
                FROM rounds WHERE inbox_id = ?1";
    tx.prepare_cached(sums)?
        .query_row([inbox_id], |row| usage(row, 0))
}

/// Names of tools kept of a turn.
const MOST_NAMES: u32 = 200;

/// The tools called by a turn, in order and with repetitions.
pub(crate) fn tools_called(
    connection: &Connection,
    inbox_id: i64,
) -> rusqlite::Result<Vec<String>> {
    // The name is the model's word, which can be any text.
    let mut statement = connection.prepare_cached(
        "SELECT substr(tool, 1, 64) FROM tool_calls WHERE inbox_id = ?1 ORDER BY round, number LIMIT ?2",
    )?;
    statement
        .query_map(params![inbox_id, MOST_NAMES], |row| row.get(0))?
        .collect()
}

/// The model calls of a turn, up to its last round.
pub(crate) fn model_calls(
    connection: &Connection,
    inbox_id: i64,
) -> rusqlite::Result<Vec<ModelCall>> {
    let sql = "SELECT calls FROM rounds WHERE inbox_id = ?1 ORDER BY number";
    let mut statement = connection.prepare_cached(sql)?;
    let rounds = statement.query_map([inbox_id], |row| row.get::<_, String>(0))?;
    let mut all = Vec::new();
    for calls in rounds {
        let calls: Vec<ModelCall> = serde_json::from_str(&calls?).unwrap_or_default();
        all.extend(calls);
    }
    Ok(all)
}

/// The tool calls of a turn, without their words.
pub(crate) fn tool_notes(
    connection: &Connection,
    inbox_id: i64,
) -> rusqlite::Result<Vec<ToolNote>> {
    let sql = "SELECT round, substr(tool, 1, 64), at, ended_at, length(CAST(result AS BLOB))
               FROM tool_calls JOIN rounds USING (inbox_id) WHERE inbox_id = ?1 AND rounds.number = round
               ORDER BY round, tool_calls.number LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let notes = statement.query_map(params![inbox_id, MOST_NAMES], |row| {
        let bytes: Option<i64> = row.get(4)?;
        Ok(ToolNote {
            round: row.get(0)?,
            tool: row.get(1)?,
            at: row.get(2)?,
            ended_at: row.get(3)?,
            result_bytes: bytes.map(|bytes| u64::try_from(bytes).unwrap_or(0)),
        })
    })?;
    notes.collect()
}

/// A turn that has called tools and goes on, or is parked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnfinishedTurn {
    pub(crate) inbox_id: i64,
    pub(crate) agent: AgentUid,
    pub(crate) is_parked: bool,
    pub(crate) started_at: i64,
}

/// The unfinished turns of a place, oldest first.
pub(crate) fn unfinished(
    connection: &Connection,
    place: &SessionKey,
) -> rusqlite::Result<Vec<UnfinishedTurn>> {
    let mut statement = connection.prepare_cached(
        "SELECT inbox_id, agent_uid, parked, started_at FROM open_turns WHERE place_id = ?1 ORDER BY inbox_id",
    )?;
    let rows = statement.query_map([places::id(connection, place)?], |row| {
        let agent = row.get::<_, String>(1)?.parse().ok();
        let (inbox_id, is_parked, started_at) = (row.get(0)?, row.get(2)?, row.get(3)?);
        Ok(agent.map(|agent| UnfinishedTurn {
            inbox_id,
            agent,
            is_parked,
            started_at,
        }))
    })?;
    rows.filter_map(Result::transpose).collect()
}

/// Deletes the record of a finished turn. Its open questions are taken back.
pub(crate) fn forget(tx: &Transaction<'_>, inbox_id: i64, now: i64) -> rusqlite::Result<()> {
    approvals::cancel(tx, inbox_id, now)?;
    tx.prepare_cached("DELETE FROM open_turns WHERE inbox_id = ?1")?
        .execute([inbox_id])
        .map(drop)
}

/// Deletes the open turns of an agent.
pub(crate) fn purge(tx: &Transaction<'_>, uid: AgentUid) -> rusqlite::Result<usize> {
    tx.execute(
        "DELETE FROM open_turns WHERE agent_uid = ?1",
        [uid.to_string()],
    )
}

/// Deletes turns whose message no longer waits. Nothing else is left of such turns.
pub(crate) fn forget_orphans(
    tx: &Transaction<'_>,
    _now: i64,
    most: u32,
) -> rusqlite::Result<usize> {
    let orphans = format!(
        "SELECT inbox_id FROM open_turns WHERE inbox_id NOT IN ({}) LIMIT ?1",
        inbox::WAITING_IDS
    );
    tx.execute(
        &format!("DELETE FROM open_turns WHERE inbox_id IN ({orphans})"),
        [most],
    )
}

/// Open turns with the other rows they answer.
pub(crate) fn absorbing(connection: &Connection) -> rusqlite::Result<HashMap<i64, Vec<i64>>> {
    let sql = "SELECT inbox_id, each.value FROM open_turns, json_each(open_turns.members) AS each WHERE each.value <> inbox_id";
    let mut turns = HashMap::<i64, Vec<i64>>::new();
    for row in connection
        .prepare(sql)?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
    {
        let (turn, member) = row?;
        turns.entry(turn).or_default().push(member);
    }
    Ok(turns)
}

/// These rows, and the other rows answered with them.
pub(crate) fn with_members(connection: &Connection, ids: &[i64]) -> rusqlite::Result<Vec<i64>> {
    let sql = "SELECT each.value FROM open_turns, json_each(open_turns.members) AS each WHERE inbox_id = ?1 AND each.value <> inbox_id";
    let mut statement = connection.prepare_cached(sql)?;
    let mut all = ids.to_vec();
    for id in ids {
        for member in statement.query_map([id], |row| row.get(0))? {
            all.push(member?);
        }
    }
    Ok(all)
}

/// The record of a turn.
pub(crate) fn recorded(
    connection: &Connection,
    inbox_id: i64,
) -> rusqlite::Result<Option<Recorded>> {
    let mut statement = connection.prepare_cached(
        "SELECT key, agent_uid, question, started_at, parked, members, read_upto, open_turns.labels
         FROM open_turns JOIN places ON id = place_id WHERE inbox_id = ?1",
    )?;
    let found = statement
        .query_row([inbox_id], |row| Ok((turn(inbox_id, row)?, row.get(4)?)))
        .optional()?;
    let Some((Some(turn), is_asked)) = found else {
        return Ok(None);
    };
    let others: Vec<i64> = turn
        .members
        .iter()
        .copied()
        .filter(|id| *id != inbox_id)
        .collect();
    Ok(Some(Recorded {
        others: inbox::messages_of(connection, &others)?,
        turn,
        is_asked,
        rounds: rounds(connection, inbox_id)?,
    }))
}

fn turn(inbox_id: i64, row: &Row<'_>) -> rusqlite::Result<Option<OpenTurn>> {
    let (place, agent) = (
        row.get::<_, String>(0)?.parse(),
        row.get::<_, String>(1)?.parse(),
    );
    let (Ok(place), Ok(agent)) = (place, agent) else {
        return Ok(None);
    };
    let members =
        serde_json::from_str(&row.get::<_, String>(5)?).unwrap_or_else(|_| vec![inbox_id]);
    Ok(Some(OpenTurn {
        inbox_id,
        members,
        place,
        agent,
        question: question_of(&row.get::<_, String>(2)?),
        read_upto: row.get(6)?,
        started_at: row.get(3)?,
        read: labels(row, 7)?,
    }))
}

fn rounds(connection: &Connection, inbox_id: i64) -> rusqlite::Result<Vec<(Round, Vec<Recall>)>> {
    let mut statement = connection.prepare_cached(
        "SELECT number, text, input_tokens, output_tokens, cached_tokens FROM rounds WHERE inbox_id = ?1 ORDER BY number",
    )?;
    let found = statement.query_map([inbox_id], |row| {
        Ok((
            row.get::<_, i64>(0)?,
            Round {
                text: row.get(1)?,
                calls: Vec::new(),
                usage: usage(row, 2)?,
                cut: None,
            },
        ))
    })?;
    let mut rounds = Vec::new();
    for found in found {
        let (number, round) = found?;
        let (calls, results) = calls(connection, inbox_id, number)?;
        rounds.push((Round { calls, ..round }, results));
    }
    Ok(rounds)
}

/// Labels in a column. Rows from before there were labels count as a guest's words.
pub(super) fn labels(row: &Row<'_>, column: usize) -> rusqlite::Result<Labels> {
    let bits = row.get::<_, Option<u32>>(column)?;
    Ok(bits.map_or(Labels::of(Role::Guest), Labels::from_bits))
}

/// The labels of everything read so far by the running turn of a place, if the turn has called
/// tools.
pub(crate) fn read_by_running(
    connection: &Connection,
    place: &SessionKey,
) -> rusqlite::Result<Option<Labels>> {
    let sql = "SELECT labels FROM open_turns WHERE place_id = (SELECT id FROM places WHERE key = ?1) ORDER BY inbox_id";
    let mut statement = connection.prepare_cached(sql)?;
    let of_turns = statement.query_map([place.to_string()], |row| labels(row, 0))?;
    let of_turns = of_turns.collect::<rusqlite::Result<Vec<Labels>>>()?;
    if of_turns.is_empty() {
        return Ok(None);
    }
    let sql = "SELECT tool_calls.labels FROM tool_calls JOIN open_turns USING (inbox_id)
               WHERE place_id = (SELECT id FROM places WHERE key = ?1) AND result IS NOT NULL";
    let mut statement = connection.prepare_cached(sql)?;
    let of_calls = statement.query_map([place.to_string()], |row| labels(row, 0))?;
    let of_calls = of_calls.collect::<rusqlite::Result<Vec<Labels>>>()?;
    Ok(Some(of_turns.into_iter().chain(of_calls).collect()))
}

/// Tokens read, written and cached, in three columns from `first` on.
fn usage(row: &Row<'_>, first: usize) -> rusqlite::Result<Usage> {
    let tokens = |index| {
        row.get::<_, i64>(index)
            .map(|count| u64::try_from(count).unwrap_or(0))
    };
    Ok(Usage {
        input_tokens: tokens(first)?,
        output_tokens: tokens(first + 1)?,
        cached_tokens: tokens(first + 2)?,
    })
}

fn calls(
    connection: &Connection,
    inbox_id: i64,
    round: i64,
) -> rusqlite::Result<(Vec<ToolCall>, Vec<Recall>)> {
    let mut statement = connection.prepare_cached(
        "SELECT call_id, tool, arguments, result, effects, labels FROM tool_calls WHERE inbox_id = ?1 AND round = ?2 ORDER BY number",
    )?;
    let rows = statement.query_map(params![inbox_id, round], |row| {
        let arguments = serde_json::from_str(&row.get::<_, String>(2)?).unwrap_or_default();
        let call = ToolCall {
            id: row.get(0)?,
            name: row.get(1)?,
            arguments,
        };
        let effects = serde_json::from_str(&row.get::<_, String>(4)?).unwrap_or_default();
        Ok((
            call,
            Recall {
                read: match row.get::<_, Option<String>>(3)? {
                    Some(_) => labels(row, 5)?,
                    None => Labels::NONE,
                },
                result: row.get(3)?,
                effects,
            },
        ))
    })?;
    rows.collect::<rusqlite::Result<Vec<_>>>()
        .map(|calls| calls.into_iter().unzip())
}

/// The result of a call that was running when the process ended.
pub(crate) const INTERRUPTED: &str = "Interrupted: the gateway was restarted while this ran. Nobody knows how far it came; look before you do it again.";
