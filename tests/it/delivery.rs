//! Answers on their way out, and what Telegram does to them.

use crate::support::House;
use crate::support::checker::Promise;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB, Fault};

const OPEN: &str = "[access]\ndms = \"open\"\n";

#[tokio::test]
async fn markdown_becomes_text_with_entities() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    house
        .model
        .enqueue(Script::text("**Bold** and `code`:\n\n- one\n- two"));
    house.telegram.dm(ALICE).says("show me").await;
    let sent = house.telegram.dm(ALICE).wait_for_sent(1).await;
    assert_eq!(sent.text, "Bold and code:\n\n• one\n• two");
    let kinds: Vec<&str> = sent
        .entities
        .iter()
        .filter_map(|entity| entity["type"].as_str())
        .collect();
    assert_eq!(kinds, ["bold", "code"]);
    house.close(gateway).await;
}

#[tokio::test]
async fn a_long_answer_comes_in_parts_and_in_order() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let paragraphs: Vec<String> = (0..60)
        .map(|n| format!("Paragraph {n}: {}", "word ".repeat(40).trim_end()))
        .collect();
    house.model.enqueue(Script::text(paragraphs.join("\n\n")));
    house.telegram.dm(ALICE).says("tell me everything").await;
    house.settled(&gateway).await;
    let texts = house.telegram.dm(ALICE).texts();
    assert!(
        texts.len() > 2 && texts.iter().all(|text| text.encode_utf16().count() <= 4096),
        "{} parts",
        texts.len()
    );
    assert_eq!(texts.join("\n\n"), paragraphs.join("\n\n"));
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_place_told_to_wait_waits_and_others_go_on() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    house
        .telegram
        .fail("sendMessage", Fault::RetryAfter(1))
        .only_in(ALICE.id)
        .once();
    house.telegram.dm(ALICE).says("slow").await;
    house.telegram.dm(BOB).says("quick").await;
    house.telegram.dm(BOB).wait_for_sent(1).await;
    house.settled(&gateway).await;
    let calls = house.telegram.calls("sendMessage");
    let to_alice: Vec<_> = calls
        .iter()
        .filter(|call| call.params["chat_id"] == ALICE.id)
        .collect();
    assert_eq!(to_alice.len(), 2);
    assert!(
        to_alice[1].at - to_alice[0].at >= std::time::Duration::from_secs(1),
        "retry_after is obeyed in full"
    );
    assert_eq!(house.telegram.dm(ALICE).texts(), ["re: slow"]);
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_send_that_failed_is_made_again() {
    for fault in [Fault::Html(502), Fault::DroppedBefore] {
        let house = House::new(OPEN).await;
        let gateway = house.open().await;
        house.telegram.fail("sendMessage", fault).once();
        house.telegram.dm(ALICE).says("hello").await;
        house.settled(&gateway).await;
        assert_eq!(house.telegram.dm(ALICE).texts(), ["re: hello"]);
        gateway.shutdown().await;
    }
}

/// A lost answer is worse than a repeated one, and the row says that it was repeated.
#[tokio::test]
async fn a_send_whose_answer_was_lost_is_repeated_once() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    house
        .telegram
        .fail("sendMessage", Fault::DroppedAfter)
        .once();
    house.telegram.dm(ALICE).says("hello").await;
    house.settled(&gateway).await;
    assert_eq!(house.telegram.dm(ALICE).texts(), ["re: hello", "re: hello"]);
    assert_eq!(
        house.ask("SELECT state || ' ' || repeated FROM outbox"),
        "sent 1"
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_send_whose_answer_is_lost_twice_is_given_up_and_on_record() {
    let mut house = House::new(OPEN).await;
    // Nobody can know that the lost sends arrived.
    house.give_up(Promise::SentOnce);
    let gateway = house.open().await;
    house
        .telegram
        .fail("sendMessage", Fault::DroppedAfter)
        .times(2);
    house.telegram.dm(ALICE).says("hello").await;
    house.settled(&gateway).await;
    assert_eq!(
        house.telegram.dm(ALICE).texts().len(),
        2,
        "never a third time"
    );
    assert_eq!(
        house.ask("SELECT state || ': ' || error FROM outbox"),
        "failed: sent twice, and neither answer was seen"
    );
    house.leave_leftovers();
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_refused_send_is_given_up_with_telegrams_reason() {
    let mut house = House::new(OPEN).await;
    let gateway = house.open().await;
    house.telegram.fail("sendMessage", Fault::Blocked).once();
    house.telegram.dm(ALICE).says("hello").await;
    house.telegram.dm(ALICE).says("still there?").await;
    house.settled(&gateway).await;
    assert_eq!(
        house.telegram.dm(ALICE).texts(),
        ["re: still there?"],
        "the next answer is not held up"
    );
    assert_eq!(
        house.ask("SELECT error FROM outbox WHERE state = 'failed'"),
        "Telegram answered 403: Forbidden: bot was blocked by the user"
    );
    house.leave_leftovers();
    gateway.shutdown().await;
}

/// The words count more than how they look. What is hidden stays hidden.
#[tokio::test]
async fn an_answer_whose_style_is_refused_goes_out_plain() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let refused = Fault::Refused(400, "Bad Request: can't parse entities: unsupported entity");
    house.telegram.fail("sendMessage", refused).once();
    house
        .model
        .enqueue(Script::text("**Bold** and ||`hidden`||"));
    house.telegram.dm(ALICE).says("show me").await;
    let sent = house.telegram.dm(ALICE).wait_for_sent(1).await;
    assert_eq!(
        (sent.text.as_str(), sent.entities.len()),
        ("Bold and hidden", 1)
    );
    assert_eq!(sent.entities[0]["type"], "spoiler");
    house.settled(&gateway).await;
    assert_eq!(house.telegram.calls("sendMessage").len(), 2);
    gateway.shutdown().await;
}

/// The answer is in the outbox, the process is killed in the middle of the call: the call is made
/// again, once.
#[tokio::test]
async fn a_kill_in_the_middle_of_a_send_repeats_that_call_and_no_other() {
    let house = House::new(OPEN).await;
    let process = house.spawn().await;
    let hold = house.telegram.hold("sendMessage");
    house.telegram.dm(ALICE).says("hello").await;
    house.telegram.wait_for_calls("sendMessage", 1).await;
    process.kill().await;
    hold.release();
    let process = house.spawn().await;
    house.telegram.wait_for_calls("sendMessage", 2).await;
    house.telegram.dm(ALICE).says("and again").await;
    house
        .telegram
        .wait_until(|journal| {
            journal
                .sent()
                .iter()
                .any(|sent| sent.text == "re: and again")
        })
        .await;
    assert_eq!(process.stop().await, 0);
    assert_eq!(house.model.journal().len(), 2, "the turn was not run again");
    assert_eq!(
        house.ask("SELECT count(*) FROM outbox WHERE repeated = 1"),
        "1"
    );
}

#[tokio::test]
async fn a_plain_turn_is_one_model_call_and_at_most_two_telegram_calls() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    house.model.hold();
    house.telegram.dm(ALICE).says("hello").await;
    let typing = house.telegram.wait_for_calls("sendChatAction", 1).await;
    assert_eq!(
        (&typing.params["chat_id"], &typing.params["action"]),
        (&ALICE.id.into(), &"typing".into())
    );
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(house.model.journal().len(), 1);
    let of_the_start = ["getUpdates", "getMe", "setMyCommands"];
    let made = house
        .telegram
        .journal()
        .into_iter()
        .map(|call| call.method)
        .filter(|method| !of_the_start.contains(&method.as_str()));
    assert_eq!(made.collect::<Vec<_>>(), ["sendChatAction", "sendMessage"]);
    gateway.shutdown().await;
}

/// A dead or refusing model is told in plain words, and the next message works.
#[tokio::test]
async fn a_model_that_refuses_is_told_in_the_chat() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let dm = house.telegram.dm(ALICE);
    house.model.enqueue(Script::status(
        401,
        r#"{"error":{"message":"bad key sk-12345"}}"#,
    ));
    dm.says("first").await;
    let told = dm.wait_for_sent(1).await.text;
    assert_eq!(
        told,
        "I can't answer: fake wants an API key, and none is set (401). [ref 1]"
    );
    house
        .model
        .enqueue(Script::status(429, "{}").with_header("retry-after", "3600"));
    dm.says("second").await;
    assert_eq!(
        dm.wait_for_sent(2).await.text,
        "fake asks for a pause. Please try again in 60 minutes. [ref 2]"
    );
    dm.says("third").await;
    assert_eq!(
        dm.wait_for_sent(3).await.text,
        "re: first\n\nsecond\n\nthird",
        "what was said meanwhile is not forgotten"
    );
    house.settled(&gateway).await;
    assert_eq!(
        house.ask("SELECT count(*) FROM turns WHERE outcome <> 'answered'"),
        "2"
    );
    gateway.shutdown().await;
}

/// The agent asks for a tool, gets its result, and answers.
#[tokio::test]
async fn a_tool_call_is_run_and_its_result_goes_back() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    house
        .model
        .enqueue(Script::tool_call("now", serde_json::json!({})));
    house.telegram.dm(ALICE).says("what time is it").await;
    let answer = house.telegram.dm(ALICE).wait_for_sent(1).await.text;
    assert!(answer.starts_with("tool said: 20"), "{answer}");
    house.model.enqueue(Script::tool_call(
        "shell",
        serde_json::json!({ "command": "ls" }),
    ));
    house.telegram.dm(ALICE).says("try something else").await;
    let answer = house.telegram.dm(ALICE).wait_for_sent(2).await.text;
    assert!(
        answer.starts_with("tool said: There is no tool shell. You have: now, "),
        "{answer}"
    );
    house.close(gateway).await;
}

/// Text survives entities that teloxide does not know.
#[tokio::test]
async fn an_unknown_entity_costs_nobody_their_text() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    house
        .telegram
        .dm(ALICE)
        .says("see you tomorrow at noon")
        .marking("tomorrow", "date_time")
        .await;
    assert_eq!(
        house.telegram.dm(ALICE).wait_for_sent(1).await.text,
        "re: see you tomorrow at noon"
    );
    house.close(gateway).await;
}

/// Topics share their chat's allowance, so what one is told counts for all of them.
#[tokio::test]
async fn a_wait_asked_for_in_one_topic_is_kept_in_the_whole_chat() {
    let house = House::new("[access]\ngroups = \"open\"\nrequire_mention = false\n").await;
    let gateway = house.open().await;
    let forum = house.telegram.forum(-1001);
    house
        .telegram
        .fail("sendMessage", Fault::RetryAfter(2))
        .only_in(-1001)
        .once();
    forum.topic(5, "One").says(ALICE, "first").await;
    house.telegram.wait_for_calls("sendMessage", 1).await;
    forum.topic(6, "Two").says(BOB, "second").await;
    house.settled(&gateway).await;
    let calls = house.telegram.calls("sendMessage");
    assert_eq!(calls.len(), 3);
    assert!(
        calls[1].at - calls[0].at >= std::time::Duration::from_secs(2),
        "{:?}",
        calls[1].at - calls[0].at
    );
    gateway.shutdown().await;
}

/// Telegram answers in JSON; a page of HTML is from a proxy or a login page on the way, and says
/// nothing about the message.
#[tokio::test]
async fn an_answer_is_not_given_up_because_of_something_on_the_way() {
    for fault in [Fault::Html(403), Fault::Html(404)] {
        let house = House::new(OPEN).await;
        let gateway = house.open().await;
        house.telegram.fail("sendMessage", fault).once();
        house.telegram.dm(ALICE).says("hello").await;
        house.settled(&gateway).await;
        assert_eq!(house.telegram.dm(ALICE).texts(), ["re: hello"]);
        gateway.shutdown().await;
    }
}

/// A withdrawn token is about the bot, not about the message: it goes out once there is a valid
/// one.
#[tokio::test]
async fn an_answer_is_kept_while_the_token_is_not_accepted() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    house
        .telegram
        .fail("sendMessage", Fault::Unauthorized)
        .once();
    house.telegram.dm(ALICE).says("hello").await;
    house.settled(&gateway).await;
    assert_eq!(house.telegram.dm(ALICE).texts(), ["re: hello"]);
    gateway.shutdown().await;
}

/// As after a start with the clock years ahead, which was set right later.
#[tokio::test]
async fn a_row_written_under_a_wrong_clock_is_not_held_for_years() {
    let house = House::new(OPEN).await;
    house.open().await.shutdown().await;
    let place = house.place_id("telegram:dm:111");
    house.tell(&format!(
        "INSERT INTO outbox (place_id, kind, part, created_at, not_before)
         VALUES ({place}, 'notice', '{{\"text\":\"hello\",\"entities\":[]}}', 0, 4102444800000)"
    ));
    house.telegram.dm(ALICE);
    let gateway = house.open().await;
    assert_eq!(
        house.telegram.dm(ALICE).wait_for_sent(1).await.text,
        "hello"
    );
    house.close(gateway).await;
}

/// A row that must wait has been let through once; waiting costs no second place in the group's
/// minute.
#[tokio::test]
async fn a_row_that_waits_is_counted_once() {
    let house = House::new(OPEN).await;
    let config = std::fs::read_to_string(house.home.path().join("config.toml")).expect("reads");
    house.write(
        "config.toml",
        &config.replace("group_per_minute = 0", "group_per_minute = 1"),
    );
    house.open().await.shutdown().await;
    let place = house.place_id("telegram:group:-77:111");
    house.tell(&format!(
        "INSERT INTO outbox (place_id, kind, part, created_at, not_before, wait_ms) VALUES ({place}, 'notice',
         '{{\"text\":\"hello\",\"entities\":[]}}', 0, CAST(unixepoch('subsec') * 1000 AS INTEGER) + 1000, 1000)"
    ));
    let group = house.telegram.group(-77);
    let gateway = house.open().await;
    assert_eq!(group.wait_for_sent(1).await.text, "hello");
    house.close(gateway).await;
}

/// An answer that cannot be written for a while keeps nothing else from being sent there.
#[tokio::test]
async fn commands_are_answered_while_the_end_of_a_turn_waits_for_the_store() {
    let house = House::new(OPEN).await;
    let process = house.spawn().await;
    let alice = house.telegram.dm(ALICE);
    house.fills_up("INSERT ON turns");
    alice.says("hello").await;
    process.wait_for_log("the disk is full").await;
    alice.says("/whoami").await;
    let told = alice.wait_for_sent(1).await.text;
    assert!(told.contains("telegram:111"), "{told}");
    house.works_again();
    assert_eq!(alice.wait_for_sent(2).await.text, "re: hello");
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    process.stop().await;
}
