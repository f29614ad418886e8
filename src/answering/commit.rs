//! The transaction at the end of a turn: transcript, turn log, closed inbox rows, outbox rows.

use rusqlite::Transaction;

use super::active_turn::ActiveTurn;
use super::budgets;
use super::texts::noted_cut;
use crate::agents::agent_rows;
use crate::delivery::outbox::{self, Source};
use crate::fail_points::{self, Write};
use crate::metrics::Stage;
use crate::models::Cut;
use crate::records::decisions::{self, Decision};
use crate::records::inbox::{self, Accepted, Closing};
use crate::records::jobs;
use crate::records::journal::{self, AskedMessage};
use crate::records::ledger::{self, Spending, Sums};
use crate::records::subagents::{self as subagent_rows, End, State};
use crate::records::transcript::{self, Asked, Conversation, Spot};
use crate::records::turn_log::{self, TurnRow};
use crate::records::turn_notes::{self, Notes, Prompt};
use crate::routing::pins;
use crate::subagents;
use crate::tools::written_files;
use crate::turn::Charge;

/// The outcome of a stopped turn.
pub(super) const STOPPED_ON_REQUEST: &str = "stopped";

/// The result of a turn.
pub(super) struct Ending {
    /// The agent's own words, if there are any.
    pub(super) said: Option<String>,
    /// The text for people.
    pub(super) reply: String,
    pub(super) outcome: String,
    pub(super) closing: Closing,
    /// The limit at which the answer was cut off.
    pub(super) cut: Option<Cut>,
    /// A failed turn that the same question may not make fail again.
    pub(super) can_retry: bool,
}

impl Ending {
    /// Whether a job had nothing to say.
    pub(super) fn is_nothing(&self) -> bool {
        self.outcome == jobs::NOTHING
    }
}

/// Outbox rows: the answer, then files sent by tools.
pub(super) struct Rows {
    pub(super) answer: Vec<outbox::Draft>,
    pub(super) effects: Vec<outbox::Draft>,
}

/// The data for the end of a turn.
pub(super) struct TurnCommit {
    accepted: Accepted,
    said: Vec<AskedMessage>,
    conversation: Conversation,
    is_asked: bool,
    is_steering: bool,
    used_once: bool,
    has_rounds: bool,
    row: TurnRow,
    /// Without the rounds of the journal.
    notes: Notes,
    prompt: Option<Prompt>,
    /// The usage of the whole turn. The rounds' share is in the ledger already.
    spending: Spending,
    /// The subagent's run, if this is a subagent's turn.
    run: Option<String>,
    /// Subagents whose end the agent was told.
    told: Vec<String>,
    /// Files written by the turn.
    wrote: Vec<String>,
}

fn notes(turn: &ActiveTurn) -> Notes {
    let stage = |stage| {
        let time = turn.stages.get(stage)?;
        u64::try_from(time.as_millis()).ok()
    };
    Notes {
        stored_ms: stage(Stage::Stored),
        queued_ms: stage(Stage::Queued),
        slot_ms: stage(Stage::Slot),
        prepared_ms: turn.prepared_ms,
        recalled: turn.recalled,
        taken_up_at: turn.taken_up_at,
        previews: turn.previews,
        calls: turn.run.calls(),
        tools: Vec::new(),
        sections: turn.run.section_sizes(),
    }
}

/// None where no prompts are kept.
fn prompt(turn: &ActiveTurn) -> Option<Prompt> {
    let kept = turn.snapshot.config.prompts_kept();
    let sections = || (turn.run.steady_texts(), turn.run.moving_texts());
    (kept > 0).then(|| Prompt::new(kept, turn.started_at, sections()))
}

/// The files that a turn has written.
pub(super) fn wrote(turn: &ActiveTurn) -> Vec<String> {
    let paths = written_files(&turn.effects);
    paths.into_iter().map(str::to_owned).collect()
}

impl TurnCommit {
    pub(super) fn of(turn: &ActiveTurn) -> Self {
        let row = TurnRow {
            inbox_id: turn.accepted.id,
            place: turn.accepted.inbound.origin.key.clone(),
            agent: turn.agent.uid,
            model: turn.model().to_string(),
            route: turn.route.rule.to_string(),
            started_at: turn.started_at,
            outcome: String::new(),
            steps: turn.run.steps(),
            usage: turn.usage(),
            read: turn.run.read(),
        };
        TurnCommit {
            accepted: turn.accepted.clone(),
            said: turn.said.clone(),
            conversation: turn.conversation,
            is_asked: turn.is_asked,
            is_steering: turn.is_steering,
            used_once: turn.used_once,
            has_rounds: turn.rounds > 0,
            row,
            notes: notes(turn),
            prompt: prompt(turn),
            spending: Spending {
                turns: 1,
                ..budgets::spending(turn, turn.usage())
            },
            run: turn.subagent().map(|known| known.subagent.run.clone()),
            told: turn.told.clone(),
            wrote: wrote(turn),
        }
    }
}

/// The result of the transaction.
pub(super) struct Written {
    /// Rows to send.
    pub(super) count: usize,
    pub(super) today: Sums,
    /// The message to wake the parent with.
    pub(super) report: Option<Accepted>,
}

pub(super) fn write(
    tx: &Transaction<'_>,
    commit: &TurnCommit,
    ending: &Ending,
    rows: &Rows,
    now: i64,
) -> rusqlite::Result<Written> {
    fail_points::writes(Write::TurnEnd);
    let TurnCommit {
        accepted,
        conversation,
        row,
        ..
    } = commit;
    let place = &accepted.inbound.origin.key;
    transcript::touch(tx, place, now)?;
    // A job without news leaves no trace in the conversation of people.
    let is_kept = !ending.is_nothing() || place.is_internal();
    if !commit.is_asked && is_kept {
        let spot = Spot {
            conversation: *conversation,
            part: Some(row.agent),
        };
        transcript::append_question(tx, accepted, &commit.said, spot, now)?;
    }
    let said_id = match is_kept {
        true => append_answer(tx, commit, ending, now)?,
        false => None,
    };
    if commit.used_once {
        pins::use_up(tx, place, row.started_at)?;
    }
    note_decisions(tx, commit, now)?;
    if ending.can_retry && !place.is_internal() {
        inbox::close_for_retry(tx, accepted, &ending.outcome, now)?;
    } else {
        inbox::close_all(tx, accepted, ending.closing, &ending.outcome, now)?;
    }
    let today = commit.record(tx, &ending.outcome, now)?;
    subagent_rows::seen(tx, &commit.told)?;
    let report = match &commit.run {
        Some(run) => {
            subagents::write_end(tx, run, accepted.role, &end_of_run(commit, ending), now)?
        }
        None => None,
    };
    let count = outbox::insert_answer(tx, &rows.answer, accepted.id, said_id, now)?;
    let files = outbox::insert_of_agent(tx, &rows.effects, Source::of(Some(accepted.id)), now)?;
    Ok(Written {
        count: count + files,
        today,
        report,
    })
}

/// Writes the agent's words into the transcript, and marks where they were cut off or stopped.
/// Returns the row of the words, if there are any.
fn append_answer(
    tx: &Transaction<'_>,
    commit: &TurnCommit,
    ending: &Ending,
    now: i64,
) -> rusqlite::Result<Option<i64>> {
    let (accepted, row) = (&commit.accepted, &commit.row);
    let place = &accepted.inbound.origin.key;
    let mut said_id = None;
    if let Some(said) = &ending.said {
        let asked = Asked {
            inbox_id: accepted.id,
            person: &accepted.inbound.origin.person,
            read: row.read,
        };
        let words = (row.agent, said.as_str());
        let answer = transcript::append_agent(tx, place, commit.conversation, words, asked, now)?;
        if commit.has_rounds {
            // The journal forgets the turn afterwards.
            let tools = journal::tools_called(tx, accepted.id)?;
            transcript::tell_tools(tx, answer, &tools)?;
        }
        said_id = Some(answer);
        agent_rows::mark_bootstrapped(tx, row.agent, now)?;
    }
    if let Some(cut) = ending.cut {
        transcript::append_mark(tx, place, Some(row.agent), &noted_cut(cut), now)?;
    }
    if ending.outcome == STOPPED_ON_REQUEST {
        let mark = "stopped before it was answered";
        transcript::append_mark(tx, place, Some(row.agent), mark, now)?;
    }
    Ok(said_id)
}

fn end_of_run(commit: &TurnCommit, ending: &Ending) -> End {
    let state = match (&ending.said, ending.outcome.as_str()) {
        (_, STOPPED_ON_REQUEST) => State::Stopped,
        (Some(_), _) => State::Finished,
        (None, _) => State::Failed,
    };
    End {
        state,
        result: ending.reply.clone(),
        used: Charge {
            steps: commit.row.steps,
            usage: commit.row.usage,
        },
        read: commit.row.read,
        artifacts: commit.wrote.clone(),
    }
}

impl TurnCommit {
    /// Writes the turn row and books the rest of its cost. The journal knows the rounds booked
    /// already: the last round of a stopped turn may or may not be committed.
    pub(super) fn record(
        &self,
        tx: &Transaction<'_>,
        outcome: &str,
        now: i64,
    ) -> rusqlite::Result<Sums> {
        let row = TurnRow {
            outcome: outcome.to_owned(),
            ..self.row.clone()
        };
        let about = (turn_log::record(tx, &row, now)?, &row.place);
        let prompt = self.prompt.as_ref();
        if self.has_rounds {
            let mut notes = self.notes.clone();
            let calls = journal::model_calls(tx, self.accepted.id)?;
            notes.calls.splice(..0, calls);
            notes.tools = journal::tool_notes(tx, self.accepted.id)?;
            turn_notes::write(tx, about, &notes, prompt)?;
        } else {
            turn_notes::write(tx, about, &self.notes, prompt)?;
            return ledger::spend(tx, &self.spending, now);
        }
        let counted = journal::counted(tx, self.accepted.id)?;
        journal::forget(tx, self.accepted.id, now)?;
        ledger::spend(
            tx,
            &Spending {
                usage: self.spending.usage.without(counted),
                ..self.spending.clone()
            },
            now,
        )
    }
}

fn note_decisions(tx: &Transaction<'_>, commit: &TurnCommit, now: i64) -> rusqlite::Result<()> {
    let place = &commit.accepted.inbound.origin.key;
    let count = commit.accepted.messages().count();
    if count > 1 {
        decisions::note(
            tx,
            place,
            commit.accepted.id,
            Decision::Drained { count },
            now,
        )?;
    }
    if commit.is_steering {
        decisions::note(tx, place, commit.accepted.id, Decision::Steered, now)?;
    }
    Ok(())
}
