//! Carries out what people deleted: messages, and whole places.

use rusqlite::Transaction;

use super::GatewayState;
use crate::channels::PlaceLoss;
use crate::delivery::outbox;
use crate::domain::{Arrival, MessageId, Platform, SessionKey};
use crate::records::{deletions, inbox};

/// What a batch says about deletions.
#[derive(Debug, Default)]
pub(super) struct Deletions {
    messages: Vec<MessageId>,
    places: Vec<SessionKey>,
}

/// The same, once it is written.
#[derive(Debug, Default)]
pub(super) struct Deleted {
    /// Rows that are closed because their message was deleted.
    pub(super) rows: Vec<i64>,
    places: Vec<SessionKey>,
}

pub(super) fn among(arrivals: &[Arrival]) -> Deletions {
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
    /// After the messages of the batch are in the inbox, because they may be among them.
    pub(super) fn write(self, tx: &Transaction<'_>, platform: Platform, now: i64) -> rusqlite::Result<Deleted> {
        let Deletions { messages, places } = self;
        let rows = if messages.is_empty() { Vec::new() } else { deletions::delete_messages(tx, platform, &messages, now)? };
        for place in &places {
            inbox::close_place(tx, place, now)?;
            outbox::give_up(tx, place, &PlaceLoss::ChannelGone.to_string())?;
        }
        Ok(Deleted { rows, places })
    }
}

impl Deleted {
    /// Once it is committed: the lanes let go of what is not wanted any more.
    pub(super) fn go_on(&self, state: &GatewayState) {
        if !self.rows.is_empty() {
            state.services.sessions.withdraw(&self.rows);
        }
        for place in &self.places {
            tracing::info!(session = %place, "the place is gone, and so is what waited there");
            // First, so that what ends now has nothing to say there.
            state.delivery.close_place(place);
            state.services.sessions.close_place(place);
        }
    }
}
