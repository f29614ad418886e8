//! The names of backups in a folder, and the end of old ones.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, NaiveDateTime};

const BEFORE: &str = "parlor-";
const AFTER: &str = ".tar.gz";
const TIME: &str = "%Y-%m-%dT%H-%M-%SZ";

/// A backup in a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kept {
    /// Unix milliseconds, by the name.
    pub(crate) made_at: i64,
    pub(crate) path: PathBuf,
}

pub(super) fn name(made_at: i64) -> String {
    let time = DateTime::from_timestamp_millis(made_at).unwrap_or_default();
    format!("{BEFORE}{}{AFTER}", time.format(TIME))
}

/// None for names of other files.
fn made_at(name: &str) -> Option<i64> {
    let time = name.strip_prefix(BEFORE)?.strip_suffix(AFTER)?;
    let time = NaiveDateTime::parse_from_str(time, TIME).ok()?;
    Some(time.and_utc().timestamp_millis())
}

/// The backups of a folder, the oldest first. A missing folder has none.
fn all(folder: &Path) -> Vec<Kept> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut kept: Vec<Kept> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter_map(|entry| {
            Some(Kept {
                made_at: made_at(entry.file_name().to_str()?)?,
                path: entry.path(),
            })
        })
        .collect();
    kept.sort();
    kept
}

pub(crate) fn newest(folder: &Path) -> Option<Kept> {
    all(folder).pop()
}

/// Deletes all but the newest backups of a folder, and returns the deleted ones.
pub(crate) fn rotate(folder: &Path, keep: usize) -> io::Result<Vec<PathBuf>> {
    let mut kept = all(folder);
    let old = kept.len().saturating_sub(keep);
    kept.truncate(old);
    let mut removed = Vec::new();
    for backup in kept {
        fs::remove_file(&backup.path)?;
        removed.push(backup.path);
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first_and_other_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        let second = |number: i64| name(1_700_000_000_000 + number * 1000);
        assert_eq!(second(0), "parlor-2023-11-14T22-13-20Z.tar.gz");
        for name in [
            &second(2),
            &second(0),
            &second(1),
            "parlor-mine.tar.gz",
            "parlor-schema-3.db",
        ] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(newest(folder.path()).unwrap().made_at, 1_700_000_002_000);
        let removed = rotate(folder.path(), 1).unwrap();
        let expected = [second(0), second(1)].map(|name| folder.path().join(name));
        assert_eq!(removed, expected);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
        assert!(rotate(folder.path(), 1).unwrap().is_empty());
        assert!(
            rotate(&folder.path().join("nothing"), 1)
                .unwrap()
                .is_empty()
        );
    }
}
