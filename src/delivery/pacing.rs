//! The platform's limits for the whole bot: over all chats, per chat, and per group and minute.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::OnceLock;
use std::time::Duration;

use dashmap::DashMap;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::outbox::Kind;
use super::usage::{ChatUsage, Meter, Usage};
use crate::channels::{Limits, Pace};

/// Platforms let a few messages through at once before they count seconds.
const CHAT_BURST: NonZeroU32 = NonZeroU32::new(3).expect("three is not zero");

/// The wait after a preview found no room.
const NO_ROOM: Duration = Duration::from_secs(1);

/// No channel spaces previews of a chat further apart than this.
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);

/// A bot's budgets, made at its first send.
#[derive(Default)]
pub(super) struct Pacing {
    budgets: OnceLock<Budgets>,
    /// Chats with a wait asked for, and its end. All places of a chat wait, because they share its
    /// limit.
    quiet: DashMap<i64, Instant>,
    line: PriorityQueue,
    /// The time of the last preview in each chat.
    previewed: DashMap<i64, Option<Instant>>,
    /// The budgets do not tell what is used of them.
    meter: Meter,
}

struct Budgets {
    all: Option<DefaultDirectRateLimiter>,
    chat_second: Option<DefaultKeyedRateLimiter<i64>>,
    group_minute: Option<Window>,
    clock: DefaultClock,
}

impl Pacing {
    /// Fresh budgets, with the waits that chats have asked for.
    pub(super) fn renewed(&self) -> Self {
        let waits = self.quiet.iter();
        Pacing {
            quiet: waits.map(|wait| (*wait.key(), *wait.value())).collect(),
            ..Pacing::default()
        }
    }

    /// Returns when a row is within all its budgets. In each budget the more important kind goes
    /// first.
    pub(super) async fn ready(&self, pace: Pace, kind: Kind) {
        let budgets = self.budgets.get_or_init(|| Budgets::of(pace.limits));
        let waiting = self.line.join(Queue::Chat(pace.chat), kind);
        if let Some(window) = budgets.group_minute.as_ref().filter(|_| pace.is_group) {
            waiting.take(|| window.take(pace.chat)).await;
        }
        if let Some(limiter) = &budgets.chat_second {
            waiting
                .take(|| budgets.free_at(limiter.check_key(&pace.chat)))
                .await;
        }
        drop(waiting);
        if let Some(limiter) = &budgets.all {
            self.line
                .join(Queue::Everyone, kind)
                .take(|| budgets.free_at(limiter.check()))
                .await;
        }
        self.meter.count(pace.chat);
    }

    /// The budgets and what is used of them.
    pub(super) fn usage(&self, limits: Limits) -> Usage {
        let now = Instant::now();
        let rest = |until: Instant| Some(until.duration_since(now)).filter(|rest| !rest.is_zero());
        let mut usage = Usage {
            limits,
            last_second: self.meter.last_second(),
            chats: std::collections::BTreeMap::new(),
        };
        for (chat, calls) in self.meter.chats().filter(|(_, calls)| *calls > 0) {
            usage.chats.entry(chat).or_default().last_second = calls;
        }
        for wait in &self.quiet {
            if let Some(rest) = rest(*wait.value()) {
                usage.chats.entry(*wait.key()).or_default().asked_to_wait = Some(rest);
            }
        }
        let window = self
            .budgets
            .get()
            .and_then(|known| known.group_minute.as_ref());
        for (chat, count, free_at) in window.into_iter().flat_map(Window::used) {
            let group: &mut ChatUsage = usage.chats.entry(chat).or_default();
            group.last_minute = Some(count);
            group.room_in = free_at.and_then(rest);
        }
        usage
    }

    /// Counts a row if there is room right now and no other row waits. Then the row's kind does not
    /// matter.
    pub(super) fn take_at_once(&self, pace: Pace) -> bool {
        let budgets = self.budgets.get_or_init(|| Budgets::of(pace.limits));
        let window = budgets.group_minute.as_ref().filter(|_| pace.is_group);
        let is_taken = self.line.is_empty(pace.chat)
            && budgets.chat_second.as_ref().is_none_or(|limiter| limiter.check_key(&pace.chat).is_ok())
            && budgets.all.as_ref().is_none_or(|limiter| limiter.check().is_ok())
            // Last, because a slot in the group's minute is the dearest to waste.
            && window.is_none_or(|window| window.take(pace.chat).is_none());
        if is_taken {
            self.meter.count(pace.chat);
        }
        is_taken
    }

    /// Counts a preview if there is room right now and no row waits. Else returns the time of the
    /// next try. All places of a chat share the interval.
    pub(super) fn take_for_preview(&self, pace: Pace, every: Duration) -> Result<(), Instant> {
        let now = Instant::now();
        let mut last = self.previewed.entry(pace.chat).or_default();
        if let Some(next) = last
            .as_ref()
            .map(|last| *last + every)
            .filter(|next| *next > now)
        {
            return Err(next);
        }
        if let Some(until) = self
            .quiet
            .get(&pace.chat)
            .map(|until| *until)
            .filter(|until| *until > now)
        {
            return Err(until);
        }
        let budgets = self.budgets.get_or_init(|| Budgets::of(pace.limits));
        let has_room = self.line.is_empty(pace.chat)
            && budgets
                .chat_second
                .as_ref()
                .is_none_or(|limiter| limiter.check_key(&pace.chat).is_ok())
            && budgets
                .all
                .as_ref()
                .is_none_or(|limiter| limiter.check().is_ok());
        if !has_room {
            return Err(now + NO_ROOM);
        }
        // Last, because a slot in the group's minute is the dearest to waste.
        if let Some(free_at) = budgets
            .group_minute
            .as_ref()
            .filter(|_| pace.is_group)
            .and_then(|window| window.take_spare(pace.chat))
        {
            return Err(free_at);
        }
        *last = Some(now);
        self.meter.count(pace.chat);
        Ok(())
    }

    /// Counts a sign such as "typing" if there is room right now. A sign is no message, so the
    /// group's minute does not count signs.
    pub(super) fn has_room_for_a_sign(&self, pace: Pace) -> bool {
        let budgets = self.budgets.get_or_init(|| Budgets::of(pace.limits));
        let has_room = !self.is_quiet(pace.chat)
            && self.line.is_empty(pace.chat)
            && budgets
                .all
                .as_ref()
                .is_none_or(|limiter| limiter.check().is_ok());
        if has_room {
            self.meter.count_sign();
        }
        has_room
    }

    /// Whether the wait of a chat is still running.
    pub(super) fn is_quiet(&self, chat: i64) -> bool {
        self.quiet
            .get(&chat)
            .is_some_and(|until| *until > Instant::now())
    }

    /// Notes a wait for this chat, as the platform asked.
    pub(super) fn quiet_for(&self, chat: i64, wait: Duration) {
        // A wait beyond the range of `Instant` is kept only in its row.
        if let Some(until) = Instant::now().checked_add(wait) {
            self.quiet
                .entry(chat)
                .and_modify(|known| *known = until.max(*known))
                .or_insert(until);
        }
    }

    /// Forgets chats whose budgets are whole again: a forgotten chat starts with the same budgets.
    pub(super) fn forget_idle(&self) {
        let now = Instant::now();
        self.meter.forget_idle();
        self.quiet.retain(|_, until| *until > now);
        self.previewed
            .retain(|_, last| last.is_some_and(|last| last + LONGEST_INTERVAL > now));
        let Some(budgets) = self.budgets.get() else {
            return;
        };
        if let Some(limiter) = &budgets.chat_second {
            limiter.retain_recent();
        }
        if let Some(window) = &budgets.group_minute {
            window
                .sent
                .retain(|_, sent| sent.back().is_some_and(|at| *at + Window::LENGTH > now));
        }
    }

    /// Returns when the chat has no wait left.
    pub(super) async fn quiet_over(&self, chat: i64) {
        while let Some(until) = self.quiet.get(&chat).map(|until| *until) {
            tokio::time::sleep_until(until).await;
            self.quiet
                .remove_if(&chat, |_, until| *until <= Instant::now());
        }
    }
}

impl Budgets {
    fn of(limits: Limits) -> Self {
        let per_second = |count| NonZeroU32::new(count).map(Quota::per_second);
        Budgets {
            all: per_second(limits.all_per_second).map(RateLimiter::direct),
            chat_second: per_second(limits.chat_per_second)
                .map(|quota| RateLimiter::keyed(quota.allow_burst(CHAT_BURST))),
            group_minute: NonZeroU32::new(limits.group_per_minute).map(Window::new),
            clock: DefaultClock::default(),
        }
    }

    fn free_at(
        &self,
        checked: Result<(), governor::NotUntil<<DefaultClock as Clock>::Instant>>,
    ) -> Option<Instant> {
        let wait = checked.err()?.wait_time_from(self.clock.now());
        // A millisecond more, because an early timer would only wait again.
        Some(Instant::now() + wait + Duration::from_millis(1))
    }
}

/// Rows waiting for a budget.
#[derive(Default)]
struct PriorityQueue {
    /// The number of rows of each kind.
    queues: DashMap<Queue, [usize; Kind::ALL.len()]>,
    /// Notified when the last row of a kind has left a queue.
    shorter: Notify,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Queue {
    Chat(i64),
    /// Rows done with their chat's budgets, waiting for the budget of all chats.
    Everyone,
}

/// A place in a queue.
struct InLine<'a> {
    line: &'a PriorityQueue,
    queue: Queue,
    kind: Kind,
}

impl PriorityQueue {
    fn join(&self, queue: Queue, kind: Kind) -> InLine<'_> {
        self.queues.entry(queue).or_default()[kind as usize] += 1;
        InLine {
            line: self,
            queue,
            kind,
        }
    }

    fn is_empty(&self, chat: i64) -> bool {
        !self.queues.contains_key(&Queue::Chat(chat)) && !self.queues.contains_key(&Queue::Everyone)
    }
}

impl InLine<'_> {
    /// Takes from a budget once no more important row waits here; `take` returns the time of the
    /// next free slot.
    async fn take(&self, take: impl Fn() -> Option<Instant>) {
        loop {
            // Registered before the check, so a row leaving meanwhile is noticed.
            let shorter = self.line.shorter.notified();
            if !self.is_next() {
                shorter.await;
                continue;
            }
            let Some(free_at) = take() else { return };
            tokio::time::sleep_until(free_at).await;
        }
    }

    fn is_next(&self) -> bool {
        let waiting = self.line.queues.get(&self.queue);
        waiting.is_none_or(|waiting| {
            waiting[..self.kind as usize]
                .iter()
                .all(|count| *count == 0)
        })
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        let left = self.line.queues.get_mut(&self.queue).map(|mut waiting| {
            waiting[self.kind as usize] -= 1;
            waiting[self.kind as usize]
        });
        self.line.queues.remove_if(&self.queue, |_, waiting| {
            waiting.iter().all(|count| *count == 0)
        });
        if left == Some(0) {
            self.line.shorter.notify_waiters();
        }
    }
}

/// The times of sends to each group in the last minute. A refilling bucket would let twice the
/// limit through.
struct Window {
    limit: usize,
    sent: DashMap<i64, VecDeque<Instant>>,
}

impl Window {
    const LENGTH: Duration = Duration::from_secs(60);

    fn new(limit: NonZeroU32) -> Self {
        Window {
            limit: usize::try_from(limit.get()).unwrap_or(usize::MAX),
            sent: DashMap::new(),
        }
    }

    /// Counts a call, or returns the time of the next free slot.
    fn take(&self, chat: i64) -> Option<Instant> {
        self.take_below(self.limit, chat)
    }

    /// Like `take`, but leaves a quarter of the minute to answers.
    fn take_spare(&self, chat: i64) -> Option<Instant> {
        self.take_below(self.limit - self.limit.div_ceil(4), chat)
    }

    /// Groups with sends in the last minute: how many, and when a full minute has room again.
    fn used(&self) -> impl Iterator<Item = (i64, usize, Option<Instant>)> {
        let now = Instant::now();
        let groups = self.sent.iter().map(move |group| {
            let recent = || group.iter().filter(|at| **at + Self::LENGTH > now);
            let count = recent().count();
            let too_many = count.checked_sub(self.limit);
            let oldest = too_many.and_then(|too_many| recent().nth(too_many));
            (
                *group.key(),
                count,
                oldest.map(|oldest| *oldest + Self::LENGTH),
            )
        });
        groups.filter(|(_, count, _)| *count > 0)
    }

    fn take_below(&self, limit: usize, chat: i64) -> Option<Instant> {
        let now = Instant::now();
        let mut sent = self.sent.entry(chat).or_default();
        while sent.front().is_some_and(|at| *at + Self::LENGTH <= now) {
            sent.pop_front();
        }
        if let Some(too_many) = sent.len().checked_sub(limit) {
            // The send whose minute must end for another to fit; with a limit of zero there is
            // none.
            return Some(sent.get(too_many).map_or(now, |oldest| *oldest) + Self::LENGTH);
        }
        sent.push_back(now);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: Pace = Pace {
        chat: -5,
        is_group: true,
        limits: Limits {
            all_per_second: 0,
            chat_per_second: 0,
            group_per_minute: 20,
        },
    };

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
        assert!(
            began.elapsed() < Duration::from_secs(61),
            "another group does not wait"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_private_chat_is_no_group() {
        let (pacing, began) = (Pacing::default(), Instant::now());
        for _ in 0..50 {
            pacing
                .ready(
                    Pace {
                        chat: 5,
                        is_group: false,
                        ..GROUP
                    },
                    Kind::Final,
                )
                .await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn the_use_of_each_budget_is_told() {
        let limits = Limits {
            all_per_second: 30,
            chat_per_second: 5,
            group_per_minute: 2,
        };
        let (pacing, group) = (Pacing::default(), Pace { limits, ..GROUP });
        let person = Pace {
            chat: 7,
            is_group: false,
            limits,
        };
        for pace in [group, group, person] {
            pacing.ready(pace, Kind::Final).await;
        }
        pacing.quiet_for(9, Duration::from_secs(40));
        let used = pacing.usage(limits);
        let (full, quiet) = (used.chats[&-5], used.chats[&9]);
        assert_eq!((used.last_second, used.chats[&7].last_second), (3, 1));
        assert_eq!(used.chats[&7].last_minute, None);
        assert_eq!((full.last_second, full.last_minute), (2, Some(2)));
        assert_eq!(full.room_in, Some(Duration::from_secs(60)));
        assert_eq!(quiet.asked_to_wait, Some(Duration::from_secs(40)));
        tokio::time::sleep(Duration::from_secs(50)).await;
        let used = pacing.usage(limits);
        assert_eq!(used.last_second, 0);
        assert_eq!(used.chats.keys().collect::<Vec<_>>(), [&-5]);
        assert_eq!(used.chats[&-5].room_in, Some(Duration::from_secs(10)));
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(pacing.usage(limits).chats.is_empty());
    }

    const EVERY: Duration = Duration::from_secs(3);

    #[tokio::test(start_paused = true)]
    async fn previews_of_a_chat_are_an_interval_apart() {
        let (pacing, began) = (Pacing::default(), Instant::now());
        assert_eq!(pacing.take_for_preview(GROUP, EVERY), Ok(()));
        assert_eq!(pacing.take_for_preview(GROUP, EVERY), Err(began + EVERY));
        assert_eq!(
            pacing.take_for_preview(Pace { chat: -6, ..GROUP }, EVERY),
            Ok(()),
            "another group has its own"
        );
        tokio::time::sleep(EVERY).await;
        assert_eq!(pacing.take_for_preview(GROUP, EVERY), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn previews_leave_a_quarter_of_the_minute_to_answers() {
        let (pacing, began) = (Pacing::default(), Instant::now());
        for _ in 0..15 {
            assert_eq!(pacing.take_for_preview(GROUP, Duration::ZERO), Ok(()));
        }
        assert_eq!(
            pacing.take_for_preview(GROUP, Duration::ZERO),
            Err(began + Window::LENGTH)
        );
        for _ in 0..5 {
            pacing.ready(GROUP, Kind::Final).await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    /// Chats come and go for as long as the process runs.
    #[tokio::test(start_paused = true)]
    async fn chats_that_are_quiet_again_are_forgotten() {
        let pacing = Pacing::default();
        let limits = Limits {
            all_per_second: 0,
            chat_per_second: 1000,
            group_per_minute: 20,
        };
        let known = |pacing: &Pacing| {
            let budgets = pacing.budgets.get().expect("something was sent");
            let (second, minute) = (
                budgets.chat_second.as_ref().unwrap(),
                budgets.group_minute.as_ref().unwrap(),
            );
            [
                second.len(),
                minute.sent.len(),
                pacing.previewed.len(),
                pacing.quiet.len(),
            ]
        };
        for chat in 0..100 {
            let pace = Pace {
                chat,
                is_group: true,
                limits,
            };
            assert!(pacing.take_at_once(pace));
            assert_eq!(pacing.take_for_preview(pace, EVERY), Ok(()));
            pacing.quiet_for(chat, EVERY);
        }
        assert_eq!(known(&pacing), [100; 4]);
        pacing.forget_idle();
        assert_eq!(known(&pacing)[1..], [100; 3], "their minute is not over");
        tokio::time::sleep(Window::LENGTH).await;
        // This limiter counts real time.
        while known(&pacing)[0] > 0 {
            pacing.forget_idle();
        }
        assert_eq!(known(&pacing), [0; 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_chat_that_asked_to_wait_gets_no_previews_and_no_signs() {
        let (pacing, began) = (Pacing::default(), Instant::now());
        pacing.quiet_for(GROUP.chat, Duration::from_secs(300));
        assert_eq!(
            pacing.take_for_preview(GROUP, EVERY),
            Err(began + Duration::from_secs(300))
        );
        assert!(!pacing.has_room_for_a_sign(GROUP));
        assert!(pacing.has_room_for_a_sign(Pace { chat: -6, ..GROUP }));
    }

    #[tokio::test(start_paused = true)]
    async fn what_matters_more_goes_first_and_previews_last() {
        let (pacing, gone) = (Pacing::default(), std::sync::Mutex::new(Vec::new()));
        let limits = Limits {
            group_per_minute: 1,
            ..GROUP.limits
        };
        let pace = Pace { limits, ..GROUP };
        pacing.ready(pace, Kind::Final).await;
        let row = async |kind| {
            pacing.ready(pace, kind).await;
            gone.lock().unwrap().push(kind);
        };
        let preview = async {
            tokio::time::sleep(Window::LENGTH * 2).await;
            assert!(
                pacing.take_for_preview(pace, EVERY).is_err(),
                "an error still waits"
            );
        };
        tokio::join!(
            row(Kind::Error),
            row(Kind::Command),
            row(Kind::Final),
            preview
        );
        assert_eq!(
            *gone.lock().unwrap(),
            [Kind::Final, Kind::Command, Kind::Error]
        );
    }

    /// Real time, because governor counts real time.
    #[tokio::test]
    async fn what_matters_more_goes_first_within_the_second_too() {
        let one_each = Limits {
            all_per_second: 0,
            chat_per_second: 20,
            group_per_minute: 0,
        };
        let in_a_chat = Pace {
            chat: 5,
            is_group: false,
            limits: one_each,
        };
        let of_all = Limits {
            all_per_second: 20,
            chat_per_second: 0,
            group_per_minute: 0,
        };
        for pace in [
            [in_a_chat; 3],
            [1, 2, 3].map(|chat| Pace {
                chat,
                is_group: false,
                limits: of_all,
            }),
        ] {
            let (pacing, gone) = (Pacing::default(), std::sync::Mutex::new(Vec::new()));
            while pacing.take_at_once(pace[0]) {}
            let row = async |pace, kind| {
                pacing.ready(pace, kind).await;
                gone.lock().unwrap().push(kind);
            };
            tokio::join!(
                row(pace[0], Kind::Error),
                row(pace[1], Kind::Command),
                row(pace[2], Kind::Final)
            );
            assert_eq!(
                *gone.lock().unwrap(),
                [Kind::Final, Kind::Command, Kind::Error],
                "{pace:?}"
            );
        }
    }
}
