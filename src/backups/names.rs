//! Names in the home folder with a special treatment by backup and restore.

use std::path::Path;

use crate::tenants;

/// The folder inside the home for backups without another place.
pub(crate) const BACKUPS: &str = "backups";
/// The note of a restore under way.
pub(super) const NOTE: &str = "restoring.json";
pub(super) const NEW_NOTE: &str = "restoring.json.new";
/// Prefix of the folder for an unpacked backup.
pub(super) const STAGING: &str = ".restoring-";
/// Prefix of the folder with the content from before a restore.
pub(super) const ASIDE: &str = "before-restore-";
/// Prefix of the folder with an unfinished archive.
pub(super) const UNFINISHED: &str = ".backup-";

/// The database's own files. SQLite itself copies them.
pub(super) const DATABASE: &str = "parlor.db";
const OF_DATABASE: [&str; 3] = [DATABASE, "parlor.db-wal", "parlor.db-shm"];

/// Entries of the home outside all backups and restores: they belong to running processes, can be
/// made anew, or are backups themselves.
const STAY: [&str; 9] = [
    "parlor.lock",
    "parlor.sock",
    "config.lock",
    "logs",
    "incoming",
    "results",
    BACKUPS,
    NOTE,
    NEW_NOTE,
];

/// Prefixes of entries outside all backups and restores.
const STAY_PREFIXES: [&str; 4] = [STAGING, ASIDE, UNFINISHED, tenants::STAGING];

/// Whether an entry of the home is outside all backups and restores.
pub(super) fn stays(name: &str) -> bool {
    let begins = |prefix: &&str| name.starts_with(prefix);
    STAY.contains(&name) || STAY_PREFIXES.iter().any(begins)
}

/// Whether a path inside the home is not packed as a file.
pub(super) fn is_elsewhere(path: &Path) -> bool {
    let name = path.to_str().unwrap_or_default();
    stays(name) || OF_DATABASE.contains(&name)
}

/// Whether a path of an archive cannot come from a backup.
pub(super) fn is_foreign(path: &Path) -> bool {
    let first = path.components().next().map(|name| name.as_os_str());
    let Some(name) = first.and_then(|name| name.to_str()) else {
        return false;
    };
    stays(name) || OF_DATABASE.contains(&name) && path != Path::new(DATABASE)
}
