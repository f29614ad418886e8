//! What goes out to Discord: how it looks, how it is written while it grows, and what happens when
//! it is refused.

use std::time::Duration;

use serde_json::json;

use crate::support::House;
use crate::support::fake_discord::journal::Call;
use crate::support::fake_discord::{
    ALICE, BOB, BotMay, CAROL, FakeDiscord, Fault, Outcome, Room, Route,
};
use crate::support::fake_model::Script;
use crate::support::house::parlor;

const OPEN: &str = r#"
[access]
owners = ["discord:111"]
dms = "open"
require_mention = false
[[bindings]]
match = "discord:channel:8101"
agent = "main"
"#;

async fn house(keys: &str) -> (House, FakeDiscord, Room) {
    let (house, discord, garden) = House::with_garden(keys, OPEN).await;
    let general = garden.text_channel(8101, "general");
    (house, discord, general)
}

const FAILED: &str = "SELECT count(*) FROM outbox WHERE state = 'failed'";

/// The fake fails the test if anything could ping somebody.
#[tokio::test]
async fn an_answer_pings_nobody_and_shows_no_previews() {
    let (house, discord, general) = house("").await;
    let gateway = house.open_with(&discord).await;
    house.model.enqueue(Script::text(
        "@everyone and <@222>, see https://example.org",
    ));
    general.says(BOB, "shout").await;
    let answer = general.wait_for_sent(1).await;
    assert_eq!(answer.text, "@everyone and <@222>, see https://example.org");
    assert_eq!(answer.json["flags"], 4);
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_long_answer_is_cut_and_a_very_long_one_becomes_a_file() {
    let (house, discord, general) = house("max_parts = 3").await;
    let gateway = house.open_with(&discord).await;
    let code: Vec<String> = (0..300).map(|number| format!("line {number}")).collect();
    house.model.enqueue(Script::text(format!(
        "Look:\n\n```python\n{}\n```\n\nDone.",
        code.join("\n")
    )));
    general.says(BOB, "code").await;
    let last = general.wait_for_sent(2).await;
    assert!(
        last.text.starts_with("```python\n") && last.text.ends_with("```\nDone."),
        "{}",
        last.text
    );
    house.model.enqueue(Script::text("word ".repeat(3000)));
    general.says(BOB, "a book").await;
    let file = general.wait_for_sent(4).await;
    assert_eq!(
        file.text,
        "This is long, so here is the whole answer as a file."
    );
    assert_eq!(file.json["attachments"][0]["filename"], "answer.md");
    gateway.settled().await;
    assert_eq!(general.texts().len(), 4);
    gateway.shutdown().await;
}

/// In a busy channel an answer says what it answers.
#[tokio::test]
async fn an_answer_quotes_its_question_when_others_wrote_in_between() {
    let (house, discord, general) = house("show_agent = true").await;
    let gateway = house.open_with(&discord).await;
    house.model.hold();
    let question = general.says(BOB, "what is up?").await;
    house.model.wait_for_open(1).await;
    general.says(CAROL, "lunch?").await;
    house.model.wait_for_open(2).await;
    house.model.release();
    general.wait_for_sent(2).await;
    gateway.settled().await;
    let sent = discord.sent();
    let answer = sent
        .iter()
        .find(|sent| sent.text.ends_with("re: what is up?"))
        .expect("Bob is answered");
    assert_eq!(
        (answer.reply_to, answer.text.as_str()),
        (Some(question.message_id), "**Main**\n\nre: what is up?")
    );
    gateway.shutdown().await;
}

const ANSWER: &str = "**This answer** takes its time, so that one can see it being written, piece by piece, up to `its end`.";

/// One message grows, at a pace, and ends complete.
#[tokio::test]
async fn an_answer_is_shown_while_it_is_written() {
    let (house, discord, general) = house("").await;
    let gateway = house.open_with(&discord).await;
    house.model.enqueue(Script::Pauses {
        text: ANSWER.into(),
        after: vec![12, 16],
    });
    general.says(BOB, "tell me").await;
    let first = general.wait_for_sent(1).await;
    assert_eq!(
        first.text,
        "**This answer** takes its time, so that one can see it being"
    );
    house.model.release();
    let edit = discord.wait_for_calls(Route::EditMessage, 1).await;
    assert!(edit.at - discord.calls(Route::CreateMessage)[0].at >= Duration::from_millis(1400));
    house.model.release();
    let last = discord
        .wait_for_text(first.message_id, |text| text == ANSWER)
        .await;
    gateway.settled().await;
    assert_eq!((last.versions.len(), general.texts().len()), (3, 1));
    discord.wait_for_typing(general.id).await;
    gateway.shutdown().await;
}

/// Waits until the bot has so many reactions behind it.
async fn reacted(discord: &FakeDiscord, count: usize) {
    let is_done = |call: &Call| call.outcome == Outcome::Status(204);
    discord
        .wait_until(|journal| {
            journal
                .calls(Route::AddReaction)
                .filter(|call| is_done(call))
                .count()
                >= count
        })
        .await;
}

#[tokio::test]
async fn reactions_show_how_far_an_answer_is() {
    let (house, discord, general) = house("reactions = true").await;
    let gateway = house.open_with(&discord).await;
    house.model.enqueue(Script::status(400, "{}").held());
    let said = general.says(BOB, "hard one").await;
    reacted(&discord, 1).await;
    assert_eq!(general.reactions_to(said.message_id)[0].1, "👀");
    house.model.wait_for_open(1).await;
    house.model.release();
    reacted(&discord, 2).await;
    gateway.settled().await;
    gateway.shutdown().await;
    assert_eq!(
        general
            .reactions_to(said.message_id)
            .into_iter()
            .map(|(_, emoji)| emoji)
            .collect::<Vec<_>>(),
        ["😢"]
    );
}

/// The answer of a send gets lost: the nonce makes the second try the same message.
#[tokio::test]
async fn a_send_whose_answer_was_lost_is_repeated_and_seen_once() {
    let (house, discord, general) = house("").await;
    let gateway = house.open_with(&discord).await;
    for fault in [
        Fault::DroppedAfter,
        Fault::InvalidJson,
        Fault::DroppedBefore,
        Fault::Html(502),
    ] {
        discord.fail(Route::CreateMessage, fault).once();
    }
    general.says(BOB, "hello").await;
    discord.wait_for_calls(Route::CreateMessage, 5).await;
    gateway.settled().await;
    assert_eq!(general.texts(), ["re: hello"]);
    let nonces: Vec<_> = discord
        .calls(Route::CreateMessage)
        .iter()
        .map(|call| call.body["nonce"].clone())
        .collect();
    assert!(
        nonces
            .iter()
            .all(|nonce| nonce == &nonces[0]
                && nonce.as_str().is_some_and(|nonce| nonce.len() <= 25)),
        "{nonces:?}"
    );
    gateway.shutdown().await;
}

/// What Discord asks for is obeyed, and nothing is sent meanwhile.
#[tokio::test]
async fn a_wait_that_discord_asks_for_is_kept() {
    let (house, discord, general) = house("").await;
    let gateway = house.open_with(&discord).await;
    discord
        .fail(Route::CreateMessage, Fault::RateLimited(0.7))
        .once();
    general.says(BOB, "hello").await;
    assert_eq!(general.wait_for_sent(1).await.text, "re: hello");
    let calls = discord.calls(Route::CreateMessage);
    assert_eq!(calls.len(), 2);
    assert!(calls[1].at - calls[0].at >= Duration::from_millis(700));
    gateway.shutdown().await;
}

/// A thread that sleeps is woken; one that is locked keeps its answers until it is opened again.
#[tokio::test]
async fn an_archived_thread_is_woken_and_a_locked_one_is_parked() {
    let (house, discord, general) = house("streaming = false").await;
    let thread = general.creates_thread(BOB, "talk").await;
    let owner = discord.dm(ALICE);
    let gateway = house.open_with(&discord).await;
    thread.says(BOB, "before").await;
    thread.wait_for_sent(1).await;
    house.model.hold();
    thread.says(BOB, "then it slept").await;
    house.model.wait_for_open(1).await;
    thread.archives().await;
    house.model.release();
    thread.wait_for_sent(2).await;
    assert!(!thread.is_archived());
    house.model.hold();
    thread.says(BOB, "then it was locked").await;
    house.model.wait_for_open(1).await;
    thread.locks().await;
    house.model.release();
    let told = owner.wait_for_sent(1).await.text;
    assert_eq!(
        told,
        format!(
            "I could not answer in “talk” (`discord:thread:8101:{}`): the thread is locked. The answer is kept, and so are those that \
             follow. `/retry` there or here sends them again; `parlor failed` lists them.",
            thread.id
        )
    );
    gateway.settled().await;
    assert_eq!(house.ask(FAILED), "1");
    thread.unlocks().await;
    assert_eq!(
        thread.wait_for_sent(3).await.text,
        "re: [Bob] then it was locked"
    );
    gateway.settled().await;
    assert_eq!(house.ask(FAILED), "0");
    gateway.shutdown().await;
}

/// Typing is refused while a thread sleeps. That must not make it a lost place, as three refusals
/// in a row do elsewhere.
#[tokio::test]
async fn a_place_that_sleeps_through_the_typing_is_still_answered() {
    let (house, discord, general) = house("streaming = false").await;
    let gateway = house.open_with(&discord).await;
    house.model.hold();
    discord.fail(Route::Typing, Fault::THREAD_ARCHIVED).times(9);
    for (number, person) in [ALICE, BOB, CAROL].into_iter().enumerate() {
        general.says(person, "take your time").await;
        discord.wait_for_calls(Route::Typing, number + 1).await;
    }
    discord
        .fail(Route::CreateMessage, Fault::THREAD_ARCHIVED)
        .once();
    house.model.release();
    general.wait_for_sent(3).await;
    assert_eq!(general.texts(), ["re: take your time"; 3]);
    assert_eq!(discord.calls(Route::ModifyChannel).len(), 1, "it was woken");
    gateway.settled().await;
    gateway.shutdown().await;
}

/// Refusals are told to the owner once, kept, and sent again on demand.
#[tokio::test]
async fn a_channel_that_takes_nothing_is_parked_and_retried() {
    let (house, discord, general) = house("streaming = false").await;
    let gateway = house.open_with(&discord).await;
    let owner = discord.dm(ALICE);
    general.lets_bot(BotMay::OnlyRead);
    general.says(BOB, "one").await;
    let told = owner.wait_for_sent(1).await.text;
    assert!(
        told.contains("I may not write there. Give my role Send Messages"),
        "{told}"
    );
    general.says(BOB, "two").await;
    house.wait_until_stored(FAILED, "2").await;
    let listed = parlor(house.home.path())
        .arg("failed")
        .output()
        .await
        .expect("it runs");
    assert!(
        String::from_utf8_lossy(&listed.stdout).contains("discord:channel:8101:222"),
        "{listed:?}"
    );
    general.lets_bot(BotMay::Write);
    owner.says("/retry").await;
    general.wait_for_sent(2).await;
    gateway.settled().await;
    assert_eq!(general.texts(), ["re: one", "re: two"]);
    assert_eq!(
        owner.texts().len(),
        2,
        "told once, and the answer to /retry"
    );
    gateway.shutdown().await;
}

/// Typed outcomes for what Discord says, without knocking for ever.
#[tokio::test]
async fn a_place_that_is_gone_or_closed_is_told_and_left_alone() {
    let (mut house, discord, general) = house("streaming = false").await;
    let gateway = house.open_with(&discord).await;
    let bob = discord.dm(BOB);
    bob.blocks_bot();
    bob.says("hello").await;
    let owner = discord.dm(ALICE);
    let told = owner.wait_for_sent(1).await.text;
    assert!(
        told.contains("`discord:dm:222`: this person takes no private messages from me"),
        "{told}"
    );
    discord
        .fail(Route::CreateMessage, Fault::UNKNOWN_CHANNEL)
        .only_in(general.id)
        .times(9);
    for (text, failed) in [
        ("one", "2"),
        ("two", "3"),
        ("three", "4"),
        ("four", "5"),
        ("five", "6"),
    ] {
        general.says(CAROL, text).await;
        house.wait_until_stored(FAILED, failed).await;
    }
    let told = owner.wait_for_sent(2).await.text;
    assert!(told.contains("the channel is gone"), "{told}");
    let knocks = discord
        .calls(Route::CreateMessage)
        .into_iter()
        .filter(|call| call.channel_id == Some(general.id))
        .count();
    assert_eq!(knocks, 3, "then it is left alone");
    house.leave_leftovers();
    gateway.shutdown().await;
}

/// A message that was deleted while its answer grew in it is sent anew.
#[tokio::test]
async fn an_answer_whose_message_was_deleted_is_sent_again() {
    let (house, discord, general) = house("").await;
    let gateway = house.open_with(&discord).await;
    house.model.enqueue(Script::Pauses {
        text: ANSWER.into(),
        after: vec![12],
    });
    general.says(BOB, "tell me").await;
    let first = general.wait_for_sent(1).await;
    general.deletes(first.message_id).await;
    house.model.release();
    let second = general.wait_for_sent(2).await;
    assert_eq!(second.text, ANSWER);
    gateway.settled().await;
    gateway.shutdown().await;
}

/// A file of the workspace arrives as an attachment, after the answer, and its copy goes.
#[tokio::test]
async fn an_agent_sends_a_file() {
    let (house, discord, general) = house("").await;
    let gateway = house.open_with(&discord).await;
    house.write("agents/main/workspace/plan.md", "# The plan");
    let call = json!({ "path": "plan.md", "caption": "@everyone, the plan" });
    house.model.enqueue(Script::tool_call("file_send", call));
    house.model.enqueue(Script::text("Here it is."));
    general.says(ALICE, "send me the plan").await;
    let file = general.wait_for_sent(2).await;
    assert_eq!(general.texts(), ["Here it is.", "@everyone, the plan"]);
    assert_eq!(file.json["attachments"][0]["filename"], "plan.md");
    let bodies: Vec<_> = discord
        .calls(Route::CreateMessage)
        .into_iter()
        .map(|call| call.body["attachments"].clone())
        .collect();
    assert_eq!(
        bodies,
        [json!(null), json!([{ "id": 0, "filename": "plan.md" }])],
        "named where there is one, else not a word"
    );
    gateway.settled().await;
    assert_eq!(
        std::fs::read_dir(house.home.path().join("outgoing")).map_or(0, Iterator::count),
        0
    );
    gateway.shutdown().await;
}
