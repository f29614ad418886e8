//! Everything an operator can ask or change, one function each, for chat, command line and HTTP
//! alike.
//!
//! [`Operations::run`] carries out a [`Request`] and returns a [`Reply`], which the asker shows in
//! its own way. The same function works inside a running gateway, where a change counts at once, and
//! on a home without one. [`wire`] carries both over `parlor.sock`.

pub(crate) mod abilities;
mod agents;
pub(crate) mod budgets;
pub(crate) mod diagnosis;
pub(crate) mod finding_places;
mod forgetting;
pub(crate) mod house;
mod imports;
pub(crate) mod known_people;
mod letters;
pub(crate) mod named;
pub(crate) mod names;
mod overview;
pub(crate) mod people;
pub(crate) mod places;
mod pulse;
mod reload;
mod session_changes;
pub(crate) mod session_list;
pub(crate) mod session_state;
pub(crate) mod socket;
mod status;
pub(crate) mod terminal;
mod texts;
pub(crate) mod transcripts;
pub(crate) mod wire;
pub(crate) mod work;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::unistd::{Uid, User};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Secrets;
use crate::delivery::Delivery;
use crate::delivery::undelivered::Which;
use crate::domain::SessionKey;
use crate::home::{CheckedConfig, Home, ReloadHandle, Snapshot, Snapshots};
use crate::lanes::Sessions;
use crate::moving::{self, Wish};
use crate::records::audit::Actor;
use crate::routing::pins::Pins;
use crate::storage::{Db, StoreError};
use diagnosis::Diagnosis;
use terminal::{FromTerminal, Scene, ToTerminal, Visitor};

pub(crate) use agents::{AgentReply, AgentRequest, take_effect};
pub(crate) use forgetting::{Forgotten, forget};
pub(crate) use letters::{Retried, resend};
pub(crate) use overview::Overview;
pub(crate) use places::Given;
pub(crate) use pulse::Pulse;
pub(crate) use reload::Reloaded;
pub(crate) use session_changes::{Forked, MovedTo, Renewed};
pub(crate) use status::{
    AgentState, Condition, ErrorSeen, GatewayState, Link, PlatformState, Status, status,
};
#[cfg(test)]
pub(crate) use status::{ConfigState, Letters};
pub(crate) use work::{Ended, Listed, ListedStage};

/// A wish of an operator.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    Agent(AgentRequest),
    /// Brings agents of another system in, or only looks.
    Import(Wish),
    /// Gives a place to an agent.
    Pin {
        place: SessionKey,
        agent: String,
    },
    /// Lets the config decide again.
    Unpin {
        place: SessionKey,
    },
    /// Begins a new conversation.
    New {
        place: SessionKey,
    },
    /// The same, where there is a conversation.
    Renew {
        place: SessionKey,
    },
    /// Copies a conversation to the terminal.
    Fork {
        from: SessionKey,
        to: Option<SessionKey>,
    },
    /// Moves a conversation to another place.
    Move {
        from: SessionKey,
        to: SessionKey,
    },
    /// Stops turns, in a place or everywhere.
    Stop {
        place: Option<SessionKey>,
    },
    Queue {
        place: Option<SessionKey>,
    },
    /// Drops waiting messages.
    Clear {
        place: Option<SessionKey>,
    },
    /// Deletes a memory of an agent, else of the default agent.
    Forget {
        agent: Option<String>,
        id: i64,
    },
    /// Sends undelivered messages again.
    Retry(Which),
    /// Deletes undelivered messages.
    Drop(Which),
    /// Reads the config anew.
    Reload,
    Status,
    /// What is wrong, and the fix for each. Answered by the door that was asked.
    Doctor,
    /// From `parlor chat` and `parlor ask`.
    Terminal(FromTerminal),
    /// Events until the asker stops.
    Watch(Subject),
}

impl Request {
    /// Whether the home may have other work at the same time: the request changes nothing, or only
    /// what every process looks up anew.
    pub(crate) fn shares_home(&self) -> bool {
        match self {
            Request::Agent(request) => request.shares_home(),
            Request::Queue { .. }
            | Request::Stop { .. }
            | Request::Status
            | Request::Doctor
            | Request::Terminal(_)
            | Request::Watch(_)
            | Request::Reload
            | Request::Retry(_)
            | Request::Drop(_) => true,
            Request::Import(_)
            | Request::Pin { .. }
            | Request::Unpin { .. }
            | Request::New { .. }
            | Request::Renew { .. }
            | Request::Fork { .. }
            | Request::Move { .. }
            | Request::Clear { .. }
            | Request::Forget { .. } => false,
        }
    }
}

/// A stream of events.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Subject {
    /// The state of the house, every second.
    Status,
    /// A terminal talks here.
    Terminal(Visitor),
}

/// The result of a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    Agent(Box<AgentReply>),
    Imported(Box<moving::Report>),
    Given(Given),
    BegunAnew,
    Renewed(Renewed),
    Forked(Box<Forked>),
    Moved(Box<MovedTo>),
    Ended(Ended),
    Queue(Vec<Listed>),
    Forgotten(Forgotten),
    Retried(Retried),
    /// How many.
    Dropped(usize),
    Reloaded(Reloaded),
    Status(Box<Status>),
    Doctor(Box<Diagnosis>),
    Terminal(ToTerminal),
}

/// A piece of a stream.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Event {
    Status(Box<Status>),
    Terminal(Scene),
}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) kind: RefusalKind,
    pub(crate) text: String,
    /// The same with colours, where it is a report.
    pub(crate) coloured: Option<String>,
    pub(crate) hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RefusalKind {
    /// The request names something that does not exist.
    WrongUse,
    /// The request does not fit the present state, such as an id that is taken.
    Conflict,
    Failed,
}

impl Refusal {
    pub(crate) fn failed(text: impl Into<String>) -> Self {
        Refusal {
            kind: RefusalKind::Failed,
            text: text.into(),
            coloured: None,
            hint: None,
        }
    }

    pub(crate) fn wrong_use(text: impl Into<String>) -> Self {
        Refusal {
            kind: RefusalKind::WrongUse,
            ..Refusal::failed(text)
        }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Refusal {
            hint: Some(hint.into()),
            ..self
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Refusal::failed(error.to_string())
    }
}

/// The parts of a running gateway that operations reach.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) sessions: Sessions,
    pub(crate) snapshots: Snapshots,
    pub(crate) pins: Arc<Pins>,
    pub(crate) delivery: Delivery,
    pub(crate) reload: ReloadHandle,
    pub(crate) pulse: Arc<Pulse>,
    /// Called after words were deleted, which then leave the database file.
    pub(crate) words_are_gone: Arc<dyn Fn() + Send + Sync>,
    /// Tasks that shutdown waits for.
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
    pub(crate) started_at: i64,
}

/// Carries out requests. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Operations {
    home: PathBuf,
    db: Db,
    /// None where no gateway runs.
    live: Option<Live>,
}

impl Operations {
    /// For a home without a gateway. The caller holds the lock of the home, unless the request shares
    /// it.
    pub(crate) fn on_home(home: PathBuf, db: Db) -> Self {
        Operations {
            home,
            db,
            live: None,
        }
    }

    pub(crate) fn in_gateway(home: PathBuf, db: Db, live: Live) -> Self {
        Operations {
            home,
            db,
            live: Some(live),
        }
    }

    /// Carries out a request with one reply. Streams are the business of the door that was asked.
    pub(crate) async fn run(&self, actor: &Actor, request: Request) -> Result<Reply, Refusal> {
        match request {
            Request::Agent(request) => {
                let reply = agents::run(self, actor, request).await?;
                Ok(Reply::Agent(Box::new(reply)))
            }
            Request::Import(wish) => {
                let report = imports::run(self, actor, wish).await?;
                Ok(Reply::Imported(Box::new(report)))
            }
            Request::Pin { place, agent } => {
                let given = places::pin(self, actor, place, &agent).await;
                given.map(Reply::Given)
            }
            Request::Unpin { place } => places::unpin(self, actor, place).await.map(Reply::Given),
            Request::New { place } => {
                places::start_anew(self, actor, &place).await?;
                Ok(Reply::BegunAnew)
            }
            Request::Renew { place } => {
                let renewed = session_changes::renew(self, actor, place).await;
                renewed.map(Reply::Renewed)
            }
            Request::Fork { from, to } => {
                let forked = session_changes::fork(self, actor, from, to).await?;
                Ok(Reply::Forked(Box::new(forked)))
            }
            Request::Move { from, to } => {
                let moved = session_changes::move_to(self, actor, from, to).await?;
                Ok(Reply::Moved(Box::new(moved)))
            }
            Request::Stop { place } => {
                let ended = work::stop(self, actor, place.as_ref()).await;
                ended.map(Reply::Ended)
            }
            Request::Queue { place } => work::queue(self, place.as_ref()).await.map(Reply::Queue),
            Request::Clear { place } => {
                let ended = work::clear(self, actor, place.as_ref()).await;
                ended.map(Reply::Ended)
            }
            Request::Forget { agent, id } => {
                let forgotten = forgetting::run(self, actor, agent.as_deref(), id).await;
                forgotten.map(Reply::Forgotten)
            }
            Request::Retry(which) => letters::retry(self, actor, which).await.map(Reply::Retried),
            Request::Drop(which) => {
                let count = letters::drop_for_good(self, actor, which).await;
                count.map(Reply::Dropped)
            }
            Request::Reload => reload::run(self, actor).await.map(Reply::Reloaded),
            Request::Status => Ok(Reply::Status(Box::new(status(self).await?))),
            Request::Doctor | Request::Terminal(_) | Request::Watch(_) => {
                Err(Refusal::failed(NO_STREAMS))
            }
        }
    }
}

impl Operations {
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    pub(crate) fn db(&self) -> &Db {
        &self.db
    }

    /// Whether a gateway runs in this process.
    pub(crate) fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// The running config, else the one on disk.
    pub(crate) async fn snapshot(&self) -> Result<Arc<Snapshot>, Refusal> {
        if let Some(live) = &self.live {
            return Ok(live.snapshots.current());
        }
        let home = Home::new(&self.home);
        let checked = CheckedConfig::load(&home, Secrets::WherePresent)
            .map_err(|error| Refusal::failed(error.to_string()))?;
        let (registry, _) = checked.registry(&home, &self.db).await?;
        let snapshot = Snapshot::new(checked.config, checked.table, Arc::new(registry));
        Ok(Arc::new(snapshot))
    }

    fn pin_changed(&self, place: &SessionKey) {
        if let Some(live) = &self.live {
            live.pins.changed(place);
        }
    }
}

/// The login name of a user of this machine, else its number.
pub(crate) fn actor(uid: u32) -> Actor {
    let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    let login = user.map_or_else(|| uid.to_string(), |user| user.name);
    Actor::Cli { login }
}

const NO_STREAMS: &str = "events come from a running gateway only";
