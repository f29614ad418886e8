//! People take things back on Discord: messages that wait, are being answered or were answered long
//! ago, and whole places.

use std::time::Duration;

use parlor::gateway::Gateway;

use crate::support::House;
use crate::support::checker::Promise;
use crate::support::fake_discord::{ALICE, BOB, CAROL, FakeDiscord, Room, Route};
use crate::support::fake_model::Script;

const OPEN: &str = r#"
[access]
owners = ["discord:111"]
dms = "open"
require_mention = false
[[bindings]]
match = "discord:channel:8101"
agent = "main"
"#;

/// A thread is shared, so that what several people say there waits in one lane.
async fn house(keys: &str) -> (House, FakeDiscord, Room, Gateway) {
    let house = House::new(OPEN).await;
    let discord = house.add_discord(keys).await;
    let thread = discord
        .guild(8001, "Garden")
        .text_channel(8101, "general")
        .thread(8111, "talk");
    let gateway = house.open_with(&discord).await;
    house
        .wait_until_stored("SELECT count(*) FROM discord_heard", "2")
        .await;
    (house, discord, thread, gateway)
}

/// How many messages of people wait or are being answered.
const WAITING: &str = "SELECT count(*) FROM inbox WHERE state = 'waiting'";
const DELETED: &str = "SELECT count(*) FROM inbox WHERE outcome = 'deleted'";

fn said(house: &House) -> String {
    house.ask("SELECT group_concat(text, ' / ') FROM (SELECT text FROM messages ORDER BY id)")
}

#[tokio::test]
async fn a_question_that_waits_is_dropped_with_its_message() {
    let (house, discord, thread, gateway) = house("").await;
    house.model.hold();
    thread.says(BOB, "one").await;
    house.model.wait_for_open(1).await;
    let second = thread.says(CAROL, "two").await;
    thread.says(BOB, "three").await;
    house.wait_until_stored(WAITING, "3").await;
    thread.deletes(second.message_id).await;
    house.wait_until_stored(DELETED, "1").await;
    house.model.release();
    thread.wait_for_sent(2).await;
    gateway.settled().await;
    assert_eq!(thread.texts(), ["re: [Bob] one", "re: [Bob] three"]);
    assert!(
        !house
            .model
            .journal()
            .iter()
            .any(|request| format!("{request:?}").contains("two")),
        "nobody is asked about it"
    );
    assert!(!said(&house).contains("two"), "{}", said(&house));
    gateway.shutdown().await;
    drop(discord);
}

/// The words go, in the conversation and in what models are shown; that something was said stays.
#[tokio::test]
async fn an_answered_question_is_blanked_in_the_conversation() {
    let (house, discord, thread, gateway) = house("").await;
    let dm = discord.dm(CAROL);
    house.model.enqueue(Script::text("Noted."));
    let secret = thread.says(BOB, "my password is hunter2").await;
    thread.wait_for_sent(1).await;
    house.model.enqueue(Script::text("Noted."));
    let private = dm.says("mine is swordfish").await;
    dm.wait_for_sent(1).await;
    gateway.settled().await;
    thread.deletes(secret.message_id).await;
    dm.room().deletes(private.message_id).await;
    house
        .wait_until_stored("SELECT count(*) FROM messages WHERE deleted_at > 0", "2")
        .await;
    thread.says(BOB, "what did I say?").await;
    thread.wait_for_sent(2).await;
    dm.says("and what did I say?").await;
    dm.wait_for_sent(2).await;
    gateway.settled().await;
    let asked: Vec<String> = house
        .model
        .journal()
        .iter()
        .skip(2)
        .map(|request| format!("{request:?}"))
        .collect();
    assert!(
        asked.len() == 2 && asked.iter().all(|asked| asked.contains("[deleted]")),
        "{asked:?}"
    );
    assert!(
        !asked
            .iter()
            .any(|asked| asked.contains("hunter2") || asked.contains("swordfish")),
        "{asked:?}"
    );
    assert!(
        !said(&house).contains("hunter2") && !said(&house).contains("swordfish"),
        "{}",
        said(&house)
    );
    gateway.shutdown().await;
}

/// As with /stop: what is being written is not finished, and if nothing was shown yet, nothing is.
#[tokio::test]
async fn the_turn_of_a_deleted_message_is_stopped() {
    let (house, discord, thread, gateway) = house("").await;
    house.model.hold();
    let question = thread.says(BOB, "never mind").await;
    house.model.wait_for_open(1).await;
    thread.deletes(question.message_id).await;
    house
        .wait_until_stored("SELECT count(*) FROM turns WHERE outcome = 'stopped'", "1")
        .await;
    house.model.release();
    thread.says(BOB, "this one").await;
    let answer = thread.wait_for_sent(1).await.text;
    assert!(
        answer.ends_with("[Bob] this one") && !answer.contains("never mind"),
        "{answer}"
    );
    gateway.settled().await;
    assert_eq!(thread.texts().len(), 1);
    assert_eq!(
        house.ask("SELECT outcome FROM inbox ORDER BY id LIMIT 1"),
        "deleted"
    );
    assert!(!said(&house).contains("never mind"), "{}", said(&house));
    gateway.shutdown().await;
    drop(discord);
}

/// What people have read of an answer stays, marked as unfinished.
#[tokio::test]
async fn half_an_answer_stays_when_its_question_is_deleted() {
    let (house, discord, thread, gateway) = house("").await;
    let text = "This answer takes its time, so that one can see it being written, piece by piece, up to its very end.";
    house.model.enqueue(Script::Pauses {
        text: text.into(),
        after: vec![12],
    });
    let question = thread.says(BOB, "tell me").await;
    let shown = thread.wait_for_sent(1).await;
    house
        .wait_until_stored("SELECT count(*) FROM preview_messages", "1")
        .await;
    thread.deletes(question.message_id).await;
    let closed = discord
        .wait_for_text(shown.message_id, |text| text.ends_with("_(stopped)_"))
        .await;
    assert!(
        text.starts_with(closed.text.trim_end_matches("_(stopped)_").trim()),
        "{}",
        closed.text
    );
    house.model.release();
    gateway.settled().await;
    assert_eq!(thread.texts().len(), 1);
    gateway.shutdown().await;
}

/// An answer to several people is not taken from all because one of them changed their mind.
#[tokio::test]
async fn a_turn_that_answers_others_too_goes_on() {
    let (house, discord, thread, gateway) = house("").await;
    house.model.hold();
    thread.says(BOB, "first").await;
    house.model.wait_for_open(1).await;
    let taken_back = thread.says(CAROL, "a secret").await;
    thread.says(BOB, "and a question").await;
    house.wait_until_stored(WAITING, "3").await;
    // The two that waited are answered as one.
    house.model.enqueue(Script::text("Both.").held());
    house.model.release();
    thread.wait_for_sent(1).await;
    house.model.wait_for_open(1).await;
    thread.deletes(taken_back.message_id).await;
    house.wait_until_stored(DELETED, "1").await;
    house.model.release();
    thread.wait_for_sent(2).await;
    gateway.settled().await;
    assert_eq!(thread.texts()[1], "Both.");
    assert!(
        said(&house).contains("[deleted] / and a question") && !said(&house).contains("secret"),
        "{}",
        said(&house)
    );
    gateway.shutdown().await;
    drop(discord);
}

/// Moderators delete many at once.
#[tokio::test]
async fn several_messages_are_deleted_at_once() {
    let (house, discord, thread, gateway) = house("").await;
    let first = thread.says(BOB, "spam one").await;
    thread.wait_for_sent(1).await;
    gateway.settled().await;
    house.model.hold();
    thread.says(CAROL, "keep this").await;
    house.model.wait_for_open(1).await;
    let second = thread.says(BOB, "spam two").await;
    house.wait_until_stored(WAITING, "2").await;
    thread
        .deletes_all(&[first.message_id, second.message_id, 12345])
        .await;
    house.wait_until_stored(DELETED, "1").await;
    house.model.release();
    thread.wait_for_sent(2).await;
    gateway.settled().await;
    assert_eq!(thread.texts()[1], "re: [Carol] keep this");
    assert_eq!(
        house.ask("SELECT count(*) FROM messages WHERE kind = 'person' AND text LIKE '%spam%'"),
        "0"
    );
    gateway.shutdown().await;
    drop(discord);
}

/// Written and deleted before anybody looked: both come in one go.
#[tokio::test]
async fn a_message_that_is_deleted_at_once_is_never_asked_about() {
    let (_house, discord, thread, gateway) = house("").await;
    let events = discord.hold_events();
    let slip = thread.says(BOB, "a slip").await;
    thread.deletes(slip.message_id).await;
    thread.says(BOB, "the right words").await;
    events.release();
    thread.wait_for_sent(1).await;
    gateway.settled().await;
    assert_eq!(thread.texts(), ["re: [Bob] the right words"]);
    gateway.shutdown().await;
}

/// A process that is killed right after the deletion does not answer either.
#[tokio::test]
async fn a_deleted_question_stays_dropped_after_a_crash() {
    let house = House::new(OPEN).await;
    let discord = house.add_discord("").await;
    let general = discord.guild(8001, "Garden").text_channel(8101, "general");
    let process = house.spawn().await;
    house
        .wait_until_stored("SELECT count(*) FROM discord_heard", "2")
        .await;
    house.model.hold();
    let question = general.says(BOB, "never mind").await;
    house.model.wait_for_open(1).await;
    general.deletes(question.message_id).await;
    house.wait_until_stored(DELETED, "1").await;
    process.kill().await;
    house.model.release();
    let process = house.spawn().await;
    general.says(BOB, "this one").await;
    // The kill may come before or after the end of the stopped turn is written, which the
    // conversation then tells.
    let answer = general.wait_for_sent(1).await.text;
    assert!(
        answer.ends_with("this one") && !answer.contains("never mind"),
        "{answer}"
    );
    assert_eq!(process.stop().await, 0);
}

/// A deleted channel takes its threads along: nothing is finished, and nothing is sent there or
/// told to anybody.
#[tokio::test]
async fn a_deleted_channel_ends_what_is_done_there() {
    let (house, discord, thread, gateway) = house("streaming = false").await;
    let general = discord.room(8101);
    house.model.hold();
    general.says(BOB, "in the channel").await;
    thread.says(BOB, "in its thread").await;
    house.model.wait_for_open(2).await;
    thread.says(CAROL, "waiting").await;
    house.wait_until_stored(WAITING, "3").await;
    general.is_deleted().await;
    house
        .wait_until_stored(
            "SELECT count(*) FROM inbox WHERE outcome = 'its place is gone'",
            "3",
        )
        .await;
    house
        .wait_until_stored("SELECT count(*) FROM turns WHERE outcome = 'stopped'", "2")
        .await;
    house.model.release();
    gateway.settled().await;
    discord.dm(ALICE).says("still there?").await;
    discord.dm(ALICE).wait_for_sent(1).await;
    gateway.settled().await;
    assert_eq!(
        discord.dm(ALICE).texts(),
        ["re: still there?"],
        "the owner is not bothered"
    );
    assert_eq!(discord.calls(Route::CreateMessage).len(), 1);
    gateway.shutdown().await;
}

/// What was shown of an answer is gone with the thread, and is not sent again.
#[tokio::test]
async fn a_deleted_thread_takes_half_an_answer_along() {
    let (house, discord, thread, gateway) = house("").await;
    // The half answer was deleted with its thread.
    house.give_up(Promise::NothingLeft);
    let text = "This answer takes its time, so that one can see it being written, piece by piece, up to its very end.";
    house.model.enqueue(Script::Pauses {
        text: text.into(),
        after: vec![12],
    });
    thread.says(BOB, "tell me").await;
    thread.wait_for_sent(1).await;
    house
        .wait_until_stored("SELECT count(*) FROM preview_messages", "1")
        .await;
    thread.is_deleted().await;
    house
        .wait_until_stored("SELECT count(*) FROM turns WHERE outcome = 'stopped'", "1")
        .await;
    house.model.release();
    gateway.settled().await;
    assert_eq!(
        (
            discord.calls(Route::CreateMessage).len(),
            discord.calls(Route::EditMessage).len()
        ),
        (1, 0)
    );
    assert_eq!(house.ask("SELECT count(*) FROM outbox"), "0");
    gateway.shutdown().await;
}

/// Answers that wait for a place that is gone are not knocked about any more; they are listed.
#[tokio::test]
async fn an_answer_that_waits_for_a_deleted_channel_is_given_up() {
    let (mut house, discord, thread, gateway) = house("streaming = false").await;
    discord
        .fail(
            Route::CreateMessage,
            crate::support::fake_discord::Fault::RateLimited(600.0),
        )
        .once();
    thread.says(BOB, "hello").await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE not_before > 0", "1")
        .await;
    thread.is_deleted().await;
    house
        .wait_until_stored("SELECT error FROM outbox", "the channel is gone")
        .await;
    assert_eq!(discord.calls(Route::CreateMessage).len(), 1);
    house.leave_leftovers();
    tokio::time::timeout(Duration::from_secs(30), gateway.shutdown())
        .await
        .expect("the end waits for nobody");
}
