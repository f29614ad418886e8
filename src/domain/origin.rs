//! The facts about a message that routing may use.

use serde::{Deserialize, Serialize};

use super::{ChatId, DiscordId, PersonId, SessionKey, TopicId};

/// The place, the person, and the facts about both for the filters of bindings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub key: SessionKey,
    pub person: PersonId,
    /// Roles the person has on the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<DiscordId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<DiscordId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<DiscordId>,
    /// The topic's or thread's name, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The group's name, if the message came with the name. Learned, and not stored with the
    /// message.
    #[serde(skip)]
    pub group: Option<String>,
    /// The group's id before the change to a supergroup; bindings with the old id still count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formerly: Option<ChatId>,
    /// Tags of a forum post.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

impl Origin {
    pub fn new(key: SessionKey, person: PersonId) -> Self {
        Origin {
            key,
            person,
            roles: Vec::new(),
            server: None,
            category: None,
            name: None,
            group: None,
            formerly: None,
            tags: Vec::new(),
        }
    }

    /// The name of the place, if any: of the topic or thread, else of the group.
    pub fn place_name(&self) -> Option<&str> {
        let own = match &self.key {
            SessionKey::Local {
                topic: Some(topic), ..
            }
            | SessionKey::Web {
                topic: Some(topic), ..
            } => Some(topic.as_str()),
            SessionKey::TelegramTopic { topic, .. } if *topic == TopicId::GENERAL => {
                Some("General")
            }
            SessionKey::TelegramGroup { .. } | SessionKey::DiscordChannel { .. } => {
                self.group.as_deref()
            }
            _ => None,
        };
        self.name.as_deref().or(own)
    }
}
