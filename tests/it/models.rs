//! Calls to model servers in every dialect, against a fake of each at the far end of the wire.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use parlor::config::{
    ModelRef, ModelSettings, Provider, ProviderKind, ProviderLines, Reasoning, Secret, Vision,
};
use parlor::models::{
    Content, Cut as ModelCut, Image, ImageKind, ModelError, ModelEvent, ModelMessage, ModelRequest,
    ModelStream, Models, ToolCall, ToolSpec, Unavailable, Unreachable, Usage,
};
use parlor::telemetry::is_ours;
use serde_json::{Value, json};
use tracing_subscriber::layer::SubscriberExt;

use crate::support::fake_model::{Cut, Dialect, FakeModel, Limit, Limited, Script, Tokens};

const KINDS: [(ProviderKind, Dialect); 5] = [
    (ProviderKind::OpenAi, Dialect::OpenAi),
    (ProviderKind::OpenAiResponses, Dialect::OpenAiResponses),
    (ProviderKind::Anthropic, Dialect::Anthropic),
    (ProviderKind::Gemini, Dialect::Gemini),
    (ProviderKind::Ollama, Dialect::Ollama),
];

const KEY: &str = "sk-very-secret-key";

/// One fake server, and one provider of each kind on it, named after its dialect.
struct Setup {
    server: FakeModel,
    models: Models,
}

impl Setup {
    async fn start() -> Self {
        let server = FakeModel::start().await;
        let provider = |(kind, dialect): (ProviderKind, Dialect)| {
            provider(kind, server.base_url(dialect), Some(KEY))
        };
        let providers = KINDS.map(|pair| (name(pair.1), provider(pair)));
        Self {
            models: Models::new(&BTreeMap::from(providers)),
            server,
        }
    }

    async fn ask(&self, dialect: Dialect, messages: impl Into<Vec<ModelMessage>>) -> ModelStream {
        let model = model(&name(dialect), "some-model");
        self.models
            .stream(&model, request(messages))
            .await
            .expect("the request is well formed")
    }

    /// The answer to one message.
    async fn hears(&self, dialect: Dialect, text: &str) -> Answer {
        whole(self.ask(dialect, [user(text)]).await).await
    }
}

fn name(dialect: Dialect) -> String {
    format!("{dialect:?}")
}

fn provider(kind: ProviderKind, base_url: String, key: Option<&str>) -> Provider {
    let (api_key, prices) = (key.map(Secret::new), Default::default());
    Provider {
        kind,
        base_url,
        api_key,
        proxy: None,
        prices,
        models: Vec::new(),
        vision: Vision::ByName,
        context_tokens: None,
        missing_key: None,
        lines: ProviderLines::default(),
    }
}

fn model(provider: &str, model: &str) -> ModelRef {
    ModelRef::Of {
        provider: provider.to_owned(),
        model: model.to_owned(),
    }
}

fn request(messages: impl Into<Vec<ModelMessage>>) -> ModelRequest {
    let city =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let weather = ToolSpec {
        name: "weather".to_owned(),
        description: "Tells the weather.".to_owned(),
        parameters: city.into(),
    };
    ModelRequest {
        system: "You are Rose.".into(),
        messages: messages.into(),
        tools: vec![Arc::new(weather)],
        settings: ModelSettings::default(),
        cache_key: String::new(),
    }
}

fn user(text: &str) -> ModelMessage {
    ModelMessage::user(text)
}

/// All of a stream: its pieces of text, and how it ended.
#[derive(Debug)]
struct Answer {
    pieces: Vec<String>,
    end: Result<(Vec<ToolCall>, Usage), ModelError>,
    cut: Option<ModelCut>,
}

impl Answer {
    fn text(&self) -> String {
        self.pieces.concat()
    }

    fn error(self) -> ModelError {
        self.end.expect_err("the answer failed")
    }

    fn calls(self) -> Vec<ToolCall> {
        self.end.expect("the answer is complete").0
    }
}

async fn whole(mut stream: ModelStream) -> Answer {
    let mut pieces = Vec::new();
    let mut was_cut = None;
    let end = loop {
        match stream
            .next()
            .await
            .expect("a stream ends with `Done` or an error")
        {
            Ok(ModelEvent::Text(piece)) => pieces.push(piece),
            Ok(ModelEvent::Working) => {}
            Ok(ModelEvent::Done {
                tool_calls,
                usage,
                cut,
            }) => {
                was_cut = cut;
                break Ok((tool_calls, usage));
            }
            Err(error) => break Err(error.error),
        }
    };
    assert!(stream.next().await.is_none(), "nothing follows the end");
    Answer {
        pieces,
        end,
        cut: was_cut,
    }
}

#[tokio::test]
async fn text_is_streamed_and_tokens_are_counted() {
    let setup = Setup::start().await;
    for (_, dialect) in KINDS {
        let answer = setup.hears(dialect, "hello there").await;
        assert_eq!(answer.pieces, ["re: ", "hello ", "there"], "{dialect:?}");
        let usage = Usage {
            input_tokens: 105,
            output_tokens: 7,
            cached_tokens: 90,
        };
        assert_eq!(answer.end, Ok((Vec::new(), usage)), "{dialect:?}");
    }
}

#[tokio::test]
async fn a_limit_that_ends_an_answer_is_told() {
    let setup = Setup::start().await;
    let limits = [
        (Limit::Tokens, ModelCut::AtTokens(Some(7))),
        (Limit::Window, ModelCut::WindowFull),
    ];
    for ((_, dialect), (by, cut)) in KINDS
        .into_iter()
        .flat_map(|kind| limits.map(|limit| (kind, limit)))
    {
        // Only Anthropic tells one from the other.
        let expected = if dialect == Dialect::Anthropic {
            cut
        } else {
            ModelCut::AtTokens(Some(7))
        };
        setup.server.enqueue(Script::Limited(Limited {
            text: "as far as".to_owned(),
            by,
            ..Limited::default()
        }));
        let answer = setup.hears(dialect, "hello").await;
        assert_eq!(
            (answer.text().as_str(), answer.cut),
            ("as far as", Some(expected)),
            "{dialect:?}"
        );
        assert_eq!(setup.hears(dialect, "hello").await.cut, None, "{dialect:?}");
    }
}

#[tokio::test]
async fn the_request_arrives_whole() {
    let setup = Setup::start().await;
    for (_, dialect) in KINDS {
        let earlier = ModelMessage::Assistant {
            text: "hello".to_owned(),
            tool_calls: Vec::new(),
        };
        whole(
            setup
                .ask(dialect, [user("hi"), earlier, user("how are you?")])
                .await,
        )
        .await;

        let request = setup.server.last_request();
        assert_eq!(request.dialect, dialect);
        assert_eq!(request.model, "some-model", "{dialect:?}");
        assert_eq!(request.system, "You are Rose.", "{dialect:?}");
        assert_eq!(
            roles_and_texts(&request.messages),
            [
                ("user", "hi"),
                ("assistant", "hello"),
                ("user", "how are you?")
            ]
        );
        assert_eq!(request.tools, ["weather"], "{dialect:?}");
        assert_eq!(request.api_key.as_deref(), Some(KEY), "{dialect:?}");
    }
}

fn roles_and_texts(messages: &[(String, String)]) -> Vec<(&str, &str)> {
    messages
        .iter()
        .map(|(role, text)| (role.as_str(), text.as_str()))
        .collect()
}

#[tokio::test]
async fn tool_calls_come_whole_and_their_results_go_back() {
    let setup = Setup::start().await;
    for (_, dialect) in KINDS {
        let wanted = vec![
            ("weather".to_owned(), json!({"city": "Oslo"})),
            ("weather".to_owned(), json!({"city": "Rome"})),
        ];
        setup
            .server
            .enqueue(Script::TextAndToolCalls("Let me look.".to_owned(), wanted));
        let answer = setup.hears(dialect, "warm?").await;
        assert_eq!(answer.text(), "Let me look.", "{dialect:?}");
        let calls = answer.calls();
        let named: Vec<_> = calls
            .iter()
            .map(|call| (call.name.as_str(), call.arguments.clone()))
            .collect();
        assert_eq!(
            named,
            [
                ("weather", json!({"city": "Oslo"})),
                ("weather", json!({"city": "Rome"}))
            ],
            "{dialect:?}"
        );
        assert_ne!(calls[0].id, calls[1].id, "{dialect:?}");

        let result = |index: usize, text: &str| ModelMessage::ToolResult {
            call_id: calls[index].id.clone(),
            content: text.to_owned(),
        };
        let step = ModelMessage::Assistant {
            text: "Let me look.".to_owned(),
            tool_calls: calls.clone(),
        };
        let answer = whole(
            setup
                .ask(
                    dialect,
                    [user("warm?"), step, result(0, "-3 °C"), result(1, "21 °C")],
                )
                .await,
        )
        .await;
        assert_eq!(answer.text(), "tool said: 21 °C", "{dialect:?}");

        let request = setup.server.last_request();
        let expected = [
            ("user", "warm?"),
            ("assistant", "Let me look."),
            ("call", r#"weather {"city":"Oslo"}"#),
            ("call", r#"weather {"city":"Rome"}"#),
            ("tool", "-3 °C"),
            ("tool", "21 °C"),
        ];
        assert_eq!(roles_and_texts(&request.messages), expected, "{dialect:?}");
        assert_pairs_up(dialect, &request.raw, &calls);
    }
}

/// The result of the second call refers to it the way this dialect wants it.
fn assert_pairs_up(dialect: Dialect, raw: &Value, calls: &[ToolCall]) {
    let id = &calls[1].id;
    match dialect {
        Dialect::OpenAi => {
            assert_eq!(raw["messages"][2]["tool_calls"][1]["id"], json!(id));
            assert_eq!(raw["messages"][4]["tool_call_id"], json!(id));
        }
        Dialect::OpenAiResponses => {
            assert_eq!(raw["input"][3]["call_id"], json!(id));
            assert_eq!(raw["input"][5]["call_id"], json!(id));
        }
        Dialect::Anthropic => {
            assert_eq!(raw["messages"][1]["content"][2]["id"], json!(id));
            // Both results are in one message.
            assert_eq!(raw["messages"][2]["content"][1]["tool_use_id"], json!(id));
        }
        Dialect::Gemini => {
            // It gave no ids, so it gets none: the name and the order tell.
            assert_eq!(
                raw["contents"][2]["parts"][1]["functionResponse"]["name"],
                json!("weather")
            );
            assert!(
                raw["contents"][2]["parts"][1]["functionResponse"]
                    .get("id")
                    .is_none()
            );
        }
        Dialect::Ollama => assert_eq!(raw["messages"][4]["role"], json!("tool")),
    }
}

#[tokio::test]
async fn calls_of_different_answers_have_different_ids() {
    let setup = Setup::start().await;
    for (_, dialect) in KINDS {
        let mut ids = Vec::new();
        for _ in 0..2 {
            setup
                .server
                .enqueue(Script::tool_call("weather", json!({"city": "Oslo"})));
            ids.extend(
                setup
                    .hears(dialect, "warm?")
                    .await
                    .calls()
                    .into_iter()
                    .map(|call| call.id),
            );
        }
        assert_ne!(ids[0], ids[1], "{dialect:?}");
    }
}

#[tokio::test]
async fn a_call_without_arguments_has_an_empty_object() {
    let setup = Setup::start().await;
    for (_, dialect) in KINDS {
        setup
            .server
            .enqueue(Script::tool_call("weather", json!({})));
        assert_eq!(
            setup.hears(dialect, "warm?").await.calls()[0].arguments,
            json!({}),
            "{dialect:?}"
        );
    }
}

#[tokio::test]
async fn two_providers_of_one_kind_do_not_mix() {
    for (kind, dialect) in KINDS {
        let (one, other) = (FakeModel::start().await, FakeModel::start().await);
        let models = Models::new(&BTreeMap::from([
            (
                "one".to_owned(),
                provider(kind, one.base_url(dialect), Some("key-one")),
            ),
            (
                "other".to_owned(),
                provider(kind, other.base_url(dialect), Some("key-other")),
            ),
        ]));
        let ask = async |name: &str, text: &str| {
            let stream = models
                .stream(&model(name, "some-model"), request([user(text)]))
                .await;
            whole(stream.expect("the request is well formed"))
                .await
                .text()
        };
        let answers =
            futures_util::future::join(ask("one", "to one"), ask("other", "to other")).await;
        assert_eq!(
            answers,
            ("re: to one".to_owned(), "re: to other".to_owned()),
            "{dialect:?}"
        );
        for (server, key, text) in [
            (&one, "key-one", "to one"),
            (&other, "key-other", "to other"),
        ] {
            let journal = server.journal();
            assert_eq!(journal.len(), 1, "{dialect:?}");
            assert_eq!(
                (journal[0].api_key.as_deref(), journal[0].last_text()),
                (Some(key), text),
                "{dialect:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_local_server_needs_no_key() {
    let server = FakeModel::start().await;
    for (kind, dialect) in KINDS {
        let models = Models::new(&BTreeMap::from([(
            "local".to_owned(),
            provider(kind, server.base_url(dialect), None),
        )]));
        let stream = models
            .stream(&model("local", "some-model"), request([user("hi")]))
            .await
            .expect("no key is fine");
        assert_eq!(whole(stream).await.text(), "re: hi", "{dialect:?}");
        assert_eq!(server.last_request().api_key, None, "{dialect:?}");
    }
}

#[tokio::test]
async fn names_of_models_arrive_as_written() {
    let setup = Setup::start().await;
    for (_, dialect) in KINDS {
        for written in ["qwen-max", "mistral-medium", "a::b"] {
            let stream = setup
                .models
                .stream(&model(&name(dialect), written), request([user("hi")]))
                .await;
            whole(stream.expect("the request is well formed")).await;
            let request = setup.server.last_request();
            assert_eq!(request.model, written, "{dialect:?}");
            for effort in [
                "reasoning_effort",
                "reasoning",
                "thinking",
                "output_config",
                "generationConfig",
                "think",
            ] {
                assert!(request.raw.get(effort).is_none(), "{dialect:?}");
            }
        }
    }
}

#[tokio::test]
async fn pictures_arrive_in_every_dialect() {
    let setup = Setup::start().await;
    let picture = Image::new(ImageKind::Png, b"\x89PNG");
    let content = Content {
        text: "look".to_owned(),
        images: vec![picture],
    };
    for (kind, dialect) in KINDS {
        let seeing = Provider {
            vision: Vision::All,
            ..provider(kind, setup.server.base_url(dialect), None)
        };
        let models = Models::new(&BTreeMap::from([("seeing".to_owned(), seeing)]));
        let messages = [user("hi"), ModelMessage::User(content.clone())];
        let stream = models
            .stream(&model("seeing", "some-model"), request(messages.clone()))
            .await
            .expect("a stream");
        assert_eq!(whole(stream).await.text(), "re: hi\n\nlook", "{dialect:?}");
        let raw = setup.server.last_request().raw;
        let (place, expected) = match dialect {
            Dialect::OpenAi => (
                "/messages/1/content/0/image_url/url",
                "data:image/png;base64,iVBORw==",
            ),
            Dialect::OpenAiResponses => (
                "/input/0/content/0/image_url",
                "data:image/png;base64,iVBORw==",
            ),
            Dialect::Anthropic => ("/messages/0/content/0/source/data", "iVBORw=="),
            Dialect::Gemini => ("/contents/0/parts/0/inline_data/data", "iVBORw=="),
            Dialect::Ollama => ("/messages/1/images/0", "iVBORw=="),
        };
        assert_eq!(
            raw.pointer(place).and_then(Value::as_str),
            Some(expected),
            "{dialect:?}: {raw}"
        );

        // The same to a model that does not see.
        whole(setup.ask(dialect, messages).await).await;
        let raw = setup.server.last_request().raw.to_string();
        assert!(
            raw.contains("look") && !raw.contains("iVBORw"),
            "{dialect:?}: {raw}"
        );
    }
}

/// S2.39
#[tokio::test]
async fn settings_are_sent_as_configured_and_else_not_at_all() {
    let setup = Setup::start().await;
    let settings = ModelSettings {
        temperature: Some(0.3),
        max_tokens: Some(900),
        reasoning: Some(Reasoning::Low),
    };
    for (_, dialect) in KINDS {
        let asked = ModelRequest {
            settings,
            ..request([user("hi")])
        };
        let stream = setup
            .models
            .stream(&model(&name(dialect), "some-model"), asked)
            .await
            .expect("a stream");
        whole(stream).await;
        let sent = setup.server.last_request().raw;
        setup.hears(dialect, "hi").await;
        let plain = setup.server.last_request().raw;
        let places = match dialect {
            Dialect::OpenAi => ["/temperature", "/max_tokens", "/reasoning_effort"],
            Dialect::OpenAiResponses => ["/temperature", "/max_output_tokens", "/reasoning/effort"],
            Dialect::Anthropic => ["/temperature", "/max_tokens", "/thinking"],
            Dialect::Gemini => [
                "/generationConfig/temperature",
                "/generationConfig/maxOutputTokens",
                "/generationConfig/thinkingConfig",
            ],
            Dialect::Ollama => ["/options/temperature", "/options/num_predict", "/think"],
        };
        let [temperature, max_tokens, reasoning] = places.map(|place| sent.pointer(place).cloned());
        assert_eq!(temperature, Some(json!(0.3)), "{dialect:?}: {sent}");
        assert_eq!(max_tokens, Some(json!(900)), "{dialect:?}: {sent}");
        assert!(reasoning.is_some(), "{dialect:?}: {sent}");
        let unasked = places.map(|place| plain.pointer(place).is_some());
        // Anthropic does not answer without a limit.
        assert_eq!(
            unasked,
            [false, dialect == Dialect::Anthropic, false],
            "{dialect:?}: {plain}"
        );
    }
}

/// Anthropic refuses the results of tools that were called after a thought when the thought is not
/// with them.
#[tokio::test]
async fn thoughts_go_back_with_the_results_and_are_shown_to_nobody() {
    let setup = Setup::start().await;
    let settings = ModelSettings {
        reasoning: Some(Reasoning::Low),
        ..ModelSettings::default()
    };
    let claude = model(&name(Dialect::Anthropic), "claude-sonnet-4-5");
    let ask = async |messages: Vec<ModelMessage>| {
        let asked = ModelRequest {
            settings,
            ..request(messages)
        };
        whole(setup.models.stream(&claude, asked).await.expect("a stream")).await
    };
    let wanted = vec![("weather".to_owned(), json!({"city": "Oslo"}))];
    setup.server.enqueue(Script::ThoughtAndToolCalls(
        "They mean Oslo.".to_owned(),
        wanted,
    ));
    let answer = ask(vec![user("warm?")]).await;
    assert_eq!(answer.text(), "");
    let calls = answer.calls();
    let step = |calls: &[ToolCall]| ModelMessage::Assistant {
        text: String::new(),
        tool_calls: calls.to_vec(),
    };
    let result = ModelMessage::ToolResult {
        call_id: calls[0].id.clone(),
        content: "-3 °C".to_owned(),
    };
    ask(vec![user("warm?"), step(&calls), result]).await;
    let raw = setup.server.last_request().raw;
    let thought = json!({"type": "thinking", "thinking": "They mean Oslo.", "signature": "signed"});
    assert_eq!(raw["messages"][1]["content"][0], thought, "{raw}");
    assert!(raw.get("thinking").is_some(), "{raw}");

    // After a restart, or when another model called the tool, there is nothing to send back.
    let foreign = ToolCall {
        id: "call#weather#0".to_owned(),
        ..calls[0].clone()
    };
    let result = ModelMessage::ToolResult {
        call_id: foreign.id.clone(),
        content: "-3 °C".to_owned(),
    };
    ask(vec![user("warm?"), step(&[foreign]), result]).await;
    let raw = setup.server.last_request().raw;
    assert!(
        raw.get("thinking").is_none(),
        "it goes on without thinking: {raw}"
    );
    assert_eq!(
        raw["messages"][1]["content"][0]["id"],
        json!("call_weather_0"),
        "and the id is one that it takes"
    );
    assert_eq!(
        raw["messages"][2]["content"][0]["tool_use_id"],
        json!("call_weather_0")
    );
}

#[tokio::test]
async fn thoughts_that_a_server_leaves_in_the_text_are_taken_out() {
    let setup = Setup::start().await;
    for dialect in [Dialect::OpenAi, Dialect::Ollama] {
        setup.server.enqueue(Script::text(
            "<think>They greet me. I greet back.</think>\n\nGood morning.",
        ));
        assert_eq!(
            setup.hears(dialect, "hi").await.text(),
            "Good morning.",
            "{dialect:?}"
        );
        setup.server.enqueue(Script::text("<"));
        assert_eq!(
            setup.hears(dialect, "which sign?").await.text(),
            "<",
            "{dialect:?}"
        );
    }
}

#[tokio::test]
async fn what_can_be_cached_is_marked_the_way_each_provider_wants_it() {
    let setup = Setup::start().await;
    for (_, dialect) in KINDS {
        let asked = ModelRequest {
            cache_key: "0123".to_owned(),
            ..request([user("hi")])
        };
        let stream = setup
            .models
            .stream(&model(&name(dialect), "some-model"), asked)
            .await
            .expect("a stream");
        whole(stream).await;
        let raw = setup.server.last_request().raw;
        let marks = raw.to_string().matches("cache_control").count();
        match dialect {
            Dialect::Anthropic => {
                assert_eq!(
                    raw["system"][0]["cache_control"]["type"],
                    json!("ephemeral")
                );
                assert_eq!(
                    raw["messages"][0]["content"][0]["cache_control"]["type"],
                    json!("ephemeral")
                );
                assert_eq!(marks, 2, "{raw}");
            }
            Dialect::OpenAiResponses => assert_eq!(raw["prompt_cache_key"], json!("0123")),
            // Whoever else speaks like OpenAI may refuse a field it does not know.
            _ => assert!(
                raw.get("prompt_cache_key").is_none() && marks == 0,
                "{dialect:?}: {raw}"
            ),
        }
    }
}

#[tokio::test]
async fn an_unknown_provider_is_refused_by_name() {
    let setup = Setup::start().await;
    let refused = setup
        .models
        .stream(&model("acme", "x"), request([user("hi")]))
        .await
        .err()
        .expect("there is no acme");
    assert_eq!(
        refused.error,
        ModelError::Unavailable(Unavailable::NoProvider)
    );
}

#[tokio::test]
async fn the_demo_model_needs_no_provider() {
    let models = Models::new(&BTreeMap::new());
    let stream = models
        .stream(&ModelRef::Demo, request([user("hi")]))
        .await
        .expect("it always answers");
    assert!(whole(stream).await.text().starts_with("You said: “hi”."));
}

#[tokio::test]
async fn a_rate_limit_says_when_to_come_back() {
    let setup = Setup::start().await;
    for (_, dialect) in KINDS {
        setup
            .server
            .enqueue(Script::status(429, "{}").with_header("retry-after", "7"));
        let answer = setup.hears(dialect, "hi").await;
        assert_eq!(
            answer.error(),
            ModelError::RateLimited {
                retry_after: Some(Duration::from_secs(7))
            },
            "{dialect:?}"
        );
    }
}

#[tokio::test]
async fn refusals_are_told_apart_without_the_servers_words() {
    let setup = Setup::start().await;
    let body = |words: &str| json!({"error": {"message": format!("{words} ({KEY})")}}).to_string();
    let key = ModelError::Unavailable(Unavailable::KeyRejected(401));
    let gone = ModelError::Unavailable(Unavailable::NoSuchModel(404));
    let other = ModelError::Refused("the request was not accepted (400)".to_owned());
    let failed = ModelError::Broken("the model server failed (500)".to_owned());
    let cases = [
        (
            Script::status(529, &body("Overloaded")),
            ModelError::Overloaded,
        ),
        (
            Script::status(503, &body("try later")),
            ModelError::Overloaded,
        ),
        (
            Script::status(400, &body("maximum context length is 8192 tokens")),
            ModelError::ContextTooLong,
        ),
        (
            Script::status(400, &body("prompt is too long")),
            ModelError::ContextTooLong,
        ),
        (Script::status(401, &body("incorrect key")), key),
        (Script::status(404, &body("unknown")), gone),
        (Script::status(400, &body("bad")), other),
        (Script::status(500, &body("boom")), failed),
    ];
    for (_, dialect) in KINDS {
        for (script, expected) in cases.clone() {
            setup.server.enqueue(script);
            assert_eq!(
                setup.hears(dialect, "hi").await.error(),
                expected,
                "{dialect:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_redirect_does_not_carry_the_key_away() {
    let (setup, elsewhere) = (Setup::start().await, FakeModel::start().await);
    for (_, dialect) in KINDS {
        setup
            .server
            .enqueue(Script::status(307, "").with_header("location", &elsewhere.base_url(dialect)));
        let error = setup.hears(dialect, "hi").await.error();
        assert_eq!(
            error,
            ModelError::Unavailable(Unavailable::Moved(307)),
            "{dialect:?}"
        );
    }
    assert!(elsewhere.journal().is_empty());
}

#[tokio::test]
async fn an_error_in_the_middle_of_an_answer_ends_it() {
    let setup = Setup::start().await;
    let kinds = [
        (Dialect::OpenAi, "server_overloaded"),
        (Dialect::OpenAiResponses, "server_overloaded"),
        (Dialect::Anthropic, "overloaded_error"),
        (Dialect::Gemini, "UNAVAILABLE"),
    ];
    for (dialect, kind) in kinds {
        let script = Script::ErrorInStream {
            after: "I was ".to_owned(),
            kind: kind.to_owned(),
            message: KEY.to_owned(),
        };
        setup.server.enqueue(script);
        let answer = setup.hears(dialect, "hi").await;
        assert_eq!(answer.text(), "I was ", "{dialect:?}");
        assert_eq!(answer.error(), ModelError::Overloaded, "{dialect:?}");
    }
    // Ollama gives errors no kind.
    let script = Script::ErrorInStream {
        after: "I was ".to_owned(),
        kind: String::new(),
        message: KEY.to_owned(),
    };
    setup.server.enqueue(script);
    let answer = setup.hears(Dialect::Ollama, "hi").await;
    assert_eq!(answer.text(), "I was ");
    assert_eq!(
        answer.error(),
        ModelError::Broken("the model server failed while it answered".to_owned())
    );
}

#[tokio::test]
async fn a_web_page_is_no_answer() {
    let setup = Setup::start().await;
    for (_, dialect) in KINDS {
        setup.server.enqueue(
            Script::status(200, "<html>Welcome!</html>")
                .with_header("content-type", "text/html; charset=utf-8"),
        );
        let error = setup.hears(dialect, "hi").await.error();
        let why = ModelError::Unavailable(Unavailable::WebPage);
        assert_eq!(error, why, "{dialect:?}");
    }
}

#[tokio::test]
async fn an_answer_that_just_stops_is_cut_off() {
    let setup = Setup::start().await;
    for (_, dialect) in KINDS {
        for how in [Cut::Ended, Cut::Torn] {
            setup.server.enqueue(Script::Cut {
                text: "one two three".to_owned(),
                after: 2,
                how,
            });
            let answer = setup.hears(dialect, "count").await;
            assert_eq!(answer.text(), "one two ", "{dialect:?} {how:?}");
            assert_eq!(answer.error(), ModelError::CutOff, "{dialect:?} {how:?}");
        }
    }
}

#[tokio::test]
async fn a_server_that_falls_silent_is_given_up() {
    let setup = Setup::start().await;
    for (_, dialect) in KINDS {
        setup.server.enqueue(Script::Pause {
            text: "one two three".to_owned(),
            after: 2,
        });
        let mut stream = setup.ask(dialect, [user("count")]).await;
        for piece in ["one ", "two "] {
            assert_eq!(
                stream.next().await,
                Some(Ok(ModelEvent::Text(piece.to_owned()))),
                "{dialect:?}"
            );
        }
        // Nothing will come any more, so the only thing left that can happen is the time limit.
        tokio::time::pause();
        assert_eq!(
            stream.next().await,
            Some(Err(ModelError::Stalled.into())),
            "{dialect:?}"
        );
        tokio::time::resume();
    }
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let setup = Setup::start().await;
    setup.server.hold();
    for (requests, (_, dialect)) in (1..).zip(KINDS) {
        let stream = setup.ask(dialect, [user("hello?")]).await;
        let answer = tokio::spawn(whole(stream));
        setup.server.wait_for_requests(requests).await;
        tokio::time::pause();
        let answer = answer.await.expect("no panic");
        tokio::time::resume();
        assert_eq!(answer.error(), ModelError::Stalled, "{dialect:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_gone_is_named_by_nothing_secret() {
    // Bound but not listening: the port is ours, and nobody answers on it.
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket
        .bind("127.0.0.1:0".parse().expect("an address"))
        .expect("a free port");
    let address = socket.local_addr().expect("a bound socket has an address");
    for (kind, dialect) in KINDS {
        let gone = provider(kind, format!("http://{address}/v1/"), Some(KEY));
        let models = Models::new(&BTreeMap::from([("gone".to_owned(), gone)]));
        let stream = models
            .stream(&model("gone", "some-model"), request([user("hi")]))
            .await
            .expect("a stream");
        let error = whole(stream).await.error();
        assert_eq!(
            error,
            ModelError::Unreachable(Unreachable::ConnectionRefused),
            "{dialect:?}"
        );
        assert!(
            !format!("{error:?} {error}").contains(&address.port().to_string()),
            "{dialect:?}"
        );
    }
}

#[tokio::test]
async fn dropping_the_stream_hangs_up() {
    for (_, dialect) in KINDS {
        let setup = Setup::start().await;
        setup.server.enqueue(Script::Pause {
            text: "one two three".to_owned(),
            after: 1,
        });
        let mut stream = setup.ask(dialect, [user("count")]).await;
        assert_eq!(
            stream.next().await,
            Some(Ok(ModelEvent::Text("one ".to_owned()))),
            "{dialect:?}"
        );
        assert_eq!(
            (setup.server.open_now(), setup.server.disconnects()),
            (1, 0),
            "{dialect:?}"
        );
        drop(stream);
        setup.server.wait_for_disconnect().await;
        assert_eq!(setup.server.open_now(), 0, "{dialect:?}");
    }
}

#[tokio::test]
async fn held_requests_are_seen_and_answered_after_release() {
    let setup = Setup::start().await;
    setup.server.hold();
    let texts = ["one", "two", "three"];
    let answers = texts.map(|text| async { setup.hears(Dialect::OpenAi, text).await.text() });
    let release = async {
        setup.server.wait_for_requests(3).await;
        assert_eq!(setup.server.open_now(), 3);
        setup.server.release();
    };
    let (answers, ()) =
        futures_util::future::join(futures_util::future::join_all(answers), release).await;
    assert_eq!(answers, ["re: one", "re: two", "re: three"]);
    assert_eq!(setup.server.most_at_once(), 3);
    setup.server.wait_for_open(0).await;
    assert_eq!(setup.server.disconnects(), 0);
}

#[tokio::test]
async fn the_fake_server_is_as_slow_as_it_is_told() {
    let setup = Setup::start().await;
    let delay = Duration::from_millis(20);
    setup.server.delay(delay);
    assert_eq!(setup.hears(Dialect::OpenAi, "hi").await.text(), "re: hi");
    let request = setup.server.last_request();
    assert!(request.answered.unwrap() - request.arrived >= delay);
}

#[tokio::test]
async fn the_fake_server_follows_its_script() {
    let setup = Setup::start().await;
    let ask = async |text: &str| setup.hears(Dialect::OpenAi, text).await;

    setup.server.reply_when("weather", "It rains.");
    setup.server.enqueue_when("news", Script::text("None."));
    assert_eq!(ask("the weather?").await.text(), "It rains.");
    assert_eq!(ask("the news?").await.text(), "None.");
    assert_eq!(ask("the news?").await.text(), "re: the news?");
    assert_eq!(ask("the weather?").await.text(), "It rains.");

    setup
        .server
        .answer_with(|request| Script::text(format!("{} bytes", request.bytes)));
    let answer = ask("how long is this?").await.text();
    assert_eq!(
        answer,
        format!("{} bytes", setup.server.last_request().bytes)
    );

    setup.server.report_tokens(Tokens {
        input: 9,
        cached: 0,
        output: 1,
    });
    let (_, usage) = ask("again").await.end.expect("the answer is complete");
    assert_eq!(
        usage,
        Usage {
            input_tokens: 9,
            output_tokens: 1,
            cached_tokens: 0
        }
    );

    setup.server.enqueue(Script::text("at last").held());
    let come = setup.server.journal().len() + 1;
    let release = async {
        setup.server.wait_for_requests(come).await;
        // Others are not held.
        assert!(ask("meanwhile").await.text().ends_with("bytes"));
        setup.server.release();
    };
    let (answer, ()) = futures_util::future::join(ask("well?"), release).await;
    assert_eq!(answer.text(), "at last");
}

#[tokio::test]
async fn the_servers_words_never_reach_the_log() {
    let setup = Setup::start().await;
    for (_, dialect) in KINDS {
        let log = log_of(&setup, dialect).await;
        assert!(
            !log.contains("hunter2") && !log.contains(KEY),
            "{dialect:?}: {log}"
        );
    }
}

#[test]
fn only_our_own_lines_are_logged() {
    assert!(is_ours("parlor") && is_ours("parlor::models"));
    assert!(!is_ours("hyper_util::client") && !is_ours("reqwest") && !is_ours("parlors"));
}

/// Everything logged, at every level and by every crate, while the server answers with a secret in
/// its error.
async fn log_of(setup: &Setup, dialect: Dialect) -> String {
    let log = Log::default();
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer({
            let log = log.clone();
            move || log.clone()
        });
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));

    setup
        .server
        .enqueue(Script::status(400, r#"{"error":{"message":"hunter2"}}"#));
    let error = setup.hears(dialect, "hi").await.error();
    tracing::info!(target: "parlor", "{error}");
    setup.server.enqueue(Script::ErrorInStream {
        after: String::new(),
        kind: "api_error".to_owned(),
        message: "hunter2".to_owned(),
    });
    let error = setup.hears(dialect, "hi").await.error();
    tracing::info!(target: "parlor", "{error:?}");
    let text = log.0.lock().expect("nobody panics while writing").clone();
    let text = String::from_utf8(text).expect("logs are text");
    assert!(
        text.contains("the request was not accepted (400)"),
        "the log works: {text}"
    );
    text
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0
            .lock()
            .expect("nobody panics while writing")
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
