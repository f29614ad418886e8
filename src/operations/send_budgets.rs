//! The send budgets of each platform: what is used of them right now, who waits, and waits that a
//! platform asked for.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use rusqlite::Connection;
use serde::Serialize;
use utoipa::ToSchema;

use super::house::House;
use super::named::{Moment, Named};
use super::{Operations, Refusal};
use crate::channels::chat_of;
use crate::delivery::outbox;
use crate::delivery::usage::{ChatUsage, Usage};
use crate::domain::{Platform, SessionKey};
use crate::routing::places;

/// Chats that are listed for a platform.
const MOST_CHATS: usize = 100;

/// The budgets of a bot.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct SendBudget {
    /// telegram or discord.
    #[schema(value_type = String)]
    pub(crate) platform: Platform,
    /// Calls in a second, over all chats; null: no limit.
    pub(crate) per_second: Option<u32>,
    /// Calls in the last second, over all chats.
    pub(crate) used_in_second: usize,
    /// Messages in a second to one chat; null: no limit.
    pub(crate) chat_per_second: Option<u32>,
    /// Messages in a minute to one group; null: no limit.
    pub(crate) group_per_minute: Option<u32>,
    /// Messages that wait to be sent, in all chats.
    pub(crate) waiting: usize,
    /// Chats that were written to in the last minute or wait: at most 100, those that wait longest first.
    pub(crate) chats: Vec<ChatBudget>,
    /// Chats that are not listed.
    pub(crate) more_chats: usize,
}

/// The budgets of a chat.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ChatBudget {
    /// The private chat, group or channel. Topics of a group share its budgets.
    pub(crate) place: Named,
    pub(crate) used_in_second: usize,
    /// Of a group, where groups have a limit.
    pub(crate) used_in_minute: Option<usize>,
    /// Milliseconds until the minute of a group has room again; null: it has room.
    pub(crate) room_in_ms: Option<u64>,
    /// Messages that wait to be sent.
    pub(crate) waiting: usize,
    /// Since when the oldest of them waits.
    pub(crate) waiting_since: Option<Moment>,
    /// Milliseconds that are left of a wait that the platform asked for (429).
    pub(crate) asked_to_wait_ms: Option<u64>,
}

/// Messages that wait in the places of a chat.
#[derive(Default)]
struct Line {
    place: Option<SessionKey>,
    count: usize,
    since: Option<i64>,
}

/// The budgets of connected platforms with limits. Without a running gateway there are none.
pub(crate) async fn send_budgets(operations: &Operations) -> Result<Vec<SendBudget>, Refusal> {
    let Some(live) = &operations.live else {
        return Ok(Vec::new());
    };
    let used = live.delivery.usage();
    let house = operations.house().await?;
    let read = move |connection: &Connection| {
        let waiting = outbox::waiting_since(connection)?;
        let of = |(platform, usage): &(Platform, Usage)| {
            budget(connection, &house, *platform, usage, &waiting)
        };
        used.iter().map(of).collect::<rusqlite::Result<Vec<_>>>()
    };
    Ok(operations.db.read(read).await?)
}

fn budget(
    connection: &Connection,
    house: &House,
    platform: Platform,
    usage: &Usage,
    waiting: &[(SessionKey, usize, i64)],
) -> rusqlite::Result<SendBudget> {
    let lines = lines(platform, waiting);
    let mut chats: BTreeMap<i64, ChatUsage> = usage.chats.clone();
    for chat in lines.keys() {
        chats.entry(*chat).or_default();
    }
    let keys = match chats.is_empty() {
        true => HashMap::new(),
        false => chat_keys(connection, platform)?,
    };
    let none = Line::default();
    let named = |(chat, used): (&i64, &ChatUsage)| {
        let line = lines.get(chat).unwrap_or(&none);
        let key = keys.get(chat).or(line.place.as_ref());
        let unknown = || Named::new(format!("{platform}:{chat}"), None);
        ChatBudget {
            place: key.map_or_else(unknown, |key| house.names.place(key)),
            used_in_second: used.last_second,
            used_in_minute: used.last_minute,
            room_in_ms: used.room_in.map(millis),
            waiting: line.count,
            waiting_since: line.since.map(Moment),
            asked_to_wait_ms: used.asked_to_wait.map(millis),
        }
    };
    let mut listed: Vec<ChatBudget> = chats.iter().map(named).collect();
    listed.sort_by_key(importance);
    let more_chats = listed.len().saturating_sub(MOST_CHATS);
    listed.truncate(MOST_CHATS);
    let limit = |limit: u32| Some(limit).filter(|limit| *limit > 0);
    Ok(SendBudget {
        platform,
        per_second: limit(usage.limits.all_per_second),
        used_in_second: usage.last_second,
        chat_per_second: limit(usage.limits.chat_per_second),
        group_per_minute: limit(usage.limits.group_per_minute),
        waiting: lines.values().map(|line| line.count).sum(),
        chats: listed,
        more_chats,
    })
}

/// Asked waits first, then long lines, then much use.
fn importance(chat: &ChatBudget) -> impl Ord + use<> {
    std::cmp::Reverse((
        chat.asked_to_wait_ms,
        chat.waiting,
        chat.room_in_ms,
        chat.used_in_minute,
        chat.used_in_second,
    ))
}

/// The messages that wait, by chat.
fn lines(platform: Platform, waiting: &[(SessionKey, usize, i64)]) -> HashMap<i64, Line> {
    let mut lines: HashMap<i64, Line> = HashMap::new();
    for (place, count, since) in waiting {
        let chat = chat_of(place).filter(|_| place.platform() == Some(platform));
        let Some(chat) = chat else { continue };
        let line = lines.entry(chat).or_default();
        line.count += count;
        line.since = Some(line.since.map_or(*since, |known| known.min(*since)));
        line.place.get_or_insert_with(|| place.clone());
    }
    lines
}

/// The place that stands for each chat: the whole group where there are topics.
fn chat_keys(
    connection: &Connection,
    platform: Platform,
) -> rusqlite::Result<HashMap<i64, SessionKey>> {
    let mut keys = HashMap::new();
    for place in places::on(connection, platform)? {
        let Some(chat) = chat_of(&place) else {
            continue;
        };
        let whole = match &place {
            // A thread has budgets of its own.
            SessionKey::DiscordThread { .. } => place,
            other => other.whole_group().unwrap_or(place),
        };
        keys.insert(chat, whole);
    }
    Ok(keys)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
