//! From a queued message to its written answer.
//!
//! `who_answers` decides whether a message gets an answer, and is asked before it is queued.
//! `admit` chooses the agent and waits for a slot, `prepare` builds the request to the model
//! (`question`, `request`), `run` drives model and tools (`rounds`), `finish` drafts the reply, and
//! `commit` writes the end of the turn in one transaction. A turn knows its lane only as a
//! [`LaneView`].

mod accounts;
mod active_turn;
mod admit;
mod budgets;
mod commit;
mod compaction;
pub(crate) mod files;
mod finish;
mod giving_up;
mod lane_view;
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
mod transcript_search;
mod who_answers;

use std::sync::Arc;

use dashmap::DashSet;
use tokio_util::sync::CancellationToken;

use crate::agents::Memories;
use crate::delivery::Delivery;
use crate::domain::AgentUid;
use crate::home::{Snapshot, Snapshots};
use crate::records::model_overrides::Overrides;
use crate::routing::Router;
use crate::routing::aliases::Aliases;
use crate::routing::pins::Pins;
use crate::slots::Slots;
use crate::storage::Db;
use crate::subagents::Subagents;
use crate::tools::ToolBox;

pub(crate) use active_turn::{ActiveTurn, Due, Ended, Exchange};
pub(crate) use admit::Admission;
pub(crate) use budgets::{Budgets, over_at};
pub(crate) use giving_up::{GivingUp, Told, broken};
pub(crate) use lane_view::{LaneNews, LaneView, Worker};
pub(crate) use provider_news::ProviderNews;
pub(crate) use run::Answering;
pub(crate) use transcript_search::TranscriptSearch;
pub(crate) use who_answers::{Answer, Question, Silence, who_answers};

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
    pub(crate) bootstrapped: DashSet<AgentUid>,
    pub(crate) stop: CancellationToken,
}

impl Answering {
    pub(crate) fn new(deps: Deps) -> Self {
        let Deps {
            db,
            snapshots,
            router,
            pins,
            aliases,
            overrides,
            delivery,
            tools,
            memories,
            subagents,
            ..
        } = deps;
        let Deps {
            bootstrapped, stop, ..
        } = deps;
        let (snapshot, bootstrapped) = (snapshots.current(), Arc::new(bootstrapped));
        let slots = Slots::new(snapshot.config.max_running, snapshot.registry.all().len());
        let admission = Admission {
            router,
            overrides,
            slots,
            stop: stop.clone(),
        };
        let budgets = Budgets::new(db.clone(), delivery.clone(), &snapshot);
        let compaction = Compaction {
            db: db.clone(),
            aliases: aliases.clone(),
            budgets: budgets.clone(),
            summing: Arc::new(Summing::new()),
            tasks: compaction::tasks(),
            stop: stop.clone(),
        };
        let requests = Requests {
            db: db.clone(),
            aliases: aliases.clone(),
            memories,
            tools,
            compaction: compaction.clone(),
            bootstrapped: bootstrapped.clone(),
        };
        let preparation = Preparation {
            db: db.clone(),
            delivery: delivery.clone(),
            admission: admission.clone(),
            budgets: budgets.clone(),
            requests,
        };
        let rounds = Rounds {
            db: db.clone(),
            aliases: aliases.clone(),
            subagents: subagents.clone(),
            stop: stop.clone(),
        };
        let giving_up = GivingUp {
            db: db.clone(),
            delivery: delivery.clone(),
        };
        let finish = Finish {
            db: db.clone(),
            delivery: delivery.clone(),
            giving_up,
            aliases: aliases.clone(),
            pins: pins.clone(),
            subagents: subagents.clone(),
            budgets: budgets.clone(),
            provider_news: ProviderNews {
                db: db.clone(),
                delivery: delivery.clone(),
            },
            bootstrapped,
            stop: stop.clone(),
        };
        Answering {
            db,
            snapshots,
            aliases,
            pins,
            delivery,
            subagents,
            admission,
            budgets,
            preparation,
            rounds,
            finish,
            compaction,
            stop,
        }
    }

    pub(crate) fn admission(&self) -> &Admission {
        &self.admission
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
        self.admission.slots.resize(now.config.max_running, agents);
        self.budgets.renew(before, now);
    }

    pub(crate) fn budgets(&self) -> &Budgets {
        &self.budgets
    }
}
