//! The agents of a config, each with its uid.

use std::collections::HashMap;
use std::path::Path;

use crate::agents::Registry;
use crate::agents::roster::{self, Roster};
use crate::clock::now_ms;
use crate::config::Config;
use crate::domain::AgentId;
use crate::storage::{Db, StoreError};

/// Gives every new agent of a config a uid, and makes the registry.
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
