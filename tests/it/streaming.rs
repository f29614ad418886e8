//! Answers that are shown while they are written: drafts in private chats, one message that is
//! edited in groups.

use std::time::Duration;

use serde_json::json;

use crate::support::House;
use crate::support::checker::Promise;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB, Fault};

const OPEN: &str = "[access]\ndms = \"open\"\ngroups = \"open\"\nrequire_mention = false\n";

/// Edits in a group come no faster than one in three seconds; a little less, because calls take
/// different times to arrive.
const PACE: Duration = Duration::from_millis(2900);

const ANSWER: &str = "**This answer** takes its time, so that one can see it being written, piece by piece, up to `its end`.";
const SHOWN: &str = "This answer takes its time, so that one can see it being written, piece by piece, up to its end.";

/// Waits for a release after so many words of the answer.
fn pausing(after: &[usize]) -> Script {
    Script::Pauses {
        text: ANSWER.into(),
        after: after.to_vec(),
    }
}

fn paragraphs(count: usize) -> String {
    (0..count)
        .map(|n| format!("Paragraph {n}: {}", "word ".repeat(39) + "end."))
        .collect::<Vec<_>>()
        .join("\n\n")
}

fn call_count(house: &House, method: &str) -> usize {
    house.telegram.calls(method).len()
}

#[tokio::test]
async fn in_a_group_one_message_is_edited_at_a_pace() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let group = house.telegram.supergroup(-1001);
    house.model.enqueue(pausing(&[12, 16]));
    group.says(ALICE, "tell me").await;
    assert_eq!(
        group.wait_for_sent(1).await.text,
        "This answer takes its time, so that one can see it being"
    );
    house.model.release();
    let edit = house.telegram.wait_for_calls("editMessageText", 1).await;
    assert_eq!(
        edit.params["text"],
        "This answer takes its time, so that one can see it being written, piece by piece,"
    );
    house.model.release();
    house.settled(&gateway).await;
    assert!(edit.at - house.telegram.calls("sendMessage")[0].at >= PACE);
    let shown = group.wait_for_sent(1).await;
    assert_eq!(shown.text, SHOWN);
    assert_eq!(
        shown
            .entities
            .iter()
            .map(|entity| &entity["type"])
            .collect::<Vec<_>>(),
        ["bold", "code"]
    );
    assert_eq!(
        (
            call_count(&house, "sendMessage"),
            call_count(&house, "editMessageText")
        ),
        (1, 2)
    );
    assert_eq!(house.ask("SELECT count(*) FROM preview_messages"), "0");
    gateway.shutdown().await;
}

#[tokio::test]
async fn topics_of_a_group_share_the_pace() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let forum = house.telegram.forum(-1001);
    let (one, two) = (forum.topic(5, "One"), forum.topic(6, "Two"));
    house.model.answer_with(|_| pausing(&[12]));
    one.says(ALICE, "tell me").await;
    two.says(BOB, "tell me too").await;
    house.telegram.wait_for_calls("sendMessage", 2).await;
    house.model.release();
    house.settled(&gateway).await;
    let previews = house.telegram.calls("sendMessage");
    assert!(
        previews[1].at - previews[0].at >= PACE,
        "{:?}",
        previews[1].at - previews[0].at
    );
    assert_eq!(
        (one.texts(), two.texts()),
        (vec![SHOWN.to_owned()], vec![SHOWN.to_owned()])
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn what_does_not_fit_into_the_message_continues_in_one_more() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let group = house.telegram.supergroup(-1001);
    let answer = paragraphs(28);
    house.model.enqueue(Script::Pauses {
        text: answer.clone(),
        after: vec![500, 1000],
    });
    group.says(ALICE, "tell me everything").await;
    group.wait_for_sent(1).await;
    house.model.release();
    group.wait_for_sent(2).await;
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(call_count(&house, "sendMessage"), 2);
    let texts = group.texts();
    assert!(texts.iter().all(|text| text.encode_utf16().count() <= 4096));
    assert_eq!(texts.join("\n\n"), answer);
    gateway.shutdown().await;
}

#[tokio::test]
async fn in_private_a_draft_is_followed_by_one_message() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    house.model.enqueue(pausing(&[12, 16]));
    house.telegram.dm(ALICE).says("tell me").await;
    let first = house.telegram.wait_for_calls("sendMessageDraft", 1).await;
    assert_eq!(
        first.params["text"],
        "This answer takes its time, so that one can see it being"
    );
    assert_eq!(
        first.params["entities"],
        json!([{ "type": "bold", "offset": 0, "length": 11 }])
    );
    house.model.release();
    let second = house.telegram.wait_for_calls("sendMessageDraft", 2).await;
    assert_eq!(
        (&second.params["draft_id"], &second.params["chat_id"]),
        (&first.params["draft_id"], &ALICE.id.into())
    );
    assert_ne!(first.params["draft_id"], 0);
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(house.telegram.dm(ALICE).texts(), [SHOWN]);
    assert_eq!(
        (
            call_count(&house, "sendMessage"),
            call_count(&house, "editMessageText")
        ),
        (1, 0)
    );
    gateway.shutdown().await;
}

/// Telegram takes a draft away after 30 seconds.
#[tokio::test]
async fn a_draft_is_renewed_before_it_fades() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    house.model.enqueue(pausing(&[12]));
    house.telegram.dm(ALICE).says("tell me").await;
    let first = house.telegram.wait_for_calls("sendMessageDraft", 1).await;
    let second = house.telegram.wait_for_calls("sendMessageDraft", 2).await;
    assert_eq!(first.params, second.params);
    assert!(second.at - first.at < Duration::from_secs(25));
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(house.telegram.dm(ALICE).texts(), [SHOWN]);
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_refused_draft_becomes_a_message_that_is_edited() {
    let check = async |fault| {
        let house = House::new(OPEN).await;
        let gateway = house.open().await;
        house.telegram.fail("sendMessageDraft", fault).once();
        house.model.enqueue(pausing(&[12]));
        house.telegram.dm(ALICE).says("tell me").await;
        house.telegram.dm(ALICE).wait_for_sent(1).await;
        house.model.release();
        house.settled(&gateway).await;
        assert_eq!(house.telegram.dm(ALICE).texts(), [SHOWN]);
        let made = ["sendMessageDraft", "sendMessage", "editMessageText"]
            .map(|method| call_count(&house, method));
        assert_eq!(made, [1, 1, 1]);
        gateway.shutdown().await;
    };
    let refused = Fault::Refused(400, "Bad Request: TEXTDRAFT_PEER_INVALID");
    let unknown = Fault::Refused(404, "Not Found: method not found");
    tokio::join!(check(refused), check(unknown));
}

#[tokio::test]
async fn a_last_edit_that_fails_is_made_again_as_an_edit() {
    let check = async |fault| {
        let house = House::new(OPEN).await;
        let gateway = house.open().await;
        let group = house.telegram.supergroup(-1001);
        house.model.enqueue(pausing(&[12]));
        group.says(ALICE, "tell me").await;
        group.wait_for_sent(1).await;
        house.telegram.fail("editMessageText", fault).once();
        house.model.release();
        house.settled(&gateway).await;
        assert_eq!(group.texts(), [SHOWN], "{fault:?}");
        assert_eq!(
            (
                call_count(&house, "sendMessage"),
                call_count(&house, "editMessageText")
            ),
            (1, 2),
            "{fault:?}"
        );
        assert_eq!(
            house.ask("SELECT count(*) FROM outbox WHERE repeated = 1"),
            "0"
        );
        gateway.shutdown().await;
    };
    tokio::join!(
        check(Fault::Html(502)),
        check(Fault::DroppedBefore),
        check(Fault::DroppedAfter)
    );
}

/// A draft, a preview and the answer itself are worth one more try without their styles.
#[tokio::test]
async fn a_style_that_is_refused_costs_no_preview_and_no_answer() {
    let refused = Fault::Refused(400, "Bad Request: can't parse entities: unsupported entity");
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    for method in ["sendMessage", "editMessageText", "sendMessageDraft"] {
        house.telegram.fail(method, refused).once();
    }
    let group = house.telegram.supergroup(-1001);
    house.model.answer_with(|_| pausing(&[12]));
    group.says(ALICE, "tell me").await;
    let preview = group.wait_for_sent(1).await;
    assert_eq!(
        (preview.text.as_str(), preview.entities.len()),
        (
            "This answer takes its time, so that one can see it being",
            0
        )
    );
    house.telegram.dm(ALICE).says("tell me").await;
    let draft = house.telegram.wait_for_calls("sendMessageDraft", 2).await;
    assert_eq!(draft.params.get("entities"), None);
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(
        (group.texts(), house.telegram.dm(ALICE).texts()),
        (vec![SHOWN.to_owned()], vec![SHOWN.to_owned()])
    );
    let made = ["sendMessage", "editMessageText", "sendMessageDraft"]
        .map(|method| call_count(&house, method));
    assert_eq!(made, [3, 2, 2]);
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_last_edit_that_changes_nothing_is_fine() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let group = house.telegram.supergroup(-1001);
    house.model.enqueue(pausing(&[usize::MAX / 2]));
    group.says(ALICE, "tell me").await;
    assert_eq!(group.wait_for_sent(1).await.text, SHOWN);
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(group.texts(), [SHOWN]);
    assert_eq!(house.ask("SELECT state FROM outbox"), "sent");
    gateway.shutdown().await;
}

/// Somebody has deleted the half answer meanwhile.
#[tokio::test]
async fn an_answer_whose_message_is_gone_is_sent() {
    let house = House::new(OPEN).await;
    // The platform says that the message is gone, and shows it all the same.
    house.give_up(Promise::SentOnce);
    let gateway = house.open().await;
    let group = house.telegram.supergroup(-1001);
    house.model.enqueue(pausing(&[12]));
    group.says(ALICE, "tell me").await;
    group.wait_for_sent(1).await;
    house
        .telegram
        .fail(
            "editMessageText",
            Fault::Refused(400, "Bad Request: message to edit not found"),
        )
        .once();
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(group.texts().last().map(String::as_str), Some(SHOWN));
    assert_eq!(
        (
            call_count(&house, "sendMessage"),
            call_count(&house, "editMessageText")
        ),
        (2, 1)
    );
    gateway.shutdown().await;
}

/// The new group numbers its messages anew: what is number 7 there is something else.
#[tokio::test]
async fn an_answer_whose_group_moves_is_sent_in_the_new_one() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let group = house.telegram.group(-77);
    house.model.enqueue(pausing(&[12]));
    group.says(ALICE, "tell me").await;
    group.wait_for_sent(1).await;
    let new = group.migrates_to(-10077).await;
    house.all_in_their_lanes().await;
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(new.texts(), [SHOWN]);
    assert!(
        house
            .telegram
            .calls("editMessageText")
            .iter()
            .all(|edit| edit.params["chat_id"] == -77)
    );
    gateway.shutdown().await;
}

/// A file cannot be put into a message, so the second message makes room for it.
#[tokio::test]
async fn an_answer_that_ends_as_a_file_leaves_its_first_message() {
    let house = House::new(OPEN).await;
    let config = std::fs::read_to_string(house.home.path().join("config.toml")).expect("reads");
    house.write(
        "config.toml",
        &config.replace("[telegram]\n", "[telegram]\nmax_parts = 1\n"),
    );
    let gateway = house.open().await;
    let group = house.telegram.supergroup(-1001);
    house.model.enqueue(Script::Pauses {
        text: paragraphs(28),
        after: vec![1000],
    });
    group.says(ALICE, "tell me everything").await;
    group.wait_for_sent(2).await;
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(
        (
            call_count(&house, "sendDocument"),
            call_count(&house, "deleteMessage")
        ),
        (1, 1)
    );
    assert_eq!(
        group.texts().len(),
        2,
        "the first message and the file: {:?}",
        group.texts()
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_kill_in_the_middle_is_finished_in_the_same_message() {
    let house = House::new(OPEN).await;
    let process = house.spawn().await;
    let group = house.telegram.supergroup(-1001);
    house.model.enqueue(pausing(&[12]));
    group.says(ALICE, "tell me").await;
    group.wait_for_sent(1).await;
    house
        .wait_until_stored("SELECT count(*) FROM preview_messages", "1")
        .await;
    process.kill().await;
    let hold = house.telegram.hold("editMessageText");
    let process = house.spawn().await;
    house.telegram.wait_for_calls("editMessageText", 1).await;
    process.kill().await;
    hold.release();
    let process = house.spawn().await;
    house
        .wait_until_stored("SELECT group_concat(state) FROM outbox", "sent")
        .await;
    assert_eq!(process.stop().await, 0);
    assert_eq!(group.texts(), ["re: tell me"]);
    assert_eq!(call_count(&house, "sendMessage"), 1);
    assert_eq!(
        house.ask("SELECT count(*) FROM outbox WHERE repeated = 1"),
        "0"
    );
}

/// The second answer is shorter than what the first had shown by then.
#[tokio::test]
async fn a_kill_leaves_no_half_answer_on_the_screen() {
    let house = House::new(OPEN).await;
    let process = house.spawn().await;
    let group = house.telegram.supergroup(-1001);
    house.model.enqueue(Script::Pauses {
        text: paragraphs(28),
        after: vec![1000],
    });
    group.says(ALICE, "tell me everything").await;
    house
        .wait_until_stored("SELECT count(*) FROM preview_messages", "2")
        .await;
    process.kill().await;
    let process = house.spawn().await;
    house
        .wait_until_stored("SELECT group_concat(state) FROM outbox", "sent,sent")
        .await;
    assert_eq!(process.stop().await, 0);
    assert_eq!(group.texts(), ["re: tell me everything"]);
    assert_eq!(call_count(&house, "sendMessage"), 2);
}

#[tokio::test]
async fn a_wait_silences_previews_and_the_answer_comes_after_it() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let group = house.telegram.supergroup(-1001);
    house.model.enqueue(pausing(&[12, 16]));
    group.says(ALICE, "tell me").await;
    group.wait_for_sent(1).await;
    house
        .telegram
        .fail("editMessageText", Fault::RetryAfter(4))
        .once();
    house.model.release();
    let refused = house.telegram.wait_for_calls("editMessageText", 1).await;
    house
        .wait_until_stored("SELECT count(*) FROM chat_waits", "1")
        .await;
    let elsewhere = house.telegram.dm(BOB);
    elsewhere.says("quick").await;
    elsewhere.wait_for_sent(1).await;
    assert!(
        refused.at.elapsed() < Duration::from_secs(4),
        "others go on"
    );
    house.model.release();
    house.settled(&gateway).await;
    let edits = house.telegram.calls("editMessageText");
    assert_eq!(edits.len(), 2, "the answer is the next edit");
    assert!(
        edits[1].at - refused.at >= Duration::from_secs(4),
        "{:?}",
        edits[1].at - refused.at
    );
    assert_eq!(group.texts(), [SHOWN]);
    gateway.shutdown().await;
}

/// Signs draw on the same allowance, so what they are told counts as well.
#[tokio::test]
async fn a_wait_that_typing_was_told_is_kept_by_the_answer() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    house
        .telegram
        .fail("sendChatAction", Fault::RetryAfter(2))
        .once();
    house.model.enqueue(pausing(&[12]));
    house.telegram.dm(ALICE).says("tell me").await;
    let refused = house.telegram.wait_for_calls("sendChatAction", 1).await;
    house
        .wait_until_stored("SELECT count(*) FROM chat_waits", "1")
        .await;
    house.model.release();
    house.settled(&gateway).await;
    assert!(house.telegram.calls("sendMessage")[0].at - refused.at >= Duration::from_secs(2));
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_wait_is_kept_over_a_restart_by_the_whole_chat() {
    let house = House::new(OPEN).await;
    let forum = house.telegram.forum(-1001);
    let (one, two) = (forum.topic(5, "One"), forum.topic(6, "Two"));
    let process = house.spawn().await;
    house
        .telegram
        .fail("sendMessage", Fault::RetryAfter(4))
        .once();
    one.says(ALICE, "first").await;
    house
        .wait_until_stored(
            "SELECT count(*) FROM outbox WHERE error = 'asked to wait'",
            "1",
        )
        .await;
    process.kill().await;
    let process = house.spawn().await;
    two.says(BOB, "second").await;
    two.wait_for_sent(1).await;
    one.wait_for_sent(1).await;
    house
        .wait_until_stored("SELECT group_concat(state) FROM outbox", "sent,sent")
        .await;
    assert_eq!(process.stop().await, 0);
    let calls = house.telegram.calls("sendMessage");
    // Kept to the millisecond by the wall clock, which may be corrected meanwhile.
    assert!(
        calls[1].at - calls[0].at >= Duration::from_millis(3900),
        "{:?}",
        calls[1].at - calls[0].at
    );
    assert_eq!(calls.len(), 3);
}

/// A second sign that somebody types comes after more than four seconds: time enough for a preview.
#[tokio::test]
async fn without_streaming_there_is_just_the_answer() {
    let house = House::new(OPEN).await;
    let config = std::fs::read_to_string(house.home.path().join("config.toml")).expect("reads");
    house.write(
        "config.toml",
        &config.replace("[telegram]\n", "[telegram]\nstreaming = false\n"),
    );
    let gateway = house.open().await;
    let group = house.telegram.supergroup(-1001);
    house.model.enqueue(pausing(&[12]));
    group.says(ALICE, "tell me").await;
    house.telegram.wait_for_calls("sendChatAction", 2).await;
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(group.texts(), [SHOWN]);
    let made = ["sendMessage", "editMessageText", "sendMessageDraft"]
        .map(|method| call_count(&house, method));
    assert_eq!(made, [1, 0, 0]);
    gateway.shutdown().await;
}

/// What was said is not in the transcript, so it does not stay on the screen either.
#[tokio::test]
async fn a_turn_that_fails_after_a_preview_says_so_in_the_same_message() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let group = house.telegram.supergroup(-1001);
    house.model.enqueue(Script::TextAndToolCalls(
        ANSWER.into(),
        vec![("now".into(), json!({}))],
    ));
    house.model.enqueue(Script::status(401, "{}").held());
    group.says(ALICE, "tell me").await;
    assert_eq!(group.wait_for_sent(1).await.text, SHOWN);
    house.model.release();
    house.settled(&gateway).await;
    let apology = "I can't answer: fake wants an API key, and none is set (401). [ref 1]";
    assert_eq!(group.texts(), [apology]);
    gateway.shutdown().await;
}

/// With one message a minute there is never room for a preview, and the answer does not wait for
/// one.
#[tokio::test]
async fn previews_leave_a_small_budget_to_the_answer() {
    let house = House::new(OPEN).await;
    let config = std::fs::read_to_string(house.home.path().join("config.toml")).expect("reads");
    house.write(
        "config.toml",
        &config.replace("group_per_minute = 0", "group_per_minute = 1"),
    );
    let gateway = house.open().await;
    let group = house.telegram.supergroup(-1001);
    house.model.enqueue(pausing(&[12]));
    group.says(ALICE, "tell me").await;
    house.telegram.wait_for_calls("sendChatAction", 2).await;
    house.model.release();
    assert_eq!(group.wait_for_sent(1).await.text, SHOWN);
    house.settled(&gateway).await;
    assert_eq!(call_count(&house, "editMessageText"), 0);
    gateway.shutdown().await;
}
