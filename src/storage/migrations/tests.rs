use std::path::Path;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use super::*;
use crate::storage::{Db, open};

/// Statements are looked into this often: every so many steps of SQLite's machine.
const STEPS_BETWEEN_KILLS: i32 = 200;

fn opened(path: &Path) -> Connection {
    std::fs::OpenOptions::new().append(true).create(true).open(path).expect("can be made");
    open::prepare(path).expect("opens")
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("reads").flatten() {
        // A process that is killed leaves the index of the log behind too, but the next one makes it anew.
        if !entry.file_name().to_string_lossy().ends_with("-shm") {
            std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copies");
        }
    }
}

/// The files as a kill leaves them, from many moments of bringing this home up to date.
fn killed_at_every_step(home: &TempDir) -> Vec<TempDir> {
    let path = home.path().join("parlor.db");
    let kills = Arc::new(Mutex::new(Vec::new()));
    let take = {
        let (kills, from) = (kills.clone(), home.path().to_owned());
        move || {
            let kill = TempDir::new().expect("a folder");
            copy(&from, kill.path());
            kills.lock().expect("nobody panicked").push(kill);
        }
    };
    take();
    let mut connection = opened(&path);
    take();
    let during = take.clone();
    let handler = move || {
        during();
        false
    };
    connection.progress_handler(STEPS_BETWEEN_KILLS, Some(handler)).expect("can be set");
    bring_up_to_date(&mut connection).expect("works");
    connection.progress_handler(0, None::<fn() -> bool>).expect("can be set");
    take();
    drop(connection);
    drop(take);
    Arc::into_inner(kills).expect("the handler is gone").into_inner().expect("nobody panicked")
}

async fn schema_of(home: &Path) -> Vec<String> {
    let db = Db::open(&home.join("parlor.db")).await.expect("it starts");
    db.read(schema).await.expect("the schema can be read")
}

async fn check_kills(prepare: impl Fn(&Path)) {
    let home = TempDir::new().expect("a folder");
    prepare(home.path());
    let kills = killed_at_every_step(&home);
    assert!(kills.len() > 12, "{} moments", kills.len());
    let whole = schema_of(home.path()).await;
    for (number, kill) in kills.iter().enumerate() {
        assert_eq!(schema_of(kill.path()).await, whole, "killed at moment {number}");
    }
}

#[tokio::test]
async fn a_kill_at_any_step_of_a_first_start_leaves_a_home_that_starts() {
    check_kills(|_| {}).await;
}

#[tokio::test]
async fn a_kill_at_any_step_of_an_upgrade_leaves_a_home_that_starts() {
    check_kills(|home| drop(made_by_an_earlier_version(home, 3, 3))).await;
}

/// A home with so many steps, of which so many are written down, as versions did that were killed in between.
fn made_by_an_earlier_version(home: &Path, made: u32, written_down: u32) -> Connection {
    let connection = opened(&home.join("parlor.db"));
    connection.execute_batch(&format!("CREATE TABLE {EARLIER_HISTORY} (version int4 PRIMARY KEY)")).expect("can be made");
    for step in steps().iter().filter(|step| step.version <= made) {
        connection.execute_batch(step.sql).expect("can be made");
        if step.version <= written_down {
            connection.execute(&format!("INSERT INTO {EARLIER_HISTORY} VALUES (?1)"), [step.version]).expect("goes in");
        }
    }
    connection
}

/// The last version that wrote its steps down in a table of their own.
const LAST_EARLIER: u32 = 15;

#[tokio::test]
async fn homes_of_earlier_versions_are_brought_up_to_date_also_when_those_were_killed() {
    let fresh = TempDir::new().expect("a folder");
    let expected = schema_of(fresh.path()).await;
    for written_down in [0, 1, 6, 8, 14] {
        for made in [written_down, written_down + 1] {
            let home = TempDir::new().expect("a folder");
            drop(made_by_an_earlier_version(home.path(), made, written_down));
            assert_eq!(schema_of(home.path()).await, expected, "{made} made, {written_down} written down");
        }
    }
}

/// A step that does not work takes the ones before it back with it.
#[test]
fn a_step_that_fails_changes_nothing() {
    let home = TempDir::new().expect("a folder");
    let mut connection = opened(&home.path().join("parlor.db"));
    connection.execute_batch("CREATE TABLE memories (in_the_way INTEGER)").expect("can be made");
    assert!(matches!(bring_up_to_date(&mut connection), Err(MigrationError::Step { version: 7, .. })));
    assert_eq!(user_version(&connection).expect("a number"), 0);
    assert_eq!(schema(&connection).expect("reads").len(), 1);
}

#[test]
fn every_file_is_a_step_of_its_own() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let steps = steps();
    assert_eq!(steps.len(), std::fs::read_dir(folder).expect("reads").count(), "each is embedded, and its name can be read");
    assert!(steps.windows(2).all(|pair| pair[0].version < pair[1].version), "no number is there twice");
}

/// Rows and names of earlier versions outlive the messages that they were made for.
#[test]
fn ids_go_on_above_everything_that_is_named_after_one() {
    let home = TempDir::new().expect("a folder");
    let mut connection = made_by_an_earlier_version(home.path(), LAST_EARLIER, LAST_EARLIER);
    connection
        .execute_batch(
            "INSERT INTO agents (uid, slug, created_at) VALUES ('a', 'main', 0);
             INSERT INTO inbox (id, platform, update_id, state, received_at) VALUES (3, 'telegram', '1', 'done', 0);
             INSERT INTO sessions (key, created_at, active_at) VALUES ('child:41-0-0', 0, 0), ('telegram:dm:99', 0, 0);
             INSERT INTO decisions (session_key, inbox_id, what, at) VALUES ('telegram:dm:99', 40, 'waits', 0);
             INSERT INTO messages (id, session_key, conversation, kind, text, created_at) VALUES (5, 'telegram:dm:99', 1, 'person', 'hello', 0);
             INSERT INTO summaries (session_key, conversation, part, upto, messages, agent_uid, text, created_at)
                 VALUES ('telegram:dm:99', 1, '', 8, 8, 'a', 'of more', 0);",
        )
        .expect("they go in");
    bring_up_to_date(&mut connection).expect("works");
    let next = |connection: &Connection, insert: &str| {
        connection.execute(insert, []).expect("goes in");
        connection.last_insert_rowid()
    };
    let message = "INSERT INTO messages (session_key, conversation, kind, text, created_at) VALUES ('telegram:dm:99', 1, 'person', 'hi', 0)";
    assert_eq!(next(&connection, message), 9);
    let inbox = "INSERT INTO inbox (platform, update_id, state, received_at) VALUES ('telegram', '2', 'waiting', 0)";
    assert_eq!(next(&connection, inbox), 42);
    connection.execute_batch("DELETE FROM inbox; DELETE FROM messages;").expect("they go");
    assert_eq!((next(&connection, inbox), next(&connection, message)), (43, 10), "also after everything was cleaned away");
    let check: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("an answer");
    assert_eq!(check, "ok");
}
