//! The data of a turn, from the moment it is taken out of its lane.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::compaction::Fill;
use super::lane_view::LaneView;
use crate::access::Role;
use crate::agents::{Agent, Chosen};
use crate::channels::Outcome;
use crate::config::ModelRef;
use crate::delivery::Mark;
use crate::domain::Inbound;
use crate::home::Snapshot;
use crate::models::Usage;
use crate::records::inbox::Accepted;
use crate::records::journal::{self, Recall};
use crate::records::subagents::SubagentRow;
use crate::records::transcript::Conversation;
use crate::records::view::View;
use crate::routing::Route;
use crate::routing::aliases::Aliases;
use crate::subagents::{Arrived, InternalTurn};
use crate::tools::Effect;
use crate::turn::history;
use crate::turn::{Round, Run};

/// A message whose turn has come.
pub(crate) struct Due {
    pub(crate) accepted: Accepted,
    pub(crate) arrived: Arrived,
    /// Cancelled when somebody wants it stopped.
    pub(crate) halt: CancellationToken,
    pub(crate) lane: LaneView,
    /// What was put aside here to answer this.
    pub(crate) aside: Vec<Aside>,
}

/// A turn that was put aside, as far as whoever answers meanwhile may know of it.
pub(crate) struct Aside {
    agent: Arc<Agent>,
    /// For its own agent only.
    reminder: String,
}

/// A turn that was begun, as far as it has come.
pub(crate) struct ActiveTurn {
    /// The snapshot that the turn began with.
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) accepted: Accepted,
    /// The messages in words, one for each.
    pub(super) said: Vec<Inbound>,
    pub(super) agent: Arc<Agent>,
    pub(super) route: Route,
    pub(super) chosen: Chosen,
    /// Chosen by a pin for this one message.
    pub(super) used_once: bool,
    pub(super) started_at: i64,
    /// The newest row of the transcript when the turn began.
    pub(super) read_upto: i64,
    pub(super) conversation: Conversation,
    pub(super) run: Run,
    pub(super) fill: Fill,
    /// Rounds of tools so far, with one that is just being written down.
    pub(super) rounds: u32,
    /// The transcript has the question already.
    pub(super) is_asked: bool,
    /// Answered while another turn was put aside.
    pub(super) is_steering: bool,
    /// Tools that panicked.
    pub(super) broken_tools: Vec<String>,
    /// What tools want done with the turn's end, in the order of their calls.
    pub(super) effects: Vec<Effect>,
    /// Set when it is not a person who asks.
    pub(super) internal: Option<InternalTurn>,
    /// Runs whose end the agent is told about in this turn.
    pub(super) told: Vec<String>,
    /// A round whose end was not seen: it waited for runs when the turn was put aside, or when an earlier process ended.
    pub(super) unfinished: Option<(Round, Vec<Recall>)>,
    /// An earlier process saw messages after its own.
    pub(super) others_wrote: bool,
    /// What happened while it was put aside. It is told after the results of the round that was left.
    pub(super) untold: Vec<String>,
    pub(super) mark: Option<Mark>,
    pub(super) halt: CancellationToken,
    pub(super) lane: LaneView,
}

impl Aside {
    /// The place may have changed hands since: how far one agent has come is not for another. One that is shown nothing of
    /// the question needs no word about it.
    pub(super) fn told_to(&self, agent: &Agent, view: View) -> Option<String> {
        let is_own = agent.uid == self.agent.uid;
        let told = || if is_own { self.reminder.clone() } else { history::somebody_elses(&self.agent.id) };
        view.shows(Some(self.agent.uid)).then(told)
    }
}

/// How a turn left its lane.
pub(crate) enum Ended {
    /// With what was said by whom, for turns that were put aside meanwhile.
    Over(Option<Exchange>),
    /// Between two rounds, because people wrote meanwhile.
    Parked(Box<ActiveTurn>),
    /// The process stops; the next one finds the rows.
    LeftBehind,
}

/// A question and its answer.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub(super) by: Arc<Agent>,
    /// How well those who asked are known.
    pub(super) role: Role,
    pub(super) question: String,
    pub(super) answer: String,
}

impl Exchange {
    pub(super) fn told_to(&self, agent: &Agent) -> history::Exchanged<'_> {
        let by = (self.by.uid != agent.uid).then_some(&self.by.id);
        history::Exchanged { question: &self.question, by, answer: &self.answer }
    }
}

impl ActiveTurn {
    /// Everything that is logged on the way says for whom.
    pub(super) fn span(&self) -> tracing::Span {
        let span = tracing::info_span!(
            "turn",
            agent.id = %self.agent.id,
            inbox.id = self.accepted.id,
            parent.agent = tracing::field::Empty,
            parent.session = tracing::field::Empty,
            run = tracing::field::Empty
        );
        if let Some(known) = self.subagent() {
            span.record("parent.agent", known.parent_id.as_str());
            span.record("parent.session", known.subagent.parent.to_string());
            span.record("run", &known.subagent.run);
        }
        span
    }

    /// The group may have become another one while the agent was thinking.
    pub(super) fn follow_moves(&mut self, aliases: &Aliases) {
        aliases.follow(&mut self.accepted.inbound.origin);
        self.said.iter_mut().for_each(|said| aliases.follow(&mut said.origin));
        self.run.is_in(&self.accepted.inbound.origin.key);
    }

    pub(super) fn row(&self) -> journal::OpenTurn {
        journal::OpenTurn {
            inbox_id: self.accepted.id,
            members: self.accepted.all().map(|accepted| accepted.id).collect(),
            place: self.accepted.inbound.origin.key.clone(),
            agent: self.agent.uid,
            question: self.question(),
            read_upto: self.read_upto,
            started_at: self.started_at,
        }
    }

    /// What it is about, in the words of those who asked.
    pub(super) fn question(&self) -> String {
        self.said.iter().map(Inbound::readable).collect::<Vec<_>>().join("\n\n")
    }

    /// The model that answers, or is to.
    pub(super) fn model(&self) -> &ModelRef {
        self.run.model().unwrap_or(&self.chosen.model)
    }

    /// Everything it has cost, as far as anybody knows.
    pub(super) fn usage(&self) -> Usage {
        let mut usage = self.run.usage();
        usage.add(self.run.guess_of_cut_call());
        usage
    }

    /// What whoever answers while it is put aside hears of it.
    pub(crate) fn aside(&self) -> Aside {
        let reminder = history::reminder(&self.question(), self.rounds, self.run.said());
        Aside { agent: self.agent.clone(), reminder }
    }

    /// Somebody wants it stopped.
    pub(crate) fn is_halted(&self) -> bool {
        self.halt.is_cancelled()
    }

    pub(super) fn end_mark(&mut self, outcome: Outcome) {
        if let Some(mark) = self.mark.take() {
            mark.end(outcome);
        }
    }

    /// What its agent is shown of the place's conversation.
    pub(super) fn view(&self) -> View {
        view(&self.snapshot, &self.agent)
    }

    /// The row of the subagent whose turn this is.
    pub(super) fn subagent(&self) -> Option<&SubagentRow> {
        self.internal.as_ref().and_then(InternalTurn::subagent)
    }
}

/// What an agent is shown of a place's conversation.
pub(super) fn view(snapshot: &Snapshot, agent: &Agent) -> View {
    View::of(snapshot.config.switch, agent.uid)
}
