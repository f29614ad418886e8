//! What people send besides plain text, as the agent gets to read it.

use serde_json::{Value, json};

use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB, Dm};

const OPEN: &str = "[access]\ndms = \"open\"\ngroups = \"open\"\nrequire_mention = false\n";

async fn open_house() -> (House, Dm) {
    let house = House::new(OPEN).await;
    let alice = house.telegram.dm(ALICE);
    (house, alice)
}

#[tokio::test]
async fn what_is_not_text_is_put_into_words() {
    let (house, alice) = open_house().await;
    let gateway = house.open().await;
    let voice = json!({ "file_id": "gone", "file_unique_id": "gone", "duration": 72 });
    alice
        .says("")
        .without("text")
        .with("voice", voice)
        .with("caption", json!("listen"))
        .await;
    alice
        .says("")
        .without("text")
        .with("dice", json!({ "emoji": "🎲", "value": 4 }))
        .await;
    house.settled(&gateway).await;
    alice
        .says("")
        .without("text")
        .with("live_photo", json!({ "file_id": "n" }))
        .with("caption", json!("it moves"))
        .await;
    house.settled(&gateway).await;
    assert_eq!(
        alice.texts(),
        [
            "re: [voice message, 1:12, not saved: it could not be fetched] listen",
            "re: [dice 🎲 4]",
            "re: it moves"
        ]
    );
    assert_eq!(
        house.ask("SELECT text || around FROM messages ORDER BY id LIMIT 1"),
        r#"listen[{"with":"voice message, 1:12, not saved: it could not be fetched"}]"#
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_command_in_a_reply_is_still_a_command() {
    let (house, alice) = open_house().await;
    let gateway = house.open().await;
    alice.says("hello").await;
    let answer = alice.wait_for_sent(1).await;
    alice.says("why?").replying_to(answer.message_id).await;
    assert_eq!(
        alice.wait_for_sent(2).await.text,
        "re: [replying to you: “re: hello”] why?"
    );
    alice.says("/whoami").replying_to(answer.message_id).await;
    house.settled(&gateway).await;
    let reply = alice.wait_for_sent(3).await.text;
    assert!(
        reply.starts_with("You are Alice (guest), telegram:111"),
        "{reply}"
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn replies_and_forwards_carry_what_they_refer_to() {
    let (house, _) = open_house().await;
    let gateway = house.open().await;
    let group = house.telegram.supergroup(-100_777);
    let asked = group.says(BOB, "lunch at noon, or at one?").await;
    group
        .says(ALICE, "fine")
        .replying_to(asked.message_id)
        .with("quote", json!({ "text": "at one", "position": 18 }))
        .await;
    let origin = json!({ "type": "hidden_user", "sender_user_name": "Zoe", "date": 1 });
    group
        .says(ALICE, "the plan")
        .with("forward_origin", origin)
        .await;
    house.settled(&gateway).await;
    let texts = group.texts();
    assert!(
        texts.contains(&"re: [replying to Bob: “at one”] fine".to_owned()),
        "{texts:?}"
    );
    assert!(
        texts.contains(&"re: [forwarded from Zoe] the plan".to_owned()),
        "{texts:?}"
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn an_edit_replaces_a_message_that_still_waits() {
    let (house, alice) = open_house().await;
    let gateway = house.open().await;
    house
        .model
        .enqueue_when("first", Script::text("done").held());
    alice.says("first").await;
    let second = alice.says("secnd").await;
    house.model.wait_for_requests(1).await;
    house.telegram.all_confirmed().await;
    let edit = alice.edits(second.message_id, "second").await;
    house
        .wait_until_stored(
            "SELECT count(*) FROM inbox WHERE outcome = 'replaced a waiting message'",
            "1",
        )
        .await;
    let payload =
        house.ask("SELECT payload FROM inbox WHERE state = 'waiting' ORDER BY id DESC LIMIT 1");
    assert!(
        payload.contains(r#""text":"second""#),
        "also for the next start: {payload}"
    );
    house.model.release();
    house.settled(&gateway).await;
    house.telegram.push_again(edit.update_id);
    house.settled(&gateway).await;
    assert_eq!(alice.texts(), ["done", "re: second"]);
    assert_eq!(house.ask(SAID), "first|done|second|re: second");
    gateway.shutdown().await;
}

#[tokio::test]
async fn an_edit_after_the_turn_began_is_a_note_behind_it() {
    let (house, alice) = open_house().await;
    let gateway = house.open().await;
    house
        .model
        .enqueue_when("frist", Script::text("done").held());
    let first = alice.says("frist").await;
    house.model.wait_for_requests(1).await;
    alice.edits(first.message_id, "first").await;
    house
        .wait_until_stored("SELECT count(*) FROM inbox", "2")
        .await;
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(alice.texts(), ["done"], "an edit has no turn");
    assert_eq!(house.ask(SAID), "frist|done|first");
    alice.says("and now?").await;
    house.settled(&gateway).await;
    assert_eq!(
        house.model.last_request().last_text(),
        "[edited] first\n\nand now?"
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn an_edited_command_and_a_moving_location_do_nothing() {
    let (house, alice) = open_house().await;
    let gateway = house.open().await;
    let command = alice.says("/agents").await;
    alice.wait_for_sent(1).await;
    alice.edits(command.message_id, "/new").await;
    let here = alice
        .says("")
        .without("text")
        .with("location", json!({ "latitude": 48.1, "longitude": 11.5 }))
        .await;
    alice.wait_for_sent(2).await;
    alice.edits(here.message_id, "x").await;
    house.settled(&gateway).await;
    assert_eq!(alice.texts().len(), 2);
    assert_eq!(house.ask(SAID), "|re: [location 48.1, 11.5]");
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_stranger_who_edits_is_told_nothing_more() {
    let house = House::new("[agents.main]\n").await;
    let gateway = house.open().await;
    let bob = house.telegram.dm(BOB);
    let asked = bob.says("let me in").await;
    bob.wait_for_sent(1).await;
    bob.edits(asked.message_id, "please let me in").await;
    house.settled(&gateway).await;
    assert_eq!(bob.texts().len(), 1);
    assert_eq!(house.ask("SELECT count(*) FROM messages"), "0");
    gateway.shutdown().await;
}

/// Larger than what is fetched, so that the words do not depend on the day.
fn photo(file_id: &str) -> Value {
    json!([{ "file_id": file_id, "file_unique_id": file_id, "width": 4, "height": 3, "file_size": 21_000_000 }])
}

#[tokio::test]
async fn an_album_is_one_message() {
    let (house, alice) = open_house().await;
    let gateway = house.open().await;
    let part = |id| {
        alice
            .says("")
            .without("text")
            .with("photo", photo(id))
            .with("media_group_id", json!("77"))
    };
    part("a").await;
    part("b").with("caption", json!("our garden")).await;
    house.telegram.all_confirmed().await;
    part("c").await;
    alice.says("nice?").await;
    house.settled(&gateway).await;
    assert_eq!(
        alice.texts(),
        [
            "re: [photo, 4×3, not saved: larger than 20 MB] [photo, 4×3, not saved: larger than 20 MB] [photo, 4×3, not saved: larger than 20 MB] our garden",
            "re: nice?"
        ]
    );
    assert_eq!(house.ask("SELECT count(*) FROM turns"), "2");
    assert_eq!(
        house.ask("SELECT count(*) FROM inbox WHERE state = 'done' AND outcome = 'answered'"),
        "4"
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_mention_in_the_caption_speaks_for_the_album() {
    let house = House::new("[access]\ngroups = \"open\"\n").await;
    let group = house.telegram.supergroup(-100_777);
    let mention = json!([{ "type": "mention", "offset": 0, "length": 11 }]);
    let part = |id| {
        group
            .says(ALICE, "")
            .without("text")
            .with("photo", photo(id))
            .with("media_group_id", json!("77"))
    };
    part("a").await;
    part("b")
        .with("caption", json!("@parlor_bot look"))
        .with("caption_entities", mention)
        .await;
    let gateway = house.open().await;
    house.telegram.all_confirmed().await;
    part("c").await;
    house.settled(&gateway).await;
    assert_eq!(
        group.texts(),
        [
            "re: [photo, 4×3, not saved: larger than 20 MB] [photo, 4×3, not saved: larger than 20 MB] [photo, 4×3, not saved: larger than 20 MB] look"
        ]
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn an_album_that_a_crash_tore_apart_is_one_again() {
    let (house, alice) = open_house().await;
    let process = house.spawn().await;
    let part = |id| {
        alice
            .says("")
            .without("text")
            .with("photo", photo(id))
            .with("media_group_id", json!("77"))
    };
    part("a").await;
    house.telegram.all_confirmed().await;
    process.kill().await;
    part("b").await;
    let process = house.spawn().await;
    assert_eq!(
        alice.wait_for_sent(1).await.text,
        "re: [photo, 4×3, not saved: larger than 20 MB] [photo, 4×3, not saved: larger than 20 MB]"
    );
    assert_eq!(process.stop().await, 0);
}

#[tokio::test]
async fn quick_messages_of_one_person_are_gathered_when_the_operator_wants_it() {
    let (house, _) = open_house().await;
    house.configure_telegram("gather_ms = 1500");
    let group = house.telegram.forum(-100_777).topic(7, "Seven");
    group.says(ALICE, "one").await;
    group.says(ALICE, "two").await;
    group.says(BOB, "three").await;
    let gateway = house.open().await;
    group.wait_for_sent(2).await;
    house.settled(&gateway).await;
    assert_eq!(group.texts(), ["re: [Alice] one\ntwo", "re: [Bob] three"]);
    assert_eq!(
        house.ask("SELECT count(*) FROM inbox WHERE state = 'done'"),
        "3"
    );
    gateway.shutdown().await;
}

fn document(file_id: &str, name: &str) -> Value {
    json!({ "file_id": file_id, "file_unique_id": file_id, "file_name": name })
}

#[tokio::test]
async fn a_file_is_stored_for_the_agent_who_answers() {
    let (house, alice) = open_house().await;
    let gateway = house.open().await;
    house.telegram.keeps_file("f", b"%PDF");
    let sent = alice
        .says("")
        .without("text")
        .with("document", document("f", "../Q1 report.pdf"))
        .await;
    house.settled(&gateway).await;
    let inbox = house
        .home
        .path()
        .join("agents/main/workspace/inbox/telegram.dm.111/guests");
    let stored: Vec<_> = std::fs::read_dir(&inbox)
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry"))
        .collect();
    let [file] = &stored[..] else {
        panic!("one file: {stored:?}")
    };
    let name = file.file_name().into_string().expect("text");
    assert!(
        name.ends_with(&format!("-{}-_Q1_report.pdf", sent.message_id)),
        "{name}"
    );
    assert_eq!(std::fs::read(file.path()).expect("it can be read"), b"%PDF");
    assert_eq!(
        alice.texts(),
        [format!(
            "re: [document ../Q1 report.pdf, saved as inbox/telegram.dm.111/guests/{name}]"
        )]
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(
            std::fs::metadata(&inbox)
                .expect("it is there")
                .permissions()
                .mode()
                & 0o777,
            0o700
        );
    }
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_file_larger_than_it_said_is_not_kept() {
    let (house, alice) = open_house().await;
    house.configure_telegram("max_file_mb = 1");
    let gateway = house.open().await;
    house.telegram.keeps_file("f", &vec![0; 1_000_001]);
    house.telegram.keeps_file("g", &vec![0; 1_000_000]);
    alice
        .says("")
        .without("text")
        .with("document", document("f", "a.bin"))
        .await;
    alice.wait_for_sent(1).await;
    alice
        .says("")
        .without("text")
        .with("document", document("g", "b.bin"))
        .await;
    house.settled(&gateway).await;
    assert_eq!(
        alice.texts()[0],
        "re: [document a.bin, not saved: larger than 1 MB]"
    );
    assert!(
        alice.texts()[1].contains("saved as inbox/"),
        "{:?}",
        alice.texts()
    );
    let stored = std::fs::read_dir(
        house
            .home
            .path()
            .join("agents/main/workspace/inbox/telegram.dm.111/guests"),
    )
    .expect("it is there")
    .count();
    assert_eq!(stored, 1, "nothing half is left");
    gateway.shutdown().await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_does_not_lead_out_of_the_workspace() {
    let (house, alice) = open_house().await;
    let gateway = house.open().await;
    let elsewhere = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(house.home.path().join("agents/main/workspace")).expect("makes it");
    std::os::unix::fs::symlink(
        elsewhere.path(),
        house.home.path().join("agents/main/workspace/inbox"),
    )
    .expect("links");
    house.telegram.keeps_file("f", b"x");
    alice
        .says("")
        .without("text")
        .with("document", document("f", "a.txt"))
        .await;
    house.settled(&gateway).await;
    assert_eq!(
        alice.texts(),
        ["re: [document a.txt, not saved: it could not be fetched]"]
    );
    assert_eq!(
        std::fs::read_dir(elsewhere.path())
            .expect("it is there")
            .count(),
        0
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_reaction_to_an_answer_is_noted_in_its_topic() {
    let (house, alice) = open_house().await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-100_777).topic(7, "Seven");
    let asked = topic.says(BOB, "done?").await;
    let answer = topic.wait_for_sent(1).await;
    topic.says(BOB, "/agents").await;
    let command = topic.wait_for_sent(2).await;
    house.settled(&gateway).await;
    // The same id in another chat is another message.
    alice.place().reacts(ALICE, answer.message_id, "💔").await;
    topic.reacts(ALICE, answer.message_id, "👍").await;
    topic.reacts(ALICE, asked.message_id, "👎").await;
    topic.reacts(ALICE, command.message_id, "👎").await;
    house.settled(&gateway).await;
    assert_eq!(house.telegram.sent().len(), 2, "a reaction has no turn");
    assert_eq!(house.ask(SAID), "done?|re: [Bob] done?|👍");
    topic.says(BOB, "and now?").await;
    house.settled(&gateway).await;
    let read = house.model.last_request().last_text().to_owned();
    assert_eq!(
        read,
        "[Alice] [reacted 👍 to “re: [Bob] done?”]\n\n[Bob] and now?"
    );
    gateway.shutdown().await;
}

/// The whole transcript, in order.
const SAID: &str = "SELECT group_concat(text, '|') FROM (SELECT text FROM messages ORDER BY id)";
