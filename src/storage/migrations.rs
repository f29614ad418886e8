//! Brings the schema up to date: the files of `migrations/`, forward only.
//!
//! All missing steps and the number of the last step are a single transaction, so a process killed
//! on the way leaves the schema unchanged. The number is SQLite's `user_version`, a part of the
//! file's header.

use include_dir::{Dir, include_dir};
use rusqlite::{Connection, TransactionBehavior};

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/migrations");

/// What all steps together make of an empty file, for new databases: the steps read the whole schema
/// again at each renamed table.
const WHOLE: &str = include_str!("whole.sql");

/// A migration file, such as `V1__schema.sql`.
#[derive(Debug, Clone, Copy)]
struct Step {
    version: u32,
    sql: &'static str,
}

/// Why a schema is not up to date.
#[derive(Debug)]
pub(super) enum MigrationError {
    /// The database is ahead of this program.
    Newer {
        found: u32,
        known: u32,
    },
    /// The tables of the file are others.
    Unknown,
    /// This step does not work; all steps are undone.
    Step {
        version: u32,
        error: rusqlite::Error,
    },
    Failed(rusqlite::Error),
}

impl From<rusqlite::Error> for MigrationError {
    fn from(error: rusqlite::Error) -> Self {
        MigrationError::Failed(error)
    }
}

/// Whether any step was missing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Migrated {
    Nothing,
    Changed,
}

/// The number of the newest step.
pub(super) fn known() -> u32 {
    newest(&steps())
}

/// The schema of a database of Parlor that lacks steps. None for all others: they are up to date,
/// or cannot be brought there.
pub(super) fn outdated(connection: &Connection) -> rusqlite::Result<Option<u32>> {
    let found = user_version(connection)?;
    Ok((found > 0 && found < known() && has_places(connection)?).then_some(found))
}

pub(super) fn bring_up_to_date(connection: &mut Connection) -> Result<Migrated, MigrationError> {
    migrate(connection, &steps())
}

/// Makes the schema in an empty file.
pub(super) fn make_whole(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(WHOLE)?;
    transaction.pragma_update(None, "user_version", known())?;
    super::commits::count(&transaction)?;
    transaction.commit()
}

fn migrate(connection: &mut Connection, steps: &[Step]) -> Result<Migrated, MigrationError> {
    let known = newest(steps);
    // Without a lock, because a verb may look at a home whose gateway is writing.
    if user_version(connection)? == known && has_places(connection)? {
        return Ok(Migrated::Nothing);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = user_version(&transaction)?;
    if !is_blank(&transaction)? && (found == 0 || !has_places(&transaction)?) {
        return Err(MigrationError::Unknown);
    }
    if found > known {
        return Err(MigrationError::Newer { found, known });
    }
    for step in steps.iter().filter(|step| step.version > found) {
        let version = step.version;
        transaction
            .execute_batch(step.sql)
            .map_err(|error| MigrationError::Step { version, error })?;
    }
    transaction.pragma_update(None, "user_version", known)?;
    super::commits::count(&transaction)?;
    transaction.commit()?;
    Ok(Migrated::Changed)
}

/// Whether the file has no schema yet.
pub(super) fn is_blank(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| {
        row.get(0)
    })
}

/// Development versions before the first schema had no such table, but larger numbers.
fn has_places(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) > 0 FROM sqlite_schema WHERE name = 'places'";
    connection.query_row(sql, [], |row| row.get(0))
}

fn newest(steps: &[Step]) -> u32 {
    steps.last().map_or(0, |step| step.version)
}

/// In the order of their versions.
fn steps() -> Vec<Step> {
    let mut steps: Vec<Step> = FILES.files().filter_map(step).collect();
    steps.sort_by_key(|step| step.version);
    steps
}

fn step(file: &'static include_dir::File<'static>) -> Option<Step> {
    let (version, _) = file
        .path()
        .file_name()?
        .to_str()?
        .strip_prefix('V')?
        .split_once("__")?;
    Some(Step {
        version: version.parse().ok()?,
        sql: file.contents_utf8()?,
    })
}

fn user_version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

#[cfg(test)]
mod tests;
