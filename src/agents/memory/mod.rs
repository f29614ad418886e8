//! What agents remember: what they saved, MEMORY.md and daily notes, found by their words.
//!
//! An agent's memory is reached through a [`Memory`], which is made from the agent and nothing else. Whose rows it sees is
//! decided in `scope`; the rows themselves are private to this module.

mod chunks;
mod curated;
mod index;
mod notes;
mod recall;
mod rows;
mod scope;
mod search;
mod stop_words;
pub mod transfer;
mod words;

use std::path::Path;
use std::sync::Arc;

use chrono::{Local, Utc};
use dashmap::DashMap;
use rusqlite::Transaction;

use super::{Agent, MAX_FILE_BYTES};
use crate::clock::now_ms;
use crate::config::Visibility;
use crate::domain::{AgentId, AgentUid, UserError};
use crate::storage::{Db, StoreError};

pub use curated::{Edit, EditError, MOST_VERSIONS, Version};
pub use rows::{Counts, Entry, Provenance};
use scope::Clause;
pub use scope::Scope;
use transfer::Carried;

/// The longest memory.
const MAX_TEXT_BYTES: usize = 8 * 1024;
/// Memories that one commit of an import carries.
const IMPORT_PORTION: usize = 1000;

/// The memories of the house. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Memories {
    db: Db,
    /// Files as they were when they were last looked at.
    seen: Arc<DashMap<AgentUid, index::Stamps>>,
}

/// One agent's memory.
#[derive(Debug, Clone)]
pub struct Memory {
    memories: Memories,
    agent: Arc<Agent>,
}

/// A memory that waits to be written, with whatever else belongs into the same transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saving(rows::New);

/// Memories of one agent that are to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forgetting {
    owner: AgentUid,
    ids: Vec<i64>,
}

/// What an agent has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    pub counts: Counts,
    /// Global memories of all agents, its own among them.
    pub global_of_all: u32,
    /// Size of MEMORY.md; none if there is none.
    pub memory_file_bytes: Option<u64>,
}

/// What an import did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Imported {
    pub new: usize,
    /// The very same memory was there.
    pub known: usize,
}

/// What came of a recall on a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Recalled {
    Found(Option<String>),
    /// A file has changed, and only [`Memory::recall`] can take that in.
    IndexIsOld,
}

impl Memories {
    pub fn new(db: Db) -> Self {
        Memories { db, seen: Arc::default() }
    }

    /// `None` for an agent whose memory is off.
    pub fn of(&self, agent: &Arc<Agent>) -> Option<Memory> {
        agent.memory.is_on.then(|| Memory { memories: self.clone(), agent: agent.clone() })
    }

    /// What fits the text best, the best first. Whatever people write is taken as words.
    pub async fn search(&self, scope: Scope<'_>, text: &str, limit: u32) -> Result<Vec<Entry>, StoreError> {
        let (clause, text) = (Clause::of(scope), text.to_owned());
        self.db.read(move |connection| search::search(connection, &clause, &text, limit)).await
    }

    /// The clause and the words that a search would use.
    pub async fn explain(&self, scope: Scope<'_>, text: &str) -> Result<String, StoreError> {
        let (clause, text) = (Clause::of(scope), text.to_owned());
        self.db.read(move |connection| search::explain(connection, &clause, &text)).await
    }

    /// Saved memories, the newest first; only those with a smaller id than `before`.
    pub async fn list(&self, scope: Scope<'_>, before: i64, limit: u32) -> Result<Vec<Entry>, StoreError> {
        let clause = Clause::of(scope);
        self.db.read(move |connection| rows::list(connection, &clause, before, limit)).await
    }

    /// Whether the index is up to these files.
    fn has_seen(&self, owner: AgentUid, now: &index::Stamps) -> bool {
        self.seen.get(&owner).is_some_and(|seen| *seen == *now)
    }

    /// Brings the index up to what is on the disk.
    async fn refresh(&self, owner: AgentUid, folder: &Path) -> Result<(), StoreError> {
        let looked_in = folder.to_owned();
        let now = blocking(move || index::look(&looked_in)).await?;
        if self.has_seen(owner, &now) {
            return Ok(());
        }
        let taken_in = self.db.read(move |connection| index::taken_in(connection, owner)).await?;
        let gone: Vec<String> = taken_in.keys().filter(|path| !now.contains_key(*path)).cloned().collect();
        let (read_in, stamps) = (folder.to_owned(), now.clone());
        let changed = blocking(move || index::read_changed(&read_in, &stamps, &taken_in)).await?;
        if !changed.is_empty() || !gone.is_empty() {
            self.db.write(move |tx| index::take_in(tx, owner, &changed, &gone)).await?;
        }
        self.seen.insert(owner, now);
        Ok(())
    }
}

impl Memory {
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// What this agent sees that fits the text best, the best first.
    pub async fn search(&self, text: &str, limit: u32) -> Result<Vec<Entry>, StoreError> {
        self.refresh().await?;
        self.memories.search(Scope::Of(&self.agent), text, limit).await
    }

    /// The same without what is global.
    pub async fn search_private(&self, text: &str, limit: u32) -> Result<Vec<Entry>, StoreError> {
        self.refresh().await?;
        self.memories.search(Scope::PrivateOf(&self.agent), text, limit).await
    }

    /// What the agent is to be reminded of before it answers this. Nothing is looked up where the budget is 0.
    pub async fn recall(&self, text: &str) -> Result<Option<String>, StoreError> {
        if self.agent.memory.recall_tokens == 0 {
            return Ok(None);
        }
        self.refresh().await?;
        let (memory, text) = (self.clone(), text.to_owned());
        self.memories.db.read(move |connection| memory.recall_from_index(connection, &text)).await
    }

    /// As [`Memory::recall`], on a connection that is at hand. Also looks at the files, and so blocks on the disk.
    pub fn recall_on(&self, connection: &rusqlite::Connection, text: &str) -> rusqlite::Result<Recalled> {
        if self.agent.memory.recall_tokens == 0 {
            return Ok(Recalled::Found(None));
        }
        if !self.read_folders().all(|(owner, folder)| self.memories.has_seen(owner, &index::look(folder))) {
            return Ok(Recalled::IndexIsOld);
        }
        self.recall_from_index(connection, text).map(Recalled::Found)
    }

    fn recall_from_index(&self, connection: &rusqlite::Connection, text: &str) -> rusqlite::Result<Option<String>> {
        let mut found = search::search(connection, &Clause::of(Scope::Of(&self.agent)), text, recall::MOST_RECALLED)?;
        if self.prompt_has_memory_file() {
            found.retain(|entry| entry.owner != self.agent.uid || entry.path.as_deref() != Some(index::MEMORY_FILE));
        }
        Ok(recall::block(&found, self.agent.uid, self.agent.memory.recall_tokens))
    }

    /// The prompt has all of MEMORY.md when it is no longer than one file may be there.
    fn prompt_has_memory_file(&self) -> bool {
        let seen = self.memories.seen.get(&self.agent.uid);
        let bytes = seen.and_then(|seen| seen.get(index::MEMORY_FILE).map(|stamp| stamp.bytes));
        bytes.is_some_and(|bytes| bytes <= MAX_FILE_BYTES as u64)
    }

    /// A memory of this agent, to be written. Without a visibility it gets the config's.
    pub fn saving(&self, text: &str, visibility: Option<Visibility>, said: Provenance) -> Result<Saving, UserError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(UserError::new("There is nothing to remember."));
        }
        if text.len() > MAX_TEXT_BYTES {
            let most = MAX_TEXT_BYTES / 1024;
            return Err(UserError::new(format!("A memory has at most {most} KiB. Make it shorter, or save it in parts.")));
        }
        let visibility = visibility.unwrap_or(self.agent.memory.default_visibility);
        let (owner, text) = (self.agent.uid, text.to_owned());
        Ok(Saving(rows::New { owner, visibility, path: None, text, said, created_at: now_ms() }))
    }

    /// Writes it down and returns its id.
    pub async fn save(&self, saving: Saving) -> Result<i64, StoreError> {
        self.memories.db.write(move |tx| saving.write(tx)).await
    }

    /// The agent's own memories among these, to be forgotten.
    pub fn forgetting(&self, entries: &[Entry]) -> Forgetting {
        let own = entries.iter().filter(|entry| entry.owner == self.agent.uid && entry.path.is_none());
        Forgetting { owner: self.agent.uid, ids: own.map(|entry| entry.id).collect() }
    }

    /// One of the agent's own saved memories.
    pub async fn own(&self, id: i64) -> Result<Option<Entry>, StoreError> {
        let owner = self.agent.uid;
        self.memories.db.read(move |connection| rows::own_by_id(connection, owner, id)).await
    }

    /// The agent's own saved memories, the newest first; only those with a smaller id than `before`.
    pub async fn newest(&self, before: i64, limit: u32) -> Result<Vec<Entry>, StoreError> {
        let owner = self.agent.uid;
        self.memories.db.read(move |connection| rows::own(connection, owner, before, limit)).await
    }

    pub async fn stats(&self) -> Result<Stats, StoreError> {
        self.refresh().await?;
        let owner = self.agent.uid;
        let count =
            move |connection: &rusqlite::Connection| Ok((rows::counts(connection, owner)?, rows::count_global(connection)?));
        let (counts, global_of_all) = self.memories.db.read(count).await?;
        let seen = self.memories.seen.get(&owner);
        let bytes = seen.and_then(|seen| seen.get(index::MEMORY_FILE).map(|stamp| stamp.bytes));
        Ok(Stats { counts, global_of_all, memory_file_bytes: bytes })
    }

    /// Changes MEMORY.md and returns its new size.
    pub async fn edit(&self, edit: Edit) -> Result<usize, EditError> {
        let folder = self.agent.folder.clone();
        on_disk(move || curated::edit(&folder, &edit, Utc::now())).await
    }

    /// Earlier versions of MEMORY.md, the newest first.
    pub async fn versions(&self) -> Result<Vec<Version>, EditError> {
        let folder = self.agent.folder.clone();
        on_disk(move || curated::versions(&folder).map_err(EditError::from)).await
    }

    /// Makes an earlier version MEMORY.md again.
    pub async fn restore(&self, version: String) -> Result<usize, EditError> {
        let folder = self.agent.folder.clone();
        on_disk(move || curated::restore(&folder, &version, Utc::now())).await
    }

    /// Adds to today's notes and returns the file's path in the agent's folder.
    pub async fn note(&self, text: String) -> Result<String, EditError> {
        let folder = self.agent.folder.clone();
        on_disk(move || notes::append(&folder, &text, Local::now())).await
    }

    /// Takes in memories that were written down elsewhere, as this agent's. What is there already stays as it is.
    pub async fn import(&self, carried: Vec<Carried>) -> Result<Imported, StoreError> {
        let (owner, all) = (self.agent.uid, carried.len());
        let mut known = self.memories.db.read(move |connection| rows::marks(connection, owner)).await?;
        let is_new = |row: &rows::New| match known.get_mut(&rows::mark(row.visibility.as_str(), row.created_at, &row.text)) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        };
        let new: Vec<rows::New> = carried.iter().map(|carried| carried.as_row(owner)).filter(is_new).collect();
        let imported = Imported { new: new.len(), known: all - new.len() };
        for portion in new.chunks(IMPORT_PORTION) {
            let portion = portion.to_vec();
            let write = move |tx: &Transaction<'_>| portion.iter().try_for_each(|row| rows::insert(tx, row).map(drop));
            self.memories.db.write(write).await?;
        }
        Ok(imported)
    }

    /// The files of this agent and of those it reads from.
    async fn refresh(&self) -> Result<(), StoreError> {
        for (owner, folder) in self.read_folders() {
            self.memories.refresh(owner, folder).await?;
        }
        Ok(())
    }

    /// Of everybody whose files it sees.
    fn read_folders(&self) -> impl Iterator<Item = (AgentUid, &Path)> {
        let others = self.agent.memory.read_from.iter().map(|peer| (peer.uid, peer.folder.as_path()));
        std::iter::once((self.agent.uid, self.agent.folder.as_path())).chain(others)
    }
}

impl Saving {
    pub fn write(&self, tx: &Transaction<'_>) -> rusqlite::Result<i64> {
        rows::insert(tx, &self.0)
    }

    pub fn visibility(&self) -> Visibility {
        self.0.visibility
    }
}

impl Forgetting {
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// How many went.
    pub fn write(&self, tx: &Transaction<'_>) -> rusqlite::Result<usize> {
        rows::delete(tx, self.owner, &self.ids)
    }
}

impl Entry {
    /// For a list: whose it is unless it is the reader's, when it is from, and what it says.
    pub fn shown_to(&self, reader: Option<&Agent>) -> String {
        recall::line(self, reader.map(|agent| agent.uid))
    }
}

impl Carried {
    fn as_row(&self, owner: AgentUid) -> rows::New {
        let (visibility, text, said) = (self.visibility, self.text.clone(), self.said.clone());
        rows::New { owner, visibility, path: None, text, said, created_at: self.created_at }
    }
}

/// Writes what a new agent brings along from elsewhere.
pub fn take_in(tx: &Transaction<'_>, owner: AgentUid, carried: &[Carried]) -> rusqlite::Result<()> {
    carried.iter().try_for_each(|carried| rows::insert(tx, &carried.as_row(owner)).map(drop))
}

/// What a guest wants remembered, marked so: the agent comes across it when it works for others, with what they may have done. One
/// rare word, because words of a memory are what it is found by.
pub fn told_by_a_guest(text: &str) -> String {
    match text.trim() {
        "" => String::new(),
        text => format!("[guest] {text}"),
    }
}

/// Hides everything an agent remembers, for an agent that is removed. Its files are taken in anew when it comes back.
pub fn archive(tx: &Transaction<'_>, owner: AgentUid) -> rusqlite::Result<usize> {
    rows::archive(tx, owner)
}

/// Undoes [`archive`].
pub fn restore(tx: &Transaction<'_>, owner: AgentUid) -> rusqlite::Result<usize> {
    rows::restore(tx, owner)
}

/// Destroys everything an agent remembers, but for its files.
pub fn purge(tx: &Transaction<'_>, owner: AgentUid) -> rusqlite::Result<usize> {
    index::forget(tx, owner)?;
    rows::purge(tx, owner)
}

/// How many memories an agent has, hidden ones too.
pub fn count_of(connection: &rusqlite::Connection, owner: AgentUid) -> rusqlite::Result<u32> {
    rows::counts(connection, owner).map(|counts| counts.private + counts.global + counts.archived + counts.pieces)
}

/// Agents that memories name, in the order of their first memory.
pub fn agents_of(carried: &[Carried]) -> Vec<AgentId> {
    let mut agents: Vec<AgentId> = Vec::new();
    for one in carried {
        if !agents.contains(&one.agent) {
            agents.push(one.agent.clone());
        }
    }
    agents
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StoreError::Failed(format!("looking at memory files: {error}")))
}

async fn on_disk<T: Send + 'static>(work: impl FnOnce() -> Result<T, EditError> + Send + 'static) -> Result<T, EditError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| EditError::Disk(std::io::Error::other(error)))?
}

#[cfg(test)]
mod tests;
