//! Undelivered answers and their retry: the failed rows of the `outbox` table.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row, Transaction, params};

use super::outbox::{DELIVERY_IS_OFF, IS_KEPT};
use crate::domain::SessionKey;
use crate::routing::places;

/// A selection of undelivered rows.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Which {
    All,
    /// Includes the parts of a whole group.
    Place(SessionKey),
    Row(i64),
}

/// A row given up. Its text is still in the outbox.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Undelivered {
    pub id: i64,
    pub place: SessionKey,
    pub kind: String,
    pub error: String,
    /// Unix milliseconds.
    pub created_at: i64,
    /// A retry is already asked for: the next start sends the row again.
    pub retry_at_start: bool,
    /// Kept because delivery is off in the place; sent once it is on.
    pub is_kept: bool,
}

/// When rows are sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// The caller is the running gateway and submits the rows.
    Now,
    /// The caller is another process, so the row counts of a running gateway stay untouched.
    AtNextStart,
}

/// Oldest first.
pub(crate) fn list(connection: &Connection, which: &Which) -> rusqlite::Result<Vec<Undelivered>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT outbox.id, key, kind, coalesce(error, ''), outbox.created_at, retry_at_start, {IS_KEPT}
         FROM outbox JOIN places ON places.id = place_id WHERE state = 'failed' ORDER BY outbox.id"
    ))?;
    let rows = statement
        .query_map([], undelivered)?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(rows
        .into_iter()
        .flatten()
        .filter(|row| which.covers(row))
        .collect())
}

fn undelivered(row: &Row<'_>) -> rusqlite::Result<Option<Undelivered>> {
    let Ok(place) = row.get::<_, String>(1)?.parse() else {
        return Ok(None);
    };
    Ok(Some(Undelivered {
        id: row.get(0)?,
        place,
        kind: row.get(2)?,
        error: row.get(3)?,
        created_at: row.get(4)?,
        retry_at_start: row.get(5)?,
        is_kept: row.get(6)?,
    }))
}

impl Which {
    fn covers(&self, row: &Undelivered) -> bool {
        match self {
            Which::All => true,
            Which::Place(place) => {
                row.place == *place || row.place.whole_group().as_ref() == Some(place)
            }
            Which::Row(id) => row.id == *id,
        }
    }
}

/// Puts failed rows back into the queue with fresh counters. Only `repeated` keeps its value. Rows
/// that are kept stay kept.
pub(crate) fn retry(
    tx: &Transaction<'_>,
    rows: &[Undelivered],
    when: When,
    now: i64,
) -> rusqlite::Result<()> {
    let sql = match when {
        When::Now => {
            "UPDATE outbox SET state = 'waiting', attempts = 0, not_before = 0, wait_ms = 0, tried_ms = 0, error = NULL,
                               retry_at_start = 0, created_at = ?2
             WHERE id = ?1 AND state = 'failed'"
        }
        When::AtNextStart => "UPDATE outbox SET retry_at_start = 1 WHERE id = ?1 AND state = 'failed' AND ?2 > 0",
    };
    let mut statement = tx.prepare_cached(sql)?;
    rows.iter()
        .filter(|row| !row.is_kept)
        .try_for_each(|row| statement.execute(params![row.id, now]).map(drop))
}

/// Puts the rows of a place that were kept back into the queue, when delivery is on again.
pub(crate) fn release(tx: &Transaction<'_>, place: &SessionKey, now: i64) -> rusqlite::Result<()> {
    let sql = "UPDATE outbox SET state = 'waiting', error = NULL, retry_at_start = 0, created_at = ?3
               WHERE state = 'failed' AND error = ?2 AND place_id = (SELECT id FROM places WHERE key = ?1)";
    tx.prepare_cached(sql)?
        .execute(params![place.to_string(), DELIVERY_IS_OFF, now])
        .map(drop)
}

/// Deletes rows for good. Safe beside a running gateway, because the gateway does not touch failed
/// rows.
pub(crate) fn forget(tx: &Transaction<'_>, rows: &[Undelivered]) -> rusqlite::Result<()> {
    let mut statement =
        tx.prepare_cached("DELETE FROM outbox WHERE id = ?1 AND state = 'failed'")?;
    rows.iter()
        .try_for_each(|row| statement.execute([row.id]).map(drop))
}

/// Retries the rows whose retry was asked for while no gateway ran.
pub(super) fn retry_asked(tx: &Transaction<'_>, now: i64) -> rusqlite::Result<()> {
    let asked: Vec<Undelivered> = list(tx, &Which::All)?
        .into_iter()
        .filter(|row| row.retry_at_start)
        .collect();
    retry(tx, &asked, When::Now, now)
}

/// The number of rows per place that a retry sends.
pub(crate) fn by_place(rows: &[Undelivered]) -> BTreeMap<SessionKey, usize> {
    let mut counts = BTreeMap::new();
    rows.iter()
        .filter(|row| !row.is_kept)
        .for_each(|row| *counts.entry(row.place.clone()).or_default() += 1);
    counts
}

/// Whether no other failed row of the place has the same error.
pub(super) fn is_first(
    tx: &Transaction<'_>,
    id: i64,
    place: &SessionKey,
    error: &str,
) -> rusqlite::Result<bool> {
    let mut statement =
        tx.prepare_cached("SELECT count(*) FROM outbox WHERE state = 'failed' AND place_id = ?1 AND id <> ?2 AND error = ?3")?;
    statement
        .query_row(params![places::id(tx, place)?, id, error], |row| {
            row.get::<_, i64>(0)
        })
        .map(|others| others == 0)
}
