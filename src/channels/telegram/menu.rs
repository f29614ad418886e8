//! Telegram's menu of commands, told only after a change: the `telegram_menus` table remembers the
//! told menus.

use rusqlite::{OptionalExtension, params};
use serde::Serialize;
use serde_json::{Value, json};
use teloxide::requests::Payload;

use super::api::{Api, ApiError, Done};
use crate::domain::TelegramUserId;
use crate::storage::{Db, StoreError};

/// A command in the menu.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct MenuEntry {
    /// Without the slash.
    pub command: String,
    pub description: String,
}

/// The commands of each audience.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Menu {
    pub for_everyone: Vec<MenuEntry>,
    /// In their private chat with the bot.
    pub for_owners: Vec<MenuEntry>,
    pub owners: Vec<TelegramUserId>,
}

#[derive(Serialize)]
struct SetMyCommands<'a> {
    commands: &'a [MenuEntry],
    scope: Value,
}

impl Payload for SetMyCommands<'_> {
    type Output = Done;
    const NAME: &'static str = "setMyCommands";
}

/// Tells Telegram every changed menu. A failure is no harm: the next start tries again.
pub(super) async fn tell(api: &Api, db: &Db, menu: &Menu) {
    let everywhere = [
        json!({ "type": "all_private_chats" }),
        json!({ "type": "all_group_chats" }),
    ];
    for scope in everywhere {
        tell_scope(api, db, scope, &menu.for_everyone).await;
    }
    for owner in &menu.owners {
        tell_scope(
            api,
            db,
            json!({ "type": "chat", "chat_id": owner.0 }),
            &menu.for_owners,
        )
        .await;
    }
}

async fn tell_scope(api: &Api, db: &Db, scope: Value, commands: &[MenuEntry]) {
    let key = format!("{} {scope}", api.bot_id());
    // The whole menu rather than its hash: menus are short, and readable in the table.
    let wanted = serde_json::to_string(commands).expect("texts are JSON");
    let told = async {
        if told_before(db, &key).await?.as_ref() != Some(&wanted) {
            api.call(&SetMyCommands { commands, scope }).await?;
            remember(db, key, wanted).await?;
        }
        Ok::<(), MenuError>(())
    };
    if let Err(error) = told.await {
        tracing::warn!("the command menu was not set: {error}");
    }
}

#[derive(Debug, thiserror::Error)]
enum MenuError {
    #[error("{0}")]
    Api(#[from] ApiError),
    #[error("{0}")]
    Store(#[from] StoreError),
}

async fn told_before(db: &Db, key: &str) -> Result<Option<String>, StoreError> {
    let key = key.to_owned();
    let sql = "SELECT menu FROM telegram_menus WHERE scope = ?1";
    db.read(move |connection| {
        connection
            .query_row(sql, [key], |row| row.get(0))
            .optional()
    })
    .await
}

async fn remember(db: &Db, key: String, menu: String) -> Result<(), StoreError> {
    let sql = "INSERT OR REPLACE INTO telegram_menus (scope, menu) VALUES (?1, ?2)";
    db.write(move |tx| tx.execute(sql, params![key, menu]).map(drop))
        .await
}
