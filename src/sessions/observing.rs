//! Keeps what people say among themselves, so that "what do you think?" makes sense to the agent that is asked next.

use rusqlite::Transaction;

use super::inbox::{self, Accepted, Closing};
use super::{Inner, parts, starting, transcript};
use crate::clock::now_ms;
use crate::domain::AgentUid;
use crate::storage::Durability;

/// In the lane like a turn, so that it stands in the transcript where it was said: after the question before it.
pub(super) async fn run(inner: &Inner, accepted: &Accepted) {
    let hearer = match starting::who_answers(inner, &accepted.inbound.origin).await {
        Ok(agent) => agent.uid,
        Err(error) => return tracing::warn!(inbox.id = accepted.id, "left to the next start: {error}"),
    };
    let keep = || {
        let accepted = accepted.clone();
        move |tx: &Transaction<'_>| keep(tx, &accepted, hearer, now_ms())
    };
    // A power cut that takes it back takes the closed row back as well.
    if let Err(error) = inner.parts.db.write_patiently(&inner.stop, Durability::Kill, keep).await {
        tracing::warn!(inbox.id = accepted.id, "left to the next start: {error}");
    }
}

/// Nobody answers it, so it is of the part of whoever the place belonged to when it was said.
fn keep(tx: &Transaction<'_>, accepted: &Accepted, hearer: AgentUid, now: i64) -> rusqlite::Result<()> {
    let inbound = &accepted.inbound;
    let part = inbound.besides.note.map_or(Ok(Some(hearer)), |note| parts::of_note(tx, inbound, note))?;
    transcript::append_observed(tx, accepted, part, now)?;
    inbox::close(tx, accepted.id, Closing::Refused, "observed", now)
}
