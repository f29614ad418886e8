//! Threads and forum posts that the bot opens, changes or asks about.
//!
//! <https://discord.com/developers/docs/topics/threads>

use serde_json::{Value, json};

use super::content::{check_not_empty, checked_fields, pings};
use super::json as payload;
use super::messages::Draft;
use super::users::PARLOR_BOT;
use super::wire::{Answer, ApiError, Request, Result, list, text, utf16_len};
use super::world::{
    ANNOUNCEMENT, ANNOUNCEMENT_THREAD, BotMay, Channel, FORUM, PUBLIC_THREAD, ThreadState, World,
};

const MAX_NAME: usize = 100;
const MAX_TAGS: usize = 5;

/// `GET /guilds/{id}/threads/active`
pub(super) fn active(world: &World, request: &Request) -> Result<Answer> {
    let guild_id = request.id(0);
    if !world.guilds.contains_key(&guild_id) {
        return Err(ApiError::new(404, 10004, "Unknown Guild"));
    }
    let here = world
        .channels
        .values()
        .filter(|channel| channel.guild == Some(guild_id) && channel.bot_may != BotMay::NotSee);
    let threads: Vec<Value> = here
        .filter(|it| it.is_active_thread())
        .map(payload::channel)
        .collect();
    Ok(Answer::Json(json!({ "threads": threads, "members": [] })))
}

/// `PATCH /channels/{id}`: the name of anything, the state of a thread.
pub(super) fn modify(world: &mut World, request: &Request) -> Result<Answer> {
    let (channel_id, body) = (request.id(0), &request.body);
    let channel = world.visible(channel_id)?;
    if channel.bot_may == BotMay::OnlyRead {
        return Err(ApiError::new(403, 50013, "Missing Permissions"));
    }
    let wakes = body["archived"] == false;
    if channel
        .thread
        .as_ref()
        .is_some_and(|thread| thread.archived && !wakes)
    {
        return Err(ApiError::new(400, 50083, "Thread is archived"));
    }
    if body.get("name").is_some() {
        channel.name = checked_name(body)?.into();
    }
    let event = if channel.thread.is_some() {
        "THREAD_UPDATE"
    } else {
        "CHANNEL_UPDATE"
    };
    if let Some(thread) = &mut channel.thread {
        let flag = |name: &str, old: bool| body.get(name).and_then(Value::as_bool).unwrap_or(old);
        thread.archived = flag("archived", thread.archived);
        thread.locked = flag("locked", thread.locked);
    }
    world.dispatch_channel(event, channel_id);
    Ok(Answer::Json(payload::channel(&world.channels[&channel_id])))
}

/// `POST /channels/{id}/threads`: a post with its first message in a forum, an empty thread
/// elsewhere.
pub(super) fn create(world: &mut World, request: &Request) -> Result<Answer> {
    let (channel_id, body) = (request.id(0), &request.body);
    let kind = world.visible(channel_id)?.kind;
    if kind != FORUM {
        world.writable(channel_id)?;
        let id = world.clock.next_id();
        let opened = open(world, id, channel_id, body, Vec::new())?;
        world.post_thread_created(id, PARLOR_BOT);
        return Ok(opened);
    }
    if world.channel(channel_id).bot_may == BotMay::OnlyRead {
        return Err(ApiError::new(403, 50013, "Missing Permissions"));
    }
    let tags = checked_tags(world, channel_id, body)?;
    let message = &body["message"];
    if !message.is_object() {
        return Err(ApiError::form(
            "message",
            "BASE_TYPE_REQUIRED",
            "This field is required",
        ));
    }
    checked_name(body)?;
    let id = world.clock.next_id();
    let fields = checked_fields(world, id, message, &request.files)?;
    check_not_empty(&fields)?;
    let pings = pings(world, request, message);
    let Answer::Json(mut thread) = open(world, id, channel_id, body, tags)? else {
        unreachable!("opening a thread answers with it");
    };
    world.post_of_bot_as(
        id,
        id,
        Draft {
            author: PARLOR_BOT,
            fields,
            reply_to: None,
            pings,
        },
    );
    thread["message"] = world.message_answer(id, id);
    Ok(Answer::Json(thread))
}

/// The thread gets the id of its message, which stays in the channel.
pub(super) fn create_from_message(world: &mut World, request: &Request) -> Result<Answer> {
    let (channel_id, message_id) = (request.id(0), request.id(1));
    world.writable(channel_id)?;
    if !world.channel(channel_id).messages.contains_key(&message_id) {
        return Err(ApiError::new(404, 10008, "Unknown Message"));
    }
    if world.channels.contains_key(&message_id) {
        return Err(ApiError::new(
            400,
            160_004,
            "A thread has already been created for this message",
        ));
    }
    let opened = open(world, message_id, channel_id, &request.body, Vec::new())?;
    world.post_thread_starter(message_id, PARLOR_BOT);
    Ok(opened)
}

fn open(world: &mut World, id: u64, parent: u64, body: &Value, tags: Vec<u64>) -> Result<Answer> {
    let name = checked_name(body)?;
    world.add_thread(id, parent, name, PARLOR_BOT.id, tags);
    if let Some(kind) = body["type"]
        .as_u64()
        .and_then(|kind| u8::try_from(kind).ok())
    {
        world.channel(id).kind = kind;
    }
    world.dispatch_channel("THREAD_CREATE", id);
    Ok(Answer::Json(payload::channel(&world.channels[&id])))
}

fn checked_name(body: &Value) -> Result<&str> {
    let name = text(body, "name");
    if (1..=MAX_NAME).contains(&utf16_len(name)) {
        return Ok(name);
    }
    Err(ApiError::form(
        "name",
        "BASE_TYPE_BAD_LENGTH",
        "Must be between 1 and 100 in length.",
    ))
}

fn checked_tags(world: &World, forum: u64, body: &Value) -> Result<Vec<u64>> {
    let wanted = list(body, "applied_tags")
        .iter()
        .map(|tag| tag.as_str().and_then(|id| id.parse().ok()).or(tag.as_u64()));
    let wanted: Option<Vec<u64>> = wanted.collect();
    let known = |tag: &u64| world.channels[&forum].tags.iter().any(|(id, _)| id == tag);
    wanted
        .filter(|tags| tags.len() <= MAX_TAGS && tags.iter().all(known))
        .ok_or_else(|| ApiError::form("applied_tags", "INVALID_TAG", "Invalid tag"))
}

impl World {
    /// Adds a thread without telling anybody.
    pub(super) fn add_thread(
        &mut self,
        id: u64,
        parent: u64,
        name: &str,
        owner: u64,
        tags: Vec<u64>,
    ) {
        let above = &self.channels[&parent];
        let kind = if above.kind == ANNOUNCEMENT {
            ANNOUNCEMENT_THREAD
        } else {
            PUBLIC_THREAD
        };
        let (guild, bot_may) = (above.guild, above.bot_may);
        let thread = Some(ThreadState::new(owner, tags));
        let channel = Channel {
            guild,
            parent: Some(parent),
            thread,
            bot_may,
            ..Channel::new(id, kind, name)
        };
        self.channels.insert(id, channel);
    }
}
