//! A place that changes hands: the next agent reads what was said there, and nothing else.

use serde_json::json;

use super::{SECRET, TEAM, Walls};
use crate::support::fake_model::{Request, Script};
use crate::support::fake_telegram::ALICE;

/// Only in what Ada's model wrote to its tools.
const DRAFT: &str = "karmesin1618";

/// S2.19, S1.2: not what the first agent called, found or recalled.
#[tokio::test]
async fn the_next_agent_reads_what_was_said_and_not_what_was_looked_up() {
    let walls = Walls::new(TEAM).await;
    let place = walls.house.telegram.forum(-1001).topic(301, "Both");
    walls.says(&place, "/agent ada").await;
    let calls = [
        ("file_read", json!({ "path": "vault.md" })),
        (
            "file_write",
            json!({ "path": "draft.md", "content": DRAFT }),
        ),
        (
            "memory_save",
            json!({ "text": format!("the vault, {DRAFT}") }),
        ),
        ("skill", json!({ "name": "vault" })),
    ];
    walls.house.model.enqueue(Script::ToolCalls(
        calls
            .map(|(name, arguments)| (name.to_owned(), arguments))
            .to_vec(),
    ));
    walls
        .house
        .model
        .enqueue(Script::text("The vault is closed."));
    walls.says(&place, "Is the vault closed?").await;
    let ada = walls.read_by("Ada").pop().expect("she was asked");
    assert!(
        ada.has(SECRET) && ada.has(DRAFT) && ada.has("[From memory"),
        "there is something to leak"
    );

    walls.says(&place, "/agent rose").await;
    let search = |words: &str| ("transcript_search".to_owned(), json!({ "words": words }));
    walls.house.model.enqueue(Script::ToolCalls(vec![
        search("vault"),
        search("closed"),
        search("%"),
    ]));
    walls.says(&place, "And you, is the vault closed?").await;
    let rose = walls.read_by("Rose").pop().expect("she was asked");
    assert!(
        rose.has("[@ada] The vault is closed."),
        "what was said stays"
    );
    assert!(
        !rose.has(DRAFT) && !rose.has("[From memory"),
        "{}",
        rose.raw
    );
    walls.rose_knows_nothing("after a handoff");
    let texts = format!("%{SECRET}%");
    assert_eq!(
        walls.house.ask(&format!(
            "SELECT count(*) FROM messages JOIN places ON places.id = place_id WHERE key LIKE '%:301' AND text LIKE '{texts}'"
        )),
        "0",
        "neither results nor recalled memories are in the transcript"
    );
    walls.end().await;
}

/// The first agent's task waits for what was said meanwhile, and by then another agent answers.
#[tokio::test]
async fn an_agent_is_not_told_what_another_has_come_to_in_a_task_that_waits() {
    let walls = Walls::new(TEAM).await;
    let place = walls.house.telegram.forum(-1001).topic(301, "Both");
    walls.says(&place, "/agent ada").await;
    let round = Script::TextAndToolCalls(
        format!("I have found {SECRET}, going on."),
        vec![("file_read".to_owned(), json!({ "path": "vault.md" }))],
    );
    walls
        .house
        .model
        .enqueue_when("count the vaults", round.held());
    walls
        .house
        .model
        .enqueue_when("which colour", Script::text("Blue."));
    walls
        .house
        .model
        .enqueue_when("Go on with your task", Script::text("Seven vaults."));
    place.says(ALICE, "count the vaults").await;
    walls.house.model.wait_for_open(1).await;
    place.says(ALICE, "/agent rose").await;
    place.says(ALICE, "which colour is it").await;
    walls.house.all_in_their_lanes().await;
    walls.house.model.release();
    walls.house.settled(&walls.gateway).await;

    let rose = walls.read_by("Rose").pop().expect("she was asked");
    walls.rose_knows_nothing("while Ada's task waits");
    insta::assert_snapshot!(rose.last_text(), @"
    [Alice] count the vaults

    [@ada is still at work on an earlier message here, and will answer it. Answer only the next message.]

    [Alice] which colour is it
    ");
    let ada = walls.read_by("Ada").pop().expect("she went on");
    insta::assert_snapshot!(ada.last_text(), @"
    [While you were at this, people wrote and were answered:]

    [Alice] which colour is it

    [@rose] Blue.

    [Go on with your task, with what they said in mind. Do not answer them again.]
    ");
    walls.end().await;
}

/// A summary is made of what was said, by an agent that is shown nothing else.
#[tokio::test]
async fn a_summary_has_nothing_but_what_was_said() {
    let walls = Walls::new(&TEAM.replace("6000", "3000")).await;
    let place = walls.house.telegram.forum(-1001).topic(301, "Both");
    walls
        .house
        .model
        .answer_with(|request| match request.messages.last() {
            Some((_, text)) if text.contains("[Sum all of this up") => {
                Script::text("They talked about vaults.")
            }
            Some((role, _)) if role == "user" => {
                Script::tool_call("file_read", json!({ "path": "vault.md" }))
            }
            _ => Script::text("much to say about vaults. ".repeat(30)),
        });
    walls.says(&place, "/agent ada").await;
    for n in 0..10 {
        walls
            .says(
                &place,
                &format!(
                    "question {n} about the vault, {}",
                    "with many words ".repeat(10)
                ),
            )
            .await;
    }
    let summing: Vec<Request> = walls
        .read_by("Ada")
        .into_iter()
        .filter(|request| request.has("[Sum all of this up"))
        .collect();
    assert!(!summing.is_empty(), "it was summed up");
    assert!(
        summing.iter().all(|request| !request.has(SECRET)),
        "{}",
        summing[0].raw
    );

    walls.house.model.answer_with(|_| Script::text("I see."));
    walls.says(&place, "/agent rose").await;
    walls.says(&place, "what is this about").await;
    let rose = walls.read_by("Rose").pop().expect("she was asked");
    assert!(rose.has("They talked about vaults."), "{}", rose.raw);
    walls.rose_knows_nothing("a summary");
    walls.end().await;
}
