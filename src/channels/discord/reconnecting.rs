//! The wait of a shard before its next connection. Pure, but for the random part.
//!
//! <https://discord.com/developers/docs/events/gateway#resuming>

use std::time::Duration;

use tokio::time::Instant;

use super::socket::random_part;

/// The wait after a good connection, and after the first failed connection.
const FIRST_BACKOFF: Duration = Duration::from_millis(250);
/// Bounds the time until a returned server is found. Discord counts IDENTIFYs, not connections.
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);
/// Discord asks for one to five seconds after an invalid session.
const SOON: Duration = Duration::from_secs(1);
const SOON_AT_MOST: Duration = Duration::from_secs(5);
/// Short waits in a row after greetings without a session; then the waits grow.
const MOST_SOON: u32 = 5;
/// Keeps a bot without a session below the thousand IDENTIFYs of a day.
const LONGEST_AFTER_GREETING: Duration = Duration::from_secs(120);

/// Restarts further apart than this do not add up.
const RESTARTS_FORGOTTEN: Duration = Duration::from_secs(10 * 60);

/// The progress of a connection before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// No HELLO came.
    Nothing,
    /// HELLO came, so Discord is in good health, but no session.
    Greeting,
    /// A session was begun or resumed.
    Session,
}

/// Whether the next connection may be made at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Haste {
    AtOnce,
    /// Discord called the session invalid, and asks for a pause.
    NotAtOnce,
}

#[derive(Debug, Default)]
pub(super) struct Patience {
    /// Connections in a row without a HELLO.
    unanswered: u32,
    /// HELLOs in a row without a session.
    turned_away: u32,
}

impl Patience {
    /// The wait after a connection with this progress.
    pub(super) fn after(&mut self, reached: Reached, haste: Haste) -> Duration {
        match reached {
            Reached::Nothing => self.unanswered = self.unanswered.saturating_add(1),
            Reached::Greeting => {
                *self = Patience {
                    unanswered: 0,
                    turned_away: self.turned_away.saturating_add(1),
                }
            }
            Reached::Session => *self = Patience::default(),
        }
        match (reached, haste) {
            (Reached::Nothing, _) => {
                doubled(FIRST_BACKOFF, self.unanswered - 1).min(LONGEST_BACKOFF)
            }
            (Reached::Session, Haste::AtOnce) => FIRST_BACKOFF,
            (Reached::Session, Haste::NotAtOnce) => soon(),
            (Reached::Greeting, _) => match self.turned_away.checked_sub(MOST_SOON) {
                None | Some(0) => soon(),
                Some(more) => doubled(SOON_AT_MOST, more).min(LONGEST_AFTER_GREETING),
            },
        }
    }

    /// Connections in a row without a session.
    pub(super) fn failures(&self) -> u32 {
        self.unanswered.saturating_add(self.turned_away)
    }
}

/// Counts new sessions after resumes in vain. A broken event at the beginning of every session
/// would otherwise use up the IDENTIFYs of a day within hours.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    count: u32,
    last: Option<Instant>,
}

impl Restarts {
    /// The wait before the next new session.
    pub(super) fn next(&mut self, now: Instant) -> Duration {
        let is_again = self
            .last
            .is_some_and(|last| now.duration_since(last) < RESTARTS_FORGOTTEN);
        *self = Restarts {
            count: if is_again {
                self.count.saturating_add(1)
            } else {
                0
            },
            last: Some(now),
        };
        match self.count {
            0 => Duration::ZERO,
            again => doubled(SOON_AT_MOST, again).min(LONGEST_AFTER_GREETING),
        }
    }
}

fn soon() -> Duration {
    SOON + (SOON_AT_MOST - SOON).mul_f64(random_part())
}

fn doubled(wait: Duration, times: u32) -> Duration {
    wait.saturating_mul(1 << times.min(16))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_soon(wait: Duration) -> bool {
        (SOON..=SOON_AT_MOST).contains(&wait)
    }

    #[test]
    fn a_greeting_ends_the_backoff_of_connecting() {
        let mut patience = Patience::default();
        let waits: Vec<u64> = (0..10)
            .map(|_| patience.after(Reached::Nothing, Haste::AtOnce))
            .map(|wait| u64::try_from(wait.as_millis()).unwrap())
            .collect();
        assert_eq!(
            waits,
            [
                250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000
            ]
        );
        assert_eq!(patience.failures(), 10);
        assert!(is_soon(patience.after(Reached::Greeting, Haste::NotAtOnce)));
        assert_eq!(
            patience.after(Reached::Nothing, Haste::AtOnce),
            FIRST_BACKOFF
        );
    }

    #[test]
    fn a_session_that_was_good_is_gone_on_with_at_once() {
        let mut patience = Patience::default();
        patience.after(Reached::Greeting, Haste::AtOnce);
        assert_eq!(
            patience.after(Reached::Session, Haste::AtOnce),
            FIRST_BACKOFF
        );
        assert!(
            is_soon(patience.after(Reached::Session, Haste::NotAtOnce)),
            "Discord asks for it after op 9"
        );
        assert_eq!(patience.failures(), 0);
    }

    /// A thousand greetings a day are allowed.
    #[test]
    fn a_bot_that_is_never_let_in_greets_less_and_less() {
        let mut patience = Patience::default();
        let (mut greetings, mut time) = (0, Duration::ZERO);
        while time < Duration::from_secs(24 * 60 * 60) {
            let wait = patience.after(Reached::Greeting, Haste::NotAtOnce);
            assert!(
                greetings >= MOST_SOON || is_soon(wait),
                "{greetings}: {wait:?}"
            );
            (greetings, time) = (greetings + 1, time + wait);
        }
        assert!(greetings < 800, "{greetings}");
    }
}
