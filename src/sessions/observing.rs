//! Keeps what people say among themselves, so that "what do you think?" makes sense to the agent that is asked next.

use rusqlite::Transaction;

use super::inbox::{self, Accepted, Closing};
use super::{Inner, transcript};
use crate::clock::now_ms;
use crate::storage::Durability;

/// In the lane like a turn, so that it stands in the transcript where it was said: after the question before it.
pub(super) async fn run(inner: &Inner, accepted: &Accepted) {
    let keep = || {
        let accepted = accepted.clone();
        move |tx: &Transaction<'_>| keep(tx, &accepted, now_ms())
    };
    // A power cut that takes it back takes the closed row back as well.
    if let Err(error) = inner.parts.db.write_patiently(&inner.stop, Durability::Kill, keep).await {
        tracing::warn!(inbox.id = accepted.id, "left to the next start: {error}");
    }
}

fn keep(tx: &Transaction<'_>, accepted: &Accepted, now: i64) -> rusqlite::Result<()> {
    transcript::append_observed(tx, &accepted.inbound, now)?;
    inbox::close(tx, accepted.id, Closing::Refused, "observed", now)
}
