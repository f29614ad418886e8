//! Models behind an API: one adapter for all dialects, on top of `genai`. None of its types leave this file and `classify`.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use genai::adapter::AdapterKind;
use genai::chat::{
    CacheControl, ChatMessage, ChatOptions, ChatRequest, ChatRole, ChatStream, ChatStreamEvent, ContentPart, MessageContent,
    ReasoningEffort, StopReason, StreamEnd, Tool, ToolResponse,
};
use genai::resolver::{AuthData, Endpoint};
use genai::{Headers, ModelIden, ServiceTarget};
use serde_json::{Value, json};

use super::classify::classify;
use super::{ModelError, ModelEvent, ModelMessage, ModelProvider, ModelRequest, ModelStream, ToolCall, ToolSpec, Usage};
use crate::config::{Provider, ProviderKind, Secret};
use crate::http;

/// A server that sends not a single byte for so long has forgotten us.
const STALL: Duration = Duration::from_secs(120);

/// Stands in for a key where the server wants none but the adapter does.
const NO_KEY: &str = "none";

/// One provider of the config.
pub(super) struct Remote {
    provider: Provider,
    client: SharedClient,
}

impl Remote {
    pub(super) fn new(provider: Provider, client: SharedClient) -> Self {
        Self { provider, client }
    }

    fn target(&self, model: &str) -> ServiceTarget {
        let key = self.provider.api_key.as_ref().map_or(NO_KEY, Secret::expose);
        ServiceTarget {
            endpoint: Endpoint::from_owned(self.provider.base_url.as_str()),
            auth: AuthData::from_single(key),
            model: ModelIden::new(adapter_kind(self.provider.kind), model),
        }
    }

    fn options(&self) -> ChatOptions {
        let options = ChatOptions::default()
            .with_capture_usage(true)
            .with_capture_tool_calls(true)
            .with_stream_header_timeout(STALL)
            .with_stream_read_timeout(STALL);
        match (self.provider.kind, &self.provider.api_key) {
            // genai reads a last `-max` or `-medium` in a model's name as an effort and cuts it off (`qwen-max`),
            // unless an effort is given. A budget is one that these dialects never send.
            (ProviderKind::OpenAi | ProviderKind::OpenAiResponses, _) => {
                options.with_reasoning_effort(ReasoningEffort::Budget(0))
            }
            // The prompt and the tools are the same in every step of a turn.
            (ProviderKind::Anthropic, _) => options.with_cache_control(CacheControl::Ephemeral),
            // genai sends Ollama no key, but one behind a proxy wants it.
            (ProviderKind::Ollama, Some(key)) => {
                options.with_extra_headers(Headers::from(("Authorization", format!("Bearer {}", key.expose()))))
            }
            (ProviderKind::Gemini | ProviderKind::Ollama, _) => options,
        }
    }
}

#[async_trait]
impl ModelProvider for Remote {
    async fn stream(&self, model: &str, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let kind = self.provider.kind;
        let target = self.target(model);
        let response = self.client.get()?.exec_chat_stream(target, chat_request(kind, request), Some(&self.options())).await;
        Ok(events(kind, response.map_err(|error| classify(&error))?.stream))
    }
}

/// The client of all providers of one config, made when the first of them is asked.
#[derive(Clone, Default)]
pub(super) struct SharedClient(Arc<OnceLock<genai::Client>>);

impl SharedClient {
    fn get(&self) -> Result<&genai::Client, ModelError> {
        if let Some(client) = self.0.get() {
            return Ok(client);
        }
        // Redirects would carry the key to another server, in headers reqwest does not know as secret.
        let web = http::client_builder().redirect(reqwest::redirect::Policy::none()).build();
        let web = web.map_err(|_| ModelError::Broken("cannot set up HTTPS".to_owned()))?;
        let client = genai::Client::builder().with_reqwest(web).build();
        let client = client.map_err(|_| ModelError::Broken("cannot set up the model client".to_owned()))?;
        Ok(self.0.get_or_init(|| client))
    }
}

/// The events of one answer: text as it comes, then one `Done` or one error, then nothing.
fn events(kind: ProviderKind, answer: ChatStream) -> ModelStream {
    stream::unfold(Some(answer), move |state| async move {
        let mut answer = state?;
        let last = loop {
            match answer.next().await {
                Some(Ok(ChatStreamEvent::Chunk(chunk))) if !chunk.content.is_empty() => {
                    return Some((Ok(ModelEvent::Text(chunk.content)), Some(answer)));
                }
                Some(Ok(ChatStreamEvent::End(end))) => break finish(kind, end),
                // `Start` comes before anything was sent, so it says nothing about the server.
                Some(Ok(_)) => {}
                Some(Err(error)) => break Err(classify(&error)),
                None => break Err(ModelError::CutOff),
            }
        };
        Some((last, None))
    })
    .boxed()
}

fn finish(kind: ProviderKind, end: StreamEnd) -> Result<ModelEvent, ModelError> {
    if is_made_up(kind, &end) {
        return Err(ModelError::CutOff);
    }
    if let Some(StopReason::ContentFilter(_)) = end.captured_stop_reason {
        return Err(ModelError::Refused("the answer was stopped by the provider's content filter".to_owned()));
    }
    let usage = end.captured_usage.as_ref().map(usage).unwrap_or_default();
    let tool_calls = end.captured_into_tool_calls().unwrap_or_default();
    Ok(ModelEvent::Done { tool_calls: tool_calls.into_iter().map(|call| tool_call(kind, call)).collect(), usage })
}

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

fn tool_call(kind: ProviderKind, call: genai::chat::ToolCall) -> ToolCall {
    let id = if kind == ProviderKind::Gemini { distinct_id(call.call_id) } else { call.call_id };
    let arguments = match call.fn_arguments {
        Value::Null => json!({}),
        Value::String(text) if text.is_empty() => json!({}),
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

fn chat_request(kind: ProviderKind, request: ModelRequest) -> ChatRequest {
    let chat = ChatRequest::from_messages(chat_messages(kind, &request.messages));
    let chat = if request.system.is_empty() { chat } else { chat.with_system(request.system) };
    if request.tools.is_empty() { chat } else { chat.with_tools(request.tools.into_iter().map(tool)) }
}

fn chat_messages(kind: ProviderKind, messages: &[ModelMessage]) -> Vec<ChatMessage> {
    messages.chunk_by(|one, next| belong_together(kind, one, next)).filter_map(chat_message).collect()
}

fn belong_together(kind: ProviderKind, one: &ModelMessage, next: &ModelMessage) -> bool {
    match (one, next) {
        // Servers with strict chat templates refuse two user messages in a row.
        (ModelMessage::User(_), ModelMessage::User(_)) => true,
        // Anthropic wants the results of one step in one message; genai's Ollama message holds only one.
        (ModelMessage::ToolResult { .. }, ModelMessage::ToolResult { .. }) => kind != ProviderKind::Ollama,
        _ => false,
    }
}

/// An assistant message that is empty is left out: providers refuse it.
fn chat_message(group: &[ModelMessage]) -> Option<ChatMessage> {
    let role = match group.first()? {
        ModelMessage::User(_) => ChatRole::User,
        ModelMessage::Assistant { .. } => ChatRole::Assistant,
        ModelMessage::ToolResult { .. } => ChatRole::Tool,
    };
    let parts: Vec<ContentPart> = match role {
        ChatRole::User => vec![ContentPart::Text(joined(group))],
        _ => group.iter().flat_map(parts).collect(),
    };
    (!parts.is_empty()).then(|| ChatMessage::new(role, MessageContent::from_parts(parts)))
}

/// As one text, because not every server takes a list of them.
fn joined(group: &[ModelMessage]) -> String {
    let texts = group.iter().filter_map(|message| match message {
        ModelMessage::User(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

fn parts(message: &ModelMessage) -> Vec<ContentPart> {
    match message {
        ModelMessage::User(text) => vec![ContentPart::Text(text.clone())],
        ModelMessage::Assistant { text, tool_calls } => {
            let text = (!text.is_empty()).then(|| ContentPart::Text(text.clone()));
            text.into_iter().chain(tool_calls.iter().map(call_part)).collect()
        }
        ModelMessage::ToolResult { call_id, content } => {
            vec![ContentPart::ToolResponse(ToolResponse::new(call_id, content))]
        }
    }
}

fn call_part(call: &ToolCall) -> ContentPart {
    // Arguments that were not an object were refused when they came; sent back, they would spoil the whole request.
    let arguments = if call.arguments.is_object() { call.arguments.clone() } else { json!({}) };
    ContentPart::ToolCall(genai::chat::ToolCall {
        call_id: call.id.clone(),
        fn_name: call.name.clone(),
        fn_arguments: arguments,
        thought_signatures: None,
    })
}

fn tool(spec: ToolSpec) -> Tool {
    Tool::new(spec.name).with_description(spec.description).with_schema(spec.parameters)
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
