//! Asks for what was written while nobody listened, after every new session.
//!
//! Channels that were seen before are asked about by what was seen last. Servers list their channels and active threads with the
//! last message of each, which shows where something was missed in a place that was never seen. Private chats are listed
//! nowhere: those of people who are known are looked up.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::api::{ApiError, Call, read_answer};
use super::broken_json::{MOST_ON_A_PAGE, Page, read_page};
use super::directory::{id_in, list};
use super::intake::Taker;
use super::parse::{first_id_at, sent_at};
use super::seen::{self, Realm, Seen};
use crate::clock::now_ms;
use crate::domain::DiscordId;
use crate::storage::StoreError;

/// Channels that are asked about because they were seen before, the liveliest first.
const MOST_CHANNELS: u32 = 50;
/// Channels that are asked about because a server lists something newer, the newest first.
const MOST_LISTED: usize = 50;
/// People whose private chat is looked up.
const MOST_PEOPLE: usize = 20;
/// Answers asked for about one channel.
const MOST_PAGES: usize = 3;
/// What is older is not answered any more, as on Telegram.
const OLDEST_MS: i64 = 24 * 60 * 60 * 1000;
/// Messages of different channels may come in another order than they were written, by about this much.
const OVERLAP_MS: i64 = 5000;
/// Tries to ask for one thing.
const TRIES: u32 = 4;
const AFTER_TROUBLE: Duration = Duration::from_secs(1);
/// Live messages wait until this is over, so it may not take for ever.
const LONGEST: Duration = Duration::from_secs(60);
/// A server that comes back after this time, with no new session, has all the time again.
const RENEWED_AFTER: Duration = Duration::from_secs(10 * 60);

/// What catching up may still take.
#[derive(Debug)]
pub(super) struct Budget {
    time: Duration,
    /// Channels that servers list.
    listed: usize,
    renewed_at: Instant,
}

impl Budget {
    pub(super) fn new() -> Self {
        Budget { time: LONGEST, listed: MOST_LISTED, renewed_at: Instant::now() }
    }

    fn renew_if_old(&mut self) {
        if self.renewed_at.elapsed() >= RENEWED_AFTER {
            *self = Budget::new();
        }
    }
}

/// Asks about the channels that were seen before.
pub(super) async fn run(taker: &mut Taker<'_>) {
    taker.budget = Budget::new();
    let channels = match channels(taker).await {
        Ok(channels) => channels,
        Err(error) => return tracing::error!("what was missed on Discord is not known: {error}"),
    };
    for seen in channels {
        if !in_time(taker, seen).await {
            return;
        }
    }
}

/// Bound channels count from now on, if nothing was ever seen in them.
async fn channels(taker: &Taker<'_>) -> Result<Vec<Seen>, StoreError> {
    let channel = taker.channel();
    let (bound, from) = (channel.bound_channels(), first_id_at(channel.api.now_ms()));
    channel.db.write(move |tx| seen::begin(tx, &bound, from, now_ms())).await?;
    channel.db.read(|connection| seen::latest(connection, MOST_CHANNELS)).await
}

/// Asks about channels and threads of a server in which something was said since it was last heard. One that is new to us counts
/// from now on.
pub(super) async fn server(taker: &mut Taker<'_>, raw: &Value) {
    let Some(server) = id_in(raw, "id") else { return };
    taker.budget.renew_if_old();
    let (realm, now) = (Realm::Server(server), now_ms());
    let now = match heard(taker, realm).await {
        Ok(Some(since)) => {
            let made = |thread: &&Value| id_in(thread, "id").is_some_and(|id| id > since && sent_at(id) > now - OLDEST_MS);
            for thread in list(raw, "threads").filter(made).take(MOST_LISTED) {
                taker.thread_found(thread).await;
            }
            let ours = taker.channel();
            let listed = list(raw, "channels").chain(list(raw, "threads")).filter_map(last_message);
            let listed = listed.filter(|seen| ours.may_answer_in(server, seen.channel)).collect();
            with_listed(taker, since, listed).await;
            now
        }
        Ok(None) => now + OVERLAP_MS,
        Err(error) => return tracing::error!("what was missed on Discord is not known: {error}"),
    };
    taker.heard(realm, first_id_at(now));
    taker.store().await;
}

/// Looks up the private chats of people who are known, for what they wrote since anything private was heard.
pub(super) async fn private_chats(taker: &mut Taker<'_>) {
    let (realm, now) = (Realm::PrivateChats, now_ms());
    let now = match heard(taker, realm).await {
        Ok(Some(since)) => {
            let people = (taker.channel().known_people)().await;
            let mut listed = Vec::new();
            for person in people.into_iter().take(MOST_PEOPLE) {
                let begun = Instant::now();
                let Ok(found) = timeout(taker.budget.time, private_chat(taker, person)).await else { break };
                taker.budget.time = taker.budget.time.saturating_sub(begun.elapsed());
                listed.extend(found);
            }
            with_listed(taker, since, listed).await;
            now
        }
        Ok(None) => now + OVERLAP_MS,
        Err(error) => return tracing::error!("what was missed on Discord in private is not known: {error}"),
    };
    taker.heard(realm, first_id_at(now));
    taker.store().await;
}

async fn heard(taker: &Taker<'_>, realm: Realm) -> Result<Option<DiscordId>, StoreError> {
    let heard = taker.channel().db.read(move |connection| seen::heard(connection, realm)).await?;
    Ok(heard.map(|message| first_id_at(sent_at(message) - OVERLAP_MS)))
}

/// A channel with the last message there is.
fn last_message(channel: &Value) -> Option<Seen> {
    Some(Seen { channel: id_in(channel, "id")?, message: id_in(channel, "last_message_id")? })
}

async fn private_chat(taker: &Taker<'_>, person: DiscordId) -> Option<Seen> {
    let ours = taker.channel();
    let call = || ours.directory.private_call(person);
    let raw: Value = patiently(taker, call, read_answer)
        .await
        .inspect_err(|error| tracing::debug!("the private chat with {person} was not looked up: {error}"))
        .ok()?;
    ours.directory.learn(&raw, None);
    ours.directory.learn_private(person, id_in(&raw, "id")?);
    last_message(&raw)
}

/// Asks about those of the listed channels that have something newer than what was seen there, or else heard anywhere.
async fn with_listed(taker: &mut Taker<'_>, since: DiscordId, listed: Vec<Seen>) {
    let ids: Vec<DiscordId> = listed.iter().map(|seen| seen.channel).collect();
    let seen = match taker.channel().db.read(move |connection| seen::of(connection, &ids)).await {
        Ok(seen) => seen,
        Err(error) => return tracing::error!("what was missed on Discord is not known: {error}"),
    };
    let read_to = |channel: &DiscordId| seen.get(channel).copied().unwrap_or(since);
    let mut missed: Vec<Seen> = listed.into_iter().filter(|last| last.message > read_to(&last.channel)).collect();
    missed.sort_by_key(|last| std::cmp::Reverse(last.message));
    if missed.len() > taker.budget.listed {
        tracing::warn!("{} channels on Discord have missed messages; not all of them are asked for", missed.len());
        missed.truncate(taker.budget.listed);
    }
    taker.budget.listed -= missed.len();
    for Seen { channel, .. } in missed {
        if !in_time(taker, Seen { channel, message: read_to(&channel) }).await {
            return;
        }
    }
}

/// False when there is no time for more.
async fn in_time(taker: &mut Taker<'_>, seen: Seen) -> bool {
    let (left, begun) = (taker.budget.time, Instant::now());
    let in_time = timeout(left, one(taker, seen)).await.is_ok();
    // Not cut short: nobody would bring what is in hand a second time.
    taker.store().await;
    taker.budget.time = left.saturating_sub(begun.elapsed());
    if !in_time {
        tracing::warn!("asking for missed messages on Discord took too long; some may be missing");
    }
    in_time
}

async fn one(taker: &mut Taker<'_>, Seen { channel, message }: Seen) {
    let ours = taker.channel();
    let mut after = message.max(first_id_at(ours.api.now_ms() - OLDEST_MS));
    for _ in 0..MOST_PAGES {
        let call = || Call::get(format!("/channels/{channel}/messages?after={after}&limit={MOST_ON_A_PAGE}"));
        let read = |body: &[u8]| read_page(body, after).ok_or_else(|| ApiError::NoAnswer("it is no list".into()));
        let page = match patiently(taker, call, read).await {
            Ok(page) => page,
            Err(error) => return not_answered(taker, channel, &error).await,
        };
        let Some(last) = page.newest() else { return };
        let is_last = page.is_last();
        let Page { mut messages, broken } = page;
        // What is asked for does not name its server, and without one it would be taken for a private message.
        let server = match ours.directory.find(&ours.api, channel).await {
            Ok(known) => known.server,
            Err(error) => return not_answered(taker, channel, &error).await,
        };
        complete(taker, server, &mut messages).await;
        broken.into_iter().for_each(|broken| taker.broken_message(channel, server, broken));
        for message in &messages {
            taker.message(message, None).await;
        }
        if is_last {
            return;
        }
        after = last;
    }
    let most = MOST_ON_A_PAGE * MOST_PAGES;
    tracing::warn!("{most} messages or more were missed in the Discord channel {channel}; those after them are left out");
}

/// Nobody tells these messages again, so trouble that passes is waited out.
async fn patiently<T, R>(taker: &Taker<'_>, call: impl Fn() -> Call, read: R) -> Result<T, ApiError>
where
    R: Fn(&[u8]) -> Result<T, ApiError>,
{
    let mut tries = 1;
    loop {
        let answered = taker.channel().api.raw(call()).await.and_then(|body| read(&body));
        let wait = match answered {
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
