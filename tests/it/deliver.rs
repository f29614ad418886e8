//! Delivery switched off and on in a place: what is kept, what still goes out, and in which order it
//! follows.

use insta::assert_snapshot;
use serde_json::json;

use crate::cli::run;
use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB};

const ROSE: &str = r#"
[access]
owners = ["telegram:111"]
require_mention = false
[agents.rose]
emoji = "🌹"
[[bindings]]
match = "telegram:topic:-1001:101"
agent = "rose"
[[bindings]]
match = "telegram:topic:-1001:102"
agent = "rose"
"#;

fn without_day(text: &str) -> String {
    let (before, rest) = text.split_once(" on ").unwrap_or((text, ""));
    let after = rest.find(". ").map_or("", |at| &rest[at..]);
    format!("{before} on DAY{after}")
}

/// S6.4
#[tokio::test]
async fn while_delivery_is_off_answers_are_kept_over_a_restart_and_follow_in_order() {
    let house = House::new(ROSE).await;
    house.configure_telegram("reactions = true");
    let gateway = house.open().await;
    let forum = house.telegram.forum(-1001);
    let (topic, other) = (forum.topic(101, "Writing"), forum.topic(102, "Garden"));
    topic.says(ALICE, "/deliver off").await;
    assert_snapshot!(topic.wait_for_sent(1).await.text, @"Delivery is off in this topic from now on. The agent still reads and answers, but its answers are kept, not sent. Commands are answered as before. /deliver on sends what was kept.");
    for (question, answer) in [("first", "One."), ("second", "Two.")] {
        house.model.enqueue_when(question, Script::text(answer));
        topic.says(BOB, question).await;
        house.settled(&gateway).await;
    }
    let reactions = house.telegram.calls("setMessageReaction");
    assert!(reactions.is_empty(), "no sign of an answer: {reactions:?}");
    let edits = house.telegram.calls("editMessageText").len();
    assert_eq!((topic.texts().len(), edits), (1, 0), "{:?}", topic.texts());
    assert_eq!(
        house.ask("SELECT group_concat(text) FROM messages WHERE text IN ('One.', 'Two.')"),
        "One.,Two.",
        "the answers are in the conversation"
    );

    // Commands are answered, and tell it; other places are not concerned.
    topic.says(BOB, "/whoami").await;
    let whoami = topic.wait_for_sent(2).await.text;
    assert!(
        whoami.contains("Delivery is off in this topic: Alice switched it off on "),
        "{whoami}"
    );
    topic.says(ALICE, "/deliver").await;
    assert_snapshot!(without_day(&topic.wait_for_sent(3).await.text), @"Delivery is off in this topic: Alice switched it off on DAY. Answers are kept until /deliver on. 2 messages are kept so far.");
    topic.says(ALICE, "/retry").await;
    assert_snapshot!(topic.wait_for_sent(4).await.text, @"There are no failed messages. 2 messages stay kept, because delivery is off in their places; /deliver on there sends them.");
    topic.says(ALICE, "/status").await;
    let status = topic.wait_for_sent(5).await.text;
    assert!(status.contains("Delivery is off in this topic"), "{status}");
    assert!(
        status.contains("2 messages kept where delivery is off."),
        "{status}"
    );
    other.says(BOB, "hello").await;
    other.wait_for_sent(1).await;

    let listed = run(house.home.path(), &["failed"]).await;
    assert_eq!(
        listed.stdout.matches("delivery is off here").count(),
        2,
        "{}",
        listed.stdout
    );
    let refused = run(house.home.path(), &["failed", "retry"]).await;
    assert!(
        refused
            .stderr
            .contains("2 messages are kept, because delivery is off in their place"),
        "{}",
        refused.stderr
    );
    let explained = run(
        house.home.path(),
        &["route", "explain", "telegram:topic:-1001:101"],
    )
    .await;
    assert!(
        explained.stdout.contains("Delivery is off in this topic: "),
        "{}",
        explained.stdout
    );

    house.close(gateway).await;
    let gateway = house.open().await;
    house.settled(&gateway).await;
    assert_eq!(topic.texts().len(), 5, "{:?}", topic.texts());
    topic.says(ALICE, "/deliver on").await;
    house.settled(&gateway).await;
    let mut texts = topic.texts().split_off(5);
    let told = texts.pop().unwrap();
    assert_snapshot!(told, @"Delivery is on again in this topic. 2 messages that were kept are sent now, in their order.");
    let answers: Vec<_> = texts
        .iter()
        .filter_map(|text| text.lines().last())
        .collect();
    assert_eq!(answers, ["One.", "Two."]);
    house.model.enqueue_when("third", Script::text("Three."));
    topic.says(BOB, "third").await;
    assert!(topic.wait_for_sent(9).await.text.ends_with("Three."));
    assert_eq!(
        house.ask("SELECT group_concat(actor || ' ' || action || ' ' || before || '-' || after) FROM audit WHERE action = 'deliver'"),
        "telegram:111 deliver on-off,telegram:111 deliver off-on"
    );
    house.close(gateway).await;
}

/// S6.4: for owners and admins, in chats.
#[tokio::test]
async fn only_owners_and_admins_switch_delivery() {
    let house = House::new(ROSE).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(101, "Writing");
    for (number, line) in ["/deliver off", "/deliver on", "/deliver"]
        .into_iter()
        .enumerate()
    {
        topic.says(BOB, line).await;
        assert_eq!(
            topic.wait_for_sent(number + 1).await.text,
            "Only owners and admins can switch delivery off and on."
        );
    }
    topic.says(ALICE, "/deliver maybe").await;
    assert_snapshot!(topic.wait_for_sent(4).await.text, @"Write /deliver off to keep answers back here, and /deliver on to send them.");
    topic.says(ALICE, "/deliver on").await;
    assert_snapshot!(topic.wait_for_sent(5).await.text, @"Delivery is on in this topic: answers are sent. Write /deliver off to keep answers back here, and /deliver on to send them.");
    assert_eq!(house.ask("SELECT count(*) FROM delivery_off"), "0");
    house.close(gateway).await;
}

/// S6.4: a message that an agent writes into the place from elsewhere is kept too, and the agent is
/// told so.
#[tokio::test]
async fn a_message_from_elsewhere_is_kept_too() {
    let house = House::new(ROSE).await;
    let gateway = house.open().await;
    let forum = house.telegram.forum(-1001);
    let (topic, other) = (forum.topic(101, "Writing"), forum.topic(102, "Garden"));
    topic.says(ALICE, "/deliver off").await;
    topic.wait_for_sent(1).await;
    house.model.enqueue(Script::tool_call(
        "message_send",
        json!({ "place": "telegram:topic:-1001:101", "text": "The roses bloom." }),
    ));
    other.says(ALICE, "tell the writers").await;
    let told = other.wait_for_sent(1).await.text;
    assert!(told.contains("delivery is off there"), "{told}");
    house.settled(&gateway).await;
    assert_eq!(topic.texts().len(), 1, "{:?}", topic.texts());
    topic.says(ALICE, "/deliver on").await;
    house.settled(&gateway).await;
    let texts = topic.texts();
    assert!(texts[1].contains("The roses bloom."), "{texts:?}");
    house.close(gateway).await;
}
