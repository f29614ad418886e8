//! A turn's view of a workspace: without files from other places.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::{File, Metadata};

use super::{Entry, EntryKind, FileError, Workspace};
use crate::agents::sight::Sight;
use crate::domain::Labels;

/// A workspace with the sight of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceView {
    workspace: Arc<Workspace>,
    sight: Arc<Sight>,
    /// The labels of everything that the turn has read. Files written by the turn get them.
    read: Labels,
}

impl WorkspaceView {
    pub(in crate::agents) fn new(
        workspace: Arc<Workspace>,
        sight: Arc<Sight>,
        read: Labels,
    ) -> Self {
        WorkspaceView {
            workspace,
            sight,
            read,
        }
    }

    /// The labels of a file's words, as far as agents wrote them.
    pub fn labels(&self, path: &Path) -> Labels {
        match self.seen(path) {
            Ok(_) => self.workspace.labels(path),
            Err(_) => Labels::NONE,
        }
    }

    pub fn root(&self) -> &Path {
        self.workspace.root()
    }

    pub fn open(&self, path: &Path) -> Result<(File, Metadata), FileError> {
        self.seen(path)?;
        self.workspace.open(path)
    }

    pub fn look(&self, path: &Path) -> Result<EntryKind, FileError> {
        self.seen(path)?;
        self.workspace.look(path)
    }

    pub fn write(&self, path: &Path, content: &[u8]) -> Result<(), FileError> {
        self.seen(path)?;
        self.workspace.write_labelled(path, content, self.read)
    }

    pub fn edit<T, E: From<FileError>>(
        &self,
        path: &Path,
        max_bytes: u64,
        change: impl FnOnce(Vec<u8>) -> Result<(Vec<u8>, T), E>,
    ) -> Result<T, E> {
        self.seen(path)?;
        self.workspace.edit(path, max_bytes, self.read, change)
    }

    pub fn remove(&self, path: &Path) -> Result<(), FileError> {
        self.seen(path)?;
        self.workspace.remove(path)
    }

    /// Visits entries like [`Workspace::walk`], past everything invisible to the turn.
    pub fn walk(
        &self,
        start: &Path,
        depth: usize,
        visit: impl FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), FileError> {
        let real = self.seen(start)?;
        let is_seen = |path: &Path| {
            let below = path.strip_prefix(start).unwrap_or(path);
            self.sight.has(&real.join(below))
        };
        self.workspace.walk_where(start, depth, is_seen, visit)
    }

    /// The path with links resolved, if visible to the turn.
    fn seen(&self, path: &Path) -> Result<PathBuf, FileError> {
        if *self.sight == Sight::Everything {
            return Ok(path.to_owned());
        }
        let real = self.workspace.resolved(path)?;
        if self.sight.has(path) && self.sight.has(&real) {
            Ok(real)
        } else {
            Err(FileError::OfOthers)
        }
    }
}
