//! A conversation in groups common to all dialects.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::models::{Content, Image, ModelMessage, ToolCall};

/// Messages that go to the server together.
pub(super) enum Group<'a> {
    /// Words of people, with pictures. The words are one text, because not every server takes a
    /// list of texts.
    Said {
        text: String,
        images: Vec<&'a Image>,
    },
    /// An answer of the model. Never without both text and calls: providers refuse an empty
    /// message.
    Answered {
        text: &'a str,
        calls: &'a [ToolCall],
    },
    /// All results of a step.
    Results(Vec<Outcome<'a>>),
}

/// The result of a call.
pub(super) struct Outcome<'a> {
    pub(super) call_id: &'a str,
    pub(super) content: &'a str,
}

pub(super) fn groups(messages: &[ModelMessage]) -> impl Iterator<Item = Group<'_>> {
    messages.chunk_by(belong_together).filter_map(group)
}

fn belong_together(one: &ModelMessage, next: &ModelMessage) -> bool {
    match (one, next) {
        // Servers with strict chat templates refuse two user messages in a row.
        (ModelMessage::User(_), ModelMessage::User(_)) => true,
        // Anthropic and Gemini want the results of a step in a single message.
        (ModelMessage::ToolResult { .. }, ModelMessage::ToolResult { .. }) => true,
        _ => false,
    }
}

fn group(messages: &[ModelMessage]) -> Option<Group<'_>> {
    match messages.first()? {
        ModelMessage::User(_) => {
            let contents: Vec<&Content> = messages.iter().filter_map(content).collect();
            let texts: Vec<&str> = contents
                .iter()
                .map(|content| content.text.as_str())
                .collect();
            let images = contents
                .iter()
                .flat_map(|content| &content.images)
                .collect();
            Some(Group::Said {
                text: texts.join("\n\n"),
                images,
            })
        }
        ModelMessage::Assistant { text, tool_calls } => {
            let is_empty = text.is_empty() && tool_calls.is_empty();
            (!is_empty).then_some(Group::Answered {
                text,
                calls: tool_calls,
            })
        }
        ModelMessage::ToolResult { .. } => Some(Group::Results(
            messages.iter().filter_map(outcome).collect(),
        )),
    }
}

fn content(message: &ModelMessage) -> Option<&Content> {
    match message {
        ModelMessage::User(content) => Some(content),
        _ => None,
    }
}

fn outcome(message: &ModelMessage) -> Option<Outcome<'_>> {
    match message {
        ModelMessage::ToolResult { call_id, content } => Some(Outcome { call_id, content }),
        _ => None,
    }
}

/// The arguments of an earlier call. Arguments that were not an object were refused when they came;
/// sent back, they would spoil the whole request.
pub(super) fn arguments(call: &ToolCall) -> Cow<'_, Value> {
    if call.arguments.is_object() {
        Cow::Borrowed(&call.arguments)
    } else {
        Cow::Owned(json!({}))
    }
}

/// A picture for OpenAI's dialects. Written out only in the request.
pub(super) struct DataUrl<'a>(pub(super) &'a Image);

impl fmt::Display for DataUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "data:{};base64,{}",
            self.0.kind.media_type(),
            self.0.data
        )
    }
}

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
