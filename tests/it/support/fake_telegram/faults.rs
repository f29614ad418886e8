//! Ways in which an answer of the Bot API can be broken.

use serde_json::json;

use super::super::faults::{Breakable, FaultPlan, Faults, Hold, HoldPoint};
use super::FakeTelegram;
use super::wire::ApiError;

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
    /// The call takes effect, but what stands in front of Telegram answers with this status and a
    /// page of HTML.
    HtmlAfter(u16),
    /// The call takes effect, but Telegram itself answers with an error.
    RefusedAfter(u16, &'static str),
}

impl Fault {
    pub(super) fn api_error(self) -> Option<ApiError> {
        let error = match self {
            Self::RetryAfter(seconds) => {
                ApiError::new(429, format!("Too Many Requests: retry after {seconds}"))
                    .with_parameters(json!({ "retry_after": seconds }))
            }
            Self::Unauthorized => ApiError::new(401, "Unauthorized"),
            Self::Kicked => {
                ApiError::new(403, "Forbidden: bot was kicked from the supergroup chat")
            }
            Self::Blocked => ApiError::new(403, "Forbidden: bot was blocked by the user"),
            Self::ThreadNotFound => ApiError::new(400, "Bad Request: message thread not found"),
            Self::MigratedTo(chat_id) => ApiError::new(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
            )
            .with_parameters(json!({ "migrate_to_chat_id": chat_id })),
            Self::Refused(status, description) | Self::RefusedAfter(status, description) => {
                ApiError::new(status, description)
            }
            Self::Html(_)
            | Self::HtmlAfter(_)
            | Self::DroppedBefore
            | Self::DroppedAfter
            | Self::InvalidJson => return None,
        };
        Some(error)
    }
}

impl Breakable for FakeTelegram {
    type Call = String;
    type Place = i64;
    type Fault = Fault;

    fn is_any(call: &String) -> bool {
        call == ANY_METHOD
    }

    fn with_faults<T>(&self, change: impl FnOnce(&mut Faults<Self>) -> T) -> T {
        change(&mut self.world().faults)
    }
}

impl FakeTelegram {
    /// `telegram.fail("sendMessage", Fault::RetryAfter(1)).once()`; the oldest fault that fits a
    /// call is used.
    pub(crate) fn fail(&self, method: &str, fault: Fault) -> FaultPlan<Self> {
        self.fail_call(method.to_owned(), fault)
    }

    /// Calls are received and journaled, but nothing happens until the hold is released or dropped.
    pub(crate) fn hold(&self, method: &str) -> Hold<Self> {
        self.hold_call(method.to_owned(), HoldPoint::BeforeEffect)
    }

    /// Calls take effect, but their answers wait until the hold is released or dropped.
    pub(crate) fn hold_answers(&self, method: &str) -> Hold<Self> {
        self.hold_call(method.to_owned(), HoldPoint::BeforeAnswer)
    }
}
