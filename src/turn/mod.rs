//! A turn of an agent: prompt → model ⇄ tools, until there is an answer. Knows no channel, no
//! delivery, no session.
//!
//! A [`Run`] does a step at a time. Between two steps its caller can write down the result, look
//! around, park the turn, and resume the turn later, also in another process.

mod asking;
pub(crate) mod budget;
mod calls;
mod estimates;
pub(crate) mod history;
mod outline;
pub(crate) mod prompt;

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{FutureExt, Stream, StreamExt, stream};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::Instrument;

use crate::access::Role;
use crate::config::{AgentLimits, ModelRef};
use crate::domain::{Labels, Said, SessionKey, TurnEvent};
use crate::models::{Cut, Lineup, ModelMessage, Models, ToolCall, Unanswered, Usage};
use crate::tools::{Outcome, Scope, ToolView};

pub(crate) use asking::wait_for_model;
use asking::{Answer, Stage, ask_until_answered, telling_if_slow};
use budget::Over;
use calls::CallLog;
pub(crate) use calls::ModelCall;
pub(crate) use outline::{Layout, Outline};

/// Tools of a round at the same time.
const MOST_PARALLEL: usize = 8;
const MOST_PARALLEL_OF_A_GUEST: usize = 2;
/// Calls of a round for a guest. The adapters of models have a limit for all.
const MOST_CALLS_OF_A_GUEST: usize = 16;
/// Rounds of a turn with a call cut off in the middle. The model may try again with less, but not
/// for ever.
const MOST_CUT_ROUNDS: u32 = 3;

/// The tool with words of the operator.
const SKILL: &str = "skill";

/// The parts of a turn's request.
pub(crate) struct TurnRequest {
    pub lineup: Lineup,
    /// Shared by turns with the same prompt.
    pub system: Arc<str>,
    /// Where the sections of both begin.
    pub outline: Outline,
    /// The last message is the question.
    pub messages: Vec<ModelMessage>,
    pub tools: ToolView,
    /// The agent and person behind the tools.
    pub scope: Scope,
    pub limits: TurnLimits,
}

/// The limits of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TurnLimits {
    /// Model calls. A turn is stopped if the agent still wants tools after the last.
    pub steps: u32,
    /// The time while a turn is parked is not counted.
    pub time: Duration,
    /// Input and output.
    pub tokens: Option<u64>,
}

/// A turn at some point of its way.
pub(crate) struct Run {
    request: TurnRequest,
    said: String,
    /// The words of the running call, in case the call is cut short.
    saying: Mutex<String>,
    /// Model calls that are not written down yet.
    calls: CallLog,
    steps: u32,
    usage: Usage,
    /// The spending of awaited subagents.
    charged: Charge,
    /// People were told of the slow model, and are told once.
    is_known_slow: AtomicBool,
    /// Set when the answer was cut off.
    cut: Option<Cut>,
    cut_rounds: u32,
    /// The model of the last answer.
    model: Option<ModelRef>,
    /// Time from before the turn was last resumed.
    spent: Duration,
    since: Instant,
}

/// The spending of a subagent, counted against its parent too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Charge {
    pub steps: u32,
    pub usage: Usage,
}

/// A model call with a wish for tools at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Round {
    /// The agent's words before the calls.
    pub text: String,
    pub calls: Vec<ToolCall>,
    pub usage: Usage,
    /// Set when the model was cut off, perhaps in the middle of the last call.
    pub cut: Option<Cut>,
}

impl Round {
    /// Set for a call with cut arguments. The rest is unknown, so the call is not run.
    fn cut_of(&self, call: &ToolCall) -> Option<Cut> {
        self.cut.filter(|_| !call.arguments.is_object())
    }
}

/// The result of a model call.
#[derive(Debug)]
pub(crate) enum Step {
    /// The answer is complete.
    Answered,
    /// These tools are to be run, and their results taken in.
    Wants(Round),
}

/// A finished tool call of a round.
#[derive(Debug)]
pub(crate) struct Ran {
    /// The call's position in the round.
    pub number: usize,
    pub outcome: Result<Outcome, ToolPanicked>,
}

/// The tool broke inside. The run goes on.
#[derive(Debug)]
pub(crate) struct ToolPanicked;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TurnError {
    #[error("{0}")]
    Model(#[from] Unanswered),
    #[error("stopped after {0} steps without an answer")]
    TooManySteps(u32),
    #[error("stopped after {} minutes", .0.as_secs() / 60)]
    TooSlow(Duration),
    #[error("stopped after {0} tokens without an answer")]
    TooManyTokens(u64),
    #[error("over budget")]
    OverBudget(Over),
    /// Again and again in the middle of a tool call.
    #[error("its tool calls were cut off {0}")]
    CallsCutOff(Cut),
}

impl Run {
    pub(crate) fn new(request: TurnRequest) -> Self {
        Run {
            request,
            said: String::new(),
            saying: Mutex::default(),
            calls: CallLog::default(),
            steps: 0,
            usage: Usage::default(),
            charged: Charge::default(),
            is_known_slow: AtomicBool::new(false),
            cut: None,
            cut_rounds: 0,
            model: None,
            spent: Duration::ZERO,
            since: Instant::now(),
        }
    }

    /// Model calls left, for the turn and its subagents.
    pub(crate) fn steps_left(&self) -> u32 {
        self.request
            .limits
            .steps
            .saturating_sub(self.steps + self.charged.steps)
    }

    /// Counts a subagent's spending as the turn's own. The subagent's row has the tokens already,
    /// so [`Run::usage`] leaves them out.
    pub(crate) fn charge(&mut self, charge: Charge) {
        self.charged.steps += charge.steps;
        self.charged.usage.add(charge.usage);
    }

    pub(crate) fn lineup(&self) -> &Lineup {
        &self.request.lineup
    }

    pub(crate) fn scope(&self) -> &Scope {
        &self.request.scope
    }

    /// What the turn has read so far.
    pub(crate) fn read(&self) -> Labels {
        self.request.scope.read.labels
    }

    /// The turn reads something from somewhere.
    pub(crate) fn has_read(&mut self, labels: Labels) {
        self.request.scope.read.labels |= labels;
    }

    /// The place may have another key by now.
    pub(crate) fn is_in(&mut self, place: &SessionKey) {
        if self.request.scope.place != *place {
            self.request.scope.place = place.clone();
        }
    }

    /// Everything the agent has said so far.
    pub(crate) fn said(&self) -> &str {
        &self.said
    }

    /// Where the answer was cut off, if the model had more to say.
    pub(crate) fn cut(&self) -> Option<Cut> {
        self.cut
    }

    /// The same with the words of a cut call.
    pub(crate) fn shown(&self) -> String {
        let mut shown = self.said.clone();
        append_paragraph(
            &mut shown,
            &self.saying.lock().unwrap_or_else(PoisonError::into_inner),
        );
        shown
    }

    /// Model calls so far.
    pub(crate) fn steps(&self) -> u32 {
        self.steps
    }

    pub(crate) fn usage(&self) -> Usage {
        self.usage
    }

    /// The model calls since [`Run::take_calls`].
    pub(crate) fn calls(&self) -> Vec<ModelCall> {
        self.calls.all()
    }

    /// The same, to be written down.
    pub(crate) fn take_calls(&self) -> Vec<ModelCall> {
        self.calls.take()
    }

    /// The model of the last words.
    pub(crate) fn model(&self) -> Option<&ModelRef> {
        self.model.as_ref()
    }

    /// The time left.
    pub(crate) fn time_left(&self) -> Duration {
        self.request
            .limits
            .time
            .saturating_sub(self.spent + self.since.elapsed())
    }

    /// Lets no time count until [`Run::take_up`].
    pub(crate) fn put_aside(&mut self) {
        self.spent += self.since.elapsed();
    }

    /// Time counts again.
    pub(crate) fn take_up(&mut self) {
        self.since = Instant::now();
    }

    /// Adds a message for the next model call.
    pub(crate) fn hear(&mut self, told: &[Said]) {
        let told = self.request.scope.agent.marks().mark_all(told);
        self.request
            .messages
            .push(ModelMessage::user(told.into_text()));
    }

    /// Asks the model once. Dropping the future cancels the call.
    pub(crate) async fn ask(
        &mut self,
        models: &Models,
        events: &mpsc::Sender<TurnEvent>,
    ) -> Result<Step, TurnError> {
        self.may_ask()?;
        self.steps += 1;
        let lead = if self.said.is_empty() { "" } else { PARAGRAPH };
        let stage = Stage::new(events, lead, &self.saying, &self.calls);
        let span = tracing::debug_span!("model", step = self.steps);
        let asking = ask_until_answered(models, &self.request, &stage).instrument(span);
        let slow = async {
            stage.silence().await;
            if self.is_known_slow.swap(true, Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
        };
        let answer = telling_if_slow(events, asking, slow).await?;
        let Answer {
            text,
            tool_calls,
            usage,
            cut,
            model,
        } = answer;
        self.model = Some(model);
        self.saying
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        self.usage.add(usage);
        if tool_calls.is_empty() {
            append_paragraph(&mut self.said, &text);
            self.cut = cut;
            return Ok(Step::Answered);
        }
        let round = Round {
            text,
            calls: tool_calls,
            usage,
            cut,
        };
        self.count_cut(&round)?;
        Ok(Step::Wants(round))
    }

    /// A model without an end to its calls is not asked for ever.
    fn count_cut(&mut self, round: &Round) -> Result<(), TurnError> {
        let Some(cut) = round.calls.iter().find_map(|call| round.cut_of(call)) else {
            return Ok(());
        };
        self.cut_rounds += 1;
        if self.cut_rounds >= MOST_CUT_ROUNDS {
            Err(TurnError::CallsCutOff(cut))
        } else {
            Ok(())
        }
    }

    fn may_ask(&self) -> Result<(), TurnError> {
        let TurnLimits { steps, tokens, .. } = self.request.limits;
        if self.steps_left() == 0 {
            return Err(TurnError::TooManySteps(steps));
        }
        match tokens
            .filter(|most| budget::tokens(self.usage) + budget::tokens(self.charged.usage) >= *most)
        {
            Some(most) => Err(TurnError::TooManyTokens(most)),
            None => Ok(()),
        }
    }

    /// Runs the tools of a round side by side and yields each at its end.
    pub(crate) fn call<'a>(&'a self, round: &'a Round) -> impl Stream<Item = Ran> + Unpin + 'a {
        let running = (0..round.calls.len()).map(move |number| async move {
            match self.refusal(round, number) {
                Some(refusal) => Ran {
                    number,
                    outcome: Ok(Outcome::say(refusal)),
                },
                None => {
                    let (tools, scope) = (&self.request.tools, &self.request.scope);
                    let call = &round.calls[number];
                    guarded(number, call, tools.call(scope, call)).await
                }
            }
        });
        Box::pin(stream::iter(running).buffer_unordered(self.most_parallel()))
    }

    /// The same for these calls of a round, which a person has allowed.
    pub(crate) fn call_allowed<'a>(
        &'a self,
        round: &'a Round,
        numbers: &'a [usize],
    ) -> impl Stream<Item = Ran> + Unpin + 'a {
        let running = numbers.iter().map(move |number| async move {
            let (tools, scope) = (&self.request.tools, &self.request.scope);
            let call = &round.calls[*number];
            guarded(*number, call, tools.call_allowed(scope, call)).await
        });
        Box::pin(stream::iter(running).buffer_unordered(self.most_parallel()))
    }

    fn most_parallel(&self) -> usize {
        match self.request.scope.role {
            Role::Guest => MOST_PARALLEL_OF_A_GUEST,
            _ => MOST_PARALLEL,
        }
    }

    /// The reason not to run a call of a round, for the model.
    fn refusal(&self, round: &Round, number: usize) -> Option<String> {
        let is_guest = self.request.scope.role == Role::Guest;
        if is_guest && number >= MOST_CALLS_OF_A_GUEST {
            return Some(format!(
                "The tool was not run: for a guest, only the first {MOST_CALLS_OF_A_GUEST} calls of a round are. Call it \
                 again if it is still needed."
            ));
        }
        round.cut_of(&round.calls[number]).map(not_run)
    }

    /// Takes in a round with the results of its calls, in the order of the calls.
    pub(crate) fn take_in(&mut self, round: Round, results: Vec<String>) {
        append_paragraph(&mut self.said, &round.text);
        let results = round.calls.iter().zip(results);
        let read = &mut self.request.scope.read;
        let results = results.inspect(|(call, content)| {
            if call.name == SKILL {
                read.trust(content);
            }
        });
        let results = results
            .map(|(call, content)| ModelMessage::ToolResult {
                call_id: call.id.clone(),
                content,
            })
            .collect::<Vec<_>>();
        self.request.messages.push(ModelMessage::Assistant {
            text: round.text,
            tool_calls: round.calls,
        });
        self.request.messages.extend(results);
    }

    /// Counts a model call of an earlier process.
    pub(crate) fn count_step(&mut self, usage: Usage) {
        self.steps += 1;
        self.usage.add(usage);
    }
}

/// Runs a call to its end. A panic ends only this call.
async fn guarded(number: usize, call: &ToolCall, running: impl Future<Output = Outcome>) -> Ran {
    let span = tracing::debug_span!("tool", tool = %call.name);
    let called = AssertUnwindSafe(running.instrument(span))
        .catch_unwind()
        .await;
    Ran {
        number,
        outcome: called.map_err(|_| ToolPanicked),
    }
}

/// Stands between an agent's words before a tool call and after the call.
const PARAGRAPH: &str = "\n\n";

fn append_paragraph(text: &mut String, next: &str) {
    if !text.is_empty() && !next.is_empty() {
        text.push_str(PARAGRAPH);
    }
    text.push_str(next);
}

/// The result of an unfinished call, for the model.
fn not_run(cut: Cut) -> String {
    let why = match cut {
        Cut::AtTokens(Some(tokens)) => format!("your answer was cut off at {tokens} tokens"),
        Cut::AtTokens(None) => "your answer was longer than it may be".to_owned(),
        Cut::WindowFull => "your context window is full".to_owned(),
    };
    format!(
        "The tool was not run: {why}, in the middle of its arguments. Call it again with less, or go on without it."
    )
}

impl TurnLimits {
    pub(crate) fn of(limits: &AgentLimits) -> Self {
        TurnLimits {
            steps: limits.max_steps,
            time: Duration::from_secs(u64::from(limits.max_minutes) * 60),
            tokens: limits.tokens_per_turn,
        }
    }
}
