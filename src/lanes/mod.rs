//! Order within a place: one turn at a time in each, all places side by side. [`Sessions`] is the handle.

mod keep;
mod lane;
mod queues;
mod worker;

use std::sync::Arc;

use dashmap::{DashMap, DashSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::agents::{Agent, Chosen, Memories};
use crate::answering::{self, Answering};
use crate::delivery::Delivery;
use crate::domain::{Addressed, AgentUid, Inbound, Origin, SessionKey};
use crate::home::Snapshots;
use crate::records::inbox::Accepted;
use crate::records::model_overrides::{self, Overrides};
use crate::routing::Router;
use crate::routing::aliases::Aliases;
use crate::routing::pins::Pins;
use crate::storage::{Db, StoreError};
use crate::subagents::{self, Subagents, Submit};
use crate::tools::ToolBox;

pub use crate::subagents::{Arrived, Item, Unknown};

use keep::Keeper;
use lane::Purpose;
use queues::Lanes;

/// What sessions are made with.
pub struct Services {
    pub db: Db,
    pub snapshots: Snapshots,
    pub pins: Arc<Pins>,
    pub aliases: Arc<Aliases>,
    pub delivery: Delivery,
    pub tools: ToolBox,
    /// Counts what has no answer yet: messages, subagents and sends.
    pub work: TaskTracker,
    pub memories: Memories,
    /// Turns that an earlier process began, with the inbox rows that they answer along with their own.
    pub absorbing: DashMap<i64, Vec<i64>>,
    /// Agents that have finished a turn before.
    pub bootstrapped: DashSet<AgentUid>,
}

/// The handle to all lanes. Cheap to clone.
#[derive(Clone)]
pub struct Sessions {
    snapshots: Snapshots,
    lanes: Arc<Lanes>,
    subagents: Subagents,
    answering: Answering,
    overrides: Arc<Overrides>,
}

/// What is under way in a place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queue {
    pub current: Option<Item>,
    /// Turns that are parked for newer messages.
    pub parked: Vec<Item>,
    pub waiting: Vec<Item>,
    /// Subagents, and other agents that were asked.
    pub subagents: Vec<Item>,
}

/// The lane has as many messages waiting as it takes.
#[derive(Debug)]
pub struct LaneFull {
    /// Given back.
    pub guard: TaskTrackerToken,
    /// Nobody was told yet. Telling it for every message would keep the answers waiting even longer.
    pub news: bool,
}

impl Sessions {
    pub fn new(services: Services) -> Self {
        let Services { db, snapshots, pins, aliases, delivery, tools, work, memories, absorbing, bootstrapped } = services;
        let (tasks, stop, abandon) = (TaskTracker::new(), CancellationToken::new(), CancellationToken::new());
        let overrides = Arc::new(model_overrides::remembered(db.clone()));
        let router = Router::new(pins.clone());
        let (submit, requests) = Submit::new(work.clone());
        let subagents = Subagents::new(subagents::Deps {
            db: db.clone(),
            router: router.clone(),
            aliases: aliases.clone(),
            delivery: delivery.clone(),
            submit,
            work,
            tasks: tasks.clone(),
            stop: stop.clone(),
        });
        let answering = Answering::new(answering::Deps {
            db: db.clone(),
            snapshots: snapshots.clone(),
            router,
            pins,
            aliases,
            overrides: overrides.clone(),
            delivery: delivery.clone(),
            tools,
            memories,
            subagents: subagents.clone(),
            bootstrapped,
            stop: stop.clone(),
        });
        let keeper = Keeper { db, snapshots: snapshots.clone(), admission: answering.admission().clone(), stop: stop.clone() };
        let lanes = Arc::new(Lanes {
            lanes: DashMap::new(),
            absorbing,
            absorbed: DashSet::new(),
            snapshots: snapshots.clone(),
            answering: answering.clone(),
            keeper,
            delivery,
            tasks: tasks.clone(),
            stop,
            abandon,
        });
        tasks.spawn(lanes.clone().take_requests(requests));
        Sessions { snapshots, lanes, subagents, answering, overrides }
    }

    /// Queues a message in its place's lane. The guard is held until it is answered.
    pub fn submit(&self, accepted: Accepted, arrived: Arrived, guard: TaskTrackerToken) -> Result<(), LaneFull> {
        self.lanes.submit(accepted, Purpose::Answer, arrived, guard)
    }

    /// Queues a message that is kept without an answer. A lane in which much waits does not take it.
    pub fn observe(&self, accepted: Accepted, arrived: Arrived, guard: TaskTrackerToken) -> Result<(), LaneFull> {
        self.lanes.submit(accepted, Purpose::Observe, arrived, guard)
    }

    /// Gives a message that still waits in its lane the form it has after an edit, and returns it with its row.
    pub fn revise(&self, edit: &Inbound) -> Option<Accepted> {
        self.lanes.revise(edit)
    }

    /// If `next` continues a message that still waits, how that message addressed the bot.
    pub fn continues(&self, next: &Inbound) -> Option<Addressed> {
        self.lanes.continues(next)
    }

    /// The model of an agent in a place.
    pub async fn model(&self, place: &SessionKey, agent: &Agent) -> Result<Chosen, StoreError> {
        self.answering.admission().model(place, agent).await
    }

    /// Call after a transaction that changed a place's model has committed.
    pub fn model_changed(&self, place: &SessionKey) {
        self.overrides.changed(place);
    }

    /// Call after a group's places got other keys.
    pub fn moved(&self) {
        self.overrides.all_changed();
    }

    /// Messages that wait or are being answered in a place.
    pub fn depth(&self, origin: &Origin) -> usize {
        self.lanes.depth(origin)
    }

    /// The turns and messages of a place that are not over.
    pub fn queue(&self, origin: &Origin) -> Queue {
        Queue { subagents: self.subagents.of_place(&origin.key), ..self.lanes.queue(origin) }
    }

    /// Ends the turns of these inbox rows, and the subagents they asked for. The rows are closed already.
    pub fn halt(&self, origin: &Origin, ids: &[i64]) {
        self.lanes.halt(origin, ids);
        self.subagents.stop(|id, running| ids.contains(&id) || ids.contains(&running.parent_inbox_id));
    }

    /// Lets go of messages whose rows are closed because they were deleted. A turn that answers nothing else is stopped.
    pub fn withdraw(&self, ids: &[i64]) {
        let stopped = self.lanes.withdraw(ids);
        self.subagents.stop(|_, running| stopped.contains(&running.parent_inbox_id));
    }

    /// Ends everything in a place that is gone, whose rows are closed.
    pub fn close_place(&self, place: &SessionKey) {
        self.lanes.close_place(place);
        self.subagents.stop(|_, running| running.parent.is_in(place));
    }

    /// Queues an internal message of an earlier process.
    pub async fn take_up(&self, accepted: Accepted) -> Result<Result<(), Unknown>, StoreError> {
        self.subagents.take_up(&self.snapshots.current().config.access, accepted).await
    }

    /// Forgets people who have not asked lately, as far as only their pace is remembered.
    pub fn forget_idle(&self) {
        self.answering.budgets().forget_idle();
    }

    /// Places with something under way.
    pub fn busy(&self) -> usize {
        self.lanes.lanes.len()
    }

    pub fn is_summing_up(&self) -> bool {
        self.answering.is_summing_up()
    }

    /// Returns when no summary is being made.
    pub async fn summed_up(&self) {
        self.answering.summed_up().await;
    }

    /// Begins no further turn. Messages that wait stay in the inbox for the next start.
    pub fn stop(&self) {
        self.lanes.stop.cancel();
        self.lanes.tasks.close();
    }

    /// Gives up the turns that still run and returns when every lane has ended; call after [`Sessions::stop`].
    pub async fn abandon(&self) {
        self.lanes.abandon.cancel();
        self.lanes.tasks.wait().await;
        self.summed_up().await;
    }
}
