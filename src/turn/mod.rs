//! A turn of an agent: prompt → model ⇄ tools, until there is an answer. Knows no channel, no
//! delivery, no session.
//!
//! A [`Run`] does a step at a time. Between two steps its caller can write down the result, look
//! around, park the turn, and resume the turn later, also in another process.

pub(crate) mod budget;
pub(crate) mod history;
pub(crate) mod prompt;

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::{FutureExt, Stream, StreamExt, stream};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::access::Role;
use crate::config::{AgentLimits, ModelRef};
use crate::domain::{Imitation, Labels, Marks, Said, SessionKey, TurnEvent};
use crate::models::{
    Cut, Failure, Lineup, ModelError, ModelEvent, ModelMessage, ModelRequest, Models, ToolCall,
    Unanswered, Usage, estimate_tokens,
};
use crate::tools::{Outcome, Scope, ToolView};

use budget::Over;

/// People are told of a model without a sign of life for this long.
const SLOW_AFTER: Duration = Duration::from_secs(20);
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

/// About the tokens of a picture, for estimates.
const IMAGE_TOKENS: usize = 1500;
/// The tokens of an answer without `max_tokens`, for estimates.
const USUAL_ANSWER: u32 = 4096;

/// The parts of a turn's request.
pub(crate) struct TurnRequest {
    pub lineup: Lineup,
    pub system: String,
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

    /// Allows fewer model calls than a turn usually may make.
    pub(crate) fn limit_steps(&mut self, max_steps: u32) {
        self.request.limits.steps = self.request.limits.steps.min(max_steps);
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
        let stage = Stage {
            events,
            lead,
            shown: &self.saying,
            heard: Mutex::new(Instant::now()),
        };
        let asking = ask_until_answered(models, &self.request, &stage);
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

    /// A guess at the cost of a cut call, because no provider will tell. Calls without any answer
    /// cost nothing.
    pub(crate) fn guess_of_cut_call(&self) -> Usage {
        let count = |tokens: usize| u64::try_from(tokens).unwrap_or(u64::MAX);
        let said = self.saying.lock().unwrap_or_else(PoisonError::into_inner);
        if said.is_empty() {
            return Usage::default();
        }
        let read: usize = self
            .request
            .messages
            .iter()
            .map(|message| estimate_tokens(words(message)))
            .sum();
        let input_tokens = count(estimate_tokens(&self.request.system) + read);
        Usage {
            input_tokens,
            output_tokens: count(estimate_tokens(&said)),
            cached_tokens: 0,
        }
    }

    /// An estimate of the next call's cost, rather too much than too little.
    pub(crate) fn estimate(&self) -> Usage {
        let TurnRequest {
            system,
            messages,
            tools,
            lineup,
            ..
        } = &self.request;
        let of_message = |message: &ModelMessage| match message {
            ModelMessage::User(content) => {
                estimate_tokens(&content.text) + content.images.len() * IMAGE_TOKENS
            }
            ModelMessage::Assistant { text, tool_calls } => {
                let calls = tool_calls.iter();
                let arguments = calls.map(|call| estimate_tokens(&call.arguments.to_string()));
                estimate_tokens(text) + arguments.sum::<usize>()
            }
            ModelMessage::ToolResult { content, .. } => estimate_tokens(content),
        };
        let offered = tools.specs();
        let of_tools = offered.iter().map(|tool| {
            estimate_tokens(&tool.description) + estimate_tokens(&tool.parameters.to_string())
        });
        let read = estimate_tokens(system)
            + messages.iter().map(of_message).sum::<usize>()
            + of_tools.sum::<usize>();
        Usage {
            input_tokens: u64::try_from(read).unwrap_or(u64::MAX),
            output_tokens: u64::from(lineup.settings.max_tokens.unwrap_or(USUAL_ANSWER)),
            cached_tokens: 0,
        }
    }

    /// Runs the tools of a round side by side and yields each at its end.
    pub(crate) fn call<'a>(&'a self, round: &'a Round) -> impl Stream<Item = Ran> + Unpin + 'a {
        let running = round
            .calls
            .iter()
            .enumerate()
            .map(move |(number, call)| async move {
                if let Some(refusal) = self.refusal(round, number) {
                    return Ran {
                        number,
                        outcome: Ok(Outcome::say(refusal)),
                    };
                }
                let called = AssertUnwindSafe(self.request.tools.call(&self.request.scope, call))
                    .catch_unwind()
                    .await;
                Ran {
                    number,
                    outcome: called.map_err(|_| ToolPanicked),
                }
            });
        let parallel = match self.request.scope.role {
            Role::Guest => MOST_PARALLEL_OF_A_GUEST,
            _ => MOST_PARALLEL,
        };
        Box::pin(stream::iter(running).buffer_unordered(parallel))
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

/// Stands between an agent's words before a tool call and after the call.
const PARAGRAPH: &str = "\n\n";

/// Shows a call's text as soon as there is some, so the shown pieces add up to the finished text.
struct Stage<'a> {
    events: &'a mpsc::Sender<TurnEvent>,
    /// Shown before the first piece.
    lead: &'static str,
    /// Everything shown of this call.
    shown: &'a Mutex<String>,
    /// When the model last gave a sign of life.
    heard: Mutex<Instant>,
}

impl Stage<'_> {
    /// Shows the next piece of a text, without imitated marks at its beginning: models imitate the
    /// form of what they read. Returns the piece as it counts.
    async fn show_clean(&self, held: &mut String, piece: String, marks: &Marks) -> String {
        held.push_str(&piece);
        let shown = match marks.imitation(marks.without_imitation(held)) {
            Imitation::MayBe => return String::new(),
            Imitation::Not | Imitation::Is { .. } => marks.without_imitation(held).to_owned(),
        };
        held.clear();
        self.show(shown.clone(), true).await;
        shown
    }

    async fn show(&self, piece: String, is_first: bool) {
        self.shown
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_str(&piece);
        let text = if is_first && !self.lead.is_empty() {
            format!("{}{piece}", self.lead)
        } else {
            piece
        };
        // Progress is a courtesy, so a missing listener is fine.
        drop(self.events.send(TurnEvent::Text(text)).await);
    }

    fn hear(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Returns once nothing was heard for long.
    async fn silence(&self) {
        loop {
            let due = *self.heard.lock().unwrap_or_else(PoisonError::into_inner) + SLOW_AFTER;
            if due <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(due).await;
        }
    }
}

/// Waits for a model, and tells people once if the wait is long.
async fn telling_if_slow<T>(
    events: &mpsc::Sender<TurnEvent>,
    waiting: impl Future<Output = T>,
    slow: impl Future<Output = ()>,
) -> T {
    let mut waiting = std::pin::pin!(waiting);
    tokio::select! {
        biased;
        done = &mut waiting => return done,
        () = slow => {}
    }
    // A full queue means people have text to read, so the notice may be dropped.
    drop(events.try_send(TurnEvent::Slow));
    waiting.await
}

/// Waits for work of another model call, such as a summary, and tells people once if the wait is
/// long.
pub(crate) async fn wait_for_model<T>(
    events: &mpsc::Sender<TurnEvent>,
    waiting: impl Future<Output = T>,
) -> T {
    telling_if_slow(events, waiting, tokio::time::sleep(SLOW_AFTER)).await
}

struct Answer {
    text: String,
    tool_calls: Vec<ToolCall>,
    usage: Usage,
    cut: Option<Cut>,
    model: ModelRef,
}

/// Asks the models of the lineup in order, each as often as worth a try, until a model answers.
async fn ask_until_answered(
    models: &Models,
    request: &TurnRequest,
    stage: &Stage<'_>,
) -> Result<Answer, Unanswered> {
    let mut attempts = models.attempts(&request.lineup);
    loop {
        match ask(models, attempts.model(), request, stage).await {
            Ok(answer) => {
                attempts.succeeded();
                return Ok(answer);
            }
            Err(failure) => attempts.after(failure).await?,
        }
    }
}

async fn ask(
    models: &Models,
    model: ModelRef,
    request: &TurnRequest,
    stage: &Stage<'_>,
) -> Result<Answer, Failure> {
    let mut text = String::new();
    // The beginning, while it may still be an imitated mark.
    let (mut held, marks) = (String::new(), request.scope.agent.marks());
    let failure = |error, text: &String| {
        Failure::new(error, !text.is_empty(), &request.system, &request.messages)
    };
    let mut stream = models
        .stream(&model, model_request(request))
        .await
        .map_err(|error| failure(error, &text))?;
    while let Some(event) = stream.next().await {
        stage.hear();
        match event {
            Ok(ModelEvent::Working) => {}
            Ok(ModelEvent::Text(piece)) if text.is_empty() => {
                text = stage.show_clean(&mut held, piece, &marks).await;
            }
            Ok(ModelEvent::Text(piece)) => {
                text.push_str(&piece);
                stage.show(piece, false).await;
            }
            Ok(ModelEvent::Done {
                tool_calls,
                usage,
                cut,
            }) => {
                if text.is_empty() && !marks.without_imitation(&held).trim().is_empty() {
                    text = held;
                    stage.show(text.clone(), true).await;
                }
                return Ok(Answer {
                    text,
                    tool_calls,
                    usage,
                    cut,
                    model,
                });
            }
            Err(error) => return Err(failure(error, &text)),
        }
    }
    Err(failure(ModelError::CutOff.into(), &text))
}

fn model_request(request: &TurnRequest) -> ModelRequest {
    ModelRequest {
        system: request.system.clone(),
        messages: request.messages.clone(),
        tools: request.tools.specs(),
        settings: request.lineup.settings,
        cache_key: request.lineup.cache_key.clone(),
    }
}

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

fn words(message: &ModelMessage) -> &str {
    match message {
        ModelMessage::User(content) => &content.text,
        ModelMessage::Assistant { text, .. } => text,
        ModelMessage::ToolResult { content, .. } => content,
    }
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
