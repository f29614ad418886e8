//! Turns with tools: what is written down, what is said in between, what is stopped, and what a
//! kill leaves.

use std::collections::HashSet;

use serde_json::json;

use crate::support::House;
use crate::support::fake_model::{Request, Script};
use crate::support::fake_telegram::{ALICE, BOB};

const OPEN: &str = "[access]\nowners = [\"telegram:111\"]\ndms = \"open\"\ngroups = \"open\"\nrequire_mention = false\n";

fn look_at_the_clock() -> Script {
    Script::tool_call("now", json!({}))
}

fn roles(request: &Request) -> Vec<&str> {
    request
        .messages
        .iter()
        .map(|(role, _)| role.as_str())
        .collect()
}

fn texts<'a>(request: &'a Request, role: &str) -> Vec<&'a str> {
    request
        .messages
        .iter()
        .filter(|(of, _)| of == role)
        .map(|(_, text)| text.as_str())
        .collect()
}

/// S2.30, S2.31, S2.45; S2.35: without any setting.
#[tokio::test]
async fn what_is_said_during_a_task_is_answered_after_the_round_and_the_task_goes_on() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    house.model.enqueue(look_at_the_clock().held());
    house
        .model
        .enqueue_when("which colour", Script::text("Blue."));
    house
        .model
        .enqueue_when("Go on with your task", Script::text("The report is done."));
    alice.says("write the report").await;
    house.model.wait_for_open(1).await;
    alice.says("which colour is it").await;
    house.telegram.all_confirmed().await;
    house.model.release();
    house.settled(&gateway).await;

    assert_eq!(alice.texts(), ["Blue.", "The report is done."]);
    let journal = house.model.journal();
    assert_eq!(journal.len(), 3);
    insta::assert_snapshot!(journal[1].last_text(), @"
    write the report

    [You are in the middle of this task, after a round of tools:]

    write the report

    [The next message came meanwhile. Answer only that now; the task goes on by itself afterwards, and you will know what was said.]

    which colour is it
    ");
    assert_eq!(roles(&journal[2]), ["user", "call", "tool", "user"]);
    insta::assert_snapshot!(journal[2].last_text(), @"
    [While you were at this, people wrote and were answered:]

    which colour is it

    [you] Blue.

    [Go on with your task, with what they said in mind. Do not answer them again.]
    ");
    assert_eq!(
        house.ask("SELECT group_concat(text, '|') FROM (SELECT text FROM messages ORDER BY id)"),
        "write the report|which colour is it|Blue.|The report is done.",
        "reminders are nobody's words"
    );
    assert_eq!(house.ask("SELECT count(*) FROM open_turns"), "0");
    alice.says("/status").await;
    house.settled(&gateway).await;
    let status = alice.texts().pop().expect("a status");
    assert!(
        status.contains("Lately here: resumed; answered during another task; set aside"),
        "{status}"
    );
    gateway.shutdown().await;
}

/// S2.33, S2.34; S2.35: without any setting.
#[tokio::test]
async fn what_waits_for_one_long_call_is_drained_as_one_message() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    house.model.hold();
    alice.says("begin").await;
    house.model.wait_for_open(1).await;
    for text in ["one", "two", "three"] {
        alice.says(text).await;
    }
    house.telegram.all_confirmed().await;
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(
        alice.texts(),
        ["re: begin", "re: [Backlog]\none\n\ntwo\n\nthree"]
    );
    assert_eq!(
        house.ask("SELECT count(*) FROM inbox WHERE outcome = 'answered'"),
        "4"
    );
    assert_eq!(
        house.ask("SELECT count(*) FROM messages WHERE kind = 'person'"),
        "4",
        "each is remembered by itself"
    );
    gateway.shutdown().await;
}

/// What a guest says is never done with an owner's rights, nor the other way round.
#[tokio::test]
async fn people_of_different_standing_are_not_answered_as_one() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    house.model.hold();
    topic.says(ALICE, "begin").await;
    house.model.wait_for_open(1).await;
    topic.says(ALICE, "owner").await;
    topic.says(BOB, "guest").await;
    topic.says(BOB, "guest again").await;
    house.telegram.all_confirmed().await;
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(
        topic.texts(),
        [
            "re: [Alice] begin",
            "re: [Alice] owner",
            "re: [Backlog]\n[Bob] guest\n\n[Bob] guest again"
        ]
    );
    gateway.shutdown().await;
}

/// S2.32: a turn resumes after its last recorded tool result, and no finished tool runs again.
#[tokio::test]
async fn a_kill_in_the_middle_of_a_task_costs_no_finished_tool() {
    let house = House::new(OPEN).await;
    let process = house.spawn().await;
    let alice = house.telegram.dm(ALICE);
    house.model.enqueue(look_at_the_clock());
    house.model.enqueue(Script::text("never seen").held());
    alice.says("what time is it where you are").await;
    house.model.wait_for_requests(2).await;
    process.kill().await;
    // As if the agent had been sent here from elsewhere after the turn began.
    house.tell(
        "INSERT INTO messages (place_id, conversation, kind, agent_uid, text, created_at)
         SELECT place_id, 1, 'agent', agent_uid, 'a word from elsewhere', 0 FROM open_turns",
    );
    house.model.enqueue(Script::text("Noon."));
    let process = house.spawn().await;
    alice.wait_for_sent(1).await;
    assert_eq!(alice.texts(), ["Noon."]);
    let journal = house.model.journal();
    assert_eq!(
        roles(&journal[2]),
        ["user", "call", "tool"],
        "the model is not asked from the beginning"
    );
    assert_eq!(
        journal[2].messages, journal[1].messages,
        "with the very result it had, and nothing that was said since"
    );
    house
        .wait_until_stored("SELECT count(*) FROM open_turns", "0")
        .await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    assert_eq!(house.ask("SELECT steps FROM turns"), "2");
    process.stop().await;
}

#[tokio::test]
async fn a_tool_that_ran_while_the_process_was_killed_is_told_as_interrupted() {
    let house = House::new(OPEN).await;
    let process = house.spawn().await;
    let alice = house.telegram.dm(ALICE);
    house.model.enqueue(look_at_the_clock());
    house.model.enqueue(Script::text("never seen").held());
    alice.says("the time").await;
    house.model.wait_for_requests(2).await;
    process.kill().await;
    // As if the kill had come a moment earlier.
    house.tell("UPDATE tool_calls SET result = NULL");
    let process = house.spawn().await;
    alice.wait_for_sent(1).await;
    let told = house.model.last_request();
    assert!(
        told.last_text()
            .starts_with("Interrupted: the gateway was restarted while this ran."),
        "{told:?}"
    );
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    process.stop().await;
}

/// What was drained with a task is not answered a second time by the next process.
#[tokio::test]
async fn a_backlog_that_has_begun_is_one_answer_after_a_kill_too() {
    let house = House::new(OPEN).await;
    let process = house.spawn().await;
    let alice = house.telegram.dm(ALICE);
    house.model.enqueue(Script::text("Begun.").held());
    alice.says("begin").await;
    house.model.wait_for_open(1).await;
    alice.says("one").await;
    alice.says("two").await;
    house.telegram.all_confirmed().await;
    house.model.enqueue(look_at_the_clock());
    house.model.enqueue(Script::text("never seen").held());
    house.model.release();
    house.model.wait_for_requests(3).await;
    process.kill().await;
    house.model.enqueue(Script::text("Both."));
    let process = house.spawn().await;
    alice.wait_for_sent(2).await;
    house
        .wait_until_stored("SELECT count(*) FROM inbox WHERE state = 'waiting'", "0")
        .await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    assert_eq!(alice.texts(), ["Begun.", "Both."]);
    assert_eq!(house.model.journal().len(), 4);
    let messages = house.ask("SELECT group_concat(written_as, '') FROM messages");
    let distinct: HashSet<&str> = messages.split_whitespace().collect();
    assert_eq!(
        distinct.len(),
        3,
        "a later edit or deletion finds each of them: {messages}"
    );
    let words = "SELECT group_concat(role || ' ' || labels || ' ' || text, '; ' ORDER BY id) FROM messages WHERE kind = 'person'";
    assert_eq!(
        house.ask(words),
        "owner 1 begin; owner 1 one; owner 1 two",
        "each with its own words and writer"
    );
    process.stop().await;
}

#[tokio::test]
async fn stop_ends_the_task_and_leaves_what_waits() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    house
        .model
        .enqueue_when("endless", Script::text("never seen").held());
    alice.says("something endless").await;
    house.model.wait_for_open(1).await;
    alice.says("and then this").await;
    alice.says("/queue").await;
    alice.wait_for_sent(1).await;
    alice.says("/stop").await;
    house.model.wait_for_disconnect().await;
    house.settled(&gateway).await;
    let texts = alice.texts();
    let (_, queue) = texts[0]
        .split_once(" s on ")
        .expect("how long it has taken");
    insta::assert_snapshot!(queue, @"
    “something endless” (Alice).
    1 message waits:
    • “and then this” (Alice)

    These come next. /stop cancels the current answer, /queue clear drops the rest.
    ");
    let mut rest = texts[1..].to_vec();
    rest.sort();
    assert_eq!(
        rest,
        [
            "Stopped.",
            "re: something endless\n\n[stopped before it was answered]\n\nand then this"
        ]
    );
    assert_eq!(
        house.ask("SELECT group_concat(outcome) FROM turns"),
        "stopped,answered"
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn stop_all_clears_the_backlog_too() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    house
        .model
        .enqueue_when("endless", Script::text("never seen").held());
    alice.says("something endless").await;
    house.model.wait_for_open(1).await;
    alice.says("one").await;
    alice.says("two").await;
    alice.says("/stop all").await;
    house.settled(&gateway).await;
    assert_eq!(alice.texts(), ["Stopped. 2 waiting messages are dropped."]);
    assert_eq!(
        house.ask("SELECT count(*) FROM inbox WHERE outcome = 'stopped'"),
        "3"
    );
    alice.says("/stop").await;
    alice.says("/queue").await;
    house.settled(&gateway).await;
    assert_eq!(
        alice.texts()[1..],
        [
            "Nothing is being written here.",
            "Nothing is being written here, and nothing waits."
        ]
    );
    gateway.shutdown().await;
}

/// Half an answer on the screen stays there, and says that it ends here.
#[tokio::test]
async fn a_stopped_answer_keeps_what_was_shown_of_it() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let group = house.telegram.supergroup(-1001);
    let text = "This answer takes its time, so that one can see it being written, piece by piece, and never ends";
    house.model.enqueue(Script::Pause {
        text: text.into(),
        after: 12,
    });
    group.says(ALICE, "tell me").await;
    group.wait_for_sent(1).await;
    group.says(ALICE, "/stop").await;
    house.settled(&gateway).await;
    assert_eq!(
        group.texts(),
        [
            "This answer takes its time, so that one can see it being\n\n(stopped)",
            "Stopped."
        ]
    );
    gateway.shutdown().await;
}

/// S2.36
#[tokio::test]
async fn queue_clear_drops_what_waits_and_nothing_else() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    house.model.hold();
    alice.says("begin").await;
    house.model.wait_for_open(1).await;
    alice.says("one").await;
    alice.says("/queue clear").await;
    alice.wait_for_sent(1).await;
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(
        alice.texts(),
        ["1 waiting message is dropped.", "re: begin"]
    );
    gateway.shutdown().await;
}

/// A message that waits is not met with silence.
#[tokio::test]
async fn a_message_that_has_to_wait_is_seen_to_be_taken() {
    let house = House::new(OPEN).await;
    house.configure_telegram("reactions = true");
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    house.model.hold();
    alice.says("begin").await;
    house.model.wait_for_open(1).await;
    let waiting = alice.says("and this").await;
    house.telegram.wait_for_calls("setMessageReaction", 2).await;
    assert_eq!(
        house
            .telegram
            .reaction_to(ALICE.id, waiting.message_id)
            .as_deref(),
        Some("👀")
    );
    house.model.release();
    house.close(gateway).await;
    assert_eq!(
        house.telegram.reaction_to(ALICE.id, waiting.message_id),
        None
    );
}

#[tokio::test]
async fn parallel_calls_malformed_arguments_and_unknown_tools_all_get_an_answer() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    let calls = [
        ("now", json!({})),
        ("nonesuch", json!({ "x": 1 })),
        ("now", json!("not an object")),
    ];
    house.model.enqueue(Script::ToolCalls(
        calls
            .iter()
            .map(|(name, arguments)| ((*name).to_owned(), arguments.clone()))
            .collect(),
    ));
    house.model.enqueue(Script::text("Done."));
    alice.says("all at once").await;
    house.settled(&gateway).await;
    assert_eq!(alice.texts(), ["Done."]);
    let told = house.model.last_request();
    let results = texts(&told, "tool");
    assert_eq!(results.len(), 3, "in the model's order");
    assert!(
        results[1].starts_with("There is no tool `nonesuch`. You have: "),
        "{results:?}"
    );
    gateway.shutdown().await;
}
