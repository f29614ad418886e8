//! What was said in each place: the `sessions` and `messages` tables.

mod appending;
mod carried;
mod deleting;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::subagents;
use super::summaries::{self, Summary};
use super::view::View;
use crate::domain::{AgentId, AgentUid, MessageId, PersonId, SessionKey};
use crate::routing::aliases::Renaming;
use crate::turn::history::{MAX_MESSAGES, Said, Speaker};

pub(crate) use appending::{Spot, append_event, append_late_answer, append_observed, append_person, append_question};
pub(crate) use appending::{append_agent, append_mark, append_sent};
pub(crate) use carried::{Carried, carry, take_in};
pub(crate) use deleting::{blank, was_blanked};

/// The number of a conversation in its place; /new begins the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Conversation(i64);

impl Conversation {
    const FIRST: Conversation = Conversation(1);

    pub(crate) fn number(self) -> i64 {
        self.0
    }
}

/// Something that was said, with its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) id: i64,
    pub(crate) said: Said,
}

/// A conversation as a turn looks back on it.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) conversation: Conversation,
    /// Stands for what was said before.
    pub(crate) summary: Option<Summary>,
    /// Oldest first.
    pub(crate) messages: Vec<Message>,
}

/// The running conversation, as far back as a turn looks.
pub(crate) fn history(connection: &Connection, place: &SessionKey, view: View) -> rusqlite::Result<History> {
    let conversation = conversation(connection, place)?;
    let summary = summaries::of(connection, place, conversation, view)?;
    let messages = after(connection, place, conversation, view, summary.as_ref().map_or(0, |summary| summary.upto))?;
    Ok(History { conversation, summary, messages })
}

/// The newest messages of a conversation that came after row `after`, oldest first.
pub(crate) fn after(
    connection: &Connection,
    place: &SessionKey,
    conversation: Conversation,
    view: View,
    after: i64,
) -> rusqlite::Result<Vec<Message>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT messages.kind, messages.person_name, coalesce('former-' || agents.archived_id, agents.slug), messages.text, messages.id
         FROM messages LEFT JOIN agents ON agents.uid = messages.agent_uid
         WHERE session_key = ?2 AND conversation = ?3 AND id > ?4 AND {} ORDER BY id DESC LIMIT ?5",
        view.clause()
    ))?;
    let bound = params![view.key(), place.to_string(), conversation.0, after, i64::from(MAX_MESSAGES)];
    let rows = statement.query_map(bound, |row| Ok(Message { id: row.get(4)?, said: said(row)? }))?;
    let mut messages = rows.collect::<rusqlite::Result<Vec<Message>>>()?;
    messages.reverse();
    Ok(messages)
}

/// What was said in a place with all of these words in it, the newest first, over all its conversations.
pub(crate) fn search(
    connection: &Connection,
    place: &SessionKey,
    view: View,
    words: &[String],
    limit: u32,
) -> rusqlite::Result<Vec<(Said, i64)>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT messages.kind, messages.person_name, coalesce('former-' || agents.archived_id, agents.slug), messages.text, messages.created_at
         FROM messages LEFT JOIN agents ON agents.uid = messages.agent_uid
         WHERE session_key = ?2 AND {} ORDER BY id DESC",
        view.clause()
    ))?;
    let rows = statement.query_map([view.key(), place.to_string()], |row| Ok((said(row)?, row.get(4)?)))?;
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

/// Something that people or an agent said, without the words.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) id: i64,
    pub(crate) created_at: i64,
    /// Who said it, or had it said. None for an answer that was written with its question.
    pub(crate) person: Option<PersonId>,
}

/// What was said in a place from this time on.
pub(crate) fn since(connection: &Connection, place: &SessionKey, at: i64) -> rusqlite::Result<Vec<Written>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, created_at, coalesce(person, json_extract(meta_json, '$.person')) FROM messages
         WHERE session_key = ?1 AND conversation = ?2 AND created_at >= ?3 AND kind <> 'handoff'",
    )?;
    let bound = params![place.to_string(), conversation(connection, place)?.0, at];
    let rows = statement.query_map(bound, |row| {
        let person = row.get::<_, Option<String>>(2)?.and_then(|person| person.parse().ok());
        Ok(Written { id: row.get(0)?, created_at: row.get(1)?, person })
    })?;
    rows.collect()
}

/// What an agent said in a place at this very time. Its outbox rows have the same, because one transaction writes both.
pub(crate) fn said_at(connection: &Connection, place: &SessionKey, at: i64) -> rusqlite::Result<Option<String>> {
    let mut statement = connection.prepare_cached(
        "SELECT text FROM messages WHERE session_key = ?1 AND conversation = ?2 AND kind = 'agent' AND created_at = ?3",
    )?;
    let conversation = conversation(connection, place)?;
    statement.query_row(params![place.to_string(), conversation.0, at], |row| row.get(0)).optional()
}

/// The agent that said something in a place at this very time.
pub(crate) fn speaker_at(connection: &Connection, place: &SessionKey, at: i64) -> rusqlite::Result<Option<AgentUid>> {
    let mut statement = connection.prepare_cached(
        "SELECT agent_uid FROM messages WHERE session_key = ?1 AND conversation = ?2 AND kind = 'agent' AND created_at = ?3",
    )?;
    let conversation = conversation(connection, place)?;
    uid(statement.query_row(params![place.to_string(), conversation.0, at], |row| row.get(0)))
}

/// The agent that was told what a person wrote in this message of the platform.
pub(crate) fn told_as(connection: &Connection, place: &SessionKey, message: &MessageId) -> rusqlite::Result<Option<AgentUid>> {
    let mut statement = connection.prepare_cached(
        "SELECT part_uid FROM messages WHERE session_key = ?1 AND conversation = ?2 AND instr(written_as, ?3) > 0
         ORDER BY id DESC LIMIT 1",
    )?;
    let conversation = conversation(connection, place)?;
    uid(statement.query_row(params![place.to_string(), conversation.0, format!(" {} ", message.0)], |row| row.get(0)))
}

fn uid(found: rusqlite::Result<Option<String>>) -> rusqlite::Result<Option<AgentUid>> {
    Ok(found.optional()?.flatten().and_then(|uid| uid.parse().ok()))
}

/// The one that runs now.
pub(crate) fn conversation(connection: &Connection, place: &SessionKey) -> rusqlite::Result<Conversation> {
    let mut statement = connection.prepare_cached("SELECT conversation FROM sessions WHERE key = ?1")?;
    let found = statement.query_row([place.to_string()], |row| row.get(0)).optional()?;
    Ok(found.map_or(Conversation::FIRST, Conversation))
}

/// How many messages the running conversation has.
pub(crate) fn length(connection: &Connection, place: &SessionKey, view: View) -> rusqlite::Result<i64> {
    let conversation = conversation(connection, place)?;
    let sql = format!("SELECT count(*) FROM messages WHERE session_key = ?2 AND conversation = ?3 AND {}", view.clause());
    connection.prepare_cached(&sql)?.query_row(params![view.key(), place.to_string(), conversation.0], |row| row.get(0))
}

/// Makes sure the place has a row and says when it was last used.
pub(crate) fn touch(tx: &Transaction<'_>, place: &SessionKey, now: i64) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached(
        "INSERT INTO sessions (key, created_at, active_at) VALUES (?1, ?2, ?2)
         ON CONFLICT (key) DO UPDATE SET active_at = excluded.active_at",
    )?;
    statement.execute(params![place.to_string(), now]).map(drop)
}

/// Places whose running conversation an agent has taken part in, the latest first.
pub(crate) fn places_of(connection: &Connection, uid: AgentUid, limit: u32) -> rusqlite::Result<Vec<SessionKey>> {
    let mut statement = connection.prepare_cached(
        "SELECT key FROM sessions WHERE EXISTS (
             SELECT 1 FROM messages
             WHERE session_key = sessions.key AND conversation = sessions.conversation AND agent_uid = ?1)
         ORDER BY active_at DESC LIMIT ?2",
    )?;
    let keys = statement.query_map(params![uid.to_string(), limit], |row| row.get::<_, String>(0))?;
    keys.map(|key| key.map(|key| key.parse().ok())).filter_map(Result::transpose).collect()
}

/// Places of single members whose key begins like this, the latest first.
pub(crate) fn members(connection: &Connection, kind: &str, limit: u32) -> rusqlite::Result<Vec<SessionKey>> {
    let mut statement =
        connection.prepare_cached("SELECT key FROM sessions WHERE key GLOB ?1 ORDER BY active_at DESC LIMIT ?2")?;
    let keys = statement.query_map(params![format!("{kind}:*:*"), limit], |row| row.get::<_, String>(0))?;
    Ok(keys.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().filter_map(|key| key.parse().ok()).collect())
}

/// Starts a new conversation; the old messages stay in the store.
pub(crate) fn start_anew(tx: &Transaction<'_>, place: &SessionKey, now: i64) -> rusqlite::Result<()> {
    touch(tx, place, now)?;
    let mut statement = tx.prepare_cached("UPDATE sessions SET conversation = conversation + 1 WHERE key = ?1")?;
    statement.execute([place.to_string()]).map(drop)
}

/// Moves what was said in a group to its new key. Where the new place has begun already, both go on as one conversation.
pub(crate) fn follow(tx: &Transaction<'_>, renaming: &Renaming) -> rusqlite::Result<()> {
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
pub(crate) struct Share {
    /// What it said.
    pub(crate) messages: usize,
    /// Places in which no other agent ever answered.
    pub(crate) sessions: usize,
}

/// Places of one agent alone.
const OWN_PLACES: &str = "SELECT DISTINCT session_key FROM messages WHERE agent_uid = ?1
     AND session_key NOT IN (SELECT session_key FROM messages WHERE agent_uid <> ?1)";

pub(crate) fn share_of(connection: &Connection, uid: AgentUid) -> rusqlite::Result<Share> {
    let count = |sql: &str| connection.query_row(sql, [uid.to_string()], |row| row.get::<_, i64>(0));
    let messages = count("SELECT count(*) FROM messages WHERE agent_uid = ?1")?;
    let sessions = count(&format!("SELECT count(*) FROM ({OWN_PLACES})"))?;
    Ok(Share { messages: usize::try_from(messages).unwrap_or(0), sessions: usize::try_from(sessions).unwrap_or(0) })
}

/// Destroys what the agent said, and all that was said in places where nobody else ever answered.
pub(crate) fn purge(tx: &Transaction<'_>, uid: AgentUid) -> rusqlite::Result<Share> {
    let sessions = tx.execute(&format!("DELETE FROM sessions WHERE key IN ({OWN_PLACES})"), [uid.to_string()])?;
    let of_places = tx.execute(&format!("DELETE FROM messages WHERE session_key IN ({OWN_PLACES})"), [uid.to_string()])?;
    let others = tx.execute("DELETE FROM messages WHERE agent_uid = ?1", [uid.to_string()])?;
    // What people said to it stays theirs.
    tx.execute("UPDATE messages SET part_uid = NULL WHERE part_uid = ?1", [uid.to_string()])?;
    Ok(Share { messages: of_places + others, sessions })
}

/// Lets go of what was said in the sessions of runs that nobody knows any more. Nobody reads them: what came of a run is in its
/// parent's place.
pub(crate) fn forget_old(tx: &Transaction<'_>, now: i64, most: u32) -> rusqlite::Result<usize> {
    let old = "sessions.key GLOB 'child:*' AND sessions.active_at < ?1";
    let messages = format!("SELECT messages.id FROM sessions JOIN messages ON session_key = sessions.key WHERE {old} LIMIT ?2");
    let sessions = format!(
        "SELECT key FROM sessions WHERE {old} AND NOT EXISTS (SELECT 1 FROM messages WHERE session_key = sessions.key) LIMIT ?2"
    );
    let before = now - subagents::KEPT_MS;
    Ok(tx.execute(&format!("DELETE FROM messages WHERE id IN ({messages})"), params![before, most])?
        + tx.execute(&format!("DELETE FROM sessions WHERE key IN ({sessions})"), params![before, most])?)
}
