//! Status reactions. Telegram allows only a few emoji:
//! <https://core.telegram.org/bots/api#reactiontypeemoji>.

use serde::Serialize;
use teloxide::requests::Payload;

use super::address::address;
use super::api::{Api, Done};
use super::send::send_error;
use crate::channels::SendError;
use crate::domain::{Destination, MessageId};

pub(super) const WORKING: &str = "👀";
pub(super) const FAILED: &str = "😢";

#[derive(Serialize)]
struct SetMessageReaction {
    chat_id: i64,
    message_id: i64,
    reaction: Vec<Emoji>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "emoji")]
struct Emoji {
    emoji: &'static str,
}

impl Payload for SetMessageReaction {
    type Output = Done;
    const NAME: &'static str = "setMessageReaction";
}

/// Replaces the bot's reaction; `None` removes the reaction. A chat may forbid reactions, and no
/// harm is done.
pub(super) async fn set(
    api: &Api,
    to: &Destination,
    message: &MessageId,
    emoji: Option<&'static str>,
) -> Result<(), SendError> {
    let (Some(address), Ok(message_id)) = (address(to), message.0.parse()) else {
        return Ok(());
    };
    let reaction = emoji.map(|emoji| Emoji { emoji }).into_iter().collect();
    let request = SetMessageReaction {
        chat_id: address.chat_id,
        message_id,
        reaction,
    };
    api.call(&request).await.map(drop).map_err(send_error)
}
