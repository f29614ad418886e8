//! The queue of one place.
//!
//! Messages that come while a turn runs wait. Between two rounds of tools, or while the turn waits for subagents, it is parked for
//! them: all messages that wait are answered as one, and then the turn goes on.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::Queue;
use crate::answering::{LaneNews, LaneView};
use crate::records::inbox::Accepted;
use crate::subagents::{Arrived, Item};

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

/// What is done with a message when its turn comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Answer,
    /// Only kept, for later questions.
    Observe,
}

/// A message in its lane.
pub(super) struct Waiting {
    pub(super) accepted: Accepted,
    pub(super) purpose: Purpose,
    /// Held until the message is done with.
    pub(super) guard: TaskTrackerToken,
    pub(super) since: Instant,
    pub(super) arrived: Arrived,
}

impl Waiting {
    /// Whether a person wants an answer to it.
    pub(super) fn is_question(&self) -> bool {
        let besides = &self.accepted.inbound.extras;
        self.purpose == Purpose::Answer && besides.note.is_none() && besides.internal.is_none()
    }
}

/// A turn as people ask about it.
#[derive(Clone)]
pub(super) struct RunningTurn {
    pub(super) item: Item,
    /// Rows of the turn whose messages were deleted.
    withdrawn: Vec<i64>,
    /// Cancelled when somebody wants it stopped.
    pub(super) halt: CancellationToken,
}

impl RunningTurn {
    pub(super) fn new(item: Item, halt: CancellationToken) -> Self {
        RunningTurn { item, withdrawn: Vec::new(), halt }
    }

    /// True when nothing is left to be answered.
    pub(super) fn withdraw(&mut self, ids: &[i64]) -> bool {
        self.withdrawn.extend(self.item.ids.iter().filter(|id| ids.contains(id)));
        self.item.ids.iter().all(|id| self.withdrawn.contains(id))
    }
}

/// Exists exactly while a worker runs for the place.
#[derive(Default)]
pub(super) struct Lane {
    pub(super) waiting: VecDeque<Waiting>,
    pub(super) current: Option<RunningTurn>,
    /// Put aside; the last is taken up first.
    pub(super) parked: Vec<RunningTurn>,
    /// The worker has done something, so what waits came while the place was busy.
    pub(super) was_busy: bool,
    /// Somebody was told that the lane is full, and it has been so since.
    pub(super) told_full: bool,
    /// Kept up to date for the turn that runs.
    news: watch::Sender<LaneNews>,
}

impl Lane {
    /// The view that a turn of this lane gets.
    pub(super) fn view(&self) -> LaneView {
        LaneView::new(self.news.subscribe())
    }

    /// Call after every change of the queue.
    pub(super) fn tell(&self) {
        let news = LaneNews { should_yield: self.parked.len() < MOST_PARKED && self.waiting.iter().any(Waiting::is_question) };
        self.news.send_if_modified(|known| std::mem::replace(known, news) != news);
    }

    pub(super) fn depth(&self) -> usize {
        let questions = self.waiting.iter().filter(|waiting| waiting.purpose == Purpose::Answer).count();
        questions + self.parked.len() + usize::from(self.current.is_some())
    }

    pub(super) fn queue(&self) -> Queue {
        Queue {
            current: self.current.as_ref().map(|current| current.item.clone()),
            parked: self.parked.iter().map(|parked| parked.item.clone()).collect(),
            subagents: Vec::new(),
            waiting: self
                .waiting
                .iter()
                .filter(|waiting| waiting.is_question())
                .map(|waiting| Item::of(&waiting.accepted))
                .collect(),
        }
    }

    pub(super) fn takes(&self, purpose: Purpose, arrived: Arrived) -> bool {
        match purpose {
            Purpose::Answer => self.waiting.len() < MOST_WAITING || arrived == Arrived::Before,
            Purpose::Observe => self.waiting.len() < MOST_WAITING_TO_OBSERVE || arrived == Arrived::Before,
        }
    }

    /// Takes out messages that wait and are not wanted any more.
    pub(super) fn let_go(&mut self, is_unwanted: impl Fn(&Waiting) -> bool) -> Vec<Waiting> {
        let (gone, left): (VecDeque<Waiting>, _) = self.waiting.drain(..).partition(is_unwanted);
        self.waiting = left;
        self.tell();
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
        let together = last.accepted.inbound.extras.together.as_ref().filter(|_| !is_complete);
        (count, together.map(|together| last.since + Duration::from_millis(together.wait_ms)))
    }

    /// The sizes of the messages that are answered at once: the oldest, and if they came while the place was busy, all that
    /// wait behind it and may do the same.
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
pub(super) struct NotBefore(pub(super) Instant);
