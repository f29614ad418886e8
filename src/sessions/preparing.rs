//! Everything about a turn up to the first question to the model: what it is about, who answers, and when it may begin.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::decisions::{self, Decision};
use super::errands::{self, Errand};
use super::inbox::{self, Accepted};
use super::journal::Recorded;
use super::parts::View;
use super::question::Question;
use super::request::{Asked, Prepared, request, show};
use super::running::{Due, Task};
use super::slots::Slot;
use super::starting::{self, Choice, InLine};
use super::unheard::PutAside;
use super::{Arrived, Inner, budgets, journal, question, runs};
use crate::access::Standing;
use crate::agents::Agent;
use crate::clock::now_ms;
use crate::config::ModelRef;
use crate::delivery::{ProgressHandle, Underway};
use crate::domain::{AgentUid, Destination, TurnEvent};
use crate::storage::StoreError;
use crate::turn::Run;

/// What came of preparing a turn.
pub(super) enum Begun {
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
pub(super) async fn prepare(inner: &Arc<Inner>, due: &Due) -> Result<Begun, StoreError> {
    let subject = subject(inner, due).await?;
    let (choice, slot) = match start(inner, due, &subject).await? {
        Start::Now(choice, slot) => (choice, slot),
        Start::Not(begun) => return Ok(begun),
    };
    let others_wrote = due.arrived == Arrived::Before && others_wrote(inner, &subject.accepted).await;
    // Begun before the files are fetched, which may take a while.
    let progress = progress(inner, &subject.accepted, &choice.agent, others_wrote);
    let mut task = task(inner, due, subject, choice, &progress.events()).await?;
    task.others_wrote = others_wrote;
    Ok(Begun::Ready { task: Box::new(task), progress, slot })
}

/// What a turn is about.
struct Subject {
    accepted: Accepted,
    /// Set when it is not a person who asks.
    errand: Option<Errand>,
    /// What an earlier process has done about it.
    recorded: Option<Recorded>,
}

impl Subject {
    /// The agent that has begun with it.
    fn began_with(&self) -> Option<AgentUid> {
        self.recorded.as_ref().map(|recorded| recorded.task.agent)
    }

    /// What this agent is shown of the transcript has the question already. Asked of another, it may not, and is asked anew.
    fn is_asked(&self, view: View) -> bool {
        self.recorded.as_ref().is_some_and(|recorded| recorded.is_asked && view.shows(Some(recorded.task.agent)))
    }

    fn put_aside(&self) -> Option<PutAside> {
        let recorded = self.recorded.as_ref().filter(|recorded| recorded.is_asked)?;
        Some(PutAside { begun_at: recorded.task.started_at, standing: self.accepted.standing })
    }
}

async fn subject(inner: &Inner, due: &Due) -> Result<Subject, StoreError> {
    let recorded = recorded(inner, due).await?;
    let mut accepted = recorded.as_ref().map_or_else(|| due.accepted.clone(), |recorded| with_members(&due.accepted, recorded));
    let errand = errands::errand(inner, &accepted.inbound).await?;
    if errand.is_none() && accepted.inbound.besides.internal.is_some() {
        // Nobody knows any more on whose behalf.
        accepted.standing = Standing::Stranger;
    }
    Ok(Subject { accepted, errand, recorded })
}

/// Whether the turn begins.
enum Start {
    Now(Choice, Option<Slot>),
    Not(Begun),
}

/// Waits until the turn may begin, with whoever answers by then.
async fn start(inner: &Inner, due: &Due, subject: &Subject) -> Result<Start, StoreError> {
    let Subject { accepted, errand, recorded } = subject;
    let began_with = subject.began_with();
    let (choice, in_line) = match errand {
        Some(errand) => send_on(inner, accepted, errand, &due.halt).await?,
        None => starting::choose(inner, accepted, began_with, &due.halt).await?,
    };
    let slot = match in_line {
        InLine::Next(slot) => Some(slot),
        InLine::Halted | InLine::NoNeed => None,
        InLine::Stopping => return Ok(Start::Not(Begun::Stopping)),
    };
    let agent = &choice.agent;
    // Looked at when its turn has come, so that what ran before it counts. What was begun is gone on with.
    let is_new = recorded.is_none() && slot.is_some() && errand.is_none();
    if is_new && let Some(over) = budgets::check(inner, accepted, agent).await? {
        budgets::refuse(inner, accepted, agent, over).await?;
        return Ok(Start::Not(Begun::Refused));
    }
    if began_with.is_some_and(|uid| uid != agent.uid) {
        let (id, uid) = (accepted.id, agent.uid);
        inner.parts.db.write(move |tx| journal::hand_over(tx, id, uid)).await?;
    }
    Ok(Start::Now(choice, slot))
}

/// The turn as far as it has come, which is nowhere unless an earlier process had begun with it.
async fn task(
    inner: &Arc<Inner>,
    due: &Due,
    subject: Subject,
    choice: Choice,
    events: &mpsc::Sender<TurnEvent>,
) -> Result<Task, StoreError> {
    let Choice { agent, route, chosen, used_once } = choice;
    let lineup = agent.brain.lineup(&chosen);
    let Question { said, images } = question(inner, &subject, &agent, &lineup).await;
    let view = inner.view(&agent);
    let (is_asked, put_aside) = (subject.is_asked(view), subject.put_aside());
    let Subject { accepted, errand, recorded } = subject;
    let aside: Vec<String> = due.aside.iter().filter_map(|aside| aside.told_to(&agent, view)).collect();
    let asked = Asked { said: &said, is_asked, put_aside, aside: &aside, errand: errand.as_ref(), halt: &due.halt, events };
    let Prepared { conversation, mut request, fill, told } = request(inner, &accepted, &agent, lineup, asked).await?;
    show(&mut request.messages, images);
    let mut run = Run::new(request);
    if let Some(Errand::Run(known)) = &errand {
        run.limit_steps(known.child.max_steps);
    }
    let mut task = Task {
        accepted,
        said,
        agent,
        route,
        chosen,
        used_once,
        started_at: recorded.as_ref().map_or_else(now_ms, |recorded| recorded.task.started_at),
        conversation,
        run,
        fill,
        rounds: 0,
        // What wakes an agent is nobody's words.
        is_asked: is_asked || matches!(errand, Some(Errand::Report(_))),
        is_steering: !due.aside.is_empty(),
        broken_tools: Vec::new(),
        effects: Vec::new(),
        errand,
        told,
        unfinished: None,
        others_wrote: false,
        untold: Vec::new(),
        mark: None,
        halt: due.halt.clone(),
    };
    if let Some(recorded) = recorded.filter(|recorded| recorded.task.agent == task.agent.uid) {
        task.replay(recorded.rounds);
        task.charge_runs(inner).await?;
    }
    Ok(task)
}

/// What the agent is asked, in words.
async fn question(inner: &Inner, subject: &Subject, agent: &Agent, lineup: &[ModelRef]) -> Question {
    let Subject { accepted, errand, recorded } = subject;
    let plain = |text| Question { said: vec![question::plain(&accepted.inbound, text)], images: Vec::new() };
    match (recorded, errand) {
        (Some(recorded), _) => plain(recorded.task.question.clone()),
        (None, Some(Errand::Report(known))) => plain(runs::to_report(known)),
        (None, _) => what_people_ask(inner, accepted, agent, lineup).await,
    }
}

async fn what_people_ask(inner: &Inner, accepted: &Accepted, agent: &Agent, lineup: &[ModelRef]) -> Question {
    let someone_sees = lineup.iter().any(|model| inner.parts.models.sees(model));
    question::in_words(inner, accepted, agent, someone_sees).await
}

/// What an earlier process wrote down about this turn.
async fn recorded(inner: &Inner, due: &Due) -> Result<Option<Recorded>, StoreError> {
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
fn with_members(accepted: &Accepted, recorded: &Recorded) -> Accepted {
    let others = recorded.task.members.iter().filter(|id| **id != accepted.id);
    let joined = others.map(|id| Accepted::new(*id, accepted.inbound.clone())).collect();
    Accepted { joined, backlog: Vec::new(), ..accepted.clone() }
}

pub(super) fn progress(inner: &Arc<Inner>, accepted: &Accepted, agent: &Agent, others_wrote: bool) -> ProgressHandle {
    inner.parts.delivery.progress(Underway {
        to: Destination::of(&accepted.inbound),
        speaker: agent.label(),
        inbox_id: accepted.id,
        question: question::to_quote(accepted, others_wrote),
    })
}

/// Whether the talk had gone on when an earlier process left the message. A store that fails now must not cost the answer.
async fn others_wrote(inner: &Inner, accepted: &Accepted) -> bool {
    let accepted = accepted.clone();
    let asked = inner.parts.db.read(move |connection| inbox::others_wrote(connection, &accepted)).await;
    asked.inspect_err(|error| tracing::warn!("an answer may go out without a quote: {error}")).unwrap_or(false)
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
