//! What was said in each place: the `sessions` and `messages` tables.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use serde_json::Value;

use crate::domain::{AgentId, AgentUid, Inbound, SessionKey};
use crate::routing::aliases::Renaming;
use crate::turn::history::{MAX_MESSAGES, Said, Speaker};

/// Messages not said to the bot that a place keeps; with each new one the oldest goes.
const MOST_OBSERVED: i64 = 30;

/// The number of a conversation in its place; /new begins the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conversation(i64);

impl Conversation {
    const FIRST: Conversation = Conversation(1);
}

/// The running conversation, oldest first, as far back as a turn looks.
pub fn history(connection: &Connection, place: &SessionKey) -> rusqlite::Result<(Conversation, Vec<Said>)> {
    let conversation = conversation(connection, place)?;
    let mut statement = connection.prepare_cached(
        "SELECT messages.kind, messages.person_name, agents.slug, messages.text
         FROM messages LEFT JOIN agents ON agents.uid = messages.agent_uid
         WHERE session_key = ?1 AND conversation = ?2 ORDER BY id DESC LIMIT ?3",
    )?;
    let rows = statement.query_map(params![place.to_string(), conversation.0, i64::from(MAX_MESSAGES)], said)?;
    let mut history = rows.collect::<rusqlite::Result<Vec<Said>>>()?;
    history.reverse();
    Ok((conversation, history))
}

fn said(row: &Row<'_>) -> rusqlite::Result<Said> {
    let kind: String = row.get(0)?;
    let by = match kind.as_str() {
        "person" => Speaker::Person(row.get::<_, Option<String>>(1)?.unwrap_or_default()),
        "agent" => match row.get::<_, Option<String>>(2)?.and_then(|slug| AgentId::parse(&slug).ok()) {
            Some(agent) => Speaker::Agent(agent),
            None => Speaker::Handoff,
        },
        _ => Speaker::Handoff,
    };
    Ok(Said { by, text: row.get(3)? })
}

/// What an agent said in a place at this very time. Its outbox rows have the same, because one transaction writes both.
pub fn said_at(connection: &Connection, place: &SessionKey, at: i64) -> rusqlite::Result<Option<String>> {
    let mut statement = connection.prepare_cached(
        "SELECT text FROM messages WHERE session_key = ?1 AND conversation = ?2 AND kind = 'agent' AND created_at = ?3",
    )?;
    let conversation = conversation(connection, place)?;
    statement.query_row(params![place.to_string(), conversation.0, at], |row| row.get(0)).optional()
}

/// The one that runs now.
pub fn conversation(connection: &Connection, place: &SessionKey) -> rusqlite::Result<Conversation> {
    let mut statement = connection.prepare_cached("SELECT conversation FROM sessions WHERE key = ?1")?;
    let found = statement.query_row([place.to_string()], |row| row.get(0)).optional()?;
    Ok(found.map_or(Conversation::FIRST, Conversation))
}

/// How many messages the running conversation has.
pub fn length(connection: &Connection, place: &SessionKey) -> rusqlite::Result<i64> {
    let conversation = conversation(connection, place)?;
    let mut statement =
        connection.prepare_cached("SELECT count(*) FROM messages WHERE session_key = ?1 AND conversation = ?2")?;
    statement.query_row(params![place.to_string(), conversation.0], |row| row.get(0))
}

/// Makes sure the place has a row and says when it was last used.
pub fn touch(tx: &Transaction<'_>, place: &SessionKey, now: i64) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached(
        "INSERT INTO sessions (key, created_at, active_at) VALUES (?1, ?2, ?2)
         ON CONFLICT (key) DO UPDATE SET active_at = excluded.active_at",
    )?;
    statement.execute(params![place.to_string(), now]).map(drop)
}

/// Into the conversation the message was answered in, even if /new has begun another meanwhile.
pub fn append_person(tx: &Transaction<'_>, inbound: &Inbound, conversation: Conversation, now: i64) -> rusqlite::Result<()> {
    let place = inbound.origin.key.to_string();
    let mut statement = tx.prepare_cached(
        "INSERT INTO messages (session_key, conversation, kind, person, person_name, text, created_at)
         VALUES (?1, ?2, 'person', ?3, ?4, ?5, ?6)",
    )?;
    let person = inbound.origin.person.to_string();
    statement.execute(params![place, conversation.0, person, inbound.person_name, inbound.readable(), now]).map(drop)
}

/// Said among people: part of the running conversation until enough others were.
pub fn append_observed(tx: &Transaction<'_>, inbound: &Inbound, now: i64) -> rusqlite::Result<()> {
    append_person(tx, inbound, conversation(tx, &inbound.origin.key)?, now)?;
    tx.prepare_cached("UPDATE messages SET observed = 1 WHERE id = ?1")?.execute([tx.last_insert_rowid()])?;
    let mut forget = tx.prepare_cached(
        "DELETE FROM messages WHERE session_key = ?1 AND observed = 1 AND id <= (
             SELECT id FROM messages WHERE session_key = ?1 AND observed = 1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
    )?;
    forget.execute(params![inbound.origin.key.to_string(), MOST_OBSERVED]).map(drop)
}

pub fn append_agent(
    tx: &Transaction<'_>,
    place: &SessionKey,
    conversation: Conversation,
    uid: AgentUid,
    text: &str,
    now: i64,
) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached(
        "INSERT INTO messages (session_key, conversation, kind, agent_uid, text, created_at) VALUES (?1, ?2, 'agent', ?3, ?4, ?5)",
    )?;
    statement.execute(params![place.to_string(), conversation.0, uid.to_string(), text, now]).map(drop)
}

/// Something that happened here, such as that the place changed hands.
pub fn append_mark(tx: &Transaction<'_>, place: &SessionKey, text: &str, now: i64) -> rusqlite::Result<()> {
    touch(tx, place, now)?;
    let mut statement = tx.prepare_cached(
        "INSERT INTO messages (session_key, conversation, kind, text, created_at) VALUES (?1, ?2, 'handoff', ?3, ?4)",
    )?;
    let conversation = conversation(tx, place)?;
    statement.execute(params![place.to_string(), conversation.0, text, now]).map(drop)
}

/// One short line about something that happened elsewhere; what there is to know about it is in `meta`.
pub fn append_event(tx: &Transaction<'_>, place: &SessionKey, text: &str, meta: &Value, now: i64) -> rusqlite::Result<()> {
    append_mark(tx, place, text, now)?;
    explain_last(tx, meta)
}

/// What an agent said here though it was asked elsewhere.
pub fn append_sent(
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

/// Places whose running conversation an agent has taken part in, the latest first.
pub fn places_of(connection: &Connection, uid: AgentUid, limit: u32) -> rusqlite::Result<Vec<SessionKey>> {
    let mut statement = connection.prepare_cached(
        "SELECT key FROM sessions WHERE EXISTS (
             SELECT 1 FROM messages
             WHERE session_key = sessions.key AND conversation = sessions.conversation AND agent_uid = ?1)
         ORDER BY active_at DESC LIMIT ?2",
    )?;
    let keys = statement.query_map(params![uid.to_string(), limit], |row| row.get::<_, String>(0))?;
    keys.map(|key| key.map(|key| key.parse().ok())).filter_map(Result::transpose).collect()
}

/// Starts a new conversation; the old messages stay in the store.
pub fn start_anew(tx: &Transaction<'_>, place: &SessionKey, now: i64) -> rusqlite::Result<()> {
    touch(tx, place, now)?;
    let mut statement = tx.prepare_cached("UPDATE sessions SET conversation = conversation + 1 WHERE key = ?1")?;
    statement.execute([place.to_string()]).map(drop)
}

/// Moves what was said in a group to its new key. Where the new place has begun already, both go on as one conversation.
pub fn follow(tx: &Transaction<'_>, renaming: &Renaming) -> rusqlite::Result<()> {
    let is_old = Renaming::is_old("key");
    let mut statement = tx.prepare(&format!("SELECT key FROM sessions WHERE {is_old}"))?;
    let keys = statement.query_map([&renaming.old], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    for old in keys {
        merge(tx, &old, &old.replacen(&renaming.old, &renaming.new, 1))?;
    }
    renaming.rename(tx, "messages", "session_key", "true")
}

fn merge(tx: &Transaction<'_>, old: &str, new: &str) -> rusqlite::Result<()> {
    let number = "(SELECT conversation FROM sessions WHERE key = ?)";
    let running = |key: &str| tx.query_row(&format!("SELECT coalesce({number}, 0)"), [key], |row| row.get::<_, i64>(0));
    let (in_old, in_new) = (running(old)?, running(new)?);
    let both = in_old.max(in_new);
    for (key, conversation) in [(old, in_old), (new, in_new)] {
        let sql = "UPDATE messages SET conversation = ?3 WHERE session_key = ?1 AND conversation = ?2";
        tx.execute(sql, params![key, conversation, both])?;
    }
    tx.execute(
        "INSERT INTO sessions (key, conversation, created_at, active_at)
         SELECT ?2, ?3, created_at, active_at FROM sessions WHERE key = ?1
         ON CONFLICT (key) DO UPDATE SET conversation = excluded.conversation, created_at = excluded.created_at",
        params![old, new, both],
    )?;
    tx.execute("DELETE FROM sessions WHERE key = ?1", [old]).map(drop)
}
