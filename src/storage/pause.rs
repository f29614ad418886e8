//! The common wait for a database failing for a while, and its end where waiting is of no use.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::StoreError;
use crate::backoff::Backoff;

/// Tries of work that fails in a way that does not pass.
const MOST_TRIES: u32 = 3;
/// The pause before such a try. Others may wait behind, so the pause is short.
const SOON: Duration = Duration::from_millis(20);

/// Counts the failures of one piece of work.
#[derive(Debug)]
pub(crate) struct Patience {
    /// For the log.
    who: &'static str,
    backoff: Backoff,
    permanent: u32,
    /// Failures that pass by themselves.
    passing: u32,
}

/// The way on after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Again,
    /// No try will work: see [`StoreError::remedy`].
    Hopeless,
    /// The process stops first. The next start finds the open rows.
    Stopping,
}

/// A store that fails for long is told ever more seldom, and never forgotten.
fn is_told(failures: u32) -> bool {
    failures.is_power_of_two() || failures.is_multiple_of(256)
}

impl Patience {
    /// Waits a second between tries.
    pub(crate) fn new(who: &'static str) -> Self {
        let second = Duration::from_secs(1);
        Patience::with(who, Backoff::new(second, second))
    }

    pub(super) fn with(who: &'static str, backoff: Backoff) -> Self {
        Patience {
            who,
            backoff,
            permanent: 0,
            passing: 0,
        }
    }

    /// Waits a little after a failure.
    pub(crate) async fn after(&mut self, stop: &CancellationToken, error: &StoreError) -> Next {
        let who = self.who;
        let pause = if error.is_permanent() {
            self.permanent += 1;
            if self.permanent >= MOST_TRIES {
                return Next::Hopeless;
            }
            tracing::warn!("{who} is tried once more: {error}");
            SOON
        } else {
            self.passing += 1;
            if is_told(self.passing) {
                tracing::error!("{who} waits for the store: {error}");
            }
            self.backoff.next().at_most
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => Next::Again,
            () = stop.cancelled() => Next::Stopping,
        }
    }
}
