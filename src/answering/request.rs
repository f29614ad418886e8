//! The request to the model: the prompt, the conversation, recalled memories, and the question.

use std::panic::resume_unwind;
use std::sync::Arc;

use dashmap::DashSet;
use rusqlite::Connection;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::active_turn::view;
use super::compaction::{Compaction, Fill};
use crate::access::{Role, Standing};
use crate::agents::memory::Recalled;
use crate::agents::{Agent, Identity, Memories, Memory, Reader};
use crate::config::{Access, ModelRef};
use crate::domain::{AgentId, AgentUid, Inbound, SessionKey, TurnEvent};
use crate::home::Snapshot;
use crate::models::{Image, Lineup, ModelMessage, Models};
use crate::records::inbox::Accepted;
use crate::records::outranked::{self, ParkedTurn};
use crate::records::subagents::{self as subagent_rows, SubagentRow};
use crate::records::transcript::{self, Conversation, History};
use crate::records::view::View;
use crate::routing::aliases::Aliases;
use crate::signing::Signer;
use crate::storage::{Db, StoreError};
use crate::subagents::{self, InternalTurn};
use crate::tools::{Parent, Relation, Results, Scope, ToolBox};
use crate::turn::history::{self, Said, Speaker};
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
    pub(super) said: &'a [Inbound],
    pub(super) is_asked: bool,
    /// Set for a turn begun by an earlier process.
    pub(super) earlier: Option<Earlier>,
    pub(super) aside: &'a [String],
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
        let extract = Arc::new(Extract {
            place: origin.key.clone(),
            view: view(snapshot, agent),
            agent: agent.id.clone(),
            earlier,
        });
        let words = asked
            .said
            .iter()
            .map(Inbound::readable)
            .collect::<Vec<_>>()
            .join("\n");
        let scope = self.scope(snapshot, accepted, agent, asked.parent(snapshot));
        let reminder = self.memories.of(agent).map(|memory| Reminder {
            memory,
            reader: scope.reader(),
            words,
        });
        let (look, uid, ask) = (extract.clone(), agent.uid, reminder.clone());
        // A single read, because a trip to the store costs more than most of its queries.
        let read = self.db.read(move |connection| {
            let recalled = ask.map(|reminder| reminder.on(connection));
            let read_upto = transcript::newest(connection)?;
            Ok((
                read_upto,
                look.history(connection)?,
                look.unseen(connection, uid)?,
                recalled,
            ))
        });
        let bootstrap = !self.bootstrapped.contains(&agent.uid);
        let ((read_upto, history, unseen, recalled), system) =
            tokio::try_join!(read, system_prompt(agent.clone(), bootstrap))?;
        let recalled = match reminder.zip(recalled) {
            Some((reminder, Recalled::IndexIsOld)) => reminder.renewed().await,
            Some((_, Recalled::Found(found))) => found,
            None => None,
        };
        let aside = asked.ephemeral(&unseen);
        let is_by_peer = scope
            .parent
            .as_ref()
            .is_some_and(|parent| parent.relation == Relation::Peer);
        let named = origin.key.is_shared() || is_by_peer;
        let current: Vec<Said> = asked
            .said
            .iter()
            .map(|inbound| asked.speaker_of(inbound))
            .collect();
        let current = history::Current {
            said: &current,
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
        let before: Vec<Said> = before.into_iter().map(|message| message.said).collect();
        let mut messages = history::for_model(&before, &current, &agent.id, named, room);
        messages = history::reminded(messages, recalled);
        messages.splice(
            0..0,
            summary.map(|summary| history::summed_up(&summary.text)),
        );
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
            fill,
            told,
        })
    }

    /// The agent and the people behind the turn.
    fn scope(
        &self,
        snapshot: &Snapshot,
        accepted: &Accepted,
        agent: &Arc<Agent>,
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
            results: Arc::new(Results::new(&agent.home)),
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
    fn ephemeral(&self, unseen: &[SubagentRow]) -> Vec<String> {
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
            .map(subagents::summary);
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

    fn speaker_of(&self, inbound: &Inbound) -> Said {
        let by = match self.internal {
            Some(InternalTurn::Report(_)) => Speaker::Handoff,
            _ => Speaker::Person(inbound.person_name.clone()),
        };
        Said {
            by,
            text: inbound.readable(),
        }
    }
}

/// The part of a conversation that a turn may read.
struct Extract {
    place: SessionKey,
    view: View,
    agent: AgentId,
    earlier: Option<(Access, Earlier)>,
}

impl Extract {
    fn history(&self, connection: &Connection) -> rusqlite::Result<History> {
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
        let mut unseen = subagent_rows::unseen(connection, &self.place, agent)?;
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
    fn on(&self, connection: &Connection) -> Recalled {
        self.memory
            .recall_on(connection, &self.reader, &self.words)
            .unwrap_or_else(|error| {
                self.tell(&error);
                Recalled::Found(None)
            })
    }

    async fn renewed(&self) -> Option<String> {
        self.memory
            .recall(&self.reader, &self.words)
            .await
            .inspect_err(|error| self.tell(error))
            .ok()
            .flatten()
    }

    fn tell(&self, error: &dyn std::fmt::Display) {
        tracing::warn!(agent.id = %self.memory.agent().id, "nothing is recalled: {error}");
    }
}

/// Reads the files for every turn, so an edit counts from the next message on.
async fn system_prompt(agent: Arc<Agent>, bootstrap: bool) -> Result<String, StoreError> {
    let read = tokio::task::spawn_blocking(move || {
        prompt::assemble(&agent, &Identity::load(&agent, bootstrap))
    });
    read.await.map_err(|error| match error.try_into_panic() {
        // A panic of the turn, to be told in the chat. Retried like a store error, the turn would
        // panic for ever.
        Ok(panic) => resume_unwind(panic),
        Err(error) => StoreError::Failed(format!("reading identity files: {error}")),
    })
}
