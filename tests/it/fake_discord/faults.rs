//! Faults and holds hit the calls they are meant for, and leave behind what they promise.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::{Caller, quiet};
use crate::support::fake_discord::{FakeDiscord, Fault, Outcome, Room, Route};

async fn a_room() -> (FakeDiscord, Room, Caller) {
    let discord = FakeDiscord::start().await;
    let general = discord.guild(8001, "Garden").text_channel(8101, "general");
    let caller = Caller::new(&discord);
    (discord, general, caller)
}

#[tokio::test]
async fn error_answers_look_like_the_real_ones() {
    let (discord, general, caller) = a_room().await;
    let faults = [
        Fault::UNAUTHORIZED,
        Fault::MISSING_ACCESS,
        Fault::MISSING_PERMISSIONS,
        Fault::CANNOT_DM,
        Fault::THREAD_ARCHIVED,
        Fault::UNKNOWN_CHANNEL,
        Fault::UNKNOWN_MESSAGE,
        Fault::UNKNOWN_INTERACTION,
        Fault::ALREADY_ACKNOWLEDGED,
        Fault::TOKEN_EXPIRED,
        Fault::INVALID_FORM,
        Fault::Refused(403, 40333, "internal network error"),
    ];
    let mut answers = Vec::new();
    for fault in faults {
        discord.fail(Route::CreateMessage, fault).once();
        answers.push(
            caller
                .refusal("POST", "/channels/8101/messages", quiet("hello"))
                .await,
        );
    }

    assert_snapshot!(answers.join("\n"), @r#"
    401 0 401: Unauthorized
    403 50001 Missing Access
    403 50013 Missing Permissions
    403 50007 Cannot send messages to this user
    400 50083 Thread is archived
    404 10003 Unknown Channel
    404 10008 Unknown Message
    404 10062 Unknown interaction
    400 40060 Interaction has already been acknowledged.
    401 50027 Invalid Webhook Token
    400 50035 Invalid Form Body {"content":{"_errors":[{"code":"BASE_TYPE_REQUIRED","message":"This field is required"}]}}
    403 40333 internal network error
    "#);
    assert!(general.texts().is_empty());
}

#[tokio::test]
async fn a_rate_limit_tells_the_time_in_body_and_headers() {
    let (discord, _general, caller) = a_room().await;
    let mut seen = Vec::new();
    for fault in [Fault::RateLimited(0.25), Fault::GloballyRateLimited(1.5)] {
        discord.fail(Route::CreateMessage, fault).once();
        let answer = caller
            .try_call("POST", "/channels/8101/messages", quiet("hello"))
            .await
            .expect("answered");
        let header = |name: &str| {
            answer
                .headers()
                .get(name)
                .map_or("-", |value| value.to_str().expect("text"))
                .to_owned()
        };
        let names = [
            "retry-after",
            "x-ratelimit-reset-after",
            "x-ratelimit-scope",
            "x-ratelimit-global",
        ];
        let headers = names.map(header).join(" ");
        seen.push(format!(
            "{} {headers} {}",
            answer.status().as_u16(),
            answer.text().await.expect("text")
        ));
    }
    assert_snapshot!(seen.join("\n"), @r#"
    429 1 0.250 user - {"message":"You are being rate limited.","retry_after":0.25,"global":false}
    429 2 - global true {"message":"You are being rate limited.","retry_after":1.5,"global":true}
    "#);
}

#[tokio::test]
async fn a_fault_lasts_as_long_and_reaches_as_far_as_asked_for() {
    let (discord, general, caller) = a_room().await;
    let status = async |path: &str| caller.call("GET", path, Value::Null).await.0;
    discord.fail(Route::GetChannel, Fault::Html(502)).times(2);
    let three = [
        status("/channels/8101").await,
        status("/channels/8101").await,
        status("/channels/8101").await,
    ];
    assert_eq!(three, [502, 502, 200]);

    let outage = discord.fail(Route::Any, Fault::Html(500)).until_dropped();
    assert_eq!(
        [status("/channels/8101").await, status("/users/@me").await],
        [500, 500]
    );
    drop(outage);
    assert_eq!(
        [status("/channels/8101").await, status("/users/@me").await],
        [200, 200]
    );

    let _elsewhere = discord
        .fail(Route::GetChannel, Fault::UNAUTHORIZED)
        .only_in(general.id + 1)
        .until_dropped();
    assert_eq!(status("/channels/8101").await, 200);
}

#[tokio::test]
async fn a_dropped_connection_leaves_the_message_or_not() {
    let (discord, general, caller) = a_room().await;
    discord
        .fail(Route::CreateMessage, Fault::DroppedBefore)
        .once();
    caller
        .try_call("POST", "/channels/8101/messages", quiet("before"))
        .await
        .expect_err("cut");
    assert!(general.texts().is_empty());

    discord
        .fail(Route::CreateMessage, Fault::DroppedAfter)
        .once();
    caller
        .try_call("POST", "/channels/8101/messages", quiet("after"))
        .await
        .expect_err("cut");
    assert_eq!(general.texts(), ["after"]);
    assert!(
        discord
            .calls(Route::CreateMessage)
            .iter()
            .all(|call| call.outcome == Outcome::Dropped)
    );

    discord
        .fail(Route::CreateMessage, Fault::InvalidJson)
        .once();
    let answer = caller
        .try_call("POST", "/channels/8101/messages", quiet("broken"))
        .await
        .expect("answered");
    answer.json::<Value>().await.expect_err("no JSON");
    assert_eq!(general.texts(), ["after", "broken"]);
}

#[tokio::test]
async fn a_held_call_waits_before_or_after_its_effect() {
    let (discord, general, caller) = a_room().await;
    let hold = discord.hold(Route::CreateMessage).only_in(general.id);
    let sending = tokio::spawn({
        let caller = caller.clone();
        async move { caller.send(8101, "one").await }
    });
    discord.wait_for_calls(Route::CreateMessage, 1).await;
    caller.call("GET", "/users/@me", Value::Null).await;
    assert!(general.texts().is_empty());
    hold.release();
    sending.await.expect("sent after the release");

    let hold = discord.hold_answers(Route::CreateMessage);
    let sending = tokio::spawn(async move { caller.send(8101, "two").await });
    general.wait_for_sent(2).await;
    assert!(!sending.is_finished());
    hold.release();
    sending.await.expect("answered after the release");
}

#[tokio::test]
async fn whatever_could_ping_somebody_fails_the_test() {
    let (discord, _general, caller) = a_room().await;
    let message_id = caller.send(8101, "quiet").await;
    let loud = [
        json!({ "content": "hello @everyone" }),
        json!({ "content": "hello", "allowed_mentions": { "parse": ["everyone"] } }),
        json!({ "content": "hello", "allowed_mentions": { "parse": [], "users": ["111"] } }),
        json!({ "content": "hello", "allowed_mentions": { "parse": [], "replied_user": true } }),
    ];
    for body in loud {
        caller
            .call("POST", "/channels/8101/messages", body.clone())
            .await;
        caller
            .call(
                "PATCH",
                &format!("/channels/8101/messages/{message_id}"),
                body,
            )
            .await;
    }
    assert_eq!(discord.take_violations().len(), 8);
    discord.finish();
}

#[tokio::test]
#[should_panic(expected = "without empty allowed_mentions")]
async fn the_last_handle_tells_of_pings() {
    let (discord, general, caller) = a_room().await;
    caller
        .call(
            "POST",
            "/channels/8101/messages",
            json!({ "content": "hello" }),
        )
        .await;
    drop((discord, general));
}
