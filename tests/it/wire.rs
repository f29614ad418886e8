//! Requests to model servers, to the letter: `wire.txt` has each of them, in every dialect. A
//! change of a line there is a change for every provider out there. `UPDATE_WIRE=1` writes the file
//! anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt;
use parlor::config::{
    ModelRef, ModelSettings, Provider, ProviderKind, ProviderLines, Reasoning, Secret, Vision,
};
use parlor::models::{
    Content, Image, ImageKind, ModelMessage, ModelRequest, Models, ToolCall, ToolSpec,
};
use serde_json::{Map, Value, json};

use crate::support::fake_model::{Dialect, FakeModel, Request};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/wire.txt");

const KINDS: [(ProviderKind, Dialect); 5] = [
    (ProviderKind::OpenAi, Dialect::OpenAi),
    (ProviderKind::OpenAiResponses, Dialect::OpenAiResponses),
    (ProviderKind::Anthropic, Dialect::Anthropic),
    (ProviderKind::Gemini, Dialect::Gemini),
    (ProviderKind::Ollama, Dialect::Ollama),
];

const LEVELS: [Option<Reasoning>; 5] = [
    None,
    Some(Reasoning::None),
    Some(Reasoning::Low),
    Some(Reasoning::Medium),
    Some(Reasoning::High),
];

/// Headers that say something; others belong to HTTP.
const HEADERS: [&str; 5] = [
    "authorization",
    "x-api-key",
    "x-goog-api-key",
    "anthropic-version",
    "content-type",
];

/// Names that change what is sent.
fn models(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::OpenAi => &["some-model", "gpt-4o", "gpt-5-mini", "o3", "o4-mini"],
        Dialect::OpenAiResponses => &["some-model", "gpt-5-mini"],
        Dialect::Anthropic => &[
            "some-model",
            "claude-3-haiku-20240307",
            "claude-3-5-sonnet-20241022",
            "claude-3-7-sonnet-20250219",
            "claude-opus-4-20250514",
            "claude-opus-4-5",
            "claude-opus-4-6",
            "claude-opus-4-8",
            "claude-opus-5",
            "claude-sonnet-4-5-20250929",
            "claude-sonnet-4-6",
            "claude-sonnet-5",
            "claude-haiku-4-5",
            "claude-haiku-5",
        ],
        Dialect::Gemini => &["some-model", "gemini-2.5-pro", "gemini-3-flash-preview"],
        Dialect::Ollama => &["some-model", "qwen3:8b"],
    }
}

struct Setup {
    server: FakeModel,
    models: Models,
}

impl Setup {
    async fn start() -> Self {
        let server = FakeModel::start().await;
        let provider = |(kind, dialect): (ProviderKind, Dialect)| {
            let (base_url, api_key) = (server.base_url(dialect), Some(Secret::new("the-key")));
            let prices = BTreeMap::new();
            let provider = Provider {
                kind,
                base_url,
                api_key,
                proxy: None,
                prices,
                models: Vec::new(),
                vision: Vision::All,
                context_tokens: None,
                missing_key: None,
                lines: ProviderLines::default(),
            };
            (format!("{dialect:?}"), provider)
        };
        Self {
            models: Models::new(&BTreeMap::from(KINDS.map(provider))),
            server,
        }
    }

    async fn send(&self, dialect: Dialect, model: &str, request: ModelRequest) -> Request {
        let model = ModelRef::Of {
            provider: format!("{dialect:?}"),
            model: model.to_owned(),
        };
        let stream = self
            .models
            .stream(&model, request)
            .await
            .expect("the request is well formed");
        let events: Vec<_> = stream.collect().await;
        assert!(events.iter().all(Result::is_ok), "{events:?}");
        self.server.last_request()
    }
}

fn plain(messages: Vec<ModelMessage>) -> ModelRequest {
    let (settings, cache_key) = (ModelSettings::default(), String::new());
    ModelRequest {
        system: "".into(),
        messages,
        tools: Vec::new(),
        settings,
        cache_key,
    }
}

fn picture() -> ModelMessage {
    let images = vec![
        Image::new(ImageKind::Png, b"\x89PNG"),
        Image::new(ImageKind::Jpeg, b"\xFF\xD8\xFF"),
    ];
    ModelMessage::User(Content {
        text: "look at “this”".to_owned(),
        images,
    })
}

fn call(id: &str, name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments,
    }
}

fn result(id: &str, content: &str) -> ModelMessage {
    ModelMessage::ToolResult {
        call_id: id.to_owned(),
        content: content.to_owned(),
    }
}

fn assistant(text: &str, tool_calls: Vec<ToolCall>) -> ModelMessage {
    ModelMessage::Assistant {
        text: text.to_owned(),
        tool_calls,
    }
}

/// Everything that a conversation can have.
fn long_talk() -> Vec<ModelMessage> {
    vec![
        ModelMessage::user("hi"),
        picture(),
        assistant("hello", Vec::new()),
        assistant("", Vec::new()),
        ModelMessage::user("warm?"),
        assistant(
            "Let me look.",
            vec![
                call("call_1", "weather", json!({"city": "Oslo"})),
                call("call#weather#7", "weather", json!({"city": "Rome"})),
            ],
        ),
        result("call_1", "-3 °C"),
        result("call#weather#7", "21 °C"),
        assistant("", vec![call("id:3", "now", json!("cut"))]),
        result("id:3", "the arguments were no object"),
        result("unknown", "a call of an earlier time"),
        ModelMessage::user("thanks"),
    ]
}

fn tools() -> Vec<Arc<ToolSpec>> {
    let city =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let tool = |name: &str, parameters: Value| {
        Arc::new(ToolSpec {
            name: name.to_owned(),
            description: format!("Tells {name}."),
            parameters: parameters.into(),
        })
    };
    vec![
        tool("weather", city),
        tool("now", json!({"type": "object", "properties": {}})),
    ]
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<String, Value> = map
                .into_iter()
                .map(|(key, value)| (key, sorted(value)))
                .collect();
            Value::Object(Map::from_iter(sorted))
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

fn line(dialect: Dialect, case: &str, request: Request) -> String {
    let headers: Vec<String> = HEADERS
        .iter()
        .filter_map(|name| {
            Some(format!(
                "{name}: {}",
                request
                    .headers
                    .get(*name)?
                    .to_str()
                    .expect("headers are text")
            ))
        })
        .collect();
    format!(
        "{dialect:?} {case}\n  {}\n  {}\n  {}\n",
        request.target,
        headers.join(", "),
        sorted(request.raw)
    )
}

/// Only what depends on the model's name and the settings.
fn short_line(model: &str, level: Option<Reasoning>, request: Request) -> String {
    let Value::Object(mut body) = request.raw else {
        panic!("a body is an object")
    };
    for conversation in [
        "messages",
        "input",
        "contents",
        "stream",
        "stream_options",
        "store",
    ] {
        body.remove(conversation);
    }
    format!(
        "{:?} {model} {level:?}: {}\n",
        request.dialect,
        sorted(Value::Object(body))
    )
}

#[tokio::test]
async fn requests_are_the_same_to_the_letter() {
    let setup = Setup::start().await;
    let mut lines = String::new();
    for (_, dialect) in KINDS {
        let sent = setup
            .send(dialect, "some-model", plain(vec![ModelMessage::user("hi")]))
            .await;
        lines.push_str(&line(dialect, "one message", sent));
        let sent = setup
            .send(dialect, "some-model", plain(vec![picture()]))
            .await;
        lines.push_str(&line(dialect, "pictures", sent));
        let settings = ModelSettings {
            temperature: Some(0.3),
            max_tokens: Some(900),
            reasoning: None,
        };
        let (system, tools, cache_key) = ("You are Rose.".to_owned(), tools(), "0123".to_owned());
        let whole = ModelRequest {
            system: system.into(),
            tools,
            settings,
            cache_key,
            messages: long_talk(),
        };
        let sent = setup.send(dialect, "some-model", whole.clone()).await;
        lines.push_str(&line(dialect, "a long talk", sent));
        let messages = long_talk()[..8].to_vec();
        let sent = setup
            .send(dialect, "gemini-3-pro", ModelRequest { messages, ..whole })
            .await;
        lines.push_str(&line(dialect, "results at the end", sent));
    }
    for (_, dialect) in KINDS {
        for model in models(dialect) {
            for level in LEVELS {
                let settings = ModelSettings {
                    temperature: None,
                    max_tokens: None,
                    reasoning: level,
                };
                let sent = ModelRequest {
                    settings,
                    ..plain(vec![ModelMessage::user("hi")])
                };
                lines.push_str(&short_line(
                    model,
                    level,
                    setup.send(dialect, model, sent).await,
                ));
            }
            let settings = ModelSettings {
                temperature: Some(1.0),
                max_tokens: Some(7),
                reasoning: None,
            };
            let sent = ModelRequest {
                settings,
                ..plain(vec![ModelMessage::user("hi")])
            };
            lines.push_str(&short_line(
                model,
                None,
                setup.send(dialect, model, sent).await,
            ));
        }
    }
    if std::env::var_os("UPDATE_WIRE").is_some() {
        std::fs::write(FILE, &lines).expect("the file can be written");
    }
    let expected = std::fs::read_to_string(FILE).expect("the file is there");
    for (number, (sent, expected)) in lines.lines().zip(expected.lines()).enumerate() {
        assert_eq!(sent, expected, "line {} of wire.txt", number + 1);
    }
    assert_eq!(lines.lines().count(), expected.lines().count());
}
