//! Reads broken JSON of Discord as far as quotes and brackets hold. Pure.
//!
//! The sequence number of a broken event and the id of a broken message still count, so that the
//! connection and the read position get past them.

use serde_json::Value;

use super::directory::id_in;
use crate::channels::json_list::{self, Item, members, skip_space};
use crate::domain::DiscordId;

/// Unreadable JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Broken {
    /// For the operator; never quotes the JSON.
    pub(super) reason: String,
    pub(super) raw: String,
}

impl Broken {
    fn new(raw: &[u8], reason: String) -> Self {
        Broken {
            reason,
            raw: String::from_utf8_lossy(raw).into_owned(),
        }
    }
}

/// An unreadable gateway payload, with the fields around its data.
///
/// <https://discord.com/developers/docs/events/gateway-events#payload-structure>
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BrokenPayload {
    pub(super) op: Option<u64>,
    pub(super) sequence: Option<u64>,
    /// `MESSAGE_CREATE`
    pub(super) kind: String,
    pub(super) broken: Broken,
}

pub(super) fn read_payload(text: &str) -> Result<Value, BrokenPayload> {
    serde_json::from_str(text).map_err(|error| {
        let text = text.as_bytes();
        BrokenPayload {
            op: field(text, "op").and_then(number),
            sequence: field(text, "s").and_then(number),
            kind: field(text, "t")
                .and_then(string)
                .unwrap_or_default()
                .to_owned(),
            broken: Broken::new(text, error.to_string()),
        }
    })
}

/// An unreadable message of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BrokenMessage {
    pub(super) id: Option<DiscordId>,
    pub(super) broken: Broken,
}

/// Messages of a page; Discord gives no more.
pub(super) const MOST_ON_A_PAGE: usize = 100;

/// The messages of a channel, oldest first.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Page {
    pub(super) messages: Vec<Value>,
    pub(super) broken: Vec<BrokenMessage>,
}

/// Reads a page of messages newer than `after`. None if the page is no list, or breaks off in the
/// middle.
pub(super) fn read_page(body: &[u8], after: DiscordId) -> Option<Page> {
    let body = body.trim_ascii_start();
    let list = json_list::cut(body.starts_with(b"[").then_some(body)?, begins_message);
    if list.cut_off.is_some() || !body.trim_ascii_end().ends_with(b"]") {
        return None;
    }
    let mut page = Page::default();
    for Item { raw, read } in list.items {
        match read {
            Ok(message) => page.messages.push(message),
            Err(reason) => page.broken.push(BrokenMessage {
                id: message_id(raw, after),
                broken: Broken::new(raw, reason),
            }),
        }
    }
    page.messages.sort_by_key(|message| id_in(message, "id"));
    Some(page)
}

impl Page {
    /// Whether no page follows. A page with broken messages cannot tell, because two of them may be
    /// counted as a single item.
    pub(super) fn is_last(&self) -> bool {
        self.broken.is_empty() && self.messages.len() < MOST_ON_A_PAGE
    }

    pub(super) fn newest(&self) -> Option<DiscordId> {
        let broken = self.broken.iter().filter_map(|broken| broken.id);
        self.messages
            .iter()
            .filter_map(|message| id_in(message, "id"))
            .chain(broken)
            .max()
    }
}

/// Tells a message from the other objects in lists, such as users, files and embeds.
fn begins_message(bytes: &[u8]) -> bool {
    let has = |wanted: &str| members(bytes).any(|(key, _)| key == quoted(wanted).as_bytes());
    has("channel_id") && has("author")
}

/// The newest id counts where the brackets do not hold: users, files and replied messages are older
/// than their message.
fn message_id(raw: &[u8], after: DiscordId) -> Option<DiscordId> {
    let own = members(raw)
        .find(|(key, _)| *key == b"\"id\"")
        .and_then(|(_, value)| snowflake(value));
    own.or_else(|| {
        values_of(raw, "id")
            .filter_map(snowflake)
            .filter(|id| *id > after)
            .max()
    })
}

/// A field of a payload: from the beginning as far as the brackets hold, else the last field of
/// this name. Inside people's words the quotes around a name would have backslashes.
fn field<'a>(payload: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let held = members(payload)
        .find(|(key, _)| *key == quoted(name).as_bytes())
        .map(|(_, value)| value);
    held.or_else(|| values_of(payload, name).last())
}

/// The text behind each key of this name.
fn values_of<'a>(text: &'a [u8], name: &str) -> impl Iterator<Item = &'a [u8]> {
    let key = format!("{}:", quoted(name));
    let found = (0..text.len()).filter(move |at| text[*at..].starts_with(key.as_bytes()));
    let length = name.len() + 3;
    found.map(move |at| &text[skip_space(text, at + length)..])
}

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

fn number(value: &[u8]) -> Option<u64> {
    let digits = value
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let is_whole = matches!(value.get(digits), None | Some(b',' | b'}' | b' '));
    std::str::from_utf8(&value[..digits])
        .ok()
        .filter(|_| is_whole)?
        .parse()
        .ok()
}

/// A string without escapes, such as the name of an event.
fn string(value: &[u8]) -> Option<&str> {
    let inner = value.strip_prefix(b"\"")?;
    let end = inner.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&inner[..end]).ok()
}

fn snowflake(value: &[u8]) -> Option<DiscordId> {
    string(value)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data that is broken in every way that text can be.
    fn broken_data() -> Vec<String> {
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        let texts = [
            r"\ud800",
            r"\u12",
            r"eats the quote\",
            "\u{1}",
            r#"\"s\":7,\"op\":9,\"t\":\"X\",\ud800"#,
        ];
        let texts = texts.map(|text| format!(r#"{{"content":"{text}","id":"5"}}"#));
        texts
            .into_iter()
            .chain([deep, "1e400".into(), "{".into(), "]".into()])
            .collect()
    }

    #[test]
    fn the_fields_around_broken_data_are_found_before_and_behind_it() {
        for data in broken_data() {
            let payloads = [
                format!(r#"{{"t":"MESSAGE_CREATE","s":42,"op":0,"d":{data}}}"#),
                format!(r#"{{"d":{data},"op":0,"s":42,"t":"MESSAGE_CREATE"}}"#),
                format!(r#"{{ "op": 0, "d": {data}, "s": 42, "t": "MESSAGE_CREATE" }}"#),
            ];
            for payload in payloads {
                let BrokenPayload {
                    op,
                    sequence,
                    kind,
                    broken,
                } = read_payload(&payload).unwrap_err();
                assert_eq!(
                    (op, sequence, kind.as_str()),
                    (Some(0), Some(42), "MESSAGE_CREATE"),
                    "{payload}"
                );
                assert_eq!(broken.raw, payload);
                assert!(!broken.reason.contains("quote"), "{}", broken.reason);
            }
        }
        let nothing = read_payload("what").unwrap_err();
        assert_eq!(
            (nothing.op, nothing.sequence, nothing.kind.as_str()),
            (None, None, "")
        );
        for odd in [
            r#"{"s":4.2,"#,
            r#"{"s":-4,"#,
            r#"{"s":"4","#,
            r#"{"s":99999999999999999999,"#,
            r#"{"s":"#,
        ] {
            assert_eq!(read_payload(odd).unwrap_err().sequence, None, "{odd}");
        }
        assert_eq!(read_payload(r#"{"op":11}"#).unwrap()["op"], 11);
    }

    /// Ids of messages that were read, with `!` before those of broken ones.
    fn show(page: &str) -> String {
        let Some(Page { messages, broken }) = read_page(page.as_bytes(), DiscordId(100)) else {
            return "no page".into();
        };
        let read = messages
            .iter()
            .map(|message| message["id"].as_str().unwrap().to_owned());
        let broken = broken
            .iter()
            .map(|broken| format!("!{}", broken.id.map_or("?".to_owned(), |id| id.to_string())));
        read.chain(broken).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_page_is_read_message_by_message() {
        let message = |id: u64, content: &str| {
            format!(
                r#"{{"attachments":[{{"id":"90","filename":"a"}},{{"id":"91","filename":"b"}}],"author":{{"id":"7"}},"channel_id":"9","content":{content},"id":"{id}","mentions":[{{"id":"6"}},{{"id":"8"}}]}}"#
            )
        };
        let honest = |id| message(id, "\"hello\"");
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        let eaten = r#""eats the quote\""#;
        for content in [
            r#""\ud800""#,
            r#""\u12""#,
            eaten,
            "\"\u{1}\"",
            &deep,
            "1e400",
        ] {
            let page = format!(
                "[{},{},{}]",
                honest(103),
                message(102, content),
                honest(101)
            );
            assert_eq!(show(&page), "101 103 !102", "{page}");
            assert_eq!(
                show(&format!("[{},{}]", message(102, content), honest(101))),
                "101 !102"
            );
            assert_eq!(show(&format!(" [ {} ] ", message(102, content))), "!102");
            let two = format!(
                "[{},{},{}]",
                message(103, "1e400"),
                message(102, content),
                honest(101)
            );
            assert!(show(&two).starts_with("101 !"), "{}", show(&two));
        }
        assert_eq!(show("[]"), "");
        assert_eq!(
            show(&format!("[{},{}", honest(102), honest(101))),
            "no page"
        );
        assert_eq!(
            show(&format!("[{},{}", honest(102), &honest(101)[..40])),
            "no page"
        );
        assert_eq!(show(r#"{"message":"Unknown Channel"}"#), "no page");
        assert_eq!(show(r#"[{"id":"5",1e400}]"#), "!5");
        assert_eq!(
            show(r#"[{"content":"\","id":"50"}]"#),
            "!?",
            "older than everything that was asked for"
        );
    }

    /// A message that only quotes another in JSON is one message.
    #[test]
    fn a_text_begins_no_message() {
        let quoted = serde_json::json!(r#"},{"author":{},"channel_id":"9","id":"500"}"#);
        let page = format!(
            r#"[{{"author":{{}},"channel_id":"9","content":{quoted},"id":"102","x":1e400}}]"#
        );
        assert_eq!(show(&page), "!102");
    }
}
