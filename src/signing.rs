//! Signs texts which come back from a platform, so only our own texts count.

use ring::hmac;

use crate::clock::now_ms;

/// Bytes of a tag. Short, because a button has room for 64 in all, but too long to guess.
const TAG_BYTES: usize = 8;

/// A tag counts in the period of its making and in the next: for at least 15 days, for at most 30.
/// The period is not written beside the tag, because a button has no room to spare.
const PERIOD_MS: i64 = 15 * 24 * 60 * 60 * 1000;

/// Makes and checks tags with a key.
#[derive(Debug, Clone)]
pub(crate) struct Signer {
    key: hmac::Key,
}

impl Signer {
    pub(crate) const KEY_BYTES: usize = 32;

    pub(crate) fn new(key: &[u8]) -> Self {
        Signer {
            key: hmac::Key::new(hmac::HMAC_SHA256, key),
        }
    }

    /// The tag of a text, in hexadecimal.
    pub(crate) fn tag(&self, text: &str) -> String {
        self.tag_in(period(now_ms()), text)
    }

    /// Takes as long for a wrong tag as for a right tag.
    pub(crate) fn accepts(&self, text: &str, tag: &str) -> bool {
        self.accepts_at(text, tag, now_ms())
    }

    fn accepts_at(&self, text: &str, tag: &str, now: i64) -> bool {
        let is_of = |period| same_text(&self.tag_in(period, text), tag);
        is_of(period(now)) | is_of(period(now) - 1)
    }

    /// The same bytes for a text at any time.
    pub(crate) fn hash(&self, text: &str) -> [u8; TAG_BYTES] {
        let mut hash = [0; TAG_BYTES];
        let whole = hmac::sign(&self.key, text.as_bytes());
        hash.copy_from_slice(&whole.as_ref()[..TAG_BYTES]);
        hash
    }

    fn tag_in(&self, period: i64, text: &str) -> String {
        self.hash(&format!("{period}:{text}"))
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

fn period(now: i64) -> i64 {
    now.div_euclid(PERIOD_MS)
}

/// Compares in constant time, so the time tells nothing about a secret. Only a wrong length shows.
pub(crate) fn same_text(a: &str, b: &str) -> bool {
    let differing = a
        .bytes()
        .zip(b.bytes())
        .fold(0, |differing, (a, b)| differing | (a ^ b));
    a.len() == b.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_tag_of_that_very_text_counts() {
        let (ours, other) = (
            Signer::new(&[1; Signer::KEY_BYTES]),
            Signer::new(&[2; Signer::KEY_BYTES]),
        );
        let tag = ours.tag("agent rose");
        assert_eq!(tag.len(), 16);
        assert!(ours.accepts("agent rose", &tag));
        assert!(!ours.accepts("agent ada", &tag) && !other.accepts("agent rose", &tag));
        assert!(
            !ours.accepts("agent rose", "")
                && !ours.accepts("agent rose", &tag[1..])
                && !ours.accepts("agent rose", &format!("{tag}0"))
        );
    }

    #[test]
    fn a_tag_has_an_end() {
        const DAY_MS: i64 = 24 * 60 * 60 * 1000;
        let signer = Signer::new(&[1; Signer::KEY_BYTES]);
        for made in [0, 1, PERIOD_MS - 1, PERIOD_MS, 1_763_350_000_000] {
            let tag = signer.tag_in(period(made), "agent rose");
            let counts = |later| signer.accepts_at("agent rose", &tag, made + later);
            assert!(counts(0) && counts(15 * DAY_MS), "made at {made}");
            assert!(!counts(30 * DAY_MS), "made at {made}");
            assert!(!counts(365 * DAY_MS), "made at {made}");
        }
    }
}
