//! The built-in demo model: no account, no network, no clock, no chance. It echoes, says so, and
//! uses tools when told to, so that everything around a model can be tried without an account.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use unicode_segmentation::UnicodeSegmentation;

use crate::domain::{is_another_agents, words_alone};

use super::{
    CallError, Content, ModelEvent, ModelMessage, ModelProvider, ModelRequest, ModelStream,
    ToolCall, ToolSpec, Usage,
};

/// Words in one piece of streamed text.
const WORDS_PER_PIECE: usize = 4;
/// Longest quotes of a message or a tool's result, and of a motto, in characters as people see them.
const MAX_QUOTE_CHARS: usize = 400;
const MAX_MOTTO_CHARS: usize = 120;

pub(super) struct Demo;

#[async_trait]
impl ModelProvider for Demo {
    async fn stream(&self, _model: &str, request: ModelRequest) -> Result<ModelStream, CallError> {
        let (text, tool_calls) = match answer(&request) {
            Answer::Text(text) => (text, Vec::new()),
            Answer::Call(call) => (String::new(), vec![call]),
        };
        let usage = Usage {
            input_tokens: input_words(&request),
            output_tokens: words(&text),
            cached_tokens: 0,
        };
        let done = ModelEvent::Done {
            tool_calls,
            usage,
            cut: None,
        };
        let events: Vec<_> = pieces(&text)
            .map(ModelEvent::Text)
            .chain([done])
            .map(Ok)
            .collect();
        Ok(stream::iter(events).boxed())
    }
}

#[derive(Debug, PartialEq)]
enum Answer {
    Text(String),
    Call(ToolCall),
}

fn answer(request: &ModelRequest) -> Answer {
    match request.messages.as_slice() {
        // A note behind the results of tools is about messages that came meanwhile.
        [before @ .., ModelMessage::User(_)]
            if matches!(before.last(), Some(ModelMessage::ToolResult { .. })) =>
        {
            answer(&ModelRequest {
                messages: before.to_vec(),
                ..request.clone()
            })
        }
        messages => answer_last(messages.last(), request),
    }
}

fn answer_last(last: Option<&ModelMessage>, request: &ModelRequest) -> Answer {
    match last {
        Some(ModelMessage::ToolResult { .. }) => Answer::Text(quote_results(request)),
        Some(ModelMessage::User(said)) => match wish(&without_marks(&said.text)) {
            Some(wish) => grant(wish, request),
            None => Answer::Text(echo(said, request)),
        },
        _ => Answer::Text(echo(&Content::default(), request)),
    }
}

/// A message begins with the mark of its writer.
fn without_marks(said: &str) -> String {
    words_alone(said)
}

/// A message that asks for more than an echo.
#[derive(Debug, PartialEq)]
enum Wish<'a> {
    Name,
    Tool { name: &'a str, arguments: Value },
    BadArguments { name: &'a str },
}

fn wish(said: &str) -> Option<Wish<'_>> {
    if asks_for_name(said) {
        return Some(Wish::Name);
    }
    if asks_for_time(said) {
        return Some(Wish::Tool {
            name: "now",
            arguments: json!({}),
        });
    }
    let (verb, rest) = said.trim().split_once(char::is_whitespace)?;
    if !["use", "call"]
        .iter()
        .any(|known| verb.eq_ignore_ascii_case(known))
    {
        return None;
    }
    let rest = rest.trim();
    let (name, arguments) = rest
        .split_once(char::is_whitespace)
        .map_or((rest, ""), |(name, rest)| (name, rest.trim()));
    if arguments.is_empty() {
        return Some(Wish::Tool {
            name,
            arguments: json!({}),
        });
    }
    // "use the other door" is a sentence, not a call.
    let looks_like_json = arguments.starts_with('{');
    match serde_json::from_str(arguments) {
        Ok(arguments @ Value::Object(_)) => Some(Wish::Tool { name, arguments }),
        _ => looks_like_json.then_some(Wish::BadArguments { name }),
    }
}

fn asks_for_time(said: &str) -> bool {
    let said = said.to_lowercase();
    let said = said.trim().trim_end_matches(['?', '.', '!']);
    let in_a_word = ["time", "date"].contains(&said);
    let in_a_sentence = [
        "what time is it",
        "what is the time",
        "what's the time",
        "what day is it",
        "what date is it",
        "what is the date",
    ];
    in_a_word || in_a_sentence.iter().any(|phrase| said.contains(phrase))
}

fn asks_for_name(said: &str) -> bool {
    let said = said.to_lowercase();
    let said = said.trim().trim_end_matches(['?', '.', '!']);
    [
        "who are you",
        "who is this",
        "what is your name",
        "what's your name",
    ]
    .contains(&said)
}

fn grant(wish: Wish<'_>, request: &ModelRequest) -> Answer {
    match wish {
        Wish::Name => Answer::Text(texts::introduction(
            agent_name(&request.system),
            motto(&request.system),
        )),
        Wish::Tool { name, arguments } if request.tools.iter().any(|tool| tool.name == name) => {
            Answer::Call(ToolCall {
                id: next_call_id(&request.messages),
                name: name.to_owned(),
                arguments,
            })
        }
        Wish::Tool { name, .. } => Answer::Text(texts::no_such_tool(name, &request.tools)),
        Wish::BadArguments { name } => Answer::Text(texts::bad_arguments(name)),
    }
}

fn next_call_id(messages: &[ModelMessage]) -> String {
    let calls_of = |message: &ModelMessage| match message {
        ModelMessage::Assistant { tool_calls, .. } => tool_calls.len(),
        _ => 0,
    };
    format!("demo-{}", messages.iter().map(calls_of).sum::<usize>() + 1)
}

fn quote_results(request: &ModelRequest) -> String {
    let is_result = |message: &&ModelMessage| matches!(message, ModelMessage::ToolResult { .. });
    let count = request.messages.iter().rev().take_while(is_result).count();
    let (before, results) = request.messages.split_at(request.messages.len() - count);
    let told = results.iter().filter_map(|message| match message {
        ModelMessage::ToolResult { call_id, content } => Some(texts::result(
            called_tool(before, call_id),
            &without_marks(content),
        )),
        _ => None,
    });
    told.collect::<Vec<_>>().join(" ")
}

fn called_tool<'a>(messages: &'a [ModelMessage], call_id: &str) -> Option<&'a str> {
    let calls = messages.iter().rev().filter_map(|message| match message {
        ModelMessage::Assistant { tool_calls, .. } => Some(tool_calls),
        _ => None,
    });
    calls
        .flatten()
        .find(|call| call.id == call_id)
        .map(|call| call.name.as_str())
}

/// The agent's first answer in a conversation tells about the demo model and about the agent; the
/// conversation's first answer tells how to get a real model.
fn echo(said: &Content, request: &ModelRequest) -> String {
    let is_own = |message: &ModelMessage| matches!(message, ModelMessage::Assistant { .. });
    let said = Content {
        text: without_marks(&said.text),
        images: said.images.clone(),
    };
    if request.messages.iter().any(is_own) {
        return texts::later(&said, number_of_messages(&request.messages));
    }
    let first = texts::first(&said, motto(&request.system));
    if request.messages.iter().any(is_from_another_agent) {
        first
    } else {
        format!("{first} {}", texts::SETUP)
    }
}

fn is_from_another_agent(message: &ModelMessage) -> bool {
    matches!(message, ModelMessage::User(said) if is_another_agents(&said.text))
}

fn number_of_messages(messages: &[ModelMessage]) -> usize {
    messages
        .iter()
        .filter(|message| matches!(message, ModelMessage::User(_)))
        .count()
}

/// `Rose` in a prompt that begins with `You are Rose 🌹 (agent id: rose).`
fn agent_name(system: &str) -> Option<&str> {
    let line = system
        .lines()
        .find(|line| !line.trim().is_empty())?
        .trim()
        .strip_prefix("You are ")?;
    let name = line.split(['(', '.', ',']).next()?;
    let name = name.trim_end_matches(|letter: char| !letter.is_alphanumeric());
    (!name.is_empty()).then_some(name)
}

/// The first sentence-like line below `# SOUL.md`, before the next file.
fn motto(system: &str) -> Option<&str> {
    let names_a_file = |line: &str| {
        line.strip_prefix("# ")
            .is_some_and(|title| title.trim_end().ends_with(".md"))
    };
    system
        .lines()
        .skip_while(|line| !line.starts_with("# SOUL.md"))
        .skip(1)
        .take_while(|line| !names_a_file(line))
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'))
}

fn pieces(text: &str) -> impl Iterator<Item = String> {
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    words
        .chunks(WORDS_PER_PIECE)
        .map(|words| words.concat())
        .collect::<Vec<_>>()
        .into_iter()
}

fn input_words(request: &ModelRequest) -> u64 {
    let of_message = |message: &ModelMessage| match message {
        ModelMessage::User(content) => words(&content.text),
        ModelMessage::Assistant { text, .. } => words(text),
        ModelMessage::ToolResult { content, .. } => words(content),
    };
    words(&request.system) + request.messages.iter().map(of_message).sum::<u64>()
}

fn words(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

/// Everything the demo model says.
mod texts {
    use super::{Arc, Content, MAX_MOTTO_CHARS, MAX_QUOTE_CHARS, ToolSpec, UnicodeSegmentation};

    pub(super) const SETUP: &str = "`parlor setup` connects a real one.";

    pub(super) fn first(said: &Content, motto: Option<&str>) -> String {
        let motto = motto.map_or_else(
            || ".".to_owned(),
            |line| {
                format!(
                    "; a real one would go by {}",
                    sentence(&quote(line, MAX_MOTTO_CHARS))
                )
            },
        );
        format!(
            "{} I'm the demo model and only echo{motto}",
            sentence(&echo(said))
        )
    }

    pub(super) fn later(said: &Content, number: usize) -> String {
        format!("{} (message {number}).", echo(said))
    }

    fn echo(said: &Content) -> String {
        let words = quote(&said.text, MAX_QUOTE_CHARS);
        match (said.text.trim(), said.images.len()) {
            (_, 0) => format!("You said: {words}"),
            ("", 1) => "You showed me a picture".to_owned(),
            ("", several) => format!("You showed me {several} pictures"),
            (_, 1) => format!("You said {words} and showed me a picture"),
            (_, several) => format!("You said {words} and showed me {several} pictures"),
        }
    }

    pub(super) fn introduction(name: Option<&str>, motto: Option<&str>) -> String {
        let who = name.map_or_else(
            || "I'm the demo model.".to_owned(),
            |name| format!("I'm {name}, played by the demo model."),
        );
        match motto {
            Some(line) => format!(
                "{who} My motto: {}",
                sentence(&quote(line, MAX_MOTTO_CHARS))
            ),
            None => who,
        }
    }

    pub(super) fn no_such_tool(name: &str, tools: &[Arc<ToolSpec>]) -> String {
        let offered: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        match offered.as_slice() {
            [] => format!("I have no tool called `{name}`, nor any other."),
            offered => format!(
                "I have no tool called `{name}`. My tools: {}.",
                offered.join(", ")
            ),
        }
    }

    pub(super) fn bad_arguments(tool: &str) -> String {
        format!("I didn't call `{tool}`, because the text after its name is not a JSON object.")
    }

    pub(super) fn result(tool: Option<&str>, content: &str) -> String {
        let tool = tool.map_or_else(|| "The tool".to_owned(), |name| format!("`{name}`"));
        format!(
            "{tool} says: {}",
            sentence(&quote(content, MAX_QUOTE_CHARS))
        )
    }

    fn quote(text: &str, max_chars: usize) -> String {
        let text = text.trim();
        match text.grapheme_indices(true).nth(max_chars) {
            Some((end, _)) => format!("“{}…”", text[..end].trim_end()),
            None => format!("“{text}”"),
        }
    }

    /// The text with a full stop, unless its last quote ends like a sentence.
    fn sentence(text: &str) -> String {
        let unquoted = text.strip_suffix('”').unwrap_or(text);
        if unquoted.ends_with(['.', '!', '?', '…']) {
            text.to_owned()
        } else {
            format!("{text}.")
        }
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::config::ModelSettings;
    use crate::models::{Image, ImageKind};

    const ROSE: &str = "You are Rose 🌹 (agent id: rose).\n\n# IDENTITY.md\nA gardener.\n\n# SOUL.md\n\n# Rose\n\n\
                        I keep the books and the roses.\nBoth need cutting.\n\n# AGENTS.md\nOthers exist.\n";

    fn user(text: &str) -> ModelMessage {
        ModelMessage::user(text)
    }

    fn said(text: &str) -> ModelMessage {
        ModelMessage::Assistant {
            text: text.to_owned(),
            tool_calls: Vec::new(),
        }
    }

    fn called(id: &str, name: &str) -> ModelMessage {
        let call = ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: json!({}),
        };
        ModelMessage::Assistant {
            text: String::new(),
            tool_calls: vec![call],
        }
    }

    fn result(id: &str, content: &str) -> ModelMessage {
        ModelMessage::ToolResult {
            call_id: id.to_owned(),
            content: content.to_owned(),
        }
    }

    fn asked(system: &str, messages: impl Into<Vec<ModelMessage>>, tools: &[&str]) -> ModelRequest {
        let tool = |name: &&str| {
            Arc::new(ToolSpec {
                name: (*name).to_owned(),
                description: String::new(),
                parameters: json!({}).into(),
            })
        };
        ModelRequest {
            system: system.into(),
            messages: messages.into(),
            tools: tools.iter().map(tool).collect(),
            settings: ModelSettings::default(),
            cache_key: String::new(),
        }
    }

    fn text(request: &ModelRequest) -> String {
        match answer(request) {
            Answer::Text(text) => text,
            Answer::Call(call) => format!("calls {} {} as {}", call.name, call.arguments, call.id),
        }
    }

    #[test]
    fn the_first_answer_introduces_the_demo_model() {
        assert_snapshot!(text(&asked(ROSE, [user("hello there")], &[])), @"You said: “hello there”. I'm the demo model and only echo; a real one would go by “I keep the books and the roses.” `parlor setup` connects a real one.");
    }

    #[test]
    fn an_agent_that_takes_over_says_its_motto_but_not_the_setup_again() {
        let talk = [
            user("hello"),
            user("⟦k7f2 @main⟧ You said: “hello”."),
            user("hi"),
        ];
        assert_snapshot!(text(&asked(ROSE, talk, &[])), @"You said: “hi”. I'm the demo model and only echo; a real one would go by “I keep the books and the roses.”");
    }

    #[test]
    fn who_are_you_is_answered_with_name_and_motto() {
        assert_snapshot!(text(&asked(ROSE, [user("Who are you?")], &[])), @"I'm Rose, played by the demo model. My motto: “I keep the books and the roses.”");
        assert_snapshot!(text(&asked("", [user("who are you")], &[])), @"I'm the demo model.");
    }

    #[test]
    fn later_answers_are_short_and_count() {
        let talk = [
            user("hello"),
            said("…"),
            user("still there?"),
            said("…"),
            user("good"),
        ];
        assert_snapshot!(text(&asked(ROSE, talk, &[])), @"You said: “good” (message 3).");
    }

    #[test]
    fn pictures_are_counted() {
        let picture = Image::new(ImageKind::Png, b"\x89PNG");
        let show = |count| {
            ModelMessage::User(Content {
                text: "look".into(),
                images: vec![picture.clone(); count],
            })
        };
        let tell = |count| text(&asked(ROSE, [user("a"), said("b"), show(count)], &[]));
        assert_snapshot!(tell(1), @"You said “look” and showed me a picture (message 2).");
        assert_snapshot!(tell(3), @"You said “look” and showed me 3 pictures (message 2).");
    }

    #[test]
    fn a_prompt_without_name_and_motto_is_fine() {
        assert_snapshot!(text(&asked("Be kind.", [user("hi")], &[])), @"You said: “hi”. I'm the demo model and only echo. `parlor setup` connects a real one.");
        assert_snapshot!(text(&asked("", [user("hi"), said("…"), user("ho")], &[])), @"You said: “ho” (message 2).");
    }

    #[test]
    fn tools_are_called_on_simple_phrases() {
        let ask = |said: &str| text(&asked(ROSE, [user(said)], &["now", "remember"]));
        assert_snapshot!(ask("What time is it?"), @"calls now {} as demo-1");
        assert_snapshot!(ask("time"), @"calls now {} as demo-1");
        assert_snapshot!(ask("date?"), @"calls now {} as demo-1");
        assert_snapshot!(ask(r#"use remember {"text": "tea at five"}"#), @r#"calls remember {"text":"tea at five"} as demo-1"#);
        assert_snapshot!(ask("Call now"), @"calls now {} as demo-1");
        assert_snapshot!(ask("use shell {}"), @"I have no tool called `shell`. My tools: now, remember.");
        assert_snapshot!(ask("use remember {text: tea}"), @"I didn't call `remember`, because the text after its name is not a JSON object.");
        assert!(ask("use the other door").contains("You said: “use the other door”"));
        assert_snapshot!(text(&asked(ROSE, [user("time")], &[])), @"I have no tool called `now`, nor any other.");
    }

    #[test]
    fn every_call_of_a_conversation_has_its_own_id() {
        let talk = [
            user("time"),
            called("demo-1", "now"),
            result("demo-1", "noon"),
            said("noon"),
            user("time"),
        ];
        assert_snapshot!(text(&asked(ROSE, talk, &["now"])), @"calls now {} as demo-2");
    }

    #[test]
    fn results_are_quoted_with_the_name_of_their_tool() {
        let talk = [
            user("time"),
            called("demo-1", "now"),
            result("demo-1", "Monday, noon\n"),
        ];
        assert_snapshot!(text(&asked(ROSE, talk, &["now"])), @"`now` says: “Monday, noon”.");
        assert_snapshot!(text(&asked(ROSE, [result("lost", "42")], &[])), @"The tool says: “42”.");
    }

    #[test]
    fn long_texts_are_quoted_in_part() {
        let long = "🏳️‍🌈".repeat(MAX_QUOTE_CHARS + 1);
        let answer = text(&asked(ROSE, [user("a"), said("b"), user(&long)], &[]));
        assert!(answer.contains(&format!("“{}…”", "🏳️‍🌈".repeat(MAX_QUOTE_CHARS))));
    }

    #[test]
    fn names_are_read_leniently() {
        let check = |line: &str, name: Option<&str>| assert_eq!(agent_name(line), name, "{line}");
        check("You are Rose 🌹 (agent id: rose).", Some("Rose"));
        check("\nYou are Rose (agent id: rose).", Some("Rose"));
        check("You are Dr No 007 🕶️ (agent id: no).", Some("Dr No 007"));
        check("You are Rosé.", Some("Rosé"));
        check("You are 🌹.", None);
        check("Be kind.", None);
    }

    #[tokio::test]
    async fn the_answer_comes_in_pieces_and_words_are_counted_as_tokens() {
        let request = asked(
            "You are Rose.",
            [user("one two"), said("three"), user("four")],
            &[],
        );
        let events: Vec<_> = Demo
            .stream("", request)
            .await
            .expect("a stream")
            .collect()
            .await;
        let events: Vec<_> = events
            .into_iter()
            .map(|event| event.expect("an event"))
            .collect();
        insta::assert_debug_snapshot!(events, @r#"
        [
            Text(
                "You said: “four” (message ",
            ),
            Text(
                "2).",
            ),
            Done {
                tool_calls: [],
                usage: Usage {
                    input_tokens: 7,
                    output_tokens: 5,
                    cached_tokens: 0,
                },
                cut: None,
            },
        ]
        "#);
    }
}
