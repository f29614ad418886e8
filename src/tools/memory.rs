//! The memory of an agent as tools: `memory_search`, `memory_save`, `memory_note`, `memory_edit`.

use std::fmt::Display;
use std::str::FromStr;

use async_trait::async_trait;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Outcome, Reach, Risk, Scope, Tool};
use crate::agents::memory::{Edit, Filter};
use crate::agents::{Agent, Memories, Memory};
use crate::clock::now_ms;
use crate::config::{MemoryKind, Visibility};
use crate::domain::{Label, Labels};
use crate::models::ToolSpec;

/// Results of a search without a `limit` from the model.
const USUALLY_FOUND: u32 = 8;
const MOST_FOUND: u32 = 30;

pub fn tools(memories: &Memories) -> Vec<Box<dyn Tool>> {
    let verbs = [Verb::Search, Verb::Save, Verb::Note, Verb::Edit];
    verbs
        .map(|verb| {
            Box::new(MemoryTool {
                verb,
                memories: memories.clone(),
            }) as Box<dyn Tool>
        })
        .into()
}

struct MemoryTool {
    verb: Verb,
    memories: Memories,
}

#[derive(Debug, Clone, Copy)]
enum Verb {
    Search,
    Save,
    Note,
    Edit,
}

#[async_trait]
impl Tool for MemoryTool {
    fn spec(&self) -> ToolSpec {
        match self.verb {
            Verb::Search => search_spec(),
            Verb::Save => save_spec(),
            Verb::Note => note_spec(),
            Verb::Edit => edit_spec(),
        }
    }

    fn risk(&self) -> Risk {
        match self.verb {
            Verb::Search => Risk::Look,
            Verb::Save | Verb::Note | Verb::Edit => Risk::Change,
        }
    }

    /// Memories are found again as they were, and are for the people of this turn.
    fn keeps_long_results(&self) -> bool {
        false
    }

    fn fits(&self, agent: &Agent) -> bool {
        agent.memory.is_on
    }

    fn lacks(&self) -> &'static str {
        "the agent's `memory` is off"
    }

    /// MEMORY.md and daily notes are in everybody's turns. A saved memory keeps the labels of its
    /// turn, wherever it is found.
    fn reach(&self, scope: &Scope, _arguments: &Value) -> Option<Reach> {
        match self.verb {
            Verb::Search | Verb::Save => None,
            Verb::Note => Memory::may_publish(&scope.agent, scope.role).then_some(Reach::Everybody),
            Verb::Edit => Some(Reach::Everybody),
        }
    }

    async fn call(&self, scope: &Scope, arguments: Value) -> Outcome {
        let Some(memory) = self.memories.of(&scope.agent) else {
            return Outcome::say("This agent has no memory.");
        };
        let done = match self.verb {
            Verb::Search => search(&memory, scope, arguments).await,
            Verb::Save => save(&memory, scope, arguments).await.map(Outcome::say),
            Verb::Note => note(&memory, scope, arguments).await.map(Outcome::say),
            Verb::Edit => edit(&memory, arguments).await.map(Outcome::say),
        };
        done.unwrap_or_else(Outcome::say)
    }
}

/// The result for the model, for success and failure.
type Told = Result<String, String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    query: String,
    limit: Option<u32>,
    visibility: Option<String>,
    kind: Option<String>,
    max_age_days: Option<u32>,
}

async fn search(memory: &Memory, scope: &Scope, arguments: Value) -> Result<Outcome, String> {
    let search: Search = read(arguments)?;
    let limit = search.limit.unwrap_or(USUALLY_FOUND).clamp(1, MOST_FOUND);
    let filter = narrowed(&search)?;
    let found = memory
        .search_narrowed(&scope.reader(), &search.query, &filter, limit)
        .await
        .map_err(failed)?;
    if found.is_empty() {
        let told = match filter == Filter::default() {
            true => "Nothing in memory has any of these words.",
            false => "Nothing in this part of memory has any of these words.",
        };
        return Ok(Outcome::say(told));
    }
    let labels: Labels = found.iter().map(|entry| entry.labels).collect();
    let told = memory.told(&found, &scope.people).await.map_err(failed)?;
    let told = Outcome::marked(scope.agent.marks().mark_all(&told));
    Ok(told.labelled(labels.with(Label::Memory)))
}

fn narrowed(search: &Search) -> Result<Filter, String> {
    let visibility =
        word::<Visibility>("visibility", search.visibility.as_deref(), Visibility::ALL)?;
    let kind = word::<MemoryKind>("kind", search.kind.as_deref(), MemoryKind::ALL)?;
    let filter = Filter {
        visibility: visibility.into_iter().collect(),
        kinds: kind.into_iter().collect(),
        since: None,
    };
    Ok(filter.within_days(search.max_age_days, now_ms()))
}

/// A word of a short list, if one is given.
fn word<T: FromStr + Display>(
    key: &str,
    word: Option<&str>,
    all: &[T],
) -> Result<Option<T>, String> {
    let refused = |word: &str| {
        let all: Vec<String> = all.iter().map(|known| format!("`{known}`")).collect();
        format!("`{word}` is no {key}; use one of {}.", all.join(", "))
    };
    let parsed = word.map(|word| word.parse().map_err(|_| refused(word)));
    parsed.transpose()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Save {
    text: String,
    visibility: Option<String>,
}

async fn save(memory: &Memory, scope: &Scope, arguments: Value) -> Told {
    let Save { text, visibility } = read(arguments)?;
    let visibility = visibility
        .map(|word| {
            word.parse::<Visibility>()
                .map_err(|()| no_visibility(&word))
        })
        .transpose()?;
    let (id, visibility) = keep(memory, scope, &text, visibility).await?;
    Ok(format!("Saved as memory {id}, {}.", seen_by(visibility)))
}

async fn keep(
    memory: &Memory,
    scope: &Scope,
    text: &str,
    visibility: Option<Visibility>,
) -> Result<(i64, Visibility), String> {
    let saving = memory
        .saving(&scope.reader(), text, visibility)
        .map_err(failed)?;
    let visibility = saving.visibility();
    let saved = memory.save(saving).await.map_err(failed)?;
    saved.map(|id| (id, visibility)).map_err(failed)
}

fn seen_by(visibility: Visibility) -> &'static str {
    match visibility {
        Visibility::Person => "for this person",
        Visibility::Place => "for this place",
        Visibility::Private => "for everybody who talks to you",
        Visibility::Global => "for every agent",
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    text: String,
}

/// Notes of a day are read in everybody's turns, so a note that may not be is a memory.
async fn note(memory: &Memory, scope: &Scope, arguments: Value) -> Told {
    let Note { text } = read(arguments)?;
    if !Memory::may_publish(memory.agent(), scope.role) {
        let (id, visibility) = keep(memory, scope, &text, None).await?;
        return Ok(format!("Noted as memory {id}, {}.", seen_by(visibility)));
    }
    let path = memory.note(text).await.map_err(failed)?;
    Ok(format!("Noted in {path}."))
}

#[derive(Deserialize)]
#[serde(tag = "action", rename_all = "lowercase", deny_unknown_fields)]
enum Change {
    Add { text: String },
    Replace { old: String, text: String },
    Remove { old: String },
}

async fn edit(memory: &Memory, arguments: Value) -> Told {
    let edit = match read(arguments)? {
        Change::Add { text } => Edit::Add(text),
        Change::Replace { old, text } => Edit::Replace { old, new: text },
        Change::Remove { old } => Edit::Remove(old),
    };
    let bytes = memory.edit(edit).await.map_err(failed)?;
    Ok(format!("MEMORY.md is changed and has {bytes} bytes now."))
}

fn read<T: DeserializeOwned>(arguments: Value) -> Result<T, String> {
    serde_json::from_value(arguments)
        .map_err(|error| format!("These arguments do not fit: {error}."))
}

fn failed(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn no_visibility(word: &str) -> String {
    format!(
        "`{word}` is no visibility; use `person`, `place`, `private` or `global`. Nothing was saved."
    )
}

fn spec(name: &str, description: &str, properties: Value, required: &[&str]) -> ToolSpec {
    let parameters = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    ToolSpec {
        name: name.into(),
        description: description.into(),
        parameters: parameters.into(),
    }
}

fn search_spec() -> ToolSpec {
    let properties = json!({
        "query": { "type": "string", "description": "Words that the memory may have." },
        "limit": { "type": "integer", "minimum": 1, "maximum": MOST_FOUND },
        "visibility": { "type": "string", "enum": Visibility::ALL.iter().map(|known| known.as_str()).collect::<Vec<_>>(), "description": "Only memories of this visibility." },
        "kind": {
            "type": "string",
            "enum": MemoryKind::ALL.iter().map(|known| known.as_str()).collect::<Vec<_>>(),
            "description": "Only saved memories, daily notes, or your MEMORY.md.",
        },
        "max_age_days": { "type": "integer", "minimum": 1, "description": "Only what is at most so many days old." },
    });
    let description = "Search your memory: what you saved for the person you answer and for this place, your MEMORY.md and daily notes, and what other agents share.";
    spec("memory_search", description, properties, &["query"])
}

fn save_spec() -> ToolSpec {
    let properties = json!({
        "text": { "type": "string", "description": "One fact, understandable without the conversation." },
        "visibility": {
            "type": "string",
            "enum": ["person", "place", "private", "global"],
            "description": "Leave it out: what is said in a private chat is for that person, what is said elsewhere for that place. \
                            person: only the person you answer. place: everybody here. Only for owners: private, everybody who talks to you; \
                            global, every agent.",
        },
    });
    let description = "Remember a fact for good. It is found again when words of it come up.";
    spec("memory_save", description, properties, &["text"])
}

fn note_spec() -> ToolSpec {
    let properties = json!({ "text": { "type": "string" } });
    spec(
        "memory_note",
        "Add a line to today's notes: what happened, what was decided.",
        properties,
        &["text"],
    )
}

fn edit_spec() -> ToolSpec {
    let properties = json!({
        "action": { "type": "string", "enum": ["add", "replace", "remove"] },
        "old": { "type": "string", "description": "For replace and remove: the text as it stands there; it must be there once." },
        "text": { "type": "string", "description": "For add and replace: the new text." },
    });
    let description = "Change your MEMORY.md, which you always see. Keep it short: only what matters in every conversation.";
    spec("memory_edit", description, properties, &["action"])
}
