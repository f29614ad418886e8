//! An archive of another system's folder, made by its own backup or by a person: `.tar`, `.tar.gz`
//! and `.zip`.
//!
//! An archive may come from strangers, so reading trusts nothing: plain files and folders only,
//! names inside the target only, and bounds on everything, counted while unpacking.

mod zip;

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tar::{Archive, EntryType};

use super::System;
use crate::metered::{self, Allowance, Counted, Metered};

/// Size of an unpacked archive.
const MAX_BYTES: u64 = 8 * 1024 * 1024 * 1024;
const MAX_ENTRIES: usize = 200_000;
const MAX_DEPTH: usize = 40;
/// Folders of an archive searched for a home.
const MOST_FOLDERS: usize = 2_000;

/// The form of an archive, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Tar,
    TarGz,
    Zip,
}

/// Unpacks a file into an empty folder. Returns the names of left-out entries, such as links and
/// devices; the error is for people.
pub(super) fn unpack(file: &Path, into: &Path) -> Result<Vec<String>, String> {
    let unreadable = |error: io::Error| match metered::refusal(&error) {
        Some(reason) => reason.to_owned(),
        None => format!("it cannot be unpacked: {error}"),
    };
    let mut opened = File::open(file).map_err(unreadable)?;
    let form = form(&mut opened).map_err(unreadable)?;
    let Some(form) = form else {
        return Err("it is neither a folder nor an archive (.tar, .tar.gz, .zip)".to_owned());
    };
    let mut target = Target {
        folder: into,
        entries: 0,
        left_out: Vec::new(),
    };
    let done = match form {
        Form::Tar => tar(opened, false, &mut target),
        Form::TarGz => tar(opened, true, &mut target),
        Form::Zip => zip::unpack(opened, MAX_BYTES, &mut target),
    };
    match done {
        Ok(()) => Ok(target.left_out),
        Err(Bad::Source(error)) => Err(unreadable(error)),
        Err(Bad::Refused(reason)) => Err(reason),
        Err(Bad::Target(error)) => Err(format!("it cannot be unpacked here: {error}")),
    }
}

/// Why unpacking ended early.
#[derive(Debug)]
enum Bad {
    Source(io::Error),
    Refused(String),
    Target(io::Error),
}

fn refused<T>(reason: impl Into<String>) -> Result<T, Bad> {
    Err(Bad::Refused(reason.into()))
}

fn form(file: &mut File) -> io::Result<Option<Form>> {
    /// A tar has its mark behind the name of its first entry.
    const TAR_MARK: std::ops::Range<usize> = 257..262;
    let mut start = Vec::new();
    file.by_ref()
        .take(TAR_MARK.end as u64)
        .read_to_end(&mut start)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(match start.as_slice() {
        [0x1f, 0x8b, ..] => Some(Form::TarGz),
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Some(Form::Zip),
        start if start.get(TAR_MARK) == Some(b"ustar") => Some(Form::Tar),
        _ => None,
    })
}

fn tar(file: File, is_packed: bool, target: &mut Target<'_>) -> Result<(), Bad> {
    let counted = Counted::new(BufReader::new(file));
    let allowance = Allowance::new(MAX_BYTES);
    if !is_packed {
        return walk(counted, &allowance, target);
    }
    let allowance = allowance.without_bombs(counted.count());
    walk(MultiGzDecoder::new(counted), &allowance, target)
}

fn walk(reader: impl Read, allowance: &Allowance, target: &mut Target<'_>) -> Result<(), Bad> {
    let mut archive = Archive::new(Metered::new(reader, allowance));
    for entry in archive.entries().map_err(Bad::Source)? {
        let mut entry = entry.map_err(Bad::Source)?;
        let name = entry.path().map_err(Bad::Source)?.into_owned();
        let kind = match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => Kind::File,
            EntryType::Directory => Kind::Folder,
            // Facts about the whole archive.
            EntryType::XGlobalHeader => continue,
            _ => Kind::Other,
        };
        if allowance.grant(entry.size()).is_none() {
            return refused("it would unpack to more than 8 GiB");
        }
        target.put(&name, kind, &mut entry)?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
    Other,
}

/// The folder for an unpacked archive.
struct Target<'a> {
    folder: &'a Path,
    entries: usize,
    left_out: Vec<String>,
}

impl Target<'_> {
    fn put(&mut self, name: &Path, kind: Kind, content: &mut dyn Read) -> Result<(), Bad> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return refused(format!("it holds more than {MAX_ENTRIES} files"));
        }
        let inside = inside(name)?;
        if inside.as_os_str().is_empty() {
            return Ok(());
        }
        let path = self.folder.join(&inside);
        let around = match kind {
            Kind::Folder => Some(path.as_path()),
            Kind::File => path.parent(),
            Kind::Other => {
                self.left_out.push(inside.display().to_string());
                return Ok(());
            }
        };
        let made = around.map_or(Ok(()), folder).and_then(|()| match kind {
            Kind::Folder => Ok(None),
            _ => new_file(&path).map(Some),
        });
        match made {
            Ok(None) => Ok(()),
            Ok(Some(mut file)) => pour(content, &mut file),
            // A second entry of this name, or a file where other entries have a folder.
            Err(error) if is_taken(&error) => {
                self.left_out.push(inside.display().to_string());
                Ok(())
            }
            Err(error) => Err(Bad::Target(error)),
        }
    }
}

fn is_taken(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory
    )
}

fn folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn new_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

/// Copies, and tells a failed read from a failed write.
fn pour(from: &mut dyn Read, to: &mut File) -> Result<(), Bad> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => io::Write::write_all(to, &buffer[..read]).map_err(Bad::Target)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Bad::Source(error)),
        }
    }
}

/// A name inside the archive. Others were made to reach further.
fn inside(name: &Path) -> Result<PathBuf, Bad> {
    let shown = || name.display().to_string().replace(char::is_control, " ");
    let mut inside = PathBuf::new();
    for part in name.components() {
        match part {
            Component::Normal(part) => inside.push(part),
            Component::CurDir => {}
            _ => return refused(format!("`{}` in it leads out of it", shown())),
        }
    }
    match inside.components().count() > MAX_DEPTH {
        true => refused(format!("`{}` in it is too deep", shown())),
        false => Ok(inside),
    }
}

/// The shallowest folder below `folder` that looks like a home of the system; else `folder` itself.
pub(super) fn home_in(folder: &Path, system: System) -> PathBuf {
    let found = with_one_of(folder, system.marks());
    found.unwrap_or_else(|| folder.to_owned())
}

/// The shallowest folder with any of these entries.
pub(super) fn with_one_of(folder: &Path, marks: &[&str]) -> Option<PathBuf> {
    let mut open = VecDeque::from([folder.to_owned()]);
    let mut looked_at = 0;
    while let Some(next) = open.pop_front() {
        if marks.iter().any(|mark| next.join(mark).exists()) {
            return Some(next);
        }
        looked_at += 1;
        if looked_at > MOST_FOLDERS {
            return None;
        }
        let entries = fs::read_dir(&next).into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect();
        folders.sort();
        open.extend(folders);
    }
    None
}

#[cfg(test)]
mod tests;
