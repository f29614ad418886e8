//! Checks at the start whether the bot can see the places in bindings, and warns in the log.
//!
//! Nothing waits for these checks, and a failed call is not repeated.

use std::time::Duration;

use serde_json::Value;

use super::api::{ApiError, Call};
use super::bot::Bot;
use super::expected_places::{Expected, ExpectedPlace};

/// Bindings to check; each may cost a call.
const MOST_ASKED: usize = 20;

/// `GUILD_CREATE` events come soon after READY and save the calls for their channels.
const SERVERS_TELL: Duration = Duration::from_secs(2);

pub(super) async fn report(bot: &Bot) {
    bot.connected().await;
    tokio::time::sleep(SERVERS_TELL).await;
    let expected = bot.instructions.borrow().expected.clone();
    for ExpectedPlace { binding, what } in expected.iter().take(MOST_ASKED) {
        let asked = match what {
            Expected::Server(server) => bot
                .api
                .call::<Value>(Call::get(format!("/guilds/{server}")))
                .await
                .map(drop),
            Expected::Category(id) | Expected::Channel(id) => {
                bot.directory.find(&bot.api, *id).await.map(drop)
            }
        };
        match (asked, what) {
            (
                Err(ApiError::Answered {
                    status: 403 | 404, ..
                }),
                Expected::Server(_),
            ) => {
                tracing::warn!(
                    "the bot is not on the server of the binding `{binding}`. Invite it there, or remove the binding"
                );
            }
            (
                Err(ApiError::Answered {
                    status: 403 | 404, ..
                }),
                _,
            ) => {
                tracing::warn!(
                    "the bot cannot see the place of the binding `{binding}`. Give its role View Channel there, or remove the binding"
                );
            }
            (Err(error), _) => {
                tracing::debug!("asking about the place of the binding `{binding}`: {error}");
            }
            (Ok(()), _) => {}
        }
    }
}
