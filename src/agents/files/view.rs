//! The files of an agent as a turn sees them. File tools have nothing else.

use std::sync::Arc;

use super::{Files, Opened, PathError, Want, joined, steps};
use crate::agents::sight::Sight;
use crate::agents::workspace::{Workspace, WorkspaceView};
use crate::domain::Labels;

/// The first step of paths to long results of the turn.
pub const RESULTS: &str = "tool-results";

/// The files of an agent as a turn sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileView {
    files: Files,
    own: Arc<Sight>,
    siblings: Arc<Sight>,
    /// Long results of the turn.
    results: Option<Arc<Workspace>>,
    /// The labels of everything that the turn has read. Files written by the turn get them.
    read: Labels,
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub workspace: WorkspaceView,
    /// The path from the workspace's root on; the root itself is `.`.
    pub path: std::path::PathBuf,
    /// The prefix of paths there; empty for the agent's own.
    pub prefix: String,
}

impl FileView {
    /// `own` and `siblings` are the sights in the agent's own workspace and in the workspaces of
    /// others.
    pub fn new(
        files: &Files,
        own: Sight,
        siblings: Sight,
        results: Option<Arc<Workspace>>,
    ) -> Self {
        FileView {
            files: files.clone(),
            own: Arc::new(own),
            siblings: Arc::new(siblings),
            results,
            read: Labels::NONE,
        }
    }

    /// This view in a turn with these labels.
    #[must_use]
    pub fn having_read(self, read: Labels) -> Self {
        FileView { read, ..self }
    }

    /// The boundary first, then the access list.
    pub fn find(&self, written: &str, want: Want) -> Result<Found, PathError> {
        if let Some(results) = &self.results
            && let Some(found) = self.result(results, written, want)?
        {
            return Ok(found);
        }
        let place = self.files.find(written, want)?;
        let sight = match place.prefix.as_str() {
            "" => self.own.clone(),
            prefix if prefix.starts_with('@') => self.siblings.clone(),
            // People send nothing into shared folders.
            _ => Arc::new(Sight::Everything),
        };
        Ok(Found {
            workspace: WorkspaceView::new(place.workspace, sight, self.read),
            path: place.path,
            prefix: place.prefix,
        })
    }

    /// All folders but the agent's own.
    pub fn others(&self) -> &[Opened] {
        self.files.others()
    }

    /// A path among the turn's long results.
    fn result(
        &self,
        results: &Arc<Workspace>,
        written: &str,
        want: Want,
    ) -> Result<Option<Found>, PathError> {
        let steps = steps(written)?;
        if written.starts_with("./") || steps.first() != Some(&RESULTS) {
            return Ok(None);
        }
        if want == Want::Write {
            return Err(PathError::Result(written.to_owned()));
        }
        Ok(Some(Found {
            workspace: WorkspaceView::new(results.clone(), Arc::new(Sight::Everything), self.read),
            path: joined(&steps[1..]),
            prefix: RESULTS.to_owned(),
        }))
    }
}
