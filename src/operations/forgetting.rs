//! Memories that are deleted on request.

use rusqlite::Transaction;
use serde::{Deserialize, Serialize};

use super::{Operations, Refusal};
use crate::agents::memory::Forgetting;
use crate::agents::{Memories, Reader};
use crate::clock::now_ms;
use crate::domain::AgentId;
use crate::records::audit::{self, Action, Actor, Change};
use crate::records::turn_notes;
use crate::storage::Scrub;

/// A larger database file is not rewritten for one memory; later rows overwrite the words.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// A forgotten memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Forgotten {
    pub(crate) agent: AgentId,
    pub(crate) id: i64,
}

/// Deletes a saved memory of an agent, whoever it is for.
pub(super) async fn run(
    operations: &Operations,
    actor: &Actor,
    word: Option<&str>,
    id: i64,
) -> Result<Forgotten, Refusal> {
    let snapshot = operations.snapshot().await?;
    let agent = match word {
        None => snapshot.registry.default_agent(),
        Some(word) => snapshot
            .registry
            .find(word)
            .ok_or_else(|| Refusal::wrong_use(format!("no agent is called {word}")))?,
    };
    let memories = Memories::new(operations.db.clone());
    let memory = memories.of(agent).ok_or_else(|| {
        Refusal::failed(format!(
            "{} has no memory: memory = \"off\" in config.toml",
            agent.id
        ))
    })?;
    let entries = memory.everything(id.saturating_add(1), 1).await?;
    let forgetting = memory.forgetting(&Reader::operator(&[], None), &entries);
    if entries.iter().all(|entry| entry.id != id) || forgetting.is_empty() {
        return Err(Refusal::wrong_use(format!(
            "{} has no saved memory with the number {id}",
            agent.id
        ))
        .hint(format!(
            "`parlor memory list -a {}` shows numbers",
            agent.id
        )));
    }
    let (by, owner) = (actor.clone(), agent.id.clone());
    let write = move |tx: &Transaction<'_>| forget(tx, &by, (&owner, id), &forgetting, now_ms());
    operations.db.write(write).await?;
    match &operations.live {
        Some(live) => (live.words_are_gone)(),
        None => {
            memories.wipe().await?;
            operations.db.scrub(Scrub::RewriteUpTo(MOST_BYTES)).await?;
        }
    }
    Ok(Forgotten {
        agent: agent.id.clone(),
        id,
    })
}

/// Deletes a memory, and prompts that may quote it. The audit has its number and none of its words.
pub(crate) fn forget(
    tx: &Transaction<'_>,
    by: &Actor,
    (agent, id): (&AgentId, i64),
    forgetting: &Forgetting,
    now: i64,
) -> rusqlite::Result<()> {
    forgetting.write(tx)?;
    turn_notes::forget_prompts(tx, now)?;
    let change = Change::new(Action::Forget).of(agent).about(id);
    audit::note(tx, by, &change, now)
}
