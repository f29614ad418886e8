//! How the bot stands in its groups, and which topics are closed or gone, as Telegram told last: by
//! an event, at the start, or with a refused message. In memory; a start asks again about the groups
//! of the config.
//! <https://core.telegram.org/bots/api#chatmemberupdated>

use std::sync::atomic::{AtomicBool, Ordering};

use dashmap::DashMap;
use serde_json::Value;

use super::types::field;
use crate::channels::{Barred, PlaceLoss};
use crate::clock::now_ms;
use crate::domain::{Arrival, ChatId, SessionKey, TopicId};

/// Groups that are remembered. When full, further groups are not.
const MOST_GROUPS: usize = 10_000;
/// Lost topics that are remembered. When full, further topics are not.
const MOST_TOPICS: usize = 10_000;

/// How the bot stands in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rank {
    /// Telegram does not know the group, or not to this bot.
    Unknown,
    Outside,
    /// Inside, but may not write.
    Mute,
    Member,
    /// Hears everything, in any privacy mode.
    Admin,
}

impl Rank {
    /// Why nothing can be written; none where the bot may write.
    fn loss(self) -> Option<PlaceLoss> {
        match self {
            Rank::Unknown => Some(PlaceLoss::NoSuchGroup),
            Rank::Outside => Some(PlaceLoss::Removed),
            Rank::Mute => Some(PlaceLoss::Mute),
            Rank::Member | Rank::Admin => None,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Memberships {
    /// The bot's privacy mode is on.
    hears_little: AtomicBool,
    /// With the time of the news.
    groups: DashMap<i64, (Rank, i64)>,
    /// Topics that take no messages, with the time of the news.
    topics: DashMap<(ChatId, TopicId), (PlaceLoss, i64)>,
}

impl Memberships {
    pub(super) fn set_privacy_mode(&self, is_on: bool) {
        self.hears_little.store(is_on, Ordering::Relaxed);
    }

    pub(super) fn note(&self, chat: ChatId, rank: Rank) {
        let known = self.groups.get(&chat.0).map(|known| known.0);
        let has_room = known.is_some() || self.groups.len() < MOST_GROUPS;
        if known != Some(rank) && has_room {
            self.groups.insert(chat.0, (rank, now_ms()));
        }
    }

    /// Takes the outcome of a message to a place as news.
    pub(super) fn learn(&self, place: &SessionKey, loss: Option<PlaceLoss>) {
        let Some(chat) = place.telegram_group() else {
            return;
        };
        let rank = match loss {
            Some(PlaceLoss::NoSuchGroup) => Rank::Unknown,
            Some(PlaceLoss::Removed) => Rank::Outside,
            Some(PlaceLoss::Mute) => Rank::Mute,
            Some(loss) => return self.note_topic(place, Some(loss)),
            // A message went out, so an earlier refusal is over.
            None if self.barred(place).is_none() => return,
            None => {
                self.note_topic(place, None);
                if self.barred(place).is_none() {
                    return;
                }
                Rank::Member
            }
        };
        self.note(chat, rank);
    }

    /// A topic takes no messages for this reason, or takes them again.
    fn note_topic(&self, place: &SessionKey, loss: Option<PlaceLoss>) {
        let SessionKey::TelegramTopic { chat, topic } = place else {
            return;
        };
        let id = (*chat, *topic);
        let Some(loss) = loss else {
            self.topics.remove(&id);
            return;
        };
        let known = self.topics.get(&id).map(|known| known.0);
        let has_room = known.is_some() || self.topics.len() < MOST_TOPICS;
        if known != Some(loss) && has_room {
            self.topics.insert(id, (loss, now_ms()));
        }
    }

    pub(super) fn barred(&self, place: &SessionKey) -> Option<Barred> {
        let known = self.groups.get(&place.telegram_group()?.0);
        let group = known.and_then(|known| known.0.loss().map(|loss| (loss, known.1)));
        let (loss, since) = group.or_else(|| self.lost_topic(place))?;
        Some(Barred { loss, since })
    }

    /// Admins write in closed topics too.
    fn lost_topic(&self, place: &SessionKey) -> Option<(PlaceLoss, i64)> {
        let SessionKey::TelegramTopic { chat, topic } = place else {
            return None;
        };
        let (loss, since) = *self.topics.get(&(*chat, *topic))?;
        let rank = self.groups.get(&chat.0).map(|known| known.0);
        let is_open_to_us = loss == PlaceLoss::Closed && rank == Some(Rank::Admin);
        (!is_open_to_us).then_some((loss, since))
    }

    /// Takes the event of a topic that was closed, or opened again, as news.
    pub(super) fn read_topic(&self, update: &Value) {
        let Some(message) = field(update, "message") else {
            return;
        };
        let loss = match (
            field(message, "forum_topic_closed"),
            field(message, "forum_topic_reopened"),
        ) {
            (Some(_), _) => Some(PlaceLoss::Closed),
            (None, Some(_)) => None,
            (None, None) => return,
        };
        let Some(chat) = message["chat"]["id"].as_i64().map(ChatId) else {
            return;
        };
        let topic = message["message_thread_id"].as_i64();
        let topic = topic.and_then(|topic| i32::try_from(topic).ok());
        let topic = topic.map_or(TopicId::GENERAL, TopicId);
        self.note_topic(&SessionKey::TelegramTopic { chat, topic }, loss);
    }

    /// Whether messages that do not mention the bot surely do not reach it.
    pub(super) fn is_hard_of_hearing(&self, place: &SessionKey) -> bool {
        let Some(chat) = place.telegram_group() else {
            return false;
        };
        let rank = self.groups.get(&chat.0).map(|known| known.0);
        self.hears_little.load(Ordering::Relaxed) && rank == Some(Rank::Member)
    }

    /// An event about the bot itself in a group. None for other updates.
    pub(super) fn read(&self, update: &Value) -> Option<Arrival> {
        let (chat, rank) = change(update)?;
        self.note(chat, rank);
        let group = SessionKey::TelegramGroup { chat, member: None };
        Some(match rank.loss() {
            Some(loss) => Arrival::Barred {
                group,
                reason: loss.to_string(),
            },
            // Whatever could not be sent is sent now.
            None => Arrival::Reopened(group),
        })
    }
}

fn change(update: &Value) -> Option<(ChatId, Rank)> {
    let change = field(update, "my_chat_member")?;
    let is_group = matches!(change["chat"]["type"].as_str()?, "group" | "supergroup");
    let chat = ChatId(change["chat"]["id"].as_i64().filter(|_| is_group)?);
    let member = Member {
        status: change["new_chat_member"]["status"].as_str(),
        is_member: change["new_chat_member"]["is_member"].as_bool(),
        can_send_messages: change["new_chat_member"]["can_send_messages"].as_bool(),
    };
    Some((chat, member.rank()))
}

/// <https://core.telegram.org/bots/api#chatmember>
#[derive(Debug)]
pub(super) struct Member<'a> {
    pub(super) status: Option<&'a str>,
    pub(super) is_member: Option<bool>,
    pub(super) can_send_messages: Option<bool>,
}

impl Member<'_> {
    pub(super) fn rank(&self) -> Rank {
        match self.status {
            Some("left" | "kicked") => Rank::Outside,
            Some("restricted") if self.is_member == Some(false) => Rank::Outside,
            Some("restricted") if self.can_send_messages == Some(false) => Rank::Mute,
            Some("administrator" | "creator") => Rank::Admin,
            _ => Rank::Member,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_about_the_bot_are_remembered() {
        let known = Memberships::default();
        let topic: SessionKey = "telegram:topic:-1001:7".parse().unwrap();
        let told = |status: &str, may_send: bool| {
            let member =
                json!({ "status": status, "can_send_messages": may_send, "is_member": true });
            json!({ "my_chat_member": { "chat": { "id": -1001, "type": "supergroup" }, "new_chat_member": member } })
        };
        let check = |update: Value, arrival: &str, loss: Option<PlaceLoss>| {
            let read = known.read(&update).map(|arrival| format!("{arrival:?}"));
            assert!(read.unwrap_or_default().starts_with(arrival), "{update}");
            assert_eq!(
                known.barred(&topic).map(|barred| barred.loss),
                loss,
                "{update}"
            );
        };
        check(told("kicked", true), "Barred", Some(PlaceLoss::Removed));
        check(told("member", true), "Reopened", None);
        check(told("restricted", false), "Barred", Some(PlaceLoss::Mute));
        check(told("administrator", true), "Reopened", None);
        check(json!({ "message": {} }), "", None);
        known.learn(&topic, Some(PlaceLoss::Mute));
        assert!(known.barred(&topic).is_some());
        known.learn(&topic, None);
        assert_eq!(known.barred(&topic), None);
    }

    #[test]
    fn privacy_mode_matters_to_members_only() {
        let known = Memberships::default();
        let topic: SessionKey = "telegram:topic:-1001:7".parse().unwrap();
        let check = |expected| assert_eq!(known.is_hard_of_hearing(&topic), expected);
        known.note(ChatId(-1001), Rank::Member);
        check(false);
        known.set_privacy_mode(true);
        check(true);
        known.note(ChatId(-1001), Rank::Admin);
        check(false);
    }
}
