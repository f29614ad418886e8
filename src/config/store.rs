//! Replaces `config.toml` by an edited text: never in halves, and never over another person's
//! change.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use super::file::FILE_NAME;
use super::json_schema::{SCHEMA_FILE, json_schema_text};
use super::system_error::in_words;

/// Held during an edit by program. The system releases the lock when the process ends.
#[derive(Debug)]
pub(crate) struct EditLock {
    _file: File,
}

#[derive(Debug, thiserror::Error)]
pub enum StoreConfigError {
    #[error(
        "config.toml was changed by somebody else meanwhile, so it was left as it is. Try again"
    )]
    Changed,
    #[error("{} is read-only, so it was not changed. `chmod u+w` it, or make this change by hand", .0.display())]
    ReadOnly(PathBuf),
    #[error("{} belongs to another user, who could not read it afterwards. Run this as that user", .0.display())]
    NotOurs(PathBuf),
    #[error("cannot write {}: {}", .path.display(), in_words(.error))]
    Disk { path: PathBuf, error: io::Error },
}

/// Waits until no other process edits this home by program. Blocks.
pub(crate) fn lock(home: &Path) -> Result<EditLock, StoreConfigError> {
    let path = home.join("config.lock");
    let open = || {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)?;
        file.lock()?;
        Ok(file)
    };
    open()
        .map(|file| EditLock { _file: file })
        .map_err(|error| StoreConfigError::Disk {
            path: path.clone(),
            error,
        })
}

/// The text of the file. A home without a config has an empty text.
pub(crate) fn read(home: &Path) -> Result<String, StoreConfigError> {
    let path = home.join(FILE_NAME);
    match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read.map_err(|error| StoreConfigError::Disk { path, error }),
    }
}

/// Replaces the file, if its text is still the expected text. Blocks.
pub(crate) fn replace(
    home: &Path,
    _lock: &EditLock,
    base: &str,
    new: &str,
) -> Result<(), StoreConfigError> {
    if read(home)? != base {
        return Err(StoreConfigError::Changed);
    }
    // A link stays a link: the file behind the link is replaced.
    let named = home.join(FILE_NAME);
    let path = fs::canonicalize(&named).unwrap_or(named);
    // Replacing a file needs rights on its folder only, so a read-only file is refused here.
    if fs::metadata(&path).is_ok_and(|old| old.permissions().readonly()) {
        return Err(StoreConfigError::ReadOnly(path));
    }
    write_beside(&path, new)
}

/// Writes the schema for editors anew, beside the config.
pub(crate) fn write_schema(home: &Path) -> Result<PathBuf, StoreConfigError> {
    let path = home.join(SCHEMA_FILE);
    write_beside(&path, &json_schema_text())?;
    Ok(path)
}

fn write_beside(path: &Path, text: &str) -> Result<(), StoreConfigError> {
    let beside = path.with_extension("toml.new");
    let disk = |error| StoreConfigError::Disk {
        path: path.to_owned(),
        error,
    };
    let written = File::create(&beside).map_err(disk).and_then(|mut file| {
        if let Ok(old) = fs::metadata(path) {
            keep_owner(&file, &old).map_err(|_| StoreConfigError::NotOurs(path.to_owned()))?;
            file.set_permissions(old.permissions()).map_err(disk)?;
        }
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(disk)
    });
    let renamed = written.and_then(|()| fs::rename(&beside, path).map_err(disk));
    if renamed.is_err() {
        // A leftover file does no harm, and the error of the write matters more.
        let _ = fs::remove_file(&beside);
    }
    renamed
}

/// Keeps owner and group, so that a service can still read its config after an edit by the
/// administrator.
fn keep_owner(file: &File, old: &fs::Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if new.uid() != old.uid() {
        fchown(file, Some(old.uid()), None)?;
    }
    if new.gid() != old.gid() {
        // Giving a file to a group may be forbidden; the owner can still read the file.
        let _ = fchown(file, None, Some(old.gid()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn only_what_was_read_is_replaced() {
        let home = TempDir::new().unwrap();
        let lock = lock(home.path()).unwrap();
        replace(home.path(), &lock, "", "a = 1\n").unwrap();
        assert_eq!(read(home.path()).unwrap(), "a = 1\n");
        assert!(matches!(
            replace(home.path(), &lock, "", "b = 1\n"),
            Err(StoreConfigError::Changed)
        ));
        assert_eq!(read(home.path()).unwrap(), "a = 1\n");
    }

    #[test]
    fn a_file_that_somebody_made_read_only_stays_as_it_is() {
        let home = TempDir::new().unwrap();
        let path = home.path().join(FILE_NAME);
        fs::write(&path, "a = 1\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        let refused = replace(
            home.path(),
            &lock(home.path()).unwrap(),
            "a = 1\n",
            "b = 1\n",
        )
        .unwrap_err();
        let told = refused.to_string().replace(
            &home.path().canonicalize().unwrap().display().to_string(),
            "HOME",
        );
        assert_eq!(
            told,
            "HOME/config.toml is read-only, so it was not changed. `chmod u+w` it, or make this change by hand"
        );
        assert_eq!(read(home.path()).unwrap(), "a = 1\n");
    }

    /// Only an administrator can change the owner of a file, so other users skip this test.
    #[test]
    fn the_owner_of_the_file_stays_its_owner() {
        let home = TempDir::new().unwrap();
        let path = home.path().join(FILE_NAME);
        fs::write(&path, "a = 1\n").unwrap();
        if std::os::unix::fs::chown(&path, Some(4711), Some(4712)).is_err() {
            return;
        }
        replace(
            home.path(),
            &lock(home.path()).unwrap(),
            "a = 1\n",
            "b = 1\n",
        )
        .unwrap();
        let kept = fs::metadata(&path).unwrap();
        assert_eq!((kept.uid(), kept.gid()), (4711, 4712));
    }

    #[test]
    fn a_link_and_its_permissions_stay() {
        let (home, elsewhere) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let real = elsewhere.path().join("parlor.toml");
        fs::write(&real, "a = 1\n").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&real, home.path().join(FILE_NAME)).unwrap();
        replace(
            home.path(),
            &lock(home.path()).unwrap(),
            "a = 1\n",
            "b = 1\n",
        )
        .unwrap();
        assert!(home.path().join(FILE_NAME).is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "b = 1\n");
        assert_eq!(
            fs::metadata(&real).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
    }
}
