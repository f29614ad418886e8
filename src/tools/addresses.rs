//! Web addresses that trusted people wrote. Pure.
//!
//! An address counts as written only as a whole: neither a longer one, which could carry words of
//! the conversation out of the house, nor the beginning of one, which may be another server.

use std::collections::BTreeSet;

use reqwest::Url;
use serde::{Deserialize, Serialize};

/// Addresses taken from one text.
const MOST_OF_A_TEXT: usize = 200;
/// The longest address.
const MAX_ADDRESS_BYTES: usize = 4096;
/// Ends of a sentence or of a mark around an address.
const CLOSING: [char; 16] = [
    '.', ',', ';', ':', '!', '?', ')', ']', '}', '\'', '’', '*', '_', '~', '”', '»',
];
const OPENING: [char; 10] = ['(', '[', '{', '\'', '‘', '*', '_', '~', '“', '«'];

/// Addresses in one form: without scheme, fragment and final slash.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Addresses(BTreeSet<String>);

impl Addresses {
    /// Adds the addresses of a text.
    pub(crate) fn learn(&mut self, text: &str) {
        let found = words_with_a_dot(text)
            .filter(|word| word.len() <= MAX_ADDRESS_BYTES)
            .flat_map(candidates)
            .filter_map(plain);
        self.0.extend(found.take(MOST_OF_A_TEXT));
    }

    pub(crate) fn has(&self, address: &str) -> bool {
        plain(address).is_some_and(|address| self.0.contains(&address))
    }

    /// Those of them that a text names.
    pub(crate) fn within(&self, text: &str) -> Addresses {
        let mut named = Addresses::default();
        named.learn(text);
        named.0.retain(|address| self.0.contains(address));
        named
    }

    pub(crate) fn join(&mut self, others: Addresses) {
        self.0.extend(others.0);
    }
}

/// The words that may be an address. Most texts have few dots, and most dots end a sentence.
fn words_with_a_dot(text: &str) -> impl Iterator<Item = &str> {
    let is_between = |c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '`' | '|');
    let mut rest = text;
    let words = std::iter::from_fn(move || {
        let dot = memchr::memchr(b'.', rest.as_bytes())?;
        let start = rest[..dot].rfind(is_between).map_or(0, |at| {
            at + rest[at..].chars().next().map_or(0, char::len_utf8)
        });
        let end = rest[dot..]
            .find(is_between)
            .map_or(rest.len(), |at| dot + at);
        let word = &rest[start..end];
        rest = &rest[end..];
        Some(word)
    });
    words.filter(|word| word.trim_end_matches(CLOSING).contains('.'))
}

/// A word as an address, with and without the signs at its end: `(see https://a.org/b_(c)).`
fn candidates(word: &str) -> impl Iterator<Item = &str> {
    let lower = word.to_ascii_lowercase();
    let start = lower
        .find("https://")
        .into_iter()
        .chain(lower.find("http://"))
        .min();
    let word = match start {
        Some(start) => &word[start..],
        None => word.trim_start_matches(OPENING),
    };
    std::iter::successors(Some(word), |word| word.strip_suffix(CLOSING))
}

/// The one form of an address. None for a text that is none, and for one with a name or a password.
fn plain(address: &str) -> Option<String> {
    let has_scheme = address.contains("://");
    let url = match has_scheme {
        true => Url::parse(address),
        false => Url::parse(&format!("https://{address}")),
    };
    let url = url
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let host = url.host_str().filter(|host| host.contains(['.', ':']))?;
    if !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    let port = url
        .port()
        .map(|port| format!(":{port}"))
        .unwrap_or_default();
    let query = url
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    let path = url.path().trim_end_matches('/');
    Some(format!("{host}{port}{path}{query}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_known_as_it_was_written() {
        let check = |text: &str, address: &str, expected: bool| {
            let mut known = Addresses::default();
            known.learn(text);
            assert_eq!(known.has(address), expected, "{text} / {address}");
        };
        let said = "Please read https://example.org/a?b=c, then (http://other.org/x_(y)).";
        check(said, "https://example.org/a?b=c", true);
        check(said, "https://example.org/a?b=c#part", true);
        check(said, "HTTPS://EXAMPLE.org/a?b=c", true);
        check(said, "http://other.org/x_(y)", true);
        check(said, "https://example.org/a", false);
        check(said, "https://example.org/a?b=cd", false);
        check(said, "https://example.org/", false);
        check(said, "https://example.or/", false);
        check(said, "https://example.org/a?b=c&secret=1", false);
        check(said, "https://example.org@evil.org/a?b=c", false);
        check(
            "look at example.org/docs",
            "https://example.org/docs/",
            true,
        );
        check(
            "[docs](https://example.org/docs).",
            "https://example.org/docs",
            true,
        );
        check("**https://example.org**", "https://example.org/", true);
        check("“https://example.org/q”", "https://example.org/q", true);
        check("https://example.org:8443/x", "https://example.org/x", false);
        check("https://example.org:443/x", "https://example.org/x", true);
        check(
            "https://me:pw@example.org/",
            "https://me:pw@example.org/",
            false,
        );
        check("nothing of the kind", "https://example.org/", false);
        check("The end. Of it.", "https://end./", false);
        check("«example.org»|a.org", "https://example.org/", true);
        check("«example.org»|a.org", "https://a.org/", true);
        check("file:///etc/passwd.txt", "file:///etc/passwd.txt", false);
    }

    #[test]
    fn a_task_hands_on_only_known_addresses() {
        let mut known = Addresses::default();
        known.learn("https://example.org/a");
        let handed = known.within("Read https://example.org/a and https://evil.org/b.");
        assert!(handed.has("https://example.org/a"));
        assert!(!handed.has("https://evil.org/b"));
    }
}
