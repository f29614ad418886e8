//! Folders of agents: made, copied and listed. Links are never followed.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Component, Path, PathBuf};

use super::error::TenantError;
use super::site::folder_of;
use crate::domain::AgentId;

/// Depth of nested folders in a walk.
const MAX_DEPTH: usize = 32;
/// Prefix of unfinished folders: a package half unpacked, a folder half copied.
pub(crate) const STAGING: &str = ".incoming-";

/// The contents of a folder.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// Regular files, seen from the folder.
    pub(super) files: Vec<PathBuf>,
    /// Links, pipes and devices: they are not taken along.
    pub(super) left_out: Vec<PathBuf>,
}

/// Makes a folder for its owner only, like everything in the home. An existing folder keeps its
/// rights.
pub(super) fn create(folder: &Path) -> Result<(), TenantError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(TenantError::disk(folder))
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

/// Lets the old folder of a renamed agent lead to the new folder, for turns that know the old path.
pub(super) fn lead(home: &Path, from: &AgentId, to: &AgentId) {
    let old = folder_of(home, from);
    // An agent without files has no folder before its first file.
    let made = create(&folder_of(home, to)).map_err(|error| error.to_string());
    let led = made.and_then(|()| symlink(to.as_str(), &old).map_err(|error| error.to_string()));
    if let Err(error) = led {
        tracing::warn!("{} does not lead to {to}: {error}", old.display());
    }
}

/// Whether the path is a link made by [`lead`], which names a folder beside itself.
pub(crate) fn leads_beside(path: &Path) -> bool {
    fs::read_link(path).is_ok_and(|to| {
        let mut steps = to.components();
        matches!(steps.next(), Some(Component::Normal(_))) && steps.next().is_none()
    })
}

/// Files, seen from their folder, with their sizes.
pub(crate) type Sizes = Vec<(PathBuf, u64)>;

pub(super) fn sizes(folder: &Path) -> Result<Sizes, TenantError> {
    let size = |file: PathBuf| {
        let path = folder.join(&file);
        let metadata = fs::symlink_metadata(&path).map_err(TenantError::disk(&path))?;
        Ok((file, metadata.len()))
    };
    walk(folder)?.files.into_iter().map(size).collect()
}

fn collect(folder: &Path, within: &Path, depth: usize, walk: &mut Walk) -> Result<(), TenantError> {
    for entry in fs::read_dir(folder).map_err(TenantError::disk(folder))? {
        let entry = entry.map_err(TenantError::disk(folder))?;
        let (path, kind) = (
            within.join(entry.file_name()),
            entry.file_type().map_err(TenantError::disk(folder))?,
        );
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

/// The agent's tools read no file with a second hard link in the workspace, because the file may be
/// another agent's.
fn is_elsewhere_too(entry: &fs::DirEntry, path: &Path) -> bool {
    path.starts_with("workspace") && entry.metadata().is_ok_and(|metadata| metadata.nlink() > 1)
}

/// Copies these files to another folder.
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

/// Moves a folder within the home. A missing folder is no error.
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

/// Moves to another disk, as when `agents/` is mounted. At every moment the whole folder is in
/// either place.
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

/// A name that no agent can have; [`clear_staging`] deletes leftovers with such names.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{STAGING}{name}"))
}

/// Copies a whole folder; links are copied as links.
fn copy_tree(from: &Path, to: &Path) -> Result<(), TenantError> {
    let kind = fs::symlink_metadata(from).map_err(TenantError::disk(from))?;
    if kind.is_symlink() {
        let target = fs::read_link(from).map_err(TenantError::disk(from))?;
        return symlink(target, to).map_err(TenantError::disk(to));
    }
    if !kind.is_dir() {
        return fs::copy(from, to)
            .map(drop)
            .map_err(TenantError::disk(from));
    }
    create(to)?;
    for entry in fs::read_dir(from).map_err(TenantError::disk(from))? {
        let name = entry.map_err(TenantError::disk(from))?.file_name();
        copy_tree(&from.join(&name), &to.join(&name))?;
    }
    fs::set_permissions(to, kind.permissions()).map_err(TenantError::disk(to))
}

/// Undoes [`relocate`] after a later step failed. The caller tells that step's error; an error here
/// only goes to the log.
pub(super) fn move_back(from: &Path, to: &Path) {
    if let Err(error) = relocate(from, to) {
        tracing::error!(
            "{} could not be moved back to {}: {error}",
            from.display(),
            to.display()
        );
    }
}

/// Deletes the leftovers of an interrupted process: unfinished folders of this home.
pub(super) fn clear_staging(home: &Path) {
    let entries = [home.to_owned(), home.join("agents")]
        .into_iter()
        .flat_map(fs::read_dir)
        .flatten()
        .flatten();
    let left = entries.filter(|entry| {
        entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(STAGING))
    });
    left.for_each(|entry| discard(&entry.path()));
}

/// Deletes the folder of a failed attempt. A link is deleted without its target.
pub(super) fn discard(folder: &Path) {
    let gone = match fs::symlink_metadata(folder) {
        Err(_) => Ok(()),
        Ok(kind) if kind.is_dir() => fs::remove_dir_all(folder),
        Ok(_) => fs::remove_file(folder),
    };
    if let Err(error) = gone {
        tracing::warn!(
            "{} is left over and can be deleted: {error}",
            folder.display()
        );
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
        let (from, to) = (
            home.path().join("agents/rose"),
            home.path().join("archive/rose/files"),
        );
        create(&from.join("workspace")).unwrap();
        create(to.parent().unwrap()).unwrap();
        fs::write(from.join("workspace/a.txt"), "hi").unwrap();
        symlink("/nowhere", from.join("link")).unwrap();
        move_across(&from, &to).unwrap();
        assert_eq!(
            fs::read_to_string(to.join("workspace/a.txt")).unwrap(),
            "hi"
        );
        assert_eq!(
            fs::read_link(to.join("link")).unwrap(),
            Path::new("/nowhere")
        );
        assert_eq!(
            fs::metadata(&to).unwrap().permissions().mode() & 0o777,
            0o700
        );
        assert_eq!(
            fs::read_dir(home.path().join("agents")).unwrap().count(),
            0,
            "nothing is left behind"
        );
        assert_eq!(fs::read_dir(to.parent().unwrap()).unwrap().count(), 1);
    }
}
