//! Sends files of an agent: pictures as photos, everything else as documents.
//!
//! <https://core.telegram.org/bots/api#sendphoto>,
//! <https://core.telegram.org/bots/api#senddocument>

use std::path::Path;

use serde::Serialize;
use teloxide::requests::Payload;

use super::address::{Address, address, is_private_topic};
use super::api::{Api, ApiError};
use super::render::Rendered;
use super::send::{self, Sent, StoredMessage};
use crate::channels::upload::{Content, File};
use crate::channels::{PlaceLoss, SendError};
use crate::config::Answers;
use crate::domain::{Destination, MessageId, OutgoingFile};

/// The limit of Telegram's own servers for files from a bot.
pub(crate) const MAX_UPLOAD_BYTES: u64 = 50_000_000;
/// A larger picture goes as a document.
const MAX_PHOTO_BYTES: u64 = 10_000_000;
/// In UTF-16 units.
const MAX_CAPTION_UNITS: usize = 1024;
const PHOTOS: [&str; 3] = ["image/jpeg", "image/png", "image/webp"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum As {
    Photo,
    Document,
}

#[derive(Serialize)]
struct SendPhoto<'a> {
    #[serde(flatten)]
    address: Address,
    #[serde(skip_serializing_if = "Option::is_none")]
    caption: Option<&'a str>,
}

#[derive(Serialize)]
struct SendDocument<'a> {
    #[serde(flatten)]
    address: Address,
    #[serde(skip_serializing_if = "Option::is_none")]
    caption: Option<&'a str>,
}

impl Payload for SendPhoto<'_> {
    type Output = Sent;
    const NAME: &'static str = "sendPhoto";
}

impl Payload for SendDocument<'_> {
    type Output = Sent;
    const NAME: &'static str = "sendDocument";
}

pub(super) async fn send_file(
    api: &Api,
    style: Answers,
    to: &Destination,
    file: &OutgoingFile,
    path: &Path,
) -> Result<MessageId, SendError> {
    let address = address(to)
        .ok_or_else(|| SendError::Refused(format!("{} is not on Telegram", to.place())))?;
    let how = kind(file);
    let mut sent = attempt(api, address, file, path, how).await;
    if let Err(Failure::Api(error)) = &sent {
        if how == As::Photo && is_no_photo(error) {
            sent = attempt(api, address, file, path, As::Document).await;
        } else if is_private_topic(address) && send::topic_loss(error) == Some(PlaceLoss::Deleted) {
            let chat = Address {
                message_thread_id: None,
                ..address
            };
            sent = attempt(api, chat, file, path, how).await;
        }
    }
    let sent = match sent {
        Ok(sent) => Ok(sent),
        Err(Failure::Api(error)) if !is_too_large(&error) => Err(error),
        // The person is waiting for the file, so the place is told.
        Err(Failure::Api(_)) => tell(api, style, address, &too_large(file)).await,
        Err(Failure::Gone) => tell(api, style, address, &gone(file)).await,
    };
    sent.map(|sent| sent.id()).map_err(send::send_error)
}

enum Failure {
    /// The copy is not there any more.
    Gone,
    Api(ApiError),
}

async fn attempt(
    api: &Api,
    address: Address,
    file: &OutgoingFile,
    path: &Path,
    how: As,
) -> Result<Sent, Failure> {
    let content = Content::open(path).await.map_err(|error| {
        tracing::warn!(file = %file.stored, "a file that should be sent cannot be read: {error}");
        Failure::Gone
    })?;
    let caption = file.caption.as_deref().map(caption);
    let upload = |field| File {
        field,
        name: &file.name,
        media_type: &file.media_type,
        content,
    };
    let sent = match how {
        As::Photo => {
            api.upload(&SendPhoto { address, caption }, upload("photo"))
                .await
        }
        As::Document => {
            api.upload(&SendDocument { address, caption }, upload("document"))
                .await
        }
    };
    sent.map_err(Failure::Api)
}

async fn tell(api: &Api, style: Answers, address: Address, text: &str) -> Result<Sent, ApiError> {
    let message = Rendered {
        text: text.to_owned(),
        entities: Vec::new(),
    };
    send::send_message(api, style, address, &StoredMessage::plain(message)).await
}

fn kind(file: &OutgoingFile) -> As {
    let is_photo = PHOTOS.contains(&file.media_type.as_str()) && file.bytes <= MAX_PHOTO_BYTES;
    if is_photo { As::Photo } else { As::Document }
}

/// A picture that is too wide, too long or broken can still be sent as a document.
fn is_no_photo(error: &ApiError) -> bool {
    matches!(error, ApiError::Answered { code: 400, description, .. }
        if description.contains("PHOTO_") || description.contains("IMAGE_PROCESS_FAILED"))
}

fn is_too_large(error: &ApiError) -> bool {
    matches!(
        error,
        ApiError::Answered { code: 413, .. } | ApiError::InBetween { code: 413 }
    )
}

fn caption(text: &str) -> &str {
    let mut units = 0;
    let cut = text.char_indices().find(|(_, letter)| {
        units += letter.len_utf16();
        units > MAX_CAPTION_UNITS
    });
    cut.map_or(text, |(end, _)| &text[..end])
}

fn too_large(file: &OutgoingFile) -> String {
    format!(
        "I have {} for you, but Telegram does not take a file of {} MB from a bot.",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pictures_of_a_size_are_photos() {
        let check = |media_type: &str, bytes, expected| {
            let file = OutgoingFile {
                stored: "x".into(),
                original: "x".into(),
                name: "x".into(),
                bytes,
                media_type: media_type.into(),
                caption: None,
            };
            assert_eq!(kind(&file), expected, "{media_type} of {bytes}");
        };
        check("image/png", 10, As::Photo);
        check("image/jpeg", MAX_PHOTO_BYTES, As::Photo);
        check("image/webp", MAX_PHOTO_BYTES + 1, As::Document);
        check("image/gif", 10, As::Document);
        check("application/pdf", 10, As::Document);
    }

    #[test]
    fn a_caption_is_cut_where_telegram_counts() {
        assert_eq!(caption("short"), "short");
        assert_eq!(caption(&"🌹".repeat(600)).chars().count(), 512);
        assert_eq!(caption(&"é".repeat(2000)).chars().count(), 1024);
    }
}
