//! The numbers of people in prompts: the `person_numbers` table.
//!
//! A person with several ids has the lowest of their numbers, so the number stays when an id is
//! added in the config.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Transaction};

use crate::config::People;
use crate::domain::{PersonId, Said};

/// The number of a person.
pub(crate) fn of(
    connection: &Connection,
    people: &People,
    person: &PersonId,
) -> rusqlite::Result<Option<u32>> {
    let mut statement =
        connection.prepare_cached("SELECT number FROM person_numbers WHERE person = ?1")?;
    let mut lowest: Option<u32> = None;
    for id in people.ids_of(person) {
        let number = statement
            .query_row([id.to_string()], |row| row.get::<_, u32>(0))
            .optional()?;
        lowest = lowest.into_iter().chain(number).min();
    }
    Ok(lowest)
}

/// All people with a number, by number.
pub(crate) fn everybody(connection: &Connection) -> rusqlite::Result<Vec<PersonId>> {
    let mut statement =
        connection.prepare_cached("SELECT person FROM person_numbers ORDER BY number")?;
    let ids = statement.query_map([], |row| row.get::<_, String>(0))?;
    let ids = ids.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(ids.into_iter().filter_map(|id| id.parse().ok()).collect())
}

/// Gives the person a number, unless the person has a number. Unknown senders get none.
pub(crate) fn ensure(tx: &Transaction<'_>, person: &PersonId) -> rusqlite::Result<()> {
    if person.is_nobody() {
        return Ok(());
    }
    let mut known = tx.prepare_cached("SELECT 1 FROM person_numbers WHERE person = ?1")?;
    if known.exists([person.to_string()])? {
        return Ok(());
    }
    tx.prepare_cached("INSERT INTO person_numbers (person) VALUES (?1)")?
        .execute([person.to_string()])
        .map(drop)
}

/// Fills in the numbers of all people in these messages. Returns the people without a number.
pub(crate) fn fill_in<'a>(
    connection: &Connection,
    people: &People,
    said: impl Iterator<Item = &'a mut Said>,
) -> rusqlite::Result<Vec<PersonId>> {
    let mut known = Known::default();
    for said in said {
        known.look_up(connection, people, said)?;
        said.count(|person| known.of(person));
    }
    let missing = known.numbers.into_iter();
    let missing = missing.filter(|(id, number)| number.is_none() && !id.is_nobody());
    Ok(missing.map(|(id, _)| id).collect())
}

/// The same for messages that may be shared. Those that have their numbers stay shared.
pub(crate) fn fill_in_shared<'a>(
    connection: &Connection,
    people: &People,
    said: impl Iterator<Item = &'a mut Arc<Said>>,
) -> rusqlite::Result<()> {
    let mut known = Known::default();
    for said in said {
        known.look_up(connection, people, said)?;
        if !said.is_counted(|person| known.of(person)) {
            Arc::make_mut(said).count(|person| known.of(person));
        }
    }
    Ok(())
}

/// The numbers of people that were looked up.
#[derive(Default)]
struct Known {
    numbers: Vec<(PersonId, Option<u32>)>,
}

impl Known {
    /// Looks up everybody in a message.
    fn look_up(
        &mut self,
        connection: &Connection,
        people: &People,
        said: &Said,
    ) -> rusqlite::Result<()> {
        for person in said.people() {
            if !self.numbers.iter().any(|(id, _)| id == person) {
                let number = of(connection, people, person)?;
                self.numbers.push((person.clone(), number));
            }
        }
        Ok(())
    }

    fn of(&self, person: &PersonId) -> Option<u32> {
        self.numbers.iter().find(|(id, _)| id == person)?.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Person;
    use crate::storage::Db;

    #[tokio::test]
    async fn a_person_has_one_number_on_all_platforms_and_for_good() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&folder.path().join("parlor.db")).await.unwrap();
        let id = |text: &str| text.parse::<PersonId>().unwrap();
        let alice: People = [Person {
            name: "alice".into(),
            ids: vec![id("telegram:1"), id("discord:1")],
            role: None,
            agents: [].into(),
            zone: None,
        }]
        .into_iter()
        .collect();
        let work = move |tx: &Transaction<'_>| {
            for person in ["discord:1", "telegram:7", "telegram:1", "discord:1"] {
                ensure(tx, &id(person))?;
            }
            ensure(tx, &id("discord:0"))?;
            let number = |people: &People, person: &str| of(tx, people, &id(person)).unwrap();
            let nobody = People::default();
            assert_eq!(number(&nobody, "telegram:1"), Some(3));
            assert_eq!(number(&alice, "telegram:1"), Some(1));
            assert_eq!(number(&alice, "discord:1"), Some(1));
            assert_eq!(number(&alice, "telegram:7"), Some(2));
            assert_eq!(number(&alice, "discord:0"), None);
            Ok(())
        };
        db.write(work).await.unwrap();
    }
}
