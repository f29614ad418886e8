//! Brings the schema up to date: the files of `migrations/`, forward only.
//!
//! All steps that are missing and the number of the last one are one transaction, so a process that is killed on the way leaves the
//! schema as it was. The number is SQLite's `user_version`, which is part of the file's header.

use include_dir::{Dir, include_dir};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/migrations");

/// One file, such as `V7__memory.sql`.
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
    /// This step does not work; all of them are undone.
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

/// Whether there was something to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Migrated {
    Nothing,
    Changed,
}

pub(super) fn bring_up_to_date(connection: &mut Connection) -> Result<Migrated, MigrationError> {
    let steps = steps();
    let known = newest(&steps);
    // Without a lock, because a verb may look at a home whose gateway is writing.
    if user_version(connection)? == known {
        return Ok(Migrated::Nothing);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = found(&transaction, &steps)?;
    if found > known {
        return Err(MigrationError::Newer { found, known });
    }
    for step in steps.iter().filter(|step| step.version > found) {
        let version = step.version;
        transaction.execute_batch(step.sql).map_err(|error| MigrationError::Step { version, error })?;
    }
    transaction.execute_batch(&format!("DROP TABLE IF EXISTS {EARLIER_HISTORY}"))?;
    transaction.pragma_update(None, "user_version", known)?;
    super::commits::count(&transaction)?;
    transaction.commit()?;
    Ok(Migrated::Changed)
}

/// Whether the file has no schema yet.
pub(super) fn is_blank(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))
}

fn newest(steps: &[Step]) -> u32 {
    steps.last().map_or(0, |step| step.version)
}

/// In their order.
fn steps() -> Vec<Step> {
    let mut steps: Vec<Step> = FILES.files().filter_map(step).collect();
    steps.sort_by_key(|step| step.version);
    steps
}

fn step(file: &'static include_dir::File<'static>) -> Option<Step> {
    let (version, _) = file.path().file_name()?.to_str()?.strip_prefix('V')?.split_once("__")?;
    Some(Step { version: version.parse().ok()?, sql: file.contents_utf8()? })
}

fn user_version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// The last step that the file has had; zero for a new file.
fn found(transaction: &Transaction<'_>, steps: &[Step]) -> rusqlite::Result<u32> {
    match user_version(transaction)? {
        0 => of_an_earlier_version(transaction, steps),
        version => Ok(version),
    }
}

/// Where earlier versions wrote down each step, after it was made and in a transaction of its own.
const EARLIER_HISTORY: &str = "refinery_schema_history";

/// A process that was killed between a step and its row has left the step made and not written down. The schema tells.
fn of_an_earlier_version(transaction: &Transaction<'_>, steps: &[Step]) -> rusqlite::Result<u32> {
    let exists = "SELECT 1 FROM sqlite_schema WHERE name = ?1";
    if transaction.query_row(exists, [EARLIER_HISTORY], |_| Ok(())).optional()?.is_none() {
        return Ok(0);
    }
    let sql = format!("SELECT coalesce(max(version), 0) FROM {EARLIER_HISTORY}");
    let written_down = transaction.query_row(&sql, [], |row| row.get(0))?;
    let Some(next) = steps.iter().find(|step| step.version > written_down) else { return Ok(written_down) };
    let schema = schema(transaction)?;
    let is_made = schema == schema_after(steps, next.version)? && schema != schema_after(steps, written_down)?;
    Ok(if is_made { next.version } else { written_down })
}

/// The schema as a file has it that has had these steps.
fn schema_after(steps: &[Step], version: u32) -> rusqlite::Result<Vec<String>> {
    let scratch = Connection::open_in_memory()?;
    for step in steps.iter().filter(|step| step.version <= version) {
        scratch.execute_batch(step.sql)?;
    }
    schema(&scratch)
}

fn schema(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT type || ' ' || name || ': ' || coalesce(sql, '') FROM sqlite_schema WHERE tbl_name <> ?1 ORDER BY 1";
    let mut statement = connection.prepare(sql)?;
    statement.query_map([EARLIER_HISTORY], |row| row.get(0))?.collect()
}

#[cfg(test)]
mod tests;
