//! The home folder: the paths inside, and the lock to keep a second process out.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::{open_files, storage};

/// The folder with everything owned by the gateway.
#[derive(Debug, Clone)]
pub struct Home {
    path: PathBuf,
}

/// Held while a process works with a home. The system releases the lock when the process ends,
/// however the process ends.
#[derive(Debug)]
pub struct HomeLock {
    _file: File,
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("Parlor is already running on {} (pid {pid}). Stop that one first, or use another folder with --home", .home.display())]
    Held { home: PathBuf, pid: String },
    #[error("cannot write {}: {error}. {}", .path.display(), advice(.error))]
    NotWritable {
        path: PathBuf,
        error: std::io::Error,
    },
}

fn advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        _ if open_files::is_exhausted(error) => open_files::ADVICE,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "Free some space",
        ErrorKind::NotFound => "`parlor init` makes a home folder",
        _ => "Give this user write access to the home folder",
    }
}

impl Home {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Home { path: path.into() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn database(&self) -> PathBuf {
        self.path.join("parlor.db")
    }

    /// Allows an empty database in the place of a lost database, as the operator asked.
    pub fn begin_anew(&self) -> Result<(), LockError> {
        let _lock = self.lock()?;
        let path = self.database();
        storage::begin_anew(&path).map_err(|error| LockError::NotWritable { path, error })
    }

    pub fn lock(&self) -> Result<HomeLock, LockError> {
        let path = self.path.join("parlor.lock");
        let not_writable = |error| LockError::NotWritable {
            path: path.clone(),
            error,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(not_writable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LockError::Held {
                    home: self.path.clone(),
                    pid: read_pid(&mut file),
                });
            }
            Err(TryLockError::Error(error)) => return Err(not_writable(error)),
        }
        write_pid(&mut file).map_err(not_writable)?;
        Ok(HomeLock { _file: file })
    }
}

fn read_pid(file: &mut File) -> String {
    let mut text = String::new();
    match file.read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => text.trim().to_owned(),
        _ => "unknown".into(),
    }
}

fn write_pid(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{}", std::process::id())
}
