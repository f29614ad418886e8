//! The `chat_waits` table: waits asked for by a platform, kept over a restart.
//!
//! A wait is stored with its length, so no wait gets longer when the clock is set back.

use std::time::Duration;

use rusqlite::{Connection, Transaction, params};

use crate::domain::Platform;
use crate::fail_points::{self, Write};

/// Keeps the later of two waits.
pub(super) fn note(
    tx: &Transaction<'_>,
    platform: Platform,
    chat: i64,
    wait: Duration,
    now: i64,
) -> rusqlite::Result<()> {
    fail_points::writes(Write::RetryAfter);
    // A wait with an end beyond its length was written under another clock.
    tx.prepare_cached("DELETE FROM chat_waits WHERE until <= ?1 OR until > ?1 + wait_ms")?
        .execute([now])?;
    let mut statement = tx.prepare_cached(
        "INSERT INTO chat_waits (platform, chat, until, wait_ms) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (platform, chat) DO UPDATE SET until = excluded.until, wait_ms = excluded.wait_ms WHERE until < excluded.until",
    )?;
    let wait = millis(wait);
    statement
        .execute(params![
            platform.as_str(),
            chat,
            now.saturating_add(wait),
            wait
        ])
        .map(drop)
}

/// Chats with a wait on this platform, and the rest of each wait.
pub(super) fn open(
    connection: &Connection,
    platform: Platform,
    now: i64,
) -> rusqlite::Result<Vec<(i64, Duration)>> {
    let mut statement = connection
        .prepare_cached("SELECT chat, until, wait_ms FROM chat_waits WHERE platform = ?1")?;
    let waits = statement.query_map([platform.as_str()], |row| {
        Ok((row.get(0)?, rest(row.get(1)?, row.get(2)?, now)))
    })?;
    let waits = waits.collect::<rusqlite::Result<Vec<(i64, Duration)>>>()?;
    Ok(waits
        .into_iter()
        .filter(|(_, rest)| !rest.is_zero())
        .collect())
}

/// The rest of a wait with end `until` and length `wait_ms`. Never more than the length, even if
/// the clock was set back.
pub(super) fn rest(until: i64, wait_ms: i64, now: i64) -> Duration {
    duration(until.saturating_sub(now).min(wait_ms))
}

/// Negative values become zero.
pub(super) fn duration(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Db;

    #[test]
    fn no_wait_is_longer_than_it_was_asked_for() {
        let check = |until, wait_ms, now, expected| {
            assert_eq!(rest(until, wait_ms, now), Duration::from_millis(expected));
        };
        check(5_000, 5_000, 0, 5_000);
        check(5_000, 5_000, 3_000, 2_000);
        check(5_000, 5_000, 9_000, 0);
        check(43_205_000, 5_000, 0, 5_000);
        check(i64::MAX, 5_000, i64::MIN, 5_000);
        check(5_000, 0, 0, 0);
    }

    #[tokio::test]
    async fn the_later_of_two_waits_counts_unless_it_is_from_another_clock() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&folder.path().join("parlor.db")).await.unwrap();
        let check = |tx: &Transaction<'_>| {
            let note =
                |seconds, now| note(tx, Platform::Telegram, 7, Duration::from_secs(seconds), now);
            let left = |now| {
                open(tx, Platform::Telegram, now)
                    .map(|waits| waits.first().map_or(0, |(_, wait)| wait.as_secs()))
            };
            note(60, 100_000)?;
            note(5, 100_000)?;
            assert_eq!(left(100_000)?, 60);
            note(5, 0)?;
            assert_eq!(
                left(0)?,
                5,
                "the clock went back by more than the first wait"
            );
            assert_eq!(left(6_000)?, 0);
            Ok(())
        };
        db.write(check).await.unwrap();
    }
}
