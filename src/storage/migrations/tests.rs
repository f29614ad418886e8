use std::path::Path;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use super::*;
use crate::storage::open;

/// The files are copied every so many steps of SQLite's machine.
const STEPS_BETWEEN_KILLS: i32 = 200;

fn opened(path: &Path) -> Connection {
    std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .expect("can be made");
    open::prepare(path).expect("opens")
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("reads").flatten() {
        // A killed process leaves the index of the log behind too, but the next process makes the
        // index anew.
        if !entry.file_name().to_string_lossy().ends_with("-shm") {
            std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copies");
        }
    }
}

/// The files left by a kill, at many moments of a migration of this home.
fn killed_at_every_step(home: &TempDir, steps: &[Step]) -> Vec<TempDir> {
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
    connection
        .progress_handler(STEPS_BETWEEN_KILLS, Some(handler))
        .expect("can be set");
    migrate(&mut connection, steps).expect("works");
    connection
        .progress_handler(0, None::<fn() -> bool>)
        .expect("can be set");
    take();
    drop(connection);
    drop(take);
    Arc::into_inner(kills)
        .expect("the handler is gone")
        .into_inner()
        .expect("nobody panicked")
}

/// The schema of a home after a start.
fn schema_of(home: &Path, steps: &[Step]) -> Vec<String> {
    let mut connection = opened(&home.join("parlor.db"));
    migrate(&mut connection, steps).expect("it starts");
    schema(&connection)
}

fn schema(connection: &Connection) -> Vec<String> {
    let sql =
        "SELECT type || ' ' || name || ': ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1";
    let mut statement = connection.prepare(sql).expect("a statement");
    let rows = statement
        .query_map([], |row| row.get(0))
        .expect("an answer");
    rows.collect::<rusqlite::Result<_>>().expect("reads")
}

fn check_kills(steps: &[Step], made_before: &[Step]) {
    let home = TempDir::new().expect("a folder");
    if !made_before.is_empty() {
        migrate(&mut opened(&home.path().join("parlor.db")), made_before).expect("works");
    }
    let kills = killed_at_every_step(&home, steps);
    assert!(kills.len() > 5, "{} moments", kills.len());
    let whole = schema_of(home.path(), steps);
    for (number, kill) in kills.iter().enumerate() {
        assert_eq!(
            schema_of(kill.path(), steps),
            whole,
            "killed at moment {number}"
        );
    }
}

#[test]
fn a_kill_at_any_step_of_a_first_start_leaves_a_home_that_starts() {
    check_kills(&steps(), &[]);
}

/// Later steps, as they may come some day.
fn with_later_steps() -> Vec<Step> {
    let filled = "CREATE TABLE later (number INTEGER) STRICT;
                  WITH RECURSIVE numbers(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < 400)
                  INSERT INTO later SELECT number FROM numbers;";
    let changed =
        "ALTER TABLE later ADD COLUMN name TEXT; CREATE INDEX later_by_name ON later (name);";
    let next = newest(&steps()) + 1;
    steps()
        .into_iter()
        .chain([
            Step {
                version: next,
                sql: filled,
            },
            Step {
                version: next + 1,
                sql: changed,
            },
        ])
        .collect()
}

#[test]
fn a_kill_at_any_step_of_an_upgrade_leaves_a_home_that_starts() {
    check_kills(&with_later_steps(), &steps());
}

/// A failing step undoes the steps before.
#[test]
fn a_step_that_fails_changes_nothing() {
    let home = TempDir::new().expect("a folder");
    let mut connection = opened(&home.path().join("parlor.db"));
    migrate(&mut connection, &steps()).expect("works");
    let before = schema(&connection);
    let mut broken = with_later_steps();
    broken.push(Step {
        version: newest(&broken) + 1,
        sql: "CREATE TABLE later (number INTEGER) STRICT",
    });
    let last = newest(&broken);
    assert!(
        matches!(migrate(&mut connection, &broken), Err(MigrationError::Step { version, .. }) if version == last)
    );
    assert_eq!(
        user_version(&connection).expect("a number"),
        newest(&steps())
    );
    assert_eq!(schema(&connection), before);
}

/// Also databases of versions before the first schema.
#[test]
fn a_file_with_other_tables_is_left_alone() {
    let home = TempDir::new().expect("a folder");
    let mut connection = opened(&home.path().join("parlor.db"));
    connection
        .execute_batch("CREATE TABLE notes (text TEXT)")
        .expect("can be made");
    assert!(matches!(
        bring_up_to_date(&mut connection),
        Err(MigrationError::Unknown)
    ));
    connection
        .pragma_update(None, "user_version", 18)
        .expect("can be set");
    assert!(matches!(
        bring_up_to_date(&mut connection),
        Err(MigrationError::Unknown)
    ));
    assert_eq!(schema(&connection).len(), 1);
}

#[test]
fn every_file_is_a_step_of_its_own() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let steps = steps();
    assert_eq!(
        steps.len(),
        std::fs::read_dir(folder).expect("reads").count(),
        "each is embedded, and its name can be read"
    );
    assert!(
        steps
            .windows(2)
            .all(|pair| pair[0].version < pair[1].version),
        "no number is there twice"
    );
}

/// The schema of a migrated file as statements, and the rows that it begins with.
fn whole(connection: &Connection) -> String {
    let ask = |sql: &str| -> Vec<(String, String)> {
        let mut statement = connection.prepare(sql).expect("is SQL");
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        let rows = rows.expect("can be asked");
        rows.collect::<Result<_, _>>().expect("two texts")
    };
    // The tables beneath a table of words are made with it, and SQLite's own by itself.
    let made = ask("SELECT name, sql FROM sqlite_schema
                    WHERE sql IS NOT NULL AND name NOT GLOB 'memories_fts_*' AND name NOT GLOB 'sqlite_*' ORDER BY rowid");
    let mut text = "-- What the steps V1, V2 and so on make of an empty file. A test writes it, see the end of\n\
                    -- src/storage/migrations/tests.rs.\n"
        .to_owned();
    for (_, sql) in &made {
        text.push_str(&format!("{sql};\n"));
    }
    for (name, sql) in &made {
        if !sql.starts_with("CREATE TABLE") {
            continue;
        }
        let columns = ask(&format!(
            "SELECT name, name FROM pragma_table_info('{name}')"
        ));
        let quoted: Vec<_> = columns
            .iter()
            .map(|(column, _)| format!("quote({column})"))
            .collect();
        let rows = format!(
            "SELECT '', concat_ws(', ', {}) FROM {name}",
            quoted.join(", ")
        );
        for (_, values) in ask(&rows) {
            text.push_str(&format!("INSERT INTO {name} VALUES ({values});\n"));
        }
    }
    text
}

#[test]
fn the_whole_schema_is_what_the_steps_make() {
    let mut connection = Connection::open_in_memory().expect("opens");
    bring_up_to_date(&mut connection).expect("works");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/storage/whole.sql");
    if std::env::var_os("UPDATE_BOOK").is_some() {
        std::fs::write(path, whole(&connection)).expect("the file can be written");
    }
    assert!(
        std::fs::read_to_string(path).is_ok_and(|text| text == whole(&connection)),
        "src/storage/whole.sql is not what the steps make. `UPDATE_BOOK=1 cargo test` writes it anew."
    );
}
