//! Whether a platform answers, by its newest calls. Shared by all callers, so that the first
//! successful call ends the waits of the others.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::backoff::Backoff;
use crate::clock::now_ms;

const FIRST_BACKOFF: Duration = Duration::from_secs(1);
/// Short, so that the return of a platform is soon noticed, even without other calls.
const LONGEST_BACKOFF: Duration = Duration::from_secs(15);

/// The state of the connection to a platform.
#[derive(Debug)]
pub struct Health {
    state: watch::Sender<State>,
    /// A plain mutex, held for a copy.
    hearing: Mutex<Hearing>,
}

/// Whether messages of the platform reach us.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Hearing {
    /// Nothing is known before the first try.
    #[default]
    NotYet,
    /// With the beginning, in Unix milliseconds.
    Since(i64),
    /// With the beginning and the reason.
    Deaf { since: i64, reason: String },
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// The newest call worked, apart from refused calls.
    answers: bool,
    /// Successful calls so far.
    successes: u64,
}

impl Default for Health {
    /// Nothing is known before the first call.
    fn default() -> Self {
        Health {
            state: watch::Sender::new(State::default()),
            hearing: Mutex::default(),
        }
    }
}

impl Health {
    pub fn hearing(&self) -> Hearing {
        self.lock().clone()
    }

    /// Listening works.
    pub(crate) fn hears(&self) {
        let mut hearing = self.lock();
        if !matches!(*hearing, Hearing::Since(_)) {
            *hearing = Hearing::Since(now_ms());
        }
    }

    /// Listening does not work, for a reason that has no secret in it.
    pub(crate) fn is_deaf(&self, reason: impl Into<String>) {
        let mut hearing = self.lock();
        let since = match *hearing {
            Hearing::Deaf { since, .. } => since,
            _ => now_ms(),
        };
        *hearing = Hearing::Deaf {
            since,
            reason: reason.into(),
        };
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Hearing> {
        self.hearing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Health {
    /// For tries of a call to a platform.
    pub(crate) fn backoff() -> Backoff {
        Backoff::new(FIRST_BACKOFF, LONGEST_BACKOFF)
    }

    /// Whether the newest call worked. A call that the platform refused does not count.
    pub fn answers(&self) -> bool {
        self.state.borrow().answers
    }

    /// A call worked.
    pub(crate) fn well(&self) {
        self.state.send_modify(|state| {
            *state = State {
                answers: true,
                successes: state.successes.wrapping_add(1),
            }
        });
    }

    /// A call had no answer, or an answer from something in between. Wakes no waits.
    pub(crate) fn unwell(&self) {
        self.state.send_if_modified(|state| {
            state.answers = false;
            false
        });
    }

    /// Waits before the next try of a failed call. Ends early when another call works meanwhile.
    pub(crate) async fn pause(&self, backoff: &mut Backoff) {
        let mut state = self.state.subscribe();
        let known = state.borrow_and_update().successes;
        let wait = backoff.next();
        sleep(wait.at_least).await;
        let works_again = state.wait_for(|state| state.successes != known);
        if timeout(wait.at_most.saturating_sub(wait.at_least), works_again)
            .await
            .is_ok()
        {
            backoff.cut_short();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    /// The length of the next pause when another call works after `works_after`, if ever.
    async fn pause(health: &Health, backoff: &mut Backoff, works_after: Option<u64>) -> u64 {
        let began = Instant::now();
        let other_call = async {
            if let Some(seconds) = works_after {
                sleep(Duration::from_secs(seconds)).await;
                health.well();
            }
        };
        tokio::join!(health.pause(backoff), other_call);
        began.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_works_ends_the_waits_of_the_others() {
        let (health, mut backoff) = (Health::default(), Health::backoff());
        for expected in [1, 2, 4, 8] {
            assert_eq!(pause(&health, &mut backoff, None).await, expected);
        }
        assert_eq!(
            pause(&health, &mut backoff, Some(3)).await,
            3,
            "and not fifteen"
        );
        assert_eq!(
            pause(&health, &mut backoff, Some(1)).await,
            2,
            "one that fails all the same does not hurry for ever"
        );
        assert_eq!(pause(&health, &mut backoff, Some(1)).await, 4);
    }

    #[tokio::test(start_paused = true)]
    async fn the_newest_call_tells_whether_the_platform_answers() {
        let health = Health::default();
        assert!(!health.answers(), "nothing is known yet");
        health.well();
        assert!(health.answers());
        health.unwell();
        assert!(!health.answers());
    }
}
