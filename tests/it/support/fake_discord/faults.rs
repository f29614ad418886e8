//! Ways to break an answer of the REST API: once, some times, or while a guard lives; and to hold it back until released.

use tokio::sync::watch;

use super::FakeDiscord;
use super::routes::Route;
use super::wire::ApiError;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    /// 429 of the route with so many seconds, in the body and in the headers.
    RateLimited(f64),
    /// 429 for all of the bot's calls; arm it on [`Route::Any`] to be true to life.
    GloballyRateLimited(f64),
    /// This status with an HTML page, as the proxies in front of Discord send it.
    Html(u16),
    /// Any error answer: status, Discord's code, message.
    Refused(u16, u32, &'static str),
    /// The connection breaks before anything happened.
    DroppedBefore,
    /// The connection breaks after the call took effect: a sent message stands in the channel.
    DroppedAfter,
    /// The call takes effect, but its answer breaks off in the middle of the JSON.
    InvalidJson,
}

impl Fault {
    pub(crate) const UNAUTHORIZED: Self = Self::Refused(401, 0, "401: Unauthorized");
    pub(crate) const MISSING_ACCESS: Self = Self::Refused(403, 50001, "Missing Access");
    pub(crate) const MISSING_PERMISSIONS: Self = Self::Refused(403, 50013, "Missing Permissions");
    pub(crate) const CANNOT_DM: Self = Self::Refused(403, 50007, "Cannot send messages to this user");
    pub(crate) const THREAD_ARCHIVED: Self = Self::Refused(400, 50083, "Thread is archived");
    pub(crate) const UNKNOWN_CHANNEL: Self = Self::Refused(404, 10003, "Unknown Channel");
    pub(crate) const UNKNOWN_MESSAGE: Self = Self::Refused(404, 10008, "Unknown Message");
    pub(crate) const UNKNOWN_INTERACTION: Self = Self::Refused(404, 10062, "Unknown interaction");
    pub(crate) const ALREADY_ACKNOWLEDGED: Self = Self::Refused(400, 40060, "Interaction has already been acknowledged.");
    pub(crate) const TOKEN_EXPIRED: Self = Self::Refused(401, 50027, "Invalid Webhook Token");
    pub(crate) const INVALID_FORM: Self = Self::Refused(400, 50035, "Invalid Form Body");

    pub(super) fn api_error(self) -> Option<ApiError> {
        match self {
            Self::Refused(status, code, message) => Some(ApiError::new(status, code, message)),
            _ => None,
        }
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
    route: Route,
    channel_id: Option<u64>,
}

impl Target {
    fn matches(&self, route: Route, channel_id: Option<u64>) -> bool {
        let route_matches = self.route == Route::Any || self.route == route;
        route_matches && (self.channel_id.is_none() || self.channel_id == channel_id)
    }
}

impl Faults {
    /// The fault for this call, if one is due; uses up one of its times.
    pub(super) fn take(&mut self, route: Route, channel_id: Option<u64>) -> Option<Fault> {
        let index = self.armed.iter().position(|armed| armed.target.matches(route, channel_id))?;
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

    pub(super) fn holds(&self, route: Route, channel_id: Option<u64>, point: HoldPoint) -> Vec<watch::Receiver<bool>> {
        let applies = |hold: &&ArmedHold| hold.point == point && hold.target.matches(route, channel_id);
        self.holds.iter().filter(applies).map(|hold| hold.released.clone()).collect()
    }

    fn arm(&mut self, target: Target, fault: Fault, times: Option<usize>) -> u64 {
        self.next_id += 1;
        self.armed.push(ArmedFault { id: self.next_id, target, fault, times });
        self.next_id
    }
}

impl FakeDiscord {
    /// `discord.fail(Route::CreateMessage, Fault::RateLimited(0.5)).once()`; the oldest fault that fits a call is used.
    pub(crate) fn fail(&self, route: Route, fault: Fault) -> FaultPlan {
        FaultPlan { discord: self.clone(), target: Target { route, channel_id: None }, fault }
    }

    /// Calls are received and journaled, but nothing happens until the hold is released or dropped.
    pub(crate) fn hold(&self, route: Route) -> Hold {
        self.start_hold(route, HoldPoint::BeforeEffect)
    }

    /// Calls take effect, but their answers wait until the hold is released or dropped.
    pub(crate) fn hold_answers(&self, route: Route) -> Hold {
        self.start_hold(route, HoldPoint::BeforeAnswer)
    }

    fn start_hold(&self, route: Route, point: HoldPoint) -> Hold {
        let release = watch::Sender::new(false);
        let mut world = self.world();
        let faults = &mut world.faults;
        faults.next_id += 1;
        let (id, target) = (faults.next_id, Target { route, channel_id: None });
        faults.holds.push(ArmedHold { id, target, point, released: release.subscribe() });
        Hold { discord: self.clone(), id, release }
    }
}

/// A fault that still needs to know how often.
#[must_use = "say how often: once(), times(n) or until_dropped()"]
pub(crate) struct FaultPlan {
    discord: FakeDiscord,
    target: Target,
    fault: Fault,
}

impl FaultPlan {
    pub(crate) fn only_in(mut self, channel_id: u64) -> Self {
        self.target.channel_id = Some(channel_id);
        self
    }

    pub(crate) fn once(self) {
        self.times(1);
    }

    pub(crate) fn times(self, times: usize) {
        if times > 0 {
            self.discord.world().faults.arm(self.target, self.fault, Some(times));
        }
    }

    pub(crate) fn until_dropped(self) -> FaultGuard {
        let id = self.discord.world().faults.arm(self.target, self.fault, None);
        FaultGuard { discord: self.discord, id }
    }
}

#[must_use = "the fault ends with its guard"]
pub(crate) struct FaultGuard {
    discord: FakeDiscord,
    id: u64,
}

impl Drop for FaultGuard {
    fn drop(&mut self) {
        self.discord.world().faults.armed.retain(|armed| armed.id != self.id);
    }
}

#[must_use = "calls go on when the hold is dropped"]
pub(crate) struct Hold {
    discord: FakeDiscord,
    id: u64,
    release: watch::Sender<bool>,
}

impl Hold {
    pub(crate) fn only_in(self, channel_id: u64) -> Self {
        for hold in self.discord.world().faults.holds.iter_mut().filter(|hold| hold.id == self.id) {
            hold.target.channel_id = Some(channel_id);
        }
        self
    }

    /// Lets the held calls go on; the same as dropping the hold.
    pub(crate) fn release(self) {}
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.discord.world().faults.holds.retain(|hold| hold.id != self.id);
        self.release.send_replace(true);
    }
}
