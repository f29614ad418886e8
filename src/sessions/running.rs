//! One message's turn, from the lane to its end: who answers, with what, and in which steps.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use rusqlite::Transaction;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::compaction::{self, Fill};
use super::decisions::{self, Decision};
use super::errands::{self, Errand};
use super::inbox::Accepted;
use super::journal::Recall;
use super::question::Question;
use super::slots::Slot;
use super::starting::{self, Choice, InLine};
use super::transcript::{self, Conversation, History};
use super::{Arrived, Inner, budgets, children, ending, journal, lane, notes, question, rounds, runs};
use crate::access::Standing;
use crate::agents::{Agent, Chosen, Identity};
use crate::channels::Outcome;
use crate::clock::now_ms;
use crate::config::ModelRef;
use crate::delivery::{Mark, ProgressHandle, Underway};
use crate::domain::{Destination, Inbound, SessionKey, TurnEvent};
use crate::models::{Image, Lineup, ModelMessage, Models, Usage};
use crate::routing::Route;
use crate::signing::Signer;
use crate::storage::{Durability, StoreError};
use crate::tools::{Effect, Kin, Scope, Then};
use crate::turn::history::{self, Said};
use crate::turn::{Round, Run, Step, TurnError, TurnLimits, TurnRequest, prompt};

/// The pause before a turn is begun again when the store could not be read.
const STORE_BACKOFF: Duration = Duration::from_secs(1);

/// A message whose turn has come.
pub(super) struct Due {
    pub(super) accepted: Accepted,
    pub(super) arrived: Arrived,
    /// Cancelled when somebody wants it stopped.
    pub(super) halt: CancellationToken,
    /// What the agent was put aside from to answer this.
    pub(super) aside: Vec<String>,
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
    /// Rounds of tools so far.
    pub(super) rounds: u32,
    /// What the ledger has of it already.
    pub(super) counted: Usage,
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
    /// A round of which an earlier process did not see the end.
    pub(super) unfinished: Option<(Round, Vec<Recall>)>,
    mark: Option<Mark>,
    halt: CancellationToken,
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
    pub(super) question: String,
    pub(super) answer: String,
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
    task.run.take_up(history::meanwhile(meanwhile.iter().map(|exchange| (&*exchange.question, &*exchange.answer))));
    let progress = progress(inner, &task.accepted, &task.agent);
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

/// What came of preparing a turn.
enum Begun {
    /// Nobody may answer it now, and the place knows.
    Refused,
    Ready {
        task: Box<Task>,
        progress: ProgressHandle,
        /// Held while it runs. One that was stopped while it waited has none.
        slot: Option<Slot>,
    },
    /// The process stops.
    Stopping,
}

/// Everything up to the first question to the model.
async fn prepare(inner: &Arc<Inner>, due: &Due) -> Result<Begun, StoreError> {
    let recorded = recorded(inner, due).await?;
    let mut accepted = recorded.as_ref().map_or_else(|| due.accepted.clone(), |recorded| with_members(&due.accepted, recorded));
    let errand = errands::errand(inner, &accepted.inbound).await?;
    if errand.is_none() && accepted.inbound.besides.internal.is_some() {
        // Nobody knows any more on whose behalf.
        accepted.standing = Standing::Stranger;
    }
    let (choice, in_line) = match &errand {
        Some(errand) => send_on(inner, &accepted, errand, &due.halt).await?,
        None => {
            let began_with = recorded.as_ref().map(|recorded| recorded.task.agent);
            starting::choose(inner, &accepted, began_with, &due.halt).await?
        }
    };
    let Choice { agent, route, chosen, used_once } = choice;
    let slot = match in_line {
        InLine::Next(slot) => Some(slot),
        InLine::Halted | InLine::NoNeed => None,
        InLine::Stopping => return Ok(Begun::Stopping),
    };
    // Looked at when its turn has come, so that what ran before it counts. What was begun is gone on with.
    let is_new = recorded.is_none() && slot.is_some() && errand.is_none();
    if is_new && let Some(over) = budgets::check(inner, &accepted, &agent).await? {
        budgets::refuse(inner, &accepted, &agent, over).await?;
        return Ok(Begun::Refused);
    }
    let lineup = agent.brain.lineup(&chosen);
    // Begun before the files are fetched, which may take a while.
    let progress = progress(inner, &accepted, &agent);
    let plain = |text| Question { said: vec![question::plain(&accepted.inbound, text)], images: Vec::new() };
    let Question { said, images } = match (&recorded, &errand) {
        (Some(recorded), _) => plain(recorded.task.question.clone()),
        (None, Some(Errand::Report(known))) => plain(runs::to_report(known)),
        (None, _) => {
            let someone_sees = lineup.iter().any(|model| inner.parts.models.sees(model));
            question::in_words(inner, &accepted, &agent, someone_sees).await
        }
    };
    let is_asked = recorded.as_ref().is_some_and(|recorded| recorded.is_asked);
    let asked = Asked { said: &said, is_asked, aside: &due.aside, errand: errand.as_ref() };
    let Prepared { conversation, mut request, fill, told } = request(inner, &accepted, &agent, lineup, asked).await?;
    show(&mut request.messages, images);
    // What wakes an agent is nobody's words.
    let is_asked = is_asked || matches!(errand, Some(Errand::Report(_)));
    let mut task = Task {
        accepted,
        said,
        agent,
        route,
        chosen,
        used_once,
        started_at: recorded.as_ref().map_or_else(now_ms, |recorded| recorded.task.started_at),
        conversation,
        run: Run::new(request),
        fill,
        rounds: 0,
        counted: Usage::default(),
        is_asked,
        is_steering: !due.aside.is_empty(),
        broken_tools: Vec::new(),
        effects: Vec::new(),
        errand,
        told,
        unfinished: None,
        mark: None,
        halt: due.halt.clone(),
    };
    if let Some(Errand::Run(known)) = &task.errand {
        task.run.limit_steps(known.child.max_steps);
    }
    if let Some(recorded) = recorded.filter(|recorded| recorded.task.agent == task.agent.uid) {
        task.replay(recorded.rounds);
        task.charge_runs(inner).await?;
    }
    Ok(Begun::Ready { task: Box::new(task), progress, slot })
}

/// What an earlier process wrote down about this turn.
async fn recorded(inner: &Inner, due: &Due) -> Result<Option<journal::Recorded>, StoreError> {
    if due.arrived == Arrived::Now {
        return Ok(None);
    }
    let (id, place) = (due.accepted.id, due.accepted.inbound.origin.key.clone());
    let recorded = inner.parts.db.read(move |connection| journal::recorded(connection, id)).await?;
    if recorded.is_some() {
        inner.parts.db.write(move |tx| decisions::note(tx, &place, id, Decision::Recovered, now_ms())).await?;
    }
    Ok(recorded)
}

/// The rows that were answered with it were kept from having turns of their own.
fn with_members(accepted: &Accepted, recorded: &journal::Recorded) -> Accepted {
    let others = recorded.task.members.iter().filter(|id| **id != accepted.id);
    let joined = others.map(|id| Accepted::new(*id, accepted.inbound.clone())).collect();
    Accepted { joined, backlog: Vec::new(), ..accepted.clone() }
}

fn progress(inner: &Arc<Inner>, accepted: &Accepted, agent: &Agent) -> ProgressHandle {
    let inbound = &accepted.inbound;
    inner.parts.delivery.progress(Underway {
        to: Destination::of(inbound),
        speaker: agent.label(),
        inbox_id: accepted.id,
        question: inbound.message.clone(),
        others_wrote: lane::others_wait(inner, &inbound.origin.key),
    })
}

/// What a turn is asked, and how that stands to what was said before.
pub(super) struct Asked<'a> {
    pub(super) said: &'a [Inbound],
    is_asked: bool,
    pub(super) aside: &'a [String],
    pub(super) errand: Option<&'a Errand>,
}

async fn request(
    inner: &Inner,
    accepted: &Accepted,
    agent: &Arc<Agent>,
    models: Vec<ModelRef>,
    asked: Asked<'_>,
) -> Result<Prepared, StoreError> {
    let parts = &inner.parts;
    let origin = &accepted.inbound.origin;
    let (place, uid) = (origin.key.clone(), agent.uid);
    let history = parts
        .db
        .read(move |connection| Ok((transcript::history(connection, &place)?, children::unseen(connection, &place, uid)?)));
    let bootstrap = !parts.bootstrapped.contains(&agent.uid);
    let words = asked.said.iter().map(Inbound::readable).collect::<Vec<_>>().join("\n");
    let recalled = async { Ok(recall(inner, agent, &words).await) };
    let ((history, unseen), system, recalled) = tokio::try_join!(history, system_prompt(agent.clone(), bootstrap), recalled)?;
    let (aside, parent) = (asked.ephemeral(&unseen), asked.parent(inner));
    let is_by_peer = parent.as_ref().is_some_and(|parent| parent.kin == Kin::Peer);
    let named = origin.key.is_shared() || is_by_peer;
    let current: Vec<Said> = asked.said.iter().map(|inbound| asked.speaker_of(inbound)).collect();
    let current = history::Current { said: &current, is_interrupted: asked.is_asked, aside: &aside };
    let History { conversation, summary, messages: before } = history;
    let before: Vec<Said> = before.into_iter().map(|message| message.said).collect();
    let room = history::room(smallest_window(&parts.models, &models), &system);
    let fill = Fill { tokens: before.iter().map(history::cost).sum(), messages: before.len(), room };
    let mut messages = history::for_model(&before, &current, &agent.id, named, room);
    messages = history::reminded(messages, recalled);
    messages.splice(0..0, summary.map(|summary| history::summed_up(&summary.text)));
    let lineup = Lineup { models, settings: agent.brain.settings, cache_key: cache_key(agent, &origin.key) };
    let tools = parts.tools.view(agent, accepted.standing).within(parent.clone());
    let (place, person, standing) = (origin.key.clone(), origin.person.clone(), accepted.standing);
    let scope = Scope { agent: agent.clone(), place, person, standing, parent };
    let request = TurnRequest { lineup, system, messages, tools, scope, limits: TurnLimits::of(&agent.limits) };
    let told = unseen.into_iter().map(|known| known.child.run).collect();
    Ok(Prepared { conversation, request, fill, told })
}

/// What the model is asked, and how much of the conversation that is.
struct Prepared {
    conversation: Conversation,
    request: TurnRequest,
    fill: Fill,
    /// Runs that the agent is told about.
    told: Vec<String>,
}

/// Whoever answers in the end must be able to read it all.
fn smallest_window(models: &Models, lineup: &[ModelRef]) -> usize {
    let smallest = lineup.iter().map(|model| models.window(model)).min().unwrap_or_default();
    usize::try_from(smallest).unwrap_or(usize::MAX)
}

/// Pictures belong to what is to be answered, which comes last.
fn show(messages: &mut [ModelMessage], images: Vec<Image>) {
    if let Some(ModelMessage::User(content)) = messages.last_mut() {
        content.images = images;
    }
}

/// Tells a provider nothing about the place.
fn cache_key(agent: &Agent, place: &SessionKey) -> String {
    Signer::new(agent.uid.0.as_bytes()).tag(&place.to_string())
}

/// An agent that cannot be reminded answers without.
async fn recall(inner: &Inner, agent: &Arc<Agent>, text: &str) -> Option<String> {
    let recalled = inner.parts.memories.of(agent)?.recall(text).await;
    recalled.inspect_err(|error| tracing::warn!(agent.id = %agent.id, "nothing is recalled: {error}")).ok().flatten()
}

/// The files are read anew for every turn, so that an edit counts from the next message on.
async fn system_prompt(agent: Arc<Agent>, bootstrap: bool) -> Result<String, StoreError> {
    let read = tokio::task::spawn_blocking(move || prompt::assemble(&agent, &Identity::load(&agent, bootstrap)));
    read.await.map_err(|error| match error.try_into_panic() {
        // The turn's own panic, to be told in the chat: tried again like a failing store, it would panic for ever.
        Ok(panic) => resume_unwind(panic),
        Err(error) => StoreError::Failed(format!("reading identity files: {error}")),
    })
}

/// Why a turn left off.
enum Left {
    Answered,
    /// People wrote meanwhile, and a round has just ended.
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
            let finished = compaction::Finished::of(&task);
            let ended = ending::store(inner, task, Ok(())).await;
            compaction::consider(inner, &finished).await;
            ended
        }
        Ok(Left::Failed(error)) => ending::store(inner, task, Err(error)).await,
        Ok(Left::Halted) => ending::stopped(inner, task).await,
        Ok(Left::ForOthers) => park(inner, task).await,
        Ok(Left::Stopping) => Ended::LeftBehind,
        Err(_) => {
            let told = ending::after_panic(inner, &task.accepted, Some(&task)).await;
            task.end_mark(Outcome::Failed);
            told.map_or(Ended::LeftBehind, |()| Ended::Over(None))
        }
    }
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
        if lane::may_steer(inner, &task.accepted.inbound.origin.key) {
            return Left::ForOthers;
        }
    }
}

/// An errand has its agent, wherever its place belongs by now. One that is waited for runs in the slot of whoever waits.
async fn send_on(
    inner: &Inner,
    accepted: &Accepted,
    errand: &Errand,
    halt: &CancellationToken,
) -> Result<(Choice, InLine), StoreError> {
    let (agent, route) = errands::send_on(inner, accepted, errand);
    let chosen = agent.brain.choose(inner.overrides.get(&accepted.inbound.origin.key).await?.as_ref());
    let in_line = if errand.is_waited_for() { InLine::NoNeed } else { starting::wait(inner, agent.uid, halt).await };
    Ok((Choice { agent, route, chosen, used_once: false }, in_line))
}

/// Puts a task aside; its question goes into the transcript, so that what is answered meanwhile stands behind it.
async fn park(inner: &Arc<Inner>, mut task: Task) -> Ended {
    let (accepted, said, is_asked, conversation) = (task.accepted.clone(), task.said.clone(), task.is_asked, task.conversation);
    let shared = Arc::new((accepted, said));
    let write = || {
        let shared = shared.clone();
        move |tx: &Transaction<'_>| {
            let ((accepted, said), now) = (shared.as_ref(), now_ms());
            let place = &accepted.inbound.origin.key;
            if !is_asked {
                transcript::touch(tx, place, now)?;
                said.iter().try_for_each(|said| transcript::append_person(tx, said, conversation, now))?;
            }
            journal::park(tx, accepted.id)?;
            decisions::note(tx, place, accepted.id, Decision::Parked, now)
        }
    };
    if inner.parts.db.write_patiently(&inner.stop, Durability::Kill, write).await.is_err() {
        return Ended::LeftBehind;
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

    /// What an agent that is interrupted is reminded of.
    pub(super) fn reminder(&self) -> String {
        history::reminder(&self.question(), self.rounds, self.run.said())
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
