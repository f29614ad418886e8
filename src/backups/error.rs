//! Why a backup was not made, or not brought back.

use std::io;
use std::path::{Path, PathBuf};

use crate::config::store::StoreConfigError;
use crate::config::system_error::in_words;
use crate::home::LockError;
use crate::storage::StoreError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum BackupError {
    #[error("cannot use {}: {}{}", .path.display(), in_words(.error), advice(.error))]
    Disk { path: PathBuf, error: io::Error },
    /// A file that is no backup, is damaged, or is not safe to unpack.
    #[error("{}: {reason}", .path.display())]
    Archive { path: PathBuf, reason: String },
    /// The request does not fit the present state.
    #[error("{0}")]
    Conflict(String),
    #[error("{0}")]
    Store(#[from] StoreError),
    #[error("{0}")]
    Config(#[from] StoreConfigError),
    #[error("{0}")]
    Lock(#[from] LockError),
}

impl BackupError {
    pub(super) fn disk(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| BackupError::Disk {
            path: path.clone(),
            error,
        }
    }

    /// The reason may hold names from the archive, so control characters are taken out.
    pub(super) fn archive(path: &Path, reason: impl Into<String>) -> Self {
        const MAX_CHARS: usize = 500;
        let reason: String = reason.into();
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        BackupError::Archive {
            path: path.to_owned(),
            reason: reason.chars().map(plain).take(MAX_CHARS).collect(),
        }
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ". Free some space",
        io::ErrorKind::FileTooLarge => ". The limit of this user for the size of a file is smaller",
        _ => "",
    }
}
