//! Folders as they were listed last. A turn looks at the metadata of a folder, and lists it again only
//! if an entry came, went or got another name since.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dashmap::DashMap;

/// A file may be saved twice within a tick of its clock, so what was just saved is not remembered.
const SETTLED_AFTER: Duration = Duration::from_secs(2);
/// Folders remembered before the memory is emptied and filled anew.
const MOST_REMEMBERED: usize = 4_000;

/// Tells a saved file or a changed folder from the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    file: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Stamp {
            file: (metadata.dev(), metadata.ino()),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether the next change will surely have another stamp.
    pub(super) fn is_settled(self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        self.is_settled_at(now.unwrap_or_default())
    }

    fn is_settled_at(self, now: Duration) -> bool {
        let last = self.modified.0.max(self.changed.0);
        u64::try_from(last).is_ok_and(|last| Duration::from_secs(last + 1) + SETTLED_AFTER < now)
    }
}

/// Something made of the names in a folder, remembered for each folder.
pub(super) struct Listings<T> {
    known: DashMap<PathBuf, (Stamp, Arc<T>)>,
}

impl<T> Default for Listings<T> {
    fn default() -> Self {
        Listings {
            known: DashMap::new(),
        }
    }
}

impl<T> Listings<T> {
    /// None without a folder. `list` may look at names only: changes inside the entries are not
    /// noticed. Blocks on the disk.
    pub(super) fn get(&self, folder: &Path, list: impl FnOnce() -> T) -> Option<Arc<T>> {
        let metadata = fs::metadata(folder).ok().filter(Metadata::is_dir)?;
        let stamp = Stamp::of(&metadata);
        if let Some(known) = self.known.get(folder)
            && known.0 == stamp
        {
            return Some(known.1.clone());
        }
        let listed = Arc::new(list());
        // Looked up before the listing, so a change since then shows.
        if stamp.is_settled() {
            if self.known.len() >= MOST_REMEMBERED {
                self.known.clear();
            }
            self.known
                .insert(folder.to_owned(), (stamp, listed.clone()));
        }
        Some(listed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_just_saved_is_not_remembered() {
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
    fn a_folder_is_listed_again_once_it_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let listings = Listings::default();
        let count = |folder: &Path| {
            let list = || fs::read_dir(folder).unwrap().count();
            listings.get(folder, list).map(|count| *count)
        };
        assert_eq!(count(folder.path()), Some(0));
        assert!(listings.known.is_empty(), "it was made just now");
        // As if it had been there for long.
        let stamp = Stamp::of(&fs::metadata(folder.path()).unwrap());
        listings
            .known
            .insert(folder.path().to_owned(), (stamp, Arc::new(7)));
        assert_eq!(count(folder.path()), Some(7), "it was not listed again");
        fs::write(folder.path().join("one"), "").unwrap();
        assert_eq!(count(folder.path()), Some(1));
        assert_eq!(count(&folder.path().join("one")), None, "a file");
        assert_eq!(count(&folder.path().join("gone")), None);
    }
}
