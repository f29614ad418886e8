//! `file_edit`: replaces a piece of text, found exactly once.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{Failure, MAX_FILE_BYTES, PATHS, failed, find, reach, run};
use crate::agents::{FileError, FileView, Want};
use crate::models::ToolSpec;
use crate::tools::{Outcome, Reach, Risk, Scope, Tool};

pub(super) struct FileEdit;

#[derive(Deserialize)]
struct Arguments {
    path: String,
    old: String,
    new: String,
    #[serde(default)]
    all: bool,
}

#[async_trait]
impl Tool for FileEdit {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "file_edit".into(),
            description: format!(
                "Replaces a piece of a text file. `old` must be there exactly once, spaces and line breaks included, unless \
                 `all` is true. {PATHS}"
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string" },
                    "old": { "type": "string", "description": "What is there now, exactly." },
                    "new": { "type": "string", "description": "What is to be there instead." },
                    "all": { "type": "boolean", "description": "Replace it everywhere." },
                },
                "required": ["path", "old", "new"],
                "additionalProperties": false,
            })
            .into(),
        }
    }

    fn risk(&self) -> Risk {
        Risk::Change
    }

    fn reach(&self, _scope: &Scope, arguments: &Value) -> Option<Reach> {
        reach(arguments)
    }

    async fn call(&self, scope: &Scope, arguments: Value) -> Outcome {
        run(scope, arguments, edit).await
    }
}

fn edit(files: &FileView, arguments: Arguments) -> Result<Outcome, Failure> {
    let Arguments {
        path,
        old,
        new,
        all,
    } = arguments;
    let found = find(files, &path, Want::Write)?;
    let edited = found
        .workspace
        .edit(&found.path, MAX_FILE_BYTES, |content| {
            let text = String::from_utf8(content).map_err(|_| Refused::Edit(EditError::NoText))?;
            let (changed, count) = replaced(&text, &old, &new, all).map_err(Refused::Edit)?;
            Ok((changed.into_bytes(), count))
        });
    match edited {
        Ok(1) => Ok(Outcome::say(format!("Replaced it in `{path}`.")).wrote(path)),
        Ok(count) => {
            let told = format!("Replaced it in {count} places of `{path}`.");
            Ok(Outcome::say(told).wrote(path))
        }
        Err(Refused::File(error)) => Err(failed(&path, &error)),
        Err(Refused::Edit(error)) => Err(Failure::Said(format!("`{path}` is unchanged: {error}."))),
    }
}

enum Refused {
    File(FileError),
    Edit(EditError),
}

impl From<FileError> for Refused {
    fn from(error: FileError) -> Self {
        Refused::File(error)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum EditError {
    #[error("it is no UTF-8 text")]
    NoText,
    #[error("`old` is empty")]
    NothingToFind,
    #[error("`old` and `new` are the same")]
    NothingToDo,
    #[error(
        "`old` is not in it. Read the file again: it must match exactly, spaces and line breaks included"
    )]
    NotFound,
    #[error("`old` is in it {0} times. Give more of what is around it, or set `all`")]
    Ambiguous(usize),
    #[error("it would have more than {} bytes", MAX_FILE_BYTES)]
    TooLarge,
}

/// The new text, and how many places changed.
pub(super) fn replaced(
    text: &str,
    old: &str,
    new: &str,
    all: bool,
) -> Result<(String, usize), EditError> {
    if old.is_empty() {
        return Err(EditError::NothingToFind);
    }
    if old == new {
        return Err(EditError::NothingToDo);
    }
    let count = text.matches(old).count();
    let ambiguous = count > 1 || text.find(old) != text.rfind(old);
    match count {
        0 => return Err(EditError::NotFound),
        // Overlapping places are ambiguous too, though `matches` counts them once.
        _ if ambiguous && !all => return Err(EditError::Ambiguous(count.max(2))),
        _ => {}
    }
    let length = (text.len() - count * old.len()).saturating_add(count.saturating_mul(new.len()));
    if length as u64 > MAX_FILE_BYTES {
        return Err(EditError::TooLarge);
    }
    Ok((text.replace(old, new), count))
}
