//! A first start that is killed: the next start finds a home that works.

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
    let mut child = parlor(home)
        .arg("chat")
        .kill_on_drop(true)
        .spawn()
        .expect("the binary starts");
    tokio::time::sleep(delay).await;
    child.kill().await.expect("it can be killed");
}

/// Homes like this one, each killed at another moment of its start, start afterwards as if nothing
/// had been.
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
        assert_eq!(
            start(home.path()).await,
            expected,
            "killed after {number} of {KILLS} parts of a start"
        );
        assert_eq!(
            texts(home.path()),
            texts(whole.path()),
            "killed after {number} of {KILLS} parts of a start"
        );
    }
}

/// Every file of the home that people write or read, with its text.
fn texts(home: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![home.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder)
            .expect("reads")
            .map(|entry| entry.expect("an entry").path())
        {
            let name = path
                .strip_prefix(home)
                .expect("below")
                .display()
                .to_string();
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

/// A database of the versions before the first schema is left as it is.
#[tokio::test]
async fn a_database_with_other_tables_is_refused_and_left_alone() {
    let home = TempDir::new().expect("a folder");
    let connection = Connection::open(home.path().join("parlor.db")).expect("opens");
    connection
        .execute_batch("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine');")
        .expect("can be made");
    drop(connection);
    let chat = run_with_input(home.path(), &["chat"], "hello\n").await;
    assert_ne!(chat.code, 0);
    assert!(
        chat.stderr
            .contains("is not a database of this Parlor: its tables are others."),
        "{}",
        chat.stderr
    );
    assert_eq!(ask(home.path(), "SELECT text FROM notes"), "mine");
    assert_eq!(ask(home.path(), "SELECT count(*) FROM sqlite_schema"), "1");
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
