//! The bot's answers to commands, buttons and menus.
//!
//! <https://discord.com/developers/docs/interactions/receiving-and-responding>

use std::time::Duration;

use serde_json::{Value, json};

use super::content::{check_not_empty, checked_fields, pings};
use super::json::merge;
use super::messages::{Draft, REPLY};
use super::routes::Route;
use super::users::{APPLICATION_ID, PARLOR_BOT, User};
use super::wire::{Answer, ApiError, Request, Result, list};
use super::world::World;

const FIRST_ANSWER_WITHIN: Duration = Duration::from_secs(3);
const TOKEN_LIFE: Duration = Duration::from_secs(15 * 60);
const MAX_CHOICES: usize = 25;
const EPHEMERAL: u64 = 1 << 6;
const LOADING: u64 = 1 << 7;
const COMMAND_MESSAGE: u64 = 20;

/// What a person did, as the `type` of the interaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Command = 2,
    Component = 3,
    Autocomplete = 4,
    Modal = 5,
}

pub(super) struct Interaction {
    pub(super) id: u64,
    pub(super) kind: Kind,
    pub(super) channel_id: u64,
    pub(super) user: User,
    pub(super) command_name: String,
    /// By the test's clock.
    pub(super) created: Duration,
    /// The body of the first answer.
    pub(super) answered: Option<Value>,
    /// The message below which a button was pressed.
    pub(super) source: Option<u64>,
    /// The message that answers; for an update of a component it is the source.
    pub(super) original: Option<u64>,
    pub(super) followups: Vec<u64>,
}

/// `POST /interactions/{id}/{token}/callback`
pub(super) fn callback(world: &mut World, request: &Request) -> Result<Answer> {
    let token = request.variable(1).to_owned();
    let now = world.clock.advanced();
    let unknown = || ApiError::new(404, 10062, "Unknown interaction");
    let interaction = world
        .interactions
        .get(&token)
        .filter(|it| it.id == request.id(0))
        .ok_or_else(unknown)?;
    if interaction.answered.is_some() {
        return Err(ApiError::new(
            400,
            40060,
            "Interaction has already been acknowledged.",
        ));
    }
    if now - interaction.created > FIRST_ANSWER_WITHIN {
        return Err(unknown());
    }
    let (kind, body) = (interaction.kind, &request.body);
    let answer_type = body["type"].as_u64().unwrap_or(0);
    let data = body.get("data").cloned().unwrap_or_else(|| json!({}));
    match (kind, answer_type) {
        (Kind::Command | Kind::Component | Kind::Modal, 4) => {
            answer_with_message(world, request, &token, &data)?;
        }
        (Kind::Command | Kind::Component | Kind::Modal, 5) => answer_later(world, &token, &data),
        (Kind::Component | Kind::Modal, 6) => note_source_as_original(world, &token),
        (Kind::Component | Kind::Modal, 7) => update_source(world, request, &token, &data)?,
        (Kind::Autocomplete, 8) => check_choices(&data)?,
        (Kind::Command | Kind::Component, 9) => {}
        _ => {
            return Err(ApiError::form(
                "type",
                "INTERACTION_CALLBACK_TYPE_INVALID",
                "Invalid type for this interaction",
            ));
        }
    }
    world
        .interactions
        .get_mut(&token)
        .expect("found above")
        .answered = Some(body.clone());
    let wants_response = request
        .query
        .get("with_response")
        .is_some_and(|wanted| wanted == "true" || wanted == "1");
    Ok(if wants_response {
        Answer::Json(response(world, &token, answer_type))
    } else {
        Answer::NoContent
    })
}

/// <https://discord.com/developers/docs/interactions/receiving-and-responding#interaction-callback-interaction-callback-response-object>
fn response(world: &World, token: &str, answer_type: u64) -> Value {
    let interaction = &world.interactions[token];
    let mut response = json!({ "interaction": { "id": interaction.id.to_string(), "type": interaction.kind as u8 } });
    if let Some(original) = interaction.original {
        let message = world.channels[&interaction.channel_id].messages[&original]
            .json
            .clone();
        let flags = message["flags"].as_u64().unwrap_or(0);
        let extra = json!({
            "response_message_id": original.to_string(), "response_message_loading": flags & LOADING != 0,
            "response_message_ephemeral": flags & EPHEMERAL != 0,
        });
        merge(&mut response["interaction"], extra);
        response["resource"] = json!({ "type": answer_type, "message": message });
    }
    response
}

fn check_choices(data: &Value) -> Result<()> {
    if list(data, "choices").len() > MAX_CHOICES {
        return Err(ApiError::form(
            "data.choices",
            "BASE_TYPE_BAD_LENGTH",
            "Must be between 0 and 25 in length.",
        ));
    }
    Ok(())
}

fn answer_with_message(
    world: &mut World,
    request: &Request,
    token: &str,
    data: &Value,
) -> Result<()> {
    let message_id = post(world, request, token, data)?;
    world
        .interactions
        .get_mut(token)
        .expect("checked by the caller")
        .original = Some(message_id);
    Ok(())
}

/// "Parlor is thinking…", which the first edit or follow-up fills.
fn answer_later(world: &mut World, token: &str, data: &Value) {
    let flags = data["flags"].as_u64().unwrap_or(0) & EPHEMERAL | LOADING;
    let fields = json!({ "flags": flags });
    let message_id = post_fields(world, token, fields, super::messages::Pings::Nobody);
    world
        .interactions
        .get_mut(token)
        .expect("checked by the caller")
        .original = Some(message_id);
}

fn note_source_as_original(world: &mut World, token: &str) {
    let interaction = world
        .interactions
        .get_mut(token)
        .expect("checked by the caller");
    interaction.original = interaction.source;
}

fn update_source(world: &mut World, request: &Request, token: &str, data: &Value) -> Result<()> {
    note_source_as_original(world, token);
    let interaction = &world.interactions[token];
    let (channel_id, source) = (interaction.channel_id, interaction.source);
    let source = source.ok_or_else(|| ApiError::new(404, 10008, "Unknown Message"))?;
    world.edit_of_bot(channel_id, source, request, data)
}

/// Checks and stores an answer as a message.
fn post(world: &mut World, request: &Request, token: &str, data: &Value) -> Result<u64> {
    let channel_id = world.interactions[token].channel_id;
    let fields = checked_fields(world, channel_id, data, &request.files)?;
    check_not_empty(&fields)?;
    let pings = pings(world, request, data);
    Ok(post_fields(world, token, fields, pings))
}

fn post_fields(
    world: &mut World,
    token: &str,
    mut fields: Value,
    pings: super::messages::Pings,
) -> u64 {
    let interaction = &world.interactions[token];
    let channel_id = interaction.channel_id;
    let kind = if interaction.kind == Kind::Command {
        COMMAND_MESSAGE
    } else {
        REPLY
    };
    let (id, user) = (interaction.id.to_string(), interaction.user.json());
    let metadata = json!({ "id": id, "type": interaction.kind as u8, "user": user, "authorizing_integration_owners": {} });
    let extra = json!({ "type": kind, "application_id": APPLICATION_ID.to_string(), "interaction_metadata": metadata });
    merge(&mut fields, extra);
    fields["webhook_id"] = APPLICATION_ID.to_string().into();
    if interaction.kind == Kind::Command {
        fields["interaction"] =
            json!({ "id": id, "type": 2, "name": interaction.command_name, "user": user });
    }
    world.post_of_bot(
        channel_id,
        Draft {
            author: PARLOR_BOT,
            fields,
            reply_to: None,
            pings,
        },
    )
}

/// Everything below `/webhooks/{application}/{token}`.
pub(super) fn webhook(world: &mut World, request: &Request) -> Result<Answer> {
    let token = request.variable(1).to_owned();
    let now = world.clock.advanced();
    let unknown_webhook = || ApiError::new(404, 10015, "Unknown Webhook");
    let interaction = world
        .interactions
        .get(&token)
        .filter(|_| request.id(0) == APPLICATION_ID);
    let interaction = interaction.ok_or_else(unknown_webhook)?;
    if now - interaction.created > TOKEN_LIFE {
        return Err(ApiError::new(401, 50027, "Invalid Webhook Token"));
    }
    if interaction.answered.is_none() || interaction.kind == Kind::Autocomplete {
        return Err(unknown_webhook());
    }
    let channel_id = interaction.channel_id;
    let message_id = match request.route {
        Route::CreateFollowup => return follow_up(world, request, &token),
        Route::GetOriginal | Route::EditOriginal | Route::DeleteOriginal => interaction.original,
        _ => Some(request.id(2))
            .filter(|id| interaction.followups.contains(id) || interaction.original == Some(*id)),
    };
    let is_there = |id: &u64| world.channels[&channel_id].messages.contains_key(id);
    let message_id = message_id
        .filter(is_there)
        .ok_or_else(|| ApiError::new(404, 10008, "Unknown Message"))?;
    match request.route {
        Route::EditOriginal | Route::EditFollowup => edit(world, request, channel_id, message_id)?,
        Route::DeleteOriginal | Route::DeleteFollowup => {
            world.delete(channel_id, message_id);
            return Ok(Answer::NoContent);
        }
        _ => {}
    }
    Ok(Answer::Json(
        world.channels[&channel_id].messages[&message_id]
            .json
            .clone(),
    ))
}

/// The first follow-up after a deferral takes the place of "thinking…".
fn follow_up(world: &mut World, request: &Request, token: &str) -> Result<Answer> {
    let interaction = &world.interactions[token];
    let channel_id = interaction.channel_id;
    let loading = interaction
        .original
        .filter(|id| is_loading(world, channel_id, *id));
    let message_id = match loading {
        Some(original) => {
            edit(world, request, channel_id, original)?;
            original
        }
        None => {
            let message_id = post(world, request, token, &request.body)?;
            world
                .interactions
                .get_mut(token)
                .expect("looked up above")
                .followups
                .push(message_id);
            message_id
        }
    };
    Ok(Answer::Json(
        world.channels[&channel_id].messages[&message_id]
            .json
            .clone(),
    ))
}

fn is_loading(world: &World, channel_id: u64, message_id: u64) -> bool {
    let message = world.channels[&channel_id].messages.get(&message_id);
    message.is_some_and(|message| message.json["flags"].as_u64().unwrap_or(0) & LOADING != 0)
}

/// An edit ends "thinking…"; whether only one person sees the message was settled before.
fn edit(world: &mut World, request: &Request, channel_id: u64, message_id: u64) -> Result<()> {
    let flags = world.channels[&channel_id].messages[&message_id].json["flags"]
        .as_u64()
        .unwrap_or(0);
    let mut body = if request.body.is_object() {
        request.body.clone()
    } else {
        json!({})
    };
    body["flags"] = (flags & !LOADING).into();
    world.edit_of_bot(channel_id, message_id, request, &body)
}
