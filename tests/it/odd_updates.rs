//! Updates that are not quite JSON, and numbers that say less than they seem to: nobody else is
//! kept waiting, and nothing is dropped.

use std::time::Duration;

use serde_json::json;

use crate::support::House;
use crate::support::fake_telegram::{ALICE, BOB};

const OPEN: &str = "[access]\ndms = \"open\"\ngroups = \"open\"\n";
const BROKEN: &str = "SELECT count(*) FROM inbox WHERE state = 'broken'";

/// `#` stands for the number.
fn broken_updates() -> Vec<Vec<u8>> {
    let deep = format!(
        "{{\"update_id\":#,\"message\":{}1{}}}",
        "[".repeat(200),
        "]".repeat(200)
    );
    let text = |text: &[u8]| [br#"{"update_id":#,"message":{"text":""#, text, br#""}}"#].concat();
    vec![
        text(br"\ud800"),
        text(br"\u12"),
        text(br"cut short\"),
        text(b"a\x01b"),
        text(b"\xff\xfe"),
        deep.into_bytes(),
        br#"{"message":{"date":1e400},"update_id":#}"#.to_vec(),
    ]
}

#[tokio::test]
async fn broken_updates_cost_nobody_else_their_answer() {
    let house = House::new(OPEN).await;
    let (alice, bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    alice.says("before").await;
    let kinds = broken_updates();
    for update in &kinds {
        house.telegram.push_bytes(update);
    }
    bob.says("behind").await;
    let gateway = house.open().await;
    house.settled(&gateway).await;
    assert_eq!(
        (alice.texts(), bob.texts()),
        (vec!["re: before".to_owned()], vec!["re: behind".to_owned()])
    );
    assert_eq!(house.ask(BROKEN), kinds.len().to_string());
    let kept = house.ask("SELECT payload FROM inbox WHERE state = 'broken' ORDER BY id LIMIT 1");
    assert!(kept.ends_with(r#""message":{"text":"\ud800"}}"#), "{kept}");
    gateway.shutdown().await;
}

/// An answer that ends in the middle of an update may be whole the next time, so the update is
/// given up only after a while, alone.
#[tokio::test]
async fn an_update_behind_which_every_answer_breaks_off_is_stepped_over() {
    let house = House::new(OPEN).await;
    let (alice, bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    alice.says("before").await;
    let poison = house
        .telegram
        .push_bytes(br#"{"update_id":#,"message":{"te"#);
    house.telegram.break_off_behind(poison);
    bob.says("behind").await;
    let process = house.spawn().await;
    bob.wait_for_sent(1).await;
    house.telegram.all_confirmed().await;
    assert_eq!(
        (alice.texts(), bob.texts()),
        (vec!["re: before".to_owned()], vec!["re: behind".to_owned()])
    );
    assert_eq!(house.ask(BROKEN), "1");
    let log = process.log();
    assert!(
        log.contains("Telegram's updates cannot be read; asking for them one by one"),
        "{log}"
    );
    assert!(
        log.contains("cannot be read; it is kept in the inbox table as broken"),
        "{log}"
    );
    assert_eq!(process.stop().await, 0);
}

/// After a quiet week Telegram numbers updates anew, from anywhere.
#[tokio::test]
async fn a_number_that_was_used_before_does_not_hide_another_message() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    let first = alice.says("first").await;
    house.settled(&gateway).await;
    house.telegram.push_again(first.update_id);
    alice.says("next").await;
    house.settled(&gateway).await;
    assert_eq!(
        alice.texts(),
        ["re: first", "re: next"],
        "the same update again is no other message"
    );
    house.telegram.restart_update_ids_at(500);
    alice.says("after a week").await;
    house.settled(&gateway).await;
    house.telegram.restart_update_ids_at(first.update_id);
    assert_eq!(alice.says("a week later").await.update_id, first.update_id);
    house.settled(&gateway).await;
    assert_eq!(alice.texts()[2..], ["re: after a week", "re: a week later"]);
    gateway.shutdown().await;
}

#[tokio::test]
async fn the_largest_number_is_confirmed_and_those_after_it_are_heard() {
    for largest in [i64::from(i32::MAX), i64::from(u32::MAX), i64::MAX] {
        let house = House::new(OPEN).await;
        let gateway = house.open().await;
        let alice = house.telegram.dm(ALICE);
        house.telegram.restart_update_ids_at(largest);
        alice.says("the last one").await;
        house.settled(&gateway).await;
        house.telegram.restart_update_ids_at(500);
        alice.says("the first one").await;
        house.settled(&gateway).await;
        assert_eq!(
            alice.texts(),
            ["re: the last one", "re: the first one"],
            "{largest}"
        );
        let polls = house.telegram.calls("getUpdates").len();
        assert!(polls <= 6, "{largest}: {polls} polls");
        gateway.shutdown().await;
    }
}

/// A server that counts in small numbers refuses the offset, so the update comes with every answer.
/// Others are heard all the same.
#[tokio::test]
async fn an_update_that_cannot_be_confirmed_is_asked_for_in_peace() {
    let house = House::new(OPEN).await;
    let (alice, bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    house.telegram.refuse_offsets_above(i32::MAX.into());
    house.telegram.restart_update_ids_at(i32::MAX.into());
    alice.says("the last one").await;
    let process = house.spawn().await;
    process
        .wait_for_log("Telegram answers polls at once and sends nothing new; asking once a second")
        .await;
    let polls = house.telegram.calls("getUpdates");
    // Twelve polls, with pauses of 0.1, 0.2, 0.4, 0.8 and then 1 s.
    assert!(
        polls[11].at - polls[0].at > Duration::from_secs(5),
        "{} polls",
        polls.len()
    );
    house.telegram.restart_update_ids_at(500);
    let asked = bob.says("and me?").await;
    bob.wait_for_sent(1).await;
    house.telegram.confirmed(asked.update_id).await;
    assert_eq!(
        (alice.texts(), bob.texts()),
        (
            vec!["re: the last one".to_owned()],
            vec!["re: and me?".to_owned()]
        )
    );
    assert_eq!(process.stop().await, 0);
}

#[tokio::test]
async fn an_update_full_of_nulls_is_read() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    alice.says("make the chat known").await;
    house.settled(&gateway).await;
    let chat = json!({ "id": ALICE.id, "type": "private", "first_name": "Alice", "last_name": null, "username": null });
    let from = json!({ "id": ALICE.id, "is_bot": false, "first_name": "Alice", "last_name": null, "language_code": null });
    let message = json!({
        "message_id": 900, "date": 1_790_000_000, "chat": chat, "from": from, "text": "nulls", "entities": null, "caption": null,
        "reply_to_message": null, "photo": null, "is_topic_message": null, "message_thread_id": null, "sender_chat": null,
        "media_group_id": null, "forward_origin": null, "quote": null, "location": null, "forum_topic_created": null,
    });
    house.telegram.push_bytes(
        format!(
            "{{\"update_id\":#,\"message\":{message},\"edited_message\":null,\"callback_query\":null,\"message_reaction\":null}}"
        )
        .as_bytes(),
    );
    house.settled(&gateway).await;
    assert_eq!(alice.texts()[1..], ["re: nulls"]);
    assert_eq!(house.ask(BROKEN), "0");
    gateway.shutdown().await;
}
