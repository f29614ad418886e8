//! From a queued message to its written answer.
//!
//! `who_answers` decides whether a message gets an answer, and is asked before it is queued.
//! `admit` chooses the agent and waits for a slot, `prepare` builds the request to the model
//! (`question`, `request`, `extract`), `run` drives model and tools (`rounds`), `finish` drafts the reply, and
//! `commit` writes the end of the turn in one transaction. A turn knows its lane only as a
//! [`LaneView`].

mod accounts;
mod active_turn;
mod admit;
pub(crate) mod approval_texts;
mod approvals;
mod budgets;
mod commit;
mod compaction;
mod extract;
mod faltering;
pub(crate) mod files;
mod finish;
mod giving_up;
mod job_turns;
mod lane_view;
mod obstacles;
mod paused_agents;
mod pictures;
mod prepare;
mod provider_news;
mod question;
mod reading;
mod report;
mod request;
mod rounds;
mod run;
mod texts;
mod toolbox;
mod transcript_search;
mod under_way;
mod who_answers;

use std::sync::Arc;

use dashmap::DashSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::agents::Memories;
use crate::delivery::Delivery;
use crate::domain::AgentUid;
use crate::home::{Snapshot, Snapshots};
use crate::jobs::Alarm;
use crate::machine;
use crate::records::model_overrides::Overrides;
use crate::routing::Router;
use crate::routing::aliases::Aliases;
use crate::routing::pins::Pins;
use crate::slots::Slots;
use crate::storage::Db;
use crate::subagents::Subagents;
use crate::tools::ToolBox;

pub(crate) use crate::routing::Question;
pub(crate) use active_turn::{ActiveTurn, Due, Ended, Exchange};
pub(crate) use admit::Admission;
pub(crate) use approvals::Approvals;
pub(crate) use budgets::{Budgets, over_at};
#[cfg(test)]
pub(crate) use faltering::Trouble;
pub(crate) use faltering::{Faltering, Kind as TroubleKind};
pub(crate) use giving_up::{GivingUp, Told, broken};
pub(crate) use lane_view::{LaneNews, LaneView, Worker};
pub(crate) use obstacles::Obstacle;
pub(crate) use paused_agents::{PauseNews, PausedAgents};
pub(crate) use provider_news::ProviderNews;
pub(crate) use reading::of_history as read_in;
pub(crate) use run::Answering;
pub(crate) use toolbox::toolbox;
pub(crate) use under_way::UnderWay;
pub(crate) use who_answers::{Answer, Silence, who_answers};

use compaction::{Compaction, Summing};
use finish::Finish;
use prepare::Preparation;
use request::Requests;
use rounds::Rounds;

/// The services that turns use.
pub(crate) struct Deps {
    pub(crate) db: Db,
    pub(crate) snapshots: Snapshots,
    pub(crate) router: Router,
    pub(crate) pins: Arc<Pins>,
    pub(crate) aliases: Arc<Aliases>,
    pub(crate) overrides: Arc<Overrides>,
    pub(crate) delivery: Delivery,
    pub(crate) tools: ToolBox,
    pub(crate) memories: Memories,
    pub(crate) subagents: Subagents,
    /// Counts what is under way.
    pub(crate) work: TaskTracker,
    /// Agents that have finished a turn before.
    pub(crate) bootstrapped: Arc<DashSet<AgentUid>>,
    pub(crate) pauses: PausedAgents,
    /// Rung when the turn of a job has ended.
    pub(crate) alarm: Alarm,
    pub(crate) stop: CancellationToken,
}

fn turns_at_once(snapshot: &Snapshot) -> usize {
    let configured = snapshot.config.max_running;
    configured.unwrap_or_else(machine::turns_that_fit)
}

impl Deps {
    fn admission(&self, snapshot: &Snapshot) -> Admission {
        let agents = snapshot.registry.all().len();
        Admission {
            router: self.router.clone(),
            overrides: self.overrides.clone(),
            slots: Slots::new(turns_at_once(snapshot), agents),
            turn_slots: Arc::default(),
            pauses: self.pauses.clone(),
            stop: self.stop.clone(),
        }
    }

    fn compaction(&self, budgets: &Budgets) -> Compaction {
        Compaction {
            db: self.db.clone(),
            aliases: self.aliases.clone(),
            budgets: budgets.clone(),
            summing: Arc::new(Summing::new()),
            tasks: compaction::tasks(),
            stop: self.stop.clone(),
        }
    }

    fn preparation(
        &self,
        admission: &Admission,
        budgets: &Budgets,
        compaction: &Compaction,
    ) -> Preparation {
        Preparation {
            db: self.db.clone(),
            delivery: self.delivery.clone(),
            admission: admission.clone(),
            budgets: budgets.clone(),
            requests: Requests {
                db: self.db.clone(),
                aliases: self.aliases.clone(),
                memories: self.memories.clone(),
                tools: self.tools.clone(),
                compaction: compaction.clone(),
                recent: Arc::default(),
                prompts: Arc::default(),
                bootstrapped: self.bootstrapped.clone(),
            },
        }
    }

    fn rounds(&self, approvals: &Approvals) -> Rounds {
        Rounds {
            db: self.db.clone(),
            aliases: self.aliases.clone(),
            subagents: self.subagents.clone(),
            approvals: approvals.clone(),
            stop: self.stop.clone(),
        }
    }

    fn finish(&self, budgets: &Budgets) -> Finish {
        let (db, delivery) = (self.db.clone(), self.delivery.clone());
        Finish {
            giving_up: GivingUp {
                db: db.clone(),
                delivery: delivery.clone(),
            },
            provider_news: ProviderNews {
                db: db.clone(),
                delivery: delivery.clone(),
            },
            db,
            delivery,
            aliases: self.aliases.clone(),
            pins: self.pins.clone(),
            subagents: self.subagents.clone(),
            budgets: budgets.clone(),
            bootstrapped: self.bootstrapped.clone(),
            stop: self.stop.clone(),
        }
    }
}

impl Answering {
    pub(crate) fn new(deps: Deps) -> Self {
        let snapshot = deps.snapshots.current();
        let budgets = Budgets::new(deps.db.clone(), deps.delivery.clone(), &snapshot);
        let admission = deps.admission(&snapshot);
        let compaction = deps.compaction(&budgets);
        let preparation = deps.preparation(&admission, &budgets, &compaction);
        let approvals = Approvals::new(
            deps.db.clone(),
            deps.delivery.clone(),
            deps.work.clone(),
            deps.stop.clone(),
        );
        let (rounds, finish) = (deps.rounds(&approvals), deps.finish(&budgets));
        Answering {
            db: deps.db,
            snapshots: deps.snapshots,
            aliases: deps.aliases,
            pins: deps.pins,
            delivery: deps.delivery,
            subagents: deps.subagents,
            admission,
            budgets,
            preparation,
            rounds,
            approvals,
            finish,
            compaction,
            under_way: UnderWay::default(),
            alarm: deps.alarm,
            stop: deps.stop,
        }
    }

    pub(crate) fn admission(&self) -> &Admission {
        &self.admission
    }

    pub(crate) fn pauses(&self) -> &PausedAgents {
        &self.admission.pauses
    }

    pub(crate) fn under_way(&self) -> &UnderWay {
        &self.under_way
    }

    pub(crate) fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    pub(crate) fn giving_up(&self) -> &GivingUp {
        &self.finish.giving_up
    }

    pub(crate) fn provider_news(&self) -> &ProviderNews {
        &self.finish.provider_news
    }

    pub(crate) fn is_summing_up(&self) -> bool {
        !self.compaction.tasks.is_empty()
    }

    /// Returns when no summary is being made.
    pub(crate) async fn summed_up(&self) {
        self.compaction.tasks.wait().await;
    }

    /// Takes over limits of a new snapshot that outlive a turn.
    pub(crate) fn renew(&self, before: &Snapshot, now: &Snapshot) {
        let agents = now.registry.all().len();
        self.admission.slots.resize(turns_at_once(now), agents);
        self.budgets.renew(before, now);
    }

    pub(crate) fn budgets(&self) -> &Budgets {
        &self.budgets
    }
}
