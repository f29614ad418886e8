//! The queue and worker of one place. A worker lives as long as its queue has something in it.
//!
//! What comes while a turn runs waits. Between two rounds of tools, or while it waits for runs, the turn is put aside for it:
//! everything that waits is answered as one, and then the turn goes on.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::inbox::Accepted;
use super::running::{self, Due, Ended, Exchange, Task};
use super::{Arrived, Inner, Item, LaneFull, Purpose, Queue, observing};
use crate::clock::now_ms;
use crate::domain::{Addressed, Besides, Inbound, Origin, SessionKey};
use crate::routing;
use crate::work::WorkGuard;

/// Messages that wait in one place. One more is refused, and the person is told.
pub(super) const MOST_WAITING: usize = 100;
/// With this many waiting, talk among people is no longer kept: the rest of the lane is for questions.
const MOST_WAITING_TO_OBSERVE: usize = 50;
/// Messages that are one, such as an album; those after them are a message of their own.
const MOST_JOINED: usize = 20;
/// Messages that are answered at once.
const MOST_DRAINED: usize = 50;
/// Tasks of one place that are put aside at a time. With this many, messages wait for the end of the turn.
const MOST_PARKED: usize = 3;

/// A message in its lane.
pub(super) struct Waiting {
    pub(super) accepted: Accepted,
    pub(super) purpose: Purpose,
    /// Held until the message is done with.
    pub(super) guard: WorkGuard,
    pub(super) since: Instant,
    pub(super) arrived: Arrived,
}

impl Waiting {
    /// Something that a person wants answered.
    fn is_question(&self) -> bool {
        let besides = &self.accepted.inbound.besides;
        self.purpose == Purpose::Answer && besides.note.is_none() && besides.internal.is_none()
    }
}

/// A turn as people ask about it.
#[derive(Clone)]
struct UnderWay {
    item: Item,
    /// Cancelled when somebody wants it stopped.
    halt: CancellationToken,
}

/// Exists exactly while a worker runs for the place.
#[derive(Default)]
pub(super) struct Lane {
    waiting: VecDeque<Waiting>,
    current: Option<UnderWay>,
    /// Put aside; the last is taken up first.
    parked: Vec<UnderWay>,
    /// The worker has done something, so what waits came while the place was busy.
    was_busy: bool,
    /// Somebody was told that the lane is full, and it has been so since.
    told_full: bool,
    /// Told of messages while a turn waits for runs.
    watcher: Option<Arc<Notify>>,
}

impl Lane {
    pub(super) fn depth(&self) -> usize {
        let questions = self.waiting.iter().filter(|waiting| waiting.purpose == Purpose::Answer).count();
        questions + self.parked.len() + usize::from(self.current.is_some())
    }

    pub(super) fn queue(&self) -> Queue {
        Queue {
            current: self.current.as_ref().map(|current| current.item.clone()),
            parked: self.parked.iter().map(|parked| parked.item.clone()).collect(),
            runs: Vec::new(),
            waiting: self
                .waiting
                .iter()
                .filter(|waiting| waiting.is_question())
                .map(|waiting| Item::of(&waiting.accepted))
                .collect(),
        }
    }

    fn takes(&self, purpose: Purpose, arrived: Arrived) -> bool {
        match purpose {
            Purpose::Answer => self.waiting.len() < MOST_WAITING || arrived == Arrived::Before,
            Purpose::Observe => self.waiting.len() < MOST_WAITING_TO_OBSERVE || arrived == Arrived::Before,
        }
    }

    /// How many from `first` on are one message, and until when more may come that belong to it.
    fn group_at(&self, first: usize) -> (usize, Option<Instant>) {
        let Some(front) = self.waiting.get(first) else { return (0, None) };
        if front.purpose == Purpose::Observe {
            return (1, None);
        }
        let belongs =
            |next: &&Waiting| next.purpose == Purpose::Answer && front.accepted.inbound.is_one_with(&next.accepted.inbound);
        let others = self.waiting.iter().skip(first + 1).take(MOST_JOINED - 1).take_while(belongs).count();
        let count = 1 + others;
        // What comes after something else does not belong any more.
        let is_complete = self.waiting.len() > first + count || count == MOST_JOINED;
        let last = &self.waiting[first + others];
        let together = last.accepted.inbound.besides.together.as_ref().filter(|_| !is_complete);
        (count, together.map(|together| last.since + Duration::from_millis(together.wait_ms)))
    }

    /// The sizes of the messages that are answered at once: the oldest, and if they came while the place was busy, all that
    /// wait behind it and may do the same.
    fn oldest_batch(&self, now: Instant, are_alike: impl Fn(&Waiting, &Waiting) -> bool) -> Result<Vec<usize>, NotBefore> {
        let mut sizes: Vec<usize> = Vec::new();
        let mut taken = 0;
        while let Some(front) = self.waiting.get(taken) {
            let (count, until) = self.group_at(taken);
            match until.filter(|until| *until > now) {
                Some(until) if sizes.is_empty() => return Err(NotBefore(until)),
                // Still growing; it is a message of the next batch.
                Some(_) => break,
                None => {}
            }
            let follows = sizes.is_empty() || (front.is_question() && are_alike(front, &self.waiting[0]));
            if !follows || taken + count > MOST_DRAINED.max(count) {
                break;
            }
            sizes.push(count);
            taken += count;
            if !self.was_busy || !self.waiting[0].is_question() {
                break;
            }
        }
        Ok(sizes)
    }
}

/// The same agent answers both, tools may do the same for both, the same person pays where that matters, and neither was
/// begun before.
fn are_alike(inner: &Inner, one: &Waiting, other: &Waiting) -> bool {
    let (ours, theirs) = (&one.accepted.inbound.origin, &other.accepted.inbound.origin);
    // Without the pin, which is the place's and so the same for both.
    let agent_of = |origin: &Origin| routing::route(&inner.parts.table, None, origin).agent;
    let may_differ = || !inner.parts.access.limits.is_any() && agent_of(ours) == agent_of(theirs);
    one.accepted.standing == other.accepted.standing
        && one.arrived == Arrived::Now
        && other.arrived == Arrived::Now
        && (ours.person == theirs.person || may_differ())
}

pub(super) fn submit(inner: &Arc<Inner>, waiting: Waiting, arrived: Arrived) -> Result<(), LaneFull> {
    if arrived == Arrived::Before && is_absorbed(inner, &waiting) {
        // A task that goes on answers it, and closes its row.
        return Ok(());
    }
    let place = lane_of(inner, &waiting.accepted.inbound.origin);
    let entry = inner.lanes.entry(place.clone());
    let is_new = matches!(entry, dashmap::Entry::Vacant(_));
    let mut lane = entry.or_default();
    if !lane.takes(waiting.purpose, arrived) {
        let news = waiting.purpose == Purpose::Answer && !std::mem::replace(&mut lane.told_full, true);
        return Err(LaneFull { guard: waiting.guard, news });
    }
    if lane.current.is_some() && waiting.is_question() && arrived == Arrived::Now {
        // Nobody should wonder whether it was seen.
        inner.parts.delivery.noticed(&waiting.accepted.inbound);
    }
    lane.waiting.push_back(waiting);
    let watcher = lane.watcher.clone();
    drop(lane);
    if let Some(watcher) = watcher {
        watcher.notify_waiters();
    }
    if is_new {
        inner.tasks.spawn(work_through(inner.clone(), place));
    }
    Ok(())
}

/// A task comes before its members, and only one that goes on answers them: its message may not be heard any more.
fn is_absorbed(inner: &Inner, waiting: &Waiting) -> bool {
    let id = waiting.accepted.id;
    if waiting.is_question()
        && let Some((_, members)) = inner.parts.absorbing.remove(&id)
    {
        for member in members {
            inner.absorbed.insert(member);
        }
    }
    inner.absorbed.remove(&id).is_some()
}

/// The place's own, or the one it had before its group moved for as long as that still has something to answer: its
/// messages came first.
pub(super) fn lane_of(inner: &Inner, origin: &Origin) -> SessionKey {
    let former = origin.formerly.map(|chat| origin.key.in_telegram_group(chat));
    former.filter(|former| inner.lanes.contains_key(former)).unwrap_or_else(|| origin.key.clone())
}

/// How the message that this one continues turned to us, while that one still waits.
pub(super) fn continues(inner: &Inner, next: &Inbound) -> Option<Addressed> {
    let lane = inner.lanes.get(&lane_of(inner, &next.origin))?;
    let last = &lane.waiting.back()?.accepted.inbound;
    last.is_one_with(next).then_some(last.addressed)
}

/// The worker takes messages out under the same lock, so one that is found here has not begun.
pub(super) fn revise(inner: &Inner, edit: &Inbound) -> Option<Accepted> {
    let mut lane = inner.lanes.get_mut(&lane_of(inner, &edit.origin))?;
    let mut waiting = lane.waiting.iter_mut().map(|waiting| &mut waiting.accepted);
    let accepted =
        waiting.find(|accepted| accepted.inbound.message == edit.message && accepted.inbound.besides.note.is_none())?;
    let Besides { together, note, .. } = accepted.inbound.besides.clone();
    accepted.inbound.text = edit.text.clone();
    accepted.inbound.besides = Besides { together, note, ..edit.besides.clone() };
    Some(accepted.clone())
}

/// Whether people have written here since the message that is being answered.
pub(super) fn others_wait(inner: &Inner, origin: &Origin) -> bool {
    let lane = inner.lanes.get(&lane_of(inner, origin));
    let is_said = |besides: &Besides| besides.note.is_none() && besides.internal.is_none();
    lane.is_some_and(|lane| lane.waiting.iter().any(|waiting| is_said(&waiting.accepted.inbound.besides)))
}

/// Whether the running turn should be put aside: somebody waits for an answer, and not too much is put aside already.
pub(super) fn may_steer(inner: &Inner, origin: &Origin) -> bool {
    let lane = inner.lanes.get(&lane_of(inner, origin));
    lane.is_some_and(|lane| lane.parked.len() < MOST_PARKED && lane.waiting.iter().any(Waiting::is_question))
}

/// Returns when [`may_steer`] holds.
pub(super) async fn somebody_asks(inner: &Inner, origin: &Origin) {
    loop {
        let lane = inner.lanes.get_mut(&lane_of(inner, origin));
        let watcher = lane.map(|mut lane| lane.watcher.get_or_insert_default().clone());
        // A turn that runs has a lane.
        let Some(watcher) = watcher else { return std::future::pending().await };
        let mut told = std::pin::pin!(watcher.notified());
        // Counts from here on, so that a message between the look and the wait is not missed.
        told.as_mut().enable();
        if may_steer(inner, origin) {
            return;
        }
        told.await;
    }
}

/// Ends what these messages are about, as far as it is still under way or waits here.
pub(super) fn halt(inner: &Inner, origin: &Origin, ids: &[i64]) {
    halt_in(inner, &lane_of(inner, origin), ids);
}

pub(super) fn halt_in(inner: &Inner, place: &SessionKey, ids: &[i64]) {
    let Some(mut lane) = inner.lanes.get_mut(place) else { return };
    let (gone, left) = lane.waiting.drain(..).partition(|waiting| ids.contains(&waiting.accepted.id));
    lane.waiting = left;
    let under_way = lane.current.iter().chain(&lane.parked);
    under_way.filter(|task| task.item.ids.iter().any(|id| ids.contains(id))).for_each(|task| task.halt.cancel());
    drop(lane);
    // Outside the lock, because letting go of a guard may wake others.
    drop::<VecDeque<Waiting>>(gone);
}

/// A task that was put aside, with those who wait for its end.
struct Parked {
    task: Box<Task>,
    guards: Vec<WorkGuard>,
    /// What was answered since.
    meanwhile: Vec<Exchange>,
}

async fn work_through(inner: Arc<Inner>, place: SessionKey) {
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

/// More may come that belongs to the next message.
#[derive(Debug)]
struct NotBefore(Instant);

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
    lane.current =
        (taken.purpose == Purpose::Answer).then(|| UnderWay { item: Item::of(&taken.accepted), halt: taken.halt.clone() });
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

/// How people are told about a message.
pub(super) fn item(accepted: &Accepted) -> Item {
    Item::of(accepted)
}

impl Item {
    fn of(accepted: &Accepted) -> Self {
        Item {
            ids: accepted.all().map(|accepted| accepted.id).collect(),
            by: accepted.inbound.person_name.clone(),
            asks: accepted.messages().map(|message| message.inbound.readable()).collect::<Vec<_>>().join(" / "),
            since: now_ms(),
        }
    }
}
