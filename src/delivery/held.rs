//! Answers that have not arrived: given up ones, and those that wait for the platform.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row};
use serde::{Deserialize, Serialize};

use super::outbox::IS_KEPT;
use super::retry_after;
use crate::channels::chat_of;
use crate::domain::{Platform, SessionKey};

/// What has not arrived in a place.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Held {
    /// Given up, and kept for a retry.
    pub(crate) undelivered: i64,
    /// Why the newest of them was given up.
    pub(crate) reason: Option<String>,
    /// Waiting to be sent.
    pub(crate) waiting: i64,
    /// The platform asked for a pause until then, in Unix milliseconds.
    pub(crate) paused_until: Option<i64>,
    /// Why the last try of the oldest failed.
    pub(crate) trouble: Option<String>,
}

impl Held {
    fn is_nothing(&self) -> bool {
        *self == Held::default()
    }
}

struct Letter {
    place: SessionKey,
    is_failed: bool,
    is_kept: bool,
    error: Option<String>,
    /// The end of the wait that the platform asked for.
    until: Option<i64>,
}

/// What has not arrived, by place. Answers that are kept because delivery is off do not count.
pub(crate) fn everywhere(
    connection: &Connection,
    now: i64,
) -> rusqlite::Result<BTreeMap<SessionKey, Held>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT key, state = 'failed', {IS_KEPT}, error, not_before, wait_ms
         FROM outbox JOIN places ON places.id = place_id
         WHERE state IN ('failed', 'waiting', 'sending') ORDER BY outbox.id"
    ))?;
    let letters = statement.query_map([], |row| letter(row, now))?;
    let mut places = BTreeMap::<SessionKey, Held>::new();
    for letter in letters.filter_map(Result::transpose) {
        let letter = letter?;
        if letter.is_kept {
            continue;
        }
        add(places.entry(letter.place.clone()).or_default(), letter);
    }
    let mut waits = BTreeMap::new();
    for platform in [Platform::Telegram, Platform::Discord] {
        for (chat, rest) in retry_after::open(connection, platform, now)? {
            waits.insert(
                (platform, chat),
                now.saturating_add(retry_after::millis(rest)),
            );
        }
    }
    for (place, held) in &mut places {
        let chat = place.platform().zip(chat_of(place));
        let until = chat.and_then(|chat| waits.get(&chat)).copied();
        held.paused_until = held.paused_until.max(until.filter(|_| held.waiting > 0));
    }
    places.retain(|_, held| !held.is_nothing());
    Ok(places)
}

/// `1 answer waits to be sent.` Without a gateway, nothing is sent before the next start.
pub(crate) fn unsent(number: i64, has_gateway: bool) -> String {
    let (waits, go) = match number {
        1 => ("1 answer waits".to_owned(), "it goes"),
        number => (format!("{number} answers wait"), "they go"),
    };
    match has_gateway {
        true => format!("{waits} to be sent."),
        false => format!("{waits} to be sent; {go} out at the next `parlor run`."),
    }
}

/// What has not arrived in one place.
pub(crate) fn in_place(
    connection: &Connection,
    place: &SessionKey,
    now: i64,
) -> rusqlite::Result<Held> {
    let mut all = everywhere(connection, now)?;
    Ok(all.remove(place).unwrap_or_default())
}

fn letter(row: &Row<'_>, now: i64) -> rusqlite::Result<Option<Letter>> {
    let Ok(place) = row.get::<_, String>(0)?.parse() else {
        return Ok(None);
    };
    let rest = retry_after::rest(row.get(4)?, row.get(5)?, now);
    Ok(Some(Letter {
        place,
        is_failed: row.get(1)?,
        is_kept: row.get(2)?,
        error: row.get(3)?,
        until: (!rest.is_zero()).then(|| now.saturating_add(retry_after::millis(rest))),
    }))
}

fn add(held: &mut Held, letter: Letter) {
    if letter.is_failed {
        held.undelivered += 1;
        held.reason = letter.error.or(held.reason.take());
        return;
    }
    held.waiting += 1;
    held.paused_until = held.paused_until.max(letter.until);
    if letter.until.is_none() && held.trouble.is_none() {
        held.trouble = letter.error;
    }
}
