//! Topics are made, closed, opened again and deleted, and groups become supergroups. Nothing that
//! was said gets lost.

use crate::support::House;
use crate::support::checker::Promise;
use crate::support::fake_telegram::{ALICE, BOB, CAROL, Fault, PARLOR_BOT, Place};
use crate::support::house::parlor;

const FORUM: i64 = -1_001_234;

/// A forum that is open, with a topic of Rose's.
const OPEN_FORUM: &str = r#"
[access]
owners = ["telegram:111"]
require_mention = false
[agents.main]
[agents.rose]
who = "guest"
name = "Rose"
emoji = "🌹"
[agents.night-desk]
who = "guest"
name = "Night Desk"
[[bindings]]
match = "telegram:topic:-1001234:101"
agent = "rose"
[[bindings]]
match = "telegram:group:-1001234"
agent = "main"
"#;

async fn open_forum() -> House {
    House::new(OPEN_FORUM).await
}

/// The same with more in `[telegram]`.
async fn forum_with(setting: &str, rest: &str) -> House {
    let house = House::new(rest).await;
    let config =
        std::fs::read_to_string(house.home.path().join("config.toml")).expect("it was written");
    house.write(
        "config.toml",
        &config.replace("[telegram]\n", &format!("[telegram]\n{setting}\n")),
    );
    house
}

fn roses(house: &House) -> Place {
    house.telegram.forum(FORUM).topic(101, "Roses")
}

const FAILED: &str = "SELECT count(*) FROM outbox WHERE state = 'failed'";
const TOLD: &str = "I could not answer in “Roses” (telegram:topic:-1001234:101): the topic is closed. The answer is kept, and so are \
                    those that follow. /retry there or here sends them again; parlor failed lists them.";

async fn run(house: &House, arguments: &[&str]) -> String {
    let output = parlor(house.home.path())
        .args(arguments)
        .output()
        .await
        .expect("the binary starts");
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[tokio::test]
async fn a_closed_topic_keeps_its_answers_and_tells_the_owner_once() {
    let house = open_forum().await;
    let gateway = house.open().await;
    let (rose, owner) = (roses(&house), house.telegram.dm(ALICE));
    rose.says(BOB, "before").await;
    rose.wait_for_sent(1).await;
    rose.closes_topic(CAROL).await;
    rose.says(CAROL, "one").await;
    rose.says(CAROL, "two").await;
    house.settled(&gateway).await;
    assert_eq!(owner.texts(), [TOLD]);
    assert_eq!(rose.texts(), ["re: [Bob] before"]);
    assert!(
        house.telegram.texts_in(FORUM, None).is_empty(),
        "nothing goes to General"
    );
    assert_eq!(house.ask(FAILED), "2");
    let kept = house.ask("SELECT group_concat(part) FROM outbox WHERE state = 'failed'");
    assert!(
        kept.contains("re: [Carol] one") && kept.contains("re: [Carol] two"),
        "{kept}"
    );
    gateway.shutdown().await;

    let gateway = house.open().await;
    rose.says(CAROL, "three").await;
    house.settled(&gateway).await;
    assert_eq!(
        owner.texts().len(),
        1,
        "also not told again after a restart"
    );

    rose.reopens_topic(CAROL).await;
    rose.wait_for_sent(4).await;
    house.settled(&gateway).await;
    assert_eq!(
        rose.texts(),
        [
            "re: [Bob] before",
            "re: [Carol] one",
            "re: [Carol] two",
            "re: [Carol] three"
        ]
    );
    assert_eq!(house.ask(FAILED), "0");

    rose.closes_topic(CAROL).await;
    rose.says(CAROL, "four").await;
    house.settled(&gateway).await;
    assert_eq!(owner.texts(), [TOLD, TOLD], "a new spell is told again");
    rose.reopens_topic(CAROL).await;
    rose.wait_for_sent(5).await;
    house.close(gateway).await;
}

#[tokio::test]
async fn a_deleted_topic_keeps_its_answers_and_nothing_goes_to_general() {
    let mut house = open_forum().await;
    let gateway = house.open().await;
    let (rose, owner) = (roses(&house), house.telegram.dm(ALICE));
    house.model.hold();
    rose.says(BOB, "are you there").await;
    house.model.wait_for_open(1).await;
    rose.deletes_topic();
    house.model.release();
    owner.wait_for_sent(1).await;
    house.settled(&gateway).await;
    assert!(
        owner.texts()[0].contains("“Roses” (telegram:topic:-1001234:101): the topic is gone."),
        "{:?}",
        owner.texts()
    );
    assert!(house.telegram.texts_in(FORUM, None).is_empty());

    owner.says("/retry").await;
    owner.wait_for_sent(3).await;
    house.settled(&gateway).await;
    assert_eq!(owner.texts()[1], "1 failed message is sent again.");
    assert!(
        owner.texts()[2].contains("the topic is gone"),
        "the owner who tried is told: {:?}",
        owner.texts()
    );
    assert_eq!(house.ask(FAILED), "1");
    gateway.shutdown().await;
    house.leave_leftovers();
}

#[tokio::test]
async fn an_owner_has_a_topic_or_everything_sent_again() {
    let house = open_forum().await;
    let gateway = house.open().await;
    let (rose, other, owner) = (
        roses(&house),
        house.telegram.forum(FORUM).topic(102, "Other"),
        house.telegram.dm(ALICE),
    );
    for place in [&rose, &other] {
        let closed = house
            .telegram
            .fail(
                "sendMessage",
                Fault::Refused(400, "Bad Request: TOPIC_CLOSED"),
            )
            .only_in(FORUM);
        closed.once();
        place.says(BOB, "hello").await;
        house.settled(&gateway).await;
    }
    assert_eq!(house.ask(FAILED), "2");
    rose.says(BOB, "/retry").await;
    assert_eq!(
        rose.wait_for_sent(1).await.text,
        "Only an owner can resend failed messages."
    );
    rose.says(ALICE, "/retry").await;
    rose.wait_for_sent(3).await;
    assert_eq!(
        rose.texts()[1..],
        ["re: [Bob] hello", "1 failed message is sent again."]
    );
    assert!(other.texts().is_empty(), "here means here");
    owner.says("/retry").await;
    assert_eq!(other.wait_for_sent(1).await.text, "re: [Bob] hello");
    owner.says("/retry").await;
    house.settled(&gateway).await;
    assert_eq!(
        owner.texts()[2..],
        [
            "1 failed message is sent again.",
            "There are no failed messages."
        ]
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn the_command_line_lists_what_failed_and_the_next_start_sends_it() {
    let house = open_forum().await;
    // A failed row goes out later.
    house.give_up(Promise::InOrder);
    let gateway = house.open().await;
    let (rose, _owner) = (roses(&house), house.telegram.dm(ALICE));
    house
        .telegram
        .fail(
            "sendMessage",
            Fault::Refused(400, "Bad Request: TOPIC_CLOSED"),
        )
        .only_in(FORUM)
        .times(2);
    rose.says(BOB, "one").await;
    rose.says(BOB, "two").await;
    house.settled(&gateway).await;
    let listed = run(&house, &["failed"]).await;
    assert!(
        listed.contains("telegram:topic:-1001234:101") && listed.contains("the topic is closed"),
        "{listed}"
    );
    let rows: serde_json::Value =
        serde_json::from_str(&run(&house, &["failed", "list", "--json"]).await).expect("JSON");
    assert_eq!(
        rows[1]["place"],
        serde_json::json!({ "id": "telegram:topic:-1001234:101", "name": "Roses" })
    );
    let first = rows[0]["id"].to_string();

    assert_eq!(
        run(&house, &["failed", "retry", "telegram:topic:-1001234:7"]).await,
        "error: no undelivered message has this number or place\nhint: `parlor failed` lists undelivered messages\n"
    );
    assert!(
        run(&house, &["failed", "retry", "tulips"])
            .await
            .starts_with("error: no place is called `tulips`")
    );
    insta::assert_snapshot!(run(&house, &["failed", "retry", &first]).await, @"1 message is being sent again.");
    rose.wait_for_sent(1).await;
    rose.says(BOB, "three").await;
    house.settled(&gateway).await;
    assert_eq!(rose.texts(), ["re: [Bob] one", "re: [Bob] three"]);
    gateway.shutdown().await;
    insta::assert_snapshot!(run(&house, &["failed", "retry"]).await, @"1 message will be sent again at the next start of the gateway.");
    let gateway = house.open().await;
    rose.wait_for_sent(3).await;
    gateway.settled().await;
    gateway.shutdown().await;
    assert_eq!(
        run(&house, &["failed"]).await,
        "Everything was delivered.\n"
    );
}

#[tokio::test]
async fn an_owner_who_cannot_be_told_is_not_told_about_that() {
    let mut house = open_forum().await;
    let gateway = house.open().await;
    let (rose, owner) = (roses(&house), house.telegram.dm(ALICE));
    owner.blocks_bot().await;
    rose.closes_topic(CAROL).await;
    rose.says(CAROL, "one").await;
    rose.says(CAROL, "two").await;
    house.settled(&gateway).await;
    assert_eq!(
        house.ask("SELECT count(*) FROM outbox"),
        "3",
        "two answers and one notice"
    );
    assert_eq!(house.ask(FAILED), "3");
    gateway.shutdown().await;
    house.leave_leftovers();
}

#[tokio::test]
async fn a_private_topic_that_telegram_lost_is_answered_in_the_chat() {
    let house = open_forum().await;
    let process = house.spawn().await;
    let topic = house.telegram.dm(ALICE).topic(33, "Plans");
    house
        .telegram
        .fail("sendMessage", Fault::ThreadNotFound)
        .once();
    topic.says("hello").await;
    let sent = house.telegram.dm(ALICE).wait_for_sent(1).await;
    assert_eq!((sent.text.as_str(), sent.thread), ("re: hello", None));
    house
        .wait_until_stored("SELECT group_concat(state) FROM outbox", "sent")
        .await;
    process
        .wait_for_log("Telegram does not know this private topic")
        .await;
    assert_eq!(process.stop().await, 0);
}

#[tokio::test]
async fn a_new_topic_called_like_an_agent_is_given_to_it_where_its_maker_may() {
    let locked =
        "[[bindings]]\nmatch = \"telegram:group:-1009\"\nagent = \"main\"\nlocked = true\n";
    let house = forum_with("auto_bind = true", &format!("{OPEN_FORUM}{locked}")).await;
    let gateway = house.open().await;
    let forum = house.telegram.forum(FORUM);
    let by_name = forum.creates_topic(BOB, "night desk").await;
    assert_eq!(
        by_name.wait_for_sent(1).await.text,
        "Night Desk answers here from now on. /agent reset undoes that."
    );
    let by_id = forum.creates_topic(BOB, "ROSE").await;
    by_id.wait_for_sent(1).await;
    let other = forum.creates_topic(BOB, "Rose garden").await;
    let by_bot = forum.creates_topic(PARLOR_BOT, "rose").await;
    let (in_locked, in_unbound) = (house.telegram.forum(-1009), house.telegram.forum(-1008));
    let silent = [
        other,
        by_bot,
        in_locked.creates_topic(BOB, "rose").await,
        in_unbound.creates_topic(BOB, "rose").await,
        in_unbound.creates_topic(ALICE, "rose").await,
    ];
    let by_owner = in_locked.creates_topic(ALICE, "rose").await;
    by_owner.wait_for_sent(1).await;
    house.settled(&gateway).await;
    for place in silent {
        assert!(place.texts().is_empty(), "{:?}", place.texts());
    }
    assert_eq!(house.ask("SELECT count(*) FROM pins"), "3");
    assert_eq!(
        house.ask("SELECT set_by FROM pins WHERE agent_uid = (SELECT uid FROM agents WHERE slug = 'night-desk')"),
        "telegram:222"
    );
    gateway.shutdown().await;

    let gateway = house.open().await;
    by_name.says(BOB, "/status").await;
    let status = by_name.wait_for_sent(2).await.text;
    assert!(
        status.starts_with("Night Desk answers here. You chose Night Desk just now."),
        "{status}"
    );
    house.close(gateway).await;
}

#[tokio::test]
async fn without_auto_bind_a_name_is_only_a_name() {
    let house = open_forum().await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(FORUM).creates_topic(BOB, "rose").await;
    topic.says(BOB, "who is there").await;
    topic.wait_for_sent(1).await;
    house.settled(&gateway).await;
    assert_eq!(house.ask("SELECT count(*) FROM pins"), "0");
    assert_eq!(topic.texts(), ["re: [Bob] who is there"]);
    gateway.shutdown().await;
}

/// Topics that nothing opens: made, renamed and written in.
#[tokio::test]
async fn a_closed_group_leaves_no_names_behind() {
    let house = House::new("[access]\nowners = [\"telegram:111\"]\n[agents.rose]\n").await;
    let gateway = house.open().await;
    let forum = house.telegram.forum(-1009);
    let closed = forum.creates_topic(BOB, "zinnober").await;
    closed.says(BOB, "@parlor_bot hello").await;
    closed.renames_topic(BOB, "zinnober two").await;
    let opened = forum.creates_topic(BOB, "roses").await;
    house.telegram.all_confirmed().await;
    assert_eq!(
        house.ask("SELECT count(*) FROM places WHERE name IS NOT NULL"),
        "0"
    );
    // The names are learned from the next message once the place is open.
    opened.says(ALICE, "/agent rose").await;
    opened.wait_for_sent(1).await;
    opened.says(ALICE, "@parlor_bot hello").await;
    opened.wait_for_sent(2).await;
    house.close(gateway).await;
    assert_eq!(
        house.ask("SELECT group_concat(name) FROM (SELECT name FROM places ORDER BY name)"),
        "Chat -1009,roses",
        "of the open place and its group alone"
    );
    assert_eq!(
        house.ask("SELECT count(*) FROM inbox WHERE payload LIKE '%zinnober%'"),
        "0"
    );
}

/// A name is a line for people: of two lines and a sequence for a terminal, the letters stay.
#[tokio::test]
async fn a_topics_name_is_stored_without_control_characters() {
    let house = House::new("[access]\ngroups = \"open\"\n").await;
    let gateway = house.open().await;
    let forum = house.telegram.forum(-1009);
    forum
        .creates_topic(BOB, "plans\u{1b}]52;c;AA\u{7}\n\u{202e}b\u{9b}2J")
        .await;
    house.telegram.all_confirmed().await;
    house.close(gateway).await;
    assert_eq!(house.ask("SELECT name FROM places"), "plans]52;c;AA b2J");
}

const OLD: i64 = -5;
const NEW: i64 = -1_000_005;

/// A plain group that belongs to Rose.
const GROUP: &str = r#"
[access]
owners = ["telegram:111"]
require_mention = false
[agents.main]
[agents.rose]
name = "Rose"
[agents.ada]
who = "guest"
[[bindings]]
match = "telegram:group:-5"
agent = "rose"
"#;

const BECAME: &str = "The group telegram:group:-5 is now the supergroup telegram:group:-1000005. Everything here goes on in it, and \
                      bindings still count. Please write -1000005 for -5 in config.toml, line ";

/// Who was asked, and what they read.
fn last_turn(house: &House) -> (String, Vec<String>) {
    let request = house.model.last_request();
    (
        request.system.lines().next().unwrap_or_default().to_owned(),
        request.messages.into_iter().map(|(_, text)| text).collect(),
    )
}

/// Everything that names the old group, but for what is over.
fn left_behind(house: &House) -> String {
    house.ask(
        "WITH old AS (SELECT id, active_at FROM places WHERE key LIKE 'telegram:group:-5%')
         SELECT (SELECT count(*) FROM old WHERE active_at IS NOT NULL)
              + (SELECT count(*) FROM messages WHERE place_id IN (SELECT id FROM old))
              + (SELECT count(*) FROM pins WHERE place_id IN (SELECT id FROM old))
              + (SELECT count(*) FROM inbox WHERE state = 'waiting' AND place_id IN (SELECT id FROM old))
              + (SELECT count(*) FROM outbox WHERE state <> 'sent' AND place_id IN (SELECT id FROM old))",
    )
}

#[tokio::test]
async fn a_group_that_becomes_a_supergroup_goes_on_there_in_either_order() {
    for new_chat_first in [false, true] {
        let house = House::new(GROUP).await;
        let gateway = house.open().await;
        let (group, owner) = (house.telegram.group(OLD), house.telegram.dm(ALICE));
        group.says(BOB, "I am Bob").await;
        group.wait_for_sent(1).await;
        group.says(CAROL, "/agent ada").await;
        group.wait_for_sent(2).await;
        let new = house.telegram.supergroup(NEW);
        if new_chat_first {
            new.service(CAROL, "migrate_from_chat_id", OLD.into()).await;
        }
        group.migrates_to(NEW).await;
        new.says(BOB, "who am I").await;
        assert_eq!(new.wait_for_sent(1).await.text, "re: who am I");
        house.settled(&gateway).await;
        let (agent, heard) = last_turn(&house);
        assert_eq!(
            agent, "You are Rose (agent id: rose).",
            "the binding follows"
        );
        assert_eq!(
            heard,
            ["I am Bob", "re: I am Bob", "who am I"],
            "so does the conversation"
        );
        assert_eq!(owner.texts().len(), 1, "told once: {:?}", owner.texts());
        assert!(owner.texts()[0].starts_with(BECAME), "{:?}", owner.texts());
        assert_eq!(left_behind(&house), "0");
        gateway.shutdown().await;

        let gateway = house.open().await;
        new.says(CAROL, "and I").await;
        new.wait_for_sent(2).await;
        house.settled(&gateway).await;
        assert_eq!(
            last_turn(&house).0,
            "You are Ada (agent id: ada).",
            "pins follow"
        );
        new.says(BOB, "still Rose?").await;
        new.wait_for_sent(3).await;
        house.settled(&gateway).await;
        assert_eq!(
            last_turn(&house).0,
            "You are Rose (agent id: rose).",
            "also after a restart"
        );
        assert_eq!(owner.texts().len(), 1);
        gateway.shutdown().await;
    }
}

#[tokio::test]
async fn the_owner_is_told_the_line_and_explain_shows_why_the_old_binding_counts() {
    let house = House::new(GROUP).await;
    let gateway = house.open().await;
    house.telegram.dm(ALICE);
    house.telegram.group(OLD).migrates_to(NEW).await;
    house.close(gateway).await;
    let config =
        std::fs::read_to_string(house.home.path().join("config.toml")).expect("it is there");
    let line = config
        .lines()
        .position(|line| line.contains("telegram:group:-5"))
        .expect("it is named")
        + 1;
    assert_eq!(
        house.telegram.dm(ALICE).texts(),
        [format!("{BECAME}{line}.")]
    );
    let told = run(&house, &["route", "explain", "telegram:group:-1000005:222"]).await;
    let (routed, _) = told
        .split_once("\nmodel: ")
        .expect("a model behind the rules");
    insta::assert_snapshot!(routed, @"
    Rose answers in telegram:group:-1000005:222, but no gateway runs right now (`parlor run` starts it). Line 20 of config.toml gives `telegram:group:-5` to Rose.
    Asked for telegram:222, a guest.

    telegram:group:-1000005:222 belongs to rose
    because of config.toml line 20: group telegram:group:-5

    formerly: telegram:group:-5

    pin      telegram:group:-1000005:222  no pin
    group    telegram:group:-5            config.toml line 20, rose: decides
    default  default_agent                main: not needed
    no binding for: member, group, person, platform
    ");
}

#[tokio::test]
async fn a_message_before_the_move_in_the_same_poll_is_answered_in_the_new_chat() {
    let house = House::new(GROUP).await;
    house.telegram.dm(ALICE);
    let group = house.telegram.group(OLD);
    group.says(BOB, "just before").await;
    let new = group.migrates_to(NEW).await;
    new.says(BOB, "just after").await;
    let gateway = house.open().await;
    new.wait_for_sent(2).await;
    house.settled(&gateway).await;
    assert_eq!(
        last_turn(&house).1,
        ["just before", "re: just before", "just after"]
    );
    assert_eq!(left_behind(&house), "0");
    gateway.shutdown().await;
}

#[tokio::test]
async fn an_answer_under_way_while_its_group_moves_arrives_in_the_new_chat() {
    let house = House::new(GROUP).await;
    let gateway = house.open().await;
    house.telegram.dm(ALICE);
    let group = house.telegram.group(OLD);
    house.model.hold();
    group.says(BOB, "one").await;
    house.model.wait_for_open(1).await;
    group.says(BOB, "two").await;
    let new = group.migrates_to(NEW).await;
    house.all_in_their_lanes().await;
    house.model.release();
    new.wait_for_sent(2).await;
    house.settled(&gateway).await;
    assert_eq!(new.texts(), ["re: one", "re: two"]);
    assert_eq!(last_turn(&house).1, ["one", "re: one", "two"]);
    assert!(group.texts().is_empty());
    assert_eq!(left_behind(&house), "0");
    gateway.shutdown().await;
}

#[tokio::test]
async fn what_waits_when_a_moved_group_meets_sigkill_is_answered_in_the_new_chat() {
    let house = House::new(GROUP).await;
    let process = house.spawn().await;
    house.telegram.dm(ALICE);
    let group = house.telegram.group(OLD);
    house.model.hold();
    group.says(BOB, "one").await;
    house.model.wait_for_open(1).await;
    let new = group.migrates_to(NEW).await;
    house
        .wait_until_stored("SELECT count(*) FROM chat_aliases", "1")
        .await;
    let waiting =
        "SELECT key FROM inbox JOIN places ON places.id = place_id WHERE state = 'waiting'";
    assert_eq!(house.ask(waiting), "telegram:group:-1000005:222");
    process.kill().await;
    house.model.release();
    let process = house.spawn().await;
    assert_eq!(new.wait_for_sent(1).await.text, "re: one");
    assert_eq!(process.stop().await, 0);
}

/// The service messages may never come, or long after.
#[tokio::test]
async fn a_send_that_is_told_of_the_move_goes_to_the_new_chat() {
    let house = House::new(GROUP).await;
    let gateway = house.open().await;
    let (group, new, owner) = (
        house.telegram.group(OLD),
        house.telegram.supergroup(NEW),
        house.telegram.dm(ALICE),
    );
    group.says(BOB, "zero").await;
    group.wait_for_sent(1).await;
    house
        .telegram
        .fail("sendMessage", Fault::Refused(400, "Bad Request: not now"))
        .once();
    group.says(BOB, "kept").await;
    house.settled(&gateway).await;
    let gone = house
        .telegram
        .fail("sendMessage", Fault::MigratedTo(NEW))
        .only_in(OLD)
        .until_dropped();
    group.says(BOB, "one").await;
    assert_eq!(new.wait_for_sent(1).await.text, "re: one");
    house.settled(&gateway).await;
    group.says(BOB, "two").await;
    new.wait_for_sent(2).await;
    owner.says("/retry").await;
    new.wait_for_sent(3).await;
    house.settled(&gateway).await;
    assert_eq!(
        new.texts(),
        ["re: one", "re: two", "re: kept"],
        "what had failed follows too"
    );
    assert_eq!(last_turn(&house).1.len(), 7, "one conversation");
    assert!(owner.texts()[0].starts_with(BECAME), "{:?}", owner.texts());
    assert_eq!(
        house
            .telegram
            .calls("sendMessage")
            .iter()
            .filter(|call| call.params["chat_id"] == OLD)
            .count(),
        3
    );
    assert_eq!(left_behind(&house), "0");
    drop(gone);
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_conversation_that_began_in_the_new_chat_is_joined_with_the_old_one() {
    let house = House::with_top(
        "",
        &format!("{GROUP}[[bindings]]\nmatch = \"telegram:group:-1000005\"\nagent = \"ada\"\n"),
    )
    .await;
    let gateway = house.open().await;
    house.telegram.dm(ALICE);
    let (group, new) = (house.telegram.group(OLD), house.telegram.supergroup(NEW));
    for text in ["forgotten", "/new", "old"] {
        group.says(BOB, text).await;
        house.settled(&gateway).await;
    }
    new.says(BOB, "early").await;
    new.wait_for_sent(1).await;
    house.settled(&gateway).await;
    group.migrates_to(NEW).await;
    new.says(BOB, "late").await;
    new.wait_for_sent(2).await;
    house.settled(&gateway).await;
    let (agent, heard) = last_turn(&house);
    assert_eq!(
        agent, "You are Ada (agent id: ada).",
        "a binding for the new chat is stronger"
    );
    assert_eq!(
        heard,
        ["old\n\n[@rose] re: old\n\nearly", "re: early", "late"]
    );
    gateway.shutdown().await;
}
