//! Discord: events from the gateway in, Markdown out.
//!
//! serenity brings Discord's types and the bodies of calls. The connection and the calls are our
//! own, because serenity's client handles events in parallel, so that messages overtake each other;
//! drops unreadable events without a log line; begins new sessions instead of resuming; and sleeps
//! inside calls for as long as Discord likes.

mod api;
mod bot;
mod broken_json;
mod buckets;
mod catchup;
mod close_codes;
mod content;
mod directory;
pub(crate) mod examine;
mod expected_places;
mod files;
pub(crate) mod fuzz;
mod identify_limit;
mod instructions;
mod intake;
mod interactions;
pub(crate) mod levels;
mod listen;
mod parse;
mod preflight;
mod read_positions;
mod reconnecting;
mod refused_channels;
mod render;
mod send;
mod sending_files;
mod shard;
mod socket;
mod stored_part;
mod stream;
mod survey;

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    Abilities, Channel, FetchError, Health, Intake, ListenError, Outcome, Part, Progress, Revision,
    SendError, Streaming, Text, Ticket,
};
use crate::config::{Discord, GroupSessions};
use crate::domain::{Destination, FileRef, MessageId, OutgoingFile, Platform};

use api::Call;
use bot::Bot;
use interactions::respond::addressed;
use stored_part::StoredPart;

pub(super) use sending_files::MAX_UPLOAD_BYTES;

pub(crate) use bot::{ChannelDeps, KnownPeople};
pub(crate) use expected_places::{Expected, ExpectedPlace};
pub(crate) use instructions::Instructions;
pub(crate) use interactions::{MayAsk, Menu, Offered, SlashCommand, SlashOption, Suggestion};
pub(crate) use survey::{Account, Survey};

/// Discord remembers nonces for "the past few minutes".
const NONCES_LIVE: Duration = Duration::from_secs(120);

/// The platform Discord.
pub(crate) struct DiscordChannel {
    bot: Bot,
}

impl DiscordChannel {
    pub(crate) fn new(config: &Discord, group_sessions: GroupSessions, deps: ChannelDeps) -> Self {
        DiscordChannel {
            bot: Bot::new(config, group_sessions, deps),
        }
    }
}

#[async_trait]
impl Channel for DiscordChannel {
    fn abilities(&self) -> Abilities {
        let shown = |streaming| {
            if self.bot.streaming {
                streaming
            } else {
                Streaming::Off
            }
        };
        Abilities {
            platform: Platform::Discord,
            limits: Some(self.bot.limits),
            typing_lasts: Some(stream::TYPING_LASTS),
            reactions: self.bot.style.reactions,
            changes: true,
            streaming_in_private: shown(stream::STREAMING),
            streaming_in_groups: shown(stream::STREAMING),
        }
    }

    async fn listen(&self, intake: Intake, stop: CancellationToken) -> Result<(), ListenError> {
        let ended = listen::listen(&self.bot, &intake, &stop).await;
        self.bot.interactions.settled().await;
        ended
    }

    fn render(&self, to: &Destination, text: &Text<'_>) -> Vec<Part> {
        let components = self.bot.interactions.components(to, text);
        let contents = send::render(self.bot.style, to, text, &components);
        addressed(to, text, contents)
            .into_iter()
            .map(StoredPart::into_part)
            .collect()
    }

    async fn send(
        &self,
        to: &Destination,
        part: &Part,
        ticket: &Ticket,
    ) -> Result<MessageId, SendError> {
        match StoredPart::read(part)? {
            StoredPart::Channel { content } => self.bot.send_content(to, &content, ticket).await,
            StoredPart::Interaction(part) => self.bot.respond(to, &part, ticket).await,
        }
    }

    fn tells_repeats_for(&self, part: &Part) -> Duration {
        match StoredPart::read(part) {
            Ok(StoredPart::Interaction(part)) if part.has_no_nonce() => Duration::ZERO,
            _ => NONCES_LIVE,
        }
    }

    async fn progress(&self, to: &Destination, progress: Progress<'_>) -> Result<(), SendError> {
        match progress {
            Progress::Working => return self.bot.typing(to).await,
            Progress::Text { .. } | Progress::Remark { .. } | Progress::Taken => {}
            Progress::Begun(message) => self.bot.mark(to, message, Some(stream::WORKING)).await,
            Progress::Over(message, outcome) => {
                self.bot
                    .mark(
                        to,
                        message,
                        (outcome == Outcome::Failed).then_some(stream::FAILED),
                    )
                    .await;
            }
        }
        Ok(())
    }

    async fn revise(&self, to: &Destination, revision: Revision<'_>) -> Result<(), SendError> {
        self.bot.revise_part(to, revision).await
    }

    async fn send_file(
        &self,
        to: &Destination,
        file: &OutgoingFile,
        path: &Path,
        ticket: &Ticket,
    ) -> Result<MessageId, SendError> {
        self.bot.send_stored(to, file, path, ticket).await
    }

    async fn fetch(&self, file: &FileRef, to: &Path) -> Result<(), FetchError> {
        self.bot.fetch_file(file, to).await
    }

    fn health(&self) -> Option<&Health> {
        Some(self.bot.api.health())
    }

    async fn is_reachable(&self) -> bool {
        self.bot
            .api
            .call::<Value>(Call::get("/users/@me".into()))
            .await
            .is_ok()
    }
}
