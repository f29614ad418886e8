//! Files of people, moved into the workspace. No file takes the place of another, and the files of
//! guests have a share of the workspace.

use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};

use super::{Counted, EntryKind, FILE_MODE, FileError, Workspace, quota, split};
use crate::agents::sight::GUESTS;

/// Files of guests may take a fraction of the workspace: this is its denominator.
const SHARE_OF_GUESTS: u64 = 20;
/// Names tried for a file.
const MOST_NAMES: u32 = 1000;

impl Workspace {
    /// Moves a file of the gateway's into the workspace and returns its path: the wanted path, or a
    /// path with a number if another file has the name. The very same file is kept once.
    pub fn take_in(&self, from: &Path, to: &Path) -> Result<PathBuf, FileError> {
        let mut counted = self.lock();
        let cost = quota::cost_of(std::fs::metadata(from)?.len());
        self.make_room(&mut counted, cost + self.cost_of_folders(to)?, 0)?;
        self.make_folders(&mut counted, to)?;
        let (folder, name) = self.parent(to)?;
        let (source_folder, source_name) = split(from)?;
        let source = Dir::open_ambient_dir(source_folder, cap_std::ambient_authority())?;
        let Free::Name(name) = free_name(&folder, Path::new(name), from)? else {
            std::fs::remove_file(from)?;
            return Ok(to.to_owned());
        };
        if let Err(error) = source.rename(source_name, &folder, &name) {
            if error.kind() != ErrorKind::CrossesDevices {
                // The empty file only kept the name for the moved file.
                drop(folder.remove_file(&name));
                return Err(error.into());
            }
            source.copy(source_name, &folder, &name)?;
            source.remove_file(source_name)?;
        }
        self.note(&mut counted, cost, 0);
        Ok(to.with_file_name(name))
    }

    /// Makes room for a guest's file: the oldest files of guests go, and no others. An error for a
    /// file larger than their share.
    pub fn make_room_for_guest(&self, bytes: u64) -> Result<(), FileError> {
        let share = self.quota_bytes / SHARE_OF_GUESTS;
        let cost = quota::cost_of(bytes);
        if cost > share {
            return Err(FileError::TooLarge {
                bytes,
                max_bytes: share,
            });
        }
        let mut counted = self.lock();
        let mut sent = self.sent_by_guests()?;
        sent.sort_by_key(|file| file.modified);
        let mut used: u64 = sent.iter().map(|file| file.cost).sum();
        for file in sent {
            if used + cost <= share {
                break;
            }
            self.drop_file(&mut counted, &file)?;
            used = used.saturating_sub(file.cost);
        }
        Ok(())
    }

    fn sent_by_guests(&self) -> Result<Vec<SentFile>, FileError> {
        let mut sent = Vec::new();
        let walked = self.walk(Path::new("inbox"), 3, |entry| {
            let is_of_guests = entry.path.iter().nth(2).is_some_and(|step| step == GUESTS);
            if is_of_guests && entry.kind == EntryKind::File {
                sent.push(SentFile {
                    cost: quota::cost_of(entry.bytes),
                    path: entry.path,
                    modified: entry.modified,
                });
            }
            ControlFlow::Continue(())
        });
        match walked {
            Ok(()) | Err(FileError::NotFound) => Ok(sent),
            Err(error) => Err(error),
        }
    }

    fn drop_file(&self, counted: &mut Option<Counted>, file: &SentFile) -> Result<(), FileError> {
        let (folder, name) = self.parent(&file.path)?;
        folder.remove_file(name)?;
        self.note(counted, 0, file.cost);
        Ok(())
    }
}

/// A file that a guest sent.
struct SentFile {
    path: PathBuf,
    cost: u64,
    modified: Option<SystemTime>,
}

enum Free {
    /// An empty file has been made under this name.
    Name(OsString),
    /// The file is there already, because its message was looked at before.
    SameFile,
}

fn free_name(folder: &Dir, wanted: &Path, from: &Path) -> Result<Free, FileError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(FILE_MODE);
    for number in 1..=MOST_NAMES {
        let name = numbered(wanted, number);
        match folder.open_with(&name, &options) {
            Ok(_) => return Ok(Free::Name(name)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
        }
        if number == 1 && is_same(folder, &name, from) {
            return Ok(Free::SameFile);
        }
    }
    Err(FileError::Failed("too many files have this name".into()))
}

/// `report.pdf`, `report-2.pdf`, …
fn numbered(wanted: &Path, number: u32) -> OsString {
    if number == 1 {
        return wanted.as_os_str().to_owned();
    }
    let mut name = wanted.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(ending) = wanted.extension() {
        name.push(".");
        name.push(ending);
    }
    name
}

/// Whether both files have the same bytes. An unreadable file is another file.
fn is_same(folder: &Dir, name: &OsString, from: &Path) -> bool {
    let is_file = |name: &OsString| {
        folder
            .symlink_metadata(name)
            .is_ok_and(|metadata| metadata.is_file())
    };
    if !is_file(name) {
        return false;
    }
    let (Ok(mut there), Ok(mut new)) = (folder.open(name), std::fs::File::open(from)) else {
        return false;
    };
    let (mut one, mut other) = ([0; 16 * 1024], [0; 16 * 1024]);
    loop {
        match (fill(&mut there, &mut one), fill(&mut new, &mut other)) {
            (Ok(0), Ok(0)) => return true,
            (Ok(read), Ok(same)) if read == same && one[..read] == other[..same] => {}
            _ => return false,
        }
    }
}

/// Reads as many bytes as the file has, up to the buffer's length.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}
