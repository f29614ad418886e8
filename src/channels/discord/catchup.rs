//! Fetches missed messages after every new session.
//!
//! Channels with a read position are asked for newer messages. For other channels and active
//! threads a server lists the last message, and a newer id shows a miss. Discord lists no private
//! chats, so the chats of known people are looked up.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::api::{ApiError, Call, read_answer};
use super::broken_json::{MOST_ON_A_PAGE, Page, read_page};
use super::directory::{id_in, list};
use super::intake::EventLoop;
use super::parse::{first_id_at, sent_at};
use super::read_positions::{self, ReadPosition, Realm};
use crate::clock::now_ms;
use crate::domain::DiscordId;
use crate::storage::StoreError;

/// Channels with a read position to ask about, the liveliest first.
const MOST_CHANNELS: u32 = 50;
/// Channels to ask about because a server lists a newer message, the newest first.
const MOST_LISTED: usize = 50;
/// Private chats to look up.
const MOST_PEOPLE: usize = 20;
/// Pages to fetch of a channel.
const MOST_PAGES: usize = 3;
/// Older messages are not answered any more, as on Telegram.
const OLDEST_MS: i64 = 24 * 60 * 60 * 1000;
/// Events of different channels may be out of order by about this much.
const OVERLAP_MS: i64 = 5000;
/// Tries of each call.
const TRIES: u32 = 4;
const AFTER_TROUBLE: Duration = Duration::from_secs(1);
/// Live messages wait for the end of catching up, so the time is bounded.
const LONGEST: Duration = Duration::from_secs(60);
/// Within a session the budget is renewed after this time, for servers coming back from an outage.
const RENEWED_AFTER: Duration = Duration::from_secs(10 * 60);

/// The time and the channels left for catching up.
#[derive(Debug)]
pub(super) struct Budget {
    time: Duration,
    /// Channels from the lists of servers.
    listed: usize,
    renewed_at: Instant,
}

impl Budget {
    pub(super) fn new() -> Self {
        Budget {
            time: LONGEST,
            listed: MOST_LISTED,
            renewed_at: Instant::now(),
        }
    }

    fn renew_if_old(&mut self) {
        if self.renewed_at.elapsed() >= RENEWED_AFTER {
            *self = Budget::new();
        }
    }
}

/// Catches up with the channels that have a read position.
pub(super) async fn run(event_loop: &mut EventLoop<'_>) {
    event_loop.budget = Budget::new();
    let channels = match channels(event_loop).await {
        Ok(channels) => channels,
        Err(error) => return tracing::error!("what was missed on Discord is not known: {error}"),
    };
    for seen in channels {
        if !in_time(event_loop, seen).await {
            return;
        }
    }
}

/// Bound channels without a read position begin now, and have missed nothing. Their first messages
/// come as events; asked for, the later ones would overtake those that wait behind READY.
async fn channels(event_loop: &EventLoop<'_>) -> Result<Vec<ReadPosition>, StoreError> {
    let bot = event_loop.bot();
    let (bound, from) = (bot.bound_channels(), first_id_at(bot.api.now_ms()));
    let begun = bot
        .db
        .write(move |tx| read_positions::begin(tx, &bound, from, now_ms()))
        .await?;
    let mut channels = bot
        .db
        .read(|connection| read_positions::latest(connection, MOST_CHANNELS))
        .await?;
    channels.retain(|seen| !begun.contains(&seen.channel));
    Ok(channels)
}

/// Catches up with channels and threads of a server that list a message newer than the last event
/// from there. A new server begins now.
pub(super) async fn server(event_loop: &mut EventLoop<'_>, raw: &Value) {
    let Some(server) = id_in(raw, "id") else {
        return;
    };
    event_loop.budget.renew_if_old();
    let (realm, now) = (Realm::Server(server), now_ms());
    let now = match heard(event_loop, realm).await {
        Ok(Some(since)) => {
            let made = |thread: &&Value| {
                id_in(thread, "id").is_some_and(|id| id > since && sent_at(id) > now - OLDEST_MS)
            };
            for thread in list(raw, "threads").filter(made).take(MOST_LISTED) {
                event_loop.thread_found(thread).await;
            }
            let bot = event_loop.bot();
            let listed = list(raw, "channels")
                .chain(list(raw, "threads"))
                .filter_map(last_message);
            let listed = listed
                .filter(|seen| bot.may_answer_in(server, seen.channel))
                .collect();
            with_listed(event_loop, since, listed).await;
            now
        }
        Ok(None) => now + OVERLAP_MS,
        Err(error) => return tracing::error!("what was missed on Discord is not known: {error}"),
    };
    event_loop.heard(realm, first_id_at(now));
    event_loop.store().await;
}

/// Catches up with the private chats of known people, from the last private event on.
pub(super) async fn private_chats(event_loop: &mut EventLoop<'_>) {
    let (realm, now) = (Realm::PrivateChats, now_ms());
    let now = match heard(event_loop, realm).await {
        Ok(Some(since)) => {
            let people = (event_loop.bot().known_people)().await;
            let mut listed = Vec::new();
            for person in people.into_iter().take(MOST_PEOPLE) {
                let begun = Instant::now();
                let Ok(found) =
                    timeout(event_loop.budget.time, private_chat(event_loop, person)).await
                else {
                    break;
                };
                event_loop.budget.time = event_loop.budget.time.saturating_sub(begun.elapsed());
                listed.extend(found);
            }
            with_listed(event_loop, since, listed).await;
            now
        }
        Ok(None) => now + OVERLAP_MS,
        Err(error) => {
            return tracing::error!("what was missed on Discord in private is not known: {error}");
        }
    };
    event_loop.heard(realm, first_id_at(now));
    event_loop.store().await;
}

async fn heard(event_loop: &EventLoop<'_>, realm: Realm) -> Result<Option<DiscordId>, StoreError> {
    let heard = event_loop
        .bot()
        .db
        .read(move |connection| read_positions::heard(connection, realm))
        .await?;
    Ok(heard.map(|message| first_id_at(sent_at(message) - OVERLAP_MS)))
}

/// A channel with its last message.
fn last_message(channel: &Value) -> Option<ReadPosition> {
    Some(ReadPosition {
        channel: id_in(channel, "id")?,
        message: id_in(channel, "last_message_id")?,
    })
}

async fn private_chat(event_loop: &EventLoop<'_>, person: DiscordId) -> Option<ReadPosition> {
    let bot = event_loop.bot();
    let call = || bot.directory.private_call(person);
    let raw: Value = patiently(event_loop, call, read_answer)
        .await
        .inspect_err(|error| {
            tracing::debug!("the private chat with {person} was not looked up: {error}");
        })
        .ok()?;
    bot.directory.learn(&raw, None);
    bot.directory.learn_private(person, id_in(&raw, "id")?);
    last_message(&raw)
}

/// Catches up with the listed channels whose last message is newer than the read position, or than
/// `since` without a position.
async fn with_listed(event_loop: &mut EventLoop<'_>, since: DiscordId, listed: Vec<ReadPosition>) {
    let ids: Vec<DiscordId> = listed.iter().map(|seen| seen.channel).collect();
    let seen = match event_loop
        .bot()
        .db
        .read(move |connection| read_positions::of(connection, &ids))
        .await
    {
        Ok(seen) => seen,
        Err(error) => return tracing::error!("what was missed on Discord is not known: {error}"),
    };
    let read_to = |channel: &DiscordId| seen.get(channel).copied().unwrap_or(since);
    let mut missed: Vec<ReadPosition> = listed
        .into_iter()
        .filter(|last| last.message > read_to(&last.channel))
        .collect();
    missed.sort_by_key(|last| std::cmp::Reverse(last.message));
    if missed.len() > event_loop.budget.listed {
        tracing::warn!(
            "{} channels on Discord have missed messages; not all of them are asked for",
            missed.len()
        );
        missed.truncate(event_loop.budget.listed);
    }
    event_loop.budget.listed -= missed.len();
    for ReadPosition { channel, .. } in missed {
        if !in_time(
            event_loop,
            ReadPosition {
                channel,
                message: read_to(&channel),
            },
        )
        .await
        {
            return;
        }
    }
}

/// False when the time is used up.
async fn in_time(event_loop: &mut EventLoop<'_>, seen: ReadPosition) -> bool {
    let (left, begun) = (event_loop.budget.time, Instant::now());
    let in_time = timeout(left, one(event_loop, seen)).await.is_ok();
    // The timeout must not cover storing: Discord does not send the messages a second time.
    event_loop.store().await;
    event_loop.budget.time = left.saturating_sub(begun.elapsed());
    if !in_time {
        tracing::warn!("asking for missed messages on Discord took too long; some may be missing");
    }
    in_time
}

async fn one(event_loop: &mut EventLoop<'_>, ReadPosition { channel, message }: ReadPosition) {
    let bot = event_loop.bot();
    let mut after = message.max(first_id_at(bot.api.now_ms() - OLDEST_MS));
    for _ in 0..MOST_PAGES {
        let call = || {
            Call::get(format!(
                "/channels/{channel}/messages?after={after}&limit={MOST_ON_A_PAGE}"
            ))
        };
        let read = |body: &[u8]| {
            read_page(body, after).ok_or_else(|| ApiError::NoAnswer("it is no list".into()))
        };
        let page = match patiently(event_loop, call, read).await {
            Ok(page) => page,
            Err(error) => return not_answered(event_loop, channel, &error).await,
        };
        let Some(last) = page.newest() else { return };
        let is_last = page.is_last();
        let Page {
            mut messages,
            broken,
        } = page;
        // Messages of a page do not name their server, and a message without a server would count
        // as private.
        let server = match bot.directory.find(&bot.api, channel).await {
            Ok(known) => known.server,
            Err(error) => return not_answered(event_loop, channel, &error).await,
        };
        complete(event_loop, server, &mut messages).await;
        broken
            .into_iter()
            .for_each(|broken| event_loop.broken_message(channel, broken));
        for message in &messages {
            event_loop.missed(message).await;
        }
        if is_last {
            return;
        }
        after = last;
    }
    let most = MOST_ON_A_PAGE * MOST_PAGES;
    tracing::warn!(
        "{most} messages or more were missed in the Discord channel {channel}; those after them are left out"
    );
}

/// Makes a call again after passing trouble, because a given-up page is lost.
async fn patiently<T, R>(
    event_loop: &EventLoop<'_>,
    call: impl Fn() -> Call,
    read: R,
) -> Result<T, ApiError>
where
    R: Fn(&[u8]) -> Result<T, ApiError>,
{
    let mut tries = 1;
    loop {
        let answered = event_loop
            .bot()
            .api
            .raw(call())
            .await
            .and_then(|body| read(&body));
        let wait = match answered {
            Err(ApiError::TooFast(wait)) if tries < TRIES => wait,
            Err(error)
                if tries < TRIES
                    && !matches!(
                        error,
                        ApiError::Answered {
                            status: 400..500,
                            ..
                        }
                    ) =>
            {
                AFTER_TROUBLE * tries
            }
            answered => return answered,
        };
        tries += 1;
        tokio::time::sleep(wait).await;
    }
}

/// Adds to each message its server and its author's roles.
async fn complete(event_loop: &EventLoop<'_>, server: Option<DiscordId>, messages: &mut [Value]) {
    let Some(server) = server else { return };
    let api = &event_loop.bot().api;
    let mut members = HashMap::<DiscordId, Value>::new();
    for message in messages
        .iter_mut()
        .filter(|message| message["author"]["bot"] != true)
    {
        message["guild_id"] = server.to_string().into();
        let Some(author) = id_in(&message["author"], "id") else {
            continue;
        };
        message["member"] = match members.get(&author) {
            Some(member) => member.clone(),
            None => {
                let asked: Result<Value, _> = api
                    .call(Call::get(format!("/guilds/{server}/members/{author}")))
                    .await;
                let member = asked.unwrap_or_default();
                members.insert(author, member.clone());
                member
            }
        };
    }
}

/// Forgets a channel after a 403 or 404, so that the next start does not ask again.
async fn not_answered(event_loop: &EventLoop<'_>, channel: DiscordId, error: &ApiError) {
    if matches!(
        error,
        ApiError::Answered {
            status: 403 | 404,
            ..
        }
    ) {
        tracing::debug!("the Discord channel {channel} is not caught up with: {error}");
        if let Err(error) = event_loop
            .bot()
            .db
            .write(move |tx| read_positions::forget(tx, channel))
            .await
        {
            tracing::warn!("a channel that is gone was not forgotten: {error}");
        }
    } else {
        tracing::warn!("messages may be missing from the Discord channel {channel}: {error}");
    }
}
