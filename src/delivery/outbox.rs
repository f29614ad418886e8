//! Written but not yet delivered: the `outbox` table. One row is one call to the platform.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::sender::GIVE_UP_AFTER_MS;
use super::{streams, undelivered};
use crate::channels::{Part, Ticket};
use crate::domain::{Destination, MessageId, Moved, SessionKey};
use crate::routing::aliases::Renaming;

/// Why a row is sent. Where a budget is short, the first goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An agent's answer.
    Final,
    /// The answer to a command.
    Command,
    /// Something the gateway says by itself.
    Notice,
    Error,
}

impl Kind {
    pub(super) const ALL: [Kind; 4] = [Kind::Final, Kind::Command, Kind::Notice, Kind::Error];

    fn as_str(self) -> &'static str {
        match self {
            Kind::Final => "final",
            Kind::Command => "command",
            Kind::Notice => "notice",
            Kind::Error => "error",
        }
    }
}

/// A row before it is written.
#[derive(Debug, Clone)]
pub struct Draft {
    pub(super) to: Destination,
    pub(super) kind: Kind,
    pub(super) part: Part,
    /// The stored copy to be sent; the part tells about it.
    pub(super) file: Option<String>,
}

/// A row that is marked as being sent. Only [`claim`] makes one.
#[derive(Debug)]
pub(super) struct ClaimedRow {
    pub(super) id: i64,
    pub(super) to: Destination,
    pub(super) part: Part,
    pub(super) file: Option<String>,
    /// The message that is changed instead of a new one sent; with an empty part it is taken away.
    pub(super) target: Option<MessageId>,
    pub(super) attempts: u32,
    /// An earlier call's answer was never seen.
    pub(super) repeated: bool,
    pub(super) created_at: i64,
}

impl ClaimedRow {
    /// With its time, because a new store numbers its rows anew.
    pub(super) fn ticket(&self) -> Ticket {
        Ticket(format!("o{:x}-{:x}", self.id, self.created_at))
    }
}

/// What is known about a place's next row.
#[derive(Debug)]
pub(super) enum Next {
    Claimed(ClaimedRow),
    /// The platform asked to wait until then.
    NotBefore(i64),
    Nothing,
}

pub fn insert(tx: &Transaction<'_>, rows: &[Draft], inbox_id: Option<i64>, now: i64) -> rusqlite::Result<()> {
    let mut statement =
        tx.prepare_cached("INSERT INTO outbox (place, kind, part, inbox_id, created_at, file) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    for row in rows {
        statement.execute(params![row.to.place().to_string(), row.kind.as_str(), row.part.0, inbox_id, now, row.file])?;
    }
    Ok(())
}

/// Writes an answer: into the messages that have shown it so far, then into new ones. What they show too much is taken
/// away. Returns how many rows that makes.
pub fn insert_answer(tx: &Transaction<'_>, rows: &[Draft], inbox_id: i64, now: i64) -> rusqlite::Result<usize> {
    insert(tx, rows, Some(inbox_id), now)?;
    // The connection numbers rows one after the other, and this is the only one that writes.
    let first = tx.last_insert_rowid() - i64::try_from(rows.len()).unwrap_or(0) + 1;
    let Some(answer) = rows.first() else { return Ok(0) };
    let shown = streams::take(tx, inbox_id)?;
    let mut change = tx.prepare_cached("UPDATE outbox SET target = ?2 WHERE id = ?1")?;
    for (id, message) in (first..).zip(shown.iter().take(rows.len())) {
        change.execute(params![id, message.0])?;
    }
    let mut take_away = tx
        .prepare_cached("INSERT INTO outbox (place, kind, part, target, inbox_id, created_at) VALUES (?1, ?2, '', ?3, ?4, ?5)")?;
    let surplus = shown.get(rows.len()..).unwrap_or_default();
    for message in surplus {
        take_away.execute(params![answer.to.place().to_string(), answer.kind.as_str(), message.0, inbox_id, now])?;
    }
    Ok(rows.len() + surplus.len())
}

/// What kind of row is the place's next.
pub(super) fn next_kind(connection: &Connection, place: &SessionKey) -> rusqlite::Result<Option<Kind>> {
    let oldest = "SELECT kind FROM outbox WHERE place = ?1 AND state IN ('waiting', 'sending') ORDER BY id LIMIT 1";
    let kind = connection.prepare_cached(oldest)?.query_row([place.to_string()], |row| row.get::<_, String>(0)).optional()?;
    Ok(kind.and_then(|kind| Kind::ALL.into_iter().find(|known| known.as_str() == kind)))
}

/// Marks the place's oldest row as being sent: from here on a crash leaves it unknown whether it arrived.
pub(super) fn claim(tx: &Transaction<'_>, place: &SessionKey, now: i64) -> rusqlite::Result<Next> {
    let oldest = "SELECT id, part, attempts, repeated, created_at, not_before, target, file FROM outbox
                  WHERE place = ?1 AND state IN ('waiting', 'sending') ORDER BY id LIMIT 1";
    let found = tx.prepare_cached(oldest)?.query_row([place.to_string()], |row| claimed(row, place)).optional()?;
    let Some((row, not_before)) = found else { return Ok(Next::Nothing) };
    // Further ahead than a row is ever kept: the clock was wrong when this was written.
    let clock_was_wrong = not_before.saturating_sub(now) > GIVE_UP_AFTER_MS;
    if not_before > now && !clock_was_wrong {
        return Ok(Next::NotBefore(not_before));
    }
    tx.prepare_cached("UPDATE outbox SET state = 'sending', attempts = attempts + 1 WHERE id = ?1")?.execute([row.id])?;
    Ok(Next::Claimed(row))
}

fn claimed(row: &Row<'_>, place: &SessionKey) -> rusqlite::Result<(ClaimedRow, i64)> {
    let claimed = ClaimedRow {
        id: row.get(0)?,
        to: Destination::stored(place.clone()),
        part: Part(row.get(1)?),
        attempts: row.get(2)?,
        repeated: row.get(3)?,
        created_at: row.get(4)?,
        target: row.get::<_, Option<String>>(6)?.map(MessageId),
        file: row.get(7)?,
    };
    Ok((claimed, row.get(5)?))
}

/// The transcript has the text, so the row lets go of it.
pub(super) fn sent(tx: &Transaction<'_>, id: i64, message: &MessageId, now: i64) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached(
        "UPDATE outbox SET state = 'sent', part = '', file = NULL, message_id = ?2, sent_at = ?3, error = NULL WHERE id = ?1",
    )?;
    statement.execute(params![id, message.0, now]).map(drop)
}

/// Back in the queue. `repeated` says that it may have arrived already: a lost answer is worse than one that comes twice.
pub(super) fn again(tx: &Transaction<'_>, id: i64, not_before: i64, error: &str, repeated: bool) -> rusqlite::Result<()> {
    let mut statement =
        tx.prepare_cached("UPDATE outbox SET state = 'waiting', not_before = ?2, error = ?3, repeated = ?4 WHERE id = ?1")?;
    statement.execute(params![id, not_before, error, repeated]).map(drop)
}

/// The message to change is gone, so the row becomes an ordinary send.
pub(super) fn send_instead(tx: &Transaction<'_>, id: i64) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached("UPDATE outbox SET state = 'waiting', target = NULL WHERE id = ?1")?;
    statement.execute([id]).map(drop)
}

/// The text stays in the row, for the operator to see what did not arrive.
pub(super) fn failed(tx: &Transaction<'_>, id: i64, error: &str) -> rusqlite::Result<()> {
    tx.prepare_cached("UPDATE outbox SET state = 'failed', error = ?2 WHERE id = ?1")?.execute(params![id, error]).map(drop)
}

/// Gives up what waits for a place that is gone, and for its parts. What is being sent right now is told by its own answer.
pub fn give_up(tx: &Transaction<'_>, place: &SessionKey, error: &str) -> rusqlite::Result<()> {
    let [own, parts] = place.globs();
    let sql = "UPDATE outbox SET state = 'failed', error = ?3
               WHERE state IN ('waiting', 'sending') AND state = 'waiting' AND (place GLOB ?1 OR place GLOB ?2)";
    tx.execute(sql, params![own, parts, error]).map(drop)
}

/// After a crash: rows that were being sent go out once more, and never a third time; a change of
/// a message can be made as often as one likes. Failed rows go out if that was asked
/// for meanwhile. Returns the places with open rows.
pub(super) fn reopen(tx: &Transaction<'_>, now: i64) -> rusqlite::Result<Vec<(SessionKey, usize)>> {
    undelivered::retry_asked(tx, now)?;
    // Each asks for open rows first, in the words of the index, so that the sent ones are not looked at.
    tx.execute(
        "UPDATE outbox SET state = 'failed', error = ?1 WHERE state IN ('waiting', 'sending') AND state = 'sending' AND repeated = 1",
        [NEVER_CONFIRMED],
    )?;
    tx.execute(
        "UPDATE outbox SET state = 'waiting', repeated = target IS NULL
         WHERE state IN ('waiting', 'sending') AND state = 'sending'",
        [],
    )?;
    let mut statement =
        tx.prepare("SELECT place, count(*) FROM outbox WHERE state IN ('waiting', 'sending') GROUP BY place ORDER BY min(id)")?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))?;
    let open = rows.collect::<rusqlite::Result<Vec<(String, u32)>>>()?;
    Ok(open.into_iter().filter_map(|(place, count)| Some((place.parse().ok()?, usize::try_from(count).ok()?))).collect())
}

/// Moves what is not being sent right now; that is told by its own answer. Returns the places with rows to send.
pub fn follow(tx: &Transaction<'_>, moved: Moved, renaming: &Renaming) -> rusqlite::Result<Vec<(SessionKey, usize)>> {
    forget_targets(tx, renaming)?;
    let waiting = format!(
        "SELECT place, count(*) FROM outbox WHERE state IN ('waiting', 'sending') AND state = 'waiting' AND {} GROUP BY place",
        Renaming::is_old("place")
    );
    let mut statement = tx.prepare(&waiting)?;
    let rows = statement.query_map([&renaming.old], |row| Ok((row.get::<_, String>(0)?, row.get::<_, u32>(1)?)))?;
    let open = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    renaming.rename(tx, "outbox", "place", "state IN ('waiting', 'failed')")?;
    let in_new = |(place, count): (String, u32)| {
        Some((place.parse::<SessionKey>().ok()?.in_telegram_group(moved.new), usize::try_from(count).ok()?))
    };
    Ok(open.into_iter().filter_map(in_new).collect())
}

/// Places that a message with this id was sent to since then, and when its row was written.
pub fn sent_as(connection: &Connection, message: &MessageId, since: i64) -> rusqlite::Result<Vec<(SessionKey, i64)>> {
    let mut statement =
        connection.prepare_cached("SELECT place, created_at FROM outbox WHERE sent_at > ?1 AND message_id = ?2")?;
    let rows = statement.query_map(params![since, message.0], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))?;
    let sent = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(sent.into_iter().filter_map(|(place, at)| Some((place.parse().ok()?, at))).collect())
}

/// Message ids of the old group mean other messages in the new one.
fn forget_targets(tx: &Transaction<'_>, renaming: &Renaming) -> rusqlite::Result<()> {
    streams::forget_moved(tx, renaming)?;
    let of_the_old = format!("target IS NOT NULL AND state IN ('waiting', 'failed') AND {}", Renaming::is_old("place"));
    tx.execute(&format!("DELETE FROM outbox WHERE part = '' AND {of_the_old}"), [&renaming.old])?;
    tx.execute(&format!("UPDATE outbox SET target = NULL WHERE {of_the_old}"), [&renaming.old]).map(drop)
}

/// How many rows could not be delivered, and how many were sent a second time.
pub fn troubles(connection: &Connection) -> rusqlite::Result<(i64, i64)> {
    let count = |sql| connection.query_row(sql, [], |row| row.get(0));
    let failed = count("SELECT count(*) FROM outbox WHERE state = 'failed'")?;
    Ok((failed, count("SELECT count(*) FROM outbox WHERE repeated = 1")?))
}

/// Copies of files that rows still have to send.
pub fn files(connection: &Connection) -> rusqlite::Result<HashSet<String>> {
    let mut statement = connection.prepare("SELECT file FROM outbox WHERE file IS NOT NULL")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

pub fn forget_old(tx: &Transaction<'_>, now: i64, most: u32) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM outbox WHERE id IN (SELECT id FROM outbox WHERE sent_at < ?1 LIMIT ?2)";
    tx.execute(sql, params![now - KEPT_MS, most])
}

/// Sent rows are kept this long, to see what went where.
const KEPT_MS: i64 = 14 * 24 * 60 * 60 * 1000;

pub(super) const NEVER_CONFIRMED: &str = "sent twice, and neither answer was seen";
