//! Keeps IDENTIFYs five seconds apart and below the number of a day. Discord resets the token of a
//! bot above its limit.
//!
//! <https://discord.com/developers/docs/events/gateway#session-start-limit-object>

use std::time::Duration;

use serde::Deserialize;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep_until};

/// Discord's five seconds, and a little more.
const APART: Duration = Duration::from_millis(5100);
/// The log warns below this number of remaining IDENTIFYs.
const FEW: u64 = 20;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The limit in the answer of `GET /gateway/bot`.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct StartLimit {
    /// IDENTIFYs of a day.
    #[serde(default = "a_thousand")]
    pub(super) total: u64,
    pub(super) remaining: u64,
    /// Milliseconds.
    pub(super) reset_after: u64,
}

fn a_thousand() -> u64 {
    1000
}

impl Default for StartLimit {
    fn default() -> Self {
        StartLimit {
            total: a_thousand(),
            remaining: a_thousand(),
            reset_after: u64::try_from(DAY.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// An async mutex, because a waiting shard keeps the shards behind it in line.
pub(super) struct IdentifyLimit {
    line: Mutex<Queue>,
}

struct Queue {
    last: Option<Instant>,
    left: u64,
    per_day: u64,
    renewed_at: Instant,
}

/// The right to identify. An unused permit goes to the next shard in line.
pub(super) struct IdentifyPermit<'a>(MutexGuard<'a, Queue>);

impl IdentifyPermit<'_> {
    /// Counts the IDENTIFY.
    pub(super) fn take(mut self) {
        self.0.last = Some(Instant::now());
        self.0.left = self.0.left.saturating_sub(1);
        if self.0.left < FEW {
            tracing::warn!(
                "Discord lets this bot connect {} more times today",
                self.0.left
            );
        }
    }
}

impl IdentifyLimit {
    pub(super) fn new(limit: StartLimit) -> Self {
        let renewed_at = Instant::now() + Duration::from_millis(limit.reset_after).min(DAY);
        IdentifyLimit {
            line: Mutex::new(Queue {
                last: None,
                left: limit.remaining,
                per_day: limit.total.max(1),
                renewed_at,
            }),
        }
    }

    /// Waits in line, and for the limit.
    pub(super) async fn permit(&self) -> IdentifyPermit<'_> {
        let mut line = self.line.lock().await;
        if let Some(last) = line.last {
            sleep_until(last + APART).await;
        }
        if line.left == 0 && line.renewed_at > Instant::now() {
            let hours = line.renewed_at.duration_since(Instant::now()).as_secs_f32() / 3600.0;
            tracing::error!(
                "Discord lets this bot connect no more for today; waiting {hours:.1} hours"
            );
            sleep_until(line.renewed_at).await;
        }
        if line.renewed_at <= Instant::now() {
            (line.left, line.renewed_at) = (line.per_day, Instant::now() + DAY);
        }
        IdentifyPermit(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn greetings_are_apart_and_no_more_than_the_day_allows() {
        let limit = StartLimit {
            total: 2,
            remaining: 3,
            reset_after: 60_000,
        };
        let (greetings, start) = (IdentifyLimit::new(limit), Instant::now());
        drop(greetings.permit().await);
        let mut times = Vec::new();
        for _ in 0..6 {
            greetings.permit().await.take();
            times.push(start.elapsed().as_millis());
        }
        let day = DAY.as_millis();
        assert_eq!(
            times,
            [0, 5100, 10_200, 60_000, 65_100, 60_000 + day],
            "three that were left, then two a day"
        );
    }
}
