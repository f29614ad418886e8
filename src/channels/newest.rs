//! The newest message of each chat or topic, as seen by this process. An answer quotes its question
//! when others wrote in between, and only the moment of sending tells.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

/// Remembered chats and topics. With more, all are forgotten at once: an answer without a quote is
/// still an answer.
const MOST_PLACES: usize = 10_000;

/// `P` is the platform's type for places, `M` its type for message numbers. Message numbers ascend.
#[derive(Debug)]
pub(super) struct Newest<P, M> {
    // A plain lock: every section is a look-up or an insert, and none awaits.
    seen: Mutex<HashMap<P, M>>,
}

impl<P, M> Default for Newest<P, M> {
    fn default() -> Self {
        Newest {
            seen: Mutex::default(),
        }
    }
}

impl<P: Eq + Hash, M: Ord + Copy> Newest<P, M> {
    /// Notes a message, to the bot or to others.
    pub(super) fn note(&self, place: P, message: M) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MOST_PLACES && !seen.contains_key(&place) {
            seen.clear();
        }
        let newest = seen.entry(place).or_insert(message);
        *newest = message.max(*newest);
    }

    /// Whether the place has a later message than this.
    pub(super) fn is_after(&self, place: &P, message: M) -> bool {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(place)
            .is_some_and(|newest| *newest > message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_messages_of_the_same_place_count() {
        let newest = Newest::<&str, u64>::default();
        newest.note("here", 5);
        newest.note("there", 9);
        let after = |message| newest.is_after(&"here", message);
        assert_eq!([4, 5, 6].map(after), [true, false, false]);
        newest.note("here", 3);
        assert!(after(4), "one that comes late takes nothing back");
        assert!(!newest.is_after(&"elsewhere", 1));
    }

    #[test]
    fn memory_has_a_bound() {
        let newest = Newest::<usize, u64>::default();
        for place in 0..=MOST_PLACES {
            newest.note(place, 1);
        }
        assert!(newest.seen.lock().unwrap().len() <= MOST_PLACES);
        assert!(newest.is_after(&MOST_PLACES, 0));
    }
}
