//! Has a request carried out: by the gateway that runs on the home, else on the home itself, by the
//! same function.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep, timeout};

use super::color::Style;
use super::{Failure, database, print};
use crate::home::{Home, HomeLock, LockError};
use crate::operations::wire::{self, Answered, Asked, FrameError, Greeting, PROTOCOL};
use crate::operations::{
    self, Event, Operations, Refusal, RefusalKind, Reply, Request, Subject, socket,
};

/// A gateway that has just begun, or another verb that works on the home, is waited for so long.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// A gateway greets at once.
const GREETING: Duration = Duration::from_secs(5);
/// A wait that takes longer is told.
const TOLD_AFTER: Duration = Duration::from_millis(500);

/// Has one request carried out.
pub(super) async fn ask(home: &Home, request: Request) -> Result<Reply, Failure> {
    Operator::open(home, request.shares_home())
        .await?
        .ask(request)
        .await
}

/// The one who carries out requests.
pub(super) enum Operator {
    Gateway(Line),
    /// The home has no gateway. A change has the home for itself.
    Home {
        operations: Box<Operations>,
        _lock: Option<HomeLock>,
    },
}

impl Operator {
    /// `shares_home`: the requests to come leave room for others on the home.
    pub(super) async fn open(home: &Home, shares_home: bool) -> Result<Self, Failure> {
        let began = Instant::now();
        let (patience, mut is_told) = (began + PATIENCE, false);
        loop {
            if let Some(line) = Line::open(home).await? {
                return Ok(Operator::Gateway(line));
            }
            let lock = match shares_home {
                true if home.is_running() => Err(home.held()),
                true => Ok(None),
                false => home.lock().map(Some),
            };
            let lock = match lock {
                Ok(lock) => lock,
                Err(LockError::Held { pid, .. }) if Instant::now() < patience => {
                    if !is_told && began.elapsed() > TOLD_AFTER {
                        is_told = true;
                        print::note(format_args!(
                            "Parlor (pid {pid}) is starting or stopping; waiting up to {} s for it.",
                            PATIENCE.as_secs()
                        ));
                    }
                    sleep(LOOK_AGAIN).await;
                    continue;
                }
                Err(LockError::Held { pid, .. }) => return Err(no_answer(home, &pid)),
                Err(error) => return Err(error.into()),
            };
            let db = database::open(&home.database()).await?;
            let operations = Operations::on_home(home.path().to_owned(), db);
            return Ok(Operator::Home {
                operations: Box::new(operations),
                _lock: lock,
            });
        }
    }

    pub(super) fn is_gateway(&self) -> bool {
        matches!(self, Operator::Gateway(_))
    }

    pub(super) async fn ask(&mut self, request: Request) -> Result<Reply, Failure> {
        self.try_ask(request).await?.map_err(told)
    }

    /// For askers that can do something about a refusal.
    pub(super) async fn try_ask(
        &mut self,
        request: Request,
    ) -> Result<Result<Reply, Refusal>, Failure> {
        match self {
            Operator::Gateway(line) => line.ask(request).await,
            Operator::Home { operations, .. } => {
                let actor = operations::actor(nix::unistd::geteuid().as_raw());
                Ok(operations.run(&actor, request).await)
            }
        }
    }
}

/// A connection to the running gateway.
pub(super) struct Line {
    stream: BufReader<UnixStream>,
    /// The number of the next request.
    next: u64,
}

/// The outcome of a call at the gateway's door.
pub(super) enum Called {
    Line(Line),
    /// No gateway runs, or it cannot be reached yet.
    Nobody,
    /// A gateway took the call and says nothing.
    Silence,
}

impl Line {
    /// None where no gateway runs, or where it cannot be reached yet.
    pub(super) async fn open(home: &Home) -> Result<Option<Self>, Failure> {
        match Line::call(home).await? {
            Called::Line(line) => Ok(Some(line)),
            Called::Nobody => Ok(None),
            Called::Silence => Err(no_greeting(home)),
        }
    }

    pub(super) async fn call(home: &Home) -> Result<Called, Failure> {
        if !home.is_running() {
            return Ok(Called::Nobody);
        }
        let Ok(stream) = socket::connect(home.path()) else {
            return Ok(Called::Nobody);
        };
        let mut stream = BufReader::new(stream);
        let greeting = wire::read::<Greeting, _>(&mut stream, wire::MOST_ASKED_BYTES);
        let greeting = match timeout(GREETING, greeting).await {
            Ok(Ok(Some(greeting))) => greeting,
            // The gateway ended in this moment.
            Ok(Ok(None)) if is_of_this_user(home) => return Ok(Called::Nobody),
            Ok(Ok(None)) => return Err(Failure::Failed(NOT_LET_IN.into())),
            Ok(Err(error)) => return Err(cut_off(&error)),
            Err(_) => return Ok(Called::Silence),
        };
        if greeting.protocol != PROTOCOL {
            return Err(Failure::Failed(format!(
                "the running gateway is Parlor {}, and this program is {}",
                greeting.parlor,
                env!("CARGO_PKG_VERSION")
            ))
            .hint("restart the gateway, so that both are the same"));
        }
        Ok(Called::Line(Line { stream, next: 1 }))
    }

    pub(super) async fn ask(
        &mut self,
        request: Request,
    ) -> Result<Result<Reply, Refusal>, Failure> {
        let asked = self.send(request).await?;
        loop {
            match self.receive().await? {
                Answered::Reply { id, reply } if id == asked => return Ok(Ok(reply)),
                Answered::Refused { id, refusal } if id == asked => return Ok(Err(refusal)),
                Answered::Bye { reason } => return Err(Failure::Failed(reason)),
                // The rest of a stream that was stopped.
                _ => {}
            }
        }
    }

    /// Begins a stream, whose events [`Line::event`] returns.
    pub(super) async fn watch(&mut self, subject: Subject) -> Result<u64, Failure> {
        self.send(Request::Watch(subject)).await
    }

    /// The next event of a stream. None at its end.
    pub(super) async fn event(&mut self, stream: u64) -> Result<Option<Event>, Failure> {
        loop {
            match self.receive().await? {
                Answered::Event { id, event } if id == stream => return Ok(Some(event)),
                Answered::End { id } if id == stream => return Ok(None),
                Answered::Refused { id, refusal } if id == stream => return Err(told(refusal)),
                Answered::Bye { reason } => return Err(Failure::Failed(reason)),
                _ => {}
            }
        }
    }

    async fn send(&mut self, request: Request) -> Result<u64, Failure> {
        let id = self.next;
        self.next += 1;
        let request = Box::new(request);
        let asked = Asked::Ask { id, request };
        let written = wire::write(self.stream.get_mut(), &asked).await;
        written.map_err(|error| cut_off(&error.into()))?;
        Ok(id)
    }

    async fn receive(&mut self) -> Result<Answered, Failure> {
        match wire::read(&mut self.stream, wire::MOST_ANSWERED_BYTES).await {
            Ok(Some(answered)) => Ok(answered),
            Ok(None) => Err(cut_off(&FrameError::Cut)),
            Err(error) => Err(cut_off(&error)),
        }
    }
}

fn is_of_this_user(home: &Home) -> bool {
    let user = nix::unistd::geteuid();
    let lock = std::fs::metadata(home.path().join("parlor.lock"));
    user.is_root() || lock.is_ok_and(|lock| lock.uid() == user.as_raw())
}

/// What a refusal says to the person at the terminal.
pub(super) fn told(refusal: Refusal) -> Failure {
    let text = match refusal.coloured {
        Some(coloured) if Style::for_stderr().is_coloured() => coloured,
        _ => refusal.text,
    };
    let failure = match refusal.kind {
        RefusalKind::WrongUse => Failure::WrongUse(text),
        RefusalKind::Conflict | RefusalKind::Failed => Failure::Failed(text),
    };
    match refusal.hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// A reply that does not belong to its request.
pub(super) fn odd_reply() -> Failure {
    Failure::Failed("the gateway answered something else than was asked".into())
}

fn cut_off(error: &FrameError) -> Failure {
    let text = match error {
        FrameError::Cut | FrameError::Io(_) => {
            "the gateway ended before it answered, so this may or may not have been done".to_owned()
        }
        error => format!("the gateway's answer cannot be read: {error}"),
    };
    Failure::Failed(text)
}

fn no_answer(home: &Home, pid: &str) -> Failure {
    Failure::Failed(format!(
        "Parlor runs on {} (pid {pid}), but does not answer at parlor.sock",
        home.path().display()
    ))
    .hint("it may be stopping, so try again; its log says whether the socket could be made")
}

const NOT_LET_IN: &str =
    "the gateway refuses this user: only the user who runs it, and root, may give it orders";

/// A gateway that holds the home and says nothing is stopped by a signal, or stuck.
fn no_greeting(home: &Home) -> Failure {
    let pid = match home.held() {
        LockError::Held { pid, .. } => pid,
        _ => "unknown".to_owned(),
    };
    Failure::Failed(format!(
        "the gateway (pid {pid}) does not answer at parlor.sock for {} s",
        GREETING.as_secs()
    ))
    .hint("it may be suspended (`kill -CONT` with that pid wakes it), or stuck: end it and start it again, nothing is lost")
}
