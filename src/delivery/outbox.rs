//! The `outbox` table: rows written but not yet delivered. One row is one call to the platform.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use dashmap::DashSet;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::verdict::{Again, NEVER_CONFIRMED, Pause, Rest};
use super::{preview_messages, retry_after, undelivered};
use crate::channels::{Part, Ticket};
use crate::domain::{AgentUid, Destination, MessageId, SessionKey};
use crate::fail_points::{self, Write};
use crate::routing::delivery_off;
use crate::routing::places::{self, PlaceId};
use crate::storage::{StoreError, part};

/// Why a row is sent. Earlier variants go first when a budget is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An agent's answer.
    Final,
    /// The answer to a command.
    Command,
    /// A notice from the gateway itself.
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

    fn parse(text: &str) -> Option<Self> {
        Kind::ALL.into_iter().find(|known| known.as_str() == text)
    }
}

/// A row before it is written.
#[derive(Debug, Clone)]
pub struct Draft {
    pub(super) to: Destination,
    pub(super) kind: Kind,
    pub(super) part: Part,
    /// The stored copy of a file to send; `part` then describes the file.
    pub(super) file: Option<String>,
}

impl Draft {
    pub(crate) fn place(&self) -> &SessionKey {
        self.to.place()
    }
}

/// A row marked as being sent. Only [`claim`] makes this type.
#[derive(Debug)]
pub(super) struct ClaimedRow {
    pub(super) id: i64,
    pub(super) to: Destination,
    pub(super) part: Part,
    pub(super) file: Option<String>,
    /// The message to edit instead of sending a new message; an empty part removes the message.
    pub(super) target: Option<MessageId>,
    pub(super) attempts: u32,
    /// The outcome of an earlier call is unknown.
    pub(super) repeated: bool,
    pub(super) created_at: i64,
    /// Time spent on tries up to the last return to the queue.
    pub(super) tried: Duration,
    pub(super) inbox_id: Option<i64>,
    kind: Option<Kind>,
}

impl ClaimedRow {
    /// Includes the creation time, because a new database numbers its rows from 1 again.
    pub(super) fn ticket(&self) -> Ticket {
        Ticket(format!("o{:x}-{:x}", self.id, self.created_at))
    }
}

/// The place's next row, or why none is sent now.
#[derive(Debug)]
pub(super) enum Next {
    Claimed(ClaimedRow),
    /// The platform asked for this wait.
    Wait {
        id: i64,
        wait: Duration,
    },
    /// The row may be repeated only once, and the platform is not known to answer.
    LastTry,
    /// Several replies to commands have waited for too long; [`merge_stale`] makes them one.
    Stale,
    Nothing,
}

/// The sender's knowledge for [`claim`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Knows {
    /// The row whose wait is over, even if the clock says otherwise.
    pub(super) waited_for: Option<i64>,
    pub(super) platform_answers: bool,
    /// The message whose answer the last row belonged to. Its further parts are not overtaken.
    pub(super) finishing: Option<i64>,
    /// Old replies to commands are sent as they are.
    pub(super) keeps_stale: bool,
}

/// The id of the agent whose turn answered a message, for the log.
pub(super) fn agent_behind(
    connection: &Connection,
    inbox_id: i64,
) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT slug FROM agents WHERE uid =
        (SELECT agent_uid FROM turns WHERE inbox_id = ?1 ORDER BY id DESC LIMIT 1)";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row([inbox_id], |row| row.get(0)).optional()
}

/// How many rows there are in each state.
pub(crate) fn by_state(connection: &Connection) -> rusqlite::Result<BTreeMap<String, u64>> {
    let sql = "SELECT state, count(*) FROM outbox GROUP BY state";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        let count: i64 = row.get(1)?;
        Ok((row.get(0)?, count.unsigned_abs()))
    })?;
    rows.collect()
}

/// The origin of the text of rows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Source {
    /// The inbox row of the answered message.
    pub inbox_id: Option<i64>,
    /// The transcript row with the text, if an agent speaks.
    pub said_id: Option<i64>,
}

impl Source {
    /// The gateway itself speaks, perhaps in answer to a message.
    pub(crate) fn of(inbox_id: Option<i64>) -> Self {
        Source {
            inbox_id,
            said_id: None,
        }
    }
}

pub(crate) fn insert(
    tx: &Transaction<'_>,
    rows: &[Draft],
    source: Source,
    now: i64,
) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached(
        "INSERT INTO outbox (place_id, kind, part, inbox_id, said_id, created_at, file) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for row in rows {
        let place = places::ensure(tx, row.to.place(), now)?;
        statement.execute(params![
            place,
            row.kind.as_str(),
            row.part.0,
            source.inbox_id,
            source.said_id,
            now,
            row.file
        ])?;
    }
    Ok(())
}

/// Writes rows and returns their ids.
pub(crate) fn insert_numbered(
    tx: &Transaction<'_>,
    rows: &[Draft],
    source: Source,
    now: i64,
) -> rusqlite::Result<Vec<i64>> {
    insert(tx, rows, source, now)?;
    // The only writer connection numbers rows consecutively.
    let last = tx.last_insert_rowid();
    let count = i64::try_from(rows.len()).unwrap_or(0);
    Ok((last - count + 1..=last).collect())
}

/// Writes rows of which the first changes a message that was sent before.
pub(crate) fn insert_change(
    tx: &Transaction<'_>,
    rows: &[Draft],
    message: &MessageId,
    source: Source,
    now: i64,
) -> rusqlite::Result<()> {
    let Some(first) = insert_numbered(tx, rows, source, now)?.first().copied() else {
        return Ok(());
    };
    tx.prepare_cached("UPDATE outbox SET target = ?2 WHERE id = ?1")?
        .execute(params![first, message.0])
        .map(drop)
}

/// Gives a row another text before its first call. False if a call was made.
pub(crate) fn replace_untried(tx: &Transaction<'_>, id: i64, by: &Draft) -> rusqlite::Result<bool> {
    let sql = "UPDATE outbox SET part = ?2 WHERE id = ?1 AND state = 'waiting' AND attempts = 0";
    Ok(tx.prepare_cached(sql)?.execute(params![id, by.part.0])? == 1)
}

/// Writes an answer. Its first parts go into the preview messages as edits, the others into new
/// messages. Surplus preview messages are removed. Returns the number of rows.
pub(crate) fn insert_answer(
    tx: &Transaction<'_>,
    rows: &[Draft],
    inbox_id: i64,
    said_id: Option<i64>,
    now: i64,
) -> rusqlite::Result<usize> {
    insert(
        tx,
        rows,
        Source {
            inbox_id: Some(inbox_id),
            said_id,
        },
        now,
    )?;
    // The only writer connection numbers rows consecutively.
    let first = tx.last_insert_rowid() - i64::try_from(rows.len()).unwrap_or(0) + 1;
    let Some(answer) = rows.first() else {
        return Ok(0);
    };
    let shown = preview_messages::take(tx, inbox_id)?;
    let mut change = tx.prepare_cached("UPDATE outbox SET target = ?2 WHERE id = ?1")?;
    for (id, message) in (first..).zip(shown.iter().take(rows.len())) {
        change.execute(params![id, message.0])?;
    }
    let mut take_away = tx.prepare_cached(
        "INSERT INTO outbox (place_id, kind, part, target, inbox_id, created_at) VALUES (?1, ?2, '', ?3, ?4, ?5)",
    )?;
    let surplus = shown.get(rows.len()..).unwrap_or_default();
    for message in surplus {
        take_away.execute(params![
            places::ensure(tx, answer.to.place(), now)?,
            answer.kind.as_str(),
            message.0,
            inbox_id,
            now
        ])?;
    }
    match keep_back(tx, answer.to.place(), first)? {
        true => Ok(0),
        false => Ok(rows.len() + surplus.len()),
    }
}

/// Writes further rows with an agent's words, such as files. Returns the number of rows to send.
pub(crate) fn insert_of_agent(
    tx: &Transaction<'_>,
    rows: &[Draft],
    source: Source,
    now: i64,
) -> rusqlite::Result<usize> {
    let ids = insert_numbered(tx, rows, source, now)?;
    match (ids.first(), rows.first()) {
        (Some(first), Some(row)) if keep_back(tx, row.to.place(), *first)? => Ok(0),
        _ => Ok(rows.len()),
    }
}

/// Keeps the newest rows of a place from `first` on as undelivered, if delivery is off there. Returns
/// whether it is.
fn keep_back(tx: &Transaction<'_>, place: &SessionKey, first: i64) -> rusqlite::Result<bool> {
    if !delivery_off::is_off(tx, place)? {
        return Ok(false);
    }
    let sql = "UPDATE outbox SET state = 'failed', error = ?3 WHERE id >= ?1 AND place_id = ?2";
    tx.prepare_cached(sql)?
        .execute(params![first, places::id(tx, place)?, DELIVERY_IS_OFF])?;
    Ok(true)
}

/// The reason of rows that are kept until delivery is on.
pub(super) const DELIVERY_IS_OFF: &str = "delivery is off here";

/// Rows that are kept because delivery is off in their place.
pub(super) const IS_KEPT: &str = "outbox.state = 'failed' AND outbox.error = 'delivery is off here'
     AND outbox.place_id IN (SELECT place_id FROM delivery_off)";

/// A reply to a command that no call was made for. `?3` is the message that is being answered.
const UNTRIED_COMMAND: &str =
    "kind = 'command' AND state = 'waiting' AND attempts = 0 AND inbox_id IS NOT ?3";

/// The open rows of the place `?1` in the order they are sent: by age, but in a shared place
/// (`?2`) replies to commands come last. A flood of commands would delay the answers of all
/// others there.
fn in_order(columns: &str) -> String {
    format!(
        "SELECT {columns} FROM outbox WHERE place_id = ?1 AND state IN ('waiting', 'sending')
         ORDER BY (?2 AND {UNTRIED_COMMAND}), id"
    )
}

/// The kind of the place's next row.
pub(super) fn next_kind(
    connection: &Connection,
    place: &SessionKey,
    finishing: Option<i64>,
) -> rusqlite::Result<Option<Kind>> {
    let id = places::id(connection, place)?;
    let kind = connection
        .prepare_cached(&format!("{} LIMIT 1", in_order("kind")))?
        .query_row(params![id, place.is_shared(), finishing], |row| {
            row.get::<_, String>(0)
        })
        .optional()?;
    Ok(kind.and_then(|kind| Kind::parse(&kind)))
}

/// Rows that this process leaves alone, because their state can never be written.
pub(super) type LeftAlone = DashSet<i64>;

const COLUMNS: &str = "id, part, attempts, repeated, created_at, target, file, tried_ms, not_before, wait_ms, inbox_id, kind";

/// Marks the place's next row as being sent. A crash after this leaves open whether the row
/// arrived.
pub(super) fn claim(
    tx: &Transaction<'_>,
    place: &SessionKey,
    left_alone: &LeftAlone,
    knows: Knows,
    now: i64,
) -> rusqlite::Result<Next> {
    fail_points::writes(Write::OutboxClaim);
    let claimed = |row: &Row<'_>| claimed(row, place, now);
    let found = if left_alone.is_empty() {
        let id = places::id(tx, place)?;
        tx.prepare_cached(&format!("{} LIMIT 1", in_order(COLUMNS)))?
            .query_row(params![id, place.is_shared(), knows.finishing], claimed)
    } else {
        tx.prepare_cached(&format!("SELECT {COLUMNS} FROM outbox WHERE id = ?1"))?
            .query_row([next_id(tx, place, left_alone, knows.finishing)?], claimed)
    };
    let found = found.optional()?;
    let Some((row, wait)) = found else {
        return Ok(Next::Nothing);
    };
    if row.may_be_stale(place, knows, now) && stale(tx, place, knows.finishing, now)?.len() > 1 {
        return Ok(Next::Stale);
    }
    if !wait.is_zero() && knows.waited_for != Some(row.id) {
        return Ok(Next::Wait { id: row.id, wait });
    }
    if row.repeated && row.target.is_none() && !knows.platform_answers {
        return Ok(Next::LastTry);
    }
    tx.prepare_cached(
        "UPDATE outbox SET state = 'sending', attempts = attempts + 1 WHERE id = ?1",
    )?
    .execute([row.id])?;
    Ok(Next::Claimed(row))
}

/// The place's next open row that is not left alone.
pub(super) fn next_id(
    connection: &Connection,
    place: &SessionKey,
    left_alone: &LeftAlone,
    finishing: Option<i64>,
) -> rusqlite::Result<Option<i64>> {
    let id = places::id(connection, place)?;
    let mut statement = connection.prepare_cached(&in_order("id"))?;
    let mut rows = statement.query(params![id, place.is_shared(), finishing])?;
    while let Some(row) = rows.next()? {
        let id = row.get(0)?;
        if !left_alone.contains(&id) {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// The row, with the rest of the wait asked for by the platform.
fn claimed(
    row: &Row<'_>,
    place: &SessionKey,
    now: i64,
) -> rusqlite::Result<(ClaimedRow, Duration)> {
    let claimed = ClaimedRow {
        id: row.get(0)?,
        to: Destination::stored(place.clone()),
        part: Part(row.get(1)?),
        attempts: row.get(2)?,
        repeated: row.get(3)?,
        created_at: row.get(4)?,
        target: row.get::<_, Option<String>>(5)?.map(MessageId),
        file: row.get(6)?,
        tried: retry_after::duration(row.get(7)?),
        inbox_id: row.get(10)?,
        kind: Kind::parse(&row.get::<_, String>(11)?),
    };
    Ok((claimed, retry_after::rest(row.get(8)?, row.get(9)?, now)))
}

impl ClaimedRow {
    /// Whether the row is a reply to a command that waited for too long in a shared place.
    fn may_be_stale(&self, place: &SessionKey, knows: Knows, now: i64) -> bool {
        !knows.keeps_stale
            && place.is_shared()
            && self.kind == Some(Kind::Command)
            && self.attempts == 0
            && self.created_at < now - LONG_WAIT_MS
    }
}

/// The replies to commands that waited for too long, the oldest first.
fn stale(
    tx: &Transaction<'_>,
    place: &SessionKey,
    finishing: Option<i64>,
    now: i64,
) -> rusqlite::Result<Vec<i64>> {
    let mut statement = tx.prepare_cached(&format!(
        "SELECT id FROM outbox WHERE place_id = ?1 AND state IN ('waiting', 'sending') AND {UNTRIED_COMMAND}
           AND created_at < ?2 ORDER BY id"
    ))?;
    let ids = statement.query_map(
        params![places::id(tx, place)?, now - LONG_WAIT_MS, finishing],
        |row| row.get(0),
    )?;
    ids.collect()
}

/// Puts one line in the place of all replies to commands that waited for too long. Returns the
/// number of rows gone. The commands themselves were carried out before.
pub(super) fn merge_stale(
    tx: &Transaction<'_>,
    place: &SessionKey,
    line: &Part,
    finishing: Option<i64>,
    now: i64,
) -> rusqlite::Result<usize> {
    let stale = stale(tx, place, finishing, now)?;
    let Some((oldest, others)) = stale.split_first() else {
        return Ok(0);
    };
    tx.prepare_cached("UPDATE outbox SET part = ?2, kind = 'notice' WHERE id = ?1")?
        .execute(params![oldest, line.0])?;
    let mut delete = tx.prepare_cached("DELETE FROM outbox WHERE id = ?1")?;
    for id in others {
        delete.execute([id])?;
    }
    Ok(others.len())
}

/// Clears the text of a delivered row: the transcript has the text of answers.
pub(super) fn sent(
    tx: &Transaction<'_>,
    id: i64,
    message: &MessageId,
    now: i64,
) -> rusqlite::Result<()> {
    fail_points::writes(Write::OutboxOutcome);
    let mut statement = tx.prepare_cached(
        "UPDATE outbox SET state = 'sent', part = '', file = NULL, message_id = ?2, sent_at = ?3, error = NULL WHERE id = ?1",
    )?;
    statement.execute(params![id, message.0, now]).map(drop)
}

/// Puts the row back into the queue: a duplicate answer is better than a lost answer. Only waits
/// asked for by the platform are stored, because a restart may cut our own backoff short.
pub(super) fn again(
    tx: &Transaction<'_>,
    id: i64,
    again: &Again,
    tried: Duration,
    now: i64,
) -> rusqlite::Result<()> {
    fail_points::writes(Write::OutboxOutcome);
    let wait = match again.pause {
        Pause::Asked(wait) => retry_after::millis(wait),
        Pause::None | Pause::BackOff => 0,
    };
    let mut statement = tx.prepare_cached(
        "UPDATE outbox SET state = 'waiting', not_before = ?2, wait_ms = ?3, error = ?4, repeated = ?5, tried_ms = ?6, waited_ms = waited_ms + ?3 WHERE id = ?1",
    )?;
    statement
        .execute(params![
            id,
            now.saturating_add(wait),
            wait,
            again.error,
            again.repeated,
            retry_after::millis(tried)
        ])
        .map(drop)
}

/// The message to change is gone, so the row becomes an ordinary send.
pub(super) fn send_instead(tx: &Transaction<'_>, id: i64) -> rusqlite::Result<()> {
    fail_points::writes(Write::OutboxOutcome);
    let mut statement =
        tx.prepare_cached("UPDATE outbox SET state = 'waiting', target = NULL WHERE id = ?1")?;
    statement.execute([id]).map(drop)
}

/// Keeps the text in the row, for the operator to see the undelivered answer.
pub(super) fn failed(tx: &Transaction<'_>, id: i64, error: &str) -> rusqlite::Result<()> {
    tx.prepare_cached("UPDATE outbox SET state = 'failed', error = ?2 WHERE id = ?1")?
        .execute(params![id, error])
        .map(drop)
}

/// Gives up a row, and the later parts of its answer if they stay behind. Other answers go on.
pub(super) fn given_up(
    tx: &Transaction<'_>,
    id: i64,
    error: &str,
    rest: Rest,
) -> rusqlite::Result<()> {
    fail_points::writes(Write::OutboxOutcome);
    failed(tx, id, error)?;
    if rest == Rest::GoesOn {
        return Ok(());
    }
    let later_parts = "UPDATE outbox SET state = 'failed', error = ?2
         WHERE state IN ('waiting', 'sending') AND state = 'waiting' AND id > ?1 AND part <> '' AND file IS NULL
           AND (place_id, kind, inbox_id) = (SELECT place_id, kind, inbox_id FROM outbox WHERE id = ?1)";
    tx.prepare_cached(later_parts)?
        .execute(params![id, NO_BEGINNING])
        .map(drop)
}

/// Gives up the waiting rows of a deleted place and its parts. A row being sent right now is
/// settled by the outcome of its call.
pub(crate) fn give_up(
    tx: &Transaction<'_>,
    place: &SessionKey,
    error: &str,
) -> rusqlite::Result<()> {
    let [own, parts] = place.globs();
    let sql = "UPDATE outbox SET state = 'failed', error = ?3
               WHERE state IN ('waiting', 'sending') AND state = 'waiting'
                 AND place_id IN (SELECT id FROM places WHERE key GLOB ?1 OR key GLOB ?2)";
    tx.execute(sql, params![own, parts, error]).map(drop)
}

/// Rows after a crash.
pub(super) struct Reopened {
    /// The places with open rows.
    pub(super) open: Vec<(SessionKey, usize)>,
    /// Rows that cannot be reopened.
    pub(super) stuck: Vec<(i64, StoreError)>,
}

/// Reopens rows after a crash. An interrupted send goes out once more, and never a third time.
/// Edits, and sends whose repetition the platform detects, may be repeated without limit. Failed
/// rows go out again if a retry was asked for meanwhile.
pub(super) fn reopen(
    tx: &Transaction<'_>,
    now: i64,
    is_told_apart: impl Fn(&SessionKey, &Part, Duration) -> bool,
) -> rusqlite::Result<Reopened> {
    fail_points::writes(Write::OutboxReopened);
    if let Err(error) = part(tx, || undelivered::retry_asked(tx, now))? {
        tracing::error!("failed messages are not sent again: {error}");
    }
    let mut stuck = Vec::new();
    for (id, may_have_arrived) in interrupted(tx, now, is_told_apart)? {
        let reopened = part(tx, || reopen_one(tx, id, may_have_arrived))?;
        stuck.extend(reopened.err().map(|error| (id, error)));
    }
    Ok(Reopened {
        open: open_places(tx)?,
        stuck,
    })
}

/// Places with rows to send, and how many each has.
pub(crate) fn open_places(connection: &Connection) -> rusqlite::Result<Vec<(SessionKey, usize)>> {
    let mut statement = connection.prepare(
        "SELECT key, count(*) FROM outbox JOIN places ON places.id = place_id WHERE state IN ('waiting', 'sending')
         GROUP BY place_id ORDER BY min(outbox.id)",
    )?;
    let open = statement
        .query_map([], place_and_count)?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(open.into_iter().flatten().collect())
}

/// Places with rows to send: how many each has, and since when the oldest waits.
pub(crate) fn waiting_since(
    connection: &Connection,
) -> rusqlite::Result<Vec<(SessionKey, usize, i64)>> {
    let mut statement = connection.prepare_cached(
        "SELECT key, count(*), min(outbox.created_at) FROM outbox JOIN places ON places.id = place_id
         WHERE state IN ('waiting', 'sending') GROUP BY place_id ORDER BY min(outbox.id)",
    )?;
    let waiting = statement.query_map([], |row| {
        let since: i64 = row.get(2)?;
        Ok(place_and_count(row)?.map(|(place, count)| (place, count, since)))
    })?;
    waiting.filter_map(Result::transpose).collect()
}

/// Keys unreadable for this version are left out.
fn place_and_count(row: &Row<'_>) -> rusqlite::Result<Option<(SessionKey, usize)>> {
    let (key, count) = (row.get::<_, String>(0), row.get::<_, i64>(1)?);
    let key = key.ok().and_then(|key| key.parse().ok());
    Ok(key.zip(usize::try_from(count).ok()))
}

/// Rows with an interrupted call, and whether a repetition could show a second message.
fn interrupted(
    tx: &Transaction<'_>,
    now: i64,
    is_told_apart: impl Fn(&SessionKey, &Part, Duration) -> bool,
) -> rusqlite::Result<Vec<(i64, bool)>> {
    // The first condition repeats the partial index's own words, so SQLite skips sent rows.
    let sending = "SELECT outbox.id, key, part, target IS NOT NULL, outbox.created_at FROM outbox JOIN places ON places.id = place_id
                   WHERE state IN ('waiting', 'sending') AND state = 'sending'";
    let mut statement = tx.prepare(sending)?;
    let rows = statement.query_map([], |row| {
        let is_change: bool = row.get(3)?;
        // A row that cannot be read is not told apart, and must not hide the others.
        let place = row.get::<_, String>(1).ok();
        let place = place.and_then(|place| place.parse().ok());
        let part = row.get(2).ok().map(Part);
        // A row from the future was written under another clock.
        let age = u64::try_from(now.saturating_sub(row.get::<_, i64>(4)?))
            .ok()
            .map(Duration::from_millis);
        let is_told_apart = place
            .zip(part)
            .zip(age)
            .is_some_and(|((place, part), age)| is_told_apart(&place, &part, age));
        Ok((row.get(0)?, !is_change && !is_told_apart))
    })?;
    rows.collect()
}

fn reopen_one(tx: &Transaction<'_>, id: i64, may_have_arrived: bool) -> rusqlite::Result<()> {
    let sql = "UPDATE outbox SET state = iif(?2 AND repeated, 'failed', 'waiting'), error = iif(?2 AND repeated, ?3, error),
                                 repeated = max(repeated, ?2) WHERE id = ?1";
    tx.prepare_cached(sql)?
        .execute(params![id, may_have_arrived, NEVER_CONFIRMED])
        .map(drop)
}

/// The number of waiting rows in each of these places.
pub(crate) fn waiting_in(
    tx: &Transaction<'_>,
    places: &[PlaceId],
) -> rusqlite::Result<Vec<(SessionKey, usize)>> {
    let mut statement = tx.prepare(
        "SELECT key, count(*) FROM outbox JOIN places ON places.id = place_id
         WHERE state IN ('waiting', 'sending') AND state = 'waiting' AND place_id = ?1 GROUP BY place_id",
    )?;
    let found = places
        .iter()
        .map(|place| statement.query_row([place], place_and_count).optional());
    Ok(found
        .collect::<rusqlite::Result<Vec<_>>>()?
        .into_iter()
        .flatten()
        .flatten()
        .collect())
}

/// The rows of these places with a call in progress, with the key of their place.
pub(crate) fn being_sent(
    tx: &Transaction<'_>,
    places: &[PlaceId],
) -> rusqlite::Result<Vec<(i64, SessionKey)>> {
    let mut statement = tx.prepare(
        "SELECT outbox.id, key FROM outbox JOIN places ON places.id = place_id
         WHERE state IN ('waiting', 'sending') AND state = 'sending' AND place_id = ?1",
    )?;
    let mut found = Vec::new();
    for place in places {
        for row in statement.query_map([place], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
        })? {
            let (id, key) = row?;
            found.extend(key.parse().ok().map(|key| (id, key)));
        }
    }
    Ok(found)
}

/// Puts a row into another place.
pub(crate) fn put_into(tx: &Transaction<'_>, id: i64, place: PlaceId) -> rusqlite::Result<()> {
    tx.execute(
        "UPDATE outbox SET place_id = ?2 WHERE id = ?1",
        params![id, place],
    )
    .map(drop)
}

/// The places where a message with this id was sent since then, each with the transcript row of the
/// message.
pub(crate) fn sent_as(
    connection: &Connection,
    message: &MessageId,
    since: i64,
) -> rusqlite::Result<Vec<(SessionKey, i64)>> {
    let mut statement = connection.prepare_cached(
        "SELECT key, said_id FROM outbox JOIN places ON places.id = place_id
         WHERE sent_at > ?1 AND message_id = ?2 AND said_id IS NOT NULL",
    )?;
    let rows = statement.query_map(params![since, message.0], |row| {
        Ok((row.get::<_, String>(0)?, row.get(1)?))
    })?;
    let sent = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(sent
        .into_iter()
        .filter_map(|(place, said)| Some((place.parse().ok()?, said)))
        .collect())
}

/// Forgets the target messages of rows in a migrated group: edits become sends, and removals are
/// dropped. Message ids of the old group mean other messages in the new group.
pub(crate) fn forget_targets(tx: &Transaction<'_>, place: PlaceId) -> rusqlite::Result<()> {
    preview_messages::forget_in(tx, place)?;
    let open = "target IS NOT NULL AND state IN ('waiting', 'failed') AND place_id = ?1";
    tx.execute(
        &format!("DELETE FROM outbox WHERE part = '' AND {open}"),
        [place],
    )?;
    tx.execute(
        &format!("UPDATE outbox SET target = NULL WHERE {open}"),
        [place],
    )
    .map(drop)
}

/// Delivery problems for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Troubles {
    /// Rows given up.
    pub failed: i64,
    /// Rows kept because delivery is off in their place.
    pub kept: i64,
    /// Rows waiting for longer than a minute, and still tried.
    pub waiting: i64,
    /// The oldest waiting row: its place, and the reason of the wait, if known.
    pub oldest: Option<(String, Option<String>)>,
    /// Rows sent a second time, because the outcome of the first call is unknown.
    pub repeated: i64,
    /// Rows that wait or are being sent, for however long.
    pub on_the_way: i64,
}

pub(crate) fn troubles(connection: &Connection, now: i64) -> rusqlite::Result<Troubles> {
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let kept = count(&format!("SELECT count(*) FROM outbox WHERE {IS_KEPT}"))?;
    let long = "FROM outbox WHERE state IN ('waiting', 'sending') AND created_at < ?1";
    let since = now - LONG_WAIT_MS;
    let oldest = format!(
        "SELECT (SELECT key FROM places WHERE places.id = place_id), error {long} ORDER BY id LIMIT 1"
    );
    Ok(Troubles {
        failed: count("SELECT count(*) FROM outbox WHERE state = 'failed'")? - kept,
        kept,
        waiting: connection.query_row(&format!("SELECT count(*) {long}"), [since], |row| {
            row.get(0)
        })?,
        oldest: connection
            .query_row(&oldest, [since], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?,
        on_the_way: count("SELECT count(*) FROM outbox WHERE state IN ('waiting', 'sending')")?,
        repeated: count("SELECT count(*) FROM outbox WHERE repeated = 1")?,
    })
}

/// Rows with a longer wait are counted as troubles, and replies to commands are merged.
const LONG_WAIT_MS: i64 = 60 * 1000;

/// Stored copies of files still to be sent.
pub(crate) fn files(connection: &Connection) -> rusqlite::Result<HashSet<String>> {
    let mut statement = connection.prepare("SELECT file FROM outbox WHERE file IS NOT NULL")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

/// Deletes the rows with words of an agent, whose messages and turns are still there. Returns the
/// copies of files that were to be sent.
pub(crate) fn purge(tx: &Transaction<'_>, uid: AgentUid) -> rusqlite::Result<Vec<String>> {
    let sql = "DELETE FROM outbox WHERE said_id IN (SELECT id FROM messages WHERE agent_uid = ?1)
                   OR inbox_id IN (SELECT inbox_id FROM turns WHERE agent_uid = ?1) RETURNING file";
    let mut statement = tx.prepare(sql)?;
    let files = statement.query_map([uid.to_string()], |row| row.get::<_, Option<String>>(0))?;
    files.filter_map(Result::transpose).collect()
}

pub(crate) fn forget_old(tx: &Transaction<'_>, now: i64, most: u32) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM outbox WHERE id IN (SELECT id FROM outbox WHERE sent_at < ?1 LIMIT ?2)";
    tx.execute(sql, params![now - KEPT_MS, most])
}

/// Sent rows are kept this long as a record of deliveries.
const KEPT_MS: i64 = 14 * 24 * 60 * 60 * 1000;

const NO_BEGINNING: &str = "the part before it could not be sent";
