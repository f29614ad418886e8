//! Identity files as they were read last. Every turn looks at the metadata of each file, and reads
//! only files saved since.

use std::collections::HashMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use super::FileText;
use crate::agents::folders::Stamp;

/// Bytes of all remembered texts. Texts beyond this limit are read again in every turn.
const MOST_BYTES: usize = 1024 * 1024;

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
    if stamp.is_settled() && remembered.bytes + text.content.len() <= MOST_BYTES {
        remembered.bytes += text.content.len();
        let kept = (stamp, text.clone());
        remembered.files.insert(path.to_owned(), kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
