//! The queue and worker of one place. A worker lives as long as its queue has something in it.
//!
//! What comes while a turn runs waits. Between two rounds of tools, or while it waits for runs, the turn is put aside for it:
//! everything that waits is answered as one, and then the turn goes on.

mod worker;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::inbox::Accepted;
use super::{Arrived, Inner, Item, LaneFull, Purpose, Queue};
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
    /// Rows of it whose messages were deleted.
    withdrawn: Vec<i64>,
    /// Cancelled when somebody wants it stopped.
    halt: CancellationToken,
}

impl UnderWay {
    fn new(item: Item, halt: CancellationToken) -> Self {
        UnderWay { item, withdrawn: Vec::new(), halt }
    }

    /// True when nothing is left to be answered.
    fn withdraw(&mut self, ids: &[i64]) -> bool {
        self.withdrawn.extend(self.item.ids.iter().filter(|id| ids.contains(id)));
        self.item.ids.iter().all(|id| self.withdrawn.contains(id))
    }
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

    /// Takes out what waits and is not wanted any more.
    fn let_go(&mut self, is_unwanted: impl Fn(&Waiting) -> bool) -> Vec<Waiting> {
        let (gone, left): (VecDeque<Waiting>, _) = self.waiting.drain(..).partition(is_unwanted);
        self.waiting = left;
        gone.into()
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

/// More may come that belongs to the next message.
#[derive(Debug)]
struct NotBefore(Instant);

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
        inner.tasks.spawn(worker::work_through(inner.clone(), place));
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
    let gone = lane.let_go(|waiting| ids.contains(&waiting.accepted.id));
    let under_way = lane.current.iter().chain(&lane.parked);
    under_way.filter(|task| task.item.ids.iter().any(|id| ids.contains(id))).for_each(|task| task.halt.cancel());
    drop(lane);
    // Outside the lock, because letting go of a guard may wake others.
    drop::<Vec<Waiting>>(gone);
}

/// Lets go of messages that were deleted, wherever they wait. Returns the rows of turns that end with them.
pub(super) fn withdraw(inner: &Inner, ids: &[i64]) -> Vec<i64> {
    let (mut gone, mut stopped) = (Vec::new(), Vec::new());
    for mut lane in inner.lanes.iter_mut() {
        gone.extend(lane.let_go(|waiting| ids.contains(&waiting.accepted.id)));
        let Lane { current, parked, .. } = &mut *lane;
        for task in current.iter_mut().chain(parked).filter(|task| task.item.ids.iter().any(|id| ids.contains(id))) {
            if task.withdraw(ids) {
                task.halt.cancel();
                stopped.extend(&task.item.ids);
            }
        }
    }
    // Outside the locks, because letting go of a guard may wake others.
    drop::<Vec<Waiting>>(gone);
    stopped
}

/// Ends everything in a place and its parts.
pub(super) fn close_place(inner: &Inner, place: &SessionKey) {
    let mut gone = Vec::new();
    for mut lane in inner.lanes.iter_mut().filter(|lane| lane.key().is_in(place)) {
        gone.extend(lane.let_go(|_| true));
        lane.current.iter().chain(&lane.parked).for_each(|task| task.halt.cancel());
    }
    drop::<Vec<Waiting>>(gone);
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
