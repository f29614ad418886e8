//! The platform's limits, kept for the whole bot: over all, per chat and per minute.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};
use tokio::time::Instant;

use super::outbox::Kind;
use crate::channels::{Limits, Pace};

/// Platforms let a few messages through at once before they count seconds.
const CHAT_BURST: NonZeroU32 = NonZeroU32::new(3).expect("three is not zero");

/// Whoever is not next looks again this soon.
const NOT_NEXT: Duration = Duration::from_millis(20);
/// A preview that found no room is not tried before this.
const NO_ROOM: Duration = Duration::from_secs(1);

/// One bot's budgets; made when it first sends.
#[derive(Default)]
pub(super) struct Pacing {
    budgets: OnceLock<Budgets>,
    /// Chats that asked to wait, and until when. All places of a chat wait, because they share what it allows.
    quiet: DashMap<i64, Instant>,
    line: Line,
    /// When each chat was last shown a preview.
    previewed: DashMap<i64, Option<Instant>>,
}

struct Budgets {
    all: Option<DefaultDirectRateLimiter>,
    chat_second: Option<DefaultKeyedRateLimiter<i64>>,
    group_minute: Option<Window>,
    clock: DefaultClock,
}

impl Pacing {
    /// Returns when a row is within every budget it draws on. In a chat the more important kind goes first.
    pub(super) async fn ready(&self, pace: Pace, kind: Kind) {
        let budgets = self.budgets.get_or_init(|| Budgets::of(pace.limits));
        let waiting = self.line.join(pace.chat, kind);
        if let Some(window) = budgets.group_minute.as_ref().filter(|_| pace.is_group) {
            while let Some(free_at) = self.line.not_next(pace.chat, kind).or_else(|| window.take(pace.chat)) {
                tokio::time::sleep_until(free_at).await;
            }
        }
        if let Some(limiter) = &budgets.chat_second {
            budgets.wait(|| limiter.check_key(&pace.chat)).await;
        }
        drop(waiting);
        if let Some(limiter) = &budgets.all {
            let _waiting = self.line.join_overall();
            budgets.wait(|| limiter.check()).await;
        }
    }

    /// Counts a row if there is room for it right now and nobody stands in line. Then it does not matter how important it is.
    pub(super) fn take_at_once(&self, pace: Pace) -> bool {
        let budgets = self.budgets.get_or_init(|| Budgets::of(pace.limits));
        let window = budgets.group_minute.as_ref().filter(|_| pace.is_group);
        self.line.is_empty(pace.chat)
            && budgets.chat_second.as_ref().is_none_or(|limiter| limiter.check_key(&pace.chat).is_ok())
            && budgets.all.as_ref().is_none_or(|limiter| limiter.check().is_ok())
            // Last, because a place in the minute is the dearest to waste.
            && window.is_none_or(|window| window.take(pace.chat).is_none())
    }

    /// Counts a preview if there is room for it right now, and nothing more important wants that room. Else tells when to
    /// ask again. All places of a chat share the interval.
    pub(super) fn take_for_preview(&self, pace: Pace, every: Duration) -> Result<(), Instant> {
        let now = Instant::now();
        let mut last = self.previewed.entry(pace.chat).or_default();
        if let Some(next) = last.as_ref().map(|last| *last + every).filter(|next| *next > now) {
            return Err(next);
        }
        if let Some(until) = self.quiet.get(&pace.chat).map(|until| *until).filter(|until| *until > now) {
            return Err(until);
        }
        let budgets = self.budgets.get_or_init(|| Budgets::of(pace.limits));
        let has_room = self.line.is_empty(pace.chat)
            && budgets.chat_second.as_ref().is_none_or(|limiter| limiter.check_key(&pace.chat).is_ok())
            && budgets.all.as_ref().is_none_or(|limiter| limiter.check().is_ok());
        if !has_room {
            return Err(now + NO_ROOM);
        }
        // Last, because a place in the minute is the dearest to waste.
        if let Some(free_at) =
            budgets.group_minute.as_ref().filter(|_| pace.is_group).and_then(|window| window.take_spare(pace.chat))
        {
            return Err(free_at);
        }
        *last = Some(now);
        Ok(())
    }

    /// Counts a sign such as "typing" if there is room right now. It is no message, so it does not count in the group's minute.
    pub(super) fn has_room_for_a_sign(&self, pace: Pace) -> bool {
        let budgets = self.budgets.get_or_init(|| Budgets::of(pace.limits));
        let is_quiet = self.quiet.get(&pace.chat).is_some_and(|until| *until > Instant::now());
        !is_quiet && self.line.is_empty(pace.chat) && budgets.all.as_ref().is_none_or(|limiter| limiter.check().is_ok())
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

/// Rows that wait for a budget.
#[derive(Default)]
struct Line {
    /// By chat, how many of each kind.
    chats: DashMap<i64, [usize; Kind::ALL.len()]>,
    /// Those that are through with their chat and wait for what all chats share.
    overall: AtomicUsize,
}

/// A place in the line of a chat, or in the one behind all of them.
struct InLine<'a> {
    line: &'a Line,
    chat: Option<(i64, Kind)>,
}

impl Line {
    fn join(&self, chat: i64, kind: Kind) -> InLine<'_> {
        self.chats.entry(chat).or_default()[kind as usize] += 1;
        InLine { line: self, chat: Some((chat, kind)) }
    }

    fn join_overall(&self) -> InLine<'_> {
        self.overall.fetch_add(1, Ordering::Relaxed);
        InLine { line: self, chat: None }
    }

    /// When to look again, while something more important waits in this chat.
    fn not_next(&self, chat: i64, kind: Kind) -> Option<Instant> {
        let waiting = self.chats.get(&chat)?;
        waiting[..kind as usize].iter().any(|count| *count > 0).then(|| Instant::now() + NOT_NEXT)
    }

    fn is_empty(&self, chat: i64) -> bool {
        !self.chats.contains_key(&chat) && self.overall.load(Ordering::Relaxed) == 0
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        let Some((chat, kind)) = self.chat else {
            self.line.overall.fetch_sub(1, Ordering::Relaxed);
            return;
        };
        if let Some(mut waiting) = self.line.chats.get_mut(&chat) {
            waiting[kind as usize] -= 1;
        }
        self.line.chats.remove_if(&chat, |_, waiting| waiting.iter().all(|count| *count == 0));
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

    /// Counts one more call, or tells when there is room for it.
    fn take(&self, chat: i64) -> Option<Instant> {
        self.take_below(self.limit, chat)
    }

    /// The same for what must leave room for answers: a quarter of the minute.
    fn take_spare(&self, chat: i64) -> Option<Instant> {
        self.take_below(self.limit - self.limit.div_ceil(4), chat)
    }

    fn take_below(&self, limit: usize, chat: i64) -> Option<Instant> {
        let now = Instant::now();
        let mut sent = self.sent.entry(chat).or_default();
        while sent.front().is_some_and(|at| *at + Self::LENGTH <= now) {
            sent.pop_front();
        }
        if let Some(too_many) = sent.len().checked_sub(limit) {
            // The one whose minute must end for another to fit; there is none when nothing ever fits.
            return Some(sent.get(too_many).map_or(now, |oldest| *oldest) + Self::LENGTH);
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
            pacing.ready(GROUP, Kind::Final).await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        pacing.ready(GROUP, Kind::Final).await;
        assert!(began.elapsed() >= Duration::from_secs(60));
        pacing.ready(Pace { chat: -6, ..GROUP }, Kind::Final).await;
        assert!(began.elapsed() < Duration::from_secs(61), "another group does not wait");
    }

    #[tokio::test(start_paused = true)]
    async fn a_private_chat_is_no_group() {
        let (pacing, began) = (Pacing::default(), Instant::now());
        for _ in 0..50 {
            pacing.ready(Pace { chat: 5, is_group: false, ..GROUP }, Kind::Final).await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    const EVERY: Duration = Duration::from_secs(3);

    #[tokio::test(start_paused = true)]
    async fn previews_of_a_chat_are_an_interval_apart() {
        let (pacing, began) = (Pacing::default(), Instant::now());
        assert_eq!(pacing.take_for_preview(GROUP, EVERY), Ok(()));
        assert_eq!(pacing.take_for_preview(GROUP, EVERY), Err(began + EVERY));
        assert_eq!(pacing.take_for_preview(Pace { chat: -6, ..GROUP }, EVERY), Ok(()), "another group has its own");
        tokio::time::sleep(EVERY).await;
        assert_eq!(pacing.take_for_preview(GROUP, EVERY), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn previews_leave_a_quarter_of_the_minute_to_answers() {
        let (pacing, began) = (Pacing::default(), Instant::now());
        for _ in 0..15 {
            assert_eq!(pacing.take_for_preview(GROUP, Duration::ZERO), Ok(()));
        }
        assert_eq!(pacing.take_for_preview(GROUP, Duration::ZERO), Err(began + Window::LENGTH));
        for _ in 0..5 {
            pacing.ready(GROUP, Kind::Final).await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_chat_that_asked_to_wait_gets_no_previews_and_no_signs() {
        let (pacing, began) = (Pacing::default(), Instant::now());
        pacing.quiet_for(GROUP.chat, Duration::from_secs(300));
        assert_eq!(pacing.take_for_preview(GROUP, EVERY), Err(began + Duration::from_secs(300)));
        assert!(!pacing.has_room_for_a_sign(GROUP));
        assert!(pacing.has_room_for_a_sign(Pace { chat: -6, ..GROUP }));
    }

    #[tokio::test(start_paused = true)]
    async fn what_matters_more_goes_first_and_previews_last() {
        let (pacing, gone) = (Pacing::default(), std::sync::Mutex::new(Vec::new()));
        let limits = Limits { group_per_minute: 1, ..GROUP.limits };
        let pace = Pace { limits, ..GROUP };
        pacing.ready(pace, Kind::Final).await;
        let row = async |kind| {
            pacing.ready(pace, kind).await;
            gone.lock().unwrap().push(kind);
        };
        let preview = async {
            tokio::time::sleep(Window::LENGTH * 2).await;
            assert!(pacing.take_for_preview(pace, EVERY).is_err(), "an error still waits");
        };
        tokio::join!(row(Kind::Error), row(Kind::Command), row(Kind::Final), preview);
        assert_eq!(*gone.lock().unwrap(), [Kind::Final, Kind::Command, Kind::Error]);
    }
}
