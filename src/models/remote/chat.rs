//! OpenAI's chat completions, spoken by most servers:
//! <https://platform.openai.com/docs/api-reference/chat>.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::answer::{Answer, Place, Stop};
use super::classify::of_error_event;
use super::events::Event;
use super::json::{Arguments, lenient, read};
use super::messages::{DataUrl, Group, arguments, groups};
use super::request::{DONE, effort};
use crate::models::{ModelError, ModelRequest, Schema, ToolCall, ToolSpec, Usage};

/// Beginnings of names of models that know the longest answer by its newer name only.
const NEWER_MODELS: [&str; 5] = ["gpt-5", "gpt-6", "o1", "o3", "o4"];

/// Tools stand before messages: the beginning of a prompt that stays the same is cheaper.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<Message<'a>>,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
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
    strict: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: &'a str,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        content: &'a str,
        tool_call_id: &'a str,
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
    Text { text: String },
    ImageUrl { image_url: ImageUrl<'a> },
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: DataUrl<'a>,
}

#[derive(Serialize)]
struct Call<'a> {
    r#type: &'static str,
    id: &'a str,
    function: Called<'a>,
}

#[derive(Serialize)]
struct Called<'a> {
    name: &'a str,
    /// An object, as text.
    arguments: String,
}

pub(super) fn body<'a>(
    model: &'a str,
    request: &'a ModelRequest,
    cache_key: Option<&'a str>,
) -> Body<'a> {
    let system = (!request.system.is_empty()).then_some(Message::System {
        content: &request.system,
    });
    let settings = request.settings;
    let is_newer = NEWER_MODELS.iter().any(|newer| model.starts_with(newer));
    Body {
        model,
        stream: true,
        reasoning_effort: settings.reasoning.map(effort),
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
        stream_options: StreamOptions {
            include_usage: true,
        },
        temperature: settings.temperature,
        max_tokens: settings.max_tokens.filter(|_| !is_newer),
        max_completion_tokens: settings.max_tokens.filter(|_| is_newer),
        prompt_cache_key: cache_key,
    }
}

fn function(tool: &ToolSpec) -> Function<'_> {
    Function {
        name: &tool.name,
        description: &tool.description,
        parameters: &tool.parameters,
        strict: false,
    }
}

fn messages(group: Group<'_>) -> Vec<Message<'_>> {
    match group {
        Group::Said { text, images } if images.is_empty() => vec![Message::User {
            content: Content::Text(text),
        }],
        Group::Said { text, images } => {
            let images = images.into_iter().map(|image| Part::ImageUrl {
                image_url: ImageUrl {
                    url: DataUrl(image),
                },
            });
            vec![Message::User {
                content: Content::Parts(images.chain([Part::Text { text }]).collect()),
            }]
        }
        Group::Answered { text, calls } => {
            vec![Message::Assistant {
                content: text,
                tool_calls: calls.iter().map(call).collect(),
            }]
        }
        Group::Results(results) => results
            .into_iter()
            .map(|result| Message::Tool {
                content: result.content,
                tool_call_id: result.call_id,
            })
            .collect(),
    }
}

fn call(call: &ToolCall) -> Call<'_> {
    let function = Called {
        name: &call.name,
        arguments: arguments(call).to_string(),
    };
    Call {
        r#type: "function",
        id: &call.id,
        function,
    }
}

/// A piece of text and nothing else, as most chunks are. Read at one go: [`Chunk`] reads each level
/// of the JSON anew, to put up with odd values.
#[derive(Deserialize)]
struct Plain<'a> {
    #[serde(borrow)]
    choices: [PlainChoice<'a>; 1],
    error: Option<IgnoredAny>,
    usage: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct PlainChoice<'a> {
    #[serde(borrow)]
    delta: PlainDelta<'a>,
    finish_reason: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct PlainDelta<'a> {
    #[serde(borrow)]
    content: Cow<'a, str>,
    refusal: Option<IgnoredAny>,
    reasoning_content: Option<IgnoredAny>,
    reasoning: Option<IgnoredAny>,
    tool_calls: Option<IgnoredAny>,
}

/// The text of a chunk with nothing else of interest.
fn plain_text(data: &str) -> Option<Cow<'_, str>> {
    match serde_json::from_str(data).ok()? {
        Plain {
            choices:
                [
                    PlainChoice {
                        delta:
                            PlainDelta {
                                content,
                                refusal: None,
                                reasoning_content: None,
                                reasoning: None,
                                tool_calls: None,
                            },
                        finish_reason: None,
                    },
                ],
            error: None,
            usage: None,
        } => Some(content),
        _ => None,
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Chunk<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "lenient")]
    choices: Vec<Choice<'a>>,
    #[serde(deserialize_with = "lenient")]
    usage: Option<Counted>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Choice<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    delta: Option<Delta<'a>>,
    /// The whole message, from servers that do not stream. Others send it beside each piece.
    #[serde(borrow, deserialize_with = "lenient")]
    message: Option<Delta<'a>>,
    #[serde(deserialize_with = "lenient")]
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(deserialize_with = "lenient")]
    refusal: String,
    #[serde(deserialize_with = "lenient")]
    reasoning_content: String,
    #[serde(deserialize_with = "lenient")]
    reasoning: String,
    #[serde(borrow, deserialize_with = "lenient")]
    tool_calls: Vec<CallDelta<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CallDelta<'a> {
    #[serde(deserialize_with = "lenient")]
    index: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    id: String,
    #[serde(borrow, deserialize_with = "lenient")]
    function: FunctionDelta<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FunctionDelta<'a> {
    #[serde(deserialize_with = "lenient")]
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Mistral's models that think send their content as a list.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ContentPart<'a> {
    #[serde(deserialize_with = "lenient")]
    text: String,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Counted {
    #[serde(deserialize_with = "lenient")]
    prompt_tokens: u64,
    #[serde(deserialize_with = "lenient")]
    completion_tokens: u64,
    #[serde(deserialize_with = "lenient")]
    prompt_tokens_details: PromptDetails,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PromptDetails {
    #[serde(deserialize_with = "lenient")]
    cached_tokens: u64,
}

pub(super) fn take(event: &Event, answer: &mut Answer) -> Result<(), ModelError> {
    if event.data.trim() == DONE {
        answer.is_complete = true;
        return Ok(());
    }
    if event.name == "error" {
        return Err(of_error_event(&event.data));
    }
    if let Some(text) = plain_text(&event.data) {
        return answer.say(&text);
    }
    let chunk: Chunk<'_> = read(&event.data)?;
    if let Some(error) = chunk.error {
        return Err(of_error_event(error.get()));
    }
    if let Some(usage) = chunk.usage {
        answer.usage = Usage {
            input_tokens: usage.prompt_tokens,
            output_tokens: usage.completion_tokens,
            cached_tokens: usage.prompt_tokens_details.cached_tokens,
        };
    }
    let Some(choice) = chunk.choices.into_iter().next() else {
        return Ok(());
    };
    let is_first = !answer.has_text() && !answer.has_calls();
    if let Some(delta) = choice.delta.or(choice.message.filter(|_| is_first)) {
        take_delta(delta, answer)?;
    }
    if let Some(reason) = choice.finish_reason {
        answer.stop = Some(Stop::of(&reason));
    }
    Ok(())
}

fn take_delta(delta: Delta<'_>, answer: &mut Answer) -> Result<(), ModelError> {
    answer.think(&delta.reasoning_content)?;
    // Some servers repeat the thought under a second name.
    if delta.reasoning_content.is_empty() {
        answer.think(&delta.reasoning)?;
    }
    if let Some(content) = delta.content {
        take_content(content, answer)?;
    }
    answer.say(&delta.refusal)?;
    delta
        .tool_calls
        .into_iter()
        .try_for_each(|call| take_call(call, answer))
}

/// A text, or a list of texts and thoughts.
fn take_content(content: &RawValue, answer: &mut Answer) -> Result<(), ModelError> {
    if let Ok(text) = serde_json::from_str::<String>(content.get()) {
        return answer.say(&text);
    }
    let parts: Vec<ContentPart<'_>> = serde_json::from_str(content.get()).unwrap_or_default();
    parts.into_iter().try_for_each(|part| match part.thinking {
        Some(thought) => take_thought(thought, answer),
        None => answer.say(&part.text),
    })
}

fn take_thought(thought: &RawValue, answer: &mut Answer) -> Result<(), ModelError> {
    if let Ok(text) = serde_json::from_str::<String>(thought.get()) {
        return answer.think(&text);
    }
    let parts: Vec<ContentPart<'_>> = serde_json::from_str(thought.get()).unwrap_or_default();
    parts
        .into_iter()
        .try_for_each(|part| answer.think(&part.text))
}

fn take_call(delta: CallDelta<'_>, answer: &mut Answer) -> Result<(), ModelError> {
    let FunctionDelta { name, arguments } = delta.function;
    let place = match continued(delta.index, &delta.id, &name, answer) {
        Some(place) => {
            let keeps_id = name.is_empty() && !answer.id_of(place).is_empty();
            let id = if keeps_id { "" } else { &delta.id };
            answer.name_call(place, id, &name)?;
            place
        }
        None => answer.begin_call(delta.index, &delta.id, &name)?,
    };
    answer.add_arguments(place, Arguments::of(arguments))
}

/// The call that a piece belongs to; `None` for the first piece of a call. Some servers give all
/// calls the same number, others no number, and others a new id with each piece.
fn continued(index: Option<u64>, id: &str, name: &str, answer: &Answer) -> Option<Place> {
    let begun = match index {
        Some(index) => answer.call_with_number(index)?,
        None => answer.last_call()?,
    };
    let known_id = answer.id_of(begun);
    let is_other = !id.is_empty() && !known_id.is_empty() && id != known_id;
    let begins = match index {
        Some(_) => is_other && !name.is_empty(),
        None => !name.is_empty() && (id.is_empty() || is_other),
    };
    (!begins).then_some(begun)
}

#[cfg(test)]
mod tests {
    use super::plain_text;

    #[test]
    fn only_a_piece_of_text_is_read_at_one_go() {
        let check = |choice: &str, besides: &str, expected: Option<&str>| {
            let chunk = format!(r#"{{"id":"c1","choices":[{choice}]{besides}}}"#);
            assert_eq!(plain_text(&chunk).as_deref(), expected, "{chunk}");
        };
        let text =
            r#"{"index":0,"delta":{"role":"assistant","content":"a \"b\""},"finish_reason":null}"#;
        check(text, "", Some("a \"b\""));
        check(text, r#","usage":null,"error":null"#, Some("a \"b\""));
        check(text, r#","usage":{"prompt_tokens":1}"#, None);
        check(text, r#","error":{"code":503}"#, None);
        check(&format!("{text},{text}"), "", None);
        for more in [
            r#"{"delta":{"content":"a"},"finish_reason":"stop"}"#,
            r#"{"delta":{"content":"a","refusal":"b"}}"#,
            r#"{"delta":{"content":"a","reasoning":"b"}}"#,
            r#"{"delta":{"content":"a","reasoning_content":"b"}}"#,
            r#"{"delta":{"content":"a","tool_calls":[]}}"#,
            r#"{"delta":{"content":[{"text":"a"}]}}"#,
            r#"{"delta":{"content":null}}"#,
            r#"{"message":{"content":"a"}}"#,
        ] {
            check(more, "", None);
        }
        assert_eq!(plain_text("[DONE]"), None);
    }
}
