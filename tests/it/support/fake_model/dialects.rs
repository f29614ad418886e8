//! The wire formats: how a request is read and how an answer is written, for each API.

use std::time::Instant;

use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::{Cut, Flood, Limit, Limited, Request, Step, Tokens, marks};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Chat completions.
    OpenAi,
    OpenAiResponses,
    Anthropic,
    Gemini,
    Ollama,
}

impl Dialect {
    pub(crate) const ALL: [Self; 5] = [
        Self::OpenAi,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::Ollama,
    ];

    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::OpenAi => "openai/v1/",
            Self::OpenAiResponses => "responses/v1/",
            Self::Anthropic => "anthropic/v1/",
            Self::Gemini => "gemini/v1beta/",
            Self::Ollama => "ollama/",
        }
    }

    /// The dialect whose chat endpoint this is.
    pub(super) fn of_path(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| {
            path.strip_prefix(dialect.prefix())
                .is_some_and(|rest| match dialect {
                    Self::OpenAi => rest == "chat/completions",
                    Self::OpenAiResponses => rest == "responses",
                    Self::Anthropic => rest == "messages",
                    Self::Gemini => {
                        rest.starts_with("models/") && rest.ends_with(":streamGenerateContent")
                    }
                    Self::Ollama => rest == "api/chat",
                })
        })
    }

    pub(super) fn read(
        self,
        path: &str,
        query: Option<&str>,
        headers: HeaderMap,
        body: &[u8],
    ) -> Request {
        let arrived = Instant::now();
        let raw: Value = serde_json::from_slice(body).expect("a request is JSON");
        let mut messages = Vec::new();
        let system = match self {
            Self::OpenAi | Self::Ollama => read_chat(&raw, &mut messages),
            Self::OpenAiResponses => read_responses(&raw, &mut messages),
            Self::Anthropic => read_anthropic(&raw, &mut messages),
            Self::Gemini => read_gemini(&raw, &mut messages),
        };
        let is_shared = marks::is_shared(&system);
        for (role, text) in &mut messages {
            match role.as_str() {
                "user" => *text = marks::shortened(text, is_shared),
                "tool" => *text = marks::shortened(text, true),
                _ => {}
            }
        }
        let model = match self {
            Self::Gemini => path
                .rsplit('/')
                .next()
                .and_then(|last| last.rsplit_once(':'))
                .map_or("", |(model, _)| model)
                .to_owned(),
            _ => text_of(&raw["model"]),
        };
        let tools = self.read_tools(&raw);
        let path = path.strip_prefix(self.prefix()).unwrap_or(path);
        let target = query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
        Request {
            dialect: self,
            model,
            system,
            messages,
            tools,
            target,
            api_key: self.read_key(&headers),
            headers,
            bytes: body.len(),
            raw,
            arrived,
            answered: None,
        }
    }

    fn read_tools(self, raw: &Value) -> Vec<String> {
        let (list, name) = match self {
            Self::OpenAi | Self::Ollama => (&raw["tools"], "/function/name"),
            Self::OpenAiResponses | Self::Anthropic => (&raw["tools"], "/name"),
            Self::Gemini => (&raw["tools"][0]["functionDeclarations"], "/name"),
        };
        items(list)
            .iter()
            .filter_map(|tool| tool.pointer(name))
            .map(text_of)
            .collect()
    }

    fn read_key(self, headers: &HeaderMap) -> Option<String> {
        let header = |name: &str| {
            headers
                .get(name)
                .map(|value| value.to_str().expect("keys are text"))
        };
        let key = match self {
            Self::OpenAi | Self::OpenAiResponses | Self::Ollama => {
                header("authorization")?.strip_prefix("Bearer ")?
            }
            Self::Anthropic => header("x-api-key")?,
            Self::Gemini => header("x-goog-api-key")?,
        };
        Some(key.to_owned())
    }
}

type Messages = Vec<(String, String)>;

fn read_chat(raw: &Value, messages: &mut Messages) -> String {
    let mut system = String::new();
    for message in items(&raw["messages"]) {
        let text = text_of(&message["content"]);
        match message["role"].as_str() {
            Some("system") => system.push_str(&text),
            Some(role) if role != "assistant" || !text.is_empty() => {
                messages.push((role.to_owned(), text));
            }
            _ => {}
        }
        for call in items(&message["tool_calls"]) {
            push_call(
                &call["function"]["name"],
                &call["function"]["arguments"],
                messages,
            );
        }
    }
    system
}

fn read_responses(raw: &Value, messages: &mut Messages) -> String {
    for item in items(&raw["input"]) {
        match item["type"].as_str() {
            Some("function_call") => push_call(&item["name"], &item["arguments"], messages),
            Some("function_call_output") => {
                messages.push(("tool".to_owned(), text_of(&item["output"])));
            }
            _ => messages.push((text_of(&item["role"]), text_of(&item["content"]))),
        }
    }
    text_of(&raw["instructions"])
}

fn read_anthropic(raw: &Value, messages: &mut Messages) -> String {
    for message in items(&raw["messages"]) {
        if message["content"].is_string() {
            messages.push((text_of(&message["role"]), text_of(&message["content"])));
        }
        for block in items(&message["content"]) {
            match block["type"].as_str() {
                Some("tool_use") => push_call(&block["name"], &block["input"], messages),
                Some("tool_result") => {
                    messages.push(("tool".to_owned(), text_of(&block["content"])));
                }
                _ => messages.push((text_of(&message["role"]), text_of(block))),
            }
        }
    }
    text_of(&raw["system"])
}

fn read_gemini(raw: &Value, messages: &mut Messages) -> String {
    for content in items(&raw["contents"]) {
        let role = if content["role"] == "model" {
            "assistant"
        } else {
            "user"
        };
        for part in items(&content["parts"]) {
            if let Some(call) = part.get("functionCall") {
                push_call(&call["name"], &call["args"], messages);
            } else if let Some(result) = part.get("functionResponse") {
                messages.push(("tool".to_owned(), text_of(&result["response"]["content"])));
            } else {
                messages.push((role.to_owned(), text_of(part)));
            }
        }
    }
    text_of(&raw["systemInstruction"]["parts"])
}

fn push_call(name: &Value, arguments: &Value, messages: &mut Messages) {
    let arguments = arguments
        .as_str()
        .map_or_else(|| arguments.to_string(), str::to_owned);
    messages.push(("call".to_owned(), format!("{} {arguments}", text_of(name))));
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Texts come as a string, as a part with a `text`, or as a list of parts.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text_of).collect(),
        Value::Object(part) => part.get("text").map(text_of).unwrap_or_default(),
        _ => String::new(),
    }
}

/// Why an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Close {
    Said,
    Calls,
    MaxTokens,
    WindowFull,
}

impl Close {
    fn is_limit(self) -> bool {
        matches!(self, Self::MaxTokens | Self::WindowFull)
    }
}

/// Writes the answers to one request.
pub(super) struct Frames {
    pub(super) dialect: Dialect,
    pub(super) model: String,
    pub(super) tokens: Tokens,
}

impl Frames {
    pub(super) fn answer(&self, text: &str, calls: &[(String, Value)]) -> Vec<Step> {
        let mut steps = vec![self.opening()];
        steps.extend(pieces(text).map(|piece| self.text(piece)));
        steps.extend(
            calls
                .iter()
                .enumerate()
                .map(|(index, (name, arguments))| self.call(index, name, arguments)),
        );
        steps.push(self.closing(if calls.is_empty() {
            Close::Said
        } else {
            Close::Calls
        }));
        send(steps)
    }

    pub(super) fn far_call(&self, name: &str, number: usize) -> Vec<Step> {
        send(vec![
            self.opening(),
            self.call(number, name, &json!({})),
            self.closing(Close::Calls),
        ])
    }

    pub(super) fn limited(
        &self,
        Limited {
            thought,
            text,
            calls,
            by,
        }: &Limited,
    ) -> Vec<Step> {
        let mut steps = vec![self.opening()];
        steps.extend(pieces(thought).map(|piece| self.thought(piece)));
        steps.extend(pieces(text).map(|piece| self.text(piece)));
        steps.extend(calls.iter().enumerate().map(|(index, (name, arguments))| {
            let is_last = index + 1 == calls.len();
            let call = self.call_as_far(index, name, arguments);
            // Anthropic ends a block that was not cut.
            if is_last && self.dialect == Dialect::Anthropic {
                without_stop(&call)
            } else {
                call
            }
        }));
        steps.push(self.closing(if *by == Limit::Window {
            Close::WindowFull
        } else {
            Close::MaxTokens
        }));
        send(steps)
    }

    pub(super) fn thoughtful(&self, thought: &str, calls: &[(String, Value)]) -> Vec<Step> {
        assert_eq!(
            self.dialect,
            Dialect::Anthropic,
            "only Anthropic signs thoughts"
        );
        let delta = |delta: Value| {
            event(&json!({"type": "content_block_delta", "index": 0, "delta": delta}))
        };
        let start = json!({"type": "thinking", "thinking": "", "signature": ""});
        let thinking = [
            event(&json!({"type": "content_block_start", "index": 0, "content_block": start})),
            delta(json!({"type": "thinking_delta", "thinking": thought})),
            delta(json!({"type": "signature_delta", "signature": "signed"})),
            event(&json!({"type": "content_block_stop", "index": 0})),
        ];
        let mut steps = vec![self.opening(), thinking.concat()];
        steps.extend(
            calls
                .iter()
                .enumerate()
                .map(|(index, (name, arguments))| self.call(index, name, arguments)),
        );
        steps.push(self.closing(Close::Calls));
        send(steps)
    }

    pub(super) fn failing(&self, after: &str, kind: &str, message: &str) -> Vec<Step> {
        let mut steps = vec![self.opening()];
        steps.extend(pieces(after).map(|piece| self.text(piece)));
        steps.push(self.error(kind, message));
        send(steps)
    }

    /// Piece by piece of an answer without end.
    pub(super) fn flood(&self, flood: Flood, number: usize) -> String {
        let words = "many words ".repeat(1000);
        match flood {
            Flood::Text if number == 0 => self.opening(),
            Flood::Text => self.text(&words),
            Flood::Thoughts => self.thought(&words),
            Flood::Arguments if number == 0 => self.call_without_end(),
            Flood::Arguments => self.more_arguments(&words),
            Flood::Calls => self.call(number, "now", &json!({})),
            Flood::Event if number == 0 => "data: {\"x\": \"".to_owned(),
            Flood::Event => words,
            Flood::Lines => "data: \n".repeat(1000),
            Flood::ErrorPage => words,
        }
    }

    fn call_without_end(&self) -> String {
        let whole = self.call_as_far(0, "file_write", "{\"content\":\"\"}");
        // Everything behind the beginning of the arguments.
        let end = match self.dialect {
            Dialect::OpenAi => whole.rfind("data: "),
            Dialect::OpenAiResponses => {
                whole.find("data: {\"type\":\"response.function_call_arguments.delta\"")
            }
            Dialect::Anthropic => whole.find("event: content_block_delta"),
            Dialect::Gemini | Dialect::Ollama => whole.find("\"}"),
        };
        whole[..end.expect("a call has arguments")].to_owned()
    }

    fn more_arguments(&self, words: &str) -> String {
        match self.dialect {
            Dialect::OpenAi => {
                let rest = json!({"index": 0, "function": {"arguments": words}});
                self.chunk(&json!({"tool_calls": [rest]}), Value::Null)
            }
            Dialect::OpenAiResponses => sse(
                &json!({"type": "response.function_call_arguments.delta", "output_index": 1, "delta": words}),
            ),
            Dialect::Anthropic => {
                let delta = json!({"type": "input_json_delta", "partial_json": words});
                event(&json!({"type": "content_block_delta", "index": 1, "delta": delta}))
            }
            Dialect::Gemini | Dialect::Ollama => words.to_owned(),
        }
    }

    pub(super) fn cut(&self, text: &str, after: usize, how: Cut) -> Vec<Step> {
        let mut steps = vec![self.opening()];
        steps.extend(pieces(text).take(after).map(|piece| self.text(piece)));
        let mut steps = send(steps);
        match how {
            Cut::Ended => {}
            Cut::Torn => steps.push(Step::Tear),
        }
        steps
    }

    pub(super) fn pausing(&self, text: &str, after: &[usize], mut released: u64) -> Vec<Step> {
        let mut steps = self.answer(text, &[]);
        for (earlier, after) in after.iter().enumerate() {
            // The opening comes before the pieces, the closing after them.
            let place = (1 + after + earlier).min(steps.len() - 1);
            steps.insert(place, Step::WaitForRelease(released));
            released += 1;
        }
        steps
    }

    fn opening(&self) -> String {
        match self.dialect {
            Dialect::OpenAi => {
                self.chunk(&json!({"role": "assistant", "content": ""}), Value::Null)
            }
            Dialect::Gemini | Dialect::Ollama => self.text(""),
            Dialect::OpenAiResponses => {
                let response = json!({"id": "resp_1", "status": "in_progress", "model": self.model, "output": []});
                sse(&json!({"type": "response.created", "response": response}))
            }
            Dialect::Anthropic => {
                let Tokens { input, cached, .. } = self.tokens;
                let usage = json!({
                    "input_tokens": input - cached, "cache_read_input_tokens": cached, "cache_creation_input_tokens": 0,
                    "output_tokens": 1,
                });
                let message = json!({"id": "msg_1", "role": "assistant", "model": self.model, "content": [], "usage": usage});
                event(&json!({"type": "message_start", "message": message}))
                    + &event(&json!({"type": "ping"}))
            }
        }
    }

    fn text(&self, piece: &str) -> String {
        match self.dialect {
            Dialect::OpenAi => self.chunk(&json!({"content": piece}), Value::Null),
            Dialect::OpenAiResponses => sse(&json!({
                "type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": piece,
            })),
            Dialect::Anthropic => block(
                0,
                &json!({"type": "text", "text": ""}),
                &json!({"type": "text_delta", "text": piece}),
            ),
            Dialect::Gemini => self.candidate(&json!({"text": piece})),
            Dialect::Ollama => self.line(&json!({"role": "assistant", "content": piece})),
        }
    }

    fn thought(&self, piece: &str) -> String {
        match self.dialect {
            Dialect::OpenAi => self.chunk(&json!({"reasoning_content": piece}), Value::Null),
            Dialect::OpenAiResponses => sse(
                &json!({"type": "response.reasoning_text.delta", "output_index": 0, "delta": piece}),
            ),
            Dialect::Anthropic => {
                let start = json!({"type": "thinking", "thinking": "", "signature": ""});
                block(
                    0,
                    &start,
                    &json!({"type": "thinking_delta", "thinking": piece}),
                )
            }
            Dialect::Gemini => self.candidate(&json!({"text": piece, "thought": true})),
            Dialect::Ollama => {
                self.line(&json!({"role": "assistant", "content": "", "thinking": piece}))
            }
        }
    }

    fn call(&self, index: usize, name: &str, arguments: &Value) -> String {
        self.call_as_far(index, name, &arguments.to_string())
    }

    /// The arguments of a call may be cut off, where the dialect has them as text.
    fn call_as_far(&self, index: usize, name: &str, text: &str) -> String {
        let id = format!("call_{}_{index}", uuid::Uuid::new_v4().simple());
        let arguments =
            || serde_json::from_str::<Value>(text).expect("this dialect has whole arguments only");
        match self.dialect {
            Dialect::OpenAi => {
                let call = json!({
                    "index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""},
                });
                let rest = json!({"index": index, "function": {"arguments": text}});
                self.chunk(&json!({"tool_calls": [call]}), Value::Null)
                    + &self.chunk(&json!({"tool_calls": [rest]}), Value::Null)
            }
            Dialect::OpenAiResponses => {
                // Item 0 is the text.
                let output_index = index + 1;
                let item = |arguments: &str| json!({"type": "function_call", "id": "fc_1", "call_id": id, "name": name, "arguments": arguments});
                [
                    json!({"type": "response.output_item.added", "output_index": output_index, "item": item("")}),
                    json!({"type": "response.function_call_arguments.delta", "output_index": output_index, "delta": text}),
                    json!({"type": "response.output_item.done", "output_index": output_index, "item": item(text)}),
                ]
                .iter()
                .map(sse)
                .collect()
            }
            Dialect::Anthropic => block(
                index + 1,
                &json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                &json!({"type": "input_json_delta", "partial_json": text}),
            ),
            // Neither of them numbers its calls.
            Dialect::Gemini => {
                self.candidate(&json!({"functionCall": {"name": name, "args": arguments()}}))
            }
            Dialect::Ollama => {
                let call = json!({"function": {"name": name, "arguments": arguments()}});
                self.line(&json!({"role": "assistant", "content": "", "tool_calls": [call]}))
            }
        }
    }

    fn closing(&self, close: Close) -> String {
        let Tokens {
            input,
            cached,
            output,
        } = self.tokens;
        match self.dialect {
            Dialect::OpenAi => {
                let reason = match close {
                    Close::Said => "stop",
                    Close::Calls => "tool_calls",
                    Close::MaxTokens | Close::WindowFull => "length",
                };
                let usage = json!({
                    "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
                    "prompt_tokens_details": {"cached_tokens": cached},
                });
                let last =
                    json!({"id": "chatcmpl-1", "model": self.model, "choices": [], "usage": usage});
                self.chunk(&json!({}), json!(reason)) + &sse(&last) + "data: [DONE]\n\n"
            }
            Dialect::OpenAiResponses => {
                let usage = json!({
                    "input_tokens": input, "output_tokens": output, "total_tokens": input + output,
                    "input_tokens_details": {"cached_tokens": cached},
                });
                let status = if close.is_limit() {
                    "incomplete"
                } else {
                    "completed"
                };
                let response = json!({
                    "id": "resp_1", "status": status, "model": self.model, "output": [], "usage": usage,
                });
                sse(&json!({"type": format!("response.{status}"), "response": response}))
            }
            Dialect::Anthropic => {
                let reason = match close {
                    Close::Said => "end_turn",
                    Close::Calls => "tool_use",
                    Close::MaxTokens => "max_tokens",
                    Close::WindowFull => "model_context_window_exceeded",
                };
                let delta = json!({
                    "type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": output},
                });
                event(&delta) + &event(&json!({"type": "message_stop"}))
            }
            Dialect::Gemini => {
                let usage = json!({
                    "promptTokenCount": input, "cachedContentTokenCount": cached, "candidatesTokenCount": output,
                    "totalTokenCount": input + output,
                });
                let reason = if close.is_limit() {
                    "MAX_TOKENS"
                } else {
                    "STOP"
                };
                let candidate = json!({"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": reason});
                sse(
                    &json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": self.model}),
                )
            }
            Dialect::Ollama => {
                let reason = if close.is_limit() { "length" } else { "stop" };
                let last = json!({
                    "model": self.model, "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": reason,
                    "prompt_eval_count": input, "prompt_eval_cached_count": cached, "eval_count": output,
                });
                format!("{last}\n")
            }
        }
    }

    fn error(&self, kind: &str, message: &str) -> String {
        match self.dialect {
            Dialect::OpenAi => {
                sse(&json!({"error": {"type": kind, "code": kind, "message": message}}))
            }
            Dialect::OpenAiResponses => {
                sse(&json!({"type": "error", "code": kind, "message": message}))
            }
            Dialect::Anthropic => {
                event(&json!({"type": "error", "error": {"type": kind, "message": message}}))
            }
            Dialect::Gemini => sse(&json!({"error": {"status": kind, "message": message}})),
            Dialect::Ollama => format!("{}\n", json!({"error": message})),
        }
    }

    fn chunk(&self, delta: &Value, finish_reason: Value) -> String {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish_reason});
        sse(
            &json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": self.model, "choices": [choice]}),
        )
    }

    fn candidate(&self, part: &Value) -> String {
        let candidate = json!({"content": {"role": "model", "parts": [part]}, "index": 0});
        sse(&json!({"candidates": [candidate], "modelVersion": self.model}))
    }

    fn line(&self, message: &Value) -> String {
        format!(
            "{}\n",
            json!({"model": self.model, "message": message, "done": false})
        )
    }
}

fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

/// Each frame is sent by itself.
fn send(frames: Vec<String>) -> Vec<Step> {
    frames.into_iter().map(Step::Send).collect()
}

fn sse(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// Anthropic names its events beside the data.
fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", text_of(&data["type"]))
}

fn without_stop(block: &str) -> String {
    let stop = block
        .find("event: content_block_stop")
        .expect("a block ends");
    block[..stop].to_owned()
}

/// A content block of Anthropic with all it consists of.
fn block(index: usize, start: &Value, delta: &Value) -> String {
    event(&json!({"type": "content_block_start", "index": index, "content_block": start}))
        + &event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
        + &event(&json!({"type": "content_block_stop", "index": index}))
}
