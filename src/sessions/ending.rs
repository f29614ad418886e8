//! The end of a turn, however it ended: what people are sent, and what is written in one transaction: transcript, turn, closed
//! inbox row, outbox rows.

mod page;
mod words;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rusqlite::Transaction;

use super::children::{End, State};
use super::errands::Errand;
use super::inbox::{self, Accepted, Closing};
use super::running::{self, Ended, Exchange, Task};
use super::transcript::{self, Spot};
use super::{Inner, Parts, budgets, journal, lane, runs};
use crate::channels::{Outcome, Question, Text};
use crate::clock::now_ms;
use crate::delivery::{Kind, outbox, reservation, streams};
use crate::domain::{Destination, Internal, OutgoingFile};
use crate::storage::{Durability, StoreError};
use crate::tools::Effect;
use crate::turn::{Charge, TurnError};

use page::{Page, Written, write};
use words::{SAID_NOTHING, STOPPED, apology, panicked, sent, tools_broke};

/// How the turn of a stopped task came out.
const STOPPED_ON_REQUEST: &str = "stopped";

/// How a turn came out.
struct Ending {
    /// What the agent said, if it came that far.
    said: Option<String>,
    /// What the person gets to read.
    reply: String,
    outcome: String,
    closing: Closing,
}

/// Writes the end of the turn and sends what there is to send.
pub(super) async fn store(inner: &Arc<Inner>, mut task: Task, result: Result<(), TurnError>) -> Ended {
    if let Err(error) = &result {
        tracing::warn!(agent.id = %task.agent.id, session = %task.accepted.inbound.origin.key, "the turn failed: {error}");
    }
    let parts = &inner.parts;
    let ending = Ending::of(&task, result);
    task.follow_moves(&parts.aliases);
    let others_wrote = others_wrote(inner, &task.accepted).await;
    let drafting = || Rows { answer: draft(parts, &task, &ending, others_wrote), effects: draft_effects(parts, &task) };
    // An answer that cannot be put into the platform's words must not end the lane, and again with every start.
    let Ok(rows) = catch_unwind(AssertUnwindSafe(drafting)) else { return running::broken(inner, task).await };
    let outcome = if ending.said.is_some() { Outcome::Answered } else { Outcome::Failed };
    let (by, standing) = (task.agent.clone(), task.accepted.standing);
    let exchange = Exchange { by, standing, question: task.question(), answer: ending.reply.clone() };
    let Some(mut task) = close(inner, task, ending, rows).await else { return Ended::LeftBehind };
    if outcome == Outcome::Answered {
        parts.bootstrapped.insert(task.agent.uid);
    }
    task.end_mark(outcome);
    Ended::Over(Some(exchange))
}

/// Ends a task because somebody asked for it: what is on the screen of it stays there, and nothing new is said.
pub(super) async fn stopped(inner: &Arc<Inner>, mut task: Task) -> Ended {
    let parts = &inner.parts;
    task.follow_moves(&parts.aliases);
    let id = task.accepted.id;
    let shown = parts.db.read(move |connection| streams::of(connection, id)).await;
    let is_shown = shown.is_ok_and(|messages| !messages.is_empty());
    let said = Some(task.run.shown()).filter(|said| !said.is_empty());
    let reply = said.as_deref().map_or_else(|| STOPPED.to_owned(), |said| format!("{said}\n\n{STOPPED}"));
    let ending = Ending { said, reply, outcome: STOPPED_ON_REQUEST.into(), closing: Closing::Done };
    let drafting = || if is_shown { draft(parts, &task, &ending, false) } else { Vec::new() };
    let answer = catch_unwind(AssertUnwindSafe(drafting)).unwrap_or_default();
    let rows = Rows { answer, effects: Vec::new() };
    let Some(mut task) = close(inner, task, ending, rows).await else { return Ended::LeftBehind };
    task.end_mark(Outcome::Answered);
    Ended::Over(None)
}

/// None when the process stops before it is written.
async fn close(inner: &Arc<Inner>, task: Task, ending: Ending, rows: Rows) -> Option<Task> {
    let place = Destination::of(&task.accepted.inbound).place().clone();
    let used_once = task.used_once;
    let mut reservation = if rows.answer.is_empty() { None } else { inner.parts.delivery.reserve(&place) };
    let mut is_again = false;
    let all = Arc::new((Page::of(inner, &task), ending, rows));
    let write = || {
        let all = all.clone();
        if std::mem::replace(&mut is_again, true) {
            // The store may fail for long, and nobody else sends here as long as this is held.
            reservation = None;
        }
        let claim = reservation.is_some().then(|| place.clone());
        move |tx: &Transaction<'_>| {
            let written = write(tx, &all.0, &all.1, &all.2, now_ms())?;
            let first = claim.map(|place| reservation::claim(tx, &place, now_ms())).transpose()?;
            Ok((written, first))
        }
    };
    let written = inner.parts.db.write_patiently(&inner.stop, Durability::PowerCut, write).await;
    let (Written { count, today, report }, first) =
        written.inspect_err(|error| tracing::warn!("a turn's end is left to the next start: {error}")).ok()?;
    if let Some(Errand::Run(known)) = &task.errand {
        runs::over(inner, task.accepted.id, &known.child.run, report);
    }
    if used_once {
        inner.parts.pins.changed(&place);
    }
    match reservation.zip(first) {
        Some((reservation, first)) => reservation.submit(count, first),
        None => inner.parts.delivery.submit(&place, count),
    }
    budgets::warn_owners(inner, &task.agent, today).await;
    Some(task)
}

fn draft(parts: &Parts, task: &Task, ending: &Ending, others_wrote: bool) -> Vec<outbox::Draft> {
    let to = Destination::of(&task.accepted.inbound);
    if !runs::is_delivered(true, to.place()) {
        return Vec::new();
    }
    let label = task.agent.label();
    // Of several messages the last is the one people still have before them.
    let asked = task.accepted.messages().last().unwrap_or(&task.accepted);
    let question = Question { message: &asked.inbound.message, others_wrote };
    let is_written = asked.inbound.besides.internal.is_none();
    let text = Text { answers: is_written.then_some(question), ..Text::plain(&ending.reply) };
    let mut rows = match ending.said {
        Some(_) => parts.delivery.draft(&to, Kind::Final, &Text { speaker: Some(&label), ..text }),
        None => parts.delivery.draft(&to, Kind::Error, &text),
    };
    if !task.broken_tools.is_empty() {
        let told = tools_broke(&task.broken_tools, task.accepted.id);
        rows.extend(parts.delivery.draft(&to, Kind::Error, &Text::plain(&told)));
    }
    rows
}

/// What is sent: the answer, then what tools wanted sent.
struct Rows {
    answer: Vec<outbox::Draft>,
    effects: Vec<outbox::Draft>,
}

fn draft_effects(parts: &Parts, task: &Task) -> Vec<outbox::Draft> {
    let to = Destination::of(&task.accepted.inbound);
    files(&task.effects).flat_map(|file| parts.delivery.draft_file(&to, file)).collect()
}

fn files(effects: &[Effect]) -> impl Iterator<Item = &OutgoingFile> {
    effects.iter().filter_map(|effect| if let Effect::SendFile(file) = effect { Some(file) } else { None })
}

/// Whether the answer comes when the talk has gone on. A store that fails now must not cost the answer.
async fn others_wrote(inner: &Inner, accepted: &Accepted) -> bool {
    let place = &accepted.inbound.origin.key;
    if place.is_private() || place.is_shared() {
        return lane::others_wait(inner, &accepted.inbound.origin);
    }
    // In a group whose members have a conversation each, the others are in lanes of their own.
    let accepted = accepted.clone();
    let asked = inner.parts.db.read(move |connection| inbox::others_wrote(connection, &accepted)).await;
    asked.inspect_err(|error| tracing::warn!("an answer goes out without a quote: {error}")).unwrap_or(false)
}

impl Ending {
    fn of(task: &Task, result: Result<(), TurnError>) -> Self {
        let said = task.run.said();
        match result {
            Ok(()) if !said.trim().is_empty() => {
                Ending { said: Some(said.to_owned()), reply: said.to_owned(), outcome: "answered".into(), closing: Closing::Done }
            }
            // The file is the answer.
            Ok(()) if !task.effects.is_empty() => {
                let said = sent(&task.effects);
                Ending { said: Some(said.clone()), reply: said, outcome: "answered".into(), closing: Closing::Done }
            }
            Ok(()) => Ending { said: None, reply: SAID_NOTHING.into(), outcome: "said nothing".into(), closing: Closing::Failed },
            Err(error) => Ending { said: None, reply: apology(&error), outcome: error.to_string(), closing: Closing::Failed },
        }
    }
}

/// Nothing of a turn that panicked is kept but the question, the fact, and what it has cost.
pub(super) async fn after_panic(inner: &Arc<Inner>, accepted: &Accepted, task: Option<&Task>) -> Result<(), StoreError> {
    let is_asked = task.is_some_and(|task| task.is_asked);
    let part = task.map(|task| task.agent.uid);
    let page = task.map(|task| Page::of(inner, task));
    let parts = &inner.parts;
    tracing::error!(session = %accepted.inbound.origin.key, inbox.id = accepted.id, "a turn panicked");
    let destination = Destination::of(&accepted.inbound);
    let question = Question { message: &accepted.inbound.message, others_wrote: others_wrote(inner, accepted).await };
    let text = panicked(accepted.id);
    let is_delivered = runs::is_delivered(true, destination.place());
    let text_for_people = Text { answers: Some(question), ..Text::plain(&text) };
    let rows = if is_delivered { parts.delivery.draft(&destination, Kind::Error, &text_for_people) } else { Vec::new() };
    let run = match &accepted.inbound.besides.internal {
        Some(Internal::Child { run }) => Some(run.clone()),
        _ => None,
    };
    let (id, ended, accepted) = (accepted.id, run.clone(), accepted.clone());
    let close = move |tx: &Transaction<'_>| {
        let (now, place) = (now_ms(), &accepted.inbound.origin.key);
        transcript::touch(tx, place, now)?;
        let spot = Spot { conversation: transcript::conversation(tx, place)?, part };
        if !is_asked {
            accepted.all().try_for_each(|said| transcript::append_person(tx, said, spot, now).map(drop))?;
        }
        inbox::close_all(tx, &accepted, Closing::Failed, "panicked", now)?;
        match page {
            Some(page) => page.record(tx, "panicked", now).map(drop)?,
            // Nothing says how far it had come before it was prepared again.
            None => journal::forget(tx, accepted.id)?,
        }
        let end = End { state: State::Failed, result: text.clone(), used: Charge::default() };
        let report = run.map_or(Ok(None), |run| runs::write_end(tx, &run, accepted.standing, &end, now))?;
        Ok((outbox::insert_answer(tx, &rows, accepted.id, now)?, report))
    };
    let (count, report) = parts.db.write(close).await?;
    if let Some(run) = ended {
        runs::over(inner, id, &run, report);
    }
    parts.delivery.submit(destination.place(), count);
    Ok(())
}
