//! Answers the bot's calls about users, guilds, channels and messages.
//!
//! <https://discord.com/developers/docs/resources/channel>

use std::time::Duration;

use serde_json::{Value, json};

use super::content::{check_not_empty, checked_fields, pings};
use super::messages::{Draft, Reference};
use super::routes::Route;
use super::users::PARLOR_BOT;
use super::wire::{Answer, ApiError, Request, Result, id_in};
use super::world::World;
use super::{commands, interactions, json as payload, threads};

/// How long a nonce is remembered: "the past few minutes".
const NONCE_LIFE: Duration = Duration::from_secs(5 * 60);
const MAX_PAGE: usize = 100;
const DEFAULT_PAGE: usize = 50;

pub(super) fn perform(world: &mut World, request: &Request) -> Result<Answer> {
    use Route as R;
    match request.route {
        R::GetGateway => Ok(Answer::Json(json!({ "url": gateway_url(world) }))),
        R::GetGatewayBot => Ok(Answer::Json(gateway_bot(world))),
        R::GetMe => Ok(Answer::Json(payload::me())),
        R::GetUser => get_user(world, request),
        R::GetApplication => Ok(Answer::Json(payload::application(
            world.gateway.portal_shows_content,
        ))),
        R::GetMyGuilds => Ok(Answer::Json(
            world.guilds.values().map(payload::guild).collect(),
        )),
        R::CreateDm => create_dm(world, request),
        R::GetGuild => guild(world, request.id(0)).map(|guild| Answer::Json(payload::guild(guild))),
        R::GetGuildChannels => get_guild_channels(world, request),
        R::GetGuildMember => get_guild_member(world, request),
        R::GetActiveThreads => threads::active(world, request),
        R::GetChannel => get_channel(world, request.id(0)),
        R::ModifyChannel => threads::modify(world, request),
        R::CreateThread => threads::create(world, request),
        R::CreateThreadFromMessage => threads::create_from_message(world, request),
        R::JoinThread => world.visible(request.id(0)).map(|_| Answer::NoContent),
        R::GetMessages => get_messages(world, request),
        R::GetMessage => get_message(world, request),
        R::CreateMessage => create_message(world, request),
        R::EditMessage => edit_message(world, request),
        R::DeleteMessage => delete_message(world, request),
        R::Typing => world.writable_for_typing(request.id(0)),
        R::AddReaction => react(world, request, "MESSAGE_REACTION_ADD"),
        R::RemoveReaction => react(world, request, "MESSAGE_REACTION_REMOVE"),
        R::GetCommands | R::OverwriteCommands | R::CreateCommand | R::DeleteCommand => {
            commands::perform(world, request)
        }
        R::InteractionCallback => interactions::callback(world, request),
        R::GetOriginal
        | R::EditOriginal
        | R::DeleteOriginal
        | R::CreateFollowup
        | R::EditFollowup
        | R::DeleteFollowup => interactions::webhook(world, request),
        R::Any | R::Connect | R::Download | R::Unknown => {
            Err(ApiError::new(404, 0, "404: Not Found"))
        }
    }
}

/// Where a call is about.
pub(super) fn channel_of(world: &World, request: &Request) -> Option<u64> {
    use Route as R;
    match request.route {
        R::InteractionCallback
        | R::GetOriginal
        | R::EditOriginal
        | R::DeleteOriginal
        | R::CreateFollowup
        | R::EditFollowup
        | R::DeleteFollowup => world
            .interactions
            .get(request.variable(1))
            .map(|interaction| interaction.channel_id),
        R::GetChannel
        | R::ModifyChannel
        | R::CreateThread
        | R::CreateThreadFromMessage
        | R::JoinThread
        | R::GetMessages
        | R::GetMessage
        | R::CreateMessage
        | R::EditMessage
        | R::DeleteMessage
        | R::Typing
        | R::AddReaction
        | R::RemoveReaction => Some(request.id(0)),
        _ => None,
    }
}

fn gateway_url(world: &World) -> String {
    world.base_url.replace("http:", "ws:")
}

fn gateway_bot(world: &World) -> Value {
    let limit =
        json!({ "total": 1000, "remaining": 999, "reset_after": 14_400_000, "max_concurrency": 1 });
    json!({ "url": gateway_url(world), "shards": world.gateway.recommended_shards, "session_start_limit": limit })
}

fn get_user(world: &World, request: &Request) -> Result<Answer> {
    let user = world
        .users
        .get(&request.id(0))
        .ok_or_else(|| ApiError::new(404, 10013, "Unknown User"))?;
    Ok(Answer::Json(user.json()))
}

fn create_dm(world: &mut World, request: &Request) -> Result<Answer> {
    let user = id_in(&request.body, "recipient_id")
        .and_then(|id| world.users.get(&id))
        .copied();
    let user = user.ok_or_else(|| ApiError::new(400, 50033, "Invalid Recipient(s)"))?;
    let channel_id = world.dm_with(user);
    get_channel(world, channel_id)
}

fn guild(world: &World, guild_id: u64) -> Result<&super::world::Guild> {
    world
        .guilds
        .get(&guild_id)
        .ok_or_else(|| ApiError::new(404, 10004, "Unknown Guild"))
}

fn get_guild_channels(world: &World, request: &Request) -> Result<Answer> {
    let guild = guild(world, request.id(0))?.id;
    let channels = world
        .channels
        .values()
        .filter(|channel| channel.guild == Some(guild) && channel.thread.is_none());
    Ok(Answer::Json(channels.map(payload::channel).collect()))
}

fn get_guild_member(world: &World, request: &Request) -> Result<Answer> {
    let guild = guild(world, request.id(0))?.id;
    let user = world
        .users
        .get(&request.id(1))
        .ok_or_else(|| ApiError::new(404, 10013, "Unknown User"))?;
    Ok(Answer::Json(payload::full_member(
        *user,
        &world.member(guild, user.id),
    )))
}

fn get_channel(world: &mut World, channel_id: u64) -> Result<Answer> {
    world.visible(channel_id)?;
    Ok(Answer::Json(payload::channel(&world.channels[&channel_id])))
}

/// Newest first, whichever way the page was asked for.
fn get_messages(world: &mut World, request: &Request) -> Result<Answer> {
    let channel_id = request.id(0);
    let bound = |name: &str| {
        request
            .query
            .get(name)
            .and_then(|id| id.parse::<u64>().ok())
    };
    let limit = request
        .query
        .get("limit")
        .map_or(Ok(DEFAULT_PAGE), |limit| limit.parse());
    let limit = limit.ok().filter(|limit| (1..=MAX_PAGE).contains(limit));
    let limit = limit.ok_or_else(|| {
        ApiError::form(
            "limit",
            "NUMBER_TYPE_MAX",
            "int value should be less than or equal to 100 and at least 1.",
        )
    })?;
    let messages = world
        .visible(channel_id)?
        .messages
        .iter()
        .filter(|(_, message)| !message.is_ephemeral)
        .map(|(id, _)| *id);
    let mut ids: Vec<u64> = match (bound("after"), bound("before")) {
        (Some(after), _) => messages.filter(|id| *id > after).take(limit).collect(),
        (None, Some(before)) => last(messages.filter(|id| *id < before).collect(), limit),
        (None, None) => last(messages.collect(), limit),
    };
    ids.reverse();
    Ok(Answer::Json(
        ids.into_iter()
            .map(|id| world.message_answer(channel_id, id))
            .collect(),
    ))
}

fn last(mut ids: Vec<u64>, count: usize) -> Vec<u64> {
    ids.split_off(ids.len().saturating_sub(count))
}

fn get_message(world: &mut World, request: &Request) -> Result<Answer> {
    let (channel_id, message_id) = (request.id(0), request.id(1));
    check_known(world, channel_id, message_id)?;
    Ok(Answer::Json(world.message_answer(channel_id, message_id)))
}

fn create_message(world: &mut World, request: &Request) -> Result<Answer> {
    let channel_id = request.id(0);
    world.writable(channel_id)?;
    let body = &request.body;
    if let Some((in_channel, earlier)) = enforced_nonce(world, body) {
        return Ok(Answer::Json(world.message_answer(in_channel, earlier)));
    }
    let fields = checked_fields(world, channel_id, body, &request.files)?;
    check_not_empty(&fields)?;
    let reply_to = checked_reference(world, channel_id, body)?;
    let pings = pings(world, request, body);
    let message_id = world.post_of_bot(
        channel_id,
        Draft {
            author: PARLOR_BOT,
            fields,
            reply_to,
            pings,
        },
    );
    if let Some(nonce) = body.get("nonce").filter(|nonce| !nonce.is_null()) {
        let at = world.clock.advanced();
        world
            .nonces
            .push((nonce.to_string(), at, channel_id, message_id));
    }
    Ok(Answer::Json(world.message_answer(channel_id, message_id)))
}

/// The message that was made with the same nonce, if the bot wants it checked.
fn enforced_nonce(world: &World, body: &Value) -> Option<(u64, u64)> {
    if body["enforce_nonce"] != true {
        return None;
    }
    let (nonce, now) = (body.get("nonce")?.to_string(), world.clock.advanced());
    let known = world
        .nonces
        .iter()
        .find(|(earlier, at, ..)| *earlier == nonce && now - *at < NONCE_LIFE)?;
    Some((known.2, known.3))
}

fn checked_reference(world: &World, channel_id: u64, body: &Value) -> Result<Option<Reference>> {
    let Some(reference) = body
        .get("message_reference")
        .filter(|reference| !reference.is_null())
    else {
        return Ok(None);
    };
    let message_id = id_in(reference, "message_id").unwrap_or(0);
    let is_known = world.channels[&channel_id]
        .messages
        .contains_key(&message_id);
    match (is_known, reference["fail_if_not_exists"] == false) {
        (true, _) => Ok(Some(Reference {
            channel_id,
            message_id,
        })),
        (false, true) => Ok(None),
        (false, false) => Err(ApiError::form(
            "message_reference",
            "REPLIES_UNKNOWN_MESSAGE",
            "Unknown message",
        )),
    }
}

fn edit_message(world: &mut World, request: &Request) -> Result<Answer> {
    let (channel_id, message_id) = (request.id(0), request.id(1));
    check_known(world, channel_id, message_id)?;
    world.check_not_archived(channel_id)?;
    if world.channel(channel_id).messages[&message_id].author != PARLOR_BOT.id {
        return Err(ApiError::new(
            403,
            50005,
            "Cannot edit a message authored by another user",
        ));
    }
    world.edit_of_bot(channel_id, message_id, request, &request.body)?;
    Ok(Answer::Json(world.message_answer(channel_id, message_id)))
}

fn delete_message(world: &mut World, request: &Request) -> Result<Answer> {
    let (channel_id, message_id) = (request.id(0), request.id(1));
    check_known(world, channel_id, message_id)?;
    let channel = world.channel(channel_id);
    if channel.messages[&message_id].author != PARLOR_BOT.id {
        let code = if channel.guild.is_none() {
            50003
        } else {
            50013
        };
        return Err(ApiError::new(403, code, "Missing Permissions"));
    }
    world.delete(channel_id, message_id);
    Ok(Answer::NoContent)
}

fn react(world: &mut World, request: &Request, event: &str) -> Result<Answer> {
    let (channel_id, message_id) = (request.id(0), request.id(1));
    check_known(world, channel_id, message_id)?;
    world.check_not_archived(channel_id)?;
    let emoji = percent_decoded(request.variable(2));
    if emoji.is_ascii() && !emoji.contains(':') {
        return Err(ApiError::new(400, 10014, "Unknown Emoji"));
    }
    world.reaction(event, channel_id, message_id, PARLOR_BOT, &emoji);
    Ok(Answer::NoContent)
}

fn check_known(world: &mut World, channel_id: u64, message_id: u64) -> Result<()> {
    match world.visible(channel_id)?.messages.get(&message_id) {
        Some(message) if !message.is_ephemeral => Ok(()),
        _ => Err(ApiError::new(404, 10008, "Unknown Message")),
    }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = (first == b'%')
            .then(|| tail.get(..2))
            .flatten()
            .and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => (bytes.push(byte), rest = &tail[2..]).1,
            None => (bytes.push(first), rest = tail).1,
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
