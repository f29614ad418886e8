//! A conversation in genai's words, with what each dialect needs.

use genai::chat::{Binary, CacheControl, ChatMessage, ChatRequest, ChatRole, ContentPart, MessageContent, Tool, ToolResponse};
use serde_json::json;

use super::thoughts::Thoughts;
use crate::config::ProviderKind;
use crate::models::{Content, Image, ModelMessage, ModelRequest, ToolCall, ToolSpec};

pub(super) fn chat_request(kind: ProviderKind, request: ModelRequest, thoughts: &Thoughts) -> ChatRequest {
    let messages = chat_messages(kind, &request.messages, thoughts);
    let chat = match kind {
        ProviderKind::Anthropic => ChatRequest::from_messages(with_marks(&request.system, messages)),
        _ if request.system.is_empty() => ChatRequest::from_messages(messages),
        _ => ChatRequest::from_messages(messages).with_system(request.system),
    };
    if request.tools.is_empty() { chat } else { chat.with_tools(request.tools.into_iter().map(tool)) }
}

/// Anthropic keeps what stands before a mark: the tools and the prompt for all turns, the talk so far for the next step.
fn with_marks(system: &str, mut messages: Vec<ChatMessage>) -> Vec<ChatMessage> {
    if let Some(last) = messages.pop() {
        messages.push(last.with_options(CacheControl::Ephemeral));
    }
    if !system.is_empty() {
        messages.insert(0, ChatMessage::system(system).with_options(CacheControl::Ephemeral));
    }
    messages
}

fn chat_messages(kind: ProviderKind, messages: &[ModelMessage], thoughts: &Thoughts) -> Vec<ChatMessage> {
    messages
        .chunk_by(|one, next| belong_together(kind, one, next))
        .filter_map(|group| chat_message(kind, group, thoughts))
        .collect()
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
fn chat_message(kind: ProviderKind, group: &[ModelMessage], thoughts: &Thoughts) -> Option<ChatMessage> {
    let role = match group.first()? {
        ModelMessage::User(_) => ChatRole::User,
        ModelMessage::Assistant { .. } => ChatRole::Assistant,
        ModelMessage::ToolResult { .. } => ChatRole::Tool,
    };
    let parts: Vec<ContentPart> = match role {
        ChatRole::User => said_and_shown(group),
        _ => group.iter().flat_map(|message| parts(kind, message, thoughts)).collect(),
    };
    (!parts.is_empty()).then(|| ChatMessage::new(role, MessageContent::from_parts(parts)))
}

/// Pictures come first, as providers advise. The words are one text, because not every server takes a list of them.
fn said_and_shown(group: &[ModelMessage]) -> Vec<ContentPart> {
    let contents: Vec<&Content> = group.iter().filter_map(content).collect();
    let texts: Vec<&str> = contents.iter().map(|content| content.text.as_str()).collect();
    let images = contents.iter().flat_map(|content| &content.images).map(picture);
    images.chain([ContentPart::Text(texts.join("\n\n"))]).collect()
}

fn content(message: &ModelMessage) -> Option<&Content> {
    match message {
        ModelMessage::User(content) => Some(content),
        _ => None,
    }
}

fn picture(image: &Image) -> ContentPart {
    ContentPart::Binary(Binary::from_base64(image.kind.media_type(), image.data.clone(), None))
}

fn parts(kind: ProviderKind, message: &ModelMessage, thoughts: &Thoughts) -> Vec<ContentPart> {
    match message {
        ModelMessage::User(_) => Vec::new(),
        ModelMessage::Assistant { text, tool_calls } => {
            let text = (!text.is_empty()).then(|| ContentPart::Text(text.clone()));
            let thought = if kind == ProviderKind::Anthropic { thoughts.before(tool_calls) } else { Vec::new() };
            thought.into_iter().chain(text).chain(tool_calls.iter().map(|call| call_part(kind, call))).collect()
        }
        ModelMessage::ToolResult { call_id, content } => {
            vec![ContentPart::ToolResponse(ToolResponse::new(fitting_id(kind, call_id), content))]
        }
    }
}

fn call_part(kind: ProviderKind, call: &ToolCall) -> ContentPart {
    // Arguments that were not an object were refused when they came; sent back, they would spoil the whole request.
    let arguments = if call.arguments.is_object() { call.arguments.clone() } else { json!({}) };
    ContentPart::ToolCall(genai::chat::ToolCall {
        call_id: fitting_id(kind, &call.id),
        fn_name: call.name.clone(),
        fn_arguments: arguments,
        thought_signatures: None,
    })
}

/// Another provider may have made the id before this one took over, and Anthropic takes only plain ones.
fn fitting_id(kind: ProviderKind, id: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
    if kind == ProviderKind::Anthropic { id.chars().map(plain).collect() } else { id.to_owned() }
}

fn tool(spec: ToolSpec) -> Tool {
    Tool::new(spec.name).with_description(spec.description).with_schema(spec.parameters)
}
