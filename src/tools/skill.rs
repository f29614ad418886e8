//! Reads a skill of the agent: its text, and the files in its folder.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Outcome, Risk, Scope, Tool};
use crate::agents::{Agent, skills};
use crate::models::ToolSpec;

/// Bytes in the result of a call; `offset` asks for the rest.
const MAX_BYTES: usize = 24 * 1024;

pub(super) struct ReadSkill;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    name: String,
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    offset: usize,
}

#[async_trait]
impl Tool for ReadSkill {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "skill".into(),
            description:
                "Reads one of your skills by name: its instructions, or a file in its folder."
                    .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string", "description": "As your list of skills has it." },
                    "file": { "type": "string", "description": "A file of the skill, such as references/form.md. Left out: the instructions." },
                    "offset": { "type": "integer", "minimum": 0, "description": "Where to go on in a long text." },
                },
                "required": ["name"],
                "additionalProperties": false,
            }).into(),
        }
    }

    fn risk(&self) -> Risk {
        Risk::Look
    }

    /// An agent without any skills is not offered the tool.
    fn fits(&self, agent: &Agent) -> bool {
        agent.skills.as_ref().is_none_or(|list| !list.is_empty())
    }

    fn lacks(&self) -> &'static str {
        "the agent's `skills` is an empty list"
    }

    async fn call(&self, scope: &Scope, arguments: Value) -> Outcome {
        let arguments: Arguments = match serde_json::from_value(arguments) {
            Ok(arguments) => arguments,
            Err(error) => {
                return Outcome::say(format!("Call it like {{\"name\": \"a-skill\"}}: {error}."));
            }
        };
        let agent = scope.agent.clone();
        let read = move || {
            let file = arguments.file.as_deref().filter(|file| !file.is_empty());
            match skills::read(&agent, &arguments.name, file) {
                Ok(content) => shown(&content, arguments.offset),
                Err(error) => error.to_string(),
            }
        };
        Outcome::say(
            tokio::task::spawn_blocking(read)
                .await
                .unwrap_or_else(|_| "Reading the skill failed.".into()),
        )
    }
}

fn shown(content: &skills::Content, offset: usize) -> String {
    let whole = content.text.as_str();
    let start = whole.floor_char_boundary(offset);
    let end = whole.floor_char_boundary(start.saturating_add(MAX_BYTES));
    let mut text = whole[start..end].to_owned();
    if end < whole.len() {
        text.push_str(&format!(
            "\n[cut: {end} of {} bytes; go on with \"offset\": {end}]",
            whole.len()
        ));
    }
    if start == 0 && !content.files.is_empty() {
        text.push_str(&format!(
            "\n\n[files of this skill, read with \"file\": {}]",
            content.files.join(", ")
        ));
    }
    if text.is_empty() {
        "[nothing more]".to_owned()
    } else {
        text
    }
}
