//! The request to the model: the prompt, the conversation, recalled memories, and the question.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Weak};
use std::thread;

use dashmap::{DashMap, DashSet};
use rusqlite::{Connection, Transaction};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::compaction::{Compaction, Fill};
use super::extract::{Counted, Earlier, Extract};
use super::job_turns::{introduction, job_of};
use super::{question, reading, texts};
use crate::access::{Role, Standing, numbers};
use crate::agents::memory::{Recalled, Recollection};
use crate::agents::{Agent, Audience, Identity, Memories, Memory, Reader, seed_agent};
use crate::clock::now_ms;
use crate::config::{ModelRef, People};
use crate::domain::{AgentUid, Labels, PersonId, Said, SessionKey, TurnEvent};
use crate::home::Snapshot;
use crate::models::{Image, Lineup, ModelMessage, Models};
use crate::records::audit::{self, Action, Actor, Change};
use crate::records::inbox::Accepted;
use crate::records::journal::AskedMessage;
use crate::records::recent::Recent;
use crate::records::subagents::SubagentRow;
use crate::records::transcript::{self, Conversation, History, With};
use crate::records::turn_log;
use crate::routing::aliases::Aliases;
use crate::signing::Signer;
use crate::storage::{Db, Durability, StoreError};
use crate::subagents::{self, InternalTurn};
use crate::tools::{Addresses, Parent, Reading, Results, Scope, ToolBox};
use crate::turn::history;
use crate::turn::{self, Layout, Outline, TurnLimits, TurnRequest, prompt};

/// Builds requests to models. Cheap to clone.
#[derive(Clone)]
pub(super) struct Requests {
    pub(super) db: Db,
    pub(super) aliases: Arc<Aliases>,
    pub(super) memories: Memories,
    pub(super) tools: ToolBox,
    pub(super) compaction: Compaction,
    pub(super) recent: Arc<Recent>,
    pub(super) prompts: Arc<Prompts>,
    /// Agents that have finished a turn before.
    pub(super) bootstrapped: Arc<DashSet<AgentUid>>,
}

/// The system prompts of running turns, by agent. Turns of an agent mostly have the same, and wait for
/// a model with it.
#[derive(Default)]
pub(super) struct Prompts {
    newest: DashMap<AgentUid, Weak<str>>,
}

impl Prompts {
    fn shared(&self, agent: AgentUid, prompt: String) -> Arc<str> {
        let newest = self.newest.get(&agent).and_then(|newest| newest.upgrade());
        if let Some(same) = newest.filter(|newest| **newest == *prompt) {
            return same;
        }
        let prompt: Arc<str> = prompt.into();
        self.newest.insert(agent, Arc::downgrade(&prompt));
        prompt
    }
}

/// The question of a turn and its relation to the conversation.
pub(super) struct Asked<'a> {
    pub(super) said: &'a [AskedMessage],
    /// The pictures of the question.
    pub(super) images: Vec<Image>,
    pub(super) is_asked: bool,
    /// Set for a turn begun by an earlier process.
    pub(super) earlier: Option<Earlier>,
    pub(super) aside: &'a [Said],
    /// What the question and the notes bring with them.
    pub(super) read: Labels,
    pub(super) internal: Option<&'a InternalTurn>,
    /// Cancelled to stop the turn.
    pub(super) halt: &'a CancellationToken,
    /// Gets progress events during a long wait.
    pub(super) events: &'a mpsc::Sender<TurnEvent>,
}

impl Requests {
    pub(super) async fn request(
        &self,
        snapshot: &Snapshot,
        accepted: &Accepted,
        agent: &Arc<Agent>,
        models: Vec<ModelRef>,
        asked: Asked<'_>,
    ) -> Result<Prepared, StoreError> {
        let from = (&self.recent, asked.earlier);
        let extract = Arc::new(Extract::of(snapshot, accepted, agent, from));
        let (people, parent) = (extract.people.clone(), asked.parent(snapshot));
        let mut scope = self.scope(snapshot, accepted, agent, people, parent);
        let reminder = self.reminder(agent, &scope, asked.said);
        let bootstrap = !self.bootstrapped.contains(&agent.uid);
        let company = asked.company(snapshot, accepted);
        let files = Files {
            agent: agent.clone(),
            bootstrap,
        };
        let mut found = self
            .look_up(&extract, files, reminder.clone(), &asked, company)
            .await?;
        // A panic of the turn, to be told in the chat. Retried like a store error, the turn would
        // panic for ever.
        let (identity, addresses) = found.files.unwrap_or_else(|panic| resume_unwind(panic));
        if let Some(with) = found
            .with
            .take()
            .filter(|with| !is_same(snapshot, with, agent))
        {
            (found.read_upto, found.history) = self.hand_over(&extract, with).await?;
        }
        let before_tools = asked.read | reading::of_history(&found.history);
        let (system, starts) = self.system(agent, identity, &scope, before_tools);
        let recalled = self
            .recollection(&extract, reminder, found.recalled, before_tools)
            .await?;
        let question = self.known(&extract, found.counted).await?;
        let room = history::room(smallest_window(&snapshot.models, &models), &system);
        let (history, fill) = self
            .summed_up_in_time(&extract, found.history, room, &asked)
            .await?;
        let unseen: Labels = found.unseen.iter().map(SubagentRow::labels).collect();
        let read = reading::of_history(&history) | recalled.labels | unseen | asked.read;
        scope.read = Reading::new(read, asked.addresses(addresses, accepted, &history));
        let current = history::Current {
            said: &question,
            is_interrupted: asked.is_asked,
            aside: &asked.ephemeral(&found.unseen),
        };
        let conversation = history.conversation;
        // The first line is a heading.
        let memories = recalled.said.len().saturating_sub(1);
        let (mut messages, layout) = messages(agent, &history, &recalled, current, room);
        let limits = asked.limits(agent);
        show(&mut messages, asked.images);
        let request = TurnRequest {
            lineup: lineup(agent, models, &accepted.inbound.origin.key),
            system,
            outline: Outline {
                system: starts,
                messages: layout,
            },
            messages,
            tools: self
                .tools
                .view(agent, accepted.role)
                .within(scope.parent.clone())
                .of_job(scope.is_job),
            scope,
            limits,
        };
        let told = found.unseen.into_iter().map(|known| known.subagent.run);
        Ok(Prepared {
            conversation,
            read_upto: found.read_upto,
            request,
            question,
            fill,
            recalled: memories,
            told: told.collect(),
        })
    }

    /// Recalls memories for the words of the question, if the agent has a memory.
    fn reminder(
        &self,
        agent: &Arc<Agent>,
        scope: &Scope,
        said: &[AskedMessage],
    ) -> Option<Reminder> {
        let words = said.iter().map(|message| message.inbound.in_short());
        self.memories.of(agent).map(|memory| Reminder {
            memory,
            reader: scope.reader(),
            words: words.collect::<Vec<_>>().join("\n"),
        })
    }

    /// A single read, because a trip to another thread costs more than most of its queries. The
    /// agent's files are looked at on the same trip.
    async fn look_up(
        &self,
        extract: &Arc<Extract>,
        files: Files,
        reminder: Option<Reminder>,
        asked: &Asked<'_>,
        company: Option<Company>,
    ) -> Result<Found, StoreError> {
        let (extract, asked_read) = (extract.clone(), asked.read);
        let question = question::as_said(asked.said, asked.internal);
        let read = move |connection: &Connection| {
            let loaded = catch_unwind(AssertUnwindSafe(|| files.load()));
            // Without a transaction, every query would lock the file and forget the pages of the
            // query before. Nothing is written, so its end does not matter.
            let tx = connection.unchecked_transaction()?;
            let read_upto = transcript::newest(&tx)?;
            let history = extract.history(&tx)?;
            let with = match company {
                Some(company) => company.with(&tx, &extract.place, history.conversation)?,
                None => None,
            };
            let read = asked_read | reading::of_history(&history);
            let recalled = match reminder.map(|reminder| reminder.having_read(read).on(&tx)) {
                Some(Recalled::Found(found)) => {
                    Some(Recalled::Found(extract.recollected(&tx, found)?))
                }
                recalled => recalled,
            };
            Ok(Found {
                read_upto,
                history,
                with,
                unseen: extract.unseen(&tx, files.agent.uid)?,
                counted: extract.counted(&tx, question)?,
                recalled,
                files: loaded,
            })
        };
        self.db.read(read).await
    }

    /// The system prompt with the beginnings of its sections: of the agent's memory, the parts for the
    /// readers of the answer.
    fn system(
        &self,
        agent: &Agent,
        identity: Identity,
        scope: &Scope,
        read: Labels,
    ) -> (Arc<str>, Vec<(String, usize)>) {
        let audience = Audience::of(Some(scope.asked_in()), scope.role, read);
        let seen = identity.seen_by(audience, &agent.memory);
        let (prompt, starts) = prompt::outlined(agent, &seen, prompt::Audience::of(&scope.place));
        (self.prompts.shared(agent.uid, prompt), starts)
    }

    /// The recalled memories. An old index is renewed first.
    async fn recollection(
        &self,
        extract: &Arc<Extract>,
        reminder: Option<Reminder>,
        recalled: Option<Recalled>,
        read: Labels,
    ) -> Result<Recollection, StoreError> {
        match reminder.zip(recalled) {
            Some((reminder, Recalled::IndexIsOld)) => {
                let found = reminder.having_read(read).renewed().await;
                let extract = extract.clone();
                let counted = move |connection: &Connection| extract.recollected(connection, found);
                self.db.read(counted).await
            }
            Some((_, Recalled::Found(found))) => Ok(found),
            None => Ok(Recollection::default()),
        }
    }

    /// Writes a handoff line into a conversation that config.toml gives to another agent, and reads
    /// the conversation with it. A pin for a single message has ended without a line.
    async fn hand_over(
        &self,
        extract: &Arc<Extract>,
        with: With,
    ) -> Result<(i64, History), StoreError> {
        let extract = extract.clone();
        let write = move |tx: &Transaction<'_>| {
            let (place, now) = (&extract.place, now_ms());
            let was_once = match with.answer_to {
                Some(answered) => turn_log::was_chosen_once(tx, place, answered)?,
                None => false,
            };
            if !was_once {
                let text = texts::handed_over(&with.agent, extract.agent.as_str());
                transcript::append_mark(tx, place, None, &text, now)?;
                let change = Change::new(Action::Switch).at(place);
                let change = change.from(&with.agent).to(&extract.agent);
                audit::note(tx, &Actor::Config, &change, now)?;
            }
            Ok((transcript::newest(tx)?, extract.history(tx)?))
        };
        self.db.write_as(Durability::Kill, write).await
    }

    /// The messages with the numbers of everybody in them. People in a prompt for the first time are
    /// given theirs.
    async fn known(
        &self,
        extract: &Arc<Extract>,
        counted: Counted,
    ) -> Result<Vec<Said>, StoreError> {
        let Counted { said, missing } = counted;
        if missing.is_empty() {
            return Ok(said);
        }
        let extract = extract.clone();
        let give = move |tx: &Transaction<'_>| {
            missing
                .iter()
                .try_for_each(|person| numbers::ensure(tx, person))?;
            Ok(extract.counted(tx, said)?.said)
        };
        self.db.write_as(Durability::Kill, give).await
    }

    /// The agent and the people behind the turn.
    fn scope(
        &self,
        snapshot: &Snapshot,
        accepted: &Accepted,
        agent: &Arc<Agent>,
        people: Arc<People>,
        parent: Option<Arc<Parent>>,
    ) -> Scope {
        let (access, origin) = (&snapshot.config.access, &accepted.inbound.origin);
        // After a restart, messages of the queue are parts of the first.
        let mut writers = accepted.all().map(|message| &message.inbound.origin.person);
        // Words of one person must not bring up what is for another.
        let is_one = writers.all(|writer| access.people.is_same(writer, &origin.person));
        let ids = if is_one {
            access.people.ids_of(&origin.person).to_vec()
        } else {
            Vec::new()
        };
        let told_in = job_of(accepted).and_then(|run| run.to.as_ref());
        let asked_in = parent.as_ref().map(|parent| &parent.place);
        let asked_in = asked_in.or(told_in).unwrap_or(&origin.key);
        Scope {
            agent: agent.clone(),
            place: origin.key.clone(),
            former_place: self.aliases.former(asked_in),
            person: origin.person.clone(),
            ids,
            role: accepted.role,
            owns_house: Standing::of(access, &origin.person, false).role() == Role::Owner,
            parent,
            told_in: job_of(accepted).and_then(|run| run.to.clone()),
            is_job: job_of(accepted).is_some(),
            people,
            results: Arc::new(Results::new(&agent.home)),
            read: Reading::default(),
        }
    }

    /// If the conversation needs more than the room, waits for a running summary.
    async fn summed_up_in_time(
        &self,
        extract: &Arc<Extract>,
        history: History,
        room: usize,
        asked: &Asked<'_>,
    ) -> Result<(History, Fill), StoreError> {
        let filled = |history: &History| {
            let tokens = history
                .messages
                .iter()
                .map(|message| history::cost(&message.said))
                .sum();
            Fill {
                tokens,
                messages: history.messages.len(),
                room,
            }
        };
        let fill = filled(&history);
        let over = self.compaction.over(&extract.place, extract.view);
        let is_made = fill.is_too_much()
            && tokio::select! {
                is_made = turn::wait_for_model(asked.events, over) => is_made,
                () = asked.halt.cancelled() => false,
            };
        if !is_made {
            return Ok((history, fill));
        }
        let extract = extract.clone();
        let history = self
            .db
            .read(move |connection| extract.history(connection))
            .await?;
        let fill = filled(&history);
        Ok((history, fill))
    }
}

/// The people whose answers tell which agent a conversation is with.
enum Company {
    Everybody,
    /// The person's ids, where rules tell people apart.
    Person(Vec<PersonId>),
}

impl Company {
    fn with(
        &self,
        connection: &Connection,
        place: &SessionKey,
        conversation: Conversation,
    ) -> rusqlite::Result<Option<With>> {
        let people = match self {
            Company::Everybody => None,
            Company::Person(ids) => Some(ids.as_slice()),
        };
        transcript::current_agent(connection, place, conversation, people)
    }
}

/// Whether a conversation is with this agent, under its id or a former one.
fn is_same(snapshot: &Snapshot, with: &With, agent: &Agent) -> bool {
    let known = snapshot.registry.find(&with.agent);
    with.agent == agent.id.as_str() || known.is_some_and(|known| known.uid == agent.uid)
}

impl Asked<'_> {
    /// Whose answers to look at for a change of the agent. None for a turn without a person's
    /// message, and for a turn begun before.
    fn company(&self, snapshot: &Snapshot, accepted: &Accepted) -> Option<Company> {
        if self.internal.is_some() || self.earlier.is_some() {
            return None;
        }
        Some(if snapshot.table.tells_people_apart() {
            let people = &snapshot.config.access.people;
            let person = &accepted.inbound.origin.person;
            Company::Person(people.ids_of(person).to_vec())
        } else {
            Company::Everybody
        })
    }

    /// Notes for the agent before the question. They are in this request only.
    fn ephemeral(&self, unseen: &[SubagentRow]) -> Vec<Said> {
        let reported = match self.internal {
            Some(InternalTurn::Report(known)) => Some(&known.subagent.run),
            _ => None,
        };
        let job = self.internal.and_then(InternalTurn::job);
        let introduced = self
            .subagent()
            .map(subagents::introduction)
            .or_else(|| job.map(introduction));
        let news = unseen
            .iter()
            .filter(|known| Some(&known.subagent.run) != reported)
            .flat_map(subagents::summary);
        introduced
            .into_iter()
            .chain(news)
            .chain(self.aside.iter().cloned())
            .collect()
    }

    fn parent(&self, snapshot: &Snapshot) -> Option<Arc<Parent>> {
        self.subagent()
            .map(|known| subagents::parent(snapshot, known))
    }

    /// The subagent's row, if this is the question to a subagent.
    fn subagent(&self) -> Option<&SubagentRow> {
        self.internal.and_then(InternalTurn::subagent)
    }

    /// A subagent may make fewer model calls than its agent.
    fn limits(&self, agent: &Agent) -> TurnLimits {
        let limits = TurnLimits::of(&agent.limits);
        let most = self.subagent().map(|known| known.subagent.max_steps);
        TurnLimits {
            steps: most.map_or(limits.steps, |most| most.min(limits.steps)),
            ..limits
        }
    }

    /// The web addresses that trusted people wrote, beside those of the operator's files.
    fn addresses(&self, of_files: Addresses, accepted: &Accepted, history: &History) -> Addresses {
        let mut addresses = of_files;
        addresses.join(reading::addresses(accepted, &history.messages));
        if let Some(known) = self.subagent() {
            addresses.join(known.subagent.addresses.clone());
        }
        addresses
    }
}

/// The answers of the store to a request.
struct Found {
    /// The newest row of the transcript.
    read_upto: i64,
    history: History,
    /// The agent that the conversation was with.
    with: Option<With>,
    /// Ended subagents not yet told to the agent.
    unseen: Vec<SubagentRow>,
    counted: Counted,
    recalled: Option<Recalled>,
    /// The identity files, and the web addresses in those of the operator.
    files: thread::Result<(Identity, Addresses)>,
}

/// The identity files to look at.
struct Files {
    agent: Arc<Agent>,
    /// See [`Identity::load`].
    bootstrap: bool,
}

impl Files {
    /// Blocks on the disk.
    fn load(&self) -> (Identity, Addresses) {
        if self.bootstrap {
            seed(&self.agent);
        }
        let identity = Identity::load(&self.agent, self.bootstrap);
        let addresses = reading::addresses_of(&identity);
        (identity, addresses)
    }
}

/// The request to the model, and how much of the conversation it holds.
pub(super) struct Prepared {
    pub(super) conversation: Conversation,
    /// The newest row of the transcript.
    pub(super) read_upto: i64,
    pub(super) request: TurnRequest,
    /// As the agent reads it.
    pub(super) question: Vec<Said>,
    pub(super) fill: Fill,
    /// Memories in the prompt.
    pub(super) recalled: usize,
    /// Subagents whose end the agent is told.
    pub(super) told: Vec<String>,
}

/// The conversation and the question as messages, as far as they fit into the room.
fn messages(
    agent: &Agent,
    read: &History,
    recalled: &Recollection,
    current: history::Current<'_>,
    room: usize,
) -> (Vec<ModelMessage>, Layout) {
    let before: Vec<&Said> = read.messages.iter().map(|message| &*message.said).collect();
    let conversation = history::Conversation {
        summary: read.summary.as_ref().map(|summary| summary.text.as_str()),
        history: &before,
        recalled: &recalled.said,
    };
    history::for_model(conversation, current, &agent.id, &agent.marks(), room)
}

/// Any model of the lineup may answer in the end, so the smallest window counts.
fn smallest_window(models: &Models, lineup: &[ModelRef]) -> usize {
    let smallest = lineup
        .iter()
        .map(|model| models.window(model))
        .min()
        .unwrap_or_default();
    usize::try_from(smallest).unwrap_or(usize::MAX)
}

/// Pictures belong to the question, the last message.
fn show(messages: &mut [ModelMessage], images: Vec<Image>) {
    if let Some(ModelMessage::User(content)) = messages.last_mut() {
        content.images = images;
    }
}

fn lineup(agent: &Agent, models: Vec<ModelRef>, place: &SessionKey) -> Lineup {
    Lineup {
        models,
        settings: agent.models.settings,
        // A keyed hash, so the provider learns nothing about the place.
        cache_key: Signer::new(agent.uid.0.as_bytes()).tag(&place.to_string()),
    }
}

/// Recalls memories for a question. If recalling fails, the agent answers without memories.
#[derive(Clone)]
struct Reminder {
    memory: Memory,
    reader: Reader,
    words: String,
}

impl Reminder {
    fn having_read(self, read: Labels) -> Self {
        Reminder {
            reader: self.reader.having_read(read),
            ..self
        }
    }

    fn on(&self, connection: &Connection) -> Recalled {
        self.memory
            .recall_on(connection, &self.reader, &self.words)
            .unwrap_or_else(|error| {
                self.tell(&error);
                Recalled::Found(Recollection::default())
            })
    }

    async fn renewed(&self) -> Recollection {
        self.memory
            .recall(&self.reader, &self.words)
            .await
            .inspect_err(|error| self.tell(error))
            .unwrap_or_default()
    }

    fn tell(&self, error: &dyn std::fmt::Display) {
        tracing::warn!(agent.id = %self.memory.agent().id, "nothing is recalled: {error}");
    }
}

/// A home that cannot be written to is no reason to be silent.
fn seed(agent: &Agent) {
    match seed_agent(agent) {
        Ok(seeded) if seeded.created.is_empty() => {}
        Ok(seeded) => {
            let names = seeded.created.iter().map(|path| path.display().to_string());
            let names: Vec<String> = names.collect();
            tracing::info!(agent.id = %agent.id, "its first files are written: {}", names.join(", "));
        }
        Err(error) => {
            tracing::warn!(agent.id = %agent.id, "its first files are not written: {error}");
        }
    }
}
