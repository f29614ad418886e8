//! Read positions of channels and servers: the `discord_seen` and `discord_heard` tables.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::domain::DiscordId;
use crate::fail_points::{self, Write};

/// Channels in the table; the longest silent are dropped.
const MOST_KEPT: u32 = 500;

/// A channel and its last read message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReadPosition {
    pub(super) channel: DiscordId,
    pub(super) message: DiscordId,
}

/// Places whose events come in a common order, so that a single position tells how far they were
/// heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Realm {
    Server(DiscordId),
    PrivateChats,
}

impl Realm {
    fn number(self) -> i64 {
        match self {
            Realm::Server(id) => number(id),
            Realm::PrivateChats => 0,
        }
    }
}

/// Positions that wait to be stored.
#[derive(Debug, Default)]
pub(super) struct Progress {
    channels: BTreeMap<DiscordId, DiscordId>,
    realms: BTreeMap<Realm, DiscordId>,
}

impl Progress {
    /// A message that came as an event.
    pub(super) fn saw(&mut self, realm: Realm, position: ReadPosition) {
        self.caught_up(position);
        self.heard(realm, position.message);
    }

    /// A message that was asked for. Messages of other channels may be older and still be missing, so
    /// the realm does not count as heard up to here.
    pub(super) fn caught_up(&mut self, ReadPosition { channel, message }: ReadPosition) {
        let seen = self.channels.entry(channel).or_insert(message);
        *seen = message.max(*seen);
    }

    pub(super) fn heard(&mut self, realm: Realm, message: DiscordId) {
        let heard = self.realms.entry(realm).or_insert(message);
        *heard = message.max(*heard);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.channels.is_empty() && self.realms.is_empty()
    }

    /// Positions never move back.
    pub(super) fn note(&self, tx: &Transaction<'_>, now: i64) -> rusqlite::Result<()> {
        fail_points::writes(Write::ReadPosition);
        let mut seen = tx.prepare_cached(
            "INSERT INTO discord_seen (channel, message, seen_at) VALUES (?1, ?2, ?3)
             ON CONFLICT (channel) DO UPDATE SET message = max(message, excluded.message), seen_at = excluded.seen_at",
        )?;
        for (channel, message) in &self.channels {
            seen.execute(params![number(*channel), number(*message), now])?;
        }
        let mut heard = tx.prepare_cached(
            "INSERT INTO discord_heard (server, message) VALUES (?1, ?2)
             ON CONFLICT (server) DO UPDATE SET message = max(message, excluded.message)",
        )?;
        self.realms.iter().try_for_each(|(realm, message)| {
            heard
                .execute(params![realm.number(), number(*message)])
                .map(drop)
        })
    }
}

/// Gives channels without a position this position, and drops the longest silent channels. Returns
/// the channels that had none.
pub(super) fn begin(
    tx: &Transaction<'_>,
    channels: &[DiscordId],
    message: DiscordId,
    now: i64,
) -> rusqlite::Result<Vec<DiscordId>> {
    let mut statement =
        tx.prepare_cached("INSERT INTO discord_seen (channel, message, seen_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?;
    let mut begun = Vec::new();
    for channel in channels {
        if statement.execute(params![number(*channel), number(message), now])? > 0 {
            begun.push(*channel);
        }
    }
    let oldest_kept = "SELECT seen_at FROM discord_seen ORDER BY seen_at DESC LIMIT 1 OFFSET ?1";
    tx.execute(
        &format!("DELETE FROM discord_seen WHERE seen_at < ({oldest_kept})"),
        [MOST_KEPT],
    )?;
    Ok(begun)
}

/// The liveliest first.
pub(super) fn latest(connection: &Connection, limit: u32) -> rusqlite::Result<Vec<ReadPosition>> {
    let mut statement = connection.prepare_cached(
        "SELECT channel, message FROM discord_seen ORDER BY seen_at DESC LIMIT ?1",
    )?;
    let seen = statement.query_map([limit], |row| {
        Ok(ReadPosition {
            channel: id(row.get(0)?),
            message: id(row.get(1)?),
        })
    })?;
    seen.collect()
}

/// The positions of these channels, as far as known.
pub(super) fn of(
    connection: &Connection,
    channels: &[DiscordId],
) -> rusqlite::Result<HashMap<DiscordId, DiscordId>> {
    let mut statement =
        connection.prepare_cached("SELECT message FROM discord_seen WHERE channel = ?1")?;
    let mut seen = HashMap::new();
    for channel in channels {
        let message = statement
            .query_row([number(*channel)], |row| row.get(0))
            .optional()?;
        seen.extend(message.map(|message| (*channel, id(message))));
    }
    Ok(seen)
}

/// The position of a server or of the private chats; none before the first session.
pub(super) fn heard(connection: &Connection, realm: Realm) -> rusqlite::Result<Option<DiscordId>> {
    let mut statement =
        connection.prepare_cached("SELECT message FROM discord_heard WHERE server = ?1")?;
    Ok(statement
        .query_row([realm.number()], |row| row.get(0))
        .optional()?
        .map(id))
}

pub(super) fn forget(tx: &Transaction<'_>, channel: DiscordId) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM discord_seen WHERE channel = ?1")?
        .execute([number(channel)])
        .map(drop)
}

/// For a server without the bot; a return begins anew.
pub(super) fn forget_server(tx: &Transaction<'_>, server: DiscordId) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM discord_heard WHERE server = ?1")?
        .execute([number(server)])
        .map(drop)
}

/// SQLite's integers have a sign; ids of this century leave the sign bit free.
fn number(id: DiscordId) -> i64 {
    id.0.cast_signed()
}

fn id(number: i64) -> DiscordId {
    DiscordId(number.cast_unsigned())
}
