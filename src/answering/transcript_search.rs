//! The tool `transcript_search`: messages of the agent's place, including messages older than the
//! prompt.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::access::numbers;
use crate::config::Switch;
use crate::domain::{Labels, Said, Source};
use crate::models::ToolSpec;
use crate::records::transcript;
use crate::records::view::View;
use crate::storage::Db;
use crate::tools::{Outcome, Risk, Scope, Tool};

/// The most messages found, and the most bytes shown of each.
const MOST_FOUND: u32 = 20;
const MAX_SHOWN_BYTES: usize = 1000;

/// Searches only the place of the turn, and only the agent's view: messages elsewhere were meant
/// for other people.
pub(crate) struct TranscriptSearch {
    pub(crate) db: Db,
    pub(crate) switch: Arc<dyn Fn() -> Switch + Send + Sync>,
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
            }).into(),
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
        let (place, view) = (
            scope.place.clone(),
            View::of((self.switch)(), scope.agent.uid),
        );
        let people = scope.people.clone();
        let found = self.db.read(move |connection| {
            let mut found = transcript::search(connection, &place, view, &words, MOST_FOUND)?;
            let said = found.iter_mut().map(|(said, ..)| said);
            numbers::fill_in(connection, &people, said)?;
            Ok(found)
        });
        match found.await {
            Ok(found) if found.is_empty() => {
                Outcome::say("Nothing with these words was said in this chat.")
            }
            Ok(found) => {
                let labels: Labels = found.iter().map(|(.., labels)| *labels).collect();
                let found: Vec<Said> = found
                    .into_iter()
                    .flat_map(|(said, at, _)| shown(said, at, scope))
                    .collect();
                Outcome::marked(scope.agent.marks().mark_all(&found)).labelled(labels)
            }
            Err(error) => {
                tracing::warn!(agent.id = %scope.agent.id, "a transcript could not be searched: {error}");
                Outcome::say("The messages cannot be looked at right now. Try again later.")
            }
        }
    }
}

/// A message with its writer and time. The marks of agents and of the gateway have no time, so the
/// gateway tells it before.
fn shown(mut said: Said, at: i64, scope: &Scope) -> Vec<Said> {
    said.text
        .truncate(said.text.floor_char_boundary(MAX_SHOWN_BYTES));
    if matches!(said.by, Source::Person(_) | Source::Handoff(_)) {
        return vec![said];
    }
    if said.by == Source::Agent(scope.agent.id.clone()) {
        said.by = Source::You;
    }
    let when = scope.agent.zone.at(at).format("%Y-%m-%d %H:%M").to_string();
    vec![Said::gateway(when), said]
}
