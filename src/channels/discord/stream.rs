//! Edits and deletes the bot's own messages, and sets status reactions on messages of people.

use std::time::Duration;

use serde_json::Value;

use super::api::{ApiError, Call};
use super::bot::Bot;
use super::send::{body, changed_message, plain_error};
use super::stored_part::{Content, StoredPart};
use crate::channels::{Medium, Part, Revision, SendError, Streaming};
use crate::domain::{Destination, DiscordId, MessageId};

/// A channel takes about five edits in five seconds, all its messages together.
const EVERY: Duration = Duration::from_millis(1500);

/// <https://discord.com/developers/docs/resources/channel#trigger-typing-indicator>
pub(super) const TYPING_LASTS: Duration = Duration::from_secs(10);
pub(super) const STREAMING: Streaming = Streaming::Previews {
    medium: Medium::Message,
    every: EVERY,
};
pub(super) const WORKING: &str = "👀";
pub(super) const FAILED: &str = "😢";

impl Bot {
    pub(super) async fn revise_part(
        &self,
        to: &Destination,
        revision: Revision<'_>,
    ) -> Result<(), SendError> {
        match revision {
            Revision::Draft { .. } => Err(SendError::Refused("Discord has no drafts".into())),
            Revision::Edit { message, part } => self.edit(to, id(message)?, part).await,
            Revision::Remove { message } => self.remove(to, id(message)?).await,
        }
    }

    async fn edit(
        &self,
        to: &Destination,
        message: DiscordId,
        part: &Part,
    ) -> Result<(), SendError> {
        let (text, components) = match StoredPart::read(part)? {
            StoredPart::Channel {
                content:
                    Content::Message {
                        text, components, ..
                    },
            } => (text, components),
            StoredPart::Interaction(_) => {
                return Err(SendError::Refused(
                    "a response to an interaction is sent, not put into a message".into(),
                ));
            }
            // A message cannot take up a file: the message is deleted, and then the file is sent.
            StoredPart::Channel {
                content: Content::File { .. },
            } => {
                return self.remove(to, message).await.and(Err(SendError::Gone));
            }
        };
        let mut changed = body(&changed_message(self.style, &text));
        // Without the field Discord leaves the buttons as they are.
        changed["components"] = components.into();
        let call = |channel| {
            Call::patch(
                format!("/channels/{channel}/messages/{message}"),
                changed.clone(),
            )
        };
        self.change(to, call).await
    }

    async fn remove(&self, to: &Destination, message: DiscordId) -> Result<(), SendError> {
        match self
            .change(to, |channel| {
                Call::delete(format!("/channels/{channel}/messages/{message}"))
            })
            .await
        {
            Err(SendError::Gone) => Ok(()),
            removed => removed,
        }
    }

    /// An archived thread is opened first.
    async fn change(
        &self,
        to: &Destination,
        call: impl Fn(DiscordId) -> Call,
    ) -> Result<(), SendError> {
        let channel = self.address(to).await?;
        let changed = match self.api.call::<Value>(call(channel)).await {
            Err(ApiError::Answered { code: 50083, .. }) => {
                self.reopen(channel).await?;
                self.api.call(call(channel)).await
            }
            changed => changed,
        };
        changed
            .map(drop)
            .map_err(|error| self.send_error(channel, to, error))
    }

    /// Replaces the status reaction; `None` removes it. A refusal is only logged, because some
    /// channels allow no reactions.
    pub(super) async fn mark(&self, to: &Destination, message: &MessageId, emoji: Option<&str>) {
        let (Ok(channel), Ok(message)) = (self.address(to).await, id(message)) else {
            return;
        };
        let path = |emoji: &str| {
            format!(
                "/channels/{channel}/messages/{message}/reactions/{}/@me",
                percent_encoded(emoji)
            )
        };
        let call = match emoji {
            Some(emoji) if emoji != WORKING => {
                drop(self.api.call::<Value>(Call::delete(path(WORKING))).await);
                Call::put(path(emoji))
            }
            Some(emoji) => Call::put(path(emoji)),
            None => Call::delete(path(WORKING)),
        };
        if let Err(error) = self.api.call::<Value>(call).await {
            tracing::debug!(session = %to.place(), "a reaction was not set: {error}");
        }
    }

    pub(super) async fn typing(&self, to: &Destination) -> Result<(), SendError> {
        let channel = self.address(to).await?;
        let call = Call::post(format!("/channels/{channel}/typing"), serde_json::json!({}));
        // Archived threads refuse typing and are opened by the answer, so a refusal says nothing
        // about the place.
        self.api
            .call::<Value>(call)
            .await
            .map(drop)
            .map_err(plain_error)
    }
}

fn id(message: &MessageId) -> Result<DiscordId, SendError> {
    message
        .0
        .parse()
        .map_err(|()| SendError::Refused(format!("{} is no message of Discord", message.0)))
}

fn percent_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
