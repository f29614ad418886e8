//! Puts an edited `config.toml` in the place of the old one: never half of it, and never over what somebody else wrote.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::file::FILE_NAME;

/// Held while somebody edits the config by program. The system lets go of it when the process ends.
#[derive(Debug)]
pub struct EditLock {
    _file: File,
}

#[derive(Debug, thiserror::Error)]
pub enum StoreConfigError {
    #[error("config.toml was changed by somebody else meanwhile, so it was left as it is. Try again")]
    Changed,
    #[error("cannot write {}: {error}", .path.display())]
    Disk { path: PathBuf, error: io::Error },
}

/// Waits until nobody else edits this home by program. Blocks.
pub fn lock(home: &Path) -> Result<EditLock, StoreConfigError> {
    let path = home.join("config.lock");
    let open = || {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        file.lock()?;
        Ok(file)
    };
    open().map(|file| EditLock { _file: file }).map_err(|error| StoreConfigError::Disk { path: path.clone(), error })
}

/// The text as it is. A home without a config has an empty one.
pub fn read(home: &Path) -> Result<String, StoreConfigError> {
    let path = home.join(FILE_NAME);
    match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read.map_err(|error| StoreConfigError::Disk { path, error }),
    }
}

/// Replaces the file if it still is what was read. Blocks.
pub fn replace(home: &Path, _lock: &EditLock, base: &str, new: &str) -> Result<(), StoreConfigError> {
    if read(home)? != base {
        return Err(StoreConfigError::Changed);
    }
    // A link stays a link: what it leads to is replaced.
    let named = home.join(FILE_NAME);
    let path = fs::canonicalize(&named).unwrap_or(named);
    write_beside(&path, new).map_err(|error| StoreConfigError::Disk { path: path.clone(), error })
}

fn write_beside(path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension("toml.new");
    let written = File::create(&beside).and_then(|mut file| {
        if let Ok(old) = fs::metadata(path) {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| fs::rename(&beside, path));
    if renamed.is_err() {
        // If it cannot go, the error still tells what is wrong.
        let _ = fs::remove_file(&beside);
    }
    renamed
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn only_what_was_read_is_replaced() {
        let home = TempDir::new().unwrap();
        let lock = lock(home.path()).unwrap();
        replace(home.path(), &lock, "", "a = 1\n").unwrap();
        assert_eq!(read(home.path()).unwrap(), "a = 1\n");
        assert!(matches!(replace(home.path(), &lock, "", "b = 1\n"), Err(StoreConfigError::Changed)));
        assert_eq!(read(home.path()).unwrap(), "a = 1\n");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_and_its_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let (home, elsewhere) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let real = elsewhere.path().join("parlor.toml");
        fs::write(&real, "a = 1\n").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&real, home.path().join(FILE_NAME)).unwrap();
        replace(home.path(), &lock(home.path()).unwrap(), "a = 1\n", "b = 1\n").unwrap();
        assert!(home.path().join(FILE_NAME).is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "b = 1\n");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
    }
}
