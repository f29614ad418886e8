//! A folder of a source, for reading: links, pipes and devices are not opened, and paths outside
//! the folder are not reached.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt};
use rustix::fs::OFlags;

/// Entries read from a folder.
const MOST_ENTRIES: usize = 50_000;

#[derive(Debug)]
pub(super) struct Tree {
    dir: Dir,
    path: PathBuf,
    /// The path for people: the archive's path, for unpacked files.
    shown: PathBuf,
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: OsString,
    pub(super) what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    File,
    Folder,
    /// A link, a pipe, a device.
    Other,
}

impl Tree {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let path = std::fs::canonicalize(path)?;
        let shown = path.clone();
        Self::shown_as(path, shown)
    }

    /// A folder known to people by another path.
    pub(super) fn shown_as(path: PathBuf, shown: PathBuf) -> io::Result<Self> {
        let dir = Dir::open_ambient_dir(&path, ambient_authority())?;
        Ok(Tree { dir, path, shown })
    }

    /// A folder inside.
    pub(super) fn below(&self, path: &Path) -> io::Result<Self> {
        let dir = self.dir.open_dir(path)?;
        let (shown, path) = (self.shown.join(path), self.path.join(path));
        Ok(Tree { dir, path, shown })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn shown(&self) -> &Path {
        &self.shown
    }

    /// None if nothing is there.
    pub(super) fn what(&self, path: &Path) -> io::Result<Option<What>> {
        match self.dir.symlink_metadata(path) {
            Ok(metadata) if metadata.is_file() => Ok(Some(What::File)),
            Ok(metadata) if metadata.is_dir() => Ok(Some(What::Folder)),
            Ok(_) => Ok(Some(What::Other)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The entries of a folder by name, empty if there is no such folder.
    pub(super) fn entries(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let path = match path.as_os_str().is_empty() {
            true => Path::new("."),
            false => path,
        };
        let listed = match self.dir.read_dir(path) {
            Err(error) if is_missing(&error) => return Ok(Vec::new()),
            listed => listed?,
        };
        let mut entries = Vec::new();
        for entry in listed.take(MOST_ENTRIES) {
            let entry = entry?;
            let kind = entry.file_type()?;
            let what = match () {
                () if kind.is_file() => What::File,
                () if kind.is_dir() => What::Folder,
                () => What::Other,
            };
            let name = entry.file_name();
            entries.push(Entry { name, what });
        }
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    /// Opens a regular file. A pipe that took its place meanwhile is not waited for.
    pub(super) fn file(&self, path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
        options.read(true);
        options.custom_flags(i32::try_from(flags.bits()).unwrap_or(0));
        let file = self.dir.open_with(path, &options)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        Ok(file)
    }

    /// The content of a regular file, up to a limit.
    pub(super) fn bytes(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let file = self.file(path)?;
        let size = file.metadata()?.len();
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(io::Error::other(format!(
                "it has {size} bytes, and at most {most} are read"
            )));
        }
        Ok(bytes)
    }
}

pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
