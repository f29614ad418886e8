//! Folders of agents: made, copied and listed. Links are never followed.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::TenantError;

/// Folders within folders that are walked through.
const MAX_DEPTH: usize = 32;

/// What is below a folder.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// Regular files, seen from the folder.
    pub(super) files: Vec<PathBuf>,
    /// Links and other things that are not taken along.
    pub(super) left_out: Vec<PathBuf>,
}

/// For its owner only, like everything in the home. One that is there stays.
pub(super) fn create(folder: &Path) -> Result<(), TenantError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(TenantError::disk(folder))
}

pub(super) fn walk(folder: &Path) -> Result<Walk, TenantError> {
    let mut walk = Walk::default();
    if folder.is_dir() {
        collect(folder, Path::new(""), 0, &mut walk)?;
    }
    walk.files.sort();
    walk.left_out.sort();
    Ok(walk)
}

fn collect(folder: &Path, within: &Path, depth: usize, walk: &mut Walk) -> Result<(), TenantError> {
    for entry in fs::read_dir(folder).map_err(TenantError::disk(folder))? {
        let entry = entry.map_err(TenantError::disk(folder))?;
        let (path, kind) = (within.join(entry.file_name()), entry.file_type().map_err(TenantError::disk(folder))?);
        if kind.is_file() && !is_elsewhere_too(&entry, &path) {
            walk.files.push(path);
        } else if kind.is_dir() && depth < MAX_DEPTH {
            collect(&entry.path(), &path, depth + 1, walk)?;
        } else {
            walk.left_out.push(path);
        }
    }
    Ok(())
}

/// In the workspace, a file with a second name is nothing that the agent's tools read: it may be another agent's.
fn is_elsewhere_too(entry: &fs::DirEntry, path: &Path) -> bool {
    path.starts_with("workspace") && entry.metadata().is_ok_and(|metadata| metadata.nlink() > 1)
}

/// Copies these files from one folder to another.
pub(super) fn copy(from: &Path, to: &Path, files: &[PathBuf]) -> Result<(), TenantError> {
    for file in files {
        let target = to.join(file);
        if let Some(parent) = target.parent() {
            create(parent)?;
        }
        fs::copy(from.join(file), &target).map_err(TenantError::disk(&target))?;
    }
    Ok(())
}

/// Moves a folder within the home. Nothing to do if it is not there.
pub(super) fn relocate(from: &Path, to: &Path) -> Result<(), TenantError> {
    if fs::symlink_metadata(from).is_err() {
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        create(parent)?;
    }
    fs::rename(from, to).map_err(TenantError::disk(from))
}

/// Undoes [`relocate`] after something else failed. That error is the one to tell; this one goes to the log.
pub(super) fn move_back(from: &Path, to: &Path) {
    if let Err(error) = relocate(from, to) {
        tracing::error!("{} could not be moved back to {}: {error}", from.display(), to.display());
    }
}

/// Takes away what an attempt that failed has left.
pub(super) fn discard(folder: &Path) {
    if folder.exists()
        && let Err(error) = fs::remove_dir_all(folder)
    {
        tracing::warn!("{} is left over and can be deleted: {error}", folder.display());
    }
}
