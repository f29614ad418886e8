//! The tables `memories`, `memory_scopes` and `memories_fts`: only this file writes them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::str::FromStr;

use rusqlite::{Connection, OptionalExtension, Row, Transaction, named_params, params};

use super::scope::{Clause, GLOBAL, Values};
use super::tokenizer;
use crate::access::numbers;
use crate::config::Visibility;
use crate::domain::{AgentUid, Labels, PersonId, Role, SessionKey};
use crate::routing::places::{self, PlaceId};

/// A memory from the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: i64,
    pub owner: AgentUid,
    /// The owner's present id.
    pub agent: String,
    pub visibility: Visibility,
    /// The file that this piece was cut from; none for a saved memory.
    pub path: Option<String>,
    pub text: String,
    pub said: Provenance,
    /// Trust labels: the person behind the save, and everything that the turn had read.
    pub labels: Labels,
    pub created_at: i64,
}

/// Where a memory comes from, as far as known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Provenance {
    pub place: Option<SessionKey>,
    pub person: Option<PersonId>,
}

/// A memory for the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct New {
    pub(super) owner: AgentUid,
    pub(super) visibility: Visibility,
    pub(super) path: Option<String>,
    pub(super) text: String,
    pub(super) said: Provenance,
    pub(super) labels: Labels,
    pub(super) created_at: i64,
}

/// Numbers of an agent's memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// For one person each.
    pub person: u32,
    /// For one place each.
    pub place: u32,
    pub private: u32,
    pub global: u32,
    pub archived: u32,
    /// Pieces of files. They are private too, but not counted as private.
    pub pieces: u32,
    /// The time at which the newest memory was saved.
    pub last_saved_at: Option<i64>,
}

/// A slot is the scope's number shifted left by so many bits, plus a number within the scope.
const SLOT_BITS: u32 = 40;

const COLUMNS: &str = "m.id, m.agent_uid, a.slug, m.visibility, m.path, m.text, \
    (SELECT key FROM places WHERE places.id = m.place_id), m.person, m.created_at, m.labels";

/// Columns and tables of every read.
pub(super) fn select(from: &str, rest: &str) -> String {
    format!("SELECT {COLUMNS} FROM {from} JOIN agents AS a ON a.uid = m.agent_uid {rest}")
}

pub(super) fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let read = |index: usize| row.get::<_, Option<String>>(index);
    Ok(Entry {
        id: row.get(0)?,
        owner: AgentUid(parsed(1, &row.get::<_, String>(1)?)?),
        agent: row.get(2)?,
        // An unknown visibility, from a later version, counts as the narrowest.
        visibility: row
            .get::<_, String>(3)?
            .parse()
            .unwrap_or(Visibility::Person),
        path: row.get(4)?,
        text: row.get(5)?,
        // An unknown form of place or person, from a later version, is left out, because the memory
        // matters more.
        said: Provenance {
            place: read(6)?.and_then(|key| key.parse().ok()),
            person: read(7)?.and_then(|person| person.parse().ok()),
        },
        created_at: row.get(8)?,
        labels: match row.get::<_, Option<u32>>(9)? {
            Some(bits) => Labels::from_bits(bits),
            // A piece without labels is trusted: the operator wrote its file, or a turn that may write for
            // everybody.
            None if row.get::<_, Option<String>>(4)?.is_some() => Labels::NONE,
            // Saved before there were labels.
            None => Labels::of(Role::Guest),
        },
    })
}

fn parsed<T: FromStr>(column: usize, text: &str) -> rusqlite::Result<T>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    text.parse().map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(
            column,
            rusqlite::types::Type::Text,
            Box::new(error),
        )
    })
}

pub(super) fn insert(tx: &Transaction<'_>, new: &New) -> rusqlite::Result<i64> {
    let source = if new.path.is_some() { "file" } else { "saved" };
    let place = new
        .said
        .place
        .as_ref()
        .map(|place| places::ensure(tx, place, new.created_at))
        .transpose()?;
    if let Some(person) = &new.said.person {
        numbers::ensure(tx, person)?;
    }
    let person = new.said.person.as_ref().map(ToString::to_string);
    let mut insert = tx.prepare_cached(
        "INSERT INTO memories (agent_uid, visibility, source, path, text, place_id, person, created_at, labels) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    let id = insert.insert(params![
        new.owner.to_string(),
        new.visibility.as_str(),
        source,
        new.path,
        new.text,
        place,
        person,
        new.created_at,
        new.path.is_none().then_some(new.labels.bits())
    ])?;
    let seen_by = SeenBy {
        owner: new.owner,
        visibility: new.visibility,
        person,
        place,
    };
    index(tx, id, &seen_by, &new.text)?;
    Ok(id)
}

/// The readers of a row, as far as its place in the index depends on them.
struct SeenBy {
    owner: AgentUid,
    visibility: Visibility,
    person: Option<String>,
    place: Option<PlaceId>,
}

fn index(tx: &Transaction<'_>, id: i64, seen_by: &SeenBy, text: &str) -> rusqlite::Result<()> {
    let number = seen_by.number(tx)?;
    let mut take = tx.prepare_cached(
        "UPDATE memory_scopes SET slots = slots + 1 WHERE number = ?1 RETURNING slots",
    )?;
    let slot = (number << SLOT_BITS) + take.query_row([number], |row| row.get::<_, i64>(0))?;
    tx.prepare_cached("UPDATE memories SET slot = ?2 WHERE id = ?1")?
        .execute(params![id, slot])?;
    let mut insert =
        tx.prepare_cached("INSERT INTO memories_fts (rowid, words) VALUES (?1, ?2)")?;
    insert
        .execute(params![slot, tokenizer::indexed(number, text)])
        .map(drop)
}

impl SeenBy {
    /// The number of the row's scope. A new scope gets a number.
    fn number(&self, tx: &Transaction<'_>) -> rusqlite::Result<i64> {
        let (person, place) = match self.visibility {
            Visibility::Global => return Ok(GLOBAL),
            Visibility::Private => (None, None),
            Visibility::Person => (self.person.as_ref(), None),
            Visibility::Place => (None, self.place),
        };
        let owner = self.owner.to_string();
        let mut find = tx.prepare_cached(
            "SELECT number FROM memory_scopes WHERE agent_uid = ?1 AND person IS ?2 AND place_id IS ?3 ORDER BY number LIMIT 1",
        )?;
        match find
            .query_row(params![owner, person, place], |row| row.get(0))
            .optional()?
        {
            Some(number) => Ok(number),
            None => tx
                .prepare_cached(
                    "INSERT INTO memory_scopes (agent_uid, person, place_id) VALUES (?1, ?2, ?3)",
                )?
                .insert(params![owner, person, place]),
        }
    }
}

/// Deletes the agent's own rows among these, and returns their number.
pub(super) fn delete(
    tx: &Transaction<'_>,
    owner: AgentUid,
    ids: &[i64],
) -> rusqlite::Result<usize> {
    let mut delete =
        tx.prepare_cached("DELETE FROM memories WHERE id = ?1 AND agent_uid = ?2 RETURNING slot")?;
    let mut count = 0;
    for id in ids {
        let slot = delete
            .query_row(params![id, owner.to_string()], |row| {
                row.get::<_, Option<i64>>(0)
            })
            .optional()?;
        if let Some(slot) = slot {
            unindex(tx, slot)?;
            count += 1;
        }
    }
    Ok(count)
}

/// An archived row has no slot.
fn unindex(tx: &Transaction<'_>, slot: Option<i64>) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM memories_fts WHERE rowid = ?1")?
        .execute([slot])
        .map(drop)
}

/// Pages of the index that one step writes anew; a few milliseconds of work.
const WIPED_PAGES: i64 = 500;
/// Pages of the index that list deleted rows have larger numbers than any other.
/// <https://www.sqlite.org/fts5.html#contentless_delete_tables>
const FIRST_DELETION: i64 = 1 << 53;

/// Takes words of deleted rows out of the index, in small steps. Until a step reaches them, the words
/// stay in the index, marked as deleted: the option `secure-delete` has no effect on an index that keeps no
/// texts. Tells whether there is more to do.
pub(super) fn wipe_some(tx: &Transaction<'_>) -> rusqlite::Result<bool> {
    let mut marked = tx.prepare_cached("SELECT 1 FROM memories_fts_data WHERE id >= ?1 LIMIT 1")?;
    if !marked.exists([FIRST_DELETION])? {
        return Ok(false);
    }
    let before = tx.total_changes();
    tx.prepare_cached("INSERT INTO memories_fts (memories_fts, rank) VALUES ('merge', ?1)")?
        .execute([-WIPED_PAGES])?;
    // A step that finds nothing to do changes at most one row.
    Ok(tx.total_changes() - before > 1 && marked.exists([FIRST_DELETION])?)
}

/// Hides all rows of a removed agent from every reader. [`restore`] brings them back unchanged.
pub(super) fn archive(tx: &Transaction<'_>, owner: AgentUid) -> rusqlite::Result<usize> {
    unindex_all(tx, owner)?;
    let mut update = tx.prepare_cached(
        "UPDATE memories SET archived_from = visibility, visibility = 'archived', slot = NULL \
         WHERE agent_uid = ?1 AND visibility <> 'archived'",
    )?;
    update.execute([owner.to_string()])
}

pub(super) fn restore(tx: &Transaction<'_>, owner: AgentUid) -> rusqlite::Result<usize> {
    let mut find = tx.prepare(
        "SELECT id, archived_from, text, person, place_id FROM memories WHERE agent_uid = ?1 AND visibility = 'archived'",
    )?;
    let mut rows = find.query([owner.to_string()])?;
    let mut update = tx.prepare_cached(
        "UPDATE memories SET visibility = ?2, archived_from = NULL WHERE id = ?1",
    )?;
    let mut archived = Vec::new();
    while let Some(row) = rows.next()? {
        let visibility = row
            .get::<_, Option<String>>(1)?
            .and_then(|word| word.parse().ok())
            .unwrap_or(Visibility::Private);
        let seen_by = SeenBy {
            owner,
            visibility,
            person: row.get(3)?,
            place: row.get(4)?,
        };
        archived.push((row.get::<_, i64>(0)?, seen_by, row.get::<_, String>(2)?));
    }
    for (id, seen_by, text) in &archived {
        index(tx, *id, seen_by, text)?;
        update.execute(params![id, seen_by.visibility.as_str()])?;
    }
    Ok(archived.len())
}

/// Destroys all rows of an agent.
pub(super) fn purge(tx: &Transaction<'_>, owner: AgentUid) -> rusqlite::Result<usize> {
    unindex_all(tx, owner)?;
    let count = tx.execute(
        "DELETE FROM memories WHERE agent_uid = ?1",
        [owner.to_string()],
    )?;
    tx.execute(
        "DELETE FROM memory_scopes WHERE agent_uid = ?1",
        [owner.to_string()],
    )?;
    Ok(count)
}

fn unindex_all(tx: &Transaction<'_>, owner: AgentUid) -> rusqlite::Result<()> {
    let slots = "SELECT slot FROM memories WHERE agent_uid = ?1 AND slot IS NOT NULL";
    tx.execute(
        &format!("DELETE FROM memories_fts WHERE rowid IN ({slots})"),
        [owner.to_string()],
    )
    .map(drop)
}

/// Saved memories visible by a clause, the newest first; `before` goes on after an earlier portion.
pub(super) fn list(
    connection: &Connection,
    clause: &Clause,
    before: i64,
    limit: u32,
) -> rusqlite::Result<Vec<Entry>> {
    let rest = format!(
        "WHERE {} AND m.source = 'saved' AND m.id < :before ORDER BY m.id DESC LIMIT :limit",
        clause.sql()
    );
    let Values {
        owners,
        people,
        place,
    } = clause.values();
    let mut statement = connection.prepare_cached(&select("memories AS m", &rest))?;
    let rows = statement.query_map(
        named_params! {
            ":owners": owners, ":people": people, ":place": place, ":before": before, ":limit": limit,
        },
        entry,
    )?;
    rows.collect()
}

/// An agent's own saved memories visible by a clause, the newest first.
pub(super) fn own(
    connection: &Connection,
    owner: AgentUid,
    clause: &Clause,
    kinds: &[Visibility],
    limit: u32,
) -> rusqlite::Result<Vec<Entry>> {
    let Values {
        owners,
        people,
        place,
    } = clause.values();
    let mut all = Vec::new();
    // A query for each visibility, because an index then gives the rows in order.
    for visibility in kinds {
        let rest = format!(
            "WHERE m.agent_uid = :owner AND m.visibility = '{visibility}' AND {} AND {} AND m.source = 'saved' ORDER BY m.id DESC LIMIT :limit",
            found_by(*visibility),
            clause.sql()
        );
        let mut statement = connection.prepare_cached(&select("memories AS m", &rest))?;
        let rows = statement.query_map(
            named_params! {
                ":owner": owner.to_string(), ":owners": owners, ":people": people, ":place": place, ":limit": limit,
            },
            entry,
        )?;
        all.extend(rows.collect::<rusqlite::Result<Vec<_>>>()?);
    }
    all.sort_by_key(|entry| std::cmp::Reverse(entry.id));
    all.truncate(limit as usize);
    Ok(all)
}

/// Lets SQLite use an index. The caller's clause decides which rows are seen.
fn found_by(visibility: Visibility) -> &'static str {
    match visibility {
        Visibility::Person => "m.person IN (SELECT value FROM json_each(:people))",
        Visibility::Place => "m.place_id = (SELECT id FROM places WHERE key = :place)",
        Visibility::Private | Visibility::Global => "1",
    }
}

/// All saved memories of an agent, the newest first, for exports.
pub(super) fn everything(
    connection: &Connection,
    owner: AgentUid,
    before: i64,
    limit: u32,
) -> rusqlite::Result<Vec<Entry>> {
    let mut all = Vec::new();
    // A query for each visibility, because the index then gives the rows in order.
    for visibility in Visibility::ALL {
        let rest = "WHERE m.agent_uid = ?1 AND m.visibility = ?2 AND m.source = 'saved' AND m.id < ?3 ORDER BY m.id DESC LIMIT ?4";
        let mut statement = connection.prepare_cached(&select("memories AS m", rest))?;
        let rows = statement.query_map(
            params![owner.to_string(), visibility.as_str(), before, limit],
            entry,
        )?;
        all.extend(rows.collect::<rusqlite::Result<Vec<_>>>()?);
    }
    all.sort_by_key(|entry| std::cmp::Reverse(entry.id));
    all.truncate(limit as usize);
    Ok(all)
}

/// A saved memory of an agent's own that is visible by a clause.
pub(super) fn own_by_id(
    connection: &Connection,
    owner: AgentUid,
    clause: &Clause,
    id: i64,
) -> rusqlite::Result<Option<Entry>> {
    let rest = format!(
        "WHERE m.id = :id AND m.agent_uid = :owner AND m.source = 'saved' AND {}",
        clause.sql()
    );
    let Values {
        owners,
        people,
        place,
    } = clause.values();
    let mut statement = connection.prepare_cached(&select("memories AS m", &rest))?;
    statement
        .query_row(
            named_params! {
                ":id": id, ":owner": owner.to_string(), ":owners": owners, ":people": people, ":place": place,
            },
            entry,
        )
        .optional()
}

/// How many memories an agent saved for a person.
pub(super) fn count_said_by(
    connection: &Connection,
    owner: AgentUid,
    ids: &[PersonId],
) -> rusqlite::Result<u32> {
    let mut statement = connection.prepare_cached(
        "SELECT count(*) FROM memories WHERE agent_uid = ?1 AND person = ?2 AND source = 'saved'",
    )?;
    ids.iter().try_fold(0, |sum, id| {
        let count: u32 =
            statement.query_row(params![owner.to_string(), id.to_string()], |row| row.get(0))?;
        Ok(sum + count)
    })
}

/// Hashes of an agent's saved memories, each with the number of equal memories.
pub(super) fn marks(
    connection: &Connection,
    owner: AgentUid,
) -> rusqlite::Result<HashMap<u64, usize>> {
    let mut statement = connection
        .prepare_cached("SELECT visibility, created_at, text FROM memories WHERE agent_uid = ?1 AND source = 'saved'")?;
    let rows = statement.query_map([owner.to_string()], |row| {
        Ok(mark(
            &row.get::<_, String>(0)?,
            row.get(1)?,
            &row.get::<_, String>(2)?,
        ))
    })?;
    let mut marks = HashMap::new();
    for mark in rows {
        *marks.entry(mark?).or_default() += 1;
    }
    Ok(marks)
}

pub(super) fn mark(visibility: &str, created_at: i64, text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (visibility, created_at, text).hash(&mut hasher);
    hasher.finish()
}

/// The stored pieces of a file.
pub(super) fn pieces(
    connection: &Connection,
    owner: AgentUid,
    path: &str,
) -> rusqlite::Result<Vec<(i64, String)>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, text FROM memories WHERE agent_uid = ?1 AND path = ?2 ORDER BY id",
    )?;
    let rows = statement.query_map(params![owner.to_string(), path], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    rows.collect()
}

/// Saved memories that every agent sees.
pub(super) fn count_global(connection: &Connection) -> rusqlite::Result<u32> {
    let sql = "SELECT count(*) FROM memories WHERE visibility = 'global' AND source = 'saved'";
    connection
        .prepare_cached(sql)?
        .query_row([], |row| row.get(0))
}

/// Memories of an agent for the person and the place of a clause.
pub(super) fn count_apart(
    connection: &Connection,
    owner: AgentUid,
    clause: &Clause,
) -> rusqlite::Result<(u32, u32)> {
    let Values {
        owners,
        people,
        place,
    } = clause.values();
    let count = |visibility: Visibility| {
        let sql = format!(
            "SELECT count(*) FROM memories AS m WHERE m.agent_uid = :owner AND m.visibility = '{visibility}' AND {} AND {}",
            found_by(visibility),
            clause.sql()
        );
        connection.prepare_cached(&sql)?.query_row(
            named_params! {
                ":owner": owner.to_string(), ":owners": owners, ":people": people, ":place": place,
            },
            |row| row.get(0),
        )
    };
    Ok((count(Visibility::Person)?, count(Visibility::Place)?))
}

pub(super) fn counts(connection: &Connection, owner: AgentUid) -> rusqlite::Result<Counts> {
    let mut counts = Counts::default();
    let mut statement = connection.prepare_cached(
        "SELECT visibility, source, count(*), max(id) FROM memories WHERE agent_uid = ?1 GROUP BY visibility, source",
    )?;
    let mut rows = statement.query([owner.to_string()])?;
    let mut newest = None;
    while let Some(row) = rows.next()? {
        let (visibility, source): (String, String) = (row.get(0)?, row.get(1)?);
        let count = row.get::<_, u32>(2)?;
        match (visibility.as_str(), source.as_str()) {
            ("archived", _) => counts.archived += count,
            (_, "file") => counts.pieces += count,
            ("global", _) => counts.global = count,
            ("person", _) => counts.person = count,
            ("place", _) => counts.place = count,
            _ => counts.private = count,
        }
        if source == "saved" {
            newest = newest.max(row.get::<_, Option<i64>>(3)?);
        }
    }
    let mut time = connection.prepare_cached("SELECT created_at FROM memories WHERE id = ?1")?;
    counts.last_saved_at = newest
        .map(|id| time.query_row([id], |row| row.get(0)))
        .transpose()?;
    Ok(counts)
}
