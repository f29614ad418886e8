//! Writes a message in another place of the same agent.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Effect, Outcome, Reach, Risk, Scope, SendMessage, Tool, read_arguments};
use crate::models::ToolSpec;

/// The longest message, in bytes.
const MAX_TEXT_BYTES: usize = 32 * 1024;

pub(super) struct MessageSend;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    place: Option<String>,
    #[serde(default)]
    text: String,
}

#[async_trait]
impl Tool for MessageSend {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "message_send".into(),
            description: "Writes a message in another place where you are the agent. Without `place` you get the list of places; nothing is \
                          sent then. To answer here, just answer."
                .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "place": { "type": "string", "description": "A place from the list, by its key or its name." },
                    "text": { "type": "string" },
                },
                "additionalProperties": false,
            }).into(),
        }
    }

    fn risk(&self) -> Risk {
        Risk::Reach
    }

    /// The list of places goes nowhere.
    fn reach(&self, _scope: &Scope, arguments: &Value) -> Option<Reach> {
        (!arguments["place"].is_null()).then_some(Reach::Place)
    }

    async fn call(&self, _scope: &Scope, arguments: Value) -> Outcome {
        let Arguments { place, text } = match read_arguments(arguments) {
            Ok(arguments) => arguments,
            Err(outcome) => return outcome,
        };
        if place.is_some() && (text.trim().is_empty() || text.len() > MAX_TEXT_BYTES) {
            return Outcome::say(format!(
                "Nothing was sent: a message has 1 to {MAX_TEXT_BYTES} bytes."
            ));
        }
        Outcome::wish(Effect::SendMessage(SendMessage { place, text }))
    }
}
