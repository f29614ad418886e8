//! The story of a turn, as far as the tables know: its message, its waits, its usage, the sent
//! answer. Reads only; each table is written by a file of its own.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::approvals::{self, Approval};
use super::journal;
use super::turn_notes::{self, Notes};
use crate::domain::{Labels, MessageId, SessionKey};

/// An ended turn.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    /// The row of the turn.
    pub(crate) id: i64,
    /// The answered message.
    pub(crate) inbox_id: i64,
    /// The key of the place.
    pub(crate) place: String,
    pub(crate) agent_uid: String,
    pub(crate) model: String,
    /// The rule that chose the agent.
    pub(crate) route: String,
    /// Absent once the row of the message is forgotten.
    pub(crate) received_at: Option<i64>,
    pub(crate) started_at: i64,
    pub(crate) ended_at: i64,
    pub(crate) outcome: String,
    /// Calls of the model.
    pub(crate) rounds: u32,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) cached_tokens: u64,
    /// The labels of everything that the turn has read; none in rows older than labels.
    pub(crate) read: Option<Labels>,
}

/// A turn that runs, is parked, or was interrupted.
#[derive(Debug, Clone)]
pub(crate) struct Unended {
    pub(crate) agent_uid: String,
    pub(crate) started_at: i64,
    pub(crate) is_parked: bool,
    pub(crate) read: Option<Labels>,
    /// Arguments of its tool calls, in order.
    pub(crate) arguments: Vec<String>,
}

/// A message written for the turn.
#[derive(Debug, Clone)]
pub(crate) struct Sending {
    pub(crate) kind: String,
    pub(crate) state: String,
    pub(crate) attempts: u32,
    /// The answer to a call was never seen, so the call was repeated.
    pub(crate) is_repeated: bool,
    /// An earlier message is changed, and no new message is sent.
    pub(crate) is_edit: bool,
    pub(crate) has_file: bool,
    /// How long the platform asked to wait, all times together.
    pub(crate) waited_ms: i64,
    pub(crate) error: Option<String>,
    pub(crate) written_at: i64,
    pub(crate) sent_at: Option<i64>,
}

/// A turn that this turn asked for.
#[derive(Debug, Clone)]
pub(crate) struct Child {
    pub(crate) run: String,
    pub(crate) agent_uid: String,
    pub(crate) inbox_id: i64,
    pub(crate) state: String,
    pub(crate) started_at: i64,
    pub(crate) ended_at: Option<i64>,
    pub(crate) tokens: u64,
}

/// All stored facts about a message and its turn.
#[derive(Debug, Clone)]
pub(crate) struct Story {
    pub(crate) inbox_id: i64,
    pub(crate) place: Option<String>,
    pub(crate) received_at: i64,
    pub(crate) state: String,
    /// Why the row was closed.
    pub(crate) reason: Option<String>,
    pub(crate) closed_at: Option<i64>,
    /// Decisions about the message while its place was busy, with their time.
    pub(crate) decisions: Vec<(i64, String)>,
    /// The turns of the place that ended while the message waited, by their messages.
    pub(crate) waited_for: Vec<i64>,
    pub(crate) unended: Option<Unended>,
    pub(crate) ended: Option<Ended>,
    /// None for turns from before there were notes, and for old ones.
    pub(crate) notes: Option<Notes>,
    pub(crate) has_prompt: bool,
    pub(crate) sendings: Vec<Sending>,
    pub(crate) children: Vec<Child>,
}

const ENDED: &str = "SELECT turns.inbox_id, key, agent_uid, model, route, received_at, started_at, ended_at, turns.outcome,
        steps, input_tokens, output_tokens, cached_tokens, turns.id, turns.labels
     FROM turns JOIN places ON places.id = turns.place_id LEFT JOIN inbox ON inbox.id = turns.inbox_id";

fn ended(row: &Row<'_>) -> rusqlite::Result<Ended> {
    Ok(Ended {
        inbox_id: row.get(0)?,
        place: row.get(1)?,
        agent_uid: row.get(2)?,
        model: row.get(3)?,
        route: row.get(4)?,
        received_at: row.get(5)?,
        started_at: row.get(6)?,
        ended_at: row.get(7)?,
        outcome: row.get(8)?,
        rounds: row.get(9)?,
        input_tokens: unsigned(row, 10)?,
        output_tokens: unsigned(row, 11)?,
        cached_tokens: unsigned(row, 12)?,
        id: row.get(13)?,
        read: row.get::<_, Option<u32>>(14)?.map(Labels::from_bits),
    })
}

fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
}

/// The filter for ended turns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) agent_uid: Option<String>,
    pub(crate) place: Option<String>,
    /// Rows before this row.
    pub(crate) before: Option<i64>,
}

/// The latest ended turns. Summaries are no turns.
pub(crate) fn latest(
    connection: &Connection,
    wanted: &Wanted,
    limit: u32,
) -> rusqlite::Result<Vec<Ended>> {
    let sql = format!(
        "{ENDED} WHERE (?1 IS NULL OR agent_uid = ?1) AND (?2 IS NULL OR key = ?2) AND turns.id < ?3 AND route <> 'a summary'
         ORDER BY turns.id DESC LIMIT ?4"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let before = wanted.before.unwrap_or(i64::MAX);
    statement
        .query_map(
            params![wanted.agent_uid, wanted.place, before, limit],
            ended,
        )?
        .collect()
}

/// The story of a message; none for a forgotten message.
pub(crate) fn of(connection: &Connection, inbox_id: i64) -> rusqlite::Result<Option<Story>> {
    let Some(mut story) = message(connection, inbox_id)? else {
        return Ok(None);
    };
    story.decisions = decisions(connection, inbox_id)?;
    story.unended = unended(connection, inbox_id)?;
    if story.unended.is_some() {
        story.notes = Some(Notes {
            calls: journal::model_calls(connection, inbox_id)?,
            tools: journal::tool_notes(connection, inbox_id)?,
            ..Notes::default()
        });
    } else if let Some(turn) = &story.ended
        && let Some((notes, has_prompt)) = turn_notes::of(connection, turn.id)?
    {
        (story.notes, story.has_prompt) = (Some(notes), has_prompt);
    }
    let begun = story.unended.as_ref().map(|turn| turn.started_at);
    let begun = begun.or(story.ended.as_ref().map(|turn| turn.started_at));
    if let Some(begun) = begun {
        story.waited_for = ended_between(connection, inbox_id, story.received_at, begun)?;
    }
    story.sendings = sendings(connection, inbox_id)?;
    story.children = children(connection, inbox_id)?;
    Ok(Some(story))
}

/// The message with its ended turn. The row of the turn is kept for longer than that of the
/// message.
fn message(connection: &Connection, inbox_id: i64) -> rusqlite::Result<Option<Story>> {
    let ended_of = |place: &str| {
        let sql = format!(
            "{ENDED} WHERE turns.inbox_id = ?1 AND route <> 'a summary' {place} ORDER BY turns.id DESC LIMIT 1"
        );
        let mut statement = connection.prepare_cached(&sql)?;
        statement.query_row([inbox_id], ended).optional()
    };
    let sql = "SELECT key, received_at, state, outcome, closed_at
               FROM inbox LEFT JOIN places ON places.id = place_id WHERE inbox.id = ?1";
    let found = connection
        .prepare_cached(sql)?
        .query_row([inbox_id], |row| {
            Ok(Story {
                inbox_id,
                place: row.get(0)?,
                received_at: row.get(1)?,
                state: row.get(2)?,
                reason: row.get(3)?,
                closed_at: row.get(4)?,
                decisions: Vec::new(),
                waited_for: Vec::new(),
                unended: None,
                ended: None,
                notes: None,
                has_prompt: false,
                sendings: Vec::new(),
                children: Vec::new(),
            })
        });
    if let Some(story) = found.optional()? {
        // The index of places is quicker than a look at all turns.
        let ended =
            ended_of("AND turns.place_id = (SELECT place_id FROM inbox WHERE inbox.id = ?1)")?;
        return Ok(Some(Story { ended, ..story }));
    }
    let ended = ended_of("")?;
    Ok(ended.map(|turn| Story {
        inbox_id,
        place: Some(turn.place.clone()),
        received_at: turn.started_at,
        state: "done".to_owned(),
        reason: None,
        closed_at: Some(turn.ended_at),
        decisions: Vec::new(),
        waited_for: Vec::new(),
        unended: None,
        ended: Some(turn),
        notes: None,
        has_prompt: false,
        sendings: Vec::new(),
        children: Vec::new(),
    }))
}

/// Turns listed for a wait.
const MOST_WAITED_FOR: u32 = 10;

fn ended_between(
    connection: &Connection,
    inbox_id: i64,
    from: i64,
    to: i64,
) -> rusqlite::Result<Vec<i64>> {
    let sql =
        "SELECT inbox_id FROM turns WHERE place_id = (SELECT place_id FROM inbox WHERE id = ?1)
               AND inbox_id <> ?1 AND ended_at > ?2 AND ended_at <= ?3 AND route <> 'a summary'
               ORDER BY id DESC LIMIT ?4";
    let mut statement = connection.prepare_cached(sql)?;
    statement
        .query_map(params![inbox_id, from, to, MOST_WAITED_FOR], |row| {
            row.get(0)
        })?
        .collect()
}

/// How far back an answer on the screen is looked for.
const LOOKED_BACK_MS: i64 = 14 * 24 * 60 * 60 * 1000;

/// The message answered by this message of ours, in this chat.
pub(crate) fn answered_by(
    connection: &Connection,
    place: &SessionKey,
    message: &MessageId,
    now: i64,
) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT key, inbox_id FROM outbox JOIN places ON places.id = place_id
               WHERE sent_at > ?1 AND message_id = ?2 AND inbox_id IS NOT NULL ORDER BY outbox.id DESC";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![now - LOOKED_BACK_MS, message.0], |row| {
        Ok((row.get::<_, String>(0)?, row.get(1)?))
    })?;
    let rows = rows.collect::<rusqlite::Result<Vec<(String, i64)>>>()?;
    // In a plain group every member has a place, and all see the same messages.
    let is_here = |key: &SessionKey| {
        key == place || (key.whole_group().is_some() && key.whole_group() == place.whole_group())
    };
    let here = rows
        .into_iter()
        .find(|(key, _)| key.parse().is_ok_and(|key| is_here(&key)));
    Ok(here.map(|(_, inbox_id)| inbox_id))
}

/// The message of the last ended turn in a place.
pub(crate) fn last_in(
    connection: &Connection,
    place: &SessionKey,
) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT inbox_id FROM turns WHERE place_id = (SELECT id FROM places WHERE key = ?1)
               AND route <> 'a summary' ORDER BY id DESC LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    statement
        .query_row([place.to_string()], |row| row.get(0))
        .optional()
}

fn decisions(connection: &Connection, inbox_id: i64) -> rusqlite::Result<Vec<(i64, String)>> {
    let sql = "SELECT at, what FROM decisions WHERE inbox_id = ?1 ORDER BY id";
    let mut statement = connection.prepare_cached(sql)?;
    let noted = statement.query_map([inbox_id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut decisions = noted.collect::<rusqlite::Result<Vec<(i64, String)>>>()?;
    for approval in approvals::of_turn(connection, inbox_id)? {
        decisions.extend(told(&approval));
    }
    decisions.sort_by_key(|(at, _)| *at);
    Ok(decisions)
}

/// When an approval was asked for, and how it ended.
fn told(approval: &Approval) -> Vec<(i64, String)> {
    let (tool, id) = (&approval.wanted.tool, approval.id);
    let asked = format!("asked whether to run {tool} (approval {id})");
    let ended = approval.decided_at.map(|at| {
        let by = match approval.decider() {
            Some(by) => format!(" by {by}"),
            None => String::new(),
        };
        (at, format!("{tool} was {}{by}", approval.state.as_str()))
    });
    [Some((approval.wanted.asked_at, asked)), ended]
        .into_iter()
        .flatten()
        .collect()
}

fn unended(connection: &Connection, inbox_id: i64) -> rusqlite::Result<Option<Unended>> {
    let sql = "SELECT agent_uid, started_at, parked, labels FROM open_turns WHERE inbox_id = ?1";
    let found = connection
        .prepare_cached(sql)?
        .query_row([inbox_id], |row| {
            Ok(Unended {
                agent_uid: row.get(0)?,
                started_at: row.get(1)?,
                is_parked: row.get(2)?,
                read: row.get::<_, Option<u32>>(3)?.map(Labels::from_bits),
                arguments: Vec::new(),
            })
        });
    let Some(mut turn) = found.optional()? else {
        return Ok(None);
    };
    let sql = "SELECT arguments FROM tool_calls WHERE inbox_id = ?1 ORDER BY round, number";
    let mut statement = connection.prepare_cached(sql)?;
    let arguments = statement.query_map([inbox_id], |row| row.get(0))?;
    turn.arguments = arguments.collect::<rusqlite::Result<_>>()?;
    Ok(Some(turn))
}

fn sendings(connection: &Connection, inbox_id: i64) -> rusqlite::Result<Vec<Sending>> {
    let sql = "SELECT kind, state, attempts, repeated, target IS NOT NULL, file IS NOT NULL, waited_ms, error, created_at, sent_at
               FROM outbox WHERE inbox_id = ?1 ORDER BY id";
    let mut statement = connection.prepare_cached(sql)?;
    statement
        .query_map([inbox_id], |row| {
            Ok(Sending {
                kind: row.get(0)?,
                state: row.get(1)?,
                attempts: row.get(2)?,
                is_repeated: row.get(3)?,
                is_edit: row.get(4)?,
                has_file: row.get(5)?,
                waited_ms: row.get(6)?,
                error: row.get(7)?,
                written_at: row.get(8)?,
                sent_at: row.get(9)?,
            })
        })?
        .collect()
}

fn children(connection: &Connection, inbox_id: i64) -> rusqlite::Result<Vec<Child>> {
    let sql =
        "SELECT run, agent_uid, inbox_id, state, started_at, ended_at, input_tokens + output_tokens
               FROM subagents WHERE parent_inbox_id = ?1 ORDER BY started_at";
    let mut statement = connection.prepare_cached(sql)?;
    statement
        .query_map([inbox_id], |row| {
            Ok(Child {
                run: row.get(0)?,
                agent_uid: row.get(1)?,
                inbox_id: row.get(2)?,
                state: row.get(3)?,
                started_at: row.get(4)?,
                ended_at: row.get(5)?,
                tokens: unsigned(row, 6)?,
            })
        })?
        .collect()
}
