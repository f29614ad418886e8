//! Turns that no person asked for: a subagent's, and the one that reports a subagent's end.

use crate::domain::{AgentUid, Inbound, Internal};
use crate::records::subagents::{self, SubagentRow};
use crate::storage::{Db, StoreError};
use crate::tools::OnFinish;

/// Why a turn is run that no person asked for.
#[derive(Debug, Clone)]
pub(crate) enum InternalTurn {
    /// Another turn asked for it.
    Subagent(Box<SubagentRow>),
    /// A subagent has ended, and the people in the parent's place are to hear about it.
    Report(Box<SubagentRow>),
}

impl InternalTurn {
    /// Reads what an internal message is about. None for a person's message, and for one whose row is gone.
    pub(crate) async fn of(db: &Db, inbound: &Inbound) -> Result<Option<Self>, StoreError> {
        let Some(internal) = inbound.extras.internal.clone() else { return Ok(None) };
        let (Internal::Subagent { run } | Internal::Report { run }) = internal.clone();
        let known = db.read(move |connection| subagents::get(connection, &run)).await?;
        Ok(known.map(Box::new).map(|known| match internal {
            Internal::Subagent { .. } => InternalTurn::Subagent(known),
            Internal::Report { .. } => InternalTurn::Report(known),
        }))
    }

    pub(crate) fn known(&self) -> &SubagentRow {
        match self {
            InternalTurn::Subagent(known) | InternalTurn::Report(known) => known,
        }
    }

    /// The row of the subagent whose turn this is.
    pub(crate) fn subagent(&self) -> Option<&SubagentRow> {
        match self {
            InternalTurn::Subagent(known) => Some(known),
            InternalTurn::Report(_) => None,
        }
    }

    /// Whether another turn goes on only when this one is over.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.subagent().is_some_and(|known| known.subagent.then == OnFinish::Wait)
    }

    /// The agent whose turn this is.
    pub(crate) fn agent(&self) -> AgentUid {
        match self {
            InternalTurn::Subagent(known) => known.subagent.agent,
            InternalTurn::Report(known) => known.subagent.parent_agent,
        }
    }
}
