//! What the text of a message and its entities must obey.
//!
//! <https://core.telegram.org/bots/api#messageentity>

use serde_json::{Map, Value, json};

use super::chats::{fields, utf16_len};
use super::wire::{ApiError, bad_request, int, list, text};

const MAX_TEXT_UTF16: usize = 4096;
/// More are dropped without a word.
const MAX_ENTITIES: usize = 100;
const MAX_CALLBACK_DATA_BYTES: usize = 64;

/// The `text` and `entities` of a message the bot wants to write.
pub(super) fn checked_content(params: &Value) -> Result<Map<String, Value>, ApiError> {
    let written = text(params, "text");
    if written.trim().is_empty() {
        return bad_request("message text is empty");
    }
    if utf16_len(written) > MAX_TEXT_UTF16 {
        return bad_request("message is too long");
    }
    if !text(params, "parse_mode").is_empty() {
        return bad_request(
            "can't parse entities: FakeTelegram wants `entities` and knows no parse_mode",
        );
    }
    let mut entities = list(params, "entities");
    entities.truncate(MAX_ENTITIES);
    entities
        .iter()
        .try_for_each(|entity| check_entity(entity, written))?;

    let mut content = fields(json!({ "text": written }));
    if !entities.is_empty() {
        content.insert("entities".into(), entities.into());
    }
    Ok(content)
}

/// The buttons below a message, if it has some.
pub(super) fn checked_markup(params: &Value) -> Result<Option<&Value>, ApiError> {
    let Some(markup) = params
        .get("reply_markup")
        .filter(|markup| !markup.is_null())
    else {
        return Ok(None);
    };
    let rows = list(markup, "inline_keyboard");
    let mut data = rows
        .iter()
        .filter_map(Value::as_array)
        .flatten()
        .filter_map(|button| button.get("callback_data")?.as_str());
    if !data.all(|data| (1..=MAX_CALLBACK_DATA_BYTES).contains(&data.len())) {
        return bad_request("BUTTON_DATA_INVALID");
    }
    Ok(Some(markup))
}

fn check_entity(entity: &Value, written: &str) -> Result<(), ApiError> {
    if !ENTITY_TYPES.contains(&text(entity, "type")) {
        return bad_request("can't parse MessageEntity: Unsupported type specified");
    }
    let (offset, length) = (
        int(entity, "offset").unwrap_or(-1),
        int(entity, "length").unwrap_or(-1),
    );
    let end = offset + length;
    let text_end = utf16_len(written) as i64;
    if offset < 0 || length <= 0 {
        return bad_request("entity has an invalid offset or length");
    }
    if offset >= text_end {
        return bad_request(format!(
            "entity begins after the end of the text at UTF-16 offset {offset}"
        ));
    }
    if end > text_end {
        let from = format!("entity beginning at UTF-16 offset {offset}");
        return bad_request(format!(
            "{from} ends after the end of the text at UTF-16 offset {end}"
        ));
    }
    if !is_utf16_boundary(written, offset) {
        return bad_request(format!(
            "entity begins in a middle of a UTF-16 symbol at UTF-16 offset {offset}"
        ));
    }
    if !is_utf16_boundary(written, end) {
        return bad_request(format!(
            "entity ends in a middle of a UTF-16 symbol at UTF-16 offset {end}"
        ));
    }
    Ok(())
}

fn is_utf16_boundary(text: &str, position: i64) -> bool {
    let mut reached = 0;
    for character in text.chars() {
        if reached >= position {
            break;
        }
        reached += character.len_utf16() as i64;
    }
    reached == position
}

const ENTITY_TYPES: [&str; 20] = [
    "mention",
    "hashtag",
    "cashtag",
    "bot_command",
    "url",
    "email",
    "phone_number",
    "bold",
    "italic",
    "underline",
    "strikethrough",
    "spoiler",
    "blockquote",
    "expandable_blockquote",
    "code",
    "pre",
    "text_link",
    "text_mention",
    "custom_emoji",
    "date_time",
];
