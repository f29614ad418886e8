//! A round of tools: written before its calls run, and call by call as they end.
//!
//! While a round only waits for subagents, people come first: the turn is parked in the middle of
//! the round and resumed later, as after a restart.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rusqlite::Transaction;
use tokio_util::sync::CancellationToken;

use super::active_turn::ActiveTurn;
use super::budgets;
use crate::clock::now_ms;
use crate::domain::{Labels, Marks};
use crate::records::journal::{self, CallId, Recall};
use crate::records::ledger::{self, Sums};
use crate::records::subagents::{self as subagent_rows, Subagent, SubagentRow};
use crate::routing::aliases::Aliases;
use crate::storage::{Db, Durability, StoreError};
use crate::subagents::{self, Asker, Carried, Subagents};
use crate::tools::{self, Form, OnFinish, Outcome};
use crate::turn::{Charge, ModelCall, Round};

/// Runs rounds. Cheap to clone.
#[derive(Clone)]
pub(super) struct Rounds {
    pub(super) db: Db,
    pub(super) aliases: Arc<Aliases>,
    pub(super) subagents: Subagents,
    pub(super) stop: CancellationToken,
}

impl Rounds {
    /// Runs the calls of a round. The round is written before its calls run, and the results before
    /// the model is asked again. Fails when the process stops, and when a write cannot work.
    pub(super) async fn run(
        &self,
        turn: &mut ActiveTurn,
        round: Round,
    ) -> Result<Sums, StoreError> {
        // Tools need the current key of the place.
        turn.follow_moves(&self.aliases);
        let (number, shared) = (turn.rounds, Arc::new(round));
        let today = self.write_wanted(turn, &shared).await?;
        let mut results: Vec<Recall> = shared.calls.iter().map(|_| Recall::default()).collect();
        let (mut broken, mut tools_left) = (Vec::new(), results.len());
        let asker = Asker {
            snapshot: &turn.snapshot,
            accepted: &turn.accepted,
            agent: &turn.agent,
            steps_left: turn.run.steps_left(),
            read: &turn.run.scope().read,
        };
        let calls = u64::try_from(shared.calls.len()).unwrap_or(u64::MAX);
        turn.agent.counts.tool_calls.add(calls);
        let marks = turn.agent.marks();
        let mut running = turn.run.call(&shared);
        let mut waits = FuturesUnordered::new();
        let mut charges = Vec::new();
        loop {
            tokio::select! {
                Some(ran) = running.next() => {
                    tools_left -= 1;
                    let call = CallId { inbox_id: turn.accepted.id, round: number, number: ran.number };
                    let outcome = ran.outcome.unwrap_or_else(|_| {
                        let tool = &shared.calls[ran.number].name;
                        tracing::error!(agent.id = %turn.agent.id, %tool, inbox.id = turn.accepted.id, "a tool panicked");
                        broken.push(tool.clone());
                        Outcome::say(TOOL_BROKE)
                    });
                    match self.subagents.carry_out(&asker, call, outcome).await? {
                        Carried::Done(outcome) => results[ran.number] = Recall::from(outcome),
                        Carried::Waits { run } => waits.push(self.wait_for(call, run, &marks)),
                    }
                }
                Some(waited) = waits.next() => {
                    let (call, outcome, charge) = waited?;
                    results[call.number] = Recall::from(outcome);
                    charges.push(charge);
                }
                () = turn.lane.yield_wanted(), if tools_left == 0 && !waits.is_empty() => break,
                else => break,
            }
        }
        let is_open = !waits.is_empty();
        drop((running, waits));
        charges
            .into_iter()
            .for_each(|charge| turn.run.charge(charge));
        turn.broken_tools.extend(broken);
        turn.end_round(Arc::unwrap_or_clone(shared), results, is_open);
        Ok(today)
    }

    /// Writes the calls of a round, and books the cost of the model call.
    async fn write_wanted(
        &self,
        turn: &mut ActiveTurn,
        round: &Arc<Round>,
    ) -> Result<Sums, StoreError> {
        let row = Arc::new((turn.row(), budgets::spending(turn, round.usage)));
        let number = turn.rounds;
        let calls: Arc<[ModelCall]> = turn.run.take_calls().into();
        let wanted = || {
            let (row, round, calls) = (row.clone(), round.clone(), calls.clone());
            move |tx: &Transaction<'_>| {
                let now = now_ms();
                journal::wanted(tx, &row.0, number, (&round, &calls), now)?;
                ledger::spend(tx, &row.1, now)
            }
        };
        // Counted before the write: a turn stopped during the write may have this round in the
        // journal.
        turn.rounds += 1;
        let today = self
            .db
            .write_patiently(&self.stop, Durability::PowerCut, wanted)
            .await?;
        turn.allowance.settle(&today);
        Ok(today)
    }

    /// Waits for a subagent. Its result becomes the result of the tool call.
    async fn wait_for(
        &self,
        call: CallId,
        run: String,
        marks: &Marks,
    ) -> Result<(CallId, Outcome, Charge), StoreError> {
        let known = self.subagents.ended(&run).await?;
        let charge = known
            .as_ref()
            .map(|known| known.end.used)
            .unwrap_or_default();
        let outcome = tools::bounded(subagents::result(known.as_ref()))
            .labelled(known.as_ref().map_or(Labels::NONE, SubagentRow::labels))
            .finished(marks);
        self.subagents.done(call, outcome.clone()).await?;
        Ok((call, outcome, charge))
    }

    /// Waits again for the subagents of a round left open by parking or by a restart. The outcome
    /// of other open calls is unknown.
    pub(super) async fn finish(&self, turn: &mut ActiveTurn) -> Result<(), StoreError> {
        let Some((round, mut calls)) = turn.unfinished.take() else {
            return Ok(());
        };
        let (inbox_id, number) = (turn.accepted.id, turn.rounds - 1);
        let known = self.subagents.of_turn(inbox_id).await?;
        let marks = turn.agent.marks();
        let mut waits = FuturesUnordered::new();
        for (index, _) in calls
            .iter()
            .enumerate()
            .filter(|(_, recall)| recall.result.is_none())
        {
            let call = CallId {
                inbox_id,
                round: number,
                number: index,
            };
            let run = Subagent::name_of(call);
            if known.iter().any(|known| known.subagent.run == run) {
                waits.push(self.wait_for(call, run, &marks));
            }
        }
        loop {
            tokio::select! {
                Some(waited) = waits.next() => {
                    let (call, outcome, charge) = waited?;
                    calls[call.number] = Recall::from(outcome);
                    turn.run.charge(charge);
                }
                () = turn.lane.yield_wanted(), if !waits.is_empty() => break,
                else => break,
            }
        }
        let is_open = !waits.is_empty();
        drop(waits);
        turn.end_round(round, calls, is_open);
        Ok(())
    }
}

impl From<Outcome> for Recall {
    fn from(
        Outcome {
            text,
            effects,
            read,
            ..
        }: Outcome,
    ) -> Self {
        Recall {
            result: Some(text),
            effects,
            read,
        }
    }
}

impl From<Recall> for Outcome {
    fn from(
        Recall {
            result,
            effects,
            read,
        }: Recall,
    ) -> Self {
        Outcome {
            effects,
            read,
            form: Form::Marked,
            ..Outcome::say(result.unwrap_or_else(|| journal::INTERRUPTED.to_owned()))
        }
    }
}

impl ActiveTurn {
    /// Replays the rounds of an earlier process.
    pub(super) fn replay(&mut self, rounds: Vec<(Round, Vec<Recall>)>) {
        for (round, calls) in rounds {
            self.rounds += 1;
            self.run.count_step(round.usage);
            if calls.iter().all(|recall| recall.result.is_some()) {
                self.take_in(round, calls.into_iter().map(Outcome::from).collect());
            } else {
                // Only the last round can be open.
                self.unfinished = Some((round, calls));
            }
        }
    }

    /// With `is_open`, the round still waits for subagents.
    fn end_round(&mut self, round: Round, calls: Vec<Recall>, is_open: bool) {
        if is_open {
            self.unfinished = Some((round, calls));
        } else {
            self.take_in(round, calls.into_iter().map(Outcome::from).collect());
        }
    }

    fn take_in(&mut self, round: Round, outcomes: Vec<Outcome>) {
        let mut texts = Vec::new();
        for outcome in outcomes {
            texts.push(outcome.text);
            self.effects.extend(outcome.effects);
            self.run.has_read(outcome.read);
        }
        self.run.take_in(round, texts);
    }

    /// Charges the usage of awaited subagents with a recorded result.
    pub(super) async fn charge_runs(&mut self, db: &Db) -> Result<(), StoreError> {
        let id = self.accepted.id;
        let known = db
            .read(move |connection| subagent_rows::of_turn(connection, id))
            .await?;
        let last = self
            .unfinished
            .iter()
            .flat_map(|(_, calls)| calls.iter().enumerate());
        let open: Vec<String> = last
            .filter(|(_, recall)| recall.result.is_none())
            .map(|(number, _)| {
                Subagent::name_of(CallId {
                    inbox_id: id,
                    round: self.rounds - 1,
                    number,
                })
            })
            .collect();
        let over = known.iter().filter(|known| {
            known.subagent.then == OnFinish::Wait && !open.contains(&known.subagent.run)
        });
        over.for_each(|known| self.run.charge(known.end.used));
        Ok(())
    }
}

/// The result of a call to a panicked tool.
const TOOL_BROKE: &str = "The tool broke inside and did not finish. Do not call it the same way again; go on without it if you can.";
