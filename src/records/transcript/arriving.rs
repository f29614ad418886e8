//! Conversations from other systems, taken into the places where they were held.
//!
//! No platform of this house saw the words, so they are labelled as imported and have no role. A
//! place that people have used here is left alone.

use rusqlite::{Transaction, params};

use super::super::speakers;
use super::super::summaries::{self, Summary};
use super::super::view::View;
use super::Conversation;
use crate::access::numbers;
use crate::channels::name_line;
use crate::config::Switch;
use crate::domain::{AgentUid, Label, Labels, PersonId, SessionKey};
use crate::routing::places::{self, PlaceId};

/// A message of another system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arriving {
    pub(crate) speaker: Speaker,
    pub(crate) text: String,
    pub(crate) at: i64,
}

/// The author of a message from another system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Speaker {
    Agent,
    Person {
        id: Option<PersonId>,
        name: Option<String>,
    },
}

/// Where a conversation goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Into<'a> {
    /// The running conversation of a place, behind the older imported ones.
    Place(&'a SessionKey),
    /// More of the conversation taken in last.
    More(&'a SessionKey),
    /// A place of the agent alone, for exports. No turn reads the place.
    Archive { name: &'a str },
}

/// An older part of a conversation in few words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SummedUp<'a> {
    pub(crate) text: &'a str,
    /// The number of messages, from the first, covered by the summary.
    pub(crate) messages: usize,
}

/// Takes messages in and returns the key of their place. None, and nothing is written, if people
/// have used the place here.
pub(crate) fn arrive(
    tx: &Transaction<'_>,
    uid: AgentUid,
    into: Into<'_>,
    (messages, summary): (&[Arriving], Option<SummedUp<'_>>),
    now: i64,
) -> rusqlite::Result<Option<SessionKey>> {
    let key = match into {
        Into::Place(key) | Into::More(key) => key.clone(),
        Into::Archive { .. } => archive_key(tx, uid)?,
    };
    let place = places::ensure(tx, &key, now)?;
    if is_used(tx, place)? {
        return Ok(None);
    }
    match into {
        Into::Place(_) => begin_another(tx, place)?,
        Into::More(_) => {}
        Into::Archive { name } => {
            let sql = "UPDATE places SET name = ?2 WHERE id = ?1";
            tx.execute(sql, params![place, name])?;
        }
    }
    let sql = "SELECT conversation FROM places WHERE id = ?1";
    let conversation = Conversation(tx.query_row(sql, [place], |row| row.get(0))?);
    let mut ids = Vec::with_capacity(messages.len());
    for message in messages {
        ids.push(insert(tx, uid, (place, conversation), message)?);
    }
    if let Some((summed_up, upto)) = summary.and_then(|summary| {
        let last = summary.messages.checked_sub(1)?;
        Some((summary, *ids.get(last)?))
    }) {
        let summary = Summary {
            text: summed_up.text.to_owned(),
            upto,
            messages: i64::try_from(summed_up.messages).unwrap_or(i64::MAX),
            labels: Labels::from(Label::Imported),
        };
        for switch in [Switch::Handoff, Switch::Separate] {
            let view = View::of(switch, uid);
            summaries::keep(tx, &key, (conversation, view), uid, &summary, now)?;
        }
    }
    // Lists of places show places with a time of their last use, and never an archive.
    if let (Into::Place(_) | Into::More(_), Some(last)) = (into, messages.last()) {
        let sql = "UPDATE places SET active_at = max(coalesce(active_at, 0), ?2) WHERE id = ?1";
        tx.execute(sql, params![place, last.at])?;
    }
    Ok(Some(key))
}

/// Whether the place has messages besides imported ones, or waits for an answer.
fn is_used(tx: &Transaction<'_>, place: PlaceId) -> rusqlite::Result<bool> {
    tx.query_row(
        "SELECT EXISTS (SELECT 1 FROM messages WHERE place_id = ?1 AND labels IS NOT ?2)
             OR EXISTS (SELECT 1 FROM inbox WHERE place_id = ?1 AND state = 'waiting')",
        params![place, Labels::from(Label::Imported).bits()],
        |row| row.get(0),
    )
}

/// The conversations before stay readable, as after /new.
fn begin_another(tx: &Transaction<'_>, place: PlaceId) -> rusqlite::Result<()> {
    tx.execute(
        "UPDATE places SET conversation = conversation + 1
         WHERE id = ?1 AND EXISTS (SELECT 1 FROM messages WHERE place_id = ?1 AND conversation = places.conversation)",
        [place],
    )
    .map(drop)
}

fn archive_key(tx: &Transaction<'_>, uid: AgentUid) -> rusqlite::Result<SessionKey> {
    let sql = "SELECT count(*) FROM places WHERE key GLOB ?1";
    let count: u32 = tx.query_row(sql, [SessionKey::imports_of(uid)], |row| row.get(0))?;
    let number = count.saturating_add(1);
    Ok(SessionKey::Import { agent: uid, number })
}

fn insert(
    tx: &Transaction<'_>,
    uid: AgentUid,
    (place, conversation): (PlaceId, Conversation),
    message: &Arriving,
) -> rusqlite::Result<i64> {
    let (kind, agent, person, name) = match &message.speaker {
        Speaker::Agent => ("agent", Some(uid.to_string()), None, None),
        Speaker::Person { id, name } => {
            if let Some(id) = id {
                numbers::ensure(tx, id)?;
            }
            let name = name.as_deref().map(name_line);
            if let Some(id) = id {
                let name = name.as_deref().unwrap_or_default();
                speakers::heard(tx, &id.to_string(), name, message.at)?;
            }
            ("person", None, id.as_ref().map(ToString::to_string), name)
        }
    };
    let mut statement = tx.prepare_cached(
        "INSERT INTO messages (place_id, conversation, kind, agent_uid, part_uid, person, person_name, text, sent_at, created_at, labels)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10)",
    )?;
    statement.insert(params![
        place,
        conversation.number(),
        kind,
        agent,
        uid.to_string(),
        person,
        name,
        message.text,
        message.at,
        Labels::from(Label::Imported).bits()
    ])
}
