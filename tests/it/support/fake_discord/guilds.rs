//! Servers with their channels, roles and members.

use std::collections::btree_map::Entry;

use serde_json::json;

use super::FakeDiscord;
use super::places::Room;
use super::users::User;
use super::world::{ANNOUNCEMENT, CATEGORY, Channel, FORUM, STAGE, TEXT, VOICE};

/// A server. What is added to it while the bot is connected is told to the bot.
#[derive(Clone)]
pub(crate) struct GuildHandle {
    discord: FakeDiscord,
    pub(crate) id: u64,
}

impl GuildHandle {
    pub(super) fn new(discord: FakeDiscord, id: u64) -> Self {
        Self { discord, id }
    }

    pub(crate) fn text_channel(&self, id: u64, name: &str) -> Room {
        self.channel(id, TEXT, name)
    }

    pub(crate) fn announcement_channel(&self, id: u64, name: &str) -> Room {
        self.channel(id, ANNOUNCEMENT, name)
    }

    /// The chat of a voice channel.
    pub(crate) fn voice_channel(&self, id: u64, name: &str) -> Room {
        self.channel(id, VOICE, name)
    }

    pub(crate) fn stage(&self, id: u64, name: &str) -> Room {
        self.channel(id, STAGE, name)
    }

    pub(crate) fn category(&self, id: u64, name: &str) -> Room {
        self.channel(id, CATEGORY, name)
    }

    /// Posts in it are threads; see [`Room::posts`].
    pub(crate) fn forum(&self, id: u64, name: &str, tags: &[(u64, &str)]) -> Room {
        let tags = tags
            .iter()
            .map(|(id, name)| (*id, (*name).to_owned()))
            .collect();
        self.add(Channel {
            tags,
            ..Channel::new(id, FORUM, name)
        })
    }

    fn channel(&self, id: u64, kind: u8, name: &str) -> Room {
        self.add(Channel::new(id, kind, name))
    }

    fn add(&self, channel: Channel) -> Room {
        let id = channel.id;
        let mut world = self.discord.world();
        if let Entry::Vacant(free) = world.channels.entry(id) {
            free.insert(Channel {
                guild: Some(self.id),
                ..channel
            });
            world.dispatch_channel("CHANNEL_CREATE", id);
        }
        drop(world);
        Room::new(self.discord.clone(), id)
    }

    pub(crate) fn role(&self, id: u64, name: &str) {
        self.discord
            .world()
            .guild(self.id)
            .roles
            .insert(id, name.into());
    }

    /// Everybody is a member; this sets their roles.
    pub(crate) fn gives_roles(&self, user: User, roles: &[u64]) {
        let mut world = self.discord.world();
        world.users.insert(user.id, user);
        world
            .guild(self.id)
            .members
            .entry(user.id)
            .or_default()
            .roles = roles.to_vec();
    }

    pub(crate) fn gives_nick(&self, user: User, nick: &str) {
        let mut world = self.discord.world();
        world.users.insert(user.id, user);
        world
            .guild(self.id)
            .members
            .entry(user.id)
            .or_default()
            .nick = Some(nick.into());
    }

    /// The person's interactions carry the administrator permission from now on.
    pub(crate) fn makes_administrator(&self, user: User) {
        let mut world = self.discord.world();
        world.users.insert(user.id, user);
        world
            .guild(self.id)
            .members
            .entry(user.id)
            .or_default()
            .is_administrator = true;
    }

    /// The bot is thrown out: the guild and all in it are gone for it.
    pub(crate) fn removes_bot(&self) {
        let mut world = self.discord.world();
        world.guilds.remove(&self.id);
        world
            .channels
            .retain(|_, channel| channel.guild != Some(self.id));
        world.gateway.dispatch(
            Some(self.id),
            "GUILD_DELETE",
            json!({ "id": self.id.to_string() }),
        );
    }

    /// An outage of this guild, as Discord tells of it.
    pub(crate) fn becomes_unavailable(&self) {
        let data = json!({ "id": self.id.to_string(), "unavailable": true });
        self.discord
            .world()
            .gateway
            .dispatch(Some(self.id), "GUILD_DELETE", data);
    }
}
