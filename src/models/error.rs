//! Why a model call failed: the case that callers act on, and the details for owners and the log.

use std::fmt;
use std::time::Duration;

use crate::config::ModelRef;

/// The reason of a failure, as far as callers act on the difference. Texts are safe to log: no
/// body, no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error("the model provider limits us{}", match .retry_after { Some(delay) => format!("; free again in {} s", delay.as_secs()), None => String::new() })]
    RateLimited { retry_after: Option<Duration> },
    #[error("the model provider is overloaded")]
    Overloaded,
    #[error("the conversation is longer than the model can read")]
    ContextTooLong,
    /// The provider will not answer this request: content policy, or a part of the request that the
    /// model does not take.
    #[error("the model provider refused: {0}")]
    Refused(String),
    /// The provider will not answer any request to this model.
    #[error("the model provider refused: {0}")]
    Unavailable(Unavailable),
    /// No connection to the provider.
    #[error("cannot reach the model server: {0}")]
    Unreachable(Unreachable),
    /// Not a byte came for long.
    #[error("the model server did not answer in time")]
    Stalled,
    /// More came than an answer may have.
    #[error("the model server sent {0}; it was stopped")]
    TooMuch(String),
    /// The answer stopped in the middle.
    #[error("the model's answer was cut off")]
    CutOff,
    #[error("the model call failed: {0}")]
    Broken(String),
}

/// Why a provider answers no request to a model. Numbers are HTTP statuses, 0 where there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unavailable {
    /// The key cannot be read: "the environment variable OPENAI_API_KEY is not set".
    KeyMissing(String),
    KeyRejected(u16),
    /// The key is right, and may not use this model or this server.
    NotAllowed(u16),
    NoCredit(u16),
    NoSuchModel(u16),
    /// The address leads to another one, and redirects would carry the key there.
    Moved(u16),
    /// A page for people where a model server should be.
    WebPage,
    /// The config has no such provider any more.
    NoProvider,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unavailable::KeyMissing(why) => f.write_str(why),
            Unavailable::KeyRejected(status) => with_status(f, "the key was not accepted", *status),
            Unavailable::NotAllowed(status) => with_status(f, "the key may not do this", *status),
            Unavailable::NoCredit(status) => {
                with_status(f, "the account has no credit left", *status)
            }
            Unavailable::NoSuchModel(status) => with_status(f, "no such model", *status),
            Unavailable::Moved(status) => with_status(f, "its address leads elsewhere", *status),
            Unavailable::WebPage => f.write_str("its address answers with a web page"),
            Unavailable::NoProvider => f.write_str("the config has no such provider"),
        }
    }
}

fn with_status(f: &mut fmt::Formatter<'_>, what: &str, status: u16) -> fmt::Result {
    match status {
        0 => f.write_str(what),
        status => write!(f, "{what} ({status})"),
    }
}

/// Why there is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreachable {
    NoSuchHost,
    ConnectionRefused,
    Tls,
    TimedOut,
    Other,
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unreachable::NoSuchHost => "its name was not found",
            Unreachable::ConnectionRefused => "the connection was refused",
            Unreachable::Tls => "no secure connection was possible",
            Unreachable::TimedOut => "the connection took too long",
            Unreachable::Other => "the connection failed",
        })
    }
}

/// A failed call: the case, and what the provider or the network said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallError {
    pub error: ModelError,
    /// The provider's own sentence, or the cause of a failed connection. Short, printable, without
    /// secrets and without words of the request.
    pub detail: Option<String>,
}

impl From<ModelError> for CallError {
    fn from(error: ModelError) -> Self {
        CallError {
            error,
            detail: None,
        }
    }
}

/// The end of a call that no model of a lineup answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct Unanswered {
    /// The model whose failure is told.
    pub model: ModelRef,
    pub error: ModelError,
    /// See [`CallError::detail`].
    pub detail: Option<String>,
}
