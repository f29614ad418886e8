//! Offers choices while a person types an option, if the person may use commands.

use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use super::payload::person;
use super::{callback, menu};
use crate::channels::discord::api::Api;
use crate::channels::discord::bot::Bot;
use crate::channels::discord::directory::{Directory, Surroundings, id_in};
use crate::channels::discord::parse::{origin, place};
use crate::config::GroupSessions;
use crate::domain::{DiscordId, Origin};

/// Leaves the call a second of Discord's three; an undecided person is offered nothing.
const DECIDED_WITHIN: Duration = Duration::from_secs(2);

pub(super) fn offer_choices(bot: &Bot, id: DiscordId, path: String, raw: &Value) {
    bot.directory
        .learn_if_new(&raw["channel"], id_in(raw, "guild_id"));
    let (api, directory, may_ask) = (
        bot.api.clone(),
        bot.directory.clone(),
        bot.interactions.may_ask.clone(),
    );
    let (offered, sessions, raw) = (
        bot.interactions.menu().suggestions(&raw["data"]),
        bot.group_sessions,
        raw.clone(),
    );
    bot.interactions.tasks.spawn(async move {
        let deciding = async {
            match asker(&api, &directory, sessions, &raw).await {
                Some(origin) => may_ask(origin).await,
                None => None,
            }
        };
        let fetchable = timeout(DECIDED_WITHIN, deciding).await.unwrap_or(None);
        let choices = fetchable.map_or_else(Vec::new, |agents| menu::offered(&offered, &agents));
        callback::give(&api, id, (path, callback::choices(&choices))).await;
    });
}

/// The typing person, and the place.
async fn asker(
    api: &Api,
    directory: &Directory,
    sessions: GroupSessions,
    raw: &Value,
) -> Option<Origin> {
    let (channel, person, server) = (
        id_in(raw, "channel_id")?,
        person(raw)?,
        id_in(raw, "guild_id"),
    );
    let around = match server {
        Some(_) => Surroundings {
            server,
            ..directory.surroundings(api, channel).await.ok()?
        },
        None => Surroundings::default(),
    };
    Some(origin(
        place(sessions, channel, person, &around),
        person,
        raw,
        &around,
    ))
}
