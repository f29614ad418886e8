//! A single handle of each database file for the whole process.
//!
//! Closing any handle of a file releases all locks of the process on this file, also SQLite's. So
//! our handle is shared by all users of the file, and closed after their connections.
//! <https://www.sqlite.org/howtocorrupt.html#posix_close_bug>

use std::collections::HashMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Device and inode.
type FileId = (u64, u64);

fn id(metadata: &Metadata) -> FileId {
    (metadata.dev(), metadata.ino())
}

/// Makes the file if there is none. Only its owner may read conversations, regardless of the umask.
pub(super) fn open(path: &Path) -> io::Result<Arc<File>> {
    static OPEN: Mutex<Option<HashMap<FileId, Weak<File>>>> = Mutex::new(None);
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let open = open.get_or_insert_default();
    let known = fs::metadata(path)
        .ok()
        .and_then(|metadata| open.get(&id(&metadata))?.upgrade());
    if let Some(file) = known {
        return Ok(file);
    }
    let file = Arc::new(
        OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)?,
    );
    open.retain(|_, file| file.strong_count() > 0);
    open.insert(id(&file.metadata()?), Arc::downgrade(&file));
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_handle_as_long_as_somebody_needs_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("parlor.db");
        let first = open(&path).expect("opens");
        assert!(Arc::ptr_eq(&first, &open(&path).expect("opens")));
        fs::rename(&path, folder.path().join("elsewhere")).expect("moves");
        let second = open(&path).expect("opens");
        assert!(
            !Arc::ptr_eq(&first, &second),
            "another file of the same name"
        );
        assert!(Arc::ptr_eq(
            &first,
            &open(&folder.path().join("elsewhere")).expect("opens")
        ));
    }
}
