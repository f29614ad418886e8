//! Places with a row: the `places` table. Other rows hang on the id, so a place with another key
//! keeps them.

use rusqlite::types::{FromSql, FromSqlResult, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, ToSql, Transaction, params};

use crate::domain::{Moved, Platform, SessionKey};

/// The id of a place in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PlaceId(i64);

impl ToSql for PlaceId {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl FromSql for PlaceId {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        i64::column_result(value).map(PlaceId)
    }
}

/// The id of a place, if the place has a row.
pub(crate) fn id(connection: &Connection, place: &SessionKey) -> rusqlite::Result<Option<PlaceId>> {
    let mut statement = connection.prepare_cached("SELECT id FROM places WHERE key = ?1")?;
    statement
        .query_row([place.to_string()], |row| row.get(0))
        .optional()
}

/// The places of a platform that have a row, oldest first.
pub(crate) fn on(connection: &Connection, platform: Platform) -> rusqlite::Result<Vec<SessionKey>> {
    let mut statement = connection
        .prepare_cached("SELECT key FROM places WHERE key LIKE ?1 || ':%' ORDER BY id")?;
    let keys = statement.query_map([platform.as_str()], |row| row.get::<_, String>(0))?;
    keys.map(|key| key.map(|key| key.parse().ok()))
        .filter_map(Result::transpose)
        .collect()
}

/// Keys and names of places that people use, the latest first.
pub(crate) fn latest(
    connection: &Connection,
    limit: u32,
) -> rusqlite::Result<Vec<(String, Option<String>)>> {
    let mut statement = connection.prepare_cached(
        "SELECT key, name FROM places WHERE key NOT GLOB 'child:*' AND key NOT GLOB 'import:*'
         ORDER BY active_at DESC, id DESC LIMIT ?1",
    )?;
    let rows = statement.query_map([limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Whether a private chat or any of its topics has a row.
pub(crate) fn is_known_chat(connection: &Connection, chat: &SessionKey) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM places WHERE key = ?1 OR (key > ?1 || ':' AND key < ?1 || ';')";
    connection.prepare_cached(sql)?.exists([chat.to_string()])
}

/// The id of a place. A place without a row gets a row.
pub(crate) fn ensure(
    tx: &Transaction<'_>,
    place: &SessionKey,
    now: i64,
) -> rusqlite::Result<PlaceId> {
    match id(tx, place)? {
        Some(id) => Ok(id),
        None => insert(tx, &place.to_string(), now),
    }
}

fn insert(tx: &Transaction<'_>, key: &str, now: i64) -> rusqlite::Result<PlaceId> {
    let mut statement =
        tx.prepare_cached("INSERT INTO places (key, created_at) VALUES (?1, ?2) RETURNING id")?;
    statement.query_row(params![key, now], |row| row.get(0))
}

/// Two rows of the same place: the row of a group from before its move, and the newer row of the
/// supergroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Twin {
    pub old: PlaceId,
    pub new: PlaceId,
}

/// The rows of a group and of its members' conversations, by their old key.
pub(crate) fn of_group(connection: &Connection, moved: Moved) -> rusqlite::Result<Vec<PlaceId>> {
    let mut statement =
        connection.prepare(&format!("SELECT id FROM places WHERE {IS_OF_GROUP}"))?;
    statement
        .query_map([group_key(moved.old.0)], |row| row.get(0))?
        .collect()
}

/// Gives the places of a group their new keys. A place whose new key is taken keeps its key, and is
/// returned.
pub(crate) fn rename_group(tx: &Transaction<'_>, moved: Moved) -> rusqlite::Result<Vec<Twin>> {
    let (old, new) = (group_key(moved.old.0), group_key(moved.new.0));
    let renamed = format!("?2 || substr(key, {})", old.len() + 1);
    tx.execute(
        &format!("UPDATE OR IGNORE places SET key = {renamed} WHERE {IS_OF_GROUP}"),
        params![old, new],
    )?;
    let twins = format!(
        "SELECT id, (SELECT taken.id FROM places AS taken WHERE taken.key = {renamed}) FROM places WHERE {IS_OF_GROUP}",
        renamed = format_args!("?2 || substr(places.key, {})", old.len() + 1)
    );
    let mut statement = tx.prepare(&twins)?;
    statement
        .query_map(params![old, new], |row| {
            Ok(Twin {
                old: row.get(0)?,
                new: row.get(1)?,
            })
        })?
        .collect()
}

/// Holds for a group's key and its members' keys, where `?1` is the key of the group. Topics need
/// no renaming, because only supergroups have topics.
const IS_OF_GROUP: &str = "(key = ?1 OR (key > ?1 || ':' AND key < ?1 || ';'))";

fn group_key(chat: i64) -> String {
    format!("telegram:group:{chat}")
}

/// Deletes the row of a place. No other row may hang on the place any more.
pub(crate) fn delete(tx: &Transaction<'_>, place: PlaceId) -> rusqlite::Result<()> {
    tx.execute("DELETE FROM places WHERE id = ?1", [place])
        .map(drop)
}

/// The places of subagents are kept for longer than any of their rows: spending is kept for 400
/// days.
const SUBAGENTS_KEPT_MS: i64 = 450 * 24 * 60 * 60 * 1000;

/// Deletes places of subagents that were last used too long ago to have rows left. A peer's session
/// goes on for as long as its agents write to each other.
pub(crate) fn forget_old(tx: &Transaction<'_>, now: i64, most: u32) -> rusqlite::Result<usize> {
    let old = "SELECT id FROM places
               WHERE key GLOB 'child:*' AND coalesce(active_at, created_at) < ?1 LIMIT ?2";
    tx.execute(
        &format!("DELETE FROM places WHERE id IN ({old})"),
        params![now - SUBAGENTS_KEPT_MS, most],
    )
}
