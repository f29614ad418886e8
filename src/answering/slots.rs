//! Hands out slots when not all turns can run at once. The agent served longest ago is next, so no
//! agent waits for the whole backlog of another. Turns of the same agent keep their order.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::domain::AgentUid;

/// The share of slots kept for other agents: one in this many.
const ONE_KEPT_OF: usize = 4;

/// All slots of the process.
pub(super) struct Slots {
    /// The most turns of a single agent at once. The other slots stay free for other agents.
    most_of_one: usize,
    // Locked sections are short and never await, so a plain lock does.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    free: usize,
    running: HashMap<AgentUid, usize>,
    /// Only agents with waiting turns.
    waiting: HashMap<AgentUid, VecDeque<Ticket>>,
    tickets: u64,
    /// When each agent was last given a slot, counted in slots.
    served: HashMap<AgentUid, u64>,
    given: u64,
}

struct Ticket {
    number: u64,
    granted: oneshot::Sender<()>,
}

/// The right to run a turn. A dropped slot goes to the next turn.
pub(super) struct Slot {
    slots: Arc<Slots>,
    agent: AgentUid,
}

impl Slots {
    /// `agents` share the slots. A single agent may have all of them.
    pub(super) fn new(most: usize, agents: usize) -> Arc<Self> {
        let kept = if agents > 1 && most > 1 {
            (most / ONE_KEPT_OF).max(1)
        } else {
            0
        };
        let state = Mutex::new(State {
            free: most,
            ..State::default()
        });
        Arc::new(Slots {
            most_of_one: most - kept,
            state,
        })
    }

    /// Waits for a slot. Dropping the future leaves the queue.
    pub(super) async fn acquire(self: &Arc<Self>, agent: AgentUid) -> Slot {
        let mut waiter = self.join(agent);
        (&mut waiter.granted)
            .await
            .expect("a ticket is kept until it is granted or given up");
        Slot {
            slots: self.clone(),
            agent,
        }
    }

    fn join(&self, agent: AgentUid) -> Waiter<'_> {
        let (grant, granted) = oneshot::channel();
        let mut state = self.state();
        state.tickets += 1;
        let number = state.tickets;
        state.waiting.entry(agent).or_default().push_back(Ticket {
            number,
            granted: grant,
        });
        state.hand_out(self.most_of_one);
        drop(state);
        Waiter {
            slots: self,
            agent,
            number,
            granted,
        }
    }

    fn release(&self, agent: AgentUid) {
        let mut state = self.state();
        state.release(agent);
        state.hand_out(self.most_of_one);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Gives out the free slots, to each agent in turn.
    fn hand_out(&mut self, most_of_one: usize) {
        while self.free > 0
            && let Some(agent) = self.next(most_of_one)
        {
            self.serve(agent);
        }
    }

    fn next(&self, most_of_one: usize) -> Option<AgentUid> {
        let may_run = |agent: &AgentUid| {
            self.running
                .get(agent)
                .is_none_or(|running| *running < most_of_one)
        };
        let lines = self.waiting.iter().filter(|(agent, _)| may_run(agent));
        let oldest = lines.min_by_key(|(agent, line)| {
            (
                self.served.get(agent),
                line.front().map(|ticket| ticket.number),
            )
        });
        oldest.map(|(agent, _)| *agent)
    }

    fn serve(&mut self, agent: AgentUid) {
        let Some(line) = self.waiting.get_mut(&agent) else {
            return;
        };
        let ticket = line.pop_front();
        if line.is_empty() {
            self.waiting.remove(&agent);
        }
        // A leaving waiter removes its ticket under this lock, so the receiver of a queued ticket
        // still exists.
        if ticket.is_some_and(|ticket| ticket.granted.send(()).is_ok()) {
            self.free -= 1;
            self.given += 1;
            self.served.insert(agent, self.given);
            *self.running.entry(agent).or_default() += 1;
        }
    }

    fn release(&mut self, agent: AgentUid) {
        self.free += 1;
        let running = self.running.get_mut(&agent).map(|running| {
            *running -= 1;
            *running
        });
        if running == Some(0) {
            self.running.remove(&agent);
        }
    }

    fn give_up(&mut self, agent: AgentUid, number: u64) {
        let Some(line) = self.waiting.get_mut(&agent) else {
            return;
        };
        line.retain(|ticket| ticket.number != number);
        if line.is_empty() {
            self.waiting.remove(&agent);
        }
    }
}

/// A waiting turn.
struct Waiter<'a> {
    slots: &'a Slots,
    agent: AgentUid,
    number: u64,
    granted: oneshot::Receiver<()>,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut state = self.slots.state();
        // The slot was granted, but the future never saw the grant.
        if self.granted.try_recv().is_ok() {
            state.release(self.agent);
            state.hand_out(self.slots.most_of_one);
        } else {
            state.give_up(self.agent, self.number);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.release(self.agent);
    }
}

#[cfg(test)]
mod tests;
