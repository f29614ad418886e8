//! A round of tools: written before its calls run, and call by call as they end.
//!
//! While a round only waits for subagents, people come first: the turn is parked in the middle of
//! the round and resumed later, as after a restart. So it is while a round waits for approvals.

use std::sync::Arc;

use futures_util::stream::FuturesUnordered;
use futures_util::{Stream, StreamExt};
use rusqlite::Transaction;
use tokio_util::sync::CancellationToken;

use super::active_turn::ActiveTurn;
use super::approvals::{Approvals, Asked, Expectation};
use super::{approval_texts, budgets};
use crate::clock::now_ms;
use crate::domain::{Labels, Marks};
use crate::models::ToolCall;
use crate::records::approvals::{self, Approval, State};
use crate::records::journal::{self, CallId, Recall};
use crate::records::ledger::{self, Sums};
use crate::records::subagents::{self as subagent_rows, Subagent, SubagentRow};
use crate::routing::aliases::Aliases;
use crate::storage::{Db, Durability, StoreError};
use crate::subagents::{self, Asker, Carried, Subagents};
use crate::tools::{self, Form, OnFinish, Outcome};
use crate::turn::{Charge, ModelCall, Ran, Round};

/// Runs rounds. Cheap to clone.
#[derive(Clone)]
pub(super) struct Rounds {
    pub(super) db: Db,
    pub(super) aliases: Arc<Aliases>,
    pub(super) subagents: Subagents,
    pub(super) approvals: Approvals,
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
        let calls = u64::try_from(shared.calls.len()).unwrap_or(u64::MAX);
        turn.agent.counts.tool_calls.add(calls);
        let open = OpenRound {
            number,
            round: &shared,
            results: shared.calls.iter().map(|_| Recall::default()).collect(),
            runs: Vec::new(),
            asks: 0,
            expects: None,
        };
        let running = turn.run.call(&shared);
        let ended = self
            .carry_through(turn, open, (running, shared.calls.len()))
            .await?;
        turn.take_in_round(Arc::unwrap_or_clone(shared), ended);
        Ok(today)
    }

    /// Waits for running calls and for subagents, and has people asked about calls that need an
    /// approval. Leaves off while only subagents are waited for and people wrote, and when only
    /// approvals are left.
    async fn carry_through(
        &self,
        turn: &ActiveTurn,
        open: OpenRound<'_>,
        (mut running, mut tools_left): (impl Stream<Item = Ran> + Unpin, usize),
    ) -> Result<EndedRound, StoreError> {
        let OpenRound {
            number,
            round,
            mut results,
            runs,
            mut asks,
            mut expects,
        } = open;
        let asker = Asker {
            snapshot: &turn.snapshot,
            accepted: &turn.accepted,
            agent: &turn.agent,
            steps_left: turn.run.steps_left(),
            read: &turn.run.scope().read,
        };
        let marks = turn.agent.marks();
        let (mut broken, mut charges) = (Vec::new(), Vec::new());
        let mut waits = FuturesUnordered::new();
        waits.extend(
            runs.into_iter()
                .map(|(call, run)| self.wait_for(call, run, &marks)),
        );
        loop {
            tokio::select! {
                Some(ran) = running.next() => {
                    tools_left -= 1;
                    let call = CallId { inbox_id: turn.accepted.id, round: number, number: ran.number };
                    let wish = &round.calls[ran.number];
                    let mut outcome = ran.outcome.unwrap_or_else(|_| {
                        tracing::error!(agent.id = %turn.agent.id, tool = %wish.name, inbox.id = turn.accepted.id, "a tool panicked");
                        broken.push(wish.name.clone());
                        Outcome::say(TOOL_BROKE)
                    });
                    if let Some(rule) = outcome.asks.take() {
                        expects.get_or_insert_with(|| self.approvals.expect(call.inbox_id));
                        match self.approvals.ask(&turn.asking(), call, (wish, &rule)).await? {
                            Asked::Waits => {
                                asks += 1;
                                continue;
                            }
                            Asked::Nobody(told) => outcome = Outcome::say(told),
                        }
                    }
                    match self.subagents.carry_out(&asker, call, outcome).await? {
                        Carried::Done(outcome) => results[call.number] = Recall::from(outcome),
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
        Ok(EndedRound {
            results,
            charges,
            broken,
            waits_for_subagents: !waits.is_empty(),
            expects: expects.filter(|_| asks > 0),
        })
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

    /// Goes on with a round left open by parking or by a restart: waits for its subagents, and runs
    /// the calls that people have allowed since. The outcome of other open calls is unknown.
    pub(super) async fn finish(&self, turn: &mut ActiveTurn) -> Result<(), StoreError> {
        let Some((round, calls)) = turn.unfinished.take() else {
            return Ok(());
        };
        turn.expects = None;
        turn.follow_moves(&self.aliases);
        let (inbox_id, number) = (turn.accepted.id, turn.rounds - 1);
        let known = self.subagents.of_turn(inbox_id).await?;
        // Before the look, so that no answer is missed.
        let expects = self.approvals.expect(inbox_id);
        let approvals = self
            .approvals
            .of_round(inbox_id, number, turn.started_at)
            .await?;
        let mut open = OpenRound {
            number,
            round: &round,
            results: calls,
            runs: Vec::new(),
            asks: 0,
            expects: Some(expects),
        };
        let mut allowed = Vec::new();
        for index in 0..open.results.len() {
            let call = CallId {
                inbox_id,
                round: number,
                number: index,
            };
            let run = Subagent::name_of(call);
            if open.results[index].result.is_some() {
                continue;
            }
            if known.iter().any(|known| known.subagent.run == run) {
                open.runs.push((call, run));
                continue;
            }
            let of_call = |approval: &&Approval| approval.wanted.call == call;
            match approvals.iter().rfind(of_call) {
                Some(approval) if approval.state == State::Waiting => open.asks += 1,
                Some(approval) => match self.answer(turn, &round.calls[index], approval).await? {
                    Answer::Run => allowed.push(index),
                    Answer::Unknown => {}
                    Answer::Result(recall) => open.results[index] = recall,
                },
                None => {}
            }
        }
        let running = turn.run.call_allowed(&round, &allowed);
        let ended = self
            .carry_through(turn, open, (running, allowed.len()))
            .await?;
        turn.take_in_round(round, ended);
        Ok(())
    }

    /// What follows for a call from the answer of people. An allowed call is marked before it runs, so
    /// that it runs once.
    async fn answer(
        &self,
        turn: &ActiveTurn,
        wish: &ToolCall,
        approval: &Approval,
    ) -> Result<Answer, StoreError> {
        let told = match approval.state {
            State::Allowed if approval.wanted.hash != approvals::hash(wish) => {
                approval_texts::other_call(&wish.name)
            }
            State::Allowed => {
                return Ok(match self.approvals.begin(approval.id).await? {
                    true => Answer::Run,
                    false => Answer::Unknown,
                });
            }
            _ => approval_texts::not_allowed(approval),
        };
        let outcome = Outcome::say(told).finished(&turn.agent.marks());
        self.subagents
            .done(approval.wanted.call, outcome.clone())
            .await?;
        Ok(Answer::Result(Recall::from(outcome)))
    }
}

/// A round with open calls.
struct OpenRound<'a> {
    number: u32,
    round: &'a Round,
    results: Vec<Recall>,
    /// Calls that wait for subagents.
    runs: Vec<(CallId, String)>,
    /// Calls that wait for people.
    asks: usize,
    /// Set while answers may come.
    expects: Option<Expectation>,
}

/// A round after everything that could be done now.
struct EndedRound {
    results: Vec<Recall>,
    charges: Vec<Charge>,
    broken: Vec<String>,
    waits_for_subagents: bool,
    /// Set if calls wait for people.
    expects: Option<Expectation>,
}

/// What follows from the answer of people.
enum Answer {
    Run,
    /// An earlier process has begun the call.
    Unknown,
    Result(Recall),
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

    /// Ends a round, or leaves it open while it waits for subagents or people.
    fn take_in_round(&mut self, round: Round, ended: EndedRound) {
        let EndedRound {
            results,
            charges,
            broken,
            waits_for_subagents,
            expects,
        } = ended;
        charges
            .into_iter()
            .for_each(|charge| self.run.charge(charge));
        self.broken_tools.extend(broken);
        let waits_for_people = expects.is_some();
        self.expects = expects.filter(|_| !waits_for_subagents);
        if waits_for_subagents || waits_for_people {
            self.unfinished = Some((round, results));
        } else {
            self.take_in(round, results.into_iter().map(Outcome::from).collect());
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
