//! What a model thought before it called tools. Anthropic wants it back, signed, with the results.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use genai::chat::ContentPart;

use crate::models::{ModelMessage, ToolCall};

/// Thoughts of the newest calls, in memory only: without them a model goes on without thinking.
#[derive(Clone, Default)]
pub(super) struct Thoughts {
    // A plain lock: every section is a look through a short list, and none awaits.
    kept: Arc<Mutex<VecDeque<Kept>>>,
}

/// What came before the calls of one message.
struct Kept {
    /// The id of the first of them.
    call: String,
    thoughts: Vec<ContentPart>,
}

/// A turn needs those of its last step only, so this is enough for as many turns at once.
const MOST_KEPT: usize = 1_000;

impl Thoughts {
    pub(super) fn keep(&self, calls: &[ToolCall], mut thoughts: Vec<ContentPart>) {
        thoughts.retain(|part| !part.is_text());
        let Some(first) = calls.first().filter(|_| !thoughts.is_empty()) else { return };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST_KEPT {
            kept.pop_front();
        }
        kept.push_back(Kept { call: first.id.clone(), thoughts });
    }

    /// What was thought before these calls; nothing if nobody knows any more.
    pub(super) fn before(&self, calls: &[ToolCall]) -> Vec<ContentPart> {
        let Some(first) = calls.first() else { return Vec::new() };
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().rev().find(|kept| kept.call == first.id).map(|kept| kept.thoughts.clone()).unwrap_or_default()
    }

    /// Whether the last step of a conversation called tools after thoughts that are not here.
    pub(super) fn are_missing(&self, messages: &[ModelMessage]) -> bool {
        let is_result = |message: &ModelMessage| matches!(message, ModelMessage::ToolResult { .. });
        match messages.iter().rfind(|message| !is_result(message)) {
            Some(ModelMessage::Assistant { tool_calls, .. }) if !tool_calls.is_empty() => self.before(tool_calls).is_empty(),
            _ => false,
        }
    }
}
