//! One truth about a place: `parlor route explain` and the commands say who answers, or why nobody,
//! and the gateway then does just that.

use insta::assert_snapshot;
use serde_json::Value;

use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB, CAROL, Place, User};
use crate::support::house::parlor;

/// Alice owns the house, Carol is an admin, Bob a guest.
const TEAM: &str = r#"
[access]
owners = ["telegram:111"]
[people.carol]
ids = ["telegram:333"]
role = "admin"
[agents.main]
[agents.rose]
who = "guest"
[agents.ada]
[agents.eve]
who = "owner"
[agents.poor]
who = "guest"
[agents.poor.limits]
tokens_per_day = 100
[[bindings]]
match = "telegram:topic:-1001:101"
agent = "rose"
[[bindings]]
match = "telegram:topic:-1001:102"
agent = "eve"
[[bindings]]
match = "telegram:topic:-1001:103"
agent = "main"
locked = true
[[bindings]]
match = "telegram:topic:-1001:104"
agent = "poor"
[[bindings]]
match = "telegram:topic:-1001:105"
agent = "rose"
require_mention = false
"#;

/// What `parlor route explain --json` says about a person in a place.
async fn explained(house: &House, key: &str, user: User) -> Value {
    let person = format!("telegram:{}", user.id);
    let mut command = parlor(house.home.path());
    command.args(["route", "explain", key, "--user", &person, "--json"]);
    let output = command.output().await.expect("parlor runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let value: Value = serde_json::from_str(&text).expect("JSON");
    value["answer"].clone()
}

/// The agent that the model was asked as by what was written, or nobody.
async fn asked(
    house: &House,
    gateway: &parlor::gateway::Gateway,
    write: impl Future<Output = ()>,
) -> Option<String> {
    let before = house.model.journal().len();
    write.await;
    house.settled(gateway).await;
    let calls = house.model.journal();
    assert!(calls.len() <= before + 1, "one message, one call");
    (calls.len() > before).then(|| {
        let system = house.model.last_request().system;
        let id = system.split("(agent id: ").nth(1).unwrap_or_default();
        id.split(')').next().unwrap_or_default().to_owned()
    })
}

/// The truth for one person in one topic, in a word: an agent's id or the reason.
async fn check(
    house: &House,
    gateway: &parlor::gateway::Gateway,
    topic: &Place,
    number: i64,
    user: User,
) -> String {
    let answer = explained(house, &format!("telegram:topic:-1001:{number}"), user).await;
    let promised = answer["agent"]["id"].as_str().map(str::to_owned);
    let question = format!("@parlor_bot a question of {}", user.first_name);
    let done = asked(house, gateway, async {
        topic.says(user, &question).await;
    })
    .await;
    assert_eq!(promised, done, "{answer:#}");
    let unasked = asked(house, gateway, async {
        topic.says(user, "talk among people").await;
    })
    .await;
    let needs_mention = answer["needs_mention"].as_bool().expect("a yes or no");
    let expected = promised.clone().filter(|_| !needs_mention);
    assert_eq!(expected, unasked, "without a mention: {answer:#}");
    let silence = answer["silence"].as_str().map(str::to_owned);
    promised.or(silence).expect("an agent or a reason")
}

#[tokio::test]
async fn what_is_said_about_a_topic_is_what_happens_there() {
    let house = House::with_top("default_agent = \"eve\"", TEAM).await;
    let gateway = house.open().await;
    let forum = house.telegram.forum(-1001);
    // Told that Poor is poor.
    let _owner = house.telegram.dm(ALICE);
    // What an owner does first, and the truth for Bob, Carol and Alice after that.
    let cases: [(i64, &[&str], [&str; 3]); 12] = [
        (101, &[], ["rose", "rose", "rose"]),
        (101, &["/agent main"], ["main", "main", "main"]),
        (101, &["/agent reset"], ["rose", "rose", "rose"]),
        (102, &[], ["eve", "eve", "eve"]),
        (103, &[], ["main", "main", "main"]),
        (
            104,
            &["@parlor_bot hi"],
            ["over_budget", "over_budget", "over_budget"],
        ),
        (105, &[], ["rose", "rose", "rose"]),
        (106, &[], ["place_closed", "place_closed", "place_closed"]),
        (106, &["/agent rose"], ["rose", "rose", "rose"]),
        (
            106,
            &["/agent reset"],
            ["not_for_you", "not_for_you", "eve"],
        ),
        (106, &["/agent main"], ["main", "main", "main"]),
        (
            106,
            &["/agent close"],
            ["place_closed", "place_closed", "place_closed"],
        ),
    ];
    for (number, first, expected) in cases {
        let topic = forum.topic(number, "A topic");
        for line in first {
            topic.says(ALICE, line).await;
            house.settled(&gateway).await;
        }
        for (user, expected) in [BOB, CAROL, ALICE].into_iter().zip(expected) {
            let found = check(&house, &gateway, &topic, number, user).await;
            assert_eq!(
                found, expected,
                "{number} after {first:?} for {}",
                user.first_name
            );
        }
    }
    gateway.shutdown().await;
}

#[tokio::test]
async fn what_is_said_about_a_private_chat_is_what_happens_there() {
    for (dms, expected) in [
        ("pairing", "not_let_in"),
        ("closed", "private_chats_closed"),
        ("open", "main"),
    ] {
        let access = format!("[access]\nowners = [\"telegram:111\"]\ndms = \"{dms}\"\n");
        let house = House::new(&format!("{access}[agents.main]\n")).await;
        let gateway = house.open().await;
        for (user, expected) in [(BOB, expected), (ALICE, "main")] {
            let key = format!("telegram:dm:{}", user.id);
            let answer = explained(&house, &key, user).await;
            let promised = answer["agent"]["id"].as_str().map(str::to_owned);
            let done = asked(&house, &gateway, async {
                house.telegram.dm(user).says("hello").await;
            })
            .await;
            assert_eq!(promised, done, "{dms}: {answer:#}");
            let silence = answer["silence"].as_str().map(str::to_owned);
            assert_eq!(promised.or(silence).as_deref(), Some(expected), "{dms}");
        }
        gateway.shutdown().await;
    }
}

/// The last words in a topic after a line of a person.
async fn reply(
    house: &House,
    gateway: &parlor::gateway::Gateway,
    topic: &Place,
    user: User,
    line: &str,
) -> String {
    let before = topic.texts().len();
    topic.says(user, line).await;
    house.settled(gateway).await;
    topic.texts().split_off(before).join("\n---\n")
}

/// The walk of a newcomer: one tap closed the room, and every command said the contrary.
#[tokio::test]
async fn a_guests_reset_leaves_the_place_open_and_only_an_admin_closes_it() {
    let house = House::new(TEAM).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(107, "Writing");
    let says = |user, line| reply(&house, &gateway, &topic, user, line);
    insta::assert_snapshot!(says(ALICE, "/whoami").await, @r#"
    You are Alice (owner), telegram:111.
    This is the topic “Writing”, telegram:topic:-1001:107.
    Nobody answers here: no binding or /agent opens this topic (groups = "bound"). /agent with an agent's name opens it; /bind with one opens it for good.

    To open this topic for good, write /bind main, or add this to config.toml:
    [[bindings]]
    match = "telegram:topic:-1001:107"
    agent = "main"
    For the whole group, write telegram:group:-1001.
    "#);
    insta::assert_snapshot!(says(ALICE, "/agents").await, @r#"
    • Main · fake/any
    • Rose · fake/any
    • Ada · fake/any
    • Poor · fake/any

    Nobody answers here: no binding or /agent opens this topic (groups = "bound"). /agent with an agent's name opens it; /bind with one opens it for good.
    "#);
    insta::assert_snapshot!(says(ALICE, "/agent").await, @r#"Nobody answers here: no binding or /agent opens this topic (groups = "bound"). /agent with an agent's name opens it; /bind with one opens it for good."#);
    insta::assert_snapshot!(says(ALICE, "/status").await.lines().next().unwrap(), @r#"Nobody answers here: no binding or /agent opens this topic (groups = "bound"). /agent with an agent's name opens it; /bind with one opens it for good."#);
    assert_eq!(says(BOB, "/agent rose").await, "", "a guest opens nothing");
    insta::assert_snapshot!(says(CAROL, "/agent rose").await, @"Rose answers here from now on, and this topic is open to everybody in it. /agent reset undoes the switch, /agent close closes this topic again.");
    insta::assert_snapshot!(says(BOB, "/agent close").await, @"Only an owner or admin can close a place.");
    insta::assert_snapshot!(says(BOB, "/agent reset").await, @"The switch is undone. Main answers here when mentioned or replied to. Main is the default agent.");
    assert_eq!(says(BOB, "@parlor_bot hi").await, "re: [Bob] hi");
    insta::assert_snapshot!(says(ALICE, "/agent reset").await, @"
    Nothing was switched here. Main answers here when mentioned or replied to. Main is the default agent.
    /agent close closes this topic.
    ");
    insta::assert_snapshot!(says(ALICE, "/agent rose once").await, @"Rose takes the next message here, and only that one.");
    insta::assert_snapshot!(says(ALICE, "/agent close").await, @"This topic is closed now. I'll stay quiet here until an owner or admin writes /agent.");
    insta::assert_snapshot!(says(ALICE, "/agent close").await, @"This topic is closed already.");
    assert_eq!(says(BOB, "@parlor_bot hi").await, "");
    insta::assert_snapshot!(says(ALICE, "/agent rose once").await, @"Rose takes the next message here, and only that one. After that, this topic is closed as before.");
    insta::assert_snapshot!(says(ALICE, "/agent for 2h rose").await, @"Nobody answers in this topic yet. Open it first: /agent with an agent's name does that.");
    assert!(says(BOB, "@parlor_bot hi").await.starts_with("re: "));
    assert_eq!(says(BOB, "@parlor_bot hi").await, "", "closed as before");
    // A switch for good opens the topic, also while another agent has the next message.
    says(ALICE, "/agent poor once").await;
    insta::assert_snapshot!(says(ALICE, "/agent rose").await, @"Rose answers here from now on, and this topic is open to everybody in it. /agent reset undoes the switch, /agent close closes this topic again.");
    assert!(says(BOB, "@parlor_bot hi").await.starts_with("re: "));
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_guest_cannot_close_a_place_by_giving_it_to_an_agent_for_others() {
    let house = House::with_top("default_agent = \"eve\"", TEAM).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(107, "Writing");
    let says = |user, line| reply(&house, &gateway, &topic, user, line);
    says(ALICE, "/agent rose").await;
    insta::assert_snapshot!(says(BOB, "/agent reset").await, @"After that, Eve would answer here, and not everybody in this place may use Eve. Only an owner or admin can undo this switch.");
    topic.says(BOB, "/agent").await;
    house.settled(&gateway).await;
    let shown = topic.wait_for_sent(3).await;
    let labels: Vec<String> = crate::support::fake_telegram::buttons(&shown.reply_markup)
        .into_iter()
        .map(|(label, _)| label)
        .collect();
    assert_eq!(labels, ["Poor"], "the way back is not offered");
    insta::assert_snapshot!(says(ALICE, "/agent reset").await, @"
    The switch is undone. Eve answers here when mentioned or replied to. Eve is the default agent.
    /agent close closes this topic.
    ");
    insta::assert_snapshot!(says(BOB, "/agents").await, @"
    • Rose · fake/any
    • Poor · fake/any

    Eve answers here, but not you: Eve is for owners.

    /agent rose once has Rose take the next message here.
    ");
    insta::assert_snapshot!(says(BOB, "/whoami").await, @"
    You are Bob (guest), telegram:222.
    This is the topic “Writing”, telegram:topic:-1001:107.
    Eve answers here, but not you: Eve is for owners.
    ");
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_place_stays_open_where_the_config_opens_it() {
    let house = House::new(TEAM).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(101, "Roses");
    let says = |user, line| reply(&house, &gateway, &topic, user, line);
    insta::assert_snapshot!(says(ALICE, "/agent close").await, @"This topic stays open: the binding for telegram:topic:-1001:101 in line 27 of config.toml opens it.");
    // The lines to paste are shown only where the checker takes them.
    insta::assert_snapshot!(says(ALICE, "/whoami").await, @"
    You are Alice (owner), telegram:111.
    This is the topic “Roses”, telegram:topic:-1001:101.
    Rose answers here when mentioned or replied to. Line 27 of config.toml gives this topic to Rose.
    Rose uses fake/any here (the default model).
    ");
    insta::assert_snapshot!(says(CAROL, "/whoami").await, @"
    You are Carol (admin), telegram:333.
    This is the topic “Roses”, telegram:topic:-1001:101.
    Rose answers here when mentioned or replied to. Line 27 of config.toml gives this topic to Rose.
    Rose uses fake/any here (the default model).
    ");
    let dm = house.telegram.dm(ALICE);
    dm.says("/agent close").await;
    house.settled(&gateway).await;
    insta::assert_snapshot!(dm.texts().join("\n"), @"A private chat can't be closed here. dms under [access] in config.toml decides who may write.");
    gateway.shutdown().await;
}

/// The lines that `/whoami` shows are put into the file as they are.
#[tokio::test]
async fn the_lines_of_whoami_are_accepted_by_config_check() {
    let house = House::new(TEAM).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(107, "Writing");
    let told = reply(&house, &gateway, &topic, ALICE, "/whoami").await;
    gateway.shutdown().await;
    let block = told.split("[[bindings]]").nth(1).expect("lines to paste");
    let lines: Vec<&str> = block.lines().skip(1).take(2).collect();
    let path = house.home.path().join("config.toml");
    let written = std::fs::read_to_string(&path).unwrap();
    let edited = format!("{written}\n[[bindings]]\n{}\n", lines.join("\n"));
    house.write("config.toml", &edited);
    let mut command = parlor(house.home.path());
    let output = command.args(["config", "check"]).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// The log does not promise what a limit takes back.
#[tokio::test]
async fn the_log_names_no_answer_at_a_limit() {
    let mut house = House::new(TEAM).await;
    let process = house.spawn().await;
    let topic = house.telegram.forum(-1001).topic(104, "Poor");
    let _owner = house.telegram.dm(ALICE);
    topic.says(BOB, "@parlor_bot one").await;
    topic.wait_for_sent(1).await;
    topic.says(BOB, "@parlor_bot two").await;
    topic.wait_for_sent(2).await;
    process.wait_for_log("over budget").await;
    let log = process.log();
    assert_eq!(log.matches("poor answered").count(), 1, "{log}");
    house.leave_leftovers();
    process.stop().await;
}

#[tokio::test]
async fn explain_tells_the_truth_first_and_invents_nobody() {
    let house = House::new(TEAM).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(101, "Roses");
    reply(&house, &gateway, &topic, ALICE, "/agent main").await;
    reply(&house, &gateway, &topic, BOB, "@parlor_bot hi").await;
    gateway.shutdown().await;
    let run = async |arguments: &[&str]| {
        let mut command = parlor(house.home.path());
        let output = command
            .args(["route", "explain"])
            .args(arguments)
            .output()
            .await
            .unwrap();
        let today = chrono::Local::now().format("%-d %b %Y").to_string();
        String::from_utf8_lossy(&output.stdout).replace(&today, "(today)")
            + &String::from_utf8_lossy(&output.stderr)
    };
    let first = async |arguments: &[&str]| {
        let told = run(arguments).await;
        told.lines().next().unwrap_or_default().to_owned()
    };
    let told = run(&["telegram:topic:-1001:101", "--user", "telegram:222"]).await;
    let (routed, _) = told
        .split_once("\nmodel: ")
        .expect("a model behind the rules");
    insta::assert_snapshot!(routed, @"
    Main answers in Roses (telegram:topic:-1001:101) when mentioned or replied to, but no gateway runs right now (`parlor run` starts it). Alice chose Main just now.
    Asked for Bob (telegram:222), a guest.

    telegram:topic:-1001:101 belongs to main
    because Alice (telegram:111) chose it

    name: Roses

    pin          telegram:topic:-1001:101  main, set by Alice (telegram:111): decides
    exact topic  telegram:topic:-1001:101  config.toml line 27, rose: would decide without the pin
    default      default_agent             main: not needed
    no binding for: member, name or tag, every topic, group, person, platform
    ");
    insta::assert_snapshot!(first(&["telegram:topic:-1001:107"]).await, @r#"Nobody answers in telegram:topic:-1001:107: no binding or `/agent` opens this topic (groups = "bound"). `parlor pin telegram:topic:-1001:107 main` opens it, and so does `/bind main`, written there by an owner."#);
    let closed = run(&["telegram:topic:-1001:107"]).await;
    assert!(!closed.contains("tools: "), "{closed}");
    let (routed, abilities) = closed.split_once("\nmodel: ").expect("a model");
    insta::assert_snapshot!(routed, @r#"
    Nobody answers in telegram:topic:-1001:107: no binding or `/agent` opens this topic (groups = "bound"). `parlor pin telegram:topic:-1001:107 main` opens it, and so does `/bind main`, written there by an owner.
    Asked for a guest; --as names a role or a person.

    Otherwise main would answer in telegram:topic:-1001:107
    because it is the default agent

    pin      telegram:topic:-1001:107  no pin
    default  default_agent             main: decides
    no binding for: exact topic, name or tag, every topic, group, platform

    If it answered, Main (main) would have:
    "#);
    assert!(abilities.contains("--all adds "), "{abilities}");
    let whole = run(&["telegram:topic:-1001:107", "--all"]).await;
    assert!(
        whole.contains("every topic  telegram:topic:-1001:*    no binding"),
        "{whole}"
    );
    assert!(whole.contains("\ntools: "), "{whole}");
    // Tools that are missing for the same reason are told together.
    let without = whole.lines().filter(|line| line.starts_with("without "));
    let without: Vec<&str> = without.collect();
    assert!(without.len() < 4, "{whole}");
    insta::assert_snapshot!(first(&["telegram:dm:222"]).await, @"Nobody answers Bob (telegram:222) in Bob's private chat (telegram:dm:222): the bot is private, and Bob (telegram:222) has not been let in yet. A first message gets a code for `parlor pair CODE`.");
    insta::assert_snapshot!(first(&["telegram:dm:222", "--as", "member"]).await, @"Main answers in Bob's private chat (telegram:dm:222), but no gateway runs right now (`parlor run` starts it). Main is the default agent.");
    assert_eq!(
        first(&["telegram:topic:-1001:101", "--as", "Bob"]).await,
        first(&["telegram:topic:-1001:101", "--user", "telegram:222"]).await
    );
    insta::assert_snapshot!(first(&["telegram:dm:222", "--as", "boss"]).await, @"error: nobody is called `boss`. Did you mean Bob? An id looks like telegram:12345678");
    let json = run(&["telegram:topic:-1001:107", "--json"]).await;
    let value: Value = serde_json::from_str(&json).expect("JSON");
    insta::assert_json_snapshot!((&value["answer"], &value["person"], &value["role"], &value["origin"]), @r#"
    [
      {
        "agent": null,
        "silence": "place_closed",
        "needs_mention": true,
        "model_trouble": null,
        "obstacles": [
          "no_gateway"
        ],
        "text": "Nobody answers in telegram:topic:-1001:107: no binding or `/agent` opens this topic (groups = \"bound\"). `parlor pin telegram:topic:-1001:107 main` opens it, and so does `/bind main`, written there by an owner."
      },
      null,
      "guest",
      {
        "key": "telegram:topic:-1001:107",
        "person": null,
        "server": null,
        "category": null,
        "name": null,
        "formerly": null,
        "roles": [],
        "tags": []
      }
    ]
    "#);
}

/// Why nobody answers is told with the same words by `/agent why`, `route explain`, `sessions show`
/// and the log.
#[tokio::test]
async fn a_silent_topic_is_explained_with_the_same_words_everywhere() {
    let house = House::new(TEAM).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(107, "Garden");
    reply(&house, &gateway, &topic, ALICE, "/agent rose").await;
    reply(&house, &gateway, &topic, BOB, "@parlor_bot hi").await;
    reply(&house, &gateway, &topic, ALICE, "/agent close").await;
    assert_eq!(
        reply(&house, &gateway, &topic, BOB, "@parlor_bot hi").await,
        ""
    );
    let why = reply(&house, &gateway, &topic, ALICE, "/agent why").await;
    let reason = "no binding or /agent opens this topic";
    let run = async |arguments: &[&str]| {
        let output = parlor(house.home.path())
            .args(arguments)
            .output()
            .await
            .expect("parlor runs");
        String::from_utf8_lossy(&output.stdout).replace('`', "")
    };
    let explained = run(&["route", "explain", "Garden"]).await;
    let shown = run(&["sessions", "show", "Garden"]).await;
    let first = |told: &str| {
        let mut lines = told.lines();
        let line = lines.find(|line| line.starts_with("Nobody answers"));
        line.unwrap_or_default().to_owned()
    };
    for told in [&why, &explained, &shown] {
        assert!(first(told).contains(reason), "{told}");
    }
    assert_eq!(first(&explained), first(&shown));
    assert!(!shown.contains("agent: "), "{shown}");
    assert!(why.contains("Otherwise main would answer in "), "{why}");
    gateway.shutdown().await;
}

/// The text without the time of day in it.
fn timeless(text: &str) -> String {
    match text.split_once(" since ") {
        Some((before, after)) => {
            let (_, cause) = after.split_once(": ").unwrap_or_default();
            format!("{before} since TIME: {cause}")
        }
        None => text.to_owned(),
    }
}

async fn route_explained(house: &House, key: &str) -> String {
    let mut command = parlor(house.home.path());
    command.args(["route", "explain", key]);
    let output = command.output().await.expect("parlor runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().unwrap_or_default().to_owned()
}

/// Whoever can mend the model learns the cause, others only that there is no answer now.
#[tokio::test]
async fn a_model_that_refuses_is_part_of_the_truth() {
    let house = House::with_top("default_agent = \"eve\"", TEAM).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(101, "Writing");
    let owner = house.telegram.dm(ALICE);
    house.model.enqueue(Script::status(401, "{}"));
    topic.says(BOB, "@parlor_bot hello").await;
    house.settled(&gateway).await;
    let ask = async |user: User, command: &str| {
        topic.says(user, command).await;
        house.settled(&gateway).await;
        let texts = topic.texts();
        timeless(texts.last().expect("an answer"))
    };
    let first = |text: String| text.lines().next().unwrap_or_default().to_owned();
    assert_snapshot!(first(ask(ALICE, "/agent").await), @"Rose answers here when mentioned or replied to, but its model fake/any has refused since TIME: fake wants an API key, and none is set (401). Line 27 of config.toml gives this topic to Rose.");
    assert_snapshot!(first(ask(BOB, "/agent").await), @"Rose answers here when mentioned or replied to, but its model isn't working right now. An owner gave this topic to Rose.");
    assert_snapshot!(first(ask(ALICE, "/status").await), @"Rose answers here when mentioned or replied to, but its model fake/any has refused since TIME: fake wants an API key, and none is set (401). Line 27 of config.toml gives this topic to Rose.");
    assert_snapshot!(first(ask(BOB, "/status").await), @"Rose answers here when mentioned or replied to, but its model isn't working right now. An owner gave this topic to Rose.");
    assert_snapshot!(ask(BOB, "/whoami").await, @"
    You are Bob (guest), telegram:222.
    This is the topic “Writing”, telegram:topic:-1001:101.
    Rose answers here when mentioned or replied to, but its model isn't working right now. An owner gave this topic to Rose.
    Rose uses fake/any here.
    ");
    assert_snapshot!(ask(CAROL, "/agents").await, @"
    • Main · fake/any (not working right now)
    • Rose · fake/any (not working right now) ← answers here
    • Ada · fake/any (not working right now)
    • Poor · fake/any (not working right now)

    Rose answers here when mentioned or replied to, but its model fake/any has refused since TIME: fake wants an API key, and none is set (401). Line 27 of config.toml gives this topic to Rose.

    /agent main switches to Main.
    ");
    assert_snapshot!(ask(BOB, "/agents").await, @"
    • Rose · fake/any (not working right now) ← answers here
    • Poor · fake/any (not working right now)

    Rose answers here when mentioned or replied to, but its model isn't working right now. An owner gave this topic to Rose.

    /agent poor switches to Poor.
    ");
    let key = "telegram:topic:-1001:101";
    assert_snapshot!(timeless(&route_explained(&house, key).await), @"Rose answers in Writing (telegram:topic:-1001:101) when mentioned or replied to, but its model `fake/any` has refused since TIME: `fake` wants an API key, and none is set (401). Line 27 of config.toml gives this topic to Rose.");
    let json = explained(&house, key, BOB).await;
    assert_eq!(json["model_trouble"]["model"], "fake/any");
    assert_eq!(
        json["agent"]["id"], "rose",
        "she answers as soon as it does"
    );

    topic.says(BOB, "@parlor_bot hello again").await;
    house.settled(&gateway).await;
    assert_snapshot!(first(ask(ALICE, "/agent").await), @"Rose answers here when mentioned or replied to. Line 27 of config.toml gives this topic to Rose.");
    assert_snapshot!(route_explained(&house, key).await, @"Rose answers in Writing (telegram:topic:-1001:101) when mentioned or replied to. Line 27 of config.toml gives this topic to Rose.");
    assert_eq!(owner.texts().len(), 2, "{:?}", owner.texts());
    gateway.shutdown().await;
}

/// A rule is told with its line of config.toml, and once.
#[tokio::test]
async fn a_rule_is_told_once_and_with_its_line() {
    let house = House::with_top("default_agent = \"eve\"", TEAM).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(101, "Writing");
    topic.says(ALICE, "/whoami").await;
    let told = topic.wait_for_sent(1).await.text;
    let line = house
        .config()
        .lines()
        .position(|line| line.contains("telegram:topic:-1001:101"))
        .expect("the binding")
        + 1;
    let told = told.replace(&format!("ine {line} "), "ine LINE ");
    assert_snapshot!(told, @"
    You are Alice (owner), telegram:111.
    This is the topic “Writing”, telegram:topic:-1001:101.
    Rose answers here when mentioned or replied to. Line LINE of config.toml gives this topic to Rose.
    Rose uses fake/any here (the default model).
    ");
    house.close(gateway).await;
}

/// Lines are counted in the text as it was saved: with its comments, also with new ones, and also
/// while a newer file has a problem.
#[tokio::test]
async fn a_rule_is_told_with_the_line_of_the_file_that_counts() {
    let house = House::new(TEAM).await;
    let gateway = house.open().await;
    // Owners are told about the problem.
    let _owner = house.telegram.dm(ALICE);
    let topic = house.telegram.forum(-1001).topic(101, "Writing");
    let commented = format!("# The house.\n# Two lines more.\n\n{}", house.config());
    let line = commented
        .lines()
        .position(|line| line.contains("telegram:topic:-1001:101"))
        .expect("the binding")
        + 1;
    let rule = format!("replied to. Line {line} of config.toml gives this topic to Rose.");
    let in_chat = async || {
        let before = topic.texts().len();
        topic.says(ALICE, "/whoami").await;
        topic.wait_for_sent(before + 1).await.text
    };
    // By now the gateway watches the folder.
    assert!(!in_chat().await.contains(&rule));
    house.write("config.toml", &commented);
    // The file is looked at a moment after it was saved.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !in_chat().await.contains(&rule) && std::time::Instant::now() < until {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    let key = "telegram:topic:-1001:101";
    let told = route_explained(&house, key).await;
    assert!(told.contains(&rule), "{told}");
    house.write(
        "config.toml",
        &commented.replacen("agent = \"rose\"", "agent = \"rosse\"", 1),
    );
    gateway.reload("a test").await;
    for told in [in_chat().await, route_explained(&house, key).await] {
        assert!(told.contains(&rule), "{told}");
        assert!(!told.contains("to Main"), "{told}");
    }
    let audit = house.ask("SELECT count(*) FROM audit WHERE action = 'reload'");
    assert_eq!(audit, "0", "a comment changes nothing");
    house.write("config.toml", &commented);
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_question_refused_at_a_limit_is_not_counted_as_answered() {
    let house = House::with_top("default_agent = \"eve\"", TEAM).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(104, "Poor");
    let _owner = house.telegram.dm(ALICE);
    for _ in 0..3 {
        topic.says(BOB, "@parlor_bot hello").await;
        house.settled(&gateway).await;
    }
    topic.says(ALICE, "/status").await;
    house.settled(&gateway).await;
    let texts = topic.texts();
    let told = texts.last().expect("an answer");
    let line = told.lines().find(|line| line.contains("24 hours"));
    assert_snapshot!(line.expect("a line"), @"• In the last 24 hours: 3 questions, 2 refused at a limit.");
    gateway.shutdown().await;
}
