//! Describes the rest of a message besides its text: attachments, the replied message, the first
//! author.
//!
//! Pure, and read from the JSON itself, because each kind of content is shown in other words.
//! <https://core.telegram.org/bots/api#message>

use serde_json::Value;

use super::types::field;
use crate::channels::describe::{
    MAX_NAME_CHARS, MAX_OPTIONS, MAX_QUOTE_CHARS, duration, in_words, join, one_line, quoted,
    titled,
};
use crate::domain::{Around, Attachment, Author, FileRef, MessageId, PersonId, TelegramUserId};

/// The attachment of a message. None for plain text and for service messages.
pub(super) fn attachment(raw: &Value) -> Option<Attachment> {
    // An animation is a document as well, and a venue a location: the more exact comes first.
    let (kind, content) = KINDS
        .iter()
        .find_map(|kind| Some((*kind, raw.get(kind).filter(|content| is_filled(content))?)))?;
    Some(match kind {
        "photo" => photo(content),
        "voice" => stored(content, "voice message", "voice.ogg", &[length(content)]),
        "audio" => stored(
            content,
            &titled("audio", audio_title(content)),
            "audio.mp3",
            &[length(content), size(content)],
        ),
        "video" => stored(
            content,
            &titled("video", file_name(content)),
            "video.mp4",
            &[dimensions(content), length(content)],
        ),
        "video_note" => stored(content, "video note", "video-note.mp4", &[length(content)]),
        "animation" => stored(
            content,
            "animation",
            "animation.mp4",
            &[dimensions(content), length(content)],
        ),
        "document" => stored(
            content,
            &titled("document", file_name(content)),
            "document",
            &[size(content)],
        ),
        "sticker" => described(titled("sticker", words(content, "emoji"))),
        "venue" => described(titled(
            "venue",
            join(
                ", ",
                [
                    words(content, "title"),
                    words(content, "address"),
                    spot(&content["location"]),
                ],
            ),
        )),
        "location" => described(titled("location", spot(content))),
        "contact" => described(titled(
            "contact",
            join(", ", [full_name(content), words(content, "phone_number")]),
        )),
        "poll" => described(poll(content)),
        "dice" => described(titled(
            "dice",
            join(
                " ",
                [
                    words(content, "emoji"),
                    content["value"].as_i64().map(|n| n.to_string()),
                ],
            ),
        )),
        "checklist" => described(titled("checklist", words(content, "title").map(quoted))),
        "game" => described(titled("game", words(content, "title").map(quoted))),
        other => described(other.replace('_', " ")),
    })
}

/// Whether a message has content besides text, even empty content.
pub(super) fn has_any(raw: &Value) -> bool {
    KINDS.iter().any(|kind| field(raw, kind).is_some())
}

const KINDS: [&str; 17] = [
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
];

/// The origin of a forwarded message and the replied message.
pub(super) fn around(raw: &Value, bot_id: &str) -> Vec<Around> {
    let forwarded = field(raw, "forward_origin").map(|origin| Around::Forward {
        from: Some(author(origin, bot_id)),
    });
    forwarded.into_iter().chain(reply(raw, bot_id)).collect()
}

/// The message of this chat that a person replies to.
pub(super) fn replied(raw: &Value) -> Option<MessageId> {
    let replied = replied_message(raw)?;
    Some(MessageId(replied["message_id"].as_i64()?.to_string()))
}

/// All messages of a topic reply to its first message, without any person's doing.
fn replied_message(raw: &Value) -> Option<&Value> {
    let replied = raw.get("reply_to_message")?;
    (is_filled(replied) && field(replied, "forum_topic_created").is_none()).then_some(replied)
}

fn reply(raw: &Value, bot_id: &str) -> Option<Around> {
    let quote = raw
        .get("quote")
        .and_then(|quote| one_line(quote["text"].as_str()?, MAX_QUOTE_CHARS));
    if let Some(elsewhere) = raw.get("external_reply").filter(|reply| is_filled(reply)) {
        return Some(Around::Reply {
            to: author(&elsewhere["origin"], bot_id),
            quote: quote.or_else(|| shown(elsewhere)),
        });
    }
    let replied = replied_message(raw)?;
    Some(Around::Reply {
        to: sender(replied, bot_id),
        quote: quote.or_else(|| shown(replied)),
    })
}

/// A message in few words: its text, else its attachment.
fn shown(message: &Value) -> Option<String> {
    let written = field(message, "text")
        .or_else(|| field(message, "caption"))
        .and_then(Value::as_str);
    let written = written.and_then(|text| one_line(text, MAX_QUOTE_CHARS));
    written.or_else(|| attachment(message).map(|attachment| attachment.description))
}

/// A message in the name of a chat carries a person's id that is not its author's.
fn sender(message: &Value, bot_id: &str) -> Author {
    let chat = words(&message["sender_chat"], "title");
    chat.map(Author::Named)
        .or_else(|| person(&message["from"], bot_id))
        .unwrap_or_else(unknown)
}

/// <https://core.telegram.org/bots/api#messageorigin>
fn author(origin: &Value, bot_id: &str) -> Author {
    let named = || {
        words(origin, "sender_user_name")
            .or_else(|| words(&origin["sender_chat"], "title"))
            .or_else(|| words(&origin["chat"], "title"))
    };
    person(&origin["sender_user"], bot_id)
        .or_else(|| named().map(Author::Named))
        .unwrap_or_else(unknown)
}

fn unknown() -> Author {
    Author::Named("somebody".to_owned())
}

/// None for a person without a name.
fn person(user: &Value, bot_id: &str) -> Option<Author> {
    let id = user["id"].as_i64();
    if id.is_some_and(|id| id.to_string() == bot_id) {
        return Some(Author::You);
    }
    let name = full_name(user)?;
    Some(match id.filter(|id| *id > 0) {
        Some(id) => Author::Person {
            id: PersonId::Telegram(TelegramUserId(id)),
            name,
            number: None,
        },
        None => Author::Named(name),
    })
}

fn photo(sizes: &Value) -> Attachment {
    let area = |size: &&Value| {
        size["width"]
            .as_i64()
            .unwrap_or(0)
            .saturating_mul(size["height"].as_i64().unwrap_or(0))
    };
    match sizes
        .as_array()
        .and_then(|sizes| sizes.iter().max_by_key(area))
    {
        Some(largest) => stored(largest, "photo", "photo.jpg", &[dimensions(largest)]),
        None => described("photo".to_owned()),
    }
}

/// An attachment with a file. `usual` is the name of a file without a name.
fn stored(content: &Value, what: &str, usual: &str, details: &[Option<String>]) -> Attachment {
    let details = join(", ", details.iter().cloned());
    let file = content["file_id"].as_str().map(|id| FileRef {
        id: id.to_owned(),
        name: file_name(content).unwrap_or_else(|| usual.to_owned()),
        bytes: content["file_size"].as_u64(),
    });
    Attachment {
        description: join(", ", [Some(what.to_owned()), details]).unwrap_or_default(),
        file,
    }
}

fn described(description: String) -> Attachment {
    Attachment {
        description,
        file: None,
    }
}

fn poll(content: &Value) -> String {
    let options = content["options"]
        .as_array()
        .into_iter()
        .flatten()
        .take(MAX_OPTIONS);
    let options: Vec<String> = options.filter_map(|option| words(option, "text")).collect();
    let question = titled("poll", words(content, "question").map(quoted));
    if options.is_empty() {
        question
    } else {
        format!("{question}: {}", options.join(" / "))
    }
}

fn audio_title(content: &Value) -> Option<String> {
    join(
        " – ",
        [words(content, "performer"), words(content, "title")],
    )
    .or_else(|| file_name(content))
}

fn spot(location: &Value) -> Option<String> {
    let (latitude, longitude) = (
        location["latitude"].as_f64()?,
        location["longitude"].as_f64()?,
    );
    Some(format!("{latitude}, {longitude}"))
}

fn dimensions(content: &Value) -> Option<String> {
    Some(format!(
        "{}×{}",
        content["width"].as_u64()?,
        content["height"].as_u64()?
    ))
}

fn length(content: &Value) -> Option<String> {
    content["duration"].as_u64().map(duration)
}

fn size(content: &Value) -> Option<String> {
    content["file_size"].as_u64().map(in_words)
}

fn file_name(content: &Value) -> Option<String> {
    words(content, "file_name")
}

fn full_name(person: &Value) -> Option<String> {
    join(
        " ",
        [words(person, "first_name"), words(person, "last_name")],
    )
}

fn words(content: &Value, field: &str) -> Option<String> {
    one_line(content.get(field)?.as_str()?, MAX_NAME_CHARS)
}

fn is_filled(value: &Value) -> bool {
    match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check_kind(raw: Value, expected: &str) {
        assert_eq!(
            attachment(&raw)
                .map(|attachment| attachment.description)
                .as_deref(),
            Some(expected),
            "{raw}"
        );
    }

    #[test]
    fn every_kind_of_content_has_words() {
        let sizes = json!([{ "width": 90, "height": 60, "file_id": "s" }, { "width": 1280, "height": 720, "file_id": "l" }]);
        check_kind(json!({ "photo": sizes }), "photo, 1280×720");
        check_kind(
            json!({ "voice": { "duration": 12, "file_id": "v" } }),
            "voice message, 0:12",
        );
        check_kind(
            json!({ "document": { "file_name": "report.pdf", "file_size": 120_400 } }),
            "document report.pdf, 120 KB",
        );
        check_kind(json!({ "document": {"file_id": "d"} }), "document");
        check_kind(
            json!({ "document": { "file_name": "a[b]\n../c", "file_size": 12 } }),
            "document a b ../c, 12 B",
        );
        check_kind(
            json!({ "audio": { "duration": 3725, "performer": "Nina", "title": "Sun", "file_size": 5_250_000 } }),
            "audio Nina – Sun, 1:02:05, 5.2 MB",
        );
        check_kind(
            json!({ "video": { "duration": 61, "width": 640, "height": 480 } }),
            "video, 640×480, 1:01",
        );
        check_kind(
            json!({ "video_note": { "duration": 5, "length": 240 } }),
            "video note, 0:05",
        );
        check_kind(
            json!({ "animation": { "duration": 2, "width": 1, "height": 2 }, "document": { "file_name": "x.mp4" } }),
            "animation, 1×2, 0:02",
        );
        check_kind(
            json!({ "sticker": { "emoji": "😀", "file_id": "s" } }),
            "sticker 😀",
        );
        check_kind(
            json!({ "location": { "latitude": 48.1, "longitude": 11.5 } }),
            "location 48.1, 11.5",
        );
        let venue = json!({ "title": "Café", "address": "Main St 1", "location": { "latitude": 1.5, "longitude": -2.25 } });
        check_kind(
            json!({ "venue": venue, "location": { "latitude": 1.5, "longitude": -2.25 } }),
            "venue Café, Main St 1, 1.5, -2.25",
        );
        check_kind(
            json!({ "contact": { "first_name": "Bob", "phone_number": "+49 1" } }),
            "contact Bob, +49 1",
        );
        let options = json!([{ "text": "pizza" }, { "text": "salad" }]);
        check_kind(
            json!({ "poll": { "question": "Lunch?", "options": options } }),
            "poll “Lunch?”: pizza / salad",
        );
        check_kind(
            json!({ "dice": { "emoji": "🎲", "value": 4 } }),
            "dice 🎲 4",
        );
        check_kind(json!({ "story": { "id": 4 } }), "story");
        check_kind(json!({ "paid_media": { "star_count": 4 } }), "paid media");
        assert_eq!(attachment(&json!({ "text": "hello", "photo": [] })), None);
    }

    #[test]
    fn the_largest_photo_is_the_one_to_fetch() {
        let sizes = json!([{ "width": 1280, "height": 720, "file_id": "large", "file_size": 9 }, { "width": 90, "height": 60, "file_id": "s" }]);
        let file = attachment(&json!({ "photo": sizes })).unwrap().file;
        assert_eq!(
            file,
            Some(FileRef {
                id: "large".into(),
                name: "photo.jpg".into(),
                bytes: Some(9)
            })
        );
    }

    fn check_around(raw: Value, expected: &[&str]) {
        let around: Vec<String> = around(&raw, "123456")
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(around, expected, "{raw}");
    }

    #[test]
    fn replies_and_quotes_say_what_they_refer_to() {
        let bob = json!({ "id": 222, "first_name": "Bob", "last_name": "B." });
        let bot = json!({ "id": 123_456, "first_name": "Parlor" });
        check_around(json!({}), &[]);
        check_around(
            json!({ "reply_to_message": { "from": bob, "text": "at\nnoon [ok]" } }),
            &["replying to Bob B.: “at noon ok”"],
        );
        check_around(
            json!({ "reply_to_message": { "from": bot, "text": "done" } }),
            &["replying to the bot: “done”"],
        );
        check_around(
            json!({ "reply_to_message": { "from": bob, "text": "at noon, or one" }, "quote": { "text": "or one" } }),
            &["replying to Bob B.: “or one”"],
        );
        check_around(
            json!({ "reply_to_message": { "from": bob, "dice": { "value": 4 } } }),
            &["replying to Bob B.: “dice 4”"],
        );
        check_around(
            json!({ "reply_to_message": { "from": bob } }),
            &["replying to Bob B."],
        );
        check_around(
            json!({ "reply_to_message": { "forum_topic_created": { "name": "Roses" }, "from": bob } }),
            &[],
        );
        check_around(
            json!({ "external_reply": { "origin": { "type": "channel", "chat": { "title": "News" } } }, "quote": { "text": "rain" } }),
            &["replying to News: “rain”"],
        );
        let long = around(
            &json!({ "reply_to_message": { "from": bob, "text": "x".repeat(9000) } }),
            "123456",
        );
        assert!(
            long[0].to_string().chars().count() < MAX_QUOTE_CHARS + 40
                && long[0].to_string().ends_with("x…”"),
            "{long:?}"
        );
    }

    #[test]
    fn forwarded_messages_say_from_whom() {
        for (origin, expected) in [
            (
                json!({ "type": "user", "sender_user": { "id": 1, "first_name": "Alice" } }),
                "forwarded from Alice",
            ),
            (
                json!({ "type": "hidden_user", "sender_user_name": "A. Non" }),
                "forwarded from A. Non",
            ),
            (
                json!({ "type": "chat", "sender_chat": { "title": "Team" } }),
                "forwarded from Team",
            ),
            (
                json!({ "type": "channel", "chat": { "title": "News" } }),
                "forwarded from News",
            ),
            (json!({ "type": "new" }), "forwarded from somebody"),
        ] {
            check_around(json!({ "forward_origin": origin }), &[expected]);
        }
    }
}
