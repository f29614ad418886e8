//! Gives a part of the work to a subagent: a turn of its own, with at most the rights of its
//! parent.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Effect, OnFinish, Outcome, Reach, Risk, Scope, Spawn, Tool, read_arguments};
use crate::agents::Agent;
use crate::domain::{AgentId, nearest};
use crate::models::ToolSpec;

/// The longest task, in bytes.
const MAX_TASK_BYTES: usize = 32 * 1024;
/// The longest label and the longest tag, in characters, and the most tags.
const MAX_LABEL_CHARS: usize = 80;
const MAX_TAG_CHARS: usize = 32;
const MOST_TAGS: usize = 8;

pub(super) struct SpawnTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    task: String,
    agent: Option<String>,
    tools: Option<Vec<String>>,
    #[serde(default)]
    wait: Option<bool>,
    #[serde(default)]
    report: bool,
    label: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
}

#[async_trait]
impl Tool for SpawnTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "spawn".into(),
            description: "Gives a task to a subagent, which works by itself and sees nothing of this chat: put everything it must know into \
                          `task`. Call it several times in one round to let several work at once. You get the results as results of the \
                          calls; with `wait` false you go on, and hear of it in your next turn."
                .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "task": { "type": "string" },
                    "agent": { "type": "string", "description": "Another agent of your peer group. Without it, you yourself." },
                    "tools": {
                        "type": "array", "items": { "type": "string" },
                        "description": "The only tools it gets. Without it, those that you have.",
                    },
                    "wait": { "type": "boolean", "description": "Whether to wait for the result. True unless you say otherwise." },
                    "report": {
                        "type": "boolean",
                        "description": "Do not wait, but be woken when it is done, to tell the people here.",
                    },
                    "label": { "type": "string", "maxLength": MAX_LABEL_CHARS, "description": "A short name of the task, for its announcement." },
                    "tags": {
                        "type": "array", "maxItems": MOST_TAGS, "items": { "type": "string", "maxLength": MAX_TAG_CHARS },
                        "description": "Words to sort announcements by.",
                    },
                },
                "required": ["task"],
                "additionalProperties": false,
            }).into(),
        }
    }

    /// The subagent's own tools bound its effects. Starting a subagent spends the agent's budget.
    fn risk(&self) -> Risk {
        Risk::Change
    }

    /// A subagent of the agent's own stays within the agent and has read all that its parent has.
    fn reach(&self, scope: &Scope, arguments: &Value) -> Option<Reach> {
        let other = arguments["agent"].as_str();
        other
            .filter(|agent| agent.trim_start_matches('@') != scope.agent.id.as_str())
            .map(|_| Reach::Agent)
    }

    async fn call(&self, scope: &Scope, arguments: Value) -> Outcome {
        let Arguments {
            task,
            agent,
            tools,
            wait,
            report,
            label,
            tags,
        } = match read_arguments(arguments) {
            Ok(arguments) => arguments,
            Err(outcome) => return outcome,
        };
        if task.trim().is_empty() || task.len() > MAX_TASK_BYTES {
            return Outcome::say(format!(
                "Nothing was started: a task has 1 to {MAX_TASK_BYTES} bytes."
            ));
        }
        let then = match (report, wait) {
            (true, Some(true)) => return Outcome::say(EITHER),
            (true, _) => OnFinish::Report,
            (false, Some(false)) => OnFinish::Announce,
            (false, _) => OnFinish::Wait,
        };
        match chosen(scope, agent.as_deref()) {
            Ok(agent) => Outcome::wish(Effect::Spawn(Spawn {
                agent,
                task,
                tools,
                then,
                label: label
                    .map(|label| short(&label, MAX_LABEL_CHARS))
                    .filter(|label| !label.is_empty()),
                tags: short_tags(&tags),
            })),
            Err(refusal) => Outcome::say(format!("Nothing was started: {refusal}")),
        }
    }
}

/// A line of text within a limit.
fn short(text: &str, max_chars: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let printable = line.chars().filter(|c| !c.is_control());
    printable.take(max_chars).collect()
}

fn short_tags(tags: &[String]) -> Vec<String> {
    let tags = tags.iter().map(|tag| short(tag, MAX_TAG_CHARS));
    tags.filter(|tag| !tag.is_empty()).take(MOST_TAGS).collect()
}

const EITHER: &str = "Nothing was started: `report` is for a task that you do not wait for. Leave out one of `wait` and `report`.";

fn chosen(scope: &Scope, word: Option<&str>) -> Result<AgentId, String> {
    match word.filter(|word| *word != scope.agent.id.as_str()) {
        None => Ok(scope.agent.id.clone()),
        Some(word) => peer(&scope.agent, word, scope),
    }
}

/// The agent of the same peer group with this id or name.
pub(super) fn peer(agent: &Agent, word: &str, scope: &Scope) -> Result<AgentId, String> {
    let word = word.trim_start_matches('@');
    let peers: Vec<&AgentId> = agent
        .peers
        .iter()
        .filter(|peer| peer.counts_on(scope.place.platform()))
        .map(|peer| &peer.id)
        .collect();
    if let Some(found) = peers.iter().find(|peer| peer.as_str() == word) {
        return Ok((*found).clone());
    }
    let names = peers.iter().map(|peer| peer.as_str());
    Err(match (nearest(word, names.clone()), peers.is_empty()) {
        (Some(near), _) => {
            format!("`{word}` is not in a peer group with you here. Did you mean `{near}`?")
        }
        (None, true) => {
            format!(
                "`{word}` is not in a peer group with you here. Nobody is; the operator decides in [peer_groups]."
            )
        }
        (None, false) => {
            format!(
                "`{word}` is not in a peer group with you here. You have: {}.",
                names.collect::<Vec<_>>().join(", ")
            )
        }
    })
}
