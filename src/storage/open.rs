//! Opens the database file after checks of the files there, and brings its schema up to date.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::migrations::{self, Migrated, MigrationError};
use super::watch::Watch;
use super::{StoreError, fresh, handle, stamp, upgrade_copy, wal};

/// How long a statement waits for another process, such as a backup, to release the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Statements kept compiled per connection; we have some dozens.
const STATEMENT_CACHE: usize = 64;

/// Pages cached by each connection. Other pages are in the system's own cache, shared by all
/// connections.
const PAGE_CACHE_KIB: i32 = 512;

/// The write connection, and the watch over its files.
pub(super) fn writable(path: &Path) -> Result<(Connection, Watch), StoreError> {
    stamp::check(path)?;
    fresh::make(path);
    let disk = |error: std::io::Error| StoreError::from_disk(path, &error);
    let file = handle::open(path).map_err(disk)?;
    if !wal::fits(&file, path).map_err(disk)? {
        return Err(StoreError::OtherLog(path.to_owned()));
    }
    if !wal::is_whole(&file, path).map_err(disk)? {
        return Err(StoreError::Corrupt(path.to_owned()));
    }
    let mut connection = prepare(path).map_err(|error| StoreError::at(path, &error))?;
    migrate(&mut connection, path)?;
    fold_when_closed(&connection, true).map_err(|error| StoreError::at(path, &error))?;
    stamp::leave(path);
    Ok((connection, Watch::new(path, file).map_err(disk)?))
}

pub(super) fn read_only(path: &Path) -> Result<Connection, StoreError> {
    let open = || {
        let connection = Connection::open_with_flags(
            path,
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?;
        settle(&connection)?;
        Ok(connection)
    };
    open().map_err(|error: rusqlite::Error| StoreError::at(path, &error))
}

pub(super) fn prepare(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    fold_when_closed(&connection, false)?;
    settle(&connection)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "foreign_keys", "on")?;
    // Words that people had deleted are not to be found in the file.
    connection.query_row("PRAGMA secure_delete = ON", [], |_| Ok(()))?;
    Ok(connection)
}

/// Whether closing the connection moves the log into the file. A file that turns out to be damaged
/// while it is opened stays as it is, with its log: both may still be saved.
pub(super) fn fold_when_closed(connection: &Connection, folds: bool) -> rusqlite::Result<()> {
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !folds)
        .map(drop)
}

/// Settings of every connection.
fn settle(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    connection.pragma_update(None, "cache_size", -PAGE_CACHE_KIB)?;
    // Without this, a cached statement on a table with a partial index is compiled again for every
    // bound value.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map(drop)
}

fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let failed = |error: &rusqlite::Error| StoreError::at(path, error);
    if migrations::is_blank(connection).map_err(|error| failed(&error))? {
        stamp::check_blank(path)?;
    } else if let Some(found) = migrations::outdated(connection).map_err(|error| failed(&error))? {
        let copy = upgrade_copy::make(connection, path, found)?;
        tracing::info!(
            "the database is brought up to date; a copy of it from before is {}",
            copy.display()
        );
    }
    let migrated = migrations::bring_up_to_date(connection).map_err(|error| match error {
        MigrationError::Newer { found, known } => StoreError::Newer {
            path: path.to_owned(),
            found,
            known,
        },
        MigrationError::Unknown => StoreError::Unknown(path.to_owned()),
        MigrationError::Step { version, error } => step_error(path, version, &error),
        MigrationError::Failed(error) => failed(&error),
    })?;
    if migrated == Migrated::Changed {
        // Into the file itself, so its first count is there to tell copies apart. A failure costs
        // nothing: the log is kept.
        drop(connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
    }
    Ok(())
}

/// Reports a full disk like everywhere else.
fn step_error(path: &Path, version: u32, error: &rusqlite::Error) -> StoreError {
    match StoreError::at(path, error) {
        StoreError::Failed(reason) => {
            StoreError::Failed(format!("migrating the schema to {version}: {reason}"))
        }
        told => told,
    }
}
