//! Memories as an operator lists, searches and adds them.

use std::sync::Arc;

use rusqlite::Transaction;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::agents::find_agent;
use super::named::{Moment, Named};
use super::names::Names;
use super::{Operations, Refusal};
use crate::agents::memory::{Entry, Filter, Scope};
use crate::agents::{Memories, Memory, Reader};
use crate::clock::now_ms;
use crate::config::Visibility;
use crate::domain::{PersonId, SessionKey};
use crate::home::Snapshot;
use crate::records::audit::{self, Action, Actor, Change};

/// A memory.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct MemoryLine {
    pub(crate) id: i64,
    pub(crate) agent: Named,
    /// person, place, private or global.
    #[serde(serialize_with = "in_a_word")]
    #[schema(value_type = String)]
    pub(crate) visibility: Visibility,
    /// The file of a piece; null for saved memories.
    pub(crate) file: Option<String>,
    pub(crate) text: String,
    pub(crate) place: Option<Named>,
    pub(crate) person: Option<Named>,
    pub(crate) created_at: Moment,
}

fn in_a_word<S: Serializer>(visibility: &Visibility, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(visibility.as_str())
}

/// Whose memories are looked at, and for whom.
#[derive(Debug, Clone, Default)]
pub(crate) struct View {
    /// Absent: global memories alone.
    pub(crate) agent: Option<String>,
    pub(crate) person: Option<PersonId>,
    pub(crate) place: Option<SessionKey>,
}

/// The memories, older than `before`, the newest first.
pub(crate) async fn list(
    operations: &Operations,
    view: &View,
    before: i64,
    limit: u32,
) -> Result<Vec<MemoryLine>, Refusal> {
    let looking = Looking::at(operations, view).await?;
    let reader = looking.reader(view);
    let scope = looking.scope(&reader);
    let entries = looking.memories.list(scope, before, limit).await?;
    looking.lines(operations, &entries).await
}

pub(crate) async fn search(
    operations: &Operations,
    view: &View,
    words: &str,
    visibility: Vec<Visibility>,
    limit: u32,
) -> Result<Vec<MemoryLine>, Refusal> {
    let looking = Looking::at(operations, view).await?;
    let reader = looking.reader(view);
    let filter = Filter {
        visibility,
        ..Filter::default()
    };
    let found = match &looking.memory {
        Some(memory) => {
            memory
                .search_narrowed(&reader, words, &filter, limit)
                .await?
        }
        None => {
            let memories = &looking.memories;
            memories
                .search_narrowed(Scope::Global, words, &filter, limit)
                .await?
        }
    };
    looking.lines(operations, &found).await
}

/// What the agent would be reminded of before it answers this text.
pub(crate) async fn recall(
    operations: &Operations,
    view: &View,
    text: &str,
) -> Result<Vec<String>, Refusal> {
    let looking = Looking::at(operations, view).await?;
    let reader = looking.reader(view);
    let Some(memory) = &looking.memory else {
        return Ok(Vec::new());
    };
    let recalled = memory.recall(&reader, text).await?;
    Ok(recalled.said.into_iter().map(|said| said.text).collect())
}

/// Adds a memory of an agent, else of the default agent.
pub(crate) async fn remember(
    operations: &Operations,
    actor: &Actor,
    (word, text): (Option<&str>, &str),
    visibility: Option<Visibility>,
) -> Result<MemoryLine, Refusal> {
    let snapshot = operations.snapshot().await?;
    let default = snapshot.registry.default_agent().id.to_string();
    let view = View {
        agent: Some(word.map_or(default, str::to_owned)),
        ..View::default()
    };
    let looking = Looking::at(operations, &view).await?;
    let memory = looking.memory.as_ref().ok_or_else(|| off(&view))?;
    let reader = Reader::operator(&[], None);
    let refused = |error: &dyn std::fmt::Display| Refusal::wrong_use(error.to_string());
    let saving = memory.saving(&reader, text, visibility);
    let saving = saving.map_err(|error| refused(&error))?;
    let saved = memory.save(saving).await?;
    let id = saved.map_err(|error| refused(&error))?;
    let (by, agent) = (actor.clone(), memory.agent().id.clone());
    let note = move |tx: &Transaction<'_>| {
        let change = Change::new(Action::Remember).of(&agent).about(id);
        audit::note(tx, &by, &change, now_ms())
    };
    operations.db.write(note).await?;
    let entries = memory.everything(id.saturating_add(1), 1).await?;
    let lines = looking.lines(operations, &entries).await?;
    let found = lines.into_iter().find(|line| line.id == id);
    found.ok_or_else(|| Refusal::failed("the memory is gone already"))
}

fn off(view: &View) -> Refusal {
    let agent = view.agent.as_deref().unwrap_or_default();
    Refusal::failed(format!(
        "{agent} has no memory: memory = \"off\" in config.toml"
    ))
}

struct Looking {
    snapshot: Arc<Snapshot>,
    memories: Memories,
    /// None for global memories alone.
    memory: Option<Memory>,
}

impl Looking {
    async fn at(operations: &Operations, view: &View) -> Result<Self, Refusal> {
        let snapshot = operations.snapshot().await?;
        let memories = Memories::new(operations.db.clone());
        let agent = view.agent.as_deref();
        let agent = agent
            .map(|word| find_agent(&snapshot.registry, word))
            .transpose()?;
        let memory = match agent {
            Some(agent) => Some(memories.of(agent).ok_or_else(|| off(view))?),
            None => None,
        };
        Ok(Looking {
            memories,
            memory,
            snapshot,
        })
    }

    /// The operator, who looks on behalf of a person and a place.
    fn reader(&self, view: &View) -> Reader {
        let people = &self.snapshot.config.access.people;
        let ids = view.person.as_ref().map(|person| people.ids_of(person));
        Reader::operator(ids.unwrap_or_default(), view.place.clone())
    }

    fn scope<'a>(&'a self, reader: &'a Reader) -> Scope<'a> {
        match &self.memory {
            Some(memory) => Scope::Of(memory.agent(), reader),
            None => Scope::Global,
        }
    }

    async fn lines(
        &self,
        operations: &Operations,
        entries: &[Entry],
    ) -> Result<Vec<MemoryLine>, Refusal> {
        let names = Names::load(&operations.db, Some(&self.snapshot.config)).await?;
        let name_of = |id: &str| {
            let agent = self.snapshot.registry.find(id);
            agent.map(|agent| agent.name.clone())
        };
        let line = |entry: &Entry| MemoryLine {
            id: entry.id,
            agent: Named::new(&entry.agent, name_of(&entry.agent).as_deref()),
            visibility: entry.visibility,
            file: entry.path.clone(),
            text: entry.text.clone(),
            place: entry.said.place.as_ref().map(|key| names.place(key)),
            person: entry.said.person.as_ref().map(|id| names.person(id)),
            created_at: Moment(entry.created_at),
        };
        Ok(entries.iter().map(line).collect())
    }
}
