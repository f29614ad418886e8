//! The request to the model: the prompt, the conversation, recalled memories, and the question.

use std::panic::resume_unwind;
use std::sync::Arc;

use dashmap::DashSet;
use rusqlite::{Connection, Transaction};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::active_turn::view;
use super::compaction::{Compaction, Fill};
use super::{question, reading};
use crate::access::{Role, Standing, numbers};
use crate::agents::memory::{Recalled, Recollection};
use crate::agents::{Agent, Audience, Identity, Memories, Memory, Reader};
use crate::clock::now_ms;
use crate::config::{Access, ModelRef, People};
use crate::domain::{AgentId, AgentUid, Labels, PersonId, Said, SessionKey, TurnEvent};
use crate::home::Snapshot;
use crate::models::{Image, Lineup, ModelMessage, Models};
use crate::records::inbox::Accepted;
use crate::records::journal::AskedMessage;
use crate::records::outranked::{self, ParkedTurn};
use crate::records::subagents::{self as subagent_rows, SubagentRow};
use crate::records::transcript::{self, Conversation, History};
use crate::records::view::View;
use crate::routing::aliases::Aliases;
use crate::signing::Signer;
use crate::storage::{Db, Durability, StoreError};
use crate::subagents::{self, InternalTurn};
use crate::tools::{Addresses, Parent, Reading, Results, Scope, ToolBox};
use crate::turn::history;
use crate::turn::{self, TurnLimits, TurnRequest, prompt};

/// Builds requests to models. Cheap to clone.
#[derive(Clone)]
pub(super) struct Requests {
    pub(super) db: Db,
    pub(super) aliases: Arc<Aliases>,
    pub(super) memories: Memories,
    pub(super) tools: ToolBox,
    pub(super) compaction: Compaction,
    /// Agents that have finished a turn before.
    pub(super) bootstrapped: Arc<DashSet<AgentUid>>,
}

/// The question of a turn and its relation to the conversation.
pub(super) struct Asked<'a> {
    pub(super) said: &'a [AskedMessage],
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

/// How an earlier process left a turn.
#[derive(Debug, Clone, Copy)]
pub(super) enum Earlier {
    /// Parked for other messages. They are in the transcript now.
    Parked(ParkedTurn),
    /// In the middle of its work. The turn goes on with the transcript as read at its start.
    Broken { read_upto: i64 },
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
        let origin = &accepted.inbound.origin;
        let earlier = asked
            .earlier
            .map(|earlier| (snapshot.config.access.clone(), earlier));
        let people = Arc::new(snapshot.config.access.people.clone());
        let extract = Arc::new(Extract {
            place: origin.key.clone(),
            view: view(snapshot, agent),
            agent: agent.id.clone(),
            people: people.clone(),
            earlier,
        });
        let words = asked
            .said
            .iter()
            .map(|message| message.inbound.in_short())
            .collect::<Vec<_>>()
            .join("\n");
        let mut scope = self.scope(snapshot, accepted, agent, people, asked.parent(snapshot));
        let reminder = self.memories.of(agent).map(|memory| Reminder {
            memory,
            reader: scope.reader(),
            words,
        });
        let question = question::as_said(asked.said, asked.internal);
        let (look, uid, ask) = (extract.clone(), agent.uid, reminder.clone());
        let asked_read = asked.read;
        // A single read, because a trip to the store costs more than most of its queries.
        let read = self.db.read(move |connection| {
            let read_upto = transcript::newest(connection)?;
            let history = look.history(connection)?;
            let read = asked_read | reading::of_history(&history);
            let recalled = match ask.map(|reminder| reminder.having_read(read).on(connection)) {
                Some(Recalled::Found(found)) => {
                    Some(Recalled::Found(look.recollected(connection, found)?))
                }
                recalled => recalled,
            };
            Ok((
                read_upto,
                history,
                look.unseen(connection, uid)?,
                look.counted(connection, question)?,
                recalled,
            ))
        });
        let bootstrap = !self.bootstrapped.contains(&agent.uid);
        let ((read_upto, history, unseen, counted, recalled), (identity, mut addresses)) =
            tokio::try_join!(read, identity(agent.clone(), bootstrap))?;
        let before_tools = asked.read | reading::of_history(&history);
        let audience = Audience::of(Some(scope.asked_in()), scope.role, before_tools);
        let system = prompt::assemble(
            agent,
            &identity.seen_by(audience, &agent.memory),
            prompt::Audience::of(&origin.key),
        );
        let recalled = match reminder.zip(recalled) {
            Some((reminder, Recalled::IndexIsOld)) => {
                let found = reminder.having_read(before_tools).renewed().await;
                let look = extract.clone();
                let counted = self
                    .db
                    .read(move |connection| look.recollected(connection, found));
                counted.await?
            }
            Some((_, Recalled::Found(found))) => found,
            None => Recollection::default(),
        };
        let question = self.known(&extract, counted).await?;
        let aside = asked.ephemeral(&unseen);
        let current = history::Current {
            said: &question,
            is_interrupted: asked.is_asked,
            aside: &aside,
        };
        let room = history::room(smallest_window(&snapshot.models, &models), &system);
        let (
            History {
                conversation,
                summary,
                messages: before,
            },
            fill,
        ) = self
            .summed_up_in_time(&extract, history, room, &asked)
            .await?;
        let read = reading::of_conversation(&before, summary.as_ref())
            | recalled.labels
            | unseen.iter().map(SubagentRow::labels).collect()
            | asked.read;
        addresses.join(reading::addresses(accepted, &before));
        if let Some(known) = asked.internal.and_then(InternalTurn::subagent) {
            addresses.join(known.subagent.addresses.clone());
        }
        scope.read = Reading::new(read, addresses);
        let before: Vec<Said> = before.into_iter().map(|message| message.said).collect();
        let read = history::Conversation {
            summary: summary.as_ref().map(|summary| summary.text.as_str()),
            history: &before,
            recalled: &recalled.said,
        };
        let messages = history::for_model(read, current, &agent.id, &agent.marks(), room);
        let lineup = Lineup {
            models,
            settings: agent.models.settings,
            cache_key: cache_key(agent, &origin.key),
        };
        let tools = self
            .tools
            .view(agent, accepted.role)
            .within(scope.parent.clone());
        let request = TurnRequest {
            lineup,
            system,
            messages,
            tools,
            scope,
            limits: TurnLimits::of(&agent.limits),
        };
        let told = unseen.into_iter().map(|known| known.subagent.run).collect();
        Ok(Prepared {
            conversation,
            read_upto,
            request,
            question,
            fill,
            told,
        })
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
        let asked_in = parent.as_ref().map_or(&origin.key, |parent| &parent.place);
        Scope {
            agent: agent.clone(),
            place: origin.key.clone(),
            former_place: self.aliases.former(asked_in),
            person: origin.person.clone(),
            ids,
            role: accepted.role,
            owns_house: Standing::of(access, &origin.person, false).role() == Role::Owner,
            parent,
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

impl Asked<'_> {
    /// Notes for the agent before the question. They are in this request only.
    fn ephemeral(&self, unseen: &[SubagentRow]) -> Vec<Said> {
        let reported = match self.internal {
            Some(InternalTurn::Report(known)) => Some(&known.subagent.run),
            _ => None,
        };
        let introduced = self
            .internal
            .and_then(InternalTurn::subagent)
            .map(subagents::introduction);
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
        self.internal
            .and_then(InternalTurn::subagent)
            .map(|known| subagents::parent(snapshot, known))
    }
}

/// The part of a conversation that a turn may read.
struct Extract {
    place: SessionKey,
    view: View,
    agent: AgentId,
    people: Arc<People>,
    earlier: Option<(Access, Earlier)>,
}

/// Messages with the numbers of their people, as far as they have one.
struct Counted {
    said: Vec<Said>,
    missing: Vec<PersonId>,
}

impl Extract {
    fn counted(&self, connection: &Connection, mut said: Vec<Said>) -> rusqlite::Result<Counted> {
        let missing = numbers::fill_in(connection, &self.people, said.iter_mut())?;
        Ok(Counted { said, missing })
    }

    fn recollected(
        &self,
        connection: &Connection,
        found: Recollection,
    ) -> rusqlite::Result<Recollection> {
        let said = self.counted(connection, found.said)?.said;
        Ok(Recollection { said, ..found })
    }

    fn history(&self, connection: &Connection) -> rusqlite::Result<History> {
        let mut history = self.allowed(connection)?;
        let said = history.messages.iter_mut().map(|message| &mut message.said);
        numbers::fill_in(connection, &self.people, said)?;
        Ok(history)
    }

    fn allowed(&self, connection: &Connection) -> rusqlite::Result<History> {
        let mut history = transcript::history(connection, &self.place, self.view)?;
        let (access, turn) = match &self.earlier {
            Some((access, Earlier::Parked(turn))) => (access, turn),
            Some((_, Earlier::Broken { read_upto })) => {
                history.messages.retain(|message| message.id <= *read_upto);
                return Ok(history);
            }
            None => return Ok(history),
        };
        let unheard = outranked::since_begun(connection, access, &self.place, &self.agent, *turn)?;
        if history
            .summary
            .as_ref()
            .is_some_and(|summary| unheard.iter().any(|id| *id <= summary.upto))
        {
            // The summary quotes people who must not influence this turn, so the original messages
            // are used.
            history.summary = None;
            history.messages =
                transcript::after(connection, &self.place, history.conversation, self.view, 0)?;
        }
        history
            .messages
            .retain(|message| !unheard.contains(&message.id));
        Ok(history)
    }

    /// Ended subagents not yet told to this agent. A parked turn leaves out subagents of people
    /// with a lower role; a later turn tells of them.
    fn unseen(
        &self,
        connection: &Connection,
        agent: AgentUid,
    ) -> rusqlite::Result<Vec<SubagentRow>> {
        let mut unseen = subagent_rows::unseen(connection, &self.place, agent, now_ms())?;
        if let Some((_, Earlier::Parked(turn))) = &self.earlier {
            unseen.retain(|known| known.subagent.role >= turn.role);
        }
        Ok(unseen)
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
    /// Subagents whose end the agent is told.
    pub(super) told: Vec<String>,
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
pub(super) fn show(messages: &mut [ModelMessage], images: Vec<Image>) {
    if let Some(ModelMessage::User(content)) = messages.last_mut() {
        content.images = images;
    }
}

/// A keyed hash, so the provider learns nothing about the place.
fn cache_key(agent: &Agent, place: &SessionKey) -> String {
    Signer::new(agent.uid.0.as_bytes()).tag(&place.to_string())
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

/// Reads the files for every turn, so an edit counts from the next message on. Returns the web
/// addresses of the operator's files too.
async fn identity(agent: Arc<Agent>, bootstrap: bool) -> Result<(Identity, Addresses), StoreError> {
    let read = tokio::task::spawn_blocking(move || {
        let identity = Identity::load(&agent, bootstrap);
        let addresses = reading::addresses_of(&identity);
        (identity, addresses)
    });
    read.await.map_err(|error| match error.try_into_panic() {
        // A panic of the turn, to be told in the chat. Retried like a store error, the turn would
        // panic for ever.
        Ok(panic) => resume_unwind(panic),
        Err(error) => StoreError::Failed(format!("reading identity files: {error}")),
    })
}
