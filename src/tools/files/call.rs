//! Shared by the file tools: paths, failures, and the way to a thread for blocking work.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::agents::{
    FileError, FileView, Found, PathError, RESULTS, Sender, Want, is_odd, sender_of,
};
use crate::domain::{Label, Labels, PersonId, Role};
use crate::tools::{Outcome, Reach, Scope, background, read_arguments};

/// How paths are written, for the descriptions.
pub(super) const PATHS: &str = "Paths begin in your workspace: `notes/today.md`. `@agent/…` and `shared/name/…` reach other folders where that \
                     is open to you.";

/// The largest file that a tool reads as a whole or writes.
pub(super) const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// The reason why a call failed. The text is for the model.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    #[error("{0}")]
    Path(#[from] PathError),
    #[error("{0}")]
    Said(String),
}

/// Without the path, for errors of helpers that do not know the path.
impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Failure::Said(format!("The file {error}."))
    }
}

pub(super) fn failed(path: &str, error: &FileError) -> Failure {
    Failure::Said(format!("`{path}` {error}."))
}

/// Reads the arguments and does the work on a thread for blocking work.
pub(super) async fn run<A, T, W>(scope: &Scope, arguments: Value, work: W) -> Outcome
where
    A: DeserializeOwned + Send + 'static,
    T: Into<Outcome> + Send + 'static,
    W: FnOnce(&FileView, A) -> Result<T, Failure> + Send + 'static,
{
    let arguments: A = match read_arguments(arguments) {
        Ok(arguments) => arguments,
        Err(outcome) => return outcome,
    };
    let files = scope.files();
    in_background(scope, move || work(&files, arguments))
        .await
        .map_or_else(Outcome::say, Into::into)
}

/// The same for work that shows words of files, with their labels.
pub(super) async fn run_reading<A, T, W>(scope: &Scope, arguments: Value, work: W) -> Outcome
where
    A: DeserializeOwned + Send + 'static,
    T: Into<Outcome> + Send + 'static,
    W: FnOnce(&FileView, A, &Asker) -> Result<(T, Labels), Failure> + Send + 'static,
{
    let arguments: A = match read_arguments(arguments) {
        Ok(arguments) => arguments,
        Err(outcome) => return outcome,
    };
    let (files, asker) = (scope.files(), Asker::of(scope));
    match in_background(scope, move || work(&files, arguments, &asker)).await {
        Ok((read, labels)) => read.into().labelled(labels),
        Err(text) => Outcome::say(text),
    }
}

/// The person whose own files count as the person's words.
pub(super) struct Asker {
    ids: Vec<PersonId>,
    role: Role,
}

impl Asker {
    pub(super) fn of(scope: &Scope) -> Self {
        Asker {
            ids: scope.ids.clone(),
            role: scope.role,
        }
    }

    /// The labels of a file's words.
    pub(super) fn labels(&self, found: &Found, path: &Path) -> Labels {
        if found.prefix == RESULTS {
            // The turn has read them already.
            return Labels::NONE;
        }
        let written = found.workspace.labels(path);
        written | self.sent(found, path)
    }

    /// The labels of a file's name.
    pub(super) fn sent(&self, found: &Found, path: &Path) -> Labels {
        match sender_of(path) {
            Some(Sender::Guest) => Label::GuestFile.into(),
            Some(Sender::Person(person)) if self.ids.contains(&person) => Labels::of(self.role),
            Some(Sender::Person(_) | Sender::Somebody) => Label::MemberFile.into(),
            None if found.prefix.is_empty() => Labels::NONE,
            None => Label::Agent.into(),
        }
    }
}

/// A change of another agent's files, or of shared ones.
pub(super) fn reach(arguments: &Value) -> Option<Reach> {
    let path = arguments["path"].as_str().unwrap_or_default();
    (path.starts_with('@') || path.starts_with("shared/")).then_some(Reach::Agent)
}

pub(super) async fn in_background<T: Send + 'static>(
    scope: &Scope,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, String> {
    match background::run(scope, work).await {
        Ok(done) => done.map_err(|failure| failure.to_string()),
        Err(broke) => Err(broke.to_string()),
    }
}

pub(super) fn find(files: &FileView, path: &str, want: Want) -> Result<Found, Failure> {
    Ok(files.find(path, want)?)
}

/// A path inside a found folder, as the model writes paths.
pub(super) fn shown(prefix: &str, path: &Path) -> String {
    // A name must not look like a second line, or like another name.
    let path: String = path
        .to_string_lossy()
        .chars()
        .map(|c| if is_odd(c) { '�' } else { c })
        .collect();
    match prefix {
        // A name that looks like a path to another folder is written with `./`, as `find` reads it.
        "" if path.starts_with('@') || path.starts_with("shared/") || path.starts_with(RESULTS) => {
            format!("./{path}")
        }
        "" => path,
        prefix => format!("{prefix}/{path}"),
    }
}
