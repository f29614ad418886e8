//! Folders of agents: made, copied and listed. Links are never followed.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use super::TenantError;
use super::unfinished::STAGING;

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
    match fs::rename(from, to) {
        Err(error) if error.kind() == ErrorKind::CrossesDevices => move_across(from, to),
        moved => moved.map_err(TenantError::disk(from)),
    }
}

/// To another disk, as when `agents/` is mounted: at every moment one of the two places has all of it.
fn move_across(from: &Path, to: &Path) -> Result<(), TenantError> {
    let (coming, leaving) = (beside(to), beside(from));
    let moved = copy_tree(from, &coming).and_then(|()| {
        fs::rename(&coming, to).map_err(TenantError::disk(to))?;
        fs::rename(from, &leaving).map_err(TenantError::disk(from))
    });
    moved.inspect_err(|_| discard(&coming))?;
    discard(&leaving);
    Ok(())
}

/// A name that is no agent's, and that is cleared away if it is ever left over.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{STAGING}{name}"))
}

/// Everything, links as links.
fn copy_tree(from: &Path, to: &Path) -> Result<(), TenantError> {
    let kind = fs::symlink_metadata(from).map_err(TenantError::disk(from))?;
    if kind.is_symlink() {
        let target = fs::read_link(from).map_err(TenantError::disk(from))?;
        return symlink(target, to).map_err(TenantError::disk(to));
    }
    if !kind.is_dir() {
        return fs::copy(from, to).map(drop).map_err(TenantError::disk(from));
    }
    create(to)?;
    for entry in fs::read_dir(from).map_err(TenantError::disk(from))? {
        let name = entry.map_err(TenantError::disk(from))?.file_name();
        copy_tree(&from.join(&name), &to.join(&name))?;
    }
    fs::set_permissions(to, kind.permissions()).map_err(TenantError::disk(to))
}

/// Undoes [`relocate`] after something else failed. That error is the one to tell; this one goes to the log.
pub(super) fn move_back(from: &Path, to: &Path) {
    if let Err(error) = relocate(from, to) {
        tracing::error!("{} could not be moved back to {}: {error}", from.display(), to.display());
    }
}

/// Takes away what an attempt that failed has left. Of a link only the link.
pub(super) fn discard(folder: &Path) {
    let gone = match fs::symlink_metadata(folder) {
        Err(_) => Ok(()),
        Ok(kind) if kind.is_dir() => fs::remove_dir_all(folder),
        Ok(_) => fs::remove_file(folder),
    };
    if let Err(error) = gone {
        tracing::warn!("{} is left over and can be deleted: {error}", folder.display());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_folder_on_another_disk_is_moved_with_everything_in_it() {
        let home = TempDir::new().unwrap();
        let (from, to) = (home.path().join("agents/rose"), home.path().join("archive/rose/files"));
        create(&from.join("workspace")).unwrap();
        create(to.parent().unwrap()).unwrap();
        fs::write(from.join("workspace/a.txt"), "hi").unwrap();
        symlink("/nowhere", from.join("link")).unwrap();
        move_across(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("workspace/a.txt")).unwrap(), "hi");
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("/nowhere"));
        assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(home.path().join("agents")).unwrap().count(), 0, "nothing is left behind");
        assert_eq!(fs::read_dir(to.parent().unwrap()).unwrap().count(), 1);
    }
}
