//! Registers the slash commands with Discord. The table `discord_commands` has the last registered
//! list.
//!
//! <https://discord.com/developers/docs/interactions/application-commands#bulk-overwrite-global-application-commands>

use rusqlite::{OptionalExtension, params};
use serde_json::Value;

use super::menu::Menu;
use crate::channels::discord::api::{Api, ApiError, Call};
use crate::channels::discord::bot::Bot;
use crate::domain::DiscordId;
use crate::storage::{Db, StoreError};

/// Sends the whole list of commands whenever the list has changed. After a failure the next change
/// or the next start tries again.
pub(crate) async fn register(bot: &Bot) {
    let mut application = bot.interactions.application.subscribe();
    let Ok(application) = application
        .wait_for(Option::is_some)
        .await
        .map(|application| *application)
    else {
        return;
    };
    let Some(application) = application else {
        return;
    };
    let mut instructions = bot.instructions.clone();
    loop {
        let menu = instructions.borrow_and_update().menu.clone();
        if let Err(error) = tell(&bot.api, &bot.db, &menu, application).await {
            tracing::warn!("the slash commands were not registered: {error}");
        }
        if instructions.changed().await.is_err() {
            return;
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum RegisterError {
    #[error("{0}")]
    Api(#[from] ApiError),
    #[error("{0}")]
    Store(#[from] StoreError),
}

async fn tell(
    api: &Api,
    db: &Db,
    menu: &Menu,
    application: DiscordId,
) -> Result<(), RegisterError> {
    let wanted = menu.registered();
    // The whole list rather than a hash: the list is short, and operators can read it.
    let text = wanted.to_string();
    if told_before(db, application).await?.as_ref() == Some(&text) {
        return Ok(());
    }
    api.call::<Value>(Call::replace_all(
        format!("/applications/{application}/commands"),
        wanted,
    ))
    .await?;
    Ok(remember(db, application, text).await?)
}

async fn told_before(db: &Db, application: DiscordId) -> Result<Option<String>, StoreError> {
    let sql = "SELECT commands FROM discord_commands WHERE application = ?1";
    let application = application.0.cast_signed();
    db.read(move |connection| {
        connection
            .query_row(sql, [application], |row| row.get(0))
            .optional()
    })
    .await
}

async fn remember(db: &Db, application: DiscordId, commands: String) -> Result<(), StoreError> {
    let sql = "INSERT OR REPLACE INTO discord_commands (application, commands) VALUES (?1, ?2)";
    db.write(move |tx| {
        tx.execute(sql, params![application.0.cast_signed(), commands])
            .map(drop)
    })
    .await
}
