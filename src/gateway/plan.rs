//! What is about to run: the config, checked by everyone who has a say, and the routing table made from it.

use std::collections::HashMap;
use std::sync::Arc;

use super::Home;
use crate::agents::Registry;
use crate::agents::roster::{self, Roster};
use crate::clock::now_ms;
use crate::config::{self, Config, LoadError, Report, Secrets};
use crate::domain::AgentId;
use crate::routing::Table;
use crate::storage::{Db, StoreError};
use crate::tools::{self, policy};

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
        let mut draft = config::load(home.path(), secrets)?;
        let (table, problems) = Table::build(&draft.config);
        draft.problems.extend(problems);
        draft.problems.extend(policy::check(&draft.config, tools::KNOWN.iter().copied()));
        Ok(Plan { config: Arc::new(draft.finish()?), table: Arc::new(table) })
    }

    /// Gives every agent its uid and the registry its agents.
    pub async fn registry(&self, home: &Home, db: &Db) -> Result<(Registry, Roster), StoreError> {
        let mut roster = db.read(roster::load).await?;
        let ids = self.config.agents.iter().map(|agent| agent.id.clone());
        let missing: Vec<AgentId> = ids.filter(|id| !roster.contains_key(id)).collect();
        if !missing.is_empty() {
            db.write(move |tx| roster::add(tx, &missing, now_ms())).await?;
            roster = db.read(roster::load).await?;
        }
        let uids: HashMap<_, _> = roster.iter().map(|(id, known)| (id.clone(), known.uid)).collect();
        Ok((Registry::new(&self.config, home.path(), &uids), roster))
    }
}
