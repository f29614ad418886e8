//! Bounds the turns of a person at the same time, over all places.
//!
//! A place takes no message out of its lane before its writer has room, so a message without room
//! holds no slot and lets the messages of others pass.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::domain::PersonId;

/// The running turns of people with a bound.
#[derive(Default)]
pub(super) struct PersonTurns {
    // Locked sections are a look-up each and never await, so a plain lock does.
    running: Mutex<HashMap<PersonId, usize>>,
    freed: Notify,
}

/// A person's share of the house.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) person: PersonId,
    /// Turns at the same time.
    pub(super) most: usize,
}

/// The right of a person to run a turn. Given back when dropped.
pub(super) struct PersonTurn {
    turns: Arc<PersonTurns>,
    person: PersonId,
}

impl PersonTurns {
    pub(super) fn has_room(&self, share: &Share) -> bool {
        self.running()
            .get(&share.person)
            .is_none_or(|running| *running < share.most)
    }

    pub(super) fn begin(self: &Arc<Self>, share: Share) -> Option<PersonTurn> {
        let mut all = self.running();
        let running = all.get(&share.person).copied().unwrap_or(0);
        if running >= share.most {
            return None;
        }
        all.insert(share.person.clone(), running + 1);
        drop(all);
        Some(PersonTurn {
            turns: self.clone(),
            person: share.person,
        })
    }

    /// Notified when a turn has ended.
    pub(super) fn freed(&self) -> &Notify {
        &self.freed
    }

    fn running(&self) -> MutexGuard<'_, HashMap<PersonId, usize>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PersonTurn {
    fn drop(&mut self) {
        let mut all = self.turns.running();
        if let Some(running) = all.get_mut(&self.person) {
            *running -= 1;
            if *running == 0 {
                all.remove(&self.person);
            }
        }
        drop(all);
        self.turns.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_has_room_again_when_a_turn_ends_and_idle_people_are_forgotten() {
        let turns = Arc::new(PersonTurns::default());
        let share = |id: &str| Share {
            person: id.parse().unwrap(),
            most: 2,
        };
        let (bob, carol) = (share("telegram:2"), share("telegram:3"));
        let held: Vec<_> = (0..3).filter_map(|_| turns.begin(bob.clone())).collect();
        assert_eq!(held.len(), 2);
        assert!(!turns.has_room(&bob) && turns.has_room(&carol));
        drop(held);
        assert!(turns.has_room(&bob));
        assert!(turns.running().is_empty());
    }
}
