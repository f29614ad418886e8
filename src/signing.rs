//! Signs texts which come back from a platform, so only our own texts count.

use ring::hmac;

/// Bytes of a tag. Short, because a button has room for 64 in all, but too long to guess.
const TAG_BYTES: usize = 8;

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
        let whole = hmac::sign(&self.key, text.as_bytes());
        whole.as_ref()[..TAG_BYTES]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// Takes as long for a wrong tag as for a right tag.
    pub(crate) fn accepts(&self, text: &str, tag: &str) -> bool {
        same_text(&self.tag(text), tag)
    }
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
}
