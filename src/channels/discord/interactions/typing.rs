//! What is offered while somebody types, to those who may ask at all.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::time::timeout;

use super::first::{choices, give};
use super::person;
use crate::channels::discord::DiscordChannel;
use crate::channels::discord::api::Api;
use crate::channels::discord::directory::{Directory, Surroundings, id_in};
use crate::channels::discord::parse::{origin, place};
use crate::config::GroupSessions;
use crate::domain::{DiscordId, Origin};

/// Tells whether somebody may use commands in a place.
pub type MayAsk = Arc<dyn Fn(Origin) -> BoxFuture<'static, bool> + Send + Sync>;

/// Whoever types is waiting, so nothing is offered rather than something late.
const DECIDED_WITHIN: Duration = Duration::from_secs(2);

impl DiscordChannel {
    pub(super) fn offer_choices(&self, id: DiscordId, path: String, raw: &Value) {
        self.directory.learn_if_new(&raw["channel"], id_in(raw, "guild_id"));
        let (api, directory, may_ask) = (self.api.clone(), self.directory.clone(), self.interactions.may_ask.clone());
        let (offered, sessions, raw) = (self.interactions.menu.suggestions(&raw["data"]), self.group_sessions, raw.clone());
        self.interactions.tasks.spawn(async move {
            let deciding = async {
                match asker(&api, &directory, sessions, &raw).await {
                    Some(origin) => may_ask(origin).await,
                    None => false,
                }
            };
            let may_see = timeout(DECIDED_WITHIN, deciding).await.unwrap_or(false);
            give(&api, id, (path, choices(if may_see { &offered } else { &[] }))).await;
        });
    }
}

/// Who types, and where.
async fn asker(api: &Api, directory: &Directory, sessions: GroupSessions, raw: &Value) -> Option<Origin> {
    let (channel, person, server) = (id_in(raw, "channel_id")?, person(raw)?, id_in(raw, "guild_id"));
    let around = match server {
        Some(_) => Surroundings { server, ..directory.surroundings(api, channel).await.ok()? },
        None => Surroundings::default(),
    };
    Some(origin(place(sessions, channel, person, &around), person, raw, &around))
}
