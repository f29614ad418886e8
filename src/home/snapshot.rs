//! Everything made from the config, in a single value, always replaced as a whole.

use std::sync::Arc;

use tokio::sync::watch;

use super::checked_config::{CheckedConfig, with_people};
use crate::agents::{Agent, Registry};
use crate::config::{Config, People};
use crate::domain::AgentUid;
use crate::models::Models;
use crate::routing::{Route, Table};

/// Checked config, routing table, agents and models of a moment. A turn keeps its first snapshot.
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

    /// The next snapshot. Unchanged providers keep their connections.
    pub fn after(before: &Snapshot, checked: &CheckedConfig, registry: Arc<Registry>) -> Self {
        let (config, table) = (checked.config.clone(), checked.table.clone());
        if config.providers != before.config.providers {
            return Snapshot::new(config, table, registry);
        }
        Snapshot {
            config,
            table,
            registry,
            models: before.models.clone(),
        }
    }

    /// This snapshot with other grants to people.
    pub fn with_people(&self, people: People) -> Self {
        Snapshot {
            config: Arc::new(with_people(&self.config, people)),
            table: self.table.clone(),
            registry: self.registry.clone(),
            models: self.models.clone(),
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

    /// Counts from the next turn and the next command on.
    pub fn replace(&self, next: Snapshot) {
        self.current.send_replace(Arc::new(next));
    }

    /// Tells about each later snapshot.
    pub(crate) fn changes(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.current.subscribe()
    }

    pub fn current(&self) -> Arc<Snapshot> {
        self.current.borrow().clone()
    }
}
