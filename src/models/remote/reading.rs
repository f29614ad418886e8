//! Bytes of an answer in, model events out. Pure.

use std::ops::ControlFlow;

use super::answer::Answer;
use super::bounds::MAX_ERROR_BYTES;
use super::classify::unreadable;
use super::events::{Event, Events, Framing};
use super::thoughts::Thought;
use super::{anthropic, chat, gemini, ollama, responses};
use crate::config::ProviderKind;
use crate::models::{ModelError, ModelEvent};

/// A read in progress.
pub(super) struct Reading {
    kind: ProviderKind,
    events: Events,
    answer: Answer,
    /// The event that ended the answer as an error, or its beginning.
    failed: Option<String>,
}

impl Reading {
    pub(super) fn new(kind: ProviderKind) -> Self {
        let framing = if kind == ProviderKind::Ollama {
            Framing::Lines
        } else {
            Framing::ServerSent
        };
        Reading {
            kind,
            events: Events::new(framing),
            answer: Answer::new(kind),
            failed: None,
        }
    }

    pub(super) fn next_event(&mut self) -> Option<ModelEvent> {
        self.answer.next_event()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.answer.is_complete
    }

    /// Bytes behind the end of an answer are ignored.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        let (kind, answer, failed) = (self.kind, &mut self.answer, &mut self.failed);
        self.events.take(bytes, |event| {
            take(kind, &event, answer).inspect_err(|error| *failed = told(error, &event.data))?;
            Ok(match answer.is_complete {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        })
    }

    /// The event that told the failure.
    pub(super) fn failed_event(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// The body has ended. A server that has told why the model stopped may leave out the rest of
    /// the ceremony.
    pub(super) fn take_end(&mut self) -> Result<(), ModelError> {
        self.take_last().map_err(|error| {
            if error == unreadable() {
                ModelError::CutOff
            } else {
                error
            }
        })?;
        self.answer.is_complete |= self.answer.stop.is_some();
        if self.answer.is_complete {
            Ok(())
        } else {
            Err(ModelError::CutOff)
        }
    }

    fn take_last(&mut self) -> Result<(), ModelError> {
        match self.events.finish()? {
            Some(event) => take(self.kind, &event, &mut self.answer)
                .inspect_err(|error| self.failed = told(error, &event.data)),
            None => Ok(()),
        }
    }

    /// Text that is still held goes before the end.
    pub(super) fn tell_rest(&mut self) {
        self.answer.tell_rest();
    }

    /// The end of a complete answer, and the thoughts before its calls.
    pub(super) fn finish(
        &mut self,
        max_tokens: Option<u32>,
    ) -> Result<(ModelEvent, Vec<Thought>), ModelError> {
        self.answer.finish(max_tokens)
    }
}

/// An event with an error. Other events that cannot be read may have words of the answer.
fn told(error: &ModelError, data: &str) -> Option<String> {
    let is_unread = *error == unreadable() || matches!(error, ModelError::TooMuch(_));
    let beginning = &data[..data.floor_char_boundary(MAX_ERROR_BYTES)];
    (!is_unread && beginning.trim_start().starts_with('{')).then(|| beginning.to_owned())
}

fn take(kind: ProviderKind, event: &Event, answer: &mut Answer) -> Result<(), ModelError> {
    match kind {
        ProviderKind::OpenAi => chat::take(event, answer),
        ProviderKind::OpenAiResponses => responses::take(event, answer),
        ProviderKind::Anthropic => anthropic::take(event, answer),
        ProviderKind::Gemini => gemini::take(event, answer),
        ProviderKind::Ollama => ollama::take(event, answer),
    }
}
