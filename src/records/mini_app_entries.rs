//! Used sign-ins from Telegram's Mini App: the `mini_app_entries` table.

use rusqlite::{Transaction, params};

/// Notes the use of a signed text, which is worthless from `until` on. False for a second use.
pub(crate) fn use_up(tx: &Transaction<'_>, hash: &str, until: i64) -> rusqlite::Result<bool> {
    let sql = "INSERT OR IGNORE INTO mini_app_entries (hash, until) VALUES (?1, ?2)";
    Ok(tx.execute(sql, params![hash, until])? == 1)
}

/// Forgets texts that are too old to count, a day later: the clock may be set back.
pub(crate) fn forget_old(tx: &Transaction<'_>, now: i64, most: u32) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM mini_app_entries WHERE hash IN
               (SELECT hash FROM mini_app_entries WHERE until < ?1 LIMIT ?2)";
    tx.execute(sql, params![now - KEPT_MS, most])
}

const KEPT_MS: i64 = 24 * 60 * 60 * 1000;
