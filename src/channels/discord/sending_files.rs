//! Sends files of an agent, as attachments.
//!
//! <https://discord.com/developers/docs/reference#uploading-files>

use std::path::Path;

use serde_json::Value;

use super::api::{ApiError, Call, FileToSend};
use super::bot::Bot;
use super::send::{body, is_asleep, new_message};
use crate::channels::upload::Content;
use crate::channels::{SendError, Ticket};
use crate::domain::{Destination, DiscordId, MessageId, OutgoingFile};

/// Discord's limit for bots on servers without boosts.
pub(crate) const MAX_UPLOAD_BYTES: u64 = 10 * 1024 * 1024;
/// Discord's limit for the text beside a file.
const MAX_CAPTION_CHARS: usize = 2000;
/// "Request entity too large", by number and by status.
const TOO_LARGE: u64 = 40005;

impl Bot {
    pub(super) async fn send_stored(
        &self,
        to: &Destination,
        file: &OutgoingFile,
        path: &Path,
        ticket: &Ticket,
    ) -> Result<MessageId, SendError> {
        let channel = self.address(to).await?;
        let sent = match self.attach(channel, file, path, ticket).await {
            Err(error) if is_asleep(&error) => {
                self.reopen(channel).await?;
                self.attach(channel, file, path, ticket).await
            }
            attached => attached,
        };
        self.sent(channel, to, sent)
    }

    /// Tells the place about a missing or too large file, because people wait for the file.
    async fn attach(
        &self,
        channel: DiscordId,
        file: &OutgoingFile,
        path: &Path,
        ticket: &Ticket,
    ) -> Result<Value, ApiError> {
        let content = match Content::open(path).await {
            Ok(content) => content,
            Err(error) => {
                tracing::warn!(file = %file.stored, "a file that should be sent cannot be read: {error}");
                return self.tell(channel, &gone(file), ticket).await;
            }
        };
        let words = caption(file.caption.as_deref().unwrap_or_default());
        let upload = FileToSend {
            name: &file.name,
            media_type: &file.media_type,
            content,
        };
        let call = Call::post(
            format!("/channels/{channel}/messages"),
            body(&new_message(self.style, words, ticket)),
        );
        match self.api.upload(call, upload).await {
            Err(error) if is_too_large(&error) => {
                self.tell(channel, &too_large(file), ticket).await
            }
            attached => attached,
        }
    }

    async fn tell(
        &self,
        channel: DiscordId,
        text: &str,
        ticket: &Ticket,
    ) -> Result<Value, ApiError> {
        let message = new_message(self.style, text, ticket);
        self.api
            .call(Call::post(
                format!("/channels/{channel}/messages"),
                body(&message),
            ))
            .await
    }
}

fn is_too_large(error: &ApiError) -> bool {
    matches!(
        error,
        ApiError::Answered {
            code: TOO_LARGE,
            ..
        } | ApiError::Answered { status: 413, .. }
            | ApiError::InBetween { status: 413 }
    )
}

fn caption(text: &str) -> &str {
    text.char_indices()
        .nth(MAX_CAPTION_CHARS)
        .map_or(text, |(end, _)| &text[..end])
}

fn too_large(file: &OutgoingFile) -> String {
    format!(
        "I have {} for you, but Discord does not take a file of {} MB here.",
        file.name,
        file.bytes.div_ceil(1_000_000)
    )
}

fn gone(file: &OutgoingFile) -> String {
    format!(
        "I wanted to send {}, but it is gone. Please ask for it again.",
        file.name
    )
}
