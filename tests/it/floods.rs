//! Model servers that send more than any answer has: they are stopped early, the person is told,
//! and nothing of it is stored.

use std::collections::BTreeMap;

use futures_util::StreamExt;
use parlor::config::{ModelRef, ModelSettings, Provider, ProviderKind, ProviderLines, Vision};
use parlor::models::{ModelError, ModelEvent, ModelMessage, ModelRequest, Models, ToolCall};
use serde_json::{Value, json};

use crate::support::House;
use crate::support::fake_model::{Dialect, FakeModel, Flood, Script};
use crate::support::fake_telegram::ALICE;

const OPEN: &str = "[access]\ndms = \"open\"\n";
const MB: usize = 1024 * 1024;
/// The largest event, and what the system keeps on the way in buffers of its own.
const MOST_TAKEN: usize = 20 * MB;

const KINDS: [(ProviderKind, Dialect); 5] = [
    (ProviderKind::OpenAi, Dialect::OpenAi),
    (ProviderKind::OpenAiResponses, Dialect::OpenAiResponses),
    (ProviderKind::Anthropic, Dialect::Anthropic),
    (ProviderKind::Gemini, Dialect::Gemini),
    (ProviderKind::Ollama, Dialect::Ollama),
];

/// The end of the answer to one message.
async fn end_of_answer(
    server: &FakeModel,
    kind: ProviderKind,
    dialect: Dialect,
) -> Result<Vec<ToolCall>, ModelError> {
    let (base_url, prices) = (server.base_url(dialect), BTreeMap::new());
    let (models, vision) = (Vec::new(), Vision::ByName);
    let provider = Provider {
        kind,
        base_url,
        api_key: None,
        proxy: None,
        prices,
        models,
        vision,
        context_tokens: None,
        missing_key: None,
        lines: ProviderLines::default(),
    };
    let models = Models::new(&BTreeMap::from([("p".to_owned(), provider)]));
    let request = ModelRequest {
        system: "".into(),
        messages: vec![ModelMessage::user("go ahead")],
        tools: Vec::new(),
        settings: ModelSettings::default(),
        cache_key: String::new(),
    };
    let model = ModelRef::Of {
        provider: "p".to_owned(),
        model: "some-model".to_owned(),
    };
    let mut stream = models
        .stream(&model, request)
        .await
        .expect("the request is well formed");
    loop {
        match stream
            .next()
            .await
            .expect("a stream ends with `Done` or an error")
        {
            Ok(ModelEvent::Text(_) | ModelEvent::Working) => {}
            Ok(ModelEvent::Done { tool_calls, .. }) => return Ok(tool_calls),
            Err(error) => return Err(error.error),
        }
    }
}

fn expected(flood: Flood, dialect: Dialect) -> ModelError {
    let has_pieces = !matches!(dialect, Dialect::Gemini | Dialect::Ollama);
    let what = match flood {
        Flood::Text => "512 KB of text",
        Flood::Thoughts => "2 MB of thoughts",
        Flood::Arguments if has_pieces => "512 KB for tools",
        Flood::Calls => "64 tool calls",
        Flood::Arguments | Flood::Event | Flood::Lines => "4 MB in one event",
        Flood::ErrorPage => return ModelError::Broken("the model server failed (500)".to_owned()),
    };
    ModelError::TooMuch(format!("more than {what}"))
}

#[tokio::test]
async fn floods_are_stopped_early_in_every_dialect() {
    for (kind, dialect) in KINDS {
        for flood in Flood::ALL {
            // Ollama has one line for each event.
            if (dialect, flood) == (Dialect::Ollama, Flood::Lines) {
                continue;
            }
            let server = FakeModel::start().await;
            server.enqueue(Script::Flood(flood));
            let end = end_of_answer(&server, kind, dialect).await;
            server.wait_for_open(0).await;
            let taken = server.flooded();
            assert_eq!(
                end,
                Err(expected(flood, dialect)),
                "{dialect:?} {flood:?} after {taken} bytes"
            );
            assert!(taken < MOST_TAKEN, "{dialect:?} {flood:?}: {taken} bytes");
            assert_eq!(
                server.disconnects(),
                1,
                "{dialect:?} {flood:?}: the connection is closed"
            );
        }
    }
}

/// One event is enough for all arguments of a call, and may be longer than they may be.
#[tokio::test]
async fn a_large_call_in_one_event_is_stopped() {
    for (kind, dialect) in KINDS {
        let server = FakeModel::start().await;
        server.enqueue(Script::tool_call(
            "file_write",
            json!({"content": "x".repeat(MB)}),
        ));
        let end = end_of_answer(&server, kind, dialect).await;
        assert_eq!(
            end,
            Err(ModelError::TooMuch("more than 512 KB for tools".to_owned())),
            "{dialect:?}"
        );
        server.enqueue(Script::tool_call(
            "file_write",
            json!({"content": "x".repeat(MB / 4)}),
        ));
        let calls = end_of_answer(&server, kind, dialect)
            .await
            .expect("within the limit");
        assert_eq!(
            calls[0].arguments["content"].as_str().map(str::len),
            Some(MB / 4),
            "{dialect:?}"
        );
    }
}

/// Values take many times the memory of their text.
#[tokio::test]
async fn arguments_of_countless_values_stay_text() {
    let numbers = Value::Array(vec![json!(0); 100_000]);
    for (kind, dialect) in KINDS {
        let server = FakeModel::start().await;
        server.enqueue(Script::tool_call("now", json!({"numbers": numbers})));
        let end = end_of_answer(&server, kind, dialect).await;
        match dialect {
            Dialect::Gemini | Dialect::Ollama => {
                let what = "more than 20000 values in one event".to_owned();
                assert_eq!(end, Err(ModelError::TooMuch(what)), "{dialect:?}");
            }
            _ => assert!(
                end.expect("few values around a long text")[0]
                    .arguments
                    .is_string(),
                "{dialect:?}"
            ),
        }
    }
}

/// Room for all calls up to this number would take more memory than there is.
#[tokio::test]
async fn a_call_may_have_any_number() {
    for (kind, dialect) in KINDS {
        let server = FakeModel::start().await;
        server.enqueue(Script::FarToolCall("now".to_owned(), 4_000_000_000));
        let calls = end_of_answer(&server, kind, dialect)
            .await
            .expect("a number is a name");
        assert_eq!(
            (calls.len(), calls[0].name.as_str()),
            (1, "now"),
            "{dialect:?}"
        );
    }
}

#[tokio::test]
async fn the_person_is_told_and_nothing_is_stored() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    for flood in [
        Flood::Text,
        Flood::Thoughts,
        Flood::Arguments,
        Flood::Calls,
        Flood::Event,
    ] {
        let (told, asked) = (alice.texts().len(), house.model.journal().len());
        house.model.enqueue(Script::Flood(flood));
        alice.says("go ahead").await;
        house.settled(&gateway).await;
        let ModelError::TooMuch(what) = expected(flood, Dialect::OpenAi) else {
            panic!("it is too much")
        };
        let sentence = format!(
            "My model sent {what}, which is more than I take in, so I stopped it. Please ask for something smaller. [ref "
        );
        assert!(alice.texts().len() > told, "{flood:?}");
        let last = alice.texts().pop().expect("a text");
        assert!(last.starts_with(&sentence), "{flood:?}: {last}");
        assert_eq!(
            house.model.journal().len(),
            asked + 1,
            "{flood:?}: the same model is not asked again"
        );
    }
    assert_eq!(house.ask("SELECT count(*) FROM tool_calls"), "0");
    gateway.shutdown().await;
    let stored: u64 = std::fs::read_dir(house.home.path())
        .expect("a folder")
        .map(|file| size(&file.expect("a file").path()))
        .sum();
    assert!(stored < 2 * MB as u64, "{stored} bytes");
}

fn size(path: &std::path::Path) -> u64 {
    let is_database = path
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with("parlor.db"));
    if is_database {
        std::fs::metadata(path).map_or(0, |metadata| metadata.len())
    } else {
        0
    }
}

/// Text that was shown cannot be taken back, but thoughts and calls were shown to nobody.
#[tokio::test]
async fn the_next_model_answers_for_one_that_floods() {
    let (house, spare) = (House::new("").await, FakeModel::start().await);
    let base_url = spare.base_url(Dialect::Anthropic);
    let rest = format!(
        "[providers.spare]\nkind = \"anthropic\"\nbase_url = \"{base_url}\"\n{OPEN}[agents.main]\nfallback = [\"spare/other\"]\n"
    );
    house.configure("", &rest);
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    for (number, flood) in (1..).zip([Flood::Arguments, Flood::Event]) {
        house.model.enqueue(Script::Flood(flood));
        alice.says("hello").await;
        house.settled(&gateway).await;
        assert_eq!(
            alice.texts().last().map(String::as_str),
            Some("re: hello"),
            "{flood:?}"
        );
        assert_eq!(
            (house.model.journal().len(), spare.journal().len()),
            (number, number),
            "{flood:?}"
        );
    }
    gateway.shutdown().await;
}
