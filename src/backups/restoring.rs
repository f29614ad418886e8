//! Brings a home back from an archive: unpacked and verified within the home folder, then swapped
//! in.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirBuilderExt as _, OpenOptionsExt as _};
use chrono::DateTime;
use rustix::fs::statvfs;
use uuid::Uuid;

use super::archive::Head;
use super::error::BackupError;
use super::names::{ASIDE, DATABASE, STAGING, stays};
use super::reading::{self, Item, Stop, Whole, pour};
use super::swapping;
use crate::clock::now_ms;
use crate::home::Home;
use crate::records::audit::{self, Action, Actor, Change};
use crate::storage::{self, Db};

/// A restored home, or a home that could be restored.
#[derive(Debug)]
pub(crate) struct Restored {
    /// Unix milliseconds.
    pub(crate) made_at: i64,
    /// The version of the program that made the backup.
    pub(crate) parlor: String,
    pub(crate) files: usize,
    pub(crate) schema: Option<u32>,
    pub(crate) has_secrets: bool,
    /// The folder with the old content. None where there was none.
    pub(crate) aside: Option<PathBuf>,
}

impl Restored {
    fn of(whole: &Whole, aside: Option<PathBuf>) -> Self {
        let Head {
            parlor,
            schema,
            made_at,
            has_secrets,
            ..
        } = whole.head.clone();
        Restored {
            made_at,
            parlor,
            files: whole.sums.len() - 1 - usize::from(schema.is_some()),
            schema,
            has_secrets,
            aside,
        }
    }
}

/// Reads a whole archive and changes nothing.
pub(crate) fn check(archive: &Path) -> Result<Restored, BackupError> {
    let mut each = |item: Item<'_>| match item {
        Item::Head(head) => fits(head),
        item => item.drain(),
    };
    let whole = reading::read(archive, u64::MAX, &mut each)?;
    Ok(Restored::of(&whole, None))
}

/// Puts the content of an archive into the place of a home. No other process may use the home.
pub(crate) async fn restore(
    home: &Home,
    archive: &Path,
    actor: &Actor,
) -> Result<Restored, BackupError> {
    let made = make(home.path())?;
    let restored = into(home, archive, actor).await;
    if restored.is_err() && made {
        // Only the lock is in there.
        drop(fs::remove_file(home.path().join("parlor.lock")));
        drop(fs::remove_dir(home.path()));
    }
    restored
}

/// Whether the folder had to be made.
fn make(home: &Path) -> Result<bool, BackupError> {
    let is_new = !home.exists();
    let made = DirBuilder::new().recursive(true).mode(0o700).create(home);
    made.map_err(BackupError::disk(home))?;
    Ok(is_new)
}

async fn into(home: &Home, archive: &Path, actor: &Actor) -> Result<Restored, BackupError> {
    check_home(home.path())?;
    let _lock = home.lock()?;
    for left in swapping::leftovers(home.path()) {
        fs::remove_dir_all(&left).map_err(BackupError::disk(&left))?;
    }
    let staging = Staging::new(home.path())?;
    let whole = staging.unpack(archive)?;
    staging.check_database(archive, &whole.head)?;
    staging.note(actor, &whole.head).await?;
    let has_old = holds_something(home.path())?;
    let aside = format!("{ASIDE}{}", in_name(now_ms()));
    staging.swap(&aside)?;
    let aside = has_old.then(|| home.path().join(aside));
    Ok(Restored::of(&whole, aside))
}

fn in_name(at: i64) -> String {
    let time = DateTime::from_timestamp_millis(at).unwrap_or_default();
    time.format("%Y-%m-%dT%H-%M-%SZ").to_string()
}

/// A folder of other things is not taken for a home.
fn check_home(home: &Path) -> Result<(), BackupError> {
    let is_ours = ["config.toml", "parlor.db", "parlor.stamp"]
        .iter()
        .any(|name| fs::symlink_metadata(home.join(name)).is_ok());
    if is_ours || !holds_something(home)? {
        return Ok(());
    }
    Err(BackupError::Conflict(format!(
        "{} has other files in it and is no home of Parlor. Use an empty folder with --home",
        home.display()
    )))
}

fn holds_something(home: &Path) -> Result<bool, BackupError> {
    let entries = fs::read_dir(home).map_err(BackupError::disk(home))?;
    let mut names = entries.flatten().map(|entry| entry.file_name());
    Ok(names.any(|name| !name.to_str().is_some_and(stays)))
}

/// Whether this version can use the archive's database.
fn fits(head: &Head) -> Result<(), Stop> {
    let known = storage::schema();
    match head.schema {
        Some(schema) if schema > known => Err(Stop::Refused(format!(
            "it was made by a newer Parlor ({}, schema {schema}; this one knows {known}). Restore it with that version",
            head.parlor
        ))),
        _ => Ok(()),
    }
}

/// The folder for an unpacked archive, removed with its content unless the content is swapped in.
struct Staging<'a> {
    home: &'a Path,
    name: String,
}

impl<'a> Staging<'a> {
    fn new(home: &'a Path) -> Result<Self, BackupError> {
        let name = format!("{STAGING}{}", Uuid::now_v7().simple());
        let made = DirBuilder::new().mode(0o700).create(home.join(&name));
        made.map_err(BackupError::disk(home))?;
        Ok(Staging { home, name })
    }

    fn path(&self) -> PathBuf {
        self.home.join(&self.name)
    }

    fn unpack(&self, archive: &Path) -> Result<Whole, BackupError> {
        let failed = BackupError::disk(&self.path());
        let room = statvfs(self.home).map_err(|error| failed(error.into()))?;
        let room = room.f_bavail.saturating_mul(room.f_frsize);
        let dir = Dir::open_ambient_dir(self.path(), ambient_authority()).map_err(&failed)?;
        let mut each = |item: Item<'_>| match item {
            Item::Head(head) => fits(head),
            Item::Folder(path) => folder(&dir, path).map_err(|error| Stop::Target(failed(error))),
            Item::File {
                path,
                mode,
                mtime,
                content,
            } => {
                let mut file = create(&dir, path).map_err(|error| Stop::Target(failed(error)))?;
                pour(content, &mut file)?;
                let set = file
                    .set_permissions(Permissions::from_mode(mode & 0o700 | 0o600))
                    .and_then(|()| file.set_modified(UNIX_EPOCH + Duration::from_secs(mtime)));
                set.map_err(|error| Stop::Target(failed(error)))
            }
        };
        reading::read(archive, room, &mut each)
    }

    fn check_database(&self, archive: &Path, head: &Head) -> Result<(), BackupError> {
        let path = self.path().join(DATABASE);
        let found = match path.exists() {
            true => Some(storage::check_alone(&path)),
            false => None,
        };
        let found = found.transpose().map_err(|error| {
            BackupError::archive(archive, format!("its database cannot be used: {error}"))
        })?;
        if found != head.schema {
            let reason = "its database is another than it says";
            return Err(BackupError::archive(archive, reason));
        }
        Ok(())
    }

    /// Tells the restore in the audit of the restored house. A database of an older schema may have
    /// no audit yet, and is brought up to date by the next start only.
    async fn note(&self, actor: &Actor, head: &Head) -> Result<(), BackupError> {
        if head.schema != Some(storage::schema()) {
            return Ok(());
        }
        let db = Db::open(&self.path().join(DATABASE)).await?;
        let (actor, made_at) = (actor.clone(), in_name(head.made_at));
        db.write(move |tx| {
            let change = Change::new(Action::Restore).about(format!("backup of {made_at}"));
            audit::note(tx, &actor, &change, now_ms())
        })
        .await?;
        drop(db);
        Ok(())
    }

    fn swap(self, aside: &str) -> Result<(), BackupError> {
        let failed = BackupError::disk(self.home);
        sync_all(&self.path()).map_err(&failed)?;
        swapping::swap(self.home, &self.name, aside).map_err(failed)
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        // From the note on, the folder belongs to the swap.
        if !swapping::is_unsettled(self.home) {
            drop(fs::remove_dir_all(self.path()));
        }
    }
}

fn folder(dir: &Dir, path: &Path) -> io::Result<()> {
    let mut builder = cap_std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    dir.create_dir_with(path, &builder)
}

fn create(dir: &Dir, path: &Path) -> io::Result<fs::File> {
    if let Some(parent) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        folder(dir, parent)?;
    }
    let mut options = cap_std::fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    Ok(dir.open_with(path, &options)?.into_std())
}

/// Everything of the file system is on disk before the first rename.
fn sync_all(folder: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(fs::File::open(folder)?)?;
    #[cfg(not(target_os = "linux"))]
    {
        let _ = folder;
        rustix::fs::sync();
    }
    Ok(())
}
