//! How far each channel was read: the `discord_seen` table.

use rusqlite::{Connection, Transaction, params};

use crate::domain::DiscordId;

/// Channels that are kept; those that were silent for longest are let go of.
const MOST_KEPT: u32 = 500;

/// A channel and the last message that was seen there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) channel: DiscordId,
    pub(super) message: DiscordId,
}

/// Never goes back.
pub(super) fn note(tx: &Transaction<'_>, seen: &[Seen], now: i64) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached(
        "INSERT INTO discord_seen (channel, message, seen_at) VALUES (?1, ?2, ?3)
         ON CONFLICT (channel) DO UPDATE SET message = max(message, excluded.message), seen_at = excluded.seen_at",
    )?;
    for seen in seen {
        statement.execute(params![number(seen.channel), number(seen.message), now])?;
    }
    Ok(())
}

/// Those of which nothing is known begin here; the others stay as they are. Lets go of what is too old.
pub(super) fn begin(tx: &Transaction<'_>, channels: &[DiscordId], message: DiscordId, now: i64) -> rusqlite::Result<()> {
    let mut statement =
        tx.prepare_cached("INSERT INTO discord_seen (channel, message, seen_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?;
    for channel in channels {
        statement.execute(params![number(*channel), number(message), now])?;
    }
    let oldest_kept = "SELECT seen_at FROM discord_seen ORDER BY seen_at DESC LIMIT 1 OFFSET ?1";
    tx.execute(&format!("DELETE FROM discord_seen WHERE seen_at < ({oldest_kept})"), [MOST_KEPT]).map(drop)
}

/// The liveliest first.
pub(super) fn latest(connection: &Connection, limit: u32) -> rusqlite::Result<Vec<Seen>> {
    let mut statement = connection.prepare_cached("SELECT channel, message FROM discord_seen ORDER BY seen_at DESC LIMIT ?1")?;
    let seen = statement.query_map([limit], |row| Ok(Seen { channel: id(row.get(0)?), message: id(row.get(1)?) }))?;
    seen.collect()
}

pub(super) fn forget(tx: &Transaction<'_>, channel: DiscordId) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM discord_seen WHERE channel = ?1")?.execute([number(channel)]).map(drop)
}

/// SQLite's numbers have a sign; ids of this century leave its bit free.
fn number(id: DiscordId) -> i64 {
    id.0.cast_signed()
}

fn id(number: i64) -> DiscordId {
    DiscordId(number.cast_unsigned())
}
