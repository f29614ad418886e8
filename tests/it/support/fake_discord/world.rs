//! What Discord would know: guilds, channels, threads, and who may do what in them.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde_json::Value;

use super::FakeDiscord;
use super::clock::Clock;
use super::commands::Commands;
use super::interactions::Interaction;
use super::journal::Journal;
use super::json;
use super::messages::StoredMessage;
use super::sessions::Gateway;
use super::users::{ALICE, BOB, CAROL, OTHER_BOT, PARLOR_BOT, User};
use super::wire::{Answer, ApiError, Result};
use crate::support::faults::Faults;

pub(crate) const TEXT: u8 = 0;
pub(crate) const DM: u8 = 1;
pub(crate) const VOICE: u8 = 2;
pub(crate) const CATEGORY: u8 = 4;
pub(crate) const ANNOUNCEMENT: u8 = 5;
pub(crate) const ANNOUNCEMENT_THREAD: u8 = 10;
pub(crate) const PUBLIC_THREAD: u8 = 11;
pub(crate) const PRIVATE_THREAD: u8 = 12;
pub(crate) const STAGE: u8 = 13;
pub(crate) const FORUM: u8 = 15;

/// Everything Discord would know, and what we noted about the bot.
pub(super) struct World {
    pub(super) guilds: BTreeMap<u64, Guild>,
    pub(super) channels: BTreeMap<u64, Channel>,
    pub(super) users: HashMap<u64, User>,
    pub(super) clock: Clock,
    pub(super) gateway: Gateway,
    pub(super) journal: Journal,
    pub(super) faults: Faults<FakeDiscord>,
    pub(super) commands: Commands,
    /// By token.
    pub(super) interactions: HashMap<String, Interaction>,
    /// Nonces of the bot's messages: when by the test's clock, in which channel, which message.
    pub(super) nonces: Vec<(String, Duration, u64, u64)>,
    /// Files of the CDN, by their path below it.
    pub(super) files: HashMap<String, Vec<u8>>,
    /// `http://127.0.0.1:PORT`
    pub(super) base_url: String,
}

pub(super) struct Guild {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) owner: User,
    /// By id; the one with the guild's own id is everybody's.
    pub(super) roles: BTreeMap<u64, String>,
    pub(super) members: BTreeMap<u64, Member>,
}

#[derive(Clone, Default)]
pub(super) struct Member {
    pub(super) roles: Vec<u64>,
    pub(super) nick: Option<String>,
    pub(super) is_administrator: bool,
}

/// A channel, a thread or a DM.
pub(super) struct Channel {
    pub(super) id: u64,
    pub(super) kind: u8,
    pub(super) name: String,
    /// `None` is a DM.
    pub(super) guild: Option<u64>,
    /// Category of a channel, channel of a thread.
    pub(super) parent: Option<u64>,
    /// The tags a forum offers: id and name.
    pub(super) tags: Vec<(u64, String)>,
    pub(super) thread: Option<ThreadState>,
    pub(super) dm_with: Option<User>,
    pub(super) bot_may: BotMay,
    pub(super) messages: BTreeMap<u64, StoredMessage>,
}

pub(super) struct ThreadState {
    pub(super) owner: u64,
    pub(super) archived: bool,
    pub(super) locked: bool,
    pub(super) applied_tags: Vec<u64>,
    pub(super) auto_archive_minutes: u64,
}

/// What the bot is allowed to do in a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BotMay {
    Write,
    /// Without "send messages": 50013, and 50007 in a DM.
    OnlyRead,
    /// Without "view channel": 50001, and no events.
    NotSee,
}

impl World {
    pub(super) fn new(base_url: String) -> Self {
        let users = [ALICE, BOB, CAROL, OTHER_BOT, PARLOR_BOT].map(|user| (user.id, user));
        Self {
            guilds: BTreeMap::new(),
            channels: BTreeMap::new(),
            users: users.into(),
            clock: Clock::default(),
            gateway: Gateway::default(),
            journal: Journal::default(),
            faults: Faults::default(),
            commands: Commands::default(),
            interactions: HashMap::new(),
            nonces: Vec::new(),
            files: HashMap::new(),
            base_url,
        }
    }

    pub(super) fn channel(&mut self, channel_id: u64) -> &mut Channel {
        self.channels
            .get_mut(&channel_id)
            .expect("a room exists only for a known channel")
    }

    pub(super) fn guild(&mut self, guild_id: u64) -> &mut Guild {
        self.guilds
            .get_mut(&guild_id)
            .expect("a guild's handle exists only for a known guild")
    }

    /// A channel the bot can see, or the error it gets instead.
    pub(super) fn visible(&mut self, channel_id: u64) -> Result<&mut Channel> {
        let channel = self
            .channels
            .get_mut(&channel_id)
            .ok_or_else(|| ApiError::new(404, 10003, "Unknown Channel"))?;
        if channel.bot_may == BotMay::NotSee {
            return Err(ApiError::new(403, 50001, "Missing Access"));
        }
        Ok(channel)
    }

    /// A channel the bot can write to; an archived thread comes back to life by that.
    pub(super) fn writable(&mut self, channel_id: u64) -> Result<()> {
        let channel = self.visible(channel_id)?;
        if matches!(channel.kind, CATEGORY | FORUM) {
            return Err(ApiError::new(
                400,
                50008,
                "Cannot send messages in a non-text channel",
            ));
        }
        if channel.bot_may == BotMay::OnlyRead {
            let in_dm = channel.kind == DM;
            return Err(if in_dm {
                ApiError::new(403, 50007, "Cannot send messages to this user")
            } else {
                ApiError::new(403, 50013, "Missing Permissions")
            });
        }
        self.check_not_locked(channel_id)?;
        self.unarchive(channel_id);
        Ok(())
    }

    /// Typing needs the right to write, but does not wake an archived thread.
    pub(super) fn writable_for_typing(&mut self, channel_id: u64) -> Result<Answer> {
        let channel = self.visible(channel_id)?;
        if channel.bot_may == BotMay::OnlyRead {
            return Err(ApiError::new(403, 50013, "Missing Permissions"));
        }
        self.check_not_locked(channel_id)?;
        Ok(Answer::NoContent)
    }

    fn check_not_locked(&mut self, channel_id: u64) -> Result<()> {
        match &self.channel(channel_id).thread {
            Some(thread) if thread.archived && thread.locked => Err(thread_is_archived()),
            _ => Ok(()),
        }
    }

    /// What is in an archived thread stays as it is.
    pub(super) fn check_not_archived(&mut self, channel_id: u64) -> Result<()> {
        match &self.visible(channel_id)?.thread {
            Some(thread) if thread.archived => Err(thread_is_archived()),
            _ => Ok(()),
        }
    }

    /// Somebody wrote in a thread.
    pub(super) fn unarchive(&mut self, channel_id: u64) {
        if let Some(thread) = &mut self.channel(channel_id).thread
            && thread.archived
        {
            thread.archived = false;
            self.dispatch_channel("THREAD_UPDATE", channel_id);
        }
    }

    /// Tells of a channel or thread as it is now.
    pub(super) fn dispatch_channel(&mut self, event: &str, channel_id: u64) {
        let channel = &self.channels[&channel_id];
        let mut data = json::channel(channel);
        if event == "THREAD_CREATE" {
            data["newly_created"] = true.into();
        }
        self.dispatch_in(channel_id, event, data);
    }

    /// An event of a channel, unless the bot does not see that channel.
    pub(super) fn dispatch_in(&mut self, channel_id: u64, event: &str, data: Value) {
        let channel = self.channel(channel_id);
        let (guild, seen) = (channel.guild, channel.bot_may != BotMay::NotSee);
        if seen {
            self.gateway.dispatch(guild, event, data);
        }
    }

    pub(super) fn member(&self, guild_id: u64, user_id: u64) -> Member {
        self.guilds
            .get(&guild_id)
            .and_then(|guild| guild.members.get(&user_id))
            .cloned()
            .unwrap_or_default()
    }

    /// The DM with a user, opened if need be.
    pub(super) fn dm_with(&mut self, user: User) -> u64 {
        let open = self
            .channels
            .values()
            .find(|channel| channel.dm_with.is_some_and(|other| other.id == user.id));
        if let Some(channel) = open {
            return channel.id;
        }
        self.users.insert(user.id, user);
        let id = self.clock.next_id();
        let channel = Channel {
            dm_with: Some(user),
            ..Channel::new(id, DM, user.name)
        };
        self.channels.insert(id, channel);
        id
    }
}

impl Channel {
    pub(super) fn new(id: u64, kind: u8, name: &str) -> Self {
        Self {
            id,
            kind,
            name: name.into(),
            guild: None,
            parent: None,
            tags: Vec::new(),
            thread: None,
            dm_with: None,
            bot_may: BotMay::Write,
            messages: BTreeMap::new(),
        }
    }

    pub(super) fn is_active_thread(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.archived)
    }
}

impl ThreadState {
    pub(super) fn new(owner: u64, applied_tags: Vec<u64>) -> Self {
        Self {
            owner,
            archived: false,
            locked: false,
            applied_tags,
            auto_archive_minutes: 1440,
        }
    }
}

fn thread_is_archived() -> ApiError {
    ApiError::new(400, 50083, "Thread is archived")
}
