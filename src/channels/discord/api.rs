//! Calls to Discord's REST API. The token goes in a header, so addresses are not secret, but errors
//! lose theirs all the same.
//!
//! <https://discord.com/developers/docs/reference>

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::DateTime;
use reqwest::header::{AUTHORIZATION, DATE, HeaderMap, USER_AGENT};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::buckets::Buckets;
use crate::channels::Health;
use crate::channels::connections::{Connections, DownloadError, Response, failure};
use crate::channels::describe::one_line;
use crate::channels::upload::{Content, File, Form};
use crate::clock::now_ms;
use crate::config::Secret;
use crate::fail_points;

/// A plain call has failed after this time.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest text of a refusal in the log; Discord's own texts are short.
const MAX_MESSAGE_CHARS: usize = 200;
/// Faulty fields in the log for one refusal, and their deepest nesting.
const MOST_FAULTS: usize = 5;
const DEEPEST_FIELD: usize = 8;
/// The longest name of a field or a fault; Discord's own names are shorter.
const MAX_FAULT_CHARS: usize = 60;
/// A smaller difference is no difference: Discord's dates have whole seconds, and answers take a
/// while to come.
const SAME_TIME_MS: i64 = 60 * 1000;

/// Discord refuses other forms: <https://discord.com/developers/docs/reference#user-agent>.
pub(super) const OUR_NAME: &str = concat!("DiscordBot (parlor, ", env!("CARGO_PKG_VERSION"), ")");

pub(super) struct Api {
    base_url: String,
    token: Secret,
    connections: Connections,
    buckets: Buckets,
    health: Health,
    /// How far Discord's clock is ahead of ours, in milliseconds, by its newest answer.
    ahead_ms: AtomicI64,
}

/// A call to the REST API.
pub(super) struct Call {
    method: Method,
    /// After `/api/v10`.
    path: String,
    body: Option<Value>,
}

impl Call {
    pub(super) fn get(path: String) -> Self {
        Call {
            method: Method::GET,
            path,
            body: None,
        }
    }

    pub(super) fn post(path: String, body: Value) -> Self {
        Call {
            method: Method::POST,
            path,
            body: Some(body),
        }
    }

    pub(super) fn patch(path: String, body: Value) -> Self {
        Call {
            method: Method::PATCH,
            path,
            body: Some(body),
        }
    }

    pub(super) fn put(path: String) -> Self {
        Call {
            method: Method::PUT,
            path,
            body: None,
        }
    }

    /// Replaces the whole list at the path.
    pub(super) fn replace_all(path: String, body: Value) -> Self {
        Call {
            method: Method::PUT,
            path,
            body: Some(body),
        }
    }

    pub(super) fn delete(path: String) -> Self {
        Call {
            method: Method::DELETE,
            path,
            body: None,
        }
    }

    /// Discord counts calls by kind and by channel or server; ids further on in the path make no
    /// difference.
    fn bucket(&self) -> String {
        let path = self.path.split('?').next().unwrap_or_default();
        if path.starts_with("/interactions/") || path.starts_with("/webhooks/") {
            // Every interaction has limits of its own. Its token is hashed, because the log names
            // the bucket.
            return format!(
                "{} interaction {:x}",
                self.method,
                BuildHasherDefault::<DefaultHasher>::default().hash_one(path)
            );
        }
        let is_id = |step: &str| !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
        let steps = path
            .split('/')
            .enumerate()
            .map(|(index, step)| if index > 2 && is_id(step) { "*" } else { step });
        format!("{} {}", self.method, steps.collect::<Vec<_>>().join("/"))
    }
}

/// A file to upload with a call.
pub(super) struct FileToSend<'a> {
    pub(super) name: &'a str,
    pub(super) media_type: &'a str,
    pub(super) content: Content,
}

/// The reason for a failed call.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApiError {
    /// Discord refused the call.
    #[error("Discord answered {status}: {message} ({code})")]
    Answered {
        status: u16,
        code: u64,
        message: String,
    },
    /// Too many calls: Discord answered 429, or announced the limit in an earlier answer.
    #[error("Discord asks to wait {} s", .0.as_secs_f32().ceil())]
    TooFast(Duration),
    /// A proxy on the way answered, so the status says nothing about the token or the channel.
    #[error("Discord was not reached: something on the way answered {status}")]
    InBetween { status: u16 },
    /// No connection was made, so nothing was sent.
    #[error("Discord cannot be reached: {0}")]
    NotReached(String),
    /// The call was made, but no readable answer came.
    #[error("Discord gave no readable answer: {0}")]
    NoAnswer(String),
}

impl ApiError {
    /// Whether Discord or the way there failed, rather than the request.
    fn is_outage(&self) -> bool {
        match self {
            ApiError::Answered { status, .. } => *status >= 500,
            ApiError::TooFast(_) => false,
            ApiError::InBetween { .. } | ApiError::NotReached(_) | ApiError::NoAnswer(_) => true,
        }
    }
}

/// <https://discord.com/developers/docs/reference#error-messages>, with the fields of a 429.
#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    code: u64,
    message: String,
    retry_after: Option<f64>,
    #[serde(default)]
    global: bool,
    /// The faults by field.
    #[serde(default)]
    errors: Value,
}

impl Refusal {
    /// For the operator. The names of fields are the only words taken from the call.
    fn in_words(&self) -> String {
        let mut faults = Vec::new();
        collect_faults(&self.errors, &mut Vec::new(), &mut faults);
        let message = one_line(&self.message, MAX_MESSAGE_CHARS).unwrap_or_default();
        if faults.is_empty() {
            message
        } else {
            format!("{message}: {}", faults.join(", "))
        }
    }
}

/// Collects the faults of each field, such as `content BASE_TYPE_MAX_LENGTH`.
fn collect_faults<'e>(errors: &'e Value, path: &mut Vec<&'e str>, faults: &mut Vec<String>) {
    let Some(fields) = errors.as_object().filter(|_| path.len() < DEEPEST_FIELD) else {
        return;
    };
    for (name, inner) in fields {
        if faults.len() >= MOST_FAULTS {
            return;
        }
        if name == "_errors" {
            let codes = inner
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|fault| fault["code"].as_str());
            let field = path.join(".");
            faults.extend(
                codes
                    .take(1)
                    .map(|code| plain_name(&format!("{field} {code}"))),
            );
        } else {
            path.push(name);
            collect_faults(inner, path, faults);
            path.pop();
        }
    }
}

/// Keeps only the characters of names, because the log must not repeat people's words.
fn plain_name(text: &str) -> String {
    let plain = text
        .trim()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | ' '));
    plain.take(MAX_FAULT_CHARS).collect()
}

impl Api {
    pub(super) fn new(base_url: &str, token: Secret) -> Self {
        let base_url = format!("{}/api/v10", base_url.trim_end_matches('/'));
        let (connections, buckets) = (Connections::new(None), Buckets::default());
        Api {
            base_url,
            token,
            connections,
            buckets,
            health: Health::default(),
            ahead_ms: AtomicI64::new(0),
        }
    }

    /// The gateway needs the same encryption as the API, because the token is sent to both.
    pub(super) fn may_connect_to(&self, url: &str) -> bool {
        url.starts_with("wss://")
            || (url.starts_with("ws://") && self.base_url.starts_with("http://"))
    }

    pub(super) fn health(&self) -> &Health {
        &self.health
    }

    /// The time on Discord's clock, from which ids are made. This machine's clock may be wrong by
    /// days.
    pub(super) fn now_ms(&self) -> i64 {
        now_ms().saturating_add(self.ahead_ms.load(Ordering::Relaxed))
    }

    pub(super) fn token(&self) -> &Secret {
        &self.token
    }

    pub(super) async fn call<T: DeserializeOwned>(&self, call: Call) -> Result<T, ApiError> {
        read_answer(&self.raw(call).await?)
    }

    /// The bytes of the answer, for callers with a tolerant reader.
    pub(super) async fn raw(&self, call: Call) -> Result<Vec<u8>, ApiError> {
        let fill = |request: RequestBuilder| match &call.body {
            Some(body) => request.json(body),
            None => request,
        };
        self.exchange(&call, CALL_TIMEOUT, fill).await
    }

    /// The call is a message, and the file its only attachment.
    pub(super) async fn upload<T: DeserializeOwned>(
        &self,
        call: Call,
        file: FileToSend<'_>,
    ) -> Result<T, ApiError> {
        let FileToSend {
            name,
            media_type,
            content,
        } = file;
        let mut message = call.body.clone().unwrap_or_default();
        // Discord keeps the files in this list, by their number, and drops all others.
        message["attachments"] = json!([{ "id": 0, "filename": name }]);
        let file = File {
            field: "files[0]",
            name,
            media_type,
            content,
        };
        let form = Form::new(&json!({ "payload_json": message.to_string() }), file);
        let timeout = form.timeout();
        read_answer(
            &self
                .exchange(&call, timeout, |request| request.multipart(form.parts))
                .await?,
        )
    }

    /// Files lie on another host, and their address is enough to fetch them, so the token is not
    /// sent.
    pub(super) async fn download(
        &self,
        url: &str,
        to: &Path,
        max_bytes: u64,
    ) -> Result<bool, ApiError> {
        self.connections
            .download(url, to, max_bytes)
            .await
            .map_err(|error| match error {
                DownloadError::Answered(status) => ApiError::InBetween {
                    status: status.as_u16(),
                },
                DownloadError::Transport(error) => transport(error),
                DownloadError::NotWritten(error) => {
                    ApiError::NoAnswer(format!("writing it: {error}"))
                }
            })
    }

    async fn exchange<F>(
        &self,
        call: &Call,
        timeout: Duration,
        fill: F,
    ) -> Result<Vec<u8>, ApiError>
    where
        F: FnOnce(RequestBuilder) -> RequestBuilder,
    {
        let bucket = call.bucket();
        self.buckets
            .ready(&bucket)
            .await
            .map_err(ApiError::TooFast)?;
        let url = format!("{}{}", self.base_url, call.path);
        let authorization = format!("Bot {}", self.token.expose());
        let make = |http: &reqwest::Client| {
            fill(http.request(call.method.clone(), url))
                .header(AUTHORIZATION, authorization)
                .header(USER_AGENT, OUR_NAME)
        };
        let kind = fail_points::Call::of_discord(call.method.as_str(), &call.path);
        let passing = fail_points::calls(kind);
        let exchanged = self
            .connections
            .exchange(&format!("Discord's {bucket}"), timeout, make)
            .await;
        passing.ended();
        let answered = exchanged.map_err(transport).and_then(|response| {
            self.buckets.note(&bucket, &response.headers);
            self.note_time(&response.headers);
            self.judge(&bucket, response)
        });
        match &answered {
            Ok(_) => self.health.well(),
            Err(error) if error.is_outage() => self.health.unwell(),
            Err(_) => {}
        }
        answered
    }

    fn note_time(&self, headers: &HeaderMap) {
        let date = headers
            .get(DATE)
            .and_then(|date| DateTime::parse_from_rfc2822(date.to_str().ok()?).ok());
        if let Some(date) = date {
            let ahead = date.timestamp_millis().saturating_sub(now_ms());
            let is_same = ahead.saturating_abs() < SAME_TIME_MS;
            self.ahead_ms
                .store(if is_same { 0 } else { ahead }, Ordering::Relaxed);
        }
    }

    fn judge(
        &self,
        bucket: &str,
        Response {
            status,
            headers,
            body,
        }: Response,
    ) -> Result<Vec<u8>, ApiError> {
        if status.is_success() {
            return Ok(body);
        }
        let refusal = serde_json::from_slice::<Refusal>(&body).ok();
        if status == StatusCode::TOO_MANY_REQUESTS {
            let wait = refusal
                .as_ref()
                .and_then(|refusal| refusal.retry_after)
                .or_else(|| seconds_in(&headers, "retry-after"));
            let wait = wait
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .unwrap_or(Duration::from_secs(1));
            let is_global = refusal.as_ref().is_some_and(|refusal| refusal.global)
                || headers.contains_key("x-ratelimit-global");
            self.buckets
                .wait(if is_global { None } else { Some(bucket) }, wait);
            return Err(ApiError::TooFast(wait));
        }
        // Discord answers with JSON, proxies in front of Discord with HTML.
        Err(match refusal {
            Some(refusal) => ApiError::Answered {
                status: status.as_u16(),
                code: refusal.code,
                message: refusal.in_words(),
            },
            None => ApiError::InBetween {
                status: status.as_u16(),
            },
        })
    }
}

/// An empty answer is read as `null`.
pub(super) fn read_answer<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    let body = if body.is_empty() {
        b"null".as_slice()
    } else {
        body
    };
    serde_json::from_slice(body).map_err(|error| ApiError::NoAnswer(error.to_string()))
}

pub(super) fn seconds_in(headers: &HeaderMap, name: &str) -> Option<f64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

fn transport(error: reqwest::Error) -> ApiError {
    let (reached, text) = failure(error);
    if reached {
        ApiError::NoAnswer(text)
    } else {
        ApiError::NotReached(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_not_said_in_the_clear() {
        let (discord, own) = (
            Api::new("https://discord.com", Secret::new("t")),
            Api::new("http://127.0.0.1:1", Secret::new("t")),
        );
        assert!(
            discord.may_connect_to("wss://gateway.discord.gg")
                && own.may_connect_to("ws://127.0.0.1:1")
        );
        assert!(
            !discord.may_connect_to("ws://gateway.discord.gg")
                && !own.may_connect_to("http://127.0.0.1:1")
        );
    }

    #[test]
    fn a_refusal_names_fields_and_faults_and_repeats_nothing() {
        let check = |refusal: Value, expected: &str| {
            assert_eq!(
                serde_json::from_value::<Refusal>(refusal)
                    .unwrap()
                    .in_words(),
                expected
            );
        };
        check(
            json!({ "message": "Missing Access", "code": 50001 }),
            "Missing Access",
        );
        let fault = |code: &str| json!({ "_errors": [{ "code": code, "message": "Value \"my words\" is wrong." }] });
        let errors = json!({ "content": fault("BASE_TYPE_MAX_LENGTH"), "embeds": { "0": { "title": fault("BASE_TYPE_REQUIRED") } } });
        check(
            json!({ "message": "Invalid Form Body", "code": 50035, "errors": errors }),
            "Invalid Form Body: content BASE_TYPE_MAX_LENGTH, embeds.0.title BASE_TYPE_REQUIRED",
        );
        check(
            json!({ "message": "Invalid Form Body", "errors": { "_errors": [{ "code": "APPLICATION_COMMAND_TOO_LARGE" }] } }),
            "Invalid Form Body: APPLICATION_COMMAND_TOO_LARGE",
        );
        let many: serde_json::Map<String, Value> = (0..9)
            .map(|number| (number.to_string(), fault("X")))
            .collect();
        check(
            json!({ "message": "no\nmore", "errors": { "a": many } }),
            "no more: a.0 X, a.1 X, a.2 X, a.3 X, a.4 X",
        );
        let odd = json!({ "„my words“\n": fault(&"Y".repeat(999)), "deep": (0..99).fold(fault("Z"), |inner, _| json!({ "d": inner })) });
        let words = serde_json::from_value::<Refusal>(json!({ "message": "odd", "errors": odd }))
            .unwrap()
            .in_words();
        assert_eq!(words, format!("odd: my words {}", "Y".repeat(51)));
        check(json!({ "message": "odd", "errors": ["what"] }), "odd");
    }

    #[test]
    fn calls_of_one_kind_in_one_channel_are_counted_together() {
        let check = |call: Call, expected| assert_eq!(call.bucket(), expected);
        check(
            Call::post("/channels/7/messages".into(), Value::Null),
            "POST /channels/7/messages",
        );
        check(
            Call::patch("/channels/7/messages/9".into(), Value::Null),
            "PATCH /channels/7/messages/*",
        );
        check(
            Call::get("/channels/7/messages?after=9".into()),
            "GET /channels/7/messages",
        );
        check(
            Call::get("/guilds/7/members/9".into()),
            "GET /guilds/7/members/*",
        );
        let of_interaction =
            Call::patch("/webhooks/7/secret/messages/@original".into(), Value::Null).bucket();
        assert!(
            of_interaction.starts_with("PATCH interaction ") && !of_interaction.contains("secret"),
            "{of_interaction}"
        );
    }
}
