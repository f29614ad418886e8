//! Chooses the agent for a message and waits for the start of its turn.

use std::pin::pin;
use std::sync::{Arc, Weak};

use dashmap::DashMap;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::paused_agents::PausedAgents;
use crate::agents::{Agent, Chosen};
use crate::domain::{AgentUid, SessionKey};
use crate::home::Snapshot;
use crate::records::inbox::Accepted;
use crate::records::model_overrides::Overrides;
use crate::routing::{self, Route, Router, Visit};
use crate::slots::{Slot, Slots};
use crate::storage::StoreError;
use crate::subagents::InternalTurn;

/// Chooses the agent of a turn and waits for a free slot.
#[derive(Clone)]
pub(crate) struct Admission {
    pub(super) router: Router,
    pub(super) overrides: Arc<Overrides>,
    pub(super) slots: Arc<Slots<AgentUid>>,
    pub(super) turn_slots: Arc<TurnSlots>,
    pub(super) pauses: PausedAgents,
    pub(super) stop: CancellationToken,
}

/// The chosen agent with its rule and model.
pub(super) struct Choice {
    pub(super) agent: Arc<Agent>,
    pub(super) route: Route,
    pub(super) chosen: Chosen,
    /// A pin for this message alone chose the agent.
    pub(super) used_once: bool,
}

/// The slots of turns, by the message of the turn, so that subagents find the slot of their parent.
#[derive(Default)]
pub(super) struct TurnSlots {
    slots: DashMap<i64, Weak<Slot<AgentUid>>>,
    changed: Notify,
}

impl TurnSlots {
    fn slot_of(&self, turn: i64) -> Option<Arc<Slot<AgentUid>>> {
        self.slots.get(&turn).and_then(|slot| slot.upgrade())
    }
}

/// The slot a turn runs in, held while it runs. Subagents that a turn waits for share its slot: with
/// a slot each, waiting parents could fill all slots while their subagents wait for a free slot. A
/// parked turn gives its slot back when these subagents have ended.
pub(super) struct TurnSlot {
    slot: Arc<Slot<AgentUid>>,
    turn: i64,
    all: Arc<TurnSlots>,
}

impl Drop for TurnSlot {
    fn drop(&mut self) {
        let is_own =
            |_: &i64, known: &Weak<_>| std::ptr::eq(known.as_ptr(), Arc::as_ptr(&self.slot));
        self.all.slots.remove_if(&self.turn, is_own);
    }
}

/// The result of waiting for a slot.
pub(super) enum InLine {
    Next(TurnSlot),
    /// The agent is paused, and the message waits.
    Paused,
    /// The turn is stopped and need not wait.
    Halted,
    /// The process stops.
    Stopping,
}

impl Admission {
    /// Waits for a slot of the agent. The message is routed again after the wait: a switch counts
    /// for waiting messages too. A turn begun by an earlier process stays with its agent.
    pub(super) async fn choose(
        &self,
        snapshot: &Snapshot,
        accepted: &Accepted,
        began_with: Option<AgentUid>,
        halt: &CancellationToken,
    ) -> Result<(Choice, InLine), StoreError> {
        loop {
            let choice = self.route(snapshot, accepted, began_with).await?;
            if self.pauses.is_paused(choice.agent.uid) && !halt.is_cancelled() {
                return Ok((choice, InLine::Paused));
            }
            let waited_as = choice.agent.uid;
            let in_line = self.wait_for(waited_as, accepted.id, None, halt).await;
            let choice = self.route(snapshot, accepted, began_with).await?;
            let is_other = choice.agent.uid != waited_as || self.pauses.is_paused(waited_as);
            if matches!(in_line, InLine::Next(_)) && is_other {
                continue;
            }
            return Ok((choice, in_line));
        }
    }

    /// An internal turn keeps its agent, even if the place has another agent now.
    pub(super) async fn send_on(
        &self,
        snapshot: &Snapshot,
        accepted: &Accepted,
        internal: &InternalTurn,
        halt: &CancellationToken,
    ) -> Result<(Choice, InLine), StoreError> {
        let agent = snapshot.agent_or_default(internal.agent());
        let origin = &accepted.inbound.origin;
        let route = routing::route(&snapshot.table, None, origin);
        tracing::info!(agent.id = %agent.id, run = %internal.run(), inbox.id = accepted.id, "{} works", agent.id);
        let chosen = self.model(&origin.key, &agent).await?;
        let in_line = self
            .wait_for(agent.uid, accepted.id, Some(internal), halt)
            .await;
        Ok((
            Choice {
                agent,
                route,
                chosen,
                used_once: false,
            },
            in_line,
        ))
    }

    /// Waits until a turn may run: for a slot, or for that of its parent if the parent waits for it.
    pub(super) async fn wait_for(
        &self,
        agent: AgentUid,
        turn: i64,
        internal: Option<&InternalTurn>,
        halt: &CancellationToken,
    ) -> InLine {
        let parent = internal.and_then(InternalTurn::waiting_parent);
        let slot = tokio::select! {
            biased;
            () = self.stop.cancelled() => return InLine::Stopping,
            () = halt.cancelled() => return InLine::Halted,
            slot = self.slot_of_parent(parent) => slot,
            slot = self.slots.acquire(agent) => Arc::new(slot),
        };
        let all = self.turn_slots.clone();
        all.slots.insert(turn, Arc::downgrade(&slot));
        all.changed.notify_waiters();
        InLine::Next(TurnSlot { slot, turn, all })
    }

    /// Returns once the parent has a slot. A parked parent has none, and may get one at any time.
    async fn slot_of_parent(&self, parent: Option<i64>) -> Arc<Slot<AgentUid>> {
        let Some(parent) = parent else {
            return std::future::pending().await;
        };
        loop {
            let mut changed = pin!(self.turn_slots.changed.notified());
            // Before the look, so that no change is missed.
            changed.as_mut().enable();
            if let Some(slot) = self.turn_slots.slot_of(parent) {
                return slot;
            }
            changed.await;
        }
    }

    /// The model of an agent in a place.
    pub(crate) async fn model(
        &self,
        place: &SessionKey,
        agent: &Agent,
    ) -> Result<Chosen, StoreError> {
        Ok(agent
            .models
            .choose(self.overrides.get(place).await?.as_ref()))
    }

    async fn route(
        &self,
        snapshot: &Snapshot,
        accepted: &Accepted,
        began_with: Option<AgentUid>,
    ) -> Result<Choice, StoreError> {
        let origin = &accepted.inbound.origin;
        let visit = visit(snapshot, accepted);
        let resolved = self.router.resolve(&snapshot.table, visit).await?;
        // The agent may have been closed to the person since.
        let is_open = |agent: &Arc<Agent>| {
            agent.id == resolved.route.agent || snapshot.table.may_use(&agent.id, visit).is_ok()
        };
        let began_with = began_with
            .and_then(|uid| snapshot.registry.by_uid(uid).cloned())
            .filter(is_open);
        let agent = began_with.unwrap_or_else(|| snapshot.agent_of(&resolved.route));
        let chosen = self.model(&origin.key, &agent).await?;
        Ok(Choice {
            agent,
            route: resolved.route,
            chosen,
            used_once: resolved.pin.is_some_and(|pin| pin.once),
        })
    }
}

fn visit<'a>(snapshot: &'a Snapshot, accepted: &'a Accepted) -> Visit<'a> {
    Visit {
        access: &snapshot.config.access,
        origin: &accepted.inbound.origin,
        standing: &accepted.standing,
    }
}

impl Choice {
    /// Logs the agent, once it is sure to answer. The line that counts for the operator comes with
    /// the end of the turn.
    pub(super) fn log(&self, accepted: &Accepted) {
        let (agent, origin) = (&self.agent.id, &accepted.inbound.origin);
        tracing::debug!(
            agent.id = %agent,
            session = %origin.key,
            route.rule = %self.route.rule,
            inbox.id = accepted.id,
            "{agent} begins"
        );
    }
}
