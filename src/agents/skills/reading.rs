//! Reads a skill's text and the files in its folder, for an agent with the skill.

use std::io::{self, Read};
use std::path::Path;

use cap_std::fs::Dir;

use super::shelf::{self, FILE_NAME};
use super::{Skills, format, shelf_of};
use crate::agents::Agent;
use crate::domain::nearest;

/// A larger file is not read.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Files in the list beside a skill's text.
const MOST_LISTED: usize = 100;
/// Depth of nested folders in the list.
const MAX_DEPTH: usize = 4;

/// A skill's text, or a file in its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    pub text: String,
    /// Other files in the skill's folder; empty for a file.
    pub files: Vec<String>,
}

/// The reason of a failed read, in words for the reader.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("You have no skills.")]
    None,
    #[error("You have no skill `{name}`. {advice}")]
    NotYours { name: String, advice: String },
    #[error("The skill `{skill}` has no file `{file}`. {advice}")]
    NoFile {
        skill: String,
        file: String,
        advice: String,
    },
    #[error("`{file}` of the skill `{skill}` cannot be read: {reason}.")]
    Unreadable {
        skill: String,
        file: String,
        reason: String,
    },
}

/// The text of an agent's skill, or a file inside its folder. Blocks on the disk.
pub(crate) fn read(agent: &Agent, name: &str, file: Option<&str>) -> Result<Content, ReadError> {
    let skills = Skills::load(agent);
    let skill = skills.get(name).ok_or_else(|| not_yours(&skills, name))?;
    let unreadable = |file: &str, error: &io::Error| ReadError::Unreadable {
        skill: name.to_owned(),
        file: file.to_owned(),
        reason: reason(error),
    };
    let shelf = shelf_of(agent, skill.origin);
    let dir = shelf::open(&shelf)
        .and_then(|dir| dir.open_dir(name))
        .map_err(|error| unreadable(FILE_NAME, &error))?;
    match file {
        None | Some(FILE_NAME) => {
            let text = text(&dir, FILE_NAME).map_err(|error| unreadable(FILE_NAME, &error))?;
            Ok(Content {
                text: format::body(&text).to_owned(),
                files: files(&dir),
            })
        }
        Some(file) => match text(&dir, file) {
            Ok(text) => Ok(Content {
                text,
                files: Vec::new(),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(no_file(&dir, name, file)),
            Err(error) => Err(unreadable(file, &error)),
        },
    }
}

fn not_yours(skills: &Skills, name: &str) -> ReadError {
    let names = skills.names();
    let advice = match nearest(name, names.iter().copied()) {
        _ if names.is_empty() => return ReadError::None,
        Some(near) => format!("Did you mean `{near}`?"),
        None => format!("You have: {}.", names.join(", ")),
    };
    ReadError::NotYours {
        name: name.chars().take(64).collect(),
        advice,
    }
}

fn no_file(dir: &Dir, skill: &str, file: &str) -> ReadError {
    let there = files(dir);
    let advice = if there.is_empty() {
        "It has no files.".to_owned()
    } else {
        format!("It has: {}.", there.join(", "))
    };
    ReadError::NoFile {
        skill: skill.to_owned(),
        file: file.to_owned(),
        advice,
    }
}

fn text(dir: &Dir, file: &str) -> io::Result<String> {
    let metadata = dir.metadata(file)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(io::Error::other(format!(
            "it is larger than {} KiB",
            MAX_FILE_BYTES / 1024
        )));
    }
    let mut bytes = Vec::new();
    dir.open(file)?
        .take(MAX_FILE_BYTES)
        .read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not text"))
}

/// Replaces the system's error for a path out of the folder, because the error is about the
/// sandbox, not about the file.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "it is outside the skill's folder, or nobody may read it".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Regular files below a folder but `SKILL.md`, by name. Links are not followed.
fn files(dir: &Dir) -> Vec<String> {
    let mut found = Vec::new();
    collect(dir, Path::new(""), 0, &mut found);
    found.sort();
    found.truncate(MOST_LISTED);
    found
}

fn collect(dir: &Dir, within: &Path, depth: usize, found: &mut Vec<String>) {
    let Ok(entries) = dir.entries() else { return };
    for entry in entries.flatten() {
        let path = within.join(entry.file_name());
        let is_the_skill = path == Path::new(FILE_NAME);
        match entry.file_type() {
            Ok(kind) if kind.is_file() && !is_the_skill => found.push(path.display().to_string()),
            Ok(kind) if kind.is_dir() && depth < MAX_DEPTH && found.len() < MOST_LISTED => {
                if let Ok(inner) = entry.open_dir() {
                    collect(&inner, &path, depth + 1, found);
                }
            }
            _ => {}
        }
    }
}
