//! Waits that a platform asked for, kept over a restart: the `chat_waits` table.

use rusqlite::{Connection, Transaction, params};

use crate::domain::Platform;

/// Keeps the later one when there are two.
pub(super) fn note(tx: &Transaction<'_>, platform: Platform, chat: i64, until: i64, now: i64) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM chat_waits WHERE until <= ?1")?.execute([now])?;
    let mut statement = tx.prepare_cached(
        "INSERT INTO chat_waits (platform, chat, until) VALUES (?1, ?2, ?3)
         ON CONFLICT (platform, chat) DO UPDATE SET until = max(until, excluded.until)",
    )?;
    statement.execute(params![platform.as_str(), chat, until]).map(drop)
}

/// Chats that still have to wait on this platform, and until when.
pub(super) fn open(connection: &Connection, platform: Platform, now: i64) -> rusqlite::Result<Vec<(i64, i64)>> {
    let mut statement = connection.prepare_cached("SELECT chat, until FROM chat_waits WHERE platform = ?1 AND until > ?2")?;
    statement.query_map(params![platform.as_str(), now], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}
