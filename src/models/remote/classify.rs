//! Turns errors of servers and of the network into a few cases for callers, in our own words.
//!
//! Providers name their errors in free text, with keys and prompts among the words, and reqwest
//! puts the URL into its messages. So bodies are only searched for known words here, never passed
//! on; `sentence` has the part that may be.

use std::error::Error;
use std::io;
use std::iter::successors;
use std::time::Duration;

use chrono::{DateTime, Utc};
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde::Deserialize;
use serde_json::Value;

use super::bounds::{MAX_ERROR_BYTES, within_values};
use super::json::lenient;
use crate::models::{ModelError, Unavailable, Unreachable};

/// Words of providers for input of too great length.
const TOO_LONG: &[&str] = &[
    "context_length_exceeded",              // OpenAI
    "context length",                       // OpenAI, vLLM, Ollama
    "context window",                       // OpenAI Responses
    "prompt is too long",                   // Anthropic
    "exceed context limit",                 // Anthropic
    "request_too_large",                    // Anthropic
    "exceeds the maximum number of tokens", // Gemini
    "context size",                         // llama.cpp
    "too large for model",                  // Mistral
];
const OVERLOADED: &[&str] = &["overloaded", "\"unavailable\""];
const RATE_LIMITED: &[&str] = &[
    "rate_limit",
    "rate limit",
    "resource_exhausted",
    "too many requests",
];
const NO_CREDIT: &[&str] = &["insufficient_quota", "credit balance"];
const BAD_KEY: &[&str] = &[
    "api key not valid",
    "api_key_invalid",
    "invalid_api_key",
    "authentication_error",
];
const POLICY: &[&str] = &[
    "content_policy",
    "content policy",
    "content_filter",
    "usage policy",
    "safety system",
];

pub(super) fn of_status(status: StatusCode, headers: &HeaderMap, body: &str) -> ModelError {
    let code = status.as_u16();
    match code {
        429 if has_any(body, NO_CREDIT) => ModelError::Unavailable(Unavailable::NoCredit(code)),
        429 => ModelError::RateLimited {
            retry_after: retry_after(headers, body, Utc::now()),
        },
        502 | 503 | 504 | 529 => ModelError::Overloaded,
        401 => ModelError::Unavailable(Unavailable::KeyRejected(code)),
        402 => ModelError::Unavailable(Unavailable::NoCredit(code)),
        403 => ModelError::Unavailable(Unavailable::NotAllowed(code)),
        404 => ModelError::Unavailable(Unavailable::NoSuchModel(code)),
        413 => ModelError::ContextTooLong,
        300..=399 => ModelError::Unavailable(Unavailable::Moved(code)),
        400..=499 => of_words(body, code)
            .unwrap_or_else(|| refused(format!("the request was not accepted ({code})"))),
        _ if has_any(body, OVERLOADED) => ModelError::Overloaded,
        _ => broken(&format!("the model server failed ({code})")),
    }
}

/// Some servers send a status as a number in the event.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ErrorEvent {
    #[serde(deserialize_with = "lenient")]
    code: Option<u16>,
    #[serde(deserialize_with = "lenient")]
    error: InnerError,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct InnerError {
    #[serde(deserialize_with = "lenient")]
    code: Option<u16>,
}

/// An error of a server that had answered 200 before.
pub(super) fn of_error_event(data: &str) -> ModelError {
    let event: ErrorEvent = serde_json::from_str(data).unwrap_or_default();
    let status = event
        .code
        .or(event.error.code)
        .and_then(|code| StatusCode::from_u16(code).ok());
    let text = &data[..data.floor_char_boundary(MAX_ERROR_BYTES)];
    match status {
        Some(status) => of_status(status, &HeaderMap::new(), text),
        None => {
            of_words(text, 0).unwrap_or_else(|| broken("the model server failed while it answered"))
        }
    }
}

fn of_words(text: &str, status: u16) -> Option<ModelError> {
    if has_any(text, TOO_LONG) {
        Some(ModelError::ContextTooLong)
    } else if has_any(text, NO_CREDIT) {
        Some(ModelError::Unavailable(Unavailable::NoCredit(status)))
    } else if has_any(text, RATE_LIMITED) {
        Some(ModelError::RateLimited { retry_after: None })
    } else if has_any(text, OVERLOADED) {
        Some(ModelError::Overloaded)
    } else if has_any(text, BAD_KEY) {
        Some(ModelError::Unavailable(Unavailable::KeyRejected(status)))
    } else if has_any(text, POLICY) {
        Some(refused("the provider's content policy forbids it"))
    } else {
        None
    }
}

pub(super) fn of_transport(error: &reqwest::Error) -> ModelError {
    match error {
        error if error.is_builder() => malformed(),
        error if error.is_connect() => ModelError::Unreachable(unreachable(error)),
        error if error.is_body() || error.is_decode() => ModelError::CutOff,
        _ => broken("the model server hung up"),
    }
}

fn unreachable(error: &reqwest::Error) -> Unreachable {
    let refused = |cause: &(dyn Error + 'static)| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    };
    let told = causes(error).to_lowercase();
    match () {
        () if error.is_timeout() || told.contains("timed out") => Unreachable::TimedOut,
        () if chain(error).any(refused) => Unreachable::ConnectionRefused,
        () if told.contains("dns error") || told.contains("lookup") => Unreachable::NoSuchHost,
        () if told.contains("certificate") || told.contains("tls") => Unreachable::Tls,
        () => Unreachable::Other,
    }
}

fn chain(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    successors(error.source(), |cause: &&(dyn Error + 'static)| {
        (*cause).source()
    })
}

/// What the network says about a failure. The address is left out, because it may hold a password.
pub(super) fn causes(error: &reqwest::Error) -> String {
    let mut causes: Vec<String> = Vec::new();
    for cause in chain(error) {
        let cause = cause.to_string();
        // Libraries repeat the cause beneath in their own message.
        if !causes.iter().any(|known| known.contains(&cause)) {
            causes.push(cause);
        }
    }
    causes.join(": ")
}

/// A page for people where a model server should be.
pub(super) fn web_page() -> ModelError {
    ModelError::Unavailable(Unavailable::WebPage)
}

pub(super) fn malformed() -> ModelError {
    broken("the provider's address or key is malformed")
}

pub(super) fn unreadable() -> ModelError {
    broken("the model server's answer could not be read")
}

/// The pause that the provider asks for: milliseconds, seconds or a date in a header, or Gemini's
/// field.
fn retry_after(headers: &HeaderMap, body: &str, now: DateTime<Utc>) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let milliseconds =
        text("retry-after-ms").and_then(|text| seconds(text).map(|duration| duration / 1000));
    let plain =
        || text(RETRY_AFTER.as_str()).and_then(|text| seconds(text).or_else(|| until(text, now)));
    milliseconds.or_else(plain).or_else(|| retry_delay(body))
}

fn seconds(text: &str) -> Option<Duration> {
    text.trim()
        .parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

fn until(date: &str, now: DateTime<Utc>) -> Option<Duration> {
    let date = DateTime::parse_from_rfc2822(date).ok()?;
    Some(date.signed_duration_since(now).to_std().unwrap_or_default())
}

/// `"retryDelay": "34.5s"`, deep in a 429 of Gemini.
fn retry_delay(body: &str) -> Option<Duration> {
    within_values(body).ok()?;
    let body: Value = serde_json::from_str(body).ok()?;
    let details = body.pointer("/error/details")?.as_array()?;
    let delay = details
        .iter()
        .find_map(|detail| detail.get("retryDelay")?.as_str())?;
    seconds(delay.strip_suffix('s')?)
}

fn has_any(text: &str, words: &[&str]) -> bool {
    let text = text.to_lowercase();
    words.iter().any(|word| text.contains(word))
}

fn refused(why: impl Into<String>) -> ModelError {
    ModelError::Refused(why.into())
}

fn broken(why: &str) -> ModelError {
    ModelError::Broken(why.to_owned())
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};
    use serde_json::json;

    use super::*;

    fn check(code: u16, body: &str, expected: &str) {
        let status = StatusCode::from_u16(code).expect("a status");
        assert_eq!(
            of_status(status, &HeaderMap::new(), body).to_string(),
            expected,
            "{code} {body}"
        );
    }

    #[test]
    fn statuses_become_the_cases_a_caller_acts_on() {
        let too_long = "the conversation is longer than the model can read";
        check(
            400,
            r#"{"error":{"code":"context_length_exceeded"}}"#,
            too_long,
        );
        check(
            400,
            "This model's maximum context length is 128000 tokens",
            too_long,
        );
        check(
            400,
            "Your input exceeds the context window of this model.",
            too_long,
        );
        check(
            400,
            "prompt is too long: 210000 tokens > 200000 maximum",
            too_long,
        );
        check(
            400,
            "input length and `max_tokens` exceed context limit: 190000 + 64000 > 200000",
            too_long,
        );
        check(
            400,
            "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
            too_long,
        );
        check(
            400,
            "the request exceeds the available context size",
            too_long,
        );
        check(413, r#"{"error":{"type":"request_too_large"}}"#, too_long);

        check(429, "", "the model provider limits us");
        check(
            429,
            "You exceeded your current quota, please check your plan and billing details.",
            "the model provider limits us",
        );
        check(
            429,
            r#"{"error":{"code":"insufficient_quota"}}"#,
            "the model provider refused: the account has no credit left (429)",
        );
        check(503, "", "the model provider is overloaded");
        check(529, "", "the model provider is overloaded");
        check(
            500,
            r#"{"type":"overloaded_error"}"#,
            "the model provider is overloaded",
        );

        check(
            400,
            "Your credit balance is too low",
            "the model provider refused: the account has no credit left (400)",
        );
        check(
            400,
            "API key not valid. Please pass a valid API key.",
            "the model provider refused: the key was not accepted (400)",
        );
        check(
            400,
            "content_policy_violation",
            "the model provider refused: the provider's content policy forbids it",
        );
        check(
            400,
            "tools.0.name: bad",
            "the model provider refused: the request was not accepted (400)",
        );
        check(
            401,
            "sk-secret is wrong",
            "the model provider refused: the key was not accepted (401)",
        );
        check(
            403,
            "",
            "the model provider refused: the key may not do this (403)",
        );
        check(404, "", "the model provider refused: no such model (404)");
        check(
            302,
            "",
            "the model provider refused: its address leads elsewhere (302)",
        );
        check(
            500,
            "boom at db-17",
            "the model call failed: the model server failed (500)",
        );
    }

    #[test]
    fn errors_inside_a_stream_are_told_apart() {
        let check = |body: Value, expected: ModelError| {
            assert_eq!(of_error_event(&body.to_string()), expected, "{body}");
        };
        check(
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
            ModelError::Overloaded,
        );
        check(
            json!({"error": {"code": 503, "status": "UNAVAILABLE"}}),
            ModelError::Overloaded,
        );
        check(
            json!({"code": 429, "message": "slow down"}),
            ModelError::RateLimited { retry_after: None },
        );
        check(
            json!({"type": "error", "code": "rate_limit_exceeded"}),
            ModelError::RateLimited { retry_after: None },
        );
        check(
            json!({"message": "maximum context length"}),
            ModelError::ContextTooLong,
        );
        check(
            json!({"error": {"code": 500, "message": "boom"}}),
            broken("the model server failed (500)"),
        );
        check(
            json!({"error": {"code": 12, "message": "boom"}}),
            broken("the model server failed while it answered"),
        );
        check(
            json!({"error": "model runner has unexpectedly stopped"}),
            broken("the model server failed while it answered"),
        );
        let far = format!("{}context length", " ".repeat(MAX_ERROR_BYTES));
        check(
            json!({"message": far}),
            broken("the model server failed while it answered"),
        );
        check(
            json!(null),
            broken("the model server failed while it answered"),
        );
        check(
            json!({"message": "sk-secret"}),
            broken("the model server failed while it answered"),
        );
    }

    #[test]
    fn retry_after_is_read_in_every_form() {
        let now = DateTime::parse_from_rfc2822("Wed, 21 Oct 2026 07:28:00 GMT")
            .expect("a date")
            .to_utc();
        let check = |name: &'static str, value: &'static str, expected: Option<Duration>| {
            let headers = HeaderMap::from_iter([(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )]);
            assert_eq!(retry_after(&headers, "", now), expected, "{name}: {value}");
        };
        check("retry-after", "7", Some(Duration::from_secs(7)));
        check("retry-after", "0.5", Some(Duration::from_millis(500)));
        check(
            "retry-after",
            "Wed, 21 Oct 2026 07:28:30 GMT",
            Some(Duration::from_secs(30)),
        );
        check(
            "retry-after",
            "Wed, 21 Oct 2026 07:27:00 GMT",
            Some(Duration::ZERO),
        );
        check("retry-after", "-1", None);
        check("retry-after", "soon", None);
        check("retry-after-ms", "250", Some(Duration::from_millis(250)));
        let gemini =
            r#"{"error":{"code":429,"details":[{"@type":"Help"},{"retryDelay":"34.5s"}]}}"#;
        assert_eq!(
            retry_after(&HeaderMap::new(), gemini, now),
            Some(Duration::from_millis(34_500))
        );
        assert_eq!(retry_after(&HeaderMap::new(), "not json", now), None);
    }
}
