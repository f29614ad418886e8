//! The memory of agents: saved memories, MEMORY.md and daily notes, found by their words.
//!
//! An agent's memory is reached through a [`Memory`], made from the agent only. `scope` decides
//! about visible rows; the rows themselves are private to this module.

mod chunks;
pub(crate) mod export;
mod filter;
mod index;
mod memory_file;
mod notes;
mod recall;
mod rows;
mod saving;
mod scope;
mod search;
mod stop_words;
mod tokenizer;

use std::path::Path;
use std::sync::Arc;

use chrono::Utc;
use dashmap::DashMap;
use rusqlite::Transaction;

use super::{Agent, MAX_FILE_BYTES};
use crate::access::numbers;
use crate::clock::now_ms;
use crate::config::People;
use crate::config::Visibility;
use crate::domain::{AgentId, AgentUid, Label, Labels, Role, Said};
use crate::storage::{Db, Durability, StoreError};

use export::ExportedMemory;
pub use filter::Filter;
pub use memory_file::{Edit, EditError, MOST_VERSIONS, Version};
pub use rows::{Counts, Entry, Provenance};
pub use saving::{NotSaved, Saving};
use scope::Clause;
pub use scope::{Reader, Scope};

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

/// Memories for a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recollection {
    /// Behind a heading; empty if no memory fits.
    pub said: Vec<Said>,
    /// Where the memories come from.
    pub labels: Labels,
}

/// The result of a recall on a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Recalled {
    Found(Recollection),
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
        self.search_narrowed(scope, text, &Filter::default(), limit)
            .await
    }

    /// The memories nearest to the text among the memories that pass a filter, the best first.
    pub async fn search_narrowed(
        &self,
        scope: Scope<'_>,
        text: &str,
        filter: &Filter,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        let (clause, filter, text) = (Clause::of(scope), filter.clone(), text.to_owned());
        self.db
            .read(move |connection| search::search(connection, &clause, &filter, &text, limit))
            .await
    }

    /// The clause and the words of a search.
    pub async fn explain(&self, scope: Scope<'_>, text: &str) -> Result<String, StoreError> {
        let (clause, text) = (Clause::of(scope), text.to_owned());
        let words = self
            .db
            .read(move |connection| search::explain(connection, &clause, &text))
            .await?;
        Ok(format!("searched: {}\nfor: {words}", scope.in_words()))
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

    /// The memories visible to the reader nearest to the text, the best first.
    pub async fn search(
        &self,
        reader: &Reader,
        text: &str,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        self.search_narrowed(reader, text, &Filter::default(), limit)
            .await
    }

    /// The memories visible to the reader and past a filter that are nearest to the text, the best
    /// first.
    pub async fn search_narrowed(
        &self,
        reader: &Reader,
        text: &str,
        filter: &Filter,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        self.refresh().await?;
        self.memories
            .search_narrowed(Scope::Of(&self.agent, reader), text, filter, limit)
            .await
    }

    /// The memories of [`Memory::search_narrowed`] without global memories.
    pub async fn search_private(
        &self,
        reader: &Reader,
        text: &str,
        filter: &Filter,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        self.refresh().await?;
        self.memories
            .search_narrowed(Scope::PrivateOf(&self.agent, reader), text, filter, limit)
            .await
    }

    /// The memories for a prompt, found by the message's text. With a budget of 0 there is no
    /// search.
    pub async fn recall(&self, reader: &Reader, text: &str) -> Result<Recollection, StoreError> {
        if self.agent.memory.recall_tokens == 0 {
            return Ok(Recollection::default());
        }
        self.refresh().await?;
        let (memory, reader, text) = (self.clone(), reader.clone(), text.to_owned());
        self.memories
            .db
            .read(move |connection| memory.recall_from_index(connection, &reader, &text))
            .await
    }

    /// As [`Memory::recall`], on a given connection. Also looks at the files, and so blocks on the
    /// disk.
    pub fn recall_on(
        &self,
        connection: &rusqlite::Connection,
        reader: &Reader,
        text: &str,
    ) -> rusqlite::Result<Recalled> {
        if self.agent.memory.recall_tokens == 0 {
            return Ok(Recalled::Found(Recollection::default()));
        }
        if !self
            .read_folders()
            .all(|(owner, folder)| self.memories.has_seen(owner, &index::look(folder)))
        {
            return Ok(Recalled::IndexIsOld);
        }
        self.recall_from_index(connection, reader, text)
            .map(Recalled::Found)
    }

    fn recall_from_index(
        &self,
        connection: &rusqlite::Connection,
        reader: &Reader,
        text: &str,
    ) -> rusqlite::Result<Recollection> {
        let mut found = search::search(
            connection,
            &Clause::of(Scope::RecalledBy(&self.agent, reader)),
            &Filter::of_recall(&self.agent.memory.recall_filter, now_ms()),
            text,
            recall::MOST_RECALLED,
        )?;
        if self.prompt_has_memory_file() {
            found.retain(|entry| {
                entry.owner != self.agent.uid || entry.path.as_deref() != Some(index::MEMORY_FILE)
            });
        }
        Ok(recall::block(&found, &self.agent))
    }

    /// Memories as an agent reads them, with the numbers of people.
    pub async fn told(
        &self,
        found: &[Entry],
        people: &Arc<People>,
    ) -> Result<Vec<Said>, StoreError> {
        let (mut told, people): (Vec<Said>, _) = (
            found
                .iter()
                .map(|entry| recall::said(entry, &self.agent))
                .collect(),
            people.clone(),
        );
        self.memories
            .db
            .read(move |connection| {
                numbers::fill_in(connection, &people, told.iter_mut())?;
                Ok(told)
            })
            .await
    }

    /// Whether the prompt has all of MEMORY.md, because the file is within the limit.
    fn prompt_has_memory_file(&self) -> bool {
        let seen = self.memories.seen.get(&self.agent.uid);
        let bytes = seen.and_then(|seen| seen.get(index::MEMORY_FILE).map(|stamp| stamp.bytes));
        bytes.is_some_and(|bytes| bytes <= MAX_FILE_BYTES as u64)
    }

    /// A memory of this agent, to be written. Without a visibility, the place and the config
    /// decide.
    pub fn saving(
        &self,
        reader: &Reader,
        text: &str,
        visibility: Option<Visibility>,
    ) -> Result<Saving, NotSaved> {
        saving::prepare(&self.agent, reader, text, visibility)
    }

    /// Whether the memory may be written, or its person has too many.
    pub async fn room_for(&self, saving: &Saving) -> Result<Result<(), NotSaved>, StoreError> {
        let asked = saving.clone();
        let is_over = self
            .memories
            .db
            .read(move |connection| asked.is_over(connection))
            .await?;
        Ok(if is_over { Err(saving.full()) } else { Ok(()) })
    }

    /// Saves the memory and returns its id.
    pub async fn save(&self, saving: Saving) -> Result<Result<i64, NotSaved>, StoreError> {
        let full = saving.full();
        let saved = self.memories.db.write(move |tx| saving.write(tx)).await?;
        Ok(saved.ok_or(full))
    }

    /// Whether turns for people of this role may write texts for the prompts of all people:
    /// MEMORY.md and daily notes.
    pub fn may_publish(agent: &Agent, role: Role) -> bool {
        saving::may_publish(agent.memory.default_visibility, role, Visibility::Private)
    }

    /// Whether the reader may have a memory forgotten: an owner every memory of the agent, others
    /// their own, guests only in a private chat.
    pub fn may_forget(&self, reader: &Reader, entry: &Entry) -> bool {
        let is_own = entry.owner == self.agent.uid && entry.path.is_none();
        let said = entry.said.person.as_ref();
        let is_by_reader = said.is_some_and(|person| reader.ids().contains(person));
        let is_known = reader.role() >= Role::Member || reader.is_private();
        is_own && (reader.role() == Role::Owner || (is_by_reader && is_known))
    }

    /// The memories among these that the reader may have forgotten.
    pub fn forgetting(&self, reader: &Reader, entries: &[Entry]) -> Forgetting {
        let own = entries
            .iter()
            .filter(|entry| self.may_forget(reader, entry));
        Forgetting {
            owner: self.agent.uid,
            ids: own.map(|entry| entry.id).collect(),
        }
    }

    /// A saved memory of the agent's own that is visible to the reader.
    pub async fn own(&self, reader: &Reader, id: i64) -> Result<Option<Entry>, StoreError> {
        let (owner, clause) = (self.agent.uid, Clause::of(Scope::Of(&self.agent, reader)));
        self.memories
            .db
            .read(move |connection| rows::own_by_id(connection, owner, &clause, id))
            .await
    }

    /// The agent's own saved memories as the reader's place may see them, the newest first. Guests
    /// see no memory without a person or place, because some of these come from private chats.
    pub async fn newest(&self, reader: &Reader, limit: u32) -> Result<Vec<Entry>, StoreError> {
        let owner = self.agent.uid;
        let kinds = match reader.role() {
            Role::Guest => &[Visibility::Person, Visibility::Place][..],
            Role::Member | Role::Admin | Role::Owner => Visibility::ALL,
        };
        let clause = Clause::of(Scope::RecalledBy(&self.agent, reader));
        self.memories
            .db
            .read(move |connection| rows::own(connection, owner, &clause, kinds, limit))
            .await
    }

    /// All saved memories of the agent with a smaller id than `before`, the newest first. For
    /// exports by the operator.
    pub async fn everything(&self, before: i64, limit: u32) -> Result<Vec<Entry>, StoreError> {
        let owner = self.agent.uid;
        self.memories
            .db
            .read(move |connection| rows::everything(connection, owner, before, limit))
            .await
    }

    /// The size of the memory as the reader sees it.
    pub async fn stats(&self, reader: &Reader) -> Result<Stats, StoreError> {
        let (owner, clause) = (self.agent.uid, Clause::of(Scope::Of(&self.agent, reader)));
        let stats = self.stats_of_all().await?;
        let (person, place) = self
            .memories
            .db
            .read(move |connection| rows::count_apart(connection, owner, &clause))
            .await?;
        let counts = Counts {
            person,
            place,
            ..stats.counts
        };
        Ok(Stats { counts, ..stats })
    }

    /// The size of the whole memory, for the operator.
    pub async fn stats_of_all(&self) -> Result<Stats, StoreError> {
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
        let (folder, edit) = (self.agent.folder.clone(), cleaned(edit));
        on_disk(move || memory_file::edit(&folder, &edit, Utc::now())).await
    }

    /// Earlier versions of MEMORY.md, the newest first.
    pub async fn versions(&self) -> Result<Vec<Version>, EditError> {
        let folder = self.agent.folder.clone();
        on_disk(move || memory_file::versions(&folder).map_err(EditError::from)).await
    }

    /// The text of an earlier version of MEMORY.md.
    pub async fn version(&self, version: String) -> Result<String, EditError> {
        let folder = self.agent.folder.clone();
        on_disk(move || memory_file::version(&folder, &version)).await
    }

    /// Makes an earlier version MEMORY.md again.
    pub async fn restore(&self, version: String) -> Result<usize, EditError> {
        let folder = self.agent.folder.clone();
        on_disk(move || memory_file::restore(&folder, &version, Utc::now())).await
    }

    /// Adds to today's notes and returns the file's path in the agent's folder.
    pub async fn note(&self, text: String) -> Result<String, EditError> {
        let folder = self.agent.folder.clone();
        let text = saving::clean(&text);
        let now = self.agent.zone.at(now_ms());
        on_disk(move || notes::append(&folder, &text, now)).await
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
        rows::New {
            owner,
            visibility: self.visibility,
            path: None,
            text: saving::clean(&self.text),
            said: self.said.clone(),
            labels: Labels::from(Label::Imported),
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
    rows::counts(connection, owner).map(|counts| {
        counts.person
            + counts.place
            + counts.private
            + counts.global
            + counts.archived
            + counts.pieces
    })
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

/// The new words without characters that drive a terminal. The old words must stay as they are, to
/// be found.
fn cleaned(edit: Edit) -> Edit {
    match edit {
        Edit::Add(text) => Edit::Add(saving::clean(&text)),
        Edit::Replace { old, new } => Edit::Replace {
            old,
            new: saving::clean(&new),
        },
        Edit::Remove(text) => Edit::Remove(text),
        Edit::Whole(text) => Edit::Whole(saving::clean(&text)),
    }
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
