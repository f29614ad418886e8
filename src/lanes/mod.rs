//! Order within a place: a single turn at a time in each place, all places side by side.
//! [`Sessions`] is the handle.

mod keep;
mod lane;
mod person_turns;
mod queues;
mod worker;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use dashmap::{DashMap, DashSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::agents::{Agent, Chosen, Memories};
use crate::answering::{self, Answering, Approvals, GivingUp, PausedAgents, ProviderNews};
use crate::delivery::Delivery;
use crate::domain::{Addressed, AgentUid, Inbound, Origin, PersonId, Role, SessionKey};
use crate::home::{Snapshot, Snapshots};
use crate::jobs::Alarm;
use crate::records::agent_pauses::Pause;
use crate::records::inbox::Accepted;
use crate::records::model_overrides::{self, Overrides};
use crate::routing::Router;
use crate::routing::aliases::Aliases;
use crate::routing::pins::Pins;
use crate::storage::{Db, StoreError};
use crate::subagents::{self, Subagents, Submit};
use crate::tools::ToolBox;
use crate::turn::budget::Over;

pub use crate::subagents::{Arrived, Item, Unknown};

use keep::Keeper;
use person_turns::PersonTurns;
use queues::Lanes;

/// The services that sessions use.
pub struct Services {
    pub db: Db,
    pub snapshots: Snapshots,
    pub pins: Arc<Pins>,
    pub aliases: Arc<Aliases>,
    pub delivery: Delivery,
    pub tools: ToolBox,
    /// Counts open messages, subagents and sends.
    pub work: TaskTracker,
    pub memories: Memories,
    /// Turns begun by an earlier process, with the other inbox rows they answer.
    pub absorbing: DashMap<i64, Vec<i64>>,
    /// Agents that have finished a turn before.
    pub bootstrapped: DashSet<AgentUid>,
    /// Wakes the scheduler of jobs.
    pub alarm: Alarm,
}

/// The handle to all lanes. Messages are put in with `submit` and `observe` (in `queues`). Cheap to
/// clone.
#[derive(Clone)]
pub struct Sessions {
    snapshots: Snapshots,
    lanes: Arc<Lanes>,
    subagents: Subagents,
    answering: Answering,
    overrides: Arc<Overrides>,
    alarm: Alarm,
}

/// The queue of a place, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queue {
    pub current: Option<Item>,
    /// Turns parked for newer messages.
    pub parked: Vec<Item>,
    pub waiting: Vec<Item>,
    /// Subagents and asked peers.
    pub subagents: Vec<Item>,
}

/// Turns and messages of all places.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Load {
    /// Turns under way.
    pub(crate) turns: usize,
    /// Questions that wait for their turn.
    pub(crate) waiting: usize,
    /// How long the oldest of them has waited.
    pub(crate) oldest: Duration,
}

/// A message or a turn in a lane, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Work {
    /// The place of the lane.
    pub(crate) place: SessionKey,
    /// None before the agent is chosen.
    pub(crate) agent: Option<AgentUid>,
    pub(crate) item: Item,
    pub(crate) stage: Stage,
    /// The turn is to stop, and ends soon.
    pub(crate) is_stopping: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Runs,
    /// The turn goes on after newer messages.
    Parked,
    Waits,
}

/// The lane has no room for another message.
#[derive(Debug)]
pub struct LaneFull {
    /// The caller's guard, given back.
    pub guard: TaskTrackerToken,
    /// The person should be told. Only the first refusal is told, because notices would delay the
    /// answers even more.
    pub news: bool,
}

impl Sessions {
    pub fn new(services: Services) -> Self {
        let Services {
            db,
            snapshots,
            pins,
            aliases,
            delivery,
            tools,
            work,
            memories,
            absorbing,
            bootstrapped,
            alarm,
        } = services;
        let (tasks, stop, abandon) = (
            TaskTracker::new(),
            CancellationToken::new(),
            CancellationToken::new(),
        );
        let overrides = Arc::new(model_overrides::remembered(db.clone()));
        let router = Router::new(pins.clone());
        let (submit, requests) = Submit::new(work.clone());
        let subagents = Subagents::new(subagents::Deps {
            db: db.clone(),
            router: router.clone(),
            aliases: aliases.clone(),
            delivery: delivery.clone(),
            submit,
            work: work.clone(),
            tasks: tasks.clone(),
            alarm: alarm.clone(),
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
            work: work.clone(),
            bootstrapped: Arc::new(bootstrapped),
            pauses: PausedAgents::default(),
            alarm: alarm.clone(),
            stop: stop.clone(),
        });
        let keeper = Keeper {
            db,
            snapshots: snapshots.clone(),
            giving_up: answering.giving_up().clone(),
            stop: stop.clone(),
        };
        let lanes = Arc::new(Lanes {
            lanes: DashMap::new(),
            absorbing,
            absorbed: DashSet::new(),
            snapshots: snapshots.clone(),
            answering: answering.clone(),
            subagents: subagents.clone(),
            turns: Arc::new(PersonTurns::default()),
            keeper,
            delivery,
            work,
            tasks: tasks.clone(),
            stop,
            abandon,
        });
        tasks.spawn(lanes.clone().take_requests(requests));
        Sessions {
            snapshots,
            lanes,
            subagents,
            answering,
            overrides,
            alarm,
        }
    }

    /// Takes over a new snapshot. Turns under way keep theirs.
    pub fn renew(&self, now: Snapshot) {
        let before = self.snapshots.current();
        self.answering.renew(&before, &now);
        self.snapshots.replace(now);
        // A place may have another agent now, and waits no longer.
        self.lanes.look_again();
    }

    /// Puts an edit into a message waiting in its lane. Returns the message with its row.
    pub fn revise(&self, edit: &Inbound) -> Option<Accepted> {
        self.lanes.revise(edit)
    }

    /// If `next` continues a waiting message, how that message addressed the bot.
    pub fn continues(&self, next: &Inbound) -> Option<Addressed> {
        self.lanes.continues(next)
    }

    /// The model of an agent in a place.
    pub async fn model(&self, place: &SessionKey, agent: &Agent) -> Result<Chosen, StoreError> {
        self.answering.admission().model(place, agent).await
    }

    /// The limit that the person's next turn with the agent would meet.
    pub(crate) async fn over_now(
        &self,
        snapshot: &Snapshot,
        agent: &Agent,
        person: &PersonId,
        role: Role,
    ) -> Result<Option<Over>, StoreError> {
        let budgets = self.answering.budgets();
        budgets.over_now(snapshot, agent, person, role).await
    }

    /// Who paused an agent, if it is paused.
    pub(crate) fn pause_of(&self, agent: AgentUid) -> Option<Pause> {
        self.answering.pauses().of(agent)
    }

    /// Call after the commit of a pause or its end.
    pub(crate) fn pause_changed(&self, agent: AgentUid, pause: Option<Pause>) {
        self.answering.pauses().changed(agent, pause);
        self.lanes.look_again();
    }

    /// Call after the commit of another pin: messages that wait for a paused agent may have another
    /// agent now.
    pub(crate) fn agent_changed(&self) {
        self.lanes.look_again();
    }

    /// The number of turns under way of each agent.
    pub(crate) fn under_way(&self) -> HashMap<AgentUid, usize> {
        self.answering.under_way().by_agent()
    }

    /// Has the turns of an agent begin again from their last recorded result.
    pub(crate) fn begin_again(&self, agent: AgentUid) -> usize {
        self.answering.under_way().begin_again(agent)
    }

    /// Call after a transaction with a new model for a place has committed.
    pub fn model_changed(&self, place: &SessionKey) {
        self.overrides.changed(place);
    }

    /// Call after a group's places got other keys.
    pub fn moved(&self) {
        self.overrides.all_changed();
    }

    /// The number of messages waiting or being answered in a place.
    pub fn depth(&self, origin: &Origin) -> usize {
        self.lanes.depth(origin)
    }

    /// The open turns and messages of a place.
    pub fn queue(&self, origin: &Origin) -> Queue {
        Queue {
            subagents: self.subagents.of_place(&origin.key),
            ..self.lanes.queue(origin)
        }
    }

    /// The turns and waiting messages of all places, subagents among them.
    pub(crate) fn work(&self) -> Vec<Work> {
        self.lanes.work()
    }

    /// The subagents of a place that have not ended, as work of the place.
    pub(crate) fn background(&self, place: &SessionKey) -> Vec<Work> {
        let work = |item| Work {
            place: place.clone(),
            agent: None,
            item,
            stage: Stage::Runs,
            is_stopping: false,
        };
        self.subagents
            .of_place(place)
            .into_iter()
            .map(work)
            .collect()
    }

    /// The same as [`Sessions::halt`] for work that [`Sessions::work`] told of.
    pub(crate) fn halt_work(&self, work: &Work) {
        self.lanes.halt_in(&work.place, &work.item.ids);
        let ids = &work.item.ids;
        self.subagents
            .stop(|id, running| ids.contains(&id) || ids.contains(&running.parent_inbox_id));
    }

    /// Ends the turns of these inbox rows, and the subagents they asked for. The rows are closed
    /// already.
    pub fn halt(&self, origin: &Origin, ids: &[i64]) {
        self.lanes.halt(origin, ids);
        self.subagents
            .stop(|id, running| ids.contains(&id) || ids.contains(&running.parent_inbox_id));
    }

    /// Removes deleted messages, whose rows are closed already. A turn is stopped if all its
    /// messages were deleted.
    pub fn withdraw(&self, ids: &[i64]) {
        let stopped = self.lanes.withdraw(ids);
        self.subagents
            .stop(|_, running| stopped.contains(&running.parent_inbox_id));
    }

    /// Ends all turns and messages of a deleted place. The rows are closed already.
    pub fn close_place(&self, place: &SessionKey) {
        self.lanes.close_place(place);
        self.subagents
            .stop(|_, running| running.parent.is_in(place));
    }

    /// Queues an internal message of an earlier process.
    pub async fn take_up(&self, accepted: Accepted) -> Result<Result<(), Unknown>, StoreError> {
        self.subagents
            .take_up(&self.snapshots.current(), accepted)
            .await
    }

    /// Wakes the scheduler of jobs.
    pub(crate) fn alarm(&self) -> &Alarm {
        &self.alarm
    }

    /// Queues the turn of a job whose rows are written.
    pub(crate) fn queue_job(&self, accepted: Accepted) {
        self.subagents.queue_job(accepted);
    }

    pub(crate) fn approvals(&self) -> &Approvals {
        self.answering.approvals()
    }

    /// Call after the commit of answers to the questions of these turns.
    pub(crate) fn approvals_answered(&self, turns: &[i64]) {
        let approvals = self.answering.approvals();
        turns.iter().for_each(|turn| approvals.answered(*turn));
        self.lanes.answered(turns);
    }

    /// Closes messages that the store cannot carry through.
    pub(crate) fn giving_up(&self) -> &GivingUp {
        self.answering.giving_up()
    }

    /// Tells owners about providers.
    pub(crate) fn provider_news(&self) -> &ProviderNews {
        self.answering.provider_news()
    }

    /// Drops the rate limits of people without recent questions.
    pub fn forget_idle(&self) {
        self.answering.budgets().forget_idle();
    }

    /// How much there is to do, in all places.
    pub(crate) fn load(&self) -> Load {
        self.lanes.load()
    }

    /// The number of places with a lane.
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

    /// Gives up the running turns and returns when every lane has ended; call after
    /// [`Sessions::stop`].
    pub async fn abandon(&self) {
        self.lanes.abandon.cancel();
        self.lanes.tasks.wait().await;
        self.summed_up().await;
    }
}
