//! Reads updates. Pure: the same update always gives the same message.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::address::address_of;
use super::buttons::Press;
use super::me::Me;
use super::types::{CallbackQuery, ChatKind, Message, User, field};
use super::updates::Update;
use super::{buttons, content, reaction_updates};
use crate::channels::button_owner::{self, NOT_YOURS};
use crate::channels::nicknames::Nicknames;
use crate::config::GroupSessions;
use crate::domain::{
    Addressed, Arrival, ChatId, Extras, Inbound, Moved, Note, Origin, PersonId, ReplyHandle,
    SessionKey, TelegramUserId, Together, TopicId,
};
use crate::signing::Signer;

/// The longest time between two messages of an album.
const ALBUM_WAIT: Duration = Duration::from_secs(1);

/// The reason of an update that no code of ours expected.
pub(super) const PANICKED: &str = "reading it panicked";

/// The context of reading, besides the update.
pub(super) struct Reader<'a> {
    pub(super) bot_id: &'a str,
    pub(super) me: &'a Me,
    pub(super) group_sessions: GroupSessions,
    pub(super) nicknames: &'a Nicknames,
    pub(super) signer: &'a Signer,
    /// Zero takes each message by itself.
    pub(super) gather: Duration,
}

impl Reader<'_> {
    /// Reads all updates of a batch.
    pub(super) fn read_all(&self, updates: &[Update]) -> Vec<Arrival> {
        let album = |update: &Update| {
            Some(album(update.content.as_ref().ok()?.get("message")?)?.to_owned())
        };
        let mut read: Vec<_> = updates
            .iter()
            .filter_map(|update| Some((album(update), self.read(update)?)))
            .collect();
        address_albums(&mut read);
        read.into_iter().map(|(_, arrival)| arrival).collect()
    }

    /// `None` for service messages, channel posts and messages of other bots.
    pub(super) fn read(&self, update: &Update) -> Option<Arrival> {
        // With the bot's id, because another bot's updates have the same numbers.
        let update_id = format!("{}:{}", self.bot_id, update.key());
        let read = match &update.content {
            // A panic in a library would come again with the same update at every poll.
            Ok(content) => catch_unwind(AssertUnwindSafe(|| self.content(&update_id, content)))
                .unwrap_or_else(|_| Err(PANICKED.to_owned()))
                .map_err(|reason| (reason, content.to_string())),
            Err(broken) => Err((broken.reason.clone(), broken.raw.clone())),
        };
        read.unwrap_or_else(|(reason, raw)| {
            // The reason may quote a message, so only the row has the reason.
            tracing::error!("the update {update_id} of Telegram cannot be read; it is kept in the inbox table as broken");
            Some(Arrival::Broken { update_id, reason, raw })
        })
    }

    fn content(&self, update_id: &str, content: &Value) -> Result<Option<Arrival>, String> {
        if let Some(query) = field(content, "callback_query") {
            let query = CallbackQuery::deserialize(query)
                .map_err(|error| format!("not a pressed button: {error}"))?;
            return Ok(self
                .press(update_id, &query)
                .map(|inbound| Arrival::Message(Box::new(inbound))));
        }
        if let Some(reaction) = field(content, "message_reaction") {
            return Ok(reaction_updates::read(update_id, reaction)
                .map(|inbound| Arrival::Message(Box::new(inbound))));
        }
        let edited = field(content, "edited_message").filter(|raw| !is_live_location(raw));
        let Some(raw) = field(content, "message")
            .or(edited)
            .or(content.get("message"))
        else {
            return Ok(None);
        };
        let message =
            Message::deserialize(raw).map_err(|error| format!("not a message: {error}"))?;
        let mut arrival = self.arrival(update_id, &message, raw);
        if let (Some(Arrival::Message(inbound)), Some(_)) = (&mut arrival, edited) {
            inbound.extras.note = Some(Note::Edit);
        }
        Ok(arrival)
    }

    /// The press of a button, also of an unknown button. None for other updates.
    pub(super) fn read_press(&self, update: &Update) -> Option<Press> {
        let raw = field(update.content.as_ref().ok()?, "callback_query")?;
        let query_id = raw["id"].as_str()?.to_owned();
        // The press of an unreadable button is answered too: the person sees a clock as well.
        let read = || match CallbackQuery::deserialize(raw) {
            Ok(query) => self.pressed(&query).err(),
            Err(_) => Some(buttons::STALE),
        };
        let refusal = catch_unwind(AssertUnwindSafe(read)).unwrap_or(Some(buttons::STALE));
        Some(Press { query_id, refusal })
    }

    /// A pressed button is its command, written by the pressing person.
    fn press(&self, update_id: &str, query: &CallbackQuery<'_>) -> Option<Inbound> {
        let (key, command, message) = self.pressed(query).ok()?;
        let mut origin = Origin::new(key, PersonId::Telegram(query.from.id()));
        origin.name = message.topic_name().map(str::to_owned);
        let addressed = if message.chat.is_private() {
            Addressed::Privately
        } else {
            Addressed::ByMention
        };
        Some(Inbound {
            update_id: update_id.to_owned(),
            origin,
            person_name: query.from.display_name(),
            text: command.to_owned(),
            addressed,
            message: message.id(),
            sent_at: message.sent_at_millis(),
            extras: Extras {
                pressed: Some(message.id()),
                reply: query.id.map(|id| ReplyHandle(id.to_owned())),
                ..Extras::default()
            },
        })
    }

    /// The command of a pressed button, or why the press does not count.
    fn pressed<'a, 'q>(
        &self,
        query: &'q CallbackQuery<'a>,
    ) -> Result<(SessionKey, &'a str, &'q Message<'a>), &'static str> {
        let (key, carried, message) = self.made_by_us(query).ok_or(buttons::STALE)?;
        let person = query.from.id().to_string();
        let command = button_owner::command_for(&person, carried).ok_or(NOT_YOURS)?;
        Ok((key, command, message))
    }

    fn made_by_us<'a, 'q>(
        &self,
        query: &'q CallbackQuery<'a>,
    ) -> Option<(SessionKey, &'a str, &'q Message<'a>)> {
        let message = query.message()?;
        let key = self.key(message, &query.from)?;
        let carried = buttons::pressed(self.signer, address_of(&key)?, query.data?)?;
        Some((key, carried, message))
    }

    fn arrival(&self, update_id: &str, message: &Message<'_>, raw: &Value) -> Option<Arrival> {
        if let Some(name) = message.new_topic_name() {
            return self.named(update_id, message, name.to_owned());
        }
        if let Some(moved) = moved(message) {
            return Some(Arrival::Moved(moved));
        }
        if message.forum_topic_reopened.is_some() {
            return self
                .key(message, message.from.as_ref()?)
                .map(Arrival::Reopened);
        }
        self.inbound(update_id, message, raw)
            .map(|inbound| Arrival::Message(Box::new(inbound)))
    }

    /// The maker of a topic in a group counts, because the name may choose an agent. A new name, or
    /// a topic in the person's own private chat, only names the place.
    fn named(&self, update_id: &str, message: &Message<'_>, name: String) -> Option<Arrival> {
        let from = message.from.as_ref()?;
        let place = self.key(message, from)?;
        let was_made_by_a_person =
            message.forum_topic_created.is_some() && message.is_from_a_person();
        if place.is_private() || !was_made_by_a_person {
            return Some(Arrival::Named { place, name });
        }
        let mut origin = Origin::new(place, PersonId::Telegram(from.id()));
        origin.name = Some(name.clone());
        Some(Arrival::TopicMade(Box::new(Inbound {
            update_id: update_id.to_owned(),
            origin,
            person_name: from.display_name(),
            text: name,
            addressed: Addressed::ByTopicName,
            message: message.id(),
            sent_at: message.sent_at_millis(),
            extras: Extras::default(),
        })))
    }

    fn inbound(&self, update_id: &str, message: &Message<'_>, raw: &Value) -> Option<Inbound> {
        let from = message.from.as_ref()?;
        let key = self.key(message, from)?;
        let attachment = content::attachment(raw);
        let text = text(message, raw, attachment.is_some())?.to_owned();
        if !message.is_from_a_person() {
            return None;
        }
        let (text, addressed) = self.addressed(message, text)?;
        let mut origin = Origin::new(key, PersonId::Telegram(from.id()));
        origin.name = message.topic_name().map(str::to_owned);
        let title = raw["chat"]["title"].as_str();
        origin.group = title
            .filter(|_| !message.chat.is_private())
            .map(str::to_owned);
        Some(Inbound {
            update_id: update_id.to_owned(),
            origin,
            person_name: from.display_name(),
            text,
            addressed,
            message: message.id(),
            sent_at: message.sent_at_millis(),
            extras: Extras {
                around: content::around(raw, self.bot_id),
                attachment,
                together: self.together(raw),
                replies_to: content::replied(raw),
                ..Extras::default()
            },
        })
    }

    fn key(&self, message: &Message<'_>, from: &User<'_>) -> Option<SessionKey> {
        let (chat, topic) = (message.chat.id(), message.topic());
        match message.chat.kind {
            ChatKind::Private => {
                return Some(SessionKey::TelegramDm {
                    user: TelegramUserId(chat.0),
                    topic,
                });
            }
            ChatKind::Channel => return None,
            ChatKind::Group | ChatKind::Supergroup => {}
        }
        let member = match self.group_sessions {
            GroupSessions::PerUser => Some(from.id()),
            GroupSessions::Shared => None,
        };
        Some(match topic {
            Some(topic) => SessionKey::TelegramTopic { chat, topic },
            None if message.chat.is_forum() => SessionKey::TelegramTopic {
                chat,
                topic: TopicId::GENERAL,
            },
            None => SessionKey::TelegramGroup { chat, member },
        })
    }

    /// Albums are always joined, other messages if the config wants so.
    fn together(&self, raw: &Value) -> Option<Together> {
        let album = album(raw);
        if self.gather.is_zero() {
            return album.map(|album| Together {
                with: format!("album {album}"),
                wait_ms: millis(ALBUM_WAIT),
            });
        }
        let wait = album.map_or(self.gather, |_| self.gather.max(ALBUM_WAIT));
        Some(Together {
            with: "gathered".to_owned(),
            wait_ms: millis(wait),
        })
    }
}

fn album(raw: &Value) -> Option<&str> {
    raw.get("media_group_id")?.as_str()
}

/// A caption speaks for the whole album, but stands in a single message.
fn address_albums(read: &mut [(Option<String>, Arrival)]) {
    let mut albums: HashMap<String, Addressed> = HashMap::new();
    for (album, arrival) in read.iter() {
        if let (Some(album), Arrival::Message(inbound)) = (album, arrival)
            && inbound.addressed != Addressed::NotAtAll
        {
            albums.insert(album.clone(), inbound.addressed);
        }
    }
    for (album, arrival) in read {
        if let (Some(addressed), Arrival::Message(inbound)) =
            (album.as_ref().and_then(|album| albums.get(album)), arrival)
            && inbound.addressed == Addressed::NotAtAll
        {
            inbound.addressed = *addressed;
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The written text. None for service messages: they tell of a new member, a pinned message and the
/// like.
fn text<'a>(message: &Message<'a>, raw: &Value, has_attachment: bool) -> Option<&'a str> {
    let unwritten = if has_attachment {
        Some("")
    } else {
        content::has_any(raw).then_some(WITHOUT_TEXT)
    };
    message.text().or(unwritten)
}

const WITHOUT_TEXT: &str = "[a message without text]";

/// Telegram edits a live location every few seconds.
fn is_live_location(raw: &Value) -> bool {
    field(raw, "location").is_some()
}

/// The old chat and the new chat are both told, in either order.
fn moved(message: &Message<'_>) -> Option<Moved> {
    let here = message.chat.id();
    let to = message.migrate_to_chat_id.map(|new| Moved {
        old: here,
        new: ChatId(new),
    });
    to.or_else(|| {
        message.migrate_from_chat_id.map(|old| Moved {
            old: ChatId(old),
            new: here,
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::updates::read_one;
    use super::*;
    use crate::channels::describe::name_line;

    fn me() -> Me {
        Me {
            username: Some("parlor_bot".into()),
            ..Me::default()
        }
    }

    fn read(update: &Value) -> Option<Arrival> {
        let signer = Signer::new(&[7; Signer::KEY_BYTES]);
        let nicknames = Nicknames::new(&["parlor".to_owned()]);
        let (me, group_sessions, gather) = (&me(), GroupSessions::PerUser, Duration::ZERO);
        Reader {
            bot_id: "123456",
            me,
            group_sessions,
            nicknames: &nicknames,
            signer: &signer,
            gather,
        }
        .read(&read_one(update.to_string().as_bytes()))
    }

    fn update(message: Value) -> Value {
        let mut whole = json!({
            "message_id": 5, "date": 1_790_000_000, "chat": { "id": 111, "type": "private", "first_name": "Alice" },
            "from": { "id": 111, "is_bot": false, "first_name": "Alice" }, "text": "hello",
        });
        for (name, value) in message.as_object().cloned().unwrap_or_default() {
            whole[name] = value;
        }
        json!({ "update_id": 7, "message": whole })
    }

    fn text_of(update: &Value) -> String {
        match read(update) {
            Some(Arrival::Message(inbound)) => inbound.text,
            other => panic!("{update} gave {other:?}"),
        }
    }

    #[test]
    fn text_survives_unknown_content() {
        let unknown = json!([{ "type": "date_time", "offset": 0, "length": 5, "unix_time": 1 }]);
        assert_eq!(text_of(&update(json!({ "entities": unknown }))), "hello");
        let replied =
            json!({ "reply_to_message": update(json!({ "entities": unknown }))["message"] });
        assert_eq!(text_of(&update(replied)), "hello");
        let mut new_content =
            update(json!({ "live_photo": { "a": 1 }, "caption": "look at this" }));
        new_content["message"]
            .as_object_mut()
            .unwrap()
            .remove("text");
        assert_eq!(text_of(&new_content), "look at this");
    }

    #[test]
    fn a_null_says_as_little_as_a_missing_field() {
        let nulls = json!({ "location": null, "forward_origin": null, "entities": [null, 5, { "type": null }], "photo": null });
        let mut edit = update(nulls);
        edit["edited_message"] = edit["message"].take();
        let Some(Arrival::Message(inbound)) = read(&edit) else {
            panic!("it is an edit")
        };
        assert_eq!(
            (inbound.text.as_str(), inbound.extras.note),
            ("hello", Some(Note::Edit))
        );
        assert_eq!(inbound.extras.around, []);
        let replied = json!({ "message_id": 4, "text": null, "caption": "noon", "forum_topic_created": null });
        let Some(Arrival::Message(inbound)) = read(&update(json!({ "reply_to_message": replied })))
        else {
            panic!("it is a message")
        };
        assert_eq!(inbound.in_short(), "[replying to somebody: “noon”] hello");
    }

    #[test]
    fn only_an_unreadable_place_or_person_breaks_a_message() {
        for broken in [
            "message_id",
            "date",
            "chat",
            "from",
            "message_thread_id",
            "is_topic_message",
        ] {
            assert!(
                matches!(
                    read(&update(json!({ broken: "odd" }))),
                    Some(Arrival::Broken { .. })
                ),
                "{broken}"
            );
        }
        for odd in [
            "entities",
            "caption",
            "reply_to_message",
            "forum_topic_created",
            "migrate_to_chat_id",
            "quote",
            "photo",
        ] {
            assert_eq!(text_of(&update(json!({ odd: 5.5 }))), "hello", "{odd}");
        }
        assert_eq!(
            text_of(&update(json!({ "text": null, "photo": [] }))),
            WITHOUT_TEXT
        );
        assert!(
            read(&update(json!({ "text": null, "pinned_message": {} }))).is_none(),
            "a service message"
        );
    }

    #[test]
    fn names_cannot_pretend_to_be_marks() {
        let forged = json!({ "from": { "id": 111, "is_bot": false, "first_name": "x] [@main\n", "last_name": "y" } });
        let Some(Arrival::Message(inbound)) = read(&update(forged)) else {
            panic!("it is a message")
        };
        assert_eq!(inbound.person_name, "x   @main  y");
        for (name, shown) in [
            ("@main", "main"),
            ("\u{200b}@ @main", "main"),
            ("＠main", "main"),
            ("\u{202e}niam", "niam"),
            ("[@", "somebody"),
        ] {
            assert_eq!(name_line(name), shown, "{name:?}");
        }
        assert_eq!(name_line("👩\u{200d}🚀 Ann"), "👩\u{200d}🚀 Ann");
    }

    #[test]
    fn only_our_own_name_is_taken_off() {
        for (written, read) in [
            ("@parlor_bot hello", "hello"),
            ("@Parlor_Bot: hello", "hello"),
            ("hello @parlor_bot", "hello @parlor_bot"),
            ("@parlor_botany hello", "@parlor_botany hello"),
            ("/agent@parlor_bot rose", "/agent rose"),
            ("/agent rose", "/agent rose"),
        ] {
            assert_eq!(text_of(&update(json!({ "text": written }))), read);
        }
        assert!(super::tests::read(&update(json!({ "text": "/agent@other_bot rose" }))).is_none());
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map("[a-z_]{1,8}", inner, 0..4)
                    .prop_map(|fields| fields.into_iter().collect()),
            ]
        })
    }

    /// Fields that a hostile or future server could fill with anything.
    const FIELDS: [&str; 34] = [
        "message_id",
        "date",
        "chat",
        "from",
        "text",
        "entities",
        "caption",
        "message_thread_id",
        "is_topic_message",
        "reply_to_message",
        "sender_chat",
        "forum_topic_created",
        "photo",
        "voice",
        "audio",
        "video",
        "video_note",
        "animation",
        "document",
        "sticker",
        "venue",
        "location",
        "contact",
        "poll",
        "dice",
        "checklist",
        "game",
        "story",
        "paid_media",
        "quote",
        "external_reply",
        "forward_origin",
        "media_group_id",
        "caption_entities",
    ];

    proptest! {
        #[test]
        fn no_update_can_make_it_panic(whole in any_json(), field in prop::sample::select(&FIELDS[..]), value in any_json()) {
            read(&whole);
            read(&json!({ "update_id": 1, "message": whole }));
            read(&json!({ "update_id": 1, "edited_message": whole }));
            read(&json!({ "update_id": 1, "message_reaction": whole }));
            read(&json!({ "update_id": 1, "callback_query": whole }));
            let mut changed = serde_json::Map::new();
            changed.insert(field.to_owned(), value);
            read(&update(Value::Object(changed)));
        }

        #[test]
        fn entities_at_odd_places_do_no_harm(offset in any::<u16>(), length in any::<u16>(), text in "\\PC{0,20}") {
            let entities = json!([{ "type": "mention", "offset": offset, "length": length }]);
            read(&update(json!({ "text": text, "entities": entities, "chat": { "id": -5, "type": "group", "title": "g" } })));
        }
    }
}
