//! Asks for what was written while nobody listened: after every new session, in the channels that matter.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::api::{ApiError, Call};
use super::directory::id_in;
use super::intake::Taker;
use super::parse::first_id_at;
use super::seen::{self, Seen};
use crate::clock::now_ms;
use crate::domain::DiscordId;

/// Channels that are asked about, the liveliest first.
const MOST_CHANNELS: u32 = 50;
/// Messages of one answer; Discord gives no more.
const PAGE: usize = 100;
/// Answers asked for about one channel.
const MOST_PAGES: usize = 3;
/// What is older is not answered any more, as on Telegram.
const OLDEST_MS: i64 = 24 * 60 * 60 * 1000;
/// Tries to ask for one page.
const TRIES: u32 = 4;
const AFTER_TROUBLE: Duration = Duration::from_secs(1);
/// Live messages wait until this is over, so it may not take for ever.
const LONGEST: Duration = Duration::from_secs(60);

pub(super) async fn run(taker: &mut Taker<'_>) {
    let channels = match channels(taker).await {
        Ok(channels) => channels,
        Err(error) => return tracing::error!("what was missed on Discord is not known: {error}"),
    };
    let (count, until) = (channels.len(), Instant::now() + LONGEST);
    for seen in channels {
        let in_time = timeout_at(until, one(taker, seen)).await;
        // Not cut short: nobody would bring what is in hand a second time.
        taker.store().await;
        if in_time.is_err() {
            return tracing::warn!("asking for missed messages in {count} channels took too long; some may be missing");
        }
    }
}

/// Bound channels count from now on, if nothing was ever seen in them.
async fn channels(taker: &Taker<'_>) -> Result<Vec<Seen>, crate::storage::StoreError> {
    let channel = taker.channel();
    let (bound, from) = (channel.bound_channels(), first_id_at(channel.api.now_ms()));
    channel.db.write(move |tx| seen::begin(tx, &bound, from, now_ms())).await?;
    channel.db.read(|connection| seen::latest(connection, MOST_CHANNELS)).await
}

async fn one(taker: &mut Taker<'_>, Seen { channel, message }: Seen) {
    let ours = taker.channel();
    let mut after = message.max(first_id_at(ours.api.now_ms() - OLDEST_MS));
    for _ in 0..MOST_PAGES {
        let mut messages = match ask(taker, channel, after).await {
            Ok(messages) => messages,
            Err(error) => return not_answered(taker, channel, &error).await,
        };
        messages.sort_by_key(|message| id_in(message, "id"));
        let Some(last) = messages.last().and_then(|message| id_in(message, "id")) else { return };
        // What is asked for does not name its server, and without one it would be taken for a private message.
        match ours.directory.find(&ours.api, channel).await {
            Ok(known) => complete(taker, known.server, &mut messages).await,
            Err(error) => return not_answered(taker, channel, &error).await,
        }
        for message in &messages {
            taker.message(message, None).await;
        }
        if messages.len() < PAGE {
            return;
        }
        after = last;
    }
    let most = PAGE * MOST_PAGES;
    tracing::warn!("{most} messages or more were missed in the Discord channel {channel}; those after them are left out");
}

/// Nobody tells these messages again, so trouble that passes is waited out.
async fn ask(taker: &Taker<'_>, channel: DiscordId, after: DiscordId) -> Result<Vec<Value>, ApiError> {
    let mut tries = 1;
    loop {
        let call = Call::get(format!("/channels/{channel}/messages?after={after}&limit={PAGE}"));
        let wait = match taker.channel().api.call(call).await {
            Err(ApiError::TooFast(wait)) if tries < TRIES => wait,
            Err(error) if tries < TRIES && !matches!(error, ApiError::Answered { status: 400..500, .. }) => AFTER_TROUBLE * tries,
            answered => return answered,
        };
        tries += 1;
        tokio::time::sleep(wait).await;
    }
}

/// Gives the messages their server and the roles of who wrote them.
async fn complete(taker: &Taker<'_>, server: Option<DiscordId>, messages: &mut [Value]) {
    let Some(server) = server else { return };
    let api = &taker.channel().api;
    let mut members = HashMap::<DiscordId, Value>::new();
    for message in messages.iter_mut().filter(|message| message["author"]["bot"] != true) {
        message["guild_id"] = server.to_string().into();
        let Some(author) = id_in(&message["author"], "id") else { continue };
        message["member"] = match members.get(&author) {
            Some(member) => member.clone(),
            None => {
                let asked: Result<Value, _> = api.call(Call::get(format!("/guilds/{server}/members/{author}"))).await;
                let member = asked.unwrap_or_default();
                members.insert(author, member.clone());
                member
            }
        };
    }
}

/// A channel that is gone, or closed to us, is not asked about again.
async fn not_answered(taker: &Taker<'_>, channel: DiscordId, error: &ApiError) {
    if matches!(error, ApiError::Answered { status: 403 | 404, .. }) {
        tracing::debug!("the Discord channel {channel} is not caught up with: {error}");
        if let Err(error) = taker.channel().db.write(move |tx| seen::forget(tx, channel)).await {
            tracing::warn!("a channel that is gone was not forgotten: {error}");
        }
    } else {
        tracing::warn!("messages may be missing from the Discord channel {channel}: {error}");
    }
}
