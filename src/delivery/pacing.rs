//! The platform's limits, kept for the whole bot: over all, per chat and per minute.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::OnceLock;
use std::time::Duration;

use dashmap::DashMap;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};
use tokio::time::Instant;

use crate::channels::{Limits, Pace};

/// Platforms let a few messages through at once before they count seconds.
const CHAT_BURST: NonZeroU32 = NonZeroU32::new(3).expect("three is not zero");

/// One bot's budgets; made when it first sends.
#[derive(Default)]
pub(super) struct Pacing {
    budgets: OnceLock<Budgets>,
    /// Chats that asked to wait, and until when. All places of a chat wait, because they share what it allows.
    quiet: DashMap<i64, Instant>,
}

struct Budgets {
    all: Option<DefaultDirectRateLimiter>,
    chat_second: Option<DefaultKeyedRateLimiter<i64>>,
    group_minute: Option<Window>,
    clock: DefaultClock,
}

impl Pacing {
    /// Returns when a send is within every budget it draws on.
    pub(super) async fn ready(&self, pace: Pace) {
        let budgets = self.budgets.get_or_init(|| Budgets::of(pace.limits));
        if let Some(window) = budgets.group_minute.as_ref().filter(|_| pace.is_group) {
            window.ready(pace.chat).await;
        }
        if let Some(limiter) = &budgets.chat_second {
            budgets.wait(|| limiter.check_key(&pace.chat)).await;
        }
        if let Some(limiter) = &budgets.all {
            budgets.wait(|| limiter.check()).await;
        }
    }

    /// The platform asked this chat to wait.
    pub(super) fn quiet_for(&self, chat: i64, wait: Duration) {
        // A wait past the end of time is kept by the row that was told, and by nobody else.
        if let Some(until) = Instant::now().checked_add(wait) {
            self.quiet.entry(chat).and_modify(|known| *known = until.max(*known)).or_insert(until);
        }
    }

    /// Returns when the chat has not asked to wait any longer.
    pub(super) async fn quiet_over(&self, chat: i64) {
        while let Some(until) = self.quiet.get(&chat).map(|until| *until) {
            tokio::time::sleep_until(until).await;
            self.quiet.remove_if(&chat, |_, until| *until <= Instant::now());
        }
    }
}

impl Budgets {
    fn of(limits: Limits) -> Self {
        let per_second = |count| NonZeroU32::new(count).map(Quota::per_second);
        Budgets {
            all: per_second(limits.all_per_second).map(RateLimiter::direct),
            chat_second: per_second(limits.chat_per_second).map(|quota| RateLimiter::keyed(quota.allow_burst(CHAT_BURST))),
            group_minute: NonZeroU32::new(limits.group_per_minute).map(Window::new),
            clock: DefaultClock::default(),
        }
    }

    async fn wait(&self, mut check: impl FnMut() -> Result<(), governor::NotUntil<<DefaultClock as Clock>::Instant>>) {
        while let Err(not_until) = check() {
            let wait = not_until.wait_time_from(self.clock.now());
            // A hair more, because a timer that fires early would only wait again.
            tokio::time::sleep(wait + Duration::from_millis(1)).await;
        }
    }
}

/// What each group was sent in the last minute. A bucket that refills meanwhile would let twice the limit through.
struct Window {
    limit: usize,
    sent: DashMap<i64, VecDeque<Instant>>,
}

impl Window {
    const LENGTH: Duration = Duration::from_secs(60);

    fn new(limit: NonZeroU32) -> Self {
        Window { limit: usize::try_from(limit.get()).unwrap_or(usize::MAX), sent: DashMap::new() }
    }

    async fn ready(&self, chat: i64) {
        while let Some(free_at) = self.take(chat) {
            tokio::time::sleep_until(free_at).await;
        }
    }

    /// Counts one more send, or tells when there is room for it.
    fn take(&self, chat: i64) -> Option<Instant> {
        let now = Instant::now();
        let mut sent = self.sent.entry(chat).or_default();
        while sent.front().is_some_and(|at| *at + Self::LENGTH <= now) {
            sent.pop_front();
        }
        if sent.len() >= self.limit {
            return sent.front().map(|oldest| *oldest + Self::LENGTH);
        }
        sent.push_back(now);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: Pace =
        Pace { chat: -5, is_group: true, limits: Limits { all_per_second: 0, chat_per_second: 0, group_per_minute: 20 } };

    #[tokio::test(start_paused = true)]
    async fn a_group_gets_its_limit_in_any_minute_and_no_more() {
        let (pacing, began) = (Pacing::default(), Instant::now());
        for _ in 0..20 {
            pacing.ready(GROUP).await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        pacing.ready(GROUP).await;
        assert!(began.elapsed() >= Duration::from_secs(60));
        pacing.ready(Pace { chat: -6, ..GROUP }).await;
        assert!(began.elapsed() < Duration::from_secs(61), "another group does not wait");
    }

    #[tokio::test(start_paused = true)]
    async fn a_private_chat_is_no_group() {
        let (pacing, began) = (Pacing::default(), Instant::now());
        for _ in 0..50 {
            pacing.ready(Pace { chat: 5, is_group: false, ..GROUP }).await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
