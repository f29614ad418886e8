//! A confined folder: an agent's workspace, or a shared folder.
//!
//! The folder is held as a directory capability, so no path and no link leads out, not even a link
//! swapped in during a call. Every function here blocks, and needs a thread for blocking work.

use std::ffi::OsStr;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cap_std::fs::{
    Dir, DirBuilder, DirBuilderExt, File, FileTypeExt, Metadata, MetadataExt, OpenOptions,
    OpenOptionsExt,
};
use rustix::fs::OFlags;
use uuid::Uuid;

use crate::domain::Labels;

mod error;
mod incoming;
mod labels;
mod quota;
mod view;
mod walk;

pub use error::FileError;
pub(super) use view::WorkspaceView;
pub use walk::{Entry, EntryKind};

use quota::{Counted, cost};

/// Only the gateway's user looks into a workspace.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const TEMPORARY_PREFIX: &str = ".parlor-";
const TEMPORARY_SUFFIX: &str = ".tmp";
const BYTES_PER_MB: u64 = 1_000_000;

/// The folder and its quota. Opened at the first use.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    /// The folder belongs to the home, so a missing folder is made.
    is_ours: bool,
    quota_bytes: u64,
    dir: Mutex<Option<Arc<Dir>>>,
    /// The size of the contents. Every change holds this lock, so changes come in sequence.
    /// Blocking threads only.
    counted: Mutex<Option<Counted>>,
}

impl Workspace {
    pub fn new(root: PathBuf, quota_mb: u32) -> Self {
        let quota_bytes = u64::from(quota_mb) * BYTES_PER_MB;
        Workspace {
            root,
            is_ours: true,
            quota_bytes,
            dir: Mutex::default(),
            counted: Mutex::default(),
        }
    }

    /// A folder outside the home, which is never made here.
    pub(super) fn outside(root: PathBuf, quota_mb: u32) -> Self {
        Workspace {
            is_ours: false,
            ..Workspace::new(root, quota_mb)
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A file opened for reading, with its metadata. Never waits for the other end of a pipe.
    pub fn open(&self, path: &Path) -> Result<(File, Metadata), FileError> {
        let dir = self.dir()?;
        // The kind is checked first, because opening a device may have effects.
        regular(&dir.metadata(path)?)?;
        let mut options = OpenOptions::new();
        options
            .read(true)
            .custom_flags(flags(OFlags::NONBLOCK | OFlags::NOCTTY));
        let file = dir.open_with(path, &options)?;
        let metadata = file.metadata()?;
        // The kind is checked again, because the file may have been swapped.
        regular(&metadata)?;
        Ok((file, metadata))
    }

    /// A whole file.
    pub fn read(&self, path: &Path, max_bytes: u64) -> Result<Vec<u8>, FileError> {
        let (file, metadata) = self.open(path)?;
        let mut content = Vec::new();
        file.take(max_bytes + 1).read_to_end(&mut content)?;
        let bytes = metadata.len().max(content.len() as u64);
        if bytes > max_bytes {
            Err(FileError::TooLarge { bytes, max_bytes })
        } else {
            Ok(content)
        }
    }

    /// The kind of a path; a link is a link.
    pub fn look(&self, path: &Path) -> Result<EntryKind, FileError> {
        Ok(EntryKind::of(&self.dir()?.symlink_metadata(path)?))
    }

    /// The path with all links resolved, from the workspace's root on. Missing steps stay as they
    /// are.
    pub(super) fn resolved(&self, path: &Path) -> Result<PathBuf, FileError> {
        let dir = self.dir()?;
        let mut missing = Vec::new();
        for known in path.ancestors() {
            let known = if known.as_os_str().is_empty() {
                Path::new(".")
            } else {
                known
            };
            match dir.canonicalize(known) {
                Ok(mut real) => {
                    real.extend(missing.iter().rev());
                    return Ok(real);
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    missing.extend(known.file_name());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(path.to_owned())
    }

    /// Writes a whole file, with missing folders. A reader at the same time sees the old or the new
    /// text, never a half.
    pub fn write(&self, path: &Path, content: &[u8]) -> Result<(), FileError> {
        self.write_labelled(path, content, Labels::NONE)
    }

    /// Writes a whole file like [`Workspace::write`], with the labels of its words.
    pub fn write_labelled(
        &self,
        path: &Path,
        content: &[u8],
        labels: Labels,
    ) -> Result<(), FileError> {
        let counted = self.lock();
        self.replace(counted, path, (content, labels))
    }

    /// The labels of a file's words. An unreadable file has none.
    pub fn labels(&self, path: &Path) -> Labels {
        self.open(path)
            .map_or(Labels::NONE, |(file, _)| labels::of(&file))
    }

    /// Changes a file's content. No other change happens in between.
    pub fn edit<T, E: From<FileError>>(
        &self,
        path: &Path,
        max_bytes: u64,
        read: Labels,
        change: impl FnOnce(Vec<u8>) -> Result<(Vec<u8>, T), E>,
    ) -> Result<T, E> {
        let counted = self.lock();
        let (changed, told) = change(self.read(path, max_bytes)?)?;
        let labels = self.labels(path) | read;
        self.replace(counted, path, (&changed, labels))?;
        Ok(told)
    }

    /// Takes a file, a link or an empty folder away.
    pub fn remove(&self, path: &Path) -> Result<(), FileError> {
        let mut counted = self.lock();
        let (folder, name) = self.parent(path)?;
        let metadata = folder.symlink_metadata(name)?;
        if metadata.is_dir() {
            folder.remove_dir(name)?;
        } else {
            folder.remove_file(name)?;
        }
        if let Some(counted) = counted.as_mut() {
            counted.bytes = counted.bytes.saturating_sub(cost(&metadata));
        }
        Ok(())
    }

    /// Whether this much more would fit.
    pub fn has_room_for(&self, bytes: u64) -> Result<(), FileError> {
        self.make_room(&mut self.lock(), quota::cost_of(bytes), 0)
    }

    fn replace(
        &self,
        mut counted: MutexGuard<'_, Option<Counted>>,
        path: &Path,
        (content, labels): (&[u8], Labels),
    ) -> Result<(), FileError> {
        let before = match self.parent(path) {
            Ok((folder, name)) => replaceable(&folder, name)?,
            Err(FileError::NotFound) => 0,
            Err(error) => return Err(error),
        };
        let cost = quota::cost_of(content.len() as u64);
        self.make_room(&mut counted, cost + self.cost_of_folders(path)?, before)?;
        self.make_folders(&mut counted, path)?;
        let (folder, name) = self.parent(path)?;
        // A temporary file beside the target: the rename replaces any file of the target's name and
        // follows no link.
        let temporary = format!(
            "{TEMPORARY_PREFIX}{}{TEMPORARY_SUFFIX}",
            Uuid::new_v4().simple()
        );
        let written = fill(&folder, &temporary, content, labels)
            .and_then(|()| folder.rename(&temporary, &folder, name));
        if let Err(error) = written {
            // The temporary file may not exist.
            drop(folder.remove_file(&temporary));
            return Err(error.into());
        }
        self.note(&mut counted, cost, before);
        Ok(())
    }

    /// The count of missing folders on a path.
    fn cost_of_folders(&self, path: &Path) -> Result<u64, FileError> {
        let dir = self.dir()?;
        let missing = path
            .ancestors()
            .skip(1)
            .filter(|folder| !folder.as_os_str().is_empty() && !dir.exists(folder))
            .count();
        Ok(quota::cost_of(0) * missing as u64)
    }

    fn make_folders(&self, counted: &mut Option<Counted>, path: &Path) -> Result<(), FileError> {
        let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        else {
            return Ok(());
        };
        let dir = self.dir()?;
        let mut builder = DirBuilder::new();
        builder.mode(FOLDER_MODE);
        let mut made = PathBuf::new();
        for step in folder {
            made.push(step);
            match dir.create_dir_with(&made, &builder) {
                // A folder counts like an empty file, as in `remove`.
                Ok(()) => self.note(counted, quota::cost_of(0), 0),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The folder of a path, held open, so that check and change happen in the same folder.
    fn parent<'a>(&self, path: &'a Path) -> Result<(Dir, &'a OsStr), FileError> {
        let (folder, name) = split(path)?;
        let dir = self.dir()?;
        Ok((
            if folder.as_os_str().is_empty() {
                dir.try_clone()?
            } else {
                dir.open_dir(folder)?
            },
            name,
        ))
    }

    fn dir(&self) -> Result<Arc<Dir>, FileError> {
        let mut open = self.dir.lock().unwrap_or_else(PoisonError::into_inner);
        // A deleted folder can still be held open, but takes no files.
        let is_there = |dir: &Arc<Dir>| {
            dir.dir_metadata()
                .is_ok_and(|metadata| metadata.nlink() > 0)
        };
        if let Some(dir) = open.as_ref().filter(|dir| is_there(dir)) {
            return Ok(dir.clone());
        }
        if self.is_ours {
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(FOLDER_MODE)
                .create(&self.root)?;
        }
        // The workspace itself must not be a link, because a link could lead into another
        // workspace.
        let directory = flags(OFlags::DIRECTORY | OFlags::NOFOLLOW);
        let folder = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(directory)
            .open(&self.root)?;
        let dir = Arc::new(Dir::from_std_file(folder));
        *open = Some(dir.clone());
        Ok(dir)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Counted>> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Workspaces of the same folder are equal.
impl PartialEq for Workspace {
    fn eq(&self, other: &Self) -> bool {
        self.root == other.root
    }
}

impl Eq for Workspace {}

fn flags(flags: OFlags) -> i32 {
    flags.bits().cast_signed()
}

fn split(path: &Path) -> Result<(&Path, &OsStr), FileError> {
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => Ok((folder, name)),
        _ => Err(FileError::IsFolder),
    }
}

fn fill(folder: &Dir, name: &str, content: &[u8], labels: Labels) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(FILE_MODE);
    let mut file = folder.open_with(name, &options)?;
    labels::set(&file, labels);
    file.write_all(content)?;
    // A power cut must leave the old or the new text, too.
    file.sync_data()
}

fn regular(metadata: &Metadata) -> Result<(), FileError> {
    match EntryKind::of(metadata) {
        EntryKind::File if metadata.nlink() > 1 => Err(FileError::HardLink),
        EntryKind::File => Ok(()),
        EntryKind::Folder => Err(FileError::IsFolder),
        EntryKind::Link => Err(FileError::Link),
        EntryKind::Other => Err(FileError::NotAFile(kind_of(metadata))),
    }
}

fn kind_of(metadata: &Metadata) -> &'static str {
    let file_type = metadata.file_type();
    if file_type.is_fifo() {
        "a pipe"
    } else if file_type.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

/// The count of the file to be replaced. A folder, link or device there is an error.
fn replaceable(folder: &Dir, name: &OsStr) -> Result<u64, FileError> {
    match folder.symlink_metadata(name) {
        Ok(metadata) => regular(&metadata).map(|()| cost(&metadata)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests;
