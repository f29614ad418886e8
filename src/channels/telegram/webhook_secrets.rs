//! The secrets that calls of the webhook count with: the newest, and for a while those before.

use crate::clock::now_ms;
use crate::config::Secret;
use crate::signing::same_text;

/// Telegram allows the letters `A-Z a-z 0-9 _ -`.
#[derive(Debug, Clone, Default)]
pub(crate) struct WebhookSecrets {
    /// The secret that Telegram is told.
    newest: Secret,
    /// Each with its end, in Unix milliseconds. Calls that were under way at the change show these.
    earlier: Vec<(Secret, i64)>,
}

impl WebhookSecrets {
    pub(crate) fn new(newest: Secret, earlier: Vec<(Secret, i64)>) -> Self {
        WebhookSecrets { newest, earlier }
    }

    pub(super) fn newest(&self) -> &Secret {
        &self.newest
    }

    #[cfg(test)]
    pub(crate) fn told(&self) -> String {
        self.newest.expose().to_owned()
    }

    #[cfg(test)]
    pub(crate) fn ends(&self) -> impl Iterator<Item = i64> {
        self.earlier.iter().map(|(_, end)| *end)
    }

    pub(super) fn accept(&self, told: &str) -> bool {
        self.accept_at(told, now_ms())
    }

    /// Every secret is compared, so the time tells nothing about the others.
    fn accept_at(&self, told: &str, now: i64) -> bool {
        let counting = self.earlier.iter().filter(|(_, end)| now < *end);
        let counting = counting.map(|(secret, _)| secret).chain([&self.newest]);
        counting.fold(false, |accepted, secret| {
            accepted | (!told.is_empty() & same_text(told, secret.expose()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_before_the_newest_counts_until_its_end() {
        let secrets = WebhookSecrets::new(Secret::new("new"), vec![(Secret::new("old"), 100)]);
        let check = |told, now, expected| {
            assert_eq!(secrets.accept_at(told, now), expected, "{told} at {now}");
        };
        check("new", 99, true);
        check("new", 100, true);
        check("old", 99, true);
        check("old", 100, false);
        check("other", 0, false);
        check("", 0, false);
    }

    #[test]
    fn no_secret_lets_nobody_in() {
        assert!(!WebhookSecrets::default().accept(""));
    }
}
