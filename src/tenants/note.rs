//! The note about a change under way: written before the first file moves, so that a kill in the
//! middle leaves nothing half done.
//!
//! An agent is tables, a folder and rows, and no system changes the three at once.
//! [`super::recovery`] reads the note of a killed process and finishes or undoes its change.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::TenantError;
use crate::domain::AgentId;

const FILE: &str = "unfinished.json";

/// A change of an agent, with all data needed to finish or undo the change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "lowercase")]
pub(super) enum Change {
    Remove {
        id: AgentId,
        uid: String,
        archive: String,
    },
    Restore {
        id: AgentId,
        uid: String,
        archive: String,
    },
    Rename {
        from: AgentId,
        to: AgentId,
    },
    Clone {
        id: AgentId,
        uid: String,
    },
    Import {
        id: AgentId,
        uid: String,
    },
}

/// Deletes the file when the change is over, well or not; only a kill of the process leaves the
/// file behind.
#[derive(Debug)]
pub(super) struct Note(PathBuf);

impl Drop for Note {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0) {
            tracing::warn!("{} is left over: {error}", self.0.display());
        }
    }
}

impl Note {
    /// Leaves the file for the next attempt to recover.
    pub(super) fn keep(self) {
        std::mem::forget(self);
    }
}

/// Writes the note. The caller holds the config's lock, so changes come in sequence. Blocks on the
/// disk.
pub(super) fn write(home: &Path, change: &Change) -> Result<Note, TenantError> {
    let path = home.join(FILE);
    let json = serde_json::to_vec(change).expect("texts become JSON");
    let mut file = File::create(&path).map_err(TenantError::disk(&path))?;
    let note = Note(path.clone());
    file.write_all(&json)
        .and_then(|()| file.sync_all())
        .map_err(TenantError::disk(&path))?;
    Ok(note)
}

/// The note of a killed process. An unreadable note was being written when the process died, before
/// its change began.
pub(super) fn left_over(home: &Path) -> Option<(Note, Change)> {
    let path = home.join(FILE);
    let bytes = fs::read(&path).ok()?;
    let note = Note(path);
    let change = serde_json::from_slice(&bytes).ok()?;
    Some((note, change))
}

pub(super) fn exists(home: &Path) -> bool {
    home.join(FILE).exists()
}
