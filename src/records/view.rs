//! The parts of a place's conversation, and an agent's view of them.
//!
//! With `switch = "handoff"` an agent sees the whole conversation. With `"separate"` an agent sees
//! its own part: its messages, messages to the agent, and talk among people while the place was its
//! own. Every message shown to an agent goes through a [`View`].

use rusqlite::Connection;

use super::transcript;
use crate::clock::now_ms;
use crate::config::Switch;
use crate::delivery::outbox;
use crate::domain::{AgentUid, Inbound, Note};

/// Reactions to older answers were never let in.
const LOOKED_BACK_MS: i64 = 3 * 24 * 60 * 60 * 1000;

/// The visible part of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum View {
    Whole,
    PartOf(AgentUid),
}

impl View {
    pub(crate) fn of(switch: Switch, agent: AgentUid) -> Self {
        match switch {
            Switch::Handoff => View::Whole,
            Switch::Separate => View::PartOf(agent),
        }
    }

    /// Whether the view shows this agent's part; `None` is no agent's part.
    pub(crate) fn shows(self, part: Option<AgentUid>) -> bool {
        match self {
            View::Whole => true,
            View::PartOf(agent) => part == Some(agent),
        }
    }

    /// The rule of [`View::shows`] in SQL, for rows of `messages`. The parameter `?1` is
    /// [`View::key`].
    pub(crate) fn clause(self) -> &'static str {
        match self {
            View::Whole => "?1 = ''",
            View::PartOf(_) => "messages.part_uid = ?1",
        }
    }

    /// The name of the view in the store; empty for the whole conversation.
    pub(crate) fn key(self) -> String {
        match self {
            View::Whole => String::new(),
            View::PartOf(agent) => agent.to_string(),
        }
    }
}

/// The agent whose part a note belongs to: the author of the answer with the reaction, or the agent
/// that read the edited message. None if unknown by now.
pub(crate) fn of_note(
    connection: &Connection,
    inbound: &Inbound,
    note: Note,
) -> rusqlite::Result<Option<AgentUid>> {
    let place = &inbound.origin.key;
    match note {
        Note::Edit => transcript::told_as(connection, place, &inbound.message),
        Note::Reaction => {
            let sent = outbox::sent_as(connection, &inbound.message, now_ms() - LOOKED_BACK_MS)?;
            let said = sent
                .into_iter()
                .find(|(sent_to, _)| sent_to == place)
                .map(|(_, said)| said);
            let said = said.map_or(Ok(None), |said| transcript::said_by_agent(connection, said))?;
            Ok(said.map(|(agent, _)| agent))
        }
    }
}

#[cfg(test)]
mod tests;
