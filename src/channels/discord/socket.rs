//! A WebSocket to Discord's gateway, with its heartbeat.
//!
//! <https://discord.com/developers/docs/events/gateway#sending-heartbeats>

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::{Instant, Interval, interval_at, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use crate::channels::connections::plain_cause;

/// A server that does not greet by then is gone.
const GREETING: Duration = Duration::from_secs(15);
/// How long we wait for Discord to say goodbye as well.
const GOODBYE: Duration = Duration::from_secs(1);
/// The largest server that was seen takes a few megabytes.
const MAX_MESSAGE_BYTES: usize = 256 << 20;

type Stream = WebSocketStream<MaybeTlsStream<TcpStream>>;

pub(super) struct Socket {
    stream: Stream,
    beats: Interval,
    /// The last heartbeat was answered.
    is_answered: bool,
}

/// What a socket gave.
pub(super) enum Received {
    Payload(Value),
    /// A ping, or something that is no payload.
    Nothing,
    /// It is over, with a code if Discord said one.
    Closed(Option<u16>),
    BeatDue,
}

/// The connection takes nothing any more, or does not answer.
pub(super) struct Dead;

impl Socket {
    /// Connects, and waits for Discord's greeting.
    pub(super) async fn open(url: &str) -> Result<Self, String> {
        let url = format!("{}/?v=10&encoding=json", url.trim_end_matches('/'));
        let config = WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE_BYTES)).max_frame_size(Some(MAX_MESSAGE_BYTES));
        let connecting = timeout(GREETING, connect_async_with_config(url, Some(config), false)).await;
        let (mut stream, _) = connecting.map_err(|_| "it does not answer")?.map_err(|error| plain_cause(&error))?;
        match timeout(GREETING, read(&mut stream)).await.map_err(|_| "it does not greet")? {
            Received::Payload(hello) if hello["op"] == 10 => {
                let millis = hello["d"]["heartbeat_interval"].as_u64().filter(|millis| *millis > 0);
                let beats = beats(Duration::from_millis(millis.ok_or("it wants no heartbeat")?));
                Ok(Socket { stream, beats, is_answered: true })
            }
            Received::Closed(code) => Err(format!("it closed the connection at once ({})", code.unwrap_or_default())),
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
        self.stream.send(Message::text(payload.to_string())).await.map_err(|_| Dead)
    }

    /// Returns when a heartbeat is due. May be given up and asked again.
    pub(super) async fn beat_due(&mut self) {
        self.beats.tick().await;
    }

    pub(super) async fn beat(&mut self, seen: Option<u64>) -> Result<(), Dead> {
        if !std::mem::replace(&mut self.is_answered, false) {
            tracing::warn!("Discord did not answer a heartbeat; connecting anew");
            return Err(Dead);
        }
        self.say(&json!({ "op": 1, "d": seen })).await
    }

    pub(super) fn beat_was_answered(&mut self) {
        self.is_answered = true;
    }

    pub(super) async fn close(mut self, code: u16) {
        let goodbye = CloseFrame { code: CloseCode::from(code), reason: "".into() };
        drop(timeout(GOODBYE, self.stream.close(Some(goodbye))).await);
    }
}

/// The first comes after a part of the interval, so that not all bots beat together after an outage.
fn beats(every: Duration) -> Interval {
    let mut byte = [0; 1];
    // Without a random number it is the whole interval.
    let part = getrandom::fill(&mut byte).map_or(1.0, |()| f64::from(byte[0]) / 255.0);
    interval_at(Instant::now() + every.mul_f64(part), every)
}

async fn read(stream: &mut Stream) -> Received {
    match stream.next().await {
        Some(Ok(Message::Text(text))) => serde_json::from_str(&text).map_or_else(unreadable, Received::Payload),
        Some(Ok(Message::Close(frame))) => Received::Closed(frame.map(|frame| frame.code.into())),
        Some(Ok(_)) => Received::Nothing,
        Some(Err(error)) => {
            tracing::debug!("the connection to Discord broke: {}", plain_cause(&error));
            Received::Closed(None)
        }
        None => Received::Closed(None),
    }
}

fn unreadable(error: serde_json::Error) -> Received {
    tracing::error!("Discord sent something that is no JSON: {error}");
    Received::Nothing
}
