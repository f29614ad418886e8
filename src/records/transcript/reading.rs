//! The operator's view of the transcript: of every place, in every conversation.
//!
//! Nothing here is for a turn. A turn reads its own place, through a `View`.

use std::collections::HashMap;

use rusqlite::{Connection, Row, params};
use serde_json::Value;

use super::{SAID, SAID_FROM, labels, said, searched};
use crate::domain::{AgentUid, Labels, PersonId, Said, SessionKey};
use crate::routing::places;

/// The wanted conversations of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Since the last /new.
    Current,
    All,
}

/// A message with all its columns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) id: i64,
    pub(crate) conversation: i64,
    pub(crate) said: Said,
    /// The time by the platform's clock, if known.
    pub(crate) at: i64,
    pub(crate) stored_at: i64,
    /// Talk among people.
    pub(crate) is_observed: bool,
    pub(crate) inbox_id: Option<i64>,
    /// The platform's ids of the message.
    pub(crate) written_as: Vec<String>,
    pub(crate) labels: Labels,
    pub(crate) meta: Value,
}

/// The newest messages of a place, oldest first.
pub(crate) fn entries(
    connection: &Connection,
    place: &SessionKey,
    extent: Extent,
    limit: u32,
) -> rusqlite::Result<Vec<Entry>> {
    let which = match extent {
        Extent::Current => {
            "AND messages.conversation = (SELECT conversation FROM places WHERE id = ?1)"
        }
        Extent::All => "",
    };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {SAID}, {KEPT} FROM {SAID_FROM} WHERE place_id = ?1 {which}
         ORDER BY messages.conversation DESC, messages.id DESC LIMIT ?2"
    ))?;
    let rows = statement.query_map(params![places::id(connection, place)?, limit], |row| {
        entry(row, place)
    })?;
    let mut entries = rows.collect::<rusqlite::Result<Vec<Entry>>>()?;
    entries.reverse();
    Ok(entries)
}

/// Messages of all places with all of these words, newest first. With an agent: only its part of
/// each conversation.
pub(crate) fn search_everywhere(
    connection: &Connection,
    words: &[String],
    agent: Option<AgentUid>,
    limit: u32,
) -> rusqlite::Result<Vec<(SessionKey, Entry)>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {SAID}, {KEPT}, places.key AS place FROM {SAID_FROM} JOIN places ON places.id = place_id
         WHERE deleted_at IS NULL AND (?1 IS NULL OR part_uid = ?1) ORDER BY messages.id DESC"
    ))?;
    let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let mut rows = statement.query([agent.map(|uid| uid.to_string())])?;
    let mut found = Vec::new();
    while found.len() < usize::try_from(limit).unwrap_or(usize::MAX) {
        let Some(row) = rows.next()? else { break };
        let Ok(place) = row.get::<_, String>("place")?.parse::<SessionKey>() else {
            continue;
        };
        let entry = entry(row, &place)?;
        let text = searched(&entry.said).to_lowercase();
        if words.iter().all(|word| text.contains(word.as_str())) {
            found.push((place, entry));
        }
    }
    Ok(found)
}

const KEPT: &str = "messages.conversation AS conversation, messages.observed AS observed, messages.inbox_id AS inbox_id,
    messages.written_as AS written_as, messages.meta_json AS meta_json";

fn entry(row: &Row<'_>, place: &SessionKey) -> rusqlite::Result<Entry> {
    let written_as = row.get::<_, Option<String>>("written_as")?;
    let meta = row.get::<_, String>("meta_json")?;
    Ok(Entry {
        id: row.get("id")?,
        conversation: row.get("conversation")?,
        said: said(row, place)?,
        at: row.get("sent_at")?,
        stored_at: row.get("created_at")?,
        is_observed: row.get("observed")?,
        inbox_id: row.get("inbox_id")?,
        written_as: written_as
            .unwrap_or_default()
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
        labels: labels(row)?,
        meta: serde_json::from_str(&meta).unwrap_or(Value::Null),
    })
}

/// The latest messages of people: by place, writer and time, their words.
pub(crate) fn latest_words(
    connection: &Connection,
    limit: usize,
) -> rusqlite::Result<HashMap<(SessionKey, PersonId, i64), String>> {
    let mut statement = connection.prepare_cached(
        "SELECT key, person, coalesce(sent_at, messages.created_at), text FROM messages
         JOIN places ON places.id = place_id
         WHERE kind = 'person' AND person IS NOT NULL AND deleted_at IS NULL
         ORDER BY messages.id DESC LIMIT ?1",
    )?;
    let rows = statement.query_map([i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
        let key = row.get::<_, String>(0)?.parse().ok();
        let person = row.get::<_, String>(1)?.parse().ok();
        let (at, text) = (row.get(2)?, row.get(3)?);
        Ok(key
            .zip(person)
            .map(|(key, person)| ((key, person, at), text)))
    })?;
    rows.filter_map(Result::transpose).collect()
}
