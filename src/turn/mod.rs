//! One run of one agent: prompt → model ⇄ tools, until there is an answer. Knows no channel, no delivery, no session.
//!
//! A [`Run`] does one step at a time, so that whoever drives it can write down what was done, look around between two steps,
//! put it aside, and take it up again later, also in another process.

pub mod budget;
pub mod history;
pub mod prompt;

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::{FutureExt, Stream, StreamExt, stream};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::config::{AgentLimits, ModelRef};
use crate::domain::{SessionKey, TurnEvent};
use crate::models::{
    Cut, Failure, Lineup, ModelError, ModelEvent, ModelMessage, ModelRequest, Models, ToolCall, Usage, estimate_tokens,
};
use crate::tools::{Outcome, Scope, ToolView};

use budget::Over;

/// A model that gives no sign of life for so long is slow, and whoever waits should know.
const SLOW_AFTER: Duration = Duration::from_secs(20);
/// Tools of one round that run at once.
const MOST_PARALLEL: usize = 8;
/// Rounds of a turn in which the model was cut off in the middle of a call. One or two may try again with less.
const MOST_CUT_ROUNDS: u32 = 3;

/// What a turn works on.
pub struct TurnRequest {
    pub lineup: Lineup,
    pub system: String,
    /// Ends with what is to be answered.
    pub messages: Vec<ModelMessage>,
    pub tools: ToolView,
    /// On whose behalf the tools run.
    pub scope: Scope,
    pub limits: TurnLimits,
}

/// How far one turn may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnLimits {
    /// Model calls. An agent that still wants tools after this many is stopped.
    pub steps: u32,
    /// Without the time in which it was put aside.
    pub time: Duration,
    /// Input and output.
    pub tokens: Option<u64>,
}

/// A turn as far as it has come.
pub struct Run {
    request: TurnRequest,
    said: String,
    /// What the running call has said, for when it is cut short.
    saying: Mutex<String>,
    steps: u32,
    usage: Usage,
    /// What runs that it waited for have used.
    charged: Charge,
    /// People know that the model is slow, which is said once.
    is_known_slow: AtomicBool,
    /// Set when the answer was cut off.
    cut: Option<Cut>,
    cut_rounds: u32,
    /// The one that had the last word.
    model: Option<ModelRef>,
    /// Time used before it was last taken up.
    spent: Duration,
    since: Instant,
}

/// What another run used that counts against this one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Charge {
    pub steps: u32,
    pub usage: Usage,
}

/// A model call that ended in a wish for tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// What the agent said before it.
    pub text: String,
    pub calls: Vec<ToolCall>,
    pub usage: Usage,
    /// Set when the model was cut off, perhaps in the middle of the last call.
    pub cut: Option<Cut>,
}

impl Round {
    /// Set for a call whose arguments did not come to their end. Nobody knows what it would have done.
    fn cut_of(&self, call: &ToolCall) -> Option<Cut> {
        self.cut.filter(|_| !call.arguments.is_object())
    }
}

/// What a model call came to.
#[derive(Debug)]
pub enum Step {
    /// The answer is complete.
    Answered,
    /// These tools are to be run, and their results taken in.
    Wants(Round),
}

/// A tool of a round that has come to its end.
#[derive(Debug)]
pub struct Ran {
    /// Which of the round's calls it was.
    pub number: usize,
    pub outcome: Result<Outcome, ToolPanicked>,
}

/// The tool broke inside. The run goes on.
#[derive(Debug)]
pub struct ToolPanicked;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TurnError {
    #[error("{0}")]
    Model(#[from] ModelError),
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
    pub fn new(request: TurnRequest) -> Self {
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

    /// Lets it make fewer model calls than a turn usually may.
    pub fn limit_steps(&mut self, max_steps: u32) {
        self.request.limits.steps = self.request.limits.steps.min(max_steps);
    }

    /// Model calls that are left, for itself and for runs that it starts.
    pub fn steps_left(&self) -> u32 {
        self.request.limits.steps.saturating_sub(self.steps + self.charged.steps)
    }

    /// Counts what another run used as its own. The row of that run has the tokens already, so [`Run::usage`] leaves them out.
    pub fn charge(&mut self, charge: Charge) {
        self.charged.steps += charge.steps;
        self.charged.usage.add(charge.usage);
    }

    /// What runs that it waited for have used.
    pub fn charged(&self) -> Charge {
        self.charged
    }

    pub fn lineup(&self) -> &Lineup {
        &self.request.lineup
    }

    pub fn scope(&self) -> &Scope {
        &self.request.scope
    }

    /// The place may have another key by now.
    pub fn is_in(&mut self, place: &SessionKey) {
        if self.request.scope.place != *place {
            self.request.scope.place = place.clone();
        }
    }

    /// Everything the agent has said so far.
    pub fn said(&self) -> &str {
        &self.said
    }

    /// Where the answer was cut off, if the model had more to say.
    pub fn cut(&self) -> Option<Cut> {
        self.cut
    }

    /// The same with the words of a call that was cut short.
    pub fn shown(&self) -> String {
        let mut shown = self.said.clone();
        append_paragraph(&mut shown, &self.saying.lock().unwrap_or_else(PoisonError::into_inner));
        shown
    }

    /// Model calls so far.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The one that spoke last.
    pub fn model(&self) -> Option<&ModelRef> {
        self.model.as_ref()
    }

    /// How much longer it may take.
    pub fn time_left(&self) -> Duration {
        self.request.limits.time.saturating_sub(self.spent + self.since.elapsed())
    }

    /// Lets no time count until [`Run::take_up`].
    pub fn put_aside(&mut self) {
        self.spent += self.since.elapsed();
    }

    /// Time counts again.
    pub fn take_up(&mut self) {
        self.since = Instant::now();
    }

    /// Is told something before it is asked the next time.
    pub fn hear(&mut self, told: String) {
        self.request.messages.push(ModelMessage::user(told));
    }

    /// Asks the model once. Dropping the future cancels the call.
    pub async fn ask(&mut self, models: &Models, events: &mpsc::Sender<TurnEvent>) -> Result<Step, TurnError> {
        self.may_ask()?;
        self.steps += 1;
        let lead = if self.said.is_empty() { "" } else { PARAGRAPH };
        let stage = Stage { events, lead, shown: &self.saying, heard: Mutex::new(Instant::now()) };
        let asking = ask_until_answered(models, &self.request, &stage);
        let slow = async {
            stage.silence().await;
            if self.is_known_slow.swap(true, Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
        };
        let answer = telling_if_slow(events, asking, slow).await?;
        let Answer { text, tool_calls, usage, cut, model } = answer;
        self.model = Some(model);
        self.saying.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.usage.add(usage);
        if tool_calls.is_empty() {
            append_paragraph(&mut self.said, &text);
            self.cut = cut;
            return Ok(Step::Answered);
        }
        let round = Round { text, calls: tool_calls, usage, cut };
        self.count_cut(&round)?;
        Ok(Step::Wants(round))
    }

    /// A model that never comes to the end of a call is not asked for ever.
    fn count_cut(&mut self, round: &Round) -> Result<(), TurnError> {
        let Some(cut) = round.calls.iter().find_map(|call| round.cut_of(call)) else { return Ok(()) };
        self.cut_rounds += 1;
        if self.cut_rounds >= MOST_CUT_ROUNDS { Err(TurnError::CallsCutOff(cut)) } else { Ok(()) }
    }

    fn may_ask(&self) -> Result<(), TurnError> {
        let TurnLimits { steps, tokens, .. } = self.request.limits;
        if self.steps_left() == 0 {
            return Err(TurnError::TooManySteps(steps));
        }
        match tokens.filter(|most| budget::tokens(self.usage) + budget::tokens(self.charged.usage) >= *most) {
            Some(most) => Err(TurnError::TooManyTokens(most)),
            None => Ok(()),
        }
    }

    /// What a call has cost that was cut short, so that no provider will ever tell. Only of one that had begun to answer.
    pub fn guess_of_cut_call(&self) -> Usage {
        let count = |tokens: usize| u64::try_from(tokens).unwrap_or(u64::MAX);
        let said = self.saying.lock().unwrap_or_else(PoisonError::into_inner);
        if said.is_empty() {
            return Usage::default();
        }
        let read: usize = self.request.messages.iter().map(|message| estimate_tokens(words(message))).sum();
        let input_tokens = count(estimate_tokens(&self.request.system) + read);
        Usage { input_tokens, output_tokens: count(estimate_tokens(&said)), cached_tokens: 0 }
    }

    /// Runs the tools of a round side by side and yields each as it ends.
    pub fn call<'a>(&'a self, round: &'a Round) -> impl Stream<Item = Ran> + Unpin + 'a {
        let running = round.calls.iter().enumerate().map(move |(number, call)| async move {
            if let Some(cut) = round.cut_of(call) {
                return Ran { number, outcome: Ok(Outcome::say(not_run(cut))) };
            }
            let called = AssertUnwindSafe(self.request.tools.call(&self.request.scope, call)).catch_unwind().await;
            Ran { number, outcome: called.map_err(|_| ToolPanicked) }
        });
        Box::pin(stream::iter(running).buffer_unordered(MOST_PARALLEL))
    }

    /// Takes in a round with what came of each of its calls, in their order.
    pub fn take_in(&mut self, round: Round, results: Vec<String>) {
        append_paragraph(&mut self.said, &round.text);
        let results = round.calls.iter().zip(results);
        let results =
            results.map(|(call, content)| ModelMessage::ToolResult { call_id: call.id.clone(), content }).collect::<Vec<_>>();
        self.request.messages.push(ModelMessage::Assistant { text: round.text, tool_calls: round.calls });
        self.request.messages.extend(results);
    }

    /// Counts a model call that an earlier process made.
    pub fn count_step(&mut self, usage: Usage) {
        self.steps += 1;
        self.usage.add(usage);
    }
}

/// Stands between what an agent says before a tool call and after it.
const PARAGRAPH: &str = "\n\n";

/// Where a call's text is shown as it comes, so that what was shown adds up to the finished text.
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
    async fn show(&self, piece: String, is_first: bool) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).push_str(&piece);
        let text = if is_first && !self.lead.is_empty() { format!("{}{piece}", self.lead) } else { piece };
        // Nobody listening is fine: progress is a courtesy.
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

/// Waits for a model, and says once that it takes long.
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
    // Where so much waits to be shown, nobody waits without a word.
    drop(events.try_send(TurnEvent::Slow));
    waiting.await
}

/// Waits for something that another call to the model is to bring, and says once that it takes long.
pub async fn wait_for_model<T>(events: &mpsc::Sender<TurnEvent>, waiting: impl Future<Output = T>) -> T {
    telling_if_slow(events, waiting, tokio::time::sleep(SLOW_AFTER)).await
}

struct Answer {
    text: String,
    tool_calls: Vec<ToolCall>,
    usage: Usage,
    cut: Option<Cut>,
    model: ModelRef,
}

/// The first model of the lineup that answers, each as often as is worth it.
async fn ask_until_answered(models: &Models, request: &TurnRequest, stage: &Stage<'_>) -> Result<Answer, ModelError> {
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

async fn ask(models: &Models, model: ModelRef, request: &TurnRequest, stage: &Stage<'_>) -> Result<Answer, Failure> {
    let mut text = String::new();
    let failure = |error, text: &String| Failure { error, said_something: !text.is_empty() };
    let mut stream = models.stream(&model, model_request(request)).await.map_err(|error| failure(error, &text))?;
    while let Some(event) = stream.next().await {
        stage.hear();
        match event {
            Ok(ModelEvent::Working) => {}
            Ok(ModelEvent::Text(piece)) => {
                let is_first = text.is_empty();
                text.push_str(&piece);
                stage.show(piece, is_first).await;
            }
            Ok(ModelEvent::Done { tool_calls, usage, cut }) => return Ok(Answer { text, tool_calls, usage, cut, model }),
            Err(error) => return Err(failure(error, &text)),
        }
    }
    Err(failure(ModelError::CutOff, &text))
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

/// What the model hears about a call that it did not finish.
fn not_run(cut: Cut) -> String {
    let why = match cut {
        Cut::AtTokens(Some(tokens)) => format!("your answer was cut off at {tokens} tokens"),
        Cut::AtTokens(None) => "your answer was longer than it may be".to_owned(),
        Cut::WindowFull => "your context window is full".to_owned(),
    };
    format!("The tool was not run: {why}, in the middle of its arguments. Call it again with less, or go on without it.")
}

fn words(message: &ModelMessage) -> &str {
    match message {
        ModelMessage::User(content) => &content.text,
        ModelMessage::Assistant { text, .. } => text,
        ModelMessage::ToolResult { content, .. } => content,
    }
}

impl TurnLimits {
    pub fn of(limits: &AgentLimits) -> Self {
        TurnLimits {
            steps: limits.max_steps,
            time: Duration::from_secs(u64::from(limits.max_minutes) * 60),
            tokens: limits.tokens_per_turn,
        }
    }
}
