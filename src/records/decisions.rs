//! Decisions about messages in busy places: the `decisions` table and a line in the log.

use rusqlite::{Connection, Transaction, params};

use crate::domain::SessionKey;
use crate::routing::places;
use crate::telemetry;

/// Decisions are kept this long.
const KEPT_MS: i64 = 14 * 24 * 60 * 60 * 1000;

/// A decision about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The turn of this message was parked for newer messages.
    Parked,
    /// The turn of this message was parked until people have decided about a call.
    Asked,
    /// This message was answered while a turn was parked.
    Steered,
    /// This message and others waited, and are answered together.
    Drained { count: usize },
    /// The parked turn of this message goes on.
    Resumed,
    /// The turn of this message goes on after a restart.
    Recovered,
    /// A person stopped the turn of this message.
    Stopped,
}

impl Decision {
    fn describe(self) -> String {
        match self {
            Decision::Parked => "set aside for newer messages".into(),
            Decision::Asked => "waits for an approval".into(),
            Decision::Steered => "answered during another task".into(),
            Decision::Drained { count } => format!("{count} waiting messages answered together"),
            Decision::Resumed => "resumed".into(),
            Decision::Recovered => "resumed after a restart".into(),
            Decision::Stopped => "stopped on request".into(),
        }
    }
}

pub(crate) fn note(
    tx: &Transaction<'_>,
    place: &SessionKey,
    inbox_id: i64,
    decision: Decision,
    now: i64,
) -> rusqlite::Result<()> {
    let what = decision.describe();
    tracing::info!(target: telemetry::DETAIL, { session = %place, inbox.id = inbox_id, decision = ?decision }, "{what}");
    let place = places::ensure(tx, place, now)?;
    tx.prepare_cached(
        "INSERT INTO decisions (place_id, inbox_id, what, at) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![place, inbox_id, what, now])
    .map(drop)
}

/// The newest decisions of a place with their times, newest first.
pub(crate) fn latest(
    connection: &Connection,
    place: &SessionKey,
    limit: u32,
) -> rusqlite::Result<Vec<(String, i64)>> {
    let mut statement = connection.prepare_cached(
        "SELECT what, at FROM decisions WHERE place_id = ?1 ORDER BY id DESC LIMIT ?2",
    )?;
    let rows = statement.query_map(params![places::id(connection, place)?, limit], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    rows.collect()
}

pub(crate) fn forget_old(tx: &Transaction<'_>, now: i64, most: u32) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM decisions WHERE id IN (SELECT id FROM decisions WHERE at < ?1 LIMIT ?2)";
    tx.execute(sql, params![now - KEPT_MS, most])
}
