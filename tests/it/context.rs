//! Long conversations: summed up before they are too long, and still findable.

use serde_json::json;

use crate::support::House;
use crate::support::fake_model::{Request, Script};
use crate::support::fake_telegram::{ALICE, BOB};

const OPEN: &str = "context_tokens = 3440\n[access]\nowners = [\"telegram:111\"]\ndms = \"open\"\ngroups = \"open\"\nrequire_mention = false\n";

/// Sums up when told to, and else answers at some length.
fn talkative(request: &Request) -> Script {
    match request.last_text() {
        text if text.contains("[Sum all of this up") => {
            Script::text("They planted roses; the gate code is 4711.")
        }
        text => Script::text(format!("On {:.20}: {}", text, "much to say. ".repeat(30))),
    }
}

async fn talk(house: &House, gateway: &parlor::gateway::Gateway, rounds: usize) {
    let alice = house.telegram.dm(ALICE);
    for n in 0..rounds {
        alice
            .says(&format!(
                "question {n} about the garden, {}",
                "with many words ".repeat(10)
            ))
            .await;
        house.settled(gateway).await;
    }
}

#[tokio::test]
async fn a_long_conversation_is_summed_up_before_it_is_too_long_and_stays_findable() {
    let house = House::new(OPEN).await;
    house.model.answer_with(talkative);
    let gateway = house.open().await;
    talk(&house, &gateway, 12).await;

    let journal = house.model.journal();
    let summaries: Vec<&Request> = journal
        .iter()
        .filter(|request| request.last_text().contains("[Sum all of this up"))
        .collect();
    assert!(!summaries.is_empty(), "it was never summed up");
    assert!(
        summaries[0]
            .last_text()
            .contains("[Alice] question 0 about the garden")
    );
    assert!(summaries[0].tools.is_empty());
    let last = house.model.last_request();
    let first = journal
        .iter()
        .rev()
        .find(|request| !request.last_text().contains("[Sum all of this up"))
        .expect("a turn");
    assert!(
        first.messages[0].1.starts_with(
            "[A summary of what was said here before:]\nThey planted roses; the gate code is 4711."
        ),
        "{:?}",
        first.messages[0]
    );
    assert!(
        !last
            .messages
            .iter()
            .any(|(_, text)| text.contains("question 0 about") && !text.contains("[Sum all"))
    );
    assert_eq!(
        house.ask("SELECT count(*) FROM messages"),
        "24",
        "nothing is thrown away, and no summary is anybody's words"
    );
    assert_eq!(
        house.telegram.dm(ALICE).texts().len(),
        12,
        "nobody is sent a summary"
    );

    let alice = house.telegram.dm(ALICE);
    alice.says("/status").await;
    house.settled(&gateway).await;
    let status = alice.texts().pop().expect("a status");
    assert!(
        status.contains("messages are summed up; Main can still look them up."),
        "{status}"
    );

    house.model.enqueue(Script::tool_call(
        "transcript_search",
        json!({ "words": "QUESTION 0" }),
    ));
    alice.says("what did I ask first").await;
    house.settled(&gateway).await;
    let told = house.model.journal();
    let found = told
        .iter()
        .rev()
        .find_map(|request| request.messages.iter().find(|(role, _)| role == "tool"))
        .expect("a result");
    assert!(
        found.1.contains("[Alice] question 0 about the garden"),
        "{found:?}"
    );

    alice.says("/new").await;
    alice.says("hello").await;
    house.settled(&gateway).await;
    let fresh = house.model.last_request();
    assert_eq!(
        fresh.messages,
        [("user".to_owned(), "hello".to_owned())],
        "a fresh conversation has no summary"
    );
    gateway.shutdown().await;
}

/// A summary that cannot be had costs nothing: the oldest messages are left out as before.
#[tokio::test]
async fn a_failing_summary_is_in_nobodys_way() {
    let house = House::new(OPEN).await;
    house
        .model
        .answer_with(|request| match request.last_text() {
            text if text.contains("[Sum all of this up") => Script::status(400, "{}"),
            _ => talkative(request),
        });
    let gateway = house.open().await;
    talk(&house, &gateway, 10).await;
    assert_eq!(house.telegram.dm(ALICE).texts().len(), 10);
    assert_eq!(house.ask("SELECT count(*) FROM summaries"), "0");
    let tried = house
        .model
        .journal()
        .iter()
        .filter(|request| is_summary(request))
        .count();
    assert_eq!(tried, 1, "it is not tried again after every turn");
    gateway.shutdown().await;
}

fn is_summary(request: &Request) -> bool {
    request.last_text().contains("[Sum all of this up")
}

/// As [`talkative`], but a summary comes only when the test lets it.
fn slow_to_sum_up(request: &Request) -> Script {
    if is_summary(request) {
        talkative(request).held()
    } else {
        talkative(request)
    }
}

/// Talks until a summary is being made, and tells how many answers that took.
async fn talk_until_it_is_summed_up(house: &House) -> usize {
    let alice = house.telegram.dm(ALICE);
    for n in 1..20 {
        alice
            .says(&format!(
                "question {n} about the garden, {}",
                "with many words ".repeat(10)
            ))
            .await;
        alice.wait_for_sent(n).await;
        if house.model.journal().iter().any(is_summary) {
            return n;
        }
    }
    panic!("it was never summed up");
}

/// While background work is paused no summary is made; the next turn after the pause has it made.
#[tokio::test]
async fn no_summary_is_made_while_background_work_is_paused() {
    let house = House::new(OPEN).await;
    house.model.answer_with(talkative);
    let gateway = house.open().await;
    let ran = crate::cli::run(house.home.path(), &["pause", "background"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    talk(&house, &gateway, 12).await;
    assert!(!house.model.journal().iter().any(is_summary));
    let ran = crate::cli::run(house.home.path(), &["resume", "background"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    talk(&house, &gateway, 1).await;
    assert!(house.model.journal().iter().any(is_summary));
    gateway.shutdown().await;
}

/// The answer is there, and so is the next one: a summary is nobody's concern.
#[tokio::test]
async fn nobody_waits_for_a_summary() {
    let house = House::new(OPEN).await;
    house.model.answer_with(slow_to_sum_up);
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    let answers = talk_until_it_is_summed_up(&house).await;
    alice.says("short").await;
    alice.wait_for_sent(answers + 1).await;
    assert_eq!(
        house.ask("SELECT count(*) FROM summaries"),
        "0",
        "it is still being made"
    );
    assert_eq!(
        house
            .model
            .journal()
            .iter()
            .filter(|request| is_summary(request))
            .count(),
        1,
        "once at a time"
    );
    house.model.answer_with(talkative);
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(house.ask("SELECT count(*) FROM summaries"), "1");
    gateway.shutdown().await;
}

/// Without the summary it would not know how the conversation began.
#[tokio::test]
async fn a_turn_that_has_no_room_for_it_all_waits_for_the_summary() {
    let house = House::new(OPEN).await;
    house.model.answer_with(slow_to_sum_up);
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    let answers = talk_until_it_is_summed_up(&house).await;
    alice
        .says(&format!("a long story: {}", "with many words ".repeat(300)))
        .await;
    alice.wait_for_sent(answers + 1).await;
    alice.says("what was the gate code").await;
    // By the time this one is answered, the question above has been looked at.
    alice.says("/status").await;
    alice.wait_for_sent(answers + 2).await;
    house.model.answer_with(talkative);
    house.model.release();
    house.settled(&gateway).await;
    let journal = house.model.journal();
    let asked = journal
        .iter()
        .find(|request| request.last_text() == "what was the gate code")
        .expect("it was asked");
    assert!(
        asked.messages[0].1.contains("the gate code is 4711."),
        "{:?}",
        asked.messages[0]
    );
    gateway.shutdown().await;
}

/// A group keeps the summary that is being made when it becomes a supergroup.
#[tokio::test]
async fn a_summary_under_way_is_waited_for_in_the_place_its_group_has_moved_to() {
    let house = House::new(OPEN).await;
    house.model.answer_with(slow_to_sum_up);
    let gateway = house.open().await;
    house.telegram.dm(ALICE);
    let group = house.telegram.group(-5);
    let mut answers = 0;
    while !house.model.journal().iter().any(is_summary) {
        answers += 1;
        assert!(answers < 20, "it was never summed up");
        group
            .says(
                ALICE,
                &format!(
                    "question {answers} about the garden, {}",
                    "with many words ".repeat(10)
                ),
            )
            .await;
        group.wait_for_sent(answers).await;
        house
            .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
            .await;
    }
    group
        .says(
            ALICE,
            &format!("a long story: {}", "with many words ".repeat(300)),
        )
        .await;
    group.wait_for_sent(answers + 1).await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    let new = group.migrates_to(-1_000_005).await;
    house
        .wait_until_stored("SELECT count(*) FROM chat_aliases", "1")
        .await;
    let asked = house.model.journal().len();
    new.says(ALICE, "what was the gate code").await;
    // By the time this one is answered, the question above has been looked at.
    new.says(ALICE, "/status").await;
    new.wait_for_sent(1).await;
    assert_eq!(house.model.journal().len(), asked, "it waits");
    house.model.answer_with(talkative);
    house.model.release();
    house.settled(&gateway).await;
    let journal = house.model.journal();
    let question = journal
        .iter()
        .find(|request| request.last_text().ends_with("what was the gate code"))
        .expect("it is asked");
    assert!(
        question.messages[0].1.contains("the gate code is 4711"),
        "{:?}",
        question.messages[0]
    );
    gateway.shutdown().await;
}

/// At a limit nothing is spent that nobody asked for. Whoever asks tomorrow has it made.
#[tokio::test]
async fn at_a_limit_nothing_is_summed_up() {
    let house = House::new(&format!("{OPEN}[agents.main.limits]\ntokens_per_day = 1\n")).await;
    house.model.answer_with(talkative);
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    for n in 0..12 {
        // Each on another day.
        house.tell("DELETE FROM budgets");
        alice
            .says(&format!(
                "question {n} about the garden, {}",
                "with many words ".repeat(10)
            ))
            .await;
        house.settled(&gateway).await;
    }
    let journal = house.model.journal();
    assert_eq!(
        (
            journal.len(),
            journal.iter().filter(|request| is_summary(request)).count()
        ),
        (12, 0)
    );
    gateway.shutdown().await;
}

/// What a call has cost does not depend on what it was good for.
#[tokio::test]
async fn a_summary_that_says_nothing_is_counted_all_the_same() {
    let house = House::new(OPEN).await;
    house.model.answer_with(|request| {
        if is_summary(request) {
            Script::text(" ")
        } else {
            talkative(request)
        }
    });
    let gateway = house.open().await;
    talk(&house, &gateway, 12).await;
    let journal = house.model.journal();
    assert!(journal.iter().any(is_summary), "it was never summed up");
    let spent = house.ask("SELECT tokens FROM budgets WHERE spender LIKE 'agent:%'");
    assert_eq!(spent, (journal.len() * 112).to_string());
    assert_eq!(
        house.ask("SELECT sum(input_tokens + output_tokens) FROM turns"),
        spent
    );
    gateway.shutdown().await;
}

/// What was said elsewhere was said to others.
#[tokio::test]
async fn a_search_stays_in_its_place() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    house.telegram.dm(ALICE).says("the secret is xyzzy").await;
    house.settled(&gateway).await;
    house.model.enqueue(Script::tool_call(
        "transcript_search",
        json!({ "words": "xyzzy" }),
    ));
    house.telegram.dm(BOB).says("what did Alice say").await;
    house.settled(&gateway).await;
    let told = house.model.last_request();
    assert_eq!(
        told.last_text(),
        "Nothing with these words was said in this chat."
    );
    gateway.shutdown().await;
}

/// A provider that counts otherwise than we do refuses in the end: the person learns what to do,
/// and the next words are heard.
#[tokio::test]
async fn a_conversation_that_the_provider_finds_too_long_is_told_with_a_way_out() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let alice = house.telegram.dm(ALICE);
    let refusal = json!({ "error": { "message": "maximum context length is 8192 tokens", "code": "context_length_exceeded" } });
    house
        .model
        .enqueue(Script::status(400, &refusal.to_string()));
    alice.says("one more thing").await;
    house.settled(&gateway).await;
    alice.says("/new").await;
    alice.says("hello").await;
    house.settled(&gateway).await;
    let texts = alice.texts();
    assert_eq!(
        texts[0],
        "This conversation is longer than my model can read. /new starts a fresh one. [ref 1]"
    );
    assert_eq!(texts.last().map(String::as_str), Some("re: hello"));
    gateway.shutdown().await;
}
