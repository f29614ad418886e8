//! People write in topics, and the right agent answers there.

use std::collections::HashMap;

use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB, CAROL, Place};

const FORUM: i64 = -1_001_234;

/// Two bound topics in a bound group that needs no mention.
const FORUM_OF_THREE: &str = r#"
[access]
owners = ["telegram:111"]
require_mention = false
[agents.main]
[agents.rose]
name = "Rose"
emoji = "🌹"
[agents.ada]
[[bindings]]
match = "telegram:topic:-1001234:101"
agent = "rose"
[[bindings]]
match = "telegram:topic:-1001234:102"
agent = "ada"
[[bindings]]
match = "telegram:group:-1001234"
agent = "main"
"#;

async fn forum_of_three() -> House {
    let house = House::new(FORUM_OF_THREE).await;
    house.write("agents/rose/SOUL.md", "I am the soul of rose.");
    house.write("agents/ada/SOUL.md", "I am the soul of ada.");
    house.write("SOUL.md", "I am the soul of the house.");
    house
}

fn room(house: &House, topic: i64, name: &str) -> Place {
    house.telegram.forum(FORUM).topic(topic, name)
}

/// Who was asked: the first line of the system prompt of the last model call that ends with this
/// text.
fn asked(house: &House, text: &str) -> String {
    let journal = house.model.journal();
    let request = journal
        .iter()
        .rev()
        .find(|request| request.last_text().ends_with(text))
        .expect("the model was asked");
    request.system.lines().next().unwrap_or_default().to_owned()
}

/// S0.1, S4.1, S4.11, S4.18, S4.3, S4.15, S0.3
#[tokio::test]
async fn two_topics_of_one_forum_reach_two_agents_also_after_a_restart() {
    let house = forum_of_three().await;
    for round in ["first", "second"] {
        let gateway = house.open().await;
        for (topic, name) in [(101, "Roses"), (102, "Code"), (103, "Other")] {
            room(&house, topic, name)
                .says(ALICE, &format!("{round} in {topic}"))
                .await;
        }
        house
            .telegram
            .forum(FORUM)
            .says(BOB, &format!("{round} in general"))
            .await;
        house.close(gateway).await;
        assert_eq!(
            asked(&house, &format!("{round} in 101")),
            "You are Rose 🌹 (agent id: rose)."
        );
        assert_eq!(
            asked(&house, &format!("{round} in 102")),
            "You are Ada (agent id: ada)."
        );
        assert_eq!(
            asked(&house, &format!("{round} in 103")),
            "You are Main (agent id: main).",
            "unbound: the group's agent"
        );
        assert_eq!(
            asked(&house, &format!("{round} in general")),
            "You are Main (agent id: main)."
        );
    }
    assert_eq!(
        house.telegram.texts_in(FORUM, Some(101)),
        ["re: [Alice] first in 101", "re: [Alice] second in 101"]
    );
    assert_eq!(
        house.telegram.texts_in(FORUM, Some(102)),
        ["re: [Alice] first in 102", "re: [Alice] second in 102"]
    );
    assert_eq!(
        house.telegram.texts_in(FORUM, Some(103)),
        ["re: [Alice] first in 103", "re: [Alice] second in 103"]
    );
    assert_eq!(
        house.telegram.texts_in(FORUM, None),
        ["re: [Bob] first in general", "re: [Bob] second in general"]
    );
    let journal = house.model.journal();
    let in_rose = journal
        .iter()
        .find(|request| request.last_text().ends_with("second in 101"))
        .expect("asked");
    assert!(
        in_rose.system.contains("I am the soul of rose.")
            && !in_rose.system.contains("soul of ada")
    );
    let heard: Vec<&str> = in_rose
        .messages
        .iter()
        .map(|(_, text)| text.as_str())
        .collect();
    assert_eq!(
        heard,
        [
            "[Alice] first in 101",
            "re: [Alice] first in 101",
            "[Alice] second in 101"
        ],
        "only this topic's history"
    );
}

/// S1.3, S1.21, S1.24, and S1.4 for Telegram.
#[tokio::test]
async fn a_switch_survives_sigkill_and_reset_returns_to_the_binding() {
    let house = forum_of_three().await;
    let process = house.spawn().await;
    let (ada, other) = (room(&house, 102, "Code"), room(&house, 103, "Other"));
    ada.says(ALICE, "/agent rose").await;
    assert_eq!(
        ada.wait_for_sent(1).await.text,
        "🌹 Rose answers here from now on. /agent reset undoes that."
    );
    house
        .wait_until_stored("SELECT state FROM outbox", "sent")
        .await;
    process.kill().await;

    let process = house.spawn().await;
    ada.says(ALICE, "who is there").await;
    ada.wait_for_sent(2).await;
    other.says(ALICE, "and here").await;
    other.wait_for_sent(1).await;
    assert_eq!(
        asked(&house, "who is there"),
        "You are Rose 🌹 (agent id: rose)."
    );
    assert_eq!(
        asked(&house, "and here"),
        "You are Main (agent id: main).",
        "another topic is untouched"
    );

    ada.says(ALICE, "/agent reset").await;
    let undone = ada.wait_for_sent(3).await.text;
    assert!(
        undone.starts_with("The switch is undone. Ada answers here. Line ")
            && undone.ends_with(" of config.toml gives this topic to Ada."),
        "{undone}"
    );
    ada.says(ALICE, "and now").await;
    ada.wait_for_sent(4).await;
    assert_eq!(asked(&house, "and now"), "You are Ada (agent id: ada).");
    assert_eq!(process.stop().await, 0);
}

/// S5: nothing lost, nothing twice.
#[tokio::test]
async fn forty_messages_in_twenty_places_survive_sigkill_while_the_model_answers() {
    let house = forum_of_three().await;
    let places: Vec<Place> = (0..20).map(|n| room(&house, 200 + n, "Place")).collect();
    let process = house.spawn().await;
    house.model.hold();
    for part in ["one", "two"] {
        for (n, place) in places.iter().enumerate() {
            place.says(ALICE, &format!("{part} of {n}")).await;
        }
    }
    house.telegram.all_confirmed().await;
    house.model.wait_for_open(20).await;
    process.kill().await;
    house.model.release();

    let process = house.spawn().await;
    for place in &places {
        place.wait_for_sent(2).await;
    }
    assert_eq!(process.stop().await, 0);
    for (n, place) in places.iter().enumerate() {
        assert_eq!(
            place.texts(),
            [
                format!("re: [Alice] one of {n}"),
                format!("re: [Alice] two of {n}")
            ],
            "place {n}"
        );
    }
    assert_eq!(house.telegram.sent().len(), 40);
    assert_eq!(house.ask("SELECT count(*) FROM turns"), "40");
    assert_eq!(
        house.ask("SELECT count(*) FROM outbox WHERE repeated = 1"),
        "0"
    );
}

#[tokio::test]
async fn an_update_that_comes_twice_is_one_turn() {
    let house = forum_of_three().await;
    let gateway = house.open().await;
    let rose = room(&house, 101, "Roses");
    let asked = rose.says(ALICE, "once, please").await;
    rose.wait_for_sent(1).await;
    house.telegram.confirmed(asked.update_id).await;
    house.telegram.push_again(asked.update_id);
    rose.says(ALICE, "next").await;
    house.settled(&gateway).await;
    assert_eq!(
        rose.texts(),
        ["re: [Alice] once, please", "re: [Alice] next"]
    );
    gateway.shutdown().await;

    let gateway = house.open().await;
    house.telegram.push_again(asked.update_id);
    rose.says(ALICE, "last").await;
    house.settled(&gateway).await;
    assert_eq!(rose.texts().len(), 3, "also not after a restart");
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_broken_update_is_recorded_and_stops_nobody() {
    let house = forum_of_three().await;
    let gateway = house.open().await;
    for hostile in [
        serde_json::json!({ "message": { "message_id": "seven", "chat": 5 } }),
        serde_json::json!({ "message": null }),
        serde_json::json!({ "message": { "message_id": 1, "date": 1, "chat": { "id": 1, "type": "private" } } }),
        serde_json::json!({ "some_new_kind": { "deep": [[[[]]]] } }),
    ] {
        house.telegram.push_raw(hostile);
    }
    let rose = room(&house, 101, "Roses");
    rose.says(ALICE, "still there?").await;
    house.settled(&gateway).await;
    assert_eq!(rose.texts(), ["re: [Alice] still there?"]);
    assert_eq!(
        house.ask("SELECT count(*) FROM inbox WHERE state = 'broken'"),
        "2"
    );
    let raw = house.ask("SELECT payload FROM inbox WHERE state = 'broken' ORDER BY id LIMIT 1");
    assert!(raw.contains("seven"), "{raw}");
    rose.says(ALICE, "/status").await;
    let status = rose.wait_for_sent(2).await.text;
    assert!(
        status.contains("2 updates from the platform could not be read"),
        "{status}"
    );
    house.close(gateway).await;
}

/// S2.14, S4.49
#[tokio::test]
async fn topics_do_not_wait_for_each_other_and_messages_of_one_never_overlap() {
    let house = forum_of_three().await;
    let gateway = house.open().await;
    let (rose, ada) = (room(&house, 101, "Roses"), room(&house, 102, "Code"));
    house
        .model
        .enqueue_when("slow", Script::text("slow answer").held());
    rose.says(ALICE, "slow").await;
    rose.says(BOB, "after the slow one").await;
    house.model.wait_for_requests(1).await;
    ada.says(ALICE, "quick").await;
    ada.wait_for_sent(1).await;
    assert!(rose.texts().is_empty(), "the quick topic did not wait");
    assert_eq!(
        house.model.journal().len(),
        2,
        "the second message of the slow topic waits"
    );
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(
        rose.texts(),
        ["slow answer", "re: [Bob] after the slow one"]
    );
    gateway.shutdown().await;
}

/// S2.14
#[tokio::test]
async fn a_hundred_messages_in_one_topic_are_answered_one_at_a_time_in_order() {
    let house = forum_of_three().await;
    let rose = room(&house, 101, "Roses");
    for n in 0..100 {
        rose.says(
            if n % 2 == 0 { ALICE } else { CAROL },
            &format!("number {n}"),
        )
        .await;
    }
    let gateway = house.open().await;
    house.settled(&gateway).await;
    assert_eq!(house.model.most_at_once(), 1);
    let numbers: Vec<String> = rose
        .texts()
        .iter()
        .map(|text| text.rsplit(' ').next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(numbers, (0..100).map(|n| n.to_string()).collect::<Vec<_>>());
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_place_with_too_much_waiting_says_so_and_loses_nothing_it_took() {
    let house = forum_of_three().await;
    let gateway = house.open().await;
    let rose = room(&house, 101, "Roses");
    house.model.hold();
    rose.says(ALICE, "the one being answered").await;
    house.model.wait_for_open(1).await;
    for n in 0..103 {
        rose.says(ALICE, &format!("number {n}")).await;
    }
    let refusal = rose.wait_for_sent(1).await.text;
    assert_eq!(
        refusal,
        "Too many messages are waiting here already. Please send yours again later."
    );
    house.model.release();
    house.settled(&gateway).await;
    assert_eq!(
        rose.texts().iter().filter(|text| **text == refusal).count(),
        1,
        "told once"
    );
    assert_eq!(
        house.ask("SELECT count(*) FROM inbox WHERE outcome = 'answered'"),
        "101",
        "everything that was taken"
    );
    assert_eq!(
        house.ask("SELECT count(*) FROM inbox WHERE outcome = 'too many messages wait here'"),
        "3"
    );
    gateway.shutdown().await;
}

/// Each reply in its own place, for every kind of place at once.
#[tokio::test]
async fn every_answer_lands_where_its_question_was_asked() {
    let house = House::new(
        r#"
[access]
dms = "open"
groups = "open"
require_mention = false
"#,
    )
    .await;
    let gateway = house.open().await;
    let forum = house.telegram.forum(FORUM);
    let (group, supergroup) = (house.telegram.group(-77), house.telegram.supergroup(-1_005));
    let in_group = supergroup.says(BOB, "to be answered").await;
    let in_general = forum.says(BOB, "in general").await;
    house.settled(&gateway).await;
    let dm = house.telegram.dm(ALICE);
    for (place, text) in [
        (&forum, "general"),
        (&group, "group"),
        (&forum.topic(7, "Seven"), "topic"),
    ] {
        place.says(ALICE, text).await;
    }
    // What comes while a place is busy would be answered as one.
    house.settled(&gateway).await;
    supergroup
        .says(ALICE, "a reply in a supergroup")
        .replying_to(in_group.message_id)
        .await;
    forum
        .says(ALICE, "a reply in general")
        .replying_to(in_general.message_id)
        .await;
    dm.says("private").await;
    dm.topic(33, "Side").says("private topic").await;
    house.settled(&gateway).await;

    let mut keys: HashMap<String, String> = HashMap::new();
    let connection =
        rusqlite::Connection::open(house.home.path().join("parlor.db")).expect("opens");
    let mut statement = connection
        .prepare("SELECT text, key FROM messages JOIN places ON places.id = place_id WHERE kind = 'person'")
        .expect("prepares");
    let rows = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .expect("reads");
    keys.extend(rows.map(|row| row.expect("a row")));
    let place = |text: &str| keys.get(text).map(String::as_str).unwrap_or("nowhere");
    assert_eq!(place("general"), "telegram:topic:-1001234:1");
    assert_eq!(
        place("a reply in general"),
        "telegram:topic:-1001234:1",
        "a reply is no topic"
    );
    assert_eq!(place("topic"), "telegram:topic:-1001234:7");
    assert_eq!(
        place("group"),
        "telegram:group:-77:111",
        "one conversation per member"
    );
    assert_eq!(
        place("a reply in a supergroup"),
        "telegram:group:-1005:111",
        "a reply is no topic"
    );
    assert_eq!(place("private"), "telegram:dm:111");
    assert_eq!(place("private topic"), "telegram:dm:111:33");

    assert_eq!(
        forum.texts().len(),
        3,
        "General is sent without a thread id"
    );
    assert_eq!(forum.topic(7, "Seven").texts(), ["re: [Alice] topic"]);
    assert_eq!(supergroup.texts().len(), 2);
    assert_eq!(dm.texts(), ["re: private"]);
    assert_eq!(dm.topic(33, "Side").texts(), ["re: private topic"]);
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_shared_group_has_one_conversation_for_all() {
    let house = House::with_top(
        "group_sessions = \"shared\"",
        "[access]\ngroups = \"open\"\nrequire_mention = false\n",
    )
    .await;
    let gateway = house.open().await;
    let group = house.telegram.group(-77);
    group.says(ALICE, "my name is Alice").await;
    group.says(BOB, "who was that").await;
    house.settled(&gateway).await;
    let heard = house.model.last_request().messages;
    assert_eq!(
        heard.first().map(|(_, text)| text.as_str()),
        Some("[Alice] my name is Alice")
    );
    assert_eq!(
        house.ask(
            "SELECT group_concat(DISTINCT key) FROM messages JOIN places ON places.id = place_id"
        ),
        "telegram:group:-77"
    );
    gateway.shutdown().await;
}

/// A binding by name holds for every message of the topic, also for replies, which do not carry it,
/// and after a restart.
#[tokio::test]
async fn a_topic_bound_by_name_stays_bound() {
    let house = House::new(
        r#"
[access]
owners = ["telegram:111"]
require_mention = false
[agents.rose]
[[bindings]]
match = "telegram:group:-1001234"
agent = "main"
[[bindings]]
match = "telegram:group:-1001234"
name = "bug-*"
agent = "rose"
"#,
    )
    .await;
    let gateway = house.open().await;
    let bugs = house
        .telegram
        .forum(FORUM)
        .creates_topic(ALICE, "bug-7")
        .await;
    let first = bugs.says(ALICE, "first").await;
    house.close(gateway).await;
    let gateway = house.open().await;
    bugs.says(BOB, "a reply")
        .replying_to(first.message_id)
        .await;
    house.settled(&gateway).await;
    assert_eq!(asked(&house, "a reply"), "You are Rose (agent id: rose).");
    bugs.says(ALICE, "/whoami").await;
    let told = bugs.wait_for_sent(3).await.text;
    assert!(told.contains("This is the topic “bug-7”, "), "{told}");
    bugs.renames_topic(ALICE, "done").await;
    bugs.says(BOB, "after renaming")
        .replying_to(first.message_id)
        .await;
    house.settled(&gateway).await;
    assert_eq!(
        asked(&house, "after renaming"),
        "You are Main (agent id: main)."
    );
    gateway.shutdown().await;
}

/// Models refuse a message without text.
#[tokio::test]
async fn a_mention_alone_is_still_a_message() {
    let house =
        House::new("[[bindings]]\nmatch = \"telegram:group:-77\"\nagent = \"main\"\n").await;
    let gateway = house.open().await;
    house.telegram.group(-77).says(ALICE, "@parlor_bot").await;
    house.settled(&gateway).await;
    assert_eq!(house.model.last_request().last_text(), "@parlor_bot");
    gateway.shutdown().await;
}

/// `/agent@other_bot` is for another bot; a path with an `@` in it is for nobody but us.
#[tokio::test]
async fn a_path_with_an_at_sign_is_talk() {
    let house = House::new("[access]\ndms = \"open\"\n").await;
    let gateway = house.open().await;
    house
        .telegram
        .dm(ALICE)
        .says("/home/me@nas:/srv is full")
        .await;
    house.telegram.dm(ALICE).says("/agents@other_bot").await;
    house.settled(&gateway).await;
    assert_eq!(
        house.telegram.dm(ALICE).texts(),
        ["re: /home/me@nas:/srv is full"]
    );
    gateway.shutdown().await;
}

/// An entity that begins inside a character breaks teloxide's own reading of it.
#[tokio::test]
async fn an_entity_inside_a_character_costs_nobody_their_text() {
    let house = forum_of_three().await;
    let gateway = house.open().await;
    let rose = room(&house, 101, "Roses");
    let torn = serde_json::json!([{ "type": "mention", "offset": 1, "length": 3 }]);
    rose.says(ALICE, "😀hello").with("entities", torn).await;
    rose.says(ALICE, "still there?").await;
    house.settled(&gateway).await;
    assert_eq!(
        rose.texts(),
        ["re: [Alice] 😀hello", "re: [Alice] still there?"]
    );
    gateway.shutdown().await;
}
