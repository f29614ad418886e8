//! A WebSocket to Discord's gateway, with its heartbeat.
//!
//! <https://discord.com/developers/docs/events/gateway#sending-heartbeats>

use std::fmt;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use reqwest::header::{HeaderValue, USER_AGENT};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, Interval, interval_at, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use super::api::OUR_NAME;
use super::broken_json::{BrokenPayload, read_payload};
use crate::channels::connections::plain_cause;
use crate::channels::describe::one_line;

/// The longest wait for HELLO.
const GREETING: Duration = Duration::from_secs(15);
/// The longest wait for Discord's close frame.
const GOODBYE: Duration = Duration::from_secs(1);
/// `GUILD_CREATE` of a large server has a few megabytes.
const MAX_MESSAGE_BYTES: usize = 256 << 20;
/// The protocol allows about as much for the reason of a close.
const MAX_REASON_CHARS: usize = 120;

/// Opens WebSockets.
pub(super) trait Dial: Sync {
    type Line: AsyncRead + AsyncWrite + Unpin + Send;

    fn dial(
        &self,
        url: &str,
    ) -> impl Future<Output = Result<WebSocketStream<Self::Line>, String>> + Send;
}

/// Dials over TCP, with or without TLS.
pub(super) struct Network;

impl Dial for Network {
    type Line = MaybeTlsStream<TcpStream>;

    async fn dial(&self, url: &str) -> Result<WebSocketStream<Self::Line>, String> {
        let mut request = url
            .into_client_request()
            .map_err(|error| plain_cause(&error))?;
        request
            .headers_mut()
            .insert(USER_AGENT, HeaderValue::from_static(OUR_NAME));
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        let connected = connect_async_with_config(request, Some(config), false).await;
        connected
            .map(|(stream, _)| stream)
            .map_err(|error| plain_cause(&error))
    }
}

pub(super) struct Socket<L> {
    stream: WebSocketStream<L>,
    beats: Interval,
    /// The last heartbeat was answered.
    is_answered: bool,
}

/// A frame, or the time for a heartbeat.
pub(super) enum Received {
    Payload(Value),
    Broken(Box<BrokenPayload>),
    /// A ping or a binary frame.
    Nothing,
    Closed(Close),
    BeatDue,
}

/// The end of a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Close {
    /// Absent when the connection broke.
    pub(super) code: Option<u16>,
    /// Discord's reason, or the error of the connection.
    pub(super) reason: Option<String>,
}

impl Close {
    fn new(code: Option<u16>, reason: &str) -> Self {
        Close {
            code,
            reason: one_line(reason, MAX_REASON_CHARS),
        }
    }
}

impl fmt::Display for Close {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, &self.reason) {
            (Some(code), Some(reason)) => write!(f, "{code}, {reason}"),
            (Some(code), None) => write!(f, "{code}"),
            (None, Some(reason)) => f.write_str(reason),
            (None, None) => f.write_str("without a word"),
        }
    }
}

/// The reason for a missing connection.
pub(super) enum NotOpened {
    /// A close before HELLO.
    Closed(Close),
    Failed(String),
}

impl From<&str> for NotOpened {
    fn from(reason: &str) -> Self {
        NotOpened::Failed(reason.to_owned())
    }
}

/// The connection takes nothing any more, or does not answer.
pub(super) struct Dead(pub(super) &'static str);

impl<L: AsyncRead + AsyncWrite + Unpin> Socket<L> {
    /// Connects, and waits for HELLO.
    pub(super) async fn open(dial: &impl Dial<Line = L>, url: &str) -> Result<Self, NotOpened> {
        let url = format!("{}/?v=10&encoding=json", url.trim_end_matches('/'));
        let connecting = timeout(GREETING, dial.dial(&url)).await;
        let mut stream = connecting
            .map_err(|_| "it does not answer")?
            .map_err(NotOpened::Failed)?;
        match timeout(GREETING, read(&mut stream))
            .await
            .map_err(|_| "it does not greet")?
        {
            Received::Payload(hello) if hello["op"] == 10 => {
                let millis = hello["d"]["heartbeat_interval"]
                    .as_u64()
                    .filter(|millis| *millis > 0);
                let beats = beats(Duration::from_millis(
                    millis.ok_or("it wants no heartbeat")?,
                ));
                Ok(Socket {
                    stream,
                    beats,
                    is_answered: true,
                })
            }
            Received::Closed(close) => Err(NotOpened::Closed(close)),
            _ => Err("it greets strangely".into()),
        }
    }

    /// May be given up and asked again.
    pub(super) async fn next(&mut self) -> Received {
        tokio::select! {
            biased;
            _ = self.beats.tick() => Received::BeatDue,
            received = read(&mut self.stream) => received,
        }
    }

    pub(super) async fn say(&mut self, payload: &Value) -> Result<(), Dead> {
        self.stream
            .send(Message::text(payload.to_string()))
            .await
            .map_err(|_| Dead("it takes nothing any more"))
    }

    /// Returns when a heartbeat is due. May be given up and asked again.
    pub(super) async fn beat_due(&mut self) {
        self.beats.tick().await;
    }

    pub(super) async fn beat(&mut self, seen: Option<u64>) -> Result<(), Dead> {
        if !std::mem::replace(&mut self.is_answered, false) {
            return Err(Dead("a heartbeat was not answered"));
        }
        self.say(&json!({ "op": 1, "d": seen })).await
    }

    pub(super) fn beat_was_answered(&mut self) {
        self.is_answered = true;
    }

    pub(super) async fn close(mut self, code: u16) {
        let goodbye = CloseFrame {
            code: CloseCode::from(code),
            reason: "".into(),
        };
        drop(timeout(GOODBYE, self.stream.close(Some(goodbye))).await);
    }
}

/// The first heartbeat comes after a random part of the interval, so that bots do not beat together
/// after an outage.
fn beats(every: Duration) -> Interval {
    interval_at(Instant::now() + every.mul_f64(random_part()), every)
}

/// A random number from 0 to 1; 1 if the system has no randomness.
pub(super) fn random_part() -> f64 {
    let mut byte = [0; 1];
    getrandom::fill(&mut byte).map_or(1.0, |()| f64::from(byte[0]) / 255.0)
}

async fn read<L: AsyncRead + AsyncWrite + Unpin>(stream: &mut WebSocketStream<L>) -> Received {
    match stream.next().await {
        Some(Ok(Message::Text(text))) => match read_payload(&text) {
            Ok(payload) => Received::Payload(payload),
            Err(broken) => {
                tracing::error!(
                    discord.event = broken.kind,
                    "Discord sent a payload of {} bytes that is not quite JSON",
                    text.len()
                );
                Received::Broken(Box::new(broken))
            }
        },
        Some(Ok(Message::Close(Some(frame)))) => {
            Received::Closed(Close::new(Some(frame.code.into()), &frame.reason))
        }
        Some(Ok(Message::Close(None))) | None => Received::Closed(Close::default()),
        Some(Ok(_)) => Received::Nothing,
        Some(Err(error)) => Received::Closed(Close::new(None, &plain_cause(&error))),
    }
}
