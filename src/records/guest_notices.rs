//! Messages to owners and admins about waiting guests: the `guest_notices` table.

use rusqlite::{Connection, Transaction, params};

use crate::domain::{MessageId, SessionKey};

/// A message about a guest, with buttons to decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) outbox_id: i64,
    pub(crate) place: SessionKey,
    /// Absent before the message is sent.
    pub(crate) message: Option<MessageId>,
}

/// Up to this many guests within [`COUNTED_MS`] have a notice each.
const MOST_BY_NAME: i64 = 5;
/// The span for counting notices.
const COUNTED_MS: i64 = 60 * 60 * 1000;
/// Notices are kept for longer than any code is open.
const KEPT_MS: i64 = 24 * 60 * 60 * 1000;

/// The content of a notice about a new guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Telling {
    ByName,
    /// Many have asked, so the message counts the waiting guests.
    Count,
    /// A count was told, and has not doubled since.
    Nothing,
}

/// `waiting` guests have an open code, the new guest among them.
pub(crate) fn telling(
    connection: &Connection,
    waiting: i64,
    now: i64,
) -> rusqlite::Result<Telling> {
    let since = now - COUNTED_MS;
    let by_name: i64 = connection
        .prepare_cached("SELECT count(DISTINCT code) FROM guest_notices WHERE created_at > ?1")?
        .query_row([since], |row| row.get(0))?;
    if by_name < MOST_BY_NAME {
        return Ok(Telling::ByName);
    }
    let told: Option<i64> = connection
        .prepare_cached(
            "SELECT max(waiting) FROM guest_notices WHERE created_at > ?1 AND code IS NULL",
        )?
        .query_row([since], |row| row.get(0))?;
    Ok(match told {
        Some(told) if waiting < told.saturating_mul(2) => Telling::Nothing,
        _ => Telling::Count,
    })
}

/// Notes the outbox rows of a notice. Without a code the notice only counts.
pub(crate) fn note(
    tx: &Transaction<'_>,
    code: Option<&str>,
    rows: &[i64],
    waiting: i64,
    now: i64,
) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached(
        "INSERT INTO guest_notices (outbox_id, code, waiting, created_at) VALUES (?1, ?2, ?3, ?4)",
    )?;
    rows.iter().try_for_each(|row| {
        statement
            .execute(params![row, code, waiting, now])
            .map(drop)
    })
}

/// Whether somebody was asked about this code.
pub(crate) fn is_known(connection: &Connection, code: &str) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM guest_notices WHERE code = ?1")?
        .exists([code])
}

/// The notices with buttons for this code.
pub(crate) fn of_code(connection: &Connection, code: &str) -> rusqlite::Result<Vec<Notice>> {
    let mut statement = connection.prepare_cached(
        "SELECT outbox_id, key, message_id FROM guest_notices JOIN outbox ON outbox.id = outbox_id
         JOIN places ON places.id = place_id WHERE code = ?1 ORDER BY outbox_id",
    )?;
    let rows = statement.query_map([code], |row| {
        Ok((row.get(0)?, row.get::<_, String>(1)?, row.get(2)?))
    })?;
    let found = rows.collect::<rusqlite::Result<Vec<(i64, String, Option<String>)>>>()?;
    Ok(found
        .into_iter()
        .filter_map(|(outbox_id, place, message)| {
            Some(Notice {
                outbox_id,
                place: place.parse().ok()?,
                message: message.map(MessageId),
            })
        })
        .collect())
}

/// Forgets the notice whose button was pressed, because the reply to the press takes its place.
pub(crate) fn forget_pressed(
    tx: &Transaction<'_>,
    place: &SessionKey,
    message: &MessageId,
) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "DELETE FROM guest_notices WHERE outbox_id IN
         (SELECT outbox_id FROM guest_notices JOIN outbox ON outbox.id = outbox_id
          WHERE message_id = ?2 AND place_id = (SELECT id FROM places WHERE key = ?1))",
    )?
    .execute(params![place.to_string(), message.0])
    .map(drop)
}

pub(crate) fn forget_old(tx: &Transaction<'_>, now: i64, most: u32) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM guest_notices WHERE outbox_id IN
               (SELECT outbox_id FROM guest_notices WHERE created_at < ?1 LIMIT ?2)";
    tx.execute(sql, params![now - KEPT_MS, most])
}
