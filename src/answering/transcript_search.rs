//! The tool `transcript_search`: messages of the agent's place, including messages older than the
//! prompt.

use async_trait::async_trait;
use chrono::{DateTime, Local};
use serde_json::{Value, json};

use crate::config::Switch;
use crate::models::ToolSpec;
use crate::records::transcript;
use crate::records::view::View;
use crate::storage::Db;
use crate::tools::{Outcome, Risk, Scope, Tool};
use crate::turn::history::{Said, Speaker};

/// The most messages found, and the most bytes shown of each.
const MOST_FOUND: u32 = 20;
const MAX_SHOWN_BYTES: usize = 1000;

/// Searches only the place of the turn, and only the agent's view: messages elsewhere were meant
/// for other people.
pub(crate) struct TranscriptSearch {
    pub(crate) db: Db,
    pub(crate) switch: Switch,
}

#[async_trait]
impl Tool for TranscriptSearch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "transcript_search".into(),
            description: "Finds earlier messages of this chat, also those you no longer see, by words that are all in them. \
                          The newest come first."
                .into(),
            parameters: json!({
                "type": "object",
                "properties": { "words": { "type": "string", "description": "One or more words." } },
                "required": ["words"],
                "additionalProperties": false,
            }),
        }
    }

    fn risk(&self) -> Risk {
        Risk::Look
    }

    /// Messages are found again, and are for the people of this place.
    fn keeps_long_results(&self) -> bool {
        false
    }

    async fn call(&self, scope: &Scope, arguments: Value) -> Outcome {
        let words: Vec<String> = arguments["words"]
            .as_str()
            .unwrap_or_default()
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        if words.is_empty() {
            return Outcome::say("Tell which words to look for: {\"words\": \"…\"}.");
        }
        let (place, view) = (scope.place.clone(), View::of(self.switch, scope.agent.uid));
        let found = self
            .db
            .read(move |connection| {
                transcript::search(connection, &place, view, &words, MOST_FOUND)
            })
            .await;
        Outcome::say(match found {
            Ok(found) if found.is_empty() => {
                "Nothing with these words was said in this chat.".to_owned()
            }
            Ok(found) => found
                .iter()
                .map(|(said, at)| line(said, *at))
                .collect::<Vec<_>>()
                .join("\n"),
            Err(error) => {
                tracing::warn!(agent.id = %scope.agent.id, "a transcript could not be searched: {error}");
                "The messages cannot be looked at right now. Try again later.".to_owned()
            }
        })
    }
}

fn line(said: &Said, at: i64) -> String {
    let when = DateTime::from_timestamp_millis(at)
        .unwrap_or_default()
        .with_timezone(&Local)
        .format("%Y-%m-%d %H:%M");
    let text = &said.text[..said.text.floor_char_boundary(MAX_SHOWN_BYTES)];
    match &said.by {
        Speaker::Person(name) => format!("{when} [{name}] {text}"),
        Speaker::Agent(agent) => format!("{when} [@{agent}] {text}"),
        Speaker::Handoff => format!("{when} [{text}]"),
    }
}
