//! Writes down what is said, and by whom to whom.

use rusqlite::{Transaction, params};
use serde_json::{Value, json};

use super::super::inbox::{self, Accepted};
use super::deleting::DELETED;
use super::{Conversation, conversation, touch};
use crate::domain::{AgentUid, Inbound, PersonId, SessionKey};

/// Messages not said to the bot that a place keeps; with each new one the oldest goes.
const MOST_OBSERVED: i64 = 30;

/// Where something belongs: in which conversation, and in whose part of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot {
    pub(crate) conversation: Conversation,
    /// None: nobody's.
    pub(crate) part: Option<AgentUid>,
}

/// What an agent is asked, each message in the words it was read in. Into the conversation it was answered in, even if /new
/// has begun another meanwhile.
pub(crate) fn append_question(
    tx: &Transaction<'_>,
    accepted: &Accepted,
    said: &[Inbound],
    spot: Spot,
    now: i64,
) -> rusqlite::Result<()> {
    for (said, message) in said.iter().zip(accepted.messages()) {
        let parts = std::iter::once(message).chain(&message.joined);
        let ids: String = parts.clone().map(|part| format!(" {}", part.inbound.message.0)).collect();
        append_words(tx, said, &format!("{ids} "), spot, now)?;
        if any_is_deleted(tx, parts)? {
            let mut blank = tx.prepare_cached("UPDATE messages SET text = ?2, deleted_at = ?3 WHERE id = ?1")?;
            blank.execute(params![tx.last_insert_rowid(), DELETED, now])?;
        }
    }
    Ok(())
}

/// They may have been deleted while they were answered.
fn any_is_deleted<'a>(tx: &Transaction<'_>, mut rows: impl Iterator<Item = &'a Accepted>) -> rusqlite::Result<bool> {
    rows.try_fold(false, |is_deleted, row| Ok(is_deleted || inbox::is_deleted(tx, row.id)?))
}

/// Something that a person said and nobody answers. Not written when its message was deleted meanwhile.
pub(crate) fn append_person(tx: &Transaction<'_>, said: &Accepted, spot: Spot, now: i64) -> rusqlite::Result<bool> {
    if inbox::is_deleted(tx, said.id)? {
        return Ok(false);
    }
    append_words(tx, &said.inbound, &format!(" {} ", said.inbound.message.0), spot, now)?;
    Ok(true)
}

fn append_words(tx: &Transaction<'_>, inbound: &Inbound, written_as: &str, spot: Spot, now: i64) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached(
        "INSERT INTO messages (session_key, conversation, kind, part_uid, person, person_name, text, written_as, created_at)
         VALUES (?1, ?2, 'person', ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    let (place, person) = (inbound.origin.key.to_string(), inbound.origin.person.to_string());
    let (part, name) = (spot.part.map(|uid| uid.to_string()), &inbound.person_name);
    let bound = params![place, spot.conversation.0, part, person, name, inbound.readable(), written_as, now];
    statement.execute(bound).map(drop)
}

/// Said among people: part of the running conversation until enough others were.
pub(crate) fn append_observed(tx: &Transaction<'_>, said: &Accepted, part: Option<AgentUid>, now: i64) -> rusqlite::Result<()> {
    let place = &said.inbound.origin.key;
    if !append_person(tx, said, Spot { conversation: conversation(tx, place)?, part }, now)? {
        return Ok(());
    }
    tx.prepare_cached("UPDATE messages SET observed = 1 WHERE id = ?1")?.execute([tx.last_insert_rowid()])?;
    let mut forget = tx.prepare_cached(
        "DELETE FROM messages WHERE session_key = ?1 AND observed = 1 AND id <= (
             SELECT id FROM messages WHERE session_key = ?1 AND observed = 1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
    )?;
    forget.execute(params![place.to_string(), MOST_OBSERVED]).map(drop)
}

pub(crate) fn append_agent(
    tx: &Transaction<'_>,
    place: &SessionKey,
    conversation: Conversation,
    uid: AgentUid,
    text: &str,
    now: i64,
) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached(
        "INSERT INTO messages (session_key, conversation, kind, agent_uid, part_uid, text, created_at)
         VALUES (?1, ?2, 'agent', ?3, ?3, ?4, ?5)",
    )?;
    statement.execute(params![place.to_string(), conversation.0, uid.to_string(), text, now]).map(drop)
}

/// An answer to somebody whose question was written before it, or never.
pub(crate) fn append_late_answer(
    tx: &Transaction<'_>,
    place: &SessionKey,
    conversation: Conversation,
    uid: AgentUid,
    (text, person): (&str, &PersonId),
    now: i64,
) -> rusqlite::Result<()> {
    append_agent(tx, place, conversation, uid, text, now)?;
    explain_last(tx, &json!({ "v": 1, "kind": "answer", "person": person.to_string() }))
}

/// Something that happened here to one agent, or to the place itself, such as that it changed hands.
pub(crate) fn append_mark(
    tx: &Transaction<'_>,
    place: &SessionKey,
    part: Option<AgentUid>,
    text: &str,
    now: i64,
) -> rusqlite::Result<()> {
    touch(tx, place, now)?;
    let mut statement = tx.prepare_cached(
        "INSERT INTO messages (session_key, conversation, kind, part_uid, text, created_at) VALUES (?1, ?2, 'handoff', ?3, ?4, ?5)",
    )?;
    let (conversation, part) = (conversation(tx, place)?, part.map(|uid| uid.to_string()));
    statement.execute(params![place.to_string(), conversation.0, part, text, now]).map(drop)
}

/// One short line about something that happened elsewhere, for the agent that wanted it; what there is to know about it is
/// in `meta`.
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

/// What an agent said here though it was asked elsewhere.
pub(crate) fn append_sent(
    tx: &Transaction<'_>,
    place: &SessionKey,
    uid: AgentUid,
    text: &str,
    meta: &Value,
    now: i64,
) -> rusqlite::Result<()> {
    touch(tx, place, now)?;
    append_agent(tx, place, conversation(tx, place)?, uid, text, now)?;
    explain_last(tx, meta)
}

fn explain_last(tx: &Transaction<'_>, meta: &Value) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached("UPDATE messages SET meta_json = ?2 WHERE id = ?1")?;
    statement.execute(params![tx.last_insert_rowid(), meta.to_string()]).map(drop)
}
