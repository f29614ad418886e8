//! Places and their lanes: one turn at a time in each, all of them side by side.

mod budgets;
pub mod children;
mod compaction;
pub mod decisions;
pub mod deletions;
mod effects;
mod ending;
mod errands;
pub mod files;
pub mod inbox;
pub mod journal;
mod lane;
pub mod ledger;
pub mod moving;
mod notes;
mod observing;
pub mod overrides;
pub mod parts;
mod pictures;
mod places;
mod preparing;
mod question;
mod request;
mod rounds;
mod running;
mod runs;
mod search;
mod slots;
mod starting;
pub mod summaries;
pub mod transcript;
mod unheard;
pub mod usage;

use std::sync::Arc;

use dashmap::{DashMap, DashSet};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::agents::{Agent, Chosen, Memories, Registry};
use crate::config::{Access, Switch};
use crate::delivery::Delivery;
use crate::domain::{Addressed, AgentUid, Inbound, Origin, SessionKey};
use crate::models::Models;
use crate::routing::Table;
use crate::routing::aliases::Aliases;
use crate::routing::pins::Pins;
use crate::storage::{Db, StoreError};
use crate::tools::ToolBox;
use crate::work::{Work, WorkGuard};

pub use runs::Unknown;
pub use search::TranscriptSearch;

use budgets::Paces;
use compaction::Summing;
use inbox::Accepted;
use lane::{Lane, Waiting};
use overrides::Overrides;
use slots::Slots;

/// What turns are made with.
pub struct Parts {
    pub db: Db,
    pub registry: Arc<Registry>,
    pub table: Arc<Table>,
    pub pins: Arc<Pins>,
    pub aliases: Arc<Aliases>,
    pub models: Models,
    pub delivery: Delivery,
    pub tools: ToolBox,
    pub work: Work,
    pub memories: Memories,
    pub access: Access,
    /// What an agent is shown of what was said to others.
    pub switch: Switch,
    /// Turns that run at once. More wait in their lanes.
    pub max_running: usize,
    /// Tasks that an earlier process began, with the inbox rows that they answer along with their own.
    pub absorbing: DashMap<i64, Vec<i64>>,
    /// Agents that have finished a turn before.
    pub bootstrapped: DashSet<AgentUid>,
}

/// The handle to all lanes. Cheap to clone.
#[derive(Clone)]
pub struct Sessions {
    inner: Arc<Inner>,
}

struct Inner {
    parts: Parts,
    overrides: Overrides,
    lanes: DashMap<SessionKey, Lane>,
    /// Rows that a task which goes on answers along with its own.
    absorbed: DashSet<i64>,
    slots: Arc<Slots>,
    paces: Paces,
    summing: Summing,
    /// Runs that belong to a turn and are under way, by their inbox row.
    runs: DashMap<i64, runs::UnderWay>,
    /// Wakes those who wait for the end of a run.
    endings: DashMap<String, Arc<Notify>>,
    tasks: TaskTracker,
    stop: CancellationToken,
    abandon: CancellationToken,
}

/// When a message was taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrived {
    Now,
    /// By an earlier process. It was let in then, so a full lane does not refuse it now.
    Before,
}

/// What is done with a message when its turn comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Answer,
    /// Only kept, for later questions.
    Observe,
}

/// A message that waits or is being answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its inbox rows.
    pub ids: Vec<i64>,
    pub by: String,
    pub asks: String,
    /// Unix milliseconds.
    pub since: i64,
}

/// What is under way in a place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queue {
    pub current: Option<Item>,
    /// Put aside for what came meanwhile.
    pub parked: Vec<Item>,
    pub waiting: Vec<Item>,
    /// Subagents, and other agents that were asked.
    pub runs: Vec<Item>,
}

/// The lane has as much waiting as it takes.
#[derive(Debug)]
pub struct LaneFull {
    /// Given back.
    pub guard: WorkGuard,
    /// Nobody was told yet. Telling it for every message would keep the answers waiting even longer.
    pub news: bool,
}

impl Sessions {
    pub fn new(parts: Parts) -> Self {
        let (slots, paces) = (Slots::new(parts.max_running, parts.registry.all().len()), Paces::new(&parts));
        Sessions {
            inner: Arc::new(Inner {
                overrides: overrides::remembered(parts.db.clone()),
                parts,
                lanes: DashMap::new(),
                absorbed: DashSet::new(),
                slots,
                paces,
                summing: Summing::new(),
                runs: DashMap::new(),
                endings: DashMap::new(),
                tasks: TaskTracker::new(),
                stop: CancellationToken::new(),
                abandon: CancellationToken::new(),
            }),
        }
    }

    /// Queues a message in its place's lane. The guard is held until it is answered.
    pub fn submit(&self, accepted: Accepted, arrived: Arrived, guard: WorkGuard) -> Result<(), LaneFull> {
        lane::submit(&self.inner, Waiting { accepted, purpose: Purpose::Answer, guard, since: Instant::now(), arrived }, arrived)
    }

    /// Queues a message that nobody wants answered. A lane in which much waits does not take it.
    pub fn observe(&self, accepted: Accepted, arrived: Arrived, guard: WorkGuard) -> Result<(), LaneFull> {
        lane::submit(&self.inner, Waiting { accepted, purpose: Purpose::Observe, guard, since: Instant::now(), arrived }, arrived)
    }

    /// Gives a message that still waits in its lane the form it has after an edit, and returns it with its row.
    pub fn revise(&self, edit: &Inbound) -> Option<Accepted> {
        lane::revise(&self.inner, edit)
    }

    /// Whether this is more of a message that still waits; then how that one turned to us.
    pub fn continues(&self, next: &Inbound) -> Option<Addressed> {
        lane::continues(&self.inner, next)
    }

    /// The model of an agent in a place.
    pub async fn model(&self, place: &SessionKey, agent: &Agent) -> Result<Chosen, StoreError> {
        Ok(agent.brain.choose(self.inner.overrides.get(place).await?.as_ref()))
    }

    /// Call after a transaction that changed a place's model has committed.
    pub fn model_changed(&self, place: &SessionKey) {
        self.inner.overrides.changed(place);
    }

    /// Call after a group's places got other keys.
    pub fn moved(&self) {
        self.inner.overrides.all_changed();
    }

    /// What turns are answered with.
    pub fn models(&self) -> &Models {
        &self.inner.parts.models
    }

    /// Messages that wait or are being answered in a place.
    pub fn depth(&self, origin: &Origin) -> usize {
        self.inner.lanes.get(&lane::lane_of(&self.inner, origin)).map_or(0, |lane| lane.depth())
    }

    /// What waits and what is being done in a place.
    pub fn queue(&self, origin: &Origin) -> Queue {
        let lane = self.inner.lanes.get(&lane::lane_of(&self.inner, origin));
        let queue = lane.map(|lane| lane.queue()).unwrap_or_default();
        Queue { runs: runs::of_place(&self.inner, &origin.key), ..queue }
    }

    /// Ends what these inbox rows are about, and the runs they asked for. Their rows are closed already.
    pub fn halt(&self, origin: &Origin, ids: &[i64]) {
        lane::halt(&self.inner, origin, ids);
        runs::stop(&self.inner, |id, run| ids.contains(&id) || ids.contains(&run.parent_inbox_id));
    }

    /// Queues what an earlier process put into a lane by itself.
    pub async fn take_up(&self, accepted: Accepted) -> Result<Result<(), Unknown>, StoreError> {
        runs::take_up(&self.inner, accepted).await
    }

    /// Lets go of people who have not asked lately, as far as only their pace is remembered.
    pub fn forget_idle(&self) {
        self.inner.paces.forget_idle();
    }

    /// Places with something under way.
    pub fn busy(&self) -> usize {
        self.inner.lanes.len()
    }

    /// Begins no further turn. What waits stays in the inbox for the next start.
    pub fn stop(&self) {
        self.inner.stop.cancel();
        self.inner.tasks.close();
    }

    /// Gives up the turns that still run and returns when every lane has ended; call after [`Sessions::stop`].
    pub async fn abandon(&self) {
        self.inner.abandon.cancel();
        self.inner.tasks.wait().await;
    }
}
