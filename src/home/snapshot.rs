//! Everything made from the config, as one value, always replaced as a whole.

use std::sync::Arc;

use tokio::sync::watch;

use crate::agents::{Agent, Registry};
use crate::config::Config;
use crate::domain::AgentUid;
use crate::models::Models;
use crate::routing::{Route, Table};

/// Checked config, routing table, agents and models of one moment. A turn keeps its first snapshot.
pub struct Snapshot {
    pub config: Arc<Config>,
    pub table: Arc<Table>,
    pub registry: Arc<Registry>,
    pub models: Models,
}

impl Snapshot {
    pub fn new(config: Arc<Config>, table: Arc<Table>, registry: Arc<Registry>) -> Self {
        let models = Models::new(&config.providers);
        Snapshot {
            config,
            table,
            registry,
            models,
        }
    }

    /// The agent of a route, or the default agent if the agent is gone.
    pub fn agent_of(&self, route: &Route) -> Arc<Agent> {
        self.registry
            .get(&route.agent)
            .unwrap_or_else(|| self.registry.default_agent())
            .clone()
    }

    /// The agent with this uid, or the default agent if the agent is gone.
    pub fn agent_or_default(&self, uid: AgentUid) -> Arc<Agent> {
        self.registry
            .by_uid(uid)
            .unwrap_or_else(|| self.registry.default_agent())
            .clone()
    }
}

/// The current snapshot. Cheap to clone.
#[derive(Clone)]
pub struct Snapshots {
    current: Arc<watch::Sender<Arc<Snapshot>>>,
}

impl Snapshots {
    pub fn new(first: Snapshot) -> Self {
        Snapshots {
            current: Arc::new(watch::Sender::new(Arc::new(first))),
        }
    }

    pub fn current(&self) -> Arc<Snapshot> {
        self.current.borrow().clone()
    }
}
