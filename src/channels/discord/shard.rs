//! A session with Discord's gateway: identifies, listens, and resumes when the connection breaks.
//! Events keep their order.
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

/// The wanted kinds of events.
const INTENTS: GatewayIntents = GatewayIntents::GUILDS
    .union(GatewayIntents::GUILD_MESSAGES)
    .union(GatewayIntents::GUILD_MESSAGE_REACTIONS)
    .union(GatewayIntents::DIRECT_MESSAGES)
    .union(GatewayIntents::DIRECT_MESSAGE_REACTIONS)
    .union(GatewayIntents::MESSAGE_CONTENT);

/// Failed connections in a row before the operator is told.
const FAILURES_TOLD: u32 = 4;
/// Ends the session.
const GOODBYE: u16 = 1000;
/// Ends the connection, and leaves the session to be resumed.
const SEE_YOU: u16 = 4000;

/// A dispatch of the gateway.
#[derive(Debug)]
pub(super) struct Event {
    /// `MESSAGE_CREATE`
    pub(super) kind: String,
    pub(super) data: Result<Value, Broken>,
    /// Earlier events are missing, also after a resume.
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

/// The state of a session between two connections.
#[derive(Debug, Default)]
struct Session {
    /// Absent before READY, and when the session is lost.
    known: Option<ResumePoint>,
    sequence: Sequence,
    resumes: Resumes,
    /// Whether READY or RESUMED came on the last connection.
    is_let_in: bool,
}

#[derive(Debug)]
struct ResumePoint {
    id: String,
    /// Discord's own address for resuming.
    url: Option<String>,
}

/// The end of a connection.
enum Ended {
    /// No connection was made.
    NotOpened(String),
    /// A close by Discord, or a broken connection.
    Closed(Close),
    /// Discord asks for a new connection (op 7).
    AskedTo,
    /// The session is invalid for now (op 9, resumable).
    Invalid,
    /// The session is lost (op 9).
    Forgotten,
    /// Missing events, which a resume may bring.
    Gap,
    /// An unreadable READY leaves no session to go on with.
    BrokenReady,
    /// The receiver of events is gone.
    Unwanted,
}

impl Ended {
    fn in_words(&self) -> String {
        match self {
            Ended::NotOpened(error) => error.clone(),
            Ended::Closed(Close {
                reason: Some(reason),
                ..
            }) => format!("the connection was closed: {reason}"),
            Ended::Closed(_) => "the connection was closed".to_owned(),
            _ => "connecting again".to_owned(),
        }
    }

    fn haste(&self) -> Haste {
        if matches!(self, Ended::Invalid | Ended::Forgotten | Ended::BrokenReady) {
            Haste::NotAtOnce
        } else {
            Haste::AtOnce
        }
    }
}

impl From<Dead> for Ended {
    fn from(Dead(reason): Dead) -> Self {
        Ended::Closed(Close {
            code: None,
            reason: Some(reason.to_owned()),
        })
    }
}

impl<D: Dial> Shard<'_, D> {
    /// Returns only when Discord refuses the bot for good, or the receiver of events is gone.
    pub(super) async fn run(&self) -> Result<(), ListenError> {
        let (mut session, mut patience, mut restarts) =
            (Session::default(), Patience::default(), Restarts::default());
        while !self.events.is_closed() {
            let (reached, ended) = self.once(&mut session).await;
            self.api.health().is_deaf(ended.in_words());
            let mut wait = patience.after(reached, ended.haste());
            if session.judge(reached, ended)?.is_break() {
                return Ok(());
            }
            if session.is_stuck() {
                tracing::error!(
                    "{} resumes brought nothing new; beginning a new session",
                    resumes::MOST_IN_VAIN
                );
                session = Session::default();
                wait = wait.max(restarts.next(Instant::now()));
            }
            if patience.failures() == FAILURES_TOLD {
                tracing::error!(
                    "Discord has not let us in {FAILURES_TOLD} times in a row; trying on slowly"
                );
            }
            tokio::select! {
                () = sleep(wait) => {}
                () = self.events.closed() => {}
            }
        }
        Ok(())
    }

    /// A connection from HELLO to its end.
    async fn once(&self, session: &mut Session) -> (Reached, Ended) {
        // The wait in line comes before connecting, because Discord closes connections without an
        // IDENTIFY.
        let permit = match session.resuming() {
            Some(_) => None,
            None => tokio::select! {
                permit = self.identify_limit.permit() => Some(permit),
                () = self.events.closed() => return (Reached::Nothing, Ended::Unwanted),
            },
        };
        let resume_at = session
            .known
            .as_ref()
            .and_then(|known| known.url.as_deref());
        let resume_at = resume_at.filter(|url| self.api.may_connect_to(url));
        let mut socket = match Socket::open(self.dial, resume_at.unwrap_or(self.url)).await {
            Ok(socket) => socket,
            Err(NotOpened::Closed(close)) => return (Reached::Nothing, Ended::Closed(close)),
            Err(NotOpened::Failed(error)) => return (Reached::Nothing, Ended::NotOpened(error)),
        };
        session.is_let_in = false;
        let ended = match self.greet(&mut socket, session, permit).await {
            Ok(()) => self.listen(&mut socket, session).await,
            Err(dead) => dead.into(),
        };
        socket
            .close(if matches!(ended, Ended::Unwanted) {
                GOODBYE
            } else {
                SEE_YOU
            })
            .await;
        (
            if session.is_let_in {
                Reached::Session
            } else {
                Reached::Greeting
            },
            ended,
        )
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
                let resume =
                    json!({ "op": 6, "d": { "token": token, "session_id": id, "seq": seen } });
                session.resumes.note(seen);
                resume
            }
            None => {
                *session = Session::default();
                let properties =
                    json!({ "os": std::env::consts::OS, "browser": "parlor", "device": "parlor" });
                let (intents, shard) = (INTENTS.bits(), [self.number, self.total]);
                json!({ "op": 2, "d": { "token": token, "intents": intents, "properties": properties, "shard": shard } })
            }
        };
        // Counts even if the message gets lost.
        permit.into_iter().for_each(IdentifyPermit::take);
        socket.say(&greeting).await
    }

    /// Reads until the connection ends. Only as fast as events are taken, but heartbeats go on
    /// meanwhile.
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
                    ControlFlow::Continue(event) => {
                        if session.is_let_in {
                            self.api.health().hears();
                        }
                        room.into_iter()
                            .zip(event)
                            .for_each(|(room, event)| room.send(event));
                    }
                    ControlFlow::Break(ended) => return ended,
                },
                Received::Broken(broken) => match session.take_broken(socket, *broken).await {
                    ControlFlow::Continue(event) => room
                        .into_iter()
                        .zip(event)
                        .for_each(|(room, event)| room.send(event)),
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
    /// The arguments of RESUME.
    fn resuming(&self) -> Option<(&str, u64)> {
        Some((self.known.as_ref()?.id.as_str(), self.sequence.last()?))
    }

    /// A frame that breaks every connection comes again with each resume, and the events behind the
    /// frame never come.
    fn is_stuck(&self) -> bool {
        self.known.is_some() && self.resumes.are_in_vain(self.sequence.last())
    }

    /// Prepares the next connection. Breaks when the shard should end.
    fn judge(&mut self, reached: Reached, ended: Ended) -> Result<ControlFlow<()>, ListenError> {
        match ended {
            Ended::Unwanted => return Ok(ControlFlow::Break(())),
            Ended::NotOpened(error) => tracing::warn!("connecting to Discord: {error}"),
            Ended::AskedTo => tracing::info!("Discord asks to connect anew"),
            Ended::Invalid => {
                tracing::info!("Discord does not know the session right now; trying again soon");
            }
            Ended::Forgotten => {
                tracing::info!("Discord has forgotten the session; beginning a new one");
                self.known = None;
            }
            Ended::Gap => {}
            Ended::BrokenReady => {
                tracing::error!("Discord's READY cannot be read; beginning a new session");
            }
            Ended::Closed(close) => match after_close(close.code) {
                After::Resume => {
                    tracing::info!(
                        discord.close_code = close.code,
                        "the connection to Discord ended: {close}; resuming"
                    );
                }
                After::Identify => {
                    tracing::info!(
                        discord.close_code = close.code,
                        "the connection to Discord ended: {close}; beginning a new session"
                    );
                    self.known = None;
                }
                After::GiveUp(reason) => {
                    tracing::error!(
                        discord.close_code = close.code,
                        "Discord ended the connection for good: {close}"
                    );
                    return Err(ListenError(reason));
                }
            },
        }
        if reached == Reached::Nothing {
            // Discord's address for resuming may be gone.
            self.known.iter_mut().for_each(|known| known.url = None);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Handles a payload: an event to pass on, the end of the connection, or neither.
    async fn take<L>(
        &mut self,
        socket: &mut Socket<L>,
        mut payload: Value,
    ) -> ControlFlow<Ended, Option<Event>>
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

    /// Handles a broken payload by the fields around its data. The number counts, because a resume
    /// would bring the same payload.
    async fn take_broken<L>(
        &mut self,
        socket: &mut Socket<L>,
        payload: BrokenPayload,
    ) -> ControlFlow<Ended, Option<Event>>
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
        let step = number.map_or(Step::Next, |number| {
            self.sequence.step(number, Instant::now())
        });
        if step == Step::Resume {
            return ControlFlow::Break(Ended::Gap);
        }
        let event = Event {
            kind,
            data,
            is_after_gap: step == Step::Gap,
        };
        self.learn(&event);
        ControlFlow::Continue(Some(event))
    }

    fn learn(&mut self, event: &Event) {
        match (event.kind.as_str(), &event.data) {
            ("READY", Ok(data)) => {
                let url = data["resume_gateway_url"].as_str().map(str::to_owned);
                self.known = data["session_id"].as_str().map(|id| ResumePoint {
                    id: id.to_owned(),
                    url,
                });
                self.is_let_in = true;
            }
            ("RESUMED", _) => self.is_let_in = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
