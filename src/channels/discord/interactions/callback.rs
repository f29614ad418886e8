//! The first answer to an interaction, as a call to Discord.
//!
//! <https://discord.com/developers/docs/interactions/receiving-and-responding#interaction-response-object-interaction-callback-type>

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::channels::discord::api::{Api, ApiError, Call};
use crate::domain::DiscordId;

/// Discord refuses later ones.
const WITHIN: Duration = Duration::from_secs(3);
/// The pause before the next try after trouble on the way.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// The flag of a message for the asking person alone.
pub(super) const EPHEMERAL: u64 = 1 << 6;

mod kinds {
    pub(super) const MESSAGE: u8 = 4;
    pub(super) const DEFERRED_MESSAGE: u8 = 5;
    pub(super) const DEFERRED_UPDATE: u8 = 6;
    pub(super) const AUTOCOMPLETE_RESULT: u8 = 8;
}

pub(super) fn deferred(is_ephemeral: bool) -> Value {
    json!({ "type": kinds::DEFERRED_MESSAGE, "data": { "flags": if is_ephemeral { EPHEMERAL } else { 0 } } })
}

/// Shows nothing; the answer comes as a message.
pub(super) fn silent() -> Value {
    json!({ "type": kinds::DEFERRED_UPDATE })
}

pub(super) fn ephemeral_message(text: &str) -> Value {
    let data = json!({ "content": text, "flags": EPHEMERAL, "allowed_mentions": { "parse": [] } });
    json!({ "type": kinds::MESSAGE, "data": data })
}

pub(super) fn choices(choices: &[Value]) -> Value {
    json!({ "type": kinds::AUTOCOMPLETE_RESULT, "data": { "choices": choices } })
}

/// Tries until the time is over. A late callback does no harm: the answer is then an ordinary
/// message.
pub(super) async fn give(api: &Api, id: DiscordId, (path, body): (String, Value)) {
    let giving = async {
        loop {
            match api
                .call::<Value>(Call::post(path.clone(), body.clone()))
                .await
            {
                Ok(_) => return,
                Err(error @ ApiError::Answered { status: ..500, .. }) => {
                    tracing::warn!(
                        "Discord did not take the first answer to the interaction {id}: {error}"
                    );
                    return;
                }
                Err(error) => {
                    tracing::debug!("the first answer to the interaction {id}: {error}");
                    sleep(AGAIN_AFTER).await;
                }
            }
        }
    };
    if timeout(WITHIN, giving).await.is_err() {
        tracing::warn!("the first answer to the interaction {id} did not reach Discord in time");
    }
}
