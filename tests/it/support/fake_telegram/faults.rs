//! Ways to break an answer: once, some times, or while a guard lives; and to hold it back until released.

use serde_json::{Value, json};
use tokio::sync::watch;

use super::FakeTelegram;
use super::wire::{ApiError, int};

/// Stands for every method in [`FakeTelegram::fail`] and [`FakeTelegram::hold`].
pub(crate) const ANY_METHOD: &str = "*";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// 429 with so many seconds.
    RetryAfter(u64),
    /// This status with an HTML page, as the proxies in front of Telegram send it.
    Html(u16),
    Unauthorized,
    Kicked,
    Blocked,
    ThreadNotFound,
    MigratedTo(i64),
    /// Any other error answer: status and description.
    Refused(u16, &'static str),
    /// The connection breaks before anything happened.
    DroppedBefore,
    /// The connection breaks after the call took effect: a sent message stands in the chat.
    DroppedAfter,
    /// The call takes effect, but its answer breaks off in the middle of the JSON.
    InvalidJson,
}

impl Fault {
    pub(super) fn api_error(self) -> Option<ApiError> {
        let error = match self {
            Self::RetryAfter(seconds) => ApiError::new(429, format!("Too Many Requests: retry after {seconds}"))
                .with_parameters(json!({ "retry_after": seconds })),
            Self::Unauthorized => ApiError::new(401, "Unauthorized"),
            Self::Kicked => ApiError::new(403, "Forbidden: bot was kicked from the supergroup chat"),
            Self::Blocked => ApiError::new(403, "Forbidden: bot was blocked by the user"),
            Self::ThreadNotFound => ApiError::new(400, "Bad Request: message thread not found"),
            Self::MigratedTo(chat_id) => ApiError::new(400, "Bad Request: group chat was upgraded to a supergroup chat")
                .with_parameters(json!({ "migrate_to_chat_id": chat_id })),
            Self::Refused(status, description) => ApiError::new(status, description),
            Self::Html(_) | Self::DroppedBefore | Self::DroppedAfter | Self::InvalidJson => return None,
        };
        Some(error)
    }
}

#[derive(Default)]
pub(super) struct Faults {
    armed: Vec<ArmedFault>,
    holds: Vec<ArmedHold>,
    next_id: u64,
}

struct ArmedFault {
    id: u64,
    target: Target,
    fault: Fault,
    /// `None` is until disarmed.
    times: Option<usize>,
}

struct ArmedHold {
    id: u64,
    target: Target,
    point: HoldPoint,
    released: watch::Receiver<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HoldPoint {
    BeforeEffect,
    BeforeAnswer,
}

struct Target {
    method: String,
    chat_id: Option<i64>,
}

impl Target {
    fn new(method: &str) -> Self {
        Self { method: method.into(), chat_id: None }
    }

    fn matches(&self, method: &str, params: &Value) -> bool {
        let method_matches = self.method == ANY_METHOD || self.method == method;
        method_matches && (self.chat_id.is_none() || self.chat_id == int(params, "chat_id"))
    }
}

impl Faults {
    /// The fault for this call, if one is due; uses up one of its times.
    pub(super) fn take(&mut self, method: &str, params: &Value) -> Option<Fault> {
        let index = self.armed.iter().position(|armed| armed.target.matches(method, params))?;
        let armed = &mut self.armed[index];
        let fault = armed.fault;
        if let Some(times) = &mut armed.times {
            *times -= 1;
            if *times == 0 {
                self.armed.remove(index);
            }
        }
        Some(fault)
    }

    pub(super) fn holds(&self, method: &str, params: &Value, point: HoldPoint) -> Vec<watch::Receiver<bool>> {
        let applies = |hold: &&ArmedHold| hold.point == point && hold.target.matches(method, params);
        self.holds.iter().filter(applies).map(|hold| hold.released.clone()).collect()
    }

    fn arm(&mut self, target: Target, fault: Fault, times: Option<usize>) -> u64 {
        self.next_id += 1;
        self.armed.push(ArmedFault { id: self.next_id, target, fault, times });
        self.next_id
    }

    fn hold(&mut self, method: &str, point: HoldPoint, released: watch::Receiver<bool>) -> u64 {
        self.next_id += 1;
        self.holds.push(ArmedHold { id: self.next_id, target: Target::new(method), point, released });
        self.next_id
    }
}

impl FakeTelegram {
    /// `telegram.fail("sendMessage", Fault::RetryAfter(1)).once()`; the oldest fault that fits a call is used.
    pub(crate) fn fail(&self, method: &str, fault: Fault) -> FaultPlan {
        FaultPlan { telegram: self.clone(), target: Target::new(method), fault }
    }

    /// Calls are received and journaled, but nothing happens until the hold is released or dropped.
    pub(crate) fn hold(&self, method: &str) -> Hold {
        self.start_hold(method, HoldPoint::BeforeEffect)
    }

    /// Calls take effect, but their answers wait until the hold is released or dropped.
    pub(crate) fn hold_answers(&self, method: &str) -> Hold {
        self.start_hold(method, HoldPoint::BeforeAnswer)
    }

    fn start_hold(&self, method: &str, point: HoldPoint) -> Hold {
        let release = watch::Sender::new(false);
        let id = self.world().faults.hold(method, point, release.subscribe());
        Hold { telegram: self.clone(), id, release }
    }
}

/// A fault that still needs to know how often.
#[must_use = "say how often: once(), times(n) or until_dropped()"]
pub(crate) struct FaultPlan {
    telegram: FakeTelegram,
    target: Target,
    fault: Fault,
}

impl FaultPlan {
    pub(crate) fn only_in(mut self, chat_id: i64) -> Self {
        self.target.chat_id = Some(chat_id);
        self
    }

    pub(crate) fn once(self) {
        self.times(1);
    }

    pub(crate) fn times(self, times: usize) {
        if times > 0 {
            self.telegram.world().faults.arm(self.target, self.fault, Some(times));
        }
    }

    pub(crate) fn until_dropped(self) -> FaultGuard {
        let id = self.telegram.world().faults.arm(self.target, self.fault, None);
        FaultGuard { telegram: self.telegram, id }
    }
}

#[must_use = "the fault ends with its guard"]
pub(crate) struct FaultGuard {
    telegram: FakeTelegram,
    id: u64,
}

impl Drop for FaultGuard {
    fn drop(&mut self) {
        self.telegram.world().faults.armed.retain(|armed| armed.id != self.id);
    }
}

#[must_use = "calls go on when the hold is dropped"]
pub(crate) struct Hold {
    telegram: FakeTelegram,
    id: u64,
    release: watch::Sender<bool>,
}

impl Hold {
    pub(crate) fn only_in(self, chat_id: i64) -> Self {
        for hold in self.telegram.world().faults.holds.iter_mut().filter(|hold| hold.id == self.id) {
            hold.target.chat_id = Some(chat_id);
        }
        self
    }

    /// Lets the held calls go on; the same as dropping the hold.
    pub(crate) fn release(self) {}
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.telegram.world().faults.holds.retain(|hold| hold.id != self.id);
        self.release.send_replace(true);
    }
}
