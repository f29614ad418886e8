//! Errors of changes to agents, with advice for the person.

use std::io;
use std::path::{Path, PathBuf};

use crate::config::edit::EditError;
use crate::config::store::StoreConfigError;
use crate::config::{LoadError, Report};
use crate::domain::UserError;
use crate::storage::StoreError;

#[derive(Debug, thiserror::Error)]
pub enum TenantError {
    /// The named agent or archive does not exist, or the word cannot be an id.
    #[error("{0}")]
    Unknown(UserError),
    /// The change conflicts with the present state: an id is taken, or the agent is the default.
    #[error("{0}")]
    Conflict(UserError),
    /// The config has problems before the edit, so problems made by the edit could not be told
    /// apart.
    #[error("{0}")]
    Broken(Box<Report>),
    /// The edited config would have problems, so the edit was not made.
    #[error("{0}")]
    Problems(Box<Report>),
    #[error("{0}")]
    Load(#[from] LoadError),
    #[error("{0}")]
    Edit(#[from] EditError),
    #[error("{0}")]
    Config(#[from] StoreConfigError),
    #[error("{0}")]
    Store(#[from] StoreError),
    /// A file that is no package, or is not safe to unpack.
    #[error("{}: {reason}", .path.display())]
    Package { path: PathBuf, reason: String },
    #[error("{}: {error}", .path.display())]
    Disk { path: PathBuf, error: io::Error },
}

impl TenantError {
    pub(super) fn unknown(text: impl Into<String>) -> Self {
        TenantError::Unknown(UserError::new(text))
    }

    pub(super) fn conflict(text: impl Into<String>) -> Self {
        TenantError::Conflict(UserError::new(text))
    }

    pub(super) fn disk(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |error| TenantError::Disk { path, error }
    }

    /// The reason may hold words of the package, so control characters are taken out.
    pub(super) fn package(path: &Path, reason: impl Into<String>) -> Self {
        const MAX_CHARS: usize = 500;
        let reason: String = reason.into();
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        TenantError::Package {
            path: path.to_owned(),
            reason: reason.chars().map(plain).take(MAX_CHARS).collect(),
        }
    }
}

impl From<Report> for TenantError {
    fn from(report: Report) -> Self {
        TenantError::Problems(Box::new(report))
    }
}
