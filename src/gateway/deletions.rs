//! Carries out deletions by people: of messages and of whole places.

use rusqlite::Transaction;

use super::GatewayState;
use crate::channels::PlaceLoss;
use crate::delivery::outbox;
use crate::domain::{Arrival, MessageId, Platform, SessionKey};
use crate::records::deletions::{self, Gone};
use crate::records::inbox;
use crate::records::jobs as job_rows;

/// Why the jobs of a deleted place rest.
const PLACE_GONE: &str = "its place is gone";

/// The deletions in a batch.
#[derive(Debug, Default)]
pub(super) struct Deletions {
    messages: Vec<MessageId>,
    places: Vec<SessionKey>,
}

/// Deletions after they are written.
#[derive(Debug, Default)]
pub(super) struct Deleted {
    /// Inbox rows closed because their message was deleted.
    pub(super) rows: Vec<i64>,
    places: Vec<SessionKey>,
    /// Whether words left the database.
    had_words: bool,
    /// Jobs of those places, paused now, by agent and name.
    jobs: Vec<(String, String)>,
}

pub(super) fn among<'a>(arrivals: impl IntoIterator<Item = &'a Arrival>) -> Deletions {
    let mut deletions = Deletions::default();
    for arrival in arrivals {
        match arrival {
            Arrival::Deleted(messages) => deletions.messages.extend_from_slice(messages),
            Arrival::Gone(place) => deletions.places.push(place.clone()),
            _ => {}
        }
    }
    deletions
}

impl Deletions {
    /// Call after the batch's messages are in the inbox, because some of them may be deleted here.
    pub(super) fn write(
        &self,
        tx: &Transaction<'_>,
        platform: Platform,
        now: i64,
    ) -> rusqlite::Result<Deleted> {
        let Deletions { messages, places } = self;
        let Gone { rows, had_words } = if messages.is_empty() {
            Gone::default()
        } else {
            deletions::delete_messages(tx, platform, messages, now)?
        };
        let mut jobs = Vec::new();
        for place in places {
            jobs.extend(job_rows::pause_in(tx, place, PLACE_GONE, now)?);
            inbox::close_place(tx, place, now)?;
            outbox::give_up(tx, place, &PlaceLoss::ChannelGone.to_string())?;
        }
        Ok(Deleted {
            rows,
            places: places.clone(),
            had_words,
            jobs,
        })
    }
}

impl Deleted {
    pub(super) fn add(&mut self, more: Deleted) {
        self.rows.extend(more.rows);
        self.places.extend(more.places);
        self.jobs.extend(more.jobs);
    }

    /// Call after the commit: the lanes drop deleted messages and places.
    pub(super) fn go_on(&self, state: &GatewayState) {
        if !self.rows.is_empty() {
            state.services.sessions.withdraw(&self.rows);
        }
        if self.had_words {
            state.removals.note();
        }
        if !self.jobs.is_empty() {
            state.services.sessions.alarm().changed();
            state.tell_jobs_are_paused(&self.jobs);
        }
        for place in &self.places {
            tracing::info!(session = %place, "the place is gone, and so is what waited there");
            // First, so turns ending now send nothing there.
            state.delivery.close_place(place);
            state.services.sessions.close_place(place);
        }
    }
}
