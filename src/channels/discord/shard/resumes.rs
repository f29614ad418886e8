//! Counts resumes without a new event.

/// Resumes from the same number before the session is given up. Fewer would end sessions in a
/// passing trouble of Discord; more would leave the bot deaf for some seconds longer.
pub(super) const MOST_IN_VAIN: u32 = 3;

#[derive(Debug, Default)]
pub(super) struct Resumes {
    /// The number of the last event when the session was last resumed.
    from: Option<u64>,
    count: u32,
}

impl Resumes {
    pub(super) fn note(&mut self, last: u64) {
        let is_the_same = self.from == Some(last);
        *self = Resumes {
            from: Some(last),
            count: if is_the_same {
                self.count.saturating_add(1)
            } else {
                1
            },
        };
    }

    /// Whether the last event is still the same after so many resumes.
    pub(super) fn are_in_vain(&self, last: Option<u64>) -> bool {
        self.count >= MOST_IN_VAIN && self.from == last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_resumes_from_the_same_number_are_in_vain() {
        let mut resumes = Resumes::default();
        assert!(!resumes.are_in_vain(None));
        for (last, expected) in [
            (5, false),
            (5, false),
            (6, false),
            (6, false),
            (6, true),
            (6, true),
        ] {
            resumes.note(last);
            assert_eq!(resumes.are_in_vain(Some(last)), expected, "{last}");
            assert!(
                !resumes.are_in_vain(Some(last + 1)),
                "an event has come since"
            );
        }
    }
}
