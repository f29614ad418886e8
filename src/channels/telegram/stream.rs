//! Changes the screen: drafts in private chats, edits of our own messages elsewhere.

use std::time::Duration;

use serde::Serialize;
use teloxide::requests::Payload;

use super::address::{Address, address};
use super::api::{Api, ApiError, Done};
use super::render::{Entity, Rendered};
use super::send::{
    InlineKeyboard, LinkPreviewOptions, StoredMessage, StoredPart, dislikes_style, hiding,
    link_preview, send_error,
};
use crate::channels::{Medium, Part, Revision, SendError, Streaming};
use crate::config::Answers;
use crate::domain::{Destination, MessageId};

/// Twenty messages a minute are shared by everything in a group, edits included.
const EVERY_IN_GROUPS: Duration = Duration::from_secs(3);
const EVERY_IN_PRIVATE: Duration = Duration::from_millis(1500);

/// Drafts exist in private chats only: <https://core.telegram.org/bots/api#sendmessagedraft>.
pub(super) const IN_PRIVATE: Streaming = Streaming::Previews {
    medium: Medium::Draft,
    every: EVERY_IN_PRIVATE,
};
pub(super) const IN_GROUPS: Streaming = Streaming::Previews {
    medium: Medium::Message,
    every: EVERY_IN_GROUPS,
};

pub(super) async fn revise(
    api: &Api,
    style: Answers,
    to: &Destination,
    revision: Revision<'_>,
) -> Result<(), SendError> {
    let address = address(to)
        .ok_or_else(|| SendError::Refused(format!("{} is not on Telegram", to.place())))?;
    match revision {
        Revision::Draft { number, part } => match stored(part)? {
            StoredPart::Message(shown) => draft(api, address, number, &shown).await,
            StoredPart::File { .. } | StoredPart::PopUp { .. } => {
                Err(SendError::Refused("a draft is a message".into()))
            }
        },
        Revision::Edit { message, part } => match stored(part)? {
            StoredPart::Message(shown) => {
                edit(api, style, address, message_id(message)?, &shown).await
            }
            // A file cannot be put into a message: the message goes, and then the file is sent.
            StoredPart::File { .. } => remove(api, address, message_id(message)?)
                .await
                .and(Err(SendError::Gone)),
            StoredPart::PopUp { .. } => Err(SendError::Refused("a pop-up is no message".into())),
        },
        Revision::Remove { message } => remove(api, address, message_id(message)?).await,
    }
}

fn stored(part: &Part) -> Result<StoredPart, SendError> {
    serde_json::from_str(&part.0).map_err(|error| SendError::Refused(error.to_string()))
}

fn message_id(message: &MessageId) -> Result<i64, SendError> {
    message
        .0
        .parse()
        .map_err(|_| SendError::Refused(format!("{} is no message of Telegram", message.0)))
}

#[derive(Serialize)]
struct SendMessageDraft<'a> {
    #[serde(flatten)]
    address: Address,
    draft_id: i64,
    text: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    entities: &'a [Entity],
}

impl Payload for SendMessageDraft<'_> {
    type Output = Done;
    const NAME: &'static str = "sendMessageDraft";
}

async fn draft(
    api: &Api,
    address: Address,
    draft_id: i64,
    part: &StoredMessage,
) -> Result<(), SendError> {
    let Rendered { text, entities } = &part.message;
    let show = async |entities: &[Entity]| {
        api.call(&SendMessageDraft {
            address,
            draft_id,
            text,
            entities,
        })
        .await
    };
    let shown = match show(entities).await {
        Err(error) if dislikes_style(&error, entities) => show(&hiding(entities)).await,
        shown => shown,
    };
    match shown {
        Ok(_) => Ok(()),
        // An older Bot API server does not know the method.
        Err(error @ ApiError::Answered { code: 404, .. }) => {
            Err(SendError::Refused(error.to_string()))
        }
        Err(error) => Err(send_error(error)),
    }
}

#[derive(Serialize)]
struct EditMessageText<'a> {
    chat_id: i64,
    message_id: i64,
    text: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    entities: &'a [Entity],
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_markup: Option<InlineKeyboard<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_preview_options: Option<LinkPreviewOptions>,
}

impl Payload for EditMessageText<'_> {
    type Output = Done;
    const NAME: &'static str = "editMessageText";
}

async fn edit(
    api: &Api,
    style: Answers,
    address: Address,
    message_id: i64,
    part: &StoredMessage,
) -> Result<(), SendError> {
    let Rendered { text, entities } = &part.message;
    let chat_id = address.chat_id;
    let change = async |entities: &[Entity]| {
        let reply_markup = (!part.keyboard.is_empty()).then_some(InlineKeyboard {
            inline_keyboard: &part.keyboard,
        });
        let link_preview_options = link_preview(style);
        api.call(&EditMessageText {
            chat_id,
            message_id,
            text,
            entities,
            reply_markup,
            link_preview_options,
        })
        .await
    };
    let changed = match change(entities).await {
        Err(error) if dislikes_style(&error, entities) => change(&hiding(entities)).await,
        changed => changed,
    };
    match changed {
        Ok(_) => Ok(()),
        Err(error) if says(&error, "message is not modified") => Ok(()),
        Err(error) if GONE.iter().any(|words| says(&error, words)) => Err(SendError::Gone),
        Err(error) => Err(send_error(error)),
    }
}

#[derive(Serialize)]
struct DeleteMessage {
    chat_id: i64,
    message_id: i64,
}

impl Payload for DeleteMessage {
    type Output = Done;
    const NAME: &'static str = "deleteMessage";
}

async fn remove(api: &Api, address: Address, message_id: i64) -> Result<(), SendError> {
    match api
        .call(&DeleteMessage {
            chat_id: address.chat_id,
            message_id,
        })
        .await
    {
        Ok(_) => Ok(()),
        Err(error) if says(&error, "message to delete not found") => Ok(()),
        Err(error) => Err(send_error(error)),
    }
}

fn says(error: &ApiError, words: &str) -> bool {
    matches!(error, ApiError::Answered { code: 400, description, .. } if description.contains(words))
}

/// Telegram's words for a deleted message, and for a message too old for a change.
const GONE: [&str; 3] = [
    "message to edit not found",
    "message can't be edited",
    "MESSAGE_ID_INVALID",
];
