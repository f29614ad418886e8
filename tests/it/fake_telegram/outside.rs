//! The fake under the eyes of a client from outside: aiogram, whose strict types follow Telegram's
//! own documentation.

use serde_json::json;

use super::Bot;
use crate::support::fake_telegram::{ALICE, BOB, CAROL, FakeTelegram, Fault};
use crate::support::tell_skipped;

/// The Python that has aiogram; `scripts/check` makes one and sets this.
const PYTHON: &str = "PARLOR_AIOGRAM_PYTHON";
const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/it/fake_telegram/aiogram_check.py"
);

#[tokio::test]
async fn aiogram_understands_what_the_fake_says() {
    let Some(python) = std::env::var_os(PYTHON) else {
        tell_skipped(&format!(
            "aiogram does not look at the fake, because {PYTHON} is not set; scripts/check sets it"
        ));
        return;
    };
    let telegram = FakeTelegram::start().await;
    everything_people_do(&telegram).await;
    for fault in [
        Fault::RetryAfter(7),
        Fault::Blocked,
        Fault::Html(502),
        Fault::DroppedBefore,
    ] {
        telegram
            .fail("sendChatAction", fault)
            .only_in(ALICE.id)
            .once();
    }
    let looked = tokio::process::Command::new(python)
        .args([SCRIPT, telegram.api_url(), telegram.token()])
        .output();
    let looked = looked.await.expect("Python starts");
    let (said, complained) = (
        String::from_utf8_lossy(&looked.stdout),
        String::from_utf8_lossy(&looked.stderr),
    );
    assert!(
        looked.status.success() && said.ends_with("aiogram agrees\n"),
        "{said}{complained}"
    );
}

/// One update of each shape that the fake has.
async fn everything_people_do(telegram: &FakeTelegram) {
    let dm = telegram.dm(ALICE);
    let said = dm.says("in private").await;
    dm.edits(said.message_id, "in private, edited").await;
    dm.topic(55, "Mine").says("in a private topic").await;
    telegram.group(-13).says(BOB, "in a plain group").await;

    let supergroup = telegram.supergroup(-1002);
    let said = supergroup.says(BOB, "in a supergroup").await;
    supergroup
        .says(CAROL, "a reply in a supergroup")
        .replying_to(said.message_id)
        .await;

    let forum = telegram.forum(-1001);
    let rose = forum.topic(101, "Rose");
    rose.says(BOB, "in a topic").await;
    rose.renames_topic(CAROL, "Roses").await;
    forum.says(BOB, "in General").await;
    forum.says_anonymously("as the group").await;
    forum
        .says(BOB, "/help@parlor_bot 🌹 @parlor_bot and Bob")
        .mentioning("Bob", BOB)
        .await;
    let closed = forum.topic(102, "Closed");
    closed.closes_topic(CAROL).await;
    closed.reopens_topic(CAROL).await;
    closed.closes_topic(CAROL).await;
    forum.promotes_bot(CAROL).await;

    let keyboard =
        json!({ "inline_keyboard": [[{ "text": "Press", "callback_data": "press me" }]] });
    let params = json!({ "chat_id": ALICE.id, "text": "a button", "reply_markup": keyboard });
    let asked = Bot::new(telegram).call("sendMessage", params).await;
    dm.presses(
        asked["result"]["message_id"].as_i64().expect("it was sent"),
        "press me",
    )
    .await;

    telegram.channel(-1007).posts("news").await;
    telegram.group(-15).migrates_to(-1006).await;
    telegram.supergroup(-1004).removes_bot(CAROL).await;
}
