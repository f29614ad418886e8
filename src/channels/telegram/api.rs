//! Calls to the Bot API. The token never leaves this file: every URL contains the token, so errors
//! lose their URL.

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::DateTime;
use reqwest::header::{DATE, HeaderMap};
use reqwest::{RequestBuilder, StatusCode};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use teloxide::requests::Payload;

use crate::channels::Health;
use crate::channels::connections::{Connections, DownloadError, Response, failure};
use crate::channels::upload::{File, Form};
use crate::clock::now_ms;
use crate::config::Secret;
use crate::fail_points;

/// A slower plain call has failed.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct Api {
    base_url: String,
    token: Secret,
    call_timeout: Duration,
    connections: Connections,
    health: Health,
    /// How far Telegram's clock is ahead of ours, in milliseconds, by its newest answer.
    ahead_ms: AtomicI64,
}

/// Why a call did not work.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApiError {
    /// Telegram refused.
    #[error("Telegram answered {code}: {description}")]
    Answered {
        code: u16,
        description: String,
        retry_after: Option<Duration>,
        moved_to: Option<i64>,
    },
    /// A proxy on the way to Telegram answered, so the answer says nothing about the token or the
    /// chat.
    #[error("Telegram was not reached: something on the way answered {code}")]
    InBetween { code: u16 },
    /// No connection was made, so nothing was sent.
    #[error("Telegram cannot be reached: {0}")]
    NotReached(String),
    /// The call was made, but no readable answer came.
    #[error("Telegram gave no readable answer: {0}")]
    NoAnswer(String),
}

/// The answer to a call where only success matters.
pub(super) type Done = IgnoredAny;

impl ApiError {
    /// Whether Telegram or the way there failed, and not the request.
    fn is_outage(&self) -> bool {
        match self {
            ApiError::Answered { code, .. } => *code >= 500,
            ApiError::InBetween { .. } | ApiError::NotReached(_) | ApiError::NoAnswer(_) => true,
        }
    }
}

/// The Bot API's envelope. Self-hosted servers of other ages leave fields out, or say null.
#[derive(Deserialize)]
struct Envelope<T> {
    ok: bool,
    result: Option<T>,
    description: Option<String>,
    error_code: Option<u16>,
    parameters: Option<Parameters>,
}

#[derive(Deserialize)]
struct Parameters {
    retry_after: Option<u64>,
    migrate_to_chat_id: Option<i64>,
}

impl Api {
    /// `proxy` is a checked address.
    pub(super) fn new(base_url: &str, token: Secret, proxy: Option<Secret>) -> Self {
        let base_url = base_url.trim_end_matches('/').to_owned();
        Api {
            base_url,
            token,
            call_timeout: CALL_TIMEOUT,
            connections: Connections::new(proxy),
            health: Health::default(),
            ahead_ms: AtomicI64::new(0),
        }
    }

    /// How far Telegram's clock is ahead of ours. Its answers tell whole seconds.
    pub(super) fn ahead_ms(&self) -> i64 {
        self.ahead_ms.load(Ordering::Relaxed)
    }

    fn note_time(&self, headers: &HeaderMap) {
        let date = headers.get(DATE).and_then(|date| date.to_str().ok());
        if let Some(date) = date.and_then(|date| DateTime::parse_from_rfc2822(date).ok()) {
            let ahead = date.timestamp_millis().saturating_sub(now_ms());
            self.ahead_ms.store(ahead, Ordering::Relaxed);
        }
    }

    /// The bot's own id is the part of its token before the colon.
    pub(super) fn bot_id(&self) -> &str {
        self.token.expose().split(':').next().unwrap_or_default()
    }

    pub(super) async fn call<P>(&self, payload: &P) -> Result<P::Output, ApiError>
    where
        P: Payload + Serialize,
        P::Output: DeserializeOwned,
    {
        let timeout = payload.timeout_hint().unwrap_or_default() + self.call_timeout;
        self.noted(
            self.exchange(P::NAME, timeout, |request| request.json(payload))
                .await,
        )
    }

    pub(super) fn health(&self) -> &Health {
        &self.health
    }

    fn noted<T: DeserializeOwned>(
        &self,
        exchanged: reqwest::Result<(StatusCode, Vec<u8>)>,
    ) -> Result<T, ApiError> {
        let answered = exchanged
            .map_err(transport)
            .and_then(|(status, body)| read(status, &body));
        self.note_health(answered.as_ref().err());
        answered
    }

    /// Tells waiting tasks whether Telegram answers.
    pub(super) fn note_health(&self, error: Option<&ApiError>) {
        match error {
            None => self.health.well(),
            Some(error) if error.is_outage() => self.health.unwell(),
            Some(_) => {}
        }
    }

    /// The unparsed answer.
    pub(super) async fn call_unread<P: Payload + Serialize>(
        &self,
        payload: &P,
    ) -> Result<(StatusCode, Vec<u8>), ApiError> {
        let timeout = payload.timeout_hint().unwrap_or_default() + self.call_timeout;
        self.exchange(P::NAME, timeout, |request| request.json(payload))
            .await
            .map_err(transport)
    }

    pub(super) async fn upload<P>(&self, payload: &P, file: File<'_>) -> Result<P::Output, ApiError>
    where
        P: Payload + Serialize,
        P::Output: DeserializeOwned,
    {
        let form = Form::new(payload, file);
        let timeout = form.timeout();
        self.noted(
            self.exchange(P::NAME, timeout, |request| request.multipart(form.parts))
                .await,
        )
    }

    async fn exchange<F>(
        &self,
        method: &str,
        timeout: Duration,
        fill: F,
    ) -> reqwest::Result<(StatusCode, Vec<u8>)>
    where
        F: FnOnce(RequestBuilder) -> RequestBuilder,
    {
        let url = format!("{}/bot{}/{method}", self.base_url, self.token.expose());
        let what = format!("Telegram's {method}");
        let passing = fail_points::calls(fail_points::Call::of_telegram(method));
        let exchanged = self
            .connections
            .exchange(&what, timeout, |http| fill(http.post(url)))
            .await;
        passing.ended();
        let Response {
            status,
            body,
            headers,
        } = exchanged?;
        self.note_time(&headers);
        Ok((status, body))
    }

    /// Writes a file of Telegram's to `to`. False for a file of more than `max_bytes`.
    pub(super) async fn download(
        &self,
        path: &str,
        to: &Path,
        max_bytes: u64,
    ) -> Result<bool, ApiError> {
        let url = format!("{}/file/bot{}/{path}", self.base_url, self.token.expose());
        self.connections
            .download(&url, to, max_bytes)
            .await
            .map_err(|error| match error {
                DownloadError::Answered(status) => ApiError::InBetween {
                    code: status.as_u16(),
                },
                DownloadError::Transport(error) => transport(error),
                DownloadError::NotWritten(error) => {
                    ApiError::NoAnswer(format!("writing it: {error}"))
                }
            })
    }
}

/// The error of an unusable answer.
pub(super) fn refusal(status: StatusCode, body: &[u8]) -> ApiError {
    read::<Done>(status, body).map_or_else(
        |error| error,
        |_| ApiError::NoAnswer("it is cut off, or not what was asked for".into()),
    )
}

fn read<T: DeserializeOwned>(status: StatusCode, body: &[u8]) -> Result<T, ApiError> {
    match open::<T>(body) {
        Ok(Envelope {
            ok: true,
            result: Some(result),
            ..
        }) => Ok(result),
        // A missing result means the same as an empty result.
        Ok(Envelope {
            ok: true,
            result: None,
            ..
        }) => serde_json::from_str("{}").map_err(|_| ApiError::NoAnswer("it has no result".into())),
        Ok(envelope) => Err(ApiError::Answered {
            code: envelope.error_code.unwrap_or(status.as_u16()),
            description: envelope.description.unwrap_or_default(),
            retry_after: envelope
                .parameters
                .as_ref()
                .and_then(|given| given.retry_after)
                .map(Duration::from_secs),
            moved_to: envelope
                .parameters
                .and_then(|given| given.migrate_to_chat_id),
        }),
        // Telegram speaks JSON. A proxy on the way, or a login page of the network, answers with
        // HTML.
        Err(_) if !status.is_success() => Err(ApiError::InBetween {
            code: status.as_u16(),
        }),
        Err(error) => Err(ApiError::NoAnswer(error.to_string())),
    }
}

/// Answers repeat the text of messages, and Telegram does not always write correct JSON then. Serde
/// skips unread strings with anything but raw control characters, so these are blanked out.
fn open<T: DeserializeOwned>(body: &[u8]) -> serde_json::Result<Envelope<T>> {
    serde_json::from_slice(body).or_else(|error| {
        let blanked: Vec<u8> = body
            .iter()
            .map(|byte| if byte.is_ascii_control() { b' ' } else { *byte })
            .collect();
        serde_json::from_slice(&blanked).map_err(|_| error)
    })
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[derive(Serialize)]
    struct Ask {}

    impl Payload for Ask {
        type Output = Done;
        const NAME: &'static str = "getMe";
    }

    /// Fields that may be missing, as in the answers that are read here.
    #[derive(Debug, Deserialize)]
    struct Numbered {
        number: Option<i64>,
    }

    fn numbered(body: &[u8]) -> Option<Option<i64>> {
        read::<Numbered>(StatusCode::OK, body)
            .ok()
            .map(|read| read.number)
    }

    #[test]
    fn answers_are_read_with_fields_missing_null_or_broken() {
        for body in [
            r#"{"ok":true,"result":true}"#,
            r#"{"ok":true,"result":null}"#,
            r#"{"ok":true}"#,
            r#"{"ok":true,"result":{"message_id":5},"description":null,"error_code":null,"parameters":null}"#,
        ] {
            assert!(
                read::<Done>(StatusCode::OK, body.as_bytes()).is_ok(),
                "{body}"
            );
        }
        let deep = format!(
            r#"{{"ok":true,"result":{{"x":{}1{},"number":5}}}}"#,
            "[".repeat(200),
            "]".repeat(200)
        );
        let five: [&[u8]; 6] = [
            br#"{"ok":true,"result":{"number":5,"new_field":{"a":[1]}},"description":null}"#,
            br#"{"ok":true,"result":{"text":"\ud800","number":5}}"#,
            b"{\"ok\":true,\"result\":{\"text\":\"\xff\",\"number\":5}}",
            b"{\"ok\":true,\"result\":{\"text\":\"\x01\",\"number\":5}}",
            br#"{"ok":true,"result":{"date":1e400,"number":5}}"#,
            deep.as_bytes(),
        ];
        for body in five {
            assert_eq!(
                numbered(body),
                Some(Some(5)),
                "{}",
                String::from_utf8_lossy(body)
            );
        }
        assert_eq!(
            numbered(br#"{"ok":true,"result":{"number":null}}"#),
            Some(None)
        );
        assert_eq!(numbered(br#"{"ok":true,"result":null}"#), Some(None));
        assert_eq!(numbered(br#"{"ok":true,"result":{"#), None);
    }

    #[test]
    fn refusals_are_read_with_fields_missing_or_null() {
        let check = |body: &str, expected: &str| {
            assert_eq!(
                refusal(StatusCode::BAD_GATEWAY, body.as_bytes()).to_string(),
                expected,
                "{body}"
            );
        };
        check(r#"{"ok":false}"#, "Telegram answered 502: ");
        check(
            r#"{"ok":false,"error_code":429,"description":null,"parameters":{"retry_after":null,"migrate_to_chat_id":null}}"#,
            "Telegram answered 429: ",
        );
        check(
            r#"{"ok":false,"error_code":null,"description":"no","result":null,"parameters":null}"#,
            "Telegram answered 502: no",
        );
        check(
            "<html>",
            "Telegram was not reached: something on the way answered 502",
        );
    }

    /// The next server would read the token in the `Referer`.
    #[tokio::test]
    async fn a_call_that_is_sent_elsewhere_does_not_go_there() {
        let (telegram, elsewhere) = (listener().await, listener().await);
        let (api_url, location) = (url(&telegram), url(&elsewhere));
        let answer = format!(
            "HTTP/1.1 302 Found\r\nlocation: {location}/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        let redirect = async {
            let (mut connection, _) = telegram.accept().await.unwrap();
            connection
                .read_buf(&mut Vec::with_capacity(4096))
                .await
                .unwrap();
            connection.write_all(answer.as_bytes()).await.unwrap();
            std::future::pending::<()>().await;
        };
        let api = Api::new(&api_url, Secret::new("123:TOKEN"), None);
        tokio::select! {
            called = async { api.call(&Ask {}).await } => {
                assert!(matches!(called, Err(ApiError::InBetween { code: 302 })), "{called:?}");
            }
            _ = elsewhere.accept() => panic!("the call went elsewhere"),
            () = redirect => {}
        }
    }

    /// Two connections are open when the server goes silent. The call after the one that waited in
    /// vain takes neither.
    #[tokio::test]
    async fn a_call_that_never_comes_back_is_the_last_on_its_connections() {
        let telegram = listener().await;
        let api = Api {
            call_timeout: Duration::from_millis(300),
            ..Api::new(&url(&telegram), Secret::new("123:TOKEN"), None)
        };
        let call = async || api.call(&Ask {}).await;
        let opens_two = async {
            let (mut first, mut second) = (
                telegram.accept().await.unwrap().0,
                telegram.accept().await.unwrap().0,
            );
            for connection in [&mut first, &mut second] {
                connection
                    .read_buf(&mut Vec::with_capacity(4096))
                    .await
                    .unwrap();
            }
            for connection in [&mut first, &mut second] {
                connection
                    .write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n")
                    .await
                    .unwrap();
            }
            (first, second)
        };
        let (_, _, _silent) = tokio::join!(call(), call(), opens_two);
        assert!(matches!(call().await, Err(ApiError::NoAnswer(_))));
        tokio::select! {
            called = call() => panic!("it waited on an old connection: {called:?}"),
            accepted = telegram.accept() => drop(accepted.unwrap()),
        }
    }

    async fn listener() -> TcpListener {
        TcpListener::bind("127.0.0.1:0").await.unwrap()
    }

    fn url(listener: &TcpListener) -> String {
        format!("http://{}", listener.local_addr().unwrap())
    }
}
