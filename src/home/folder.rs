//! The home folder: the paths inside, and the lock to keep a second process out.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{open_files, storage};

/// The folder with everything owned by the gateway.
#[derive(Debug, Clone)]
pub struct Home {
    path: PathBuf,
}

/// Held while a process works with a home. The system releases the lock when the process ends,
/// however the process ends.
#[derive(Debug)]
pub struct HomeLock {
    _file: File,
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("{}", held(.home, .pid, .is_chat))]
    Held {
        home: PathBuf,
        pid: String,
        /// The process is a `parlor chat` or `parlor ask`.
        is_chat: bool,
    },
    #[error("other users may enter the home folder {} (mode {mode:o}). Keep them out with `chmod 700 {}`, or use a folder of its own with --home", .home.display(), .home.display())]
    Open { home: PathBuf, mode: u32 },
    #[error("cannot write {}: {error}. {}", .path.display(), advice(.error))]
    NotWritable {
        path: PathBuf,
        error: std::io::Error,
    },
}

fn held(home: &Path, pid: &str, is_chat: &bool) -> String {
    let home = home.display();
    match is_chat {
        false => format!(
            "Parlor is already running on {home} (pid {pid}). Stop that one first, or use another folder with --home"
        ),
        true => format!(
            "a `parlor chat` is open on {home}, perhaps in another window (pid {pid}). Leave it with /quit first"
        ),
    }
}

fn advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        _ if open_files::is_exhausted(error) => open_files::ADVICE,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "Free some space",
        ErrorKind::NotFound => "`parlor init` makes a home folder",
        _ => "Give this user write access to the home folder",
    }
}

impl Home {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Home { path: path.into() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn database(&self) -> PathBuf {
        self.path.join("parlor.db")
    }

    /// Allows an empty database in the place of a lost database, as the operator asked.
    pub fn begin_anew(&self) -> Result<(), LockError> {
        let _lock = self.lock()?;
        let path = self.database();
        storage::begin_anew(&path).map_err(|error| LockError::NotWritable { path, error })
    }

    pub fn lock(&self) -> Result<HomeLock, LockError> {
        self.lock_for(Purpose::Other)
    }

    /// Locks the home, and notes the purpose for the message to other processes: a chat may be
    /// forgotten in another window.
    pub(crate) fn lock_for(&self, purpose: Purpose) -> Result<HomeLock, LockError> {
        self.keep_private()?;
        self.keep_files_private();
        let path = self.path.join("parlor.lock");
        let not_writable = |error| LockError::NotWritable {
            path: path.clone(),
            error,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(not_writable)?;
        match patiently_locked(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(self.held_by(read_holder(&mut file)));
            }
            Err(TryLockError::Error(error)) => return Err(not_writable(error)),
        }
        write_pid(&mut file, purpose).map_err(not_writable)?;
        Ok(HomeLock { _file: file })
    }

    /// Whether a gateway or a chat works with this home now.
    pub(crate) fn is_running(&self) -> bool {
        let Ok(file) = File::open(self.path.join("parlor.lock")) else {
            return false;
        };
        // A shared lock, because two looking programs must not take each other for a gateway.
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }

    /// The error of a home in use by another process.
    pub(crate) fn held(&self) -> LockError {
        let file = File::open(self.path.join("parlor.lock"));
        self.held_by(file.map_or_else(|_| String::new(), |mut file| read_holder(&mut file)))
    }

    fn held_by(&self, holder: String) -> LockError {
        let mut lines = holder.lines().map(str::trim);
        let pid = lines.next().filter(|pid| !pid.is_empty());
        LockError::Held {
            home: self.path.clone(),
            pid: pid.unwrap_or("unknown").to_owned(),
            is_chat: lines.next() == Some(CHAT),
        }
    }

    /// Takes the rights of other users from the folder. A folder shared with other programs stays
    /// unchanged, and is refused.
    pub(crate) fn keep_private(&self) -> Result<(), LockError> {
        let Some(mode) = rights_of_others(&self.path) else {
            return Ok(());
        };
        let is_shared = mode & STICKY != 0
            || self.path.parent().is_none()
            || std::env::home_dir().is_some_and(|home| is_same(&home, &self.path));
        let owner_only = Permissions::from_mode(0o700);
        if is_shared || fs::set_permissions(&self.path, owner_only).is_err() {
            return Err(LockError::Open {
                home: self.path.clone(),
                mode: mode & 0o777,
            });
        }
        tracing::warn!(
            "other users could enter the home folder {}; it is for its owner alone now",
            self.path.display()
        );
        Ok(())
    }

    /// Takes the rights of other users from Parlor's own files.
    fn keep_files_private(&self) {
        for name in ["parlor.lock", "parlor.db", "parlor.db-wal", "parlor.db-shm"] {
            let path = self.path.join(name);
            if rights_of_others(&path).is_some() {
                // The folder is private, so a file of another user does no harm here.
                drop(fs::set_permissions(&path, Permissions::from_mode(0o600)));
            }
        }
    }
}

/// Marks a folder like /tmp, with files of many users.
const STICKY: u32 = 0o1000;

/// The mode of a path, if others than its owner have rights. None also for a missing path.
fn rights_of_others(path: &Path) -> Option<u32> {
    let mode = fs::metadata(path).ok()?.permissions().mode();
    (mode & 0o077 != 0).then_some(mode)
}

/// Tries several times, because programs looking at the lock hold the lock for a moment.
fn patiently_locked(file: &File) -> Result<(), TryLockError> {
    const LOOKS: u32 = 5;
    for _ in 1..LOOKS {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
            locked => return locked,
        }
    }
    file.try_lock()
}

fn is_same(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| fs::canonicalize(path).ok();
    whole(one).is_some_and(|one| whole(other) == Some(one))
}

/// Why a process has the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A chat or a question at a terminal.
    Chat,
    Other,
}

/// The second line of the lock file of a chat; the first is its process id.
const CHAT: &str = "chat";

/// The lines of a lock file with the holder. Empty for an unreadable file.
fn read_holder(file: &mut File) -> String {
    let mut text = String::new();
    file.read_to_string(&mut text)
        .map_or_else(|_| String::new(), |_| text)
}

fn write_pid(file: &mut File, purpose: Purpose) -> std::io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{}", std::process::id())?;
    match purpose {
        Purpose::Chat => writeln!(file, "{CHAT}"),
        Purpose::Other => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn made(folder: &Path, bits: u32) -> Home {
        let path = folder.join("home");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(bits)).unwrap();
        Home::new(path)
    }

    /// Tests may run as root, for whom nothing is closed, so modes are looked at.
    #[test]
    fn a_home_is_for_its_owner_alone() {
        for bits in [0o700, 0o750, 0o755, 0o777, 0o711, 0o705] {
            let folder = tempfile::tempdir().unwrap();
            let home = made(folder.path(), bits);
            for name in ["parlor.lock", "parlor.db", "parlor.db-wal"] {
                fs::write(home.path().join(name), "").unwrap();
                fs::set_permissions(home.path().join(name), Permissions::from_mode(0o666)).unwrap();
            }
            let _lock = home.lock().unwrap();
            assert_eq!(mode(home.path()), 0o700, "{bits:o}");
            for name in ["parlor.lock", "parlor.db", "parlor.db-wal"] {
                assert_eq!(mode(&home.path().join(name)), 0o600, "{name}");
            }
        }
    }

    #[test]
    fn a_new_lock_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let home = made(folder.path(), 0o700);
        let _lock = home.lock().unwrap();
        assert_eq!(mode(&home.path().join("parlor.lock")), 0o600);
    }

    /// Like /tmp: others have their files in there.
    #[test]
    fn a_folder_of_everybody_is_no_home() {
        let folder = tempfile::tempdir().unwrap();
        let home = made(folder.path(), 0o1777);
        let error = home.lock().unwrap_err().to_string();
        assert!(
            error.contains("(mode 777)") && error.contains("`chmod 700 "),
            "{error}"
        );
        assert_eq!(mode(home.path()), 0o1777, "it is left as it was");
        assert!(!home.path().join("parlor.lock").exists());
    }
}
