//! Ollama's own API: <https://docs.ollama.com/api/chat>.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::answer::{Answer, Stop};
use super::classify::of_error_event;
use super::events::Event;
use super::json::{Arguments, lenient, read};
use super::messages::{Group, arguments, groups};
use super::request::effort;
use crate::config::Reasoning;
use crate::models::{ModelError, ModelRequest, Schema, ToolCall, ToolSpec, Usage};

#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Options>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Think>,
}

#[derive(Serialize, Default, PartialEq)]
struct Options {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u32>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Think {
    Not(bool),
    Level(&'static str),
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Schema,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
}

#[derive(Serialize)]
struct Call<'a> {
    function: Called<'a>,
}

#[derive(Serialize)]
struct Called<'a> {
    name: &'a str,
    arguments: Cow<'a, Value>,
}

pub(super) fn body<'a>(model: &'a str, request: &'a ModelRequest) -> Body<'a> {
    let settings = request.settings;
    let options = Options {
        temperature: settings.temperature,
        num_predict: settings.max_tokens,
    };
    let system = (!request.system.is_empty()).then(|| said("system", &*request.system));
    Body {
        model,
        stream: true,
        options: (options != Options::default()).then_some(options),
        tools: request
            .tools
            .iter()
            .map(|tool| Tool {
                r#type: "function",
                function: function(tool),
            })
            .collect(),
        messages: system
            .into_iter()
            .chain(groups(&request.messages).flat_map(messages))
            .collect(),
        think: settings.reasoning.map(|reasoning| match reasoning {
            Reasoning::None => Think::Not(false),
            reasoning => Think::Level(effort(reasoning)),
        }),
    }
}

fn function(tool: &ToolSpec) -> Function<'_> {
    Function {
        name: &tool.name,
        description: &tool.description,
        parameters: &tool.parameters,
    }
}

fn said<'a>(role: &'static str, text: impl Into<Cow<'a, str>>) -> Message<'a> {
    Message {
        role,
        content: Some(text.into()),
        images: Vec::new(),
        tool_calls: Vec::new(),
    }
}

/// Ollama's message holds one result only.
fn messages(group: Group<'_>) -> Vec<Message<'_>> {
    match group {
        Group::Said { text, images } => {
            let images = images.into_iter().map(|image| &*image.data).collect();
            vec![Message {
                images,
                ..said("user", text).without_empty()
            }]
        }
        Group::Answered { text, calls } => {
            let tool_calls = calls.iter().map(call).collect();
            vec![Message {
                tool_calls,
                ..said("assistant", text).without_empty()
            }]
        }
        Group::Results(results) => results
            .into_iter()
            .map(|result| said("tool", result.content))
            .collect(),
    }
}

impl Message<'_> {
    fn without_empty(self) -> Self {
        Message {
            content: self.content.filter(|content| !content.is_empty()),
            ..self
        }
    }
}

fn call(call: &ToolCall) -> Call<'_> {
    Call {
        function: Called {
            name: &call.name,
            arguments: arguments(call),
        },
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Line<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "lenient")]
    message: Part<'a>,
    #[serde(deserialize_with = "lenient")]
    done: bool,
    #[serde(deserialize_with = "lenient")]
    done_reason: String,
    #[serde(deserialize_with = "lenient")]
    prompt_eval_count: u64,
    #[serde(deserialize_with = "lenient")]
    prompt_eval_cached_count: u64,
    #[serde(deserialize_with = "lenient")]
    eval_count: u64,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Part<'a> {
    #[serde(deserialize_with = "lenient")]
    content: String,
    #[serde(deserialize_with = "lenient")]
    thinking: String,
    #[serde(deserialize_with = "lenient")]
    reasoning_content: String,
    #[serde(borrow, deserialize_with = "lenient")]
    tool_calls: Vec<WholeCall<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WholeCall<'a> {
    #[serde(deserialize_with = "lenient")]
    id: String,
    #[serde(borrow, deserialize_with = "lenient")]
    function: WholeFunction<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WholeFunction<'a> {
    #[serde(deserialize_with = "lenient")]
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

pub(super) fn take(event: &Event, answer: &mut Answer) -> Result<(), ModelError> {
    let line: Line<'_> = read(&event.data)?;
    if line.error.is_some() {
        return Err(of_error_event(&event.data));
    }
    answer.think(&line.message.thinking)?;
    answer.think(&line.message.reasoning_content)?;
    answer.say(&line.message.content)?;
    line.message
        .tool_calls
        .into_iter()
        .try_for_each(|call| take_call(call, answer))?;
    if line.done {
        answer.usage = Usage {
            input_tokens: line.prompt_eval_count,
            output_tokens: line.eval_count,
            cached_tokens: line.prompt_eval_cached_count,
        };
        answer.stop = Some(Stop::of(&line.done_reason));
        answer.is_complete = true;
    }
    Ok(())
}

/// Calls come whole.
fn take_call(call: WholeCall<'_>, answer: &mut Answer) -> Result<(), ModelError> {
    let WholeFunction { name, arguments } = call.function;
    let place = answer.begin_call(None, &call.id, &name)?;
    answer.add_arguments(
        place,
        Some(Arguments::of(arguments).unwrap_or(Arguments::Whole("{}"))),
    )
}
