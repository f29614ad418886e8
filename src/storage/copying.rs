//! Copies a database that is open.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::StoreError;

/// The value for all pages in SQLite's backup interface.
const ALL_PAGES: i32 = -1;

/// A copy page by page, so a log left beside the database fits the copy too. The target is a new
/// file, whole or not there.
pub(super) fn copy(connection: &Connection, target: &Path) -> Result<(), StoreError> {
    let copied = fill(connection, target);
    if copied.is_err() {
        // Half a copy is of no use. If the removal fails, the first error still tells what is
        // wrong.
        drop(fs::remove_file(target));
    }
    copied
}

fn fill(connection: &Connection, target: &Path) -> Result<(), StoreError> {
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(target);
    made.map_err(|error| StoreError::from_disk(target, &error))?;
    let mut copy = Connection::open_with_flags(target, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .map_err(|error| StoreError::at(target, &error))?;
    let backup =
        Backup::new(connection, &mut copy).map_err(|error| StoreError::at(target, &error))?;
    let step = backup.step(ALL_PAGES);
    match step.map_err(|error| StoreError::at(target, &error))? {
        StepResult::Done => Ok(()),
        _ => Err(StoreError::Failed("somebody else is writing to it".into())),
    }
}

/// Checks a database that nobody uses, puts everything into its one file, and returns its schema.
pub(super) fn check(path: &Path) -> Result<u32, StoreError> {
    let checked = || {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.pragma_update(None, "journal_mode", "delete")?;
        let found: String =
            connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        let schema = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        Ok((found, schema))
    };
    let (found, schema) =
        checked().map_err(|error: rusqlite::Error| StoreError::at(path, &error))?;
    match found.as_str() {
        "ok" => Ok(schema),
        _ => Err(StoreError::Failed(format!(
            "{} is damaged: {found}",
            path.display()
        ))),
    }
}
