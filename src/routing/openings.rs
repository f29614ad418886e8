//! Places opened from chat: the `openings` table. A pin names an agent, an opening lets the bot
//! answer at all, so each can be taken back without the other.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::Opened;
use super::places::{self, PlaceId};
use crate::domain::SessionKey;

pub(crate) fn load(
    connection: &Connection,
    place: &SessionKey,
) -> rusqlite::Result<Option<Opened>> {
    let mut statement = connection.prepare_cached(
        "SELECT opened_by, opened_by_name, opened_at FROM openings
         WHERE place_id = (SELECT id FROM places WHERE key = ?1)",
    )?;
    let row = statement.query_row([place.to_string()], |row| {
        Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?))
    });
    Ok(row.optional()?.and_then(|(by, by_name, at)| {
        let by = by.parse().ok()?;
        Some(Opened { by, by_name, at })
    }))
}

/// All openings, by place.
pub(super) fn everywhere(connection: &Connection) -> rusqlite::Result<Vec<(PlaceId, Opened)>> {
    let mut statement = connection
        .prepare_cached("SELECT place_id, opened_by, opened_by_name, opened_at FROM openings")?;
    let rows = statement.query_map([], |row| {
        let by = row.get_ref(1)?.as_str()?.parse().ok();
        let (place, by_name, at) = (row.get(0)?, row.get(2)?, row.get(3)?);
        Ok(by.map(|by| (place, Opened { by, by_name, at })))
    })?;
    rows.filter_map(Result::transpose).collect()
}

/// The places opened from chat.
pub(crate) fn all(connection: &Connection) -> rusqlite::Result<Vec<SessionKey>> {
    let mut statement =
        connection.prepare_cached("SELECT key FROM openings JOIN places ON id = place_id")?;
    let keys = statement.query_map([], |row| row.get::<_, String>(0))?;
    keys.filter_map(|key| key.map(|key| key.parse().ok()).transpose())
        .collect()
}

/// Opens a place. A second call keeps the name of the first person.
pub(crate) fn set(
    tx: &Transaction<'_>,
    place: &SessionKey,
    opened: &Opened,
) -> rusqlite::Result<()> {
    let place = places::ensure(tx, place, opened.at)?;
    tx.prepare_cached(
        "INSERT OR IGNORE INTO openings (place_id, opened_by, opened_by_name, opened_at) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![place, opened.by.to_string(), opened.by_name, opened.at])
    .map(drop)
}

pub(crate) fn clear(tx: &Transaction<'_>, place: &SessionKey) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "DELETE FROM openings WHERE place_id = (SELECT id FROM places WHERE key = ?1)",
    )?
    .execute([place.to_string()])
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Db;

    #[tokio::test]
    async fn a_place_is_open_until_it_is_closed_and_the_first_name_stays() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&folder.path().join("parlor.db")).await.unwrap();
        let check = |tx: &Transaction<'_>| {
            let places = ["telegram:topic:-1:7", "telegram:topic:-1:8"];
            let [one, other]: [SessionKey; 2] = places.map(|place| place.parse().unwrap());
            let opened = |person: &str, at: i64| Opened {
                by: person.parse().unwrap(),
                by_name: Some(person.to_owned()),
                at,
            };
            set(tx, &one, &opened("telegram:5", 9))?;
            set(tx, &one, &opened("telegram:6", 10))?;
            set(tx, &other, &opened("telegram:6", 11))?;
            assert_eq!(load(tx, &one)?, Some(opened("telegram:5", 9)));
            let all_opened = everywhere(tx)?.into_iter().map(|(_, opened)| opened);
            assert_eq!(
                all_opened.collect::<Vec<_>>(),
                [opened("telegram:5", 9), opened("telegram:6", 11)]
            );
            assert_eq!(all(tx)?, [one.clone(), other.clone()]);
            clear(tx, &one)?;
            assert_eq!(all(tx)?, [other]);
            assert_eq!(load(tx, &one)?, None);
            Ok(())
        };
        db.write(check).await.unwrap();
    }

    /// Until openings were kept apart, a lasting pin opened its place.
    #[test]
    fn a_place_pinned_by_an_earlier_version_stays_open() {
        let connection = Connection::open_in_memory().unwrap();
        let before = [
            include_str!("../../migrations/V1__schema.sql"),
            include_str!("../../migrations/V2__admins.sql"),
            include_str!("../../migrations/V3__memory_of_people.sql"),
            "INSERT INTO agents (uid, slug, created_at) VALUES ('u', 'rose', 1);
             INSERT INTO places (id, key, created_at) VALUES
                 (1, 'telegram:topic:-1:7', 1), (2, 'telegram:topic:-1:8', 1), (3, 'telegram:dm:5', 1);
             INSERT INTO pins (place_id, once, agent_uid, set_by, set_at) VALUES
                 (1, 0, 'u', 'telegram:5', 9), (2, 1, 'u', 'telegram:5', 9), (3, 0, 'u', 'telegram:5', 9);",
        ];
        for sql in before {
            connection.execute_batch(sql).unwrap();
        }
        connection
            .execute_batch(include_str!("../../migrations/V6__openings.sql"))
            .unwrap();
        let topic: SessionKey = "telegram:topic:-1:7".parse().unwrap();
        assert_eq!(all(&connection).unwrap(), std::slice::from_ref(&topic));
        let opened = Opened {
            by: "telegram:5".parse().unwrap(),
            by_name: None,
            at: 9,
        };
        assert_eq!(load(&connection, &topic).unwrap(), Some(opened));
    }
}
