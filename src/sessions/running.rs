//! One message's turn, from the lane to its end: who answers, and with what.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;

use super::Inner;
use super::ending::{self, Begun};
use super::inbox::Accepted;
use super::transcript::{self, Conversation};
use super::{lane, notes, question};
use crate::access::{Standing, people};
use crate::agents::{Agent, Identity};
use crate::channels::Outcome;
use crate::clock::now_ms;
use crate::delivery::Underway;
use crate::domain::{Destination, Inbound};
use crate::routing;
use crate::storage::StoreError;
use crate::tools::Scope;
use crate::turn::history::{self, Said, Speaker};
use crate::turn::{self, TurnRequest, prompt};

/// The pause before a turn is begun again when the store could not be read.
const STORE_BACKOFF: Duration = Duration::from_secs(1);

/// Answers the message. Whatever goes wrong is told in the place it came from.
pub(super) async fn run(inner: &Arc<Inner>, mut accepted: Accepted) {
    let mark = inner.parts.delivery.mark(&accepted.inbound);
    loop {
        // The group may have become another one while the message waited.
        inner.parts.aliases.follow(&mut accepted.inbound.origin);
        let ended = match AssertUnwindSafe(answer(inner, &accepted)).catch_unwind().await {
            Ok(ended) => ended,
            Err(_) => ending::after_panic(inner, &accepted).await.map(|()| Outcome::Failed),
        };
        let error = match ended {
            Ok(outcome) => return mark.end(outcome),
            Err(error) => error,
        };
        tracing::error!(session = %accepted.inbound.origin.key, "a turn waits for the store: {error}");
        tokio::select! {
            () = tokio::time::sleep(STORE_BACKOFF) => {}
            // The row is still in the inbox, where the next start finds it.
            () = inner.stop.cancelled() => return,
        }
    }
}

async fn answer(inner: &Arc<Inner>, accepted: &Accepted) -> Result<Outcome, StoreError> {
    if accepted.inbound.besides.note.is_some() {
        return notes::keep(inner, accepted).await.map(|()| Outcome::Answered);
    }
    let parts = &inner.parts;
    let inbound = &accepted.inbound;
    let mut begun = begin(inner, accepted).await?;
    // Begun before the files are fetched, which may take a while.
    let progress = parts.delivery.progress(Underway {
        to: Destination::of(inbound),
        speaker: begun.agent.label(),
        inbox_id: accepted.id,
        question: inbound.message.clone(),
        others_wrote: lane::others_wait(inner, &inbound.origin.key),
    });
    begun.accepted = question::whole(inner, accepted, &begun.agent).await;
    let (conversation, request) = request(inner, &begun.accepted.inbound, &begun.agent).await?;
    let result = AssertUnwindSafe(turn::run(&parts.models, request, progress.events())).catch_unwind().await;
    // Also after a panic: what is said about it must not be followed by a late preview.
    progress.end().await;
    ending::store(inner, begun, conversation, result.unwrap_or_else(|panic| resume_unwind(panic))).await
}

/// Routed when the turn begins, not when the message came: a switch counts for what still waits.
async fn begin(inner: &Inner, accepted: &Accepted) -> Result<Begun, StoreError> {
    let parts = &inner.parts;
    let origin = &accepted.inbound.origin;
    let pin = parts.pins.get(&origin.key).await?.filter(|pin| parts.registry.get(&pin.agent).is_some());
    let route = routing::route(&parts.table, pin.as_ref(), origin);
    let agent = parts.registry.get(&route.agent).unwrap_or_else(|| parts.registry.default_agent()).clone();
    tracing::info!(
        agent.id = %agent.id,
        session = %origin.key,
        place.name = origin.name.as_deref(),
        route.rule = %route.rule,
        inbox.id = accepted.id,
        "{} answers",
        agent.id
    );
    let used_once = pin.is_some_and(|pin| pin.once);
    Ok(Begun { accepted: accepted.clone(), agent, route, used_once, started_at: now_ms() })
}

async fn request(inner: &Inner, inbound: &Inbound, agent: &Arc<Agent>) -> Result<(Conversation, TurnRequest), StoreError> {
    let parts = &inner.parts;
    let place = inbound.origin.key.clone();
    let named = place.is_shared();
    let person = inbound.origin.person.clone();
    let looked_up = parts.db.read(move |connection| {
        let (conversation, history) = transcript::history(connection, &place)?;
        Ok((conversation, history, people::is_paired(connection, &person)?))
    });
    let bootstrap = !parts.bootstrapped.contains(&agent.uid);
    let recalled = async { Ok(recall(inner, agent, &inbound.readable()).await) };
    let ((conversation, history, paired), system, recalled) =
        tokio::try_join!(looked_up, system_prompt(agent.clone(), bootstrap), recalled)?;
    let scope = Scope {
        agent: agent.clone(),
        place: inbound.origin.key.clone(),
        person: inbound.origin.person.clone(),
        standing: Standing::of(&parts.access, &inbound.origin.person, paired),
    };
    let current = Said { by: Speaker::Person(inbound.person_name.clone()), text: inbound.readable() };
    let messages = history::reminded(history::for_model(&history, current, &agent.id, named), recalled);
    let tools = parts.tools.of(agent);
    Ok((conversation, TurnRequest { model: agent.model.clone(), system, messages, tools, scope }))
}

/// An agent that cannot be reminded answers without.
async fn recall(inner: &Inner, agent: &Arc<Agent>, text: &str) -> Option<String> {
    let recalled = inner.parts.memories.of(agent)?.recall(text).await;
    recalled.inspect_err(|error| tracing::warn!(agent.id = %agent.id, "nothing is recalled: {error}")).ok().flatten()
}

/// The files are read anew for every turn, so that an edit counts from the next message on.
async fn system_prompt(agent: Arc<Agent>, bootstrap: bool) -> Result<String, StoreError> {
    let read = tokio::task::spawn_blocking(move || prompt::assemble(&agent, &Identity::load(&agent, bootstrap)));
    read.await.map_err(|error| match error.try_into_panic() {
        // The turn's own panic, to be told in the chat: tried again like a failing store, it would panic for ever.
        Ok(panic) => resume_unwind(panic),
        Err(error) => StoreError::Failed(format!("reading identity files: {error}")),
    })
}
