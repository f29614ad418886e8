//! The needed fields of an update, borrowed from the update's JSON.
//!
//! Own types, because teloxide's need a second parse of every update, and lose the text of a
//! message with an entity or a content of a kind unknown to them. Place and person must be
//! readable; other fields of an unexpected form count as missing.
//! <https://core.telegram.org/bots/api#message>

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::channels::describe::name_line;
use crate::domain::{ChatId, MessageId, TelegramUserId, TopicId};

/// The value of a field. A server may leave a field out or send null: both mean the same.
pub(super) fn field<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| !value.is_null())
}

#[derive(Debug, Deserialize)]
pub(super) struct Message<'a> {
    message_id: i64,
    /// In seconds. Zero marks a message that the bot cannot see any more.
    date: i64,
    pub(super) chat: Chat,
    #[serde(borrow)]
    pub(super) from: Option<User<'a>>,
    sender_chat: Option<IgnoredAny>,
    message_thread_id: Option<i32>,
    is_topic_message: Option<bool>,
    #[serde(borrow, default, deserialize_with = "if_readable")]
    text: Option<&'a str>,
    #[serde(borrow, default, deserialize_with = "if_readable")]
    caption: Option<&'a str>,
    #[serde(borrow, default, deserialize_with = "if_readable")]
    entities: Option<Vec<Readable<Entity<'a>>>>,
    #[serde(borrow, default, deserialize_with = "if_readable")]
    caption_entities: Option<Vec<Readable<Entity<'a>>>>,
    #[serde(borrow, default, deserialize_with = "if_readable")]
    reply_to_message: Option<Replied<'a>>,
    #[serde(borrow, default, deserialize_with = "if_readable")]
    pub(super) forum_topic_created: Option<NewTopic<'a>>,
    #[serde(borrow, default, deserialize_with = "if_readable")]
    forum_topic_edited: Option<EditedTopic<'a>>,
    pub(super) forum_topic_reopened: Option<IgnoredAny>,
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) migrate_to_chat_id: Option<i64>,
    #[serde(default, deserialize_with = "if_readable")]
    pub(super) migrate_from_chat_id: Option<i64>,
}

impl<'a> Message<'a> {
    pub(super) fn id(&self) -> MessageId {
        MessageId(self.message_id.to_string())
    }

    pub(super) fn sent_at_millis(&self) -> i64 {
        self.date.saturating_mul(1000)
    }

    pub(super) fn is_accessible(&self) -> bool {
        self.date != 0
    }

    /// The text, or the caption of a picture or file.
    pub(super) fn text(&self) -> Option<&'a str> {
        self.text.or(self.caption)
    }

    pub(super) fn entities(&self) -> impl Iterator<Item = &Entity<'a>> {
        let entities = if self.text.is_some() {
            &self.entities
        } else {
            &self.caption_entities
        };
        entities.iter().flatten().filter_map(|entity| match entity {
            Readable::Yes(entity) => Some(entity),
            Readable::No(_) => None,
        })
    }

    /// Only `is_topic_message` makes a topic: replies in plain groups carry a thread id too.
    pub(super) fn topic(&self) -> Option<TopicId> {
        self.message_thread_id
            .filter(|_| self.is_topic_message == Some(true))
            .map(TopicId)
    }

    /// The replied message. Messages without a reply refer to the first message of their topic, and
    /// such a reference is no reply.
    pub(super) fn replied(&self) -> Option<&Replied<'a>> {
        self.reply_to_message
            .as_ref()
            .filter(|replied| replied.forum_topic_created.is_none())
    }

    /// The name in a message about a new or renamed topic. A changed icon comes without a name.
    pub(super) fn new_topic_name(&self) -> Option<&'a str> {
        let created = self
            .forum_topic_created
            .as_ref()
            .map(|created| created.name);
        created.or_else(|| self.forum_topic_edited.as_ref()?.name)
    }

    /// The name of the topic, known from messages without a reply: they refer to the first message
    /// of their topic.
    pub(super) fn topic_name(&self) -> Option<&'a str> {
        let first = self
            .reply_to_message
            .as_ref()
            .filter(|_| self.is_topic_message == Some(true))?;
        first
            .forum_topic_created
            .as_ref()
            .map(|created| created.name)
    }

    /// Anonymous admins and linked channels write in the name of a chat, and `from` is a
    /// placeholder then.
    pub(super) fn is_from_a_person(&self) -> bool {
        self.sender_chat.is_none() && self.from.as_ref().is_some_and(|from| !from.is_bot)
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Chat {
    id: i64,
    #[serde(rename = "type")]
    pub(super) kind: ChatKind,
    is_forum: Option<bool>,
}

impl Chat {
    pub(super) fn id(&self) -> ChatId {
        ChatId(self.id)
    }

    pub(super) fn is_private(&self) -> bool {
        self.kind == ChatKind::Private
    }

    pub(super) fn is_forum(&self) -> bool {
        self.kind == ChatKind::Supergroup && self.is_forum == Some(true)
    }
}

/// A chat of another kind has no place here, so its message is kept as broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ChatKind {
    Private,
    Group,
    Supergroup,
    Channel,
}

#[derive(Debug, Deserialize)]
pub(super) struct User<'a> {
    id: u64,
    pub(super) is_bot: bool,
    first_name: &'a str,
    #[serde(borrow)]
    last_name: Option<&'a str>,
}

impl User<'_> {
    pub(super) fn id(&self) -> TelegramUserId {
        TelegramUserId(i64::try_from(self.id).unwrap_or(i64::MAX))
    }

    pub(super) fn has_id(&self, id: &str) -> bool {
        self.id.to_string() == id
    }

    pub(super) fn display_name(&self) -> String {
        match self.last_name {
            Some(last_name) => name_line(&format!("{} {last_name}", self.first_name)),
            None => name_line(self.first_name),
        }
    }
}

/// A marked piece of a text. Offset and length count UTF-16 units.
#[derive(Debug, Deserialize)]
pub(super) struct Entity<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'a str,
    pub(super) offset: usize,
    pub(super) length: usize,
    /// The person of a `text_mention`.
    #[serde(borrow, default, deserialize_with = "if_readable")]
    pub(super) user: Option<User<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Replied<'a> {
    #[serde(borrow, default, deserialize_with = "if_readable")]
    pub(super) from: Option<User<'a>>,
    #[serde(borrow, default, deserialize_with = "if_readable")]
    forum_topic_created: Option<NewTopic<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct NewTopic<'a> {
    name: &'a str,
}

#[derive(Debug, Deserialize)]
struct EditedTopic<'a> {
    #[serde(borrow)]
    name: Option<&'a str>,
}

/// A pressed button.
#[derive(Debug, Deserialize)]
pub(super) struct CallbackQuery<'a> {
    #[serde(borrow)]
    pub(super) id: Option<&'a str>,
    #[serde(borrow)]
    pub(super) from: User<'a>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    pub(super) data: Option<&'a str>,
}

impl<'a> CallbackQuery<'a> {
    pub(super) fn message(&self) -> Option<&Message<'a>> {
        self.message
            .as_ref()
            .filter(|message| message.is_accessible())
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Readable<T> {
    Yes(T),
    No(IgnoredAny),
}

fn if_readable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Ok(match Readable::deserialize(deserializer)? {
        Readable::Yes(value) => Some(value),
        Readable::No(_) => None,
    })
}
