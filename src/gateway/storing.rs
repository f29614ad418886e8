//! Stores the arrivals of a batch: new messages, and events of places and of older messages.
//!
//! A batch is a single transaction. If an arrival among them can never be stored, the others are
//! stored without it; else the platform would bring the same batch for ever.

use std::sync::Arc;

use rusqlite::Transaction;

use super::GatewayState;
use super::barred;
use super::deletions::{self, Deleted, Deletions};
use super::group_migration::{self, Move};
use super::topics::{self, OpenPlaces, Rows};
use crate::access::{grants, people};
use crate::answering::broken;
use crate::channels::{Batch, Text};
use crate::clock::now_ms;
use crate::config::Config;
use crate::delivery::outbox::Source;
use crate::delivery::{Kind, outbox};
use crate::domain::{Arrival, Destination, Inbound, Platform, SessionKey};
use crate::records::group_migration::Followed;
use crate::records::inbox::{self, Stored};
use crate::storage::{Remedy, StoreError, part};

/// A stored batch, with its effects on places.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) stored: Stored,
    /// Whether the writer of a lone message is a member. In a larger batch an earlier message may
    /// change this for a later message.
    pub(super) is_paired: Option<bool>,
    /// The number of the grants to people when the batch was stored.
    pub(super) grants: Option<i64>,
    /// Outbox rows to send: those of topics open for messages again, and apologies.
    pub(super) to_send: Rows,
    pub(super) moves: Vec<(Moved, Followed)>,
    pub(super) deleted: Deleted,
}

/// A move in the batch.
pub(super) type Moved = Arc<Move>;

pub(super) async fn store(state: &Arc<GatewayState>, batch: Batch) -> Result<Taken, StoreError> {
    let moves = group_migration::among(state, &batch.arrivals).await;
    let barred = barred::among(&batch.arrivals);
    let snapshot = state.services.snapshots.current();
    let arrivals = topics::bind_by_name(&snapshot, batch.arrivals);
    let open = topics::open_places(state, &snapshot, &arrivals).await?;
    let batch = Arc::new(Arrivals {
        platform: batch.platform,
        deletions: deletions::among(&arrivals),
        arrivals,
        moves: moves.into_iter().map(Arc::new).collect(),
        open,
        config: snapshot.config.clone(),
    });
    let (whole, db) = (batch.clone(), &state.services.db);
    let stored = match db.write(move |tx| whole.write(tx)).await {
        Err(error) if error.remedy() == Remedy::GiveUp => {
            tracing::warn!("a batch of messages is stored one by one: {error}");
            let state = state.clone();
            db.write(move |tx| OneByOne::new(&state, batch.platform).write(tx, &batch))
                .await
        }
        stored => stored,
    };
    if stored.is_ok() {
        for (group, reason) in &barred {
            barred::tell(state, group, reason).await;
        }
    }
    stored
}

/// The arrivals of a batch by their kinds.
struct Arrivals {
    platform: Platform,
    arrivals: Vec<Arrival>,
    deletions: Deletions,
    moves: Vec<Moved>,
    /// Places whose names may be learned.
    open: OpenPlaces,
    config: Arc<Config>,
}

impl Arrivals {
    fn may_learn(&self, tx: &Transaction<'_>, place: &SessionKey) -> rusqlite::Result<bool> {
        self.open.may_learn(tx, &self.config.access, place)
    }

    fn write(&self, tx: &Transaction<'_>) -> rusqlite::Result<Taken> {
        let may_learn = |place: &SessionKey| self.may_learn(tx, place);
        let mut stored = inbox::insert(tx, self.platform, &self.arrivals, may_learn, now_ms())?;
        let deleted = self.deletions.write(tx, self.platform, now_ms())?;
        stored
            .accepted
            .retain(|accepted| !deleted.rows.contains(&accepted.id));
        let is_paired = match stored.accepted.as_slice() {
            [only] => {
                let people = &self.config.access.people;
                let ids = people.ids_of(&only.inbound.origin.person);
                Some(people::is_paired(tx, ids)?)
            }
            _ => None,
        };
        let grants = grants::revision(tx)?;
        let to_send = topics::retry(tx, &stored.reopened, now_ms())?;
        // After the messages, because they may be older than the move of their group.
        let follow = |known: &Moved| known.write(tx).map(|followed| (known.clone(), followed));
        let moves = self
            .moves
            .iter()
            .map(follow)
            .collect::<rusqlite::Result<_>>()?;
        Ok(Taken {
            stored,
            is_paired,
            grants: Some(grants),
            to_send,
            moves,
            deleted,
        })
    }
}

/// Stores arrivals each by itself, in the same order as a whole batch.
struct OneByOne<'a> {
    state: &'a GatewayState,
    platform: Platform,
    taken: Taken,
}

impl<'a> OneByOne<'a> {
    fn new(state: &'a GatewayState, platform: Platform) -> Self {
        OneByOne {
            state,
            platform,
            taken: Taken::default(),
        }
    }

    fn write(mut self, tx: &Transaction<'_>, batch: &Arrivals) -> rusqlite::Result<Taken> {
        for arrival in &batch.arrivals {
            self.insert(tx, batch, arrival)?;
        }
        for arrival in &batch.arrivals {
            match arrival {
                Arrival::Deleted(messages) => {
                    for message in messages {
                        self.delete(tx, &Arrival::Deleted(vec![message.clone()]))?;
                    }
                }
                Arrival::Gone(_) => self.delete(tx, arrival)?,
                _ => {}
            }
        }
        let deleted = &self.taken.deleted.rows;
        self.taken
            .stored
            .accepted
            .retain(|accepted| !deleted.contains(&accepted.id));
        for place in std::mem::take(&mut self.taken.stored.reopened) {
            self.reopen(tx, &place)?;
        }
        for known in &batch.moves {
            self.follow(tx, known)?;
        }
        Ok(self.taken)
    }

    fn insert(
        &mut self,
        tx: &Transaction<'_>,
        batch: &Arrivals,
        arrival: &Arrival,
    ) -> rusqlite::Result<()> {
        let may_learn = |place: &SessionKey| batch.may_learn(tx, place);
        let insert = || inbox::insert(tx, self.platform, [arrival], may_learn, now_ms());
        match (part(tx, insert)?, arrival) {
            (Ok(new), _) => {
                let stored = &mut self.taken.stored;
                stored.accepted.extend(new.accepted);
                stored.renamed.extend(new.renamed);
                stored.reopened.extend(new.reopened);
            }
            (Err(error), Arrival::Message(inbound)) => self.refuse(tx, inbound, &error)?,
            (Err(error), _) => tracing::error!("an event of a place was given up: {error}"),
        }
        Ok(())
    }

    /// Notes a message that cannot be stored, and tells its writer.
    fn refuse(
        &mut self,
        tx: &Transaction<'_>,
        inbound: &Inbound,
        error: &StoreError,
    ) -> rusqlite::Result<()> {
        let outcome = format!("could not be stored: {error}");
        let note =
            || inbox::insert_failed(tx, self.platform, &inbound.update_id, &outcome, now_ms());
        let id = part(tx, note)?.ok();
        let reference = id.map_or_else(|| inbound.update_id.clone(), |id| id.to_string());
        let place = &inbound.origin.key;
        tracing::error!(session = %place, inbox.id = id, "a message was given up (ref {reference}): {error}");
        if self.state.is_told(inbound) {
            let (to, text) = (Destination::of(inbound), broken(reference));
            let rows = self
                .state
                .delivery
                .draft(&to, Kind::Error, &Text::plain(&text));
            self.say(tx, &rows, Source::of(id))?;
        }
        Ok(())
    }

    fn delete(&mut self, tx: &Transaction<'_>, arrival: &Arrival) -> rusqlite::Result<()> {
        let deletions = deletions::among([arrival]);
        match part(tx, || deletions.write(tx, self.platform, now_ms()))? {
            Ok(deleted) => self.taken.deleted.add(deleted),
            Err(error) => tracing::error!(
                "words that people deleted are still stored; `/new` hides them from agents: {error}"
            ),
        }
        Ok(())
    }

    fn reopen(&mut self, tx: &Transaction<'_>, place: &SessionKey) -> rusqlite::Result<()> {
        let reopened = std::slice::from_ref(place);
        match part(tx, || topics::retry(tx, reopened, now_ms()))? {
            Ok(retried) => self.taken.to_send.extend(retried),
            Err(error) => {
                tracing::error!(session = %place, "failed messages are not sent again: {error}");
            }
        }
        Ok(())
    }

    fn follow(&mut self, tx: &Transaction<'_>, known: &Moved) -> rusqlite::Result<()> {
        let error = match part(tx, || known.write(tx))? {
            Ok(followed) => {
                self.taken.moves.push((known.clone(), followed));
                return Ok(());
            }
            Err(error) => error,
        };
        let moved = known.moved();
        tracing::error!(
            "the group {} is now {}, and was not followed: {error}",
            moved.old,
            moved.new
        );
        let told = group_migration::not_followed(moved);
        let rows = self.state.delivery.draft_for_owners(&told);
        self.say(tx, &rows, Source::default())
    }

    fn say(
        &mut self,
        tx: &Transaction<'_>,
        rows: &[outbox::Draft],
        source: Source,
    ) -> rusqlite::Result<()> {
        match part(tx, || outbox::insert(tx, rows, source, now_ms()))? {
            Ok(()) => rows
                .iter()
                .for_each(|row| *self.taken.to_send.entry(row.place().clone()).or_default() += 1),
            Err(error) => tracing::error!("that was not told: {error}"),
        }
        Ok(())
    }
}
