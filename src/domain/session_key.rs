//! The place of a message, as a typed value with a single text form.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{
    AgentId, AgentUid, ChatId, DiscordId, LocalName, PersonId, Platform, TelegramUserId, TopicId,
};

/// Names a place. `Display` and `FromStr` are inverse.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum SessionKey {
    /// `telegram:dm:<user>` or, in a topic of the private chat, `telegram:dm:<user>:<topic>`
    TelegramDm {
        user: TelegramUserId,
        topic: Option<TopicId>,
    },
    /// `telegram:topic:<chat>:<topic>`
    TelegramTopic { chat: ChatId, topic: TopicId },
    /// `telegram:group:<chat>:<user>`, or without the user when all members share a conversation
    TelegramGroup {
        chat: ChatId,
        member: Option<TelegramUserId>,
    },
    /// `discord:dm:<user>`
    DiscordDm { user: DiscordId },
    /// `discord:channel:<channel>[:<user>]`
    DiscordChannel {
        channel: DiscordId,
        member: Option<DiscordId>,
    },
    /// `discord:thread:<channel>:<thread>`
    DiscordThread {
        channel: DiscordId,
        thread: DiscordId,
    },
    /// `local:<room>[:<topic>]`
    Local {
        room: LocalName,
        topic: Option<LocalName>,
    },
    /// `web:<room>[:<topic>]`
    Web {
        room: LocalName,
        topic: Option<LocalName>,
    },
    /// `cron:<agent>:<job>`
    Cron { agent: AgentId, job: LocalName },
    /// `child:<id>`
    Child { id: LocalName },
    /// `import:<uid>:<number>`: a conversation that an imported agent brought along. No message
    /// ever arrives here, and no turn reads the place.
    Import { agent: AgentUid, number: u32 },
}

impl SessionKey {
    /// The place's platform; none for places inside the gateway.
    pub fn platform(&self) -> Option<Platform> {
        match self {
            Self::TelegramDm { .. } | Self::TelegramTopic { .. } | Self::TelegramGroup { .. } => {
                Some(Platform::Telegram)
            }
            Self::DiscordDm { .. } | Self::DiscordChannel { .. } | Self::DiscordThread { .. } => {
                Some(Platform::Discord)
            }
            Self::Local { .. } => Some(Platform::Local),
            Self::Web { .. } => Some(Platform::Web),
            Self::Cron { .. } | Self::Child { .. } | Self::Import { .. } => None,
        }
    }

    /// Whether only agents are there. No message is ever sent to such a place.
    pub fn is_internal(&self) -> bool {
        self.platform().is_none()
    }

    /// Whether a single person talks to the bot here.
    pub fn is_private(&self) -> bool {
        matches!(
            self,
            Self::TelegramDm { .. }
                | Self::DiscordDm { .. }
                | Self::Local { .. }
                | Self::Web { .. }
        )
    }

    /// The only person who writes here, if the key names a person.
    pub fn only_person(&self) -> Option<PersonId> {
        match self {
            Self::TelegramDm { user, .. }
            | Self::TelegramGroup {
                member: Some(user), ..
            } => Some(PersonId::Telegram(*user)),
            Self::DiscordDm { user }
            | Self::DiscordChannel {
                member: Some(user), ..
            } => Some(PersonId::Discord(*user)),
            _ => None,
        }
    }

    /// The group or channel around this place.
    pub fn whole_group(&self) -> Option<SessionKey> {
        match self {
            Self::TelegramTopic { chat, .. }
            | Self::TelegramGroup {
                chat,
                member: Some(_),
            } => Some(Self::TelegramGroup {
                chat: *chat,
                member: None,
            }),
            Self::DiscordThread { channel, .. }
            | Self::DiscordChannel {
                channel,
                member: Some(_),
            } => Some(Self::DiscordChannel {
                channel: *channel,
                member: None,
            }),
            _ => None,
        }
    }

    /// Whether this is a group or a channel as a whole, without topic, thread or member.
    pub fn is_plain_group(&self) -> bool {
        matches!(
            self,
            Self::TelegramGroup { member: None, .. } | Self::DiscordChannel { member: None, .. }
        )
    }

    /// The conversation of a single person in this group. None where there is no such thing.
    pub fn of_member(&self, person: &PersonId) -> Option<SessionKey> {
        match (self, person) {
            (Self::TelegramGroup { chat, member: None }, PersonId::Telegram(user)) => {
                Some(Self::TelegramGroup {
                    chat: *chat,
                    member: Some(*user),
                })
            }
            (
                Self::DiscordChannel {
                    channel,
                    member: None,
                },
                PersonId::Discord(user),
            ) => Some(Self::DiscordChannel {
                channel: *channel,
                member: Some(*user),
            }),
            _ => None,
        }
    }

    /// Whether this place equals `whole`, or is a part of `whole`: a member's conversation, a topic
    /// or a thread.
    pub fn is_in(&self, whole: &SessionKey) -> bool {
        self == whole || self.whole_group().as_ref() == Some(whole)
    }

    /// GLOB patterns for the text form of every place [inside](Self::is_in) this place.
    pub fn globs(&self) -> [String; 2] {
        let parts = match self {
            Self::TelegramGroup { chat, member: None } => format!("telegram:[gt]*:{chat}:*"),
            Self::DiscordChannel {
                channel,
                member: None,
            } => format!("discord:[ct]h*:{channel}:*"),
            _ => self.to_string(),
        };
        [self.to_string(), parts]
    }

    /// A GLOB pattern for the text form of the places with an agent's imported conversations.
    pub fn imports_of(agent: AgentUid) -> String {
        format!("import:{agent}:*")
    }

    /// The Telegram group of this place.
    pub fn telegram_group(&self) -> Option<ChatId> {
        match self {
            Self::TelegramTopic { chat, .. } | Self::TelegramGroup { chat, .. } => Some(*chat),
            _ => None,
        }
    }

    /// This place in another Telegram group. Places outside Telegram groups stay the same.
    pub fn in_telegram_group(&self, chat: ChatId) -> SessionKey {
        match self {
            Self::TelegramTopic { topic, .. } => Self::TelegramTopic {
                chat,
                topic: *topic,
            },
            Self::TelegramGroup { member, .. } => Self::TelegramGroup {
                chat,
                member: *member,
            },
            other => other.clone(),
        }
    }

    /// Whether messages of several people share a conversation.
    pub fn is_shared(&self) -> bool {
        matches!(
            self,
            Self::TelegramTopic { .. }
                | Self::TelegramGroup { member: None, .. }
                | Self::DiscordThread { .. }
                | Self::DiscordChannel { member: None, .. }
        )
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TelegramDm { user, topic: None } => write!(f, "telegram:dm:{user}"),
            Self::TelegramDm {
                user,
                topic: Some(topic),
            } => write!(f, "telegram:dm:{user}:{topic}"),
            Self::TelegramTopic { chat, topic } => write!(f, "telegram:topic:{chat}:{topic}"),
            Self::TelegramGroup { chat, member: None } => write!(f, "telegram:group:{chat}"),
            Self::TelegramGroup {
                chat,
                member: Some(member),
            } => write!(f, "telegram:group:{chat}:{member}"),
            Self::DiscordDm { user } => write!(f, "discord:dm:{user}"),
            Self::DiscordChannel {
                channel,
                member: None,
            } => write!(f, "discord:channel:{channel}"),
            Self::DiscordChannel {
                channel,
                member: Some(member),
            } => write!(f, "discord:channel:{channel}:{member}"),
            Self::DiscordThread { channel, thread } => {
                write!(f, "discord:thread:{channel}:{thread}")
            }
            Self::Local { room, topic: None } => write!(f, "local:{room}"),
            Self::Local {
                room,
                topic: Some(topic),
            } => write!(f, "local:{room}:{topic}"),
            Self::Web { room, topic: None } => write!(f, "web:{room}"),
            Self::Web {
                room,
                topic: Some(topic),
            } => write!(f, "web:{room}:{topic}"),
            Self::Cron { agent, job } => write!(f, "cron:{agent}:{job}"),
            Self::Child { id } => write!(f, "child:{id}"),
            Self::Import { agent, number } => write!(f, "import:{agent}:{number}"),
        }
    }
}

/// The text is no session key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not the key of a place. A key looks like telegram:topic:-1001234567890:101, discord:channel:1234567890 or local:home; /whoami in the chat prints it"
)]
pub struct InvalidSessionKey(pub String);

impl FromStr for SessionKey {
    type Err = InvalidSessionKey;

    fn from_str(text: &str) -> Result<Self, InvalidSessionKey> {
        parse(text).ok_or_else(|| InvalidSessionKey(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<SessionKey> {
    let fields: Vec<&str> = text.split(':').collect();
    Some(match fields.as_slice() {
        ["telegram", "dm", user] => SessionKey::TelegramDm {
            user: person(user)?,
            topic: None,
        },
        ["telegram", "dm", user, topic] => SessionKey::TelegramDm {
            user: person(user)?,
            topic: Some(self::topic(topic)?),
        },
        ["telegram", "topic", chat, topic] => SessionKey::TelegramTopic {
            chat: group(chat)?,
            topic: self::topic(topic)?,
        },
        ["telegram", "group", chat] => SessionKey::TelegramGroup {
            chat: group(chat)?,
            member: None,
        },
        ["telegram", "group", chat, user] => SessionKey::TelegramGroup {
            chat: group(chat)?,
            member: Some(person(user)?),
        },
        ["discord", "dm", user] => SessionKey::DiscordDm {
            user: user.parse().ok()?,
        },
        ["discord", "channel", channel] => SessionKey::DiscordChannel {
            channel: channel.parse().ok()?,
            member: None,
        },
        ["discord", "channel", channel, user] => SessionKey::DiscordChannel {
            channel: channel.parse().ok()?,
            member: Some(user.parse().ok()?),
        },
        ["discord", "thread", channel, thread] => SessionKey::DiscordThread {
            channel: channel.parse().ok()?,
            thread: thread.parse().ok()?,
        },
        ["local", room] => SessionKey::Local {
            room: room.parse().ok()?,
            topic: None,
        },
        ["local", room, topic] => SessionKey::Local {
            room: room.parse().ok()?,
            topic: Some(topic.parse().ok()?),
        },
        ["web", room] => SessionKey::Web {
            room: room.parse().ok()?,
            topic: None,
        },
        ["web", room, topic] => SessionKey::Web {
            room: room.parse().ok()?,
            topic: Some(topic.parse().ok()?),
        },
        ["cron", agent, job] => SessionKey::Cron {
            agent: AgentId::parse(agent).ok()?,
            job: job.parse().ok()?,
        },
        ["child", id] => SessionKey::Child {
            id: id.parse().ok()?,
        },
        ["import", agent, number] => SessionKey::Import {
            agent: same(agent)?,
            number: same(number).filter(|number| *number > 0)?,
        },
        _ => return None,
    })
}

/// A value with exactly this text.
fn same<T: FromStr + ToString>(text: &str) -> Option<T> {
    let value: Option<T> = text.parse().ok();
    value.filter(|value| value.to_string() == text)
}

fn person(text: &str) -> Option<TelegramUserId> {
    text.parse().ok().filter(|user: &TelegramUserId| user.0 > 0)
}

fn group(text: &str) -> Option<ChatId> {
    text.parse().ok().filter(|chat: &ChatId| chat.0 < 0)
}

fn topic(text: &str) -> Option<TopicId> {
    text.parse().ok().filter(|topic: &TopicId| topic.0 > 0)
}

impl TryFrom<String> for SessionKey {
    type Error = InvalidSessionKey;

    fn try_from(text: String) -> Result<Self, InvalidSessionKey> {
        text.parse()
    }
}

impl From<SessionKey> for String {
    fn from(key: SessionKey) -> String {
        key.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_key() -> impl Strategy<Value = SessionKey> {
        let user = || (1..i64::MAX).prop_map(TelegramUserId);
        let chat = || (i64::MIN..0).prop_map(ChatId);
        let topic = || (1..i32::MAX).prop_map(TopicId);
        let discord = || any::<u64>().prop_map(DiscordId);
        let name = || "[a-z0-9_-]{1,64}".prop_map(|name| name.parse::<LocalName>().unwrap());
        let agent = || {
            "[a-z][a-z0-9]{0,20}(-[a-z0-9]{1,20}){0,2}"
                .prop_filter_map("reserved", |id| AgentId::parse(&id).ok())
        };
        prop_oneof![
            (user(), proptest::option::of(topic()))
                .prop_map(|(user, topic)| SessionKey::TelegramDm { user, topic }),
            (chat(), topic()).prop_map(|(chat, topic)| SessionKey::TelegramTopic { chat, topic }),
            (chat(), proptest::option::of(user()))
                .prop_map(|(chat, member)| SessionKey::TelegramGroup { chat, member }),
            discord().prop_map(|user| SessionKey::DiscordDm { user }),
            (discord(), proptest::option::of(discord()))
                .prop_map(|(channel, member)| SessionKey::DiscordChannel { channel, member }),
            (discord(), discord())
                .prop_map(|(channel, thread)| SessionKey::DiscordThread { channel, thread }),
            (name(), proptest::option::of(name()))
                .prop_map(|(room, topic)| SessionKey::Local { room, topic }),
            (name(), proptest::option::of(name()))
                .prop_map(|(room, topic)| SessionKey::Web { room, topic }),
            (agent(), name()).prop_map(|(agent, job)| SessionKey::Cron { agent, job }),
            name().prop_map(|id| SessionKey::Child { id }),
            (any::<u128>(), 1..=u32::MAX).prop_map(|(uid, number)| SessionKey::Import {
                agent: AgentUid(uuid::Uuid::from_u128(uid)),
                number,
            }),
        ]
    }

    proptest! {
        /// S4.12, S4.13, S4.14
        #[test]
        fn printing_and_parsing_are_inverse(key in any_key()) {
            prop_assert_eq!(key.to_string().parse::<SessionKey>(), Ok(key));
        }

        #[test]
        fn what_parses_prints_the_same(text in "(telegram|discord|local|web|cron|child|import)(:(dm|group|topic|channel|thread|[-+0-9a-z]{0,5}|\\{?0{8}-?0{4}-?0{4}-?0{4}-?0{11}[aA]\\}?)){0,4}") {
            if let Ok(key) = text.parse::<SessionKey>() {
                prop_assert_eq!(key.to_string(), text);
            }
        }
    }

    /// The patterns decide about the text like [`SessionKey::is_in`] about the value.
    #[test]
    fn the_parts_of_a_place_are_found_by_patterns() {
        let keys = [
            "telegram:dm:5",
            "telegram:group:-5",
            "telegram:group:-5:7",
            "telegram:group:-55:7",
            "telegram:topic:-5:7",
            "telegram:topic:-7:5",
            "discord:dm:5",
            "discord:channel:5",
            "discord:channel:5:7",
            "discord:channel:7:5",
            "discord:channel:55",
            "discord:thread:5:7",
            "discord:thread:7:5",
            "local:home",
            "web:home",
            "web:home:work",
        ];
        let store = rusqlite::Connection::open_in_memory().unwrap();
        for (place, whole) in keys
            .iter()
            .flat_map(|place| keys.iter().map(move |whole| (place, whole)))
        {
            let key = |text: &str| text.parse::<SessionKey>().unwrap();
            let [own, parts] = key(whole).globs();
            let sql = "SELECT ?1 GLOB ?2 OR ?1 GLOB ?3";
            let is_found: bool = store
                .query_row(sql, [*place, &own, &parts], |row| row.get(0))
                .unwrap();
            assert_eq!(
                is_found,
                key(place).is_in(&key(whole)),
                "{place} in {whole}"
            );
        }
        assert!(
            "discord:thread:5:7"
                .parse::<SessionKey>()
                .unwrap()
                .is_in(&"discord:channel:5".parse().unwrap())
        );
    }

    #[test]
    fn places_of_the_wrong_sign_are_refused() {
        for bad in [
            "telegram:topic:100:1",
            "telegram:dm:-5",
            "telegram:topic:-100:0",
            "telegram:group:5",
            "telegram",
            "local:",
            "",
        ] {
            assert!(bad.parse::<SessionKey>().is_err(), "{bad}");
        }
    }
}
