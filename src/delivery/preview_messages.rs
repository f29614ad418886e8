//! The `preview_messages` table: messages showing unfinished answers. Rows are written before the
//! answer is complete, so the final answer edits these messages, also after a restart.

use rusqlite::{Connection, Transaction, params};

use crate::domain::{MessageId, SessionKey};
use crate::fail_points::{self, Write};
use crate::routing::places::{self, PlaceId};

/// A message showing a part of an answer.
#[derive(Clone)]
pub(super) struct Shown {
    pub(super) inbox_id: i64,
    /// The number of the part, from 0.
    pub(super) number: u32,
    pub(super) place: SessionKey,
    pub(super) message: MessageId,
}

pub(super) fn note(tx: &Transaction<'_>, shown: &Shown, now: i64) -> rusqlite::Result<()> {
    fail_points::writes(Write::Preview);
    let mut statement = tx.prepare_cached(
        "INSERT INTO preview_messages (inbox_id, number, place_id, message_id, created_at) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (inbox_id, number) DO UPDATE SET place_id = excluded.place_id, message_id = excluded.message_id,
             created_at = excluded.created_at",
    )?;
    statement
        .execute(params![
            shown.inbox_id,
            shown.number,
            places::ensure(tx, &shown.place, now)?,
            shown.message.0,
            now
        ])
        .map(drop)
}

/// The messages on the screen, in the order of the parts they show.
pub(crate) fn of(connection: &Connection, inbox_id: i64) -> rusqlite::Result<Vec<MessageId>> {
    let mut statement = connection.prepare_cached(
        "SELECT message_id FROM preview_messages WHERE inbox_id = ?1 ORDER BY number",
    )?;
    statement
        .query_map([inbox_id], |row| row.get(0).map(MessageId))?
        .collect()
}

/// Like [`of`], and deletes the rows: the messages now belong to the caller.
pub(super) fn take(tx: &Transaction<'_>, inbox_id: i64) -> rusqlite::Result<Vec<MessageId>> {
    let messages = of(tx, inbox_id)?;
    if !messages.is_empty() {
        tx.prepare_cached("DELETE FROM preview_messages WHERE inbox_id = ?1")?
            .execute([inbox_id])?;
    }
    Ok(messages)
}

/// Forgets the messages in a place whose group moved: the supergroup numbers its messages anew.
pub(super) fn forget_in(tx: &Transaction<'_>, place: PlaceId) -> rusqlite::Result<()> {
    tx.execute("DELETE FROM preview_messages WHERE place_id = ?1", [place])
        .map(drop)
}

pub(crate) fn forget_old(tx: &Transaction<'_>, now: i64, most: u32) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM preview_messages WHERE (inbox_id, number) IN
                   (SELECT inbox_id, number FROM preview_messages WHERE created_at < ?1 LIMIT ?2)";
    tx.execute(sql, params![now - KEPT_MS, most])
}

/// An answer unfinished for this long never will be.
const KEPT_MS: i64 = 14 * 24 * 60 * 60 * 1000;
