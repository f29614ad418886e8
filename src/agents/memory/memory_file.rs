//! MEMORY.md, changed by its agent: whole or not at all, within a bound, and with the versions
//! before kept.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::index::{MEMORY_FILE, NOTES_FOLDER};
use crate::agents::MAX_FILE_BYTES;
use crate::domain::UserError;

/// Earlier versions on the disk; the oldest is deleted first.
pub const MOST_VERSIONS: usize = 20;
/// Size of a readable file. An operator may have made the file longer than an agent can.
const MAX_READ_BYTES: u64 = 1024 * 1024;
/// How often a change is made anew because a person saved the file meanwhile.
const MOST_TRIES: usize = 5;
/// Where they are, in the folder of daily notes.
const VERSIONS_FOLDER: &str = ".versions";
/// The form of a version's name. Names sort by time.
const VERSION_NAME: &str = "%Y%m%dT%H%M%S%3fZ";

/// A change of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Adds a text at the end.
    Add(String),
    /// The old text must be there exactly once.
    Replace {
        old: String,
        new: String,
    },
    Remove(String),
    /// Replaces the whole text.
    Whole(String),
}

/// An earlier MEMORY.md.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The argument of `restore`.
    pub name: String,
    pub bytes: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// Shown to the person unchanged.
    #[error("{0}")]
    Refused(#[from] UserError),
    #[error("MEMORY.md could not be written: {0}")]
    Disk(#[from] io::Error),
}

/// The file's text after the edit. Pure.
pub(super) fn apply(current: &str, edit: &Edit) -> Result<String, UserError> {
    let edited = match edit {
        Edit::Add(text) => add(current, text)?,
        Edit::Replace { old, new } => exchange(current, old, new)?,
        Edit::Remove(text) => exchange(current, text, "")?,
        Edit::Whole(text) => text.clone(),
    };
    // An overlong file, made by an operator, can still be made shorter.
    if edited.len() > MAX_FILE_BYTES && edited.len() >= current.len() {
        return Err(UserError::new(too_long(edited.len())));
    }
    Ok(edited)
}

fn add(current: &str, text: &str) -> Result<String, UserError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(UserError::new("There is nothing to add."));
    }
    let kept = current.trim_end();
    Ok(if kept.is_empty() {
        format!("{text}\n")
    } else {
        format!("{kept}\n{text}\n")
    })
}

fn exchange(current: &str, old: &str, new: &str) -> Result<String, UserError> {
    if old.trim().is_empty() {
        return Err(UserError::new("Say which text of MEMORY.md is meant."));
    }
    match current.matches(old).count() {
        0 => Err(UserError::new(
            "MEMORY.md does not have that text. Repeat it exactly as it stands there.",
        )),
        1 => Ok(tidied(&current.replacen(old, new, 1))),
        count => Err(UserError::new(format!(
            "MEMORY.md has that text {count} times. Repeat more of what stands around it."
        ))),
    }
}

/// A removed line leaves no hole behind.
fn tidied(text: &str) -> String {
    let mut tidy = String::new();
    for line in text.lines() {
        if !(line.trim().is_empty() && (tidy.is_empty() || tidy.ends_with("\n\n"))) {
            tidy.push_str(line.trim_end());
            tidy.push('\n');
        }
    }
    let kept = tidy.trim_end();
    if kept.is_empty() {
        String::new()
    } else {
        format!("{kept}\n")
    }
}

/// Changes the file in an agent's folder; blocks on the disk.
pub(super) fn edit(folder: &Path, edit: &Edit, now: DateTime<Utc>) -> Result<usize, EditError> {
    change(folder, now, |current| {
        apply(current, edit).map_err(EditError::from)
    })
}

/// Makes an earlier version the file again; the present text becomes a version too.
pub(super) fn restore(folder: &Path, name: &str, now: DateTime<Utc>) -> Result<usize, EditError> {
    let text = version(folder, name)?;
    change(folder, now, |_| Ok(text.clone()))
}

/// The text of an earlier version.
pub(super) fn version(folder: &Path, name: &str) -> Result<String, EditError> {
    let known = versions(folder)?;
    if !known.iter().any(|version| version.name == name) {
        return Err(UserError::new(format!(
            "There is no version {name}. `parlor memory versions` lists them."
        ))
        .into());
    }
    Ok(fs::read_to_string(version_path(folder, name))?)
}

/// The newest first.
pub(super) fn versions(folder: &Path) -> io::Result<Vec<Version>> {
    let entries = match fs::read_dir(versions_folder(folder)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut versions = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry
            .file_name()
            .into_string()
            .ok()
            .and_then(|name| name.strip_suffix(".md").map(str::to_owned));
        if let Some(name) = name.filter(|name| !name.starts_with('.')) {
            versions.push(Version {
                name,
                bytes: entry.metadata()?.len(),
            });
        }
    }
    versions.sort_by(|one, other| other.name.cmp(&one.name));
    Ok(versions)
}

/// Size of the new file. Two edits at once, also of two processes, wait for each other.
///
/// People change the file too, with editors that know no lock. After such a change, the edit is
/// made anew to the new text.
fn change(
    folder: &Path,
    now: DateTime<Utc>,
    make: impl Fn(&str) -> Result<String, EditError>,
) -> Result<usize, EditError> {
    create_folder(&versions_folder(folder))?;
    let lock = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(versions_folder(folder).join(".lock"))?;
    lock.lock()?;
    let path = file_path(folder);
    for _ in 0..MOST_TRIES {
        let current = read(&path)?;
        let new = make(&current)?;
        if new == current {
            return Ok(new.len());
        }
        if !current.is_empty() {
            keep_version(folder, &current, now)?;
        }
        let beside = write_beside(&path, new.as_bytes())?;
        if read(&path)? == current {
            put_in_place(&beside, &path)?;
            return Ok(new.len());
        }
        fs::remove_file(&beside)?;
    }
    Err(UserError::new(
        "Somebody else is changing MEMORY.md right now. Nothing was changed; try again later.",
    )
    .into())
}

/// The file's text; empty without a file.
fn read(path: &Path) -> Result<String, EditError> {
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        metadata => metadata?,
    };
    // Opening a pipe waits for its other end, perhaps for ever.
    if !metadata.is_file() {
        return Err(UserError::new(
            "MEMORY.md is no regular file, so it is left alone. Nothing was changed.",
        )
        .into());
    }
    if metadata.len() > MAX_READ_BYTES {
        let most = MAX_READ_BYTES / 1024;
        let told = format!(
            "MEMORY.md has more than {most} KiB. An operator must make it shorter first. Nothing was changed."
        );
        return Err(UserError::new(told).into());
    }
    let mut text = String::new();
    File::open(path)?
        .take(MAX_READ_BYTES)
        .read_to_string(&mut text)?;
    Ok(text)
}

/// The target of a link, because the operator's file should stay in its place.
fn file_path(folder: &Path) -> PathBuf {
    let path = folder.join(MEMORY_FILE);
    fs::canonicalize(&path).unwrap_or(path)
}

fn keep_version(folder: &Path, text: &str, now: DateTime<Utc>) -> io::Result<()> {
    let mut moment = now;
    // Names must ascend, also with two edits in a millisecond or a clock set back.
    let newest = versions(folder)?
        .into_iter()
        .next()
        .map(|version| version.name);
    let mut name = moment.format(VERSION_NAME).to_string();
    while newest.as_ref().is_some_and(|newest| *newest >= name) {
        let after = newest
            .as_deref()
            .and_then(|newest| chrono::NaiveDateTime::parse_from_str(newest, VERSION_NAME).ok());
        moment = after.map_or(moment, |after| after.and_utc()) + chrono::Duration::milliseconds(1);
        name = moment.format(VERSION_NAME).to_string();
        if after.is_none() {
            break;
        }
    }
    write_whole(&version_path(folder, &name), text.as_bytes())?;
    for old in versions(folder)?.iter().skip(MOST_VERSIONS) {
        fs::remove_file(version_path(folder, &old.name))?;
    }
    Ok(())
}

/// A reader at the same time, or after a power cut, finds the old text or the new text, never a
/// half.
fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    put_in_place(&write_beside(path, content)?, path)
}

fn write_beside(path: &Path, content: &[u8]) -> io::Result<PathBuf> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let beside = folder.join(format!(".{name}.new"));
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)?;
    file.write_all(content)?;
    if let Ok(metadata) = fs::metadata(path) {
        file.set_permissions(metadata.permissions())?;
    }
    file.sync_all()?;
    Ok(beside)
}

fn put_in_place(beside: &Path, path: &Path) -> io::Result<()> {
    fs::rename(beside, path)?;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

fn versions_folder(folder: &Path) -> PathBuf {
    folder.join(NOTES_FOLDER).join(VERSIONS_FOLDER)
}

fn version_path(folder: &Path, name: &str) -> PathBuf {
    versions_folder(folder).join(format!("{name}.md"))
}

/// Creates a folder for its owner only, like everything an agent keeps.
pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

fn too_long(bytes: usize) -> String {
    format!(
        "MEMORY.md would have {} KiB, and {} KiB are the most. Remove or shorten something first; details belong into daily notes.",
        bytes.div_ceil(1024),
        MAX_FILE_BYTES / 1024
    )
}

#[cfg(test)]
mod tests;
