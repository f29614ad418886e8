//! A model call: asks the models of the lineup until one answers, shows the text while it comes, and
//! tells people of a long silence.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::TurnRequest;
use super::calls::CallLog;
use crate::config::ModelRef;
use crate::domain::{Imitation, Marks, TurnEvent};
use crate::models::{
    Cut, Failure, ModelError, ModelEvent, ModelRequest, Models, ToolCall, Unanswered, Usage,
};

/// People are told of a model without a sign of life for this long.
const SLOW_AFTER: Duration = Duration::from_secs(20);

/// The end of a model call.
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) tool_calls: Vec<ToolCall>,
    pub(super) usage: Usage,
    pub(super) cut: Option<Cut>,
    pub(super) model: ModelRef,
}

/// Asks the models of the lineup in order, each as often as worth a try, until a model answers.
pub(super) async fn ask_until_answered(
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
    let mut call = stage.calls.begin(&model);
    let mut stream = match models.stream(&model, model_request(request)).await {
        Ok(stream) => stream,
        Err(error) => {
            call.failed(&error.error);
            return Err(failure(error, &text));
        }
    };
    while let Some(event) = stream.next().await {
        stage.hear();
        call.hear();
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
                call.answered(usage, models.price(&model));
                return Ok(Answer {
                    text,
                    tool_calls,
                    usage,
                    cut,
                    model,
                });
            }
            Err(error) => {
                call.failed(&error.error);
                return Err(failure(error, &text));
            }
        }
    }
    call.failed(&ModelError::CutOff);
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

/// Shows a call's text as soon as there is some, so the shown pieces add up to the finished text.
pub(super) struct Stage<'a> {
    events: &'a mpsc::Sender<TurnEvent>,
    /// Shown before the first piece.
    lead: &'static str,
    /// Everything shown of this call.
    shown: &'a Mutex<String>,
    /// When the model last gave a sign of life.
    heard: Mutex<Instant>,
    calls: &'a CallLog,
}

impl<'a> Stage<'a> {
    pub(super) fn new(
        events: &'a mpsc::Sender<TurnEvent>,
        lead: &'static str,
        shown: &'a Mutex<String>,
        calls: &'a CallLog,
    ) -> Self {
        Stage {
            events,
            lead,
            shown,
            calls,
            heard: Mutex::new(Instant::now()),
        }
    }

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
    pub(super) async fn silence(&self) {
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
pub(super) async fn telling_if_slow<T>(
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
