//! Notices for the owners: about undelivered answers, once per place and reason until these are
//! sent again; and, without the outbox, about the end of the process.

use std::time::Duration;

use futures_util::future::join_all;
use rusqlite::Transaction;

use super::outbox::Source;
use super::verdict::Rest;
use super::{Delivery, Kind, outbox, undelivered};
use crate::channels::{PlaceLoss, Text, Ticket};
use crate::clock::now_ms;
use crate::domain::{Destination, SessionKey};
use crate::routing::names;

/// How long the end of the process waits for notices to the owners.
const TELL_WITHIN: Duration = Duration::from_secs(10);

/// Rows written for the owners, by place.
pub(super) type Told = Vec<(SessionKey, usize)>;

impl Delivery {
    /// The text for each reachable owner, ready for `outbox::insert`.
    pub fn draft_for_owners(&self, text: &str) -> Vec<outbox::Draft> {
        let owners = self.owners();
        let reached = owners.iter().filter(|owner| self.reaches(owner.place()));
        reached
            .flat_map(|owner| self.draft(owner, Kind::Notice, &Text::plain(text)))
            .collect()
    }

    /// The same, without the owner in this place.
    pub fn draft_for_owners_elsewhere(
        &self,
        text: &str,
        place: Option<&SessionKey>,
    ) -> Vec<outbox::Draft> {
        let mut rows = self.draft_for_owners(text);
        rows.retain(|row| Some(row.to.place()) != place);
        rows
    }

    /// Sends a text to every owner without the outbox, for when nothing can be stored. A single
    /// try, with a time limit.
    pub async fn tell_owners_at_once(&self, text: &str) {
        let rows = self.draft_for_owners(text);
        let sends = rows.iter().enumerate().map(|(number, row)| async move {
            let Some(outlet) = self.inner.outlet_of(row.to.place()) else {
                return;
            };
            if let Some(pace) = outlet.channel.abilities().pace(&row.to) {
                outlet.pacing.ready(pace, row.kind).await;
            }
            let ticket = Ticket(format!("now-{:x}-{number:x}", now_ms()));
            if let Err(error) = outlet.channel.send(&row.to, &row.part, &ticket).await {
                tracing::warn!(session = %row.to.place(), "an owner could not be told: {error}");
            }
        });
        if tokio::time::timeout(TELL_WITHIN, join_all(sends))
            .await
            .is_err()
        {
            tracing::warn!("not every owner could be told in time");
        }
    }

    /// Sends the drafts for owners after their commit.
    pub fn submit_drafted(&self, rows: &[outbox::Draft]) {
        rows.iter().for_each(|row| self.submit(row.to.place(), 1));
    }
}

/// Gives up a row whose place is lost. Notices go to private chats without topics, so a lost topic
/// never leads to a notice in the same topic.
pub(super) fn give_up(
    tx: &Transaction<'_>,
    delivery: &Delivery,
    to: &Destination,
    id: i64,
    reason: &str,
) -> rusqlite::Result<Told> {
    outbox::failed(tx, id, reason)?;
    tell(tx, delivery, to.place(), id, reason, lost)
}

/// Sets aside a row with failures of its own, and the later parts of its answer.
pub(super) fn set_aside(
    tx: &Transaction<'_>,
    delivery: &Delivery,
    place: &SessionKey,
    id: i64,
    reason: &str,
) -> rusqlite::Result<Told> {
    outbox::given_up(tx, id, reason, Rest::StaysBehind)?;
    tell(tx, delivery, place, id, reason, stuck)
}

fn tell(
    tx: &Transaction<'_>,
    delivery: &Delivery,
    place: &SessionKey,
    id: i64,
    reason: &str,
    words: fn(&str, &str) -> String,
) -> rusqlite::Result<Told> {
    if !undelivered::is_first(tx, id, place, reason)? {
        return Ok(Vec::new());
    }
    let called = match names::load(tx, place)? {
        Some(name) => format!("“{name}” (`{place}`)"),
        None => format!("`{place}`"),
    };
    let rows = delivery.draft_for_owners(&words(&called, reason));
    outbox::insert(tx, &rows, Source::default(), now_ms())?;
    Ok(rows
        .into_iter()
        .map(|row| (row.to.place().clone(), 1))
        .collect())
}

fn lost(place: &str, reason: &str) -> String {
    let is_gone = [PlaceLoss::Deleted, PlaceLoss::ChannelGone];
    if is_gone.iter().any(|loss| loss.to_string() == reason) {
        return format!(
            "I could not answer in {place}: {reason}. The answer is kept: `parlor failed` shows it, and `parlor failed drop` lets go of it."
        );
    }
    format!(
        "I could not answer in {place}: {reason}. The answer is kept, and so are those that follow. \
         `/retry` there or here sends them again; `parlor failed` lists them."
    )
}

fn stuck(place: &str, reason: &str) -> String {
    format!(
        "I could not send one answer in {place}: {reason}. It is kept, and the others go on. \
         `/retry` there or here sends it again; `parlor failed` lists it, and `parlor failed drop` lets go of it."
    )
}
