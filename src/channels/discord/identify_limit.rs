//! Keeps the bot's greetings apart and counts them: Discord allows one in five seconds, and so many a day. It takes back the token
//! of a bot that greets more often.
//!
//! <https://discord.com/developers/docs/events/gateway#session-start-limit-object>

use std::time::Duration;

use serde::Deserialize;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep_until};

/// What Discord asks for, and a little more.
const APART: Duration = Duration::from_millis(5100);
/// Fewer greetings than this left for today are worth a word.
const FEW: u64 = 20;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What Discord says about greetings when it is asked where to connect.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct StartLimit {
    /// In a day.
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

/// An async mutex, because the shard that waits holds the line for those behind it.
pub(super) struct IdentifyLimit {
    line: Mutex<Queue>,
}

struct Queue {
    last: Option<Instant>,
    left: u64,
    per_day: u64,
    renewed_at: Instant,
}

/// The right to greet. Not used, it goes to the next in the line.
pub(super) struct IdentifyPermit<'a>(MutexGuard<'a, Queue>);

impl IdentifyPermit<'_> {
    /// The greeting is said now.
    pub(super) fn take(mut self) {
        self.0.last = Some(Instant::now());
        self.0.left = self.0.left.saturating_sub(1);
        if self.0.left < FEW {
            tracing::warn!("Discord lets this bot connect {} more times today", self.0.left);
        }
    }
}

impl IdentifyLimit {
    pub(super) fn new(limit: StartLimit) -> Self {
        let renewed_at = Instant::now() + Duration::from_millis(limit.reset_after).min(DAY);
        IdentifyLimit { line: Mutex::new(Queue { last: None, left: limit.remaining, per_day: limit.total.max(1), renewed_at }) }
    }

    /// Returns when it is the caller's turn.
    pub(super) async fn turn(&self) -> IdentifyPermit<'_> {
        let mut line = self.line.lock().await;
        if let Some(last) = line.last {
            sleep_until(last + APART).await;
        }
        if line.left == 0 && line.renewed_at > Instant::now() {
            let hours = line.renewed_at.duration_since(Instant::now()).as_secs_f32() / 3600.0;
            tracing::error!("Discord lets this bot connect no more for today; waiting {hours:.1} hours");
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
        let limit = StartLimit { total: 2, remaining: 3, reset_after: 60_000 };
        let (greetings, start) = (IdentifyLimit::new(limit), Instant::now());
        drop(greetings.turn().await);
        let mut times = Vec::new();
        for _ in 0..6 {
            greetings.turn().await.take();
            times.push(start.elapsed().as_millis());
        }
        let day = DAY.as_millis();
        assert_eq!(times, [0, 5100, 10_200, 60_000, 65_100, 60_000 + day], "three that were left, then two a day");
    }
}
