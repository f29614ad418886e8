//! One session with Discord's gateway: greets, listens, and resumes when the connection breaks. Gives events in the order they came.
//!
//! <https://discord.com/developers/docs/events/gateway>

mod resumes;
mod sequence;

use std::ops::ControlFlow;

use serde_json::{Value, json};
use serenity::model::gateway::GatewayIntents;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::api::Api;
use super::broken_json::{Broken, BrokenPayload};
use super::close_codes::{After, after_close};
use super::identify_limit::{IdentifyLimit, IdentifyPermit};
use super::reconnecting::{Haste, Patience, Reached, Restarts};
use super::socket::{Close, Dead, Dial, NotOpened, Received, Socket};
use crate::channels::ListenError;

use resumes::Resumes;
use sequence::{Sequence, Step};

/// What we want to hear of.
const INTENTS: GatewayIntents = GatewayIntents::GUILDS
    .union(GatewayIntents::GUILD_MESSAGES)
    .union(GatewayIntents::GUILD_MESSAGE_REACTIONS)
    .union(GatewayIntents::DIRECT_MESSAGES)
    .union(GatewayIntents::DIRECT_MESSAGE_REACTIONS)
    .union(GatewayIntents::MESSAGE_CONTENT);

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
    pub(super) data: Result<Value, Broken>,
    /// Events before it never came, and resuming did not bring them.
    pub(super) is_after_gap: bool,
}

pub(super) struct Shard<'a, D> {
    pub(super) url: &'a str,
    pub(super) dial: &'a D,
    pub(super) api: &'a Api,
    pub(super) number: u64,
    pub(super) total: u64,
    pub(super) events: mpsc::Sender<Event>,
    /// Shared by all connections of the bot.
    pub(super) identify_limit: &'a IdentifyLimit,
}

/// What is needed to go on where a connection broke.
#[derive(Debug, Default)]
struct Session {
    /// Absent until Discord has greeted us, and when it has forgotten us.
    known: Option<ResumePoint>,
    sequence: Sequence,
    resumes: Resumes,
    /// On the connection that there is now, or was last.
    is_let_in: bool,
}

#[derive(Debug)]
struct ResumePoint {
    id: String,
    /// Where to resume, if not where we began.
    url: Option<String>,
}

/// Why a connection ended.
enum Ended {
    /// It was never made.
    NotOpened(String),
    /// Discord said so, or it broke.
    Closed(Close),
    /// Discord wants us to come back.
    AskedTo,
    /// Discord does not know the session right now, but may again.
    Invalid,
    /// Discord has forgotten the session.
    Forgotten,
    /// Events are missing, which resuming may bring.
    Gap,
    /// READY cannot be read, so there is no session to go on with.
    BrokenReady,
    /// Nobody wants events any more.
    Unwanted,
}

impl Ended {
    fn haste(&self) -> Haste {
        if matches!(self, Ended::Invalid | Ended::Forgotten | Ended::BrokenReady) { Haste::NotAtOnce } else { Haste::AtOnce }
    }
}

impl From<Dead> for Ended {
    fn from(Dead(reason): Dead) -> Self {
        Ended::Closed(Close { code: None, reason: Some(reason.to_owned()) })
    }
}

impl<D: Dial> Shard<'_, D> {
    /// Returns only when Discord refuses us for good, or nobody takes events any more.
    pub(super) async fn run(&self) -> Result<(), ListenError> {
        let (mut session, mut patience, mut restarts) = (Session::default(), Patience::default(), Restarts::default());
        while !self.events.is_closed() {
            let (reached, ended) = self.once(&mut session).await;
            let mut wait = patience.after(reached, ended.haste());
            if session.judge(reached, ended)?.is_break() {
                return Ok(());
            }
            if session.is_stuck() {
                tracing::error!("{} resumes brought nothing new; beginning a new session", resumes::MOST_IN_VAIN);
                session = Session::default();
                wait = wait.max(restarts.next(Instant::now()));
            }
            if patience.failures() == FAILURES_TOLD {
                tracing::error!("Discord has not let us in {FAILURES_TOLD} times in a row; trying on slowly");
            }
            tokio::select! {
                () = sleep(wait) => {}
                () = self.events.closed() => {}
            }
        }
        Ok(())
    }

    /// One connection, from its greeting to its end.
    async fn once(&self, session: &mut Session) -> (Reached, Ended) {
        // In the line before there is a connection: Discord closes one on which nothing is said for long.
        let turn = match session.resuming() {
            Some(_) => None,
            None => tokio::select! {
                turn = self.identify_limit.turn() => Some(turn),
                () = self.events.closed() => return (Reached::Nothing, Ended::Unwanted),
            },
        };
        let resume_at = session.known.as_ref().and_then(|known| known.url.as_deref());
        let resume_at = resume_at.filter(|url| self.api.may_connect_to(url));
        let mut socket = match Socket::open(self.dial, resume_at.unwrap_or(self.url)).await {
            Ok(socket) => socket,
            Err(NotOpened::Closed(close)) => return (Reached::Nothing, Ended::Closed(close)),
            Err(NotOpened::Failed(error)) => return (Reached::Nothing, Ended::NotOpened(error)),
        };
        session.is_let_in = false;
        let ended = match self.greet(&mut socket, session, turn).await {
            Ok(()) => self.listen(&mut socket, session).await,
            Err(dead) => dead.into(),
        };
        socket.close(if matches!(ended, Ended::Unwanted) { GOODBYE } else { SEE_YOU }).await;
        (if session.is_let_in { Reached::Session } else { Reached::Greeting }, ended)
    }

    async fn greet(
        &self,
        socket: &mut Socket<D::Line>,
        session: &mut Session,
        permit: Option<IdentifyPermit<'_>>,
    ) -> Result<(), Dead> {
        let token = self.api.token().expose();
        let greeting = match session.resuming() {
            Some((id, seen)) => {
                let resume = json!({ "op": 6, "d": { "token": token, "session_id": id, "seq": seen } });
                session.resumes.note(seen);
                resume
            }
            None => {
                *session = Session::default();
                let properties = json!({ "os": std::env::consts::OS, "browser": "parlor", "device": "parlor" });
                let (intents, shard) = (INTENTS.bits(), [self.number, self.total]);
                json!({ "op": 2, "d": { "token": token, "intents": intents, "properties": properties, "shard": shard } })
            }
        };
        // Counted even if it does not arrive.
        permit.into_iter().for_each(IdentifyPermit::take);
        socket.say(&greeting).await
    }

    /// Reads until the connection ends. Only as fast as events are taken, but heartbeats go on meanwhile.
    async fn listen(&self, socket: &mut Socket<D::Line>, session: &mut Session) -> Ended {
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
                Received::Broken(broken) => match session.take_broken(socket, *broken).await {
                    ControlFlow::Continue(event) => room.into_iter().zip(event).for_each(|(room, event)| room.send(event)),
                    ControlFlow::Break(ended) => return ended,
                },
                Received::Nothing => {}
                Received::Closed(close) => return Ended::Closed(close),
                Received::BeatDue => {
                    if let Err(dead) = socket.beat(session.sequence.last()).await {
                        return dead.into();
                    }
                }
            }
        }
    }
}

impl Session {
    /// What to resume with.
    fn resuming(&self) -> Option<(&str, u64)> {
        Some((self.known.as_ref()?.id.as_str(), self.sequence.last()?))
    }

    /// An event that ends every connection on which it comes is brought by each resume again, and those behind it never come.
    fn is_stuck(&self) -> bool {
        self.known.is_some() && self.resumes.are_in_vain(self.sequence.last())
    }

    /// What the end of a connection means for the next. Breaks when there is to be none.
    fn judge(&mut self, reached: Reached, ended: Ended) -> Result<ControlFlow<()>, ListenError> {
        match ended {
            Ended::Unwanted => return Ok(ControlFlow::Break(())),
            Ended::NotOpened(error) => tracing::warn!("connecting to Discord: {error}"),
            Ended::AskedTo => tracing::info!("Discord asks to connect anew"),
            Ended::Invalid => tracing::info!("Discord does not know the session right now; trying again soon"),
            Ended::Forgotten => {
                tracing::info!("Discord has forgotten the session; beginning a new one");
                self.known = None;
            }
            Ended::Gap => {}
            Ended::BrokenReady => tracing::error!("Discord's READY cannot be read; beginning a new session"),
            Ended::Closed(close) => match after_close(close.code) {
                After::Resume => {
                    tracing::info!(discord.close_code = close.code, "the connection to Discord ended: {close}; resuming");
                }
                After::Identify => {
                    tracing::info!(
                        discord.close_code = close.code,
                        "the connection to Discord ended: {close}; beginning a new session"
                    );
                    self.known = None;
                }
                After::GiveUp(reason) => {
                    tracing::error!(discord.close_code = close.code, "Discord ended the connection for good: {close}");
                    return Err(ListenError(reason));
                }
            },
        }
        if reached == Reached::Nothing {
            // The address for resuming may be gone.
            self.known.iter_mut().for_each(|known| known.url = None);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// What a payload brings: an event, the end, or nothing to tell.
    async fn take<L>(&mut self, socket: &mut Socket<L>, mut payload: Value) -> ControlFlow<Ended, Option<Event>>
    where
        L: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    {
        match payload["op"].as_u64() {
            Some(0) => {
                let kind = payload["t"].as_str().unwrap_or_default().to_owned();
                self.take_event(payload["s"].as_u64(), kind, Ok(payload["d"].take()))
            }
            Some(1) => {
                socket.beat_was_answered();
                match socket.beat(self.sequence.last()).await {
                    Ok(()) => ControlFlow::Continue(None),
                    Err(dead) => ControlFlow::Break(dead.into()),
                }
            }
            Some(7) => ControlFlow::Break(Ended::AskedTo),
            Some(9) if payload["d"] == true => ControlFlow::Break(Ended::Invalid),
            Some(9) => ControlFlow::Break(Ended::Forgotten),
            Some(11) => {
                socket.beat_was_answered();
                ControlFlow::Continue(None)
            }
            _ => ControlFlow::Continue(None),
        }
    }

    /// What a payload brings of which only the frame can be read. Its number counts: resuming would bring the same again.
    async fn take_broken<L>(&mut self, socket: &mut Socket<L>, payload: BrokenPayload) -> ControlFlow<Ended, Option<Event>>
    where
        L: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    {
        match payload.op {
            Some(0) | None if self.known.is_none() => ControlFlow::Break(Ended::BrokenReady),
            Some(0) | None => self.take_event(payload.sequence, payload.kind, Err(payload.broken)),
            Some(op) => self.take(socket, json!({ "op": op })).await,
        }
    }

    fn take_event(
        &mut self,
        number: Option<u64>,
        kind: String,
        data: Result<Value, Broken>,
    ) -> ControlFlow<Ended, Option<Event>> {
        let step = number.map_or(Step::Next, |number| self.sequence.step(number, Instant::now()));
        if step == Step::Resume {
            return ControlFlow::Break(Ended::Gap);
        }
        let event = Event { kind, data, is_after_gap: step == Step::Gap };
        self.learn(&event);
        ControlFlow::Continue(Some(event))
    }

    fn learn(&mut self, event: &Event) {
        match (event.kind.as_str(), &event.data) {
            ("READY", Ok(data)) => {
                let url = data["resume_gateway_url"].as_str().map(str::to_owned);
                self.known = data["session_id"].as_str().map(|id| ResumePoint { id: id.to_owned(), url });
                self.is_let_in = true;
            }
            ("RESUMED", _) => self.is_let_in = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
