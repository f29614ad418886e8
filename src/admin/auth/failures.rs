//! Counts wrong tokens, cookies and links. After too many in a minute, wrong ones are told to wait.
//!
//! Right ones are let in all the same, so that nobody can lock the operator out. Secrets have 256
//! random bits, so guessing is hopeless at any pace; the limit keeps it from costing anything.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

const WITHIN: Duration = Duration::from_secs(60);
const MOST: usize = 20;

#[derive(Default)]
pub(in crate::admin) struct Failures(Mutex<VecDeque<Instant>>);

impl Failures {
    /// Notes a failure, or tells how long to wait.
    pub(in crate::admin) fn one_more(&self) -> Result<(), Duration> {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        while times.front().is_some_and(|first| now - *first >= WITHIN) {
            times.pop_front();
        }
        if let Some(first) = times.front().filter(|_| times.len() >= MOST) {
            return Err(WITHIN - (now - *first));
        }
        if times.len() + 1 == MOST {
            tracing::warn!(
                "{MOST} wrong tokens, cookies or links came to the admin listener within a minute"
            );
        }
        times.push_back(now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn after_too_many_failures_wrong_keys_wait() {
        let failures = Failures::default();
        for _ in 0..MOST {
            assert_eq!(failures.one_more(), Ok(()));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(failures.one_more(), Err(Duration::from_secs(40)));
        tokio::time::advance(Duration::from_secs(40)).await;
        assert_eq!(failures.one_more(), Ok(()), "the first is a minute ago");
    }
}
