//! Who answers a message in a place, or why nobody does. Pure.
//!
//! The gateway acts on this answer; the commands and `parlor route explain` print it. So people are
//! told what will happen.

use super::{Faltering, Obstacle};
use crate::access::people::AtTheDoor;
use crate::access::{self, NotForYou, Verdict};
use crate::domain::AgentId;
use crate::records::agent_pauses::Pause;
use crate::routing::{self, Judgment, Question, Resolved};
use crate::turn::budget::Over;

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
    /// What keeps the answer from its place, the strongest first.
    pub(crate) obstacles: Vec<Obstacle>,
}

/// Why a person gets no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Silence {
    /// No binding and no `/agent` opens the place.
    PlaceClosed,
    /// A guest in a private chat. Absent: the first message gets a pairing code.
    NotLetIn(Option<AtTheDoor>),
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

impl Silence {
    /// For programs.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Silence::PlaceClosed => "place_closed",
            Silence::NotLetIn(Some(AtTheDoor::TurnedAway { .. })) => "turned_away",
            Silence::NotLetIn(_) => "not_let_in",
            Silence::PrivateChatsClosed => "private_chats_closed",
            Silence::NotAddressed => "not_addressed",
            Silence::NotForYou(_) => "not_for_you",
            Silence::Paused(_) => "paused",
            Silence::OverBudget(_) => "over_budget",
        }
    }
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

    /// The same for a guest with a code, or one who was turned away.
    pub(crate) fn at_the_door(self, known: Option<AtTheDoor>) -> Self {
        let silence = match self.silence {
            Some(Silence::NotLetIn(_)) => Some(Silence::NotLetIn(known)),
            silence => silence,
        };
        Answer { silence, ..self }
    }

    /// The same with everything that keeps an answer from its place.
    pub(crate) fn behind(self, mut obstacles: Vec<Obstacle>) -> Self {
        obstacles.sort();
        Answer { obstacles, ..self }
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
    let is_private = question.visit.origin.key.is_private();
    let Judgment {
        resolved,
        is_open,
        needs_mention,
        verdict,
        not_for_you,
    } = routing::judge(question);
    let silence = match verdict {
        Verdict::Admit => not_for_you.map(Silence::NotForYou),
        Verdict::Hint => Some(Silence::NotLetIn(None)),
        Verdict::TellUnbound => Some(Silence::PlaceClosed),
        Verdict::Observe => Some(Silence::NotAddressed),
        Verdict::Ignore(_) if is_private => Some(Silence::PrivateChatsClosed),
        Verdict::Ignore(access::NOT_ADDRESSED) => Some(Silence::NotAddressed),
        Verdict::Ignore(_) => Some(Silence::PlaceClosed),
    };
    Answer {
        is_open,
        needs_mention,
        resolved,
        verdict,
        silence,
        faltering: None,
        obstacles: Vec::new(),
    }
}
