//! Opens the file and brings its schema up to date. Migrations go forward only.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::StoreError;

mod migrations {
    refinery::embed_migrations!("migrations");
}

/// How long a statement waits for another process, such as a backup, to let go of the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Statements kept compiled per connection; we have some dozens.
const STATEMENT_CACHE: usize = 64;

/// Pages that each connection keeps for itself. What is not there is in the system's own cache, which all of them share.
const PAGE_CACHE_KIB: i32 = 512;

pub(super) fn writable(path: &Path) -> Result<Connection, StoreError> {
    create_private(path)?;
    prepare(path).map_err(|error| StoreError::at(path, &error)).and_then(|connection| migrate(connection, path))
}

pub(super) fn read_only(path: &Path) -> Result<Connection, StoreError> {
    let open = || {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        settle(&connection)?;
        Ok(connection)
    };
    open().map_err(|error: rusqlite::Error| StoreError::at(path, &error))
}

/// Only the owner may read conversations, whatever the umask says.
fn create_private(path: &Path) -> Result<(), StoreError> {
    let created = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    created.map(drop).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly,
        std::io::ErrorKind::StorageFull => StoreError::Full,
        _ => StoreError::Failed(format!("cannot open {}: {error}", path.display())),
    })
}

fn prepare(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    settle(&connection)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "foreign_keys", "on")?;
    Ok(connection)
}

/// What every connection needs.
fn settle(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    connection.pragma_update(None, "cache_size", -PAGE_CACHE_KIB)?;
    // Else a kept statement on a table with a partial index is compiled again with every value that is bound to it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

fn migrate(mut connection: Connection, path: &Path) -> Result<Connection, StoreError> {
    let runner = migrations::migrations::runner();
    let known = runner.get_migrations().iter().map(|migration| migration.version()).max().unwrap_or(0);
    let found = schema_version(&connection).map_err(|error| StoreError::at(path, &error))?;
    let found = u32::try_from(found).unwrap_or(u32::MAX);
    let known = u32::try_from(known).unwrap_or(u32::MAX);
    if found > known {
        return Err(StoreError::Newer { path: path.to_owned(), found, known });
    }
    if found < known {
        runner.run(&mut connection).map_err(|error| migration_error(&error))?;
    }
    Ok(connection)
}

/// Zero for a new file.
fn schema_version(connection: &Connection) -> rusqlite::Result<i64> {
    let history = "SELECT count(*) FROM sqlite_schema WHERE name = 'refinery_schema_history'";
    if connection.query_row(history, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(0);
    }
    connection.query_row("SELECT coalesce(max(version), 0) FROM refinery_schema_history", [], |row| row.get(0))
}

/// A full disk is told as everywhere else.
fn migration_error(error: &refinery::Error) -> StoreError {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<rusqlite::Error>());
    match cause.map(StoreError::from) {
        Some(StoreError::Failed(_)) | None => StoreError::Failed(format!("migrating the schema: {error}")),
        Some(told) => told,
    }
}
