//! A bot's state: API, settings, known channels and interactions. The other files here work on this
//! state.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::api::Api;
use super::directory::{ChannelInfo, Directory};
use super::expected_places::{Expected, ExpectedPlace};
use super::instructions::Instructions;
use super::interactions::state::{Interactions, MayAsk};
use super::refused_channels::RefusedChannels;
use crate::channels::Limits;
use crate::channels::newest::Newest;
use crate::channels::nicknames::Nicknames;
use crate::config::{Answers, Discord, GroupSessions};
use crate::domain::DiscordId;
use crate::signing::Signer;
use crate::storage::Db;

/// A bot's state, shared by listening and sending.
pub(super) struct Bot {
    pub(super) api: Arc<Api>,
    pub(super) directory: Arc<Directory>,
    pub(super) refused_channels: RefusedChannels,
    /// The newest message of each channel and thread.
    pub(super) newest: Newest<DiscordId, DiscordId>,
    /// The bot's own id, from READY.
    pub(super) me: watch::Sender<Option<DiscordId>>,
    pub(super) limits: Limits,
    /// Whether answers are shown while they are written.
    pub(super) streaming: bool,
    pub(super) group_sessions: GroupSessions,
    pub(super) nicknames: Nicknames,
    pub(super) style: Answers,
    /// Messages of a person within this time are taken together.
    pub(super) gather: Duration,
    pub(super) max_file_mb: u32,
    pub(super) instructions: watch::Receiver<Instructions>,
    pub(super) known_people: KnownPeople,
    /// How many agents there are, for the operator.
    pub(super) agents: usize,
    pub(super) interactions: Interactions,
    /// Has the read positions and the registered commands.
    pub(super) db: Db,
}

/// Dependencies of a bot beside its config.
pub(crate) struct ChannelDeps {
    /// Signs buttons and menus.
    pub signer: Signer,
    pub instructions: watch::Receiver<Instructions>,
    pub may_ask: MayAsk,
    pub known_people: KnownPeople,
    /// How many agents there are, for the operator.
    pub agents: usize,
    pub db: Db,
}

/// Lists people with a private chat to look up after an absence, the likeliest first.
pub(crate) type KnownPeople = Arc<dyn Fn() -> BoxFuture<'static, Vec<DiscordId>> + Send + Sync>;

impl Bot {
    pub(super) fn new(config: &Discord, group_sessions: GroupSessions, deps: ChannelDeps) -> Self {
        let platform = &config.platform;
        let limits = Limits {
            all_per_second: config.limits.per_second,
            chat_per_second: config.limits.channel_per_second,
            group_per_minute: 0,
        };
        Bot {
            api: Arc::new(Api::new(&platform.api_url, platform.token.clone())),
            directory: Arc::default(),
            refused_channels: RefusedChannels::default(),
            newest: Newest::default(),
            me: watch::Sender::new(None),
            limits,
            streaming: platform.streaming,
            group_sessions,
            nicknames: Nicknames::new(&platform.nicknames),
            style: platform.answers,
            gather: platform.gather(),
            max_file_mb: platform.max_file_mb,
            instructions: deps.instructions.clone(),
            known_people: deps.known_people,
            agents: deps.agents,
            interactions: Interactions::new(deps.instructions, deps.may_ask, deps.signer),
            db: deps.db,
        }
    }

    pub(super) fn me(&self) -> Option<DiscordId> {
        *self.me.borrow()
    }

    /// READY also shows that Discord is in good health.
    pub(super) fn know_me(&self, me: DiscordId) {
        self.api.health().well();
        self.me.send_replace(Some(me));
    }

    /// Returns once READY has come.
    pub(super) async fn connected(&self) {
        // The sender is a field of the bot, so the wait cannot fail.
        drop(self.me.subscribe().wait_for(Option::is_some).await);
    }

    /// Whether the config opens a channel or thread of a server. Places opened with `/agent` have a
    /// read position and need no look here.
    pub(super) fn may_answer_in(&self, server: DiscordId, channel: DiscordId) -> bool {
        let Some(known) = self
            .directory
            .get(channel)
            .filter(ChannelInfo::has_messages)
        else {
            return false;
        };
        let above = known.parent.filter(|_| known.is_thread());
        let category = match above {
            Some(above) => self.directory.get(above).and_then(|above| above.parent),
            None => known.parent,
        };
        let opens = |place: &ExpectedPlace| match place.what {
            Expected::Server(id) => id == server,
            Expected::Category(id) => category == Some(id),
            Expected::Channel(id) => id == channel || above == Some(id),
        };
        let instructions = self.instructions.borrow();
        instructions.is_open || instructions.expected.iter().any(opens)
    }

    /// Channels and threads in bindings.
    pub(super) fn bound_channels(&self) -> Vec<DiscordId> {
        let channel = |place: &ExpectedPlace| match place.what {
            Expected::Channel(channel) => Some(channel),
            Expected::Server(_) | Expected::Category(_) => None,
        };
        let instructions = self.instructions.borrow();
        instructions.expected.iter().filter_map(channel).collect()
    }
}
