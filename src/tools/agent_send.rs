//! Asks another agent of the same peer group, and brings its answer back.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::spawn::peer;
use super::{AskPeer, Effect, Outcome, Reach, Risk, Scope, Tool, read_arguments};
use crate::models::ToolSpec;

/// The longest message, in bytes.
const MAX_TEXT_BYTES: usize = 32 * 1024;

pub(super) struct AgentSend;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    agent: String,
    text: String,
}

#[async_trait]
impl Tool for AgentSend {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "agent_send".into(),
            description:
                "Writes to another agent of your peer group and gives back what it answers. It sees your message, not this chat."
                    .into(),
            parameters: json!({
                "type": "object",
                "properties": { "agent": { "type": "string" }, "text": { "type": "string" } },
                "required": ["agent", "text"],
                "additionalProperties": false,
            }).into(),
        }
    }

    fn risk(&self) -> Risk {
        Risk::Reach
    }

    fn reach(&self, _scope: &Scope, _arguments: &Value) -> Option<Reach> {
        Some(Reach::Agent)
    }

    async fn call(&self, scope: &Scope, arguments: Value) -> Outcome {
        let Arguments { agent, text } = match read_arguments(arguments) {
            Ok(arguments) => arguments,
            Err(outcome) => return outcome,
        };
        if text.trim().is_empty() || text.len() > MAX_TEXT_BYTES {
            return Outcome::say(format!(
                "Nothing was sent: a message has 1 to {MAX_TEXT_BYTES} bytes."
            ));
        }
        if agent.trim_start_matches('@') == scope.agent.id.as_str() {
            tracing::info!(agent.id = %scope.agent.id, "refused: an agent wrote to itself");
            return Outcome::say(
                "Nothing was sent: that is you. Answer it yourself, or give a part of it to a subagent with `spawn`.",
            );
        }
        match peer(&scope.agent, &agent, scope) {
            Ok(agent) => Outcome::wish(Effect::AskPeer(AskPeer { agent, text })),
            Err(refusal) => {
                // The refusal quotes the model.
                tracing::info!(agent.id = %scope.agent.id, "refused: not in a peer group with the other");
                Outcome::say(format!("Nothing was sent: {refusal}"))
            }
        }
    }
}
