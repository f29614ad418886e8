//! A private folder in the home for the time of an import: copies of databases, messages on their
//! way, files of new agents.
//!
//! The end of the import deletes the folder; the next import deletes the folder of a killed
//! process.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use uuid::Uuid;

const PREFIX: &str = ".moving-";
const LOCK: &str = "lock";

#[derive(Debug)]
pub(super) struct Staging {
    path: PathBuf,
    /// Held while the process lives.
    _lock: File,
}

impl Staging {
    pub(super) fn new(home: &Path) -> io::Result<Self> {
        clear(home);
        let path = home.join(format!("{PREFIX}{}", Uuid::now_v7()));
        DirBuilder::new().mode(0o700).create(&path)?;
        let lock = File::create(path.join(LOCK))?;
        lock.lock()?;
        Ok(Staging { path, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A new name inside.
    pub(super) fn fresh(&self, what: &str) -> PathBuf {
        self.path.join(format!("{what}-{}", Uuid::now_v7()))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!("{} is left over: {error}", self.path.display());
        }
    }
}

/// Deletes folders of dead processes.
fn clear(home: &Path) {
    let entries = fs::read_dir(home).into_iter().flatten().flatten();
    let left = entries.filter(|entry| {
        let name = entry.file_name();
        name.to_str().is_some_and(|name| name.starts_with(PREFIX))
    });
    for entry in left {
        let lock = File::open(entry.path().join(LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_of_a_killed_process_go_and_those_of_a_living_one_stay() {
        let home = tempfile::tempdir().unwrap();
        let left = home.path().join(".moving-left");
        fs::create_dir(&left).unwrap();
        fs::write(left.join(LOCK), "").unwrap();
        let alive = Staging::new(home.path()).unwrap();
        assert!(!left.exists());
        let other = Staging::new(home.path()).unwrap();
        assert!(alive.path().exists() && other.path().exists());
        drop((alive, other));
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    }
}
