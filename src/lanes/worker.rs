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
use crate::answering::{ActiveTurn, Due, Ended, Exchange, PauseNews};
use crate::domain::SessionKey;
use crate::records::inbox::Accepted;
use crate::subagents::Item;

/// A parked turn with the guards of its messages.
struct Parked {
    turn: Box<ActiveTurn>,
    guards: Vec<TaskTrackerToken>,
    /// What was answered since.
    meanwhile: Vec<Exchange>,
}

/// The worker's next step.
enum Job {
    /// Keeps a message without an answer.
    Keep(Box<Accepted>, Purpose, Vec<TaskTrackerToken>),
    Answer(Box<Due>, Vec<TaskTrackerToken>, Option<PersonTurn>),
    /// Resumes a parked turn: its position, and the guard of the answer that it waited for.
    Resume(usize, Option<TaskTrackerToken>, Option<PersonTurn>),
}

/// The end of a step.
enum Done {
    /// With the guards to let go of.
    Over(Vec<TaskTrackerToken>),
    /// The agent is paused.
    Paused(Box<Due>),
    /// The rest is left to the next start.
    LeftBehind,
}

impl Lanes {
    pub(super) async fn work_through(self: Arc<Self>, place: SessionKey) {
        let mut parked: Vec<Parked> = Vec::new();
        while let Some(job) = self.next(&place, &parked).await {
            // Subscribed before the turn checks for a pause, so that no resumption is missed.
            let news = self.answering.pauses().news();
            let working = self.do_one(job, &mut parked);
            let done = tokio::select! {
                done = working => done,
                () = self.abandon.cancelled() => return self.leave(&place),
            };
            let guards = match done {
                Done::Over(guards) => guards,
                Done::Paused(due) => {
                    self.hold(&place, *due, news);
                    continue;
                }
                Done::LeftBehind => return self.leave(&place),
            };
            self.finish(&place, &parked);
            // Guards go after the lane has moved on, so a settled gateway has no lane left.
            drop(guards);
        }
        // `next` has removed the lane. A lane found now belongs to the next worker.
    }

    async fn do_one(&self, job: Job, parked: &mut Vec<Parked>) -> Done {
        let (ended, guards) = match job {
            Job::Keep(accepted, Purpose::Observe(hearer), guards) => {
                Box::pin(self.keeper.observed(&accepted, hearer)).await;
                return Done::Over(guards);
            }
            Job::Keep(note, Purpose::Answer, guards) => {
                return match Box::pin(self.keeper.note(&note)).await {
                    Kept::Done => Done::Over(guards),
                    Kept::LeftBehind => Done::LeftBehind,
                };
            }
            Job::Answer(mut due, guards, _persons) => {
                due.aside = parked.iter().map(|parked| parked.turn.aside()).collect();
                (Box::pin(self.answering.begin(*due)).await, guards)
            }
            Job::Resume(position, answered, _persons) => {
                let Parked {
                    turn,
                    mut guards,
                    meanwhile,
                } = parked.remove(position);
                if guards.is_empty() {
                    guards.push(self.work.token());
                }
                drop(answered);
                (
                    Box::pin(self.answering.resume(turn, &meanwhile)).await,
                    guards,
                )
            }
        };
        match ended {
            Ended::Over(exchange) => {
                let exchange = exchange.as_ref();
                parked
                    .iter_mut()
                    .for_each(|parked| parked.meanwhile.extend(exchange.cloned()));
                Done::Over(guards)
            }
            Ended::Parked(turn) => {
                // Neither the end of the process nor a settled gateway waits for people.
                let (kept, let_go) = match turn.waits_for_people() {
                    true => (Vec::new(), guards),
                    false => (guards, Vec::new()),
                };
                parked.push(Parked {
                    turn,
                    guards: kept,
                    meanwhile: Vec::new(),
                });
                Done::Over(let_go)
            }
            Ended::Paused(due) => Done::Paused(due),
            // `Answering` begins such a turn again by itself.
            Ended::Again(_) | Ended::LeftBehind => Done::LeftBehind,
        }
    }

    /// Puts the messages of a turn back, to wait for their paused agent.
    fn hold(&self, place: &SessionKey, due: Due, news: PauseNews) {
        let arrived = due.arrived;
        let messages = due.accepted.into_parts().map(|accepted| Waiting {
            accepted,
            purpose: Purpose::Answer,
            guard: None,
            since: Instant::now(),
            arrived,
            is_blocked: false,
        });
        let unheld = self.lanes.get_mut(place).map(|mut lane| {
            // Called off meanwhile, under this lock: the rows are closed.
            let messages = match due.halt.is_cancelled() {
                true => Vec::new(),
                false => messages.collect(),
            };
            lane.hold(messages, news);
            lane.without_guards()
        });
        // Outside the lock, because dropping a guard may wake others.
        drop(unheld);
    }

    /// Updates the lane's list of turns after a step of the worker.
    fn finish(&self, place: &SessionKey, parked: &[Parked]) {
        let Some(mut lane) = self.lanes.get_mut(place) else {
            return;
        };
        let current = lane.current.take();
        lane.parked.truncate(parked.len());
        if let Some(last) = parked.last().filter(|_| lane.parked.len() < parked.len()) {
            lane.parked.extend(current.map(|mut turn| {
                turn.waits_for_people = last.turn.waits_for_people();
                turn
            }));
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
                    NotYet::Held(mut news) => {
                        tokio::select! {
                            // An error would mean that nobody can resume, and the stop is near.
                            changed = news.changed() => drop(changed),
                            () = changes.notified() => {}
                        }
                    }
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
        if lane.held.is_some() && !lane.is_held() {
            lane.held = None;
            lane.with_guards(|| self.work.token());
        }
        if let Some(held) = &lane.held {
            // A parked turn was begun before the pause, or is another agent's.
            if let Some((position, next)) = next_parked(parked)
                && let Ok(persons) = self.room_to_resume(next)
            {
                return Some(Ok(resume(lane, position, persons)));
            }
            let held = NotYet::Held(held.news.clone());
            return Some(Err((held, lane.changes())));
        }
        let persons = self.bring_forward(lane);
        // A resumed turn gets a round before it is parked again, however much people write.
        let next = next_parked(parked);
        let is_its_turn = next.is_some_and(|(_, parked)| {
            let turn = &parked.turn;
            !parked.meanwhile.is_empty() || turn.is_halted() || turn.waits_for_people()
        });
        if let Some((position, next)) = next
            && (is_its_turn || persons.is_err())
            && let Ok(persons) = self.room_to_resume(next)
        {
            let job = resume(lane, position, persons);
            lane.tell();
            return Some(Ok(job));
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
        let Some((due, purpose, guards)) = drain(lane, &sizes) else {
            // Removed under the lock of `submit`, so no message falls between two workers.
            entry.remove();
            return None;
        };
        lane.current = (purpose == Purpose::Answer).then(|| {
            let item = Item::of(&due.accepted);
            RunningTurn::new(item, due.halt.clone(), due.lane.worker())
        });
        lane.was_busy |= purpose == Purpose::Answer;
        lane.tell();
        lane.told_full &= lane.waiting.len() >= MOST_WAITING / 2;
        let is_note = due.accepted.inbound.extras.note.is_some();
        Some(Ok(if is_note || purpose != Purpose::Answer {
            Job::Keep(Box::new(due.accepted), purpose, guards)
        } else {
            Job::Answer(Box::new(due), guards, persons)
        }))
    }

    /// Brings a message with room for its turn to the front, and takes the room.
    fn bring_forward(&self, lane: &mut Lane) -> Result<Option<PersonTurn>, NoRoom> {
        let needs_room = |waiting: &Waiting| {
            waiting.purpose == Purpose::Answer && waiting.accepted.inbound.extras.note.is_none()
        };
        let has_room = |waiting: &Waiting| !needs_room(waiting) || self.has_room(&waiting.accepted);
        // Another place may take the room between this check and `begin`.
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

/// The turn parked last, among those that can go on.
fn next_parked(parked: &[Parked]) -> Option<(usize, &Parked)> {
    let mut parked = parked.iter().enumerate();
    parked.rfind(|(_, parked)| parked.turn.can_go_on())
}

fn resume(lane: &mut Lane, position: usize, persons: Option<PersonTurn>) -> Job {
    let mut turn = lane.parked.remove(position);
    let answered = turn.answered.take();
    lane.current = Some(turn);
    Job::Resume(position, answered, persons)
}

/// The person has as many turns as a person may have.
struct NoRoom;

/// Takes the messages of the next turn out of the lane, with their guards.
fn drain(lane: &mut Lane, sizes: &[usize]) -> Option<(Due, Purpose, Vec<TaskTrackerToken>)> {
    let mut guards = Vec::new();
    let mut messages = Vec::new();
    for size in sizes {
        let mut parts = lane.waiting.drain(..size).map(|waiting| {
            guards.extend(waiting.guard);
            (waiting.accepted, waiting.purpose, waiting.arrived)
        });
        let (mut accepted, purpose, arrived) = parts.next()?;
        accepted.joined = parts.map(|(accepted, ..)| accepted).collect();
        messages.push((accepted, purpose, arrived));
    }
    let mut messages = messages.into_iter();
    let (mut accepted, purpose, arrived) = messages.next()?;
    accepted.backlog = messages.map(|(accepted, ..)| accepted).collect();
    let due = Due {
        accepted,
        arrived,
        halt: CancellationToken::new(),
        lane: lane.view(),
        aside: Vec::new(),
        is_again: false,
    };
    Some((due, purpose, guards))
}
