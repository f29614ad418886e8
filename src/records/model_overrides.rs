//! Models chosen for places with `/model`: the `model_overrides` table, with a cache.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::config::ModelRef;
use crate::domain::{PersonId, SessionKey};
use crate::routing::places::{self, Twin};
use crate::storage::{Db, Remembered};

/// Chosen models by place. A chosen model may be unusable by now, so callers check.
pub(crate) type Overrides = Remembered<SessionKey, Option<ModelRef>>;

pub(crate) fn remembered(db: Db) -> Overrides {
    Remembered::new(db, load)
}

pub(crate) fn load(
    connection: &Connection,
    place: &SessionKey,
) -> rusqlite::Result<Option<ModelRef>> {
    let mut statement = connection.prepare_cached(
        "SELECT model FROM model_overrides WHERE place_id = (SELECT id FROM places WHERE key = ?1)",
    )?;
    let model: Option<String> = statement
        .query_row([place.to_string()], |row| row.get(0))
        .optional()?;
    Ok(model.and_then(|model| model.parse().ok()))
}

/// A chosen model with the person behind the choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Override {
    pub(crate) model: String,
    /// A person's id.
    pub(crate) set_by: String,
    pub(crate) set_at: i64,
}

/// The row of a place, also where the model is not known any more.
pub(crate) fn row(
    connection: &Connection,
    place: &SessionKey,
) -> rusqlite::Result<Option<Override>> {
    let mut statement = connection.prepare_cached(
        "SELECT model, set_by, set_at FROM model_overrides WHERE place_id = (SELECT id FROM places WHERE key = ?1)",
    )?;
    let read = |row: &Row<'_>| {
        Ok(Override {
            model: row.get(0)?,
            set_by: row.get(1)?,
            set_at: row.get(2)?,
        })
    };
    statement.query_row([place.to_string()], read).optional()
}

/// Gives another place the same model.
pub(crate) fn copy(tx: &Transaction<'_>, Twin { old, new }: Twin) -> rusqlite::Result<()> {
    tx.execute(
        "INSERT OR REPLACE INTO model_overrides (place_id, model, set_by, set_at)
         SELECT ?2, model, set_by, set_at FROM model_overrides WHERE place_id = ?1",
        params![old, new],
    )
    .map(drop)
}

/// Moves the model of a place to another place, in place of the other's own model.
pub(crate) fn carry(tx: &Transaction<'_>, twin: Twin) -> rusqlite::Result<()> {
    copy(tx, twin)?;
    let sql = "DELETE FROM model_overrides WHERE place_id = ?1";
    tx.execute(sql, [twin.old]).map(drop)
}

pub(crate) fn set(
    tx: &Transaction<'_>,
    place: &SessionKey,
    model: &ModelRef,
    by: &PersonId,
    now: i64,
) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached(
        "INSERT INTO model_overrides (place_id, model, set_by, set_at) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (place_id) DO UPDATE SET model = excluded.model, set_by = excluded.set_by, set_at = excluded.set_at",
    )?;
    statement
        .execute(params![
            places::ensure(tx, place, now)?,
            model.to_string(),
            by.to_string(),
            now
        ])
        .map(drop)
}

pub(crate) fn clear(tx: &Transaction<'_>, place: &SessionKey) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "DELETE FROM model_overrides WHERE place_id = (SELECT id FROM places WHERE key = ?1)",
    )?
    .execute([place.to_string()])
    .map(drop)
}
