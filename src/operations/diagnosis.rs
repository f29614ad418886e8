//! The result of a look at the whole house, as data: `parlor doctor`, `/doctor` and the dashboard
//! show it in their own ways.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Finding {
    /// A short name that stays the same, such as `telegram.token`.
    pub(crate) id: String,
    pub(crate) state: State,
    /// A sentence for the operator.
    pub(crate) text: String,
    /// What was seen, where the sentence does not say it.
    pub(crate) cause: Option<String>,
    /// What to do, exactly.
    pub(crate) fix: Option<String>,
    /// What a program can do about it.
    pub(crate) remedy: Option<Remedy>,
}

/// How much a finding matters, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Ok,
    /// Worth knowing.
    Note,
    /// Something does not work as well as it should, or will not for long.
    Warn,
    /// Something does not work.
    Bad,
}

impl State {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Note => "note",
            State::Warn => "warn",
            State::Bad => "bad",
        }
    }
}

/// A change that is safe to make by program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Remedy {
    /// Takes the rights of other users away.
    CloseToOthers(PathBuf),
    /// Removes what a killed process left.
    Remove(PathBuf),
    /// Moves an unused file of the home to its archive. Only when asked for by name, because somebody
    /// may use the file.
    Archive(PathBuf),
}

impl Finding {
    pub(crate) fn new(id: &str, state: State, text: impl Into<String>) -> Self {
        Finding {
            id: id.to_owned(),
            state,
            text: text.into(),
            cause: None,
            fix: None,
            remedy: None,
        }
    }

    pub(crate) fn ok(id: &str, text: impl Into<String>) -> Self {
        Finding::new(id, State::Ok, text)
    }

    pub(crate) fn note(id: &str, text: impl Into<String>) -> Self {
        Finding::new(id, State::Note, text)
    }

    pub(crate) fn warn(id: &str, text: impl Into<String>) -> Self {
        Finding::new(id, State::Warn, text)
    }

    pub(crate) fn bad(id: &str, text: impl Into<String>) -> Self {
        Finding::new(id, State::Bad, text)
    }

    pub(crate) fn cause(self, cause: impl Into<String>) -> Self {
        Finding {
            cause: Some(cause.into()),
            ..self
        }
    }

    pub(crate) fn fix(self, fix: impl Into<String>) -> Self {
        Finding {
            fix: Some(fix.into()),
            ..self
        }
    }

    pub(crate) fn remedy(self, remedy: Remedy) -> Self {
        Finding {
            remedy: Some(remedy),
            ..self
        }
    }
}

/// A file or folder of the home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Belonging {
    /// Seen from the home.
    pub(crate) path: String,
    pub(crate) what: String,
    pub(crate) bytes: u64,
    pub(crate) files: u64,
}

/// Everything that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Diagnosis {
    pub(crate) findings: Vec<Finding>,
    pub(crate) belongings: Vec<Belonging>,
}

impl Diagnosis {
    pub(crate) fn count(&self, state: State) -> usize {
        let of_it = self.findings.iter().filter(|found| found.state == state);
        of_it.count()
    }
}
