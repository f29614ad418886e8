//! Pins: agents given to places with `/agent`. The `pins` table, with a cache in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::places::{self, PlaceId, Twin};
use super::{FromChat, Pin, delivery_off, openings};
use crate::clock::now_ms;
use crate::domain::{AgentId, AgentUid, Origin, PersonId, SessionKey};
use crate::fail_points::{self, Write};
use crate::storage::{Db, Remembered};

/// Pins and openings by place. The caller checks whether the config still has the agent.
pub type Pins = Remembered<SessionKey, FromChat>;

pub fn remembered(db: Db) -> Pins {
    Remembered::new(db, from_chat)
}

/// The pin in effect, and whether the place was opened from chat and its delivery switched off.
pub(crate) fn from_chat(connection: &Connection, place: &SessionKey) -> rusqlite::Result<FromChat> {
    Ok(FromChat {
        pin: load(connection, place)?,
        opened: openings::load(connection, place)?,
        delivery_off: delivery_off::load(connection, place)?,
    })
}

/// The same of all places with a setting.
pub(crate) fn from_chat_everywhere(
    connection: &Connection,
) -> rusqlite::Result<HashMap<PlaceId, FromChat>> {
    let mut found: HashMap<PlaceId, FromChat> = HashMap::new();
    for (place, pin) in in_effect(connection)? {
        found.entry(place).or_default().pin = Some(pin);
    }
    for (place, opened) in openings::everywhere(connection)? {
        found.entry(place).or_default().opened = Some(opened);
    }
    for (place, off) in delivery_off::everywhere(connection)? {
        found.entry(place).or_default().delivery_off = Some(off);
    }
    Ok(found)
}

/// The same, with stand-ins. A pin set after a stand-in came counts for its place.
pub(crate) fn with_stand_ins(db: Db, stand_ins: StandIns) -> Pins {
    Remembered::new(db, move |connection, place| {
        let stored = from_chat(connection, place)?;
        match stand_ins.of(place) {
            Some(agent) if !is_set_since(connection, place, agent.set_at)? => Ok(FromChat {
                pin: Some(agent),
                ..stored
            }),
            _ => Ok(stored),
        }
    })
}

/// Agents that answer in the terminal for as long as a person there wants. Nothing is stored. After
/// a change, the copy of the place's pin must be dropped. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct StandIns(Arc<Mutex<StandInList>>);

#[derive(Debug, Default)]
struct StandInList {
    /// The stand-in for every place of the terminal.
    everywhere: Option<Pin>,
    by_place: HashMap<SessionKey, Pin>,
}

impl StandIns {
    pub(crate) fn everywhere(agent: Option<Pin>) -> Self {
        let list = StandInList {
            everywhere: agent,
            ..StandInList::default()
        };
        StandIns(Arc::new(Mutex::new(list)))
    }

    pub(crate) fn set(&self, place: SessionKey, agent: Pin) {
        self.lock().by_place.insert(place, agent);
    }

    pub(crate) fn clear(&self, place: &SessionKey) {
        self.lock().by_place.remove(place);
    }

    fn of(&self, place: &SessionKey) -> Option<Pin> {
        if !matches!(place, SessionKey::Local { .. }) {
            return None;
        }
        let list = self.lock();
        let agent = list.by_place.get(place).or(list.everywhere.as_ref());
        agent.cloned()
    }

    /// A plain lock: every section is a look at a single entry.
    fn lock(&self) -> MutexGuard<'_, StandInList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_set_since(connection: &Connection, place: &SessionKey, since: i64) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM pins
               WHERE place_id = (SELECT id FROM places WHERE key = ?1) AND set_at >= ?2)";
    connection.query_row(sql, params![place.to_string(), since], |row| row.get(0))
}

/// The pin in effect.
fn load(connection: &Connection, place: &SessionKey) -> rusqlite::Result<Option<Pin>> {
    strongest_below(connection, place, i64::MAX)
}

/// The pin that counts once `pin` is gone.
pub(crate) fn beneath(
    connection: &Connection,
    place: &SessionKey,
    pin: &Pin,
) -> rusqlite::Result<Option<Pin>> {
    let strength = match (pin.once, pin.until) {
        (true, _) => 2,
        (false, Some(_)) => 1,
        (false, None) => 0,
    };
    strongest_below(connection, place, strength)
}

/// The lasting pin, in effect or beneath others.
pub(crate) fn lasting(
    connection: &Connection,
    place: &SessionKey,
) -> rusqlite::Result<Option<Pin>> {
    strongest_below(connection, place, 1)
}

/// A pin for a single message stands over a pin for a while, and this over a lasting pin. A pin
/// whose time is over does not count.
fn strongest_below(
    connection: &Connection,
    place: &SessionKey,
    strength: i64,
) -> rusqlite::Result<Option<Pin>> {
    let mut statement = connection.prepare_cached(
        "WITH here AS (SELECT id FROM places WHERE key = ?1), both AS (
             SELECT agent_uid, once, set_by, set_by_name, set_at, NULL AS until, 2 * once AS strength
             FROM pins WHERE place_id = (SELECT id FROM here)
             UNION ALL SELECT agent_uid, 0, set_by, set_by_name, set_at, until, 1
             FROM timed_pins WHERE place_id = (SELECT id FROM here) AND until > ?2)
         SELECT slug, once, set_by, set_by_name, set_at, until FROM both JOIN agents ON uid = agent_uid
         WHERE archived_at IS NULL AND strength < ?3 ORDER BY strength DESC LIMIT 1",
    )?;
    Ok(statement
        .query_row(params![place.to_string(), now_ms(), strength], pin)
        .optional()?
        .flatten())
}

/// The pins in effect of all places, the strongest of each place last.
fn in_effect(connection: &Connection) -> rusqlite::Result<Vec<(PlaceId, Pin)>> {
    let mut statement = connection.prepare_cached(
        "WITH both AS (
             SELECT agent_uid, once, set_by, set_by_name, set_at, NULL AS until, 2 * once AS strength, place_id FROM pins
             UNION ALL SELECT agent_uid, 0, set_by, set_by_name, set_at, until, 1, place_id FROM timed_pins WHERE until > ?1)
         SELECT slug, once, set_by, set_by_name, set_at, until, place_id FROM both JOIN agents ON uid = agent_uid
         WHERE archived_at IS NULL ORDER BY strength",
    )?;
    let rows = statement.query_map([now_ms()], |row| {
        let place = row.get(6)?;
        Ok(pin(row)?.map(|pin| (place, pin)))
    })?;
    rows.filter_map(Result::transpose).collect()
}

fn pin(row: &Row<'_>) -> rusqlite::Result<Option<Pin>> {
    let (slug, once, set_by) = (
        row.get::<_, String>(0)?,
        row.get(1)?,
        row.get::<_, String>(2)?,
    );
    let (set_by_name, set_at, until) = (row.get(3)?, row.get(4)?, row.get(5)?);
    let parsed = AgentId::parse(&slug)
        .ok()
        .zip(set_by.parse::<PersonId>().ok());
    Ok(parsed.map(|(agent, set_by)| Pin {
        agent,
        once,
        set_by,
        set_by_name,
        set_at,
        until,
    }))
}

/// The lasting pins of all places.
pub(crate) fn all(connection: &Connection) -> rusqlite::Result<Vec<(SessionKey, Pin)>> {
    let mut statement = connection.prepare_cached(
        "SELECT agents.slug, pins.once, pins.set_by, pins.set_by_name, pins.set_at, NULL, places.key FROM pins
         JOIN agents ON agents.uid = pins.agent_uid JOIN places ON places.id = pins.place_id
         WHERE agents.archived_at IS NULL AND once = 0 ORDER BY places.key",
    )?;
    let rows = statement.query_map([], |row| {
        let place = row.get::<_, String>(6)?.parse().ok();
        Ok(place.zip(pin(row)?))
    })?;
    rows.filter_map(Result::transpose).collect()
}

/// Places with a lasting pin to an agent, or with a pin for a while.
pub fn places_of(connection: &Connection, uid: AgentUid) -> rusqlite::Result<Vec<SessionKey>> {
    let mut statement = connection.prepare_cached(
        "SELECT key FROM places WHERE id IN (
             SELECT place_id FROM pins WHERE agent_uid = ?1 AND once = 0
             UNION SELECT place_id FROM timed_pins WHERE agent_uid = ?1)",
    )?;
    let keys = statement.query_map([uid.to_string()], |row| row.get::<_, String>(0))?;
    keys.map(|key| key.map(|key| key.parse().ok()))
        .filter_map(Result::transpose)
        .collect()
}

/// A lasting pin replaces all others. A pin for a single message or for a while leaves the lasting
/// pin beneath.
pub fn set(
    tx: &Transaction<'_>,
    place: &SessionKey,
    uid: AgentUid,
    pin: &Pin,
    now: i64,
) -> rusqlite::Result<()> {
    fail_points::writes(Write::Pin);
    clear_once(tx, place)?;
    if !pin.once {
        clear_timed(tx, place)?;
    }
    let place = places::ensure(tx, place, now)?;
    let mut statement = tx.prepare_cached(
        "INSERT INTO pins (place_id, once, agent_uid, set_by, set_by_name, set_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (place_id, once) DO UPDATE SET agent_uid = excluded.agent_uid, set_by = excluded.set_by,
             set_by_name = excluded.set_by_name, set_at = excluded.set_at",
    )?;
    statement
        .execute(params![
            place,
            pin.once,
            uid.to_string(),
            pin.set_by.to_string(),
            pin.set_by_name,
            now
        ])
        .map(drop)
}

/// Gives a place to an agent until a time. `origin` routes the place at the end.
pub(crate) fn set_until(
    tx: &Transaction<'_>,
    origin: &Origin,
    uid: AgentUid,
    pin: &Pin,
    until: i64,
    now: i64,
) -> rusqlite::Result<()> {
    fail_points::writes(Write::Pin);
    clear_once(tx, &origin.key)?;
    let place = places::ensure(tx, &origin.key, now)?;
    let origin = serde_json::to_string(origin)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    tx.execute(
        "INSERT OR REPLACE INTO timed_pins (place_id, agent_uid, set_by, set_by_name, set_at, until, origin)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            place,
            uid.to_string(),
            pin.set_by.to_string(),
            pin.set_by_name,
            now,
            until,
            origin
        ],
    )
    .map(drop)
}

/// A pin for a while whose time is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Over {
    pub(crate) origin: Origin,
    /// The id of the agent. None if the agent is gone.
    pub(crate) agent: Option<AgentId>,
    pub(crate) set_at: i64,
    pub(crate) until: i64,
}

/// Pins whose time is over, each with today's key of its place.
pub(crate) fn over(connection: &Connection, now: i64) -> rusqlite::Result<Vec<Over>> {
    let mut statement = connection.prepare_cached(
        "SELECT origin, key, slug, set_at, until FROM timed_pins JOIN places ON places.id = place_id
         JOIN agents ON uid = agent_uid WHERE until <= ?1 ORDER BY until",
    )?;
    let rows = statement.query_map([now], |row| {
        let (origin, key) = (row.get::<_, String>(0)?, row.get::<_, String>(1)?);
        let slug: String = row.get(2)?;
        let origin: Option<Origin> = serde_json::from_str(&origin).ok();
        let over = origin.zip(key.parse().ok()).map(|(origin, key)| Over {
            origin: Origin { key, ..origin },
            agent: AgentId::parse(&slug).ok(),
            set_at: row.get(3).unwrap_or_default(),
            until: row.get(4).unwrap_or_default(),
        });
        Ok(over)
    })?;
    rows.filter_map(Result::transpose).collect()
}

/// When the next pin for a while ends.
pub(crate) fn next_end(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    connection.query_row("SELECT min(until) FROM timed_pins", [], |row| row.get(0))
}

/// Removes a pin whose time is over. False if the pin was replaced or removed meanwhile.
pub(crate) fn end(tx: &Transaction<'_>, place: &SessionKey, now: i64) -> rusqlite::Result<bool> {
    let gone = tx.execute(
        "DELETE FROM timed_pins WHERE place_id = (SELECT id FROM places WHERE key = ?1) AND until <= ?2",
        params![place.to_string(), now],
    )?;
    Ok(gone > 0)
}

pub fn clear(tx: &Transaction<'_>, place: &SessionKey) -> rusqlite::Result<()> {
    fail_points::writes(Write::Pin);
    clear_timed(tx, place)?;
    tx.prepare_cached("DELETE FROM pins WHERE place_id = (SELECT id FROM places WHERE key = ?1)")?
        .execute([place.to_string()])
        .map(drop)
}

fn clear_timed(tx: &Transaction<'_>, place: &SessionKey) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "DELETE FROM timed_pins WHERE place_id = (SELECT id FROM places WHERE key = ?1)",
    )?
    .execute([place.to_string()])
    .map(drop)
}

/// Removes this pin only, and no pin above or beneath.
pub fn remove(tx: &Transaction<'_>, place: &SessionKey, pin: &Pin) -> rusqlite::Result<()> {
    if pin.until.is_some() {
        return clear_timed(tx, place);
    }
    let mut statement = tx.prepare_cached(
        "DELETE FROM pins WHERE place_id = (SELECT id FROM places WHERE key = ?1) AND once = ?2",
    )?;
    statement
        .execute(params![place.to_string(), pin.once])
        .map(drop)
}

/// Removes the pin for a single message after its turn. A pin set after the turn began is for the
/// next message, and stays.
pub fn use_up(tx: &Transaction<'_>, place: &SessionKey, began: i64) -> rusqlite::Result<()> {
    fail_points::writes(Write::Pin);
    let mut statement = tx.prepare_cached(
        "DELETE FROM pins WHERE place_id = (SELECT id FROM places WHERE key = ?1) AND once = 1 AND set_at <= ?2",
    )?;
    statement
        .execute(params![place.to_string(), began])
        .map(drop)
}

/// Moves the pins of the old row to the new row. Pins of the new row win.
pub fn merge(tx: &Transaction<'_>, Twin { old, new }: Twin) -> rusqlite::Result<()> {
    for table in ["pins", "timed_pins"] {
        tx.execute(
            &format!("UPDATE OR IGNORE {table} SET place_id = ?2 WHERE place_id = ?1"),
            params![old, new],
        )?;
        tx.execute(&format!("DELETE FROM {table} WHERE place_id = ?1"), [old])?;
    }
    Ok(())
}

/// Moves the pins of a place to another, whose own pins give way to them.
pub(crate) fn carry(tx: &Transaction<'_>, Twin { old, new }: Twin) -> rusqlite::Result<()> {
    tx.execute(
        "DELETE FROM pins WHERE place_id = ?2 AND EXISTS (SELECT 1 FROM pins WHERE place_id = ?1)",
        params![old, new],
    )?;
    tx.execute(
        "UPDATE pins SET place_id = ?2 WHERE place_id = ?1",
        params![old, new],
    )
    .map(drop)
}

/// The number of places pinned to an agent.
pub fn count_of(connection: &Connection, uid: AgentUid) -> rusqlite::Result<usize> {
    let sql = "SELECT (SELECT count(*) FROM pins WHERE agent_uid = ?1)
               + (SELECT count(*) FROM timed_pins WHERE agent_uid = ?1)";
    connection
        .query_row(sql, [uid.to_string()], |row| row.get::<_, i64>(0))
        .map(|count| usize::try_from(count).unwrap_or(0))
}

/// Deletes the pins of a purged agent. A removed agent keeps its pins, and they count again after a
/// restore.
pub fn purge(tx: &Transaction<'_>, uid: AgentUid) -> rusqlite::Result<usize> {
    let timed = tx.execute(
        "DELETE FROM timed_pins WHERE agent_uid = ?1",
        [uid.to_string()],
    )?;
    let pins = tx.execute("DELETE FROM pins WHERE agent_uid = ?1", [uid.to_string()])?;
    Ok(pins + timed)
}

fn clear_once(tx: &Transaction<'_>, place: &SessionKey) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "DELETE FROM pins WHERE place_id = (SELECT id FROM places WHERE key = ?1) AND once = 1",
    )?
    .execute([place.to_string()])
    .map(drop)
}
