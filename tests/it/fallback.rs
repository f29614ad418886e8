//! Models that cannot answer, and those that answer for them.

use insta::assert_snapshot;
use serde_json::json;

use crate::support::House;
use crate::support::fake_model::{Cut, Dialect, FakeModel, Script};
use crate::support::fake_telegram::{ALICE, Dm};

/// A house whose agent asks `fake/any`, and then `spare/other` on a server of its own with another
/// dialect.
async fn house_with_spare() -> (House, FakeModel, Dm) {
    let (house, spare) = (House::new("").await, FakeModel::start().await);
    let base_url = spare.base_url(Dialect::Anthropic);
    let rest = format!(
        "[providers.spare]\nkind = \"anthropic\"\nbase_url = \"{base_url}\"\n\
         [access]\ndms = \"open\"\n[agents.main]\nfallback = [\"spare/other\"]\n"
    );
    house.configure("", &rest);
    let alice = house.telegram.dm(ALICE);
    (house, spare, alice)
}

/// The models of all turns, in order.
const TURNS: &str = "SELECT group_concat(model, ' ') FROM (SELECT model FROM turns ORDER BY id)";

#[tokio::test]
async fn the_next_model_answers_and_the_first_is_left_alone() {
    let (house, spare, alice) = house_with_spare().await;
    house.model.enqueue(Script::status(401, "{}"));
    let process = house.spawn().await;
    alice.says("hello").await;
    assert_eq!(alice.wait_for_sent(1).await.text, "re: hello");
    process
        .wait_for_log("it wants a key, and the config has none (401); going on with spare/other")
        .await;
    alice.says("again").await;
    assert_eq!(alice.wait_for_sent(2).await.text, "re: again");
    process
        .wait_for_log("the model rests after a failure; asking spare/other")
        .await;
    assert_eq!(
        (house.model.journal().len(), spare.journal().len()),
        (1, 2),
        "nobody knocks at a dead one"
    );
    alice.says("/status").await;
    let status = alice.wait_for_sent(3).await.text;
    assert!(status.contains("Main uses fake/any here."), "{status}");
    assert_eq!(
        house.ask("SELECT model FROM turns ORDER BY id DESC LIMIT 1"),
        "spare/other"
    );
    alice.says("/models").await;
    let models = alice.wait_for_sent(4).await.text;
    assert!(
        models.contains("fake/any (default; resting for "),
        "{models}"
    );
    assert_eq!(house.ask(TURNS), "spare/other spare/other");
    assert_eq!(process.stop().await, 0);
}

#[tokio::test]
async fn a_wait_too_long_for_a_person_goes_to_the_next_at_once() {
    let (house, spare, alice) = house_with_spare().await;
    let gateway = house.open().await;
    house
        .model
        .enqueue(Script::status(429, "{}").with_header("retry-after", "3600"));
    alice.says("hello").await;
    house.settled(&gateway).await;
    assert_eq!(alice.texts(), ["re: hello"]);
    assert_eq!((house.model.journal().len(), spare.journal().len()), (1, 1));
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_short_wait_is_kept_and_the_first_model_answers() {
    let (house, spare, alice) = house_with_spare().await;
    let gateway = house.open().await;
    house
        .model
        .enqueue(Script::status(429, "{}").with_header("retry-after", "1"));
    alice.says("hello").await;
    house.settled(&gateway).await;
    assert_eq!(alice.texts(), ["re: hello"]);
    let asked = house.model.journal();
    assert_eq!((asked.len(), spare.journal().len()), (2, 0));
    assert!(
        asked[1].arrived - asked[0].arrived >= std::time::Duration::from_secs(1),
        "in full"
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn whoever_has_begun_to_speak_is_not_replaced() {
    let (house, spare, alice) = house_with_spare().await;
    let gateway = house.open().await;
    house.model.enqueue(Script::Cut {
        text: "Well, I think that".into(),
        after: 2,
        how: Cut::Torn,
    });
    alice.says("hello").await;
    house.settled(&gateway).await;
    assert_eq!(
        alice.texts().last().map(String::as_str),
        Some("My answer was cut off on the way. Please try again. [ref 1]")
    );
    assert_eq!((house.model.journal().len(), spare.journal().len()), (1, 0));
    assert_eq!(house.ask(TURNS), "fake/any");
    gateway.shutdown().await;
}

#[tokio::test]
async fn when_all_fail_the_first_ones_trouble_is_told() {
    let (house, spare, alice) = house_with_spare().await;
    let gateway = house.open().await;
    house.model.enqueue(Script::status(404, "{}"));
    spare.enqueue(Script::status(401, "{}"));
    alice.says("hello").await;
    house.settled(&gateway).await;
    assert_snapshot!(alice.texts().join("\n"), @"I can't answer: fake has no model any (404). [ref 1]");
    // Both rest now, and an agent without a model is no help: so both are asked again.
    alice.says("again").await;
    house.settled(&gateway).await;
    assert_eq!(alice.texts()[1], "re: hello\n\nagain");
    assert_eq!(house.ask(TURNS), "fake/any fake/any");
    gateway.shutdown().await;
}

/// The work of the first model is not lost: the second goes on behind its tool call.
#[tokio::test]
async fn a_turn_goes_on_with_the_next_model_after_a_tool_round() {
    let (house, spare, alice) = house_with_spare().await;
    let gateway = house.open().await;
    house.model.enqueue(Script::tool_call("now", json!({})));
    house.model.enqueue(Script::status(403, "{}"));
    alice.says("what time is it?").await;
    house.settled(&gateway).await;
    let asked = spare.last_request();
    let roles: Vec<&str> = asked
        .messages
        .iter()
        .map(|(role, _)| role.as_str())
        .collect();
    assert_eq!(roles, ["user", "call", "tool"]);
    assert!(
        alice.texts()[0].starts_with("tool said: 20"),
        "{:?}",
        alice.texts()
    );
    assert_eq!(
        house.ask("SELECT model || ' ' || steps FROM turns"),
        "spare/other 2"
    );
    gateway.shutdown().await;
}
