//! The queue of a place.
//!
//! New messages wait while a turn runs. Between two rounds of tools, or while the turn waits for
//! subagents, the turn is parked: all waiting messages are answered as one, and then the turn goes
//! on.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{Queue, Stage, Work};
use crate::answering::{LaneNews, LaneView, PauseNews, Worker};
use crate::domain::{AgentUid, SessionKey};
use crate::records::inbox::Accepted;
use crate::subagents::{Arrived, Item};

/// The most messages waiting in a place. A further message is refused, and the person is told.
pub(super) const MOST_WAITING: usize = 100;
/// With this many waiting messages, talk among people is no longer kept: the rest of the lane is
/// for questions.
const MOST_WAITING_TO_OBSERVE: usize = 50;
/// The most parts of a message, such as the pictures of an album. Further parts begin a new
/// message.
const MOST_JOINED: usize = 20;
/// The most messages answered together.
const MOST_DRAINED: usize = 50;
/// The most parked turns of a place. With this many, messages wait for the end of the running turn.
const MOST_PARKED: usize = 3;

/// Why a message is in the lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Answer,
    /// Only kept, for later questions to the agent that had the place when the message came.
    Observe(AgentUid),
}

/// A message in its lane.
pub(super) struct Waiting {
    pub(super) accepted: Accepted,
    pub(super) purpose: Purpose,
    /// Held until the message is done with. Absent while the message waits for a paused agent, so
    /// that the end of the process does not wait for it.
    pub(super) guard: Option<TaskTrackerToken>,
    pub(super) since: Instant,
    pub(super) arrived: Arrived,
    /// The writer had no room for a further turn when the worker last looked.
    pub(super) is_blocked: bool,
}

impl Waiting {
    /// Whether a person wants an answer to the message.
    pub(super) fn is_question(&self) -> bool {
        let besides = &self.accepted.inbound.extras;
        self.purpose == Purpose::Answer && besides.note.is_none() && besides.internal.is_none()
    }
}

/// A turn as shown in the queue.
#[derive(Clone)]
pub(super) struct RunningTurn {
    pub(super) item: Item,
    /// Rows whose messages were deleted.
    withdrawn: Vec<i64>,
    /// Cancelled to stop the turn.
    pub(super) halt: CancellationToken,
    worker: Worker,
    /// Parked until people have decided about a call.
    pub(super) waits_for_people: bool,
    /// Held from the answer of people, or from a stop, until the turn goes on.
    pub(super) answered: Option<TaskTrackerToken>,
}

impl RunningTurn {
    pub(super) fn new(item: Item, halt: CancellationToken, worker: Worker) -> Self {
        RunningTurn {
            item,
            withdrawn: Vec::new(),
            halt,
            worker,
            waits_for_people: false,
            answered: None,
        }
    }

    fn at(&self, place: &SessionKey, stage: Stage) -> Work {
        Work {
            place: place.clone(),
            agent: self.worker.agent(),
            item: self.item.clone(),
            stage,
            is_stopping: self.halt.is_cancelled(),
        }
    }

    /// Returns true if no message is left to answer.
    pub(super) fn withdraw(&mut self, ids: &[i64]) -> bool {
        self.withdrawn
            .extend(self.item.ids.iter().filter(|id| ids.contains(id)));
        self.item.ids.iter().all(|id| self.withdrawn.contains(id))
    }
}

/// The oldest message of a lane waits for a paused agent.
pub(super) struct Held {
    /// The message's row.
    front: i64,
    /// Tells when to look again.
    pub(super) news: PauseNews,
}

/// A lane exists exactly while a worker runs for its place.
#[derive(Default)]
pub(super) struct Lane {
    pub(super) waiting: VecDeque<Waiting>,
    pub(super) current: Option<RunningTurn>,
    /// Parked turns; the last is resumed first.
    pub(super) parked: Vec<RunningTurn>,
    /// The worker has begun a turn, so the waiting messages came while the place was busy.
    pub(super) was_busy: bool,
    /// Set while the oldest message waits for a paused agent.
    pub(super) held: Option<Held>,
    /// A person was told about the full lane. Reset once the lane is half empty.
    pub(super) told_full: bool,
    /// News for the running turn.
    news: watch::Sender<LaneNews>,
    /// Wakes a worker that waits for room. Holds one call, so none is missed.
    changed: Arc<Notify>,
}

impl Lane {
    /// The view for a turn of this lane.
    pub(super) fn view(&self) -> LaneView {
        LaneView::new(self.news.subscribe())
    }

    /// Call after every change of the queue.
    pub(super) fn tell(&self) {
        self.changed.notify_one();
        self.renew();
    }

    /// Updates the news for the running turn.
    fn renew(&self) {
        let news = LaneNews {
            // Messages for a paused agent are no reason to leave off.
            should_yield: self.held.is_none()
                && self.parked_for_others() < MOST_PARKED
                && self
                    .waiting
                    .iter()
                    .any(|waiting| waiting.is_question() && !waiting.is_blocked),
        };
        self.news
            .send_if_modified(|known| std::mem::replace(known, news) != news);
    }

    /// Has the turns of these rows that wait for people counted as work again.
    pub(super) fn count_again(&mut self, ids: &[i64], token: impl Fn() -> TaskTrackerToken) {
        let turns = self.parked.iter_mut().filter(|turn| {
            turn.waits_for_people && turn.item.ids.iter().any(|id| ids.contains(id))
        });
        turns.for_each(|turn| {
            turn.answered.get_or_insert_with(&token);
        });
    }

    /// Turns that wait for people have a bound of their own.
    fn parked_for_others(&self) -> usize {
        let parked = self.parked.iter();
        parked.filter(|turn| !turn.waits_for_people).count()
    }

    /// Called at every change of the queue.
    pub(super) fn changes(&self) -> Arc<Notify> {
        self.changed.clone()
    }

    /// Notes who has room for a turn, and moves the oldest message with room to the front. False
    /// if there is none.
    pub(super) fn bring_forward(&mut self, has_room: impl Fn(&Waiting) -> bool) -> bool {
        for waiting in &mut self.waiting {
            waiting.is_blocked = !has_room(waiting);
        }
        let Some(first) = self.waiting.iter().position(|waiting| !waiting.is_blocked) else {
            return false;
        };
        if first > 0 {
            let (count, _) = self.group_at(first);
            let moved: Vec<Waiting> = self.waiting.drain(first..first + count).collect();
            moved
                .into_iter()
                .rev()
                .for_each(|waiting| self.waiting.push_front(waiting));
        }
        true
    }

    pub(super) fn depth(&self) -> usize {
        let questions = self
            .waiting
            .iter()
            .filter(|waiting| waiting.purpose == Purpose::Answer)
            .count();
        questions + self.parked.len() + usize::from(self.current.is_some())
    }

    pub(super) fn queue(&self) -> Queue {
        Queue {
            current: self.current.as_ref().map(|current| current.item.clone()),
            parked: self
                .parked
                .iter()
                .map(|parked| parked.item.clone())
                .collect(),
            subagents: Vec::new(),
            waiting: self
                .waiting
                .iter()
                .filter(|waiting| waiting.is_question())
                .map(|waiting| Item::of(&waiting.accepted))
                .collect(),
        }
    }

    /// Puts the messages of a turn back to the front, to wait for a paused agent. Nothing is told: a
    /// worker that wakes itself would never rest.
    pub(super) fn hold(&mut self, messages: Vec<Waiting>, news: PauseNews) {
        self.current = None;
        for waiting in messages.into_iter().rev() {
            self.waiting.push_front(waiting);
        }
        let front = self.waiting.front().map(|waiting| waiting.accepted.id);
        self.held = front.map(|front| Held { front, news });
        // Calls from before the turn are no reason to look again.
        self.changed = Arc::new(Notify::new());
        self.renew();
    }

    /// Whether the lane still waits for a paused agent: nothing is resumed or switched, and the same
    /// message is the oldest.
    pub(super) fn is_held(&self) -> bool {
        let front = self.waiting.front().map(|waiting| waiting.accepted.id);
        self.held.as_ref().is_some_and(|held| {
            Some(held.front) == front && !held.news.has_changed().unwrap_or(true)
        })
    }

    /// Takes the guards of all waiting messages, to be dropped outside the lock.
    pub(super) fn without_guards(&mut self) -> Vec<TaskTrackerToken> {
        let waiting = self.waiting.iter_mut();
        waiting.filter_map(|waiting| waiting.guard.take()).collect()
    }

    /// Gives every waiting message a guard again.
    pub(super) fn with_guards(&mut self, token: impl Fn() -> TaskTrackerToken) {
        for waiting in &mut self.waiting {
            waiting.guard.get_or_insert_with(&token);
        }
    }

    /// Everything in the lane of this place.
    pub(super) fn work<'a>(&'a self, place: &'a SessionKey) -> impl Iterator<Item = Work> + 'a {
        let current = self.current.iter().map(|turn| turn.at(place, Stage::Runs));
        let parked = self.parked.iter().map(|turn| turn.at(place, Stage::Parked));
        let questions = self.waiting.iter().filter(|waiting| waiting.is_question());
        let waiting = questions.map(|waiting| {
            let waited = i64::try_from(waiting.since.elapsed().as_millis()).unwrap_or(i64::MAX);
            let item = Item::of(&waiting.accepted);
            Work {
                place: place.clone(),
                agent: None,
                item: Item {
                    since: item.since.saturating_sub(waited),
                    ..item
                },
                stage: Stage::Waits,
                is_stopping: false,
            }
        });
        current.chain(parked).chain(waiting)
    }

    pub(super) fn takes(&self, purpose: Purpose, arrived: Arrived) -> bool {
        match purpose {
            Purpose::Answer => self.waiting.len() < MOST_WAITING || arrived == Arrived::Before,
            Purpose::Observe(_) => {
                self.waiting.len() < MOST_WAITING_TO_OBSERVE || arrived == Arrived::Before
            }
        }
    }

    /// Takes out waiting messages that are not wanted any more.
    pub(super) fn let_go(&mut self, is_unwanted: impl Fn(&Waiting) -> bool) -> Vec<Waiting> {
        let (gone, left): (VecDeque<Waiting>, _) = self.waiting.drain(..).partition(is_unwanted);
        self.waiting = left;
        self.tell();
        gone.into()
    }

    /// The number of waiting messages from `first` on that form a single message, and the time to
    /// wait for further parts.
    fn group_at(&self, first: usize) -> (usize, Option<Instant>) {
        let Some(front) = self.waiting.get(first) else {
            return (0, None);
        };
        if matches!(front.purpose, Purpose::Observe(_)) {
            return (1, None);
        }
        let belongs = |next: &&Waiting| {
            next.purpose == Purpose::Answer
                && front.accepted.inbound.is_one_with(&next.accepted.inbound)
        };
        let others = self
            .waiting
            .iter()
            .skip(first + 1)
            .take(MOST_JOINED - 1)
            .take_while(belongs)
            .count();
        let count = 1 + others;
        // A message in between ends the group.
        let is_complete = self.waiting.len() > first + count || count == MOST_JOINED;
        let last = &self.waiting[first + others];
        let together = last
            .accepted
            .inbound
            .extras
            .together
            .as_ref()
            .filter(|_| !is_complete);
        (
            count,
            together.map(|together| last.since + Duration::from_millis(together.wait_ms)),
        )
    }

    /// The sizes of the messages to answer together: the oldest message, and if the place was busy,
    /// all messages like it right behind.
    pub(super) fn oldest_batch(
        &self,
        now: Instant,
        are_alike: impl Fn(&Waiting, &Waiting) -> bool,
    ) -> Result<Vec<usize>, NotBefore> {
        let mut sizes: Vec<usize> = Vec::new();
        let mut taken = 0;
        while let Some(front) = self.waiting.get(taken) {
            let (count, until) = self.group_at(taken);
            match until.filter(|until| *until > now) {
                Some(until) if sizes.is_empty() => return Err(NotBefore(until)),
                // The album still grows; it belongs to the next batch.
                Some(_) => break,
                None => {}
            }
            let follows =
                sizes.is_empty() || (front.is_question() && are_alike(front, &self.waiting[0]));
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

/// Further parts of the next message may come until this time.
#[derive(Debug)]
pub(super) struct NotBefore(pub(super) Instant);

/// Why a lane has no next step right now.
#[derive(Debug)]
pub(super) enum NotYet {
    Before(Instant),
    /// The writers of all waiting messages have as many turns as they may have.
    NoRoom,
    /// The agent of the oldest message is paused.
    Held(PauseNews),
}
