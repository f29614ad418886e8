//! `getUpdates`: offsets, redelivery, long polls and their conflicts.

use serde_json::json;

use super::Bot;
use crate::support::fake_telegram::{ALICE, FakeTelegram, Outcome};

#[tokio::test]
async fn updates_come_again_until_an_offset_confirms_them() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);
    let dm = telegram.dm(ALICE);
    let first = dm.says("one").await.update_id;
    dm.says("two").await;
    dm.says("three").await;

    assert_eq!(bot.poll(json!({})).await, [first, first + 1, first + 2]);
    assert_eq!(
        bot.poll(json!({ "offset": 0, "limit": 2 })).await,
        [first, first + 1]
    );
    assert_eq!(
        bot.poll(json!({ "offset": first + 1 })).await,
        [first + 1, first + 2]
    );
    assert_eq!(
        bot.poll(json!({})).await,
        [first + 1, first + 2],
        "the first is confirmed for good"
    );
    telegram.confirmed(first).await;

    assert!(bot.poll(json!({ "offset": first + 3 })).await.is_empty());
    telegram.all_confirmed().await;
}

#[tokio::test]
async fn a_negative_offset_discards_all_but_the_last() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);
    let mut last = 0;
    for text in ["one", "two", "three", "four"] {
        last = telegram.dm(ALICE).says(text).await.update_id;
    }

    assert_eq!(bot.poll(json!({ "offset": -2 })).await, [last - 1, last]);
    assert_eq!(bot.poll(json!({})).await, [last - 1, last]);
    assert_eq!(bot.poll(json!({ "offset": -9 })).await, [last - 1, last]);
}

#[tokio::test]
async fn an_offset_far_in_the_future_is_answered_from_the_oldest_update() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);
    let before = telegram
        .dm(ALICE)
        .says("before the silence")
        .await
        .update_id;
    bot.poll(json!({ "offset": before + 1 })).await;

    telegram.restart_update_ids_at(500);
    telegram.dm(ALICE).says("after the silence").await;

    assert_eq!(bot.poll(json!({ "offset": before + 1 })).await, [500]);
}

#[tokio::test]
async fn a_pending_poll_is_answered_by_the_next_update() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);
    let poll = tokio::spawn(async move { bot.poll(json!({ "timeout": 50 })).await });
    telegram.wait_for_calls("getUpdates", 1).await;
    assert_eq!(telegram.calls("getUpdates")[0].outcome, Outcome::Unanswered);

    let pushed = telegram.dm(ALICE).says("hi").await;

    assert_eq!(poll.await.expect("the poll ends"), [pushed.update_id]);
}

#[tokio::test]
async fn the_newer_poll_ends_the_older_one() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);
    let older = tokio::spawn({
        let bot = bot.clone();
        async move { bot.refusal("getUpdates", json!({ "timeout": 50 })).await }
    });
    telegram.wait_for_calls("getUpdates", 1).await;
    let newer = tokio::spawn(async move { bot.poll(json!({ "timeout": 50 })).await });

    insta::assert_snapshot!(
        older.await.expect("the older poll ends"),
        @"409 Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
    );
    let pushed = telegram.dm(ALICE).says("hi").await;
    assert_eq!(
        newer.await.expect("the newer poll ends"),
        [pushed.update_id]
    );
}

#[tokio::test]
async fn a_webhook_forbids_polling_until_it_is_deleted() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);
    telegram.set_webhook("https://example.org/hook");
    let pushed = telegram.dm(ALICE).says("hi").await;

    insta::assert_snapshot!(
        bot.refusal("getUpdates", json!({})).await,
        @"409 Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
    );
    let info = bot.call("getWebhookInfo", json!({})).await;
    assert_eq!(info["result"]["url"], "https://example.org/hook");
    assert_eq!(info["result"]["pending_update_count"], 1);

    bot.call("deleteWebhook", json!({})).await;
    assert_eq!(bot.poll(json!({})).await, [pushed.update_id]);
    bot.call("deleteWebhook", json!({ "drop_pending_updates": true }))
        .await;
    assert!(bot.poll(json!({})).await.is_empty());
}

#[tokio::test]
async fn an_update_can_be_delivered_again_after_its_confirmation() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);
    let first = telegram.dm(ALICE).says("one").await.update_id;
    let second = telegram.dm(ALICE).says("two").await.update_id;
    bot.poll(json!({ "offset": first + 1 })).await;

    telegram.push_again(first);

    assert_eq!(
        bot.poll(json!({ "offset": first + 1 })).await,
        [first, second]
    );
    assert!(bot.poll(json!({ "offset": second + 1 })).await.is_empty());
    telegram.confirmed(first).await;
    telegram.all_confirmed().await;
}

#[tokio::test]
async fn the_allowed_kinds_are_remembered_and_apply_to_new_updates() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);
    let dm = telegram.dm(ALICE);
    let old = dm.says("hi").await;
    bot.poll(json!({ "allowed_updates": ["message"] })).await;

    let edit = dm.edits(old.message_id, "hi there").await;
    let new = dm.says("again").await;

    assert_eq!(bot.poll(json!({})).await, [old.update_id, new.update_id]);
    telegram.confirmed(edit.update_id).await;
    bot.poll(json!({ "allowed_updates": [] })).await;
    let edit = dm.edits(old.message_id, "hello there").await;
    assert_eq!(
        bot.poll(json!({ "offset": edit.update_id })).await,
        [edit.update_id]
    );
}

#[tokio::test]
async fn a_raw_update_keeps_its_id_or_gets_one() {
    let telegram = FakeTelegram::start().await;
    let bot = Bot::new(&telegram);

    assert_eq!(
        telegram.push_raw(json!({ "update_id": 20_000, "message": "not a message" })),
        20_000
    );
    assert_eq!(telegram.push_raw(json!({ "of_the_future": {} })), 20_001);
    assert_eq!(bot.poll(json!({})).await, [20_000, 20_001]);
}
