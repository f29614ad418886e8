//! A turn up to its first model call: its messages, its agent, and the wait for its start.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::accounts::Allowance;
use super::active_turn::{ActiveTurn, Due, note_worker, view};
use super::admit::{Admission, Choice, InLine, TurnSlot};
use super::budgets::{self, Budgets};
use super::extract::Earlier;
use super::question;
use super::reading;
use super::request::{Asked, Prepared, Requests};
use crate::access::{Role, Standing};
use crate::agents::Agent;
use crate::clock::now_ms;
use crate::config::ModelRef;
use crate::delivery::{AnswerInProgress, Delivery, ProgressHandle};
use crate::domain::{AgentUid, Destination, Labels, TurnEvent};
use crate::home::Snapshot;
use crate::metrics::{Stage, Stages};
use crate::models::Image;
use crate::records::decisions::{self, Decision};
use crate::records::inbox::{self, Accepted, Seen};
use crate::records::journal::{self, AskedMessage, Recorded};
use crate::records::resuming::BegunTurn;
use crate::records::view::View;
use crate::storage::{Db, StoreError};
use crate::subagents::{Arrived, InternalTurn};
use crate::turn::Run;

/// Prepares turns. Cheap to clone.
#[derive(Clone)]
pub(super) struct Preparation {
    pub(super) db: Db,
    pub(super) delivery: Delivery,
    pub(super) admission: Admission,
    pub(super) budgets: Budgets,
    pub(super) requests: Requests,
}

/// The result of preparing a turn.
pub(super) enum Begun {
    /// A limit forbids the turn, and the place was told.
    Refused,
    Ready {
        turn: Box<ActiveTurn>,
        progress: ProgressHandle,
        /// Held while the turn runs. None for a turn stopped during the wait.
        slot: Option<TurnSlot>,
    },
    /// The agent is paused, and the message waits for it.
    Paused(Arc<Agent>),
    /// The process stops.
    Stopping,
}

impl Preparation {
    /// Everything up to the first question to the model.
    pub(super) async fn prepare(
        &self,
        snapshot: Arc<Snapshot>,
        due: &Due,
    ) -> Result<Begun, StoreError> {
        let taken = Instant::now();
        let mut subject = self.subject(due).await?;
        let Started {
            choice,
            slot,
            waited,
            allowance,
            is_new,
        } = match self.start(&snapshot, due, &subject).await? {
            Ok(started) => started,
            Err(begun) => return Ok(begun),
        };
        let begun = Instant::now();
        let accepted = &mut subject.accepted;
        accepted.role = accepted.standing.with(&choice.agent.id);
        let others_wrote =
            due.arrived == Arrived::Before && self.others_wrote(&subject.accepted).await;
        // Progress is shown before the files are fetched, because fetching may take a while.
        let progress = progress(
            &self.delivery,
            &subject.accepted,
            &choice.agent,
            others_wrote,
        );
        let mut turn = self
            .turn(
                snapshot,
                due,
                subject,
                choice,
                allowance,
                &progress.events(),
            )
            .await?;
        turn.others_wrote = others_wrote;
        turn.stages = arrival(turn.accepted.seen, taken);
        turn.stages.spend(Stage::Slot, waited);
        turn.prepared_ms = u64::try_from(begun.elapsed().as_millis()).ok();
        if is_new && let Some(begun) = self.reserve(&mut turn).await? {
            progress.end().await;
            return Ok(begun);
        }
        Ok(Begun::Ready {
            turn,
            progress,
            slot,
        })
    }

    /// Takes the cost of the first call off the limits of the day, so a turn that may not begin is
    /// refused like one that comes later. A stopped turn need not wait for that.
    async fn reserve(&self, turn: &mut ActiveTurn) -> Result<Option<Begun>, StoreError> {
        let ActiveTurn {
            allowance,
            snapshot,
            run,
            ..
        } = turn;
        let estimate = || budgets::estimate(&snapshot.models, run);
        let reserved = tokio::select! {
            biased;
            () = self.admission.stop.cancelled() => return Ok(Some(Begun::Stopping)),
            () = turn.halt.cancelled() => return Ok(None),
            reserved = self.budgets.reserve(allowance, estimate) => reserved?,
        };
        let Err(over) = reserved else { return Ok(None) };
        self.budgets
            .refuse(&turn.snapshot, &turn.accepted, &turn.agent, over)
            .await?;
        Ok(Some(Begun::Refused))
    }

    async fn subject(&self, due: &Due) -> Result<Subject, StoreError> {
        let recorded = self.recorded(due).await?;
        let mut accepted = recorded.as_ref().map_or_else(
            || due.accepted.clone(),
            |recorded| with_members(&due.accepted, recorded),
        );
        let internal = InternalTurn::of(&self.db, &accepted.inbound).await?;
        if internal.is_none() && accepted.inbound.extras.internal.is_some() {
            // The subagent's row is gone, and with it the person behind the turn.
            accepted.role = Role::Guest;
            accepted.standing = Standing::GUEST;
        }
        Ok(Subject {
            accepted,
            internal,
            recorded,
        })
    }

    /// Chooses the agent and waits until the turn may begin.
    async fn start(
        &self,
        snapshot: &Snapshot,
        due: &Due,
        subject: &Subject,
    ) -> Result<Result<Started, Begun>, StoreError> {
        let Subject {
            accepted,
            internal,
            recorded,
        } = subject;
        let (began_with, waits) = (subject.began_with(), Instant::now());
        let (choice, in_line) = match internal {
            Some(internal) => {
                self.admission
                    .send_on(snapshot, accepted, internal, &due.halt)
                    .await?
            }
            None => {
                self.admission
                    .choose(snapshot, accepted, began_with, &due.halt)
                    .await?
            }
        };
        let slot = match in_line {
            InLine::Next(slot) => Some(slot),
            InLine::Halted => None,
            InLine::Paused => return Ok(Err(Begun::Paused(choice.agent))),
            InLine::Stopping => return Ok(Err(Begun::Stopping)),
        };
        let waited = waits.elapsed();
        let agent = &choice.agent;
        let subagent = internal.as_ref().and_then(InternalTurn::subagent);
        note_worker(&tracing::Span::current(), agent, subagent);
        // The turn of a job is a turn of its own, under all limits.
        let is_errand = internal
            .as_ref()
            .is_some_and(|internal| internal.job().is_none());
        // Limits are checked after the wait, so earlier turns count. A turn already begun is not
        // checked again.
        let is_new = recorded.is_none() && !due.is_again && slot.is_some() && !is_errand;
        let person = &accepted.inbound.origin.person;
        let allowance = self
            .budgets
            .open(snapshot, agent, person, accepted.role)
            .await?;
        if is_new && let Some(over) = self.budgets.check(snapshot, accepted, agent, &allowance) {
            self.budgets.refuse(snapshot, accepted, agent, over).await?;
            return Ok(Err(Begun::Refused));
        }
        if internal.is_none() {
            choice.log(accepted);
        }
        if began_with.is_some_and(|uid| uid != agent.uid) {
            let (id, uid) = (accepted.id, agent.uid);
            self.db
                .write(move |tx| journal::hand_over(tx, id, uid, now_ms()))
                .await?;
        }
        Ok(Ok(Started {
            choice,
            slot,
            waited,
            allowance,
            is_new,
        }))
    }

    /// Builds the turn, and replays the rounds of an earlier process.
    async fn turn(
        &self,
        snapshot: Arc<Snapshot>,
        due: &Due,
        subject: Subject,
        choice: Choice,
        allowance: Allowance,
        events: &mpsc::Sender<TurnEvent>,
    ) -> Result<Box<ActiveTurn>, StoreError> {
        let agent = &choice.agent;
        let lineup = agent.models.lineup(&choice.chosen);
        let (said, images) = self.question(&snapshot, &subject, agent, &lineup).await;
        let view = view(&snapshot, agent);
        let (aside, read_aside) = due.told_aside(agent, view);
        let asked = Asked {
            said: &said,
            images,
            is_asked: subject.is_asked(view),
            earlier: subject.earlier(),
            aside: &aside,
            read: subject.read() | read_aside,
            internal: subject.internal.as_ref(),
            halt: &due.halt,
            events,
        };
        let prepared = self
            .requests
            .request(&snapshot, &subject.accepted, agent, lineup, asked)
            .await?;
        let goes_on = subject.began_with() == Some(agent.uid);
        let mut turn = subject.begun(due, snapshot, choice, said, prepared, allowance);
        if goes_on {
            turn.charge_runs(&self.db).await?;
        }
        Ok(turn)
    }

    /// The question in words, and its pictures in the order they were sent.
    async fn question(
        &self,
        snapshot: &Snapshot,
        subject: &Subject,
        agent: &Agent,
        lineup: &[ModelRef],
    ) -> (Vec<AskedMessage>, Vec<Image>) {
        let Subject {
            accepted,
            internal,
            recorded,
        } = subject;
        let before = recorded.as_ref().map(|recorded| &recorded.turn.question);
        match (before.filter(|before| !before.is_empty()), internal) {
            (Some(before), _) => (before.clone(), Vec::new()),
            // The agent reads the row of the subagent.
            (None, Some(InternalTurn::Report(_))) => (Vec::new(), Vec::new()),
            (None, _) => {
                let someone_sees = lineup.iter().any(|model| snapshot.models.sees(model));
                question::in_words(&self.delivery, accepted, agent, someone_sees).await
            }
        }
    }

    /// Whether newer messages were in the place when an earlier process left this message. A
    /// failing store must not cost the answer.
    async fn others_wrote(&self, accepted: &Accepted) -> bool {
        let accepted = accepted.clone();
        let asked = self
            .db
            .read(move |connection| inbox::others_wrote(connection, &accepted))
            .await;
        asked
            .inspect_err(|error| tracing::warn!("an answer may go out without a quote: {error}"))
            .unwrap_or(false)
    }

    /// The journal's record of this turn from an earlier process.
    async fn recorded(&self, due: &Due) -> Result<Option<Recorded>, StoreError> {
        if due.arrived == Arrived::Now {
            return Ok(None);
        }
        let (id, place) = (due.accepted.id, due.accepted.inbound.origin.key.clone());
        let recorded = self
            .db
            .read(move |connection| journal::recorded(connection, id))
            .await?;
        if recorded.is_some() {
            self.db
                .write(move |tx| decisions::note(tx, &place, id, Decision::Recovered, now_ms()))
                .await?;
        }
        Ok(recorded)
    }
}

/// The input of a turn.
struct Subject {
    accepted: Accepted,
    /// Set for a turn without a person's message.
    internal: Option<InternalTurn>,
    /// The progress of an earlier process.
    recorded: Option<Recorded>,
}

impl Subject {
    /// The agent chosen by an earlier process.
    fn began_with(&self) -> Option<AgentUid> {
        self.recorded.as_ref().map(|recorded| recorded.turn.agent)
    }

    /// Whether the agent's view of the transcript has the question already. Another agent may not
    /// see the question, and is asked anew.
    fn is_asked(&self, view: View) -> bool {
        self.recorded
            .as_ref()
            .is_some_and(|recorded| recorded.is_asked && view.shows(Some(recorded.turn.agent)))
    }

    /// The labels of the question.
    fn read(&self) -> Labels {
        reading::of_question(
            &self.accepted,
            self.internal.as_ref(),
            self.recorded.as_ref(),
        )
    }

    /// The turn before its next step, with the rounds of an earlier process.
    fn begun(
        self,
        due: &Due,
        snapshot: Arc<Snapshot>,
        choice: Choice,
        said: Vec<AskedMessage>,
        prepared: Prepared,
        allowance: Allowance,
    ) -> Box<ActiveTurn> {
        let is_asked = self.is_asked(view(&snapshot, &choice.agent));
        let before = self.recorded.as_ref().map(|recorded| &recorded.turn);
        let mut turn = Box::new(ActiveTurn {
            said,
            question: prepared.question,
            agent: choice.agent,
            route: choice.route,
            chosen: choice.chosen,
            used_once: choice.used_once,
            started_at: before.map_or_else(now_ms, |turn| turn.started_at),
            read_upto: before.map_or(prepared.read_upto, |turn| turn.read_upto),
            conversation: prepared.conversation,
            run: Run::new(prepared.request),
            fill: prepared.fill,
            rounds: 0,
            // A report has no person's words for the transcript.
            is_asked: is_asked || matches!(self.internal, Some(InternalTurn::Report(_))),
            is_steering: !due.aside.is_empty(),
            broken_tools: Vec::new(),
            effects: Vec::new(),
            told: prepared.told,
            unfinished: None,
            expects: None,
            others_wrote: false,
            untold: Vec::new(),
            mark: None,
            entry: None,
            allowance,
            halt: due.halt.clone(),
            lane: due.lane.clone(),
            stages: Stages::default(),
            prepared_ms: None,
            recalled: prepared.recalled,
            taken_up_at: (due.arrived == Arrived::Before && !due.is_again).then(now_ms),
            previews: 0,
            snapshot,
            accepted: self.accepted,
            internal: self.internal,
        });
        if let Some(recorded) = self
            .recorded
            .filter(|recorded| recorded.turn.agent == turn.agent.uid)
        {
            turn.replay(recorded.rounds);
        }
        turn
    }

    fn earlier(&self) -> Option<Earlier> {
        let recorded = self.recorded.as_ref()?;
        let begun = BegunTurn {
            inbox_id: self.accepted.id,
            read_upto: recorded.turn.read_upto,
            role: self.accepted.role,
        };
        Some(if recorded.is_asked {
            Earlier::Parked(begun)
        } else {
            Earlier::Broken(begun)
        })
    }
}

/// A turn that may begin.
struct Started {
    choice: Choice,
    slot: Option<TurnSlot>,
    /// How long it took to get the slot.
    waited: Duration,
    allowance: Allowance,
    /// Not begun before, and asked by a person.
    is_new: bool,
}

/// The time before the turn. A message of an earlier process has none.
fn arrival(seen: Option<Seen>, taken: Instant) -> Stages {
    let mut stages = Stages::default();
    if let Some(Seen { received, stored }) = seen {
        stages.spend(Stage::Stored, stored.saturating_duration_since(received));
        stages.spend(Stage::Queued, taken.saturating_duration_since(stored));
    }
    stages
}

/// Adds the rows to close with this message. After a restart they get no turn of their own.
fn with_members(accepted: &Accepted, recorded: &Recorded) -> Accepted {
    let others = recorded.others.iter();
    let joined = others
        .map(|(id, inbound)| Accepted::new(*id, inbound.clone()))
        .collect();
    Accepted {
        joined,
        backlog: Vec::new(),
        ..accepted.clone()
    }
}

pub(super) fn progress(
    delivery: &Delivery,
    accepted: &Accepted,
    agent: &Agent,
    others_wrote: bool,
) -> ProgressHandle {
    delivery.progress(AnswerInProgress {
        to: Destination::of(&accepted.inbound),
        speaker: agent.label(),
        inbox_id: accepted.id,
        question: question::to_quote(accepted, others_wrote),
    })
}
