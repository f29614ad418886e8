//! Numbers about the running gateway, for `/metrics`.
//!
//! Counting is a few additions to atomics, whether a listener reads them or not. Numbers of an agent
//! hang on its handle, [`Counts`], so that counting looks nothing up. No number has a label
//! with a place or a person: people's ids belong into no other program's database.

mod agents;
mod histogram;
mod text;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::domain::Platform;

pub(crate) use agents::{Counts, Stage, Stages, TurnOutcome, of_agent, retire_others};
use histogram::Histogram;
pub(crate) use text::{Gauges, MEDIA_TYPE, render};

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    const fn new() -> Self {
        Counter(AtomicU64::new(0))
    }

    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number for each platform.
#[derive(Debug)]
struct ByPlatform([Counter; 4]);

impl ByPlatform {
    const fn new() -> Self {
        ByPlatform([const { Counter::new() }; 4])
    }

    fn of(&self, platform: Platform) -> &Counter {
        &self.0[match platform {
            Platform::Telegram => 0,
            Platform::Discord => 1,
            Platform::Local => 2,
            Platform::Web => 3,
        }]
    }
}

/// How a reload ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reloaded {
    Done,
    Refused,
}

impl Reloaded {
    const ALL: [Reloaded; 2] = [Reloaded::Done, Reloaded::Refused];

    fn as_str(self) -> &'static str {
        match self {
            Reloaded::Done => "done",
            Reloaded::Refused => "refused",
        }
    }
}

/// What the store was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreCall {
    Read,
    Write,
}

impl StoreCall {
    const ALL: [StoreCall; 2] = [StoreCall::Read, StoreCall::Write];

    fn as_str(self) -> &'static str {
        match self {
            StoreCall::Read => "read",
            StoreCall::Write => "write",
        }
    }
}

/// The numbers of the process that belong to no agent.
struct Process {
    received: ByPlatform,
    /// Calls that a platform answered with a wait.
    waits: ByPlatform,
    reloads: [Counter; 2],
    panics: Counter,
    store: [Histogram; 2],
    dropped_lines: Counter,
}

static PROCESS: Process = Process {
    received: ByPlatform::new(),
    waits: ByPlatform::new(),
    reloads: [Counter::new(), Counter::new()],
    panics: Counter::new(),
    store: [Histogram::new(), Histogram::new()],
    dropped_lines: Counter::new(),
};

/// A message was stored.
pub(crate) fn received(platform: Platform) {
    PROCESS.received.of(platform).add(1);
}

/// A platform asked for a wait, such as with status 429.
pub(crate) fn asked_to_wait(platform: Platform) {
    PROCESS.waits.of(platform).add(1);
}

pub(crate) fn reloaded(end: Reloaded) {
    PROCESS.reloads[end as usize].add(1);
}

pub(crate) fn panicked() {
    PROCESS.panics.add(1);
}

/// Lines of the log that had no room.
pub(crate) fn dropped_line() {
    PROCESS.dropped_lines.add(1);
}

/// The store has answered, after this time in its queue and at work.
pub(crate) fn store_answered(call: StoreCall, within: Duration) {
    PROCESS.store[call as usize].note(within);
}
