//! Agents that write to each other, and to other places of their own.

use serde_json::json;

use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB};

/// Rose and Ada share a desk, Ada and Max another; Rose and Max share nothing but Ada.
const DESKS: &str = r#"
[access]
owners = ["telegram:111"]
dms = "open"
groups = "open"
require_mention = false
tools = { guest = "reach" }
[agents.rose]
[agents.ada]
[agents.max]
[peer_groups.desk]
members = ["rose", "ada"]
[peer_groups.lab]
members = ["ada", "max"]
[[bindings]]
match = "telegram:topic:-1001:101"
agent = "rose"
[[bindings]]
match = "telegram:topic:-1001:102"
agent = "rose"
[[bindings]]
match = "telegram:topic:-1001:103"
agent = "max"
"#;

fn ask(agent: &str, text: &str) -> Script {
    Script::tool_call("agent_send", json!({ "agent": agent, "text": text }))
}

/// S3.8, S4.33
#[tokio::test]
async fn a_peer_is_asked_in_a_session_of_its_own_and_its_answer_comes_back() {
    let house = House::new(DESKS).await;
    let gateway = house.open().await;
    let rose = house.telegram.forum(-1001).topic(101, "Rose");
    house
        .model
        .enqueue_when("ask ada", ask("ada", "how many beds are free"));
    house
        .model
        .enqueue_when("how many beds", Script::text("Three."));
    house
        .model
        .enqueue_when("[@ada] Three.", Script::text("Ada says three."));
    rose.says(ALICE, "ask ada").await;
    house.settled(&gateway).await;
    assert_eq!(rose.texts(), ["Ada says three."]);
    let asked = house.model.asked_about("how many beds");
    assert!(asked[0].system.starts_with("You are Ada"));
    insta::assert_snapshot!(asked[0].last_text(), @"
    [@rose writes to you, for an owner. Nobody else reads this: your answer goes to that agent.]

    [@rose] how many beds are free
    ");
    assert!(!asked[0].tools.contains(&"agent_send".to_owned()));

    house
        .model
        .enqueue_when("ask again", ask("@ada", "and tomorrow"));
    house
        .model
        .enqueue_when("and tomorrow", Script::text("Four."));
    rose.says(ALICE, "ask again").await;
    house.settled(&gateway).await;
    let asked = house.model.asked_about("and tomorrow");
    assert!(
        asked[0]
            .messages
            .iter()
            .any(|(role, text)| role == "assistant" && text == "Three."),
        "she remembers"
    );
    assert_eq!(house.ask("SELECT count(DISTINCT place_id) || ' ' || count(*) FROM subagents WHERE relation = 'peer'"), "1 2");
    gateway.shutdown().await;
}

/// A paused agent answers nobody, so it takes no task and no message either.
#[tokio::test]
async fn a_paused_agent_is_given_no_work_by_others() {
    let house = House::new(DESKS).await;
    let gateway = house.open().await;
    let rose = house.telegram.forum(-1001).topic(101, "Rose");
    rose.says(ALICE, "/agent pause ada").await;
    house.settled(&gateway).await;
    house.model.enqueue(Script::ToolCalls(vec![
        (
            "agent_send".to_owned(),
            json!({ "agent": "ada", "text": "hi" }),
        ),
        (
            "spawn".to_owned(),
            json!({ "agent": "ada", "task": "count the beds" }),
        ),
    ]));
    rose.says(ALICE, "ask ada").await;
    house.settled(&gateway).await;
    insta::assert_snapshot!(house.model.last_request().results().join("\n"), @"
    Nothing was started: `ada` is paused by Alice and answers nobody until an owner resumes it. Do it yourself, or tell the person.
    Nothing was started: `ada` is paused by Alice and answers nobody until an owner resumes it. Do it yourself, or tell the person.
    ");
    assert_eq!(house.ask("SELECT count(*) FROM subagents"), "0");
    gateway.shutdown().await;
}

/// S2.20, S2.43, S2.44, S3.8
#[tokio::test]
async fn who_shares_no_group_is_not_reached() {
    let house = House::new(DESKS).await;
    let gateway = house.open().await;
    let rose = house.telegram.forum(-1001).topic(101, "Rose");
    house.model.enqueue(Script::ToolCalls(
        ["rose", "max", "adda", "nobody"]
            .map(|agent| {
                (
                    "agent_send".to_owned(),
                    json!({ "agent": agent, "text": "hi" }),
                )
            })
            .to_vec(),
    ));
    rose.says(ALICE, "write to everybody").await;
    house.settled(&gateway).await;
    insta::assert_snapshot!(house.model.last_request().results().join("\n"), @"
    Nothing was sent: that is you. Answer it yourself, or give a part of it to a subagent with `spawn`.
    Nothing was sent: `max` is not in a peer group with you here. You have: ada.
    Nothing was sent: `adda` is not in a peer group with you here. Did you mean `ada`?
    Nothing was sent: `nobody` is not in a peer group with you here. You have: ada.
    ");
    assert_eq!(house.ask("SELECT count(*) FROM subagents"), "0");

    // Ada, asked by Rose, may not go on to Max, though they share a group.
    house
        .model
        .enqueue_when("ask ada", ask("ada", "ask max for me"));
    house
        .model
        .enqueue_when("ask max for me", ask("max", "hello"));
    rose.says(ALICE, "ask ada").await;
    house.settled(&gateway).await;
    insta::assert_snapshot!(house.model.asked_about("was not run")[0].results()[0], @"The tool `agent_send` was not run: you were asked by another agent yourself, and messages go one hop. Go on without it.");
    assert_eq!(house.ask("SELECT count(*) FROM subagents"), "1");
    gateway.shutdown().await;
}

/// S3.8
#[tokio::test]
async fn a_group_for_another_platform_does_not_count_here() {
    let house = House::new(&DESKS.replace(
        "members = [\"rose\", \"ada\"]",
        "members = [\"rose\", \"ada\"]\nplatform = \"discord\"",
    ))
    .await;
    let gateway = house.open().await;
    let rose = house.telegram.forum(-1001).topic(101, "Rose");
    house.model.enqueue(ask("ada", "hi"));
    rose.says(ALICE, "ask ada").await;
    house.settled(&gateway).await;
    assert_eq!(house.ask("SELECT count(*) FROM subagents"), "0");
    assert!(
        house.model.last_request().results()[0]
            .starts_with("Nothing was sent: `ada` is not in a peer group with you here.")
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn an_agent_writes_only_where_it_is_at_home() {
    let house = House::new(DESKS).await;
    let gateway = house.open().await;
    let forum = house.telegram.forum(-1001);
    let (rose, other) = (forum.topic(101, "Rose"), forum.topic(102, "Roses"));
    forum.topic(103, "Max").says(ALICE, "hello").await;
    other.says(ALICE, "hello").await;
    house.telegram.dm(ALICE).says("/agent rose").await;
    house.telegram.dm(ALICE).says("hello").await;
    house.settled(&gateway).await;
    let before = other.texts().len();
    let send = |place: &str, text: &str| {
        (
            "message_send".to_owned(),
            json!({ "place": place, "text": text }),
        )
    };
    let calls = vec![
        ("message_send".to_owned(), json!({})),
        send("telegram:topic:-1001:103", "hi"),
        send("telegram:dm:999", "hi"),
        send("telegram:topic:-1001:102", "The report is ready."),
    ];
    house
        .model
        .enqueue_when("spread the word", Script::ToolCalls(calls.clone()));
    rose.says(ALICE, "spread the word").await;
    house.settled(&gateway).await;
    insta::assert_snapshot!(house.model.last_request().results().join("\n---\n"), @"
    You can write to:
    - `telegram:topic:-1001:102` (“Roses”)
    - `telegram:dm:111`
    ---
    Nothing was sent: `telegram:topic:-1001:103` is no place of yours. You can write to:
    - `telegram:topic:-1001:102` (“Roses”)
    - `telegram:dm:111`
    ---
    Nothing was sent: `telegram:dm:999` is no place of yours. You can write to:
    - `telegram:topic:-1001:102` (“Roses”)
    - `telegram:dm:111`
    ---
    Sent to `telegram:topic:-1001:102` (“Roses”).
    ");
    assert_eq!(
        other.texts()[before..],
        ["The report is ready.\n\nFor Alice."]
    );
    let noted = "SELECT text || ' ' || (meta_json ->> '$.source.session') FROM messages WHERE meta_json ->> '$.kind' = 'message_send'";
    assert_eq!(
        house.ask(noted),
        "The report is ready. telegram:topic:-1001:101"
    );

    // Bob is no owner: Alice's private chat is not his to have written in.
    house
        .model
        .enqueue_when("spread the word", Script::ToolCalls(calls[..1].to_vec()));
    rose.says(BOB, "spread the word").await;
    house.settled(&gateway).await;
    let last = house.model.last_request();
    let list = last.results().pop().expect("a list");
    assert!(
        !list.contains("telegram:dm:111") && list.contains("telegram:topic:-1001:102"),
        "{list}"
    );
    gateway.shutdown().await;
}
