//! One connection to Discord's gateway: greets, keeps it alive, resumes it when it breaks. Gives events in the order they came.
//!
//! <https://discord.com/developers/docs/events/gateway>

use std::ops::ControlFlow;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use serenity::model::gateway::GatewayIntents;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, interval_at, sleep, timeout};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use super::closing::{After, after_close};
use super::greetings::Greetings;
use crate::channels::ListenError;
use crate::channels::connections::plain_cause;
use crate::config::Secret;

/// What we want to hear of.
pub(super) const INTENTS: GatewayIntents = GatewayIntents::GUILDS
    .union(GatewayIntents::GUILD_MESSAGES)
    .union(GatewayIntents::GUILD_MESSAGE_REACTIONS)
    .union(GatewayIntents::DIRECT_MESSAGES)
    .union(GatewayIntents::DIRECT_MESSAGE_REACTIONS)
    .union(GatewayIntents::MESSAGE_CONTENT);

/// A server that does not greet by then is gone.
const GREETING: Duration = Duration::from_secs(15);
const FIRST_BACKOFF: Duration = Duration::from_millis(250);
const LONGEST_BACKOFF: Duration = Duration::from_secs(120);
/// How long we wait for Discord to say goodbye as well.
const GOODBYE: Duration = Duration::from_secs(1);
/// Connections in a row that came to nothing before the operator is told.
const FAILURES_TOLD: u32 = 4;
/// The largest server that was seen takes a few megabytes.
const MAX_MESSAGE_BYTES: usize = 256 << 20;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Something that happened on Discord.
#[derive(Debug)]
pub(super) struct Event {
    /// `MESSAGE_CREATE`
    pub(super) kind: String,
    pub(super) data: Value,
}

pub(super) struct Shard<'a> {
    pub(super) url: &'a str,
    pub(super) token: &'a Secret,
    pub(super) number: u64,
    pub(super) total: u64,
    pub(super) events: mpsc::Sender<Event>,
    /// Shared by all connections of the bot.
    pub(super) greetings: &'a Greetings,
}

/// What is needed to go on where a connection broke.
#[derive(Debug, Default)]
struct Session {
    /// Absent until Discord has greeted us, and when it has forgotten us.
    known: Option<Known>,
    /// The number of the last event.
    seen: Option<u64>,
    /// Connections in a row that came to nothing.
    failures: u32,
}

#[derive(Debug)]
struct Known {
    id: String,
    url: Option<String>,
}

/// Why a connection ended.
enum Ended {
    /// Discord said so, or it broke.
    Closed(Option<u16>),
    /// Discord wants us to come back.
    AskedTo,
    /// Discord has forgotten the session.
    Forgotten,
    /// Nobody wants events any more.
    Unwanted,
}

impl Shard<'_> {
    /// Returns only when Discord refuses us for good, or nobody takes events any more.
    pub(super) async fn run(&self) -> Result<(), ListenError> {
        let mut session = Session::default();
        while !self.events.is_closed() {
            match self.once(&mut session).await {
                Ok(Ended::Unwanted) => return Ok(()),
                Ok(Ended::AskedTo) => {}
                Ok(Ended::Forgotten) => session.known = None,
                Ok(Ended::Closed(code)) => match after_close(code) {
                    After::Resume => tracing::info!(discord.close_code = code, "Discord closed the connection; resuming"),
                    After::Identify => session.known = None,
                    After::GiveUp(reason) => return Err(ListenError(reason)),
                },
                Err(error) => {
                    tracing::warn!("connecting to Discord: {error}");
                    // The address for resuming may be gone.
                    session.known.iter_mut().for_each(|known| known.url = None);
                }
            }
            self.pause(&mut session).await;
        }
        Ok(())
    }

    async fn pause(&self, session: &mut Session) {
        session.failures += 1;
        if session.failures == FAILURES_TOLD {
            tracing::error!("Discord has not let us in {FAILURES_TOLD} times in a row; trying on slowly");
        }
        tokio::select! {
            () = sleep(backoff(session.failures)) => {}
            () = self.events.closed() => {}
        }
    }

    async fn once(&self, session: &mut Session) -> Result<Ended, String> {
        let mut connection = self.connect(session).await?;
        if let Some(ended) = self.greet(&mut connection, session).await? {
            return Ok(ended);
        }
        let ended = self.listen(&mut connection, session).await;
        // 1000 and 1001 would end the session.
        let code = if matches!(ended, Ended::Unwanted) { CloseCode::Normal } else { CloseCode::Library(4000) };
        let goodbye = CloseFrame { code, reason: "".into() };
        drop(timeout(GOODBYE, connection.socket.close(Some(goodbye))).await);
        Ok(ended)
    }

    async fn connect(&self, session: &Session) -> Result<Connection, String> {
        let resume_at = session.known.as_ref().and_then(|known| known.url.as_deref());
        let url = format!("{}/?v=10&encoding=json", resume_at.unwrap_or(self.url).trim_end_matches('/'));
        let config = WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE_BYTES)).max_frame_size(Some(MAX_MESSAGE_BYTES));
        let connecting = timeout(GREETING, connect_async_with_config(url, Some(config), false)).await;
        let (mut socket, _) = connecting.map_err(|_| "it does not answer")?.map_err(|error| plain_cause(&error))?;
        let hello = timeout(GREETING, next(&mut socket)).await.map_err(|_| "it does not greet")?;
        match hello {
            Received::Payload(hello) if hello["op"] == 10 => {
                let every =
                    hello["d"]["heartbeat_interval"].as_u64().filter(|millis| *millis > 0).ok_or("it has no heartbeat")?;
                Ok(Connection { socket, heart: Heart::new(Duration::from_millis(every)) })
            }
            Received::Closed(code) => Err(format!("it closed the connection at once ({})", code.unwrap_or_default())),
            Received::Payload(_) | Received::Nothing | Received::Due => Err("it greets strangely".into()),
        }
    }

    /// Some when the connection ended before it began.
    async fn greet(&self, connection: &mut Connection, session: &mut Session) -> Result<Option<Ended>, String> {
        let token = self.token.expose();
        let greeting = match (&session.known, session.seen) {
            (Some(known), Some(seen)) => json!({ "op": 6, "d": { "token": token, "session_id": known.id, "seq": seen } }),
            _ => {
                session.seen = None;
                // Discord may hang up while we wait, and wants its heartbeats.
                tokio::select! {
                    () = self.greetings.turn() => {}
                    () = self.events.closed() => return Ok(Some(Ended::Unwanted)),
                }
                let properties = json!({ "os": std::env::consts::OS, "browser": "parlor", "device": "parlor" });
                let (intents, shard) = (INTENTS.bits(), [self.number, self.total]);
                json!({ "op": 2, "d": { "token": token, "intents": intents, "properties": properties, "shard": shard } })
            }
        };
        connection.say(&greeting).await.map_err(|error| plain_cause(&error))?;
        Ok(None)
    }

    /// Reads until the connection ends. Only as fast as events are taken, but heartbeats go on meanwhile.
    async fn listen(&self, connection: &mut Connection, session: &mut Session) -> Ended {
        loop {
            let room = tokio::select! {
                biased;
                _ = connection.heart.due.tick() => None,
                room = self.events.reserve() => Some(room),
            };
            let received = match room {
                None => Received::Due,
                Some(Err(_)) => return Ended::Unwanted,
                Some(Ok(_)) => tokio::select! {
                    biased;
                    _ = connection.heart.due.tick() => Received::Due,
                    () = self.events.closed() => return Ended::Unwanted,
                    received = next(&mut connection.socket) => received,
                },
            };
            let payload = match received {
                Received::Payload(payload) => payload,
                Received::Nothing => continue,
                Received::Closed(code) => return Ended::Closed(code),
                Received::Due => match connection.beat(session.seen).await {
                    Ok(()) => continue,
                    Err(ended) => return ended,
                },
            };
            let Some(Ok(room)) = room else { continue };
            match connection.take(payload, session).await {
                ControlFlow::Continue(Some(event)) => room.send(event),
                ControlFlow::Continue(None) => {}
                ControlFlow::Break(ended) => return ended,
            }
        }
    }
}

struct Connection {
    socket: Socket,
    heart: Heart,
}

struct Heart {
    due: Interval,
    /// The last heartbeat was answered.
    is_answered: bool,
}

impl Heart {
    /// The first beat comes after a part of the interval, so that not all bots beat together after an outage.
    fn new(every: Duration) -> Self {
        let mut byte = [0; 1];
        // Without a random number it is the whole interval.
        let part = getrandom::fill(&mut byte).map_or(1.0, |()| f64::from(byte[0]) / 255.0);
        Heart { due: interval_at(Instant::now() + every.mul_f64(part), every), is_answered: true }
    }
}

impl Connection {
    async fn say(&mut self, payload: &Value) -> Result<(), SocketError> {
        self.socket.send(Message::text(payload.to_string())).await
    }

    /// A connection whose last heartbeat was not answered is dead, and may be resumed.
    async fn beat(&mut self, seen: Option<u64>) -> Result<(), Ended> {
        if !std::mem::replace(&mut self.heart.is_answered, false) {
            tracing::warn!("Discord did not answer a heartbeat; connecting anew");
            return Err(Ended::Closed(None));
        }
        self.say(&json!({ "op": 1, "d": seen })).await.map_err(|_| Ended::Closed(None))
    }

    async fn take(&mut self, mut payload: Value, session: &mut Session) -> ControlFlow<Ended, Option<Event>> {
        match payload["op"].as_u64() {
            Some(0) => {
                session.seen = payload["s"].as_u64().or(session.seen);
                let kind = payload["t"].as_str().unwrap_or_default().to_owned();
                let event = Event { kind, data: payload["d"].take() };
                session.learn(&event);
                ControlFlow::Continue(Some(event))
            }
            Some(1) => {
                self.heart.is_answered = true;
                match self.beat(session.seen).await {
                    Ok(()) => ControlFlow::Continue(None),
                    Err(ended) => ControlFlow::Break(ended),
                }
            }
            Some(7) => ControlFlow::Break(Ended::AskedTo),
            Some(9) if payload["d"] == true => ControlFlow::Break(Ended::AskedTo),
            Some(9) => ControlFlow::Break(Ended::Forgotten),
            Some(11) => {
                self.heart.is_answered = true;
                ControlFlow::Continue(None)
            }
            _ => ControlFlow::Continue(None),
        }
    }
}

impl Session {
    fn learn(&mut self, event: &Event) {
        match event.kind.as_str() {
            "READY" => {
                let url = event.data["resume_gateway_url"].as_str().map(str::to_owned);
                self.known = event.data["session_id"].as_str().map(|id| Known { id: id.to_owned(), url });
                self.failures = 0;
            }
            "RESUMED" => self.failures = 0,
            _ => {}
        }
    }
}

/// What a socket gave.
enum Received {
    Payload(Value),
    /// A ping, or something that is no payload.
    Nothing,
    Closed(Option<u16>),
    /// Nothing either: a heartbeat is due.
    Due,
}

async fn next(socket: &mut Socket) -> Received {
    match socket.next().await {
        Some(Ok(Message::Text(text))) => match serde_json::from_str(&text) {
            Ok(payload) => Received::Payload(payload),
            Err(error) => {
                tracing::error!("Discord sent something that is no JSON: {error}");
                Received::Nothing
            }
        },
        Some(Ok(Message::Close(frame))) => Received::Closed(frame.map(|frame| frame.code.into())),
        Some(Ok(_)) => Received::Nothing,
        Some(Err(error)) => {
            tracing::debug!("the connection to Discord broke: {}", plain_cause(&error));
            Received::Closed(None)
        }
        None => Received::Closed(None),
    }
}

fn backoff(failures: u32) -> Duration {
    FIRST_BACKOFF.saturating_mul(1 << failures.saturating_sub(1).min(9)).min(LONGEST_BACKOFF)
}
