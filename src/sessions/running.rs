//! One message's turn, from the lane to its end: who answers, with what, and in which steps.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use rusqlite::Transaction;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::compaction::{self, Fill};
use super::decisions::{self, Decision};
use super::errands::Errand;
use super::inbox::Accepted;
use super::journal::Recall;
use super::parts::View;
use super::preparing::{Begun, prepare, progress};
use super::starting::{self, InLine};
use super::transcript::{self, Conversation, Spot};
use super::{Arrived, Inner, budgets, ending, journal, lane, notes, rounds, runs};
use crate::access::Standing;
use crate::agents::{Agent, Chosen};
use crate::channels::Outcome;
use crate::clock::now_ms;
use crate::config::ModelRef;
use crate::delivery::{Mark, ProgressHandle};
use crate::domain::{Inbound, TurnEvent};
use crate::models::Usage;
use crate::routing::aliases::Aliases;
use crate::routing::{Route, pins};
use crate::storage::{Durability, StoreError};
use crate::tools::{Effect, Then};
use crate::turn::history;
use crate::turn::{Round, Run, Step, TurnError, TurnLimits};

/// The pause before a turn is begun again when the store could not be read.
const STORE_BACKOFF: Duration = Duration::from_secs(1);

/// A message whose turn has come.
pub(super) struct Due {
    pub(super) accepted: Accepted,
    pub(super) arrived: Arrived,
    /// Cancelled when somebody wants it stopped.
    pub(super) halt: CancellationToken,
    /// What was put aside here to answer this.
    pub(super) aside: Vec<Aside>,
}

/// A task that was put aside, as far as whoever answers meanwhile may know of it.
pub(super) struct Aside {
    agent: Arc<Agent>,
    /// For its own agent only.
    reminder: String,
}

/// A turn that was begun, as far as it has come.
pub(super) struct Task {
    pub(super) accepted: Accepted,
    /// The messages in words, one for each.
    pub(super) said: Vec<Inbound>,
    pub(super) agent: Arc<Agent>,
    pub(super) route: Route,
    pub(super) chosen: Chosen,
    /// Chosen by a pin for this one message.
    pub(super) used_once: bool,
    pub(super) started_at: i64,
    pub(super) conversation: Conversation,
    pub(super) run: Run,
    pub(super) fill: Fill,
    /// Rounds of tools so far, with one that is just being written down.
    pub(super) rounds: u32,
    /// The transcript has the question already.
    pub(super) is_asked: bool,
    /// Answered while another task was put aside.
    pub(super) is_steering: bool,
    /// Tools that panicked.
    pub(super) broken_tools: Vec<String>,
    /// What tools want done with the turn's end, in the order of their calls.
    pub(super) effects: Vec<Effect>,
    /// Set when it is not a person who asks.
    pub(super) errand: Option<Errand>,
    /// Runs whose end the agent is told about in this turn.
    pub(super) told: Vec<String>,
    /// A round whose end was not seen: it waited for runs when the task was put aside, or when an earlier process ended.
    pub(super) unfinished: Option<(Round, Vec<Recall>)>,
    /// Messages after its own were seen by an earlier process.
    pub(super) others_wrote: bool,
    /// What happened while it was put aside. It is told after the results of the round that was left.
    pub(super) untold: Vec<String>,
    pub(super) mark: Option<Mark>,
    pub(super) halt: CancellationToken,
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
pub(super) enum Ended {
    /// With what was said by whom, for tasks that were put aside meanwhile.
    Over(Option<Exchange>),
    /// Between two rounds, because people wrote meanwhile.
    Parked(Box<Task>),
    /// The process stops; the next one finds the rows.
    LeftBehind,
}

/// A question and its answer.
#[derive(Debug, Clone)]
pub(super) struct Exchange {
    pub(super) by: Arc<Agent>,
    /// How well those who asked are known.
    pub(super) standing: Standing,
    pub(super) question: String,
    pub(super) answer: String,
}

impl Exchange {
    fn told_to(&self, agent: &Agent) -> history::Exchanged<'_> {
        let by = (self.by.uid != agent.uid).then_some(&self.by.id);
        history::Exchanged { question: &self.question, by, answer: &self.answer }
    }
}

/// Answers the message. Whatever goes wrong is told in the place it came from.
pub(super) async fn begin(inner: &Arc<Inner>, mut due: Due) -> Ended {
    if due.accepted.inbound.besides.note.is_some() {
        return keep_note(inner, &due.accepted).await;
    }
    let written = due.accepted.messages().filter(|message| message.inbound.besides.internal.is_none());
    let mark = inner.parts.delivery.mark(written.map(|message| &message.inbound));
    loop {
        // The group may have become another one while the message waited.
        inner.parts.aliases.follow(&mut due.accepted.inbound.origin);
        let error = match AssertUnwindSafe(prepare(inner, &due)).catch_unwind().await {
            Ok(Ok(Begun::Ready { mut task, progress, slot: _slot })) => {
                task.mark = Some(mark);
                return proceed(inner, *task, progress).await;
            }
            Ok(Ok(Begun::Refused)) => {
                mark.end(Outcome::Failed);
                return Ended::Over(None);
            }
            Ok(Ok(Begun::Stopping)) => return Ended::LeftBehind,
            Ok(Err(error)) => error,
            Err(_) => match ending::after_panic(inner, &due.accepted, None).await {
                Ok(()) => {
                    mark.end(Outcome::Failed);
                    return Ended::Over(None);
                }
                Err(error) => error,
            },
        };
        if !worth_another_try(inner, &due.accepted, &error).await {
            return Ended::LeftBehind;
        }
    }
}

/// Goes on with a task that was put aside, after these exchanges.
pub(super) async fn resume(inner: &Arc<Inner>, mut task: Task, meanwhile: &[Exchange]) -> Ended {
    let _slot = match starting::wait(inner, task.agent.uid, &task.halt).await {
        InLine::Next(slot) => Some(slot),
        InLine::NoNeed => None,
        InLine::Halted => return ending::stopped(inner, task).await,
        InLine::Stopping => return Ended::LeftBehind,
    };
    let (place, id) = (task.accepted.inbound.origin.key.clone(), task.accepted.id);
    let noted = inner.parts.db.write_as(Durability::Kill, move |tx| decisions::note(tx, &place, id, Decision::Resumed, now_ms()));
    if let Err(error) = noted.await {
        tracing::warn!("a decision was not noted: {error}");
    }
    let view = inner.view(&task.agent);
    // Whoever may have less done than those who gave the task has no say in it: its tools do what they may.
    let heard =
        meanwhile.iter().filter(|exchange| exchange.standing >= task.accepted.standing && view.shows(Some(exchange.by.uid)));
    let told = history::meanwhile(heard.map(|exchange| exchange.told_to(&task.agent)));
    task.untold.push(told);
    task.run.take_up();
    let progress = progress(inner, &task.accepted, &task.agent, task.others_wrote);
    proceed(inner, task, progress).await
}

async fn keep_note(inner: &Arc<Inner>, accepted: &Accepted) -> Ended {
    while let Err(error) = notes::keep(inner, accepted).await {
        if !worth_another_try(inner, accepted, &error).await {
            return Ended::LeftBehind;
        }
    }
    Ended::Over(None)
}

/// Waits a little for the store. False when the process stops first: the row is still in the inbox.
async fn worth_another_try(inner: &Inner, accepted: &Accepted, error: &StoreError) -> bool {
    tracing::error!(session = %accepted.inbound.origin.key, "a turn waits for the store: {error}");
    tokio::select! {
        () = tokio::time::sleep(STORE_BACKOFF) => true,
        () = inner.stop.cancelled() => false,
    }
}

/// Why a turn left off.
enum Left {
    Answered,
    /// People wrote meanwhile, and a round has just ended or waits for nothing but runs.
    ForOthers,
    Failed(TurnError),
    /// Somebody asked for it.
    Halted,
    /// The process stops.
    Stopping,
}

/// Runs until there is a reason to leave off, and writes down what that means.
async fn proceed(inner: &Arc<Inner>, mut task: Task, progress: ProgressHandle) -> Ended {
    let events = progress.events();
    let (halt, span) = (task.halt.clone(), task.span());
    let left = tokio::select! {
        // First, so that a turn that was stopped before it began asks no model.
        biased;
        () = halt.cancelled() => Ok(Left::Halted),
        left = AssertUnwindSafe(drive(inner, &mut task, &events)).catch_unwind().instrument(span) => left,
    };
    if matches!(left, Ok(Left::Failed(_) | Left::Halted) | Err(_)) {
        let id = task.accepted.id;
        runs::stop(inner, |_, run| run.parent_inbox_id == id && run.then == Then::Wait);
    }
    drop(events);
    // Also after a panic: what is said about it must not be followed by a late preview.
    progress.end().await;
    match left {
        Ok(Left::Answered) => {
            let finished = compaction::Finished::of(&task, inner.view(&task.agent));
            let ended = ending::store(inner, task, Ok(())).await;
            if let Some(finished) = finished.filter(|_| matches!(ended, Ended::Over(_))) {
                compaction::begin(inner, finished);
            }
            ended
        }
        Ok(Left::Failed(error)) => ending::store(inner, task, Err(error)).await,
        Ok(Left::Halted) => ending::stopped(inner, task).await,
        Ok(Left::ForOthers) => park(inner, task).await,
        Ok(Left::Stopping) => Ended::LeftBehind,
        Err(_) => broken(inner, task).await,
    }
}

/// The turn panicked.
pub(super) async fn broken(inner: &Arc<Inner>, mut task: Task) -> Ended {
    while let Err(error) = ending::after_panic(inner, &task.accepted, Some(&task)).await {
        if !worth_another_try(inner, &task.accepted, &error).await {
            return Ended::LeftBehind;
        }
    }
    task.end_mark(Outcome::Failed);
    Ended::Over(None)
}

async fn drive(inner: &Arc<Inner>, task: &mut Task, events: &mpsc::Sender<TurnEvent>) -> Left {
    let in_time = tokio::time::timeout(task.run.time_left(), steps(inner, task, events)).await;
    in_time.unwrap_or_else(|_| Left::Failed(TurnError::TooSlow(TurnLimits::of(&task.agent.limits).time)))
}

async fn steps(inner: &Arc<Inner>, task: &mut Task, events: &mpsc::Sender<TurnEvent>) -> Left {
    if let Err(error) = rounds::finish(inner, task).await {
        tracing::warn!(inbox.id = task.accepted.id, "a turn is left to the next start: {error}");
        return Left::Stopping;
    }
    if task.unfinished.is_some() {
        return Left::ForOthers;
    }
    std::mem::take(&mut task.untold).into_iter().for_each(|told| task.run.hear(told));
    if !task.run.said().is_empty() {
        // What was shown before adds up to the answer.
        drop(events.send(TurnEvent::Text(task.run.said().to_owned())).await);
    }
    loop {
        let round = match task.run.ask(&inner.parts.models, events).await {
            Ok(Step::Answered) => return Left::Answered,
            Ok(Step::Wants(round)) => round,
            Err(error) => return Left::Failed(error),
        };
        let today = match rounds::run(inner, task, round).await {
            Ok(today) => today,
            Err(error) => {
                tracing::warn!(inbox.id = task.accepted.id, "a turn is left to the next start: {error}");
                return Left::Stopping;
            }
        };
        budgets::warn_owners(inner, &task.agent, today).await;
        if let Some(over) = budgets::check_running(inner, task, &today) {
            return Left::Failed(TurnError::OverBudget(over));
        }
        if task.unfinished.is_some() || lane::may_steer(inner, &task.accepted.inbound.origin) {
            return Left::ForOthers;
        }
    }
}

/// Puts a task aside; its question goes into the transcript, so that what is answered meanwhile stands behind it.
async fn park(inner: &Arc<Inner>, mut task: Task) -> Ended {
    task.follow_moves(&inner.parts.aliases);
    let (accepted, said, is_asked) = (task.accepted.clone(), task.said.clone(), task.is_asked);
    let spot = Spot { conversation: task.conversation, part: Some(task.agent.uid) };
    let (used_once, started_at) = (std::mem::take(&mut task.used_once), task.started_at);
    let shared = Arc::new((accepted, said));
    let write = || {
        let shared = shared.clone();
        move |tx: &Transaction<'_>| {
            let ((accepted, said), now) = (shared.as_ref(), now_ms());
            let place = &accepted.inbound.origin.key;
            if !is_asked {
                transcript::touch(tx, place, now)?;
                transcript::append_question(tx, accepted, said, spot, now)?;
            }
            if used_once {
                // It was for this message, and not for those that are answered before it.
                pins::use_up(tx, place, started_at)?;
            }
            journal::park(tx, accepted.id)?;
            decisions::note(tx, place, accepted.id, Decision::Parked, now)
        }
    };
    if inner.parts.db.write_patiently(&inner.stop, Durability::Kill, write).await.is_err() {
        return Ended::LeftBehind;
    }
    if used_once {
        inner.parts.pins.changed(&task.accepted.inbound.origin.key);
    }
    task.is_asked = true;
    task.run.put_aside();
    Ended::Parked(Box::new(task))
}

impl Task {
    /// Everything that is logged on the way says for whom.
    fn span(&self) -> tracing::Span {
        let span = tracing::info_span!(
            "turn",
            agent.id = %self.agent.id,
            inbox.id = self.accepted.id,
            parent.agent = tracing::field::Empty,
            parent.session = tracing::field::Empty,
            run = tracing::field::Empty
        );
        if let Some(Errand::Run(known)) = &self.errand {
            span.record("parent.agent", known.parent_id.as_str());
            span.record("parent.session", known.child.parent.to_string());
            span.record("run", &known.child.run);
        }
        span
    }

    /// The group may have become another one while the agent was thinking.
    pub(super) fn follow_moves(&mut self, aliases: &Aliases) {
        aliases.follow(&mut self.accepted.inbound.origin);
        self.said.iter_mut().for_each(|said| aliases.follow(&mut said.origin));
        self.run.is_in(&self.accepted.inbound.origin.key);
    }

    pub(super) fn row(&self) -> journal::Task {
        journal::Task {
            inbox_id: self.accepted.id,
            members: self.accepted.all().map(|accepted| accepted.id).collect(),
            place: self.accepted.inbound.origin.key.clone(),
            agent: self.agent.uid,
            question: self.question(),
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
    pub(super) fn aside(&self) -> Aside {
        let reminder = history::reminder(&self.question(), self.rounds, self.run.said());
        Aside { agent: self.agent.clone(), reminder }
    }

    /// Somebody wants it stopped.
    pub(super) fn is_halted(&self) -> bool {
        self.halt.is_cancelled()
    }

    pub(super) fn end_mark(&mut self, outcome: Outcome) {
        if let Some(mark) = self.mark.take() {
            mark.end(outcome);
        }
    }
}
