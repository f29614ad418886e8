//! The size of a workspace. Counted once, kept up to date, and counted again now and then, because
//! people put files there too.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use cap_std::fs::Metadata;

use super::{BYTES_PER_MB, EntryKind, FileError, TEMPORARY_PREFIX, TEMPORARY_SUFFIX, Workspace};

/// The least size of a file in the count, so that many empty files are limited too.
const LEAST_BYTES: u64 = 4096;
/// A count this old is made anew.
const GOOD_FOR: Duration = Duration::from_secs(10 * 60);
/// Before a refusal, a count this old is made anew, because a person may have tidied up.
const GOOD_FOR_REFUSING: Duration = Duration::from_secs(5);
/// Age of a temporary file after an interrupted write.
const ABANDONED_AFTER: Duration = Duration::from_secs(60 * 60);

/// The size of the workspace at some time, with all changes since.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) bytes: u64,
    at: Instant,
}

impl Workspace {
    /// An error, when `more` bytes instead of `less` do not fit.
    pub(super) fn make_room(
        &self,
        counted: &mut Option<Counted>,
        more: u64,
        less: u64,
    ) -> Result<(), FileError> {
        let fits = |used: u64| used.saturating_sub(less).saturating_add(more) <= self.quota_bytes;
        if fits(self.used(counted, GOOD_FOR)) || fits(self.used(counted, GOOD_FOR_REFUSING)) {
            return Ok(());
        }
        let used = self.used(counted, GOOD_FOR);
        Err(FileError::Full {
            quota_mb: self.quota_bytes / BYTES_PER_MB,
            used_mb: used.div_ceil(BYTES_PER_MB),
        })
    }

    pub(super) fn note(&self, counted: &mut Option<Counted>, more: u64, less: u64) {
        if let Some(counted) = counted {
            counted.bytes = counted.bytes.saturating_sub(less).saturating_add(more);
        }
    }

    fn used(&self, counted: &mut Option<Counted>, good_for: Duration) -> u64 {
        match counted {
            Some(counted) if counted.at.elapsed() < good_for => counted.bytes,
            _ => {
                counted
                    .insert(Counted {
                        bytes: self.count(),
                        at: Instant::now(),
                    })
                    .bytes
            }
        }
    }

    /// Stops above the quota: the exact excess does not matter, and the counting must end.
    fn count(&self) -> u64 {
        let mut bytes = 0;
        let counted = self.walk(Path::new("."), usize::MAX, |entry| {
            if is_abandoned(&entry.path, entry.modified) && entry.kind == EntryKind::File {
                // The next count tries again to remove the file.
                drop(self.dir().map(|dir| dir.remove_file(&entry.path)));
                return ControlFlow::Continue(());
            }
            bytes += cost_of(if entry.kind == EntryKind::File {
                entry.bytes
            } else {
                0
            });
            if bytes > self.quota_bytes {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        if let Err(error) = counted {
            tracing::warn!(
                "the workspace {} could not be counted: {error}",
                self.root.display()
            );
        }
        bytes
    }
}

pub(super) fn cost(metadata: &Metadata) -> u64 {
    cost_of(if metadata.is_file() {
        metadata.len()
    } else {
        0
    })
}

pub(super) fn cost_of(bytes: u64) -> u64 {
    bytes.max(LEAST_BYTES)
}

fn is_abandoned(path: &Path, modified: Option<SystemTime>) -> bool {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let is_ours = name.starts_with(TEMPORARY_PREFIX) && name.ends_with(TEMPORARY_SUFFIX);
    is_ours
        && modified
            .and_then(|at| at.elapsed().ok())
            .is_some_and(|age| age > ABANDONED_AFTER)
}
