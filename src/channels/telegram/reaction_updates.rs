//! Reads reactions. <https://core.telegram.org/bots/api#messagereactionupdated>

use serde::Deserialize;
use serde_json::Value;

use super::types::User;
use crate::domain::{
    Addressed, ChatId, Extras, Inbound, MessageId, Note, Origin, PersonId, SessionKey,
};

/// Emoji shown of a reaction.
const MAX_EMOJI: usize = 3;

/// A person's new reaction to a message. None for a removed reaction, and for anonymous admins.
///
/// Telegram does not name the topic, so the place is only the chat until the message is looked up.
pub(super) fn read(update_id: &str, raw: &Value) -> Option<Inbound> {
    let from = User::deserialize(raw.get("user")?).ok()?;
    let chat = raw["chat"]["id"].as_i64()?;
    let key = match raw["chat"]["type"].as_str()? {
        "private" => SessionKey::TelegramDm {
            user: from.id(),
            topic: None,
        },
        "group" | "supergroup" => SessionKey::TelegramGroup {
            chat: ChatId(chat),
            member: None,
        },
        _ => return None,
    };
    let before: Vec<&Value> = raw["old_reaction"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    let new = raw["new_reaction"]
        .as_array()?
        .iter()
        .filter(|reaction| !before.contains(reaction));
    let emoji: Vec<&str> = new.take(MAX_EMOJI).map(emoji).collect();
    let is_from_a_person = !from.is_bot && !emoji.is_empty();
    is_from_a_person.then(|| Inbound {
        update_id: update_id.to_owned(),
        origin: Origin::new(key, PersonId::Telegram(from.id())),
        person_name: from.display_name(),
        text: emoji.join(""),
        addressed: Addressed::ByReply,
        message: MessageId(raw["message_id"].as_i64().unwrap_or_default().to_string()),
        sent_at: raw["date"]
            .as_i64()
            .unwrap_or_default()
            .saturating_mul(1000),
        extras: Extras {
            note: Some(Note::Reaction),
            ..Extras::default()
        },
    })
}

fn emoji(reaction: &Value) -> &str {
    match reaction["type"].as_str() {
        Some("emoji") => reaction["emoji"].as_str().unwrap_or("something"),
        Some("paid") => "⭐",
        _ => "with an emoji of their own",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(change: Value, expected: Option<(&str, &str)>) {
        let mut raw = json!({
            "chat": { "id": -5, "type": "group" }, "message_id": 7, "date": 1,
            "user": { "id": 111, "is_bot": false, "first_name": "Alice" },
            "old_reaction": [], "new_reaction": [{ "type": "emoji", "emoji": "👍" }],
        });
        raw.as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        let read = read("1:2", &raw).map(|inbound| (inbound.origin.key.to_string(), inbound.text));
        assert_eq!(
            read.as_ref()
                .map(|(key, text)| (key.as_str(), text.as_str())),
            expected,
            "{raw}"
        );
    }

    #[test]
    fn only_new_reactions_of_known_people_count() {
        let (up, heart) = (
            json!({ "type": "emoji", "emoji": "👍" }),
            json!({ "type": "emoji", "emoji": "❤" }),
        );
        check(json!({}), Some(("telegram:group:-5", "👍")));
        check(
            json!({ "chat": { "id": 111, "type": "private" } }),
            Some(("telegram:dm:111", "👍")),
        );
        check(json!({ "chat": { "id": -5, "type": "channel" } }), None);
        check(
            json!({ "old_reaction": [up], "new_reaction": [up, heart] }),
            Some(("telegram:group:-5", "❤")),
        );
        check(json!({ "old_reaction": [up], "new_reaction": [] }), None);
        check(
            json!({ "new_reaction": [{ "type": "paid" }] }),
            Some(("telegram:group:-5", "⭐")),
        );
        check(
            json!({ "user": { "id": 1, "is_bot": true, "first_name": "Bot" } }),
            None,
        );
        check(json!({ "user": null, "actor_chat": { "id": -5 } }), None);
        let nulls = json!({ "id": 111, "is_bot": false, "first_name": "Alice", "username": null, "is_premium": null });
        check(json!({ "user": nulls }), Some(("telegram:group:-5", "👍")));
    }
}
