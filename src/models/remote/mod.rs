//! Models behind an API: one adapter for all dialects, on top of `genai`. None of its types leave this folder and `classify`.

mod messages;
mod thinking;
mod thoughts;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use genai::adapter::AdapterKind;
use genai::chat::{
    ChatOptions, ChatStream, ChatStreamEvent, ContentPart, MessageContent, ReasoningEffort, StopReason, StreamEnd,
};
use genai::resolver::{AuthData, Endpoint};
use genai::{Headers, ModelIden, ServiceTarget};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::classify::classify;
use super::{Cut, ModelError, ModelEvent, ModelProvider, ModelRequest, ModelStream, ToolCall, Usage};
use crate::config::{ModelSettings, Provider, ProviderKind, Reasoning, Secret};
use crate::{http, open_files};

use messages::chat_request;
use thinking::Spoken;
use thoughts::Thoughts;

/// A server that sends not a single byte for so long has forgotten us.
const STALL: Duration = Duration::from_secs(120);

/// Stands in for a key where the server wants none but the adapter does.
const NO_KEY: &str = "none";

/// One provider of the config.
pub(super) struct Remote {
    provider: Provider,
    client: SharedClient,
    thoughts: Thoughts,
}

impl Remote {
    pub(super) fn new(provider: Provider, client: SharedClient) -> Self {
        Self { provider, client, thoughts: Thoughts::default() }
    }

    fn target(&self, model: &str) -> ServiceTarget {
        let key = self.provider.api_key.as_ref().map_or(NO_KEY, Secret::expose);
        ServiceTarget {
            endpoint: Endpoint::from_owned(self.provider.base_url.as_str()),
            auth: AuthData::from_single(key),
            model: ModelIden::new(adapter_kind(self.provider.kind), model),
        }
    }

    fn options(&self, request: &ModelRequest) -> ChatOptions {
        let options = ChatOptions::default()
            .with_capture_usage(true)
            .with_capture_tool_calls(true)
            .with_stream_header_timeout(STALL)
            .with_stream_read_timeout(STALL);
        let options = with_settings(options, self.provider.kind, request.settings);
        match (self.provider.kind, &self.provider.api_key) {
            (ProviderKind::OpenAi | ProviderKind::OpenAiResponses, _)
                if self.knows_cache_keys() && !request.cache_key.is_empty() =>
            {
                options.with_prompt_cache_key(&request.cache_key)
            }
            (ProviderKind::Anthropic, _) if request.settings.reasoning.is_some() => options.with_capture_reasoning_content(true),
            // genai sends Ollama no key, but one behind a proxy wants it.
            (ProviderKind::Ollama, Some(key)) => {
                options.with_extra_headers(Headers::from(("Authorization", format!("Bearer {}", key.expose()))))
            }
            _ => options,
        }
    }

    /// Others speak this dialect too, and some refuse a field they do not know.
    fn knows_cache_keys(&self) -> bool {
        self.provider.kind == ProviderKind::OpenAiResponses || self.provider.base_url.starts_with("https://api.openai.com/")
    }
}

#[async_trait]
impl ModelProvider for Remote {
    async fn stream(&self, model: &str, mut request: ModelRequest) -> Result<ModelStream, ModelError> {
        let kind = self.provider.kind;
        if kind == ProviderKind::Anthropic && self.thoughts.are_missing(&request.messages) {
            // It would refuse to think on where the thoughts before are gone, with a restart or because another thought them.
            request.settings.reasoning = None;
        }
        let target = self.target(model);
        let options = self.options(&request);
        let turn = self.client.turn().await;
        let max_tokens = request.settings.max_tokens;
        let response =
            self.client.get()?.exec_chat_stream(target, chat_request(kind, request, &self.thoughts), Some(&options)).await;
        let answer = response.map_err(|error| classify(&error))?.stream;
        let thoughts = self.thoughts.clone();
        Ok(events(Answering { kind, max_tokens, answer, spoken: Spoken::new(kind), thoughts, _turn: turn }))
    }
}

/// What the agent's config asks for; what it does not say is not sent.
fn with_settings(mut options: ChatOptions, kind: ProviderKind, settings: ModelSettings) -> ChatOptions {
    options.temperature = settings.temperature;
    options.max_tokens = settings.max_tokens;
    options.reasoning_effort = match (settings.reasoning, kind) {
        (Some(Reasoning::None), _) => Some(ReasoningEffort::Zero),
        (Some(Reasoning::Low), _) => Some(ReasoningEffort::Low),
        (Some(Reasoning::Medium), _) => Some(ReasoningEffort::Medium),
        (Some(Reasoning::High), _) => Some(ReasoningEffort::High),
        // genai reads a last `-max` or `-medium` in a model's name as an effort and cuts it off (`qwen-max`),
        // unless an effort is given. A budget is one that these dialects never send.
        (None, ProviderKind::OpenAi | ProviderKind::OpenAiResponses) => Some(ReasoningEffort::Budget(0)),
        (None, _) => None,
    };
    options
}

/// The client of all providers of one config.
#[derive(Clone)]
pub(super) struct SharedClient {
    /// Made when the first of them is asked.
    client: Arc<OnceLock<genai::Client>>,
    /// Calls that may be made at once. The others wait their turn.
    calls: Arc<Semaphore>,
}

impl Default for SharedClient {
    fn default() -> Self {
        SharedClient { client: Arc::default(), calls: Arc::new(Semaphore::new(open_files::shares().model_calls)) }
    }
}

impl SharedClient {
    async fn turn(&self) -> OwnedSemaphorePermit {
        self.calls.clone().acquire_owned().await.expect("it is never closed")
    }

    fn get(&self) -> Result<&genai::Client, ModelError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        // Redirects would carry the key to another server, in headers reqwest does not know as secret.
        let web = http::client_builder().redirect(reqwest::redirect::Policy::none()).build();
        let web = web.map_err(|_| ModelError::Broken("cannot set up HTTPS".to_owned()))?;
        let client = genai::Client::builder().with_reqwest(web).build();
        let client = client.map_err(|_| ModelError::Broken("cannot set up the model client".to_owned()))?;
        Ok(self.client.get_or_init(|| client))
    }
}

/// The events of one answer: text as it comes, then one `Done` or one error, then nothing.
fn events(answering: Answering) -> ModelStream {
    stream::unfold(Flow::Answering(Box::new(answering)), |flow| async {
        match flow {
            Flow::Answering(answering) => Some(answering.next().await),
            Flow::Ending(last) => Some((last, Flow::Over)),
            Flow::Over => None,
        }
    })
    .boxed()
}

/// How far an answer has come.
enum Flow {
    Answering(Box<Answering>),
    Ending(Result<ModelEvent, ModelError>),
    Over,
}

struct Answering {
    kind: ProviderKind,
    /// The most tokens that were asked for.
    max_tokens: Option<u32>,
    answer: ChatStream,
    spoken: Spoken,
    thoughts: Thoughts,
    /// Given back with the connection.
    _turn: OwnedSemaphorePermit,
}

impl Answering {
    async fn next(mut self: Box<Self>) -> (Result<ModelEvent, ModelError>, Flow) {
        let last = loop {
            match self.answer.next().await {
                Some(Ok(ChatStreamEvent::Chunk(chunk))) => {
                    if let Some(text) = self.spoken.take(chunk.content) {
                        return (Ok(ModelEvent::Text(text)), Flow::Answering(self));
                    }
                }
                Some(Ok(ChatStreamEvent::End(end))) => break self.finish(end),
                Some(Ok(ChatStreamEvent::ReasoningChunk(_) | ChatStreamEvent::ToolCallChunk(_))) => {
                    return (Ok(ModelEvent::Working), Flow::Answering(self));
                }
                // `Start` comes before anything was sent, and a heartbeat from a server that may do nothing else.
                Some(Ok(_)) => {}
                Some(Err(error)) => break Err(classify(&error)),
                None => break Err(ModelError::CutOff),
            }
        };
        match self.spoken.rest() {
            Some(text) => (Ok(ModelEvent::Text(text)), Flow::Ending(last)),
            None => (last, Flow::Over),
        }
    }

    fn finish(&self, mut end: StreamEnd) -> Result<ModelEvent, ModelError> {
        let kind = self.kind;
        if is_made_up(kind, &end) {
            return Err(ModelError::CutOff);
        }
        if let Some(StopReason::ContentFilter(_)) = end.captured_stop_reason {
            return Err(ModelError::Refused("the answer was stopped by the provider's content filter".to_owned()));
        }
        let usage = end.captured_usage.as_ref().map(usage).unwrap_or_default();
        let cut = cut(end.captured_stop_reason.as_ref(), self.max_tokens, usage);
        let parts = end.captured_content.take().map(MessageContent::into_parts).unwrap_or_default();
        let (calls, rest): (Vec<ContentPart>, Vec<ContentPart>) = parts.into_iter().partition(ContentPart::is_tool_call);
        let calls: Vec<_> = calls.into_iter().filter_map(ContentPart::into_tool_call).collect();
        let last = calls.len().saturating_sub(1);
        let may_be_cut = |number: usize| cut.is_some() && number == last;
        let calls = calls.into_iter().enumerate();
        let tool_calls: Vec<ToolCall> = calls.map(|(number, call)| tool_call(kind, call, may_be_cut(number))).collect();
        if kind == ProviderKind::Anthropic {
            self.thoughts.keep(&tool_calls, rest);
        }
        Ok(ModelEvent::Done { tool_calls, usage, cut })
    }
}

fn cut(reason: Option<&StopReason>, max_tokens: Option<u32>, usage: Usage) -> Option<Cut> {
    let Some(StopReason::MaxTokens(reason)) = reason else { return None };
    let is_window = FULL_WINDOWS.contains(&reason.as_str());
    let counted = Some(usage.output_tokens).filter(|tokens| *tokens > 0);
    Some(if is_window { Cut::WindowFull } else { Cut::AtTokens(max_tokens.map(u64::from).or(counted)) })
}

/// How providers say that it was the window, and not the length of the answer.
const FULL_WINDOWS: [&str; 2] = ["model_context_window_exceeded", "model_length"];

/// For some dialects genai ends a stream that just stopped as if it were whole. What the real last message always
/// brings is missing then.
fn is_made_up(kind: ProviderKind, end: &StreamEnd) -> bool {
    match kind {
        ProviderKind::OpenAi | ProviderKind::Anthropic => false,
        ProviderKind::OpenAiResponses | ProviderKind::Gemini => end.captured_stop_reason.is_none(),
        ProviderKind::Ollama => end.captured_usage.is_none(),
    }
}

fn usage(usage: &genai::chat::Usage) -> Usage {
    let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok()).unwrap_or(0);
    Usage {
        input_tokens: count(usage.prompt_tokens),
        output_tokens: count(usage.completion_tokens),
        cached_tokens: count(usage.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens)),
    }
}

/// The last call of an answer that was cut off may lack a part of its arguments, or all of them. A part of an object is never
/// an object, but genai also makes one of nothing for Anthropic.
fn tool_call(kind: ProviderKind, call: genai::chat::ToolCall, may_be_cut: bool) -> ToolCall {
    let id = if kind == ProviderKind::Gemini { distinct_id(call.call_id) } else { call.call_id };
    let is_made_up = |arguments: &Value| kind == ProviderKind::Anthropic && *arguments == json!({});
    let arguments = match call.fn_arguments {
        arguments if may_be_cut && is_made_up(&arguments) => Value::String(String::new()),
        Value::Null => json!({}),
        Value::String(text) if text.is_empty() && !may_be_cut => json!({}),
        arguments => arguments,
    };
    ToolCall { id, name: call.fn_name, arguments }
}

/// Gemini gives calls no id. genai numbers those of one message (`call#now#0`) and knows its own by that form, so
/// another number keeps them apart from the calls of other messages.
fn distinct_id(id: String) -> String {
    match id.rsplit_once('#') {
        Some((stem, _)) if stem.starts_with("call#") => format!("{stem}#{}", uuid::Uuid::new_v4().as_u64_pair().0),
        _ => id,
    }
}

fn adapter_kind(kind: ProviderKind) -> AdapterKind {
    match kind {
        ProviderKind::OpenAi => AdapterKind::OpenAI,
        ProviderKind::OpenAiResponses => AdapterKind::OpenAIResp,
        ProviderKind::Anthropic => AdapterKind::Anthropic,
        ProviderKind::Gemini => AdapterKind::Gemini,
        ProviderKind::Ollama => AdapterKind::Ollama,
    }
}
