//! The queue and worker of one place. A worker lives as long as its queue has something in it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::SemaphorePermit;
use tokio::time::Instant;

use super::inbox::Accepted;
use super::{Arrived, Inner, LaneFull, Purpose, observing, running};
use crate::domain::{Addressed, Besides, Inbound, Origin, SessionKey};
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
    pub(super) since: Instant,
}
/// Messages that are answered as one; those after them are a message of their own.
const MOST_JOINED: usize = 20;

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

    /// How many of the oldest are one message, and until when more may come that belong to it.
    fn oldest_group(&self) -> (usize, Option<Instant>) {
        let Some(first) = self.waiting.front() else { return (0, None) };
        if first.purpose == Purpose::Observe {
            return (1, None);
        }
        let belongs =
            |next: &&Waiting| next.purpose == Purpose::Answer && first.accepted.inbound.is_one_with(&next.accepted.inbound);
        let others = self.waiting.iter().skip(1).take(MOST_JOINED - 1).take_while(belongs).count();
        let count = 1 + others;
        // What comes after something else does not belong any more.
        let is_complete = self.waiting.len() > count || count == MOST_JOINED;
        let last = &self.waiting[others];
        let together = last.accepted.inbound.besides.together.as_ref().filter(|_| !is_complete);
        (count, together.map(|together| last.since + Duration::from_millis(together.wait_ms)))
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

/// How the message that this one continues turned to us, while that one still waits.
pub(super) fn continues(inner: &Inner, next: &Inbound) -> Option<Addressed> {
    let lane = inner.lanes.get(&next.origin.key)?;
    let last = &lane.waiting.back()?.accepted.inbound;
    last.is_one_with(next).then_some(last.addressed)
}

/// The worker takes messages out under the same lock, so one that is found here has not begun.
pub(super) fn revise(inner: &Inner, edit: &Inbound) -> Option<Accepted> {
    let mut lane = inner.lanes.get_mut(&edit.origin.key)?;
    let mut waiting = lane.waiting.iter_mut().map(|waiting| &mut waiting.accepted);
    let accepted =
        waiting.find(|accepted| accepted.inbound.message == edit.message && accepted.inbound.besides.note.is_none())?;
    let Besides { together, note, .. } = accepted.inbound.besides.clone();
    accepted.inbound.text = edit.text.clone();
    accepted.inbound.besides = Besides { together, note, ..edit.besides.clone() };
    Some(accepted.clone())
}

/// Whether people have written here since the message that is being answered.
pub(super) fn others_wait(inner: &Inner, place: &SessionKey) -> bool {
    let lane = inner.lanes.get(place);
    lane.is_some_and(|lane| lane.waiting.iter().any(|waiting| waiting.accepted.inbound.besides.note.is_none()))
}

async fn work_through(inner: Arc<Inner>, place: SessionKey) {
    let mut current = next(&inner, &place).await;
    while let Some(Taken { accepted, purpose, guards }) = current {
        let Ok(_slot) = free_slot(&inner).await else { return leave(&inner, &place) };
        tokio::select! {
            () = do_one(&inner, accepted, purpose) => {}
            () = inner.abandon.cancelled() => return leave(&inner, &place),
        }
        current = next(&inner, &place).await;
        // After the lane has moved on, so that a settled gateway has no lane left.
        drop(guards);
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

/// A message with all that belong to it, out of its lane.
struct Taken {
    accepted: Accepted,
    purpose: Purpose,
    guards: Vec<WorkGuard>,
}

/// The next message, or none and the lane is gone.
async fn next(inner: &Inner, place: &SessionKey) -> Option<Taken> {
    loop {
        let until = match take(inner, place)? {
            Ok(taken) => return Some(taken),
            Err(NotBefore(until)) => until,
        };
        tokio::select! {
            () = tokio::time::sleep_until(until) => {}
            () = inner.stop.cancelled() => {
                leave(inner, place);
                return None;
            }
        }
    }
}

/// More may come that belongs to the next message.
struct NotBefore(Instant);

fn take(inner: &Inner, place: &SessionKey) -> Option<Result<Taken, NotBefore>> {
    let dashmap::Entry::Occupied(mut entry) = inner.lanes.entry(place.clone()) else { return None };
    let lane = entry.get_mut();
    lane.answering = false;
    let (count, until) = lane.oldest_group();
    if let Some(until) = until.filter(|until| *until > Instant::now()) {
        return Some(Err(NotBefore(until)));
    }
    let mut group: VecDeque<Waiting> = lane.waiting.drain(..count).collect();
    let Some(Waiting { mut accepted, purpose, guard, .. }) = group.pop_front() else {
        // Removed under the same lock that submit takes, so no message falls between two workers.
        entry.remove();
        return None;
    };
    lane.answering = purpose == Purpose::Answer;
    lane.told_full &= lane.waiting.len() >= MOST_WAITING / 2;
    let (joined, others): (Vec<_>, Vec<_>) = group.into_iter().map(|waiting| (waiting.accepted, waiting.guard)).unzip();
    accepted.joined = joined;
    Some(Ok(Taken { accepted, purpose, guards: [guard].into_iter().chain(others).collect() }))
}
