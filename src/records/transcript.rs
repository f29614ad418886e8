//! The transcript of each place: the `messages` table.

mod appending;
mod arriving;
mod carrying;
mod deleting;
mod export;
mod handing_over;
mod reading;

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::summaries::{self, Summary};
use super::view::View;
use super::{speakers, subagents};
use crate::domain::{
    AgentId, AgentUid, Around, Labels, MessageId, PersonId, Role, Said, SessionKey, Source, Voice,
};
use crate::routing::places::{self, PlaceId, Twin};
use crate::turn::history::MAX_MESSAGES;

pub(crate) use appending::{
    Asked, Spot, append_agent, append_event, append_handoff, append_mark, append_observed,
    append_person, append_question, append_sent, take_back, tell_tools,
};
pub(crate) use arriving::{Arriving, Into as ArrivesIn, Speaker, SummedUp, arrive};
pub(crate) use carrying::{copy, has_any, move_all};
pub(crate) use deleting::{blank, was_blanked};
pub(crate) use export::{ExportedMessage, Importing, Places, export};
pub(crate) use handing_over::{With, current_agent};
pub(crate) use reading::{Entry, Extent, entries, latest_words, search_everywhere};

/// The number of a conversation in its place; /new begins the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Conversation(i64);

impl Conversation {
    const FIRST: Conversation = Conversation(1);

    pub(crate) fn number(self) -> i64 {
        self.0
    }
}

/// A message with its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) id: i64,
    /// Shared with the copy for the next turn.
    pub(crate) said: Arc<Said>,
    /// Where the words come from.
    pub(crate) labels: Labels,
}

/// A conversation as read by a turn.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) conversation: Conversation,
    /// Covers the messages before.
    pub(crate) summary: Option<Summary>,
    /// Oldest first.
    pub(crate) messages: Vec<Message>,
}

/// The current conversation, as far back as a turn reads.
pub(crate) fn history(
    connection: &Connection,
    place: &SessionKey,
    view: View,
) -> rusqlite::Result<History> {
    let conversation = conversation(connection, place)?;
    let summary = summaries::of(connection, place, conversation, view)?;
    let messages = after(
        connection,
        place,
        conversation,
        view,
        summary.as_ref().map_or(0, |summary| summary.upto),
    )?;
    Ok(History {
        conversation,
        summary,
        messages,
    })
}

/// The newest messages of a conversation after row `after`, oldest first.
pub(crate) fn after(
    connection: &Connection,
    place: &SessionKey,
    conversation: Conversation,
    view: View,
    after: i64,
) -> rusqlite::Result<Vec<Message>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {SAID} FROM {SAID_FROM}
         WHERE place_id = ?2 AND messages.conversation = ?3 AND messages.id > ?4 AND {} ORDER BY messages.id DESC LIMIT ?5",
        view.clause()
    ))?;
    let bound = params![
        view.key(),
        places::id(connection, place)?,
        conversation.0,
        after,
        i64::from(MAX_MESSAGES)
    ];
    let rows = statement.query_map(bound, |row| {
        Ok(Message {
            id: row.get(column::ID)?,
            said: Arc::new(said(row, place)?),
            labels: labels(row)?,
        })
    })?;
    let mut messages = rows.collect::<rusqlite::Result<Vec<Message>>>()?;
    messages.reverse();
    Ok(messages)
}

/// Messages of a place with all of these words, newest first, over all conversations. Each has the
/// time of its storage.
pub(crate) fn search(
    connection: &Connection,
    place: &SessionKey,
    view: View,
    words: &[String],
    limit: u32,
) -> rusqlite::Result<Vec<(Said, i64, Labels)>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {SAID} FROM {SAID_FROM} WHERE place_id = ?2 AND {} ORDER BY messages.id DESC",
        view.clause()
    ))?;
    let rows = statement.query_map(params![view.key(), places::id(connection, place)?], |row| {
        Ok((
            said(row, place)?,
            row.get(column::CREATED_AT)?,
            labels(row)?,
        ))
    })?;
    let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let found = rows.filter(|row| match row {
        Ok((said, ..)) => {
            let text = searched(said).to_lowercase();
            words.iter().all(|word| text.contains(word.as_str()))
        }
        Err(_) => true,
    });
    found
        .take(usize::try_from(limit).unwrap_or(usize::MAX))
        .collect()
}

/// Words, quotes and the names of files.
fn searched(said: &Said) -> String {
    let around = said.around.iter().map(Around::to_string);
    around
        .chain([said.text.clone()])
        .collect::<Vec<_>>()
        .join(" ")
}

/// The columns of a message for [`said`] and [`labels`], in the order of [`mod@column`].
const SAID: &str = "messages.id AS id, messages.kind AS kind, messages.person AS person, messages.person_name AS person_name,
    messages.role AS role, messages.around AS around, messages.text AS text, messages.created_at AS created_at,
    coalesce(messages.sent_at, messages.created_at) AS sent_at, messages.deleted_at AS deleted_at,
    messages.labels AS labels,
    coalesce('former-' || agents.archived_id, agents.slug) AS agent";
/// Places of the columns in [`SAID`]. A turn reads up to a few hundred messages, and looking for
/// the name of each of their values would cost more than the values.
mod column {
    pub(super) const ID: usize = 0;
    pub(super) const KIND: usize = 1;
    pub(super) const PERSON: usize = 2;
    pub(super) const PERSON_NAME: usize = 3;
    pub(super) const ROLE: usize = 4;
    pub(super) const AROUND: usize = 5;
    pub(super) const TEXT: usize = 6;
    pub(super) const CREATED_AT: usize = 7;
    pub(super) const SENT_AT: usize = 8;
    pub(super) const DELETED_AT: usize = 9;
    pub(super) const LABELS: usize = 10;
    pub(super) const AGENT: usize = 11;
}
const SAID_FROM: &str = "messages LEFT JOIN agents ON agents.uid = messages.agent_uid";

/// The labels of a message. The gateway's own lines have none; words whose writer is not known any
/// more count as a guest's.
fn labels(row: &Row<'_>) -> rusqlite::Result<Labels> {
    if row.get_ref(column::KIND)?.as_str()? == "handoff" {
        return Ok(Labels::NONE);
    }
    let bits = row.get::<_, Option<u32>>(column::LABELS)?;
    Ok(bits.map_or(Labels::of(Role::Guest), Labels::from_bits))
}

fn said(row: &Row<'_>, place: &SessionKey) -> rusqlite::Result<Said> {
    let kind = row.get_ref(column::KIND)?.as_str()?;
    let name: Option<String> = row.get(column::PERSON_NAME)?;
    let by = match (kind, name) {
        // In a subagent's session, its parent speaks.
        ("person", Some(name)) if matches!(place, SessionKey::Child { .. }) => {
            let parent = AgentId::parse(name.trim_start_matches('@'));
            parent.map_or(Source::Gateway, Source::Agent)
        }
        ("person", name) => Source::Person(voice(row, name.unwrap_or_default())?),
        ("agent", _) => {
            let slug: Option<String> = row.get(column::AGENT)?;
            let agent = slug.and_then(|slug| AgentId::parse(&slug).ok());
            agent.map_or(Source::Gateway, Source::Agent)
        }
        (_, Some(name)) => Source::Handoff(voice(row, name)?),
        (_, None) => Source::Gateway,
    };
    if row.get::<_, Option<i64>>(column::DELETED_AT)?.is_some() {
        return Ok(Said {
            around: vec![Around::Deleted],
            ..Said::new(by, "")
        });
    }
    let around = row
        .get::<_, Option<String>>(column::AROUND)?
        .and_then(|around| serde_json::from_str(&around).ok());
    Ok(Said {
        by,
        around: around.unwrap_or_default(),
        text: row.get(column::TEXT)?,
    })
}

fn voice(row: &Row<'_>, name: String) -> rusqlite::Result<Voice> {
    let (person, role): (Option<String>, Option<String>) =
        (row.get(column::PERSON)?, row.get(column::ROLE)?);
    Ok(Voice {
        name,
        person: person.and_then(|person| person.parse().ok()),
        number: None,
        role: role.and_then(|role| role.parse().ok()),
        at: row.get(column::SENT_AT)?,
    })
}

/// A message without its text.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) id: i64,
    /// The inbox row of the message's turn.
    pub(crate) inbox_id: Option<i64>,
    /// The speaker, or the person behind an agent's message.
    pub(crate) person: Option<PersonId>,
}

/// The messages of people and agents in the current conversation after this row.
pub(crate) fn since(
    connection: &Connection,
    place: &SessionKey,
    after: i64,
) -> rusqlite::Result<Vec<Written>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, inbox_id, person FROM messages WHERE place_id = ?1 AND conversation = ?2 AND id > ?3 AND kind <> 'handoff'",
    )?;
    let bound = params![
        places::id(connection, place)?,
        conversation(connection, place)?.0,
        after
    ];
    let rows = statement.query_map(bound, |row| {
        let person = row
            .get::<_, Option<String>>(2)?
            .and_then(|person| person.parse().ok());
        Ok(Written {
            id: row.get(0)?,
            inbox_id: row.get(1)?,
            person,
        })
    })?;
    rows.collect()
}

/// A question of the current conversation, and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) question: i64,
    pub(crate) answer: i64,
}

/// The questions up to this row that were answered after it.
pub(crate) fn answered_since(
    connection: &Connection,
    place: &SessionKey,
    after: i64,
) -> rusqlite::Result<Vec<Answered>> {
    let mut statement = connection.prepare_cached(
        "SELECT question.id, answer.id FROM messages AS answer
         JOIN messages AS question ON question.place_id = ?1 AND question.conversation = ?2 AND question.id <= ?3
             AND question.inbox_id = answer.inbox_id AND question.kind = 'person'
         WHERE answer.place_id = ?1 AND answer.conversation = ?2 AND answer.id > ?3 AND answer.kind = 'agent'",
    )?;
    let bound = params![
        places::id(connection, place)?,
        conversation(connection, place)?.0,
        after
    ];
    let rows = statement.query_map(bound, |row| {
        Ok(Answered {
            question: row.get(0)?,
            answer: row.get(1)?,
        })
    })?;
    rows.collect()
}

/// The newest row of all transcripts; 0 if there is none.
pub(crate) fn newest(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("SELECT coalesce(max(id), 0) FROM messages")?
        .query_row([], |row| row.get(0))
}

/// An agent's message in the current conversation: the agent and the text.
pub(crate) fn said_by_agent(
    connection: &Connection,
    id: i64,
) -> rusqlite::Result<Option<(AgentUid, String)>> {
    let mut statement = connection.prepare_cached(
        "SELECT agent_uid, text FROM messages JOIN places ON places.id = place_id AND places.conversation = messages.conversation
         WHERE messages.id = ?1 AND kind = 'agent'",
    )?;
    let found = statement
        .query_row([id], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))
        .optional()?;
    Ok(found.and_then(|(uid, text)| Some((uid.parse().ok()?, text))))
}

/// The agent whose part has this message of a person.
pub(crate) fn told_as(
    connection: &Connection,
    place: &SessionKey,
    message: &MessageId,
) -> rusqlite::Result<Option<AgentUid>> {
    let mut statement = connection.prepare_cached(
        "SELECT part_uid FROM messages WHERE place_id = ?1 AND conversation = ?2 AND instr(written_as, ?3) > 0
         ORDER BY id DESC LIMIT 1",
    )?;
    let conversation = conversation(connection, place)?;
    uid(statement.query_row(
        params![
            places::id(connection, place)?,
            conversation.0,
            format!(" {} ", message.0)
        ],
        |row| row.get(0),
    ))
}

fn uid(found: rusqlite::Result<Option<String>>) -> rusqlite::Result<Option<AgentUid>> {
    Ok(found.optional()?.flatten().and_then(|uid| uid.parse().ok()))
}

/// The id of a place with its conversation and its count of edits, if the place has a row.
pub(super) fn counts(
    connection: &Connection,
    place: &SessionKey,
) -> rusqlite::Result<Option<(PlaceId, Conversation, i64)>> {
    let sql = "SELECT id, conversation, edits FROM places WHERE key = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row([place.to_string()], |row| {
        Ok((row.get(0)?, Conversation(row.get(1)?), row.get(2)?))
    });
    found.optional()
}

/// The current conversation.
pub(crate) fn conversation(
    connection: &Connection,
    place: &SessionKey,
) -> rusqlite::Result<Conversation> {
    let mut statement =
        connection.prepare_cached("SELECT conversation FROM places WHERE key = ?1")?;
    let found = statement
        .query_row([place.to_string()], |row| row.get(0))
        .optional()?;
    Ok(found.map_or(Conversation::FIRST, Conversation))
}

/// The number of messages in the current conversation. A switch of the agent is none.
pub(crate) fn length(
    connection: &Connection,
    place: &SessionKey,
    view: View,
) -> rusqlite::Result<i64> {
    let conversation = conversation(connection, place)?;
    let sql = format!(
        "SELECT count(*) FROM messages WHERE place_id = ?2 AND conversation = ?3 AND kind <> 'handoff' AND {}",
        view.clause()
    );
    connection.prepare_cached(&sql)?.query_row(
        params![view.key(), places::id(connection, place)?, conversation.0],
        |row| row.get(0),
    )
}

/// Makes sure the place has a row, and updates the time of its last use.
pub(crate) fn touch(tx: &Transaction<'_>, place: &SessionKey, now: i64) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached(
        "INSERT INTO places (key, created_at, active_at) VALUES (?1, ?2, ?2)
         ON CONFLICT (key) DO UPDATE SET active_at = excluded.active_at",
    )?;
    statement.execute(params![place.to_string(), now]).map(drop)
}

/// Places with messages of an agent in the current conversation, latest first.
pub(crate) fn places_of(
    connection: &Connection,
    uid: AgentUid,
    limit: u32,
) -> rusqlite::Result<Vec<SessionKey>> {
    let mut statement = connection.prepare_cached(
        "SELECT key FROM places WHERE active_at IS NOT NULL AND EXISTS (
             SELECT 1 FROM messages
             WHERE place_id = places.id AND conversation = places.conversation AND agent_uid = ?1)
         ORDER BY active_at DESC LIMIT ?2",
    )?;
    let keys = statement.query_map(params![uid.to_string(), limit], |row| {
        row.get::<_, String>(0)
    })?;
    keys.map(|key| key.map(|key| key.parse().ok()))
        .filter_map(Result::transpose)
        .collect()
}

/// Places of single members with a key of this kind, latest first.
pub(crate) fn members(
    connection: &Connection,
    kind: &str,
    limit: u32,
) -> rusqlite::Result<Vec<SessionKey>> {
    let mut statement = connection
        .prepare_cached("SELECT key FROM places WHERE key GLOB ?1 AND active_at IS NOT NULL ORDER BY active_at DESC LIMIT ?2")?;
    let keys = statement.query_map(params![format!("{kind}:*:*"), limit], |row| {
        row.get::<_, String>(0)
    })?;
    Ok(keys
        .collect::<rusqlite::Result<Vec<_>>>()?
        .into_iter()
        .filter_map(|key| key.parse().ok())
        .collect())
}

/// The people with words in the current conversation of a place.
pub(crate) fn speakers(
    connection: &Connection,
    place: &SessionKey,
) -> rusqlite::Result<Vec<PersonId>> {
    let mut statement = connection.prepare_cached(
        "SELECT DISTINCT person FROM messages JOIN places ON places.id = place_id
         WHERE key = ?1 AND messages.conversation = places.conversation AND kind = 'person' AND person IS NOT NULL",
    )?;
    let ids = statement.query_map([place.to_string()], |row| row.get::<_, String>(0))?;
    Ok(ids
        .collect::<rusqlite::Result<Vec<_>>>()?
        .into_iter()
        .filter_map(|id| id.parse().ok())
        .collect())
}

/// Places whose current conversation is with an agent, by its last answer. Sessions of subagents
/// are left out.
pub(crate) fn places_with(
    connection: &Connection,
    uid: AgentUid,
) -> rusqlite::Result<Vec<SessionKey>> {
    let mut statement = connection.prepare(
        "SELECT key FROM places WHERE active_at IS NOT NULL AND (
             SELECT agent_uid FROM messages
             WHERE place_id = places.id AND conversation = places.conversation AND kind = 'agent'
             ORDER BY id DESC LIMIT 1) = ?1 ORDER BY key",
    )?;
    let keys = statement.query_map([uid.to_string()], |row| row.get::<_, String>(0))?;
    let keys: Vec<String> = keys.collect::<rusqlite::Result<_>>()?;
    let keys = keys.iter().filter_map(|key| key.parse().ok());
    Ok(keys.filter(|key: &SessionKey| !key.is_internal()).collect())
}

/// Starts a new conversation; the old messages stay in the store.
pub(crate) fn start_anew(
    tx: &Transaction<'_>,
    place: &SessionKey,
    now: i64,
) -> rusqlite::Result<()> {
    touch(tx, place, now)?;
    let mut statement =
        tx.prepare_cached("UPDATE places SET conversation = conversation + 1 WHERE key = ?1")?;
    statement.execute([place.to_string()]).map(drop)
}

/// Moves the transcript from the old row of a place to its new row, and joins both current
/// conversations.
pub(crate) fn merge(tx: &Transaction<'_>, Twin { old, new }: Twin) -> rusqlite::Result<()> {
    let running = |place| {
        tx.query_row(
            "SELECT conversation FROM places WHERE id = ?1",
            [place],
            |row| row.get::<_, i64>(0),
        )
    };
    let (in_old, in_new) = (running(old)?, running(new)?);
    let both = in_old.max(in_new);
    for (place, conversation) in [(old, in_old), (new, in_new)] {
        let sql = "UPDATE messages SET conversation = ?3 WHERE place_id = ?1 AND conversation = ?2";
        tx.execute(sql, params![place, conversation, both])?;
    }
    tx.execute(
        "UPDATE messages SET place_id = ?2 WHERE place_id = ?1",
        params![old, new],
    )?;
    let sql =
        "UPDATE places SET conversation = ?3, active_at = coalesce(active_at, (SELECT active_at FROM places WHERE id = ?1)),
                                 name = coalesce(name, (SELECT name FROM places WHERE id = ?1)) WHERE id = ?2";
    tx.execute(sql, params![old, new, both]).map(drop)
}

/// The share of an agent in all transcripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Share {
    /// Messages of the agent.
    pub(crate) messages: usize,
    /// Places where no other agent ever answered.
    pub(crate) sessions: usize,
}

/// Places of a single agent.
const OWN_PLACES: &str = "SELECT DISTINCT place_id FROM messages WHERE agent_uid = ?1
     AND place_id NOT IN (SELECT place_id FROM messages WHERE agent_uid <> ?1)";

pub(crate) fn share_of(connection: &Connection, uid: AgentUid) -> rusqlite::Result<Share> {
    let count =
        |sql: &str| connection.query_row(sql, [uid.to_string()], |row| row.get::<_, i64>(0));
    let messages = count("SELECT count(*) FROM messages WHERE agent_uid = ?1")?;
    let sessions = count(&format!("SELECT count(*) FROM ({OWN_PLACES})"))?;
    Ok(Share {
        messages: usize::try_from(messages).unwrap_or(0),
        sessions: usize::try_from(sessions).unwrap_or(0),
    })
}

/// Deletes the agent's messages, and all messages in places where no other agent ever answered.
pub(crate) fn purge(tx: &Transaction<'_>, uid: AgentUid) -> rusqlite::Result<Share> {
    let sessions = tx.execute(
        &format!("UPDATE places SET active_at = NULL WHERE id IN ({OWN_PLACES})"),
        [uid.to_string()],
    )?;
    let of_places = tx.execute(
        &format!("DELETE FROM messages WHERE place_id IN ({OWN_PLACES})"),
        [uid.to_string()],
    )?;
    let others = tx.execute(
        "DELETE FROM messages WHERE agent_uid = ?1",
        [uid.to_string()],
    )?;
    // Sessions of subagents that never answered: only the task was said there.
    let of_tasks = tx.execute(
        "DELETE FROM messages WHERE place_id IN (SELECT place_id FROM subagents WHERE agent_uid = ?1)
             AND place_id NOT IN (SELECT place_id FROM messages WHERE agent_uid <> ?1)",
        [uid.to_string()],
    )?;
    let imported = SessionKey::imports_of(uid);
    let own = "SELECT id FROM places WHERE key GLOB ?1";
    let of_imports = tx.execute(
        &format!("DELETE FROM messages WHERE place_id IN ({own})"),
        [&imported],
    )?;
    tx.execute("DELETE FROM places WHERE key GLOB ?1", [&imported])?;
    speakers::forget_silent(tx)?;
    // Words that people said to the agent stay, in no agent's part.
    tx.execute(
        "UPDATE messages SET part_uid = NULL WHERE part_uid = ?1",
        [uid.to_string()],
    )?;
    Ok(Share {
        messages: of_places + others + of_tasks + of_imports,
        sessions,
    })
}

/// Deletes the messages in old sessions of subagents. The results are in the transcript of the
/// parent's place.
pub(crate) fn forget_old(tx: &Transaction<'_>, now: i64, most: u32) -> rusqlite::Result<usize> {
    let messages = "SELECT messages.id FROM places JOIN messages ON place_id = places.id
                    WHERE places.key GLOB 'child:*' AND places.active_at < ?1 LIMIT ?2";
    tx.execute(
        &format!("DELETE FROM messages WHERE id IN ({messages})"),
        params![now - subagents::KEPT_MS, most],
    )
}
/// A message without its words.
#[derive(Debug, Clone)]
pub(crate) struct Happened {
    pub(crate) id: i64,
    pub(crate) at: i64,
    pub(crate) place: Option<String>,
    pub(crate) conversation: i64,
    /// person, agent or handoff.
    pub(crate) kind: String,
    pub(crate) agent: Option<AgentUid>,
    pub(crate) person: Option<String>,
}

/// Messages behind a message, oldest first.
pub(crate) fn rows_after(
    connection: &Connection,
    id: i64,
    limit: u32,
) -> rusqlite::Result<Vec<Happened>> {
    let mut statement = connection.prepare_cached(
        "SELECT messages.id, messages.created_at, key, messages.conversation, kind, agent_uid, person
         FROM messages LEFT JOIN places ON places.id = place_id WHERE messages.id > ?1 ORDER BY messages.id LIMIT ?2",
    )?;
    let rows = statement.query_map(params![id, limit], |row| {
        let agent: Option<String> = row.get(5)?;
        let agent = agent.and_then(|uid| uuid::Uuid::parse_str(&uid).ok());
        Ok(Happened {
            id: row.get(0)?,
            at: row.get(1)?,
            place: row.get(2)?,
            conversation: row.get(3)?,
            kind: row.get(4)?,
            agent: agent.map(AgentUid),
            person: row.get(6)?,
        })
    })?;
    rows.collect()
}

/// Zero without messages.
pub(crate) fn newest_id(connection: &Connection) -> rusqlite::Result<i64> {
    let sql = "SELECT coalesce(max(id), 0) FROM messages";
    connection.query_row(sql, [], |row| row.get(0))
}
