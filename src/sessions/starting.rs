//! Who answers a message, and when its turn may begin.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::Inner;
use super::inbox::Accepted;
use super::slots::Slot;
use crate::agents::{Agent, Chosen};
use crate::domain::{AgentUid, Origin};
use crate::routing::{self, Pin, Route};
use crate::storage::StoreError;

/// Who answers, by which rule, and with which model.
pub(super) struct Choice {
    pub(super) agent: Arc<Agent>,
    pub(super) route: Route,
    pub(super) chosen: Chosen,
    /// By a pin for this one message.
    pub(super) used_once: bool,
}

/// What came of waiting in the line.
pub(super) enum InLine {
    Next(Slot),
    /// It runs in the slot of whoever waits for it: two slots for one piece of work could wait for each other for ever.
    NoNeed,
    /// Somebody wants it stopped, so it need not wait.
    Halted,
    /// The process stops.
    Stopping,
}

/// Waits until the agent who answers may begin. Routed again after the wait: a switch counts for what still waits. A turn that
/// an earlier process began stays with its agent.
pub(super) async fn choose(
    inner: &Inner,
    accepted: &Accepted,
    began_with: Option<AgentUid>,
    halt: &CancellationToken,
) -> Result<(Choice, InLine), StoreError> {
    loop {
        let waited_as = route(inner, accepted, began_with).await?.agent.uid;
        let in_line = wait(inner, waited_as, halt).await;
        let choice = route(inner, accepted, began_with).await?;
        if matches!(in_line, InLine::Next(_)) && choice.agent.uid != waited_as {
            continue;
        }
        log(&choice, accepted);
        return Ok((choice, in_line));
    }
}

pub(super) async fn wait(inner: &Inner, agent: AgentUid, halt: &CancellationToken) -> InLine {
    tokio::select! {
        biased;
        () = inner.stop.cancelled() => InLine::Stopping,
        () = halt.cancelled() => InLine::Halted,
        slot = inner.slots.acquire(agent) => InLine::Next(slot),
    }
}

/// The agent that a place belongs to now, for whoever writes there.
pub(super) async fn who_answers(inner: &Inner, origin: &Origin) -> Result<Arc<Agent>, StoreError> {
    Ok(routed(inner, origin).await?.0)
}

async fn route(inner: &Inner, accepted: &Accepted, began_with: Option<AgentUid>) -> Result<Choice, StoreError> {
    let origin = &accepted.inbound.origin;
    let (routed, route, pin) = routed(inner, origin).await?;
    let agent = began_with.and_then(|uid| inner.parts.registry.by_uid(uid).cloned()).unwrap_or(routed);
    let chosen = agent.brain.choose(inner.overrides.get(&origin.key).await?.as_ref());
    Ok(Choice { agent, route, chosen, used_once: pin.is_some_and(|pin| pin.once) })
}

async fn routed(inner: &Inner, origin: &Origin) -> Result<(Arc<Agent>, Route, Option<Pin>), StoreError> {
    let parts = &inner.parts;
    let pin = parts.pins.get(&origin.key).await?.filter(|pin| parts.registry.get(&pin.agent).is_some());
    let route = routing::route(&parts.table, pin.as_ref(), origin);
    let agent = parts.registry.get(&route.agent).unwrap_or_else(|| parts.registry.default_agent()).clone();
    Ok((agent, route, pin))
}

fn log(choice: &Choice, accepted: &Accepted) {
    let (agent, origin) = (&choice.agent.id, &accepted.inbound.origin);
    tracing::info!(
        agent.id = %agent,
        session = %origin.key,
        place.name = origin.name.as_deref(),
        route.rule = %choice.route.rule,
        inbox.id = accepted.id,
        "{agent} answers"
    );
}
