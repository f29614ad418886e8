//! Ways in which an answer of the REST API can be broken.

use super::FakeDiscord;
use super::routes::Route;
use super::wire::ApiError;
use crate::support::faults::{Breakable, FaultPlan, Faults, Hold, HoldPoint};

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
    /// The call takes effect, but what stands in front of Discord answers with this status and a
    /// page of HTML.
    HtmlAfter(u16),
}

impl Fault {
    pub(crate) const UNAUTHORIZED: Self = Self::Refused(401, 0, "401: Unauthorized");
    pub(crate) const MISSING_ACCESS: Self = Self::Refused(403, 50001, "Missing Access");
    pub(crate) const MISSING_PERMISSIONS: Self = Self::Refused(403, 50013, "Missing Permissions");
    pub(crate) const CANNOT_DM: Self =
        Self::Refused(403, 50007, "Cannot send messages to this user");
    pub(crate) const THREAD_ARCHIVED: Self = Self::Refused(400, 50083, "Thread is archived");
    pub(crate) const UNKNOWN_CHANNEL: Self = Self::Refused(404, 10003, "Unknown Channel");
    pub(crate) const UNKNOWN_MESSAGE: Self = Self::Refused(404, 10008, "Unknown Message");
    pub(crate) const UNKNOWN_INTERACTION: Self = Self::Refused(404, 10062, "Unknown interaction");
    pub(crate) const ALREADY_ACKNOWLEDGED: Self =
        Self::Refused(400, 40060, "Interaction has already been acknowledged.");
    pub(crate) const TOKEN_EXPIRED: Self = Self::Refused(401, 50027, "Invalid Webhook Token");
    pub(crate) const INVALID_FORM: Self = Self::Refused(400, 50035, "Invalid Form Body");

    pub(super) fn api_error(self) -> Option<ApiError> {
        match self {
            Self::Refused(_, 50035, _) => Some(ApiError::form(
                "content",
                "BASE_TYPE_REQUIRED",
                "This field is required",
            )),
            Self::Refused(status, code, message) => Some(ApiError::new(status, code, message)),
            _ => None,
        }
    }
}

impl Breakable for FakeDiscord {
    type Call = Route;
    type Place = u64;
    type Fault = Fault;

    fn is_any(call: &Route) -> bool {
        *call == Route::Any
    }

    fn with_faults<T>(&self, change: impl FnOnce(&mut Faults<Self>) -> T) -> T {
        change(&mut self.world().faults)
    }
}

impl FakeDiscord {
    /// `discord.fail(Route::CreateMessage, Fault::RateLimited(0.5)).once()`; the oldest fault that
    /// fits a call is used.
    pub(crate) fn fail(&self, route: Route, fault: Fault) -> FaultPlan<Self> {
        self.fail_call(route, fault)
    }

    /// Calls are received and journaled, but nothing happens until the hold is released or dropped.
    pub(crate) fn hold(&self, route: Route) -> Hold<Self> {
        self.hold_call(route, HoldPoint::BeforeEffect)
    }

    /// Calls take effect, but their answers wait until the hold is released or dropped.
    pub(crate) fn hold_answers(&self, route: Route) -> Hold<Self> {
        self.hold_call(route, HoldPoint::BeforeAnswer)
    }
}
