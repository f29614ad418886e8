//! Why a model call failed: the case that callers act on, and the details for owners and the log.

use std::fmt;
use std::time::Duration;

use crate::config::ModelRef;

/// The reason of a failure, as far as callers act on the difference. Texts are safe to log: no
/// body, no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error("the model provider limits us{}", match .retry_after { Some(delay) => format!("{FREE_AGAIN}{} s", delay.as_secs()), None => String::new() })]
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

/// A limit or a crowd without a time is over after this long.
const PASSES_AFTER: Duration = Duration::from_secs(60);

impl ModelError {
    /// How long a failure lasts that passes by itself, from its words in the turn log.
    pub fn passes_after(outcome: &str) -> Option<Duration> {
        let limited = ModelError::RateLimited { retry_after: None }.to_string();
        if outcome.contains(&ModelError::Overloaded.to_string()) {
            return Some(PASSES_AFTER);
        }
        let (_, rest) = outcome.split_once(&limited)?;
        let seconds = rest.strip_prefix(FREE_AGAIN).and_then(|rest| {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        });
        Some(seconds.map_or(PASSES_AFTER, Duration::from_secs))
    }

    /// The words of a failure without a time that has passed.
    pub fn without_time(outcome: &str) -> &str {
        outcome
            .split_once(FREE_AGAIN)
            .map_or(outcome, |(what, _)| what)
    }
}

const FREE_AGAIN: &str = "; free again in ";

/// Why a provider answers no request to a model. Numbers are HTTP statuses, 0 where there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unavailable {
    /// The key cannot be read: "the environment variable OPENAI_API_KEY is not set".
    KeyMissing(String),
    KeyRejected(u16),
    /// The server wants a key, and the config has none.
    KeyWanted(u16),
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

impl Unavailable {
    /// The file of a key that is refused because other users can get at it, as config.toml names it.
    pub(crate) fn open_file(&self) -> Option<&str> {
        let Unavailable::KeyMissing(why) = self else {
            return None;
        };
        let named = why.strip_prefix("the file ")?;
        let ends = [
            " is open to other users of this machine",
            " can be changed by every user of this machine",
        ];
        ends.iter()
            .find_map(|end| named.split_once(end))
            .map(|(name, _)| name)
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unavailable::KeyMissing(why) => f.write_str(why),
            Unavailable::KeyRejected(status) => with_status(f, "the key was not accepted", *status),
            Unavailable::KeyWanted(status) => {
                with_status(f, "it wants a key, and the config has none", *status)
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_pass_and_refusals_do_not() {
        let passes = |error: ModelError| ModelError::passes_after(&error.to_string());
        let limited = |seconds: u64| ModelError::RateLimited {
            retry_after: Some(Duration::from_secs(seconds)),
        };
        assert_eq!(passes(limited(2)), Some(Duration::from_secs(2)));
        assert_eq!(passes(limited(7200)), Some(Duration::from_secs(7200)));
        assert_eq!(
            passes(ModelError::RateLimited { retry_after: None }),
            Some(PASSES_AFTER)
        );
        assert_eq!(passes(ModelError::Overloaded), Some(PASSES_AFTER));
        assert_eq!(passes(ModelError::Stalled), None);
        assert_eq!(
            ModelError::without_time(&limited(2).to_string()),
            "the model provider limits us"
        );
    }
}
