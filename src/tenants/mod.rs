//! The life of an agent: added, renamed, removed, brought back, destroyed, taken along to another house.
//!
//! An agent is three things: tables in `config.toml`, a folder, and rows that hang on its uid. Whoever changes an agent does it
//! here, so that the three stay together and the same checks hold everywhere. What only adds to the config may be done while a
//! gateway runs and counts from its next start; what moves files or rows needs the home for itself.

mod adding;
mod archive;
mod carrying;
mod editing;
mod error;
mod folders;
mod package;
mod removing;
mod renaming;
mod survey;
mod unfinished;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::agents::roster::{self, Roster};
use crate::agents::{Registry, check_personalities, skills};
use crate::clock::now_ms;
use crate::config::{Config, Draft, Report, store};
use crate::domain::AgentId;
use crate::routing::Table;
use crate::storage::{Db, StoreError};
use crate::tools::{self, policy};

pub use adding::{Added, Adding, add, adopt, clone, may_add};
pub use archive::{Archive, archives};
pub use carrying::{Exported, Imported, export, import};
pub use error::TenantError;
pub use removing::{Purged, Removed, Restored, Stake, at_stake, purge, remove, restore};
pub use renaming::{KEEPS_OLD_ID, rename, set_default};
pub use survey::{Origin, Rows, discovered, last_error, rows_of, stored_only};

/// Where agents live.
#[derive(Debug, Clone)]
pub struct Site {
    /// The home folder.
    pub home: PathBuf,
    pub db: Db,
}

/// A draft, looked at by everyone who has a say.
pub fn checked(mut draft: Draft, home: &Path) -> Result<(Config, Table), Report> {
    let (table, problems) = Table::build(&draft.config);
    draft.problems.extend(problems);
    draft.problems.extend(skills::check(&draft.config, home));
    draft.problems.extend(check_personalities(&draft.config, home));
    draft.problems.extend(policy::check(&draft.config, tools::KNOWN.iter().copied()));
    Ok((draft.finish()?, table))
}

/// Gives every agent of a config its uid, and the registry its agents.
pub async fn registry(config: &Config, home: &Path, db: &Db) -> Result<(Registry, Roster), StoreError> {
    let mut roster = db.read(roster::load).await?;
    let ids = config.agents.iter().map(|agent| agent.id.clone());
    let missing: Vec<AgentId> = ids.filter(|id| !roster.contains_key(id)).collect();
    if !missing.is_empty() {
        db.write(move |tx| roster::add(tx, &missing, now_ms())).await?;
        roster = db.read(roster::load).await?;
    }
    let former = db.read(|connection| roster::former(connection, now_ms())).await?;
    let uids: HashMap<_, _> = roster.iter().map(|(id, known)| (id.clone(), known.uid)).collect();
    Ok((Registry::new(config, home, &uids).knowing(former), roster))
}

/// Finishes or undoes what a process was doing to an agent when it was killed. Whoever changes agents does it by itself;
/// the gateway does it before it reads the config.
pub async fn settle(site: &Site) -> Result<(), TenantError> {
    let home = site.home.clone();
    let lock = blocking(move || Ok(store::lock(&home)?)).await?;
    unfinished::settle(site, &lock).await
}

/// Whether there is something to settle.
pub fn is_unsettled(home: &Path) -> bool {
    unfinished::is_noted(home)
}

/// Where an agent's files are.
fn folder_of(home: &Path, id: &AgentId) -> PathBuf {
    home.join("agents").join(id.as_str())
}

async fn blocking<T, F>(work: F) -> Result<T, TenantError>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, TenantError> + Send + 'static,
{
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| TenantError::Store(StoreError::Failed(format!("changing an agent: {error}"))))?
}
