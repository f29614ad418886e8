//! Agents that are kept separate: of a place they share, one reads nothing of what was said to and
//! by the other.

use serde_json::json;

use super::{SECRET, TEAM, Walls};
use crate::support::fake_model::{Request, Script};
use crate::support::fake_telegram::ALICE;

const SEPARATE: &str = "switch = \"separate\"";

/// S1.2: the secret is in what people said to Ada, what she said, and what people said while the
/// place was hers.
#[tokio::test]
async fn an_agent_reads_nothing_of_what_was_said_to_and_by_another() {
    let walls = Walls::with_top(SEPARATE, TEAM).await;
    let place = walls.house.telegram.forum(-1001).topic(301, "Both");
    walls.says(&place, "/agent ada").await;
    walls.house.model.enqueue(Script::TextAndToolCalls(
        format!("Looking for {SECRET}."),
        vec![("file_read".to_owned(), json!({ "path": "vault.md" }))],
    ));
    walls
        .house
        .model
        .enqueue(Script::text(format!("The vault code is {SECRET}.")));
    let asked = place
        .says(ALICE, &format!("Is {SECRET} the vault code?"))
        .await;
    walls.house.settled(&walls.gateway).await;
    let ada = walls.read_by("Ada").pop().expect("she was asked");
    assert!(ada.has(SECRET), "there is something to leak");

    walls.says(&place, "/agent rose").await;
    place
        .edits(
            asked.message_id,
            &format!("Is {SECRET} the code of the vault?"),
        )
        .await;
    walls.house.settled(&walls.gateway).await;
    let search = |words: &str| ("transcript_search".to_owned(), json!({ "words": words }));
    walls.house.model.enqueue_when(
        "what is the code",
        Script::ToolCalls(vec![
            search("vault"),
            search("code"),
            search("%"),
            search("Ada"),
            search("handed"),
        ]),
    );
    walls.says(&place, "what is the code").await;
    walls.rose_knows_nothing("agents are separate");
    assert!(
        walls.results()[0].starts_with("Nothing with these words"),
        "{:?}",
        walls.results()
    );
    let rose = walls.read_by("Rose").pop().expect("she was asked");
    assert!(
        !rose.has("the code of the vault") && !rose.has("@ada"),
        "{}",
        rose.raw
    );

    walls.says(&place, "/agent ada").await;
    walls.says(&place, "and now").await;
    let ada = walls.read_by("Ada").pop().expect("she was asked");
    assert!(
        ada.has(&format!("The vault code is {SECRET}.")),
        "her part is there again: {}",
        ada.raw
    );
    assert!(
        !ada.has("what is the code"),
        "and nothing of Rose's: {}",
        ada.raw
    );
    walls.end().await;
}

/// Ada's task waits for what was said meanwhile, and by then Rose answers. Neither hears of the
/// other.
#[tokio::test]
async fn a_task_that_waits_is_none_of_anothers_business() {
    let walls = Walls::with_top(SEPARATE, TEAM).await;
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
    place
        .says(ALICE, &format!("count the vaults of {SECRET}"))
        .await;
    walls.house.model.wait_for_open(1).await;
    place.says(ALICE, "/agent rose").await;
    place.says(ALICE, "which colour is it").await;
    walls.house.all_in_their_lanes().await;
    walls.house.model.release();
    walls.house.settled(&walls.gateway).await;

    let rose = walls.read_by("Rose").pop().expect("she was asked");
    walls.rose_knows_nothing("while Ada's task waits");
    insta::assert_snapshot!(rose.last_text(), @"[Alice] which colour is it");
    let ada = walls.read_by("Ada").pop().expect("she went on");
    insta::assert_snapshot!(ada.last_text(), @"[You were put aside for a while. Nothing was said meanwhile that your task depends on. Go on with it.]");
    assert!(!ada.has("which colour") && !ada.has("Blue."), "{}", ada.raw);
    walls.end().await;
}

/// A summary belongs to the agent whose part it sums up.
#[tokio::test]
async fn a_summary_is_of_one_part_and_for_its_agent() {
    let walls = Walls::with_top(SEPARATE, &TEAM.replace("6000", "3000")).await;
    let place = walls.house.telegram.forum(-1001).topic(301, "Both");
    walls
        .house
        .model
        .answer_with(|request| match request.messages.last() {
            Some((_, text)) if text.contains("[Sum all of this up") && text.contains(SECRET) => {
                Script::text(format!("They talked about {SECRET}."))
            }
            Some((_, text)) if text.contains("[Sum all of this up") => {
                Script::text("They talked about poems.")
            }
            _ => Script::text("much to say about that. ".repeat(30)),
        });
    for (agent, subject) in [
        ("ada", SECRET),
        ("rose", "poems"),
        ("ada", SECRET),
        ("rose", "poems"),
    ] {
        walls.says(&place, &format!("/agent {agent}")).await;
        for n in 0..6 {
            walls
                .says(
                    &place,
                    &format!(
                        "question {n} about {subject}, {}",
                        "with many words ".repeat(10)
                    ),
                )
                .await;
        }
    }
    let summing = |name: &str| {
        let all = walls.read_by(name).into_iter();
        all.filter(|request| request.has("[Sum all of this up"))
            .collect::<Vec<Request>>()
    };
    assert!(
        !summing("Ada").is_empty() && !summing("Rose").is_empty(),
        "both were summed up"
    );
    walls.rose_knows_nothing("a summary");
    let rose = walls.read_by("Rose").pop().expect("she was asked");
    assert!(rose.has("They talked about poems."), "{}", rose.raw);
    walls.says(&place, "/agent ada").await;
    walls.says(&place, "what is this about").await;
    let ada = walls.read_by("Ada").pop().expect("she was asked");
    assert!(
        ada.has(&format!("They talked about {SECRET}.")) && !ada.has("poems"),
        "{}",
        ada.raw
    );
    walls.end().await;
}
