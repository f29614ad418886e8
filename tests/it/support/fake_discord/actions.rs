//! The people's side of commands, buttons and menus, and the bot's answers to them.

use std::future::{IntoFuture, Ready, ready};

use serde_json::{Value, json};

use super::FakeDiscord;
use super::interactions::{Interaction, Kind};
use super::journal::{SentMessage, position};
use super::json;
use super::places::Room;
use super::users::{APPLICATION_ID, User};
use super::wire::{list, text};

impl Room {
    /// `room.command(ALICE, "agent").option("name", "scribe").await`; the command must be
    /// registered.
    pub(crate) fn command(&self, user: User, name: &str) -> CommandUse {
        CommandUse {
            room: self.clone(),
            user,
            name: name.into(),
            path: Vec::new(),
            options: Vec::new(),
            is_stale: false,
        }
    }

    /// The person types into an option that offers choices.
    pub(crate) async fn types_into(
        &self,
        user: User,
        command: &str,
        option: &str,
        typed: &str,
    ) -> Answers {
        let use_of = CommandUse {
            options: vec![(option.into(), typed.into())],
            ..self.command(user, command)
        };
        let mut data = use_of.data();
        for given in data["options"].as_array_mut().expect("it has one option") {
            given["focused"] = true.into();
        }
        self.interact(user, Kind::Autocomplete, data, None)
    }

    /// A press on a button below one of the bot's messages.
    pub(crate) async fn presses(&self, user: User, message_id: u64, custom_id: &str) -> Answers {
        self.check_component(message_id, custom_id);
        let data = json!({ "custom_id": custom_id, "component_type": 2, "id": 1 });
        self.interact(user, Kind::Component, data, Some(message_id))
    }

    /// A choice from a menu below one of the bot's messages.
    pub(crate) async fn selects(
        &self,
        user: User,
        message_id: u64,
        custom_id: &str,
        values: &[&str],
    ) -> Answers {
        let menu = self.check_component(message_id, custom_id);
        let offers = |value: &&str| {
            list(&menu, "options")
                .iter()
                .any(|option| text(option, "value") == *value)
        };
        assert!(
            values.iter().all(offers),
            "the menu has no such option: {menu}"
        );
        let data =
            json!({ "custom_id": custom_id, "component_type": 3, "values": values, "id": 1 });
        self.interact(user, Kind::Component, data, Some(message_id))
    }

    /// A form, filled in and sent off: ids of its fields and what was typed.
    pub(crate) async fn submits(
        &self,
        user: User,
        custom_id: &str,
        fields: &[(&str, &str)],
    ) -> Answers {
        let row = |(id, value): &(&str, &str)| json!({ "type": 1, "components": [{ "type": 4, "custom_id": id, "value": value }] });
        let rows: Vec<Value> = fields.iter().map(row).collect();
        self.interact(
            user,
            Kind::Modal,
            json!({ "custom_id": custom_id, "components": rows }),
            None,
        )
    }

    /// The component, which must be there and not be greyed out.
    fn check_component(&self, message_id: u64, custom_id: &str) -> Value {
        let message = self.with_channel(|channel| {
            channel
                .messages
                .get(&message_id)
                .expect("the message is here")
                .json
                .clone()
        });
        let mut parts = list(&message, "components")
            .iter()
            .flat_map(|row| list(row, "components"));
        let part = parts.find(|part| text(part, "custom_id") == custom_id);
        let part = part.unwrap_or_else(|| {
            panic!(
                "message {message_id} has no {custom_id}: {}",
                message["components"]
            )
        });
        assert_ne!(part["disabled"], true, "{custom_id} is greyed out");
        part.clone()
    }

    fn interact(&self, user: User, kind: Kind, data: Value, source: Option<u64>) -> Answers {
        let mut world = self.discord.world();
        world.users.insert(user.id, user);
        let id = world.clock.next_id();
        let token = format!("interaction-token-{id}");
        let command_name = text(&data, "name").to_owned();
        let event = self.interaction_event(&world, user, kind, data, source, (id, &token));
        let interaction = Interaction {
            id,
            kind,
            channel_id: self.id,
            user,
            command_name,
            created: world.clock.advanced(),
            answered: None,
            source,
            original: None,
            followups: Vec::new(),
        };
        world.interactions.insert(token.clone(), interaction);
        let guild = world.channel(self.id).guild;
        world.gateway.dispatch(guild, "INTERACTION_CREATE", event);
        Answers {
            discord: self.discord.clone(),
            token,
            id,
        }
    }

    fn interaction_event(
        &self,
        world: &super::World,
        user: User,
        kind: Kind,
        data: Value,
        source: Option<u64>,
        (id, token): (u64, &str),
    ) -> Value {
        let channel = &world.channels[&self.id];
        let mut event = json!({
            "id": id.to_string(), "application_id": APPLICATION_ID.to_string(), "type": kind as u8, "token": token, "version": 1,
            "channel_id": self.id.to_string(), "channel": json::channel(channel), "locale": "en-US", "entitlements": [],
            "attachment_size_limit": 10_485_760, "app_permissions": json::bot_permissions(), "data": data,
            "authorizing_integration_owners": {}, "context": if channel.guild.is_some() { 0 } else { 1 },
        });
        match channel.guild {
            Some(guild) => {
                event["guild_id"] = guild.to_string().into();
                event["guild_locale"] = "en-US".into();
                event["guild"] =
                    json!({ "id": guild.to_string(), "locale": "en-US", "features": [] });
                event["member"] = json::interaction_member(user, &world.member(guild, user.id));
            }
            None => event["user"] = user.json(),
        }
        if let Some(source) = source {
            event["message"] = channel.messages[&source].json.clone();
        }
        event
    }
}

/// A slash command about to be sent; awaiting it dispatches the interaction.
#[must_use = "nothing happens until this is awaited"]
pub(crate) struct CommandUse {
    room: Room,
    user: User,
    name: String,
    /// Group and subcommand.
    path: Vec<String>,
    options: Vec<(String, Value)>,
    is_stale: bool,
}

impl CommandUse {
    pub(crate) fn subcommand(mut self, name: &str) -> Self {
        self.path.push(name.into());
        self
    }

    pub(crate) fn option(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.options.push((name.into(), value.into()));
        self
    }

    /// The person's app still shows a command that is no longer registered.
    pub(crate) fn even_if_unknown(mut self) -> Self {
        self.is_stale = true;
        self
    }

    fn data(&self) -> Value {
        let world = self.room.discord.world();
        let guild = world.channels[&self.room.id].guild;
        let known = world.commands.find(guild, &self.name).cloned();
        assert!(
            known.is_some() || self.is_stale,
            "the bot has not registered /{}",
            self.name
        );
        let known = known.unwrap_or_else(|| json!({ "id": "1", "options": [] }));
        let given = self.options.iter().map(
            |(name, value)| json!({ "name": name, "type": option_type(value), "value": value }),
        );
        let mut options: Value = given.collect();
        for (depth, name) in self.path.iter().enumerate().rev() {
            let is_group = depth == 0 && self.path.len() > 1;
            options =
                json!([{ "name": name, "type": if is_group { 2 } else { 1 }, "options": options }]);
        }
        self.check_options(&known);
        json!({ "id": known["id"], "name": self.name, "type": 1, "options": options })
    }

    /// Discord's client offers only what is registered, and insists on what is required.
    fn check_options(&self, known: &Value) {
        if self.is_stale || !self.path.is_empty() {
            return;
        }
        let registered = list(known, "options");
        for (name, _) in &self.options {
            assert!(
                registered.iter().any(|option| text(option, "name") == name),
                "/{} has no option {name}",
                self.name
            );
        }
    }
}

fn option_type(value: &Value) -> u8 {
    match value {
        Value::Bool(_) => 5,
        Value::Number(number) if number.is_f64() => 10,
        Value::Number(_) => 4,
        _ => 3,
    }
}

impl IntoFuture for CommandUse {
    type Output = Answers;
    type IntoFuture = Ready<Answers>;

    fn into_future(self) -> Ready<Answers> {
        let data = self.data();
        ready(self.room.interact(self.user, Kind::Command, data, None))
    }
}

/// What the bot answers to an interaction.
#[derive(Clone)]
pub(crate) struct Answers {
    discord: FakeDiscord,
    token: String,
    pub(crate) id: u64,
}

impl Answers {
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// The body of the first answer: `type` and `data`.
    pub(crate) async fn first(&self) -> Value {
        let look = |world: &super::World| world.interactions[&self.token].answered.clone();
        self.discord
            .wait("the first answer to an interaction", look)
            .await
    }

    /// The answering message, once it says something; a deferral alone does not count.
    pub(crate) async fn message(&self) -> SentMessage {
        let look = |world: &super::World| {
            let original = world.interactions[&self.token].original?;
            let mut sent = world.journal.sent().iter();
            let is_filled = |sent: &&SentMessage| {
                sent.message_id == original && sent.json["flags"].as_u64().unwrap_or(0) & 128 == 0
            };
            sent.find(is_filled).cloned()
        };
        self.discord
            .wait("a message that answers an interaction", look)
            .await
    }

    /// The text of [`Answers::message`].
    pub(crate) async fn text(&self) -> String {
        self.message().await.text
    }

    /// The choices offered while somebody typed: name and value.
    pub(crate) async fn choices(&self) -> Vec<(String, Value)> {
        let first = self.first().await;
        assert_eq!(first["type"], 8, "not choices: {first}");
        let choice = |choice: &Value| (text(choice, "name").to_owned(), choice["value"].clone());
        list(&first["data"], "choices").iter().map(choice).collect()
    }

    /// Waits for this many follow-ups and returns the last of those.
    pub(crate) async fn followup(&self, count: usize) -> SentMessage {
        let look = |world: &super::World| {
            let id = *world.interactions[&self.token]
                .followups
                .get(position(count))?;
            world
                .journal
                .sent()
                .iter()
                .find(|sent| sent.message_id == id)
                .cloned()
        };
        self.discord
            .wait(&format!("{count} follow-ups"), look)
            .await
    }
}
