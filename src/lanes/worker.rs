//! The worker of a lane: takes out the next messages, has them answered, and resumes parked turns.

use std::sync::Arc;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::keep::Kept;
use super::lane::{Lane, MOST_WAITING, NotBefore, NotYet, Purpose, RunningTurn, Waiting};
use super::person_turns::PersonTurn;
use super::queues::Lanes;
use crate::answering::{ActiveTurn, Due, Ended, Exchange, LaneView};
use crate::domain::SessionKey;
use crate::records::inbox::Accepted;
use crate::subagents::{Arrived, Item};

/// A parked turn with the guards of its messages.
struct Parked {
    turn: Box<ActiveTurn>,
    guards: Vec<TaskTrackerToken>,
    /// What was answered since.
    meanwhile: Vec<Exchange>,
}

/// The worker's next step.
enum Job {
    Fresh(Box<Taken>, Option<PersonTurn>),
    /// Resumes the turn parked last.
    Resume(Option<PersonTurn>),
}

/// The messages of a turn, out of their lane.
struct Taken {
    accepted: Accepted,
    purpose: Purpose,
    arrived: Arrived,
    halt: CancellationToken,
    lane: LaneView,
    guards: Vec<TaskTrackerToken>,
}

impl Lanes {
    pub(super) async fn work_through(self: Arc<Self>, place: SessionKey) {
        let mut parked: Vec<Parked> = Vec::new();
        while let Some(job) = self.next(&place, &parked).await {
            let working = self.do_one(job, &mut parked);
            let guards = tokio::select! {
                guards = working => guards,
                () = self.abandon.cancelled() => return self.leave(&place),
            };
            let Some(guards) = guards else {
                return self.leave(&place);
            };
            self.finish(&place, &parked);
            // Guards go after the lane has moved on, so a settled gateway has no lane left.
            drop(guards);
        }
        // `next` has removed the lane. A lane found now belongs to the next worker.
    }

    /// Returns whom to let go of, or none when the rest is left to the next start.
    async fn do_one(&self, job: Job, parked: &mut Vec<Parked>) -> Option<Vec<TaskTrackerToken>> {
        let (ended, guards) = match job {
            Job::Fresh(taken, _) if taken.purpose == Purpose::Observe => {
                self.keeper.observed(&taken.accepted).await;
                return Some(taken.guards);
            }
            Job::Fresh(taken, _) if taken.accepted.inbound.extras.note.is_some() => {
                return match self.keeper.note(&taken.accepted).await {
                    Kept::Done => Some(taken.guards),
                    Kept::LeftBehind => None,
                };
            }
            Job::Fresh(taken, _persons) => {
                let Taken {
                    accepted,
                    arrived,
                    halt,
                    guards,
                    lane,
                    ..
                } = *taken;
                let aside = parked.iter().map(|parked| parked.turn.aside()).collect();
                (
                    self.answering
                        .begin(Due {
                            accepted,
                            arrived,
                            halt,
                            lane,
                            aside,
                        })
                        .await,
                    guards,
                )
            }
            Job::Resume(_persons) => {
                let Parked {
                    turn,
                    guards,
                    meanwhile,
                } = parked.pop()?;
                (self.answering.resume(*turn, &meanwhile).await, guards)
            }
        };
        match ended {
            Ended::Over(exchange) => {
                let exchange = exchange.as_ref();
                parked
                    .iter_mut()
                    .for_each(|parked| parked.meanwhile.extend(exchange.cloned()));
                Some(guards)
            }
            Ended::Parked(turn) => {
                parked.push(Parked {
                    turn,
                    guards,
                    meanwhile: Vec::new(),
                });
                Some(Vec::new())
            }
            Ended::LeftBehind => None,
        }
    }

    /// Updates the lane's list of turns after a step of the worker.
    fn finish(&self, place: &SessionKey, parked: &[Parked]) {
        let Some(mut lane) = self.lanes.get_mut(place) else {
            return;
        };
        let current = lane.current.take();
        lane.parked.truncate(parked.len());
        if lane.parked.len() < parked.len() {
            lane.parked.extend(current);
        }
        lane.tell();
    }

    /// Removes a lane before its work is done. The rows stay in the inbox for the next start.
    fn leave(&self, place: &SessionKey) {
        self.lanes.remove(place);
    }

    /// The next step, or none after removing the empty lane.
    async fn next(&self, place: &SessionKey, parked: &[Parked]) -> Option<Job> {
        loop {
            // Registered before the look, so room given back meanwhile is noticed.
            let mut freed = std::pin::pin!(self.turns.freed().notified());
            freed.as_mut().enable();
            let (not_yet, changes) = match self.take(place, parked)? {
                Ok(job) => return Some(job),
                Err(not_yet) => not_yet,
            };
            let waiting = async {
                match not_yet {
                    NotYet::Before(until) => tokio::time::sleep_until(until).await,
                    NotYet::NoRoom => tokio::select! {
                        () = freed => {}
                        () = changes.notified() => {}
                    },
                }
            };
            tokio::select! {
                () = waiting => {}
                () = self.stop.cancelled() => {
                    self.leave(place);
                    return None;
                }
            }
        }
    }

    /// The next step. Else why there is none, with a signal for changes of the lane.
    fn take(
        &self,
        place: &SessionKey,
        parked: &[Parked],
    ) -> Option<Result<Job, (NotYet, Arc<Notify>)>> {
        let dashmap::Entry::Occupied(mut entry) = self.lanes.entry(place.clone()) else {
            return None;
        };
        let lane = entry.get_mut();
        let persons = self.bring_forward(lane);
        // A resumed turn gets a round before it is parked again, however much people write.
        let is_its_turn = parked
            .last()
            .is_some_and(|parked| !parked.meanwhile.is_empty() || parked.turn.is_halted());
        if let Some(last) = parked.last()
            && (is_its_turn || persons.is_err())
            && let Ok(persons) = self.room_to_resume(last)
        {
            lane.current = lane.parked.pop();
            lane.tell();
            return Some(Ok(Job::Resume(persons)));
        }
        let not_yet = |not_yet, lane: &Lane| Some(Err((not_yet, lane.changes())));
        let Ok(persons) = persons else {
            if parked.is_empty() && lane.waiting.is_empty() {
                // Removed under the lock of `submit`, so no message falls between two workers.
                entry.remove();
                return None;
            }
            return not_yet(NotYet::NoRoom, lane);
        };
        let sizes = match lane.oldest_batch(Instant::now(), |one, other| self.are_alike(one, other))
        {
            Ok(sizes) => sizes,
            Err(NotBefore(until)) => return not_yet(NotYet::Before(until), lane),
        };
        let Some(taken) = drain(lane, &sizes) else {
            // Removed under the lock of `submit`, so no message falls between two workers.
            entry.remove();
            return None;
        };
        lane.current = (taken.purpose == Purpose::Answer).then(|| {
            let item = Item::of(&taken.accepted);
            RunningTurn::new(item, taken.halt.clone(), taken.lane.worker())
        });
        lane.was_busy |= taken.purpose == Purpose::Answer;
        lane.tell();
        lane.told_full &= lane.waiting.len() >= MOST_WAITING / 2;
        Some(Ok(Job::Fresh(Box::new(taken), persons)))
    }

    /// Brings a message with room for its turn to the front, and takes the room.
    fn bring_forward(&self, lane: &mut Lane) -> Result<Option<PersonTurn>, NoRoom> {
        let needs_room = |waiting: &Waiting| {
            waiting.purpose == Purpose::Answer && waiting.accepted.inbound.extras.note.is_none()
        };
        let has_room = |waiting: &Waiting| !needs_room(waiting) || self.has_room(&waiting.accepted);
        // Another place may take the room between the look and the grasp.
        while lane.bring_forward(has_room) {
            let Some(front) = lane.waiting.front().filter(|front| needs_room(front)) else {
                return Ok(None);
            };
            let Some(share) = self.share(&front.accepted) else {
                return Ok(None);
            };
            if let Some(turn) = self.turns.begin(share) {
                return Ok(Some(turn));
            }
        }
        Err(NoRoom)
    }

    /// A stopped turn only ends, and needs no room.
    fn room_to_resume(&self, parked: &Parked) -> Result<Option<PersonTurn>, NoRoom> {
        match self.share(parked.turn.accepted()) {
            Some(share) if !parked.turn.is_halted() => {
                self.turns.begin(share).map(Some).ok_or(NoRoom)
            }
            _ => Ok(None),
        }
    }
}

/// The person has as many turns as a person may have.
struct NoRoom;

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
    Some(Taken {
        accepted,
        purpose,
        arrived,
        halt: CancellationToken::new(),
        lane: lane.view(),
        guards,
    })
}
