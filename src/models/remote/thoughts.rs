//! Thoughts of a model before tool calls. Anthropic wants them back, signed, with the results.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::models::{ModelMessage, ToolCall};

/// A thought in Anthropic's form, in both directions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Thought {
    Thinking {
        thinking: String,
        signature: String,
    },
    /// Encrypted by the provider.
    RedactedThinking {
        data: String,
    },
}

impl Thought {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Thought::Thinking {
                thinking,
                signature,
            } => thinking.len() + signature.len(),
            Thought::RedactedThinking { data } => data.len(),
        }
    }

    /// Anthropic refuses a thought without a signature.
    fn can_go_back(&self) -> bool {
        match self {
            Thought::Thinking { signature, .. } => !signature.is_empty(),
            Thought::RedactedThinking { .. } => true,
        }
    }
}

/// Thoughts of the newest calls, in memory only: without them a model goes on without thinking.
#[derive(Clone, Default)]
pub(super) struct Thoughts {
    // A plain lock: every section is a look through a short list, and none awaits.
    kept: Arc<Mutex<VecDeque<Kept>>>,
}

/// Thoughts before the calls of a message.
struct Kept {
    /// The id of the first call.
    call: String,
    thoughts: Vec<Thought>,
}

impl Kept {
    fn bytes(&self) -> usize {
        self.thoughts.iter().map(Thought::bytes).sum()
    }
}

/// A turn needs the thoughts of its last step only, so this is enough for as many turns at once.
const MOST_KEPT: usize = 1_000;
/// All kept thoughts together. Most thoughts have a few kilobytes.
const MAX_KEPT_BYTES: usize = 8 * 1024 * 1024;

impl Thoughts {
    pub(super) fn keep(&self, calls: &[ToolCall], mut thoughts: Vec<Thought>) {
        thoughts.retain(Thought::can_go_back);
        let Some(first) = calls.first().filter(|_| !thoughts.is_empty()) else {
            return;
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back(Kept {
            call: first.id.clone(),
            thoughts,
        });
        let mut bytes: usize = kept.iter().map(Kept::bytes).sum();
        while kept.len() > MOST_KEPT || bytes > MAX_KEPT_BYTES {
            let Some(oldest) = kept.pop_front() else {
                break;
            };
            bytes -= oldest.bytes();
        }
    }

    /// Thoughts before these calls; empty if they are not kept any more.
    pub(super) fn before(&self, calls: &[ToolCall]) -> Vec<Thought> {
        let Some(first) = calls.first() else {
            return Vec::new();
        };
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter()
            .rev()
            .find(|kept| kept.call == first.id)
            .map(|kept| kept.thoughts.clone())
            .unwrap_or_default()
    }

    /// Whether the last step of a conversation called tools after thoughts of which none are kept
    /// here.
    pub(super) fn are_missing(&self, messages: &[ModelMessage]) -> bool {
        let is_result = |message: &ModelMessage| matches!(message, ModelMessage::ToolResult { .. });
        match messages.iter().rfind(|message| !is_result(message)) {
            Some(ModelMessage::Assistant { tool_calls, .. }) if !tool_calls.is_empty() => {
                self.before(tool_calls).is_empty()
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str) -> ToolCall {
        ToolCall {
            id: id.to_owned(),
            name: "now".to_owned(),
            arguments: json!({}),
        }
    }

    fn thought(bytes: usize) -> Thought {
        Thought::Thinking {
            thinking: "t".repeat(bytes),
            signature: "s".to_owned(),
        }
    }

    #[test]
    fn old_thoughts_make_room_for_new_ones() {
        let thoughts = Thoughts::default();
        for number in 0..9 {
            thoughts.keep(&[call(&number.to_string())], vec![thought(1024 * 1024)]);
        }
        assert!(thoughts.before(&[call("0")]).is_empty());
        assert_eq!(thoughts.before(&[call("8")]).len(), 1);
        for number in 0..=MOST_KEPT {
            thoughts.keep(&[call(&format!("small {number}"))], vec![thought(1)]);
        }
        assert!(thoughts.before(&[call("small 0")]).is_empty());
        assert_eq!(thoughts.before(&[call("small 1")]).len(), 1);
    }

    #[test]
    fn thoughts_without_a_signature_are_not_kept() {
        let thoughts = Thoughts::default();
        let unsigned = Thought::Thinking {
            thinking: "hm".to_owned(),
            signature: String::new(),
        };
        thoughts.keep(&[call("a")], vec![unsigned]);
        assert!(thoughts.before(&[call("a")]).is_empty());
        let redacted = Thought::RedactedThinking {
            data: "x".to_owned(),
        };
        thoughts.keep(&[call("a")], vec![redacted.clone()]);
        assert_eq!(thoughts.before(&[call("a")]), [redacted]);
    }
}
