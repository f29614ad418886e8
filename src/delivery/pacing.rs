//! The platform's limits, kept for the whole bot: over all, per chat and per minute.

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
    group_minute: Option<DefaultKeyedRateLimiter<i64>>,
    clock: DefaultClock,
}

impl Pacing {
    /// Returns when a send is within every budget it draws on.
    pub(super) async fn ready(&self, pace: Pace) {
        let budgets = self.budgets.get_or_init(|| Budgets::of(pace.limits));
        if let Some(limiter) = budgets.group_minute.as_ref().filter(|_| pace.is_group) {
            budgets.wait(|| limiter.check_key(&pace.chat)).await;
        }
        if let Some(limiter) = &budgets.chat_second {
            budgets.wait(|| limiter.check_key(&pace.chat)).await;
        }
        if let Some(limiter) = &budgets.all {
            budgets.wait(|| limiter.check()).await;
        }
        self.quiet_over(pace.chat).await;
    }

    /// The platform asked this chat to wait.
    pub(super) fn quiet_for(&self, chat: i64, wait: Duration) {
        // A wait past the end of time is kept by the row that was told, and by nobody else.
        if let Some(until) = Instant::now().checked_add(wait) {
            self.quiet.entry(chat).and_modify(|known| *known = until.max(*known)).or_insert(until);
        }
    }

    async fn quiet_over(&self, chat: i64) {
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
            group_minute: NonZeroU32::new(limits.group_per_minute).map(Quota::per_minute).map(RateLimiter::keyed),
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
