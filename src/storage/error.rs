//! Errors of the database, with advice for the operator.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use super::rescue::Harmed;
use crate::open_files;

/// Cloned for every write in the same commit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error(
        "the disk is full, so nothing more can be stored. Free some space; waiting messages are kept by their platform"
    )]
    Full,
    #[error(
        "the database cannot be written: the file or its folder is read-only. Give this user write access to the home folder"
    )]
    ReadOnly,
    #[error(
        "the database cannot be opened: this process has too many open files. {}",
        open_files::ADVICE
    )]
    TooManyOpenFiles,
    #[error("the database cannot be opened: there is no folder {}. `parlor init` makes a home folder", .0.display())]
    NoFolder(PathBuf),
    #[error("the database cannot be opened: {0}")]
    CannotOpen(String),
    #[error("{} is damaged. Move it away and restore a copy, or start with an empty one", .0.display())]
    Corrupt(PathBuf),
    #[error("{} was written by a newer Parlor (schema {found}, this one knows {known}). Start the newer version, or restore an older copy", .path.display())]
    Newer {
        path: PathBuf,
        found: u32,
        known: u32,
    },
    #[error("{} is not a database of this Parlor: its tables are others. Move it away, and the next start makes a new one", .0.display())]
    Unknown(PathBuf),
    #[error("{} {}, and this home has had one with conversations and memories in it. {}. To begin with an empty one: `parlor run --new-database`", .path.display(), if *.is_empty { "is empty" } else { "is missing" }, put_back(.saved.as_deref()))]
    Lost {
        path: PathBuf,
        is_empty: bool,
        saved: Option<PathBuf>,
    },
    #[error("{path}-wal does not belong to {path}, which is older or another one: together they would be neither. Put the database back that was there with it; or, to go on with this one, move {path}-wal away", path = .0.display())]
    OtherLog(PathBuf),
    /// Nothing more is stored after this error.
    #[error("{0}")]
    Harmed(Harmed),
    #[error("the database is closed")]
    Closed,
    #[error("the database failed: {0}")]
    Failed(String),
}

fn put_back(saved: Option<&Path>) -> String {
    match saved {
        Some(saved) => format!("{} has what Parlor saved: put it there", saved.display()),
        None => "Put it back, or a copy of it".to_owned(),
    }
}

impl StoreError {
    pub(super) fn at(path: &Path, error: &rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                StoreError::Corrupt(path.to_owned())
            }
            Some(ErrorCode::CannotOpen) => why_not_opened(Some(path), error),
            _ => StoreError::from(error),
        }
    }

    /// Converts a system error about a file of the database.
    pub(super) fn from_disk(path: &Path, error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly,
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::Full,
            ErrorKind::NotFound => missing_folder(path)
                .unwrap_or_else(|| StoreError::CannotOpen(format!("{}: {error}", path.display()))),
            _ if open_files::is_exhausted(error) => StoreError::TooManyOpenFiles,
            _ => StoreError::CannotOpen(format!("{}: {error}", path.display())),
        }
    }
}

impl From<&rusqlite::Error> for StoreError {
    fn from(error: &rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::Full,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => StoreError::ReadOnly,
            Some(ErrorCode::CannotOpen) => why_not_opened(None, error),
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                StoreError::Corrupt(PathBuf::from("parlor.db"))
            }
            Some(ErrorCode::SystemIoFailure) if is_short_of_files() => StoreError::TooManyOpenFiles,
            _ => StoreError::Failed(error.to_string()),
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        StoreError::from(&error)
    }
}

/// The reason of a failed open, because SQLite tells none. The database itself is not opened here:
/// closing the file would release SQLite's locks.
fn why_not_opened(path: Option<&Path>, error: &rusqlite::Error) -> StoreError {
    if is_short_of_files() {
        return StoreError::TooManyOpenFiles;
    }
    let Some(path) = path else {
        return StoreError::CannotOpen(error.to_string());
    };
    let is_closed_to_us =
        fs::metadata(path).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
    match missing_folder(path) {
        Some(missing) => missing,
        None if is_closed_to_us => StoreError::ReadOnly,
        None => StoreError::CannotOpen(error.to_string()),
    }
}

/// Whether there is no room for the files SQLite opens together. SQLite has closed its own by now.
fn is_short_of_files() -> bool {
    const TOGETHER: usize = 4;
    let opened: io::Result<Vec<File>> = (0..TOGETHER).map(|_| File::open("/dev/null")).collect();
    opened.is_err_and(|error| open_files::is_exhausted(&error))
}

fn missing_folder(path: &Path) -> Option<StoreError> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())?;
    (!folder.exists()).then(|| StoreError::NoFolder(folder.to_owned()))
}
