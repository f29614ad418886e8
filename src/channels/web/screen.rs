//! The table `web_screen`: what was said in the places of the web chat.

use rusqlite::{Connection, OptionalExtension, Row as SqlRow, Transaction, params};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::files::Stored;
use crate::domain::{AgentUid, MessageId, SessionKey};
use crate::routing::places;

/// A message on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) id: i64,
    pub(crate) place: SessionKey,
    /// The id that the browser gave to a line, or the ticket of a delivery.
    pub(crate) message: String,
    pub(crate) body: Body,
    pub(crate) at: i64,
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Body {
    pub(crate) speaker: Speaker,
    /// Markdown.
    pub(crate) text: String,
    /// The line that is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) answers: Option<MessageId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) buttons: Vec<Button>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<Stored>,
    /// What people call the topic, with its first line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) topic_name: Option<String>,
}

/// The author of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Speaker {
    /// By name.
    Person(String),
    /// By label: emoji and name.
    Agent(String),
    Gateway,
}

/// A command to choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChatButton)]
pub(crate) struct Button {
    pub(crate) label: String,
    pub(crate) command: String,
}

impl Body {
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers are JSON")
    }

    pub(super) fn from_json(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }
}

/// Writes a message. The same id again changes nothing.
pub(super) fn add(
    tx: &Transaction<'_>,
    place: &SessionKey,
    (message, is_new): (&str, bool),
    body: &Body,
    now: i64,
) -> rusqlite::Result<()> {
    let place = places::ensure(tx, place, now)?;
    let sql = "INSERT INTO web_screen (place_id, message_id, body, is_new, at) VALUES (?1, ?2, ?3, ?4, ?5)
               ON CONFLICT (message_id) DO NOTHING";
    let mut statement = tx.prepare_cached(sql)?;
    statement
        .execute(params![place, message, body.to_json(), is_new, now])
        .map(drop)
}

/// Writes messages of another place, so that a copied conversation can be read: speaker, Markdown and
/// time of each.
pub(crate) fn show(
    tx: &Transaction<'_>,
    place: &SessionKey,
    messages: impl Iterator<Item = (Speaker, String, i64)>,
) -> rusqlite::Result<()> {
    for (number, (speaker, text, at)) in messages.enumerate() {
        let body = Body {
            speaker,
            text,
            answers: None,
            buttons: Vec::new(),
            files: Vec::new(),
            topic_name: None,
        };
        let message = format!("copied:{place}:{number}");
        add(tx, place, (&message, false), &body, at)?;
    }
    Ok(())
}

/// Lines that were not taken in yet, oldest first.
pub(super) fn waiting(connection: &Connection, most: u32) -> rusqlite::Result<Vec<Row>> {
    let sql = format!("{COLUMNS} WHERE is_new = 1 ORDER BY web_screen.id LIMIT ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([most], read)?;
    rows.filter_map(Result::transpose).collect()
}

/// The lines up to an id are in the inbox.
pub(super) fn taken(tx: &Transaction<'_>, upto: i64) -> rusqlite::Result<()> {
    let sql = "UPDATE web_screen SET is_new = 0 WHERE is_new = 1 AND id <= ?1";
    tx.execute(sql, [upto]).map(drop)
}

pub(super) fn after(connection: &Connection, id: i64, most: u32) -> rusqlite::Result<Vec<Row>> {
    let sql = format!("{COLUMNS} WHERE web_screen.id > ?1 ORDER BY web_screen.id LIMIT ?2");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params![id, most], read)?;
    rows.filter_map(Result::transpose).collect()
}

pub(super) fn before(
    connection: &Connection,
    place: &SessionKey,
    before: i64,
    most: u32,
) -> rusqlite::Result<Vec<Row>> {
    let Some(place) = places::id(connection, place)? else {
        return Ok(Vec::new());
    };
    let sql = format!(
        "{COLUMNS} WHERE place_id = ?1 AND web_screen.id < ?2 ORDER BY web_screen.id DESC LIMIT ?3"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params![place, before, most], read)?;
    let mut rows: Vec<Row> = rows
        .filter_map(Result::transpose)
        .collect::<rusqlite::Result<_>>()?;
    rows.reverse();
    Ok(rows)
}

/// The last message of each place, the latest first.
pub(super) fn latest(connection: &Connection) -> rusqlite::Result<Vec<Row>> {
    let sql = format!(
        "{COLUMNS} WHERE web_screen.id IN (SELECT max(id) FROM web_screen GROUP BY place_id)
         ORDER BY web_screen.id DESC"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([], read)?;
    rows.filter_map(Result::transpose).collect()
}

pub(super) fn newest(connection: &Connection) -> rusqlite::Result<i64> {
    let newest = connection
        .query_row("SELECT max(id) FROM web_screen", [], |row| row.get(0))
        .optional()?;
    Ok(newest.flatten().unwrap_or(0))
}

/// Deletes an agent's words, and all words in places where no other agent ever answered. The
/// transcript tells whose words they are, so it must still have them.
pub(crate) fn purge(tx: &Transaction<'_>, uid: AgentUid) -> rusqlite::Result<()> {
    let sql = "DELETE FROM web_screen WHERE place_id IN (
                   SELECT place_id FROM messages WHERE agent_uid = ?1
                   EXCEPT SELECT place_id FROM messages WHERE agent_uid <> ?1)
               OR json_extract(body, '$.text') IN (
                   SELECT text FROM messages WHERE agent_uid = ?1 AND messages.place_id = web_screen.place_id)";
    tx.execute(sql, [uid.to_string()]).map(drop)
}

const COLUMNS: &str = "SELECT web_screen.id, key, message_id, body, at
                       FROM web_screen JOIN places ON places.id = place_id";

/// None for a row of another version that cannot be read.
fn read(row: &SqlRow<'_>) -> rusqlite::Result<Option<Row>> {
    let (place, body) = (row.get::<_, String>(1)?, row.get::<_, String>(3)?);
    let (Ok(place), Ok(body)) = (place.parse(), Body::from_json(&body)) else {
        return Ok(None);
    };
    Ok(Some(Row {
        id: row.get(0)?,
        place,
        message: row.get(2)?,
        body,
        at: row.get(4)?,
    }))
}
