//! The poll loop. An update is confirmed by the next poll's offset, and that is sent only once the update is on disk.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use teloxide::payloads::GetMe;
use teloxide::requests::Payload;
use teloxide::types::{Me, True};
use tokio_util::sync::CancellationToken;

use super::TelegramChannel;
use super::api::ApiError;
use super::buttons::{self, AnswerCallbackQuery};
use super::{menu, parse};
use crate::channels::{Batch, Intake, ListenError};
use crate::domain::Platform;

/// How long Telegram holds a poll open; its own upper bound.
const POLL: Duration = Duration::from_secs(50);
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);
/// Conflicts in a row before the operator is told that somebody else uses the token.
const CONFLICTS_TOLD: u32 = 3;

#[derive(Serialize)]
struct GetRawUpdates {
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<i64>,
    timeout: u64,
    allowed_updates: [&'static str; 2],
}

impl Payload for GetRawUpdates {
    /// Raw, because teloxide drops the text of messages with entities it does not know.
    type Output = Vec<Value>;
    const NAME: &'static str = "getUpdates";

    fn timeout_hint(&self) -> Option<Duration> {
        Some(POLL)
    }
}

#[derive(Serialize)]
struct DeleteWebhook {}

impl Payload for DeleteWebhook {
    type Output = True;
    const NAME: &'static str = "deleteWebhook";
}

pub(super) async fn listen(channel: &TelegramChannel, intake: &Intake, stop: &CancellationToken) -> Result<(), ListenError> {
    // Asked for beside the first poll, so that it costs no start-up time.
    let ask_beside = async {
        me(channel).await;
        menu::tell(&channel.api, &channel.db, &channel.menu).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = poll(channel, intake) => ended,
        () = ask_beside => Ok(()),
        () = stop.cancelled() => Ok(()),
    }
}

async fn poll(channel: &TelegramChannel, intake: &Intake) -> Result<(), ListenError> {
    let mut offset = None;
    let mut trouble = Trouble::default();
    loop {
        let request = GetRawUpdates { offset, timeout: POLL.as_secs(), allowed_updates: ["message", "callback_query"] };
        match channel.api.call(&request).await {
            Ok(updates) => {
                trouble = Trouble::default();
                offset = take(channel, intake, updates).await?.or(offset);
            }
            Err(error) => trouble.handle(channel, error).await?,
        }
    }
}

/// Stores a batch; returns the offset that confirms it, or none to be given it again.
async fn take(channel: &TelegramChannel, intake: &Intake, updates: Vec<Value>) -> Result<Option<i64>, ListenError> {
    let Some(newest) = updates.iter().filter_map(|update| update.get("update_id")?.as_i64()).max() else {
        if !updates.is_empty() {
            tracing::error!("Telegram sent updates without ids; asking again");
            tokio::time::sleep(FIRST_BACKOFF).await;
        }
        return Ok(None);
    };
    let Some(me) = me(channel).await else { return Err(refused()) };
    let reader =
        parse::Reader { bot_id: channel.api.bot_id(), me, group_sessions: channel.group_sessions, signer: &channel.signer };
    answer_presses(channel, &reader, &updates);
    let arrivals: Vec<_> = updates.iter().filter_map(|update| reader.read(update)).collect();
    if !arrivals.is_empty() && intake.accept(Batch { platform: Platform::Telegram, arrivals }).await.is_err() {
        // Telegram keeps the batch; the reason is logged where it was refused.
        tokio::time::sleep(FIRST_BACKOFF).await;
        return Ok(None);
    }
    Ok(Some(newest + 1))
}

/// At once and beside everything else: whoever pressed a button looks at a clock until then.
fn answer_presses(channel: &TelegramChannel, reader: &parse::Reader<'_>, updates: &[Value]) {
    for query in updates.iter().filter_map(buttons::query) {
        let text = reader.is_stale(&query).then_some(buttons::STALE);
        let (api, answer) = (channel.api.clone(), AnswerCallbackQuery::new(&query, text));
        channel.answers.spawn(async move { answer.send(&api).await });
    }
}

/// Who we are, asked until Telegram says it. `None` when it does not accept the token.
async fn me(channel: &TelegramChannel) -> Option<&Me> {
    let mut backoff = FIRST_BACKOFF;
    loop {
        match channel.me.get_or_try_init(async || channel.api.call(&GetMe::new()).await).await {
            Ok(me) => return Some(me),
            Err(ApiError::Answered { code: 401 | 404, .. }) => return None,
            Err(error) => {
                tracing::warn!("asking Telegram who we are: {error}");
                tokio::time::sleep(backoff).await;
                backoff = (backoff * 2).min(LONGEST_BACKOFF);
            }
        }
    }
}

/// Failed polls in a row.
#[derive(Default)]
struct Trouble {
    failures: u32,
    conflicts: u32,
}

impl Trouble {
    async fn handle(&mut self, channel: &TelegramChannel, error: ApiError) -> Result<(), ListenError> {
        self.failures += 1;
        match error {
            // A token without a bot is answered 404, a withdrawn one 401.
            ApiError::Answered { code: 401 | 404, .. } => return Err(refused()),
            ApiError::Answered { code: 409, description, .. } if description.contains("webhook") => {
                tracing::warn!("a webhook was set for this bot; removing it, because Parlor polls");
                let removed = channel.api.call(&DeleteWebhook {}).await;
                if let Err(error) = &removed {
                    tracing::warn!("removing the webhook: {error}");
                }
                // One that comes back is set by another program, which could go on for ever.
                if removed.is_err() || self.failures > 1 {
                    tokio::time::sleep(self.backoff()).await;
                }
            }
            ApiError::Answered { code: 409, .. } => {
                self.conflicts += 1;
                if self.conflicts == CONFLICTS_TOLD {
                    tracing::error!(
                        "another program uses this bot token. Stop it, or give Parlor a bot of its own; trying on slowly"
                    );
                }
                tokio::time::sleep(self.backoff()).await;
            }
            ApiError::Answered { code: 429, retry_after, .. } => {
                tokio::time::sleep(retry_after.unwrap_or(FIRST_BACKOFF)).await;
            }
            error => {
                tracing::warn!("polling Telegram: {error}; trying again in {} s", self.backoff().as_secs());
                tokio::time::sleep(self.backoff()).await;
            }
        }
        Ok(())
    }

    fn backoff(&self) -> Duration {
        FIRST_BACKOFF.saturating_mul(1 << self.failures.saturating_sub(1).min(6)).min(LONGEST_BACKOFF)
    }
}

fn refused() -> ListenError {
    ListenError("Telegram does not accept the bot token. Get a valid one from @BotFather, store it where [telegram] token points, and start again".into())
}
