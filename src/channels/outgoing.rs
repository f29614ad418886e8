//! Files in the queue: copies in the home's `outgoing` folder. No tool changes a copy, so the file
//! sent after a wait or a restart is the file the agent meant.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use uuid::Uuid;

use super::media_type::media_type;
use super::{discord, telegram, web};
use crate::domain::{OutgoingFile, Platform};

const FOLDER: &str = "outgoing";
/// Bytes of all copies together. More is refused until files were sent.
const MAX_WAITING_BYTES: u64 = 1_000_000_000;
/// A terminal is told where the file is, so this is only about the copy.
const MAX_LOCAL_BYTES: u64 = 100_000_000;
/// A copy without a row for so long belongs to an unfinished turn.
const ORPHANED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Why no copy was made. The text is for the model.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("it is empty")]
    Empty,
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    #[error("too much waits to be sent already")]
    TooMuchWaits,
    #[error("it could not be copied: {0}")]
    Failed(#[from] std::io::Error),
}

/// The largest file a platform takes from a bot.
pub(crate) fn max_bytes(platform: Platform) -> u64 {
    match platform {
        Platform::Telegram => telegram::MAX_UPLOAD_BYTES,
        Platform::Discord => discord::MAX_UPLOAD_BYTES,
        Platform::Local => MAX_LOCAL_BYTES,
        Platform::Web => web::MAX_FILE_BYTES,
    }
}

pub(crate) fn folder(home: &Path) -> PathBuf {
    home.join(FOLDER)
}

/// Copies a file, up to a size. Blocks.
pub(crate) fn store(
    home: &Path,
    content: impl Read,
    original: &Path,
    max_bytes: u64,
) -> Result<OutgoingFile, StoreError> {
    let folder = folder(home);
    let name = original
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)?;
    if waiting_bytes(&folder)? > MAX_WAITING_BYTES {
        return Err(StoreError::TooMuchWaits);
    }
    let stored = Uuid::now_v7().simple().to_string();
    let path = folder.join(&stored);
    match copy(content, &path, max_bytes) {
        Ok((bytes, head)) => {
            let media_type = media_type(&head, &name).to_owned();
            Ok(OutgoingFile {
                stored,
                original: original.to_owned(),
                name,
                bytes,
                media_type,
                caption: None,
            })
        }
        Err(error) => {
            // The copy may be missing already.
            drop(std::fs::remove_file(path));
            Err(error)
        }
    }
}

/// How much was copied, and its first bytes.
fn copy(mut content: impl Read, to: &Path, max_bytes: u64) -> Result<(u64, Vec<u8>), StoreError> {
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)?;
    let mut head = Vec::new();
    content.by_ref().take(16).read_to_end(&mut head)?;
    file.write_all(&head)?;
    let bytes = head.len() as u64 + std::io::copy(&mut content.take(max_bytes), &mut file)?;
    if bytes == 0 {
        return Err(StoreError::Empty);
    }
    if bytes > max_bytes {
        return Err(StoreError::TooLarge(max_bytes));
    }
    file.sync_data()?;
    Ok((bytes, head))
}

fn waiting_bytes(folder: &Path) -> std::io::Result<u64> {
    let sizes = std::fs::read_dir(folder)?
        .flatten()
        .filter_map(|entry| Some(entry.metadata().ok()?.len()));
    Ok(sizes.sum())
}

/// Removes old copies without a row. Returns their number.
pub(crate) fn tidy(folder: &Path, referred: &HashSet<String>) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    let is_orphan = |entry: &std::fs::DirEntry| {
        let modified = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .unwrap_or_else(|_| SystemTime::now());
        let is_old = modified.elapsed().is_ok_and(|age| age > ORPHANED_AFTER);
        is_old
            && !entry
                .file_name()
                .to_str()
                .is_some_and(|name| referred.contains(name))
    };
    entries
        .flatten()
        .filter(is_orphan)
        .filter(|entry| std::fs::remove_file(entry.path()).is_ok())
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_whole_or_not_there() {
        let home = tempfile::tempdir().unwrap();
        let file = store(
            home.path(),
            &b"\x89PNG and more than sixteen bytes"[..],
            Path::new("a.txt"),
            100,
        )
        .unwrap();
        assert_eq!(
            (file.name.as_str(), file.bytes, file.media_type.as_str()),
            ("a.txt", 32, "image/png")
        );
        assert_eq!(
            std::fs::read(folder(home.path()).join(&file.stored)).unwrap(),
            b"\x89PNG and more than sixteen bytes"
        );
        assert!(matches!(
            store(home.path(), &[7; 101][..], Path::new("big"), 100),
            Err(StoreError::TooLarge(100))
        ));
        assert!(matches!(
            store(home.path(), &[][..], Path::new("none"), 100),
            Err(StoreError::Empty)
        ));
        assert_eq!(std::fs::read_dir(folder(home.path())).unwrap().count(), 1);
    }

    #[test]
    fn only_old_copies_that_nothing_refers_to_are_removed() {
        let home = tempfile::tempdir().unwrap();
        let kept = ["referred", "new"]
            .map(|name| store(home.path(), name.as_bytes(), Path::new(name), 100).unwrap());
        let orphan = store(home.path(), &b"old"[..], Path::new("old"), 100).unwrap();
        let long_ago = SystemTime::now() - 2 * ORPHANED_AFTER;
        for file in [&kept[0], &orphan] {
            let file = std::fs::File::options()
                .write(true)
                .open(folder(home.path()).join(&file.stored))
                .unwrap();
            file.set_modified(long_ago).unwrap();
        }
        assert_eq!(
            tidy(
                &folder(home.path()),
                &HashSet::from([kept[0].stored.clone()])
            ),
            1
        );
        assert!(!folder(home.path()).join(orphan.stored).exists());
        assert_eq!(std::fs::read_dir(folder(home.path())).unwrap().count(), 2);
    }
}
