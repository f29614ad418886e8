//! What a message of the bot must obey.
//!
//! <https://discord.com/developers/docs/resources/message#create-message>

use serde_json::{Value, json};

use super::messages::Pings;
use super::wire::{ApiError, Request, Result, UploadedFile, id_in, list, text, utf16_len};
use super::world::World;

/// In UTF-16 units: whoever counts characters another way must not get more through here.
const MAX_CONTENT: usize = 2000;
const MAX_FILES: usize = 10;
const MAX_FILE_BYTES: usize = 10 << 20;
const MAX_ROWS: usize = 5;
const MAX_BUTTONS_IN_ROW: usize = 5;
const MAX_CUSTOM_ID: usize = 100;
const MAX_OPTIONS: usize = 25;
const MAX_NONCE: usize = 25;
const MAX_EMBEDS: usize = 10;
const MAX_EMBED_DESCRIPTION: usize = 4096;

/// The fields that a request sets on a message.
pub(super) fn checked_fields(
    world: &mut World,
    channel_id: u64,
    body: &Value,
    files: &[UploadedFile],
) -> Result<Value> {
    check_text(body)?;
    check_components(list(body, "components"))?;
    check_embeds(list(body, "embeds"))?;
    check_files(files)?;
    check_nonce(body)?;
    let mut fields = json!({});
    for name in ["content", "components", "embeds", "flags", "tts", "nonce"] {
        if let Some(value) = body.get(name).filter(|value| !value.is_null()) {
            fields[name] = value.clone();
        }
    }
    let kept = listed_files(world, body, files);
    if !kept.is_empty() {
        let described = list(body, "attachments");
        fields["attachments"] = kept
            .into_iter()
            .map(|file| store_file(world, channel_id, file, described))
            .collect();
    }
    Ok(fields)
}

/// Without `attachments` all files are in the message, with it those that it lists: the others are
/// dropped, which is noted.
///
/// <https://discord.com/developers/docs/reference#uploading-files>
fn listed_files<'a>(
    world: &mut World,
    body: &Value,
    files: &'a [UploadedFile],
) -> Vec<&'a UploadedFile> {
    let listed = body.get("attachments").and_then(Value::as_array);
    let is_listed = |file: &&UploadedFile| {
        listed.is_none_or(|listed| listed.iter().any(|entry| names_file(entry, file)))
    };
    let (kept, dropped): (Vec<_>, Vec<_>) = files.iter().partition(is_listed);
    for file in dropped {
        world.journal.violations.push(format!(
            "attachments does not list files[{}], {}: {body}",
            file.index, file.filename
        ));
    }
    kept
}

fn names_file(entry: &Value, file: &UploadedFile) -> bool {
    id_in(entry, "id").is_some_and(|id| id.to_string() == file.index)
}

/// 50006 if nothing of a message is left.
pub(super) fn check_not_empty(message: &Value) -> Result<()> {
    let has_text = !text(message, "content").trim().is_empty();
    let has_parts = ["embeds", "attachments", "components"]
        .iter()
        .any(|part| !list(message, part).is_empty());
    if has_text || has_parts {
        Ok(())
    } else {
        Err(ApiError::new(400, 50006, "Cannot send an empty message"))
    }
}

fn check_text(body: &Value) -> Result<()> {
    match body.get("content") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(content)) if utf16_len(content) <= MAX_CONTENT => Ok(()),
        Some(Value::String(_)) => Err(ApiError::form(
            "content",
            "BASE_TYPE_MAX_LENGTH",
            "Must be 2000 or fewer in length.",
        )),
        Some(_) => Err(ApiError::form(
            "content",
            "STRING_TYPE_CONVERT",
            "Could not interpret as a string.",
        )),
    }
}

fn check_nonce(body: &Value) -> Result<()> {
    let length = body
        .get("nonce")
        .and_then(Value::as_str)
        .map_or(0, utf16_len);
    if length > MAX_NONCE {
        return Err(ApiError::form(
            "nonce",
            "BASE_TYPE_MAX_LENGTH",
            "Must be 25 or fewer in length.",
        ));
    }
    Ok(())
}

fn check_embeds(embeds: &[Value]) -> Result<()> {
    let too_long = |embed: &Value| utf16_len(text(embed, "description")) > MAX_EMBED_DESCRIPTION;
    if embeds.len() > MAX_EMBEDS || embeds.iter().any(too_long) {
        return Err(ApiError::form(
            "embeds",
            "BASE_TYPE_BAD_LENGTH",
            "Must be between 0 and 10 in length.",
        ));
    }
    Ok(())
}

fn check_files(files: &[UploadedFile]) -> Result<()> {
    if files.len() > MAX_FILES {
        return Err(ApiError::new(
            400,
            30015,
            "Maximum number of attachments in a message reached (10)",
        ));
    }
    if files.iter().any(|file| file.content.len() > MAX_FILE_BYTES) {
        return Err(ApiError::new(413, 40005, "Request entity too large"));
    }
    Ok(())
}

/// Action rows with buttons or one select.
fn check_components(rows: &[Value]) -> Result<()> {
    let wrong = |message: &str| {
        Err(ApiError::form(
            "components",
            "BASE_TYPE_BAD_LENGTH",
            message,
        ))
    };
    if rows.len() > MAX_ROWS {
        return wrong("Must be between 1 and 5 in length.");
    }
    let mut seen = Vec::new();
    for row in rows {
        let parts = list(row, "components");
        if parts.is_empty() || parts.len() > MAX_BUTTONS_IN_ROW {
            return wrong("Must be between 1 and 5 in length.");
        }
        for part in parts {
            let custom_id = text(part, "custom_id");
            let is_link = part["style"] == 5;
            if !is_link && !(1..=MAX_CUSTOM_ID).contains(&utf16_len(custom_id)) {
                return wrong("Must be between 1 and 100 in length.");
            }
            if !is_link && seen.contains(&custom_id) {
                return Err(ApiError::form(
                    "components",
                    "COMPONENT_CUSTOM_ID_DUPLICATED",
                    "Component custom id cannot be duplicated",
                ));
            }
            seen.push(custom_id);
            if part["type"] == 3 && !(1..=MAX_OPTIONS).contains(&list(part, "options").len()) {
                return wrong("Must be between 1 and 25 in length.");
            }
        }
    }
    Ok(())
}

/// Puts a file where the CDN finds it, and describes it.
pub(super) fn store_file(
    world: &mut World,
    channel_id: u64,
    file: &UploadedFile,
    described: &[Value],
) -> Value {
    let id = world.clock.next_id();
    let path = format!("{channel_id}/{id}/{}", file.filename);
    let url = format!("{}{}{path}", world.base_url, super::routes::CDN);
    world.files.insert(path, file.content.clone());
    let description = described.iter().find(|entry| names_file(entry, file));
    json!({
        "id": id.to_string(), "filename": file.filename, "size": file.content.len(), "url": url, "proxy_url": url,
        "content_type": file.content_type, "description": description.and_then(|it| it.get("description")),
    })
}

/// Whom the bot's message may ping. Everything but nobody is noted: text of a model must never ping
/// people.
pub(super) fn pings(world: &mut World, request: &Request, body: &Value) -> Pings {
    let allowed = &body["allowed_mentions"];
    let parses_nothing = allowed
        .get("parse")
        .is_some_and(|parse| *parse == json!([]));
    let names_nobody = list(allowed, "users").is_empty() && list(allowed, "roles").is_empty();
    let is_silent = parses_nothing && names_nobody && allowed["replied_user"] != true;
    if is_silent {
        return Pings::Nobody;
    }
    world.journal.violations.push(format!(
        "{:?} without empty allowed_mentions: {body}",
        request.route
    ));
    Pings::Everybody
}
