//! The course of a turn, from the lane to its end.

use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use rusqlite::Transaction;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::active_turn::{ActiveTurn, Due, Ended, Exchange};
use super::admit::{Admission, InLine};
use super::approvals::Approvals;
use super::budgets::{self, Budgets};
use super::compaction::{self, Compaction};
use super::finish::{Cause, Finish, Stopping};
use super::giving_up::Told;
use super::job_turns::job_of;
use super::prepare::{Begun, Preparation, progress};
use super::rounds::Rounds;
use super::texts;
use super::under_way::UnderWay;
use crate::agents::Agent;
use crate::channels::{Outcome, Text};
use crate::clock::now_ms;
use crate::delivery::outbox::{self, Source};
use crate::delivery::{Delivery, Kind, Mark, ProgressHandle};
use crate::domain::{Destination, TurnEvent};
use crate::fail_points::{self, Write};
use crate::home::Snapshots;
use crate::jobs::Alarm;
use crate::metrics::Stage;
use crate::records::decisions::{self, Decision};
use crate::records::inbox::Accepted;
use crate::records::transcript::{self, Spot};
use crate::records::{agent_pauses, journal};
use crate::routing::aliases::Aliases;
use crate::routing::pins::{self, Pins};
use crate::storage::{Db, Durability, Next, Patience, StoreError};
use crate::subagents::Subagents;
use crate::tools::OnFinish;
use crate::turn::history;
use crate::turn::{Step, TurnError, TurnLimits};

/// Answers messages. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Answering {
    pub(super) db: Db,
    pub(super) snapshots: Snapshots,
    pub(super) aliases: Arc<Aliases>,
    pub(super) pins: Arc<Pins>,
    pub(super) delivery: Delivery,
    pub(super) subagents: Subagents,
    pub(super) admission: Admission,
    pub(super) budgets: Budgets,
    pub(super) preparation: Preparation,
    pub(super) rounds: Rounds,
    pub(super) approvals: Approvals,
    pub(super) finish: Finish,
    pub(super) compaction: Compaction,
    pub(super) under_way: UnderWay,
    pub(super) alarm: Alarm,
    pub(super) stop: CancellationToken,
}

/// The reason for leaving off.
enum Left {
    Answered,
    /// People wrote, and the round has just ended or only waits for subagents; or it waits for
    /// approvals.
    ForOthers,
    Failed(TurnError),
    /// A round cannot be written.
    Broken(StoreError),
    /// Stopped on request.
    Halted,
    /// The agent was restarted.
    Again,
    /// The process stops.
    Stopping,
}

impl Left {
    /// After a failure of the store. Rows of a stopping process stay for the next start.
    fn over(error: StoreError, inbox_id: i64) -> Self {
        if error.is_permanent() {
            return Left::Broken(error);
        }
        tracing::warn!(
            inbox.id = inbox_id,
            "a turn is left to the next start: {error}"
        );
        Left::Stopping
    }
}

fn end(mark: Option<Mark>, outcome: Outcome) {
    if let Some(mark) = mark {
        mark.end(outcome);
    }
}

impl Answering {
    /// Answers the message. Failures are told in the place of the message.
    pub(crate) async fn begin(&self, due: Due) -> Ended {
        let (span, is_job) = (due.span(), job_of(&due.accepted).is_some());
        let ended = self.begin_inside(due).instrument(span).await;
        if is_job {
            self.alarm.ring();
        }
        ended
    }

    async fn begin_inside(&self, mut due: Due) -> Ended {
        let written = due
            .accepted
            .messages()
            .filter(|message| message.inbound.extras.internal.is_none());
        let mark = self.delivery.mark(written.map(|message| &message.inbound));
        let mut mark = Some(mark);
        let mut patience = Patience::new("a turn");
        let cause = loop {
            // The group may have become a supergroup while the message waited.
            self.aliases.follow(&mut due.accepted.inbound.origin);
            // In a box, as all that is large and over before the long wait for the model.
            let prepared = Box::pin(self.preparation.prepare(self.snapshots.current(), &due));
            let error = match AssertUnwindSafe(prepared).catch_unwind().await {
                Ok(Ok(Begun::Ready {
                    mut turn,
                    progress,
                    slot: _slot,
                })) => {
                    due.lane.works(turn.agent.uid);
                    // After the lane knows the agent: a removal either finds the turn in its
                    // lane, or is seen here.
                    if !self.is_current(&turn.agent) {
                        progress.end().await;
                        continue;
                    }
                    turn.mark = mark.take();
                    turn.entry = Some(self.under_way.enter(turn.agent.uid));
                    match self.proceed(turn, progress).await {
                        Ended::Again(mut turn) => {
                            mark = turn.mark.take();
                            due = turn.due_again();
                            continue;
                        }
                        ended => return ended,
                    }
                }
                Ok(Ok(Begun::Paused(agent))) => {
                    Box::pin(self.tell_paused(&due.accepted, &agent)).await;
                    return Ended::Paused(Box::new(due));
                }
                Ok(Ok(Begun::Refused)) => {
                    end(mark, Outcome::Failed);
                    return Ended::Over(None);
                }
                Ok(Ok(Begun::Stopping)) => return Ended::LeftBehind,
                Ok(Err(error)) => error,
                Err(_) => break Cause::Panicked,
            };
            match patience.after(&self.stop, &error).await {
                Next::Again => {}
                Next::Hopeless => break Cause::Store(error),
                Next::Stopping => return Ended::LeftBehind,
            }
        };
        let broken_off = self
            .finish
            .break_off(&due.accepted, None, &cause, Told::InPlace);
        if let Err(Stopping) = Box::pin(broken_off).await {
            return Ended::LeftBehind;
        }
        end(mark, Outcome::Failed);
        Ended::Over(None)
    }

    /// Whether the house still has the agent, under this id.
    fn is_current(&self, agent: &Agent) -> bool {
        let snapshot = self.snapshots.current();
        let now = snapshot.registry.by_uid(agent.uid);
        now.is_some_and(|now| now.id == agent.id)
    }

    /// Resumes a parked turn after these exchanges.
    pub(crate) async fn resume(&self, turn: Box<ActiveTurn>, meanwhile: &[Exchange]) -> Ended {
        let (span, is_job) = (turn.span(), job_of(&turn.accepted).is_some());
        let ended = self.resume_inside(turn, meanwhile).instrument(span).await;
        if is_job {
            self.alarm.ring();
        }
        ended
    }

    async fn resume_inside(&self, mut turn: Box<ActiveTurn>, meanwhile: &[Exchange]) -> Ended {
        let waits = Instant::now();
        let (agent, id) = (turn.agent.uid, turn.accepted.id);
        let in_line = self
            .admission
            .wait_for(agent, id, turn.internal.as_ref(), &turn.halt)
            .await;
        turn.stages.spend(Stage::Slot, waits.elapsed());
        let _slot = match in_line {
            InLine::Next(slot) => Some(slot),
            InLine::Paused => None,
            InLine::Halted => return Box::pin(self.finish.stopped(turn)).await,
            InLine::Stopping => return Ended::LeftBehind,
        };
        let place = turn.accepted.inbound.origin.key.clone();
        let noted = self.db.write_as(Durability::Kill, move |tx| {
            fail_points::writes(Write::TurnResumed);
            decisions::note(tx, &place, id, Decision::Resumed, now_ms())
        });
        if let Err(error) = noted.await {
            tracing::warn!("a decision was not noted: {error}");
        }
        let view = turn.view();
        // The turn's tools run with its owner's rights, so messages of people with fewer rights are
        // not shown to it.
        let heard = meanwhile.iter().filter(|exchange| {
            exchange.role >= turn.accepted.role && view.shows(Some(exchange.by.uid))
        });
        let read = heard.clone().map(|exchange| exchange.read).collect();
        let told = history::meanwhile(heard.map(|exchange| exchange.told_to(&turn.agent)));
        turn.run.has_read(read);
        turn.untold.extend(told);
        turn.run.take_up();
        let progress = progress(
            &self.delivery,
            &turn.accepted,
            &turn.agent,
            turn.others_wrote,
        );
        match self.proceed(turn, progress).await {
            Ended::Again(turn) => Box::pin(self.begin(turn.due_again())).await,
            ended => ended,
        }
    }

    /// Tells a place that its agent is paused, once for each pause.
    async fn tell_paused(&self, accepted: &Accepted, agent: &Agent) {
        let to = Destination::besides(&accepted.inbound);
        let (uid, text) = (agent.uid, texts::paused(&agent.label(), accepted.role));
        let rows = self.delivery.draft(&to, Kind::Notice, &Text::plain(&text));
        let (place, count) = (to.place().clone(), rows.len());
        let write = move |tx: &Transaction<'_>| {
            let now = now_ms();
            let is_news = agent_pauses::tell(tx, uid, &place, now)?;
            if is_news {
                outbox::insert(tx, &rows, Source::default(), now)?;
            }
            Ok(is_news)
        };
        match self.db.write(write).await {
            Ok(true) => self.delivery.submit(to.place(), count),
            Ok(false) => {}
            Err(error) => tracing::warn!("a place was not told of a pause: {error}"),
        }
    }

    /// Runs the turn until it leaves off, then ends or parks it.
    async fn proceed(&self, mut turn: Box<ActiveTurn>, progress: ProgressHandle) -> Ended {
        let events = progress.events();
        let halt = turn.halt.clone();
        let again = turn.entry.as_ref().map(|entry| entry.again.clone());
        let restarted = async {
            match again {
                Some(again) => again.cancelled_owned().await,
                None => std::future::pending().await,
            }
        };
        let left = tokio::select! {
            // First, so a turn stopped before its start asks no model.
            biased;
            () = halt.cancelled() => Ok(Left::Halted),
            () = restarted => Ok(Left::Again),
            left = AssertUnwindSafe(self.drive(&mut turn, &events)).catch_unwind() => left,
        };
        if matches!(
            left,
            Ok(Left::Failed(_) | Left::Broken(_) | Left::Halted | Left::Again) | Err(_)
        ) {
            let id = turn.accepted.id;
            self.subagents
                .stop(|_, running| running.parent_inbox_id == id && running.then == OnFinish::Wait);
        }
        drop(events);
        // Also after a panic: no late preview may follow the apology.
        turn.previews += progress.end().await;
        match left {
            Ok(Left::Answered) => {
                let finished = compaction::Finished::of(&turn);
                let ended = self.finish.store(turn, Ok(())).await;
                if let Some(finished) = finished.filter(|_| matches!(ended, Ended::Over(_))) {
                    self.compaction.begin(finished);
                }
                ended
            }
            Ok(Left::Failed(error)) => self.finish.store(turn, Err(error)).await,
            Ok(Left::Halted) => Box::pin(self.finish.stopped(turn)).await,
            Ok(Left::Again) => Ended::Again(turn),
            Ok(Left::ForOthers) => Box::pin(self.park(turn)).await,
            Ok(Left::Stopping) => Ended::LeftBehind,
            Ok(Left::Broken(error)) => {
                let cause = Cause::Store(error);
                Box::pin(self.finish.broken(turn, cause, Told::InPlace)).await
            }
            Err(_) => {
                let broken = self.finish.broken(turn, Cause::Panicked, Told::InPlace);
                Box::pin(broken).await
            }
        }
    }

    async fn drive(&self, turn: &mut ActiveTurn, events: &mpsc::Sender<TurnEvent>) -> Left {
        let in_time = tokio::time::timeout(turn.run.time_left(), self.steps(turn, events)).await;
        in_time.unwrap_or_else(|_| {
            Left::Failed(TurnError::TooSlow(TurnLimits::of(&turn.agent.limits).time))
        })
    }

    async fn steps(&self, turn: &mut ActiveTurn, events: &mpsc::Sender<TurnEvent>) -> Left {
        let began = Instant::now();
        let finished = self.rounds.finish(turn).await;
        if turn.rounds > 0 {
            turn.stages.spend(Stage::Tools, began.elapsed());
        }
        if let Err(error) = finished {
            return Left::over(error, turn.accepted.id);
        }
        if turn.unfinished.is_some() {
            return Left::ForOthers;
        }
        let untold = std::mem::take(&mut turn.untold);
        if !untold.is_empty() {
            turn.run.hear(&untold);
        }
        if !turn.run.said().is_empty() {
            // The preview goes on with the text said before.
            drop(
                events
                    .send(TurnEvent::Text(turn.run.said().to_owned()))
                    .await,
            );
        }
        loop {
            match self.reserve(turn).await {
                ControlFlow::Continue(()) => {}
                ControlFlow::Break(left) => return left,
            }
            let asked = Instant::now();
            let step = turn.run.ask(&turn.snapshot.models, events).await;
            turn.stages.spend(Stage::Model, asked.elapsed());
            let round = match step {
                Ok(Step::Answered) => return Left::Answered,
                Ok(Step::Wants(round)) => round,
                Err(error) => return Left::Failed(error),
            };
            let began = Instant::now();
            let ran = self.rounds.run(turn, round).await;
            turn.stages.spend(Stage::Tools, began.elapsed());
            let today = match ran {
                Ok(today) => today,
                Err(error) => return Left::over(error, turn.accepted.id),
            };
            self.budgets
                .warn_owners(&turn.snapshot, &turn.agent, today)
                .await;
            if let Some(over) = budgets::exhausted(&turn.allowance, now_ms()) {
                return Left::Failed(TurnError::OverBudget(over));
            }
            if turn.unfinished.is_some() || turn.lane.should_yield() {
                return Left::ForOthers;
            }
        }
    }

    /// Takes the cost of the next call off the limits of the day.
    async fn reserve(&self, turn: &mut ActiveTurn) -> ControlFlow<Left> {
        let mut patience = Patience::new("a turn");
        loop {
            let ActiveTurn {
                allowance,
                snapshot,
                run,
                ..
            } = turn;
            let estimate = || budgets::estimate(&snapshot.models, run);
            let error = match self.budgets.reserve(allowance, estimate).await {
                Ok(Ok(())) => return ControlFlow::Continue(()),
                Ok(Err(over)) => {
                    return ControlFlow::Break(Left::Failed(TurnError::OverBudget(over)));
                }
                Err(error) => error,
            };
            match patience.after(&self.stop, &error).await {
                Next::Again => {}
                Next::Hopeless => return ControlFlow::Break(Left::Broken(error)),
                Next::Stopping => return ControlFlow::Break(Left::Stopping),
            }
        }
    }

    /// Parks a turn. Its question goes into the transcript now, before the messages answered in
    /// between.
    async fn park(&self, mut turn: Box<ActiveTurn>) -> Ended {
        turn.follow_moves(&self.aliases);
        let (accepted, said, is_asked) = (turn.accepted.clone(), turn.said.clone(), turn.is_asked);
        let spot = Spot {
            conversation: turn.conversation,
            part: Some(turn.agent.uid),
        };
        let decision = match turn.waits_for_people() {
            true => Decision::Asked,
            false => Decision::Parked,
        };
        let (used_once, started_at) = (std::mem::take(&mut turn.used_once), turn.started_at);
        let shared = Arc::new((accepted, said));
        let write = || {
            let shared = shared.clone();
            move |tx: &Transaction<'_>| {
                let ((accepted, said), now) = (shared.as_ref(), now_ms());
                let place = &accepted.inbound.origin.key;
                if !is_asked {
                    transcript::touch(tx, place, now)?;
                    transcript::append_question(tx, accepted, said, spot, now)?;
                }
                if used_once {
                    // The pin was for this message, not for the messages answered before it.
                    pins::use_up(tx, place, started_at)?;
                }
                journal::park(tx, accepted.id)?;
                decisions::note(tx, place, accepted.id, decision, now)
            }
        };
        let parked = self
            .db
            .write_patiently(&self.stop, Durability::Kill, write)
            .await;
        match parked {
            Ok(()) => {}
            Err(error) if error.is_permanent() => {
                let cause = Cause::Store(error);
                return Box::pin(self.finish.broken(turn, cause, Told::InPlace)).await;
            }
            Err(_) => return Ended::LeftBehind,
        }
        if used_once {
            self.pins.changed(&turn.accepted.inbound.origin.key);
        }
        turn.is_asked = true;
        turn.run.put_aside();
        Ended::Parked(turn)
    }
}
