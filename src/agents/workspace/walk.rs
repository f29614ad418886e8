//! Goes through the folders of a workspace. Links are told and never followed.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cap_std::fs::Metadata;

use super::{FileError, Workspace};

/// Folders inside folders.
const MAX_DEPTH: usize = 64;

/// A file, folder or link in a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path from the workspace's root.
    pub path: PathBuf,
    pub kind: EntryKind,
    pub bytes: u64,
    pub modified: Option<SystemTime>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Folder,
    Link,
    /// A pipe, a socket or a device.
    Other,
}

impl EntryKind {
    pub(super) fn of(metadata: &Metadata) -> Self {
        if metadata.is_symlink() {
            EntryKind::Link
        } else if metadata.is_dir() {
            EntryKind::Folder
        } else if metadata.is_file() {
            EntryKind::File
        } else {
            EntryKind::Other
        }
    }
}

impl Workspace {
    /// Visits every entry below a folder, `depth` folders deep, until `visit` breaks. Unreadable
    /// folders are left out.
    pub fn walk(
        &self,
        start: &Path,
        depth: usize,
        visit: impl FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), FileError> {
        self.walk_where(start, depth, |_| true, visit)
    }

    /// Visits entries like [`Workspace::walk`], past unseen entries.
    pub(super) fn walk_where(
        &self,
        start: &Path,
        depth: usize,
        is_seen: impl Fn(&Path) -> bool,
        mut visit: impl FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), FileError> {
        let dir = self.dir()?;
        let mut first = Some(dir.read_dir(start)?);
        let mut folders = vec![(start.to_owned(), 1)];
        while let Some((folder, level)) = folders.pop() {
            let Some(entries) = first.take().or_else(|| dir.read_dir(&folder).ok()) else {
                continue;
            };
            let shown = if folder == Path::new(".") {
                PathBuf::new()
            } else {
                folder
            };
            for entry in entries.flatten() {
                let Ok(metadata) = entry.metadata() else {
                    continue;
                };
                let path = shown.join(entry.file_name());
                if !is_seen(&path) {
                    continue;
                }
                let kind = EntryKind::of(&metadata);
                if kind == EntryKind::Folder && level < depth.min(MAX_DEPTH) {
                    folders.push((path.clone(), level + 1));
                }
                let modified = metadata
                    .modified()
                    .ok()
                    .map(cap_std::time::SystemTime::into_std);
                if visit(Entry {
                    path,
                    kind,
                    bytes: metadata.len(),
                    modified,
                })
                .is_break()
                {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
