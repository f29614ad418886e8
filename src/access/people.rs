//! Members, and guests with a pairing code: the `people` table.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::{Standing, grants};
use crate::config::Access;
use crate::domain::PersonId;

/// How long a pairing code counts.
const CODE_LIFE_MS: i64 = 60 * 60 * 1000;
/// Open codes at a time.
const MOST_OPEN_CODES: i64 = 100;
const CODE_CHARS: usize = 8;
/// The longest first message to keep, as JSON. A platform's longest message fits.
const MAX_FIRST_BYTES: usize = 32 * 1024;
/// The first pause between two replies to a waiting guest; each later pause is twice as long.
const FIRST_PAUSE_MS: i64 = 60 * 1000;
/// A guest who was turned away gets no new code for so long.
const TURNED_AWAY_MS: i64 = 24 * 60 * 60 * 1000;
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

/// Everybody who was let in.
pub(crate) fn all_paired(connection: &Connection) -> rusqlite::Result<HashSet<PersonId>> {
    let mut statement =
        connection.prepare_cached("SELECT id FROM people WHERE paired_at IS NOT NULL")?;
    let ids = statement.query_map([], |row| Ok(row.get_ref(0)?.as_str()?.parse().ok()))?;
    ids.filter_map(Result::transpose).collect()
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

/// Members, the latest first.
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

/// The names of members, and of guests with a code.
pub(crate) fn names(connection: &Connection) -> rusqlite::Result<Vec<(PersonId, String)>> {
    let mut statement = connection.prepare_cached("SELECT id, name FROM people")?;
    let rows = statement.query_map([], |row| {
        let id = row.get::<_, String>(0)?.parse().ok();
        Ok(id.zip(row.get(1)?))
    })?;
    rows.filter_map(Result::transpose).collect()
}

/// When members, and guests with a code, wrote first.
pub(crate) fn first_seen(connection: &Connection) -> rusqlite::Result<Vec<(PersonId, i64)>> {
    let mut statement = connection.prepare_cached("SELECT id, created_at FROM people")?;
    let rows = statement.query_map([], |row| {
        let id = row.get::<_, String>(0)?.parse().ok();
        Ok(id.zip(row.get(1)?))
    })?;
    rows.filter_map(Result::transpose).collect()
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

/// Makes a person of another system a member. False for a member, and for a guest who was turned
/// away here.
pub(crate) fn bring_in(
    tx: &Transaction<'_>,
    person: &PersonId,
    name: &str,
    by: &str,
    now: i64,
) -> rusqlite::Result<bool> {
    let count = tx.execute(
        "INSERT INTO people (id, name, paired_at, paired_by, created_at) VALUES (?1, ?2, ?4, ?3, ?4)
         ON CONFLICT (id) DO UPDATE SET paired_at = excluded.paired_at, paired_by = excluded.paired_by,
             code = NULL, code_until = NULL
         WHERE people.paired_at IS NULL AND people.decision IS NOT 'no'",
        params![person.to_string(), name, by, now],
    )?;
    Ok(count == 1)
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

/// A guest who has asked to be let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AtTheDoor {
    /// Has an open code.
    Waits { code: String, until: i64 },
    /// Was turned away, and is not heard until then.
    TurnedAway { by: Option<String>, until: i64 },
}

/// How a guest has fared, if they have asked lately.
pub(crate) fn at_the_door(
    connection: &Connection,
    person: &PersonId,
    now: i64,
) -> rusqlite::Result<Option<AtTheDoor>> {
    let id = person.to_string();
    let sql = format!(
        "SELECT code, code_until FROM people WHERE id = ?1 AND {COUNTS_AT_2} AND code IS NOT NULL"
    );
    let waits = connection
        .prepare_cached(&sql)?
        .query_row(params![id, now], |row| {
            Ok(AtTheDoor::Waits {
                code: row.get(0)?,
                until: row.get(1)?,
            })
        })
        .optional()?;
    if waits.is_some() {
        return Ok(waits);
    }
    connection
        .prepare_cached(&format!(
            "SELECT decider, decided_at FROM people WHERE {TURNED_AWAY}"
        ))?
        .query_row(params![id, now, TURNED_AWAY_MS], |row| {
            Ok(AtTheDoor::TurnedAway {
                by: row.get(0)?,
                until: row.get::<_, i64>(1)? + TURNED_AWAY_MS,
            })
        })
        .optional()
}

/// Guests who were turned away lately, the latest first.
pub(crate) fn turned_away(
    connection: &Connection,
    now: i64,
) -> rusqlite::Result<Vec<Acquaintance>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, name FROM people WHERE decision = 'no' AND decided_at > ?1 - ?2 AND decided_at <= ?1
         ORDER BY decided_at DESC",
    )?;
    let rows = statement.query_map(params![now, TURNED_AWAY_MS], acquaintance)?;
    rows.collect()
}

/// The guest `?1` was turned away less than `?3` before `?2`.
const TURNED_AWAY: &str =
    "id = ?1 AND decision = 'no' AND decided_at > ?2 - ?3 AND decided_at <= ?2";

/// The consequence of a guest's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Knock {
    /// The guest gets a code. `waiting` guests have an open code now, this guest among them.
    New { code: String, waiting: i64 },
    /// The guest has an open code, as one of `waiting`, and is told so if `is_told`.
    Waiting {
        /// None once the code was used.
        code: Option<String>,
        waiting: i64,
        is_told: bool,
    },
    /// The guest was turned away lately.
    TurnedAway,
}

/// Notes a guest's message. The oldest of too many open codes is given up, because strangers could
/// keep a friend out otherwise.
pub(crate) fn knock(
    tx: &Transaction<'_>,
    person: &PersonId,
    name: &str,
    now: i64,
) -> rusqlite::Result<Knock> {
    let id = person.to_string();
    let open: i64 = tx
        .prepare_cached(COUNT_OPEN)?
        .query_row([now], |row| row.get(0))?;
    if let Some((code, is_told)) = still_waits(tx, &id, now)? {
        return Ok(Knock::Waiting {
            code,
            waiting: open,
            is_told,
        });
    }
    if tx
        .prepare_cached(&format!("SELECT 1 FROM people WHERE {TURNED_AWAY}"))?
        .exists(params![id, now, TURNED_AWAY_MS])?
    {
        return Ok(Knock::TurnedAway);
    }
    if open >= MOST_OPEN_CODES {
        tx.execute(GIVE_UP_OLDEST, [now])?;
    }
    let code = random_code();
    tx.execute(
        "INSERT INTO people (id, name, code, code_until, created_at) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (id) DO UPDATE SET name = excluded.name, code = excluded.code, code_until = excluded.code_until,
             first_message = NULL, told_at = NULL, told_times = 0, decision = NULL, decided_code = NULL,
             decided_by = NULL, decider = NULL, decided_at = NULL, is_due = 0",
        params![id, name, code, now + CODE_LIFE_MS, now],
    )?;
    Ok(Knock::New {
        code,
        waiting: (open + 1).min(MOST_OPEN_CODES),
    })
}

/// The open code of a guest, and whether to tell the guest again to wait: at the second message, and
/// then after doubling pauses. None for a guest without a code.
fn still_waits(
    tx: &Transaction<'_>,
    id: &str,
    now: i64,
) -> rusqlite::Result<Option<(Option<String>, bool)>> {
    let sql =
        format!("SELECT told_at, told_times, code FROM people WHERE id = ?1 AND {COUNTS_AT_2}");
    let told: Option<(Option<i64>, u32, Option<String>)> = tx
        .prepare_cached(&sql)?
        .query_row(params![id, now], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    let Some((told_at, times, code)) = told else {
        return Ok(None);
    };
    let pause = FIRST_PAUSE_MS << times.saturating_sub(1).min(10);
    // A time in the future was written under another clock.
    let is_told = told_at.is_none_or(|at| now >= at + pause || now < at);
    if is_told {
        tx.execute(
            "UPDATE people SET told_at = ?2, told_times = told_times + 1 WHERE id = ?1",
            params![id, now],
        )?;
    }
    Ok(Some((code, is_told)))
}

/// Keeps the first message of a guest with an open code. False for a second message, and for an
/// overlong message.
pub(crate) fn keep_first(
    tx: &Transaction<'_>,
    person: &PersonId,
    message: &str,
    now: i64,
) -> rusqlite::Result<bool> {
    if message.len() > MAX_FIRST_BYTES {
        return Ok(false);
    }
    let sql = format!(
        "UPDATE people SET first_message = ?3 WHERE id = ?1 AND first_message IS NULL AND {COUNTS_AT_2}"
    );
    Ok(tx.execute(&sql, params![person.to_string(), now, message])? == 1)
}

/// The kept first messages, each with its person.
pub(crate) fn first_messages(connection: &Connection) -> rusqlite::Result<Vec<(PersonId, String)>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, name, first_message FROM people WHERE first_message IS NOT NULL",
    )?;
    let rows = statement.query_map([], |row| Ok((acquaintance(row)?.person, row.get(2)?)))?;
    rows.collect()
}

/// Deletes the kept first message of a guest.
pub(crate) fn drop_first(tx: &Transaction<'_>, person: &PersonId) -> rusqlite::Result<()> {
    tx.execute(
        "UPDATE people SET first_message = NULL WHERE id = ?1",
        [person.to_string()],
    )
    .map(drop)
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
        .query_row(params![written(code), now], acquaintance)
        .optional()
}

/// The decision about a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    LetIn,
    /// Let in, and made an owner in config.toml.
    MadeOwner,
    TurnedAway,
    /// The code expired without a decision.
    RanOut,
}

impl Decision {
    const ALL: [Decision; 4] = [
        Decision::LetIn,
        Decision::MadeOwner,
        Decision::TurnedAway,
        Decision::RanOut,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Decision::LetIn => "in",
            Decision::MadeOwner => "owner",
            Decision::TurnedAway => "no",
            Decision::RanOut => "ran out",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Decision::ALL
            .into_iter()
            .find(|known| known.as_str() == text)
    }

    /// Whether the guest is a member now.
    pub(crate) fn lets_in(self) -> bool {
        matches!(self, Decision::LetIn | Decision::MadeOwner)
    }
}

/// The author of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decider {
    /// A person's id, or `cli`.
    pub id: String,
    pub name: String,
}

/// A closed code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decided {
    pub known: Acquaintance,
    pub code: String,
    pub decision: Decision,
    /// Absent for an expired code.
    pub decider: Option<Decider>,
    /// The kept first message as JSON.
    pub first_message: Option<String>,
}

/// Decides about the guest with this code, once. `None` without such an open code.
pub(crate) fn decide(
    tx: &Transaction<'_>,
    code: &str,
    decision: Decision,
    by: &Decider,
    now: i64,
) -> rusqlite::Result<Option<Acquaintance>> {
    let member = decision.lets_in().then_some((now, &by.id));
    // A guest who was turned away is forgotten some time after `code_until`.
    let code_until = (!decision.lets_in()).then_some(now);
    let decided = tx
        .query_row(
        &format!(
            "UPDATE people SET paired_at = ?3, paired_by = ?4, decision = ?5, decided_by = ?6, decider = ?7,
                 decided_at = ?2, decided_code = code, code = NULL, code_until = ?8, is_due = 1
             WHERE code = ?1 AND {COUNTS_AT_2} RETURNING id, name"
        ),
        params![
            written(code),
            now,
            member.map(|(at, _)| at),
            member.map(|(_, by)| by),
            decision.as_str(),
            by.id,
            by.name,
            code_until
        ],
        acquaintance,
    )
    .optional()?;
    if let Some(known) = decided.as_ref().filter(|_| decision.lets_in()) {
        grants::end_guest_role(tx, &known.person)?;
    }
    Ok(decided)
}

/// A role lets in a waiting guest, and undoes an earlier refusal.
pub(crate) fn let_in_by_role(
    tx: &Transaction<'_>,
    person: &PersonId,
    by: &Decider,
    now: i64,
) -> rusqlite::Result<()> {
    let id = person.to_string();
    tx.execute(
        "UPDATE people SET decision = 'in', decided_by = ?3, decider = ?4, decided_at = ?2, decided_code = code,
             code = NULL, code_until = NULL, is_due = 1
         WHERE id = ?1 AND code > ''",
        params![id, now, by.id, by.name],
    )?;
    tx.execute(
        "UPDATE people SET decision = NULL WHERE id = ?1 AND decision = 'no'",
        [id],
    )
    .map(drop)
}

/// The end of a closed code, while its guest is still known.
pub(crate) fn decided(connection: &Connection, code: &str) -> rusqlite::Result<Option<Decided>> {
    connection
        .prepare_cached(&format!(
            "SELECT {DECIDED} FROM people WHERE decided_code = ?1"
        ))?
        .query_row([written(code)], decided_row)
        .optional()
        .map(Option::flatten)
}

/// Whether decisions may have to be told, or may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outlook {
    /// A decision is to be told now.
    pub is_due: bool,
    /// Guests wait for a decision, perhaps by another process.
    pub is_watched: bool,
}

pub(crate) fn outlook(connection: &Connection, now: i64) -> rusqlite::Result<Outlook> {
    connection.prepare_cached(OUTLOOK)?.query_row([now], |row| {
        let (is_due, ran_out, has_codes): (bool, bool, bool) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(Outlook {
            is_due: is_due || ran_out,
            is_watched: has_codes,
        })
    })
}

const OUTLOOK: &str = "SELECT EXISTS (SELECT 1 FROM people WHERE is_due = 1),
    EXISTS (SELECT 1 FROM people WHERE code > '' AND (code_until <= ?1 OR code_until > ?1 + 3600000)),
    EXISTS (SELECT 1 FROM people WHERE code > '')";

/// Ends expired codes.
pub(crate) fn end_codes(tx: &Transaction<'_>, now: i64) -> rusqlite::Result<()> {
    tx.execute(
        "UPDATE people SET decision = 'ran out', decided_code = code, code = NULL, code_until = ?1,
             decided_at = ?1, is_due = 1
         WHERE code > '' AND (code_until <= ?1 OR code_until > ?1 + 3600000)",
        [now],
    )
    .map(drop)
}

/// Decisions not yet told.
pub(crate) fn due(connection: &Connection) -> rusqlite::Result<Vec<Decided>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {DECIDED} FROM people WHERE is_due = 1 ORDER BY decided_at"
    ))?;
    let rows = statement.query_map([], decided_row)?;
    rows.filter_map(Result::transpose).collect()
}

/// Marks a decision as told. False for a decision marked before, and for a guest unknown by now.
pub(crate) fn told(tx: &Transaction<'_>, decided: &Decided) -> rusqlite::Result<bool> {
    let sql = "UPDATE people SET is_due = 0, first_message = NULL
               WHERE id = ?1 AND decided_code = ?2 AND is_due = 1";
    Ok(tx.execute(sql, params![decided.known.person.to_string(), decided.code])? == 1)
}

const DECIDED: &str = "id, name, decided_code, decision, decided_by, decider, first_message";

/// None for a decision in an unknown word.
fn decided_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<Decided>> {
    let Some(decision) = Decision::parse(&row.get::<_, String>(3)?) else {
        return Ok(None);
    };
    let (id, name): (Option<String>, Option<String>) = (row.get(4)?, row.get(5)?);
    Ok(Some(Decided {
        known: acquaintance(row)?,
        code: row.get(2)?,
        decision,
        decider: id.zip(name).map(|(id, name)| Decider { id, name }),
        first_message: row.get(6)?,
    }))
}

/// The stored form of a code, however people type the code.
fn written(code: &str) -> String {
    code.trim().to_uppercase()
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

    fn code_of(knock: Knock) -> String {
        match knock {
            Knock::New { code, .. } => code,
            other => panic!("no code: {other:?}"),
        }
    }

    fn cli() -> Decider {
        Decider {
            id: "cli".into(),
            name: "the command line".into(),
        }
    }

    /// A stranger who writes every second for an hour hears little, and not nothing.
    #[tokio::test]
    async fn a_guest_who_waits_is_told_so_after_pauses_that_double() {
        let folder = tempfile::tempdir().unwrap();
        let db = open(&folder).await;
        let stranger: PersonId = "telegram:2".parse().unwrap();
        let told = db.write(move |tx| {
            knock(tx, &stranger, "Stranger", 0)?;
            let mut told = Vec::new();
            for second in 1..3600 {
                let knocked = knock(tx, &stranger, "Stranger", second * 1000)?;
                if matches!(knocked, Knock::Waiting { is_told: true, .. }) {
                    told.push(second);
                }
            }
            Ok(told)
        });
        assert_eq!(told.await.unwrap(), [1, 61, 181, 421, 901, 1861]);
    }

    #[tokio::test]
    async fn a_decision_counts_once_and_is_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let db = open(&folder).await;
        let stranger: PersonId = "telegram:2".parse().unwrap();
        let check = move |tx: &Transaction<'_>| {
            let code = code_of(knock(tx, &stranger, "Stranger", 0)?);
            assert!(keep_first(tx, &stranger, "\"first\"", 1)?);
            assert!(
                !keep_first(tx, &stranger, "\"second\"", 2)?,
                "the first is kept"
            );
            assert_eq!(
                outlook(tx, 2)?,
                Outlook {
                    is_due: false,
                    is_watched: true
                }
            );
            assert!(decide(tx, &code.to_lowercase(), Decision::TurnedAway, &cli(), 3)?.is_some());
            assert!(decide(tx, &code, Decision::LetIn, &cli(), 4)?.is_none());
            assert_eq!(
                outlook(tx, 4)?,
                Outlook {
                    is_due: true,
                    is_watched: false
                }
            );
            let due = due(tx)?;
            assert_eq!(due.len(), 1);
            assert_eq!(due[0].first_message.as_deref(), Some("\"first\""));
            assert!(told(tx, &due[0])? && !told(tx, &due[0])?, "once");
            let known = decided(tx, &code)?.expect("still known");
            assert_eq!(
                (known.decision, known.first_message),
                (Decision::TurnedAway, None)
            );
            assert_eq!(knock(tx, &stranger, "Stranger", 5)?, Knock::TurnedAway);
            let tomorrow = TURNED_AWAY_MS + 4;
            assert!(matches!(
                knock(tx, &stranger, "Stranger", tomorrow)?,
                Knock::New { .. }
            ));
            assert_eq!(decided(tx, &code)?, None);
            Ok(())
        };
        db.write(check).await.unwrap();
    }

    #[tokio::test]
    async fn a_code_that_ran_out_takes_the_kept_words_along() {
        let folder = tempfile::tempdir().unwrap();
        let db = open(&folder).await;
        let stranger: PersonId = "telegram:2".parse().unwrap();
        let check = move |tx: &Transaction<'_>| {
            knock(tx, &stranger, "Stranger", 0)?;
            assert!(!keep_first(
                tx,
                &stranger,
                &"x".repeat(MAX_FIRST_BYTES + 1),
                1
            )?);
            assert!(keep_first(tx, &stranger, "\"first\"", 1)?);
            end_codes(tx, CODE_LIFE_MS - 1)?;
            assert_eq!(due(tx)?.len(), 0);
            assert!(outlook(tx, CODE_LIFE_MS)?.is_due);
            end_codes(tx, CODE_LIFE_MS)?;
            let due = due(tx)?;
            assert_eq!(due[0].decision, Decision::RanOut);
            told(tx, &due[0])?;
            assert_eq!(first_messages(tx)?, []);
            Ok(())
        };
        db.write(check).await.unwrap();
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
            let code = code_of(knock(tx, &stranger, "Stranger", half_a_day)?);
            assert!(of_code(tx, &code, half_a_day)?.is_some());
            assert!(of_code(tx, &code, half_a_day + CODE_LIFE_MS)?.is_none());
            assert!(of_code(tx, &code, 0)?.is_none(), "the clock went back");
            assert!(decide(tx, &code, Decision::LetIn, &cli(), 0)?.is_none());
            assert!(
                matches!(knock(tx, &stranger, "Stranger", 0)?, Knock::New { .. }),
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
            let code = code_of(knock(tx, &friend, "Friend", 0)?);
            decide(tx, &code, Decision::LetIn, &cli(), 1)?;
            knock(tx, &stranger, "Stranger", 0)?;
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
