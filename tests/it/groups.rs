//! How the bot behaves where several people talk.

use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB, CAROL, Fault, Journal, OTHER_BOT, Outcome};

const ROSE: &str = r#"
[access]
owners = ["telegram:111"]
[agents.rose]
emoji = "🌹"
[[bindings]]
match = "telegram:topic:-1001:101"
agent = "rose"
"#;

/// With more keys in `[telegram]`.
async fn house_with(telegram: &str, rest: &str) -> House {
    let house = House::new(rest).await;
    let path = house.home.path().join("config.toml");
    let config = std::fs::read_to_string(path).expect("the config was written");
    house.write(
        "config.toml",
        &config.replace("[telegram]\n", &format!("[telegram]\n{telegram}\n")),
    );
    house
}

/// What the model was told in its last request, without the system prompt. Several people in a row
/// are one message there.
fn last_conversation(house: &House) -> Vec<String> {
    let messages = house.model.last_request().messages;
    let lines = |(role, text): &(String, String)| {
        text.split("\n\n")
            .map(|said| format!("{role}: {said}"))
            .collect::<Vec<_>>()
    };
    messages.iter().flat_map(lines).collect()
}

#[tokio::test]
async fn a_nickname_is_as_good_as_a_mention() {
    let house = house_with(r#"nicknames = ["parlor", "hey rose"]"#, ROSE).await;
    let gateway = house.open().await;
    let rose = house.telegram.forum(-1001).topic(101, "Rose");
    rose.says(BOB, "Parlor, are you there?").await;
    assert_eq!(
        rose.wait_for_sent(1).await.text,
        "re: [Bob] Parlor, are you there?"
    );
    rose.says(CAROL, "well, HEY ROSE").await;
    assert_eq!(
        rose.wait_for_sent(2).await.text,
        "re: [Carol] well, HEY ROSE"
    );
    rose.says(BOB, "the parlors of old, a rose in each").await;
    rose.says(BOB, "@parlor is somebody else").await;
    house
        .telegram
        .forum(-1001)
        .topic(55, "Elsewhere")
        .says(BOB, "parlor?")
        .await;
    house.settled(&gateway).await;
    assert_eq!(house.telegram.sent().len(), 2, "a nickname opens no place");
    gateway.shutdown().await;
}

#[tokio::test]
async fn what_do_you_think_makes_sense() {
    let house = House::new(ROSE).await;
    let gateway = house.open().await;
    let rose = house.telegram.forum(-1001).topic(101, "Rose");
    rose.says(BOB, "we should paint it green").await;
    rose.says(CAROL, "blue").await;
    rose.says(BOB, "/vote green").await;
    rose.says(BOB, "/vote@other_bot green").await;
    rose.says(OTHER_BOT, "one vote for green").await;
    rose.says(ALICE, "@parlor_bot what do you think?").await;
    rose.wait_for_sent(1).await;
    assert_eq!(
        last_conversation(&house),
        [
            "user: [Bob] we should paint it green",
            "user: [Carol] blue",
            "user: [Alice] what do you think?"
        ]
    );
    house.settled(&gateway).await;
    assert_eq!(house.model.journal().len(), 1, "nothing else is answered");
    assert_eq!(
        house.ask("SELECT group_concat(state || ' ' || outcome, ', ') FROM inbox"),
        "refused observed, refused observed, refused not addressed to the bot, done answered"
    );
    gateway.shutdown().await;
}

/// What is said while an answer is under way stands after it, where the next question finds it.
#[tokio::test]
async fn talk_during_a_turn_stands_after_its_answer() {
    let house = House::new(ROSE).await;
    let gateway = house.open().await;
    let rose = house.telegram.forum(-1001).topic(101, "Rose");
    house.model.hold();
    rose.says(ALICE, "@parlor_bot green or blue?").await;
    house.model.wait_for_open(1).await;
    rose.says(BOB, "I like red").await;
    rose.says(ALICE, "@parlor_bot and now?").await;
    house.all_in_their_lanes().await;
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(
        last_conversation(&house),
        [
            "user: [Alice] green or blue?",
            "assistant: re: [Alice] green or blue?",
            "user: [Bob] I like red",
            "user: [Alice] and now?"
        ]
    );
    gateway.shutdown().await;
}

/// A place takes 100 waiting messages. However much is talked during a turn, the next question is
/// among them.
#[tokio::test]
async fn talk_takes_no_questions_place() {
    let house = House::new(ROSE).await;
    let gateway = house.open().await;
    let rose = house.telegram.forum(-1001).topic(101, "Rose");
    house.model.hold();
    rose.says(ALICE, "@parlor_bot one").await;
    house.model.wait_for_open(1).await;
    for number in 0..120 {
        rose.says(BOB, &format!("talk {number}")).await;
    }
    rose.says(ALICE, "/status").await;
    assert!(
        rose.wait_for_sent(1)
            .await
            .text
            .contains("\nNothing waits.\n"),
        "talk is not counted as waiting"
    );
    rose.says(ALICE, "@parlor_bot two").await;
    house.all_in_their_lanes().await;
    house.model.release();
    house.settled(&gateway).await;
    let answers = rose.texts();
    assert!(
        answers.len() == 3
            && answers[1] == "re: [Alice] one"
            && answers[2].ends_with("[Alice] two"),
        "{answers:?}"
    );
    assert_eq!(
        house.ask("SELECT count(*) FROM inbox WHERE outcome = 'observed'"),
        "50"
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn only_the_newest_talk_is_kept_and_answers_stay() {
    let house = House::new(ROSE).await;
    let gateway = house.open().await;
    let rose = house.telegram.forum(-1001).topic(101, "Rose");
    rose.says(BOB, "@parlor_bot hello").await;
    rose.wait_for_sent(1).await;
    for number in 1..=35 {
        rose.says(BOB, &format!("talk {number}")).await;
        // In turn, because more than 50 at once would not be kept.
        house.settled(&gateway).await;
    }
    rose.says(ALICE, "@parlor_bot and?").await;
    rose.wait_for_sent(2).await;
    let told = last_conversation(&house);
    assert_eq!(told.len(), 2 + 30 + 1);
    assert_eq!(
        told[..3],
        [
            "user: [Bob] hello",
            "assistant: re: [Bob] hello",
            "user: [Bob] talk 6"
        ]
    );
    house.settled(&gateway).await;
    assert_eq!(
        house.ask("SELECT count(*) FROM messages WHERE observed = 1"),
        "30"
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn observing_can_be_turned_off_and_closed_places_are_never_observed() {
    let house = House::new(&ROSE.replace("[access]", "[access]\nobserve = false")).await;
    let gateway = house.open().await;
    let rose = house.telegram.forum(-1001).topic(101, "Rose");
    rose.says(BOB, "among us").await;
    house.settled(&gateway).await;
    assert_eq!(house.ask("SELECT count(*) FROM messages"), "0");
    assert_eq!(
        house.ask("SELECT outcome FROM inbox"),
        "not addressed to the bot"
    );
    gateway.shutdown().await;

    let house = House::new(ROSE).await;
    let gateway = house.open().await;
    house
        .telegram
        .forum(-1001)
        .topic(55, "Elsewhere")
        .says(BOB, "among us")
        .await;
    house
        .telegram
        .supergroup(-1009)
        .says(ALICE, "an owner's talk")
        .await;
    house.telegram.dm(BOB).says("a stranger's").await;
    house.settled(&gateway).await;
    assert_eq!(house.ask("SELECT count(*) FROM messages"), "0");
    gateway.shutdown().await;
}

/// In a plain group each member has a conversation of their own, and what others say stays out of
/// it.
#[tokio::test]
async fn in_a_plain_group_only_ones_own_talk_is_context() {
    let house = House::new("[access]\ngroups = \"open\"\n").await;
    let gateway = house.open().await;
    let group = house.telegram.group(-5);
    group.says(BOB, "mine").await;
    group.says(CAROL, "hers").await;
    group.says(BOB, "@parlor_bot well?").await;
    group.wait_for_sent(1).await;
    assert_eq!(last_conversation(&house), ["user: mine", "user: well?"]);
    house.close(gateway).await;
}

/// Talk that was accepted and not yet kept when the process was killed is kept by the next one.
#[tokio::test]
async fn talk_survives_a_kill() {
    let house = House::new(ROSE).await;
    let gateway = house.open().await;
    let rose = house.telegram.forum(-1001).topic(101, "Rose");
    gateway.shutdown().await;
    let process = house.spawn().await;
    house.model.hold();
    rose.says(ALICE, "@parlor_bot green or blue?").await;
    house.model.wait_for_open(1).await;
    rose.says(BOB, "I like red").await;
    house
        .wait_until_stored("SELECT count(*) FROM inbox WHERE state = 'waiting'", "2")
        .await;
    process.kill().await;
    house.model.release();
    let gateway = house.open().await;
    rose.wait_for_sent(1).await;
    house.settled(&gateway).await;
    assert_eq!(
        house.ask("SELECT group_concat(text, ' | ') FROM messages WHERE observed = 1"),
        "I like red"
    );
    assert_eq!(rose.texts(), ["re: [Alice] green or blue?"]);
    gateway.shutdown().await;
}

/// Whatever another bot does with our answers, it is not answered; so two bots cannot keep each
/// other busy.
#[tokio::test]
async fn two_bots_cannot_loop() {
    let open_to_all = "nicknames = [\"parlor\"]";
    let house = house_with(
        open_to_all,
        "[access]\ngroups = \"open\"\nrequire_mention = false\n",
    )
    .await;
    let gateway = house.open().await;
    let group = house.telegram.supergroup(-1002);
    group.says(BOB, "hello").await;
    let answer = group.wait_for_sent(1).await;
    group
        .says(OTHER_BOT, &answer.text)
        .replying_to(answer.message_id)
        .await;
    group.says(OTHER_BOT, "@parlor_bot parlor hello").await;
    group.says(OTHER_BOT, "/help@parlor_bot").await;
    house.telegram.dm(OTHER_BOT).says("hello").await;
    house.settled(&gateway).await;
    assert_eq!(house.telegram.sent().len(), 1);
    assert_eq!(house.ask("SELECT count(*) FROM inbox"), "1");
    gateway.shutdown().await;
}

/// What Telegram was asked to reply to, message by message.
fn quotes(house: &House) -> Vec<Option<i64>> {
    house
        .telegram
        .sent()
        .into_iter()
        .map(|sent| sent.reply_to)
        .collect()
}

#[tokio::test]
async fn an_answer_quotes_its_question_when_others_wrote_in_between() {
    let house = House::new(ROSE).await;
    let gateway = house.open().await;
    let rose = house.telegram.forum(-1001).topic(101, "Rose");
    rose.says(ALICE, "@parlor_bot a quiet moment").await;
    rose.wait_for_sent(1).await;
    house.settled(&gateway).await;
    house.model.hold();
    let asked = rose.says(ALICE, "@parlor_bot a busy moment").await;
    house.model.wait_for_open(1).await;
    rose.says(BOB, "by the way").await;
    house
        .telegram
        .forum(-1001)
        .topic(55, "Elsewhere")
        .says(BOB, "somewhere else")
        .await;
    house.telegram.all_confirmed().await;
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(quotes(&house), [None, Some(asked.message_id)]);
    let call = house
        .telegram
        .calls("sendMessage")
        .pop()
        .expect("it was sent");
    assert_eq!(
        call.params["reply_parameters"]["allow_sending_without_reply"],
        true
    );
    gateway.shutdown().await;
}

/// Members of a plain group have a conversation each, and yet they all write in one place.
#[tokio::test]
async fn in_a_plain_group_every_member_is_another() {
    let house = House::new("[access]\ngroups = \"open\"\n").await;
    let gateway = house.open().await;
    let (group, other) = (house.telegram.group(-5), house.telegram.group(-55));
    for (talks, quoted) in [(&other, false), (&group, true)] {
        house.model.hold();
        let asked = group.says(ALICE, "@parlor_bot hello").await;
        house.model.wait_for_open(1).await;
        talks.says(BOB, "by the way").await;
        house.telegram.all_confirmed().await;
        house.model.release();
        house.settled(&gateway).await;
        assert_eq!(
            quotes(&house).pop(),
            Some(quoted.then_some(asked.message_id))
        );
    }
    gateway.shutdown().await;
}

#[tokio::test]
async fn quoting_can_be_always_or_never() {
    for (quote, is_quoted) in [("auto", false), ("always", true), ("never", false)] {
        let house = house_with(
            &format!("quote = \"{quote}\""),
            "[access]\ndms = \"open\"\ngroups = \"open\"\n",
        )
        .await;
        let gateway = house.open().await;
        let first = house.telegram.dm(ALICE).says("one").await;
        house.telegram.dm(ALICE).says("two").await;
        house.settled(&gateway).await;
        assert_eq!(
            quotes(&house)[0],
            is_quoted.then_some(first.message_id),
            "{quote}"
        );
        gateway.shutdown().await;
    }
}

/// A quote is in the outbox row: it is still there after a restart. One of a long answer is quoted
/// by its first part only.
#[tokio::test]
async fn a_quote_survives_a_restart_and_stands_once() {
    let house = house_with("quote = \"always\"", "[access]\ndms = \"open\"\n").await;
    house.model.enqueue(Script::text("word ".repeat(1500)));
    let held = house.telegram.hold("sendMessage");
    let process = house.spawn().await;
    let asked = house.telegram.dm(ALICE).says("tell me much").await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox", "2")
        .await;
    process.kill().await;
    held.release();
    let gateway = house.open().await;
    house.settled(&gateway).await;
    let sent = house.telegram.sent();
    let last_two: Vec<_> = sent
        .iter()
        .rev()
        .take(2)
        .rev()
        .map(|sent| sent.reply_to)
        .collect();
    assert_eq!(last_two, [Some(asked.message_id), None]);
    gateway.shutdown().await;
}

/// The supergroup that a group becomes numbers its messages anew: the same number is another
/// message there.
#[tokio::test]
async fn an_answer_that_moves_to_another_chat_quotes_nothing() {
    let house = house_with("quote = \"always\"", "[access]\ngroups = \"open\"\n").await;
    let (old, new) = (house.telegram.group(-5), house.telegram.supergroup(-1005));
    let process = house.spawn().await;
    let held = house.telegram.hold("sendMessage");
    let asked = old.says(BOB, "@parlor_bot hello").await;
    house.telegram.wait_for_calls("sendMessage", 1).await;
    process.kill().await;
    let place = house.place_id("telegram:group:-1005:222");
    house.tell(&format!("UPDATE outbox SET place_id = {place}"));
    let same_number = new.says(BOB, "unrelated").await;
    assert_eq!(same_number.message_id, asked.message_id);
    held.release();
    let gateway = house.open().await;
    assert_eq!(new.wait_for_sent(1).await.reply_to, None);
    house.close(gateway).await;
}

#[tokio::test]
async fn an_answer_shows_its_agent_when_asked_to() {
    let house = house_with("show_agent = true", ROSE).await;
    let gateway = house.open().await;
    let rose = house.telegram.forum(-1001).topic(101, "Rose");
    rose.says(BOB, "@parlor_bot hello").await;
    let sent = rose.wait_for_sent(1).await;
    assert_eq!(sent.text, "🌹 Rose\n\nre: [Bob] hello");
    assert_eq!(
        sent.entities,
        [serde_json::json!({ "type": "bold", "offset": 0, "length": 7 })]
    );
    rose.says(BOB, "/help").await;
    assert!(
        !rose.wait_for_sent(2).await.text.contains("🌹"),
        "the gateway itself is no agent"
    );
    house.close(gateway).await;
}

#[tokio::test]
async fn links_have_no_preview_unless_asked_for() {
    for (keys, options) in [
        ("", serde_json::json!({ "is_disabled": true })),
        ("link_previews = true", serde_json::Value::Null),
    ] {
        let house = house_with(keys, "[access]\ndms = \"open\"\n").await;
        let gateway = house.open().await;
        house.telegram.dm(ALICE).says("https://example.org").await;
        let call = house.telegram.wait_for_calls("sendMessage", 1).await;
        assert_eq!(call.params["link_preview_options"], options);
        house.close(gateway).await;
    }
}

#[tokio::test]
async fn a_very_long_answer_becomes_a_file() {
    let house = house_with("max_parts = 2\nquote = \"always\"", ROSE).await;
    let gateway = house.open().await;
    let answer: String = (0..900)
        .map(|number| format!("- *item* {number}: ✓\n"))
        .collect();
    house.model.enqueue(Script::text(answer.clone()));
    let rose = house.telegram.forum(-1001).topic(101, "Rose");
    let asked = rose.says(BOB, "@parlor_bot list everything").await;
    house.settled(&gateway).await;
    let sent: Vec<_> = house.telegram.sent();
    assert_eq!(sent.len(), 2, "the beginning, and the file");
    assert!(sent[0].text.starts_with("• item 0: ✓\n• item 1: ✓\n"));
    assert_eq!(
        (sent[0].reply_to, sent[0].thread),
        (Some(asked.message_id), Some(101))
    );
    assert_eq!(
        sent[1].text,
        "This is long, so here is the whole answer as a file."
    );
    assert_eq!((sent[1].reply_to, sent[1].thread), (None, Some(101)));
    assert_eq!(sent[1].document["file_name"], "answer.md");
    assert_eq!(
        sent[1].document["text"].as_str().map(str::trim_end),
        Some(answer.trim_end())
    );
    gateway.shutdown().await;
}

/// The call is made from the outbox row, however the first one went.
#[tokio::test]
async fn a_file_that_did_not_arrive_is_sent_again() {
    let house = house_with("max_parts = 1", "[access]\ndms = \"open\"\n").await;
    let gateway = house.open().await;
    house.telegram.fail("sendDocument", Fault::Html(502)).once();
    house.model.enqueue(Script::text("word ".repeat(1500)));
    house.telegram.dm(ALICE).says("tell me much").await;
    house.settled(&gateway).await;
    assert_eq!(house.telegram.calls("sendDocument").len(), 2);
    assert_eq!(house.telegram.dm(ALICE).texts().len(), 2);
    gateway.shutdown().await;
}

#[tokio::test]
async fn without_a_bound_every_part_is_a_message() {
    let house = house_with("max_parts = 0", "[access]\ndms = \"open\"\n").await;
    let gateway = house.open().await;
    house.model.enqueue(Script::text("word ".repeat(6000)));
    house.telegram.dm(ALICE).says("tell me much").await;
    house.settled(&gateway).await;
    assert!(house.telegram.dm(ALICE).texts().len() > 5);
    assert!(house.telegram.calls("sendDocument").is_empty());
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_reaction_tells_how_far_the_answer_is() {
    let house = house_with("reactions = true", ROSE).await;
    let gateway = house.open().await;
    let rose = house.telegram.forum(-1001).topic(101, "Rose");
    let reaction = |message_id| house.telegram.reaction_to(-1001, message_id);
    house.model.hold();
    let asked = rose.says(BOB, "@parlor_bot hello").await;
    house
        .telegram
        .wait_until(|journal| answered(journal, 1))
        .await;
    assert_eq!(reaction(asked.message_id).as_deref(), Some("👀"));
    house.model.release();
    house
        .telegram
        .wait_until(|journal| answered(journal, 2))
        .await;
    assert_eq!(reaction(asked.message_id), None);
    house.model.enqueue(Script::status(400, "no"));
    let failed = rose.says(BOB, "@parlor_bot and now?").await;
    house
        .telegram
        .wait_until(|journal| answered(journal, 4))
        .await;
    assert_eq!(reaction(failed.message_id).as_deref(), Some("😢"));
    rose.says(BOB, "just talk").await;
    rose.says(BOB, "/help").await;
    house.close(gateway).await;
    assert_eq!(
        house.telegram.calls("setMessageReaction").len(),
        4,
        "only what is for an agent"
    );
}

fn answered(journal: &Journal, reactions: usize) -> bool {
    journal
        .calls("setMessageReaction")
        .filter(|call| call.outcome == Outcome::Status(200))
        .count()
        == reactions
}

/// A chat may forbid reactions: the answer comes all the same, and the call is not repeated.
#[tokio::test]
async fn a_refused_reaction_costs_nothing_and_is_not_repeated() {
    let house = house_with("reactions = true", "[access]\ndms = \"open\"\n").await;
    let gateway = house.open().await;
    house
        .telegram
        .fail(
            "setMessageReaction",
            Fault::Refused(400, "Bad Request: REACTION_INVALID"),
        )
        .once();
    house.telegram.dm(ALICE).says("hello").await;
    house.settled(&gateway).await;
    assert_eq!(house.telegram.dm(ALICE).texts(), ["re: hello"]);
    gateway.shutdown().await;
    assert_eq!(
        house.telegram.calls("setMessageReaction").len(),
        1,
        "there is nothing to take off again"
    );
}
