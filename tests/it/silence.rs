//! Why is it silent? Whatever keeps an answer from a person is told by `route explain`, `sessions
//! show`, `status` and the commands, and owners hear of it by themselves.

use std::time::Duration;

use parlor::gateway::Gateway;

use crate::cli::run;
use crate::first_minute::code_in;
use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB, CAROL, Fault, Place};

const TOPIC: &str = "telegram:topic:-1001:101";

/// Alice owns the house, Rose answers in Writing whatever is said.
const HOUSE: &str = r#"
[access]
owners = ["telegram:111"]
[agents.main]
[agents.rose]
who = "guest"
[[bindings]]
match = "telegram:topic:-1001:101"
agent = "rose"
require_mention = false
"#;

fn writing(house: &House) -> Place {
    house.telegram.forum(-1001).topic(101, "Writing")
}

async fn told(house: &House, line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ran = run(house.home.path(), &words).await;
    format!("{}{}", ran.stdout, ran.stderr)
}

/// The first line of `route explain`.
async fn explained(house: &House, line: &str) -> String {
    let told = told(house, &format!("route explain {line}")).await;
    // Lines are wrapped for a terminal only.
    told.lines().next().unwrap_or_default().to_owned()
}

async fn asks(house: &House, gateway: &Gateway, place: &Place, text: &str) {
    place.says(BOB, text).await;
    house.settled(gateway).await;
}

#[tokio::test]
async fn an_answer_that_did_not_arrive_is_part_of_the_truth() {
    let mut house = House::new(HOUSE).await;
    house.leave_leftovers();
    let gateway = house.open().await;
    let (topic, owner) = (writing(&house), house.telegram.dm(ALICE));
    asks(&house, &gateway, &topic, "before").await;
    topic.closes_topic(CAROL).await;
    asks(&house, &gateway, &topic, "behind closed doors").await;
    let reason = "1 answer could not be delivered: the topic is closed";
    let explained = explained(&house, TOPIC).await;
    assert!(
        explained.contains(", but nothing can be written there since")
            && explained.contains("the topic is closed. Reopen it, or make the bot an admin")
            && explained.contains(reason),
        "{explained}"
    );
    for line in [format!("sessions show {TOPIC}"), "status".to_owned()] {
        let told = told(&house, &line).await;
        assert!(told.contains(reason), "{line}: {told}");
    }
    let json = told(&house, &format!("route explain {TOPIC} --json")).await;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        json["answer"]["obstacles"],
        serde_json::json!(["barred", "undelivered"])
    );
    assert_eq!(owner.texts().len(), 1);
    gateway.shutdown().await;
}

#[tokio::test]
async fn the_log_does_not_call_an_undelivered_answer_an_answer() {
    let mut house = House::new(HOUSE).await;
    house.leave_leftovers();
    let process = house.spawn().await;
    let (topic, _owner) = (writing(&house), house.telegram.dm(ALICE));
    topic.says(BOB, "before").await;
    topic.wait_for_sent(1).await;
    topic.closes_topic(CAROL).await;
    topic.says(BOB, "behind closed doors").await;
    process
        .wait_for_log("gave an answer that was not delivered")
        .await;
    assert_eq!(process.log().matches("rose answered").count(), 1);
    process.stop().await;
}

/// Owners are told at once, and what could not be sent comes when the bot is back.
#[tokio::test]
async fn a_removed_bot_tells_its_owner_and_answers_when_it_is_back() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let (topic, owner) = (writing(&house), house.telegram.dm(ALICE));
    asks(&house, &gateway, &topic, "before").await;
    house.model.hold();
    topic.says(BOB, "are you there").await;
    house.model.wait_for_open(1).await;
    topic.removes_bot(CAROL).await;
    house.telegram.all_confirmed().await;
    owner.wait_for_sent(1).await;
    let first = owner.texts().remove(0);
    assert!(first.starts_with("I can't answer in "), "{first}");
    assert!(first.contains("I was removed from the group"), "{first}");
    house.model.release();
    house.settled(&gateway).await;
    assert!(
        owner.texts()[1].contains("I was removed"),
        "{:?}",
        owner.texts()
    );
    let explained = explained(&house, TOPIC).await;
    assert!(
        explained.contains("nothing can be written there since")
            && explained.contains("I was removed from the group"),
        "{explained}"
    );
    topic.adds_bot(CAROL).await;
    topic.wait_for_sent(2).await;
    house.settled(&gateway).await;
    let explained = self::explained(&house, TOPIC).await;
    assert!(!explained.contains("but"), "{explained}");
    house.close(gateway).await;
}

#[tokio::test]
async fn a_bot_that_may_not_write_tells_its_owner() {
    for refusal in [
        "Bad Request: not enough rights to send text messages to the chat",
        "Bad Request: CHAT_WRITE_FORBIDDEN",
        "Bad Request: have no rights to send a message",
    ] {
        let mut house = House::new(HOUSE).await;
        house.leave_leftovers();
        let gateway = house.open().await;
        let (topic, owner) = (writing(&house), house.telegram.dm(ALICE));
        let plan = house
            .telegram
            .fail("sendMessage", Fault::Refused(400, refusal));
        plan.once();
        asks(&house, &gateway, &topic, "hello").await;
        owner.wait_for_sent(1).await;
        assert!(
            owner.texts()[0].contains("I may not write in the group"),
            "{refusal}"
        );
        let explained = explained(&house, TOPIC).await;
        assert!(
            explained.contains("I may not write in the group"),
            "{explained}"
        );
        gateway.shutdown().await;
    }
}

/// Strangers can add the bot to their group and remove it as they like.
#[tokio::test]
async fn a_group_without_answers_is_not_told_about() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let owner = house.telegram.dm(ALICE);
    let stranger = house.telegram.supergroup(-1002);
    stranger.adds_bot(BOB).await;
    stranger.removes_bot(BOB).await;
    house.settled(&gateway).await;
    assert!(owner.texts().is_empty(), "{:?}", owner.texts());
    house.close(gateway).await;
}

#[tokio::test]
async fn an_owner_by_grant_hears_of_failures_too() {
    let mut house = House::new(HOUSE).await;
    house.leave_leftovers();
    let gateway = house.open().await;
    let (topic, carol) = (writing(&house), house.telegram.dm(CAROL));
    told(&house, "people role telegram:333 owner").await;
    asks(&house, &gateway, &topic, "before").await;
    topic.closes_topic(BOB).await;
    asks(&house, &gateway, &topic, "behind closed doors").await;
    let texts = carol.texts();
    assert!(
        texts
            .iter()
            .any(|text| text.contains("the topic is closed")),
        "{texts:?}"
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_gateway_that_does_not_run_is_part_of_the_truth() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    asks(&house, &gateway, &writing(&house), "hello").await;
    assert!(!explained(&house, TOPIC).await.contains("no gateway"));
    gateway.shutdown().await;
    let explained = explained(&house, TOPIC).await;
    assert!(
        explained.contains(", but no gateway runs right now"),
        "{explained}"
    );
}

#[tokio::test]
async fn a_pause_of_the_platform_is_told_with_its_end() {
    let mut house = House::new(HOUSE).await;
    house.leave_leftovers();
    let gateway = house.open().await;
    let topic = writing(&house);
    house
        .telegram
        .fail("sendMessage", Fault::RetryAfter(90))
        .once();
    topic.says(BOB, "hello").await;
    house
        .wait_until_stored("SELECT count(*) FROM chat_waits", "1")
        .await;
    let reason = "1 answer waits to be sent: Telegram asked for a pause until ";
    let explained = explained(&house, TOPIC).await;
    assert!(explained.contains(reason), "{explained}");
    let status = told(&house, "status").await;
    assert!(status.contains(reason), "{status}");
    let sessions = told(&house, "sessions").await;
    assert!(sessions.contains("1 to be"), "{sessions}");
    gateway.shutdown().await;
}

/// The state of a model is that of now, not the one that owners were told last.
#[tokio::test]
async fn a_second_failure_within_the_hour_is_seen_on_the_command_line() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let (topic, _owner) = (writing(&house), house.telegram.dm(ALICE));
    for _ in 0..2 {
        house.model.enqueue(Script::status(401, "{}"));
        asks(&house, &gateway, &topic, "hello").await;
        let explained = explained(&house, TOPIC).await;
        assert!(explained.contains("has refused since"), "{explained}");
        asks(&house, &gateway, &topic, "again").await;
        let explained = self::explained(&house, TOPIC).await;
        assert!(!explained.contains("refused"), "{explained}");
    }
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_guest_at_the_door_is_told_from_one_who_was_turned_away() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let (alice, bob) = (house.telegram.dm(ALICE), house.telegram.dm(BOB));
    alice.says("/start").await;
    alice.wait_for_sent(1).await;
    let key = "telegram:dm:222 --as telegram:222";
    let asked = explained(&house, key).await;
    assert!(asked.contains("A first message gets a code"), "{asked}");
    bob.says("hello").await;
    let code = code_in(&bob.wait_for_sent(1).await.text);
    house.settled(&gateway).await;
    let asked = explained(&house, key).await;
    assert!(
        asked.contains(&format!("`parlor pair {code}` lets them in")),
        "{asked}"
    );
    // The reply to a code ends with the decision, as the notice does.
    alice.says(&format!("/pair {code}")).await;
    let shown = alice.wait_for_sent(3).await;
    assert!(
        shown.text.contains("Nobody is let in yet"),
        "{}",
        shown.text
    );
    alice.says(&format!("/pair {code} no")).await;
    house.settled(&gateway).await;
    let now = alice.texts();
    assert!(
        !now.iter().any(|text| text.contains("Nobody is let in yet")),
        "{now:?}"
    );
    let asked = explained(&house, key).await;
    assert!(asked.contains("was turned away by Alice"), "{asked}");
    assert!(
        asked.contains("`parlor people role PERSON member`"),
        "{asked}"
    );
    let list = told(&house, "pair list").await;
    assert!(list.contains("turned away"), "{list}");
    let audit = told(&house, "audit").await;
    assert!(audit.contains("turned away Bob (telegram:222)"), "{audit}");
    alice.says(&format!("/pair {code} yes")).await;
    house.settled(&gateway).await;
    let last = alice.texts().pop().expect("a reply");
    assert!(last.contains("/people role telegram:222 member"), "{last}");
    house.close(gateway).await;
}

#[tokio::test]
async fn a_person_who_is_too_fast_is_part_of_the_truth() {
    let limits = "[access.limits.guest]\nmessages_per_minute = 1\n";
    let house = House::new(&format!("{HOUSE}{limits}")).await;
    let gateway = house.open().await;
    let topic = writing(&house);
    asks(&house, &gateway, &topic, "one").await;
    asks(&house, &gateway, &topic, "two").await;
    let explained = explained(&house, &format!("{TOPIC} --as telegram:222")).await;
    assert!(explained.contains("are dropped until"), "{explained}");
    let others = self::explained(&house, &format!("{TOPIC} --as telegram:333")).await;
    assert!(!others.contains("dropped"), "{others}");
    gateway.shutdown().await;
}

#[tokio::test]
async fn turns_per_minute_that_are_used_up_are_part_of_the_truth() {
    let limits = "[access.limits.guest]\nmessages_per_minute = 0\nturns_per_minute = 1\n";
    let house = House::new(&format!("{HOUSE}{limits}")).await;
    let gateway = house.open().await;
    let topic = writing(&house);
    asks(&house, &gateway, &topic, "one").await;
    asks(&house, &gateway, &topic, "two").await;
    let explained = explained(&house, &format!("{TOPIC} --as telegram:222")).await;
    assert!(explained.contains("used up their messages"), "{explained}");
    gateway.shutdown().await;
}

#[tokio::test]
async fn privacy_mode_is_part_of_the_truth() {
    let house = House::new(HOUSE).await;
    house.telegram.set_me("can_read_all_group_messages", false);
    let topic = writing(&house);
    let gateway = house.open().await;
    house.telegram.wait_for_calls("getChat", 1).await;
    topic.says(ALICE, "/whoami").await;
    let whoami = topic.wait_for_sent(1).await.text;
    assert!(whoami.contains("its privacy mode is on"), "{whoami}");
    let explained = explained(&house, TOPIC).await;
    assert!(explained.contains("its privacy mode is on"), "{explained}");
    house.close(gateway).await;
}

#[tokio::test]
async fn another_poller_is_part_of_the_truth() {
    let house = House::new(HOUSE).await;
    let conflict = "Conflict: terminated by other getUpdates request";
    house
        .telegram
        .fail("getUpdates", Fault::Refused(409, conflict))
        .times(1_000);
    let gateway = house.open().await;
    house.telegram.wait_for_calls("getUpdates", 2).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let explained = explained(&house, TOPIC).await;
    assert!(
        explained.contains("Telegram has not been connected since"),
        "{explained}"
    );
    assert!(
        explained.contains(": another program uses this bot token"),
        "{explained}"
    );
    gateway.shutdown().await;
}

/// A topic that nobody opened can be found by its name, and by a list of what was ignored.
#[tokio::test]
async fn an_ignored_topic_is_found_by_its_name_and_in_a_list() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let garden = house.telegram.forum(-1001).topic(107, "Garden");
    garden.says(BOB, "@parlor_bot hello").await;
    garden.says(BOB, "@parlor_bot anybody?").await;
    house.settled(&gateway).await;
    let explained = explained(&house, "Garden").await;
    assert!(explained.starts_with("Nobody answers in "), "{explained}");
    assert!(
        explained.contains("`parlor pin telegram:topic:-1001:107 main`"),
        "{explained}"
    );
    let list = told(&house, "sessions list --ignored --json").await;
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!(list[0]["place"]["name"], "Garden");
    assert_eq!(list[0]["reason"], "no binding or /agent opens this place");
    assert_eq!(list[0]["messages"], 2);
    assert_eq!(list[0]["now"], "closed");
    let doctor = told(&house, "doctor").await;
    let ignored = "Messages in Garden (telegram:topic:-1001:107) were ignored today, because no rule opens it.";
    assert!(doctor.contains(ignored), "{doctor}");
    assert!(
        doctor.contains("parlor pin telegram:topic:-1001:107 main, or /bind main there"),
        "{doctor}"
    );
    assert!(!doctor.contains("to the default agent"), "{doctor}");
    let alice = house.telegram.dm(ALICE);
    alice.says("/doctor").await;
    let in_chat = alice.wait_for_sent(1).await.text;
    assert!(in_chat.contains(ignored), "{in_chat}");
    let stored = house.ask("SELECT count(*) FROM places WHERE name = 'Garden'");
    assert_eq!(stored, "0", "a closed place leaves no name behind");
    told(&house, "pin Garden rose").await;
    garden.says(BOB, "@parlor_bot hello").await;
    garden.wait_for_sent(1).await;
    // A place that is open by now is no news, and the list says so.
    let doctor = told(&house, "doctor").await;
    assert!(!doctor.contains("were ignored today"), "{doctor}");
    let list = told(&house, "sessions list --ignored --json").await;
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!(
        (&list[0]["now"], &list[0]["agent"]["id"]),
        (&"open".into(), &"rose".into())
    );
    house.close(gateway).await;
}

/// One cause has one wording, whether the bot said something or not; people who were let in since
/// are not among the ignored.
#[tokio::test]
async fn ignored_messages_are_listed_by_their_cause() {
    let house = House::new(&HOUSE.replace("require_mention = false", "")).await;
    let gateway = house.open().await;
    let garden = house.telegram.forum(-1001).topic(107, "Garden");
    garden.says(ALICE, "@parlor_bot hello").await;
    garden.says(BOB, "@parlor_bot hello").await;
    let writing = writing(&house);
    writing.says(BOB, "hello").await;
    writing.says(BOB, "anybody?").await;
    let (bob, carol) = (house.telegram.dm(BOB), house.telegram.dm(CAROL));
    bob.says("hello?").await;
    let code = code_in(&bob.wait_for_sent(1).await.text);
    bob.says("still there?").await;
    carol.says("hello").await;
    carol.says("hello again").await;
    house.settled(&gateway).await;
    told(&house, &format!("pair {code}")).await;
    house.settled(&gateway).await;
    let list = told(&house, "sessions list --ignored --json").await;
    let list: Vec<serde_json::Value> = serde_json::from_str(&list).expect("JSON");
    let mut rows: Vec<String> = list
        .iter()
        .map(|row| {
            let agent = row["agent"]["id"].as_str().unwrap_or("-");
            format!(
                "{} {} ({}) {} {agent}",
                row["place"]["id"], row["reason"], row["messages"], row["now"]
            )
        })
        .collect();
    rows.sort();
    insta::assert_snapshot!(rows.join("\n").replace('"', ""), @r"
    telegram:dm:333 waits to be let in (2) closed -
    telegram:topic:-1001:101 the message neither mentions the bot nor replies to it (2) open rose
    telegram:topic:-1001:107 no binding or /agent opens this place (2) closed -
    ");
    gateway.shutdown().await;
}

/// A group is meant by its name, though each of its people has a conversation of their own.
#[tokio::test]
async fn a_group_is_meant_by_its_name_after_people_have_talked_there() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let group = house.telegram.group(-1009);
    group.says(BOB, "@parlor_bot hello").await;
    house.settled(&gateway).await;
    let explain = async || {
        let ran = run(house.home.path(), &["route", "explain", "Chat -1009"]).await;
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout.lines().next().unwrap_or_default().to_owned()
    };
    let closed = explain().await;
    assert!(
        closed.starts_with("Nobody answers in ") && closed.contains("telegram:group:-1009"),
        "{closed}"
    );
    let bound = format!(
        "{}\n[[bindings]]\nmatch = \"telegram:group:-1009\"\nagent = \"rose\"\n",
        house.config()
    );
    house.write("config.toml", &bound);
    gateway.reload("a test").await;
    group.says(BOB, "@parlor_bot hello").await;
    group.wait_for_sent(1).await;
    house.settled(&gateway).await;
    let open = explain().await;
    assert!(
        open.contains("answers in Chat -1009 (telegram:group:-1009)"),
        "{open}"
    );
    let one = run(house.home.path(), &["sessions", "show", "Chat -1009/Bob"]).await;
    assert_eq!(one.code, 0, "{}", one.stderr);
    let all = run(house.home.path(), &["sessions", "show", "Chat -1009"]).await;
    assert_eq!(all.code, 2);
    insta::assert_snapshot!(all.stderr, @r"
    error: each person has a conversation of their own in Chat -1009 (telegram:group:-1009): Chat -1009/Bob (telegram:group:-1009:222)
    hint: write the key of the one you mean, such as telegram:group:-1009:222
    ");
    house.close(gateway).await;
}

/// The list of sessions names nobody where nobody answers.
#[tokio::test]
async fn a_closed_place_is_nobodys_in_the_list_of_sessions() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let garden = house.telegram.forum(-1001).topic(107, "Garden");
    garden.says(ALICE, "/agent rose").await;
    garden.says(BOB, "@parlor_bot hello").await;
    house.settled(&gateway).await;
    garden.says(ALICE, "/agent close").await;
    house.settled(&gateway).await;
    let list = told(&house, "sessions list --json").await;
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!(list[0]["silence"], "place_closed", "{list:#}");
    let text = told(&house, "sessions").await;
    assert!(text.contains("nobody: no rule opens it"), "{text}");
    assert!(!text.contains("default_agent"), "{text}");
    house.close(gateway).await;
}

/// A slip of an owner is answered in a group too; a guest's may be a command of another bot.
#[tokio::test]
async fn a_slip_of_an_owner_is_answered_in_a_group() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(103, "Code");
    topic.says(BOB, "/agnet rose").await;
    topic.says(ALICE, "/frobnicate").await;
    topic.says(ALICE, "/agnet rose").await;
    house.settled(&gateway).await;
    let texts = topic.texts();
    assert_eq!(
        texts,
        ["There is no command /agnet. Did you mean /agent? /help shows what there is."]
    );
    house.close(gateway).await;
}

/// `/unbind` says what it has done: here it closes the topic. A switch to the agent that is there
/// already is none.
#[tokio::test]
async fn a_binding_that_is_taken_out_is_told_with_its_consequence() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let topic = writing(&house);
    topic.says(BOB, "/agent ROSE").await;
    house.settled(&gateway).await;
    assert_eq!(topic.texts(), ["Rose already answers here."]);
    assert_eq!(house.ask("SELECT count(*) FROM pins"), "0");
    topic.says(ALICE, "/unbind").await;
    house.settled(&gateway).await;
    let told = topic.texts().pop().expect("a reply");
    assert!(told.contains("Nobody answers here: no binding"), "{told}");
    house.close(gateway).await;
}

/// A binding opens a plain group for everybody; `/agent` opens it for the member who wrote it.
#[tokio::test]
async fn taking_the_binding_of_a_group_out_tells_that_the_others_are_shut_out() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let group = house.telegram.supergroup(-1009);
    for text in ["/agent rose", "/bind rose", "/unbind"] {
        group.says(ALICE, text).await;
        house.settled(&gateway).await;
    }
    let told = group.texts().pop().expect("a reply");
    let (_, told) = told.split_once(" on. ").expect("the line");
    insta::assert_snapshot!(told, @"Main answers you in this group when mentioned or replied to. Main is the default agent. For the others this group is closed now; /bind with an agent's name opens it.");
    let before = group.texts().len();
    group.says(BOB, "@parlor_bot hello").await;
    house.settled(&gateway).await;
    assert_eq!(group.texts().len(), before, "it is closed for Bob");
    house.close(gateway).await;
}

#[tokio::test]
async fn a_queue_behind_a_paused_agent_promises_nothing() {
    let mut house = House::new(HOUSE).await;
    house.leave_leftovers();
    let gateway = house.open().await;
    let topic = writing(&house);
    topic.says(ALICE, "/agent pause rose").await;
    topic.says(ALICE, "hello?").await;
    house.all_in_their_lanes().await;
    // The pause, and the word that the message waits.
    let before = 2;
    topic.wait_for_sent(before).await;
    topic.says(BOB, "/queue").await;
    topic.says(ALICE, "/queue").await;
    topic.wait_for_sent(before + 2).await;
    let texts = topic.texts();
    let (guest, owner) = (&texts[texts.len() - 2], &texts[texts.len() - 1]);
    let paused = "Rose is paused, so these wait until an owner resumes it.";
    assert!(guest.ends_with(paused), "{guest}");
    assert!(
        owner.ends_with(&format!("{paused} /queue clear drops them.")),
        "{owner}"
    );
    topic.says(ALICE, "/agent resume rose").await;
    topic.wait_for_sent(before + 4).await;
    house.close(gateway).await;
}

#[tokio::test]
async fn explain_says_answers_while_the_topic_is_closed() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let topic = writing(&house);
    asks(&house, &gateway, &topic, "before").await;
    topic.closes_topic(CAROL).await;
    house.settled(&gateway).await;
    let closed = explained(&house, TOPIC).await;
    assert!(
        closed.contains(", but nothing can be written there since")
            && closed.contains("the topic is closed. Reopen it"),
        "{closed}"
    );
    topic.reopens_topic(CAROL).await;
    house.settled(&gateway).await;
    let open = explained(&house, TOPIC).await;
    assert!(!open.contains("but"), "{open}");
    house.close(gateway).await;
}

#[tokio::test]
async fn explain_says_answers_while_the_topic_is_gone() {
    let mut house = House::new(HOUSE).await;
    house.leave_leftovers();
    let gateway = house.open().await;
    let (topic, owner) = (writing(&house), house.telegram.dm(ALICE));
    asks(&house, &gateway, &topic, "before").await;
    house.model.hold();
    topic.says(BOB, "still there?").await;
    house.model.wait_for_open(1).await;
    topic.deletes_topic();
    house.model.release();
    house.settled(&gateway).await;
    owner.wait_for_sent(1).await;
    let gone = explained(&house, TOPIC).await;
    assert!(
        gone.contains("the topic is gone. Open another one"),
        "{gone}"
    );
    gateway.shutdown().await;
}

/// Telegram's words for a wrong number are not those for a bot that was removed.
#[tokio::test]
async fn a_wrong_chat_id_is_told_as_a_removed_bot() {
    let rule = "[[bindings]]\nmatch = \"telegram:group:-1009\"\nagent = \"rose\"\n";
    let house = House::new(&format!("{HOUSE}{rule}")).await;
    writing(&house);
    let gateway = house.open().await;
    house.telegram.wait_for_calls("getChatMember", 2).await;
    house.settled(&gateway).await;
    for (line, said) in [
        (
            "route explain telegram:group:-1009",
            "Telegram knows no such group",
        ),
        ("doctor", "Telegram does not know the group"),
    ] {
        let told = told(&house, line).await;
        assert!(told.contains(said), "{line}: {told}");
        assert!(told.contains("/whoami"), "{line}: {told}");
        assert!(!told.contains("removed from the group"), "{line}: {told}");
    }
    gateway.shutdown().await;
}

#[tokio::test]
async fn explain_says_answers_while_the_model_answers_503() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let (topic, _owner) = (writing(&house), house.telegram.dm(ALICE));
    house.model.answer_with(|_| Script::status(503, "{}"));
    asks(&house, &gateway, &topic, "hello").await;
    let failing = explained(&house, TOPIC).await;
    assert!(
        failing.contains(", but its model `fake/any` failed when last asked, at ")
            && failing.contains("the model provider is overloaded"),
        "{failing}"
    );
    topic.says(BOB, "/status").await;
    house.settled(&gateway).await;
    let status = topic.texts().pop().expect("an answer");
    assert!(
        status.contains("its model didn't work when last asked"),
        "{status}"
    );
    house.model.answer_with(|_| Script::text("here I am"));
    asks(&house, &gateway, &topic, "again").await;
    let well = explained(&house, TOPIC).await;
    assert!(!well.contains("but"), "{well}");
    gateway.shutdown().await;
}

#[tokio::test]
async fn explain_says_answers_while_the_disk_is_full() {
    let mut house = House::new(HOUSE).await;
    house.leave_leftovers();
    let gateway = house.open().await;
    let topic = writing(&house);
    asks(&house, &gateway, &topic, "before").await;
    house.fills_up("INSERT ON inbox");
    let pushed = topic.says(BOB, "is there room?").await;
    house.telegram.wait_for_calls("getUpdates", 4).await;
    let mut full = String::new();
    for _ in 0..200 {
        full = explained(&house, TOPIC).await;
        if full.contains("but") {
            break;
        }
    }
    assert!(
        full.contains(", but the gateway cannot store messages right now")
            && full.contains("the disk is full"),
        "{full}"
    );
    house.works_again();
    house.telegram.confirmed(pushed.update_id).await;
    house.settled(&gateway).await;
    let well = explained(&house, TOPIC).await;
    assert!(!well.contains("but"), "{well}");
    gateway.shutdown().await;
}

#[tokio::test]
async fn explain_says_answers_while_the_gateway_is_frozen() {
    let mut house = House::new(HOUSE).await;
    house.leave_leftovers();
    let process = house.spawn().await;
    let pid = process.pid();
    process.signal("STOP").await;
    let told = explained(&house, TOPIC).await;
    process.signal("CONT").await;
    assert!(
        told.contains(&format!(
            ", but the gateway (process {pid}) does not respond right now"
        )) && told.contains(&format!("kill -CONT {pid}")),
        "{told}"
    );
    process.stop().await;
}

/// The poll after a failure is answered at once, so nobody waits for the end of a long poll.
#[tokio::test]
async fn a_platform_is_down_until_the_next_long_poll_ends() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let topic = writing(&house);
    asks(&house, &gateway, &topic, "before").await;
    let polls = house.telegram.calls("getUpdates").len();
    house
        .telegram
        .fail("getUpdates", Fault::Refused(502, "Bad Gateway"))
        .once();
    topic.says(BOB, "this ends the long poll").await;
    // The one that fails, a short one, and the next long one.
    house.telegram.wait_for_calls("getUpdates", polls + 3).await;
    let status = told(&house, "status").await;
    assert!(status.contains("is connected"), "{status}");
    assert!(!status.contains("is down"), "{status}");
    house.close(gateway).await;
}

/// Where each person has a conversation of their own, no pin of the group is taken, and doctor and
/// explain name what works.
#[tokio::test]
async fn a_group_of_separate_conversations_is_opened_by_a_binding_and_by_no_pin() {
    let house = House::new(HOUSE).await;
    let gateway = house.open().await;
    let lobby = house.telegram.supergroup(-555);
    lobby.says(BOB, "@parlor_bot hello").await;
    house.settled(&gateway).await;
    let doctor = told(&house, "doctor").await;
    assert!(
        doctor.contains("match = \"telegram:group:-555\""),
        "{doctor}"
    );
    assert!(!doctor.contains("parlor pin telegram:group"), "{doctor}");
    let refused = told(&house, "pin telegram:group:-555 rose").await;
    assert!(
        refused.contains("so a pin of the group reaches nobody")
            && refused.contains("`/bind rose`"),
        "{refused}"
    );
    let before = explained(&house, "telegram:group:-555 --as telegram:222").await;
    assert!(
        before.starts_with("Nobody answers") && before.contains("telegram:group:-555:222"),
        "{before}"
    );
    assert!(
        before.contains("`/bind main`, written there by an owner"),
        "{before}"
    );
    lobby.says(ALICE, "/bind main").await;
    house.settled(&gateway).await;
    let after = explained(&house, "telegram:group:-555 --as telegram:222").await;
    assert!(after.to_lowercase().starts_with("main answers"), "{after}");
    let sent = lobby.texts().len();
    lobby.says(BOB, "@parlor_bot hello").await;
    house.settled(&gateway).await;
    assert!(lobby.texts().len() > sent);
    house.close(gateway).await;
}

/// An agent for owners is pinned nowhere for others, so a pin of it is not recommended, and a binding
/// says whom it lets in.
#[tokio::test]
async fn only_a_pin_that_is_possible_is_recommended() {
    let house = House::new(&HOUSE.replace("[agents.main]", "[agents.main]\nwho = \"owner\"")).await;
    let gateway = house.open().await;
    let garden = house.telegram.forum(-1001).topic(107, "Garden");
    garden.says(BOB, "@parlor_bot hello").await;
    house.settled(&gateway).await;
    for told in [
        told(&house, "doctor").await,
        explained(&house, "telegram:topic:-1001:107").await,
    ] {
        assert!(
            told.contains("parlor pin telegram:topic:-1001:107 rose"),
            "{told}"
        );
        assert!(
            told.contains("everybody who may write there can use main then"),
            "{told}"
        );
        assert!(
            !told.contains("pin telegram:topic:-1001:107 main"),
            "{told}"
        );
    }
    house.close(gateway).await;
}

/// A misspelt name is told, and not answered with an empty list.
#[tokio::test]
async fn unknown_names_are_told_by_audit_and_logs() {
    let house = House::new(&format!("{HOUSE}[log]\nfile = \"parlor.log\"\n")).await;
    let process = house.spawn().await;
    let audit = told(&house, "audit --by nobody").await;
    assert!(
        audit.contains("the audit knows nobody called nobody"),
        "{audit}"
    );
    let logs = told(&house, "logs --agent rosa").await;
    assert!(logs.contains("did you mean `rose`?"), "{logs}");
    process.stop().await;
}
