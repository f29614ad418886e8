//! The bot's slash commands.
//!
//! <https://discord.com/developers/docs/interactions/application-commands>

use std::collections::HashMap;

use serde_json::{Value, json};

use super::FakeDiscord;
use super::clock::Clock;
use super::json::merge;
use super::users::APPLICATION_ID;
use super::wire::{Answer, ApiError, Request, Result, id_in, list, text, utf16_len};
use super::world::World;

const MAX_COMMANDS: usize = 100;
const MAX_NAME: usize = 32;
const MAX_DESCRIPTION: usize = 100;
const MAX_OPTIONS: usize = 25;

#[derive(Default)]
pub(super) struct Commands {
    /// By guild; `None` is everywhere.
    registered: HashMap<Option<u64>, Vec<Value>>,
    /// How often a whole set was written.
    overwrites: usize,
}

impl Commands {
    /// A command that is offered in a guild or, without one, in DMs.
    pub(super) fn find(&self, guild: Option<u64>, name: &str) -> Option<&Value> {
        let sets = [guild, None]
            .into_iter()
            .filter_map(|scope| self.registered.get(&scope));
        sets.flatten().find(|command| text(command, "name") == name)
    }
}

pub(super) fn perform(world: &mut World, request: &Request) -> Result<Answer> {
    use super::routes::Route;
    if request.id(0) != APPLICATION_ID {
        return Err(ApiError::new(
            403,
            20012,
            "You are not authorized to perform this action on this application",
        ));
    }
    let guild = (request.route != Route::DeleteCommand && request.variables.len() > 1)
        .then(|| request.id(1));
    if guild.is_some_and(|guild| !world.guilds.contains_key(&guild)) {
        return Err(ApiError::new(403, 50001, "Missing Access"));
    }
    let set = world.commands.registered.entry(guild).or_default();
    match request.route {
        Route::OverwriteCommands => {
            let wanted = request
                .body
                .as_array()
                .ok_or_else(|| wrong("_", "Only iterables may be used in a ListType"))?;
            let made = checked_set(&mut world.clock, wanted, set)?;
            *set = made.clone();
            world.commands.overwrites += 1;
            Ok(Answer::Json(made.into()))
        }
        Route::CreateCommand => {
            check(&request.body)?;
            let made = registered(&mut world.clock, &request.body, set);
            set.retain(|command| command["name"] != made["name"]);
            set.push(made.clone());
            Ok(Answer::Json(made))
        }
        Route::DeleteCommand => {
            let before = set.len();
            set.retain(|command| id_in(command, "id") != Some(request.id(1)));
            if set.len() == before {
                return Err(ApiError::new(404, 10063, "Unknown application command"));
            }
            Ok(Answer::NoContent)
        }
        _ => Ok(Answer::Json(set.clone().into())),
    }
}

fn checked_set(clock: &mut Clock, wanted: &[Value], known: &[Value]) -> Result<Vec<Value>> {
    if wanted.len() > MAX_COMMANDS {
        return Err(ApiError::new(
            400,
            30032,
            "Maximum number of application commands reached (100)",
        ));
    }
    for (position, command) in wanted.iter().enumerate() {
        check(command)?;
        if wanted[..position]
            .iter()
            .any(|earlier| earlier["name"] == command["name"])
        {
            return Err(wrong("name", "Application command names must be unique"));
        }
    }
    Ok(wanted
        .iter()
        .map(|command| registered(clock, command, known))
        .collect())
}

/// A command that keeps its name keeps its id.
fn registered(clock: &mut Clock, wanted: &Value, known: &[Value]) -> Value {
    let old = known
        .iter()
        .find(|command| command["name"] == wanted["name"])
        .and_then(|command| id_in(command, "id"));
    let id = old.unwrap_or_else(|| clock.next_id());
    let mut command = json!({ "type": 1, "options": [], "description": "" });
    merge(&mut command, wanted.clone());
    let given = json!({ "id": id.to_string(), "application_id": APPLICATION_ID.to_string(), "version": clock.next_id().to_string() });
    merge(&mut command, given);
    for field in ["default_member_permissions", "dm_permission"] {
        if command.get(field).is_none() {
            command[field] = Value::Null;
        }
    }
    command
}

fn check(command: &Value) -> Result<()> {
    let is_slash_command = command.get("type").is_none_or(|kind| *kind == 1);
    if is_slash_command {
        check_texts(command)?;
        check_options(list(command, "options"))?;
    }
    Ok(())
}

fn check_options(options: &[Value]) -> Result<()> {
    if options.len() > MAX_OPTIONS {
        return Err(wrong("options", "Must be 25 or fewer in length."));
    }
    let mut optional_seen = false;
    for option in options {
        check_texts(option)?;
        let is_required = option["required"] == true;
        if is_required && optional_seen {
            return Err(wrong(
                "options",
                "Required options must be placed before non-required options",
            ));
        }
        optional_seen |= !is_required;
        if list(option, "choices").len() > MAX_OPTIONS {
            return Err(wrong("choices", "Must be 25 or fewer in length."));
        }
        check_options(list(option, "options"))?;
    }
    Ok(())
}

/// Name and description of a command or of an option.
fn check_texts(of: &Value) -> Result<()> {
    let (name, description) = (text(of, "name"), text(of, "description"));
    let fits =
        |character: char| character == '-' || character == '_' || character.is_alphanumeric();
    if !(1..=MAX_NAME).contains(&name.chars().count())
        || !name.chars().all(fits)
        || name.to_lowercase() != name
    {
        return Err(ApiError::form(
            "name",
            "APPLICATION_COMMAND_INVALID_NAME",
            "Command name is invalid",
        ));
    }
    if !(1..=MAX_DESCRIPTION).contains(&utf16_len(description)) {
        return Err(wrong("description", "Must be between 1 and 100 in length."));
    }
    Ok(())
}

fn wrong(field: &str, message: &str) -> ApiError {
    ApiError::form(field, "BASE_TYPE_BAD_LENGTH", message)
}

impl FakeDiscord {
    /// The commands that are registered everywhere.
    pub(crate) fn commands(&self) -> Vec<Value> {
        self.world()
            .commands
            .registered
            .get(&None)
            .cloned()
            .unwrap_or_default()
    }

    /// The commands of one guild.
    pub(crate) fn guild_commands(&self, guild_id: u64) -> Vec<Value> {
        self.world()
            .commands
            .registered
            .get(&Some(guild_id))
            .cloned()
            .unwrap_or_default()
    }

    pub(crate) fn command_overwrites(&self) -> usize {
        self.world().commands.overwrites
    }

    /// Waits until a set of commands was written so often, and returns the set that is registered
    /// everywhere.
    pub(crate) async fn wait_for_commands(&self, overwrites: usize) -> Vec<Value> {
        let what = format!("{overwrites} overwrites of the commands");
        self.wait(&what, |world| {
            (world.commands.overwrites >= overwrites).then_some(())
        })
        .await;
        self.commands()
    }
}
