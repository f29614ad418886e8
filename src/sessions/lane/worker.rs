//! The worker of a lane: takes out what comes next, has it done, and goes on with what was put aside.

use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::super::inbox::Accepted;
use super::super::running::{self, Due, Ended, Exchange, Task};
use super::super::{Arrived, Inner, Item, Purpose, observing};
use super::{Lane, MOST_WAITING, NotBefore, UnderWay, are_alike};
use crate::domain::SessionKey;
use crate::work::WorkGuard;

/// A task that was put aside, with those who wait for its end.
struct Parked {
    task: Box<Task>,
    guards: Vec<WorkGuard>,
    /// What was answered since.
    meanwhile: Vec<Exchange>,
}

pub(super) async fn work_through(inner: Arc<Inner>, place: SessionKey) {
    let mut parked: Vec<Parked> = Vec::new();
    while let Some(job) = next(&inner, &place, &parked).await {
        let working = do_one(&inner, job, &mut parked);
        let guards = tokio::select! {
            guards = working => guards,
            () = inner.abandon.cancelled() => return leave(&inner, &place),
        };
        let Some(guards) = guards else { return leave(&inner, &place) };
        finish(&inner, &place, &parked);
        // After the lane has moved on, so that a settled gateway has no lane left.
        drop(guards);
    }
    // `next` has removed the lane. One that is there now belongs to the next worker.
}

/// What the worker does next.
enum Job {
    Fresh(Box<Taken>),
    /// Goes on with what was put aside last.
    Resume,
}

/// Returns whom to let go of, or none when the rest is left to the next start.
async fn do_one(inner: &Arc<Inner>, job: Job, parked: &mut Vec<Parked>) -> Option<Vec<WorkGuard>> {
    let (ended, guards) = match job {
        Job::Fresh(taken) if taken.purpose == Purpose::Observe => {
            observing::run(inner, &taken.accepted).await;
            return Some(taken.guards);
        }
        Job::Fresh(taken) => {
            let Taken { accepted, arrived, halt, guards, .. } = *taken;
            let aside = parked.iter().map(|parked| parked.task.aside()).collect();
            (running::begin(inner, Due { accepted, arrived, halt, aside }).await, guards)
        }
        Job::Resume => {
            let Parked { task, guards, meanwhile } = parked.pop()?;
            (running::resume(inner, *task, &meanwhile).await, guards)
        }
    };
    match ended {
        Ended::Over(exchange) => {
            let exchange = exchange.as_ref();
            parked.iter_mut().for_each(|parked| parked.meanwhile.extend(exchange.cloned()));
            Some(guards)
        }
        Ended::Parked(task) => {
            parked.push(Parked { task, guards, meanwhile: Vec::new() });
            Some(Vec::new())
        }
        Ended::LeftBehind => None,
    }
}

/// Keeps what people can ask about in step with what the worker has put aside.
fn finish(inner: &Inner, place: &SessionKey, parked: &[Parked]) {
    let Some(mut lane) = inner.lanes.get_mut(place) else { return };
    let current = lane.current.take();
    lane.parked.truncate(parked.len());
    if lane.parked.len() < parked.len() {
        lane.parked.extend(current);
    }
}

/// Ends a lane that still has something in it. The rows stay in the inbox and the next start takes them up.
fn leave(inner: &Inner, place: &SessionKey) {
    inner.lanes.remove(place);
}

/// A message with all that is answered with it, out of its lane.
struct Taken {
    accepted: Accepted,
    purpose: Purpose,
    arrived: Arrived,
    halt: CancellationToken,
    guards: Vec<WorkGuard>,
}

/// The next thing to do, or none and the lane is gone.
async fn next(inner: &Inner, place: &SessionKey, parked: &[Parked]) -> Option<Job> {
    loop {
        let until = match take(inner, place, parked)? {
            Ok(job) => return Some(job),
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

fn take(inner: &Inner, place: &SessionKey, parked: &[Parked]) -> Option<Result<Job, NotBefore>> {
    let dashmap::Entry::Occupied(mut entry) = inner.lanes.entry(place.clone()) else { return None };
    let lane = entry.get_mut();
    // A task that was put aside gets a round before it is put aside again, however much people write.
    let is_its_turn = parked.last().is_some_and(|parked| !parked.meanwhile.is_empty() || parked.task.is_halted());
    if is_its_turn || (!parked.is_empty() && lane.waiting.is_empty()) {
        lane.current = lane.parked.pop();
        return Some(Ok(Job::Resume));
    }
    let sizes = match lane.oldest_batch(Instant::now(), |one, other| are_alike(inner, one, other)) {
        Ok(sizes) => sizes,
        Err(not_before) => return Some(Err(not_before)),
    };
    let Some(taken) = drain(lane, &sizes) else {
        // Removed under the same lock that submit takes, so no message falls between two workers.
        entry.remove();
        return None;
    };
    lane.current = (taken.purpose == Purpose::Answer).then(|| UnderWay::new(Item::of(&taken.accepted), taken.halt.clone()));
    lane.was_busy |= taken.purpose == Purpose::Answer;
    lane.told_full &= lane.waiting.len() >= MOST_WAITING / 2;
    Some(Ok(Job::Fresh(Box::new(taken))))
}

fn drain(lane: &mut Lane, sizes: &[usize]) -> Option<Taken> {
    let mut guards = Vec::new();
    let mut messages = Vec::new();
    for size in sizes {
        let mut parts = lane.waiting.drain(..size).map(|waiting| {
            guards.push(waiting.guard);
            (waiting.accepted, waiting.purpose, waiting.arrived)
        });
        let (mut accepted, purpose, arrived) = parts.next()?;
        accepted.joined = parts.map(|(accepted, ..)| accepted).collect();
        messages.push((accepted, purpose, arrived));
    }
    let mut messages = messages.into_iter();
    let (mut accepted, purpose, arrived) = messages.next()?;
    accepted.backlog = messages.map(|(accepted, ..)| accepted).collect();
    Some(Taken { accepted, purpose, arrived, halt: CancellationToken::new(), guards })
}
