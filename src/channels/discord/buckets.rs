//! Remembers the rate limits from Discord's answers, so that the next call does not run into them.
//!
//! <https://discord.com/developers/docs/topics/rate-limits>

use std::time::Duration;

use dashmap::DashMap;
use reqwest::header::HeaderMap;
use tokio::time::Instant;

use super::api::seconds_in;

/// A call waits this long by itself; a longer wait is told to the caller.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// Waits in memory; above this number the expired waits are dropped.
const MOST_KEPT: usize = 1000;
/// Stands for all calls together.
const EVERYTHING: &str = "";

/// Kinds of calls with a wait, and the end of each wait.
#[derive(Default)]
pub(super) struct Buckets {
    until: DashMap<String, Instant>,
}

impl Buckets {
    /// Returns when the call may be made; an error is the length of a wait that the caller has to
    /// decide about.
    pub(super) async fn ready(&self, bucket: &str) -> Result<(), Duration> {
        let until = [EVERYTHING, bucket]
            .into_iter()
            .filter_map(|bucket| self.until.get(bucket).map(|until| *until))
            .max();
        let wait = until
            .map(|until| until.saturating_duration_since(Instant::now()))
            .unwrap_or_default();
        if wait > LONGEST_WAIT {
            return Err(wait);
        }
        tokio::time::sleep(wait).await;
        Ok(())
    }

    /// Reads the headers: no remaining call means a wait.
    pub(super) fn note(&self, bucket: &str, headers: &HeaderMap) {
        if seconds_in(headers, "x-ratelimit-remaining") == Some(0.0)
            && let Some(wait) = seconds_in(headers, "x-ratelimit-reset-after")
            && let Ok(wait) = Duration::try_from_secs_f64(wait)
        {
            self.wait(Some(bucket), wait);
        }
    }

    /// None is about all calls.
    pub(super) fn wait(&self, bucket: Option<&str>, wait: Duration) {
        let now = Instant::now();
        if self.until.len() >= MOST_KEPT {
            self.until.retain(|_, until| *until > now);
        }
        let Some(until) = now.checked_add(wait) else {
            return;
        };
        let mut known = self
            .until
            .entry(bucket.unwrap_or(EVERYTHING).to_owned())
            .or_insert(until);
        *known = until.max(*known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_short_wait_is_waited_and_a_long_one_told() {
        let buckets = Buckets::default();
        let headers: HeaderMap = [
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset-after", "1.5"),
        ]
        .into_iter()
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .collect();
        buckets.note("a", &headers);
        let start = Instant::now();
        buckets.ready("b").await.unwrap();
        assert_eq!(start.elapsed(), Duration::ZERO);
        buckets.ready("a").await.unwrap();
        assert!(start.elapsed() >= Duration::from_millis(1500));
        buckets.wait(Some("a"), Duration::from_secs(60));
        assert!(buckets.ready("a").await.is_err());
        buckets.ready("b").await.unwrap();
        buckets.wait(None, Duration::from_secs(60));
        assert!(buckets.ready("b").await.is_err());
    }
}
