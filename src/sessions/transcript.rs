//! What was said in each place: the `sessions` and `messages` tables.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::children;
use super::summaries::{self, Summary};
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

    pub(super) fn number(self) -> i64 {
        self.0
    }
}

/// Something that was said, with its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub id: i64,
    pub said: Said,
}

/// A conversation as a turn looks back on it.
#[derive(Debug)]
pub struct History {
    pub conversation: Conversation,
    /// Stands for what was said before.
    pub summary: Option<Summary>,
    /// Oldest first.
    pub messages: Vec<Message>,
}

/// The running conversation, as far back as a turn looks.
pub fn history(connection: &Connection, place: &SessionKey) -> rusqlite::Result<History> {
    let conversation = conversation(connection, place)?;
    let summary = summaries::of(connection, place, conversation)?;
    let messages = after(connection, place, conversation, summary.as_ref().map_or(0, |summary| summary.upto))?;
    Ok(History { conversation, summary, messages })
}

/// The newest messages of a conversation that came after row `after`, oldest first.
pub(super) fn after(
    connection: &Connection,
    place: &SessionKey,
    conversation: Conversation,
    after: i64,
) -> rusqlite::Result<Vec<Message>> {
    let mut statement = connection.prepare_cached(
        "SELECT messages.kind, messages.person_name, coalesce('former-' || agents.archived_id, agents.slug), messages.text, messages.id
         FROM messages LEFT JOIN agents ON agents.uid = messages.agent_uid
         WHERE session_key = ?1 AND conversation = ?2 AND id > ?3 ORDER BY id DESC LIMIT ?4",
    )?;
    let bound = params![place.to_string(), conversation.0, after, i64::from(MAX_MESSAGES)];
    let rows = statement.query_map(bound, |row| Ok(Message { id: row.get(4)?, said: said(row)? }))?;
    let mut messages = rows.collect::<rusqlite::Result<Vec<Message>>>()?;
    messages.reverse();
    Ok(messages)
}

/// What was said in a place with all of these words in it, the newest first, over all its conversations.
pub fn search(connection: &Connection, place: &SessionKey, words: &[String], limit: u32) -> rusqlite::Result<Vec<(Said, i64)>> {
    let mut statement = connection.prepare_cached(
        "SELECT messages.kind, messages.person_name, coalesce('former-' || agents.archived_id, agents.slug), messages.text, messages.created_at
         FROM messages LEFT JOIN agents ON agents.uid = messages.agent_uid
         WHERE session_key = ?1 ORDER BY id DESC",
    )?;
    let rows = statement.query_map([place.to_string()], |row| Ok((said(row)?, row.get(4)?)))?;
    let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let found = rows.filter(|row| match row {
        Ok((said, _)) => {
            let text = said.text.to_lowercase();
            words.iter().all(|word| text.contains(word.as_str()))
        }
        Err(_) => true,
    });
    found.take(usize::try_from(limit).unwrap_or(usize::MAX)).collect()
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

/// What hangs on one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    /// What it said.
    pub messages: usize,
    /// Places in which no other agent ever answered.
    pub sessions: usize,
}

/// Places of one agent alone.
const OWN_PLACES: &str = "SELECT DISTINCT session_key FROM messages WHERE agent_uid = ?1
     AND session_key NOT IN (SELECT session_key FROM messages WHERE agent_uid <> ?1)";

pub fn share_of(connection: &Connection, uid: AgentUid) -> rusqlite::Result<Share> {
    let count = |sql: &str| connection.query_row(sql, [uid.to_string()], |row| row.get::<_, i64>(0));
    let messages = count("SELECT count(*) FROM messages WHERE agent_uid = ?1")?;
    let sessions = count(&format!("SELECT count(*) FROM ({OWN_PLACES})"))?;
    Ok(Share { messages: usize::try_from(messages).unwrap_or(0), sessions: usize::try_from(sessions).unwrap_or(0) })
}

/// Destroys what the agent said, and all that was said in places where nobody else ever answered.
pub fn purge(tx: &Transaction<'_>, uid: AgentUid) -> rusqlite::Result<Share> {
    let sessions = tx.execute(&format!("DELETE FROM sessions WHERE key IN ({OWN_PLACES})"), [uid.to_string()])?;
    let of_places = tx.execute(&format!("DELETE FROM messages WHERE session_key IN ({OWN_PLACES})"), [uid.to_string()])?;
    let others = tx.execute("DELETE FROM messages WHERE agent_uid = ?1", [uid.to_string()])?;
    Ok(Share { messages: of_places + others, sessions })
}

/// Lets go of what was said in the sessions of runs that nobody knows any more. Nobody reads them: what came of a run is in its
/// parent's place.
pub fn forget_old(tx: &Transaction<'_>, now: i64, most: u32) -> rusqlite::Result<usize> {
    let old = "sessions.key GLOB 'child:*' AND sessions.active_at < ?1";
    let messages = format!("SELECT messages.id FROM sessions JOIN messages ON session_key = sessions.key WHERE {old} LIMIT ?2");
    let sessions = format!(
        "SELECT key FROM sessions WHERE {old} AND NOT EXISTS (SELECT 1 FROM messages WHERE session_key = sessions.key) LIMIT ?2"
    );
    let before = now - children::KEPT_MS;
    Ok(tx.execute(&format!("DELETE FROM messages WHERE id IN ({messages})"), params![before, most])?
        + tx.execute(&format!("DELETE FROM sessions WHERE key IN ({sessions})"), params![before, most])?)
}

/// A message outside the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    pub place: String,
    pub conversation: i64,
    pub kind: CarriedKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person_name: Option<String>,
    pub text: String,
    pub created_at: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CarriedKind {
    Person,
    /// The agent it is all about.
    Agent,
    Handoff,
}

/// The conversations in which an agent spoke, without what other agents said and what was not said to the bot.
pub fn carry(connection: &Connection, uid: AgentUid) -> rusqlite::Result<Vec<Carried>> {
    let mut statement = connection.prepare(
        "SELECT session_key, conversation, kind, person, person_name, text, created_at FROM messages
         WHERE (session_key, conversation) IN (SELECT session_key, conversation FROM messages WHERE agent_uid = ?1)
           AND observed = 0 AND (agent_uid IS NULL OR agent_uid = ?1) ORDER BY id",
    )?;
    let rows = statement.query_map([uid.to_string()], |row| {
        let kind = match row.get::<_, String>(2)?.as_str() {
            "person" => CarriedKind::Person,
            "agent" => CarriedKind::Agent,
            _ => CarriedKind::Handoff,
        };
        Ok(Carried {
            place: row.get(0)?,
            conversation: row.get(1)?,
            kind,
            person: row.get(3)?,
            person_name: row.get(4)?,
            text: row.get(5)?,
            created_at: row.get(6)?,
        })
    })?;
    rows.collect()
}

/// Takes in conversations of an agent from elsewhere. Where a place has a conversation already, that one goes on, and what
/// comes in is kept behind it.
pub fn take_in(tx: &Transaction<'_>, uid: AgentUid, carried: &[Carried]) -> rusqlite::Result<()> {
    let mut known = tx.prepare("SELECT 1 FROM sessions WHERE key = ?1")?;
    let places: BTreeSet<&str> = carried.iter().map(|message| message.place.as_str()).collect();
    let mut begun = BTreeSet::new();
    for place in places {
        if known.exists([place])? {
            begun.insert(place);
        }
    }
    let mut insert = tx.prepare(
        "INSERT INTO messages (session_key, conversation, kind, agent_uid, person, person_name, text, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    let mut touch = tx.prepare(
        "INSERT INTO sessions (key, conversation, created_at, active_at) VALUES (?1, ?2, ?3, ?3)
         ON CONFLICT (key) DO UPDATE SET conversation = max(conversation, excluded.conversation),
             active_at = max(active_at, excluded.active_at)",
    )?;
    for message in carried {
        let is_new = !begun.contains(message.place.as_str());
        let conversation = if is_new { message.conversation.max(1) } else { 0 };
        let (kind, speaker) = match message.kind {
            CarriedKind::Person => ("person", None),
            CarriedKind::Agent => ("agent", Some(uid.to_string())),
            CarriedKind::Handoff => ("handoff", None),
        };
        let (person, name) = (&message.person, &message.person_name);
        insert.execute(params![message.place, conversation, kind, speaker, person, name, message.text, message.created_at])?;
        if is_new {
            touch.execute(params![message.place, conversation, message.created_at])?;
        }
    }
    Ok(())
}
