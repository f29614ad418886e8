//! What is about to run: the config, checked by everyone who has a say, and the routing table made from it.

use std::sync::Arc;

use super::Home;
use crate::agents::{Registry, Roster};
use crate::config::{self, Config, LoadError, Report, Secrets};
use crate::routing::Table;
use crate::storage::{Db, StoreError};
use crate::tenants;

/// A config without problems. The gateway, `config check` and `route explain` all make theirs here.
#[derive(Debug, Clone)]
pub struct Plan {
    pub config: Arc<Config>,
    pub table: Arc<Table>,
}

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("{0}")]
    Load(#[from] LoadError),
    #[error("{0}")]
    Problems(#[from] Report),
}

impl Plan {
    pub fn load(home: &Home, secrets: Secrets) -> Result<Self, PlanError> {
        let draft = config::load(home.path(), secrets)?;
        let (config, table) = tenants::checked(draft, home.path())?;
        Ok(Plan { config: Arc::new(config), table: Arc::new(table) })
    }

    /// Gives every agent its uid and the registry its agents.
    pub async fn registry(&self, home: &Home, db: &Db) -> Result<(Registry, Roster), StoreError> {
        tenants::registry(&self.config, home.path(), db).await
    }
}
