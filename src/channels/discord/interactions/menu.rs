//! The slash commands: their registration, their suggestions, and the command line of a use.
//!
//! <https://discord.com/developers/docs/interactions/application-commands>

use serde_json::{Value, json};

use crate::channels::discord::directory::list;
use crate::domain::AgentId;

/// Discord's limits.
const MAX_DESCRIPTION_CHARS: usize = 100;
const MAX_SUGGESTION_CHARS: usize = 100;
const MOST_SUGGESTIONS: usize = 25;

/// The type of text options.
const TEXT: u8 = 3;
/// Servers and private chats with the bot, but no chats among other people.
const CONTEXTS: [u8; 2] = [0, 1];
/// Installed on servers, not by single users.
const INSTALLED_ON_SERVERS: [u8; 1] = [0];
/// Only administrators of a server see the command. Ownership is still checked at each use.
const ADMINISTRATORS_ONLY: &str = "0";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Menu {
    pub commands: Vec<SlashCommand>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlashCommand {
    /// Without the slash.
    pub name: String,
    pub description: String,
    /// In the order of the command line.
    pub options: Vec<SlashOption>,
    pub owners_only: bool,
    /// The answer is ephemeral.
    pub is_for_asker_alone: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlashOption {
    pub name: String,
    pub description: String,
    pub is_required: bool,
    pub offered: Offered,
}

/// Choices for an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Offered {
    Nothing,
    /// Discord takes no other value.
    Choices(Vec<Suggestion>),
    /// Shown while the person types; other values are fine too.
    Suggestions(Vec<Suggestion>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Suggestion {
    pub label: String,
    /// The word in the command line.
    pub value: String,
    /// Set for an agent, which is offered only to people who may fetch it.
    pub agent: Option<AgentId>,
}

impl Menu {
    /// The command line for a use of a command.
    pub(super) fn line(&self, data: &Value) -> String {
        let name = data["name"].as_str().unwrap_or_default();
        let given: Vec<(&str, String)> = list(data, "options").filter_map(given).collect();
        let known = self
            .find(data)
            .map(|command| command.options.as_slice())
            .unwrap_or_default();
        let in_order = known
            .iter()
            .filter_map(|option| given.iter().find(|(name, _)| *name == option.name));
        // An older version of Parlor may have registered other options.
        let unknown = given
            .iter()
            .filter(|(name, _)| known.iter().all(|option| option.name != *name));
        let words = in_order.chain(unknown).map(|(_, value)| value.trim());
        std::iter::once(format!("/{name}").as_str())
            .chain(words)
            .collect::<Vec<_>>()
            .join(" ")
            .trim_end()
            .to_owned()
    }

    /// The suggestions for the text typed so far, for any person.
    pub(super) fn suggestions(&self, data: &Value) -> Vec<Suggestion> {
        let Some(focused) = list(data, "options").find(|option| option["focused"] == true) else {
            return Vec::new();
        };
        let option = self.find(data).and_then(|command| {
            command
                .options
                .iter()
                .find(|option| focused["name"] == *option.name)
        });
        let Some(Offered::Suggestions(offered)) = option.map(|option| &option.offered) else {
            return Vec::new();
        };
        let typed = focused["value"]
            .as_str()
            .unwrap_or_default()
            .trim()
            .to_lowercase();
        let fits = |suggestion: &&Suggestion| {
            suggestion.value.to_lowercase().contains(&typed)
                || suggestion.label.to_lowercase().contains(&typed)
        };
        let short_enough =
            |suggestion: &&Suggestion| suggestion.value.chars().count() <= MAX_SUGGESTION_CHARS;
        offered
            .iter()
            .filter(fits)
            .filter(short_enough)
            .cloned()
            .collect()
    }

    /// The answer to an unknown command is ephemeral too.
    pub(super) fn is_for_asker_alone(&self, data: &Value) -> bool {
        self.find(data)
            .is_none_or(|command| command.is_for_asker_alone)
    }

    fn find(&self, data: &Value) -> Option<&SlashCommand> {
        self.commands
            .iter()
            .find(|command| data["name"] == *command.name)
    }

    /// The list in Discord's format.
    pub(super) fn registered(&self) -> Value {
        self.commands.iter().map(registered).collect()
    }
}

fn given(option: &Value) -> Option<(&str, String)> {
    let value = match &option["value"] {
        Value::String(text) => text.clone(),
        Value::Null => return None,
        other => other.to_string(),
    };
    Some((option["name"].as_str()?, value))
}

fn registered(command: &SlashCommand) -> Value {
    // Discord wants required options first, whatever their order in the command line.
    let (required, optional): (Vec<_>, Vec<_>) = command
        .options
        .iter()
        .partition(|option| option.is_required);
    let mut registered = json!({
        "type": 1,
        "name": command.name,
        "description": shortened(&command.description, MAX_DESCRIPTION_CHARS),
        "options": required.into_iter().chain(optional).map(registered_option).collect::<Vec<_>>(),
        "contexts": CONTEXTS,
        "integration_types": INSTALLED_ON_SERVERS,
    });
    if command.owners_only {
        registered["default_member_permissions"] = ADMINISTRATORS_ONLY.into();
    }
    registered
}

fn registered_option(option: &SlashOption) -> Value {
    let mut registered = json!({
        "type": TEXT,
        "name": option.name,
        "description": shortened(&option.description, MAX_DESCRIPTION_CHARS),
        "required": option.is_required,
    });
    match &option.offered {
        Offered::Nothing => {}
        Offered::Choices(choices) => {
            registered["choices"] = choices.iter().map(suggestion).collect();
        }
        Offered::Suggestions(_) => registered["autocomplete"] = true.into(),
    }
    registered
}

/// The suggestions for a person who may fetch these agents.
pub(super) fn offered(suggestions: &[Suggestion], fetchable: &[AgentId]) -> Vec<Value> {
    let is_open = |suggestion: &&Suggestion| {
        let agent = suggestion.agent.as_ref();
        agent.is_none_or(|agent| fetchable.contains(agent))
    };
    suggestions
        .iter()
        .filter(is_open)
        .take(MOST_SUGGESTIONS)
        .map(suggestion)
        .collect()
}

fn suggestion(Suggestion { label, value, .. }: &Suggestion) -> Value {
    json!({ "name": shortened(label, MAX_SUGGESTION_CHARS), "value": value })
}

fn shortened(text: &str, max_chars: usize) -> String {
    text.chars().take(max_chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn menu() -> Menu {
        let suggestion = |value: &str| Suggestion {
            label: format!("🌹 {}", value.to_uppercase()),
            value: value.into(),
            agent: AgentId::parse(value).ok(),
        };
        let option = |name: &str, offered| SlashOption {
            name: name.into(),
            description: "x".repeat(200),
            is_required: name == "text",
            offered,
        };
        let agents = (0..40)
            .map(|number| suggestion(&format!("rose{number}")))
            .collect();
        let options = vec![
            option("name", Offered::Suggestions(agents)),
            option("once", Offered::Choices(vec![suggestion("once")])),
        ];
        let command = |name: &str, options, is_for_asker_alone| SlashCommand {
            name: name.into(),
            description: "does things".into(),
            options,
            owners_only: is_for_asker_alone,
            is_for_asker_alone,
        };
        let remembered = vec![
            option("how", Offered::Nothing),
            option("text", Offered::Nothing),
        ];
        let remember = command("remember", remembered, false);
        Menu {
            commands: vec![
                command("agent", options, false),
                command("pair", Vec::new(), true),
                remember,
            ],
        }
    }

    fn check(data: Value, expected: &str) {
        assert_eq!(menu().line(&data), expected);
    }

    #[test]
    fn options_become_a_command_line_in_the_order_of_the_command() {
        let (name, once) = (
            json!({ "name": "name", "value": " rose " }),
            json!({ "name": "once", "value": "once" }),
        );
        check(json!({ "name": "agent" }), "/agent");
        check(
            json!({ "name": "agent", "options": [once, name] }),
            "/agent rose once",
        );
        let (text, how) = (
            json!({ "name": "text", "value": "the lamp" }),
            json!({ "name": "how", "value": "--global" }),
        );
        check(
            json!({ "name": "remember", "options": [text, how] }),
            "/remember --global the lamp",
        );
        check(
            json!({ "name": "gone", "options": [name, { "name": "count", "value": 3 }] }),
            "/gone rose 3",
        );
    }

    #[test]
    fn what_fits_is_suggested_up_to_a_number() {
        let all: Vec<AgentId> = (0..100)
            .map(|number| AgentId::parse(&format!("rose{number}")).unwrap())
            .collect();
        let suggested = |text: &str| {
            let option = json!({ "name": "name", "value": text, "focused": true });
            menu().suggestions(&json!({ "name": "agent", "options": [option] }))
        };
        let typed = |text: &str| offered(&suggested(text), &all);
        assert_eq!(typed("").len(), 25);
        assert_eq!(
            typed("E39"),
            [json!({ "name": "🌹 ROSE39", "value": "rose39" })]
        );
        assert_eq!(typed("nobody").len(), 0);
        // Agents that the person may not fetch are not offered.
        assert_eq!(offered(&suggested("E39"), &all[..39]).len(), 0);
        assert_eq!(offered(&suggested(""), &all[..3]).len(), 3);
        assert_eq!(menu().suggestions(&json!({ "name": "other" })).len(), 0);
    }

    #[test]
    fn what_is_registered_keeps_within_the_limits() {
        let registered = menu().registered();
        let [agent, pair] = [&registered[0], &registered[1]];
        assert_eq!(
            agent["options"][0]["description"].as_str().unwrap().len(),
            100
        );
        assert_eq!(
            (
                &agent["options"][0]["autocomplete"],
                &agent["default_member_permissions"]
            ),
            (&json!(true), &Value::Null)
        );
        assert_eq!(agent["options"][1]["choices"][0]["value"], "once");
        assert_eq!(pair["default_member_permissions"], "0");
        let remember = &registered[2]["options"];
        assert_eq!(
            [&remember[0]["name"], &remember[1]["name"]],
            ["text", "how"],
            "what is required comes first"
        );
    }
}
