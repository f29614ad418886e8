//! Carries a plan out, or only looks. Each agent comes whole or not at all; each conversation and each
//! person is a transaction of its own. A failure is told in the report, and the rest goes on.

use std::collections::{HashMap, HashSet};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, Transaction};
use secrecy::ExposeSecret;
use uuid::Uuid;

use super::found::{
    Content, Found, FoundAgent, FoundConversation, FoundFile, FoundMemory, FoundPerson, FoundSecret,
};
use super::plan::{self, FileStep, Goes, Known, Ours, PlannedRule, Routes, Target};
use super::report::{Item, Kind, MOST_ITEMS, Report, Running, State};
use super::source::{MAX_FILE_BYTES, Source};
use super::spool::{Kept, digest};
use super::{MovingError, Wish, blocking, disk, running, some};
use crate::access::people;
use crate::agents::memory::Provenance;
use crate::agents::memory::export::ExportedMemory;
use crate::agents::{agent_rows, is_as_shipped, memory};
use crate::clock::now_ms;
use crate::config::{Visibility, WhoWords, edit::NewRule};
use crate::domain::{AgentId, AgentUid, PersonId, Role, SessionKey};
use crate::records::audit::{self, Action, Actor, Change};
use crate::records::imports::{self, Carried, Origin, Row};
use crate::records::transcript::{self, ArrivesIn, SummedUp};
use crate::routing::pins;
use crate::tenants::{self, Additions, Newcomer, Site, Trial, WriteRows};

/// The longest memory.
const MAX_MEMORY_BYTES: usize = 8 * 1024;
/// Members looked at.
const MOST_MEMBERS: u32 = 100_000;

pub(super) async fn run(
    site: &Site,
    wish: &Wish,
    source: Arc<Source>,
    found: Found,
) -> Result<Report, MovingError> {
    let folder = source.tree.path().to_owned();
    let origin = Origin {
        system: wish.system.as_str(),
        folder: folder.display().to_string(),
    };
    let spool = source.spooled().map_err(disk(&folder))?;
    let known = load(site, &origin).await?;
    let looked_at = folder.clone();
    let running = blocking(move || Ok(running::programs(&looked_at))).await?;
    let mut import = Import {
        site,
        wish,
        source,
        origin,
        spool,
        known,
        items: Vec::new(),
    };
    import.all(found, &running).await?;
    let mut items = import.source.take_notes();
    items.splice(0..0, import.items);
    let more = items.len().saturating_sub(MOST_ITEMS);
    items.truncate(MOST_ITEMS);
    Ok(Report {
        system: wish.system,
        source: import.origin.folder,
        running,
        carried_out: !wish.only_look,
        items,
        more,
    })
}

async fn load(site: &Site, origin: &Origin) -> Result<Known, MovingError> {
    let (registry, config) = tenants::known(site).await?;
    let wanted = origin.clone();
    let read = move |connection: &Connection| {
        let carried = imports::load(connection, &wanted)?;
        let members = people::members(connection, MOST_MEMBERS)?;
        let pinned = pins::all(connection)?;
        Ok((carried, members, pinned))
    };
    let (carried, members, pinned) = site.db.read(read).await?;
    let mut known = Known {
        carried,
        agents: registry,
        members: members.into_iter().map(|member| member.person).collect(),
        pinned: pinned.into_iter().map(|(place, _)| place).collect(),
        ..Known::default()
    };
    known.members.extend(config.access.owners.iter().cloned());
    let named = config.access.people.all().iter();
    let named = named.flat_map(|person| person.ids.iter().cloned());
    known.members.extend(named);
    known.taken = config.agents.iter().map(|spec| spec.id.clone()).collect();
    known.taken.extend(known.agents.values().cloned());
    let folders = tenants::discovered(&config, &site.home);
    known.taken.extend(folders);
    for binding in &config.bindings {
        let has_filters = binding.users.is_some()
            || binding.roles.is_some()
            || binding.name.is_some()
            || binding.tag.is_some();
        if !has_filters {
            let (pattern, agent) = (&binding.pattern.value, &binding.agent.value);
            known.bindings.insert(pattern.clone(), agent.clone());
        }
    }
    Ok(known)
}

struct Import<'a> {
    site: &'a Site,
    wish: &'a Wish,
    source: Arc<Source>,
    origin: Origin,
    spool: Kept,
    known: Known,
    items: Vec<Item>,
}

/// An agent that is here now, or would be.
struct Placed {
    id: AgentId,
    /// Absent in a look at a new agent.
    uid: Option<AgentUid>,
    conversations: Vec<FoundConversation>,
    source_id: String,
}

impl Import<'_> {
    async fn all(&mut self, found: Found, running: &[Running]) -> Result<(), MovingError> {
        self.secrets(&found.secrets, running).await?;
        let targets = plan::targets(&found.agents, &self.known, &self.wish.names);
        let reached = plan::reached_by_members(&found);
        let by_source = found.agents.iter().zip(&targets);
        let ids = by_source.filter_map(|(agent, (target, _))| {
            Some((agent.source_id.clone(), target.id()?.clone()))
        });
        let mut ids: HashMap<String, AgentId> = ids.collect();
        let Found {
            agents,
            bindings,
            people,
            ..
        } = found;
        let mut placed = Vec::new();
        for (agent, (target, why)) in agents.into_iter().zip(targets) {
            let source_id = agent.source_id.clone();
            let is_reached = reached.contains(&source_id);
            let here = self.agent(agent, (target, why), is_reached).await?;
            if here.is_none() {
                ids.remove(&source_id);
            }
            placed.extend(here);
        }
        let found = Found {
            bindings,
            ..Found::default()
        };
        let rules = plan::rules(&found, &ids, &self.known);
        let trial = self.rules(&found, rules, &ids).await?;
        for person in &people {
            self.person(person).await?;
        }
        for placed in placed {
            self.conversations(placed, &trial).await?;
        }
        Ok(())
    }

    fn is_new(&self) -> State {
        match self.wish.only_look {
            true => State::New,
            false => State::Done,
        }
    }

    /// Writes tokens and keys, each with the section that uses it.
    async fn secrets(
        &mut self,
        secrets: &[FoundSecret],
        running: &[Running],
    ) -> Result<(), MovingError> {
        for secret in secrets {
            let section = secret.section.path.join(".");
            let target = format!("secrets/{}", secret.name);
            let item = Item::new(Kind::Secret, &secret.source, State::New).to(&target);
            let manual = |why: String| Item {
                target: None,
                ..Item::new(Kind::Secret, &secret.source, State::Manual).because(why)
            };
            let Some(value) = secret.value.as_ref().filter(|_| self.wish.with_secrets) else {
                let with = match secret.value {
                    Some(_) => ", or import with --with-secrets",
                    None => "",
                };
                self.items.push(manual(format!(
                    "set {} and name it in [{section}]{with}",
                    secret.variable
                )));
                continue;
            };
            let is_bot = secret.section.path.len() == 1;
            if let Some(program) = running.first().filter(|_| is_bot) {
                self.items.push(manual(format!(
                    "{} (pid {}) uses this bot; stop it and import again",
                    program.name, program.pid
                )));
                continue;
            }
            let additions = Additions {
                sections: vec![secret.section.clone()],
                ..Additions::default()
            };
            let path = self.site.home.join(&target);
            if fs::read_to_string(&path).is_ok_and(|ours| ours.trim() == value.expose_secret()) {
                self.items.push(Item {
                    state: State::Same,
                    ..item
                });
                continue;
            }
            if fs::symlink_metadata(&path).is_ok() {
                let item = item.because("another secret is in that file");
                self.items.push(Item {
                    state: State::Conflict,
                    ..item
                });
                continue;
            }
            let written = match self.wish.only_look {
                true => Ok(()),
                false => write_new(&path, value.expose_secret().as_bytes()),
            };
            if let Err(error) = written {
                self.items.push(failed(item, &error.to_string()));
                continue;
            }
            let tried = match self.wish.only_look {
                true => tenants::try_out(self.site, additions).await?,
                false => tenants::add_rules(self.site, additions).await?,
            };
            let item = Item {
                state: self.is_new(),
                ..item
            };
            self.items.push(match tried.sections.first() {
                Some(Err(why)) => item.because(format!("[{section}] was left as it is: {why}")),
                _ => item.because(format!("used by [{section}]")),
            });
        }
        Ok(())
    }

    async fn agent(
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

    /// Has a new agent move in. None if that failed; no uid in a look.
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
            remarks.push(format!("it may only look, because these cannot be kept: {limits}"));
        }
        let mut item = item.to(&id).because(remarks.join("; "));
        item.state = self.is_new();
        self.items.push(item);
        if agent.is_default {
            let how = format!("it answers where nothing else decides; `parlor agent default {id}` makes it so here");
            let item = Item::new(Kind::Setting, &agent.source_id, State::Manual);
            self.items.push(item.because(how));
        }
        Ok(Some((!self.wish.only_look).then_some(moved.uid)))
    }

    /// Drops memories that cannot be kept, and closes those that were for all agents.
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

    /// Adds to an agent that is here.
    async fn more_of(
        &mut self,
        agent: FoundAgent,
        (id, uid): (&AgentId, AgentUid),
    ) -> Result<(), MovingError> {
        let source_id = agent.source_id.clone();
        let was_carried = self.known.carried.contains_key(&(Carried::Agent, source_id.clone()));
        let item = Item::new(Kind::Agent, &source_id, State::Same).to(id);
        if was_carried {
            self.items.push(item);
        } else {
            self.items.push(Item {
                state: self.is_new(),
                ..item.because(format!("{id} is here already, and gets what it does not have"))
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

    /// The table of an agent that is here is its operator's.
    fn keep_settings(&mut self, agent: &FoundAgent, id: &AgentId) {
        let written = agent.table.written().to_string();
        for line in written.lines().filter(|line| !line.trim().is_empty()) {
            let item = Item::new(Kind::Setting, format!("{}: {line}", agent.source_id), State::Manual);
            self.items
                .push(item.because(format!("write it into [agents.{id}] if you want it")));
        }
    }

    async fn file(
        &mut self,
        source_id: &str,
        file: &FoundFile,
        (id, uid): (&AgentId, AgentUid),
    ) -> Result<(), MovingError> {
        let folder = self.site.home.join("agents").join(id.as_str());
        let key = format!("{source_id}/{}", file.target.display());
        let item = Item::new(file.kind, shown(file), State::New)
            .to(Path::new("agents").join(id.as_str()).join(&file.target).display().to_string());
        let bytes = match bytes_of(file) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.items.push(failed(item, &error.to_string()));
                return Ok(());
            }
        };
        let theirs = digest(&bytes);
        let ours = ours(&folder.join(&file.target), id, &file.target);
        let carried = self.known.carried.get(&(Carried::File, key.clone()));
        let step = plan::file_step(&theirs, ours.as_ref(), carried);
        let (target, item) = match step {
            FileStep::Same(why) => {
                let item = Item {
                    state: State::Same,
                    ..item
                };
                self.items.push(match why {
                    "" => item,
                    why => item.because(why),
                });
                return Ok(());
            }
            FileStep::Write => (file.target.clone(), item),
            FileStep::Beside => {
                let beside = plan::beside(self.wish.system).join(file_name(&file.target));
                let why = format!("yours stays; this one goes to {}", beside.display());
                let item = Item {
                    state: State::Conflict,
                    ..item.because(why)
                };
                (beside, item)
            }
        };
        if self.wish.only_look {
            self.items.push(item);
            return Ok(());
        }
        let path = folder.join(&target);
        let row = Row {
            agent: Some(uid),
            target: target.display().to_string(),
            stamp: theirs,
        };
        let written = blocking(move || Ok(replace(&path, &bytes))).await?;
        if let Err(error) = written {
            self.items.push(failed(item, &error.to_string()));
            return Ok(());
        }
        let (origin, now) = (self.origin.clone(), now_ms());
        let keep = move |tx: &Transaction<'_>| {
            imports::keep(tx, &origin, (Carried::File, &key), &row, now)
        };
        self.site.db.write(keep).await?;
        let state = match item.state {
            State::New => State::Done,
            state => state,
        };
        self.items.push(Item { state, ..item });
        Ok(())
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

    /// Writes the rules that fit, and returns the config with them.
    async fn rules(
        &mut self,
        found: &Found,
        planned: Vec<PlannedRule>,
        ids: &HashMap<String, AgentId>,
    ) -> Result<Trial, MovingError> {
        let rules = planned.iter().filter_map(|planned| planned.rule.clone());
        let additions = Additions {
            agents: ids.values().cloned().collect(),
            rules: rules.collect(),
            ..Additions::default()
        };
        let trial = match self.wish.only_look {
            true => tenants::try_out(self.site, additions).await?,
            false => tenants::add_rules(self.site, additions).await?,
        };
        let mut fits = trial.rules.iter();
        let mut written: Vec<(String, NewRule)> = Vec::new();
        for (planned, binding) in planned.into_iter().zip(&found.bindings) {
            let PlannedRule { mut item, rule } = planned;
            if let Some(rule) = rule {
                match fits.next() {
                    Some(Ok(())) => {
                        item.state = self.is_new();
                        written.push((plan::rule_id(binding), rule));
                    }
                    Some(Err(why)) => {
                        item.state = State::Conflict;
                        item = item.because(why);
                    }
                    None => {}
                }
            }
            self.items.push(item);
        }
        if !self.wish.only_look && !written.is_empty() {
            let (origin, by) = (self.origin.clone(), self.site.by.clone());
            let note = move |tx: &Transaction<'_>| note_rules(tx, &origin, &by, &written);
            self.site.db.write(note).await?;
        }
        Ok(trial)
    }

    async fn person(&mut self, person: &FoundPerson) -> Result<(), MovingError> {
        let id = person.id.clone();
        let item = Item::new(Kind::Person, id.to_string(), State::New).to("member");
        let key = id.to_string();
        let was_carried = self.known.carried.contains_key(&(Carried::Person, key.clone()));
        let owner = person.was_owner && !self.known.members.contains(&id);
        if owner {
            let why = "an owner there; write the id into [access] owners if that is right here";
            let item = Item::new(Kind::Setting, id.to_string(), State::Manual);
            self.items.push(item.because(why));
        }
        if was_carried || self.known.members.contains(&id) {
            self.items.push(Item {
                state: State::Same,
                ..item
            });
            return Ok(());
        }
        if self.wish.only_look {
            self.items.push(item);
            return Ok(());
        }
        let (origin, by) = (self.origin.clone(), self.site.by.clone());
        let name = person.name.clone().unwrap_or_default();
        let write = move |tx: &Transaction<'_>| {
            let now = now_ms();
            let is_in = people::bring_in(tx, &id, &name, "import", now)?;
            if is_in {
                let change = Change::new(Action::Pair).about(&id).to("member");
                audit::note(tx, &by, &change, now)?;
                let row = Row {
                    agent: None,
                    target: id.to_string(),
                    stamp: String::new(),
                };
                imports::keep(tx, &origin, (Carried::Person, &key), &row, now)?;
            }
            Ok(is_in)
        };
        let is_in = self.site.db.write(write).await?;
        self.items.push(match is_in {
            true => Item {
                state: State::Done,
                ..item
            },
            false => Item {
                state: State::Skipped,
                ..item.because("this person was turned away here")
            },
        });
        self.known.members.insert(person.id.clone());
        Ok(())
    }

    async fn conversations(&mut self, placed: Placed, trial: &Trial) -> Result<(), MovingError> {
        let rules = trial.config.bindings.iter();
        let people = rules.filter_map(|rule| rule.users.as_ref()?.value.first().cloned());
        let people: Vec<PersonId> = people.collect();
        for conversation in &placed.conversations {
            let routes = Routes {
                table: &trial.table,
                group_sessions: trial.config.group_sessions,
                pinned: &self.known.pinned,
                people: &people,
            };
            let id = format!("{}/{}", placed.source_id, conversation.source_id);
            let carried = self.known.carried.get(&(Carried::Conversation, id.clone()));
            let goes = match carried {
                Some(row) => self.goes_again(conversation, row)?,
                None => match &conversation.place {
                    Ok(place) => routes.goes(place, &placed.id),
                    Err(why) => Goes::Archive(why),
                },
            };
            self.conversation(conversation, (id, goes), &placed).await?;
        }
        Ok(())
    }

    /// Where a conversation goes that was carried before, as far as it was then.
    fn goes_again(
        &self,
        conversation: &FoundConversation,
        row: &Row,
    ) -> Result<Goes, MovingError> {
        let count = row.stamp.split(' ').next().unwrap_or_default();
        let count: usize = count.parse().unwrap_or(0);
        let spooled = conversation.messages;
        let stamp = |first| {
            let stamp = self.spool.stamp(spooled, first);
            stamp.map_err(disk(Path::new("messages")))
        };
        if spooled.count < count || stamp(count)? != row.stamp {
            return Ok(Goes::Nowhere("it was changed there; here it stays as it was carried"));
        }
        Ok(match row.target.parse::<SessionKey>() {
            _ if spooled.count == count => Goes::Nowhere(""),
            Ok(place) => Goes::More { place, from: count },
            Err(_) => Goes::Nowhere("it went on there; here it stays as it was carried"),
        })
    }

    async fn conversation(
        &mut self,
        conversation: &FoundConversation,
        (id, goes): (String, Goes),
        placed: &Placed,
    ) -> Result<(), MovingError> {
        let mut item = Item::new(Kind::Conversation, &conversation.name, State::New);
        let messages = |count| counted(&[(count, "message", "messages")]);
        let count = conversation.messages.count;
        item = match &goes {
            Goes::Place(place) => item.to(place.to_string()).because(messages(count)),
            Goes::More { place, from } => {
                let more = format!("{} more", messages(count - from));
                item.to(place.to_string()).because(more)
            }
            Goes::Archive(why) => {
                let kept = format!("{}, kept with {} for exports: {why}", messages(count), placed.id);
                item.because(kept)
            }
            Goes::Nowhere(why) => {
                item.state = State::Same;
                match *why {
                    "" => item.because(messages(count)),
                    why => item.because(why),
                }
            }
        };
        let uid = match (placed.uid, &goes) {
            (Some(uid), Goes::Place(_) | Goes::More { .. } | Goes::Archive(_)) => uid,
            _ => {
                self.items.push(item);
                return Ok(());
            }
        };
        if self.wish.only_look {
            self.items.push(item);
            return Ok(());
        }
        let (spool, spooled, origin) =
            (self.spool.clone(), conversation.messages, self.origin.clone());
        let (name, summary) = (conversation.name.clone(), &conversation.summary);
        let summary = summary.as_ref().map(|summary| (summary.text.clone(), summary.messages));
        let write = move |tx: &Transaction<'_>| {
            let whole = Whole {
                spool: &spool,
                spooled,
                summary: summary.as_ref(),
                name: &name,
            };
            whole.write(tx, &origin, (&id, &goes), uid)
        };
        let arrived = self.site.db.write(write).await;
        self.items.push(match arrived {
            Ok(Arrived::InPlace) => Item {
                state: State::Done,
                ..item
            },
            Ok(Arrived::Aside) => {
                let why = format!(
                    "{}, kept with {} for exports: people have used the place here",
                    messages(count),
                    placed.id
                );
                Item {
                    state: State::Done,
                    target: None,
                    ..item.because(why)
                }
            }
            Ok(Arrived::NotAtAll) => Item {
                state: State::Skipped,
                ..item.because("the place has gone on here")
            },
            Err(error) => failed(item, &error.to_string()),
        });
        Ok(())
    }
}

/// The messages of a conversation, ready to be written.
struct Whole<'a> {
    spool: &'a Kept,
    spooled: super::spool::Spooled,
    summary: Option<&'a (String, usize)>,
    name: &'a str,
}

enum Arrived {
    InPlace,
    Aside,
    NotAtAll,
}

impl Whole<'_> {
    fn write(
        &self,
        tx: &Transaction<'_>,
        origin: &Origin,
        (id, goes): (&str, &Goes),
        uid: AgentUid,
    ) -> rusqlite::Result<Arrived> {
        let odd = |error: io::Error| rusqlite::Error::ToSqlConversionFailure(Box::new(error));
        let mut messages = self.spool.read(self.spooled).map_err(odd)?;
        let summary = self.summary.map(|(text, messages)| SummedUp {
            text,
            messages: *messages,
        });
        let aside = ArrivesIn::Archive { name: self.name };
        let now = now_ms();
        let (place, arrived) = match goes {
            Goes::Place(place) => {
                let into = ArrivesIn::Place(place);
                match transcript::arrive(tx, uid, into, (&messages, summary), now)? {
                    Some(place) => (Some(place), Arrived::InPlace),
                    None => {
                        let kept = transcript::arrive(tx, uid, aside, (&messages, None), now)?;
                        (kept, Arrived::Aside)
                    }
                }
            }
            Goes::More { place, from } => {
                let more = messages.split_off(*from);
                let into = ArrivesIn::More(place);
                let place = transcript::arrive(tx, uid, into, (&more, None), now)?;
                (place, Arrived::InPlace)
            }
            Goes::Archive(_) => {
                let kept = transcript::arrive(tx, uid, aside, (&messages, None), now)?;
                (kept, Arrived::InPlace)
            }
            Goes::Nowhere(_) => (None, Arrived::NotAtAll),
        };
        let Some(place) = place else {
            return Ok(Arrived::NotAtAll);
        };
        let row = Row {
            agent: Some(uid),
            target: place.to_string(),
            stamp: self.spool.stamp(self.spooled, self.spooled.count).map_err(odd)?,
        };
        imports::keep(tx, origin, (Carried::Conversation, id), &row, now)?;
        Ok(arrived)
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
        let keep = |kind, key: &str, row: Row| imports::keep(tx, &self.origin, (kind, key), &row, now_ms());
        keep(Carried::Agent, &self.source_id, row(self.id.to_string(), ""))?;
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

fn note_rules(
    tx: &Transaction<'_>,
    origin: &Origin,
    by: &Actor,
    rules: &[(String, NewRule)],
) -> rusqlite::Result<()> {
    let now = now_ms();
    for (id, rule) in rules {
        let change = Change::new(Action::Bind).of(&rule.agent).about(&rule.pattern);
        audit::note(tx, by, &change.to(&rule.agent), now)?;
        let row = Row {
            agent: agent_rows::uid_of(tx, &rule.agent)?,
            target: rule.pattern.clone(),
            stamp: String::new(),
        };
        imports::keep(tx, origin, (Carried::Rule, id), &row, now)?;
    }
    Ok(())
}

/// A file that was copied.
struct Stamped {
    target: PathBuf,
    digest: String,
}

/// Copies the files of a new agent into a folder. A file that cannot be read is noted.
fn stage(source: &Source, files: &[FoundFile], into: &Path) -> Result<Vec<Stamped>, MovingError> {
    make_folder(into).map_err(disk(into))?;
    let mut stamped = Vec::new();
    for file in files {
        let bytes = match bytes_of(file) {
            Ok(bytes) => bytes,
            Err(error) => {
                source.left(file.kind, shown(file), error.to_string());
                continue;
            }
        };
        let path = into.join(&file.target);
        let written = path.parent().map_or(Ok(()), make_folder);
        written
            .and_then(|()| write_new(&path, &bytes))
            .map_err(disk(&path))?;
        stamped.push(Stamped {
            target: file.target.clone(),
            digest: digest(&bytes),
        });
    }
    Ok(stamped)
}

fn bytes_of(file: &FoundFile) -> io::Result<Vec<u8>> {
    match &file.content {
        Content::Copy { tree, path } => tree.bytes(path, MAX_FILE_BYTES),
        Content::Text(text) => Ok(text.clone().into_bytes()),
    }
}

fn shown(file: &FoundFile) -> String {
    match &file.content {
        Content::Copy { tree, path } => super::source::shown(tree, path),
        Content::Text(_) => file.target.display().to_string(),
    }
}

fn ours(path: &Path, id: &AgentId, target: &Path) -> Option<Ours> {
    let bytes = fs::read(path).ok()?;
    let in_home = Path::new("agents").join(id.as_str()).join(target);
    Some(Ours {
        digest: digest(&bytes),
        is_shipped: bytes.is_empty() || is_as_shipped(&in_home, &bytes),
    })
}

/// `skills/a/SKILL.md` becomes `skills-a-SKILL.md`.
fn file_name(target: &Path) -> String {
    let names = target.iter().map(|name| name.to_string_lossy().into_owned());
    names.collect::<Vec<_>>().join("-")
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Writes a file for its owner only. An existing one is an error.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Puts a file in place in one step.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_file_name(format!(".{}", Uuid::now_v7()));
    let written = write_new(&beside, bytes).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        drop(fs::remove_file(&beside));
    }
    written
}

fn failed(item: Item, why: &str) -> Item {
    Item {
        state: State::Failed,
        ..item.because(why)
    }
}

/// `2 files, 1 skill`; things of which there are none are left out.
fn counted(counts: &[(usize, &str, &str)]) -> String {
    let there = counts.iter().filter(|(count, ..)| *count > 0);
    let words = there.map(|(count, one, many)| some(*count, one, many));
    let words: Vec<String> = words.collect();
    match words.is_empty() {
        true => "nothing besides its settings".to_owned(),
        false => words.join(", "),
    }
}
