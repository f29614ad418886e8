//! Accepted but not yet answered: the `inbox` table.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::access::Role;
use crate::domain::{Arrival, Inbound, InvalidSessionKey, MessageId, Platform, SessionKey};
use crate::routing::{names, places};

/// Closed rows are kept this long to recognise an update that a platform delivers again.
pub(crate) const KEPT_MS: i64 = 14 * 24 * 60 * 60 * 1000;
/// The longest raw update kept of a broken one, in bytes.
const MAX_BROKEN_BYTES: usize = 64 * 1024;

/// A message with its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    pub id: i64,
    pub inbound: Inbound,
    /// Messages that came after it and are part of it, such as the pictures of an album.
    pub joined: Vec<Accepted>,
    /// Messages that waited behind it and are answered with it.
    pub backlog: Vec<Accepted>,
    /// How well its writer is known.
    pub role: Role,
}

impl Accepted {
    pub fn new(id: i64, inbound: Inbound) -> Self {
        Accepted { id, inbound, joined: Vec::new(), backlog: Vec::new(), role: Role::Guest }
    }

    /// The messages that are answered at once, each with its parts in `joined`.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &Accepted> {
        std::iter::once(self).chain(&self.backlog)
    }

    /// Every row that is closed when it is answered.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Accepted> {
        self.messages().flat_map(|message| std::iter::once(message).chain(&message.joined))
    }
}

/// How a row ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closing {
    Done,
    Refused,
    Failed,
}

impl Closing {
    fn as_str(self) -> &'static str {
        match self {
            Closing::Done => "done",
            Closing::Refused => "refused",
            Closing::Failed => "failed",
        }
    }
}

/// What a batch brought.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    /// The messages that are new.
    pub(crate) accepted: Vec<Accepted>,
    /// Places whose name is news.
    pub(crate) renamed: Vec<SessionKey>,
    /// Topics that take messages again.
    pub(crate) reopened: Vec<SessionKey>,
}

/// Stores what is new and returns it; what was seen before is left out.
pub(crate) fn insert(tx: &Transaction<'_>, platform: Platform, arrivals: Vec<Arrival>, now: i64) -> rusqlite::Result<Stored> {
    let mut stored = Stored::default();
    for arrival in arrivals {
        match arrival {
            Arrival::Message(inbound) => {
                if let Some(name) = &inbound.origin.name {
                    learn(tx, &mut stored, &inbound.origin.key, name, now)?;
                }
                if insert_message(tx, platform, &inbound, now)? {
                    stored.accepted.push(Accepted::new(tx.last_insert_rowid(), *inbound));
                }
            }
            Arrival::TopicMade(made) => learn(tx, &mut stored, &made.origin.key, &made.text, now)?,
            Arrival::Reopened(place) => stored.reopened.push(place),
            // Followed by whoever knows all that has to move, or to go.
            Arrival::Moved(_) | Arrival::Deleted(_) | Arrival::Gone(_) => {}
            Arrival::Named { place, name } => learn(tx, &mut stored, &place, &name, now)?,
            Arrival::Broken { update_id, reason, raw } => insert_broken(tx, platform, &update_id, &reason, &raw, now)?,
        }
    }
    Ok(stored)
}

fn learn(tx: &Transaction<'_>, stored: &mut Stored, place: &SessionKey, name: &str, now: i64) -> rusqlite::Result<()> {
    if names::learn(tx, place, name, now)? {
        stored.renamed.push(place.clone());
    }
    Ok(())
}

fn insert_message(tx: &Transaction<'_>, platform: Platform, inbound: &Inbound, now: i64) -> rusqlite::Result<bool> {
    insert_from(tx, platform.as_str(), inbound, now)
}

fn insert_from(tx: &Transaction<'_>, source: &str, inbound: &Inbound, now: i64) -> rusqlite::Result<bool> {
    let payload = payload(inbound)?;
    let mut statement = tx.prepare_cached(
        "INSERT INTO inbox (platform, update_id, place_id, state, payload, received_at)
         VALUES (?1, ?2, ?3, 'waiting', ?4, ?5) ON CONFLICT DO NOTHING",
    )?;
    let place = places::ensure(tx, &inbound.origin.key, now)?;
    Ok(statement.execute(params![source, inbound.update_id, place, payload, now])? == 1)
}

/// Stores what the gateway itself puts into a lane, and returns its row; none when it is known already.
pub(crate) fn insert_internal(tx: &Transaction<'_>, inbound: &Inbound, now: i64) -> rusqlite::Result<Option<i64>> {
    Ok(insert_from(tx, INTERNAL, inbound, now)?.then(|| tx.last_insert_rowid()))
}

/// Stands where other rows have their platform.
const INTERNAL: &str = "internal";

/// Puts a new form of a message into its row, if that still waits.
pub(crate) fn replace(tx: &Transaction<'_>, id: i64, inbound: &Inbound) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached("UPDATE inbox SET payload = ?2 WHERE id = ?1 AND state = 'waiting'")?;
    statement.execute(params![id, payload(inbound)?]).map(drop)
}

fn payload(inbound: &Inbound) -> rusqlite::Result<String> {
    serde_json::to_string(inbound).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

fn insert_broken(
    tx: &Transaction<'_>,
    platform: Platform,
    update_id: &str,
    reason: &str,
    raw: &str,
    now: i64,
) -> rusqlite::Result<()> {
    let kept = &raw[..raw.floor_char_boundary(MAX_BROKEN_BYTES)];
    let mut statement = tx.prepare_cached(
        "INSERT INTO inbox (platform, update_id, state, outcome, payload, received_at, closed_at)
         VALUES (?1, ?2, 'broken', ?3, ?4, ?5, ?5) ON CONFLICT DO NOTHING",
    )?;
    statement.execute(params![platform.as_str(), update_id, reason, kept, now]).map(drop)
}

/// The transcript has the text from here on, so the row lets go of it. One that was closed before keeps its reason.
pub(crate) fn close(tx: &Transaction<'_>, id: i64, closing: Closing, outcome: &str, now: i64) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached(
        "UPDATE inbox SET state = ?2, outcome = ?3, payload = NULL, closed_at = ?4 WHERE id = ?1 AND state = 'waiting'",
    )?;
    statement.execute(params![id, closing.as_str(), outcome, now]).map(drop)
}

/// Ends messages that still wait, because somebody asked for it.
pub(crate) fn call_off(tx: &Transaction<'_>, ids: &[i64], now: i64) -> rusqlite::Result<()> {
    let sql = "UPDATE inbox SET state = 'done', outcome = 'stopped', payload = NULL, closed_at = ?2 WHERE id = ?1 AND state = 'waiting'";
    let mut statement = tx.prepare_cached(sql)?;
    ids.iter().try_for_each(|id| statement.execute(params![id, now]).map(drop))
}

/// Why a row ended whose message people deleted.
const DELETED: &str = "deleted";
/// Why a row ended whose place is gone.
const PLACE_GONE: &str = "its place is gone";

/// Ends what waits of these messages of a platform, whether its turn has begun or not.
pub(crate) fn delete(
    tx: &Transaction<'_>,
    platform: Platform,
    messages: &[MessageId],
    now: i64,
) -> rusqlite::Result<Vec<(i64, Inbound)>> {
    let mut statement = tx.prepare_cached("SELECT id, payload FROM inbox WHERE state = 'waiting' AND platform = ?1")?;
    let rows = statement.query_map([platform.as_str()], |row| Ok((row.get(0)?, row.get::<_, Option<String>>(1)?)))?;
    let mut deleted = Vec::new();
    for row in rows {
        let (id, payload) = row?;
        let inbound = serde_json::from_str::<Inbound>(&payload.unwrap_or_default()).ok();
        deleted.extend(inbound.filter(|inbound| messages.contains(&inbound.message)).map(|inbound| (id, inbound)));
    }
    deleted.iter().try_for_each(|(id, _)| close(tx, *id, Closing::Done, DELETED, now))?;
    Ok(deleted)
}

/// Whether the message of a row was deleted.
pub(crate) fn is_deleted(tx: &Transaction<'_>, id: i64) -> rusqlite::Result<bool> {
    tx.prepare_cached("SELECT 1 FROM inbox WHERE id = ?1 AND outcome = ?2")?.exists(params![id, DELETED])
}

/// Ends everything that waits in a place and its parts.
pub(crate) fn close_place(tx: &Transaction<'_>, place: &SessionKey, now: i64) -> rusqlite::Result<()> {
    let [own, parts] = place.globs();
    let sql = "UPDATE inbox SET state = 'done', outcome = ?3, payload = NULL, closed_at = ?4
               WHERE state = 'waiting' AND place_id IN (SELECT id FROM places WHERE key GLOB ?1 OR key GLOB ?2)";
    tx.execute(sql, params![own, parts, PLACE_GONE, now]).map(drop)
}

/// Closes the rows of all messages that were answered as one.
pub(crate) fn close_all(
    tx: &Transaction<'_>,
    accepted: &Accepted,
    closing: Closing,
    outcome: &str,
    now: i64,
) -> rusqlite::Result<()> {
    accepted.all().try_for_each(|accepted| close(tx, accepted.id, closing, outcome, now))
}

/// For a query about rows that hang on messages not yet answered.
pub(crate) const WAITING_IDS: &str = "SELECT id FROM inbox WHERE state = 'waiting'";

/// A row that waits. What an older version wrote may be unreadable to this one.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) id: i64,
    pub(crate) inbound: Result<Inbound, String>,
}

/// The newest row there is; 0 when there is none.
pub(crate) fn newest(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT coalesce(max(id), 0) FROM inbox", [], |row| row.get(0))
}

/// When the newest row was written, if there is one.
pub fn newest_at(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    connection.query_row("SELECT received_at FROM inbox ORDER BY id DESC LIMIT 1", [], |row| row.get(0)).optional()
}

/// What still waits, oldest first, after row `after` and up to row `until`.
pub(crate) fn waiting(connection: &Connection, after: i64, until: i64, limit: u32) -> rusqlite::Result<Vec<Waiting>> {
    let mut statement = connection.prepare_cached(
        "SELECT inbox.id, payload, key FROM inbox LEFT JOIN places ON places.id = place_id
         WHERE state = 'waiting' AND inbox.id > ?1 AND inbox.id <= ?2 ORDER BY inbox.id LIMIT ?3",
    )?;
    let rows = statement.query_map(params![after, until, limit], |row| {
        // One row that cannot be read must not hide all the others.
        let payload = row.get::<_, Option<String>>(1)?.unwrap_or_default();
        Ok(Waiting { id: row.get(0)?, inbound: inbound(&payload, row.get(2)?) })
    })?;
    rows.collect()
}

/// The message of a row in the present place of the row, which may have another key than when the message came.
fn inbound(payload: &str, key: Option<String>) -> Result<Inbound, String> {
    let mut inbound: Inbound = serde_json::from_str(payload).map_err(|error| error.to_string())?;
    if let Some(key) = key {
        inbound.origin.key = key.parse().map_err(|error: InvalidSessionKey| error.to_string())?;
    }
    Ok(inbound)
}

/// Whether somebody wrote in the place after this message, or in a group whose members have a conversation each, to it.
pub(crate) fn others_wrote(connection: &Connection, accepted: &Accepted) -> rusqlite::Result<bool> {
    let place = &accepted.inbound.origin.key;
    let group = place.whole_group().filter(|_| !place.is_shared());
    let places = group.map_or_else(|| place.to_string(), |group| format!("{group}:*"));
    let mut statement = connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM inbox WHERE id > ?1 AND place_id IN (SELECT id FROM places WHERE key GLOB ?2))",
    )?;
    let last = accepted.all().map(|accepted| accepted.id).max().unwrap_or(accepted.id);
    statement.query_row(params![last, places], |row| row.get(0))
}

/// Updates that could not be read, all time that is kept.
pub(crate) fn count_broken(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT count(*) FROM inbox WHERE state = 'broken'", [], |row| row.get(0))
}

pub(crate) fn forget_old(tx: &Transaction<'_>, now: i64, most: u32) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM inbox WHERE id IN (SELECT id FROM inbox WHERE closed_at < ?1 LIMIT ?2)";
    tx.execute(sql, params![now - KEPT_MS, most])
}
