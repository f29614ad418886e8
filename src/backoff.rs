//! Waits between tries: each twice as long as the last, up to a bound.

use std::time::Duration;

/// Counts failures in a row, and returns the wait before the next try.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
    /// Waits in a row cut short in vain, because the next try failed too.
    cut_short: u32,
}

/// The wait before a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    /// The wait even when the trouble seems to be over. False alarms in a row make this longer, so
    /// tries still slow down.
    pub(crate) at_least: Duration,
    pub(crate) at_most: Duration,
}

impl Backoff {
    pub(crate) const fn new(first: Duration, longest: Duration) -> Self {
        Backoff {
            first,
            longest,
            failures: 0,
            cut_short: 0,
        }
    }

    /// The wait after a further failure.
    pub(crate) fn next(&mut self) -> Wait {
        let at_least = self.doubled(self.cut_short);
        let at_most = self.doubled(self.failures).max(at_least);
        self.failures = self.failures.saturating_add(1);
        Wait { at_least, at_most }
    }

    /// The longest wait [`Backoff::next`] would return.
    pub(crate) fn peek(&self) -> Duration {
        self.doubled(self.failures.max(self.cut_short))
    }

    /// Notes the apparent end of the trouble before the end of the wait.
    pub(crate) fn cut_short(&mut self) {
        self.failures = 0;
        self.cut_short = self.cut_short.saturating_add(1);
    }

    /// A try worked.
    pub(crate) fn reset(&mut self) {
        (self.failures, self.cut_short) = (0, 0);
    }

    fn doubled(&self, times: u32) -> Duration {
        self.first
            .saturating_mul(1_u32.checked_shl(times).unwrap_or(u32::MAX))
            .min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(backoff: &mut Backoff) -> (u64, u64) {
        assert_eq!(backoff.peek(), backoff.clone().next().at_most);
        let Wait { at_least, at_most } = backoff.next();
        (at_least.as_secs(), at_most.as_secs())
    }

    #[test]
    fn waits_double_up_to_their_bound() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(15));
        let waits: Vec<_> = (0..40).map(|_| seconds(&mut backoff)).collect();
        assert_eq!(
            waits[..6],
            [(1, 1), (1, 2), (1, 4), (1, 8), (1, 15), (1, 15)]
        );
        assert_eq!(
            waits[39],
            (1, 15),
            "a shift that is too far does not begin anew"
        );
        backoff.reset();
        assert_eq!(seconds(&mut backoff), (1, 1));
    }

    #[test]
    fn hurrying_in_vain_gets_slower_too() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(15));
        let mut hurry = || {
            let wait = seconds(&mut backoff);
            backoff.cut_short();
            wait
        };
        assert_eq!(
            [hurry(), hurry(), hurry(), hurry(), hurry(), hurry()],
            [(1, 1), (2, 2), (4, 4), (8, 8), (15, 15), (15, 15)]
        );
    }
}
