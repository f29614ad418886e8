//! Names of topics: a column of the `places` table, with a cache in memory.
//!
//! Telegram has no call for a topic's name. The name comes with the making or renaming of a topic,
//! and with messages that are no replies, so every name is stored when seen.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::places;
use crate::domain::{Origin, SessionKey};
use crate::printable::printable_line;
use crate::storage::{Db, Remembered, StoreError};

/// Names by place.
pub(crate) type Names = Remembered<SessionKey, Option<String>>;

pub(crate) fn remembered(db: Db) -> Names {
    Remembered::new(db, load)
}

/// Gives the origin its topic's name, if known.
pub(crate) async fn complete(names: &Names, origin: &mut Origin) -> Result<(), StoreError> {
    if origin.name.is_none() && has_topics(&origin.key) {
        origin.name = names.get(&origin.key).await?;
    }
    Ok(())
}

/// Places with a possible name of their own.
fn has_topics(place: &SessionKey) -> bool {
    matches!(
        place,
        SessionKey::TelegramTopic { .. }
            | SessionKey::TelegramDm { topic: Some(_), .. }
            | SessionKey::DiscordThread { .. }
            | SessionKey::Web { topic: Some(_), .. }
    )
}

pub(crate) fn load(
    connection: &Connection,
    place: &SessionKey,
) -> rusqlite::Result<Option<String>> {
    let mut statement = connection.prepare_cached("SELECT name FROM places WHERE key = ?1")?;
    Ok(statement
        .query_row([place.to_string()], |row| row.get(0))
        .optional()?
        .flatten())
}

/// The names of all places with a name.
pub(crate) fn all(connection: &Connection) -> rusqlite::Result<Vec<(SessionKey, String)>> {
    let mut statement =
        connection.prepare_cached("SELECT key, name FROM places WHERE name IS NOT NULL")?;
    let rows = statement.query_map([], |row| {
        let key = row.get::<_, String>(0)?.parse().ok();
        Ok(key.zip(row.get(1)?))
    })?;
    rows.filter_map(Result::transpose).collect()
}

/// Stores the name, in a single printable line; true for a new name.
pub(crate) fn learn(
    tx: &Transaction<'_>,
    place: &SessionKey,
    name: &str,
    now: i64,
) -> rusqlite::Result<bool> {
    let name = printable_line(name);
    let place = places::ensure(tx, place, now)?;
    let mut statement =
        tx.prepare_cached("UPDATE places SET name = ?2 WHERE id = ?1 AND name IS NOT ?2")?;
    Ok(statement.execute(params![place, name])? == 1)
}
