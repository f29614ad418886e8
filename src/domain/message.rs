//! Messages on their way in, and where answers to them go.

use serde::{Deserialize, Serialize};

use super::{ChatId, Extras, Origin, PersonId, ReplyHandle, SessionKey};

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
    /// The message answers a message of the bot.
    ByReply,
    /// No written message: a topic with an agent's name was made.
    ByTopicName,
    NotAtAll,
}

/// A message from a person, as read by a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inbound {
    /// Unique on its platform; the same id again is the same message.
    pub update_id: String,
    pub origin: Origin,
    /// The name people see.
    pub person_name: String,
    /// The text, without a mention that only called the bot.
    pub text: String,
    pub addressed: Addressed,
    pub message: MessageId,
    /// Unix milliseconds, by the platform's clock.
    pub sent_at: i64,
    /// Extras besides the text.
    #[serde(default)]
    pub extras: Extras,
}

/// A group became a supergroup with another id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    pub old: ChatId,
    pub new: ChatId,
}

/// An event from a channel.
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
    /// The bot may write nothing in a group any more, for this reason.
    Barred {
        group: SessionKey,
        reason: String,
    },
    /// Deleted messages. Only from platforms with unique message ids.
    Deleted(Vec<MessageId>),
    /// The place is gone for good, with all of its messages.
    Gone(SessionKey),
    Moved(Moved),
    /// An update in an unexpected form, kept for the operator.
    Broken {
        update_id: String,
        reason: String,
        raw: String,
    },
}

/// Progress of an answer, for previews.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEvent {
    /// The next piece of the answer.
    Text(String),
    /// Nothing was heard from the model for long.
    Slow,
}

/// The place for an outgoing message.
///
/// Made only from an inbound message, an owner or admin in the config, a guest who wrote in
/// private, a place of an agent or a place with work in its lane, or from the outbox row of such a
/// message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    place: SessionKey,
    /// The platform waits for this very answer.
    reply: Option<ReplyHandle>,
}

impl Destination {
    /// The place of a message, for its answer.
    pub fn of(inbound: &Inbound) -> Self {
        Destination {
            place: inbound.origin.key.clone(),
            reply: inbound.extras.reply.clone(),
        }
    }

    /// The place of a message, for messages besides its answer.
    pub fn besides(inbound: &Inbound) -> Self {
        Destination {
            place: inbound.origin.key.clone(),
            reply: None,
        }
    }

    /// An owner's private chat, without topic. None for owners at the terminal.
    pub fn owner(owner: &PersonId) -> Option<Self> {
        let place = match owner {
            PersonId::Telegram(user) => SessionKey::TelegramDm {
                user: *user,
                topic: None,
            },
            PersonId::Discord(user) => SessionKey::DiscordDm { user: *user },
            PersonId::Local(_) => return None,
        };
        Some(Destination { place, reply: None })
    }

    /// The private chat of a person who was let in or turned away, without topic.
    pub(crate) fn guest(guest: &PersonId) -> Option<Self> {
        Destination::owner(guest)
    }

    /// A place of an agent, by a binding, a pin or its conversation. The caller has checked that
    /// the place is the agent's now.
    pub(crate) fn of_agent(place: SessionKey) -> Self {
        Destination { place, reply: None }
    }

    /// A place with a message in work or in the queue, for a notice about this message.
    pub(crate) fn of_work(place: SessionKey) -> Self {
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
