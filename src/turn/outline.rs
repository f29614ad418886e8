//! The sections of a request to a model: their names, their sizes, and their words for those who may
//! read them.

use std::borrow::Cow;

use super::Run;
use crate::models::{ModelMessage, estimate_tokens};

/// Where the sections of a request begin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Outline {
    /// The sections of the system prompt, each with its first byte.
    pub(crate) system: Vec<(String, usize)>,
    pub(crate) messages: Layout,
}

/// How many messages of each kind a request begins with, in this order. The question follows, and
/// then the rounds of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Layout {
    pub(crate) summary: usize,
    pub(crate) history: usize,
    pub(crate) notes: usize,
    pub(crate) recalled: usize,
}

impl Layout {
    fn named(self, messages: usize) -> [(&'static str, usize); 6] {
        let before = self.summary + self.history + self.notes + self.recalled;
        let question = messages.saturating_sub(before).min(1);
        let rounds = messages.saturating_sub(before + question);
        [
            ("Summary", self.summary),
            ("Conversation", self.history),
            ("Notes", self.notes),
            ("Memories", self.recalled),
            ("Question", question),
            ("Rounds of tools", rounds),
        ]
    }
}

/// A section in pieces.
struct Section<'a> {
    name: Cow<'a, str>,
    pieces: Vec<Cow<'a, str>>,
}

impl Run {
    /// The sections with about how many tokens each has.
    pub(crate) fn section_sizes(&self) -> Vec<(String, usize)> {
        let tools = self.request.tools.specs();
        let of_tools = tools.iter().map(|tool| {
            estimate_tokens(&tool.description) + estimate_tokens(tool.parameters.text())
        });
        let of_tools = ("Tools".to_owned(), of_tools.sum::<usize>());
        let sections = self.sections().into_iter().map(|section| {
            let tokens = section.pieces.iter().map(|piece| estimate_tokens(piece));
            (section.name.into_owned(), tokens.sum())
        });
        let sections = sections.chain([of_tools]);
        sections.filter(|(_, tokens)| *tokens > 0).collect()
    }

    /// The sections of the system prompt and the tools, with their words. They are the same in most
    /// turns of an agent.
    pub(crate) fn steady_texts(&self) -> Vec<(String, String)> {
        let tools = self.request.tools.specs();
        let lines = tools
            .iter()
            .map(|tool| format!("{}: {}", tool.name, tool.description));
        let lines: Vec<String> = lines.collect();
        let mut texts = texts(self.of_system());
        if !lines.is_empty() {
            texts.push(("Tools".to_owned(), lines.join("\n")));
        }
        texts
    }

    /// The sections of the conversation with their words, as the last call had them.
    pub(crate) fn moving_texts(&self) -> Vec<(String, String)> {
        texts(self.of_messages())
    }

    fn sections(&self) -> Vec<Section<'_>> {
        let mut sections = self.of_system();
        sections.extend(self.of_messages());
        sections
    }

    fn of_system(&self) -> Vec<Section<'_>> {
        let request = &self.request;
        let starts = &request.outline.system;
        let ends = starts.iter().skip(1).map(|(_, start)| *start);
        let ends = ends.chain([request.system.len()]);
        let system = starts.iter().zip(ends).map(|((name, start), end)| {
            let text = request.system.get(*start..end).unwrap_or_default();
            Section {
                name: Cow::Borrowed(name.as_str()),
                pieces: vec![Cow::Borrowed(text.trim())],
            }
        });
        system.collect()
    }

    fn of_messages(&self) -> Vec<Section<'_>> {
        let (request, mut sections) = (&self.request, Vec::new());
        let mut messages = request.messages.iter();
        for (name, count) in request.outline.messages.named(request.messages.len()) {
            let pieces: Vec<Cow<'_, str>> =
                messages.by_ref().take(count).flat_map(pieces).collect();
            if !pieces.is_empty() {
                let name = Cow::Borrowed(name);
                sections.push(Section { name, pieces });
            }
        }
        sections
    }
}

fn texts(sections: Vec<Section<'_>>) -> Vec<(String, String)> {
    let texts = sections
        .into_iter()
        .map(|section| (section.name.into_owned(), section.pieces.join("\n\n")));
    texts.filter(|(_, text)| !text.is_empty()).collect()
}

fn pieces(message: &ModelMessage) -> Vec<Cow<'_, str>> {
    match message {
        ModelMessage::User(content) => {
            let pictures = content.images.len();
            let seen = (pictures > 0).then(|| Cow::Owned(format!("[{pictures} pictures]")));
            [Cow::Borrowed(content.text.as_str())]
                .into_iter()
                .chain(seen)
                .collect()
        }
        ModelMessage::Assistant { text, tool_calls } => {
            let calls = tool_calls
                .iter()
                .map(|call| Cow::Owned(format!("→ {} {}", call.name, call.arguments)));
            let said = (!text.is_empty()).then_some(Cow::Borrowed(text.as_str()));
            said.into_iter().chain(calls).collect()
        }
        ModelMessage::ToolResult { content, .. } => {
            vec![Cow::Owned(format!("← {content}"))]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_belongs_to_a_section() {
        let layout = Layout {
            summary: 1,
            history: 4,
            notes: 0,
            recalled: 2,
        };
        let counts = |messages| layout.named(messages).map(|(_, count)| count);
        assert_eq!(counts(8), [1, 4, 0, 2, 1, 0]);
        assert_eq!(counts(11), [1, 4, 0, 2, 1, 3], "rounds come last");
        assert_eq!(Layout::default().named(1)[4], ("Question", 1));
    }
}
