//! Reads raw updates. Pure: the same update always gives the same message.
//!
//! teloxide reads the message, and what it does not know must not cost a person their text: entities of unknown types
//! are taken out first, and where it still finds no text, the raw update's text counts.

use serde_json::Value;
use teloxide::types::{Me, Message, MessageEntityKind, MessageKind, User};

use crate::config::GroupSessions;
use crate::domain::{Addressed, Arrival, ChatId, Inbound, MessageId, Origin, PersonId, SessionKey, TelegramUserId, TopicId};

/// The entity types of teloxide 0.17; a message with any other loses its text there.
const KNOWN_ENTITIES: [&str; 19] = [
    "mention",
    "hashtag",
    "cashtag",
    "bot_command",
    "url",
    "email",
    "phone_number",
    "bold",
    "blockquote",
    "expandable_blockquote",
    "italic",
    "underline",
    "strikethrough",
    "spoiler",
    "code",
    "pre",
    "text_link",
    "text_mention",
    "custom_emoji",
];

/// What reading depends on besides the update.
pub(super) struct Reader<'a> {
    pub(super) bot_id: &'a str,
    pub(super) me: &'a Me,
    pub(super) group_sessions: GroupSessions,
}

impl Reader<'_> {
    /// `None` for what is no message from a person to us: service messages, channel posts, other bots.
    pub(super) fn read(&self, update: &Value) -> Option<Arrival> {
        let number = update.get("update_id").and_then(Value::as_i64)?;
        // With the bot's id, because another bot's updates have the same numbers.
        let update_id = format!("{}:{number}", self.bot_id);
        let raw = update.get("message")?;
        match read_message(raw) {
            Ok(message) => self.inbound(update_id, &message, raw).map(|inbound| Arrival::Message(Box::new(inbound))),
            Err(reason) => Some(Arrival::Broken { update_id, reason, raw: update.to_string() }),
        }
    }

    fn inbound(&self, update_id: String, message: &Message, raw: &Value) -> Option<Inbound> {
        let from = message.from.as_ref()?;
        // Anonymous admins and linked channels write through a placeholder: `from` says nothing about who it is.
        let is_a_person = !from.is_bot && message.sender_chat.is_none();
        let key = self.key(message, from)?;
        let text = text(message, raw)?;
        if !is_a_person {
            return None;
        }
        let call = self.call(message, text)?;
        let mut origin = Origin::new(key, PersonId::Telegram(user_id(from)));
        origin.name = topic_name(message);
        Some(Inbound {
            update_id,
            origin,
            person_name: display_name(from),
            text: call.text,
            addressed: call.addressed,
            message: MessageId(message.id.0.to_string()),
            sent_at: message.date.timestamp_millis(),
        })
    }

    /// Only `is_topic_message` makes a topic: replies in plain groups carry a thread id too.
    fn key(&self, message: &Message, from: &User) -> Option<SessionKey> {
        let chat = ChatId(message.chat.id.0);
        let topic = message.thread_id.filter(|_| message.is_topic_message).map(|thread| TopicId(thread.0.0));
        if message.chat.is_private() {
            return Some(SessionKey::TelegramDm { user: TelegramUserId(chat.0), topic });
        }
        if !message.chat.is_group() && !message.chat.is_supergroup() {
            return None;
        }
        let member = match self.group_sessions {
            GroupSessions::PerUser => Some(user_id(from)),
            GroupSessions::Shared => None,
        };
        Some(match topic {
            Some(topic) => SessionKey::TelegramTopic { chat, topic },
            None if is_forum(message) => SessionKey::TelegramTopic { chat, topic: TopicId::GENERAL },
            None => SessionKey::TelegramGroup { chat, member },
        })
    }

    /// How the text turns to us, without the words that only do that. `None` when it is a command for another bot.
    fn call(&self, message: &Message, text: String) -> Option<Call> {
        let (text, commanded) = self.take_name_off_command(text)?;
        let addressed = if message.chat.is_private() {
            Addressed::Privately
        } else if commanded || self.is_mentioned(message) {
            Addressed::ByMention
        } else if self.is_answered(message) {
            Addressed::ByReply
        } else {
            Addressed::NotAtAll
        };
        Some(Call { text: self.take_mention_off(&text), addressed })
    }

    /// `/agent@parlor_bot rose` is ours, `/agent@other_bot` is not.
    fn take_name_off_command(&self, text: String) -> Option<(String, bool)> {
        let word = text.split_whitespace().next().unwrap_or_default();
        match word.strip_prefix('/').and_then(|command| command.split_once('@')) {
            Some((command, bot)) if self.is_our_name(bot) => {
                Some((format!("/{command}{}", text.trim_start().strip_prefix(word).unwrap_or_default()), true))
            }
            Some(_) => None,
            None => Some((text, false)),
        }
    }

    fn is_mentioned(&self, message: &Message) -> bool {
        let entities = message.parse_entities().or_else(|| message.parse_caption_entities()).unwrap_or_default();
        entities.iter().any(|entity| match entity.kind() {
            MessageEntityKind::Mention => entity.text().strip_prefix('@').is_some_and(|name| self.is_our_name(name)),
            MessageEntityKind::TextMention { user } => user.id == self.me.user.id,
            _ => false,
        })
    }

    /// A topic's first message counts as replied to by all of its messages; that is nobody's reply.
    fn is_answered(&self, message: &Message) -> bool {
        let answered = message.reply_to_message().filter(|answered| answered.forum_topic_created().is_none());
        answered.and_then(|answered| answered.from.as_ref()).is_some_and(|from| from.id == self.me.user.id)
    }

    fn take_mention_off(&self, text: &str) -> String {
        let first = text.split_whitespace().next().unwrap_or_default();
        let name = first.strip_prefix('@').map(|name| name.trim_end_matches([',', ':', '.', '!', '?']));
        match name.filter(|name| self.is_our_name(name)) {
            Some(_) => text.trim_start().strip_prefix(first).unwrap_or(text).trim_start().to_owned(),
            None => text.to_owned(),
        }
    }

    fn is_our_name(&self, name: &str) -> bool {
        self.me.user.username.as_deref().is_some_and(|ours| ours.eq_ignore_ascii_case(name))
    }
}

struct Call {
    text: String,
    addressed: Addressed,
}

fn read_message(raw: &Value) -> Result<Message, String> {
    let mut known = raw.clone();
    drop_unknown_entities(&mut known);
    // From text: teloxide's types do not read from a `Value`.
    serde_json::from_str(&known.to_string()).map_err(|error| format!("not a message: {error}"))
}

/// Also in the messages inside: what is replied to, quoted or pinned.
fn drop_unknown_entities(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if let (true, Value::Array(entities)) = (name.ends_with("entities"), &mut *field) {
                    entities.retain(|entity| entity["type"].as_str().is_some_and(|kind| KNOWN_ENTITIES.contains(&kind)));
                }
                drop_unknown_entities(field);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(drop_unknown_entities),
        _ => {}
    }
}

/// What the person wrote. `None` for service messages, which nobody wrote.
fn text(message: &Message, raw: &Value) -> Option<String> {
    let read = message.text().or_else(|| message.caption());
    let unread = || raw.get("text").or_else(|| raw.get("caption")).and_then(Value::as_str);
    match (read.or_else(unread), &message.kind) {
        (Some(text), _) => Some(text.to_owned()),
        (None, MessageKind::Common(_)) => Some(WITHOUT_TEXT.to_owned()),
        (None, _) => None,
    }
}

const WITHOUT_TEXT: &str = "[a message without text]";

fn is_forum(message: &Message) -> bool {
    use teloxide::types::{ChatKind, PublicChatKind};
    matches!(&message.chat.kind, ChatKind::Public(public) if matches!(&public.kind, PublicChatKind::Supergroup(group) if group.is_forum))
}

/// A message that replies to nothing refers to the one that made its topic, which has the name.
fn topic_name(message: &Message) -> Option<String> {
    let created = message.reply_to_message().filter(|_| message.is_topic_message)?.forum_topic_created()?;
    Some(created.name.clone())
}

fn user_id(user: &User) -> TelegramUserId {
    TelegramUserId(i64::try_from(user.id.0).unwrap_or(i64::MAX))
}

/// Bounded and on one line, because it is put before messages.
fn display_name(user: &User) -> String {
    const MAX_CHARS: usize = 64;
    let name = user.full_name();
    let plain: String =
        name.chars().map(|c| if c.is_control() || c == '[' || c == ']' { ' ' } else { c }).take(MAX_CHARS).collect();
    plain.trim().to_owned()
}
