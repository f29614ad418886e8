//! Internal turns, without a person's message: turns of subagents, reports of their end, and jobs.

use crate::domain::{AgentUid, Inbound, Internal, JobRun};
use crate::records::subagents::{self, SubagentRow};
use crate::storage::{Db, StoreError};
use crate::tools::OnFinish;

/// The cause of an internal turn.
#[derive(Debug, Clone)]
pub(crate) enum InternalTurn {
    /// Another turn asked for a subagent.
    Subagent(Box<SubagentRow>),
    /// A subagent has ended, and the people in the parent's place are to be told.
    Report(Box<SubagentRow>),
    /// A job is due.
    Job(Box<JobRun>),
}

impl InternalTurn {
    /// Reads the subagent behind an internal message. None for a person's message, and if the
    /// subagent's row is gone.
    pub(crate) async fn of(db: &Db, inbound: &Inbound) -> Result<Option<Self>, StoreError> {
        let Some(internal) = inbound.extras.internal.clone() else {
            return Ok(None);
        };
        let run = match internal.clone() {
            Internal::Subagent { run } | Internal::Report { run } => run,
            Internal::Job(run) => return Ok(Some(InternalTurn::Job(Box::new(run)))),
        };
        let known = db
            .read(move |connection| subagents::get(connection, &run))
            .await?;
        Ok(known.map(Box::new).map(|known| match internal {
            Internal::Subagent { .. } => InternalTurn::Subagent(known),
            _ => InternalTurn::Report(known),
        }))
    }

    /// The name of the run, for the log.
    pub(crate) fn run(&self) -> String {
        match self {
            InternalTurn::Subagent(known) | InternalTurn::Report(known) => {
                known.subagent.run.clone()
            }
            InternalTurn::Job(run) => format!("job {} at {}", run.name, run.slot),
        }
    }

    /// The job, if this is a job's turn.
    pub(crate) fn job(&self) -> Option<&JobRun> {
        match self {
            InternalTurn::Job(run) => Some(run),
            InternalTurn::Subagent(_) | InternalTurn::Report(_) => None,
        }
    }

    /// The subagent's row, if this is a subagent's turn.
    pub(crate) fn subagent(&self) -> Option<&SubagentRow> {
        match self {
            InternalTurn::Subagent(known) => Some(known),
            InternalTurn::Report(_) | InternalTurn::Job(_) => None,
        }
    }

    /// The message of the parent turn, if that turn waits for this one.
    pub(crate) fn waiting_parent(&self) -> Option<i64> {
        let subagent = &self.subagent()?.subagent;
        (subagent.then == OnFinish::Wait).then_some(subagent.parent_inbox_id)
    }

    /// The agent of this turn.
    pub(crate) fn agent(&self) -> AgentUid {
        match self {
            InternalTurn::Subagent(known) => known.subagent.agent,
            InternalTurn::Report(known) => known.subagent.parent_agent,
            InternalTurn::Job(run) => run.agent,
        }
    }
}
