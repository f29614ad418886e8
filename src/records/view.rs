//! Whose part of a place's conversation something is, and what of the conversation an agent is shown.
//!
//! With `switch = "handoff"` an agent is shown all of it. With `"separate"` it is shown its own part: what it said, what people
//! said to it, and what people said among themselves while the place was its own. Everything that comes out of a transcript
//! goes through a [`View`].

use rusqlite::Connection;

use super::transcript;
use crate::clock::now_ms;
use crate::config::Switch;
use crate::delivery::outbox;
use crate::domain::{AgentUid, Inbound, Note};

/// Reactions to older answers were never let in.
const LOOKED_BACK_MS: i64 = 3 * 24 * 60 * 60 * 1000;

/// What of a conversation is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

    /// Whether something is shown that is of this agent's part, or of nobody's.
    pub(crate) fn shows(self, part: Option<AgentUid>) -> bool {
        match self {
            View::Whole => true,
            View::PartOf(agent) => part == Some(agent),
        }
    }

    /// The same in SQL, for rows of `messages`. Its parameter `?1` is [`View::key`].
    pub(crate) fn clause(self) -> &'static str {
        match self {
            View::Whole => "?1 = ''",
            View::PartOf(_) => "messages.part_uid = ?1",
        }
    }

    /// Names the view in the store; that of the whole is empty.
    pub(crate) fn key(self) -> String {
        match self {
            View::Whole => String::new(),
            View::PartOf(agent) => agent.to_string(),
        }
    }
}

/// Whose part a note is of: whose answer was reacted to, who was told what is edited now. None when nobody knows any more.
pub(crate) fn of_note(connection: &Connection, inbound: &Inbound, note: Note) -> rusqlite::Result<Option<AgentUid>> {
    let place = &inbound.origin.key;
    match note {
        Note::Edit => transcript::told_as(connection, place, &inbound.message),
        Note::Reaction => {
            let sent = outbox::sent_as(connection, &inbound.message, now_ms() - LOOKED_BACK_MS)?;
            let said = sent.into_iter().find(|(sent_to, _)| sent_to == place).map(|(_, said)| said);
            let said = said.map_or(Ok(None), |said| transcript::said_by_agent(connection, said))?;
            Ok(said.map(|(agent, _)| agent))
        }
    }
}

#[cfg(test)]
mod tests;
