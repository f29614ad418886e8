//! Appends messages to the transcript.

use rusqlite::{Transaction, params};
use serde_json::Value;

use super::super::inbox::{self, Accepted};
use super::super::journal::AskedMessage;
use super::super::{speakers, subagents};
use super::deleting::DELETED;
use super::{Conversation, conversation, touch};
use crate::access::{Role, numbers};
use crate::domain::{AgentUid, Around, Author, Inbound, Internal, Labels, PersonId, SessionKey};
use crate::routing::places;

/// Messages among people kept in a place; each new message replaces the oldest.
const MOST_OBSERVED: i64 = 30;

/// Where a message belongs: its conversation, and an agent's part of the conversation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot {
    pub(crate) conversation: Conversation,
    /// None: no agent's part.
    pub(crate) part: Option<AgentUid>,
}

/// Appends a question, each message with the text the agent read. The question goes into the
/// conversation of its answer, even if /new has begun another meanwhile.
pub(crate) fn append_question(
    tx: &Transaction<'_>,
    accepted: &Accepted,
    said: &[AskedMessage],
    spot: Spot,
    now: i64,
) -> rusqlite::Result<()> {
    for said in said {
        // After a restart, all rows are parts of the first message.
        let parts: Vec<&Accepted> = accepted
            .all()
            .filter(|part| said.rows.contains(&part.id))
            .collect();
        let ids: String = parts
            .iter()
            .map(|part| format!(" {}", part.inbound.message.0))
            .collect();
        let (writer, written_as) = ((&said.inbound, said.role), format!("{ids} "));
        let labels = labels(tx, accepted, said.inbound.labels(said.role))?;
        append_words(tx, accepted.id, writer, &written_as, (spot, labels), now)?;
        if any_is_deleted(tx, &parts)? {
            let mut blank = tx.prepare_cached(
                "UPDATE messages SET text = ?2, around = NULL, deleted_at = ?3 WHERE id = ?1",
            )?;
            blank.execute(params![tx.last_insert_rowid(), DELETED, now])?;
        }
    }
    Ok(())
}

/// Takes the questions of a failed turn out of the transcript again, by their inbox rows.
pub(crate) fn take_back(tx: &Transaction<'_>, inbox_ids: &[i64]) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached(
        "DELETE FROM messages WHERE kind = 'person' AND inbox_id = ?1
         AND place_id = (SELECT place_id FROM inbox WHERE id = ?1)",
    )?;
    inbox_ids
        .iter()
        .try_for_each(|id| statement.execute([id]).map(drop))
}

/// Where the words of a message come from. A task comes from everything that the parent had read.
fn labels(tx: &Transaction<'_>, message: &Accepted, written: Labels) -> rusqlite::Result<Labels> {
    match &message.inbound.extras.internal {
        Some(Internal::Subagent { run }) => subagents::labels_of_task(tx, run),
        Some(Internal::Job(run)) => Ok(written | Labels::from_bits(run.read)),
        _ => Ok(written),
    }
}

/// Messages may be deleted while a turn answers them.
fn any_is_deleted(tx: &Transaction<'_>, rows: &[&Accepted]) -> rusqlite::Result<bool> {
    rows.iter().try_fold(false, |is_deleted, row| {
        Ok(is_deleted || inbox::is_deleted(tx, row.id)?)
    })
}

/// Appends a person's message without an answer. A message deleted meanwhile is not written.
pub(crate) fn append_person(
    tx: &Transaction<'_>,
    said: &Accepted,
    spot: Spot,
    now: i64,
) -> rusqlite::Result<bool> {
    if inbox::is_deleted(tx, said.id)? {
        return Ok(false);
    }
    append_words(
        tx,
        said.id,
        (&said.inbound, said.role),
        &format!(" {} ", said.inbound.message.0),
        (spot, labels(tx, said, said.labels())?),
        now,
    )?;
    Ok(true)
}

fn append_words(
    tx: &Transaction<'_>,
    inbox_id: i64,
    (inbound, role): (&Inbound, Role),
    written_as: &str,
    (spot, labels): (Spot, Labels),
    now: i64,
) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached(
        "INSERT INTO messages (place_id, conversation, kind, inbox_id, part_uid, person, person_name, role, around, text,
                               written_as, sent_at, created_at, labels)
         VALUES (?1, ?2, 'person', ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?;
    let (place, person) = (
        places::ensure(tx, &inbound.origin.key, now)?,
        inbound.origin.person.to_string(),
    );
    let (part, name) = (spot.part.map(|uid| uid.to_string()), &inbound.person_name);
    let around = inbound.around();
    numbers::ensure(tx, &inbound.origin.person)?;
    quoted(&around).try_for_each(|person| numbers::ensure(tx, person))?;
    if !inbound.origin.key.is_internal() {
        speakers::heard(tx, &person, name, now)?;
    }
    let bound = params![
        place,
        spot.conversation.0,
        inbox_id,
        part,
        person,
        name,
        role.as_str(),
        in_json(&around)?,
        inbound.text,
        written_as,
        inbound.sent_at,
        now,
        labels.bits()
    ];
    statement.execute(bound).map(drop)
}

fn quoted(around: &[Around]) -> impl Iterator<Item = &PersonId> {
    around.iter().filter_map(|around| match around {
        Around::Forward {
            from: Some(Author::Person { id, .. }),
        }
        | Around::Reply {
            to: Author::Person { id, .. },
            ..
        } => Some(id),
        _ => None,
    })
}

/// Most messages have nothing around.
fn in_json(around: &[Around]) -> rusqlite::Result<Option<String>> {
    if around.is_empty() {
        return Ok(None);
    }
    let json = serde_json::to_string(around);
    json.map(Some)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

/// Appends talk among people. Newer talk replaces the oldest.
pub(crate) fn append_observed(
    tx: &Transaction<'_>,
    said: &Accepted,
    part: Option<AgentUid>,
    now: i64,
) -> rusqlite::Result<()> {
    let place = &said.inbound.origin.key;
    if !append_person(
        tx,
        said,
        Spot {
            conversation: conversation(tx, place)?,
            part,
        },
        now,
    )? {
        return Ok(());
    }
    tx.prepare_cached("UPDATE messages SET observed = 1 WHERE id = ?1")?
        .execute([tx.last_insert_rowid()])?;
    let mut forget = tx.prepare_cached(
        "DELETE FROM messages WHERE place_id = ?1 AND observed = 1 AND id <= (
             SELECT id FROM messages WHERE place_id = ?1 AND observed = 1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
    )?;
    forget
        .execute(params![places::ensure(tx, place, now)?, MOST_OBSERVED])
        .map(drop)
}

/// The turn behind an agent's message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// The message being answered.
    pub(crate) inbox_id: i64,
    /// The person behind the turn.
    pub(crate) person: &'a PersonId,
    /// The labels of everything that the turn has read.
    pub(crate) read: Labels,
}

/// Appends an agent's message, and returns its row.
pub(crate) fn append_agent(
    tx: &Transaction<'_>,
    place: &SessionKey,
    conversation: Conversation,
    (uid, text): (AgentUid, &str),
    asked: Asked<'_>,
    now: i64,
) -> rusqlite::Result<i64> {
    let mut statement = tx.prepare_cached(
        "INSERT INTO messages (place_id, conversation, kind, inbox_id, agent_uid, part_uid, person, text, created_at, labels)
         VALUES (?1, ?2, 'agent', ?3, ?4, ?4, ?5, ?6, ?7, ?8)",
    )?;
    let (place, person) = (places::ensure(tx, place, now)?, asked.person.to_string());
    statement.insert(params![
        place,
        conversation.0,
        asked.inbox_id,
        uid.to_string(),
        person,
        text,
        now,
        asked.read.bits()
    ])
}

/// Appends a line about a switch to another agent, in the name of the person behind the switch.
pub(crate) fn append_handoff(
    tx: &Transaction<'_>,
    by: (&Inbound, Role),
    text: &str,
    now: i64,
) -> rusqlite::Result<()> {
    let (inbound, role) = by;
    numbers::ensure(tx, &inbound.origin.person)?;
    append_mark(tx, &inbound.origin.key, None, text, now)?;
    tx.prepare_cached(
        "UPDATE messages SET person = ?2, person_name = ?3, role = ?4, sent_at = ?5 WHERE id = ?1",
    )?
    .execute(params![
        tx.last_insert_rowid(),
        inbound.origin.person.to_string(),
        inbound.person_name,
        role.as_str(),
        inbound.sent_at
    ])
    .map(drop)
}

/// Appends a line of the gateway about an agent or the place itself.
pub(crate) fn append_mark(
    tx: &Transaction<'_>,
    place: &SessionKey,
    part: Option<AgentUid>,
    text: &str,
    now: i64,
) -> rusqlite::Result<()> {
    touch(tx, place, now)?;
    let mut statement = tx.prepare_cached(
        "INSERT INTO messages (place_id, conversation, kind, part_uid, text, created_at) VALUES (?1, ?2, 'handoff', ?3, ?4, ?5)",
    )?;
    let (conversation, part) = (conversation(tx, place)?, part.map(|uid| uid.to_string()));
    statement
        .execute(params![
            places::ensure(tx, place, now)?,
            conversation.0,
            part,
            text,
            now
        ])
        .map(drop)
}

/// Appends a short line about an event elsewhere, for the agent behind the event. Details are in
/// `meta`.
pub(crate) fn append_event(
    tx: &Transaction<'_>,
    place: &SessionKey,
    part: AgentUid,
    line: &str,
    meta: &Value,
    now: i64,
) -> rusqlite::Result<()> {
    append_mark(tx, place, Some(part), line, now)?;
    explain_last(tx, meta)
}

/// Appends an agent's message sent from another place, and returns its row.
pub(crate) fn append_sent(
    tx: &Transaction<'_>,
    place: &SessionKey,
    said: (AgentUid, &str),
    asked: Asked<'_>,
    meta: &Value,
    now: i64,
) -> rusqlite::Result<i64> {
    touch(tx, place, now)?;
    let id = append_agent(tx, place, conversation(tx, place)?, said, asked, now)?;
    explain_last(tx, meta)?;
    Ok(id)
}

/// Writes down the names of the tools behind an agent's message, with repetitions.
pub(crate) fn tell_tools(
    tx: &Transaction<'_>,
    message: i64,
    tools: &[String],
) -> rusqlite::Result<()> {
    if tools.is_empty() {
        return Ok(());
    }
    let meta = serde_json::json!({ "v": 1, "kind": "answer", "tools": tools });
    tx.prepare_cached("UPDATE messages SET meta_json = ?2 WHERE id = ?1")?
        .execute(params![message, meta.to_string()])
        .map(drop)
}

fn explain_last(tx: &Transaction<'_>, meta: &Value) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached("UPDATE messages SET meta_json = ?2 WHERE id = ?1")?;
    statement
        .execute(params![tx.last_insert_rowid(), meta.to_string()])
        .map(drop)
}
