//! The memory of agents: saved memories, MEMORY.md and daily notes, found by their words.
//!
//! An agent's memory is reached through a [`Memory`], made from the agent only. `scope` decides
//! about visible rows; the rows themselves are private to this module.

mod chunks;
pub(crate) mod export;
mod index;
mod memory_file;
mod notes;
mod recall;
mod rows;
mod scope;
mod search;
mod stop_words;
mod tokenizer;

use std::path::Path;
use std::sync::Arc;

use chrono::{Local, Utc};
use dashmap::DashMap;
use rusqlite::Transaction;

use super::{Agent, MAX_FILE_BYTES};
use crate::clock::now_ms;
use crate::config::Visibility;
use crate::domain::{AgentId, AgentUid, UserError};
use crate::storage::{Db, Durability, StoreError};

use export::ExportedMemory;
pub use memory_file::{Edit, EditError, MOST_VERSIONS, Version};
pub use rows::{Counts, Entry, Provenance};
use scope::Clause;
pub use scope::Scope;

/// The longest memory.
const MAX_TEXT_BYTES: usize = 8 * 1024;
/// Memories in a commit of an import.
const IMPORT_PORTION: usize = 1000;

/// The memories of all agents. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Memories {
    db: Db,
    /// Files as they were when they were last looked at.
    seen: Arc<DashMap<AgentUid, index::Stamps>>,
}

/// The memory of an agent.
#[derive(Debug, Clone)]
pub struct Memory {
    memories: Memories,
    agent: Arc<Agent>,
}

/// A memory before its write, which may share a transaction with other rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saving(rows::New);

/// Memories of an agent before their deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forgetting {
    owner: AgentUid,
    ids: Vec<i64>,
}

/// The size of an agent's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    pub counts: Counts,
    /// Global memories of all agents, its own among them.
    pub global_of_all: u32,
    /// Size of MEMORY.md; none if there is none.
    pub memory_file_bytes: Option<u64>,
}

/// The result of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Imported {
    pub new: usize,
    /// The very same memory was there.
    pub known: usize,
}

/// The result of a recall on a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Recalled {
    Found(Option<String>),
    /// A file has changed, and only [`Memory::recall`] can update the index.
    IndexIsOld,
}

impl Memories {
    pub fn new(db: Db) -> Self {
        Memories {
            db,
            seen: Arc::default(),
        }
    }

    /// `None` for an agent without memory.
    pub fn of(&self, agent: &Arc<Agent>) -> Option<Memory> {
        agent.memory.is_on.then(|| Memory {
            memories: self.clone(),
            agent: agent.clone(),
        })
    }

    /// The memories nearest to the text, the best first. Any text is taken as words.
    pub async fn search(
        &self,
        scope: Scope<'_>,
        text: &str,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        let (clause, text) = (Clause::of(scope), text.to_owned());
        self.db
            .read(move |connection| search::search(connection, &clause, &text, limit))
            .await
    }

    /// The clause and the words of a search.
    pub async fn explain(&self, scope: Scope<'_>, text: &str) -> Result<String, StoreError> {
        let (clause, text) = (Clause::of(scope), text.to_owned());
        self.db
            .read(move |connection| search::explain(connection, &clause, &text))
            .await
    }

    /// Saved memories with a smaller id than `before`, the newest first.
    pub async fn list(
        &self,
        scope: Scope<'_>,
        before: i64,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        let clause = Clause::of(scope);
        self.db
            .read(move |connection| rows::list(connection, &clause, before, limit))
            .await
    }

    /// Takes words of deleted memories out of the index, in steps, so that writes people wait for
    /// come in between.
    pub async fn wipe(&self) -> Result<(), StoreError> {
        while self.db.write_as(Durability::Kill, rows::wipe_some).await? {}
        Ok(())
    }

    /// Whether the index is up to these files.
    fn has_seen(&self, owner: AgentUid, now: &index::Stamps) -> bool {
        self.seen.get(&owner).is_some_and(|seen| *seen == *now)
    }

    /// Updates the index from the disk.
    async fn refresh(&self, owner: AgentUid, folder: &Path) -> Result<(), StoreError> {
        let looked_in = folder.to_owned();
        let now = blocking(move || index::look(&looked_in)).await?;
        if self.has_seen(owner, &now) {
            return Ok(());
        }
        let taken_in = self
            .db
            .read(move |connection| index::taken_in(connection, owner))
            .await?;
        let gone: Vec<String> = taken_in
            .keys()
            .filter(|path| !now.contains_key(*path))
            .cloned()
            .collect();
        let (read_in, stamps) = (folder.to_owned(), now.clone());
        let changed = blocking(move || index::read_changed(&read_in, &stamps, &taken_in)).await?;
        if !changed.is_empty() || !gone.is_empty() {
            self.db
                .write(move |tx| index::take_in(tx, owner, &changed, &gone))
                .await?;
        }
        self.seen.insert(owner, now);
        Ok(())
    }
}

impl Memory {
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// The agent's visible memories nearest to the text, the best first.
    pub async fn search(&self, text: &str, limit: u32) -> Result<Vec<Entry>, StoreError> {
        self.refresh().await?;
        self.memories
            .search(Scope::Of(&self.agent), text, limit)
            .await
    }

    /// The same without global memories.
    pub async fn search_private(&self, text: &str, limit: u32) -> Result<Vec<Entry>, StoreError> {
        self.refresh().await?;
        self.memories
            .search(Scope::PrivateOf(&self.agent), text, limit)
            .await
    }

    /// The memories for a prompt, found by the message's text. With a budget of 0 there is no
    /// search.
    pub async fn recall(&self, text: &str) -> Result<Option<String>, StoreError> {
        if self.agent.memory.recall_tokens == 0 {
            return Ok(None);
        }
        self.refresh().await?;
        let (memory, text) = (self.clone(), text.to_owned());
        self.memories
            .db
            .read(move |connection| memory.recall_from_index(connection, &text))
            .await
    }

    /// As [`Memory::recall`], on a given connection. Also looks at the files, and so blocks on the
    /// disk.
    pub fn recall_on(
        &self,
        connection: &rusqlite::Connection,
        text: &str,
    ) -> rusqlite::Result<Recalled> {
        if self.agent.memory.recall_tokens == 0 {
            return Ok(Recalled::Found(None));
        }
        if !self
            .read_folders()
            .all(|(owner, folder)| self.memories.has_seen(owner, &index::look(folder)))
        {
            return Ok(Recalled::IndexIsOld);
        }
        self.recall_from_index(connection, text)
            .map(Recalled::Found)
    }

    fn recall_from_index(
        &self,
        connection: &rusqlite::Connection,
        text: &str,
    ) -> rusqlite::Result<Option<String>> {
        let mut found = search::search(
            connection,
            &Clause::of(Scope::Of(&self.agent)),
            text,
            recall::MOST_RECALLED,
        )?;
        if self.prompt_has_memory_file() {
            found.retain(|entry| {
                entry.owner != self.agent.uid || entry.path.as_deref() != Some(index::MEMORY_FILE)
            });
        }
        Ok(recall::block(
            &found,
            self.agent.uid,
            self.agent.memory.recall_tokens,
        ))
    }

    /// Whether the prompt has all of MEMORY.md, because the file is within the limit.
    fn prompt_has_memory_file(&self) -> bool {
        let seen = self.memories.seen.get(&self.agent.uid);
        let bytes = seen.and_then(|seen| seen.get(index::MEMORY_FILE).map(|stamp| stamp.bytes));
        bytes.is_some_and(|bytes| bytes <= MAX_FILE_BYTES as u64)
    }

    /// A memory of this agent, to be written. Without a visibility, the config's default counts.
    pub fn saving(
        &self,
        text: &str,
        visibility: Option<Visibility>,
        said: Provenance,
    ) -> Result<Saving, UserError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(UserError::new("There is nothing to remember."));
        }
        if text.len() > MAX_TEXT_BYTES {
            let most = MAX_TEXT_BYTES / 1024;
            return Err(UserError::new(format!(
                "A memory has at most {most} KiB. Make it shorter, or save it in parts."
            )));
        }
        let visibility = visibility.unwrap_or(self.agent.memory.default_visibility);
        let (owner, text) = (self.agent.uid, text.to_owned());
        Ok(Saving(rows::New {
            owner,
            visibility,
            path: None,
            text,
            said,
            created_at: now_ms(),
        }))
    }

    /// Saves the memory and returns its id.
    pub async fn save(&self, saving: Saving) -> Result<i64, StoreError> {
        self.memories.db.write(move |tx| saving.write(tx)).await
    }

    /// The agent's own memories among these, to be forgotten.
    pub fn forgetting(&self, entries: &[Entry]) -> Forgetting {
        let own = entries
            .iter()
            .filter(|entry| entry.owner == self.agent.uid && entry.path.is_none());
        Forgetting {
            owner: self.agent.uid,
            ids: own.map(|entry| entry.id).collect(),
        }
    }

    /// A saved memory of the agent's own.
    pub async fn own(&self, id: i64) -> Result<Option<Entry>, StoreError> {
        let owner = self.agent.uid;
        self.memories
            .db
            .read(move |connection| rows::own_by_id(connection, owner, id))
            .await
    }

    /// The agent's own saved memories with a smaller id than `before`, the newest first.
    pub async fn newest(&self, before: i64, limit: u32) -> Result<Vec<Entry>, StoreError> {
        let owner = self.agent.uid;
        self.memories
            .db
            .read(move |connection| rows::own(connection, owner, before, limit))
            .await
    }

    pub async fn stats(&self) -> Result<Stats, StoreError> {
        self.refresh().await?;
        let owner = self.agent.uid;
        let count = move |connection: &rusqlite::Connection| {
            Ok((
                rows::counts(connection, owner)?,
                rows::count_global(connection)?,
            ))
        };
        let (counts, global_of_all) = self.memories.db.read(count).await?;
        let seen = self.memories.seen.get(&owner);
        let bytes = seen.and_then(|seen| seen.get(index::MEMORY_FILE).map(|stamp| stamp.bytes));
        Ok(Stats {
            counts,
            global_of_all,
            memory_file_bytes: bytes,
        })
    }

    /// Changes MEMORY.md and returns its new size.
    pub async fn edit(&self, edit: Edit) -> Result<usize, EditError> {
        let folder = self.agent.folder.clone();
        on_disk(move || memory_file::edit(&folder, &edit, Utc::now())).await
    }

    /// Earlier versions of MEMORY.md, the newest first.
    pub async fn versions(&self) -> Result<Vec<Version>, EditError> {
        let folder = self.agent.folder.clone();
        on_disk(move || memory_file::versions(&folder).map_err(EditError::from)).await
    }

    /// Makes an earlier version MEMORY.md again.
    pub async fn restore(&self, version: String) -> Result<usize, EditError> {
        let folder = self.agent.folder.clone();
        on_disk(move || memory_file::restore(&folder, &version, Utc::now())).await
    }

    /// Adds to today's notes and returns the file's path in the agent's folder.
    pub async fn note(&self, text: String) -> Result<String, EditError> {
        let folder = self.agent.folder.clone();
        on_disk(move || notes::append(&folder, &text, Local::now())).await
    }

    /// Takes in memories from an export, as this agent's. Known memories are skipped.
    pub async fn import(&self, carried: Vec<ExportedMemory>) -> Result<Imported, StoreError> {
        let (owner, all) = (self.agent.uid, carried.len());
        let mut known = self
            .memories
            .db
            .read(move |connection| rows::marks(connection, owner))
            .await?;
        let is_new = |row: &rows::New| match known.get_mut(&rows::mark(
            row.visibility.as_str(),
            row.created_at,
            &row.text,
        )) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        };
        let new: Vec<rows::New> = carried
            .iter()
            .map(|carried| carried.as_row(owner))
            .filter(is_new)
            .collect();
        let imported = Imported {
            new: new.len(),
            known: all - new.len(),
        };
        for portion in new.chunks(IMPORT_PORTION) {
            let portion = portion.to_vec();
            let write = move |tx: &Transaction<'_>| {
                portion
                    .iter()
                    .try_for_each(|row| rows::insert(tx, row).map(drop))
            };
            self.memories.db.write(write).await?;
        }
        Ok(imported)
    }

    /// Updates the index for this agent and the agents in `read_memory_from`.
    async fn refresh(&self) -> Result<(), StoreError> {
        for (owner, folder) in self.read_folders() {
            self.memories.refresh(owner, folder).await?;
        }
        Ok(())
    }

    /// The folders of this agent and the agents in `read_memory_from`.
    fn read_folders(&self) -> impl Iterator<Item = (AgentUid, &Path)> {
        let others = self
            .agent
            .memory
            .read_from
            .iter()
            .map(|peer| (peer.uid, peer.folder.as_path()));
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
    /// A line for a list: the owner's id unless the reader is the owner, the date, and the text.
    pub fn shown_to(&self, reader: Option<&Agent>) -> String {
        recall::line(self, reader.map(|agent| agent.uid))
    }
}

impl ExportedMemory {
    fn as_row(&self, owner: AgentUid) -> rows::New {
        let (visibility, text, said) = (self.visibility, self.text.clone(), self.said.clone());
        rows::New {
            owner,
            visibility,
            path: None,
            text,
            said,
            created_at: self.created_at,
        }
    }
}

/// Writes a memory of an imported agent.
pub fn take_in(
    tx: &Transaction<'_>,
    owner: AgentUid,
    carried: &ExportedMemory,
) -> rusqlite::Result<()> {
    rows::insert(tx, &carried.as_row(owner)).map(drop)
}

/// Prefixes a guest's memory with `[guest]`, because the agent may recall the memory while working
/// for a person with more rights. A single rare word, so search is not disturbed.
pub fn told_by_a_guest(text: &str) -> String {
    match text.trim() {
        "" => String::new(),
        text => format!("[guest] {text}"),
    }
}

/// Hides all memories of a removed agent. Its files are taken in anew after a restore.
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
    rows::counts(connection, owner)
        .map(|counts| counts.private + counts.global + counts.archived + counts.pieces)
}

/// Agents in the memories, in the order of their first memory.
pub fn agents_of(carried: &[ExportedMemory]) -> Vec<AgentId> {
    let mut agents: Vec<AgentId> = Vec::new();
    for one in carried {
        if !agents.contains(&one.agent) {
            agents.push(one.agent.clone());
        }
    }
    agents
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StoreError::Failed(format!("looking at memory files: {error}")))
}

async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, EditError> + Send + 'static,
) -> Result<T, EditError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| EditError::Disk(std::io::Error::other(error)))?
}

#[cfg(test)]
mod tests;
