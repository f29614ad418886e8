//! The queue and worker of one place. A worker lives as long as its queue has something in it.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::SemaphorePermit;

use super::inbox::Accepted;
use super::{Arrived, Inner, LaneFull, Purpose, observing, running};
use crate::domain::{Origin, SessionKey};
use crate::work::WorkGuard;

/// Messages that wait in one place. One more is refused, and the person is told.
pub(super) const MOST_WAITING: usize = 100;
/// With this many waiting, talk among people is no longer kept: the rest of the lane is for questions.
const MOST_WAITING_TO_OBSERVE: usize = 50;

/// A message in its lane.
pub(super) struct Waiting {
    pub(super) accepted: Accepted,
    pub(super) purpose: Purpose,
    /// Held until the message is done with.
    pub(super) guard: WorkGuard,
}

/// Exists exactly while a worker runs for the place.
#[derive(Default)]
pub(super) struct Lane {
    waiting: VecDeque<Waiting>,
    answering: bool,
    /// Somebody was told that the lane is full, and it has been so since.
    told_full: bool,
}

impl Lane {
    pub(super) fn depth(&self) -> usize {
        let questions = self.waiting.iter().filter(|waiting| waiting.purpose == Purpose::Answer).count();
        questions + usize::from(self.answering)
    }

    fn takes(&self, purpose: Purpose, arrived: Arrived) -> bool {
        match purpose {
            Purpose::Answer => self.waiting.len() < MOST_WAITING || arrived == Arrived::Before,
            Purpose::Observe => self.waiting.len() < MOST_WAITING_TO_OBSERVE || arrived == Arrived::Before,
        }
    }
}

pub(super) fn submit(inner: &Arc<Inner>, waiting: Waiting, arrived: Arrived) -> Result<(), LaneFull> {
    let place = lane_of(inner, &waiting.accepted.inbound.origin);
    let entry = inner.lanes.entry(place.clone());
    let is_new = matches!(entry, dashmap::Entry::Vacant(_));
    let mut lane = entry.or_default();
    if !lane.takes(waiting.purpose, arrived) {
        let news = waiting.purpose == Purpose::Answer && !std::mem::replace(&mut lane.told_full, true);
        return Err(LaneFull { guard: waiting.guard, news });
    }
    lane.waiting.push_back(waiting);
    drop(lane);
    if is_new {
        inner.tasks.spawn(work_through(inner.clone(), place));
    }
    Ok(())
}

/// The place's own, or the one it had before its group moved for as long as that still has something to answer: its
/// messages came first.
fn lane_of(inner: &Inner, origin: &Origin) -> SessionKey {
    let former = origin.formerly.map(|chat| origin.key.in_telegram_group(chat));
    former.filter(|former| inner.lanes.contains_key(former)).unwrap_or_else(|| origin.key.clone())
}

async fn work_through(inner: Arc<Inner>, place: SessionKey) {
    let mut current = next(&inner, &place);
    while let Some(Waiting { accepted, purpose, guard }) = current {
        let Ok(_slot) = free_slot(&inner).await else { return leave(&inner, &place) };
        tokio::select! {
            () = do_one(&inner, accepted, purpose) => {}
            () = inner.abandon.cancelled() => return leave(&inner, &place),
        }
        current = next(&inner, &place);
        // After the lane has moved on, so that a settled gateway has no lane left.
        drop(guard);
    }
    // `next` has removed the lane. One that is there now belongs to the next worker.
}

async fn do_one(inner: &Arc<Inner>, accepted: Accepted, purpose: Purpose) {
    match purpose {
        Purpose::Answer => running::run(inner, accepted).await,
        Purpose::Observe => observing::run(inner, &accepted).await,
    }
}

/// Ends a lane that still has something in it. The rows stay in the inbox and the next start takes them up.
fn leave(inner: &Inner, place: &SessionKey) {
    inner.lanes.remove(place);
}

/// The process is stopping.
struct Stopping;

async fn free_slot(inner: &Inner) -> Result<SemaphorePermit<'_>, Stopping> {
    tokio::select! {
        biased;
        () = inner.stop.cancelled() => Err(Stopping),
        slot = inner.slots.acquire() => slot.map_err(|_| Stopping),
    }
}

/// The next message, or none and the lane is gone.
fn next(inner: &Inner, place: &SessionKey) -> Option<Waiting> {
    let dashmap::Entry::Occupied(mut lane) = inner.lanes.entry(place.clone()) else { return None };
    let next = lane.get_mut().waiting.pop_front();
    lane.get_mut().answering = next.as_ref().is_some_and(|waiting| waiting.purpose == Purpose::Answer);
    lane.get_mut().told_full &= lane.get().waiting.len() >= MOST_WAITING / 2;
    if next.is_none() {
        // Removed under the same lock that submit takes, so no message falls between two workers.
        lane.remove();
    }
    next
}
