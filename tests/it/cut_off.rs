//! Answers that a limit cut off: they say so, nothing is done on half a word, and people can have
//! the rest.

use serde_json::json;

use crate::support::House;
use crate::support::fake_model::{Dialect, Limit, Limited, Request, Script};
use crate::support::fake_telegram::ALICE;

const OPEN: &str = "[access]\ndms = \"open\"\ngroups = \"open\"\nrequire_mention = false\n[agents.main]\nmax_tokens = 60\n";

/// The same house with a provider of another dialect.
async fn house_speaking(kind: &str, dialect: Dialect) -> House {
    let house = House::new(OPEN).await;
    let written =
        std::fs::read_to_string(house.home.path().join("config.toml")).expect("there is a config");
    let written = written.replace("kind = \"openai\"", &format!("kind = \"{kind}\""));
    house.write(
        "config.toml",
        &written.replace(
            &house.model.base_url(Dialect::OpenAi),
            &house.model.base_url(dialect),
        ),
    );
    house
}

fn conversation(request: &Request) -> Vec<String> {
    request
        .messages
        .iter()
        .map(|(role, text)| format!("{role}: {text}"))
        .collect()
}

/// In every dialect, and the next turn knows where the answer ended.
#[tokio::test]
async fn an_answer_that_was_cut_off_says_so_and_can_go_on() {
    let kinds = [
        ("openai", Dialect::OpenAi),
        ("openai-responses", Dialect::OpenAiResponses),
        ("anthropic", Dialect::Anthropic),
        ("gemini", Dialect::Gemini),
        ("ollama", Dialect::Ollama),
    ];
    for (kind, dialect) in kinds {
        let house = house_speaking(kind, dialect).await;
        let gateway = house.open().await;
        let alice = house.telegram.dm(ALICE);
        house
            .model
            .enqueue(Script::limited("Once upon a time there"));
        alice.says("a story").await;
        house.settled(&gateway).await;
        assert_eq!(
            alice.texts(),
            ["Once upon a time there\n\n(Cut off at 60 tokens. Reply \"go on\" for the rest.)"],
            "{kind}"
        );
        alice.says("go on").await;
        house.settled(&gateway).await;
        assert_eq!(
            conversation(&house.model.last_request()),
            [
                "user: a story",
                "assistant: Once upon a time there",
                "user: [this answer was cut off at 60 tokens]\n\ngo on"
            ],
            "{kind}"
        );
        gateway.shutdown().await;
    }
}

/// What was shown while it was written is whole words of a whole answer, until the answer ends.
#[tokio::test]
async fn an_answer_that_was_shown_while_it_was_written_is_marked_too() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let group = house.telegram.supergroup(-1001);
    let text =
        "This is the beginning of a long story that is shown while it is written, up to its end.";
    house.model.enqueue(Script::TextAndToolCalls(
        text.into(),
        vec![("now".into(), json!({}))],
    ));
    house
        .model
        .enqueue(Script::limited("And then\n\n```rust\nfn main() {").held());
    group.says(ALICE, "a story").await;
    group.wait_for_sent(1).await;
    house.model.release();
    house.settled(&gateway).await;
    let shown = group.wait_for_sent(1).await;
    assert!(
        shown.text.ends_with(
            "And then\n\nfn main() {\n\n(Cut off at 60 tokens. Reply \"go on\" for the rest.)"
        ),
        "{}",
        shown.text
    );
    assert_eq!(
        shown.entities.last().map(|entity| entity["type"].clone()),
        Some(json!("italic")),
        "the mark is no code"
    );
    assert_eq!(group.texts().len(), 1);
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_full_window_offers_a_fresh_start() {
    let house = house_speaking("anthropic", Dialect::Anthropic).await;
    let gateway = house.open().await;
    let limited = Limited {
        text: "Once".into(),
        by: Limit::Window,
        ..Limited::default()
    };
    house.model.enqueue(Script::Limited(limited));
    house.telegram.dm(ALICE).says("a story").await;
    house.settled(&gateway).await;
    let expected = "Once\n\n(Cut off, because the conversation fills my model's window. Reply \"go on\" for the rest, or /new for a fresh start.)";
    assert_eq!(house.telegram.dm(ALICE).texts(), [expected]);
    gateway.shutdown().await;
}

/// Thoughts count as tokens, and may take them all.
#[tokio::test]
async fn an_answer_that_is_all_thought_is_no_empty_message() {
    for (kind, dialect) in [
        ("openai", Dialect::OpenAi),
        ("anthropic", Dialect::Anthropic),
    ] {
        let house = house_speaking(kind, dialect).await;
        let gateway = house.open().await;
        house.model.enqueue(Script::Limited(Limited {
            thought: "well, let me see".into(),
            ..Limited::default()
        }));
        house.telegram.dm(ALICE).says("a riddle").await;
        if dialect == Dialect::OpenAi {
            // Some servers leave thoughts in the text.
            house.settled(&gateway).await;
            house
                .model
                .enqueue(Script::limited("<think>well, let me see"));
            house.telegram.dm(ALICE).says("another").await;
        }
        house.settled(&gateway).await;
        let told = "My answer was cut off at 60 tokens, and all of it went into thinking. Please ask for something smaller; an owner can raise max_tokens.";
        assert!(
            house
                .telegram
                .dm(ALICE)
                .texts()
                .iter()
                .all(|text| text == told),
            "{kind}: {:?}",
            house.telegram.dm(ALICE).texts()
        );
        gateway.shutdown().await;
    }
}

/// The first call is whole and runs. The second wrote a file, with nobody knows how much of what.
#[tokio::test]
async fn a_tool_call_with_cut_arguments_is_not_run() {
    let kinds = [
        ("openai", Dialect::OpenAi),
        ("openai-responses", Dialect::OpenAiResponses),
        ("anthropic", Dialect::Anthropic),
    ];
    for (kind, dialect) in kinds {
        let house = house_speaking(kind, dialect).await;
        let gateway = house.open().await;
        let cut = |arguments: &str| {
            let calls = vec![
                ("now".to_owned(), "{}".to_owned()),
                ("file_list".to_owned(), arguments.to_owned()),
            ];
            Script::Limited(Limited {
                calls,
                ..Limited::default()
            })
        };
        house.model.enqueue(cut(r#"{"path": "no"#));
        // Not even the beginning of the arguments came.
        house.model.enqueue(cut(""));
        house
            .model
            .enqueue(Script::tool_call("file_list", json!({})));
        house.telegram.dm(ALICE).says("what do we have?").await;
        house.settled(&gateway).await;
        let told = house.model.last_request();
        let results: Vec<&str> = told
            .messages
            .iter()
            .filter(|(role, _)| role == "tool")
            .map(|(_, text)| text.as_str())
            .collect();
        let not_run = "The tool was not run: your answer was cut off at 60 tokens, in the middle of its arguments. Call it again with less, or go on without it.";
        assert_eq!((results[1], results[3]), (not_run, not_run), "{kind}");
        assert!(
            !results[0].contains("not run") && !results[4].contains("not run"),
            "{kind}: {results:?}"
        );
        gateway.shutdown().await;
    }
}

#[tokio::test]
async fn a_model_that_is_cut_off_in_every_call_is_not_asked_for_ever() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let calls = vec![(
        "file_write".to_owned(),
        r#"{"path": "notes.md", "content": "on"#.to_owned(),
    )];
    house.model.answer_with(move |_| {
        Script::Limited(Limited {
            calls: calls.clone(),
            ..Limited::default()
        })
    });
    house.telegram.dm(ALICE).says("write it down").await;
    house.settled(&gateway).await;
    let told = "I wanted to use a tool, but was cut off at 60 tokens before the call was complete, so I stopped. Please ask for something smaller; an owner can raise max_tokens.";
    assert_eq!(house.telegram.dm(ALICE).texts(), [told]);
    assert_eq!(house.model.journal().len(), 3);
    assert!(
        !house
            .home
            .path()
            .join("agents/main/workspace/notes.md")
            .exists()
    );
    gateway.shutdown().await;
}

fn is_summary(request: &Request) -> bool {
    request.last_text().contains("[Sum all of this up")
}

/// Half a summary would lose the end of the conversation without a word. Its length is no matter of
/// the agent's answers.
#[tokio::test]
async fn a_summary_that_was_cut_off_is_not_kept() {
    let house = House::new(&format!("context_tokens = 3000\n{OPEN}")).await;
    house
        .model
        .answer_with(|request| match is_summary(request) {
            true => Script::limited("They planted roses; the gate"),
            false => Script::text("much to say. ".repeat(30)),
        });
    let gateway = house.open().await;
    for n in 0..8 {
        house
            .telegram
            .dm(ALICE)
            .says(&format!(
                "question {n} about the garden, {}",
                "with many words ".repeat(10)
            ))
            .await;
        house.settled(&gateway).await;
    }
    let journal = house.model.journal();
    let summary = journal
        .iter()
        .find(|request| is_summary(request))
        .expect("it is tried");
    let turn = journal
        .iter()
        .find(|request| !is_summary(request))
        .expect("a turn");
    assert_eq!(
        (&summary.raw["max_tokens"], &turn.raw["max_tokens"]),
        (&json!(750), &json!(60))
    );
    assert_eq!(house.ask("SELECT count(*) FROM summaries"), "0");
    assert_eq!(
        house.ask("SELECT outcome FROM turns WHERE route = 'a summary' LIMIT 1"),
        "it was cut off at 750 tokens"
    );
    assert_eq!(house.telegram.dm(ALICE).texts().len(), 8);
    gateway.shutdown().await;
}
