//! Who answers a message in a place, or why nobody does. Pure.
//!
//! The gateway acts on this answer; the commands and `parlor route explain` print it. So people are
//! told what will happen.

use super::Faltering;
use crate::access::{self, Asking, NotForYou, Role, Verdict};
use crate::domain::{Addressed, AgentId};
use crate::records::agent_pauses::Pause;
use crate::routing::{self, FromChat, Resolved, Table, Visit};
use crate::turn::budget::Over;

/// A message that a person writes or could write.
#[derive(Debug)]
pub(crate) struct Question<'a> {
    pub(crate) table: &'a Table,
    pub(crate) visit: Visit<'a>,
    pub(crate) from_chat: FromChat,
    pub(crate) addressed: Addressed,
    pub(crate) is_command: bool,
}

impl<'a> Question<'a> {
    /// The plainest message: one that is said to the bot.
    pub(crate) fn said_to_the_bot(table: &'a Table, visit: Visit<'a>, from_chat: FromChat) -> Self {
        let addressed = if visit.origin.key.is_private() {
            Addressed::Privately
        } else {
            Addressed::ByMention
        };
        Question {
            table,
            visit,
            from_chat,
            addressed,
            is_command: false,
        }
    }
}

/// Who answers, or why nobody does.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) resolved: Resolved,
    /// The bot answers in this place at all.
    pub(crate) is_open: bool,
    /// A message must mention the bot or reply to it.
    pub(crate) needs_mention: bool,
    pub(crate) verdict: Verdict,
    /// Absent: the agent answers.
    pub(crate) silence: Option<Silence>,
    /// Set when the model of the agent does not answer at present.
    pub(crate) faltering: Option<Faltering>,
}

/// Why a person gets no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Silence {
    /// No binding and no `/agent` opens the place.
    PlaceClosed,
    /// A guest in a private chat, who gets a pairing code.
    NotLetIn,
    /// A guest in a private chat, and private chats are closed.
    PrivateChatsClosed,
    /// The message is talk among people.
    NotAddressed,
    /// The agent of the place is not open to the person.
    NotForYou(NotForYou),
    /// The agent is paused; messages wait until somebody resumes it.
    Paused(Pause),
    /// A limit of the day is reached.
    OverBudget(Over),
}

impl Answer {
    pub(crate) fn agent(&self) -> &AgentId {
        &self.resolved.route.agent
    }

    /// The same with the pause of the answer's agent.
    pub(crate) fn unless_paused(self, pause: Option<Pause>) -> Self {
        let silence = self.silence.or(pause.map(Silence::Paused));
        Answer { silence, ..self }
    }

    /// The same with the limits of the day, which are asked for the agent of the answer.
    pub(crate) fn within(self, over: Option<Over>) -> Self {
        let silence = self.silence.or(over.map(Silence::OverBudget));
        Answer { silence, ..self }
    }

    /// The same with the state of the agent's models.
    pub(crate) fn with_models(self, faltering: Option<Faltering>) -> Self {
        Answer { faltering, ..self }
    }

    /// Set when the agent is not open to the person.
    pub(crate) fn not_for_you(&self) -> Option<&NotForYou> {
        match &self.silence {
            Some(Silence::NotForYou(closed)) => Some(closed),
            _ => None,
        }
    }
}

pub(crate) fn who_answers(question: Question<'_>) -> Answer {
    let Question {
        table,
        visit,
        from_chat,
        addressed,
        is_command,
    } = question;
    let resolved = routing::resolve(table, from_chat, visit);
    let asking = Asking {
        key: &visit.origin.key,
        role: visit.standing.highest(),
        may_open: visit.standing.role() >= Role::Admin,
        addressed,
        is_command,
        place_is_bound: resolved.route.opens_place,
        require_mention: resolved.route.require_mention,
    };
    let verdict = access::decide(visit.access, &asking);
    let silence = match verdict {
        // A pin in force was checked for everybody in its place.
        Verdict::Admit if resolved.pin.is_some() => None,
        Verdict::Admit => table
            .may_use(&resolved.route.agent, visit)
            .err()
            .map(Silence::NotForYou),
        Verdict::Hint => Some(Silence::NotLetIn),
        Verdict::TellUnbound => Some(Silence::PlaceClosed),
        Verdict::Observe => Some(Silence::NotAddressed),
        Verdict::Ignore(_) if visit.origin.key.is_private() => Some(Silence::PrivateChatsClosed),
        Verdict::Ignore(access::NOT_ADDRESSED) => Some(Silence::NotAddressed),
        Verdict::Ignore(_) => Some(Silence::PlaceClosed),
    };
    Answer {
        is_open: access::is_open(visit.access, &asking),
        needs_mention: access::needs_mention(visit.access, &asking),
        resolved,
        verdict,
        silence,
        faltering: None,
    }
}
