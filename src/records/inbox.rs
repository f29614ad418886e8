//! Accepted messages waiting for an answer: the `inbox` table.

use std::time::Instant;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::Deserialize;

use crate::access::{Role, Standing};
use crate::domain::{
    Addressed, AgentUid, Arrival, Extras, Inbound, InvalidSessionKey, Labels, MessageId, Origin,
    Platform, SessionKey,
};
use crate::fail_points::{self, Write};
use crate::routing::{names, places};

/// Closed rows are kept this long, to recognise repeated updates of a platform.
pub(crate) const KEPT_MS: i64 = 14 * 24 * 60 * 60 * 1000;
/// The longest part kept of an unreadable update, in bytes.
const MAX_BROKEN_BYTES: usize = 64 * 1024;

/// A message with its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    pub id: i64,
    pub inbound: Inbound,
    /// Later messages that are part of this message, such as the pictures of an album.
    pub joined: Vec<Accepted>,
    /// Messages from the queue, answered together with this message.
    pub backlog: Vec<Accepted>,
    /// The role of the writer with the agent that answers.
    pub role: Role,
    /// The roles of the writer.
    pub standing: Standing,
    /// None for a message of an earlier process.
    pub(crate) seen: Option<Seen>,
}

/// The times at which this process saw a message, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) received: Instant,
    pub(crate) stored: Instant,
}

impl Accepted {
    pub fn new(id: i64, inbound: Inbound) -> Self {
        Accepted {
            id,
            inbound,
            joined: Vec::new(),
            backlog: Vec::new(),
            role: Role::Guest,
            standing: Standing::GUEST,
            seen: None,
        }
    }

    /// A message of the gateway itself, with the rights of a turn.
    pub(crate) fn with_role(id: i64, inbound: Inbound, role: Role) -> Self {
        Accepted {
            role,
            standing: Standing::just(role),
            ..Accepted::new(id, inbound)
        }
    }

    /// The messages to answer together, each with its parts in `joined`.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &Accepted> {
        std::iter::once(self).chain(&self.backlog)
    }

    /// Where the words of the message and its parts come from.
    pub(crate) fn labels(&self) -> Labels {
        let parts = std::iter::once(self).chain(&self.joined);
        parts.map(|part| part.inbound.labels(self.role)).collect()
    }

    /// The messages and their parts, each for itself.
    pub(crate) fn into_parts(mut self) -> impl Iterator<Item = Accepted> {
        let backlog = std::mem::take(&mut self.backlog);
        std::iter::once(self)
            .chain(backlog)
            .flat_map(|mut message| {
                let joined = std::mem::take(&mut message.joined);
                std::iter::once(message).chain(joined)
            })
    }

    /// Every row to close with the answer.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Accepted> {
        self.messages()
            .flat_map(|message| std::iter::once(message).chain(&message.joined))
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

/// The result of storing a batch.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    /// New messages.
    pub(crate) accepted: Vec<Accepted>,
    /// Places with a new name.
    pub(crate) renamed: Vec<SessionKey>,
    /// Reopened topics.
    pub(crate) reopened: Vec<SessionKey>,
}

/// Stores and returns new messages; messages seen before are left out. Names are learned of places
/// for which `may_learn` is true.
pub(crate) fn insert<'a>(
    tx: &Transaction<'_>,
    platform: Platform,
    arrivals: impl IntoIterator<Item = &'a Arrival>,
    may_learn: impl Fn(&SessionKey) -> rusqlite::Result<bool>,
    now: i64,
) -> rusqlite::Result<Stored> {
    fail_points::writes(Write::InboxBatch);
    let mut stored = Stored::default();
    let learn = |stored: &mut Stored, place: &SessionKey, name: &str| {
        if may_learn(place)? && names::learn(tx, place, name, now)? {
            stored.renamed.push(place.clone());
        }
        Ok::<_, rusqlite::Error>(())
    };
    for arrival in arrivals {
        match arrival {
            Arrival::Message(inbound) => {
                if let Some(name) = &inbound.origin.name {
                    learn(&mut stored, &inbound.origin.key, name)?;
                }
                learn_group(tx, inbound, &may_learn, now)?;
                if insert_message(tx, platform, inbound, now)? {
                    stored
                        .accepted
                        .push(Accepted::new(tx.last_insert_rowid(), *inbound.clone()));
                }
            }
            Arrival::TopicMade(made) => learn(&mut stored, &made.origin.key, &made.text)?,
            Arrival::Reopened(place) => stored.reopened.push(place.clone()),
            // The gateway follows these, because more than the inbox changes.
            Arrival::Moved(_) | Arrival::Deleted(_) | Arrival::Gone(_) | Arrival::Barred { .. } => {
            }
            Arrival::Named { place, name } => learn(&mut stored, place, name)?,
            Arrival::Broken {
                update_id,
                reason,
                raw,
            } => insert_broken(tx, platform, update_id, reason, raw, now)?,
        }
    }
    Ok(stored)
}

/// The name of the group around an open place.
fn learn_group(
    tx: &Transaction<'_>,
    inbound: &Inbound,
    may_learn: impl Fn(&SessionKey) -> rusqlite::Result<bool>,
    now: i64,
) -> rusqlite::Result<()> {
    let (key, name) = (&inbound.origin.key, &inbound.origin.group);
    match name {
        Some(name) if may_learn(key)? => {
            let group = key.whole_group().unwrap_or_else(|| key.clone());
            names::learn(tx, &group, name, now).map(drop)
        }
        _ => Ok(()),
    }
}

/// Notes a message that cannot be stored, without its place and its words: one of them may be the
/// reason. Returns the row.
pub(crate) fn insert_failed(
    tx: &Transaction<'_>,
    platform: Platform,
    update_id: &str,
    outcome: &str,
    now: i64,
) -> rusqlite::Result<i64> {
    tx.prepare_cached(
        "INSERT INTO inbox (platform, update_id, state, outcome, received_at, closed_at)
         VALUES (?1, ?2, 'failed', ?3, ?4, ?4)",
    )?
    .execute(params![platform.as_str(), update_id, outcome, now])?;
    Ok(tx.last_insert_rowid())
}

fn insert_message(
    tx: &Transaction<'_>,
    platform: Platform,
    inbound: &Inbound,
    now: i64,
) -> rusqlite::Result<bool> {
    insert_from(tx, platform.as_str(), inbound, now)
}

fn insert_from(
    tx: &Transaction<'_>,
    source: &str,
    inbound: &Inbound,
    now: i64,
) -> rusqlite::Result<bool> {
    let payload = payload(inbound)?;
    let mut statement = tx.prepare_cached(
        "INSERT INTO inbox (platform, update_id, place_id, state, payload, received_at)
         VALUES (?1, ?2, ?3, 'waiting', ?4, ?5) ON CONFLICT DO NOTHING",
    )?;
    let place = places::ensure(tx, &inbound.origin.key, now)?;
    Ok(statement.execute(params![source, inbound.update_id, place, payload, now])? == 1)
}

/// Stores an internal message and returns its row; none if the message is known already.
pub(crate) fn insert_internal(
    tx: &Transaction<'_>,
    inbound: &Inbound,
    now: i64,
) -> rusqlite::Result<Option<i64>> {
    Ok(insert_from(tx, INTERNAL, inbound, now)?.then(|| tx.last_insert_rowid()))
}

/// Stores the kept first message of a guest who was let in, to be answered now. None if that was done
/// before. The row of its arrival was closed when the message was kept.
pub(crate) fn insert_kept(
    tx: &Transaction<'_>,
    platform: Platform,
    kept: &Inbound,
    now: i64,
) -> rusqlite::Result<Option<i64>> {
    let again = Inbound {
        update_id: format!("{}:let-in", kept.update_id),
        ..kept.clone()
    };
    Ok(insert_message(tx, platform, &again, now)?.then(|| tx.last_insert_rowid()))
}

/// The platform of internal messages.
const INTERNAL: &str = "internal";

/// Puts the edited form of a message into its row, if the row still waits.
pub(crate) fn replace(tx: &Transaction<'_>, id: i64, inbound: &Inbound) -> rusqlite::Result<()> {
    let mut statement =
        tx.prepare_cached("UPDATE inbox SET payload = ?2 WHERE id = ?1 AND state = 'waiting'")?;
    statement.execute(params![id, payload(inbound)?]).map(drop)
}

fn payload(inbound: &Inbound) -> rusqlite::Result<String> {
    serde_json::to_string(inbound)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
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
    statement
        .execute(params![platform.as_str(), update_id, reason, kept, now])
        .map(drop)
}

/// What stays of a message in its closed row: the facts by which it was routed, without words and
/// names. Nothing stays of commands, of edits and reactions, and of deleted messages.
const FACTS: &str = "CASE WHEN ?2 <> 'failed' AND ?3 <> 'deleted' AND json_valid(payload)
    AND payload ->> '$.extras.note' IS NULL AND substr(payload ->> '$.text', 1, 1) <> '/'
    THEN json_object('origin', json_remove(payload -> '$.origin', '$.name'), 'addressed', payload ->> '$.addressed',
        'sent_at', payload ->> '$.sent_at') END";

/// Closes a row. The transcript has the text now, so the row keeps the [`FACTS`] alone. A row closed
/// before keeps its outcome.
pub(crate) fn close(
    tx: &Transaction<'_>,
    id: i64,
    closing: Closing,
    outcome: &str,
    now: i64,
) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached(&format!(
        "UPDATE inbox SET state = ?2, outcome = ?3, payload = {FACTS}, closed_at = ?4 WHERE id = ?1 AND state = 'waiting'"
    ))?;
    statement
        .execute(params![id, closing.as_str(), outcome, now])
        .map(drop)
}

/// A message that people wrote, as far as routing asks about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) id: i64,
    /// With the current key of its place, and without the name of a topic.
    pub(crate) origin: Origin,
    pub(crate) addressed: Addressed,
    /// Unix milliseconds, by the platform's clock.
    pub(crate) sent_at: i64,
    pub(crate) received_at: i64,
}

/// The facts of a row. A whole message has them too.
#[derive(Deserialize)]
struct Facts {
    origin: Origin,
    addressed: Addressed,
    sent_at: i64,
    #[serde(default)]
    extras: Extras,
    #[serde(default)]
    text: String,
}

/// Rows that are looked at for messages; commands and reactions are among them.
const MOST_LOOKED_AT: u32 = 20_000;

/// The latest messages of people, the newest first: those before this row. Commands, edits and
/// reactions are left out.
pub(crate) fn heard(
    connection: &Connection,
    before: i64,
    limit: usize,
) -> rusqlite::Result<Vec<Heard>> {
    let mut statement = connection.prepare_cached(
        "SELECT row.id, payload, key, received_at
         FROM (SELECT * FROM inbox WHERE id < ?1 ORDER BY id DESC LIMIT ?2) AS row JOIN places ON places.id = place_id
         WHERE payload IS NOT NULL AND platform <> ?3 AND state <> 'broken' ORDER BY row.id DESC",
    )?;
    let mut rows = statement.query(params![before, MOST_LOOKED_AT, INTERNAL])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()?
        && found.len() < limit
    {
        found.extend(heard_in(row)?);
    }
    Ok(found)
}

/// None for a row that cannot be read, and for one that asks for no answer.
fn heard_in(row: &Row<'_>) -> rusqlite::Result<Option<Heard>> {
    let facts = text(row, 1)
        .ok()
        .and_then(|payload| serde_json::from_str::<Facts>(&payload).ok());
    let place = key(row, 2).ok().flatten().and_then(|key| key.parse().ok());
    let (Some(facts), Some(place)) = (facts, place) else {
        return Ok(None);
    };
    if facts.extras.note.is_some() || facts.text.starts_with('/') {
        return Ok(None);
    }
    Ok(Some(Heard {
        id: row.get(0)?,
        origin: Origin {
            key: place,
            name: None,
            ..facts.origin
        },
        addressed: facts.addressed,
        sent_at: facts.sent_at,
        received_at: row.get(3)?,
    }))
}

/// Outcomes of refused messages that lists put into words.
pub(crate) const OBSERVED: &str = "observed";
pub(crate) const UNBOUND: &str = "place is not bound";
pub(crate) const NEW_GUEST: &str = "a guest";
pub(crate) const WAITING_GUEST: &str = "a guest who waits to be let in";
pub(crate) const GUEST_TURNED_AWAY: &str = "a guest who was turned away";

/// Messages of a place that got no answer for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ignored {
    pub(crate) place: SessionKey,
    pub(crate) reason: String,
    pub(crate) messages: i64,
    pub(crate) last_at: i64,
}

/// Messages that were refused since then, by place and reason, the latest first. Edits and reactions
/// ask for no answer.
pub(crate) fn ignored(connection: &Connection, since: i64) -> rusqlite::Result<Vec<Ignored>> {
    let mut statement = connection.prepare_cached(
        "SELECT key, coalesce(outcome, ''), count(*), max(closed_at)
         FROM inbox JOIN places ON places.id = place_id
         WHERE state = 'refused' AND closed_at >= ?1 AND outcome NOT LIKE 'a note %'
         GROUP BY key, outcome ORDER BY max(closed_at) DESC, max(inbox.id) DESC",
    )?;
    let rows = statement.query_map([since], |row| {
        let place = row.get::<_, String>(0)?.parse().ok();
        let (reason, messages, last_at) = (row.get(1)?, row.get(2)?, row.get(3)?);
        Ok(place.map(|place| Ignored {
            place,
            reason,
            messages,
            last_at,
        }))
    })?;
    rows.filter_map(Result::transpose).collect()
}

/// Closes waiting messages on request.
pub(crate) fn call_off(tx: &Transaction<'_>, ids: &[i64], now: i64) -> rusqlite::Result<()> {
    let sql = "UPDATE inbox SET state = 'done', outcome = 'stopped', payload = NULL, closed_at = ?2 WHERE id = ?1 AND state = 'waiting'";
    let mut statement = tx.prepare_cached(sql)?;
    ids.iter()
        .try_for_each(|id| statement.execute(params![id, now]).map(drop))
}

/// The waiting rows of these updates, each with the key of its place.
pub(crate) fn of_updates(
    connection: &Connection,
    platform: Platform,
    update_ids: &[String],
) -> rusqlite::Result<Vec<(i64, String)>> {
    let mut statement = connection.prepare_cached(
        "SELECT inbox.id, key FROM inbox JOIN places ON places.id = place_id
         WHERE platform = ?1 AND update_id = ?2 AND state = 'waiting'",
    )?;
    let mut found = Vec::new();
    for id in update_ids {
        let row = statement.query_row(params![platform.as_str(), id], |row| {
            Ok((row.get(0)?, row.get(1)?))
        });
        found.extend(row.optional()?);
    }
    Ok(found)
}

/// The outcome of a row after people deleted its message.
const DELETED: &str = "deleted";
/// The outcome of a row after its place was deleted.
const PLACE_GONE: &str = "its place is gone";

/// Closes the waiting rows of these messages of a platform, even if their turn has begun.
pub(crate) fn delete(
    tx: &Transaction<'_>,
    platform: Platform,
    messages: &[MessageId],
    now: i64,
) -> rusqlite::Result<Vec<(i64, Inbound)>> {
    let mut statement = tx.prepare_cached(
        "SELECT id, payload FROM inbox WHERE state = 'waiting' AND platform = ?1",
    )?;
    let rows = statement.query_map([platform.as_str()], |row| {
        Ok((row.get(0)?, text(row, 1).ok()))
    })?;
    let mut deleted = Vec::new();
    for row in rows {
        let (id, payload) = row?;
        let inbound = serde_json::from_str::<Inbound>(&payload.unwrap_or_default()).ok();
        deleted.extend(
            inbound
                .filter(|inbound| messages.contains(&inbound.message))
                .map(|inbound| (id, inbound)),
        );
    }
    deleted
        .iter()
        .try_for_each(|(id, _)| close(tx, *id, Closing::Done, DELETED, now))?;
    forget_failed(tx, platform, messages)?;
    Ok(deleted)
}

/// A deleted message is not tried again, and its words go.
fn forget_failed(
    tx: &Transaction<'_>,
    platform: Platform,
    messages: &[MessageId],
) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached(
        "SELECT id, payload FROM inbox WHERE state = 'failed' AND payload IS NOT NULL AND platform = ?1",
    )?;
    let rows = statement.query_map([platform.as_str()], |row| {
        Ok((row.get::<_, i64>(0)?, text(row, 1).unwrap_or_default()))
    })?;
    let mut forget = tx.prepare_cached("UPDATE inbox SET payload = NULL WHERE id = ?1")?;
    for row in rows {
        let (id, payload) = row?;
        let inbound = serde_json::from_str::<Inbound>(&payload).ok();
        if inbound.is_none_or(|inbound| messages.contains(&inbound.message)) {
            forget.execute([id])?;
        }
    }
    Ok(())
}

/// Whether the message of a row was deleted.
pub(crate) fn is_deleted(tx: &Transaction<'_>, id: i64) -> rusqlite::Result<bool> {
    tx.prepare_cached("SELECT 1 FROM inbox WHERE id = ?1 AND outcome = ?2")?
        .exists(params![id, DELETED])
}

/// Closes all waiting rows in a place and its parts.
pub(crate) fn close_place(
    tx: &Transaction<'_>,
    place: &SessionKey,
    now: i64,
) -> rusqlite::Result<()> {
    let [own, parts] = place.globs();
    let sql = "UPDATE inbox SET state = 'done', outcome = ?3, payload = NULL, closed_at = ?4
               WHERE state = 'waiting' AND place_id IN (SELECT id FROM places WHERE key GLOB ?1 OR key GLOB ?2)";
    tx.execute(sql, params![own, parts, PLACE_GONE, now])?;
    let sql = "UPDATE inbox SET payload = NULL WHERE state = 'failed' AND payload IS NOT NULL
               AND place_id IN (SELECT id FROM places WHERE key GLOB ?1 OR key GLOB ?2)";
    tx.execute(sql, params![own, parts]).map(drop)
}

/// Closes the rows of all messages answered together.
pub(crate) fn close_all(
    tx: &Transaction<'_>,
    accepted: &Accepted,
    closing: Closing,
    outcome: &str,
    now: i64,
) -> rusqlite::Result<()> {
    accepted
        .all()
        .try_for_each(|accepted| close(tx, accepted.id, closing, outcome, now))
}

/// Closes the rows of a failed turn with their payload, so that the turn can be tried again.
pub(crate) fn close_for_retry(
    tx: &Transaction<'_>,
    accepted: &Accepted,
    outcome: &str,
    now: i64,
) -> rusqlite::Result<()> {
    let sql = "UPDATE inbox SET state = 'failed', outcome = ?2, closed_at = ?3 WHERE id = ?1 AND state = 'waiting'";
    let mut statement = tx.prepare_cached(sql)?;
    accepted.all().try_for_each(|accepted| {
        statement
            .execute(params![accepted.id, outcome, now])
            .map(drop)
    })
}

/// The messages of a failed turn that can be tried again, by the row that the turn answered. The
/// rows of a turn are closed at the same moment.
pub(crate) fn failed_turn(
    connection: &Connection,
    id: i64,
) -> rusqlite::Result<Vec<(i64, Inbound)>> {
    let mut statement = connection.prepare_cached(
        "SELECT row.id, row.payload, key FROM inbox AS first
         JOIN inbox AS row ON row.closed_at = first.closed_at AND row.place_id = first.place_id
         LEFT JOIN places ON places.id = row.place_id
         WHERE first.id = ?1 AND first.state = 'failed' AND first.payload IS NOT NULL
           AND row.state = 'failed' AND row.payload IS NOT NULL ORDER BY row.id",
    )?;
    let rows = statement.query_map([id], |row| {
        let read = || inbound(&text(row, 1)?, key(row, 2)?);
        Ok((row.get(0)?, read().ok()))
    })?;
    let readable = rows.filter_map(|row| match row {
        Ok((id, inbound)) => inbound.map(|inbound| Ok((id, inbound))),
        Err(error) => Some(Err(error)),
    });
    readable.collect()
}

/// Has the messages of a failed turn wait again.
pub(crate) fn reopen(tx: &Transaction<'_>, ids: &[i64]) -> rusqlite::Result<()> {
    let sql = "UPDATE inbox SET state = 'waiting', outcome = NULL, closed_at = NULL
               WHERE id = ?1 AND state = 'failed' AND payload IS NOT NULL";
    let mut statement = tx.prepare_cached(sql)?;
    ids.iter()
        .try_for_each(|id| statement.execute([id]).map(drop))
}

/// Drops the messages of failed turns of an agent. The turn log knows the agent.
pub(crate) fn purge(tx: &Transaction<'_>, agent: AgentUid) -> rusqlite::Result<()> {
    tx.execute(
        "UPDATE inbox SET payload = NULL WHERE state = 'failed' AND payload IS NOT NULL AND (place_id, closed_at) IN (
             SELECT first.place_id, first.closed_at FROM turns JOIN inbox AS first ON first.id = inbox_id
             WHERE agent_uid = ?1)",
        [agent.to_string()],
    )
    .map(drop)
}

/// For queries about rows of messages not yet answered.
pub(crate) const WAITING_IDS: &str = "SELECT id FROM inbox WHERE state = 'waiting'";

/// A waiting row. A payload from an older version may be unreadable.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) id: i64,
    pub(crate) inbound: Result<Inbound, String>,
}

/// The newest row; 0 if there is none.
pub(crate) fn newest(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT coalesce(max(id), 0) FROM inbox", [], |row| {
        row.get(0)
    })
}

/// The time of the newest row, if there is any.
pub fn newest_at(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    connection
        .query_row(
            "SELECT received_at FROM inbox ORDER BY id DESC LIMIT 1",
            [],
            |row| row.get(0),
        )
        .optional()
}

/// Whether a message of these updates still waits for its answer.
pub(crate) fn any_waits(
    connection: &Connection,
    platform: Platform,
    update_ids: &[String],
) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM inbox WHERE platform = ?1 AND update_id = ?2 AND state = 'waiting')",
    )?;
    for id in update_ids {
        let waits = statement.query_row(params![platform.as_str(), id], |row| row.get(0))?;
        if waits {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Waiting rows after row `after` and up to row `until`, oldest first.
pub(crate) fn waiting(
    connection: &Connection,
    after: i64,
    until: i64,
    limit: u32,
) -> rusqlite::Result<Vec<Waiting>> {
    let mut statement = connection.prepare_cached(
        "SELECT inbox.id, payload, key FROM inbox LEFT JOIN places ON places.id = place_id
         WHERE state = 'waiting' AND inbox.id > ?1 AND inbox.id <= ?2 ORDER BY inbox.id LIMIT ?3",
    )?;
    let rows = statement.query_map(params![after, until, limit], |row| {
        // An unreadable row must not hide all the others.
        let read = || inbound(&text(row, 1)?, key(row, 2)?);
        Ok(Waiting {
            id: row.get(0)?,
            inbound: read(),
        })
    })?;
    rows.collect()
}

/// A text, or why there is none: bytes in it may be no text.
fn text(row: &Row<'_>, column: usize) -> Result<String, String> {
    let text = row.get::<_, Option<String>>(column);
    Ok(text.map_err(|error| error.to_string())?.unwrap_or_default())
}

fn key(row: &Row<'_>, column: usize) -> Result<Option<String>, String> {
    row.get(column).map_err(|error| error.to_string())
}

/// The message of a row, with the current key of its place. The key may have changed since the
/// message came.
fn inbound(payload: &str, key: Option<String>) -> Result<Inbound, String> {
    let mut inbound: Inbound = serde_json::from_str(payload).map_err(|error| error.to_string())?;
    if let Some(key) = key {
        inbound.origin.key = key
            .parse()
            .map_err(|error: InvalidSessionKey| error.to_string())?;
    }
    Ok(inbound)
}

/// The messages of these rows, as far as they still wait and can be read.
pub(crate) fn messages_of(
    connection: &Connection,
    ids: &[i64],
) -> rusqlite::Result<Vec<(i64, Inbound)>> {
    let mut statement = connection.prepare_cached(
        "SELECT payload, key FROM inbox LEFT JOIN places ON places.id = place_id
         WHERE inbox.id = ?1 AND state = 'waiting'",
    )?;
    let mut found = Vec::new();
    for id in ids {
        let row = statement.query_row([id], |row| {
            let read = || inbound(&text(row, 0)?, key(row, 1)?);
            Ok(read().ok())
        });
        found.extend(row.optional()?.flatten().map(|inbound| (*id, inbound)));
    }
    Ok(found)
}

/// Whether the place has messages after this message. In a group with a conversation for each
/// member, the messages of all members count.
pub(crate) fn others_wrote(connection: &Connection, accepted: &Accepted) -> rusqlite::Result<bool> {
    let place = &accepted.inbound.origin.key;
    let group = place.whole_group().filter(|_| !place.is_shared());
    let places = group.map_or_else(|| place.to_string(), |group| format!("{group}:*"));
    let mut statement = connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM inbox WHERE id > ?1 AND place_id IN (SELECT id FROM places WHERE key GLOB ?2))",
    )?;
    let last = accepted
        .all()
        .map(|accepted| accepted.id)
        .max()
        .unwrap_or(accepted.id);
    statement.query_row(params![last, places], |row| row.get(0))
}

/// The outcome of a message refused at a limit.
pub(crate) const OVER_BUDGET: &str = "over budget";

/// The number of messages refused at a limit since `since`.
pub(crate) fn count_over_budget(connection: &Connection, since: i64) -> rusqlite::Result<i64> {
    connection.query_row(
        "SELECT count(*) FROM inbox WHERE closed_at >= ?1 AND state = 'refused' AND outcome = ?2",
        params![since, OVER_BUDGET],
        |row| row.get(0),
    )
}

/// The number of unreadable updates within the time they are kept.
pub(crate) fn count_broken(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row(
        "SELECT count(*) FROM inbox WHERE state = 'broken'",
        [],
        |row| row.get(0),
    )
}

pub(crate) fn forget_old(tx: &Transaction<'_>, now: i64, most: u32) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM inbox WHERE id IN (SELECT id FROM inbox WHERE closed_at < ?1 LIMIT ?2)";
    tx.execute(sql, params![now - KEPT_MS, most])
}
