//! Agents and their memories: new agents come whole, agents of an earlier import get the missing
//! things.

use std::collections::HashSet;

use rusqlite::Transaction;

use super::super::found::{FoundAgent, FoundMemory};
use super::super::plan::Target;
use super::super::report::{Item, Kind, State};
use super::files::{Stamped, stage};
use super::{Import, MovingError, Placed, blocking, counted, failed, some};
use crate::agents::memory;
use crate::agents::memory::Provenance;
use crate::agents::memory::export::ExportedMemory;
use crate::clock::now_ms;
use crate::config::{Visibility, WhoWords};
use crate::domain::{AgentId, AgentUid, Role};
use crate::records::audit::{self, Action, Change};
use crate::records::imports::{self, Carried, Origin, Row};
use crate::tenants::{self, Newcomer, WriteRows};

/// The longest memory.
const MAX_MEMORY_BYTES: usize = 8 * 1024;

impl Import<'_> {
    pub(super) async fn agent(
        &mut self,
        mut agent: FoundAgent,
        (target, why): (Target, Option<String>),
        is_reached: bool,
    ) -> Result<Option<Placed>, MovingError> {
        let source_id = agent.source_id.clone();
        let item = Item::new(Kind::Agent, &source_id, State::New);
        let conversations = std::mem::take(&mut agent.conversations);
        let (id, uid) = match target {
            Target::None(why) => {
                let item = item.because(why);
                self.items.push(Item {
                    state: State::Skipped,
                    ..item
                });
                return Ok(None);
            }
            Target::New(id) => {
                let moved = self.newcomer(agent, (id.clone(), why), is_reached).await?;
                match moved {
                    None => return Ok(None),
                    Some(uid) => (id, uid),
                }
            }
            Target::Existing { id, uid } => {
                self.more_of(agent, (&id, uid)).await?;
                (id, Some(uid))
            }
        };
        Ok(Some(Placed {
            id,
            uid,
            conversations,
            source_id,
        }))
    }

    /// Moves a new agent in. None after a failure; no uid in a look.
    async fn newcomer(
        &mut self,
        agent: FoundAgent,
        (id, why): (AgentId, Option<String>),
        is_reached: bool,
    ) -> Result<Option<Option<AgentUid>>, MovingError> {
        let item = Item::new(Kind::Agent, &agent.source_id, State::New);
        let staged = self.source.staging.fresh("agent");
        let (files, into, source) = (agent.files.clone(), staged.clone(), self.source.clone());
        let stamps = blocking(move || stage(&source, &files, &into)).await?;
        let (skills, others) = stamps.iter().fold((HashSet::new(), 0), |counted, file| {
            let (mut skills, others) = counted;
            match file.target.strip_prefix("skills") {
                Ok(skill) => {
                    skills.extend(skill.iter().next().map(ToOwned::to_owned));
                    (skills, others)
                }
                Err(_) => (skills, others + 1),
            }
        });
        let memories = self.fit_memories(&agent.source_id, agent.memories);
        let mut table = agent.table;
        if !is_reached && table.who.is_none() {
            table.who = Some(WhoWords::One(Role::Owner.as_str().to_owned()));
        }
        let mut remarks: Vec<String> = why.into_iter().collect();
        remarks.push(counted(&[
            (others, "file", "files"),
            (skills.len(), "skill", "skills"),
            (memories.len(), "memory", "memories"),
        ]));
        let arrival = Arrival {
            origin: self.origin.clone(),
            source_id: agent.source_id.clone(),
            id: id.clone(),
            memories,
            files: stamps,
        };
        let rows: WriteRows = Box::new(move |tx, uid| arrival.write(tx, uid));
        let newcomer = Newcomer {
            id: id.clone(),
            table,
            files: staged,
            rows: (!self.wish.only_look).then_some(rows),
        };
        let moved = match tenants::move_in(self.site, newcomer).await {
            Ok(moved) => moved,
            Err(error) => {
                self.items.push(failed(item.to(id), &error.to_string()));
                return Ok(None);
            }
        };
        if !moved.left_out.is_empty() {
            let keys = moved.left_out.join(", ");
            remarks.push(format!("set in [agents.{id}] what it needs of: {keys}"));
        }
        if !moved.tightened.is_empty() {
            let limits = moved.tightened.join(", ");
            remarks.push(format!(
                "it may only look, because these cannot be kept: {limits}"
            ));
        }
        let mut item = item.to(&id).because(remarks.join("; "));
        item.state = self.is_new();
        self.items.push(item);
        if agent.is_default {
            let how = format!(
                "it answers where nothing else decides; `parlor agent default {id}` makes it so here"
            );
            let item = Item::new(Kind::Setting, &agent.source_id, State::Manual);
            self.items.push(item.because(how));
        }
        Ok(Some((!self.wish.only_look).then_some(moved.uid)))
    }

    /// Drops unusable memories, and closes memories for all agents.
    fn fit_memories(&mut self, source_id: &str, memories: Vec<FoundMemory>) -> Vec<FoundMemory> {
        let mut closed = 0;
        let mut fitting = Vec::new();
        for mut memory in memories {
            let text = memory.text.trim();
            if text.is_empty() || text.len() > MAX_MEMORY_BYTES {
                let why = match text.is_empty() {
                    true => "it has no words".to_owned(),
                    false => format!("a memory has at most {} KiB", MAX_MEMORY_BYTES / 1024),
                };
                let name = format!("{source_id}: {}", memory.source_id);
                self.items.push(Item::left(Kind::Memory, name, why));
                continue;
            }
            memory.text = text.to_owned();
            if memory.visibility == Visibility::Global && !self.wish.keep_global {
                memory.visibility = Visibility::Private;
                closed += 1;
            }
            fitting.push(memory);
        }
        if closed > 0 {
            let item = Item::new(Kind::Memory, source_id, State::Manual);
            self.items.push(item.because(format!(
                "{} seen by all agents there and by this one alone here; --global keeps that",
                some(closed, "memory was", "memories were")
            )));
        }
        fitting
    }

    /// Adds to an existing agent.
    async fn more_of(
        &mut self,
        agent: FoundAgent,
        (id, uid): (&AgentId, AgentUid),
    ) -> Result<(), MovingError> {
        let source_id = agent.source_id.clone();
        let was_carried = self
            .known
            .carried
            .contains_key(&(Carried::Agent, source_id.clone()));
        let item = Item::new(Kind::Agent, &source_id, State::Same).to(id);
        if was_carried {
            self.items.push(item);
        } else {
            self.items.push(Item {
                state: self.is_new(),
                ..item.because(format!(
                    "{id} is here already, and gets what it does not have"
                ))
            });
            self.keep_settings(&agent, id);
            let (origin, by) = (self.origin.clone(), self.site.by.clone());
            let (key, id) = (source_id.clone(), id.clone());
            let note = move |tx: &Transaction<'_>| {
                let change = Change::new(Action::AgentImport).of(&id);
                audit::note(tx, &by, &change, now_ms())?;
                let row = Row {
                    agent: Some(uid),
                    target: id.to_string(),
                    stamp: String::new(),
                };
                imports::keep(tx, &origin, (Carried::Agent, &key), &row, now_ms())
            };
            if !self.wish.only_look {
                self.site.db.write(note).await?;
            }
        }
        for file in &agent.files {
            self.file(&source_id, file, (id, uid)).await?;
        }
        self.memories(&source_id, agent.memories, (id, uid)).await
    }

    /// The table of an existing agent is its operator's.
    fn keep_settings(&mut self, agent: &FoundAgent, id: &AgentId) {
        let written = agent.table.written().to_string();
        for line in written.lines().filter(|line| !line.trim().is_empty()) {
            let item = Item::new(
                Kind::Setting,
                format!("{}: {line}", agent.source_id),
                State::Manual,
            );
            self.items
                .push(item.because(format!("write it into [agents.{id}] if you want it")));
        }
    }

    async fn memories(
        &mut self,
        source_id: &str,
        memories: Vec<FoundMemory>,
        (id, uid): (&AgentId, AgentUid),
    ) -> Result<(), MovingError> {
        if memories.is_empty() {
            return Ok(());
        }
        let (same, new): (Vec<_>, Vec<_>) = memories.into_iter().partition(|memory| {
            let key = (Carried::Memory, memory.source_id.clone());
            self.known.carried.contains_key(&key)
        });
        let new = self.fit_memories(source_id, new);
        let said = |count, state| {
            let item = Item::new(Kind::Memory, source_id, state).to(id);
            item.because(counted(&[(count, "memory", "memories")]))
        };
        if !same.is_empty() {
            self.items.push(said(same.len(), State::Same));
        }
        if new.is_empty() {
            return Ok(());
        }
        let item = said(new.len(), self.is_new());
        if !self.wish.only_look {
            let (origin, id) = (self.origin.clone(), id.clone());
            let write = move |tx: &Transaction<'_>| write_memories(tx, &origin, &new, (&id, uid));
            self.site.db.write(write).await?;
        }
        self.items.push(item);
        Ok(())
    }
}

/// The rows of a new agent.
struct Arrival {
    origin: Origin,
    source_id: String,
    id: AgentId,
    memories: Vec<FoundMemory>,
    files: Vec<Stamped>,
}

impl Arrival {
    fn write(&self, tx: &Transaction<'_>, uid: AgentUid) -> rusqlite::Result<()> {
        let row = |target: String, stamp: &str| Row {
            agent: Some(uid),
            target,
            stamp: stamp.to_owned(),
        };
        let keep = |kind, key: &str, row: Row| {
            imports::keep(tx, &self.origin, (kind, key), &row, now_ms())
        };
        keep(
            Carried::Agent,
            &self.source_id,
            row(self.id.to_string(), ""),
        )?;
        for file in &self.files {
            let key = format!("{}/{}", self.source_id, file.target.display());
            let target = file.target.display().to_string();
            keep(Carried::File, &key, row(target, &file.digest))?;
        }
        write_memories(tx, &self.origin, &self.memories, (&self.id, uid))
    }
}

fn write_memories(
    tx: &Transaction<'_>,
    origin: &Origin,
    memories: &[FoundMemory],
    (id, uid): (&AgentId, AgentUid),
) -> rusqlite::Result<()> {
    let now = now_ms();
    for found in memories {
        let carried = ExportedMemory {
            agent: id.clone(),
            visibility: found.visibility,
            text: found.text.clone(),
            said: Provenance::default(),
            created_at: found.created_at.clamp(0, now),
        };
        memory::take_in(tx, uid, &carried)?;
        let row = Row {
            agent: Some(uid),
            target: id.to_string(),
            stamp: String::new(),
        };
        imports::keep(tx, origin, (Carried::Memory, &found.source_id), &row, now)?;
    }
    Ok(())
}
