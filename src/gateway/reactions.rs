//! Finds the answer a reaction is about: the platform names a message, and the outbox knows its
//! place and text.

use super::GatewayState;
use crate::clock::now_ms;
use crate::delivery::outbox;
use crate::domain::{Around, Inbound, SessionKey};
use crate::records::transcript;
use crate::storage::StoreError;

/// Reactions to older answers are not noted.
const LOOKED_BACK_MS: i64 = 2 * 24 * 60 * 60 * 1000;
/// Characters quoted from the answer.
const MAX_QUOTE_CHARS: usize = 200;

/// Gives the reaction its place and the beginning of the answer. False for a reaction to anything
/// but an agent's answer.
pub(super) async fn resolve(
    state: &GatewayState,
    reaction: &mut Inbound,
) -> Result<bool, StoreError> {
    let (message, chat, since) = (
        reaction.message.clone(),
        reaction.origin.key.clone(),
        now_ms() - LOOKED_BACK_MS,
    );
    let find = move |connection: &rusqlite::Connection| {
        let sent = outbox::sent_as(connection, &message, since)?;
        let Some((place, said)) = sent.into_iter().find(|(place, _)| is_in(place, &chat)) else {
            return Ok(None);
        };
        Ok(transcript::said_by_agent(connection, said)?.map(|(_, said)| (place, said)))
    };
    let Some((place, said)) = state.services.db.read(find).await? else {
        return Ok(false);
    };
    reaction.origin.key = place;
    reaction.extras.around = vec![Around::Reaction {
        to: beginning(&said),
    }];
    Ok(true)
}

/// Whether a place is in the chat. A reaction names no more than the chat.
fn is_in(place: &SessionKey, chat: &SessionKey) -> bool {
    match (place, chat) {
        (SessionKey::TelegramDm { user, .. }, SessionKey::TelegramDm { user: chat, .. }) => {
            user == chat
        }
        (SessionKey::TelegramTopic { chat: ours, .. }, SessionKey::TelegramGroup { chat, .. }) => {
            ours == chat
        }
        (SessionKey::TelegramGroup { chat: ours, .. }, SessionKey::TelegramGroup { chat, .. }) => {
            ours == chat
        }
        (
            SessionKey::DiscordChannel { channel: ours, .. },
            SessionKey::DiscordChannel { channel, .. },
        ) => ours == channel,
        (SessionKey::DiscordThread { .. } | SessionKey::DiscordDm { .. }, chat) => place == chat,
        _ => false,
    }
}

fn beginning(said: &str) -> String {
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let kept: String = line.chars().take(MAX_QUOTE_CHARS).collect();
    let end = if kept.len() < line.len() { "…" } else { "" };
    format!("{kept}{end}")
}
