//! Carries out the effects of tool calls, in the transaction with their result, so a restart does
//! not repeat them.

use std::sync::Arc;

use rusqlite::Transaction;
use tokio::sync::oneshot;
use tracing::Instrument;

use super::{Arrived, Subagents, rows, texts};
use crate::agents::Agent;
use crate::clock::now_ms;
use crate::domain::{AgentId, SessionKey};
use crate::home::Snapshot;
use crate::records::agent_pauses;
use crate::records::inbox::Accepted;
use crate::records::journal::{self, CallId};
use crate::records::pauses::{self, Work};
use crate::records::subagents::{self, Subagent};
use crate::routing::Visit;
use crate::storage::{Durability, StoreError};
use crate::tools::{AskPeer, Effect, OnFinish, Outcome, Reading, Relation, SendMessage, Spawn};

/// The most subagents of a turn.
const MOST_PER_TURN: usize = 8;
/// The most running subagents of an agent, over all places.
const MOST_PER_AGENT: usize = 16;

/// The turn behind a tool call.
pub(crate) struct Asker<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) accepted: &'a Accepted,
    pub(crate) agent: &'a Arc<Agent>,
    /// Model calls left to the turn.
    pub(crate) steps_left: u32,
    /// What the turn had read when it made the call.
    pub(crate) read: &'a Reading,
}

impl Asker<'_> {
    /// A result for the model. Names of places in it are people's words.
    pub(super) fn told(&self, text: String) -> Outcome {
        Outcome::say(text).finished(&self.agent.marks())
    }
}

/// The state of a tool call after its effects.
pub(crate) enum Carried {
    /// The result is written.
    Done(Outcome),
    /// A subagent was begun. Its end is the result of the call.
    Waits { run: String },
}

/// A turn's request for a subagent.
struct SubagentRequest {
    agent: AgentId,
    task: String,
    tools: Option<Vec<String>>,
    then: OnFinish,
    relation: Relation,
    label: Option<String>,
    tags: Vec<String>,
}

impl From<Spawn> for SubagentRequest {
    fn from(
        Spawn {
            agent,
            task,
            tools,
            then,
            label,
            tags,
        }: Spawn,
    ) -> Self {
        SubagentRequest {
            agent,
            task,
            tools,
            then,
            relation: Relation::Subagent,
            label,
            tags,
        }
    }
}

impl From<AskPeer> for SubagentRequest {
    fn from(AskPeer { agent, text }: AskPeer) -> Self {
        SubagentRequest {
            agent,
            task: text,
            tools: None,
            then: OnFinish::Wait,
            relation: Relation::Peer,
            label: None,
            tags: Vec::new(),
        }
    }
}

impl Subagents {
    /// Writes the result of a call and carries out its effect. Files are sent at the end of the
    /// turn. Fails when the process stops, and when a write cannot work.
    pub(crate) async fn carry_out(
        &self,
        asker: &Asker<'_>,
        call: CallId,
        outcome: Outcome,
    ) -> Result<Carried, StoreError> {
        let mut outcome = outcome.finished(&asker.agent.marks());
        let now = outcome
            .effects
            .extract_if(.., |effect| !effect.is_for_the_end())
            .next();
        match now {
            None | Some(Effect::SendFile(_) | Effect::Wrote(_)) => self.done(call, outcome).await,
            Some(Effect::Spawn(spawn)) => {
                self.begin(asker, call, SubagentRequest::from(spawn)).await
            }
            Some(Effect::AskPeer(ask)) => self.begin(asker, call, SubagentRequest::from(ask)).await,
            Some(Effect::SendMessage(message)) => self.send(asker, call, message).await,
            Some(Effect::Schedule(wish)) => {
                let carried = self.schedule(asker, call, wish).await;
                match carried {
                    Err(error) if !error.is_permanent() => Err(error),
                    Err(error) => {
                        let told = format!("Nothing was done: {}", not_read(&error));
                        self.done(call, asker.told(told)).await
                    }
                    carried => carried,
                }
            }
        }
    }

    pub(crate) async fn done(&self, call: CallId, outcome: Outcome) -> Result<Carried, StoreError> {
        self.write(call, outcome, |_, _| Ok(()))
            .await
            .map(|(outcome, ())| Carried::Done(outcome))
    }

    /// Writes the result of a call and its effect in a single transaction.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        call: CallId,
        outcome: Outcome,
        more: impl Fn(&Transaction<'_>, i64) -> rusqlite::Result<T> + Send + Sync + 'static,
    ) -> Result<(Outcome, T), StoreError> {
        let shared = Arc::new((outcome, more));
        let write = || {
            let shared = shared.clone();
            move |tx: &Transaction<'_>| {
                let (outcome, more) = shared.as_ref();
                let (
                    now,
                    Outcome {
                        text,
                        effects,
                        read,
                        ..
                    },
                ) = (now_ms(), outcome);
                journal::ran(tx, call, text, effects, *read, now)?;
                more(tx, now)
            }
        };
        // After a power cut the result may be missing; then the model is told of an interrupted
        // call.
        let written = self
            .inner
            .db
            .write_patiently(&self.inner.stop, Durability::Kill, write)
            .await?;
        Ok((shared.0.clone(), written))
    }

    async fn begin(
        &self,
        asker: &Asker<'_>,
        call: CallId,
        wish: SubagentRequest,
    ) -> Result<Carried, StoreError> {
        let prepared = self
            .prepare(asker, call, wish)
            .await
            .unwrap_or_else(|error| Err(not_read(&error)));
        let subagent = match prepared {
            Ok(subagent) => subagent,
            Err(refusal) => {
                tracing::info!(agent.id = %asker.agent.id, "no subagent was begun: {refusal}");
                return self
                    .done(call, asker.told(format!("Nothing was started: {refusal}")))
                    .await;
            }
        };
        let shared = Arc::new(subagent);
        self.begin_whole(call, shared.clone(), asker.agent.id.clone())
            .await?;
        Ok(match shared.then {
            OnFinish::Wait => Carried::Waits {
                run: shared.run.clone(),
            },
            then => Carried::Done(Outcome::say(begun(then))),
        })
    }

    /// Writes a subagent and puts it into its lane, also if the turn that asked for it is stopped in
    /// the middle: nobody else knows of the rows then. A subagent that its parent would have waited
    /// for is stopped with its parent.
    async fn begin_whole(
        &self,
        call: CallId,
        subagent: Arc<Subagent>,
        by: AgentId,
    ) -> Result<(), StoreError> {
        let (told, heard) = oneshot::channel();
        let (own, guard) = (self.clone(), self.inner.work.token());
        let beginning = async move {
            let begun = own.write_and_launch(call, &subagent, &by).await;
            let id = begun.as_ref().ok().copied().flatten();
            if told.send(begun).is_err() && subagent.then == OnFinish::Wait {
                own.stop(|running, _| Some(running) == id);
            }
            drop(guard);
        };
        self.inner.tasks.spawn(beginning.in_current_span());
        heard.await.unwrap_or(Err(StoreError::Closed)).map(drop)
    }

    /// The inbox row of the subagent. None when the subagent is known already.
    async fn write_and_launch(
        &self,
        call: CallId,
        subagent: &Arc<Subagent>,
        by: &AgentId,
    ) -> Result<Option<i64>, StoreError> {
        let accepted = match subagent.then {
            OnFinish::Wait => {
                let write = || {
                    let (subagent, by) = (subagent.clone(), by.clone());
                    move |tx: &Transaction<'_>| rows::begin(tx, &subagent, by.as_str(), now_ms())
                };
                self.inner
                    .db
                    .write_patiently(&self.inner.stop, Durability::Kill, write)
                    .await?
            }
            OnFinish::Announce | OnFinish::Report => {
                let (shared, by) = (subagent.clone(), by.clone());
                let outcome = Outcome::say(begun(subagent.then));
                self.write(call, outcome, move |tx, now| {
                    rows::begin(tx, &shared, by.as_str(), now)
                })
                .await?
                .1
            }
        };
        let id = accepted.as_ref().map(|accepted| accepted.id);
        if let Some(accepted) = accepted {
            tracing::info!(agent.id = %by, run = %subagent.run, session = %subagent.session, "a subagent was begun");
            self.launch(subagent, accepted, Arrived::Now);
        }
        Ok(id)
    }

    async fn prepare(
        &self,
        asker: &Asker<'_>,
        call: CallId,
        wish: SubagentRequest,
    ) -> Result<Result<Subagent, String>, StoreError> {
        let Asker {
            snapshot,
            accepted,
            agent,
            steps_left,
            read,
        } = asker;
        let Some(target) = snapshot.registry.get(&wish.agent) else {
            return Ok(Err(format!("there is no agent `{}`.", wish.agent)));
        };
        if let Err(refusal) = may_call(asker, &target.id) {
            return Ok(Err(refusal));
        }
        let before = match self.room_for(asker, call, target, &wish).await? {
            Ok(before) => before,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let run = Subagent::name_of(call);
        let own = SessionKey::Child {
            id: run.parse().expect("digits and hyphens are a name"),
        };
        let session = before
            .filter(|_| wish.relation == Relation::Peer)
            .unwrap_or(own);
        Ok(Ok(Subagent {
            run,
            relation: wish.relation,
            session,
            agent: target.uid,
            parent: accepted.inbound.origin.key.clone(),
            parent_inbox_id: call.inbox_id,
            parent_agent: agent.uid,
            person: accepted.inbound.origin.person.clone(),
            role: accepted.role.min(accepted.standing.with(&target.id)),
            labels: read.labels,
            addresses: read.addresses.within(&wish.task),
            task: wish.task,
            tools: wish.tools,
            label: wish.label,
            tags: wish.tags,
            max_steps: *steps_left,
            then: wish.then,
            hop: 1,
            trace: format!("inbox-{}", call.inbox_id),
            started_at: now_ms(),
        }))
    }

    /// The session of earlier messages to this agent, or why no subagent may begin now.
    async fn room_for(
        &self,
        asker: &Asker<'_>,
        call: CallId,
        target: &Agent,
        wish: &SubagentRequest,
    ) -> Result<Result<Option<SessionKey>, String>, StoreError> {
        let (accepted, agent) = (asker.accepted, asker.agent);
        let (place, from, to) = (accepted.inbound.origin.key.clone(), agent.uid, target.uid);
        let people = &asker.snapshot.config.access.people;
        let (ids, role) = (
            people.ids_of(&accepted.inbound.origin.person).to_vec(),
            accepted.role,
        );
        let (known, before, is_background_paused, pause) = self
            .inner
            .db
            .read(move |connection| {
                let before = subagents::peer_session(connection, &place, from, to, (&ids, role))?;
                let known = subagents::of_turn(connection, call.inbox_id)?.len();
                let is_paused = pauses::get(connection, Work::Background)?.is_some();
                Ok((known, before, is_paused, agent_pauses::of(connection, to)?))
            })
            .await?;
        if is_background_paused && wish.then != OnFinish::Wait {
            return Ok(Err(BACKGROUND_PAUSED.to_owned()));
        }
        if let Some(pause) = pause {
            return Ok(Err(texts::is_paused(&target.id, pause.who())));
        }
        if known >= MOST_PER_TURN {
            return Ok(Err(format!(
                "a turn may start {MOST_PER_TURN}, and this one has. Do the rest yourself or in your next turn."
            )));
        }
        if self.count_of(agent.uid) >= MOST_PER_AGENT {
            return Ok(Err(format!(
                "{MOST_PER_AGENT} of yours are under way. Wait until some are done."
            )));
        }
        Ok(Ok(before))
    }

    async fn send(
        &self,
        asker: &Asker<'_>,
        call: CallId,
        message: SendMessage,
    ) -> Result<Carried, StoreError> {
        let letter = self.outgoing(asker, &message).await;
        let letter = match letter
            .unwrap_or_else(|error| Err(format!("Nothing was sent: {}", not_read(&error))))
        {
            Ok(letter) => Arc::new(letter),
            Err(told) => return self.done(call, asker.told(told)).await,
        };
        let (outcome, written) = (asker.told(letter.told()), letter.clone());
        let (outcome, ()) = self
            .write(call, outcome, move |tx, now| written.write(tx, now))
            .await?;
        letter.submit(&self.inner.delivery);
        Ok(Carried::Done(outcome))
    }
}

/// The model may still have it done while the person waits.
const BACKGROUND_PAUSED: &str = "an owner has paused background work. Do it yourself now, or wait for the result (`wait` true).";

/// A turn reaches no agent that is closed to its person.
fn may_call(asker: &Asker<'_>, target: &AgentId) -> Result<(), String> {
    if *target == asker.agent.id {
        return Ok(());
    }
    let visit = Visit {
        access: &asker.snapshot.config.access,
        origin: &asker.accepted.inbound.origin,
        standing: &asker.accepted.standing,
    };
    let called = asker.snapshot.table.may_call(target, visit);
    called.map_err(|closed| format!("{closed}, and the person you work for is not among them."))
}

/// A store error ends no turn: the model is told to try again.
fn not_read(error: &StoreError) -> String {
    tracing::error!("what a tool wants done was not done: {error}");
    "the gateway cannot look it up right now. Try again later.".into()
}

fn begun(then: OnFinish) -> &'static str {
    match then {
        OnFinish::Report => {
            "It has begun. You will be woken when it is done, to tell the people here; go on or end your turn now."
        }
        _ => "It has begun. You will know what came of it in your next turn here.",
    }
}
