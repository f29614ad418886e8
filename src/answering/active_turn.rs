//! The data of a turn, from its lane to its end.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::accounts::Allowance;
use super::approvals::{Asking, Expectation};
use super::compaction::Fill;
use super::lane_view::LaneView;
use super::under_way::Entry;
use crate::access::Role;
use crate::agents::{Agent, Chosen};
use crate::channels::Outcome;
use crate::config::ModelRef;
use crate::delivery::Mark;
use crate::domain::{Internal, Labels, Said};
use crate::home::Snapshot;
use crate::metrics::Stages;
use crate::models::Usage;
use crate::records::inbox::Accepted;
use crate::records::journal::{self, AskedMessage, Recall};
use crate::records::subagents::SubagentRow;
use crate::records::transcript::Conversation;
use crate::records::view::View;
use crate::routing::Route;
use crate::routing::aliases::Aliases;
use crate::subagents::{Arrived, InternalTurn};
use crate::tools::{Effect, sent_files};
use crate::turn::history;
use crate::turn::{Round, Run};

/// A message taken from its lane to be answered.
pub(crate) struct Due {
    pub(crate) accepted: Accepted,
    pub(crate) arrived: Arrived,
    /// Cancelled to stop the turn.
    pub(crate) halt: CancellationToken,
    pub(crate) lane: LaneView,
    /// Notes about the parked turns of the lane.
    pub(crate) aside: Vec<Aside>,
    /// Begun before by this process, and counted then.
    pub(crate) is_again: bool,
}

/// A note about a parked turn, for turns in between.
pub(crate) struct Aside {
    agent: Arc<Agent>,
    /// For its own agent only.
    reminder: Vec<Said>,
    /// What the parked turn has read.
    read: Labels,
}

/// A begun turn with its progress.
pub(crate) struct ActiveTurn {
    /// The snapshot that the turn began with.
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) accepted: Accepted,
    /// The messages, for the journal and the transcript.
    pub(super) said: Vec<AskedMessage>,
    /// The same as the agent reads them.
    pub(super) question: Vec<Said>,
    pub(super) agent: Arc<Agent>,
    pub(super) route: Route,
    pub(super) chosen: Chosen,
    /// A pin for this message alone chose the agent.
    pub(super) used_once: bool,
    pub(super) started_at: i64,
    /// The newest row of the transcript when the turn began.
    pub(super) read_upto: i64,
    pub(super) conversation: Conversation,
    pub(super) run: Run,
    pub(super) fill: Fill,
    /// Rounds of tools so far, including a round being written.
    pub(super) rounds: u32,
    /// The transcript has the question already.
    pub(super) is_asked: bool,
    /// Answered while another turn was parked.
    pub(super) is_steering: bool,
    /// Tools that panicked.
    pub(super) broken_tools: Vec<String>,
    /// Effects to carry out at the end of the turn, in the order of their calls.
    pub(super) effects: Vec<Effect>,
    /// Set for a turn without a person's message.
    pub(super) internal: Option<InternalTurn>,
    /// Subagents whose end the agent is told in this turn.
    pub(super) told: Vec<String>,
    /// A round without its end. It waited for subagents when the turn was parked or an earlier
    /// process ended.
    pub(super) unfinished: Option<(Round, Vec<Recall>)>,
    /// Set if the open round waits for approvals, and for nothing else.
    pub(super) expects: Option<Expectation>,
    /// Newer messages were in the place when this process took up the turn.
    pub(super) others_wrote: bool,
    /// Exchanges during parking. The model hears them after the results of the open round.
    pub(super) untold: Vec<Said>,
    pub(super) mark: Option<Mark>,
    /// The entry among the turns under way.
    pub(super) entry: Option<Entry>,
    /// The limits of the day, with the reservation of the running call.
    pub(super) allowance: Allowance,
    pub(super) halt: CancellationToken,
    pub(super) lane: LaneView,
    /// The time so far.
    pub(super) stages: Stages,
    /// From the slot to the first model call.
    pub(super) prepared_ms: Option<u64>,
    /// Memories in the prompt.
    pub(super) recalled: usize,
    /// Set where an earlier process has left the message.
    pub(super) taken_up_at: Option<i64>,
    /// How often the unfinished answer was shown.
    pub(super) previews: u32,
}

impl Due {
    /// Log lines of the turn carry its place and its message, and its agent once it is known.
    pub(super) fn span(&self) -> tracing::Span {
        span(&self.accepted)
    }
}

/// At the highest level, because a log of errors alone names the agent too.
fn span(accepted: &Accepted) -> tracing::Span {
    tracing::error_span!(
        "turn",
        agent.id = tracing::field::Empty,
        session = %accepted.inbound.origin.key,
        inbox.id = accepted.id,
        parent.agent = tracing::field::Empty,
        parent.session = tracing::field::Empty,
        run = tracing::field::Empty
    )
}

/// Says in the log who works, and for whom.
pub(super) fn note_worker(span: &tracing::Span, agent: &Agent, subagent: Option<&SubagentRow>) {
    span.record("agent.id", agent.id.as_str());
    if let Some(known) = subagent {
        span.record("parent.agent", known.parent_id.as_str());
        span.record("parent.session", known.subagent.parent.to_string());
        span.record("run", &known.subagent.run);
    }
}

impl Due {
    /// The notes about parked turns for a turn of `agent`.
    pub(super) fn told_aside(&self, agent: &Agent, view: View) -> (Vec<Said>, Labels) {
        let notes = self.aside.iter().map(|aside| aside.told_to(agent, view));
        let (said, read): (Vec<Vec<Said>>, Vec<Labels>) = notes.unzip();
        (said.concat(), read.into_iter().collect())
    }
}

impl Aside {
    /// The note for a turn of `agent`. Progress is only for the agent of the parked turn. An agent
    /// whose view lacks the question gets no note.
    fn told_to(&self, agent: &Agent, view: View) -> (Vec<Said>, Labels) {
        if !view.shows(Some(self.agent.uid)) {
            (Vec::new(), Labels::NONE)
        } else if agent.uid == self.agent.uid {
            (self.reminder.clone(), self.read)
        } else {
            (vec![history::somebody_elses(&self.agent.id)], Labels::NONE)
        }
    }
}

/// How a turn left its lane.
pub(crate) enum Ended {
    /// Ended. Parked turns of the lane hear of the exchange.
    Over(Option<Exchange>),
    /// Between two rounds or while waiting for subagents, because people wrote.
    Parked(Box<ActiveTurn>),
    /// The agent is paused, and the message goes back into its lane.
    Paused(Box<Due>),
    /// The agent was restarted: the turn begins again from its last recorded result.
    Again(Box<ActiveTurn>),
    /// The process stops; the next process finds the rows.
    LeftBehind,
}

/// A question and its answer.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub(super) by: Arc<Agent>,
    /// The role of the people behind the question.
    pub(super) role: Role,
    pub(super) question: Vec<Said>,
    pub(super) answer: String,
    /// What the turn of the answer has read.
    pub(super) read: Labels,
}

impl Exchange {
    pub(super) fn told_to(&self, agent: &Agent) -> history::Exchanged<'_> {
        let by = (self.by.uid != agent.uid).then_some(&self.by.id);
        history::Exchanged {
            question: &self.question,
            by,
            answer: &self.answer,
        }
    }
}

impl ActiveTurn {
    /// For a question to people about one of its calls.
    pub(super) fn asking(&self) -> Asking<'_> {
        Asking::of(
            &self.snapshot.config,
            &self.accepted.inbound,
            &self.agent,
            self.run.scope(),
        )
    }

    /// Log lines of the turn carry its agent and its message.
    pub(super) fn span(&self) -> tracing::Span {
        let span = span(&self.accepted);
        note_worker(&span, &self.agent, self.subagent());
        span
    }

    /// Takes over new keys of the place: its group may have become a supergroup.
    pub(super) fn follow_moves(&mut self, aliases: &Aliases) {
        aliases.follow(&mut self.accepted.inbound.origin);
        self.said
            .iter_mut()
            .for_each(|said| aliases.follow(&mut said.inbound.origin));
        if let Some(Internal::Job(run)) = &mut self.accepted.inbound.extras.internal
            && let Some(place) = &run.to
        {
            run.to = Some(aliases.current(place));
        }
        self.run.is_in(&self.accepted.inbound.origin.key);
    }

    pub(super) fn row(&self) -> journal::OpenTurn {
        journal::OpenTurn {
            inbox_id: self.accepted.id,
            members: self.accepted.all().map(|accepted| accepted.id).collect(),
            place: self.accepted.inbound.origin.key.clone(),
            agent: self.agent.uid,
            question: self.said.clone(),
            read_upto: self.read_upto,
            started_at: self.started_at,
            read: self.run.read(),
        }
    }

    /// The model in use; before the first call, the chosen model.
    pub(super) fn model(&self) -> &ModelRef {
        self.run.model().unwrap_or(&self.chosen.model)
    }

    /// The usage of all calls, with a guess for a call cut short.
    pub(super) fn usage(&self) -> Usage {
        let mut usage = self.run.usage();
        usage.add(self.run.guess_of_cut_call());
        usage
    }

    /// The note about this parked turn in the prompt of a turn in between.
    pub(crate) fn aside(&self) -> Aside {
        let reminder = history::reminder(&self.question, self.rounds, self.run.said());
        Aside {
            agent: self.agent.clone(),
            reminder,
            read: self.run.read(),
        }
    }

    /// The turn's messages, to begin again.
    pub(super) fn due_again(self) -> Due {
        Due {
            accepted: self.accepted,
            arrived: Arrived::Before,
            halt: self.halt,
            lane: self.lane,
            aside: Vec::new(),
            is_again: true,
        }
    }

    /// The messages that the turn answers.
    pub(crate) fn accepted(&self) -> &Accepted {
        &self.accepted
    }

    /// Whether the turn is to stop.
    pub(crate) fn is_halted(&self) -> bool {
        self.halt.is_cancelled()
    }

    /// Whether the parked turn waits for approvals alone.
    pub(crate) fn waits_for_people(&self) -> bool {
        self.expects.is_some()
    }

    /// Whether the parked turn can go on.
    pub(crate) fn can_go_on(&self) -> bool {
        self.is_halted() || self.expects.as_ref().is_none_or(Expectation::has_news)
    }

    /// Whether no tool has left anything to be sent.
    pub(super) fn effects_are_silent(&self) -> bool {
        sent_files(&self.effects).next().is_none()
    }

    pub(super) fn end_mark(&mut self, outcome: Outcome) {
        if let Some(mark) = self.mark.take() {
            mark.end(outcome);
        }
    }

    /// The agent's view of the place's conversation.
    pub(super) fn view(&self) -> View {
        view(&self.snapshot, &self.agent)
    }

    /// The subagent's row, if this is a subagent's turn.
    pub(super) fn subagent(&self) -> Option<&SubagentRow> {
        self.internal.as_ref().and_then(InternalTurn::subagent)
    }
}

/// An agent's view of a place's conversation.
pub(super) fn view(snapshot: &Snapshot, agent: &Agent) -> View {
    View::of(snapshot.config.switch, agent.uid)
}
