//! The position of polling: the offset, the number of updates at once, and the pause. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use super::updates::{Answer, Update};

/// Unreadable answers in a row before updates are asked for singly.
const UNREADABLE_TOLERATED: u32 = 2;
/// Updates asked for singly from then on: as many as an answer may have.
const ONE_BY_ONE: u32 = 100;
/// An answer without news should take the whole poll time. A sooner answer was not held back by the
/// server.
const AT_ONCE: Duration = Duration::from_secs(1);
/// The pause after such an answer; doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Such answers in a row before the operator is told.
pub(super) const IDLE_TOLD: u32 = 10;

#[derive(Debug, Default)]
pub(super) struct Position {
    /// Confirms every update with a smaller number. Absent before the first update.
    offset: Option<u64>,
    /// Updates of the last answer without a confirming offset. Other updates are confirmed beside
    /// them.
    stubborn: BTreeSet<u64>,
    /// Unreadable answers in a row.
    unreadable: u32,
    /// Updates still to be asked for singly.
    one_by_one: u32,
    /// Immediate answers without news, in a row.
    idle: u32,
}

impl Position {
    pub(super) fn offset(&self) -> Option<u64> {
        self.offset
    }

    /// None leaves the number to Telegram.
    pub(super) fn limit(&self) -> Option<u32> {
        (self.one_by_one > 0).then_some(1)
    }

    /// The updates to store now. None when the answer breaks off in its first update: the next
    /// answer may be whole. An update that breaks off even when asked for alone counts as broken.
    pub(super) fn accept(
        &self,
        Answer {
            mut updates,
            cut_off,
        }: Answer,
    ) -> Option<Vec<Update>> {
        if updates.is_empty()
            && let Some(mut broken) = cut_off
        {
            if self.one_by_one == 0 {
                return None;
            }
            // The first unconfirmed update has at least this number.
            broken.number = broken.number.or(self.offset);
            updates.push(broken);
        }
        Some(updates)
    }

    /// The updates are stored, and the next poll confirms them. Returns the pause before the next
    /// poll.
    pub(super) fn go_on(&mut self, updates: &[Update], answered_after: Duration) -> Duration {
        self.unreadable = 0;
        self.one_by_one = if updates.is_empty() {
            0
        } else {
            self.one_by_one.saturating_sub(1)
        };
        if self.confirm(updates) || answered_after >= AT_ONCE {
            self.idle = 0;
            return Duration::ZERO;
        }
        self.idle = self.idle.saturating_add(1);
        FIRST_PAUSE
            .saturating_mul(1 << (self.idle - 1).min(8))
            .min(LONGEST_PAUSE)
    }

    /// Immediate answers without news, in a row.
    pub(super) fn idle(&self) -> u32 {
        self.idle
    }

    /// False when the offset cannot go on: the updates were confirmed before, or none has a number.
    fn confirm(&mut self, updates: &[Update]) -> bool {
        let numbers: BTreeSet<u64> = updates.iter().filter_map(|update| update.number).collect();
        self.stubborn.retain(|number| numbers.contains(number));
        let Some(newest) = numbers.difference(&self.stubborn).max() else {
            return false;
        };
        let next = newest.checked_add(1);
        if next.is_none() || self.offset == next {
            self.stubborn.insert(*newest);
            return false;
        }
        self.offset = next;
        true
    }

    /// No answer could be read. True when updates are asked for singly from now on.
    pub(super) fn was_unreadable(&mut self) -> bool {
        self.unreadable += 1;
        let is_enough = self.unreadable == UNREADABLE_TOLERATED;
        if is_enough {
            self.one_by_one = ONE_BY_ONE;
        }
        is_enough
    }

    /// Telegram refuses the request. True when the offset may be the reason; the offset is then not
    /// sent again.
    pub(super) fn was_refused(&mut self) -> bool {
        let refused = self.offset.take();
        self.stubborn.extend(refused.map(|offset| offset - 1));
        refused.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::super::updates::read_answer;
    use super::*;

    fn answer(numbers: &[u64]) -> Vec<Update> {
        let updates: Vec<String> = numbers
            .iter()
            .map(|number| format!("{{\"update_id\":{number}}}"))
            .collect();
        let answer =
            read_answer(format!("{{\"ok\":true,\"result\":[{}]}}", updates.join(",")).as_bytes());
        answer.expect("it is one").updates
    }

    #[test]
    fn the_newest_update_is_confirmed_also_when_numbers_begin_anew() {
        let mut position = Position::default();
        for (numbers, offset) in [(&[7, 9, 8][..], 10), (&[10], 11), (&[3], 4), (&[4, 5], 6)] {
            assert_eq!(
                position.go_on(&answer(numbers), Duration::ZERO),
                Duration::ZERO
            );
            assert_eq!(position.offset(), Some(offset), "{numbers:?}");
        }
    }

    #[test]
    fn the_largest_numbers_stop_nobody() {
        for largest in [
            i32::MAX.unsigned_abs().into(),
            u64::from(u32::MAX),
            i64::MAX.unsigned_abs(),
            u64::MAX,
        ] {
            let mut position = Position::default();
            // A server that takes no offset behind the largest number gives everything again.
            position.go_on(&answer(&[5, largest]), Duration::ZERO);
            for _ in 0..20 {
                position.go_on(&answer(&[5, largest]), Duration::ZERO);
            }
            assert!(
                position.idle() >= IDLE_TOLD && position.offset() == Some(6),
                "{largest}: {position:?}"
            );
            assert_eq!(
                position.go_on(&answer(&[largest]), Duration::ZERO),
                LONGEST_PAUSE
            );
            assert_eq!(
                position.go_on(&answer(&[6, 7, largest]), Duration::ZERO),
                Duration::ZERO
            );
            assert_eq!(position.offset(), Some(8));
        }
    }

    #[test]
    fn an_offset_that_is_refused_is_not_sent_again() {
        let mut position = Position::default();
        assert!(!position.was_refused());
        position.go_on(&answer(&[5, 4_000_000_000]), Duration::ZERO);
        assert!(position.was_refused());
        assert_eq!(position.offset(), None);
        position.go_on(&answer(&[5, 4_000_000_000]), Duration::ZERO);
        assert_eq!(position.offset(), Some(6));
    }

    #[test]
    fn answers_without_news_are_asked_for_ever_more_slowly() {
        let mut position = Position::default();
        let pauses: Vec<u128> = (0..6)
            .map(|_| position.go_on(&[], Duration::ZERO).as_millis())
            .collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1000, 1000]);
        assert_eq!(position.go_on(&[], Duration::from_secs(50)), Duration::ZERO);
        assert_eq!(position.go_on(&[], Duration::ZERO), FIRST_PAUSE);
    }

    #[test]
    fn an_answer_that_stays_cut_off_is_narrowed_down_and_stepped_over() {
        let cut_off = || {
            read_answer(br#"{"ok":true,"result":[{"update_id":7,"message":{"te"#)
                .expect("it is one")
        };
        let mut position = Position::default();
        position.go_on(&answer(&[5]), Duration::ZERO);
        for is_narrowed in [false, true] {
            assert!(position.accept(cut_off()).is_none());
            assert_eq!(position.was_unreadable(), is_narrowed);
        }
        assert_eq!(position.limit(), Some(1));
        let updates = position.accept(cut_off()).expect("it is taken as broken");
        assert!(updates[0].content.is_err());
        position.go_on(&updates, Duration::ZERO);
        assert_eq!(position.offset(), Some(8));
        position.go_on(&[], Duration::ZERO);
        assert_eq!(position.limit(), None, "nothing waits behind it");
    }

    #[test]
    fn what_is_whole_before_a_cut_is_taken() {
        let answer = read_answer(br#"{"ok":true,"result":[{"update_id":6},{"update_id":7,"mess"#)
            .expect("it is one");
        let updates = Position::default().accept(answer).expect("one is whole");
        assert_eq!(
            updates
                .iter()
                .map(|update| update.number)
                .collect::<Vec<_>>(),
            [Some(6)]
        );
    }
}
