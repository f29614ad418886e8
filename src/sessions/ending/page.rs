//! The one transaction in which a turn ends.

use rusqlite::Transaction;

use super::super::children::{self, End, State};
use super::super::decisions::{self, Decision};
use super::super::errands::Errand;
use super::super::inbox::{self, Accepted};
use super::super::ledger::{self, Spending, Today};
use super::super::running::Task;
use super::super::transcript::{self, Conversation, Spot};
use super::super::usage::{self, TurnRow};
use super::super::{Inner, budgets, journal, runs};
use super::words::noted_cut;
use super::{Ending, Rows, STOPPED_ON_REQUEST};
use crate::agents::roster;
use crate::delivery::outbox;
use crate::domain::Inbound;
use crate::routing::pins;
use crate::turn::Charge;

/// What the end of a turn is written from.
pub(super) struct Page {
    accepted: Accepted,
    said: Vec<Inbound>,
    conversation: Conversation,
    is_asked: bool,
    is_steering: bool,
    used_once: bool,
    has_rounds: bool,
    turn: TurnRow,
    /// All of it. The ledger has the part of the rounds already.
    spending: Spending,
    /// The run that this was.
    run: Option<String>,
    /// Runs that the agent was told about.
    told: Vec<String>,
}

impl Page {
    pub(super) fn of(inner: &Inner, task: &Task) -> Self {
        let turn = TurnRow {
            inbox_id: task.accepted.id,
            place: task.accepted.inbound.origin.key.clone(),
            agent: task.agent.uid,
            model: task.model().to_string(),
            route: task.route.rule.to_string(),
            started_at: task.started_at,
            outcome: String::new(),
            steps: task.run.steps(),
            usage: task.usage(),
        };
        Page {
            accepted: task.accepted.clone(),
            said: task.said.clone(),
            conversation: task.conversation,
            is_asked: task.is_asked,
            is_steering: task.is_steering,
            used_once: task.used_once,
            has_rounds: task.rounds > 0,
            turn,
            spending: Spending { turns: 1, ..budgets::spending(inner, task, task.usage()) },
            run: run_of(task),
            told: task.told.clone(),
        }
    }
}

/// What came of writing down the end of a turn.
pub(super) struct Written {
    /// Rows that are to be sent.
    pub(super) count: usize,
    pub(super) today: Today,
    /// What wakes a parent.
    pub(super) report: Option<Accepted>,
}

pub(super) fn write(tx: &Transaction<'_>, page: &Page, ending: &Ending, rows: &Rows, now: i64) -> rusqlite::Result<Written> {
    let Page { accepted, conversation, turn, .. } = page;
    let place = &accepted.inbound.origin.key;
    transcript::touch(tx, place, now)?;
    if !page.is_asked {
        let spot = Spot { conversation: *conversation, part: Some(turn.agent) };
        transcript::append_question(tx, accepted, &page.said, spot, now)?;
    }
    if let Some(said) = &ending.said {
        match page.is_asked {
            false => transcript::append_agent(tx, place, *conversation, turn.agent, said, now)?,
            true => {
                let answer = (said.as_str(), &accepted.inbound.origin.person);
                transcript::append_late_answer(tx, place, *conversation, turn.agent, answer, now)?;
            }
        }
        roster::mark_bootstrapped(tx, turn.agent, now)?;
    }
    if let Some(cut) = ending.cut {
        transcript::append_mark(tx, place, Some(turn.agent), &noted_cut(cut), now)?;
    }
    if ending.outcome == STOPPED_ON_REQUEST {
        transcript::append_mark(tx, place, Some(turn.agent), "stopped before it was answered", now)?;
    }
    if page.used_once {
        pins::use_up(tx, place, turn.started_at)?;
    }
    note_decisions(tx, page, now)?;
    inbox::close_all(tx, accepted, ending.closing, &ending.outcome, now)?;
    let today = page.record(tx, &ending.outcome, now)?;
    children::seen(tx, &page.told)?;
    let report = match &page.run {
        Some(run) => runs::write_end(tx, run, accepted.standing, &end_of_run(page, ending), now)?,
        None => None,
    };
    let count = outbox::insert_answer(tx, &rows.answer, accepted.id, now)?;
    outbox::insert(tx, &rows.effects, Some(accepted.id), now)?;
    Ok(Written { count: count + rows.effects.len(), today, report })
}

fn run_of(task: &Task) -> Option<String> {
    match &task.errand {
        Some(Errand::Run(known)) => Some(known.child.run.clone()),
        _ => None,
    }
}

fn end_of_run(page: &Page, ending: &Ending) -> End {
    let state = match (&ending.said, ending.outcome.as_str()) {
        (_, STOPPED_ON_REQUEST) => State::Stopped,
        (Some(_), _) => State::Finished,
        (None, _) => State::Failed,
    };
    End { state, result: ending.reply.clone(), used: Charge { steps: page.turn.steps, usage: page.turn.usage } }
}

impl Page {
    /// The turn is over, and this is what it came to. Only the rows tell which rounds were counted: one that was being written
    /// when the task was stopped is there or not, and nobody waited to see.
    pub(super) fn record(&self, tx: &Transaction<'_>, outcome: &str, now: i64) -> rusqlite::Result<Today> {
        usage::record(tx, &TurnRow { outcome: outcome.to_owned(), ..self.turn.clone() }, now)?;
        if !self.has_rounds {
            return ledger::spend(tx, &self.spending, now);
        }
        let counted = journal::counted(tx, self.accepted.id)?;
        journal::forget(tx, self.accepted.id)?;
        ledger::spend(tx, &Spending { usage: self.spending.usage.without(counted), ..self.spending.clone() }, now)
    }
}

fn note_decisions(tx: &Transaction<'_>, page: &Page, now: i64) -> rusqlite::Result<()> {
    let place = &page.accepted.inbound.origin.key;
    let count = page.accepted.messages().count();
    if count > 1 {
        decisions::note(tx, place, page.accepted.id, Decision::Drained { count }, now)?;
    }
    if page.is_steering {
        decisions::note(tx, place, page.accepted.id, Decision::Steered, now)?;
    }
    Ok(())
}
