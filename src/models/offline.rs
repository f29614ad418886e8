//! The built-in model: no account, no network, no clock, no chance. The stand-in echoes, says so,
//! and uses tools when told to, so that everything around a model can be tried without an account.

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use unicode_segmentation::UnicodeSegmentation;

use super::{
    Content, ModelError, ModelEvent, ModelMessage, ModelProvider, ModelRequest, ModelStream,
    ToolCall, ToolSpec, Usage,
};

/// Words in one piece of streamed text.
const WORDS_PER_PIECE: usize = 4;
/// Longest quotes of a message or a tool's result, and of a soul, in characters as people see them.
const MAX_QUOTE_CHARS: usize = 400;
const MAX_SOUL_CHARS: usize = 120;

const SETUP: &str = "For a real model, add a `[providers.…]` section and `default_model = \"provider/model\"` to config.toml.";

pub(super) struct Offline;

#[async_trait]
impl ModelProvider for Offline {
    async fn stream(&self, _model: &str, request: ModelRequest) -> Result<ModelStream, ModelError> {
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
        Some(ModelMessage::User(said)) => match wish(without_name(&said.text)) {
            Some(wish) => grant(wish, request),
            None => Answer::Text(echo(said, request)),
        },
        _ => Answer::Text(echo(&Content::default(), request)),
    }
}

/// Where several people write, a message begins with its writer in brackets.
fn without_name(said: &str) -> &str {
    let text = said
        .strip_prefix('[')
        .and_then(|said| said.split_once("] "));
    text.map_or(said, |(_, text)| text)
}

/// A message that asks for more than an echo.
#[derive(Debug, PartialEq)]
enum Wish<'a> {
    Tool { name: &'a str, arguments: Value },
    BadArguments { name: &'a str },
}

fn wish(said: &str) -> Option<Wish<'_>> {
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

fn grant(wish: Wish<'_>, request: &ModelRequest) -> Answer {
    let opening = short_opening(request);
    match wish {
        Wish::Tool { name, arguments } if request.tools.iter().any(|tool| tool.name == name) => {
            Answer::Call(ToolCall {
                id: next_call_id(&request.messages),
                name: name.to_owned(),
                arguments,
            })
        }
        Wish::Tool { name, .. } => {
            Answer::Text(format!("{opening} {}", no_such_tool(name, &request.tools)))
        }
        Wish::BadArguments { name } => Answer::Text(format!(
            "{opening} What follows `{name}` is not a JSON object, so I did not call it."
        )),
    }
}

fn next_call_id(messages: &[ModelMessage]) -> String {
    let calls_of = |message: &ModelMessage| match message {
        ModelMessage::Assistant { tool_calls, .. } => tool_calls.len(),
        _ => 0,
    };
    format!(
        "offline-{}",
        messages.iter().map(calls_of).sum::<usize>() + 1
    )
}

fn no_such_tool(name: &str, tools: &[ToolSpec]) -> String {
    let offered: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    match offered.as_slice() {
        [] => format!("I am offered no tool called `{name}`, nor any other."),
        offered => format!(
            "I am offered no tool called `{name}`. Mine: {}.",
            offered.join(", ")
        ),
    }
}

fn quote_results(request: &ModelRequest) -> String {
    let is_result = |message: &&ModelMessage| matches!(message, ModelMessage::ToolResult { .. });
    let count = request.messages.iter().rev().take_while(is_result).count();
    let (before, results) = request.messages.split_at(request.messages.len() - count);
    let mut text = short_opening(request);
    for result in results {
        if let ModelMessage::ToolResult { call_id, content } = result {
            let tool = called_tool(before, call_id)
                .map_or_else(|| "The tool".to_owned(), |name| format!("`{name}`"));
            text.push_str(&format!(
                " {tool} says: {}",
                quote(content, MAX_QUOTE_CHARS)
            ));
        }
    }
    text
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

fn echo(said: &Content, request: &ModelRequest) -> String {
    let said = format!(
        "{}{}",
        quote(without_name(&said.text), MAX_QUOTE_CHARS),
        shown(said.images.len())
    );
    let is_first = !request
        .messages
        .iter()
        .any(|message| matches!(message, ModelMessage::Assistant { .. }));
    if !is_first {
        return format!(
            "{} You said: {said} {}",
            short_opening(request),
            place_in_conversation(&request.messages)
        );
    }
    let who = agent_name(&request.system)
        .map_or_else(|| "This is".to_owned(), |name| format!("{name} here, as"));
    let soul = soul_line(&request.system)
        .map(|line| format!(" My soul begins: {}", quote(line, MAX_SOUL_CHARS)))
        .unwrap_or_default();
    format!(
        "{who} Parlor's offline stand-in: with no real model I only echo. You said: {said}{soul} {SETUP}"
    )
}

fn shown(pictures: usize) -> String {
    match pictures {
        0 => String::new(),
        1 => " You showed me a picture.".to_owned(),
        several => format!(" You showed me {several} pictures."),
    }
}

fn short_opening(request: &ModelRequest) -> String {
    match agent_name(&request.system) {
        Some(name) => format!("{name}, offline stand-in."),
        None => "Offline stand-in.".to_owned(),
    }
}

fn place_in_conversation(messages: &[ModelMessage]) -> String {
    let said = messages
        .iter()
        .filter(|message| matches!(message, ModelMessage::User(_)))
        .count();
    format!("This is message {said} here.")
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
fn soul_line(system: &str) -> Option<&str> {
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

/// The text in quotation marks, ending like a sentence.
fn quote(text: &str, max_chars: usize) -> String {
    let text = text.trim();
    match text.grapheme_indices(true).nth(max_chars) {
        Some((end, _)) => format!("“{}…”", text[..end].trim_end()),
        None if text.ends_with(['.', '!', '?', '…']) => format!("“{text}”"),
        None => format!("“{text}”."),
    }
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
        let tool = |name: &&str| ToolSpec {
            name: (*name).to_owned(),
            description: String::new(),
            parameters: json!({}),
        };
        ModelRequest {
            system: system.to_owned(),
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
    fn the_first_answer_introduces_the_stand_in() {
        assert_snapshot!(text(&asked(ROSE, [user("hello there")], &[])), @r#"Rose here, as Parlor's offline stand-in: with no real model I only echo. You said: “hello there”. My soul begins: “I keep the books and the roses.” For a real model, add a `[providers.…]` section and `default_model = "provider/model"` to config.toml."#);
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
        assert_snapshot!(text(&asked(ROSE, talk, &[])), @"Rose, offline stand-in. You said: “good”. This is message 3 here.");
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
        assert_snapshot!(tell(1), @"Rose, offline stand-in. You said: “look”. You showed me a picture. This is message 2 here.");
        assert_snapshot!(tell(3), @"Rose, offline stand-in. You said: “look”. You showed me 3 pictures. This is message 2 here.");
    }

    #[test]
    fn a_prompt_without_name_and_soul_is_fine() {
        assert_snapshot!(text(&asked("Be kind.", [user("hi")], &[])), @r#"This is Parlor's offline stand-in: with no real model I only echo. You said: “hi”. For a real model, add a `[providers.…]` section and `default_model = "provider/model"` to config.toml."#);
        assert_snapshot!(text(&asked("", [user("hi"), said("…"), user("ho")], &[])), @"Offline stand-in. You said: “ho”. This is message 2 here.");
    }

    #[test]
    fn tools_are_called_on_simple_phrases() {
        let ask = |said: &str| text(&asked(ROSE, [user(said)], &["now", "remember"]));
        assert_snapshot!(ask("What time is it?"), @"calls now {} as offline-1");
        assert_snapshot!(ask("time"), @"calls now {} as offline-1");
        assert_snapshot!(ask("date?"), @"calls now {} as offline-1");
        assert_snapshot!(ask(r#"use remember {"text": "tea at five"}"#), @r#"calls remember {"text":"tea at five"} as offline-1"#);
        assert_snapshot!(ask("Call now"), @"calls now {} as offline-1");
        assert_snapshot!(ask("use shell {}"), @"Rose, offline stand-in. I am offered no tool called `shell`. Mine: now, remember.");
        assert_snapshot!(ask("use remember {text: tea}"), @"Rose, offline stand-in. What follows `remember` is not a JSON object, so I did not call it.");
        assert!(ask("use the other door").contains("You said: “use the other door”"));
        assert_snapshot!(text(&asked(ROSE, [user("time")], &[])), @"Rose, offline stand-in. I am offered no tool called `now`, nor any other.");
    }

    #[test]
    fn every_call_of_a_conversation_has_its_own_id() {
        let talk = [
            user("time"),
            called("offline-1", "now"),
            result("offline-1", "noon"),
            said("noon"),
            user("time"),
        ];
        assert_snapshot!(text(&asked(ROSE, talk, &["now"])), @"calls now {} as offline-2");
    }

    #[test]
    fn results_are_quoted_with_the_name_of_their_tool() {
        let talk = [
            user("time"),
            called("offline-1", "now"),
            result("offline-1", "Monday, noon\n"),
        ];
        assert_snapshot!(text(&asked(ROSE, talk, &["now"])), @"Rose, offline stand-in. `now` says: “Monday, noon”.");
        assert_snapshot!(text(&asked(ROSE, [result("lost", "42")], &[])), @"Rose, offline stand-in. The tool says: “42”.");
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
        let events: Vec<_> = Offline
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
                "Rose, offline stand-in. You ",
            ),
            Text(
                "said: “four”. This is ",
            ),
            Text(
                "message 2 here.",
            ),
            Done {
                tool_calls: [],
                usage: Usage {
                    input_tokens: 7,
                    output_tokens: 11,
                    cached_tokens: 0,
                },
                cut: None,
            },
        ]
        "#);
    }
}
