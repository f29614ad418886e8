//! The course of a turn, from the lane to its end.

use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use rusqlite::Transaction;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::active_turn::{ActiveTurn, Due, Ended, Exchange};
use super::admit::{Admission, InLine};
use super::budgets::{self, Budgets};
use super::compaction::{self, Compaction};
use super::finish::{Cause, Finish, Stopping};
use super::giving_up::Told;
use super::prepare::{Begun, Preparation, progress};
use super::rounds::Rounds;
use crate::channels::Outcome;
use crate::clock::now_ms;
use crate::delivery::{Delivery, ProgressHandle};
use crate::domain::TurnEvent;
use crate::home::Snapshots;
use crate::records::decisions::{self, Decision};
use crate::records::journal;
use crate::records::transcript::{self, Spot};
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
    pub(super) finish: Finish,
    pub(super) compaction: Compaction,
    pub(super) stop: CancellationToken,
}

/// The reason for leaving off.
enum Left {
    Answered,
    /// People wrote, and the round has just ended or only waits for subagents.
    ForOthers,
    Failed(TurnError),
    /// A round cannot be written.
    Broken(StoreError),
    /// Stopped on request.
    Halted,
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

impl Answering {
    /// Answers the message. Failures are told in the place of the message.
    pub(crate) async fn begin(&self, mut due: Due) -> Ended {
        let written = due
            .accepted
            .messages()
            .filter(|message| message.inbound.extras.internal.is_none());
        let mark = self.delivery.mark(written.map(|message| &message.inbound));
        let mut patience = Patience::new("a turn");
        let cause = loop {
            // The group may have become a supergroup while the message waited.
            self.aliases.follow(&mut due.accepted.inbound.origin);
            let error =
                match AssertUnwindSafe(self.preparation.prepare(self.snapshots.current(), &due))
                    .catch_unwind()
                    .await
                {
                    Ok(Ok(Begun::Ready {
                        mut turn,
                        progress,
                        slot: _slot,
                    })) => {
                        turn.mark = Some(mark);
                        return self.proceed(*turn, progress).await;
                    }
                    Ok(Ok(Begun::Refused)) => {
                        mark.end(Outcome::Failed);
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
        if let Err(Stopping) = broken_off.await {
            return Ended::LeftBehind;
        }
        mark.end(Outcome::Failed);
        Ended::Over(None)
    }

    /// Resumes a parked turn after these exchanges.
    pub(crate) async fn resume(&self, mut turn: ActiveTurn, meanwhile: &[Exchange]) -> Ended {
        let _slot = match self.admission.wait(turn.agent.uid, &turn.halt).await {
            InLine::Next(slot) => Some(slot),
            InLine::NoNeed => None,
            InLine::Halted => return self.finish.stopped(turn).await,
            InLine::Stopping => return Ended::LeftBehind,
        };
        let (place, id) = (turn.accepted.inbound.origin.key.clone(), turn.accepted.id);
        let noted = self.db.write_as(Durability::Kill, move |tx| {
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
        self.proceed(turn, progress).await
    }

    /// Runs the turn until it leaves off, then ends or parks it.
    async fn proceed(&self, mut turn: ActiveTurn, progress: ProgressHandle) -> Ended {
        let events = progress.events();
        let (halt, span) = (turn.halt.clone(), turn.span());
        let left = tokio::select! {
            // First, so a turn stopped before its start asks no model.
            biased;
            () = halt.cancelled() => Ok(Left::Halted),
            left = AssertUnwindSafe(self.drive(&mut turn, &events)).catch_unwind().instrument(span) => left,
        };
        if matches!(
            left,
            Ok(Left::Failed(_) | Left::Broken(_) | Left::Halted) | Err(_)
        ) {
            let id = turn.accepted.id;
            self.subagents
                .stop(|_, running| running.parent_inbox_id == id && running.then == OnFinish::Wait);
        }
        drop(events);
        // Also after a panic: no late preview may follow the apology.
        progress.end().await;
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
            Ok(Left::Halted) => self.finish.stopped(turn).await,
            Ok(Left::ForOthers) => self.park(turn).await,
            Ok(Left::Stopping) => Ended::LeftBehind,
            Ok(Left::Broken(error)) => {
                let cause = Cause::Store(error);
                self.finish.broken(turn, cause, Told::InPlace).await
            }
            Err(_) => {
                self.finish
                    .broken(turn, Cause::Panicked, Told::InPlace)
                    .await
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
        if let Err(error) = self.rounds.finish(turn).await {
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
            let round = match turn.run.ask(&turn.snapshot.models, events).await {
                Ok(Step::Answered) => return Left::Answered,
                Ok(Step::Wants(round)) => round,
                Err(error) => return Left::Failed(error),
            };
            let today = match self.rounds.run(turn, round).await {
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
    async fn park(&self, mut turn: ActiveTurn) -> Ended {
        turn.follow_moves(&self.aliases);
        let (accepted, said, is_asked) = (turn.accepted.clone(), turn.said.clone(), turn.is_asked);
        let spot = Spot {
            conversation: turn.conversation,
            part: Some(turn.agent.uid),
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
                decisions::note(tx, place, accepted.id, Decision::Parked, now)
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
                return self.finish.broken(turn, cause, Told::InPlace).await;
            }
            Err(_) => return Ended::LeftBehind,
        }
        if used_once {
            self.pins.changed(&turn.accepted.inbound.origin.key);
        }
        turn.is_asked = true;
        turn.run.put_aside();
        Ended::Parked(Box::new(turn))
    }
}
