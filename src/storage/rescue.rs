//! Saves the rows when the database's files were taken away while they were open.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::copying::copy;
use super::stamp;
use super::watch::Harm;

/// A harm to the files, and the place of their rows now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Harmed {
    pub path: PathBuf,
    pub harm: Harm,
    pub saved: Saved,
}

/// The place of the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saved {
    /// The database has all rows.
    InPlace,
    /// This copy has all rows.
    As(PathBuf),
    /// Nothing can be saved from a file overwritten by another program.
    No,
    /// The rows are lost with the process, for this reason.
    Failed(String),
}

/// Saves the rows, and ends all writes to files possibly owned by another program by now.
pub(super) fn rescue(connection: &Connection, path: &Path, harm: Harm) -> Harmed {
    // If this cannot be set, closing may write to the opened file, as at the end of any process.
    drop(connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true));
    let saved = match harm {
        Harm::LogRemoved if is_folded(connection) => Saved::InPlace,
        Harm::LogRemoved | Harm::Removed | Harm::Replaced => save(connection, path),
        Harm::Overwritten => Saved::No,
    };
    Harmed {
        path: path.to_owned(),
        harm,
        saved,
    }
}

/// Moves the log into the database. True if all of the log was moved.
fn is_folded(connection: &Connection) -> bool {
    let busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
        row.get::<_, i64>(0)
    });
    busy == Ok(0)
}

/// Beside the database; else in the system's temporary folder, because the home itself may be gone.
fn save(connection: &Connection, path: &Path) -> Saved {
    let elsewhere = std::env::temp_dir().join(path.file_name().unwrap_or_default());
    let mut reason = String::new();
    for base in [path, &elsewhere] {
        let Some(target) = stamp::saved_names(base).find(|target| !target.exists()) else {
            continue;
        };
        match copy(connection, &target) {
            Ok(()) => return Saved::As(target),
            Err(error) => reason = error.to_string(),
        }
    }
    Saved::Failed(reason)
}

impl std::fmt::Display for Harmed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.display();
        match self.harm {
            Harm::Removed => write!(f, "{path} was removed while Parlor ran")?,
            Harm::Replaced => write!(f, "{path} was replaced by another file while Parlor ran")?,
            Harm::Overwritten => write!(f, "{path} was emptied or overwritten while Parlor ran")?,
            Harm::LogRemoved => write!(f, "{path}-wal or {path}-shm was removed while Parlor ran")?,
        }
        match &self.saved {
            Saved::InPlace => write!(f, ". Everything was put into {path}. Start again"),
            Saved::As(copy) => write!(
                f,
                ". Everything that Parlor had is saved in {}. Put that in the place of {path} and start again",
                copy.display()
            ),
            Saved::No => write!(
                f,
                ". Put a copy of it back, move {path}-wal away, and start again"
            ),
            Saved::Failed(reason) => write!(
                f,
                ", and could not be saved: {reason}. Put a copy of it back and start again"
            ),
        }
    }
}
