//! Members, and guests with a pairing code: the `people` table.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::Standing;
use crate::config::Access;
use crate::domain::PersonId;

/// How long a pairing code counts.
const CODE_LIFE_MS: i64 = 60 * 60 * 1000;
/// Open codes at a time.
const MOST_OPEN_CODES: i64 = 100;
const CODE_CHARS: usize = 8;
/// No characters of similar shape.
const CODE_ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";

/// Guests are forgotten this long after their code ran out; they may ask anew.
const KEPT_MS: i64 = 14 * 24 * 60 * 60 * 1000;

/// A member, or a guest with a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Acquaintance {
    pub person: PersonId,
    pub name: String,
}

/// Whether any of a person's ids was let in.
pub(crate) fn is_paired(connection: &Connection, ids: &[PersonId]) -> rusqlite::Result<bool> {
    let mut statement = connection
        .prepare_cached("SELECT 1 FROM people WHERE id = ?1 AND paired_at IS NOT NULL")?;
    for id in ids {
        if statement.exists([id.to_string()])? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The roles of a person now.
pub(crate) fn standing(
    connection: &Connection,
    access: &Access,
    person: &PersonId,
) -> rusqlite::Result<Standing> {
    let is_paired = is_paired(connection, access.people.ids_of(person))?;
    Ok(Standing::of(access, person, is_paired))
}

/// Members of a platform, the latest first.
pub(crate) fn paired(
    connection: &Connection,
    platform: &str,
    limit: u32,
) -> rusqlite::Result<Vec<PersonId>> {
    let mut statement = connection
        .prepare_cached("SELECT id FROM people WHERE id GLOB ?1 AND paired_at IS NOT NULL ORDER BY paired_at DESC LIMIT ?2")?;
    let ids = statement.query_map(params![format!("{platform}:*"), limit], |row| {
        row.get::<_, String>(0)
    })?;
    Ok(ids
        .collect::<rusqlite::Result<Vec<_>>>()?
        .into_iter()
        .filter_map(|id| id.parse().ok())
        .collect())
}

/// A guest with an open code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub person: PersonId,
    pub name: String,
    pub code: String,
    pub until: i64,
}

/// A person who was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub person: PersonId,
    pub name: String,
    pub since: i64,
    /// A person's id, or `cli`.
    pub by: String,
}

/// Guests with an open code, the latest first.
pub(crate) fn waiting(connection: &Connection, now: i64) -> rusqlite::Result<Vec<Waiting>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, name, code, code_until FROM people
         WHERE code_until > ?1 AND code_until <= ?1 + 3600000 ORDER BY code_until DESC",
    )?;
    let rows = statement.query_map([now], |row| {
        let Acquaintance { person, name } = acquaintance(row)?;
        Ok(Waiting {
            person,
            name,
            code: row.get(2)?,
            until: row.get(3)?,
        })
    })?;
    rows.collect()
}

/// People who were let in, the latest first.
pub(crate) fn members(connection: &Connection, limit: u32) -> rusqlite::Result<Vec<Member>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, name, paired_at, coalesce(paired_by, '') FROM people
         WHERE paired_at IS NOT NULL ORDER BY paired_at DESC LIMIT ?1",
    )?;
    let rows = statement.query_map([limit], |row| {
        let Acquaintance { person, name } = acquaintance(row)?;
        Ok(Member {
            person,
            name,
            since: row.get(2)?,
            by: row.get(3)?,
        })
    })?;
    rows.collect()
}

/// The member with this id.
pub(crate) fn member(
    connection: &Connection,
    person: &PersonId,
) -> rusqlite::Result<Option<Acquaintance>> {
    let mut statement = connection
        .prepare_cached("SELECT id, name FROM people WHERE id = ?1 AND paired_at IS NOT NULL")?;
    statement
        .query_row([person.to_string()], acquaintance)
        .optional()
}

/// Takes a pairing back. None if the person was not let in.
pub(crate) fn revoke(
    tx: &Transaction<'_>,
    person: &PersonId,
) -> rusqlite::Result<Option<Acquaintance>> {
    tx.query_row(
        "DELETE FROM people WHERE id = ?1 AND paired_at IS NOT NULL RETURNING id, name",
        [person.to_string()],
        acquaintance,
    )
    .optional()
}

/// A new code for a guest. None if the guest has an open code. The oldest of too many open codes
/// is given up, so that strangers cannot keep a friend out.
pub(crate) fn new_code(
    tx: &Transaction<'_>,
    person: &PersonId,
    name: &str,
    now: i64,
) -> rusqlite::Result<Option<String>> {
    let told = format!("SELECT 1 FROM people WHERE id = ?1 AND {COUNTS_AT_2}");
    if tx
        .prepare_cached(&told)?
        .exists(params![person.to_string(), now])?
    {
        return Ok(None);
    }
    let open: i64 = tx
        .prepare_cached(COUNT_OPEN)?
        .query_row([now], |row| row.get(0))?;
    if open >= MOST_OPEN_CODES {
        tx.execute(GIVE_UP_OLDEST, [now])?;
    }
    let code = random_code();
    tx.execute(
        "INSERT INTO people (id, name, code, code_until, created_at) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (id) DO UPDATE SET name = excluded.name, code = excluded.code, code_until = excluded.code_until",
        params![person.to_string(), name, code, now + CODE_LIFE_MS, now],
    )?;
    Ok(Some(code))
}

/// Whether a code counts at the time `?2`. A code with a longer life was written under another
/// clock.
const COUNTS_AT_2: &str = "code_until > ?2 AND code_until <= ?2 + 3600000";

const COUNT_OPEN: &str =
    "SELECT count(*) FROM people WHERE code_until > ?1 AND code_until <= ?1 + 3600000";

const GIVE_UP_OLDEST: &str = "DELETE FROM people WHERE paired_at IS NULL AND id =
    (SELECT id FROM people WHERE code_until > ?1 ORDER BY code_until LIMIT 1)";

pub(crate) fn forget_old(tx: &Transaction<'_>, now: i64, most: u32) -> rusqlite::Result<usize> {
    tx.execute(
        &format!("DELETE FROM people WHERE id IN ({OLD} LIMIT ?2)"),
        params![now - KEPT_MS, most],
    )
}

const OLD: &str = "SELECT id FROM people WHERE code_until < ?1 AND paired_at IS NULL";

/// The guest with this open code.
pub(crate) fn of_code(
    connection: &Connection,
    code: &str,
    now: i64,
) -> rusqlite::Result<Option<Acquaintance>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT id, name FROM people WHERE code = ?1 AND {COUNTS_AT_2}"
    ))?;
    statement
        .query_row(params![code.trim().to_uppercase(), now], acquaintance)
        .optional()
}

/// Makes a member of the guest with this code. `None` without such an open code.
pub(crate) fn approve(
    tx: &Transaction<'_>,
    code: &str,
    by: &str,
    now: i64,
) -> rusqlite::Result<Option<Acquaintance>> {
    tx.query_row(
        &format!(
            "UPDATE people SET paired_at = ?2, paired_by = ?3, code = NULL, code_until = NULL
             WHERE code = ?1 AND {COUNTS_AT_2} RETURNING id, name"
        ),
        params![code.trim().to_uppercase(), now, by],
        acquaintance,
    )
    .optional()
}

fn acquaintance(row: &rusqlite::Row<'_>) -> rusqlite::Result<Acquaintance> {
    let id: String = row.get(0)?;
    let person = id
        .parse()
        .map_err(|()| rusqlite::Error::InvalidColumnName(format!("people.id holds `{id}`")))?;
    Ok(Acquaintance {
        person,
        name: row.get(1)?,
    })
}

fn random_code() -> String {
    let mut bytes = [0u8; CODE_CHARS];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    bytes
        .iter()
        .map(|byte| char::from(CODE_ALPHABET[usize::from(byte % 32)]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Db;

    async fn open(folder: &tempfile::TempDir) -> Db {
        Db::open(&folder.path().join("parlor.db")).await.unwrap()
    }

    #[tokio::test]
    async fn a_flood_of_strangers_looks_at_open_codes_only() {
        let folder = tempfile::tempdir().unwrap();
        let db = open(&folder).await;
        for sql in [COUNT_OPEN, OLD] {
            let explain = format!("EXPLAIN QUERY PLAN {sql}");
            let plan: String = db
                .read(move |connection| {
                    connection.query_row(&explain, [0], |row| row.get("detail"))
                })
                .await
                .unwrap();
            assert!(
                plan.starts_with("SEARCH people USING") && plan.contains("people_with_code"),
                "{plan}"
            );
        }
    }

    /// An hour is an hour, also when the clock is set back meanwhile.
    #[tokio::test]
    async fn a_code_counts_for_its_hour_and_no_longer() {
        let folder = tempfile::tempdir().unwrap();
        let db = open(&folder).await;
        let stranger: PersonId = "telegram:2".parse().unwrap();
        let check = move |tx: &Transaction<'_>| {
            let half_a_day = 12 * CODE_LIFE_MS;
            let code = new_code(tx, &stranger, "Stranger", half_a_day)?.unwrap_or_default();
            assert!(of_code(tx, &code, half_a_day)?.is_some());
            assert!(of_code(tx, &code, half_a_day + CODE_LIFE_MS)?.is_none());
            assert!(of_code(tx, &code, 0)?.is_none(), "the clock went back");
            assert!(approve(tx, &code, "cli", 0)?.is_none());
            assert!(
                new_code(tx, &stranger, "Stranger", 0)?.is_some(),
                "and a new one can be had"
            );
            Ok(())
        };
        db.write(check).await.unwrap();
    }

    #[tokio::test]
    async fn strangers_are_forgotten_and_friends_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let db = open(&folder).await;
        let (friend, stranger): (PersonId, PersonId) =
            ("telegram:1".parse().unwrap(), "telegram:2".parse().unwrap());
        let known = friend.clone();
        let left = db.write(move |tx| {
            let code = new_code(tx, &friend, "Friend", 0)?.unwrap_or_default();
            approve(tx, &code, "cli", 1)?;
            new_code(tx, &stranger, "Stranger", 0)?;
            assert_eq!(
                forget_old(tx, KEPT_MS, 10)?,
                0,
                "the code has run out, but not long ago"
            );
            assert_eq!(forget_old(tx, KEPT_MS + CODE_LIFE_MS + 1, 10)?, 1);
            is_paired(tx, std::slice::from_ref(&known))
        });
        assert!(left.await.unwrap());
    }
}
