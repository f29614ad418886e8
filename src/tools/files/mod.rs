//! Files in the agent's workspace, and in what the config opens to it besides.

mod delete;
mod edit;
mod list;
mod read;
mod search;
mod send;
mod write;

#[cfg(test)]
mod tests;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Outcome, Scope, Tool, background, read_arguments};
use crate::agents::{FileError, Files, Found, PathError, Want, is_odd};

pub(super) fn all() -> Vec<Box<dyn Tool>> {
    vec![
        Box::new(read::FileRead),
        Box::new(write::FileWrite),
        Box::new(edit::FileEdit),
        Box::new(list::FileList),
        Box::new(search::FileSearch),
        Box::new(delete::FileDelete),
        Box::new(send::FileSend),
    ]
}

/// How paths are written, for the descriptions.
const PATHS: &str = "Paths begin in your workspace: `notes/today.md`. `@agent/…` and `shared/name/…` reach other folders where that \
                     is open to you.";

/// The largest file that is read as a whole or written.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// Why a call came to nothing. The text is for the model.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Path(#[from] PathError),
    #[error("{0}")]
    Said(String),
}

/// Without the path: for errors that a helper gives back before the path is known.
impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Failure::Said(format!("The file {error}."))
    }
}

fn failed(path: &str, error: &FileError) -> Failure {
    Failure::Said(format!("`{path}` {error}."))
}

/// Reads the arguments and does the work on a thread that may block.
async fn run<A, W>(scope: &Scope, arguments: Value, work: W) -> Outcome
where
    A: DeserializeOwned + Send + 'static,
    W: FnOnce(&Files, A) -> Result<String, Failure> + Send + 'static,
{
    let arguments: A = match read_arguments(arguments) {
        Ok(arguments) => arguments,
        Err(outcome) => return outcome,
    };
    let agent = scope.agent.clone();
    in_background(move || work(&agent.files, arguments)).await.map_or_else(Outcome::say, Outcome::say)
}

async fn in_background<T: Send + 'static>(work: impl FnOnce() -> Result<T, Failure> + Send + 'static) -> Result<T, String> {
    match background::run(work).await {
        Ok(done) => done.map_err(|failure| failure.to_string()),
        Err(broke) => Err(broke.to_string()),
    }
}

fn find(files: &Files, path: &str, want: Want) -> Result<Found, Failure> {
    Ok(files.find(path, want)?)
}

/// How a path inside a found folder is written by the model.
fn shown(prefix: &str, path: &std::path::Path) -> String {
    // A name must not look like a second line, or like another name.
    let path: String = path.to_string_lossy().chars().map(|c| if is_odd(c) { '�' } else { c }).collect();
    match prefix {
        // What looks like another folder is told apart the way it is found.
        "" if path.starts_with('@') || path.starts_with("shared/") => format!("./{path}"),
        "" => path,
        prefix => format!("{prefix}/{path}"),
    }
}
