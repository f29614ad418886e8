//! A type for each kind of id, so that a chat cannot be passed in place of a topic.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The chat platforms a person can write from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Platform {
    Telegram,
    Discord,
    /// The terminal chat.
    Local,
    /// The chat in a browser.
    Web,
}

impl Platform {
    pub const ALL: [Platform; 4] = [
        Platform::Telegram,
        Platform::Discord,
        Platform::Local,
        Platform::Web,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Platform::Telegram => "telegram",
            Platform::Discord => "discord",
            Platform::Local => "local",
            Platform::Web => "web",
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Platform {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Platform::ALL
            .into_iter()
            .find(|platform| platform.as_str() == text)
            .ok_or(())
    }
}

/// A Telegram chat; groups and supergroups are negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ChatId(pub i64);

/// A topic of a Telegram forum or private chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TopicId(pub i32);

impl TopicId {
    /// The topic of every forum; its messages carry no topic id.
    pub const GENERAL: TopicId = TopicId(1);
}

/// A Telegram user; a private chat has the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TelegramUserId(pub i64);

/// A Discord user, channel, thread, category, server or role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DiscordId(pub u64);

macro_rules! number_text {
    ($($id:ident($number:ty)),+) => {$(
        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $id {
            type Err = ();

            /// Takes exactly the text of `Display`: no sign, zero or space in front.
            fn from_str(text: &str) -> Result<Self, ()> {
                let id = $id(text.parse::<$number>().map_err(|_| ())?);
                if id.to_string() == text { Ok(id) } else { Err(()) }
            }
        }
    )+};
}

number_text!(
    ChatId(i64),
    TopicId(i32),
    TelegramUserId(i64),
    DiscordId(u64)
);

/// A room or topic of the terminal chat or the web chat.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalName(Arc<str>);

impl LocalName {
    pub const MAX_CHARS: usize = 64;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LocalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for LocalName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let fits = (1..=Self::MAX_CHARS).contains(&text.len());
        let plain = text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_');
        if fits && plain {
            Ok(LocalName(text.into()))
        } else {
            Err(())
        }
    }
}

/// An agent's id for people: a slug such as `rose`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentId(Arc<str>);

/// The problem of an agent id, in words for its author.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAgentId {
    #[error("an agent id is 1 to {} characters long", AgentId::MAX_CHARS)]
    Length,
    #[error("an agent id has only a-z, 0-9 and single hyphens inside, such as `night-desk`")]
    Characters,
    #[error("`{0}` is a reserved word and cannot be an agent id")]
    Reserved(String),
}

impl AgentId {
    pub const MAX_CHARS: usize = 64;
    /// Words used by commands, keys or internal events.
    const RESERVED: [&'static str; 6] = ["internal", "system", "reset", "close", "once", "default"];

    pub fn parse(text: &str) -> Result<Self, InvalidAgentId> {
        if text.is_empty() || text.chars().count() > Self::MAX_CHARS {
            return Err(InvalidAgentId::Length);
        }
        let plain = text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if !plain || text.starts_with('-') || text.ends_with('-') || text.contains("--") {
            return Err(InvalidAgentId::Characters);
        }
        if Self::RESERVED.contains(&text) {
            return Err(InvalidAgentId::Reserved(text.to_owned()));
        }
        Ok(AgentId(text.into()))
    }

    /// The agent every installation has.
    pub fn main() -> Self {
        AgentId("main".into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for AgentId {
    type Error = InvalidAgentId;

    fn try_from(text: String) -> Result<Self, InvalidAgentId> {
        AgentId::parse(&text)
    }
}

impl From<AgentId> for String {
    fn from(id: AgentId) -> String {
        id.0.as_ref().to_owned()
    }
}

/// The key of an agent's rows; stays when the agent is renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentUid(pub Uuid);

impl TryFrom<String> for AgentUid {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map_err(|()| "no uid of an agent")
    }
}

impl From<AgentUid> for String {
    fn from(uid: AgentUid) -> Self {
        uid.to_string()
    }
}

impl FromStr for AgentUid {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        text.parse().map(AgentUid).map_err(|_| ())
    }
}

impl fmt::Display for AgentUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A person on a platform, as `[access] owners` names them: `telegram:12345678`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum PersonId {
    Telegram(TelegramUserId),
    Discord(DiscordId),
    /// The person with this machine in hand: at the terminal, or in a browser that was let in as an
    /// owner.
    Local(LocalName),
}

impl PersonId {
    /// An unknown person; no platform gives the number 0 to a person.
    pub fn is_nobody(&self) -> bool {
        matches!(
            self,
            PersonId::Telegram(TelegramUserId(0)) | PersonId::Discord(DiscordId(0))
        )
    }

    pub fn platform(&self) -> Platform {
        match self {
            PersonId::Telegram(_) => Platform::Telegram,
            PersonId::Discord(_) => Platform::Discord,
            PersonId::Local(_) => Platform::Local,
        }
    }
}

impl fmt::Display for PersonId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PersonId::Telegram(user) => write!(f, "telegram:{user}"),
            PersonId::Discord(user) => write!(f, "discord:{user}"),
            PersonId::Local(name) => write!(f, "local:{name}"),
        }
    }
}

impl FromStr for PersonId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text.split_once(':').ok_or(())? {
            ("telegram", user) => user
                .parse()
                .ok()
                .filter(|user: &TelegramUserId| user.0 > 0)
                .map(PersonId::Telegram),
            ("discord", user) => user.parse().ok().map(PersonId::Discord),
            ("local", name) => name.parse().ok().map(PersonId::Local),
            _ => None,
        }
        .ok_or(())
    }
}

impl TryFrom<String> for PersonId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
            .map_err(|()| format!("`{text}` names no person"))
    }
}

impl From<PersonId> for String {
    fn from(id: PersonId) -> String {
        id.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S1.50, S2.18
    #[test]
    fn agent_ids_are_plain_slugs() {
        for good in ["main", "rose", "night-desk", "a", "7of9", &"x".repeat(64)] {
            assert!(AgentId::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "../x",
            "a/b",
            "Rose",
            "rosé",
            "ros\u{0435}",
            "-a",
            "a-",
            "a--b",
            "a b",
            "internal",
            &"x".repeat(65),
        ] {
            assert!(AgentId::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn people_round_trip() {
        for text in ["telegram:12345678", "discord:8765", "local:you"] {
            assert_eq!(text.parse::<PersonId>().unwrap().to_string(), text);
        }
        for bad in [
            "",
            "telegram",
            "telegram:",
            "telegram:-5",
            "telegram:+5",
            "telegram:05",
            "matrix:5",
            "local:You",
        ] {
            assert!(bad.parse::<PersonId>().is_err(), "{bad}");
        }
    }
}
