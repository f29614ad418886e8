//! Keeps messages without an answer: edits and reactions, and talk among people.
//!
//! They pass through the lane like turns, so the transcript keeps their order.

use rusqlite::Transaction;
use tokio_util::sync::CancellationToken;

use crate::access::people;
use crate::answering::{GivingUp, Told};
use crate::clock::now_ms;
use crate::domain::AgentUid;
use crate::fail_points::{self, Write};
use crate::home::Snapshots;
use crate::records::inbox::{self, Accepted, Closing};
use crate::records::transcript::{self, Spot};
use crate::records::view;
use crate::storage::{Db, Durability, Next, Patience, StoreError};

/// Writes messages into the transcript without an answer.
pub(super) struct Keeper {
    pub(super) db: Db,
    pub(super) snapshots: Snapshots,
    pub(super) giving_up: GivingUp,
    pub(super) stop: CancellationToken,
}

/// The result of keeping a message.
pub(super) enum Kept {
    Done,
    /// The process stops; the next process finds the row.
    LeftBehind,
}

impl Keeper {
    /// Keeps an edit or a reaction after the answer.
    pub(super) async fn note(&self, accepted: &Accepted) -> Kept {
        let mut patience = Patience::new("a note");
        while let Err(error) = self.write_note(accepted).await {
            match patience.after(&self.stop, &error).await {
                Next::Again => {}
                Next::Hopeless => {
                    self.give_up(accepted, &error).await;
                    break;
                }
                Next::Stopping => return Kept::LeftBehind,
            }
        }
        Kept::Done
    }

    /// People expect no answer to a note or to talk among themselves, so only the log tells.
    async fn give_up(&self, accepted: &Accepted, error: &StoreError) {
        self.giving_up
            .close(accepted, error, Told::InLogOnly, &self.stop)
            .await;
    }

    async fn write_note(&self, accepted: &Accepted) -> Result<(), StoreError> {
        let (mut accepted, snapshot) = (accepted.clone(), self.snapshots.current());
        let write = move |tx: &Transaction<'_>| {
            let (access, person) = (&snapshot.config.access, &accepted.inbound.origin.person);
            accepted.role = people::standing(tx, access, person)?.lowest();
            let (now, place) = (now_ms(), &accepted.inbound.origin.key);
            transcript::touch(tx, place, now)?;
            let part = accepted
                .inbound
                .extras
                .note
                .map_or(Ok(None), |note| view::of_note(tx, &accepted.inbound, note))?;
            let spot = Spot {
                conversation: transcript::conversation(tx, place)?,
                part,
            };
            transcript::append_person(tx, &accepted, spot, now)?;
            inbox::close(tx, accepted.id, Closing::Done, "noted", now)
        };
        self.db.write(write).await
    }

    /// Keeps talk among people, so a later question about the talk makes sense to the agent.
    pub(super) async fn observed(&self, accepted: &Accepted, hearer: AgentUid) {
        match self.keep_observed(accepted, hearer).await {
            Ok(()) => {}
            Err(error) if error.is_permanent() => self.give_up(accepted, &error).await,
            Err(error) => {
                tracing::warn!(inbox.id = accepted.id, "left to the next start: {error}");
            }
        }
    }

    async fn keep_observed(&self, accepted: &Accepted, hearer: AgentUid) -> Result<(), StoreError> {
        let snapshot = self.snapshots.current();
        let agent = snapshot.agent_or_default(hearer);
        let keep = || {
            let (mut accepted, snapshot, agent) =
                (accepted.clone(), snapshot.clone(), agent.clone());
            move |tx: &Transaction<'_>| {
                let (access, person) = (&snapshot.config.access, &accepted.inbound.origin.person);
                accepted.role = people::standing(tx, access, person)?.with(&agent.id);
                write_observed(tx, &accepted, hearer, now_ms())
            }
        };
        // If a power cut undoes the write, the row is open again too.
        self.db
            .write_patiently(&self.stop, Durability::Kill, keep)
            .await
    }
}

/// Observed talk belongs to the agent of the place at the time.
fn write_observed(
    tx: &Transaction<'_>,
    accepted: &Accepted,
    hearer: AgentUid,
    now: i64,
) -> rusqlite::Result<()> {
    fail_points::writes(Write::TalkKept);
    let inbound = &accepted.inbound;
    let part = inbound
        .extras
        .note
        .map_or(Ok(Some(hearer)), |note| view::of_note(tx, inbound, note))?;
    transcript::append_observed(tx, accepted, part, now)?;
    inbox::close(tx, accepted.id, Closing::Refused, inbox::OBSERVED, now)
}
