//! Identity files as they were read last. Every turn looks at the metadata of each file, and reads
//! only files saved since.

use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::FileText;

/// Bytes of all remembered texts. Texts beyond this limit are read again in every turn.
const MOST_BYTES: usize = 1024 * 1024;
/// A file may be saved twice within a tick of its clock, so a file just saved is not remembered.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// Tells a saved file from the file before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Stamp {
            file: (metadata.dev(), metadata.ino()),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    fn is_settled_at(self, now: Duration) -> bool {
        let last = self.modified.0.max(self.changed.0);
        u64::try_from(last).is_ok_and(|last| Duration::from_secs(last + 1) + SETTLED_AFTER < now)
    }
}

/// Depends on the files only, so a single memory serves the whole process. A plain mutex, held for
/// a look or a copy.
static REMEMBERED: LazyLock<Mutex<Remembered>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Remembered {
    files: HashMap<PathBuf, (Stamp, FileText)>,
    bytes: usize,
}

/// The remembered text of a file, if the file has not changed.
pub(super) fn get(path: &Path, metadata: &Metadata) -> Option<FileText> {
    let remembered = REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner);
    let (stamp, text) = remembered.files.get(path)?;
    (*stamp == Stamp::of(metadata)).then(|| text.clone())
}

/// `metadata` was looked up before the text was read.
pub(super) fn keep(path: &Path, metadata: &Metadata, text: &FileText) {
    let stamp = Stamp::of(metadata);
    let mut remembered = REMEMBERED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, old)) = remembered.files.remove(path) {
        remembered.bytes -= old.content.len();
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    if stamp.is_settled_at(now.unwrap_or_default())
        && remembered.bytes + text.content.len() <= MOST_BYTES
    {
        remembered.bytes += text.content.len();
        let kept = (stamp, text.clone());
        remembered.files.insert(path.to_owned(), kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_just_saved_is_not_remembered() {
        let stamp = |modified, changed| Stamp {
            file: (1, 2),
            bytes: 3,
            modified: (modified, 0),
            changed: (changed, 0),
        };
        let check = |stamp: Stamp, now: u64, expected: bool| {
            let settled = stamp.is_settled_at(Duration::from_secs(now));
            assert_eq!(settled, expected, "{stamp:?} at {now}");
        };
        check(stamp(100, 100), 102, false);
        check(stamp(100, 100), 104, true);
        // A copied file may have an old date, and a clock may have been set back.
        check(stamp(50, 100), 102, false);
        check(stamp(900, 100), 104, false);
        check(stamp(-1, -1), 104, false);
    }

    #[test]
    fn a_saved_file_is_no_longer_the_one_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("SOUL.md");
        std::fs::write(&path, "one").unwrap();
        let text = FileText {
            content: "one".into(),
            remark: None,
        };
        let metadata = std::fs::metadata(&path).unwrap();
        let kept = (Stamp::of(&metadata), text);
        {
            let mut remembered = REMEMBERED.lock().unwrap();
            remembered.bytes += kept.1.content.len();
            remembered.files.insert(path.clone(), kept);
        }
        assert_eq!(get(&path, &metadata).unwrap().content, "one");
        std::fs::write(&path, "four").unwrap();
        assert!(get(&path, &std::fs::metadata(&path).unwrap()).is_none());
        let text = FileText {
            content: "four".into(),
            remark: None,
        };
        keep(&path, &std::fs::metadata(&path).unwrap(), &text);
        assert!(!REMEMBERED.lock().unwrap().files.contains_key(&path));
    }
}
