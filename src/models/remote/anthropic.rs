//! Anthropic's Messages API: <https://docs.anthropic.com/en/api/messages>.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::answer::{Answer, Stop};
use super::classify::of_error_event;
use super::claude::Claude;
use super::events::Event;
use super::json::{Arguments, lenient, read};
use super::messages::{Group, Outcome, arguments, groups};
use super::request::{DONE, effort};
use super::thoughts::{Thought, Thoughts};
use crate::config::Reasoning;
use crate::models::{Image, ModelError, ModelRequest, Schema, ToolCall, ToolSpec};

/// Tokens to think with, for models that want a number.
const LOW_BUDGET: u32 = 1_024;
const MEDIUM_BUDGET: u32 = 8_000;
const HIGH_BUDGET: u32 = 24_000;

#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[Block<'a>; 1]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    max_tokens: u32,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Thinking {
    Disabled,
    Enabled { budget_tokens: u32 },
    Adaptive { display: &'static str },
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Schema,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Content<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

#[derive(Serialize)]
struct Block<'a> {
    #[serde(flatten)]
    part: Part<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

/// Anthropic keeps everything before a mark: the tools and the prompt for all turns, the talk so
/// far for the next step.
#[derive(Serialize)]
struct CacheControl {
    r#type: &'static str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Part<'a> {
    Thought(Thought),
    Other(OtherPart<'a>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum OtherPart<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: Source<'a>,
    },
    ToolUse {
        id: String,
        name: &'a str,
        input: Cow<'a, Value>,
    },
    ToolResult {
        content: &'a str,
        tool_use_id: String,
    },
}

#[derive(Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'static str,
    data: &'a str,
}

pub(super) fn body<'a>(model: &'a str, request: &'a ModelRequest, thoughts: &Thoughts) -> Body<'a> {
    let claude = Claude::of(model);
    let settings = request.settings;
    let mut messages: Vec<Message<'_>> = groups(&request.messages)
        .map(|group| message(group, thoughts))
        .collect();
    if let Some(last) = messages.last_mut() {
        last.mark();
    }
    let system = (!request.system.is_empty()).then(|| {
        [Block {
            cache_control: Some(MARK),
            ..text(&*request.system)
        }]
    });
    Body {
        model,
        stream: true,
        system,
        tools: request.tools.iter().map(|offered| tool(offered)).collect(),
        messages,
        thinking: settings
            .reasoning
            .and_then(|reasoning| thinking(claude, reasoning)),
        output_config: settings
            .reasoning
            .and_then(|reasoning| output_config(claude, reasoning)),
        temperature: settings.temperature,
        max_tokens: settings
            .max_tokens
            .unwrap_or_else(|| claude.longest_answer()),
    }
}

const MARK: CacheControl = CacheControl {
    r#type: "ephemeral",
};

fn thinking(claude: Claude, reasoning: Reasoning) -> Option<Thinking> {
    let budget = match reasoning {
        Reasoning::None => return claude.thinks_unasked().then_some(Thinking::Disabled),
        _ if claude.chooses_when_to_think() => {
            return Some(Thinking::Adaptive {
                display: "summarized",
            });
        }
        _ if claude.knows_effort() => return None,
        Reasoning::Low => LOW_BUDGET,
        Reasoning::Medium => MEDIUM_BUDGET,
        Reasoning::High => HIGH_BUDGET,
    };
    Some(Thinking::Enabled {
        budget_tokens: budget,
    })
}

fn output_config(claude: Claude, reasoning: Reasoning) -> Option<OutputConfig> {
    let has_word = claude.knows_effort() && reasoning != Reasoning::None;
    has_word.then(|| OutputConfig {
        effort: effort(reasoning),
    })
}

fn tool(tool: &ToolSpec) -> Tool<'_> {
    Tool {
        name: &tool.name,
        description: &tool.description,
        input_schema: &tool.parameters,
    }
}

fn message<'a>(group: Group<'a>, thoughts: &Thoughts) -> Message<'a> {
    match group {
        Group::Said { text: said, images } if images.is_empty() => Message {
            role: "user",
            content: Content::Text(said.into()),
        },
        Group::Said { text: said, images } => {
            let blocks = images.into_iter().map(image).chain([text(said)]).collect();
            Message {
                role: "user",
                content: Content::Blocks(blocks),
            }
        }
        Group::Answered {
            text: said,
            calls: [],
        } => Message {
            role: "assistant",
            content: Content::Text(said.into()),
        },
        Group::Answered { text: said, calls } => {
            let before = thoughts
                .before(calls)
                .into_iter()
                .map(|thought| plain(Part::Thought(thought)));
            let said = (!said.is_empty()).then(|| text(said));
            let blocks = before
                .chain(said)
                .chain(calls.iter().map(tool_use))
                .collect();
            Message {
                role: "assistant",
                content: Content::Blocks(blocks),
            }
        }
        Group::Results(results) => {
            let blocks = results.into_iter().map(tool_result).collect();
            Message {
                role: "user",
                content: Content::Blocks(blocks),
            }
        }
    }
}

impl Message<'_> {
    /// Only a block can carry a mark.
    fn mark(&mut self) {
        if let Content::Text(said) = &mut self.content {
            self.content = Content::Blocks(vec![text(std::mem::take(said))]);
        }
        if let Content::Blocks(blocks) = &mut self.content
            && let Some(last) = blocks.last_mut()
        {
            last.cache_control = Some(MARK);
        }
    }
}

fn plain(part: Part<'_>) -> Block<'_> {
    Block {
        part,
        cache_control: None,
    }
}

fn text<'a>(text: impl Into<Cow<'a, str>>) -> Block<'a> {
    plain(Part::Other(OtherPart::Text { text: text.into() }))
}

fn image(image: &Image) -> Block<'_> {
    let source = Source {
        r#type: "base64",
        media_type: image.kind.media_type(),
        data: &image.data,
    };
    plain(Part::Other(OtherPart::Image { source }))
}

fn tool_use(call: &ToolCall) -> Block<'_> {
    plain(Part::Other(OtherPart::ToolUse {
        id: fitting_id(&call.id),
        name: &call.name,
        input: arguments(call),
    }))
}

fn tool_result(result: Outcome<'_>) -> Block<'_> {
    plain(Part::Other(OtherPart::ToolResult {
        content: result.content,
        tool_use_id: fitting_id(result.call_id),
    }))
}

/// Another provider may have made the id before Anthropic took over, and Anthropic takes only plain
/// ids.
fn fitting_id(id: &str) -> String {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() || letter == '-' {
            letter
        } else {
            '_'
        }
    };
    id.chars().map(plain).collect()
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Told<'a> {
    #[serde(deserialize_with = "lenient")]
    r#type: String,
    #[serde(deserialize_with = "lenient")]
    index: u64,
    #[serde(deserialize_with = "lenient")]
    message: Begun,
    #[serde(borrow, deserialize_with = "lenient")]
    content_block: ContentBlock<'a>,
    #[serde(deserialize_with = "lenient")]
    delta: Delta,
    #[serde(deserialize_with = "lenient")]
    usage: Counted,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Begun {
    #[serde(deserialize_with = "lenient")]
    usage: Counted,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ContentBlock<'a> {
    #[serde(deserialize_with = "lenient")]
    r#type: String,
    #[serde(deserialize_with = "lenient")]
    text: String,
    #[serde(deserialize_with = "lenient")]
    thinking: String,
    #[serde(deserialize_with = "lenient")]
    signature: String,
    #[serde(deserialize_with = "lenient")]
    data: String,
    #[serde(deserialize_with = "lenient")]
    id: String,
    #[serde(deserialize_with = "lenient")]
    name: String,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Delta {
    #[serde(deserialize_with = "lenient")]
    text: String,
    #[serde(deserialize_with = "lenient")]
    thinking: String,
    #[serde(deserialize_with = "lenient")]
    signature: String,
    #[serde(deserialize_with = "lenient")]
    partial_json: String,
    #[serde(deserialize_with = "lenient")]
    stop_reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Counted {
    #[serde(deserialize_with = "lenient")]
    input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    output_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    cache_creation_input_tokens: u64,
    #[serde(deserialize_with = "lenient")]
    cache_read_input_tokens: u64,
}

pub(super) fn take(event: &Event, answer: &mut Answer) -> Result<(), ModelError> {
    if event.data.trim() == DONE {
        return Ok(());
    }
    let told: Told<'_> = read(&event.data)?;
    let kind = if told.r#type.is_empty() {
        &event.name
    } else {
        &told.r#type
    };
    match kind.as_str() {
        "message_start" => count(&told.message.usage, answer),
        "content_block_start" => begin_block(told.index, told.content_block, answer)?,
        "content_block_delta" => take_delta(told.index, told.delta, answer)?,
        "message_delta" => {
            count(&told.usage, answer);
            if let Some(reason) = told.delta.stop_reason {
                answer.stop = Some(Stop::of(&reason));
            }
        }
        "message_stop" => answer.is_complete = true,
        "error" => return Err(of_error_event(&event.data)),
        _ => {}
    }
    Ok(())
}

fn begin_block(index: u64, block: ContentBlock<'_>, answer: &mut Answer) -> Result<(), ModelError> {
    match block.r#type.as_str() {
        "text" => answer.say(&block.text),
        "thinking" => answer.begin_thought(Thought::Thinking {
            thinking: block.thinking,
            signature: block.signature,
        }),
        "redacted_thinking" => answer.begin_thought(Thought::RedactedThinking { data: block.data }),
        "tool_use" => {
            let place = answer.begin_call(Some(index), &block.id, &block.name)?;
            // Anthropic begins with an empty object and sends pieces; others send all arguments
            // here.
            match Arguments::of(block.input) {
                Some(Arguments::Whole(empty))
                    if empty.chars().all(|letter| "{} \n".contains(letter)) =>
                {
                    Ok(())
                }
                input => answer.add_arguments(place, input),
            }
        }
        _ => Ok(()),
    }
}

fn take_delta(index: u64, delta: Delta, answer: &mut Answer) -> Result<(), ModelError> {
    answer.say(&delta.text)?;
    if !delta.thinking.is_empty() || !delta.signature.is_empty() {
        answer.add_to_thought(&delta.thinking, &delta.signature)?;
    }
    match answer.call_with_number(index) {
        Some(place) if !delta.partial_json.is_empty() => {
            answer.add_arguments(place, Some(Arguments::Piece(delta.partial_json)))
        }
        _ => Ok(()),
    }
}

/// Anthropic counts cached input apart from the other input. The end may repeat the numbers of the
/// beginning, or some of them.
fn count(counted: &Counted, answer: &mut Answer) {
    let cached = counted
        .cache_creation_input_tokens
        .saturating_add(counted.cache_read_input_tokens);
    if let Some(input) = counted.input_tokens {
        answer.usage.input_tokens = input.saturating_add(cached);
    }
    if let Some(output) = counted.output_tokens {
        answer.usage.output_tokens = output;
    }
    if cached > 0 {
        answer.usage.cached_tokens = counted.cache_read_input_tokens;
    }
}
