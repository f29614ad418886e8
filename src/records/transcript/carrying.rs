//! Copies a conversation to another place, or moves everything said in a place to another.

use rusqlite::{Transaction, params};

use super::super::summaries;
use crate::routing::places::{PlaceId, Twin};

/// Copies the current conversation into the first conversation of a new place, with its summaries.
/// Returns the number of messages. No turn of the new place stands behind the copies. They keep the
/// platform's ids, so that a message deleted there is taken out of the copy too.
pub(crate) fn copy(tx: &Transaction<'_>, Twin { old, new }: Twin) -> rusqlite::Result<usize> {
    let running = conversation_of(tx, old)?;
    let count = tx.execute(
        "INSERT INTO messages (place_id, conversation, kind, agent_uid, part_uid, person, person_name, role, around, text,
                               meta_json, written_as, observed, sent_at, created_at, deleted_at, labels)
         SELECT ?2, (SELECT conversation FROM places WHERE id = ?2), kind, agent_uid, part_uid, person, person_name, role,
                around, text, meta_json, written_as, observed, sent_at, created_at, deleted_at, labels
         FROM messages WHERE place_id = ?1 AND conversation = ?3 ORDER BY id",
        params![old, new, running],
    )?;
    summaries::copy(tx, Twin { old, new }, running)?;
    Ok(count)
}

/// Moves everything said in a place to another, behind the conversations that are over there. The
/// old place begins a new conversation. Returns the number of messages.
pub(crate) fn move_all(tx: &Transaction<'_>, Twin { old, new }: Twin) -> rusqlite::Result<usize> {
    let (in_old, in_new) = (conversation_of(tx, old)?, conversation_of(tx, new)?);
    let has_past: bool = tx.query_row(
        "SELECT EXISTS (SELECT 1 FROM messages WHERE place_id = ?1)",
        [new],
        |row| row.get(0),
    )?;
    let offset = if has_past { in_new } else { 0 };
    summaries::move_all(tx, Twin { old, new }, offset)?;
    let count = tx.execute(
        "UPDATE messages SET place_id = ?2, conversation = conversation + ?3 WHERE place_id = ?1",
        params![old, new, offset],
    )?;
    tx.execute(
        "UPDATE places SET conversation = ?3,
             active_at = max(coalesce(active_at, 0), coalesce((SELECT active_at FROM places WHERE id = ?1), 0))
         WHERE id = ?2",
        params![old, new, in_old + offset],
    )?;
    tx.execute(
        "UPDATE places SET conversation = conversation + 1, active_at = NULL WHERE id = ?1",
        [old],
    )?;
    Ok(count)
}

fn conversation_of(tx: &Transaction<'_>, place: PlaceId) -> rusqlite::Result<i64> {
    let sql = "SELECT conversation FROM places WHERE id = ?1";
    tx.query_row(sql, [place], |row| row.get(0))
}
