//! Everybody who has written, with name and time of the newest message: the `speakers` table. Lists
//! show names, and messages are too many to be read for them.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::domain::PersonId;

/// Notes that a person has written. An empty name changes nothing about the name.
pub(crate) fn heard(
    tx: &Transaction<'_>,
    person: &str,
    name: &str,
    at: i64,
) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO speakers (person, name, said_at) VALUES (?1, nullif(?2, ''), ?3)
         ON CONFLICT (person) DO UPDATE SET name = coalesce(excluded.name, name), said_at = max(said_at, excluded.said_at)",
    )?
    .execute(params![person, name, at])
    .map(drop)
}

/// What people are called, by their newest message.
pub(crate) fn names(connection: &Connection) -> rusqlite::Result<Vec<(PersonId, String)>> {
    let mut statement =
        connection.prepare_cached("SELECT person, name FROM speakers WHERE name IS NOT NULL")?;
    let rows = statement.query_map([], |row| {
        let person = row.get_ref(0)?.as_str()?.parse().ok();
        Ok(person.zip(row.get(1)?))
    })?;
    rows.filter_map(Result::transpose).collect()
}

/// What a person is called, by their newest message.
pub(crate) fn name(connection: &Connection, person: &PersonId) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT name FROM speakers WHERE person = ?1 AND name IS NOT NULL";
    let mut statement = connection.prepare_cached(sql)?;
    statement
        .query_row([person.to_string()], |row| row.get(0))
        .optional()
}

/// When people wrote last.
pub(crate) fn last_words(connection: &Connection) -> rusqlite::Result<Vec<(PersonId, i64)>> {
    let mut statement = connection.prepare_cached("SELECT person, said_at FROM speakers")?;
    let rows = statement.query_map([], |row| {
        let person = row.get_ref(0)?.as_str()?.parse().ok();
        Ok(person.zip(row.get(1)?))
    })?;
    rows.filter_map(Result::transpose).collect()
}

/// Forgets people without any message left.
pub(crate) fn forget_silent(tx: &Transaction<'_>) -> rusqlite::Result<()> {
    let sql = "DELETE FROM speakers WHERE person NOT IN (SELECT person FROM messages WHERE kind = 'person' AND person IS NOT NULL)";
    tx.execute(sql, []).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Db;

    #[tokio::test]
    async fn the_newest_name_and_the_latest_time_count() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&folder.path().join("parlor.db")).await.unwrap();
        let work = |tx: &Transaction<'_>| {
            heard(tx, "telegram:1", "Alice", 10)?;
            heard(tx, "telegram:1", "", 30)?;
            heard(tx, "telegram:2", "", 5)?;
            heard(tx, "telegram:1", "Alice in Kyoto", 20)?;
            Ok((names(tx)?, last_words(tx)?))
        };
        let (names, times) = db.write(work).await.unwrap();
        let id = |text: &str| text.parse::<PersonId>().unwrap();
        assert_eq!(names, [(id("telegram:1"), "Alice in Kyoto".to_owned())]);
        assert_eq!(times, [(id("telegram:1"), 30), (id("telegram:2"), 5)]);
    }

    /// The migration fills the table from the messages of earlier versions.
    #[test]
    fn people_who_wrote_to_an_earlier_version_keep_their_names() {
        let connection = Connection::open_in_memory().unwrap();
        let before = [
            include_str!("../../migrations/V1__schema.sql"),
            "INSERT INTO places (id, key, created_at) VALUES (1, 'telegram:dm:1', 0), (2, 'child:7-0-0', 0);
             INSERT INTO messages (place_id, conversation, kind, person, person_name, text, created_at) VALUES
                 (1, 1, 'person', 'telegram:1', 'Al', 'x', 10), (1, 1, 'person', 'telegram:1', 'Alice', 'x', 20),
                 (1, 1, 'person', 'telegram:1', '', 'x', 30), (2, 1, 'person', 'telegram:1', '@rose', 'x', 40),
                 (1, 1, 'agent', 'telegram:2', NULL, 'x', 50);",
            include_str!("../../migrations/V21__lists.sql"),
        ];
        for sql in before {
            connection.execute_batch(sql).unwrap();
        }
        let alice: PersonId = "telegram:1".parse().unwrap();
        assert_eq!(
            names(&connection).unwrap(),
            [(alice.clone(), "Alice".to_owned())]
        );
        assert_eq!(last_words(&connection).unwrap(), [(alice, 30)]);
    }
}
