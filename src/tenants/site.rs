//! The place where agents live: the home folder and the database.

use std::path::{Path, PathBuf};

use super::error::TenantError;
use crate::domain::AgentId;
use crate::records::audit::Actor;
use crate::storage::{Db, StoreError};

/// Where agents live.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    /// The home folder.
    pub home: PathBuf,
    pub db: Db,
    /// Named in the audit of every change.
    pub by: Actor,
}

/// The folder with an agent's files.
pub(super) fn folder_of(home: &Path, id: &AgentId) -> PathBuf {
    home.join("agents").join(id.as_str())
}

/// Runs work on files outside the async threads.
pub(super) async fn blocking<T, F>(work: F) -> Result<T, TenantError>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, TenantError> + Send + 'static,
{
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| {
        TenantError::Store(StoreError::Failed(format!("changing an agent: {error}")))
    })?
}
