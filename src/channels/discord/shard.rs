//! One session with Discord's gateway: greets, listens, and resumes when the connection breaks. Gives events in the order they came.
//!
//! <https://discord.com/developers/docs/events/gateway>

use std::ops::ControlFlow;
use std::time::Duration;

use serde_json::{Value, json};
use serenity::model::gateway::GatewayIntents;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::api::Api;
use super::closing::{After, after_close};
use super::greetings::Greetings;
use super::socket::{Dead, Received, Socket};
use crate::channels::ListenError;

/// What we want to hear of.
const INTENTS: GatewayIntents = GatewayIntents::GUILDS
    .union(GatewayIntents::GUILD_MESSAGES)
    .union(GatewayIntents::GUILD_MESSAGE_REACTIONS)
    .union(GatewayIntents::DIRECT_MESSAGES)
    .union(GatewayIntents::DIRECT_MESSAGE_REACTIONS)
    .union(GatewayIntents::MESSAGE_CONTENT);

const FIRST_BACKOFF: Duration = Duration::from_millis(250);
const LONGEST_BACKOFF: Duration = Duration::from_secs(120);
/// Connections in a row that came to nothing before the operator is told.
const FAILURES_TOLD: u32 = 4;
/// Ends the session.
const GOODBYE: u16 = 1000;
/// Ends the connection, and leaves the session to be resumed.
const SEE_YOU: u16 = 4000;

/// Something that happened on Discord.
#[derive(Debug)]
pub(super) struct Event {
    /// `MESSAGE_CREATE`
    pub(super) kind: String,
    pub(super) data: Value,
}

pub(super) struct Shard<'a> {
    pub(super) url: &'a str,
    pub(super) api: &'a Api,
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
    /// Where to resume, if not where we began.
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

impl From<Dead> for Ended {
    fn from(_: Dead) -> Self {
        Ended::Closed(None)
    }
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
                    After::Resume => tracing::info!(discord.close_code = code, "the connection to Discord ended; resuming"),
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

    /// One connection, from its greeting to its end.
    async fn once(&self, session: &mut Session) -> Result<Ended, String> {
        let resume_at = session.known.as_ref().and_then(|known| known.url.as_deref());
        let resume_at = resume_at.filter(|url| self.api.may_connect_to(url));
        let mut socket = Socket::open(resume_at.unwrap_or(self.url)).await?;
        let ended = match self.greet(&mut socket, session).await {
            Ok(()) => self.listen(&mut socket, session).await,
            Err(ended) => ended,
        };
        socket.close(if matches!(ended, Ended::Unwanted) { GOODBYE } else { SEE_YOU }).await;
        Ok(ended)
    }

    async fn greet(&self, socket: &mut Socket, session: &mut Session) -> Result<(), Ended> {
        let token = self.api.token().expose();
        let greeting = match (&session.known, session.seen) {
            (Some(known), Some(seen)) => json!({ "op": 6, "d": { "token": token, "session_id": known.id, "seq": seen } }),
            _ => {
                session.seen = None;
                tokio::select! {
                    () = self.greetings.turn() => {}
                    () = self.events.closed() => return Err(Ended::Unwanted),
                }
                let properties = json!({ "os": std::env::consts::OS, "browser": "parlor", "device": "parlor" });
                let (intents, shard) = (INTENTS.bits(), [self.number, self.total]);
                json!({ "op": 2, "d": { "token": token, "intents": intents, "properties": properties, "shard": shard } })
            }
        };
        Ok(socket.say(&greeting).await?)
    }

    /// Reads until the connection ends. Only as fast as events are taken, but heartbeats go on meanwhile.
    async fn listen(&self, socket: &mut Socket, session: &mut Session) -> Ended {
        loop {
            let room = tokio::select! {
                biased;
                () = socket.beat_due() => None,
                room = self.events.reserve() => match room {
                    Ok(room) => Some(room),
                    Err(_) => return Ended::Unwanted,
                },
            };
            let received = match &room {
                None => Received::BeatDue,
                Some(_) => tokio::select! {
                    () = self.events.closed() => return Ended::Unwanted,
                    received = socket.next() => received,
                },
            };
            match received {
                Received::Payload(payload) => match session.take(socket, payload).await {
                    ControlFlow::Continue(event) => room.into_iter().zip(event).for_each(|(room, event)| room.send(event)),
                    ControlFlow::Break(ended) => return ended,
                },
                Received::Nothing => {}
                Received::Closed(code) => return Ended::Closed(code),
                Received::BeatDue => {
                    if let Err(dead) = socket.beat(session.seen).await {
                        return dead.into();
                    }
                }
            }
        }
    }
}

impl Session {
    /// What a payload brings: an event, the end, or nothing to tell.
    async fn take(&mut self, socket: &mut Socket, mut payload: Value) -> ControlFlow<Ended, Option<Event>> {
        match payload["op"].as_u64() {
            Some(0) => {
                self.seen = payload["s"].as_u64().or(self.seen);
                let kind = payload["t"].as_str().unwrap_or_default().to_owned();
                let event = Event { kind, data: payload["d"].take() };
                self.learn(&event);
                ControlFlow::Continue(Some(event))
            }
            Some(1) => {
                socket.beat_was_answered();
                match socket.beat(self.seen).await {
                    Ok(()) => ControlFlow::Continue(None),
                    Err(dead) => ControlFlow::Break(dead.into()),
                }
            }
            Some(7) => ControlFlow::Break(Ended::AskedTo),
            Some(9) if payload["d"] == true => ControlFlow::Break(Ended::AskedTo),
            Some(9) => ControlFlow::Break(Ended::Forgotten),
            Some(11) => {
                socket.beat_was_answered();
                ControlFlow::Continue(None)
            }
            _ => ControlFlow::Continue(None),
        }
    }

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

fn backoff(failures: u32) -> Duration {
    FIRST_BACKOFF.saturating_mul(1 << failures.saturating_sub(1).min(9)).min(LONGEST_BACKOFF)
}
