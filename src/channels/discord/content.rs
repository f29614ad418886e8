//! Describes attachments, polls and replies in words, and makes mentions and emoji readable.
//!
//! Pure, and read from the raw message, so that fields unknown to serenity are not lost.
//! <https://discord.com/developers/docs/resources/message#message-object>

use serde_json::Value;

use super::directory::{id_in, list};
use crate::channels::describe::{
    MAX_NAME_CHARS, MAX_OPTIONS, MAX_QUOTE_CHARS, duration, in_words, join, name_line, one_line,
    quoted, titled,
};
use crate::domain::{Around, Attachment, Author, DiscordId, FileRef, MessageId, PersonId};

/// Files of a message; Discord takes ten.
const MAX_FILES: usize = 10;

/// Files, stickers and polls.
pub(super) fn attachments(message: &Value) -> Vec<Attachment> {
    let files = list(message, "attachments").take(MAX_FILES).map(file);
    let stickers = list(message, "sticker_items")
        .map(|sticker| described(titled("sticker", words(sticker, "name"))));
    let poll = message
        .get("poll")
        .filter(|poll| poll.is_object())
        .map(|poll| described(self::poll(poll)));
    files.chain(stickers).chain(poll).collect()
}

/// The marks of a forwarded message and of a reply.
pub(super) fn around(message: &Value, me: DiscordId) -> Vec<Around> {
    let forwarded = forwarded(message).map(|_| Around::Forward { from: None });
    forwarded.into_iter().chain(reply(message, me)).collect()
}

/// The forwarded message inside a message.
pub(super) fn forwarded(message: &Value) -> Option<&Value> {
    list(message, "message_snapshots")
        .next()
        .map(|snapshot| &snapshot["message"])
        .filter(|inner| inner.is_object())
}

/// The message of this channel that a person replies to.
pub(super) fn replied(message: &Value) -> Option<MessageId> {
    let id = id_in(&message["message_reference"], "message_id")?;
    is_reply(message).then(|| MessageId(id.to_string()))
}

fn is_reply(message: &Value) -> bool {
    message["message_reference"]["type"].as_u64().unwrap_or(0) == 0 && message["type"] == 19
}

fn reply(message: &Value, me: DiscordId) -> Option<Around> {
    let replied = message
        .get("referenced_message")
        .filter(|_| is_reply(message))?;
    Some(match author(replied, me) {
        Some(to) => Around::Reply {
            to,
            quote: shown(replied),
        },
        None => Around::Reply {
            to: Author::Gone,
            quote: None,
        },
    })
}

/// A webhook names itself and its messages as it likes, so its id is nobody's.
fn author(replied: &Value, me: DiscordId) -> Option<Author> {
    let id = id_in(&replied["author"], "id")?;
    if id == me {
        return Some(Author::You);
    }
    let name = display_name(&replied["author"], &Value::Null);
    Some(if replied["webhook_id"].is_null() {
        Author::Person {
            id: PersonId::Discord(id),
            name,
            number: None,
        }
    } else {
        Author::Named(name)
    })
}

/// A message in few words: its text, else its first attachment.
fn shown(message: &Value) -> Option<String> {
    let written = message["content"]
        .as_str()
        .and_then(|text| one_line(&readable(text, message), MAX_QUOTE_CHARS));
    written.or_else(|| {
        attachments(message)
            .into_iter()
            .next()
            .map(|attachment| attachment.description)
    })
}

fn file(raw: &Value) -> Attachment {
    let name = words(raw, "filename");
    let size = raw["size"].as_u64().map(in_words);
    let dimensions = raw["width"]
        .as_u64()
        .zip(raw["height"].as_u64())
        .map(|(width, height)| format!("{width}×{height}"));
    let seconds = raw["duration_secs"]
        .as_f64()
        .and_then(|seconds| std::time::Duration::try_from_secs_f64(seconds).ok());
    let length = seconds.map(|seconds| duration(seconds.as_secs()));
    let kind = raw["content_type"]
        .as_str()
        .and_then(|kind| kind.split('/').next())
        .unwrap_or_default();
    let (what, details) = match kind {
        // Discord's own voice messages have a waveform, uploaded audio has none.
        "audio" if raw.get("waveform").is_some() => ("voice message".to_owned(), [length, None]),
        "image" => (titled("image", name.clone()), [dimensions, None]),
        "video" => (titled("video", name.clone()), [dimensions, length]),
        "audio" => (titled("audio", name.clone()), [length, size]),
        _ => (titled("document", name.clone()), [size, None]),
    };
    let description = join(", ", [Some(what)].into_iter().chain(details)).unwrap_or_default();
    let file = raw["url"].as_str().map(|url| FileRef {
        id: url.to_owned(),
        name: name.unwrap_or_else(|| "file".to_owned()),
        bytes: raw["size"].as_u64(),
    });
    Attachment { description, file }
}

fn poll(poll: &Value) -> String {
    let options = list(poll, "answers")
        .take(MAX_OPTIONS)
        .filter_map(|answer| words(&answer["poll_media"], "text"));
    let options: Vec<String> = options.collect();
    let question = titled("poll", words(&poll["question"], "text").map(quoted));
    if options.is_empty() {
        question
    } else {
        format!("{question}: {}", options.join(" / "))
    }
}

fn described(description: String) -> Attachment {
    Attachment {
        description,
        file: None,
    }
}

/// The displayed name: the nickname on the server, else the global name, else the account's.
pub(super) fn display_name(user: &Value, member: &Value) -> String {
    let names = [
        member.get("nick"),
        user.get("global_name"),
        user.get("username"),
    ];
    let name = names
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .find(|name| !name.trim().is_empty());
    name_line(name.unwrap_or("somebody"))
}

/// Writes `@Bob` for `<@222>` and `:wave:` for `<:wave:5>`, as Discord shows them.
pub(super) fn readable(text: &str, message: &Value) -> String {
    let mut readable = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        readable.push_str(&rest[..start]);
        let mark = &rest[start..];
        match mark
            .find('>')
            .and_then(|end| Some((end, name_of(&mark[1..end], message)?)))
        {
            Some((end, name)) => {
                readable.push_str(&name);
                rest = &mark[end + 1..];
            }
            None => {
                readable.push('<');
                rest = &mark[1..];
            }
        }
    }
    readable + rest
}

fn name_of(mark: &str, message: &Value) -> Option<String> {
    if let Some(user) = mark.strip_prefix("@!").or_else(|| mark.strip_prefix('@')) {
        let mentioned = list(message, "mentions").find(|mentioned| mentioned["id"] == user)?;
        return Some(format!(
            "@{}",
            display_name(mentioned, &mentioned["member"])
        ));
    }
    let emoji = mark.strip_prefix("a:").or_else(|| mark.strip_prefix(':'))?;
    let (name, number) = emoji.split_once(':')?;
    let is_emoji =
        !name.is_empty() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_emoji.then(|| format!(":{name}:"))
}

fn words(content: &Value, field: &str) -> Option<String> {
    one_line(content.get(field)?.as_str()?, MAX_NAME_CHARS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check_attached(message: Value, expected: &[&str]) {
        let described: Vec<String> = attachments(&message)
            .into_iter()
            .map(|attachment| attachment.description)
            .collect();
        assert_eq!(described, expected, "{message}");
    }

    #[test]
    fn every_kind_of_content_has_words() {
        let pdf = json!({ "filename": "report.pdf", "size": 120_400, "content_type": "application/pdf", "url": "u" });
        let cat = json!({ "filename": "cat.png", "size": 9, "content_type": "image/png", "width": 1280, "height": 720 });
        check_attached(
            json!({ "attachments": [pdf, cat] }),
            &["document report.pdf, 120 KB", "image cat.png, 1280×720"],
        );
        let voice = json!({ "filename": "v.ogg", "content_type": "audio/ogg", "duration_secs": 12.4, "waveform": "x" });
        check_attached(json!({ "attachments": [voice] }), &["voice message, 0:12"]);
        check_attached(
            json!({ "attachments": [{ "filename": "a[b]\n../c", "size": 12 }] }),
            &["document a b ../c, 12 B"],
        );
        check_attached(
            json!({ "sticker_items": [{ "name": "Wumpus" }] }),
            &["sticker Wumpus"],
        );
        let answers =
            json!([{ "poll_media": { "text": "pizza" } }, { "poll_media": { "text": "salad" } }]);
        check_attached(
            json!({ "poll": { "question": { "text": "Lunch?" }, "answers": answers } }),
            &["poll “Lunch?”: pizza / salad"],
        );
        check_attached(json!({ "content": "hello" }), &[]);
    }

    #[test]
    fn replies_and_forwards_say_what_they_refer_to() {
        let check = |message: Value, expected: &[&str]| {
            let around: Vec<String> = around(&message, DiscordId(1))
                .iter()
                .map(ToString::to_string)
                .collect();
            assert_eq!(around, expected, "{message}");
        };
        let bob = json!({ "id": "222", "username": "bob", "global_name": "Bob" });
        check(json!({ "type": 0 }), &[]);
        check(
            json!({ "type": 19, "referenced_message": { "author": bob, "content": "at\nnoon [ok]" } }),
            &["replying to Bob: “at noon ok”"],
        );
        check(
            json!({ "type": 19, "referenced_message": { "author": { "id": "1", "username": "parlor" }, "content": "done" } }),
            &["replying to the bot: “done”"],
        );
        check(
            json!({ "type": 19, "referenced_message": null }),
            &["replying to a message that is gone"],
        );
        check(
            json!({ "type": 0, "message_reference": { "type": 1 }, "message_snapshots": [{ "message": { "content": "news" } }] }),
            &["forwarded"],
        );
    }

    #[test]
    fn marks_in_a_text_are_read_as_people_see_them() {
        let message = json!({ "mentions": [{ "id": "222", "username": "bob", "member": { "nick": "Bobby" } }] });
        for (written, read) in [
            ("ask <@222> or <@!222>", "ask @Bobby or @Bobby"),
            ("hi <:wave:55> <a:dance:7>", "hi :wave: :dance:"),
            ("<@999> a < b > c <#5>", "<@999> a < b > c <#5>"),
            ("<", "<"),
        ] {
            assert_eq!(readable(written, &message), read);
        }
    }
}
