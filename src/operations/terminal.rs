//! What a terminal of another process asks of the running gateway, and what it is told: `parlor chat`
//! and `parlor ask` over `parlor.sock`.

use serde::{Deserialize, Serialize};

use crate::channels::local::{Audience, Shown};
use crate::domain::{AgentId, LocalName, MessageId, SessionKey};

/// A terminal that wants to talk.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Visitor {
    /// Its own name, which its requests carry.
    pub(crate) client: String,
    pub(crate) place: PlaceWish,
    /// This agent answers where the visitor writes, for as long as the visitor stays.
    pub(crate) agent: Option<String>,
    #[serde(default)]
    pub(crate) audience: Audience,
}

/// The room of questions without a topic. Nobody waits for an answer there once its asker is gone.
pub(crate) const QUESTIONS: &str = "ask";

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PlaceWish {
    This(SessionKey),
    /// A place of this room that no other visitor has.
    Alone(String),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FromTerminal {
    Say {
        client: String,
        place: SessionKey,
        message: MessageId,
        text: String,
    },
    /// The agent that answers in a place.
    Who {
        client: String,
        place: SessionKey,
    },
    /// The topics of a place's room.
    Topics {
        place: SessionKey,
    },
    Agents,
    /// What became of a line.
    Turn {
        message: MessageId,
    },
    /// Nobody waits for the answer to a line any more.
    Cancel {
        message: MessageId,
    },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToTerminal {
    /// The line is in the inbox.
    Said,
    Who(Who),
    Topics(Vec<Topic>),
    Agents(Vec<String>),
    Turn(Option<TurnReport>),
    Cancelled,
}

/// An event for a visitor.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scene {
    /// The first event: where the visitor is.
    Seated {
        place: SessionKey,
        /// The gateway is that of another chat, and ends with it.
        is_chat: bool,
    },
    Shown(Shown),
    /// This many lines were said, and all are answered.
    Rest {
        lines: u64,
        /// The turns of those that were answered since the last such event.
        #[serde(default)]
        turns: Vec<(MessageId, TurnReport)>,
    },
}

/// The agent that answers in a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Who {
    pub(crate) id: AgentId,
    pub(crate) label: String,
    /// Lines wait until somebody resumes the agent.
    pub(crate) is_paused: bool,
}

/// A topic of the terminal, with its agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Topic {
    /// None is the main chat.
    pub(crate) name: Option<String>,
    pub(crate) agent: Who,
}

/// What became of a line that was no command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TurnReport {
    /// None when the agent was removed meanwhile.
    pub(crate) agent: Option<AgentId>,
    pub(crate) model: String,
    /// `answered`, or the reason for no answer.
    pub(crate) outcome: String,
    pub(crate) is_answered: bool,
    pub(crate) input_tokens: u64,
    /// Part of the input.
    pub(crate) cached_tokens: u64,
    pub(crate) output_tokens: u64,
    /// In millionths. None without a price in the config.
    pub(crate) cost: Option<u64>,
    pub(crate) took_ms: i64,
}

impl PlaceWish {
    /// The places to choose from, the best first.
    pub(crate) fn choices(&self) -> Option<impl Iterator<Item = SessionKey>> {
        let (first, room) = match self {
            PlaceWish::This(place) => (place.clone(), None),
            PlaceWish::Alone(room) => {
                let room: LocalName = room.parse().ok()?;
                let first = SessionKey::Local {
                    room: room.clone(),
                    topic: None,
                };
                (first, Some(room))
            }
        };
        let further = room.into_iter().flat_map(|room| {
            (2..=MOST_ALONE).filter_map(move |number| {
                let topic: LocalName = number.to_string().parse().ok()?;
                Some(SessionKey::Local {
                    room: room.clone(),
                    topic: Some(topic),
                })
            })
        });
        Some(std::iter::once(first).chain(further))
    }
}

/// Visitors with a place of their own at the same time.
const MOST_ALONE: u32 = 16;
