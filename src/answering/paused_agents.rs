//! Agents that begin no turn at present. Their messages wait in the inbox and in their lanes.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::watch;

use crate::domain::AgentUid;
use crate::records::agent_pauses::Pause;

/// The paused agents. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct PausedAgents {
    paused: Arc<watch::Sender<HashMap<AgentUid, Pause>>>,
}

/// Wakes lanes whose messages wait for a paused agent.
pub(crate) type PauseNews = watch::Receiver<HashMap<AgentUid, Pause>>;

impl PausedAgents {
    pub(crate) fn of(&self, uid: AgentUid) -> Option<Pause> {
        self.paused.borrow().get(&uid).cloned()
    }

    pub(crate) fn is_paused(&self, uid: AgentUid) -> bool {
        self.paused.borrow().contains_key(&uid)
    }

    /// Call after the commit of a pause or its end.
    pub(crate) fn changed(&self, uid: AgentUid, pause: Option<Pause>) {
        self.paused.send_modify(|paused| match pause {
            Some(pause) => drop(paused.insert(uid, pause)),
            None => drop(paused.remove(&uid)),
        });
    }

    /// Has waiting lanes look again, because their places may have another agent now.
    pub(crate) fn look_again(&self) {
        self.paused.send_modify(|_| {});
    }

    /// Taken before a look, so that a change right after the look is noticed.
    pub(crate) fn news(&self) -> PauseNews {
        self.paused.subscribe()
    }
}
