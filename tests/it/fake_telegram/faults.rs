//! Faults and holds hit the calls they are meant for, and leave behind what they promise.

use insta::assert_snapshot;
use serde_json::json;

use super::Bot;
use crate::support::fake_telegram::{ALICE, ANY_METHOD, BOB, FakeTelegram, Fault, Outcome};

async fn telegram_with_alice() -> (FakeTelegram, Bot) {
    let telegram = FakeTelegram::start().await;
    telegram.dm(ALICE);
    let bot = Bot::new(&telegram);
    (telegram, bot)
}

fn to_alice(text: &str) -> serde_json::Value {
    json!({ "chat_id": ALICE.id, "text": text })
}

#[tokio::test]
async fn error_answers_look_like_the_real_ones() {
    let (telegram, bot) = telegram_with_alice().await;
    let faults = [
        Fault::RetryAfter(3),
        Fault::Unauthorized,
        Fault::Kicked,
        Fault::Blocked,
        Fault::ThreadNotFound,
        Fault::MigratedTo(-1005),
        Fault::Refused(
            400,
            "Bad Request: not enough rights to send text messages to the chat",
        ),
    ];

    let mut answers = Vec::new();
    for fault in faults {
        telegram.fail("sendMessage", fault).once();
        answers.push(bot.call("sendMessage", to_alice("hello")).await.to_string());
    }

    assert_snapshot!(answers.join("\n"), @r#"
    {"ok":false,"error_code":429,"description":"Too Many Requests: retry after 3","parameters":{"retry_after":3}}
    {"ok":false,"error_code":401,"description":"Unauthorized"}
    {"ok":false,"error_code":403,"description":"Forbidden: bot was kicked from the supergroup chat"}
    {"ok":false,"error_code":403,"description":"Forbidden: bot was blocked by the user"}
    {"ok":false,"error_code":400,"description":"Bad Request: message thread not found"}
    {"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":-1005}}
    {"ok":false,"error_code":400,"description":"Bad Request: not enough rights to send text messages to the chat"}
    "#);
    assert!(telegram.sent().is_empty());
}

#[tokio::test]
async fn a_broken_gateway_answers_with_a_page() {
    let (telegram, bot) = telegram_with_alice().await;
    telegram.fail("sendMessage", Fault::Html(502)).once();

    let response = bot
        .try_call("sendMessage", to_alice("hello"))
        .await
        .expect("answered");

    assert_eq!(response.status(), 502);
    assert!(response.text().await.expect("a page").starts_with("<html>"));
}

#[tokio::test]
async fn a_fault_lasts_as_long_as_asked_for() {
    let (telegram, bot) = telegram_with_alice().await;
    let status = async |method| {
        bot.try_call(method, to_alice("hello"))
            .await
            .expect("answered")
            .status()
            .as_u16()
    };

    telegram.fail("sendMessage", Fault::RetryAfter(1)).times(2);
    assert_eq!(
        [
            status("sendMessage").await,
            status("sendMessage").await,
            status("sendMessage").await
        ],
        [429, 429, 200]
    );

    let outage = telegram.fail(ANY_METHOD, Fault::Html(500)).until_dropped();
    assert_eq!(
        [status("sendMessage").await, status("getMe").await],
        [500, 500]
    );
    drop(outage);
    assert_eq!(
        [status("sendMessage").await, status("getMe").await],
        [200, 200]
    );
}

#[tokio::test]
async fn a_fault_can_be_limited_to_one_chat() {
    let (telegram, bot) = telegram_with_alice().await;
    telegram.dm(BOB);
    let _guard = telegram
        .fail("sendMessage", Fault::RetryAfter(9))
        .only_in(BOB.id)
        .until_dropped();

    bot.send(to_alice("hello")).await;
    let refusal = bot
        .refusal("sendMessage", json!({ "chat_id": BOB.id, "text": "hello" }))
        .await;
    assert_eq!(refusal, "429 Too Many Requests: retry after 9");
}

#[tokio::test]
async fn a_connection_dropped_before_the_effect_leaves_no_message() {
    let (telegram, bot) = telegram_with_alice().await;
    telegram.fail("sendMessage", Fault::DroppedBefore).once();

    bot.try_call("sendMessage", to_alice("hello"))
        .await
        .expect_err("the connection is cut");

    assert!(telegram.sent().is_empty());
    assert_eq!(telegram.calls("sendMessage")[0].outcome, Outcome::Dropped);
    bot.send(to_alice("hello")).await;
}

#[tokio::test]
async fn a_connection_dropped_after_the_effect_leaves_the_message() {
    let (telegram, bot) = telegram_with_alice().await;
    telegram.fail("sendMessage", Fault::DroppedAfter).once();

    bot.try_call("sendMessage", to_alice("hello"))
        .await
        .expect_err("the connection is cut");
    bot.send(to_alice("hello")).await;

    assert_eq!(
        telegram.texts_in(ALICE.id, None),
        ["hello", "hello"],
        "a blind retry shows as a duplicate"
    );
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_no_json() {
    let (telegram, bot) = telegram_with_alice().await;
    telegram.fail("sendMessage", Fault::InvalidJson).once();

    let answer = bot
        .try_call("sendMessage", to_alice("hello"))
        .await
        .expect("answered")
        .text()
        .await
        .expect("text");

    assert!(serde_json::from_str::<serde_json::Value>(&answer).is_err());
    assert_eq!(telegram.texts_in(ALICE.id, None), ["hello"]);
}

#[tokio::test]
async fn a_held_call_is_journaled_but_waits_for_its_release() {
    let (telegram, bot) = telegram_with_alice().await;
    let hold = telegram.hold("sendMessage").only_in(ALICE.id);
    let sending = tokio::spawn({
        let bot = bot.clone();
        async move { bot.send(to_alice("hello")).await }
    });
    telegram.wait_for_calls("sendMessage", 1).await;
    bot.call("getMe", json!({})).await;
    assert!(telegram.sent().is_empty());

    hold.release();

    sending.await.expect("sent after the release");
    assert_eq!(telegram.texts_in(ALICE.id, None), ["hello"]);
}

#[tokio::test]
async fn a_held_answer_waits_while_the_message_already_stands() {
    let (telegram, bot) = telegram_with_alice().await;
    let hold = telegram.hold_answers("sendMessage");
    let sending = tokio::spawn(async move { bot.send(to_alice("hello")).await });

    telegram.wait_for_sent(1).await;
    assert_eq!(
        telegram.calls("sendMessage")[0].outcome,
        Outcome::Unanswered
    );
    assert!(!sending.is_finished());

    hold.release();
    sending.await.expect("answered after the release");
}
