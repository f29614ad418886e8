//! The turns under way, with their agents: for the state of an agent, and to begin its turns again.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use tokio_util::sync::CancellationToken;

use crate::domain::AgentUid;

/// All turns under way, running or parked. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct UnderWay {
    turns: Arc<DashMap<u64, Turn>>,
    next: Arc<AtomicU64>,
}

struct Turn {
    agent: AgentUid,
    again: CancellationToken,
}

/// A turn's entry, held until the end of the turn.
pub(super) struct Entry {
    turns: Arc<DashMap<u64, Turn>>,
    number: u64,
    /// Cancelled to have the turn begin again.
    pub(super) again: CancellationToken,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.turns.remove(&self.number);
    }
}

impl UnderWay {
    pub(super) fn enter(&self, agent: AgentUid) -> Entry {
        let (number, again) = (
            self.next.fetch_add(1, Ordering::Relaxed),
            CancellationToken::new(),
        );
        let turn = Turn {
            agent,
            again: again.clone(),
        };
        self.turns.insert(number, turn);
        Entry {
            turns: self.turns.clone(),
            number,
            again,
        }
    }

    /// The number of turns of each agent.
    pub(crate) fn by_agent(&self) -> HashMap<AgentUid, usize> {
        let mut counts = HashMap::new();
        for turn in self.turns.iter() {
            *counts.entry(turn.agent).or_default() += 1;
        }
        counts
    }

    /// Has the turns of an agent begin again from their last recorded result. Returns their number.
    pub(crate) fn begin_again(&self, agent: AgentUid) -> usize {
        let turns = self.turns.iter().filter(|turn| turn.agent == agent);
        turns.map(|turn| turn.again.cancel()).count()
    }
}
