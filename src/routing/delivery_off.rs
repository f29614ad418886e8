//! Places where delivery is switched off: the `delivery_off` table. Answers there are written and
//! kept, and sent once delivery is on again.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::DeliveryOff;
use super::places::{self, PlaceId};
use crate::domain::SessionKey;

pub(crate) fn load(
    connection: &Connection,
    place: &SessionKey,
) -> rusqlite::Result<Option<DeliveryOff>> {
    let mut statement = connection.prepare_cached(
        "SELECT set_by, set_by_name, set_at FROM delivery_off
         WHERE place_id = (SELECT id FROM places WHERE key = ?1)",
    )?;
    let row = statement.query_row([place.to_string()], |row| {
        Ok(DeliveryOff {
            by: row.get(0)?,
            by_name: row.get(1)?,
            at: row.get(2)?,
        })
    });
    row.optional()
}

/// All places where delivery is off.
pub(super) fn everywhere(connection: &Connection) -> rusqlite::Result<Vec<(PlaceId, DeliveryOff)>> {
    let mut statement = connection
        .prepare_cached("SELECT place_id, set_by, set_by_name, set_at FROM delivery_off")?;
    let rows = statement.query_map([], |row| {
        let off = DeliveryOff {
            by: row.get(1)?,
            by_name: row.get(2)?,
            at: row.get(3)?,
        };
        Ok((row.get(0)?, off))
    })?;
    rows.collect()
}

pub(crate) fn is_off(connection: &Connection, place: &SessionKey) -> rusqlite::Result<bool> {
    load(connection, place).map(|found| found.is_some())
}

/// Switches the delivery of a place off. A second call keeps the name of the first person.
pub(crate) fn set(
    tx: &Transaction<'_>,
    place: &SessionKey,
    off: &DeliveryOff,
) -> rusqlite::Result<()> {
    let place = places::ensure(tx, place, off.at)?;
    tx.prepare_cached(
        "INSERT OR IGNORE INTO delivery_off (place_id, set_by, set_by_name, set_at) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![place, off.by, off.by_name, off.at])
    .map(drop)
}

pub(crate) fn clear(tx: &Transaction<'_>, place: &SessionKey) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "DELETE FROM delivery_off WHERE place_id = (SELECT id FROM places WHERE key = ?1)",
    )?
    .execute([place.to_string()])
    .map(drop)
}
