//! Taking updates in, and the poll loop. An update is confirmed by the next poll's offset, and that is sent only once the
//! update is on disk.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use teloxide::requests::Payload;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::TelegramChannel;
use super::api::{self, ApiError, Done};
use super::buttons::{self, AnswerCallbackQuery};
use super::position::{IDLE_TOLD, Position};
use super::updates::{self, Update};
use super::{checks, menu, parse, send, webhook};
use crate::backoff::Backoff;
use crate::channels::{Batch, Health, Intake, ListenError};
use crate::config::Transport;
use crate::domain::Platform;

/// How long Telegram holds a poll open; its own upper bound.
const POLL: Duration = Duration::from_secs(50);
/// The pause after something that is no trouble with the connection.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between polls while another program uses the token.
const LONGEST_AFTER_CONFLICTS: Duration = Duration::from_secs(60);
/// Conflicts before the operator is told that somebody else uses the token. A restart alone makes one or two.
const CONFLICTS_TOLD: u32 = 3;
/// After so long without a conflict, the next one is a new story. Polls that worked in between do not count: two who use one
/// token each get some.
const CALM: Duration = Duration::from_secs(600);
/// What we want to hear of, by either transport.
pub(super) const ALLOWED_UPDATES: &[&str] = &["message", "edited_message", "message_reaction", "callback_query"];

#[derive(Serialize)]
struct GetRawUpdates {
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u32>,
    timeout: u64,
    allowed_updates: &'static [&'static str],
}

impl Payload for GetRawUpdates {
    /// Never read as a whole: one update that is no JSON would take all others with it.
    type Output = ();
    const NAME: &'static str = "getUpdates";

    fn timeout_hint(&self) -> Option<Duration> {
        Some(POLL)
    }
}

#[derive(Serialize)]
struct DeleteWebhook {}

impl Payload for DeleteWebhook {
    type Output = Done;
    const NAME: &'static str = "deleteWebhook";
}

#[derive(Serialize)]
pub(super) struct GetMe {}

/// What we ask about ourselves. Servers leave out what they do not know of, or say null.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Me {
    pub(super) username: Option<String>,
    pub(super) can_read_all_group_messages: Option<bool>,
}

impl Payload for GetMe {
    type Output = Me;
    const NAME: &'static str = "getMe";
}

pub(super) async fn listen(channel: &TelegramChannel, intake: &Intake, stop: &CancellationToken) -> Result<(), ListenError> {
    // Asked for beside the first updates, so that it costs no start-up time.
    let ask_beside = async {
        let me = me(channel).await;
        menu::tell(&channel.api, &channel.db, &channel.menu).await;
        if let Some(me) = me {
            // A server that does not say it gives no reason to warn.
            let reads_all = me.can_read_all_group_messages.unwrap_or(true);
            checks::report(&channel.api, reads_all, &channel.expectations).await;
        }
        std::future::pending::<()>().await;
    };
    let receive = async {
        match &channel.transport {
            Transport::Polling => tokio::select! {
                ended = poll(channel, intake) => ended,
                () = stop.cancelled() => Ok(()),
            },
            Transport::Webhook(webhook) => webhook::listen(channel, webhook, intake, stop).await,
        }
    };
    tokio::select! {
        ended = receive => ended,
        () = ask_beside => Ok(()),
    }
}

async fn poll(channel: &TelegramChannel, intake: &Intake) -> Result<(), ListenError> {
    let mut position = Position::default();
    let mut trouble = Trouble::new();
    loop {
        let asked = Instant::now();
        match ask(channel, &mut position).await {
            Ok(updates) => {
                trouble.polled();
                let answered_after = asked.elapsed();
                if let Stored::No = store(channel, intake, &updates).await? {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                let pause = position.go_on(&updates, answered_after);
                if position.idle() == IDLE_TOLD {
                    tracing::error!("Telegram answers polls at once and sends nothing new; asking once a second");
                }
                tokio::time::sleep(pause).await;
            }
            Err(error) => trouble.handle(channel, error).await?,
        }
    }
}

async fn ask(channel: &TelegramChannel, position: &mut Position) -> Result<Vec<Update>, ApiError> {
    let (offset, limit) = (position.offset(), position.limit());
    let request = GetRawUpdates { offset, limit, timeout: POLL.as_secs(), allowed_updates: ALLOWED_UPDATES };
    let asked = channel.api.call_unread(&request).await;
    let (status, body) = asked.inspect_err(|error| channel.api.note_health(Some(error)))?;
    let answer = updates::read_answer(&body).filter(|_| status.is_success());
    if let Some(updates) = answer.and_then(|answer| position.accept(answer)) {
        channel.api.note_health(None);
        return Ok(updates);
    }
    let error = api::refusal(status, &body);
    channel.api.note_health(Some(&error));
    match error {
        ApiError::Answered { code: 400, .. } if position.was_refused() => {
            tracing::error!("Telegram does not let its updates be confirmed; asking for the oldest again");
        }
        ApiError::NoAnswer(_) if position.was_unreadable() => {
            tracing::error!("Telegram's updates cannot be read; asking for them one by one");
        }
        _ => {}
    }
    Err(error)
}

/// Whether updates are on disk. Those that are not stay with Telegram; the reason is logged where they were refused.
pub(super) enum Stored {
    Yes,
    No,
}

pub(super) async fn store(channel: &TelegramChannel, intake: &Intake, updates: &[Update]) -> Result<Stored, ListenError> {
    if updates.is_empty() {
        return Ok(Stored::Yes);
    }
    let Some(me) = me(channel).await else { return Err(refused()) };
    let reader = parse::Reader {
        bot_id: channel.api.bot_id(),
        me,
        group_sessions: channel.group_sessions,
        nicknames: &channel.nicknames,
        signer: &channel.signer,
        gather: channel.gather,
    };
    answer_presses(channel, &reader, updates);
    let readable = updates.iter().filter_map(|update| update.content.as_ref().ok());
    readable.for_each(|update| send::note_newest(&channel.newest, update));
    let arrivals = reader.read_all(updates);
    if arrivals.is_empty() {
        return Ok(Stored::Yes);
    }
    let accepted = intake.accept(Batch { platform: Platform::Telegram, arrivals }).await;
    Ok(if accepted.is_ok() { Stored::Yes } else { Stored::No })
}

/// At once and beside everything else: whoever pressed a button looks at a clock until then.
fn answer_presses(channel: &TelegramChannel, reader: &parse::Reader<'_>, updates: &[Update]) {
    for press in updates.iter().filter_map(|update| reader.read_press(update)) {
        let text = press.is_stale.then_some(buttons::STALE);
        let (api, answer) = (channel.api.clone(), AnswerCallbackQuery::new(press.query_id, text));
        channel.answers.spawn(async move { answer.send(&api).await });
    }
}

/// Who we are, asked until Telegram says it. `None` when it does not accept the token.
async fn me(channel: &TelegramChannel) -> Option<&Me> {
    let mut backoff = Health::backoff();
    loop {
        match channel.me.get_or_try_init(async || channel.api.call(&GetMe {}).await).await {
            Ok(me) => return Some(me),
            Err(ApiError::Answered { code: 401 | 404, .. }) => return None,
            Err(error) => {
                tracing::warn!("asking Telegram who we are: {error}");
                channel.api.health().pause(&mut backoff).await;
            }
        }
    }
}

/// What went wrong with polling lately.
struct Trouble {
    /// Failed polls in a row.
    failures: u32,
    backoff: Backoff,
    conflicts: u32,
    conflict_backoff: Backoff,
    last_conflict: Option<Instant>,
}

impl Trouble {
    fn new() -> Self {
        let conflict_backoff = Backoff::new(PAUSE, LONGEST_AFTER_CONFLICTS);
        Trouble { failures: 0, backoff: Health::backoff(), conflicts: 0, conflict_backoff, last_conflict: None }
    }

    fn polled(&mut self) {
        self.failures = 0;
        self.backoff.reset();
    }

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
                    tokio::time::sleep(self.backoff.next().at_most).await;
                }
            }
            ApiError::Answered { code: 409, .. } => {
                if self.count_conflict(Instant::now()) == CONFLICTS_TOLD {
                    tracing::error!(
                        "another program uses this bot token. Stop it, or give Parlor a bot of its own; trying on slowly"
                    );
                }
                tokio::time::sleep(self.conflict_backoff.next().at_most).await;
            }
            ApiError::Answered { code: 429, retry_after, .. } => {
                tokio::time::sleep(retry_after.unwrap_or(PAUSE)).await;
            }
            error => {
                tracing::warn!("polling Telegram: {error}; trying again in {} s", self.backoff.peek().as_secs());
                channel.api.health().pause(&mut self.backoff).await;
            }
        }
        Ok(())
    }

    fn count_conflict(&mut self, now: Instant) -> u32 {
        if self.last_conflict.is_some_and(|last| now - last > CALM) {
            self.conflicts = 0;
            self.conflict_backoff.reset();
        }
        self.last_conflict = Some(now);
        self.conflicts += 1;
        self.conflicts
    }
}

pub(super) fn refused() -> ListenError {
    ListenError("Telegram does not accept the bot token. Get a valid one from @BotFather, store it where [telegram] token points, and start again".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_poller_is_told_once_until_it_was_calm_for_long() {
        let mut trouble = Trouble::new();
        let start = Instant::now();
        let told = |trouble: &mut Trouble, minute: u64| {
            trouble.polled();
            trouble.count_conflict(start + Duration::from_secs(60 * minute)) == CONFLICTS_TOLD
        };
        let first: Vec<_> = (0..20).filter(|minute| told(&mut trouble, *minute)).collect();
        assert_eq!(first, [2]);
        let again: Vec<_> = (40..50).filter(|minute| told(&mut trouble, *minute)).collect();
        assert_eq!(again, [42]);
    }
}
