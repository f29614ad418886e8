//! Earlier texts of config.toml: the `config_history` table. Only the newest are kept.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

/// The number of kept texts.
const MOST: u32 = 50;

/// An earlier text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Earlier {
    pub(crate) id: i64,
    /// The time of the replacement, in Unix milliseconds.
    pub(crate) at: i64,
    pub(crate) by: String,
    pub(crate) bytes: i64,
}

pub(crate) fn keep(tx: &Transaction<'_>, by: &str, text: &str, now: i64) -> rusqlite::Result<()> {
    let insert = "INSERT INTO config_history (at, by, text) VALUES (?1, ?2, ?3)";
    tx.execute(insert, params![now, by, text])?;
    let old = "DELETE FROM config_history WHERE id NOT IN (SELECT id FROM config_history ORDER BY id DESC LIMIT ?1)";
    tx.execute(old, [MOST]).map(drop)
}

/// The newest first.
pub(crate) fn list(connection: &Connection) -> rusqlite::Result<Vec<Earlier>> {
    let sql = "SELECT id, at, by, length(CAST(text AS BLOB)) FROM config_history ORDER BY id DESC";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        Ok(Earlier {
            id: row.get(0)?,
            at: row.get(1)?,
            by: row.get(2)?,
            bytes: row.get(3)?,
        })
    })?;
    rows.collect()
}

pub(crate) fn text(connection: &Connection, id: i64) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT text FROM config_history WHERE id = ?1";
    connection.query_row(sql, [id], |row| row.get(0)).optional()
}
