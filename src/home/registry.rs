//! The agents of a config, each with its uid.

use std::collections::HashMap;
use std::path::Path;

use uuid::Uuid;

use crate::agents::Registry;
use crate::agents::agent_rows::{self, AgentRows};
use crate::clock::now_ms;
use crate::config::Config;
use crate::domain::{AgentId, AgentUid};
use crate::storage::{Db, StoreError};

/// Gives every new agent of a config a uid, and makes the registry.
pub async fn registry(
    config: &Config,
    home: &Path,
    db: &Db,
) -> Result<(Registry, AgentRows), StoreError> {
    let mut agent_rows = db.read(agent_rows::load).await?;
    let ids = config.agents.iter().map(|agent| agent.id.clone());
    let missing: Vec<AgentId> = ids.filter(|id| !agent_rows.contains_key(id)).collect();
    if !missing.is_empty() {
        db.write(move |tx| agent_rows::add(tx, &missing, now_ms()))
            .await?;
        agent_rows = db.read(agent_rows::load).await?;
    }
    let former = db
        .read(|connection| agent_rows::former(connection, now_ms()))
        .await?;
    let uids: HashMap<_, _> = agent_rows
        .iter()
        .map(|(id, known)| (id.clone(), known.uid))
        .collect();
    Ok((
        Registry::new(config, home, &uids).knowing(former),
        agent_rows,
    ))
}

/// A registry for a config that may never count: the uids of new agents are not stored.
pub(crate) async fn imagined(
    config: &Config,
    home: &Path,
    db: &Db,
) -> Result<Registry, StoreError> {
    let rows = db.read(agent_rows::load).await?;
    let uid = |id: &AgentId| {
        rows.get(id)
            .map_or_else(|| AgentUid(Uuid::now_v7()), |known| known.uid)
    };
    let ids = config.agents.iter().map(|spec| &spec.id);
    let uids: HashMap<_, _> = ids.map(|id| (id.clone(), uid(id))).collect();
    Ok(Registry::new(config, home, &uids))
}
