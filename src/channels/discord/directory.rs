//! The known channels and threads: learnt from events, and fetched when a message comes from an
//! unknown channel.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use dashmap::DashMap;
use serde_json::{Value, json};
use serenity::model::channel::ChannelType;

use super::api::{Api, ApiError, Call};
use crate::domain::{DiscordId, SessionKey};

/// Above this number the directory is emptied and filled again by calls; bots in real use stay far
/// below.
const MOST_KNOWN: usize = 50_000;

/// A channel, thread or category.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChannelInfo {
    kind: ChannelType,
    pub(super) server: Option<DiscordId>,
    /// A thread's channel, or a channel's category.
    pub(super) parent: Option<DiscordId>,
    name: Option<String>,
    /// Ids of a forum post's tags.
    tags: Vec<DiscordId>,
    /// Names of a forum's tags.
    tag_names: HashMap<DiscordId, String>,
    pub(super) is_locked: bool,
    pub(super) is_archived: bool,
}

/// The place of a message, as far as routing asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Surroundings {
    pub(super) server: Option<DiscordId>,
    /// A thread's channel; absent for other channels.
    pub(super) thread_of: Option<DiscordId>,
    pub(super) category: Option<DiscordId>,
    /// A thread's name.
    pub(super) name: Option<String>,
    /// The server and the channel around, as `Garden/roses`.
    pub(super) path: Option<String>,
    pub(super) tags: Vec<String>,
}

/// A plain mutex, because a look-up holds the lock only for a moment.
#[derive(Default)]
pub(super) struct Directory {
    channels: Mutex<HashMap<DiscordId, ChannelInfo>>,
    /// The channel of each person's private chat.
    private: DashMap<DiscordId, DiscordId>,
    /// Names of servers.
    servers: DashMap<DiscordId, String>,
}

impl Directory {
    /// Learns the channels and threads in `GUILD_CREATE`.
    pub(super) fn learn_server(&self, server: &Value) {
        let id = id_in(server, "id");
        if let (Some(id), Some(name)) = (id, server["name"].as_str()) {
            self.servers.insert(id, name.to_owned());
        }
        list(server, "channels")
            .chain(list(server, "threads"))
            .for_each(|channel| drop(self.learn(channel, id)));
    }

    /// Learns the threads in `THREAD_LIST_SYNC`.
    pub(super) fn learn_threads(&self, sync: &Value) {
        let server = id_in(sync, "guild_id");
        list(sync, "threads").for_each(|thread| drop(self.learn(thread, server)));
    }

    /// Returns the earlier entry. `server` is for channels inside `GUILD_CREATE`, which do not name
    /// their server.
    pub(super) fn learn(&self, channel: &Value, server: Option<DiscordId>) -> Option<ChannelInfo> {
        let id = id_in(channel, "id")?;
        let known = ChannelInfo::read(channel, server)?;
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        if channels.len() >= MOST_KNOWN {
            channels.clear();
        }
        channels.insert(id, known)
    }

    /// Learns the channel of an interaction, which has fewer fields than other events, so an
    /// existing entry stays.
    pub(super) fn learn_if_new(&self, channel: &Value, server: Option<DiscordId>) {
        if id_in(channel, "id").is_some_and(|id| server.is_some() && self.get(id).is_none()) {
            self.learn(channel, server);
        }
    }

    pub(super) fn forget(&self, channel: DiscordId) {
        self.channels
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&channel);
    }

    pub(super) fn get(&self, channel: DiscordId) -> Option<ChannelInfo> {
        self.channels
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&channel)
            .cloned()
    }

    /// Fetches an unknown channel.
    pub(super) async fn find(
        &self,
        api: &Api,
        channel: DiscordId,
    ) -> Result<ChannelInfo, ApiError> {
        if let Some(known) = self.get(channel) {
            return Ok(known);
        }
        let raw: Value = api.call(Call::get(format!("/channels/{channel}"))).await?;
        self.learn(&raw, None);
        ChannelInfo::read(&raw, None)
            .ok_or_else(|| ApiError::NoAnswer("it describes no channel".into()))
    }

    /// The place as routing needs it. An unreachable parent channel leaves category and tags empty.
    pub(super) async fn surroundings(
        &self,
        api: &Api,
        channel: DiscordId,
    ) -> Result<Surroundings, ApiError> {
        let known = self.find(api, channel).await?;
        let Some(parent) = known.parent.filter(|_| known.is_thread()) else {
            return Ok(Surroundings {
                server: known.server,
                category: known.parent,
                path: self.path(&known),
                ..Surroundings::default()
            });
        };
        let above = self.find(api, parent).await.ok();
        let tag_name = |tag: &DiscordId| above.as_ref()?.tag_names.get(tag).cloned();
        Ok(Surroundings {
            server: known.server,
            thread_of: Some(parent),
            category: above.as_ref().and_then(|above| above.parent),
            tags: known.tags.iter().filter_map(tag_name).collect(),
            path: above.as_ref().and_then(|above| self.path(above)),
            name: known.name,
        })
    }

    /// `Garden/roses`, for a channel whose names are both known.
    fn path(&self, channel: &ChannelInfo) -> Option<String> {
        let server = self.servers.get(&channel.server?)?;
        Some(format!("{}/{}", *server, channel.name.as_ref()?))
    }

    /// The session key of a thread; none for other channels.
    pub(super) fn thread(&self, id: DiscordId) -> Option<SessionKey> {
        let known = self.get(id).filter(ChannelInfo::is_thread)?;
        Some(SessionKey::DiscordThread {
            channel: known.parent?,
            thread: id,
        })
    }

    pub(super) fn learn_private(&self, person: DiscordId, channel: DiscordId) {
        if self.private.len() >= MOST_KNOWN {
            self.private.clear();
        }
        self.private.insert(person, channel);
    }

    /// The call for a person's private chat, whose answer has the last message.
    pub(super) fn private_call(&self, person: DiscordId) -> Call {
        match self.private.get(&person).map(|channel| *channel) {
            Some(channel) => Call::get(format!("/channels/{channel}")),
            None => open_private(person),
        }
    }

    /// The channel of a person's private chat, opened if need be.
    pub(super) async fn private(
        &self,
        api: &Api,
        person: DiscordId,
    ) -> Result<DiscordId, ApiError> {
        if let Some(channel) = self.private.get(&person).map(|channel| *channel) {
            return Ok(channel);
        }
        let opened: Value = api.call(open_private(person)).await?;
        let channel = id_in(&opened, "id")
            .ok_or_else(|| ApiError::NoAnswer("the private chat has no id".into()))?;
        self.learn_private(person, channel);
        Ok(channel)
    }
}

/// Opening shows nothing to the person. For an open chat Discord answers with its channel.
fn open_private(person: DiscordId) -> Call {
    Call::post(
        "/users/@me/channels".into(),
        json!({ "recipient_id": person.to_string() }),
    )
}

impl ChannelInfo {
    fn read(raw: &Value, server: Option<DiscordId>) -> Option<Self> {
        let kind = ChannelType::from(u8::try_from(raw["type"].as_u64()?).ok()?);
        let tag_name = |tag: &Value| Some((id_in(tag, "id")?, tag["name"].as_str()?.to_owned()));
        Some(ChannelInfo {
            kind,
            server: id_in(raw, "guild_id").or(server),
            parent: id_in(raw, "parent_id"),
            name: raw["name"].as_str().map(str::to_owned),
            tags: list(raw, "applied_tags").filter_map(id).collect(),
            tag_names: list(raw, "available_tags").filter_map(tag_name).collect(),
            is_locked: raw["thread_metadata"]["locked"] == true,
            is_archived: raw["thread_metadata"]["archived"] == true,
        })
    }

    pub(super) fn is_thread(&self) -> bool {
        matches!(
            self.kind,
            ChannelType::NewsThread | ChannelType::PublicThread | ChannelType::PrivateThread
        )
    }

    /// Forums have no messages of their own: their posts are threads.
    pub(super) fn has_messages(&self) -> bool {
        use ChannelType as T;
        self.is_thread()
            || matches!(
                self.kind,
                T::Text | T::Private | T::Voice | T::News | T::Stage
            )
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

/// Discord writes ids as strings.
pub(super) fn id(value: &Value) -> Option<DiscordId> {
    value.as_str()?.parse().ok()
}

pub(super) fn id_in(value: &Value, field: &str) -> Option<DiscordId> {
    id(value.get(field)?)
}

pub(super) fn list<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value
        .get(field)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

#[cfg(test)]
mod tests {
    use crate::config::Secret;

    use super::*;

    fn server() -> Value {
        json!({
            "id": "1",
            "name": "Garden",
            "channels": [
                { "id": "10", "type": 4, "name": "Help" },
                { "id": "20", "type": 15, "name": "questions", "parent_id": "10", "available_tags": [{ "id": "5", "name": "bug" }] },
                { "id": "30", "type": 0, "name": "general" },
                { "id": "x", "type": 0 },
            ],
            "threads": [{ "id": "21", "type": 11, "name": "It broke", "parent_id": "20", "applied_tags": ["5", "6"] }],
        })
    }

    /// Nothing here may be asked for: there is no server.
    #[tokio::test]
    async fn a_post_knows_its_forum_its_category_and_its_tags() {
        let (directory, api) = (
            Directory::default(),
            Api::new("http://127.0.0.1:1", Secret::new("t")),
        );
        directory.learn_server(&server());
        let post = directory.surroundings(&api, DiscordId(21)).await.unwrap();
        let expected = Surroundings {
            server: Some(DiscordId(1)),
            thread_of: Some(DiscordId(20)),
            category: Some(DiscordId(10)),
            name: Some("It broke".into()),
            path: Some("Garden/questions".into()),
            tags: vec!["bug".into()],
        };
        assert_eq!(post, expected);
        let general = directory.surroundings(&api, DiscordId(30)).await.unwrap();
        assert_eq!(
            general,
            Surroundings {
                server: Some(DiscordId(1)),
                path: Some("Garden/general".into()),
                ..Surroundings::default()
            }
        );
        assert_eq!(
            directory.thread(DiscordId(21)).unwrap().to_string(),
            "discord:thread:20:21"
        );
        assert_eq!(directory.thread(DiscordId(30)), None);
    }
}
