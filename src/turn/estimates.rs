//! Guesses at tokens where no provider tells: the next call of a turn, and a call cut short.

use std::sync::PoisonError;

use super::{Run, TurnRequest};
use crate::models::{ModelMessage, Usage, estimate_tokens};

/// About the tokens of a picture, for estimates.
const IMAGE_TOKENS: usize = 1500;
/// The tokens of an answer without `max_tokens`, for estimates.
const USUAL_ANSWER: u32 = 4096;

impl Run {
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
            estimate_tokens(&tool.description) + estimate_tokens(tool.parameters.text())
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
}

fn words(message: &ModelMessage) -> &str {
    match message {
        ModelMessage::User(content) => &content.text,
        ModelMessage::Assistant { text, .. } => text,
        ModelMessage::ToolResult { content, .. } => content,
    }
}
