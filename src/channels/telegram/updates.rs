//! Reads updates singly, from a list or alone. Pure.
//!
//! A broken update is kept in its raw form. Its number is looked for all the same, because only the
//! number confirms an update. <https://core.telegram.org/bots/api#update>

use ring::digest::{SHA256, digest};
use serde::Deserialize;
use serde_json::{Number, Value};

use crate::channels::json_list::{self, Item, skip_space, value_end};

/// An update. The number is missing when not found, or when unfit for confirming.
#[derive(Debug)]
pub(super) struct Update {
    pub(super) number: Option<u64>,
    pub(super) content: Result<Value, Unreadable>,
}

/// An update without JSON or without a number.
#[derive(Debug)]
pub(super) struct Unreadable {
    /// For the operator; never quotes the update.
    pub(super) reason: String,
    pub(super) raw: String,
}

/// The answer to a poll.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) updates: Vec<Update>,
    /// The beginning of an update, where the answer breaks off.
    pub(super) cut_off: Option<Update>,
}

/// The updates in an answer of `getUpdates`; none for any other answer.
pub(super) fn read_answer(body: &[u8]) -> Option<Answer> {
    let list = json_list::cut(result(body)?, begins_update);
    let updates = list
        .items
        .into_iter()
        .map(|Item { raw, read }| update(raw, read))
        .collect();
    Some(Answer {
        updates,
        cut_off: list
            .cut_off
            .map(|raw| update(raw, Err("it is cut off".into()))),
    })
}

/// The update in a call of the webhook.
pub(super) fn read_one(body: &[u8]) -> Update {
    update(
        body,
        serde_json::from_slice(body).map_err(|error| error.to_string()),
    )
}

fn update(raw: &[u8], read: Result<Value, String>) -> Update {
    let number = match &read {
        Ok(value) => value["update_id"].as_u64(),
        Err(_) => find_number(raw),
    };
    let read = read.and_then(|value| {
        if number.is_some() {
            Ok(value)
        } else {
            Err("it has no update_id".into())
        }
    });
    let content = read.map_err(|reason| Unreadable {
        reason,
        raw: String::from_utf8_lossy(raw).into_owned(),
    });
    Update { number, content }
}

impl Update {
    /// Tells an update from every other of this bot. The number alone is not enough: after a quiet
    /// week Telegram goes on with another number, perhaps with a number of two weeks ago.
    pub(super) fn key(&self) -> String {
        let number = self
            .number
            .map_or("-".to_owned(), |number| number.to_string());
        let identity = match &self.content {
            Ok(content) => identity(content),
            Err(broken) => broken.raw.clone(),
        };
        let hash = digest(&SHA256, identity.as_bytes());
        let short: String = hash
            .as_ref()
            .iter()
            .take(KEY_BYTES)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("{number}:{short}")
    }
}

/// Bytes of the hash in a key, beside the number.
const KEY_BYTES: usize = 8;

/// The identity of an update, against an older update with the same number: place, time, person and
/// text. A newer server may add other fields to the same update.
fn identity(content: &Value) -> String {
    let kinds = content
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(kind, _)| *kind != "update_id");
    let told = kinds.map(|(kind, body)| {
        let fields: Vec<&Value> = IDENTIFYING
            .iter()
            .filter_map(|field| body.pointer(field))
            .collect();
        if fields.is_empty() {
            format!("{kind} {body}")
        } else {
            format!("{kind} {}", serde_json::json!(fields))
        }
    });
    told.collect::<Vec<_>>().join("\n")
}

const IDENTIFYING: [&str; 12] = [
    "/id",
    "/chat/id",
    "/message_id",
    "/message/chat/id",
    "/message/message_id",
    "/from/id",
    "/user/id",
    "/date",
    "/edit_date",
    "/text",
    "/caption",
    "/data",
];

/// The list in the Bot API's envelope, from its bracket on.
fn result(body: &[u8]) -> Option<&[u8]> {
    let mut at = skip_space(body, after(body, skip_space(body, 0), b'{')?);
    loop {
        let key_end = value_end(body, at)?;
        let value = skip_space(body, after(body, skip_space(body, key_end), b':')?);
        match &body[at..key_end] {
            b"\"result\"" => return body[value..].starts_with(b"[").then_some(&body[value..]),
            b"\"ok\"" if !body[value..].starts_with(b"true") => return None,
            _ => {}
        }
        at = skip_space(
            body,
            after(body, skip_space(body, value_end(body, value)?), b',')?,
        );
    }
}

fn after(body: &[u8], at: usize, byte: u8) -> Option<usize> {
    (body.get(at) == Some(&byte)).then_some(at + 1)
}

/// Whether an update begins here: its number comes first, or later in readable JSON.
fn begins_update(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Numbered {
        #[serde(rename = "update_id")]
        _number: Number,
    }
    let comes_first = bytes[skip_space(bytes, 1)..].starts_with(KEY);
    comes_first
        || matches!(
            serde_json::Deserializer::from_slice(bytes)
                .into_iter::<Numbered>()
                .next(),
            Some(Ok(_))
        )
}

/// Inside a string the quotes would have backslashes.
const KEY: &[u8] = b"\"update_id\"";

/// The number of an update, however broken the rest is. A negative number does not count: such an
/// offset discards updates.
fn find_number(raw: &[u8]) -> Option<u64> {
    let key = raw.windows(KEY.len()).position(|window| window == KEY)?;
    let at = skip_space(raw, after(raw, skip_space(raw, key + KEY.len()), b':')?);
    let digits = raw[at..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let is_whole = !matches!(raw.get(at + digits), Some(b'.' | b'e' | b'E') | None);
    std::str::from_utf8(&raw[at..at + digits])
        .ok()
        .filter(|_| is_whole)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests;
