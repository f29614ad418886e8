//! Reads raw updates. Pure: the same update always gives the same message.
//!
//! teloxide reads the message, and what it does not know must not cost a person their text: entities of unknown types
//! are taken out first, and where it still finds no text, the raw update's text counts.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use serde_json::Value;
use teloxide::types::{CallbackQuery, Message, MessageKind, User};

use super::buttons::Press;
use super::listen::Me;
use super::updates::Update;
use super::{buttons, content, noticing, send};

use crate::channels::nicknames::Nicknames;
use crate::channels::words::name_line;
use crate::config::GroupSessions;
use crate::domain::{
    Addressed, Arrival, ChatId, Extras, Inbound, MessageId, Moved, Note, Origin, PersonId, SessionKey, TelegramUserId, Together,
    TopicId,
};
use crate::signing::Signer;

/// How long after one message of an album the next may come.
const ALBUM_WAIT: Duration = Duration::from_secs(1);

/// The entity types of teloxide 0.17; a message with any other loses its text there.
const KNOWN_ENTITIES: [&str; 19] = [
    "mention",
    "hashtag",
    "cashtag",
    "bot_command",
    "url",
    "email",
    "phone_number",
    "bold",
    "blockquote",
    "expandable_blockquote",
    "italic",
    "underline",
    "strikethrough",
    "spoiler",
    "code",
    "pre",
    "text_link",
    "text_mention",
    "custom_emoji",
];

/// What reading depends on besides the update.
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
    /// Everything of a batch that concerns us.
    pub(super) fn read_all(&self, updates: &[Update]) -> Vec<Arrival> {
        let album = |update: &Update| Some(album(update.content.as_ref().ok()?.get("message")?)?.to_owned());
        let mut read: Vec<_> = updates.iter().filter_map(|update| Some((album(update), self.read(update)?))).collect();
        address_albums(&mut read);
        read.into_iter().map(|(_, arrival)| arrival).collect()
    }

    /// `None` for what is no message from a person to us: service messages, channel posts, other bots.
    pub(super) fn read(&self, update: &Update) -> Option<Arrival> {
        // With the bot's id, because another bot's updates have the same numbers.
        let update_id = format!("{}:{}", self.bot_id, update.key());
        let read = match &update.content {
            // A panic in a library would come again with the same update at every poll.
            Ok(content) => catch_unwind(AssertUnwindSafe(|| self.content(&update_id, content)))
                .unwrap_or_else(|_| Err("reading it panicked".to_owned()))
                .map_err(|reason| (reason, content.to_string())),
            Err(broken) => Err((broken.reason.clone(), broken.raw.clone())),
        };
        read.unwrap_or_else(|(reason, raw)| {
            // The reason may quote a message, so it stands only in the row.
            tracing::error!("the update {update_id} of Telegram cannot be read; it is kept in the inbox table as broken");
            Some(Arrival::Broken { update_id, reason, raw })
        })
    }

    fn content(&self, update_id: &str, content: &Value) -> Result<Option<Arrival>, String> {
        let told = |kind: &str| content.get(kind).filter(|body| !body.is_null());
        if let Some(query) = told("callback_query") {
            let query = buttons::read(query).map_err(|error| format!("not a pressed button: {error}"))?;
            return Ok(self.press(update_id, &query).map(|inbound| Arrival::Message(Box::new(inbound))));
        }
        if let Some(reaction) = told("message_reaction") {
            return Ok(noticing::read(update_id, reaction).map(|inbound| Arrival::Message(Box::new(inbound))));
        }
        let edited = told("edited_message").filter(|raw| !is_live_location(raw));
        let Some(raw) = told("message").or(edited).or(content.get("message")) else { return Ok(None) };
        let raw = &without_nulls(raw);
        let mut arrival = self.arrival(update_id, &read_message(raw)?, raw);
        if let (Some(Arrival::Message(inbound)), Some(_)) = (&mut arrival, edited) {
            inbound.extras.note = Some(Note::Edit);
        }
        Ok(arrival)
    }

    /// The press of a button, even of one that means nothing to us. None where nothing was pressed.
    pub(super) fn read_press(&self, update: &Update) -> Option<Press> {
        let raw = update.content.as_ref().ok()?.get("callback_query").filter(|raw| !raw.is_null())?;
        let read = || buttons::read(raw).map(|query| Press { is_stale: self.pressed(&query).is_none(), query_id: query.id.0 });
        // Whoever pressed a button that cannot be read sees a clock as well.
        let unreadable = || Some(Press { query_id: raw["id"].as_str()?.to_owned(), is_stale: true });
        catch_unwind(AssertUnwindSafe(read)).ok().and_then(Result::ok).or_else(unreadable)
    }

    /// A pressed button is its command, written by whoever pressed it.
    fn press(&self, update_id: &str, query: &CallbackQuery) -> Option<Inbound> {
        let (key, command, message) = self.pressed(query)?;
        let mut origin = Origin::new(key, PersonId::Telegram(user_id(&query.from)));
        origin.name = topic_name(message);
        let addressed = if message.chat.is_private() { Addressed::Privately } else { Addressed::ByMention };
        Some(Inbound {
            update_id: update_id.to_owned(),
            origin,
            person_name: display_name(&query.from),
            text: command.to_owned(),
            addressed,
            message: MessageId(message.id.0.to_string()),
            sent_at: message.date.timestamp_millis(),
            extras: Extras::default(),
        })
    }

    fn pressed<'q>(&self, query: &'q CallbackQuery) -> Option<(SessionKey, &'q str, &'q Message)> {
        let message = query.regular_message()?;
        let key = self.key(message, &query.from)?;
        let command = buttons::pressed(self.signer, send::address_of(&key)?, query.data.as_deref()?)?;
        Some((key, command, message))
    }

    fn arrival(&self, update_id: &str, message: &Message, raw: &Value) -> Option<Arrival> {
        if let Some(name) = new_topic_name(message) {
            return self.named(update_id, message, name);
        }
        if let Some(moved) = moved(message) {
            return Some(Arrival::Moved(moved));
        }
        if message.forum_topic_reopened().is_some() {
            return self.key(message, message.from.as_ref()?).map(Arrival::Reopened);
        }
        self.inbound(update_id, message, raw).map(|inbound| Arrival::Message(Box::new(inbound)))
    }

    /// Who made a topic in a group counts; who renamed one, or made one in their own private chat, does not.
    fn named(&self, update_id: &str, message: &Message, name: String) -> Option<Arrival> {
        let from = message.from.as_ref()?;
        let place = self.key(message, from)?;
        let was_made_by_a_person = message.forum_topic_created().is_some() && is_a_person(message, from);
        if place.is_private() || !was_made_by_a_person {
            return Some(Arrival::Named { place, name });
        }
        let mut origin = Origin::new(place, PersonId::Telegram(user_id(from)));
        origin.name = Some(name.clone());
        Some(Arrival::TopicMade(Box::new(Inbound {
            update_id: update_id.to_owned(),
            origin,
            person_name: display_name(from),
            text: name,
            addressed: Addressed::ByTopicName,
            message: MessageId(message.id.0.to_string()),
            sent_at: message.date.timestamp_millis(),
            extras: Extras::default(),
        })))
    }

    fn inbound(&self, update_id: &str, message: &Message, raw: &Value) -> Option<Inbound> {
        let from = message.from.as_ref()?;
        let key = self.key(message, from)?;
        let attachment = content::attachment(raw);
        let text = text(message, raw, attachment.is_some())?;
        if !is_a_person(message, from) {
            return None;
        }
        let call = self.call(message, text)?;
        let mut origin = Origin::new(key, PersonId::Telegram(user_id(from)));
        origin.name = topic_name(message);
        Some(Inbound {
            update_id: update_id.to_owned(),
            origin,
            person_name: display_name(from),
            text: call.text,
            addressed: call.addressed,
            message: MessageId(message.id.0.to_string()),
            sent_at: message.date.timestamp_millis(),
            extras: Extras {
                marks: content::marks(raw, self.bot_id),
                attachment,
                together: self.together(raw),
                ..Extras::default()
            },
        })
    }

    /// Only `is_topic_message` makes a topic: replies in plain groups carry a thread id too.
    fn key(&self, message: &Message, from: &User) -> Option<SessionKey> {
        let chat = ChatId(message.chat.id.0);
        let topic = message.thread_id.filter(|_| message.is_topic_message).map(|thread| TopicId(thread.0.0));
        if message.chat.is_private() {
            return Some(SessionKey::TelegramDm { user: TelegramUserId(chat.0), topic });
        }
        if !message.chat.is_group() && !message.chat.is_supergroup() {
            return None;
        }
        let member = match self.group_sessions {
            GroupSessions::PerUser => Some(user_id(from)),
            GroupSessions::Shared => None,
        };
        Some(match topic {
            Some(topic) => SessionKey::TelegramTopic { chat, topic },
            None if is_forum(message) => SessionKey::TelegramTopic { chat, topic: TopicId::GENERAL },
            None => SessionKey::TelegramGroup { chat, member },
        })
    }

    /// Albums are one message always, others when the operator wants it.
    fn together(&self, raw: &Value) -> Option<Together> {
        let album = album(raw);
        if self.gather.is_zero() {
            return album.map(|album| Together { with: format!("album {album}"), wait_ms: millis(ALBUM_WAIT) });
        }
        let wait = album.map_or(self.gather, |_| self.gather.max(ALBUM_WAIT));
        Some(Together { with: "gathered".to_owned(), wait_ms: millis(wait) })
    }
}

/// Anonymous admins and linked channels write through a placeholder: `from` says nothing about who it is.
fn is_a_person(message: &Message, from: &User) -> bool {
    !from.is_bot && message.sender_chat.is_none()
}

fn album(raw: &Value) -> Option<&str> {
    raw.get("media_group_id")?.as_str()
}

/// A caption speaks for the whole album, and stands on one of its messages only.
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
        if let (Some(addressed), Arrival::Message(inbound)) = (album.as_ref().and_then(|album| albums.get(album)), arrival)
            && inbound.addressed == Addressed::NotAtAll
        {
            inbound.addressed = *addressed;
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn read_message(raw: &Value) -> Result<Message, String> {
    serde_json::from_str(&known_part(raw)).map_err(|error| format!("not a message: {error}"))
}

/// Without what teloxide does not know. As text, because its types do not read from a `Value`.
pub(super) fn known_part(raw: &Value) -> String {
    let mut known = without_nulls(raw);
    drop_unknown_entities(&mut known);
    known.to_string()
}

/// A null says as little as a field that is not there.
fn without_nulls(raw: &Value) -> Value {
    match raw {
        Value::Object(fields) => {
            let told = fields.iter().filter(|(_, field)| !field.is_null());
            told.map(|(name, field)| (name.clone(), without_nulls(field))).collect()
        }
        Value::Array(values) => values.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// Also in the messages inside: what is replied to, quoted or pinned.
fn drop_unknown_entities(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if let (true, Value::Array(entities)) = (name.ends_with("entities"), &mut *field) {
                    entities.retain(|entity| entity["type"].as_str().is_some_and(|kind| KNOWN_ENTITIES.contains(&kind)));
                }
                drop_unknown_entities(field);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(drop_unknown_entities),
        _ => {}
    }
}

/// Telegram edits it every few seconds while somebody walks.
fn is_live_location(raw: &Value) -> bool {
    raw.get("location").is_some()
}

/// What the person wrote. `None` for service messages, which nobody wrote.
fn text(message: &Message, raw: &Value, has_attachment: bool) -> Option<String> {
    let read = message.text().or_else(|| message.caption());
    let unread = || raw.get("text").or_else(|| raw.get("caption")).and_then(Value::as_str);
    match (read.or_else(unread), &message.kind) {
        (Some(text), _) => Some(text.to_owned()),
        (None, _) if has_attachment => Some(String::new()),
        (None, MessageKind::Common(_)) => Some(WITHOUT_TEXT.to_owned()),
        (None, _) => None,
    }
}

const WITHOUT_TEXT: &str = "[a message without text]";

fn is_forum(message: &Message) -> bool {
    use teloxide::types::{ChatKind, PublicChatKind};
    matches!(&message.chat.kind, ChatKind::Public(public) if matches!(&public.kind, PublicChatKind::Supergroup(group) if group.is_forum))
}

/// Service messages that make or rename a topic. An edit of its icon alone has no name.
fn new_topic_name(message: &Message) -> Option<String> {
    let created = message.forum_topic_created().map(|created| created.name.clone());
    created.or_else(|| message.forum_topic_edited()?.name.clone())
}

/// Said in the old chat and in the new one, in either order.
fn moved(message: &Message) -> Option<Moved> {
    let here = ChatId(message.chat.id.0);
    let to = message.migrate_to_chat_id().map(|new| Moved { old: here, new: ChatId(new.0) });
    to.or_else(|| message.migrate_from_chat_id().map(|old| Moved { old: ChatId(old.0), new: here }))
}

/// A message that replies to nothing refers to the one that made its topic, which has the name.
fn topic_name(message: &Message) -> Option<String> {
    let created = message.reply_to_message().filter(|_| message.is_topic_message)?.forum_topic_created()?;
    Some(created.name.clone())
}

pub(super) fn user_id(user: &User) -> TelegramUserId {
    TelegramUserId(i64::try_from(user.id.0).unwrap_or(i64::MAX))
}

pub(super) fn display_name(user: &User) -> String {
    name_line(&user.full_name())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::updates::read_one;
    use super::*;

    fn me() -> Me {
        Me { username: Some("parlor_bot".into()), ..Me::default() }
    }

    fn read(update: &Value) -> Option<Arrival> {
        let signer = Signer::new(&[7; Signer::KEY_BYTES]);
        let nicknames = Nicknames::new(&["parlor".to_owned()]);
        let (me, group_sessions, gather) = (&me(), GroupSessions::PerUser, Duration::ZERO);
        Reader { bot_id: "123456", me, group_sessions, nicknames: &nicknames, signer: &signer, gather }
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
    fn text_survives_what_teloxide_does_not_know() {
        let unknown = json!([{ "type": "date_time", "offset": 0, "length": 5, "unix_time": 1 }]);
        assert_eq!(text_of(&update(json!({ "entities": unknown }))), "hello");
        let replied = json!({ "reply_to_message": update(json!({ "entities": unknown }))["message"] });
        assert_eq!(text_of(&update(replied)), "hello");
        let mut new_content = update(json!({ "live_photo": { "a": 1 }, "caption": "look at this" }));
        new_content["message"].as_object_mut().unwrap().remove("text");
        assert_eq!(text_of(&new_content), "look at this");
    }

    #[test]
    fn names_cannot_pretend_to_be_marks() {
        let forged = json!({ "from": { "id": 111, "is_bot": false, "first_name": "x] [@main\n", "last_name": "y" } });
        let Some(Arrival::Message(inbound)) = read(&update(forged)) else { panic!("it is a message") };
        assert_eq!(inbound.person_name, "x   @main  y");
        for (name, shown) in
            [("@main", "main"), ("\u{200b}@ @main", "main"), ("＠main", "main"), ("\u{202e}niam", "niam"), ("[@", "somebody")]
        {
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
                prop::collection::hash_map("[a-z_]{1,8}", inner, 0..4).prop_map(|fields| fields.into_iter().collect()),
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
