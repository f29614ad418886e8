//! Bot API servers of other ages, which leave out what may be left out, or say null: everything
//! works with them.

use serde_json::json;

use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::ages::Answers;
use crate::support::fake_telegram::{ALICE, BOB};

const BOUND: &str = "[access]\nowners = [\"telegram:111\"]\ngroups = \"open\"\n[agents.main]\n[agents.rose]\n\
                     [[bindings]]\nmatch = \"telegram:group:-1001\"\nagent = \"main\"\nrequire_mention = false\n";

/// Everything that is called in an ordinary day.
const CALLED: [&str; 13] = [
    "answerCallbackQuery",
    "editMessageText",
    "getChat",
    "getChatMember",
    "getFile",
    "getMe",
    "getUpdates",
    "sendChatAction",
    "sendDocument",
    "sendMessage",
    "sendPhoto",
    "setMessageReaction",
    "setMyCommands",
];

async fn spend_a_day(answers: Answers) {
    let house = House::new(BOUND).await;
    house.configure_telegram("reactions = true\n");
    house.telegram.answer_like(answers);
    let group = house.telegram.supergroup(-1001);
    let alice = house.telegram.dm(ALICE);
    // Removed before the first poll works.
    house.telegram.set_webhook("https://elsewhere.example.org");
    let gateway = house.open().await;

    alice.says("/agents").await;
    let list = alice.wait_for_sent(1).await;
    let data = list.reply_markup["inline_keyboard"][0][0]["callback_data"]
        .as_str()
        .expect("a button")
        .to_owned();
    alice.presses(list.message_id, &data).await;
    house.telegram.wait_for_calls("editMessageText", 1).await;

    house.telegram.keeps_file("f", b"what was sent");
    let document = json!({ "file_id": "f", "file_unique_id": "f", "file_name": "a.txt" });
    alice
        .says("")
        .without("text")
        .with("document", document)
        .await;
    assert!(
        alice
            .wait_for_sent(2)
            .await
            .text
            .contains("saved as inbox/"),
        "{:?}",
        alice.texts()
    );

    house.write("agents/rose/workspace/notes.txt", "some notes");
    house.write("agents/rose/workspace/picture.png", "");
    std::fs::write(
        house.home.path().join("agents/rose/workspace/picture.png"),
        b"\x89PNG\r\n\x1a\n a picture",
    )
    .expect("writes");
    for (path, count) in [("notes.txt", 4), ("picture.png", 6)] {
        house
            .model
            .enqueue(Script::tool_call("file_send", json!({ "path": path })));
        house.model.enqueue(Script::text("There."));
        alice.says("send it").await;
        alice.wait_for_sent(count).await;
    }

    let text = "This answer takes its time, so that one can see it being written, piece by piece, up to its end.";
    house.model.enqueue(Script::Pauses {
        text: text.into(),
        after: vec![12],
    });
    group.says(BOB, "tell me").await;
    group.wait_for_sent(1).await;
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(group.texts(), [text], "{answers:?}");
    group.says(BOB, "@parlor_bot hello").await;
    house.settled(&gateway).await;
    assert_eq!(group.texts()[1..], ["re: hello"]);

    let mut called: Vec<String> = house
        .telegram
        .journal()
        .into_iter()
        .map(|call| call.method)
        .collect();
    called.sort_unstable();
    called.dedup();
    for method in CALLED.iter().chain(&["deleteWebhook"]) {
        assert!(
            called.iter().any(|called| called == method),
            "{method} was not called: {called:?}"
        );
    }
    assert_eq!(
        house.ask("SELECT count(*) FROM outbox WHERE repeated = 1"),
        "0",
        "no answer was taken for a lost one"
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_server_that_says_only_what_it_must() {
    spend_a_day(Answers::Minimal).await;
}

#[tokio::test]
async fn a_server_that_says_null() {
    spend_a_day(Answers::Nulls).await;
}
