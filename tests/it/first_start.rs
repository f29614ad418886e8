//! A first start and an upgrade that are killed: the next start finds a home that works.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tempfile::TempDir;

use crate::cli::run_with_input;
use crate::support::house::{ask, parlor};

/// Kills that are spread over one start, from its first moment to its last.
const KILLS: u32 = 24;

/// A start of the gateway without a platform, to its end.
async fn start(home: &Path) -> String {
    let chat = run_with_input(home, &["chat"], "hello\n").await;
    assert_eq!(chat.code, 0, "{}", chat.stderr);
    chat.stdout
}

async fn kill_after(home: &Path, delay: Duration) {
    let mut child = parlor(home).arg("chat").kill_on_drop(true).spawn().expect("the binary starts");
    tokio::time::sleep(delay).await;
    child.kill().await.expect("it can be killed");
}

/// Homes like this one, each killed at another moment of its start, start afterwards as if nothing had been.
async fn survives_kills(prepare: impl Fn(&Path)) {
    let whole = TempDir::new().expect("a folder");
    prepare(whole.path());
    let begun = Instant::now();
    let expected = start(whole.path()).await;
    let duration = begun.elapsed();
    for number in 0..KILLS {
        let home = TempDir::new().expect("a folder");
        prepare(home.path());
        kill_after(home.path(), duration * number / KILLS).await;
        assert_eq!(start(home.path()).await, expected, "killed after {number} of {KILLS} parts of a start");
        assert_eq!(texts(home.path()), texts(whole.path()), "killed after {number} of {KILLS} parts of a start");
    }
}

/// Every file of the home that people write or read, with its text.
fn texts(home: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![home.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).expect("reads").map(|entry| entry.expect("an entry").path()) {
            let name = path.strip_prefix(home).expect("below").display().to_string();
            match std::fs::read_to_string(&path) {
                _ if path.is_dir() => folders.push(path),
                Ok(text) if !name.starts_with("parlor.") => found.push((name, text)),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn a_first_start_that_is_killed_leaves_a_home_that_starts() {
    survives_kills(|_| {}).await;
}

/// A home of the first version that had a database.
fn old_home(home: &Path) {
    let connection = Connection::open(home.join("parlor.db")).expect("opens");
    connection.pragma_update(None, "journal_mode", "wal").expect("can be set");
    connection.execute_batch(HISTORY).expect("can be made");
    connection.execute_batch(include_str!("../../migrations/V1__spine.sql")).expect("can be made");
    connection
        .execute("INSERT INTO refinery_schema_history VALUES (1, 'spine', '2026-01-01T00:00:00Z', '1')", [])
        .expect("goes in");
    connection
        .execute("INSERT INTO people (id, name, paired_at, created_at) VALUES ('telegram:7', 'Ann', 1, 1)", [])
        .expect("goes in");
}

/// As homes had it that were made with refinery.
const HISTORY: &str = "CREATE TABLE refinery_schema_history (version int4 PRIMARY KEY, name VARCHAR(255), applied_on VARCHAR(255), checksum VARCHAR(255));";

#[tokio::test]
async fn an_upgrade_that_is_killed_leaves_a_home_that_starts() {
    survives_kills(old_home).await;
}

/// Homes that an earlier version left when it was killed between a step and the row that tells of it.
#[tokio::test]
async fn a_home_that_an_earlier_version_left_half_made_starts_again() {
    for (made, recorded) in [(1, 0), (2, 1), (9, 8), (15, 14)] {
        let home = TempDir::new().expect("a folder");
        let connection = Connection::open(home.path().join("parlor.db")).expect("opens");
        connection.execute_batch(HISTORY).expect("can be made");
        for version in 1..=made {
            connection.execute_batch(&step(version)).expect("can be made");
            if version <= recorded {
                let row = format!("INSERT INTO refinery_schema_history VALUES ({version}, 'x', '2026-01-01T00:00:00Z', '1')");
                connection.execute(&row, []).expect("goes in");
            }
        }
        drop(connection);
        start(home.path()).await;
        assert_eq!(ask(home.path(), "SELECT count(*) FROM messages"), "2");
    }
}

/// The text of a step, by its number.
fn step(version: u32) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let entries = std::fs::read_dir(folder).expect("reads").flatten();
    let found = entries.map(|entry| entry.path()).find(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(&format!("V{version}__"))
    });
    std::fs::read_to_string(found.expect("there is such a step")).expect("reads")
}

/// A kill between the making of a file and its filling leaves it empty.
#[tokio::test]
async fn empty_files_of_a_start_that_was_killed_are_no_obstacle() {
    let home = TempDir::new().expect("a folder");
    std::fs::create_dir_all(home.path().join("agents/main")).expect("makes");
    for name in ["parlor.db", "parlor.lock"] {
        std::fs::write(home.path().join(name), "").expect("writes");
    }
    start(home.path()).await;
    assert_eq!(ask(home.path(), "SELECT count(*) FROM messages"), "2");
}
