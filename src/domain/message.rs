//! Messages on their way in, and where answers to them go.

use serde::{Deserialize, Serialize};

use super::{Besides, ChatId, Origin, PersonId, ReplyHandle, SessionKey};

/// A platform's own id of a message, as text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MessageId(pub String);

/// How a message turned to the bot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Addressed {
    /// A private place: everything is for the bot.
    Privately,
    /// The bot's name is in the text.
    ByMention,
    /// The message answers one of the bot's.
    ByReply,
    /// Nobody wrote it: a topic was made that is called like an agent.
    ByTopicName,
    NotAtAll,
}

/// A message from a person, as a channel understood it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inbound {
    /// Unique on its platform; the same id again is the same message.
    pub update_id: String,
    pub origin: Origin,
    /// The name people see.
    pub person_name: String,
    /// What was written; a mention that only called the bot is already taken off.
    pub text: String,
    pub addressed: Addressed,
    pub message: MessageId,
    /// Unix milliseconds, by the platform's clock.
    pub sent_at: i64,
    /// What came with the words.
    #[serde(default)]
    pub besides: Besides,
}

/// A group became a supergroup, which has another id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    pub old: ChatId,
    pub new: ChatId,
}

/// One thing a channel received.
#[derive(Debug, Clone)]
pub enum Arrival {
    Message(Box<Inbound>),
    /// A person made a topic in a group; the text is its name.
    TopicMade(Box<Inbound>),
    /// A topic was made or renamed.
    Named {
        place: SessionKey,
        name: String,
    },
    /// A closed topic takes messages again.
    Reopened(SessionKey),
    Moved(Moved),
    /// Something that should have been readable and was not. Kept for the operator.
    Broken {
        update_id: String,
        reason: String,
        raw: String,
    },
}

/// What happens while an agent works on an answer, for whoever wants to show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEvent {
    /// The next piece of the answer.
    Text(String),
    /// Nothing was heard from the model for long.
    Slow,
}

/// Where something is sent. Made only from a message that came in, an owner in the config or a place that an agent has, or read
/// back from the outbox row that one led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    place: SessionKey,
    /// The platform waits for this very answer.
    reply: Option<ReplyHandle>,
}

impl Destination {
    /// The place the message was written in, as the answer to it.
    pub fn of(inbound: &Inbound) -> Self {
        Destination { place: inbound.origin.key.clone(), reply: inbound.besides.reply.clone() }
    }

    /// The same place, for something that is not the answer.
    pub fn besides(inbound: &Inbound) -> Self {
        Destination { place: inbound.origin.key.clone(), reply: None }
    }

    /// An owner's private chat, without topic. None for one who is not on a platform.
    pub fn owner(owner: &PersonId) -> Option<Self> {
        let place = match owner {
            PersonId::Telegram(user) => SessionKey::TelegramDm { user: *user, topic: None },
            PersonId::Discord(user) => SessionKey::DiscordDm { user: *user },
            PersonId::Local(_) => return None,
        };
        Some(Destination { place, reply: None })
    }

    /// A place that belongs to an agent now, by a binding, a pin or what was said there. Made only by who looked that up.
    pub(crate) fn of_agent(place: SessionKey) -> Self {
        Destination { place, reply: None }
    }

    /// The place an outbox row was written for.
    pub(crate) fn stored(place: SessionKey) -> Self {
        Destination { place, reply: None }
    }

    pub fn place(&self) -> &SessionKey {
        &self.place
    }

    pub fn reply(&self) -> Option<&ReplyHandle> {
        self.reply.as_ref()
    }
}
