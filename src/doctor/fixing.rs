//! Carries out remedies: `parlor doctor --fix` and `--tidy`.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use chrono::{DateTime, Utc};

use crate::home::Home;
use crate::operations::diagnosis::Remedy;

/// Whether the operator asked for this kind of remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Safe remedies.
    pub(crate) fix: bool,
    /// Unused files go to the archive.
    pub(crate) tidy: bool,
}

impl Asked {
    pub(crate) fn covers(self, remedy: &Remedy) -> bool {
        match remedy {
            Remedy::CloseToOthers(_) | Remedy::Remove(_) => self.fix,
            Remedy::Archive(_) => self.tidy,
        }
    }
}

/// Carries out a remedy, and tells the outcome.
pub(crate) fn apply(home: &Path, remedy: &Remedy, now: DateTime<Utc>) -> io::Result<String> {
    match remedy {
        // A folder shared with others, such as /tmp, is refused.
        Remedy::CloseToOthers(path) if path == home => {
            let closed = Home::new(home).keep_private();
            closed.map_err(|error| io::Error::other(error.to_string()))?;
            Ok(format!("took the rights of others from {}", home.display()))
        }
        Remedy::CloseToOthers(path) => {
            let mode = fs::metadata(path)?.permissions().mode();
            fs::set_permissions(path, Permissions::from_mode(mode & 0o7700))?;
            Ok(format!("took the rights of others from {}", path.display()))
        }
        Remedy::Remove(path) => {
            fs::remove_dir_all(path)?;
            Ok(format!("removed {}", path.display()))
        }
        Remedy::Archive(path) => {
            let folder = home
                .join("archive")
                .join(format!("unused-{}", now.format("%Y-%m-%d")));
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&folder)?;
            let name = path.file_name().unwrap_or_default();
            let mut target = folder.join(name);
            while fs::symlink_metadata(&target).is_ok() {
                target.as_mut_os_string().push(".later");
            }
            fs::rename(path, &target)?;
            Ok(format!("moved {} to {}", name.display(), target.display()))
        }
    }
}
