//! How long a shard waits before it connects again. Pure, but for the random part.
//!
//! <https://discord.com/developers/docs/events/gateway#resuming>

use std::time::Duration;

use tokio::time::Instant;

use super::socket::random_part;

/// The wait after a connection that was good until it ended, and after the first that could not be made.
const FIRST_BACKOFF: Duration = Duration::from_millis(250);
/// A server that is back is found within this time. Connections are not counted by Discord, only greetings are.
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);
/// What Discord asks for after an invalid session: something between one and five seconds.
const SOON: Duration = Duration::from_secs(1);
const SOON_AT_MOST: Duration = Duration::from_secs(5);
/// Connections in a row that Discord greeted and then ended, before they become fewer.
const MOST_SOON: u32 = 5;
/// Keeps a bot that is never let in below the thousand greetings of a day.
const LONGEST_AFTER_GREETING: Duration = Duration::from_secs(120);

/// After this time a session that cannot be gone on with is the first again.
const RESTARTS_FORGOTTEN: Duration = Duration::from_secs(10 * 60);

/// How far a connection had come when it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// Discord did not greet us.
    Nothing,
    /// Discord greeted us: it is in good health, but did not let us in.
    Greeting,
    /// A session was begun or resumed.
    Session,
}

/// Whether the next connection may be made at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Haste {
    AtOnce,
    /// Discord called the session invalid, and wants to be left alone for a moment.
    NotAtOnce,
}

#[derive(Debug, Default)]
pub(super) struct Patience {
    /// Connections in a row without a greeting.
    unanswered: u32,
    /// Greetings in a row that led to no session.
    turned_away: u32,
}

impl Patience {
    /// The wait after a connection that has come this far.
    pub(super) fn after(&mut self, reached: Reached, haste: Haste) -> Duration {
        match reached {
            Reached::Nothing => self.unanswered = self.unanswered.saturating_add(1),
            Reached::Greeting => *self = Patience { unanswered: 0, turned_away: self.turned_away.saturating_add(1) },
            Reached::Session => *self = Patience::default(),
        }
        match (reached, haste) {
            (Reached::Nothing, _) => doubled(FIRST_BACKOFF, self.unanswered - 1).min(LONGEST_BACKOFF),
            (Reached::Session, Haste::AtOnce) => FIRST_BACKOFF,
            (Reached::Session, Haste::NotAtOnce) => soon(),
            (Reached::Greeting, _) => match self.turned_away.checked_sub(MOST_SOON) {
                None | Some(0) => soon(),
                Some(more) => doubled(SOON_AT_MOST, more).min(LONGEST_AFTER_GREETING),
            },
        }
    }

    /// Connections in a row that led to no session.
    pub(super) fn failures(&self) -> u32 {
        self.unanswered.saturating_add(self.turned_away)
    }
}

/// New sessions that were begun because resuming brought nothing. An event that Discord tells at every beginning would use up the
/// sessions of a day within hours.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    count: u32,
    last: Option<Instant>,
}

impl Restarts {
    /// The wait before the next new session.
    pub(super) fn next(&mut self, now: Instant) -> Duration {
        let is_again = self.last.is_some_and(|last| now.duration_since(last) < RESTARTS_FORGOTTEN);
        *self = Restarts { count: if is_again { self.count.saturating_add(1) } else { 0 }, last: Some(now) };
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
        assert_eq!(waits, [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
        assert_eq!(patience.failures(), 10);
        assert!(is_soon(patience.after(Reached::Greeting, Haste::NotAtOnce)));
        assert_eq!(patience.after(Reached::Nothing, Haste::AtOnce), FIRST_BACKOFF);
    }

    #[test]
    fn a_session_that_was_good_is_gone_on_with_at_once() {
        let mut patience = Patience::default();
        patience.after(Reached::Greeting, Haste::AtOnce);
        assert_eq!(patience.after(Reached::Session, Haste::AtOnce), FIRST_BACKOFF);
        assert!(is_soon(patience.after(Reached::Session, Haste::NotAtOnce)), "Discord asks for it after op 9");
        assert_eq!(patience.failures(), 0);
    }

    /// A thousand greetings a day are allowed.
    #[test]
    fn a_bot_that_is_never_let_in_greets_less_and_less() {
        let mut patience = Patience::default();
        let (mut greetings, mut time) = (0, Duration::ZERO);
        while time < Duration::from_secs(24 * 60 * 60) {
            let wait = patience.after(Reached::Greeting, Haste::NotAtOnce);
            assert!(greetings >= MOST_SOON || is_soon(wait), "{greetings}: {wait:?}");
            (greetings, time) = (greetings + 1, time + wait);
        }
        assert!(greetings < 800, "{greetings}");
    }
}
