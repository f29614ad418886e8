//! What is used of a bot's send budgets right now, for people who look.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dashmap::DashMap;
use tokio::time::Instant;

use crate::channels::Limits;

/// Seconds are counted over this time.
const SECOND: Duration = Duration::from_secs(1);

/// The budgets of a bot, and what is used of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) limits: Limits,
    /// Calls in the last second, over all chats.
    pub(crate) last_second: usize,
    /// Chats with calls in the last minute, or with a wait.
    pub(crate) chats: BTreeMap<i64, ChatUsage>,
}

/// What a chat has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ChatUsage {
    /// Calls in the last second.
    pub(crate) last_second: usize,
    /// Messages in the last minute; only groups are counted.
    pub(crate) last_minute: Option<usize>,
    /// The time until the group's minute has room again, where it has none.
    pub(crate) room_in: Option<Duration>,
    /// The rest of a wait that the platform asked for.
    pub(crate) asked_to_wait: Option<Duration>,
}

/// Counts the calls of the last second.
#[derive(Default)]
pub(super) struct Meter {
    /// A plain mutex, because it is held for a moment.
    all: Mutex<VecDeque<Instant>>,
    chats: DashMap<i64, VecDeque<Instant>>,
}

impl Meter {
    /// Counts a message to a chat.
    pub(super) fn count(&self, chat: i64) {
        push(&mut self.chats.entry(chat).or_default());
        self.count_sign();
    }

    /// Counts a call that is no message, such as "typing".
    pub(super) fn count_sign(&self) {
        push(&mut self.all.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn last_second(&self) -> usize {
        recent(&self.all.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn chats(&self) -> impl Iterator<Item = (i64, usize)> {
        let chats = self.chats.iter();
        chats.map(|chat| (*chat.key(), recent(chat.value())))
    }

    pub(super) fn forget_idle(&self) {
        self.chats.retain(|_, calls| recent(calls) > 0);
    }
}

fn push(calls: &mut VecDeque<Instant>) {
    let now = Instant::now();
    while calls.front().is_some_and(|at| *at + SECOND <= now) {
        calls.pop_front();
    }
    calls.push_back(now);
}

fn recent(calls: &VecDeque<Instant>) -> usize {
    let now = Instant::now();
    calls.iter().filter(|at| **at + SECOND > now).count()
}
