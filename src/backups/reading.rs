//! Reads an archive from its beginning to its end without any trust: plain files and folders only,
//! names inside the home only, bounds on everything, and a checksum for every byte.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use tar::{Archive, Entry, EntryType};

use super::archive::{
    FORM, HEAD, Head, MAX_ENTRIES, MAX_HEAD_BYTES, MAX_SUMS_BYTES, SUMS, Summed, Sums, inside,
    read_sums,
};
use super::error::BackupError;
use super::names::is_foreign;
use crate::metered::{self, Allowance, Metered};

/// A piece of an archive, for its reader.
pub(super) enum Item<'a> {
    /// Always the first.
    Head(&'a Head),
    Folder(&'a Path),
    File {
        path: &'a Path,
        mode: u32,
        mtime: u64,
        content: &'a mut dyn Read,
    },
}

impl Item<'_> {
    /// Only reads. The checksum is made by the reader.
    pub(super) fn drain(self) -> Result<(), Stop> {
        match self {
            Item::Head(_) | Item::Folder(_) => Ok(()),
            Item::File { content, .. } => pour(content, &mut io::sink()),
        }
    }
}

/// Why the reading of an archive ended early.
#[derive(Debug)]
pub(super) enum Stop {
    /// The archive cannot be read on.
    Source(io::Error),
    /// The archive does not fit here.
    Refused(String),
    /// The other end failed.
    Target(BackupError),
}

/// Copies, and tells a failed read from a failed write.
pub(super) fn pour(from: &mut dyn Read, to: &mut dyn Write) -> Result<(), Stop> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Stop::Source(error)),
        };
        let written = to.write_all(&buffer[..read]);
        written.map_err(|error| Stop::Target(BackupError::disk(Path::new("the copy"))(error)))?;
    }
}

/// A complete archive.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) head: Head,
    pub(super) sums: Sums,
}

/// Reads an archive whose files have at most so many bytes together.
pub(super) fn read(
    path: &Path,
    most_bytes: u64,
    each: &mut dyn FnMut(Item<'_>) -> Result<(), Stop>,
) -> Result<Whole, BackupError> {
    let file = File::open(path).map_err(BackupError::disk(path))?;
    let stopped = |stop| match stop {
        Stop::Source(error) => BackupError::archive(path, unreadable(&error)),
        Stop::Refused(reason) => BackupError::archive(path, reason),
        Stop::Target(error) => error,
    };
    walk(GzDecoder::new(BufReader::new(file)), most_bytes, each).map_err(stopped)
}

fn unreadable(error: &io::Error) -> String {
    match metered::refusal(error) {
        Some(reason) => reason.to_owned(),
        None => format!("this is no backup, or it is damaged: {error}"),
    }
}

fn refused<T>(reason: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Refused(reason.into()))
}

fn walk(
    reader: impl Read,
    most_bytes: u64,
    each: &mut dyn FnMut(Item<'_>) -> Result<(), Stop>,
) -> Result<Whole, Stop> {
    let allowance = Allowance::new(most_bytes);
    let mut archive = Archive::new(Metered::new(reader, &allowance));
    let mut reading = Reading {
        each,
        head: None,
        found: Sums::new(),
        folders: HashSet::new(),
        sums: None,
    };
    let mut count = 0;
    for entry in archive.entries().map_err(Stop::Source)? {
        let mut entry = entry.map_err(Stop::Source)?;
        count += 1;
        if count > MAX_ENTRIES {
            return refused(format!("it holds more than {MAX_ENTRIES} files"));
        }
        if allowance.grant(entry.size()).is_none() {
            return refused("it would not fit on this disk");
        }
        reading.entry(&mut entry)?;
    }
    // The end has the checksum of the compression.
    let mut rest = archive.into_inner();
    io::copy(&mut rest, &mut io::sink()).map_err(Stop::Source)?;
    reading.finish()
}

struct Reading<'a> {
    each: &'a mut dyn FnMut(Item<'_>) -> Result<(), Stop>,
    head: Option<Head>,
    /// Checksums of the files read so far.
    found: Sums,
    folders: HashSet<PathBuf>,
    /// The checksums at the end of the archive.
    sums: Option<Sums>,
}

impl Reading<'_> {
    fn entry(&mut self, entry: &mut Entry<'_, impl Read>) -> Result<(), Stop> {
        let path = entry.path().map_err(Stop::Source)?.into_owned();
        let kind = entry.header().entry_type();
        if !matches!(kind, EntryType::Regular | EntryType::Directory) {
            return refused(format!(
                "`{}` is a link or something else that is no plain file",
                path.display()
            ));
        }
        if self.sums.is_some() {
            return refused(format!("`{}` stands behind its checksums", path.display()));
        }
        let Some(head) = &self.head else {
            return self.read_head(&path, entry);
        };
        if head.form != FORM {
            return refused(format!(
                "it has form {}, and this version reads form {FORM}",
                head.form
            ));
        }
        match path.to_str() {
            Some(SUMS) => self.read_sums(entry),
            _ if kind == EntryType::Directory => self.folder(&path),
            _ => self.file(path, entry),
        }
    }

    fn read_head(&mut self, path: &Path, entry: &mut impl Read) -> Result<(), Stop> {
        if path != Path::new(HEAD) {
            return refused(format!("this is no backup: it does not begin with {HEAD}"));
        }
        let (bytes, sum) = bounded(entry, MAX_HEAD_BYTES, HEAD)?;
        let head: Head = match serde_json::from_slice(&bytes) {
            Ok(head) => head,
            Err(error) => return refused(format!("its {HEAD} cannot be read: {error}")),
        };
        (self.each)(Item::Head(&head))?;
        self.found.insert(path.to_owned(), sum);
        self.head = Some(head);
        Ok(())
    }

    fn read_sums(&mut self, entry: &mut impl Read) -> Result<(), Stop> {
        let (bytes, _) = bounded(entry, MAX_SUMS_BYTES, SUMS)?;
        match read_sums(&bytes) {
            Some(sums) => self.sums = Some(sums),
            None => return refused(format!("its {SUMS} cannot be read")),
        }
        Ok(())
    }

    fn folder(&mut self, path: &Path) -> Result<(), Stop> {
        let Some(path) = own(path)? else {
            return Ok(());
        };
        if self.folders.insert(path.clone()) {
            (self.each)(Item::Folder(&path))?;
        }
        Ok(())
    }

    fn file(&mut self, name: PathBuf, entry: &mut Entry<'_, impl Read>) -> Result<(), Stop> {
        let Some(path) = own(&name)? else {
            return refused("`home` must be a folder");
        };
        if self.found.contains_key(&name) {
            return refused(format!("`{}` is in it twice", name.display()));
        }
        let mode = entry.header().mode().map_err(Stop::Source)?;
        let mtime = entry.header().mtime().map_err(Stop::Source)?;
        let mut content = Summed::new(entry);
        (self.each)(Item::File {
            path: &path,
            mode,
            mtime,
            content: &mut content,
        })?;
        let (sum, _) = content.finish();
        self.found.insert(name, sum);
        Ok(())
    }

    fn finish(self) -> Result<Whole, Stop> {
        let (Some(head), Some(sums)) = (self.head, self.sums) else {
            return refused("it has no checksums, so it is no backup, or its end is missing");
        };
        let differs = |(name, sum): &(&PathBuf, &String)| sums.get(*name) != Some(sum);
        if let Some((name, _)) = self.found.iter().find(differs) {
            return refused(format!(
                "`{}` is damaged: its checksum differs",
                name.display()
            ));
        }
        if let Some(missing) = sums.keys().find(|name| !self.found.contains_key(*name)) {
            return refused(format!("`{}` is missing in it", missing.display()));
        }
        Ok(Whole { head, sums })
    }
}

/// The path inside the home. None for the home itself.
fn own(name: &Path) -> Result<Option<PathBuf>, Stop> {
    let path = inside(name).map_err(Stop::Refused)?;
    if path.as_deref().is_some_and(is_foreign) {
        return refused(format!(
            "`{}` does not belong into a backup",
            name.display()
        ));
    }
    Ok(path)
}

/// A whole text of ours, with its checksum.
fn bounded(entry: &mut impl Read, most: u64, name: &str) -> Result<(Vec<u8>, String), Stop> {
    let mut content = Summed::new(entry.take(most + 1));
    let mut bytes = Vec::new();
    content.read_to_end(&mut bytes).map_err(Stop::Source)?;
    if bytes.len() as u64 > most {
        return refused(format!("its {name} is larger than {} KiB", most / 1024));
    }
    Ok((bytes, content.finish().0))
}
