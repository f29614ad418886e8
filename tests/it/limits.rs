//! What a person may use up: messages in a minute, turns at once, the day's tokens, other people's
//! work, and the way out of a place.

use serde_json::json;

use crate::support::House;
use crate::support::fake_model::{Script, Tokens};
use crate::support::fake_telegram::{ALICE, BOB, CAROL};

const OPEN: &str = "[access]\nowners = [\"telegram:111\"]\ndms = \"open\"\ngroups = \"open\"\nrequire_mention = false\n";

/// The limits as they are shipped, and `more`.
fn shipped(more: &str) -> String {
    format!("{OPEN}[access.limits]\n{more}\n")
}

fn too_fast(texts: &[String]) -> usize {
    texts
        .iter()
        .filter(|text| text.starts_with("You've sent too many messages in a minute."))
        .count()
}

#[tokio::test]
async fn a_guest_who_sends_too_much_is_told_once_and_then_dropped() {
    let house = House::new(&shipped("")).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    for _ in 0..60 {
        topic.says(BOB, "/whoami").await;
    }
    house.settled(&gateway).await;
    let texts = topic.texts();
    assert_eq!(too_fast(&texts), 1, "{texts:?}");
    let answered = texts.len() - 1;
    // One more for every six seconds that the test takes.
    assert!((10..=14).contains(&answered), "{answered}");
    assert_eq!(
        house.ask(
            "SELECT count(*) FROM inbox WHERE state = 'refused' AND outcome = 'sent too fast'"
        ),
        (60 - answered).to_string()
    );
    for _ in 0..30 {
        topic.says(ALICE, "/whoami").await;
    }
    topic.says(CAROL, "/whoami").await;
    house.settled(&gateway).await;
    assert_eq!(topic.texts().len(), texts.len() + 31, "nobody else is kept");
    gateway.shutdown().await;
}

#[tokio::test]
async fn the_word_about_the_pace_reads_well() {
    let house = House::new(&shipped("guest = { messages_per_minute = 1 }")).await;
    let gateway = house.open().await;
    let bob = house.telegram.dm(BOB);
    for _ in 0..3 {
        bob.says("/whoami").await;
    }
    house.settled(&gateway).await;
    let told = bob.texts().pop().unwrap_or_default();
    let told = told.replace(|sign: char| sign.is_ascii_digit(), "");
    insta::assert_snapshot!(told, @"You've sent too many messages in a minute. Try again in  seconds; messages before that are dropped.");
    assert_eq!(bob.texts().len(), 2);
    gateway.shutdown().await;
}

/// Files, buttons, edits and questions are counted as commands are, and all ids of a person are one.
#[tokio::test]
async fn everything_a_person_sends_counts_with_every_id() {
    let house = House::new(&format!(
        "{}[people.bob]\nids = [\"telegram:222\", \"telegram:333\"]\n",
        shipped("guest = { messages_per_minute = 4, turns_per_minute = 0 }")
    ))
    .await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    let written = topic.says(BOB, "a question").await;
    house.settled(&gateway).await;
    topic.edits(written.message_id, "another question").await;
    topic.says(CAROL, "/whoami").await;
    topic.says(BOB, "/nonsense").await;
    house.settled(&gateway).await;
    assert_eq!(too_fast(&topic.texts()), 0, "{:?}", topic.texts());
    topic.says(CAROL, "/whoami").await;
    house.settled(&gateway).await;
    assert_eq!(too_fast(&topic.texts()), 1, "{:?}", topic.texts());
    let shown = topic.wait_for_sent(1).await.message_id;
    topic.presses(BOB, shown, "/whoami").await;
    topic.says(BOB, "another").await;
    house.settled(&gateway).await;
    assert_eq!(house.model.journal().len(), 1);
    gateway.shutdown().await;
}

/// Talk among people makes no reply, so it is dropped without a word and costs no question.
#[tokio::test]
async fn much_talk_among_people_is_not_kept_and_leaves_room_for_questions() {
    let config = shipped("").replace("require_mention = false", "require_mention = true");
    let house = House::new(&config).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    for number in 0..60 {
        topic.says(BOB, &format!("talk {number}")).await;
    }
    house.settled(&gateway).await;
    assert_eq!(topic.texts(), [""; 0]);
    let dropped: usize = house
        .ask("SELECT count(*) FROM inbox WHERE state = 'refused' AND outcome = 'sent too fast'")
        .parse()
        .expect("a number");
    assert!((20..=30).contains(&dropped), "{dropped}");
    topic.says(BOB, "/whoami").await;
    house.settled(&gateway).await;
    assert_eq!(topic.texts().len(), 1);
    gateway.shutdown().await;
}

/// Where the bot is not to speak, it does not speak about the pace either.
#[tokio::test]
async fn strangers_are_told_nothing_about_their_pace() {
    let house = House::new("[access]\nowners = [\"telegram:111\"]\n[access.limits]\n").await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    let carol = house.telegram.dm(CAROL);
    for _ in 0..30 {
        topic.says(BOB, "/whoami").await;
        carol.says("/whoami").await;
    }
    house.settled(&gateway).await;
    assert_eq!(topic.texts(), [""; 0]);
    assert_eq!(carol.texts().len(), 2, "a code, and that it is still open");
    gateway.shutdown().await;
}

/// What waits holds no slot and no place: others are answered where it waits.
#[tokio::test]
async fn a_guest_has_two_turns_at_once_and_keeps_nobody_waiting() {
    let house = House::with_top("max_running = 3\n", &shipped("")).await;
    let gateway = house.open().await;
    let forum = house.telegram.forum(-1001);
    let topics: Vec<_> = (5..10)
        .map(|id| forum.topic(id, &format!("Topic {id}")))
        .collect();
    house.model.hold();
    for topic in &topics {
        topic.says(BOB, "a question").await;
    }
    house.all_in_their_lanes().await;
    house.model.wait_for_open(2).await;
    topics[4].says(ALICE, "mine").await;
    house.model.wait_for_open(3).await;
    assert_eq!(house.model.asked_about("mine").len(), 1);
    assert_eq!(house.model.asked_about("a question").len(), 2);
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(house.model.asked_about("a question").len(), 5);
    assert!(topics.iter().all(|topic| !topic.texts().is_empty()));
    assert_eq!(house.model.most_at_once(), 3);
    gateway.shutdown().await;
}

/// A parent counts once with the subagents it waits for, or both would wait for ever.
#[tokio::test]
async fn a_guest_with_one_turn_at_once_may_still_use_a_subagent() {
    let house = House::new(&format!(
        "{}[access.tools]\nguest = \"reach\"\n",
        shipped("guest = { turns_at_once = 1 }")
    ))
    .await;
    let gateway = house.open().await;
    house.model.enqueue_when(
        "ask around",
        Script::tool_call("spawn", json!({"task": "look it up"})),
    );
    let bob = house.telegram.dm(BOB);
    bob.says("ask around").await;
    house.settled(&gateway).await;
    assert_eq!(bob.texts().len(), 1, "{:?}", bob.texts());
    assert_eq!(house.ask("SELECT count(*) FROM turns"), "2");
    gateway.shutdown().await;
}

/// A queued question of a guest can be stopped while it waits for room, and an owner's long turn
/// in the same place is not disturbed by it.
#[tokio::test]
async fn a_question_that_waits_for_room_is_shown_and_can_be_dropped() {
    let house = House::new(&shipped("guest = { turns_at_once = 1 }")).await;
    let gateway = house.open().await;
    let forum = house.telegram.forum(-1001);
    let (one, two) = (forum.topic(5, "Five"), forum.topic(6, "Six"));
    house.model.hold();
    one.says(BOB, "first").await;
    house.model.wait_for_open(1).await;
    two.says(BOB, "second").await;
    two.says(BOB, "/queue").await;
    insta::assert_snapshot!(two.wait_for_sent(1).await.text, @"
    1 message waits:
    • “second” (Bob)

    These come next. /queue clear drops them.
    ");
    two.says(BOB, "/queue clear").await;
    insta::assert_snapshot!(two.wait_for_sent(2).await.text, @"1 waiting message is dropped.");
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(house.model.journal().len(), 1);
    gateway.shutdown().await;
}

const DAY: &str = "guest = { messages_per_minute = 0, turns_per_minute = 0, turns_at_once = 0, tokens_per_day = 1000 }";

/// S4.38: turns that begin together know of each other.
#[tokio::test]
async fn sixty_topics_at_once_stay_at_the_cap_of_the_day() {
    let house = House::new(&shipped(DAY)).await;
    house.model.report_tokens(Tokens {
        input: 983,
        cached: 0,
        output: 7,
    });
    let gateway = house.open().await;
    let forum = house.telegram.forum(-1001);
    house.model.hold();
    let topics: Vec<_> = (2..62)
        .map(|id| forum.topic(id, &format!("Topic {id}")))
        .collect();
    for topic in &topics {
        topic.says(BOB, "a question").await;
    }
    house.all_in_their_lanes().await;
    house.model.wait_for_open(1).await;
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(
        house.ask("SELECT tokens FROM budgets WHERE spender = 'person:telegram:222'"),
        (2 * 990).to_string(),
        "the call that goes over the cap is the last"
    );
    assert_eq!(house.model.journal().len(), 2);
    let told = "You've used up your tokens for today. Try again after 00:00 UTC.";
    let refused = topics.iter().filter(|topic| topic.texts() == [told]);
    assert_eq!(refused.count(), 58);
    assert_eq!(
        house.ask("SELECT count(*) FROM inbox WHERE outcome = 'over budget'"),
        "58"
    );
    gateway.shutdown().await;
}

/// The same for the money of an agent, whoever asks.
#[tokio::test]
async fn many_people_at_once_stay_at_an_agents_cap() {
    let house = House::new(&format!(
        "prices = {{ any = {{ input = 1000, output = 1000 }} }}\n{OPEN}[agents.main]\nlimits = {{ cost_per_day = 2 }}\n"
    ))
    .await;
    house.model.report_tokens(Tokens {
        input: 1000,
        cached: 0,
        output: 500,
    });
    let gateway = house.open().await;
    let (forum, _owner) = (house.telegram.forum(-1001), house.telegram.dm(ALICE));
    for id in 2..22 {
        let person = [ALICE, BOB, CAROL][usize::try_from(id % 3).expect("small")];
        forum
            .topic(id, &format!("Topic {id}"))
            .says(person, "a question")
            .await;
    }
    house.settled(&gateway).await;
    assert_eq!(house.model.journal().len(), 2);
    assert_eq!(
        house.ask("SELECT cost_micros FROM budgets WHERE spender LIKE 'agent:%'"),
        "3000000"
    );
    gateway.shutdown().await;
}

/// A second id is no second day.
#[tokio::test]
async fn all_ids_of_a_person_have_one_budget() {
    let house = House::new(&format!(
        "{}[people.bob]\nids = [\"telegram:222\", \"telegram:333\"]\n",
        shipped("guest = { tokens_per_day = 100 }")
    ))
    .await;
    let gateway = house.open().await;
    let (bob, carol) = (house.telegram.dm(BOB), house.telegram.dm(CAROL));
    bob.says("one").await;
    house.settled(&gateway).await;
    carol.says("two").await;
    house.settled(&gateway).await;
    carol.says("/usage").await;
    house.settled(&gateway).await;
    assert_eq!(house.model.journal().len(), 1);
    let texts = carol.texts();
    assert!(texts[0].starts_with("You've used up your tokens for today."));
    assert!(
        texts[1].contains("you, today: 112 of 100 tokens"),
        "{texts:?}"
    );
    gateway.shutdown().await;
}

/// Rounds of tools and subagents take what they use off the day as well.
#[tokio::test]
async fn every_round_of_parallel_turns_is_counted_before_it_is_asked() {
    let house = House::new(&shipped(DAY)).await;
    house.model.report_tokens(Tokens {
        input: 290,
        cached: 0,
        output: 10,
    });
    house
        .model
        .answer_with(|_| Script::tool_call("now", json!({})));
    let gateway = house.open().await;
    let forum = house.telegram.forum(-1001);
    for id in 2..22 {
        forum
            .topic(id, &format!("Topic {id}"))
            .says(BOB, "go on")
            .await;
    }
    house.settled(&gateway).await;
    assert_eq!(
        house.ask("SELECT tokens FROM budgets WHERE spender = 'person:telegram:222'"),
        "1200"
    );
    assert_eq!(house.model.journal().len(), 4);
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_guest_does_not_end_an_owners_work() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    house.model.hold();
    topic.says(ALICE, "the report").await;
    house.model.wait_for_open(1).await;
    topic.says(ALICE, "and the figures").await;
    topic.says(BOB, "hello").await;
    topic.says(BOB, "/stop").await;
    insta::assert_snapshot!(topic.wait_for_sent(1).await.text, @"The current answer is for Alice (owner). Only people with the same or a higher role can stop it.");
    topic.says(BOB, "/queue clear").await;
    insta::assert_snapshot!(topic.wait_for_sent(2).await.text, @"1 waiting message is dropped. 1 waiting message stays, from Alice (owner).");
    topic.says(BOB, "hello again").await;
    topic.says(BOB, "/stop all").await;
    insta::assert_snapshot!(topic.wait_for_sent(3).await.text, @"1 waiting message is dropped. The current answer is for Alice (owner). Only people with the same or a higher role can stop it. 1 waiting message stays, from Alice (owner).");
    topic.says(BOB, "/new").await;
    insta::assert_snapshot!(topic.wait_for_sent(4).await.text, @"People with a higher role talk here too, so a guest can't start a fresh conversation. A member can, with /new.");
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(house.model.asked_about("the report").len(), 1);
    assert_eq!(house.model.asked_about("and the figures").len(), 1);
    assert_eq!(house.model.asked_about("hello").len(), 0);

    topic.says(BOB, "/new").await;
    assert!(
        topic
            .wait_for_sent(7)
            .await
            .text
            .starts_with("People with a higher role talk here too")
    );
    house.model.hold();
    topic.says(BOB, "mine").await;
    house.model.wait_for_open(1).await;
    topic.says(ALICE, "/stop").await;
    house.settled(&gateway).await;
    assert_eq!(
        house.ask("SELECT outcome FROM turns ORDER BY id DESC LIMIT 1"),
        "stopped"
    );
    topic.says(ALICE, "/new").await;
    house.settled(&gateway).await;
    gateway.shutdown().await;
}

/// Guests among themselves, and everybody in a place of their own, do as they like.
#[tokio::test]
async fn guests_end_guests_work_and_begin_anew_where_they_are_alone() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    topic.says(BOB, "hello").await;
    house.settled(&gateway).await;
    topic.says(CAROL, "/new").await;
    assert!(
        topic
            .wait_for_sent(2)
            .await
            .text
            .starts_with("A fresh conversation begins here.")
    );
    house.model.hold();
    topic.says(BOB, "mine").await;
    house.model.wait_for_open(1).await;
    topic.says(CAROL, "/stop").await;
    assert_eq!(
        topic.wait_for_sent(3).await.text,
        "Carol stopped the answer to Bob."
    );
    house.settled(&gateway).await;
    gateway.shutdown().await;
}

/// A turn that was put aside and its subagents are an owner's too.
#[tokio::test]
async fn a_guest_does_not_end_an_owners_subagents() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    house.model.enqueue_when(
        "ask around",
        Script::tool_call("spawn", json!({"task": "look it up", "wait": false})),
    );
    house
        .model
        .enqueue_when("look it up", Script::text("found").held());
    topic.says(ALICE, "ask around").await;
    house.model.wait_for_requests(3).await;
    topic.wait_for_sent(1).await;
    topic.says(BOB, "/stop all").await;
    let told = topic.wait_for_sent(2).await.text;
    assert!(
        told.contains("(owner). Only people with the same"),
        "{told}"
    );
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(
        house.ask("SELECT group_concat(state) FROM subagents"),
        "finished"
    );
    gateway.shutdown().await;
}

/// S4.38: with the limits as shipped, and the first send still under way.
#[tokio::test]
async fn an_answer_goes_before_the_command_replies_of_others() {
    let house = House::new(&shipped("")).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    let hold = house.telegram.hold("sendMessage");
    for _ in 0..60 {
        topic.says(BOB, "/whoami").await;
    }
    topic.says(ALICE, "a question").await;
    house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE kind = 'final'", "1")
        .await;
    drop(hold);
    house.settled(&gateway).await;
    let texts = topic.texts();
    let position = texts.iter().position(|text| text.contains("a question"));
    assert!(position.is_some_and(|position| position <= 2), "{texts:?}");
    assert!(texts.len() >= 12, "nothing is lost: {texts:?}");
    gateway.shutdown().await;
}

#[tokio::test]
async fn replies_to_commands_that_waited_for_long_become_one_line() {
    let house = House::new(OPEN).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(5, "Five");
    let hold = house.telegram.hold("sendMessage");
    for _ in 0..20 {
        topic.says(BOB, "/whoami").await;
    }
    house
        .wait_until_stored("SELECT count(*) FROM outbox", "20")
        .await;
    house.tell("UPDATE outbox SET created_at = created_at - 61000 WHERE state = 'waiting'");
    drop(hold);
    house.settled(&gateway).await;
    let texts = topic.texts();
    assert_eq!(texts.len(), 2);
    insta::assert_snapshot!(texts[1], @"Replies to commands had to wait here for too long, so I dropped them. The commands were carried out; /status shows how things stand.");
    topic.says(BOB, "/whoami").await;
    house.settled(&gateway).await;
    assert_eq!(topic.texts().len(), 3, "the place goes on");
    gateway.shutdown().await;
}

/// A slash command is a command, and so is a button.
#[tokio::test]
async fn slash_commands_are_counted_like_written_ones() {
    use crate::support::fake_discord;
    let rest = "[access]\nowners = [\"discord:111\"]\ngroups = \"open\"\n\
                [access.limits.guest]\nmessages_per_minute = 3\n";
    let (house, discord, guild) = House::with_garden("", rest).await;
    let thread = guild.text_channel(8101, "general").thread(8111, "talk");
    let gateway = house.open_with(&discord).await;
    discord.wait_for_commands(1).await;
    for _ in 0..8 {
        thread.command(fake_discord::BOB, "whoami").await;
    }
    let refused =
        "SELECT count(*) FROM inbox WHERE state = 'refused' AND outcome = 'sent too fast'";
    house.wait_until_stored(refused, "5").await;
    gateway.settled().await;
    assert_eq!(
        house.ask("SELECT count(*) FROM outbox"),
        "4",
        "three replies and one word about the pace"
    );
    gateway.shutdown().await;
}
