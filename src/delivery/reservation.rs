//! Fast path: without an active sender for the place, the first outbox row is claimed in the
//! transaction of its insert. Saves a database write.

use std::sync::Arc;

use dashmap::Entry;
use rusqlite::Transaction;
use tokio::sync::OwnedSemaphorePermit;

use super::outbox::{self, ClaimedRow, Knows, Next};
use super::sender::{self, Allowed, Begun};
use super::{Delivery, Inner};
use crate::domain::{Destination, SessionKey};

/// The right to send a place's next row at once: no other sender is active, and the budgets have
/// room.
pub struct Reservation {
    inner: Arc<Inner>,
    place: SessionKey,
    in_flight: Option<OwnedSemaphorePermit>,
    is_handed_over: bool,
}

/// The first row of a reservation, already claimed.
pub struct First(Option<ClaimedRow>);

impl Delivery {
    /// `None` where another sender is active or budgets are short; then [`Delivery::submit`] waits
    /// in line.
    pub fn reserve(&self, place: &SessionKey) -> Option<Reservation> {
        let inner = &self.inner;
        let outlet = inner
            .outlet_of(place)
            .filter(|_| !inner.stop.is_cancelled())?;
        // A count of zero keeps other workers away: rows submitted meanwhile only raise the count.
        let Entry::Vacant(free) = inner.places.entry(place.clone()) else {
            return None;
        };
        let in_flight = outlet.in_flight.clone().try_acquire_owned().ok()?;
        let pace = outlet
            .channel
            .abilities()
            .pace(&Destination::stored(place.clone()));
        let has_room = pace.is_none_or(|pace| {
            !outlet.pacing.is_quiet(pace.chat) && outlet.pacing.take_at_once(pace)
        });
        has_room.then(|| {
            free.insert(0);
            Reservation {
                inner: inner.clone(),
                place: place.clone(),
                in_flight: Some(in_flight),
                is_handed_over: false,
            }
        })
    }
}

/// Marks the place's oldest row as being sent.
pub(crate) fn claim(
    tx: &Transaction<'_>,
    delivery: &Delivery,
    place: &SessionKey,
    now: i64,
) -> rusqlite::Result<First> {
    let left_alone = &delivery.inner.left_alone;
    Ok(First(
        match outbox::claim(tx, place, left_alone, Knows::default(), now)? {
            Next::Claimed(row) => Some(row),
            Next::Wait { .. } | Next::LastTry | Next::Stale | Next::Nothing => None,
        },
    ))
}

impl Reservation {
    /// Sends the committed rows, the claimed row first. A stopping process sends nothing: as after
    /// a crash, the next process takes the claimed row as possibly arrived.
    pub fn submit(mut self, rows: usize, first: First) {
        if self.inner.stop.is_cancelled() {
            return;
        }
        self.inner
            .places
            .entry(self.place.clone())
            .and_modify(|left| *left += rows);
        self.is_handed_over = true;
        let begun = first
            .0
            .zip(self.in_flight.take())
            .map(|(row, in_flight)| Begun { row, in_flight });
        sender::start(&self.inner, &self.place, begun, Allowed::Yes);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.is_handed_over {
            return;
        }
        let Entry::Occupied(left) = self.inner.places.entry(self.place.clone()) else {
            return;
        };
        if *left.get() == 0 || self.inner.stop.is_cancelled() {
            left.remove();
        } else {
            drop(left);
            sender::start(&self.inner, &self.place, None, Allowed::Yes);
        }
    }
}
