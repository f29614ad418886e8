//! What can be wrong with the database, told so that the operator knows what to do.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Cloned to everyone whose write was in the same commit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("the disk is full, so nothing more can be stored. Free some space; waiting messages are kept by their platform")]
    Full,
    #[error(
        "the database cannot be written: the file or its folder is read-only. Give this user write access to the home folder"
    )]
    ReadOnly,
    #[error("{} is damaged. Move it away and restore a copy, or start with an empty one", .0.display())]
    Corrupt(PathBuf),
    #[error("{} was written by a newer Parlor (schema {found}, this one knows {known}). Start the newer version, or restore an older copy", .path.display())]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error("the database is closed")]
    Closed,
    #[error("the database failed: {0}")]
    Failed(String),
}

impl StoreError {
    pub(super) fn at(path: &Path, error: &rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => StoreError::Corrupt(path.to_owned()),
            _ => StoreError::from(error),
        }
    }
}

impl From<&rusqlite::Error> for StoreError {
    fn from(error: &rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::Full,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => StoreError::ReadOnly,
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => StoreError::Corrupt(PathBuf::from("parlor.db")),
            _ => StoreError::Failed(error.to_string()),
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        StoreError::from(&error)
    }
}
