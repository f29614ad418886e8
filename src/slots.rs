//! Hands out slots when not all work can run at once: turns of agents, and calls of their tools.
//! The party served longest ago is next, so no party waits for the whole backlog of another. Work of
//! the same party keeps its order.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The share of slots kept for other parties: one in this many.
const ONE_KEPT_OF: usize = 4;
/// Parties whose last slot is remembered. Beyond that, parties without work are forgotten.
const MOST_REMEMBERED: usize = 1024;

/// A number of slots, shared by parties such as agents.
pub(crate) struct Slots<P: Party> {
    // Locked sections are short and never await, so a plain lock does.
    state: Mutex<State<P>>,
}

/// A party that slots are handed round to.
pub(crate) trait Party: Clone + Eq + Hash {}

impl<P: Clone + Eq + Hash> Party for P {}

struct State<P> {
    most: usize,
    /// The most slots of a single party at once. The other slots stay free for other parties.
    most_of_one: usize,
    /// More than `most` after fewer slots were asked for.
    in_use: usize,
    running: HashMap<P, usize>,
    /// Only parties with waiting work.
    waiting: HashMap<P, VecDeque<Ticket>>,
    tickets: u64,
    /// When each party was last given a slot, counted in slots.
    served: HashMap<P, u64>,
    given: u64,
}

struct Ticket {
    number: u64,
    granted: oneshot::Sender<()>,
}

/// The right to run. A dropped slot goes to the next in line.
pub(crate) struct Slot<P: Party> {
    slots: Arc<Slots<P>>,
    party: P,
}

impl<P: Party> Slots<P> {
    /// `parties` share the slots. A single party may have all of them.
    pub(crate) fn new(most: usize, parties: usize) -> Arc<Self> {
        Self::with_most_of_one(most, most_of_one(most, parties))
    }

    /// Changes the number of slots. Slots in use beyond it are not taken back.
    pub(crate) fn resize(&self, most: usize, parties: usize) {
        let mut state = self.state();
        (state.most, state.most_of_one) = (most, most_of_one(most, parties));
        state.hand_out();
    }

    pub(crate) fn with_most_of_one(most: usize, most_of_one: usize) -> Arc<Self> {
        let state = Mutex::new(State {
            most,
            most_of_one,
            in_use: 0,
            running: HashMap::new(),
            waiting: HashMap::new(),
            tickets: 0,
            served: HashMap::new(),
            given: 0,
        });
        Arc::new(Slots { state })
    }

    /// Waits for a slot. Dropping the future leaves the queue.
    pub(crate) async fn acquire(self: &Arc<Self>, party: P) -> Slot<P> {
        let mut waiter = self.join(party.clone());
        (&mut waiter.granted)
            .await
            .expect("a ticket is kept until it is granted or given up");
        Slot {
            slots: self.clone(),
            party,
        }
    }

    fn join(&self, party: P) -> Waiter<'_, P> {
        let (grant, granted) = oneshot::channel();
        let mut state = self.state();
        state.tickets += 1;
        let number = state.tickets;
        let line = state.waiting.entry(party.clone()).or_default();
        line.push_back(Ticket {
            number,
            granted: grant,
        });
        state.hand_out();
        drop(state);
        Waiter {
            slots: self,
            party,
            number,
            granted,
        }
    }

    fn release(&self, party: &P) {
        let mut state = self.state();
        state.release(party);
        state.hand_out();
    }

    fn state(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn most_of_one(most: usize, parties: usize) -> usize {
    let kept = if parties > 1 && most > 1 {
        (most / ONE_KEPT_OF).max(1)
    } else {
        0
    };
    most - kept
}

impl<P: Party> State<P> {
    /// Gives out the free slots, to each party in turn.
    fn hand_out(&mut self) {
        while self.in_use < self.most
            && let Some(party) = self.next()
        {
            self.serve(party);
        }
    }

    fn next(&self) -> Option<P> {
        let may_run = |party: &P| {
            self.running
                .get(party)
                .is_none_or(|running| *running < self.most_of_one)
        };
        let lines = self.waiting.iter().filter(|(party, _)| may_run(party));
        let oldest = lines.min_by_key(|(party, line)| {
            (
                self.served.get(party),
                line.front().map(|ticket| ticket.number),
            )
        });
        oldest.map(|(party, _)| party.clone())
    }

    fn serve(&mut self, party: P) {
        let Some(line) = self.waiting.get_mut(&party) else {
            return;
        };
        let ticket = line.pop_front();
        if line.is_empty() {
            self.waiting.remove(&party);
        }
        // A leaving waiter removes its ticket under this lock, so the receiver of a queued ticket
        // still exists.
        if ticket.is_some_and(|ticket| ticket.granted.send(()).is_ok()) {
            self.in_use += 1;
            self.given += 1;
            *self.running.entry(party.clone()).or_default() += 1;
            self.served.insert(party, self.given);
            self.forget_idle();
        }
    }

    /// Strangers come and go, so memory of them has an end.
    fn forget_idle(&mut self) {
        if self.served.len() > MOST_REMEMBERED {
            let (running, waiting) = (&self.running, &self.waiting);
            self.served
                .retain(|party, _| running.contains_key(party) || waiting.contains_key(party));
        }
    }

    fn release(&mut self, party: &P) {
        self.in_use -= 1;
        let running = self.running.get_mut(party).map(|running| {
            *running -= 1;
            *running
        });
        if running == Some(0) {
            self.running.remove(party);
        }
    }

    fn give_up(&mut self, party: &P, number: u64) {
        let Some(line) = self.waiting.get_mut(party) else {
            return;
        };
        line.retain(|ticket| ticket.number != number);
        if line.is_empty() {
            self.waiting.remove(party);
        }
    }
}

/// Waiting work.
struct Waiter<'a, P: Party> {
    slots: &'a Slots<P>,
    party: P,
    number: u64,
    granted: oneshot::Receiver<()>,
}

impl<P: Party> Drop for Waiter<'_, P> {
    fn drop(&mut self) {
        let mut state = self.slots.state();
        // The slot was granted, but the future never saw the grant.
        if self.granted.try_recv().is_ok() {
            state.release(&self.party);
            state.hand_out();
        } else {
            state.give_up(&self.party, self.number);
        }
    }
}

impl<P: Party> Drop for Slot<P> {
    fn drop(&mut self) {
        self.slots.release(&self.party);
    }
}

#[cfg(test)]
mod tests;
