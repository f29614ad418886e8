//! Answers the bot's calls, and refuses what the real server refuses, in its words.
//!
//! <https://core.telegram.org/bots/api#available-methods>

use serde_json::{Map, Value, json};

use super::World;
use super::chats::{Chat, Draft, Kind, PARLOR_BOT, Role, Sender, fields, unix_time, utf16_len};
use super::content::{checked_content, checked_markup};
use super::faults::Fault;
use super::journal::SentMessage;
use super::places::membership;
use super::wire::{ApiError, bad_request, int, list, text};

const MAX_COMMANDS: usize = 100;
const MAX_SECRET_CHARS: usize = 256;
const MAX_CAPTION_UTF16: usize = 1024;
const MAX_FILE_BYTES: usize = 20 * 1024 * 1024;

const METHODS: [&str; 20] = [
    "getMe",
    "getChat",
    "getChatMember",
    "getUpdates",
    "getWebhookInfo",
    "setWebhook",
    "deleteWebhook",
    "setMyCommands",
    "getMyCommands",
    "deleteMyCommands",
    "sendMessage",
    "sendDocument",
    "sendPhoto",
    "sendMessageDraft",
    "editMessageText",
    "deleteMessage",
    "sendChatAction",
    "setMessageReaction",
    "answerCallbackQuery",
    "getFile",
];

type Answer = Result<Value, ApiError>;

/// The documented spelling of a method in any case; an unknown one stays as it is.
pub(super) fn canonical_name(method: &str) -> String {
    METHODS
        .iter()
        .find(|known| known.eq_ignore_ascii_case(method))
        .map_or(method, |known| *known)
        .to_owned()
}

pub(super) fn perform(world: &mut World, method: &str, params: &Value) -> Answer {
    match method {
        "getMe" => Ok(Value::Object(world.me.clone())),
        "getChat" => get_chat(world, params),
        "getChatMember" => get_chat_member(world, params),
        "getWebhookInfo" => Ok(webhook_info(world)),
        "setWebhook" => set_webhook(world, params),
        "deleteWebhook" => delete_webhook(world, params),
        "setMyCommands" => set_commands(world, params),
        "getMyCommands" => Ok(world
            .commands
            .get(&scope_of(params))
            .cloned()
            .unwrap_or_else(|| json!([]))),
        "deleteMyCommands" => delete_commands(world, params),
        "sendMessage" => send_message(world, params),
        "sendDocument" => send_file(world, params, "document"),
        "sendPhoto" => send_file(world, params, "photo"),
        "sendMessageDraft" => send_message_draft(world, params),
        "editMessageText" => edit_message_text(world, params),
        "deleteMessage" => delete_message(world, params),
        "sendChatAction" => send_chat_action(world, params),
        "setMessageReaction" => set_message_reaction(world, params),
        "answerCallbackQuery" => answer_callback_query(world, params),
        "getFile" => get_file(world, params),
        _ => Err(ApiError::new(404, "Not Found: method not found")),
    }
}

fn done() -> Answer {
    Ok(Value::Bool(true))
}

pub(super) fn me() -> Map<String, Value> {
    let mut me = fields(PARLOR_BOT.json());
    me.extend(fields(json!({
        "can_join_groups": true,
        "can_read_all_group_messages": true,
        "supports_inline_queries": false,
        "can_connect_to_business": false,
        "has_main_web_app": false,
        "has_topics_enabled": true,
        "allows_users_to_create_topics": true,
    })));
    me
}

/// <https://core.telegram.org/bots/api#chatfullinfo>
fn get_chat(world: &mut World, params: &Value) -> Answer {
    let chat = writable_chat(world, params)?;
    let mut full = fields(chat.json());
    let gifts = [
        "unlimited_gifts",
        "limited_gifts",
        "unique_gifts",
        "premium_subscription",
        "gifts_from_channels",
    ];
    let gifts: Map<String, Value> = gifts
        .into_iter()
        .map(|kind| (kind.to_owned(), false.into()))
        .collect();
    full.extend(fields(
        json!({ "accent_color_id": 0, "max_reaction_count": 11, "accepted_gift_types": gifts }),
    ));
    if !matches!(chat.kind, Kind::Private(_) | Kind::Channel) {
        full.insert(
            "permissions".into(),
            json!({ "can_send_messages": chat.members_may_write, "can_manage_topics": false }),
        );
    }
    Ok(Value::Object(full))
}

fn get_chat_member(world: &mut World, params: &Value) -> Answer {
    let chat = writable_chat(world, params)?;
    if int(params, "user_id") != Some(PARLOR_BOT.id) {
        return bad_request("FakeTelegram knows of no other member than the bot");
    }
    Ok(membership(if chat.bot_is_admin {
        "administrator"
    } else {
        "member"
    }))
}

fn get_file(world: &World, params: &Value) -> Answer {
    let file_id = text(params, "file_id");
    match world.files.get(file_id) {
        None => bad_request("wrong file_id or the file is temporarily unavailable"),
        Some(content) if content.len() > MAX_FILE_BYTES => bad_request("file is too big"),
        Some(content) => Ok(json!({
            "file_id": file_id, "file_unique_id": file_id, "file_size": content.len(), "file_path": format!("files/{file_id}"),
        })),
    }
}

fn webhook_info(world: &World) -> Value {
    let updates = &world.updates;
    let mut info = json!({ "url": updates.webhook, "has_custom_certificate": false, "pending_update_count": updates.pending_count() });
    if let Some((message, at)) = &updates.webhook_error {
        info["last_error_message"] = json!(message);
        info["last_error_date"] = json!(at);
    }
    info
}

fn set_webhook(world: &mut World, params: &Value) -> Answer {
    let (url, secret) = (text(params, "url"), text(params, "secret_token"));
    if !url.is_empty() && !url.starts_with("https://") {
        return bad_request("bad webhook: An HTTPS URL must be provided for webhook");
    }
    if !secret
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
    {
        return bad_request("secret token contains unallowed characters");
    }
    if secret.len() > MAX_SECRET_CHARS {
        return bad_request("secret token is too long");
    }
    (world.updates.webhook, world.updates.webhook_secret) = (url.to_owned(), secret.to_owned());
    world.updates.remember_allowed(params);
    done()
}

fn delete_webhook(world: &mut World, params: &Value) -> Answer {
    if params["drop_pending_updates"] == true {
        world.updates.drop_pending();
    }
    world.updates.webhook.clear();
    done()
}

/// The key of commands set without a scope.
pub(super) const DEFAULT_SCOPE: &str = r#"{"type":"default"}"#;

fn scope_of(params: &Value) -> String {
    let scope = params
        .get("scope")
        .filter(|scope| !scope.is_null())
        .map_or(DEFAULT_SCOPE.to_owned(), Value::to_string);
    scope + text(params, "language_code")
}

fn set_commands(world: &mut World, params: &Value) -> Answer {
    let mut commands = list(params, "commands");
    if commands.len() > MAX_COMMANDS {
        return bad_request("BOT_COMMANDS_TOO_MUCH");
    }
    for command in &mut commands {
        let name = text(command, "command").trim_start_matches('/').to_owned();
        let name_fits = (1..=32).contains(&name.len())
            && name
                .chars()
                .all(|c| matches!(c, 'a'..='z' | '0'..='9' | '_'));
        if !name_fits {
            return bad_request("BOT_COMMAND_INVALID");
        }
        if !(1..=256).contains(&utf16_len(text(command, "description"))) {
            return bad_request("BOT_COMMAND_DESCRIPTION_INVALID");
        }
        command["command"] = name.into();
    }
    world.commands.insert(scope_of(params), commands.into());
    done()
}

fn delete_commands(world: &mut World, params: &Value) -> Answer {
    world.commands.remove(&scope_of(params));
    done()
}

fn send_message(world: &mut World, params: &Value) -> Answer {
    let chat = writable_chat(world, params)?;
    let topic = topic_to_write_in(chat, params)?;
    let reply_to = message_to_reply_to(chat, params)?;
    let mut content = checked_content(params)?;
    content
        .extend(checked_markup(params)?.map(|markup| ("reply_markup".to_owned(), markup.clone())));

    let text = text(params, "text").to_owned();
    let entities = content
        .get("entities")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let message = chat.post(Draft {
        sender: Sender::User(PARLOR_BOT),
        topic,
        reply_to,
        content,
    });
    let message_id = int(&message, "message_id").expect("every message has an id");
    let thread = chat.messages[&message_id].topic;
    let (chat_id, reply_markup) = (chat.id, params["reply_markup"].clone());
    let document = Value::Null;
    let sent = SentMessage {
        chat_id,
        thread,
        text,
        entities,
        reply_to,
        message_id,
        reply_markup,
        document,
        deleted: false,
    };
    world.journal.note_sent(sent);
    Ok(message)
}

fn send_file(world: &mut World, params: &Value, field: &str) -> Answer {
    let chat = writable_chat(world, params)?;
    let topic = topic_to_write_in(chat, params)?;
    let reply_to = message_to_reply_to(chat, params)?;
    // Some clients give the file a field of its own and say here which.
    let attached = params[field]
        .as_str()
        .and_then(|name| name.strip_prefix("attach://"));
    let document = &params[attached.unwrap_or(field)];
    let Some(size) = int(document, "size") else {
        return bad_request(format!("there is no {field} in the request"));
    };
    if size == 0 {
        return bad_request("file must be non-empty");
    }
    let caption = text(params, "caption").to_owned();
    if utf16_len(&caption) > MAX_CAPTION_UTF16 {
        return bad_request("message caption is too long");
    }
    let file = json!({ "file_id": "F1", "file_unique_id": "U1", "file_name": document["file_name"], "file_size": size });
    let content = match field {
        "photo" => {
            let photo = json!({ "file_id": "F1", "file_unique_id": "U1", "width": 90, "height": 90, "file_size": size });
            fields(json!({ "photo": [photo], "caption": caption }))
        }
        _ => fields(json!({ "document": file, "caption": caption })),
    };
    let message = chat.post(Draft {
        sender: Sender::User(PARLOR_BOT),
        topic,
        reply_to,
        content,
    });
    let message_id = int(&message, "message_id").expect("every message has an id");
    let (chat_id, thread, document) = (chat.id, chat.messages[&message_id].topic, document.clone());
    let (entities, reply_markup) = (Vec::new(), Value::Null);
    let sent = SentMessage {
        chat_id,
        thread,
        text: caption,
        entities,
        reply_to,
        message_id,
        reply_markup,
        document,
        deleted: false,
    };
    world.journal.note_sent(sent);
    Ok(message)
}

fn send_message_draft(world: &mut World, params: &Value) -> Answer {
    let chat = writable_chat(world, params)?;
    if !matches!(chat.kind, Kind::Private(_)) {
        return bad_request("TEXTDRAFT_PEER_INVALID");
    }
    topic_to_write_in(chat, params)?;
    if int(params, "draft_id").unwrap_or(0) == 0 {
        return bad_request("RANDOM_ID_INVALID");
    }
    // Unlike a message, a draft may be empty: that shows a placeholder.
    if !text(params, "text").is_empty() {
        checked_content(params)?;
    }
    done()
}

fn edit_message_text(world: &mut World, params: &Value) -> Answer {
    let chat = writable_chat(world, params)?;
    let chat_id = chat.id;
    let message_id = int(params, "message_id").unwrap_or(0);
    let Some(stored) = chat.messages.get_mut(&message_id) else {
        return bad_request("message to edit not found");
    };
    if stored.from != Some(PARLOR_BOT) {
        return bad_request("message can't be edited");
    }

    let content = checked_content(params)?;
    let message = stored.json.as_object_mut().expect("a message is an object");
    let markup = checked_markup(params)?;
    let unchanged = message.get("text") == content.get("text")
        && message.get("entities") == content.get("entities")
        && message.get("reply_markup") == markup;
    if unchanged {
        return bad_request(NOT_MODIFIED);
    }
    for old in ["entities", "reply_markup"] {
        message.remove(old);
    }
    message.extend(content);
    message.extend(markup.map(|markup| ("reply_markup".to_owned(), markup.clone())));
    message.insert("edit_date".into(), unix_time().into());

    let answer = stored.json.clone();
    let sent = world
        .journal
        .sent_mut(chat_id, message_id)
        .expect("the bot's own messages are in the journal");
    sent.text = text(params, "text").to_owned();
    sent.entities = list(&answer, "entities");
    sent.reply_markup = params["reply_markup"].clone();
    Ok(answer)
}

fn delete_message(world: &mut World, params: &Value) -> Answer {
    let chat = writable_chat(world, params)?;
    let (chat_id, message_id) = (chat.id, int(params, "message_id").unwrap_or(0));
    if chat.messages.remove(&message_id).is_none() {
        return bad_request("message to delete not found");
    }
    if let Some(sent) = world.journal.sent_mut(chat_id, message_id) {
        sent.deleted = true;
    }
    done()
}

fn send_chat_action(world: &mut World, params: &Value) -> Answer {
    let chat = writable_chat(world, params)?;
    topic_to_write_in(chat, params)?;
    if !CHAT_ACTIONS.contains(&text(params, "action")) {
        return bad_request("wrong parameter action in request");
    }
    done()
}

fn set_message_reaction(world: &mut World, params: &Value) -> Answer {
    let chat = writable_chat(world, params)?;
    let Some(stored) = chat
        .messages
        .get_mut(&int(params, "message_id").unwrap_or(0))
    else {
        return bad_request("message to react not found");
    };
    let reactions = list(params, "reaction");
    if reactions.len() > 1 {
        return bad_request("REACTIONS_TOO_MANY");
    }
    let emoji = reactions.first().map(|reaction| text(reaction, "emoji"));
    if emoji.is_some_and(|emoji| !REACTIONS.split(' ').any(|allowed| allowed == emoji)) {
        return bad_request("REACTION_INVALID");
    }
    stored.reaction = emoji.map(str::to_owned);
    done()
}

fn answer_callback_query(world: &mut World, params: &Value) -> Answer {
    let query_id = text(params, "callback_query_id");
    if !world.open_callbacks.remove(query_id) {
        return bad_request("query is too old and response timeout expired or query ID is invalid");
    }
    done()
}

fn writable_chat<'a>(world: &'a mut World, params: &Value) -> Result<&'a mut Chat, ApiError> {
    let Some(chat_id) = int(params, "chat_id") else {
        return bad_request("chat_id is empty");
    };
    let Some(chat) = world.chats.get_mut(&chat_id) else {
        return bad_request("chat not found");
    };
    let refusal = match (chat.role, chat.kind) {
        (Role::Welcome, _) => return Ok(chat),
        (Role::MigratedTo(new_id), _) => Fault::MigratedTo(new_id),
        (Role::Removed, Kind::Private(_)) => Fault::Blocked,
        (Role::Removed, Kind::Group) => {
            Fault::Refused(403, "Forbidden: bot was kicked from the group chat")
        }
        (Role::Removed, _) => Fault::Kicked,
    };
    Err(refusal.api_error().expect("these are error answers"))
}

/// Only forums and private chats look at the parameter; General is reached without it, its id 1 is
/// refused.
fn topic_to_write_in(chat: &Chat, params: &Value) -> Result<Option<i64>, ApiError> {
    let asked = int(params, "message_thread_id").filter(|topic| *topic != 0);
    let (Some(topic_id), Kind::Forum | Kind::Private(_)) = (asked, chat.kind) else {
        return Ok(None);
    };
    match chat.topics.get(&topic_id) {
        None => bad_request("message thread not found"),
        Some(topic) if topic.closed => bad_request("TOPIC_CLOSED"),
        Some(_) => Ok(Some(topic_id)),
    }
}

fn message_to_reply_to(chat: &Chat, params: &Value) -> Result<Option<i64>, ApiError> {
    let reply = params.get("reply_parameters").unwrap_or(&Value::Null);
    let asked = int(reply, "message_id").or_else(|| int(params, "reply_to_message_id"));
    match asked {
        Some(message_id) if !chat.messages.contains_key(&message_id) => {
            let optional = reply["allow_sending_without_reply"] == true;
            if optional {
                Ok(None)
            } else {
                bad_request("message to be replied not found")
            }
        }
        asked => Ok(asked),
    }
}

const NOT_MODIFIED: &str = "message is not modified: specified new message content and reply markup are exactly the same as a \
                            current content and reply markup of the message";

const CHAT_ACTIONS: [&str; 11] = [
    "typing",
    "upload_photo",
    "record_video",
    "upload_video",
    "record_voice",
    "upload_voice",
    "upload_document",
    "choose_sticker",
    "find_location",
    "record_video_note",
    "upload_video_note",
];

/// <https://core.telegram.org/bots/api#reactiontypeemoji>
const REACTIONS: &str = "❤ 👍 👎 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 \
                         😈 😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡";
