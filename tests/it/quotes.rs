//! When an answer quotes its question: if anybody wrote in between, decided when the first part of
//! it goes out.

use serde_json::json;

use crate::support::House;
use crate::support::fake_discord;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB, OTHER_BOT};

const OPEN: &str = "[access]\ndms = \"open\"\ngroups = \"open\"\n";
const ANSWER: &str = "This answer takes its time, so that one can see it being written, piece by piece, up to its end.";

/// A preview needs a few words, so nothing is shown before the first release.
fn slow() -> Script {
    Script::Pauses {
        text: ANSWER.into(),
        after: vec![2, 14],
    }
}

/// Members of a plain group have a conversation each, and the one who wrote in between did not even
/// talk to the bot.
#[tokio::test]
async fn a_streamed_answer_quotes_what_it_answers_when_somebody_else_wrote_before_it_began() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let group = house.telegram.supergroup(-1001);
    house.model.enqueue(slow());
    let asked = group.says(ALICE, "@parlor_bot tell me").await;
    house.model.wait_for_open(1).await;
    group.says(BOB, "by the way").await;
    house.telegram.all_confirmed().await;
    house.model.release();
    let preview = group.wait_for_sent(1).await;
    assert_eq!(preview.reply_to, Some(asked.message_id));
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(group.texts(), [ANSWER]);
    gateway.shutdown().await;
}

/// The answer stands right under the question, whatever is said while it grows.
#[tokio::test]
async fn a_streamed_answer_that_began_before_others_wrote_quotes_nothing() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let (group, other) = (
        house.telegram.supergroup(-1001),
        house.telegram.supergroup(-1002),
    );
    house.model.enqueue(slow());
    group.says(ALICE, "@parlor_bot tell me").await;
    house.model.wait_for_open(1).await;
    other.says(BOB, "elsewhere").await;
    house.telegram.all_confirmed().await;
    house.model.release();
    let preview = group.wait_for_sent(1).await;
    group.says(BOB, "by the way").await;
    house.telegram.all_confirmed().await;
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(
        (preview.reply_to, group.texts()),
        (None, vec![ANSWER.to_owned()])
    );
    gateway.shutdown().await;
}

/// Topics of one group are places of their own, and a machine writes like anybody else.
#[tokio::test]
async fn in_a_topic_everybody_in_it_counts_and_nobody_elsewhere() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let forum = house.telegram.forum(-1001);
    let (one, two) = (forum.topic(5, "One"), forum.topic(6, "Two"));
    for (talks, is_quoted) in [(&two, false), (&one, true)] {
        house.model.hold();
        let asked = one.says(ALICE, "@parlor_bot hello").await;
        house.model.wait_for_open(1).await;
        talks.says(OTHER_BOT, "beep").await;
        house.telegram.all_confirmed().await;
        house.model.release();
        house.settled(&gateway).await;
        let answer = house.telegram.sent().pop().expect("it was answered");
        assert_eq!(answer.reply_to, is_quoted.then_some(asked.message_id));
    }
    gateway.shutdown().await;
}

/// The second picture is no message in between.
#[tokio::test]
async fn an_album_alone_is_not_quoted() {
    let house = House::new(OPEN).await;
    let group = house.telegram.supergroup(-1001);
    let photo = json!([{ "file_id": "a", "file_unique_id": "a", "width": 4, "height": 3, "file_size": 21_000_000 }]);
    let part = || {
        group
            .says(ALICE, "")
            .without("text")
            .with("photo", photo.clone())
            .with("media_group_id", json!("77"))
    };
    let mention = json!([{ "type": "mention", "offset": 0, "length": 11 }]);
    part()
        .with("caption", json!("@parlor_bot look"))
        .with("caption_entities", mention)
        .await;
    part().await;
    let gateway = house.open().await;
    house.settled(&gateway).await;
    assert_eq!(
        house
            .telegram
            .sent()
            .iter()
            .map(|sent| sent.reply_to)
            .collect::<Vec<_>>(),
        [None]
    );
    gateway.shutdown().await;
}

/// The process that saw the message in between is gone.
#[tokio::test]
async fn an_answer_after_a_kill_still_quotes() {
    let house = House::new(OPEN).await;
    let process = house.spawn().await;
    let group = house.telegram.supergroup(-1001);
    house.model.hold();
    let asked = group.says(ALICE, "@parlor_bot hello").await;
    house.model.wait_for_open(1).await;
    group.says(BOB, "by the way").await;
    house
        .wait_until_stored("SELECT count(*) FROM inbox WHERE outcome = 'observed'", "1")
        .await;
    house.telegram.all_confirmed().await;
    process.kill().await;
    house.model.release();
    let gateway = house.open().await;
    house.settled(&gateway).await;
    assert_eq!(
        group.wait_for_sent(1).await.reply_to,
        Some(asked.message_id)
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn on_discord_the_first_part_decides_too() {
    let house = House::new(OPEN).await;
    let discord = house.add_discord("").await;
    let general = discord.guild(8001, "Garden").text_channel(8101, "general");
    let gateway = house.open_with(&discord).await;
    house.model.enqueue(slow());
    let asked = general
        .says(
            fake_discord::BOB,
            &format!("{} tell me", fake_discord::PARLOR_BOT.mention()),
        )
        .await;
    house.model.wait_for_open(1).await;
    general.says(fake_discord::CAROL, "lunch?").await;
    house
        .wait_until_stored("SELECT count(*) FROM inbox WHERE outcome = 'observed'", "1")
        .await;
    house.model.release();
    let preview = general.wait_for_sent(1).await;
    assert_eq!(preview.reply_to, Some(asked.message_id));
    house.model.release();
    gateway.settled().await;
    assert_eq!(general.texts(), [ANSWER]);
    gateway.shutdown().await;
}
