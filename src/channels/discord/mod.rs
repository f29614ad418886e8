//! Discord: events from the gateway in, Markdown out.
//!
//! serenity brings Discord's types and the bodies of calls. The connection and the calls are our own, because its client
//! runs every event by itself, so that messages overtake each other; drops events that it cannot read without a word; begins a new
//! session where one could be resumed; and sleeps inside calls for as long as Discord likes.

mod api;
mod broken_json;
mod buckets;
mod catchup;
mod checks;
mod closing;
mod content;
mod directory;
mod files;
mod greetings;
mod intake;
mod interactions;
mod listen;
mod losses;
mod parse;
mod reconnecting;
mod render;
mod seen;
mod send;
mod sending_files;
mod shard;
mod socket;
mod stream;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::newest::Newest;
use super::nicknames::Nicknames;
use super::{
    Abilities, Channel, FetchError, Health, Intake, Limits, ListenError, Outcome, Part, Progress, Revision, SendError, Streaming,
    Text, Ticket,
};
use crate::config::{Answers, Discord, GroupSessions};
use crate::domain::{Destination, DiscordId, FileRef, MessageId, OutgoingFile, Platform};
use crate::signing::Signer;
use crate::storage::Db;

use api::Call;
use directory::Directory;
use interactions::Interactions;
use losses::Losses;

pub(super) use sending_files::MAX_UPLOAD_BYTES;

pub use checks::{Expected, ExpectedPlace};
pub use interactions::{MayAsk, Menu, Offered, SlashCommand, SlashOption, Suggestion};

/// Discord remembers nonces for "the past few minutes".
const NONCES_LIVE: Duration = Duration::from_secs(120);

/// One bot's connection.
pub struct DiscordChannel {
    api: Arc<api::Api>,
    directory: Arc<Directory>,
    lost: Losses,
    /// The newest message of each channel and thread.
    newest: Newest<DiscordId, DiscordId>,
    /// Who we are; Discord tells when it greets us.
    me: watch::Sender<Option<DiscordId>>,
    limits: Limits,
    /// Whether answers are shown while they are written.
    streaming: bool,
    group_sessions: GroupSessions,
    nicknames: Nicknames,
    style: Answers,
    /// How long messages of one person are waited for, to be taken as one.
    gather: Duration,
    max_file_mb: u32,
    expected: Vec<ExpectedPlace>,
    /// Every place of a server is answered in, not only bound ones.
    is_open: bool,
    known_people: KnownPeople,
    interactions: Interactions,
    /// For what was seen before.
    db: Db,
}

/// What a bot needs besides its config.
pub struct Outfit {
    /// Of buttons and menus.
    pub signer: Signer,
    pub menu: Menu,
    pub may_ask: MayAsk,
    /// What bindings name.
    pub expected: Vec<ExpectedPlace>,
    /// Every place of a server is answered in, not only bound ones.
    pub is_open: bool,
    pub known_people: KnownPeople,
    pub db: Db,
}

/// Tells who may have written to the bot in private, those first who are most likely to.
pub type KnownPeople = Arc<dyn Fn() -> BoxFuture<'static, Vec<DiscordId>> + Send + Sync>;

impl DiscordChannel {
    pub fn new(config: &Discord, group_sessions: GroupSessions, outfit: Outfit) -> Self {
        let platform = &config.platform;
        let limits = Limits {
            all_per_second: config.limits.per_second,
            chat_per_second: config.limits.channel_per_second,
            group_per_minute: 0,
        };
        DiscordChannel {
            api: Arc::new(api::Api::new(&platform.api_url, platform.token.clone())),
            directory: Arc::default(),
            lost: Losses::default(),
            newest: Newest::default(),
            me: watch::Sender::new(None),
            limits,
            streaming: platform.streaming,
            group_sessions,
            nicknames: Nicknames::new(&platform.nicknames),
            style: platform.answers,
            gather: platform.gather(),
            max_file_mb: platform.max_file_mb,
            expected: outfit.expected,
            is_open: outfit.is_open,
            known_people: outfit.known_people,
            interactions: Interactions::new(outfit.menu, outfit.may_ask, outfit.signer),
            db: outfit.db,
        }
    }

    fn me(&self) -> Option<DiscordId> {
        *self.me.borrow()
    }

    /// Discord has greeted us, so it is well.
    fn know_me(&self, me: DiscordId) {
        self.api.health().well();
        self.me.send_replace(Some(me));
    }

    /// Returns once Discord has greeted us.
    async fn connected(&self) {
        // The sender lives as long as we do.
        drop(self.me.subscribe().wait_for(Option::is_some).await);
    }

    /// Whether the config opens a channel or thread of a server. What was opened with `/agent` has been seen before.
    fn may_answer_in(&self, server: DiscordId, channel: DiscordId) -> bool {
        let Some(known) = self.directory.get(channel).filter(directory::Known::has_messages) else { return false };
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
        self.is_open || self.expected.iter().any(opens)
    }

    /// Channels and threads that bindings name.
    fn bound_channels(&self) -> Vec<DiscordId> {
        let channel = |place: &ExpectedPlace| match place.what {
            Expected::Channel(channel) => Some(channel),
            Expected::Server(_) | Expected::Category(_) => None,
        };
        self.expected.iter().filter_map(channel).collect()
    }
}

#[async_trait]
impl Channel for DiscordChannel {
    fn abilities(&self) -> Abilities {
        let shown = |streaming| if self.streaming { streaming } else { Streaming::Off };
        Abilities {
            platform: Platform::Discord,
            limits: Some(self.limits),
            typing_lasts: Some(stream::TYPING_LASTS),
            reactions: self.style.reactions,
            streaming_in_private: shown(stream::STREAMING),
            streaming_in_groups: shown(stream::STREAMING),
        }
    }

    async fn listen(&self, intake: Intake, stop: CancellationToken) -> Result<(), ListenError> {
        let ended = listen::listen(self, &intake, &stop).await;
        self.interactions.settled().await;
        ended
    }

    fn render(&self, to: &Destination, text: &Text<'_>) -> Vec<Part> {
        let components = self.interactions.components(to, text);
        self.answering(to, text, send::render(self.style, to, text, &components))
    }

    async fn send(&self, to: &Destination, part: &Part, ticket: &Ticket) -> Result<MessageId, SendError> {
        self.send_any(to, part, ticket).await
    }

    fn tells_repeats_for(&self, part: &Part) -> Duration {
        if interactions::is_for_asker_alone(part) { Duration::ZERO } else { NONCES_LIVE }
    }

    async fn progress(&self, to: &Destination, progress: Progress<'_>) -> Result<(), SendError> {
        match progress {
            Progress::Working => return self.typing(to).await,
            Progress::Text { .. } | Progress::Remark(_) => {}
            Progress::Begun(message) => self.mark(to, message, Some(stream::WORKING)).await,
            Progress::Over(message, outcome) => {
                self.mark(to, message, (outcome == Outcome::Failed).then_some(stream::FAILED)).await;
            }
        }
        Ok(())
    }

    async fn revise(&self, to: &Destination, revision: Revision<'_>) -> Result<(), SendError> {
        self.revise_part(to, revision).await
    }

    async fn send_file(
        &self,
        to: &Destination,
        file: &OutgoingFile,
        path: &Path,
        ticket: &Ticket,
    ) -> Result<MessageId, SendError> {
        self.send_stored(to, file, path, ticket).await
    }

    async fn fetch(&self, file: &FileRef, to: &Path) -> Result<(), FetchError> {
        self.fetch_file(file, to).await
    }

    fn health(&self) -> Option<&Health> {
        Some(self.api.health())
    }

    async fn is_reachable(&self) -> bool {
        self.api.call::<Value>(Call::get("/users/@me".into())).await.is_ok()
    }
}
