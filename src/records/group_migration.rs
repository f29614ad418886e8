//! A group keeps its places on becoming a supergroup. The places get new keys; other rows refer to
//! places by id.

use rusqlite::{Transaction, params};

use super::{ledger, transcript};
use crate::delivery::outbox;
use crate::domain::{Moved, SessionKey};
use crate::routing::aliases;
use crate::routing::pins;
use crate::routing::places::{self, Twin};

/// The result of a move.
#[derive(Debug)]
pub(crate) struct Followed {
    /// The move was not known before.
    pub(crate) is_news: bool,
    /// The new places with rows to send.
    pub(crate) open: Vec<(SessionKey, usize)>,
}

/// Moves every place with an old key; a repetition does no harm.
pub(crate) fn follow(tx: &Transaction<'_>, moved: Moved, now: i64) -> rusqlite::Result<Followed> {
    let is_news = aliases::insert(tx, moved)?;
    let old = places::of_group(tx, moved)?;
    old.iter()
        .try_for_each(|place| outbox::forget_targets(tx, *place))?;
    let open = outbox::waiting_in(tx, &old)?;
    let being_sent = outbox::being_sent(tx, &old)?;
    let twins = places::rename_group(tx, moved)?;
    twins.iter().try_for_each(|twin| merge(tx, *twin))?;
    // A row being sent stays under its old key, because the sender reports the result under that
    // key.
    being_sent
        .iter()
        .try_for_each(|(row, key)| outbox::put_into(tx, *row, places::ensure(tx, key, now)?))?;
    let in_new = |(place, count): (SessionKey, usize)| (place.in_telegram_group(moved.new), count);
    Ok(Followed {
        is_news,
        open: open.into_iter().map(in_new).collect(),
    })
}

/// Tables whose rows only change their place.
const MOVED: [(&str, &str); 14] = [
    ("inbox", "place_id"),
    ("turns", "place_id"),
    ("open_turns", "place_id"),
    ("subagents", "place_id"),
    ("subagents", "parent_place_id"),
    ("decisions", "place_id"),
    ("outbox", "place_id"),
    ("preview_messages", "place_id"),
    ("memories", "place_id"),
    ("memory_scopes", "place_id"),
    ("audit", "place_id"),
    ("web_screen", "place_id"),
    ("jobs", "place_id"),
    ("approvals", "place_id"),
];
/// Tables with at most a single row of a kind for a place. The row of the new place wins.
const REPLACED: [&str; 4] = [
    "model_overrides",
    "openings",
    "pause_notices",
    "delivery_off",
];

/// Merges both rows of a place.
fn merge(tx: &Transaction<'_>, twin: Twin) -> rusqlite::Result<()> {
    let Twin { old, new } = twin;
    transcript::merge(tx, twin)?;
    pins::merge(tx, twin)?;
    ledger::merge(tx, twin)?;
    for (table, column) in MOVED {
        tx.execute(
            &format!("UPDATE {table} SET {column} = ?2 WHERE {column} = ?1"),
            params![old, new],
        )?;
    }
    // A summary of a row says nothing about messages of the other row.
    tx.execute(
        "DELETE FROM summaries WHERE place_id IN (?1, ?2)",
        params![old, new],
    )?;
    for table in REPLACED {
        tx.execute(
            &format!("UPDATE OR IGNORE {table} SET place_id = ?2 WHERE place_id = ?1"),
            params![old, new],
        )?;
        tx.execute(&format!("DELETE FROM {table} WHERE place_id = ?1"), [old])?;
    }
    places::delete(tx, old)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::domain::ChatId;
    use crate::storage::Db;

    /// Tables with a merge function of their own.
    const BY_HAND: [(&str, &str); 6] = [
        ("summaries", "place_id"),
        ("messages", "place_id"),
        ("pins", "place_id"),
        ("timed_pins", "place_id"),
        ("spending", "place_id"),
        ("budget_notices", "place_id"),
    ];

    #[tokio::test]
    async fn every_column_with_a_place_is_moved() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&folder.path().join("parlor.db")).await.unwrap();
        let sql = "SELECT tables.name, columns.name FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
                   WHERE tables.type = 'table' AND columns.name LIKE '%place_id'";
        let read = db.read(move |connection| {
            let mut statement = connection.prepare(sql)?;
            statement
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<BTreeSet<(String, String)>>>()
        });
        let replaced = REPLACED.iter().map(|table| (*table, "place_id"));
        let known = MOVED
            .iter()
            .copied()
            .chain(BY_HAND)
            .chain(replaced)
            .map(|(table, column)| (table.into(), column.into()));
        assert_eq!(
            read.await.unwrap(),
            known.collect::<BTreeSet<(String, String)>>()
        );
    }

    /// People wrote in the supergroup before its link to the group was known.
    const BOTH: &str = "
        INSERT INTO agents (uid, slug, created_at) VALUES ('a', 'main', 0), ('b', 'rose', 0);
        INSERT INTO places (id, key, conversation, active_at, created_at) VALUES
            (1, 'telegram:group:-5:7', 3, 1, 1), (2, 'telegram:group:-1005:7', 1, 2, 2), (3, 'telegram:group:-5', 1, NULL, 1),
            (4, 'telegram:group:-55:7', 1, 1, 1);
        INSERT INTO messages (place_id, conversation, kind, text, created_at) VALUES
            (1, 2, 'person', 'before /new', 1), (1, 3, 'person', 'old', 1), (2, 1, 'person', 'new', 2), (4, 1, 'person', 'elsewhere', 2);
        INSERT INTO pins (place_id, once, agent_uid, set_by, set_at) VALUES
            (1, 0, 'a', 'telegram:7', 1), (1, 1, 'a', 'telegram:7', 1), (2, 0, 'b', 'telegram:7', 2);
        INSERT INTO model_overrides (place_id, model, set_by, set_at) VALUES (1, 'x/old', 'telegram:7', 1), (2, 'x/new', 'telegram:7', 2);
        INSERT INTO spending (day, agent_uid, place_id, person, model, turns, input_tokens, cost_micros) VALUES
            ('2026-01-01', 'a', 1, 'telegram:7', 'm', 2, 10, 5), ('2026-01-01', 'a', 2, 'telegram:7', 'm', 1, 4, NULL),
            ('2026-01-02', 'a', 1, 'telegram:7', 'm', 1, 1, NULL);
        INSERT INTO budget_notices (place_id, spender, until) VALUES (1, 'agent:a', 9), (2, 'agent:a', 8), (1, 'agent:b', 7);
        INSERT INTO outbox (id, place_id, kind, part, state, target, created_at) VALUES
            (1, 1, 'final', 'changed', 'waiting', '77', 1), (2, 1, 'final', 'on its way', 'sending', NULL, 1),
            (3, 1, 'final', '', 'waiting', '78', 1);
        INSERT INTO turns (inbox_id, place_id, agent_uid, model, route, started_at, ended_at, outcome) VALUES (1, 1, 'a', 'm', 'r', 1, 1, 'answered');
    ";

    #[tokio::test]
    async fn rows_of_both_ids_become_those_of_one_place() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&folder.path().join("parlor.db")).await.unwrap();
        let moved = Moved {
            old: ChatId(-5),
            new: ChatId(-1005),
        };
        let check = move |tx: &Transaction<'_>| {
            tx.execute_batch(BOTH)?;
            let followed = follow(tx, moved, 9)?;
            assert!(followed.is_news);
            assert_eq!(
                followed.open,
                [("telegram:group:-1005:7".parse().unwrap(), 1)]
            );
            let ask = |sql: &str| {
                tx.query_row(sql, [], |row| row.get::<_, String>(0))
                    .unwrap()
            };
            let keys = "SELECT group_concat(id || ' ' || key, ', ') FROM (SELECT * FROM places ORDER BY id)";
            let there = "2 telegram:group:-1005:7, 3 telegram:group:-1005, 4 telegram:group:-55:7, 5 telegram:group:-5:7";
            assert_eq!(
                ask(keys),
                there,
                "a new row with the old key has what is being sent"
            );
            let said = "SELECT group_concat(place_id || ' ' || conversation || ' ' || text, ', ') FROM (SELECT * FROM messages ORDER BY id)";
            assert_eq!(
                ask(said),
                "2 2 before /new, 2 3 old, 2 3 new, 4 1 elsewhere"
            );
            assert_eq!(
                ask("SELECT conversation || ' ' || active_at FROM places WHERE id = 2"),
                "3 2"
            );
            let pins = "SELECT group_concat(place_id || ' ' || once || ' ' || agent_uid, ', ') FROM (SELECT * FROM pins ORDER BY once)";
            assert_eq!(ask(pins), "2 0 b, 2 1 a");
            assert_eq!(
                ask("SELECT group_concat(place_id || ' ' || model) FROM model_overrides"),
                "2 x/new"
            );
            let spent = "SELECT group_concat(day || ' ' || place_id || ' ' || turns || ' ' || input_tokens || ' ' || coalesce(cost_micros, '-'), ', ')
                         FROM (SELECT * FROM spending ORDER BY day)";
            assert_eq!(ask(spent), "2026-01-01 2 3 14 5, 2026-01-02 2 1 1 -");
            let notices = "SELECT group_concat(place_id || ' ' || spender || ' ' || until, ', ') FROM (SELECT * FROM budget_notices ORDER BY spender)";
            assert_eq!(ask(notices), "2 agent:a 8, 2 agent:b 7");
            let rows = "SELECT group_concat(id || ' ' || place_id || ' ' || state || ' ' || coalesce(target, '-'), ', ') FROM outbox";
            assert_eq!(
                ask(rows),
                "1 2 waiting -, 2 5 sending -",
                "a message of the old group is changed by nobody"
            );
            assert_eq!(ask("SELECT CAST(place_id AS TEXT) FROM turns"), "2");

            tx.execute("UPDATE outbox SET state = 'waiting' WHERE id = 2", [])?;
            let again = follow(tx, moved, 9)?;
            assert!(!again.is_news);
            assert_eq!(
                again.open,
                [("telegram:group:-1005:7".parse().unwrap(), 1)],
                "its own answer brought it back"
            );
            assert_eq!(ask("SELECT group_concat(place_id) FROM outbox"), "2,2");
            Ok(())
        };
        db.write(check).await.unwrap();
    }
}
