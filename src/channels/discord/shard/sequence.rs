//! The sequence numbers of a session's events, and gaps between them.

use std::time::Duration;

use tokio::time::Instant;

/// The shortest time between two reactions to gaps, because a compatible server may count
/// differently.
const ACTED_UPON_EVERY: Duration = Duration::from_secs(60);

/// The meaning of an event's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Next,
    /// Earlier events are missing. The event is not taken: a resume may bring them all in order.
    Resume,
    /// Earlier events are missing, also after a resume.
    Gap,
}

#[derive(Debug, Default)]
pub(super) struct Sequence {
    last: Option<u64>,
    resumed_at: Option<Instant>,
    asked_at: Option<Instant>,
    /// Missing events of this session.
    missing: u64,
}

impl Sequence {
    /// The number of the last event.
    pub(super) fn last(&self) -> Option<u64> {
        self.last
    }

    pub(super) fn step(&mut self, number: u64, now: Instant) -> Step {
        let missing = self.last.map_or(0, |last| number.saturating_sub(last + 1));
        if missing > 0 && is_due(&mut self.resumed_at, now) {
            tracing::warn!(
                discord.missing = missing,
                "an event of Discord is missing before number {number}; resuming to get it"
            );
            return Step::Resume;
        }
        self.last = Some(self.last.map_or(number, |last| last.max(number)));
        if missing == 0 {
            return Step::Next;
        }
        self.missing += missing;
        let is_asked_for = is_due(&mut self.asked_at, now);
        if is_asked_for {
            let total = self.missing;
            tracing::warn!(
                discord.missing = missing,
                discord.missing_in_session = total,
                "events of Discord before number {number} do not come; asking for missed messages"
            );
        }
        if is_asked_for { Step::Gap } else { Step::Next }
    }
}

/// Whether the time for another reaction has come; notes the time.
fn is_due(last: &mut Option<Instant>, now: Instant) -> bool {
    let is_due = last.is_none_or(|last| now.duration_since(last) >= ACTED_UPON_EVERY);
    if is_due {
        *last = Some(now);
    }
    is_due
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_leads_to_a_resume_and_then_to_a_question() {
        let (mut numbers, begun) = (Sequence::default(), Instant::now());
        let mut check = |number, after: u64, expected| {
            assert_eq!(
                numbers.step(number, begun + Duration::from_secs(after)),
                expected,
                "{number}"
            );
        };
        check(1, 0, Step::Next);
        check(2, 0, Step::Next);
        check(4, 0, Step::Resume);
        check(3, 1, Step::Next);
        check(4, 1, Step::Next);
        check(4, 1, Step::Next);
        check(7, 2, Step::Gap);
        check(8, 2, Step::Next);
        check(10, 3, Step::Next);
        check(12, 70, Step::Resume);
        check(12, 71, Step::Gap);
        check(13, 72, Step::Next);
        assert_eq!(numbers.last(), Some(13));
    }

    /// A session that is resumed has a last number. A new one begins with any.
    #[test]
    fn the_first_number_follows_nothing() {
        assert_eq!(Sequence::default().step(17, Instant::now()), Step::Next);
    }
}
