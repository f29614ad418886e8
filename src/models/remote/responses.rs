//! OpenAI's Responses API: <https://platform.openai.com/docs/api-reference/responses>.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::answer::{Answer, Stop};
use super::classify::of_error_event;
use super::events::Event;
use super::json::{Arguments, lenient, read};
use super::messages::{DataUrl, Group, Outcome, arguments, groups};
use super::request::{DONE, effort};
use crate::models::{ModelError, ModelRequest, Schema, ToolCall, ToolSpec, Usage};

/// Tools stand before messages: the beginning of a prompt that stays the same is cheaper.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    /// The server keeps nothing of the conversation.
    store: bool,
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Effort>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    input: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
}

#[derive(Serialize)]
struct Effort {
    effort: &'static str,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Schema,
}

/// People's words come without a type.
#[derive(Serialize)]
#[serde(untagged)]
enum Item<'a> {
    Said {
        role: &'static str,
        content: Content<'a>,
    },
    Typed(TypedItem<'a>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum TypedItem<'a> {
    Message {
        role: &'static str,
        content: [Part<'a>; 1],
    },
    FunctionCall {
        call_id: &'a str,
        name: &'a str,
        arguments: String,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: &'a str,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(String),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    InputText {
        text: String,
    },
    InputImage {
        detail: &'static str,
        image_url: DataUrl<'a>,
    },
    OutputText {
        text: &'a str,
    },
}

pub(super) fn body<'a>(
    model: &'a str,
    request: &'a ModelRequest,
    cache_key: Option<&'a str>,
) -> Body<'a> {
    let settings = request.settings;
    Body {
        store: false,
        model,
        stream: true,
        instructions: &request.system,
        reasoning: settings.reasoning.map(|reasoning| Effort {
            effort: effort(reasoning),
        }),
        tools: request.tools.iter().map(|offered| tool(offered)).collect(),
        input: groups(&request.messages).flat_map(items).collect(),
        temperature: settings.temperature,
        max_output_tokens: settings.max_tokens,
        prompt_cache_key: cache_key,
    }
}

fn tool(tool: &ToolSpec) -> Tool<'_> {
    Tool {
        r#type: "function",
        name: &tool.name,
        description: &tool.description,
        parameters: &tool.parameters,
    }
}

fn items(group: Group<'_>) -> Vec<Item<'_>> {
    match group {
        Group::Said { text, images } if images.is_empty() => vec![Item::Said {
            role: "user",
            content: Content::Text(text),
        }],
        Group::Said { text, images } => {
            let images = images.into_iter().map(|image| Part::InputImage {
                detail: "auto",
                image_url: DataUrl(image),
            });
            let parts = images.chain([Part::InputText { text }]).collect();
            vec![Item::Said {
                role: "user",
                content: Content::Parts(parts),
            }]
        }
        Group::Answered { text, calls } => {
            let message = || TypedItem::Message {
                role: "assistant",
                content: [Part::OutputText { text }],
            };
            let message = (!text.is_empty()).then(message);
            message
                .into_iter()
                .chain(calls.iter().map(call))
                .map(Item::Typed)
                .collect()
        }
        Group::Results(results) => results.into_iter().map(output).map(Item::Typed).collect(),
    }
}

fn call(call: &ToolCall) -> TypedItem<'_> {
    TypedItem::FunctionCall {
        call_id: &call.id,
        name: &call.name,
        arguments: arguments(call).to_string(),
    }
}

fn output<'a>(result: Outcome<'a>) -> TypedItem<'a> {
    TypedItem::FunctionCallOutput {
        call_id: result.call_id,
        output: result.content,
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Told<'a> {
    #[serde(deserialize_with = "lenient")]
    r#type: String,
    #[serde(deserialize_with = "lenient")]
    output_index: u64,
    #[serde(deserialize_with = "lenient")]
    delta: String,
    #[serde(borrow, deserialize_with = "lenient")]
    item: OutputItem<'a>,
    #[serde(borrow, deserialize_with = "lenient")]
    response: Response<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OutputItem<'a> {
    #[serde(deserialize_with = "lenient")]
    r#type: String,
    #[serde(deserialize_with = "lenient")]
    call_id: String,
    #[serde(deserialize_with = "lenient")]
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(deserialize_with = "lenient")]
    content: Vec<OutputText>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OutputText {
    #[serde(deserialize_with = "lenient")]
    text: String,
    #[serde(deserialize_with = "lenient")]
    refusal: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Response<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "lenient")]
    output: Vec<OutputItem<'a>>,
    #[serde(deserialize_with = "lenient")]
    incomplete_details: IncompleteDetails,
    #[serde(deserialize_with = "lenient")]
    usage: Counted,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct IncompleteDetails {
    #[serde(deserialize_with = "lenient")]
    reason: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Counted {
    #[serde(deserialize_with = "lenient")]
    input_tokens: u64,
    #[serde(deserialize_with = "lenient")]
    output_tokens: u64,
    #[serde(deserialize_with = "lenient")]
    input_tokens_details: InputDetails,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct InputDetails {
    #[serde(deserialize_with = "lenient")]
    cached_tokens: u64,
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
        "response.output_text.delta" | "response.refusal.delta" => answer.say(&told.delta),
        "response.reasoning_text.delta" | "response.reasoning_summary_text.delta" => {
            answer.think(&told.delta)
        }
        "response.output_item.added" if told.item.is_call() => answer
            .begin_call(Some(told.output_index), &told.item.call_id, &told.item.name)
            .map(|_| ()),
        "response.function_call_arguments.delta" => {
            match answer.call_with_number(told.output_index) {
                Some(place) => answer.add_arguments(place, Some(Arguments::Piece(told.delta))),
                None => Ok(()),
            }
        }
        "response.output_item.done" if told.item.is_call() => {
            end_call(&told.item, told.output_index, answer)
        }
        "response.completed" => end(told.response, Stop::Done, answer),
        "response.incomplete" => {
            // Servers that do not say why stopped at the longest answer.
            let reason = told.response.incomplete_details.reason.as_str();
            let stop = if reason == "content_filter" {
                Stop::Filtered
            } else {
                Stop::MaxTokens
            };
            end(told.response, stop, answer)
        }
        "response.failed" => Err(of_error_event(
            told.response.error.map_or("", RawValue::get),
        )),
        "error" => Err(of_error_event(&event.data)),
        _ => Ok(()),
    }
}

impl OutputItem<'_> {
    fn is_call(&self) -> bool {
        self.r#type == "function_call"
    }
}

/// The end of a call has all of its arguments; pieces before may be missing.
fn end_call(item: &OutputItem<'_>, number: u64, answer: &mut Answer) -> Result<(), ModelError> {
    let place = match answer.call_with_number(number) {
        Some(place) => place,
        None => answer.begin_call(Some(number), &item.call_id, &item.name)?,
    };
    match Arguments::of(item.arguments) {
        Some(Arguments::Piece(all)) if !all.is_empty() => answer.set_arguments(place, &all),
        Some(Arguments::Piece(_)) => Ok(()),
        other => answer.add_arguments(place, other),
    }
}

/// The last event repeats the answer, for servers that sent no pieces.
fn end(response: Response<'_>, stop: Stop, answer: &mut Answer) -> Result<(), ModelError> {
    if !answer.has_calls() {
        let calls = response.output.iter().filter(|item| item.is_call());
        (0..)
            .zip(calls)
            .try_for_each(|(number, item)| end_call(item, number, answer))?;
    }
    if !answer.has_text() {
        let texts = response
            .output
            .iter()
            .filter(|item| item.r#type == "message")
            .flat_map(|item| &item.content);
        texts
            .flat_map(|part| [&part.text, &part.refusal])
            .try_for_each(|text| answer.say(text))?;
    }
    let Counted {
        input_tokens,
        output_tokens,
        input_tokens_details,
    } = response.usage;
    answer.usage = Usage {
        input_tokens,
        output_tokens,
        cached_tokens: input_tokens_details.cached_tokens,
    };
    answer.stop = Some(stop);
    answer.is_complete = true;
    Ok(())
}
