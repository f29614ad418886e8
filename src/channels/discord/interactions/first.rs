//! The first answer: within three seconds, before anything is stored or decided.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::{Did, Interactions, did, pressed};
use crate::channels::discord::DiscordChannel;
use crate::channels::discord::api::{Api, ApiError, Call};
use crate::channels::discord::directory::id_in;
use crate::domain::DiscordId;

/// Discord takes none that comes later.
const WITHIN: Duration = Duration::from_secs(3);
/// The pause before a call that failed on the way is made again.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// <https://discord.com/developers/docs/interactions/receiving-and-responding#interaction-response-object-interaction-callback-type>
mod kinds {
    pub(super) const MESSAGE: u8 = 4;
    pub(super) const LATER: u8 = 5;
    pub(super) const NOTHING_TO_SHOW: u8 = 6;
    pub(super) const CHOICES: u8 = 8;
}

/// A message that only the person who asked can see.
pub(super) const FOR_ASKER_ALONE: u64 = 1 << 6;

impl DiscordChannel {
    pub(super) fn give_first_answer(&self, raw: &Value) {
        let (Some(id), Some(token)) = (id_in(raw, "id"), raw["token"].as_str()) else {
            tracing::error!("an interaction on Discord cannot be read, so it is not answered");
            return;
        };
        let path = format!("/interactions/{id}/{token}/callback");
        if did(raw) == Did::Types {
            return self.offer_choices(id, path, raw);
        }
        let call = (path, self.interactions.first_answer(raw));
        let (given, under_way) = watch::channel(());
        self.interactions.under_way.insert(id, under_way);
        let (api, pending) = (self.api.clone(), self.interactions.under_way.clone());
        self.interactions.tasks.spawn(async move {
            give(&api, id, call).await;
            pending.remove(&id);
            drop(given);
        });
    }
}

impl Interactions {
    fn first_answer(&self, raw: &Value) -> Value {
        match did(raw) {
            Did::UsedCommand => {
                let flags = if self.is_for_asker_alone(raw) { FOR_ASKER_ALONE } else { 0 };
                json!({ "type": kinds::LATER, "data": { "flags": flags } })
            }
            Did::PressedOrChose if pressed(&self.signer, raw).is_some() => json!({ "type": kinds::NOTHING_TO_SHOW }),
            Did::PressedOrChose | Did::Types | Did::Other => {
                let data = json!({ "content": STALE, "flags": FOR_ASKER_ALONE, "allowed_mentions": { "parse": [] } });
                json!({ "type": kinds::MESSAGE, "data": data })
            }
        }
    }

    /// Has to be chosen now. In a private chat there is nobody else, and what is for one alone would be gone soon.
    pub(super) fn is_for_asker_alone(&self, raw: &Value) -> bool {
        id_in(raw, "guild_id").is_some() && self.menu.is_for_asker_alone(&raw["data"])
    }
}

/// The only answer to somebody who types.
pub(super) fn choices(choices: &[Value]) -> Value {
    json!({ "type": kinds::CHOICES, "data": { "choices": choices } })
}

/// As often as it takes while it still counts. One that is too late harms nobody: the answer is then an ordinary message.
pub(super) async fn give(api: &Api, id: DiscordId, (path, body): (String, Value)) {
    let giving = async {
        loop {
            match api.call::<Value>(Call::post(path.clone(), body.clone())).await {
                Ok(_) => return,
                Err(error @ ApiError::Answered { status: ..500, .. }) => {
                    tracing::warn!("Discord did not take the first answer to the interaction {id}: {error}");
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

const STALE: &str = "This button is from another time. Write the command instead.";
