//! One run of one agent: prompt → model ⇄ tools, until there is an answer. Knows no channel, no delivery, no session.

pub mod history;
pub mod prompt;

use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::mpsc;

use crate::config::ModelRef;
use crate::domain::TurnEvent;
use crate::models::{ModelError, ModelEvent, ModelMessage, ModelRequest, Models, ToolCall, Usage};
use crate::tools::{Effect, Scope, ToolView};

/// Model calls in one turn. An agent that still wants tools after this many is stopped.
const MAX_STEPS: u32 = 40;
/// The longest text of one turn, in bytes. A model that does not stop is stopped.
const MAX_ANSWER_BYTES: usize = 512 * 1024;
/// The longest a turn may take.
const MAX_TIME: Duration = Duration::from_secs(30 * 60);
/// Tries after the first for a call that failed before it said anything.
const MAX_RETRIES: u32 = 2;
/// The wait before the first retry; doubles with each.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
/// A provider that wants a longer pause than this is told to the person instead of waited for.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// What a turn works on.
pub struct TurnRequest {
    pub model: ModelRef,
    pub system: String,
    /// Ends with what is to be answered.
    pub messages: Vec<ModelMessage>,
    pub tools: ToolView,
    /// On whose behalf the tools run.
    pub scope: Scope,
}

/// What a turn came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    pub text: String,
    pub steps: u32,
    pub usage: Usage,
    /// What tools want done with the turn's end, in their order.
    pub effects: Vec<Effect>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TurnError {
    #[error("{0}")]
    Model(#[from] ModelError),
    #[error("stopped after {MAX_STEPS} steps without an answer")]
    TooManySteps,
    #[error("stopped after {} minutes", MAX_TIME.as_secs() / 60)]
    TooSlow,
}

/// Runs to the end. Dropping the future cancels the turn and the model call in it.
pub async fn run(models: &Models, request: TurnRequest, events: mpsc::Sender<TurnEvent>) -> Result<Finished, TurnError> {
    let in_time = tokio::time::timeout(MAX_TIME, run_steps(models, request, events)).await;
    in_time.unwrap_or(Err(TurnError::TooSlow))
}

async fn run_steps(models: &Models, mut request: TurnRequest, events: mpsc::Sender<TurnEvent>) -> Result<Finished, TurnError> {
    let mut finished = Finished { text: String::new(), steps: 0, usage: Usage::default(), effects: Vec::new() };
    while finished.steps < MAX_STEPS {
        finished.steps += 1;
        let stage = Stage { events: &events, lead: if finished.text.is_empty() { "" } else { PARAGRAPH } };
        let answer = ask_with_retries(models, &request, &stage).await?;
        add(&mut finished.usage, answer.usage);
        append_paragraph(&mut finished.text, &answer.text);
        if answer.tool_calls.is_empty() {
            return Ok(finished);
        }
        let (results, effects) = call_tools(&request, &answer.tool_calls).await;
        finished.effects.extend(effects);
        request.messages.push(ModelMessage::Assistant { text: answer.text, tool_calls: answer.tool_calls });
        request.messages.extend(results);
    }
    Err(TurnError::TooManySteps)
}

/// Stands between what an agent says before a tool call and after it.
const PARAGRAPH: &str = "\n\n";

/// Where a call's text is shown as it comes, so that what was shown adds up to the finished text.
struct Stage<'a> {
    events: &'a mpsc::Sender<TurnEvent>,
    /// Shown before the first piece.
    lead: &'static str,
}

impl Stage<'_> {
    async fn show(&self, piece: String, is_first: bool) {
        let text = if is_first && !self.lead.is_empty() { format!("{}{piece}", self.lead) } else { piece };
        // Nobody listening is fine: progress is a courtesy.
        drop(self.events.send(TurnEvent::Text(text)).await);
    }
}

struct Answer {
    text: String,
    tool_calls: Vec<ToolCall>,
    usage: Usage,
}

async fn ask_with_retries(models: &Models, request: &TurnRequest, stage: &Stage<'_>) -> Result<Answer, ModelError> {
    let mut backoff = FIRST_BACKOFF;
    for _ in 0..MAX_RETRIES {
        match ask(models, request, stage).await {
            Err(Failure { error, said_something: false }) if let Some(wait) = worth_waiting(&error, backoff) => {
                tracing::warn!(model = %request.model, "{error}; trying again in {} s", wait.as_secs());
                tokio::time::sleep(wait).await;
                backoff *= 2;
            }
            other => return other.map_err(|failure| failure.error),
        }
    }
    ask(models, request, stage).await.map_err(|failure| failure.error)
}

/// Only what may pass by itself, and only when the wait is one a person would sit through.
fn worth_waiting(error: &ModelError, backoff: Duration) -> Option<Duration> {
    match error {
        ModelError::RateLimited { retry_after } => retry_after.or(Some(backoff)).filter(|wait| *wait <= LONGEST_WAIT),
        ModelError::Overloaded | ModelError::CutOff | ModelError::Broken(_) => Some(backoff),
        ModelError::ContextTooLong | ModelError::Refused(_) => None,
    }
}

struct Failure {
    error: ModelError,
    /// Text already shown cannot be taken back, so the call is not made again.
    said_something: bool,
}

async fn ask(models: &Models, request: &TurnRequest, stage: &Stage<'_>) -> Result<Answer, Failure> {
    let mut text = String::new();
    let failure = |error, text: &String| Failure { error, said_something: !text.is_empty() };
    let mut stream = models.stream(&request.model, model_request(request)).await.map_err(|error| failure(error, &text))?;
    while let Some(event) = stream.next().await {
        match event {
            Ok(ModelEvent::Text(piece)) => {
                let is_first = text.is_empty();
                text.push_str(&piece);
                if text.len() > MAX_ANSWER_BYTES {
                    return Err(failure(ModelError::CutOff, &text));
                }
                stage.show(piece, is_first).await;
            }
            Ok(ModelEvent::Done { tool_calls, usage }) => return Ok(Answer { text, tool_calls, usage }),
            Err(error) => return Err(failure(error, &text)),
        }
    }
    Err(failure(ModelError::CutOff, &text))
}

fn model_request(request: &TurnRequest) -> ModelRequest {
    ModelRequest { system: request.system.clone(), messages: request.messages.clone(), tools: request.tools.specs() }
}

/// The calls of one round run side by side; their results keep the model's order.
async fn call_tools(request: &TurnRequest, calls: &[ToolCall]) -> (Vec<ModelMessage>, Vec<Effect>) {
    let running = calls.iter().map(|call| async {
        tracing::debug!(tool = %call.name, "tool called");
        let outcome = request.tools.call(&request.scope, call).await;
        (ModelMessage::ToolResult { call_id: call.id.clone(), content: outcome.text }, outcome.effects)
    });
    let (results, effects): (Vec<_>, Vec<_>) = futures_util::future::join_all(running).await.into_iter().unzip();
    (results, effects.into_iter().flatten().collect())
}

fn append_paragraph(text: &mut String, next: &str) {
    if !text.is_empty() && !next.is_empty() {
        text.push_str(PARAGRAPH);
    }
    text.push_str(next);
}

fn add(total: &mut Usage, usage: Usage) {
    total.input_tokens += usage.input_tokens;
    total.output_tokens += usage.output_tokens;
    total.cached_tokens += usage.cached_tokens;
}
