//! Google's Gemini API: <https://ai.google.dev/api/generate-content>.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::answer::{Answer, Stop};
use super::classify::of_error_event;
use super::events::Event;
use super::json::{Arguments, lenient, read};
use super::messages::{Group, Outcome, arguments, groups};
use super::request::DONE;
use crate::config::Reasoning;
use crate::models::{Image, ModelError, ModelRequest, Schema, ToolCall, ToolSpec, Usage};

/// Tokens to think with, for models that want a number.
const LOW_BUDGET: u32 = 1_000;
const MEDIUM_BUDGET: u32 = 8_000;
const HIGH_BUDGET: u32 = 24_000;
/// Parts of names of models that want a word.
const LEVEL_MODELS: [&str; 2] = ["gemini-3", "gemma-4"];

/// Gemini 3 wants a signature with the first call of a message, and takes this where there is none:
/// <https://ai.google.dev/gemini-api/docs/thought-signatures>.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tools<'a>>,
    contents: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<GenerationConfig>,
}

#[derive(Serialize)]
struct Instruction<'a> {
    parts: [Part<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Function<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a Schema,
}

#[derive(Serialize, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
}

#[derive(Serialize, PartialEq)]
#[serde(rename_all = "camelCase")]
enum ThinkingConfig {
    ThinkingLevel(&'static str),
    ThinkingBudget(u32),
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    parts: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Part<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        inline_data: InlineData<'a>,
    },
    #[serde(rename_all = "camelCase")]
    Call {
        function_call: Call<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'static str>,
    },
    #[serde(rename_all = "camelCase")]
    Result {
        function_response: Response<'a>,
    },
}

#[derive(Serialize)]
struct InlineData<'a> {
    mime_type: &'static str,
    data: &'a str,
}

#[derive(Serialize)]
struct Call<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    args: Cow<'a, Value>,
}

#[derive(Serialize)]
struct Response<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    response: ResponseContent<'a>,
}

#[derive(Serialize)]
struct ResponseContent<'a> {
    name: &'a str,
    content: &'a str,
}

pub(super) fn body<'a>(model: &str, request: &'a ModelRequest) -> Body<'a> {
    let settings = request.settings;
    let config = GenerationConfig {
        thinking_config: settings
            .reasoning
            .and_then(|reasoning| thinking(model, reasoning)),
        temperature: settings.temperature,
        max_output_tokens: settings.max_tokens,
    };
    let functions: Vec<Function<'_>> = request
        .tools
        .iter()
        .map(|offered| function(offered))
        .collect();
    let tools = (!functions.is_empty()).then_some(Tools {
        function_declarations: functions,
    });
    let system = || Instruction {
        parts: [Part::Text {
            text: (*request.system).into(),
        }],
    };
    Body {
        system_instruction: (!request.system.is_empty()).then(system),
        tools: tools.into_iter().collect(),
        contents: contents(model, request),
        generation_config: (config != GenerationConfig::default()).then_some(config),
    }
}

fn thinking(model: &str, reasoning: Reasoning) -> Option<ThinkingConfig> {
    let (level, budget) = match reasoning {
        // Not every model can be kept from thinking.
        Reasoning::None => return None,
        Reasoning::Low => ("LOW", LOW_BUDGET),
        Reasoning::Medium => ("MEDIUM", MEDIUM_BUDGET),
        Reasoning::High => ("HIGH", HIGH_BUDGET),
    };
    let wants_level = LEVEL_MODELS.iter().any(|part| model.contains(part));
    Some(if wants_level {
        ThinkingConfig::ThinkingLevel(level)
    } else {
        ThinkingConfig::ThinkingBudget(budget)
    })
}

fn function(tool: &ToolSpec) -> Function<'_> {
    Function {
        name: &tool.name,
        description: &tool.description,
        parameters_json_schema: &tool.parameters,
    }
}

fn contents<'a>(model: &str, request: &'a ModelRequest) -> Vec<Message<'a>> {
    let wants_signature = model.contains("gemini-3");
    // Results name their tool, not only the call.
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut messages = Vec::new();
    for group in groups(&request.messages) {
        if let Group::Answered { calls, .. } = &group {
            names.extend(
                calls
                    .iter()
                    .map(|call| (call.id.as_str(), call.name.as_str())),
            );
        }
        messages.push(message(group, wants_signature, &names));
    }
    messages
}

fn message<'a>(
    group: Group<'a>,
    wants_signature: bool,
    names: &HashMap<&'a str, &'a str>,
) -> Message<'a> {
    match group {
        Group::Said { text, images } => {
            let parts = images
                .into_iter()
                .map(image)
                .chain([Part::Text { text: text.into() }])
                .collect();
            Message {
                role: "user",
                parts,
            }
        }
        Group::Answered { text, calls } => {
            let text = (!text.is_empty()).then(|| Part::Text { text: text.into() });
            let signature =
                |number: usize| (wants_signature && number == 0).then_some(NO_SIGNATURE);
            let calls = calls
                .iter()
                .enumerate()
                .map(|(number, one)| call(one, signature(number)));
            Message {
                role: "model",
                parts: text.into_iter().chain(calls).collect(),
            }
        }
        Group::Results(results) => Message {
            role: "user",
            parts: results
                .into_iter()
                .map(|result| response(result, names))
                .collect(),
        },
    }
}

fn image(image: &Image) -> Part<'_> {
    Part::Image {
        inline_data: InlineData {
            mime_type: image.kind.media_type(),
            data: &image.data,
        },
    }
}

fn call<'a>(call: &'a ToolCall, thought_signature: Option<&'static str>) -> Part<'a> {
    let id =
        (!call.id.is_empty() && name_in_stand_in(&call.id).is_none()).then_some(call.id.as_str());
    Part::Call {
        function_call: Call {
            id,
            name: &call.name,
            args: arguments(call),
        },
        thought_signature,
    }
}

/// Gemini refuses a result with the id of a call and the name of another tool.
fn response<'a>(result: Outcome<'a>, names: &HashMap<&'a str, &'a str>) -> Part<'a> {
    let known = names.get(result.call_id).copied();
    let stand_in = name_in_stand_in(result.call_id);
    let name = known.or(stand_in).unwrap_or(result.call_id);
    let id = (known.is_some() && stand_in.is_none()).then_some(result.call_id);
    let response = ResponseContent {
        name,
        content: result.content,
    };
    Part::Result {
        function_response: Response { id, name, response },
    }
}

/// Gemini gives most calls no id. This is theirs on our side, and never sent.
fn stand_in(name: &str) -> String {
    format!("call#{name}#{}", uuid::Uuid::new_v4().as_u64_pair().0)
}

fn name_in_stand_in(id: &str) -> Option<&str> {
    let (name, number) = id.strip_prefix("call#")?.rsplit_once('#')?;
    (!name.is_empty() && number.parse::<u64>().is_ok()).then_some(name)
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "lenient")]
    candidates: Vec<Candidate<'a>>,
    #[serde(borrow)]
    prompt_feedback: Option<&'a RawValue>,
    #[serde(deserialize_with = "lenient")]
    usage_metadata: Option<Counted>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    content: CandidateContent<'a>,
    #[serde(deserialize_with = "lenient")]
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CandidateContent<'a> {
    #[serde(borrow, deserialize_with = "lenient")]
    parts: Vec<CandidatePart<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct CandidatePart<'a> {
    #[serde(deserialize_with = "lenient")]
    text: String,
    #[serde(deserialize_with = "lenient")]
    thought: bool,
    #[serde(borrow, deserialize_with = "lenient")]
    function_call: Option<FunctionCall<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FunctionCall<'a> {
    #[serde(deserialize_with = "lenient")]
    id: String,
    #[serde(deserialize_with = "lenient")]
    name: String,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Counted {
    #[serde(deserialize_with = "lenient")]
    prompt_token_count: u64,
    #[serde(deserialize_with = "lenient")]
    tool_use_prompt_token_count: u64,
    #[serde(deserialize_with = "lenient")]
    cached_content_token_count: u64,
    #[serde(deserialize_with = "lenient")]
    candidates_token_count: u64,
    #[serde(deserialize_with = "lenient")]
    thoughts_token_count: u64,
}

pub(super) fn take(event: &Event, answer: &mut Answer) -> Result<(), ModelError> {
    if event.data.trim() == DONE {
        return Ok(());
    }
    let chunk: Chunk<'_> = read(&event.data)?;
    if chunk.error.is_some() {
        return Err(of_error_event(&event.data));
    }
    if let Some(counted) = chunk.usage_metadata {
        answer.usage = Usage {
            input_tokens: counted
                .prompt_token_count
                .saturating_add(counted.tool_use_prompt_token_count),
            output_tokens: counted
                .candidates_token_count
                .saturating_add(counted.thoughts_token_count),
            cached_tokens: counted.cached_content_token_count,
        };
    }
    match chunk.candidates.into_iter().next() {
        Some(candidate) => take_candidate(candidate, answer),
        // The prompt was blocked.
        None if chunk.prompt_feedback.is_some() => Err(ModelError::Refused(
            "no answer was given to this prompt".to_owned(),
        )),
        None => Ok(()),
    }
}

/// The reason to stop comes last in a stream.
fn take_candidate(candidate: Candidate<'_>, answer: &mut Answer) -> Result<(), ModelError> {
    candidate
        .content
        .parts
        .into_iter()
        .try_for_each(|part| take_part(part, answer))?;
    if let Some(reason) = candidate.finish_reason {
        answer.stop = Some(Stop::of(&reason));
        answer.is_complete = true;
    }
    Ok(())
}

fn take_part(part: CandidatePart<'_>, answer: &mut Answer) -> Result<(), ModelError> {
    match part.function_call {
        Some(FunctionCall { id, name, args }) => {
            let id = if id.is_empty() { stand_in(&name) } else { id };
            let place = answer.begin_call(None, &id, &name)?;
            answer.add_arguments(
                place,
                Some(Arguments::of(args).unwrap_or(Arguments::Whole("{}"))),
            )
        }
        None if part.thought => answer.think(&part.text),
        None => answer.say(&part.text),
    }
}
