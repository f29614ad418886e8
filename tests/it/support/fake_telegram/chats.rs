//! How people, chats and messages look in JSON; which fields a message gets in which kind of chat.
//!
//! <https://core.telegram.org/bots/api#message>

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

/// Ids of ordinary messages start above the topic ids that tests like to choose.
const FIRST_MESSAGE_ID: i64 = 1001;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) id: i64,
    pub(crate) first_name: &'static str,
    pub(crate) is_bot: bool,
}

pub(crate) const ALICE: User = User::person(111, "Alice");
pub(crate) const BOB: User = User::person(222, "Bob");
pub(crate) const CAROL: User = User::person(333, "Carol");
pub(crate) const OTHER_BOT: User = User::bot(444, "Other");
pub(crate) const PARLOR_BOT: User = User::bot(123_456, "Parlor");

/// What the real server puts into `from` when an admin hides behind the group.
pub(super) const GROUP_ANONYMOUS_BOT: User = User::bot(1_087_968_824, "Group");

impl User {
    pub(crate) const fn person(id: i64, first_name: &'static str) -> Self {
        Self {
            id,
            first_name,
            is_bot: false,
        }
    }

    /// Its username is the first name with `_bot` behind it.
    pub(crate) const fn bot(id: i64, first_name: &'static str) -> Self {
        Self {
            id,
            first_name,
            is_bot: true,
        }
    }

    pub(crate) fn json(self) -> Value {
        if self.is_bot {
            let username = format!("{}_bot", self.first_name.to_lowercase());
            json!({ "id": self.id, "is_bot": true, "first_name": self.first_name, "username": username })
        } else {
            json!({ "id": self.id, "is_bot": false, "first_name": self.first_name, "language_code": "en" })
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Private(User),
    Group,
    Supergroup,
    Forum,
    Channel,
}

/// Whether the bot may still write here.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Welcome,
    /// Kicked from the group or blocked by the user.
    Removed,
    MigratedTo(i64),
}

pub(super) struct Chat {
    pub(super) id: i64,
    pub(super) kind: Kind,
    pub(super) role: Role,
    pub(super) bot_is_admin: bool,
    /// What the group lets plain members do.
    pub(super) members_may_write: bool,
    pub(super) topics: HashMap<i64, Topic>,
    pub(super) messages: HashMap<i64, StoredMessage>,
    next_message_id: i64,
}

pub(super) struct Topic {
    pub(super) closed: bool,
    /// The service message every message of the topic replies to.
    creation: Value,
}

pub(super) struct StoredMessage {
    pub(super) json: Value,
    pub(super) from: Option<User>,
    pub(super) topic: Option<i64>,
    pub(super) reaction: Option<String>,
    /// First message of the reply chain, itself if it replies to nothing.
    root: i64,
}

/// A message before the chat gave it an id and a place.
pub(super) struct Draft {
    pub(super) sender: Sender,
    pub(super) topic: Option<i64>,
    pub(super) reply_to: Option<i64>,
    pub(super) content: Map<String, Value>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    User(User),
    /// An admin in the name of the group.
    AnonymousAdmin,
    /// A channel, which has no `from` at all.
    Channel,
}

impl Chat {
    pub(super) fn new(id: i64, kind: Kind) -> Self {
        let (topics, messages) = (HashMap::new(), HashMap::new());
        let (role, bot_is_admin, members_may_write) = (Role::Welcome, false, true);
        Self {
            id,
            kind,
            role,
            bot_is_admin,
            members_may_write,
            topics,
            messages,
            next_message_id: FIRST_MESSAGE_ID,
        }
    }

    pub(super) fn json(&self) -> Value {
        let title = format!("Chat {}", self.id);
        match self.kind {
            Kind::Private(user) => {
                json!({ "id": self.id, "type": "private", "first_name": user.first_name })
            }
            Kind::Group => {
                json!({ "id": self.id, "type": "group", "title": title, "all_members_are_administrators": true })
            }
            Kind::Supergroup => json!({ "id": self.id, "type": "supergroup", "title": title }),
            Kind::Forum => {
                json!({ "id": self.id, "type": "supergroup", "title": title, "is_forum": true })
            }
            Kind::Channel => json!({ "id": self.id, "type": "channel", "title": title }),
        }
    }

    /// Adds a topic whose id is that of its creation message, and returns that message.
    pub(super) fn create_topic(&mut self, topic_id: i64, name: &str, creator: User) -> Value {
        let content =
            fields(json!({ "forum_topic_created": { "name": name, "icon_color": 7_322_096 } }));
        self.next_message_id = self.next_message_id.max(topic_id + 1);
        let draft = Draft {
            sender: Sender::User(creator),
            topic: Some(topic_id),
            reply_to: None,
            content,
        };
        let creation = self.store(topic_id, draft);
        self.topics.insert(
            topic_id,
            Topic {
                closed: false,
                creation: creation.clone(),
            },
        );
        creation
    }

    pub(super) fn next_message_id(&self) -> i64 {
        self.next_message_id
    }

    /// Stores a message and returns its JSON as everybody sees it.
    pub(super) fn post(&mut self, draft: Draft) -> Value {
        let message_id = self.next_message_id;
        self.next_message_id += 1;
        self.store(message_id, draft)
    }

    fn store(&mut self, message_id: i64, draft: Draft) -> Value {
        let replied = draft.reply_to.map(|id| {
            self.messages
                .get(&id)
                .expect("the replied-to message is in this chat")
        });
        let topic = draft.topic.or(replied.and_then(|replied| replied.topic));
        let root = replied.map_or(message_id, |replied| replied.root);
        let has_reply_chains = matches!(self.kind, Kind::Supergroup | Kind::Forum);

        let mut message = self.head(message_id, draft.sender);
        if let Some(topic) = topic {
            message.insert("message_thread_id".into(), topic.into());
            message.insert("is_topic_message".into(), true.into());
        } else if replied.is_some() && has_reply_chains {
            message.insert("message_thread_id".into(), root.into());
        }
        if let Some(replied) = replied {
            message.insert(
                "reply_to_message".into(),
                without_its_own_reply(&replied.json),
            );
        } else if let Some(topic) = topic.and_then(|topic| self.topics.get(&topic))
            && self.kind == Kind::Forum
        {
            message.insert("reply_to_message".into(), topic.creation.clone());
        }
        message.extend(draft.content);

        let json = Value::Object(message);
        let from = match draft.sender {
            Sender::User(user) => Some(user),
            Sender::AnonymousAdmin | Sender::Channel => None,
        };
        self.messages.insert(
            message_id,
            StoredMessage {
                json: json.clone(),
                from,
                topic,
                reaction: None,
                root,
            },
        );
        json
    }

    fn head(&self, message_id: i64, sender: Sender) -> Map<String, Value> {
        let chat = self.json();
        let mut head = fields(json!({ "message_id": message_id }));
        match sender {
            Sender::User(user) => drop(head.insert("from".into(), user.json())),
            Sender::AnonymousAdmin => {
                head.insert(
                    "from".into(),
                    json!({ "id": GROUP_ANONYMOUS_BOT.id, "is_bot": true, "first_name": "Group",
                    "username": "GroupAnonymousBot" }),
                );
                head.insert("sender_chat".into(), chat.clone());
            }
            Sender::Channel => drop(head.insert("sender_chat".into(), chat.clone())),
        }
        head.insert("chat".into(), chat);
        head.insert("date".into(), unix_time().into());
        head
    }
}

fn without_its_own_reply(message: &Value) -> Value {
    let fields = message.as_object().expect("a message is an object").iter();
    fields
        .filter(|(name, _)| *name != "reply_to_message")
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

pub(super) fn unix_time() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("the clock is past 1970")
        .as_secs()
}

/// The fields of a `json!({…})`.
pub(super) fn fields(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(fields) => fields,
        other => panic!("not an object: {other}"),
    }
}

/// Mentions and commands in a text, as Telegram's clients find them: `@name` and `/command` at the
/// start of a word.
pub(super) fn entities_in(text: &str) -> Vec<Value> {
    let mut entities = Vec::new();
    let mut before = None;
    let mut skip_until = 0;
    for (index, character) in text.char_indices() {
        if index >= skip_until
            && !before.is_some_and(is_name_character)
            && let Some((kind, length)) = mark_at(&text[index..])
        {
            entities.push(
                json!({ "type": kind, "offset": utf16_len(&text[..index]), "length": length }),
            );
            skip_until = index + length;
        }
        before = Some(character);
    }
    entities
}

/// The kind and length of an entity at the start of the text; both kinds are ASCII, so bytes are
/// UTF-16 units.
fn mark_at(text: &str) -> Option<(&'static str, usize)> {
    if let Some(rest) = text.strip_prefix('@') {
        let name = name_length(rest);
        return (name >= 3).then_some(("mention", 1 + name));
    }
    let rest = text.strip_prefix('/')?;
    let command = name_length(rest);
    let addressee = rest[command..]
        .strip_prefix('@')
        .map_or(0, |name| 1 + name_length(name));
    (command > 0).then_some(("bot_command", 1 + command + addressee))
}

fn name_length(text: &str) -> usize {
    text.find(|character| !is_name_character(character))
        .unwrap_or(text.len())
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

pub(super) fn utf16_len(text: &str) -> usize {
    text.encode_utf16().count()
}
