//! Everything an operator can ask or change, one function each, for chat, command line and HTTP
//! alike.
//!
//! [`Operations::run`] carries out a [`Request`] and returns a [`Reply`], which the asker shows in
//! its own way. The same function works inside a running gateway, where a change counts at once, and
//! on a home without one. [`wire`] carries both over `parlor.sock`.

pub(crate) mod abilities;
pub(crate) mod agent_files;
pub(crate) mod agent_view;
pub(crate) mod agents;
pub(crate) mod approvals;
pub(crate) mod bindings;
pub(crate) mod budgets;
pub(crate) mod config_file;
pub(crate) mod config_form;
pub(crate) mod diagnosis;
pub(crate) mod discord_levels;
pub(crate) mod finding_places;
mod forgetting;
pub(crate) mod giving;
pub(crate) mod happenings;
pub(crate) mod house;
pub(crate) mod http_keys;
pub(crate) mod ignored_list;
mod imports;
mod job_errands;
pub(crate) mod job_lines;
pub(crate) mod job_orders;
pub(crate) mod jobs;
pub(crate) mod known_jobs;
pub(crate) mod known_people;
mod letters;
pub(crate) mod log_lines;
pub(crate) mod memories;
pub(crate) mod named;
pub(crate) mod names;
pub(crate) mod opening;
mod overview;
pub(crate) mod pairing;
pub(crate) mod people;
pub(crate) mod place_tree;
pub(crate) mod places;
pub(crate) mod present;
mod pulse;
mod reload;
pub(crate) mod route_cases;
pub(crate) mod send_budgets;
pub(crate) mod session_changes;
pub(crate) mod session_list;
pub(crate) mod session_state;
pub(crate) mod socket;
mod status;
pub(crate) mod terminal;
mod texts;
pub(crate) mod thinking;
pub(crate) mod transcripts;
pub(crate) mod turns;
pub(crate) mod web_chat;
pub(crate) mod what_if;
pub(crate) mod wire;
pub(crate) mod work;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dashmap::DashMap;
use nix::unistd::{Uid, User};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::house::House;
use crate::channels::Channel;
use crate::config::Secrets;
use crate::delivery::Delivery;
use crate::delivery::undelivered::Which;
use crate::domain::{PersonId, SessionKey};
use crate::home::{CheckedConfig, Home, ReloadHandle, Snapshot, Snapshots};
use crate::lanes::Sessions;
use crate::moving::{self, Wish};
use crate::records::audit::Actor;
use crate::routing::aliases::Aliases;
use crate::routing::pins::Pins;
use crate::storage::{CommitCount, Db, StoreError};
use diagnosis::Diagnosis;
use terminal::{FromTerminal, Scene, ToTerminal, Visitor};

use http_keys::{Entrance, KeyReply, KeyRequest};

pub(crate) use agents::{AgentEdit, AgentReply, AgentRequest, take_effect};
pub(crate) use approvals::{ApprovalReply, ApprovalRequest};
pub(crate) use forgetting::{Forgotten, forget};
pub(crate) use jobs::{JobReply, JobRequest};
pub(crate) use letters::{Retried, resend};
pub(crate) use overview::Overview;
pub(crate) use places::Given;
pub(crate) use pulse::{ConfigText, Pulse};
pub(crate) use reload::Reloaded;
pub(crate) use session_changes::{ForkOn, Forked, MovedTo, Renewed};
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
    Job(JobRequest),
    Approval(ApprovalRequest),
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
    /// Begins a new conversation, only where there is one already.
    Renew {
        place: SessionKey,
    },
    /// Copies a conversation to the terminal or the web chat.
    Fork {
        from: SessionKey,
        to: Option<SessionKey>,
        /// Where no place is named.
        #[serde(default)]
        on: ForkOn,
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
    /// API tokens, sign-ins, and a link to the dashboard.
    Key(KeyRequest),
    Status,
    /// The text of the config that the gateway runs with.
    RunningConfig,
    /// What only a running gateway knows about a place.
    Present(Box<present::Asked>),
    /// The names of places in which messages were ignored. Only a running gateway knows.
    IgnoredNames,
    /// Problems, with a fix for each. Answered by the handler of the socket or of HTTP, not by `run`.
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
            Request::Job(request) => request.shares_home(),
            Request::Queue { .. }
            | Request::Stop { .. }
            | Request::Approval(_)
            | Request::Key(_)
            | Request::Status
            | Request::RunningConfig
            | Request::Present(_)
            | Request::IgnoredNames
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
    Job(Box<JobReply>),
    Approval(ApprovalReply),
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
    Key(KeyReply),
    Status(Box<Status>),
    /// None where no gateway runs.
    RunningConfig(Option<String>),
    /// None where no gateway runs.
    Present(Option<Box<present::Present>>),
    IgnoredNames(Vec<(SessionKey, String)>),
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

/// The time for which messages of a person are still dropped; none if they are not.
pub(crate) type WaitOf = Arc<dyn Fn(&PersonId) -> Option<Duration> + Send + Sync>;

/// The parts of a running gateway that operations reach.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) sessions: Sessions,
    pub(crate) snapshots: Snapshots,
    pub(crate) pins: Arc<Pins>,
    pub(crate) aliases: Arc<Aliases>,
    pub(crate) delivery: Delivery,
    pub(crate) reload: ReloadHandle,
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) entrance: Entrance,
    /// Names of places with ignored messages.
    pub(crate) ignored: Arc<DashMap<SessionKey, String>>,
    /// How long messages of a person are dropped, because they sent too many in a minute.
    pub(crate) wait_of: WaitOf,
    /// Called after a deletion, to erase the words from the database file too.
    pub(crate) words_are_gone: Arc<dyn Fn() + Send + Sync>,
    /// Tasks that shutdown waits for.
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
    pub(crate) started_at: i64,
    /// The process is a `parlor chat` or `parlor ask`, and no gateway for others.
    pub(crate) is_chat: bool,
}

/// Carries out requests. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Operations {
    home: PathBuf,
    db: Db,
    /// None where no gateway runs.
    live: Option<Live>,
    /// The house as it was read last.
    read_last: Arc<Mutex<Option<ReadHouse>>>,
}

/// A house with the state of the store that it was read from.
struct ReadHouse {
    commits: CommitCount,
    house: House,
}

impl Operations {
    /// Whether the process is a chat or a question at a terminal.
    pub(crate) fn is_chat(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.is_chat)
    }

    /// For a home without a gateway. The caller holds the lock of the home, unless the request shares
    /// it.
    pub(crate) fn on_home(home: PathBuf, db: Db) -> Self {
        Operations {
            home,
            db,
            live: None,
            read_last: Arc::default(),
        }
    }

    pub(crate) fn in_gateway(home: PathBuf, db: Db, live: Live) -> Self {
        Operations {
            home,
            db,
            live: Some(live),
            read_last: Arc::default(),
        }
    }

    /// Carries out a request with one reply. Streams are made by the handlers of the socket and of HTTP.
    pub(crate) async fn run(&self, actor: &Actor, request: Request) -> Result<Reply, Refusal> {
        match request {
            Request::Agent(request) => {
                let reply = agents::run(self, actor, request).await?;
                Ok(Reply::Agent(Box::new(reply)))
            }
            Request::Job(request) => {
                let reply = jobs::run(self, actor, request).await?;
                Ok(Reply::Job(Box::new(reply)))
            }
            Request::Approval(request) => {
                let reply = approvals::run(self, actor, request).await?;
                Ok(Reply::Approval(reply))
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
            Request::Fork { from, to, on } => {
                let forked = session_changes::fork(self, actor, from, (to, on)).await?;
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
            Request::Key(request) => {
                let reply = http_keys::run(self, actor, request).await;
                reply.map(Reply::Key)
            }
            Request::Reload => reload::run(self, actor).await.map(Reply::Reloaded),
            Request::Status => Ok(Reply::Status(Box::new(status(self).await?))),
            Request::RunningConfig => Ok(Reply::RunningConfig(self.running_config())),
            Request::IgnoredNames => Ok(Reply::IgnoredNames(self.ignored_names())),
            Request::Present(asked) => {
                let present = present::look(self, &asked).await?;
                Ok(Reply::Present(present.map(Box::new)))
            }
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

    /// The channel of a place, where a gateway runs in this process.
    pub(crate) fn channel_of(&self, place: &SessionKey) -> Option<Arc<dyn Channel>> {
        self.live.as_ref()?.delivery.channel_of(place)
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

    /// The names and rules of now. They are read again after a commit only: in a large house that is
    /// most of the work of a list.
    pub(crate) async fn house(&self) -> Result<House, Refusal> {
        let snapshot = self.snapshot().await?;
        let commits = self.db.read(CommitCount::read).await?;
        let known = self.read_last().as_ref().and_then(|last| {
            let is_now = last.commits == commits
                && Arc::ptr_eq(&last.house.config, &snapshot.config)
                && Arc::ptr_eq(&last.house.table, &snapshot.table);
            is_now.then(|| last.house.clone())
        });
        if let Some(house) = known {
            return Ok(house);
        }
        let (config, table) = (snapshot.config.clone(), snapshot.table.clone());
        let house = House::load(&self.db, config, table).await?;
        // A commit in between makes the house newer than its count, and it is read once more.
        *self.read_last() = Some(ReadHouse {
            commits,
            house: house.clone(),
        });
        Ok(house)
    }

    /// A plain lock: sections are a look or a change, and none awaits.
    fn read_last(&self) -> MutexGuard<'_, Option<ReadHouse>> {
        self.read_last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The text that the running config was made of.
    fn running_config(&self) -> Option<String> {
        let text = self.live.as_ref()?.pulse.config().text?;
        Some(text.written)
    }

    /// The names of places in which messages were ignored. None without a running gateway.
    pub(crate) fn ignored_names(&self) -> Vec<(SessionKey, String)> {
        let names = self.live.iter().flat_map(|live| live.ignored.iter());
        let names = names.map(|known| (known.key().clone(), known.value().clone()));
        names.collect()
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

#[cfg(test)]
mod tests_large_house;
