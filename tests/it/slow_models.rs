//! Model servers that keep people waiting: they are told, once, where the answer will stand.

use std::time::Duration;

use crate::support::House;
use crate::support::fake_discord;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::ALICE;

const OPEN: &str = "[access]\ndms = \"open\"\ngroups = \"open\"\nrequire_mention = false\n";
const TOLD: &str = "My model takes long to answer. I am still waiting for it.";

/// Typing is shown every four seconds. With five signs, sixteen of the twenty seconds are over.
async fn most_of_the_wait(house: &House, signs: usize) {
    house.telegram.wait_for_calls("sendChatAction", signs).await;
}

/// A message that becomes the answer, in a private chat a draft before it.
#[tokio::test]
async fn a_silent_model_is_told_in_the_place_and_the_answer_takes_over() {
    let house = House::new(OPEN).await;
    let discord = house.add_discord("").await;
    let general = discord.guild(8001, "Garden").text_channel(8101, "general");
    let gateway = house.open_with(&discord).await;
    let (group, alice) = (house.telegram.supergroup(-1001), house.telegram.dm(ALICE));
    house
        .model
        .answer_with(|_| Script::text("here it is").held());
    group.says(ALICE, "tell me").await;
    alice.says("tell me").await;
    general.says(fake_discord::BOB, "tell me").await;
    most_of_the_wait(&house, 10).await;
    assert_eq!(group.wait_for_sent(1).await.text, TOLD);
    let (first_sign, told) = (
        &house.telegram.calls("sendChatAction")[0],
        &house.telegram.calls("sendMessage")[0],
    );
    assert!(
        told.at - first_sign.at >= Duration::from_secs(19),
        "nothing is said too early"
    );
    assert_eq!(general.wait_for_sent(1).await.text, format!("_{TOLD}_"));
    let draft = house.telegram.wait_for_calls("sendMessageDraft", 1).await;
    assert_eq!(draft.params["text"], TOLD);
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(
        (group.texts(), alice.texts(), general.texts()),
        (said(), said(), said())
    );
    assert_eq!(
        house.telegram.calls("sendMessage").len(),
        2,
        "the notice in the group, and the answer in the private chat"
    );
    gateway.shutdown().await;
}

fn said() -> Vec<String> {
    vec!["here it is".to_owned()]
}

/// Without previews too, and over a kill: one message, which ends as the answer.
#[tokio::test]
async fn a_kill_after_the_notice_leaves_one_message() {
    let house = House::new(OPEN).await;
    house.configure_telegram("streaming = false");
    let process = house.spawn().await;
    let group = house.telegram.supergroup(-1001);
    house.model.hold();
    group.says(ALICE, "tell me").await;
    most_of_the_wait(&house, 5).await;
    assert_eq!(group.wait_for_sent(1).await.text, TOLD);
    house
        .wait_until_stored("SELECT count(*) FROM preview_messages", "1")
        .await;
    process.kill().await;
    house.model.release();
    let process = house.spawn().await;
    house
        .wait_until_stored("SELECT group_concat(state) FROM outbox", "sent")
        .await;
    assert_eq!(process.stop().await, 0);
    assert_eq!(group.texts(), ["re: tell me"]);
    assert_eq!(house.telegram.calls("sendMessage").len(), 1);
}

/// The words stay, and the remark goes when there are more.
#[tokio::test]
async fn a_model_that_stops_in_the_middle_is_told_below_what_it_said() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let group = house.telegram.supergroup(-1001);
    let text = "This answer takes its time, so that one can see it being written, piece by piece.";
    house.model.enqueue(Script::Pauses {
        text: text.into(),
        after: vec![14],
    });
    group.says(ALICE, "tell me").await;
    let shown = group.wait_for_sent(1).await.text;
    assert_eq!(
        shown,
        "This answer takes its time, so that one can see it being written, piece"
    );
    let edit = house.telegram.wait_for_calls("editMessageText", 1).await;
    assert_eq!(edit.params["text"], format!("{shown}\n\n{TOLD}"));
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(group.texts(), [text]);
    gateway.shutdown().await;
}
