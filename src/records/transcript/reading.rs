//! The transcript as an operator reads it: of every place, in every conversation.
//!
//! Nothing here is for a turn. A turn reads its own place, through a `View`.

use rusqlite::{Connection, Row, params};
use serde_json::Value;

use super::{SAID, SAID_FROM, labels, said, searched};
use crate::domain::{AgentUid, Labels, Said, SessionKey};
use crate::routing::places;

/// The conversations of a place that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Since the last /new.
    Current,
    All,
}

/// A message with everything that is kept about it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) id: i64,
    pub(crate) conversation: i64,
    pub(crate) said: Said,
    /// By the platform's clock where it told one.
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

/// Messages of all places with all of these words, newest first. With an agent: those of its part
/// of each conversation.
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
