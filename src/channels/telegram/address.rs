//! The address of a place on Telegram, in the form of requests.

use serde::Serialize;

use crate::domain::{Destination, SessionKey, TopicId};

/// A place in the Bot API's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Address {
    pub(super) chat_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message_thread_id: Option<i32>,
}

pub(super) fn address(to: &Destination) -> Option<Address> {
    address_of(to.place())
}

/// `None` for a place on another platform.
pub(super) fn address_of(place: &SessionKey) -> Option<Address> {
    let (chat_id, topic) = match place {
        SessionKey::TelegramDm { user, topic } => (user.0, *topic),
        SessionKey::TelegramTopic { chat, topic } => (chat.0, Some(*topic)),
        SessionKey::TelegramGroup { chat, .. } => (chat.0, None),
        _ => return None,
    };
    Some(Address {
        chat_id,
        message_thread_id: thread_to_send(chat_id, topic),
    })
}

/// Telegram refuses thread id 1, so messages to General have no thread id.
pub(super) fn thread_to_send(chat_id: i64, topic: Option<TopicId>) -> Option<i32> {
    topic
        .filter(|topic| chat_id > 0 || *topic != TopicId::GENERAL)
        .map(|topic| topic.0)
}

/// Private topics come and go with the person's settings, so an answer may go to the chat itself:
/// the person is alone there. In a group, General belongs to others.
pub(super) fn is_private_topic(address: Address) -> bool {
    address.chat_id > 0 && address.message_thread_id.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(place: &str, expected: &str) {
        let destination = Destination::stored(place.parse().unwrap());
        let written = address(&destination).map(|address| serde_json::to_string(&address).unwrap());
        assert_eq!(written.as_deref().unwrap_or("nowhere"), expected, "{place}");
    }

    #[test]
    fn an_answer_goes_to_the_place_its_key_names() {
        check(
            "telegram:topic:-1001:101",
            r#"{"chat_id":-1001,"message_thread_id":101}"#,
        );
        check("telegram:topic:-1001:1", r#"{"chat_id":-1001}"#);
        check("telegram:group:-5:7", r#"{"chat_id":-5}"#);
        check("telegram:group:-5", r#"{"chat_id":-5}"#);
        check("telegram:dm:7", r#"{"chat_id":7}"#);
        check("telegram:dm:7:1", r#"{"chat_id":7,"message_thread_id":1}"#);
        check(
            "telegram:dm:7:33",
            r#"{"chat_id":7,"message_thread_id":33}"#,
        );
        check("local:home", "nowhere");
        check("discord:dm:7", "nowhere");
    }
}
