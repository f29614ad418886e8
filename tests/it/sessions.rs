//! `parlor sessions`: what an operator sees of conversations, and how they are begun anew, copied and
//! moved.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::cli::{Ran, run, run_with_input};
use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB};
use crate::support::house::parlor;

/// Alice owns the house, and Bob is a guest in Rose's topic.
const TEAM: &str = r#"
models = ["any", "other"]
[access]
owners = ["telegram:111"]
require_mention = false
[agents.main]
[agents.rose]
name = "Rose"
[agents.ada]
[[bindings]]
match = "telegram:topic:-1001:101"
agent = "rose"
[[bindings]]
match = "telegram:topic:-1001:102"
agent = "main"
"#;

const ROSES: &str = "telegram:topic:-1001:101";
const OTHER: &str = "telegram:topic:-1001:102";

/// A house in which Bob and Alice have talked with Rose, who used a tool.
async fn talked() -> House {
    let house = House::new(TEAM).await;
    let gateway = house.open().await;
    let roses = house.telegram.forum(-1001).topic(101, "Roses");
    house.model.enqueue(Script::tool_call("now", json!({})));
    house.model.enqueue(Script::text("It is late."));
    roses.says(BOB, "What time is it?").await;
    house.settled(&gateway).await;
    house.model.enqueue(Script::text("Red ones."));
    roses.says(ALICE, "Which roses\n### did you plant?").await;
    house.close(gateway).await;
    house
}

/// Times differ from run to run.
fn timeless(text: &str) -> String {
    let time = regex::Regex::new(r"\d{4}-\d\d-\d\d \d\d:\d\d [+-]\d\d:\d\d").expect("a pattern");
    let stamp = regex::Regex::new(r"\d{4}-\d\d-\d\dT[\d:]+([+-]\d\d:\d\d|Z)").expect("a pattern");
    stamp
        .replace_all(&time.replace_all(text, "TIME"), "TIME")
        .into_owned()
}

async fn told(house: &House, arguments: &[&str]) -> String {
    let ran = run(house.home.path(), arguments).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{arguments:?}");
    timeless(&ran.stdout)
}

async fn in_json(house: &House, arguments: &[&str]) -> Value {
    let words: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
    let ran = run(house.home.path(), &words).await;
    assert_eq!(ran.code, 0, "{words:?}: {}{}", ran.stdout, ran.stderr);
    serde_json::from_str(&ran.stdout).expect("JSON")
}

async fn refused(house: &House, arguments: &[&str]) -> Ran {
    let ran = run(house.home.path(), arguments).await;
    assert_ne!(ran.code, 0, "{arguments:?}: {}", ran.stdout);
    ran
}

/// S2.22: agent, rule, people and what is open, for every place, in sixty columns.
#[tokio::test]
async fn sessions_are_listed_with_agent_rule_and_people() {
    let house = talked().await;
    let mut command = parlor(house.home.path());
    command.args(["sessions"]).env("COLUMNS", "60");
    let output = command.output().await.expect("parlor runs");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(
        text.lines().all(|line| line.chars().count() <= 60),
        "{text}"
    );
    let list = in_json(&house, &["sessions", "list"]).await;
    let roses = &list[0];
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{list:#}");
    assert_eq!(roses["place"], json!({ "id": ROSES, "name": "Roses" }));
    assert_eq!(roses["agent"], json!({ "id": "rose", "name": "Rose" }));
    let rule = roses["rule"].as_str().unwrap_or_default();
    assert!(
        rule.starts_with("config.toml line ") && rule.ends_with(&format!("exact topic {ROSES}")),
        "{rule}"
    );
    assert_eq!(roses["people"][0]["name"], "Alice");
    assert_eq!(roses["people"][1]["name"], "Bob");
    assert_eq!(
        (&roses["messages"], &roses["waiting"]),
        (&json!(4), &json!(0))
    );
    let active = roses["last_active_at"].as_str().unwrap_or_default();
    assert!(
        chrono::DateTime::parse_from_rfc3339(active).is_ok(),
        "{active}"
    );
    let count = async |filter: &[&str]| {
        let words: Vec<&str> = ["sessions", "list"].iter().chain(filter).copied().collect();
        in_json(&house, &words).await.as_array().map_or(0, Vec::len)
    };
    assert_eq!(count(&["--agent", "Rose"]).await, 1);
    assert_eq!(count(&["--agent", "ada"]).await, 0);
    assert_eq!(count(&["--platform", "telegram"]).await, 1);
    assert_eq!(count(&["--platform", "discord"]).await, 0);
    assert_eq!(count(&["--person", "telegram:222"]).await, 1);
    assert_eq!(count(&["--person", "bob"]).await, 1);
    assert_eq!(count(&["--person", "telegram:333"]).await, 0);
    assert_eq!(count(&["--since", "1h"]).await, 1);
    assert_eq!(count(&["--limit", "0"]).await, 0);
}

/// What waits and what failed is in the list while the gateway runs.
#[tokio::test]
async fn a_list_beside_a_gateway_shows_what_waits() {
    let house = House::new(TEAM).await;
    let gateway = house.open().await;
    let roses = house.telegram.forum(-1001).topic(101, "Roses");
    house.model.enqueue(Script::text("Yes.").held());
    roses.says(BOB, "Are you there?").await;
    house.model.wait_for_requests(1).await;
    let list = in_json(&house, &["sessions"]).await;
    assert_eq!(list[0]["waiting"], 1, "{list:#}");
    house.model.release();
    house.close(gateway).await;
    let list = in_json(&house, &["sessions"]).await;
    assert_eq!(list[0]["waiting"], 0, "{list:#}");
}

/// S2.22, S2.49: the state in the head, then who said what in which role; tools by name, and no
/// payload.
#[tokio::test]
async fn a_transcript_is_readable() {
    let house = talked().await;
    assert_snapshot!(told(&house, &["sessions", "show", "roses"]).await, @"
    Roses (telegram:topic:-1001:101)
    Rose answers in Roses (telegram:topic:-1001:101), but no gateway runs right now (`parlor run` starts it). Line 20 of config.toml gives this topic to Rose.
    model: fake/any
    conversation: 1, 4 messages
    people: Alice (telegram:111), Bob (telegram:222)
    first seen: TIME
    last active: TIME
    last turn: Rose (rose) with fake/any, answered, TIME, because of config.toml line 20: exact topic telegram:topic:-1001:101

    Bob (telegram:222), guest · TIME
      What time is it?

    Rose (rose) · TIME
      (called now)
      It is late.

    Alice (telegram:111), owner · TIME
      Which roses
      ### did you plant?

    Rose (rose) · TIME
      Red ones.
    ");
}

/// S2.21: every message has its `meta_json` with a version, and `--raw` shows it.
#[tokio::test]
async fn raw_has_everything() {
    let house = talked().await;
    let shown = in_json(&house, &["sessions", "show", ROSES, "--raw"]).await;
    assert_eq!(shown["session"]["v"], 1);
    let messages = shown["messages"].as_array().expect("a list");
    assert_eq!(messages.len(), 4);
    for message in messages {
        assert_eq!(message["raw"]["meta_json"]["v"], 1, "{message:#}");
    }
    assert_eq!(messages[1]["raw"]["meta_json"]["tools"], json!(["now"]));
    assert_eq!(messages[0]["role"], "guest");
    assert_eq!(messages[0]["raw"]["labels"], "guest");
    let plain = in_json(&house, &["sessions", "show", ROSES]).await;
    assert_eq!(plain["messages"][0]["raw"], Value::Null);
}

/// S2.49: an exported transcript has no machine payloads unless they are asked for, and nobody's
/// words look like a heading.
#[tokio::test]
async fn an_export_has_no_payloads_unless_asked_for() {
    let house = talked().await;
    assert_snapshot!(told(&house, &["sessions", "export", "Roses"]).await, @"
    # Roses (telegram:topic:-1001:101)

    Agent: Rose (rose)

    ## Conversation 1

    ### Bob (telegram:222), guest · TIME

    > What time is it?

    ### Rose (rose) · TIME

    *called now*

    > It is late.

    ### Alice (telegram:111), owner · TIME

    > Which roses
    > ### did you plant?

    ### Rose (rose) · TIME

    > Red ones.
    ");
    let lines = told(
        &house,
        &["sessions", "export", "Roses", "--format", "jsonl"],
    )
    .await;
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON in each line"))
        .collect();
    assert_eq!(lines.len(), 4);
    assert!(lines.iter().all(|line| line["raw"].is_null()));
    assert_eq!(lines[3]["text"], "Red ones.");
    let raw = told(&house, &["sessions", "export", "Roses", "--raw"]).await;
    assert!(raw.contains("\"meta_json\""), "{raw}");
    let out = house.home.path().join("roses.md");
    let out = out.to_str().expect("text");
    let written = told(&house, &["sessions", "export", "Roses", "--out", out]).await;
    assert_eq!(
        written.trim_end(),
        "4 messages of Roses (telegram:topic:-1001:101) written to HOME/roses.md."
    );
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(out).expect("a file"));
    assert_eq!(mode & 0o777, 0o600);
    let again = refused(&house, &["sessions", "export", "Roses", "--out", out]).await;
    assert!(
        again.stderr.contains("is there already"),
        "{}",
        again.stderr
    );
}

/// S6.12: an operator searches the conversations of all agents, or of one.
#[tokio::test]
async fn an_operator_searches_all_conversations() {
    let house = talked().await;
    let gateway = house.open().await;
    let desk = house.telegram.dm(ALICE);
    desk.says("A note about roses for main").await;
    house.close(gateway).await;
    let found = in_json(&house, &["sessions", "search", "ROSES"]).await;
    let places: Vec<&str> = found
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|hit| hit["place"]["id"].as_str())
        .collect();
    assert!(
        places.contains(&ROSES) && places.contains(&"telegram:dm:111"),
        "{found:#}"
    );
    let of_rose = in_json(&house, &["sessions", "search", "-a", "rose", "roses"]).await;
    assert_eq!(of_rose.as_array().map(Vec::len), Some(1), "{of_rose:#}");
    let text = told(&house, &["sessions", "search", "which", "plant"]).await;
    assert_snapshot!(text, @"
    Roses (telegram:topic:-1001:101) · Alice (telegram:111), owner · TIME
      Which roses
      ### did you plant?
    ");
    let none = told(&house, &["sessions", "search", "lilies"]).await;
    assert_eq!(none.trim_end(), "Nothing with these words was said.");
}

/// S1.22: a fork of Rose's session is Rose's, with its history, and goes on in the terminal.
#[tokio::test]
async fn a_fork_keeps_agent_and_history() {
    let house = talked().await;
    let forked = run(house.home.path(), &["sessions", "fork", "Roses"]).await;
    assert_eq!(forked.code, 0, "{}", forked.stderr);
    assert_snapshot!(forked.stdout, @"4 messages of Roses (telegram:topic:-1001:101) copied to local:home:fork-rose. Rose (rose) answers there.");
    assert_snapshot!(forked.stderr, @"`parlor chat --topic fork-rose` goes on with it.");
    house.model.enqueue(Script::text("Still red."));
    let chat = run_with_input(
        house.home.path(),
        &["chat", "--topic", "fork-rose"],
        "And now?\n",
    )
    .await;
    assert_eq!(chat.code, 0, "{}", chat.stderr);
    let asked = house.model.last_request();
    assert!(
        asked.system.contains("(agent id: rose)"),
        "{}",
        asked.system
    );
    assert!(
        asked.has("What time is it?") && asked.has("Red ones."),
        "{asked:?}"
    );
    let before = in_json(&house, &["sessions", "show", ROSES]).await;
    assert_eq!(
        before["session"]["messages"], 4,
        "the original stays as it was"
    );
    assert_eq!(
        house.ask("SELECT action || ' ' || actor || ' ' || after FROM audit"),
        "fork cli local:home:fork-rose"
    );
    let second = in_json(&house, &["sessions", "fork", "Roses"]).await;
    assert_eq!(second["to"]["id"], "local:home:fork-rose-2");
    let taken = refused(
        &house,
        &["sessions", "fork", "Roses", "--to", "local:home:fork-rose"],
    )
    .await;
    assert!(taken.stderr.contains("in use already"), "{}", taken.stderr);
    let away = refused(&house, &["sessions", "fork", "Roses", "--to", OTHER]).await;
    assert!(
        away.stderr.contains("place of the terminal"),
        "{}",
        away.stderr
    );
}

#[tokio::test]
async fn a_new_conversation_begins_where_the_operator_says() {
    let house = talked().await;
    let renewed = told(&house, &["sessions", "new", "Roses"]).await;
    assert_eq!(
        renewed.trim_end(),
        "A new conversation begins in Roses (telegram:topic:-1001:101)."
    );
    let gateway = house.open().await;
    house
        .telegram
        .forum(-1001)
        .topic(101, "Roses")
        .says(BOB, "Hello again")
        .await;
    house.close(gateway).await;
    assert!(!house.model.last_request().has("What time is it?"));
    let all = in_json(&house, &["sessions", "show", ROSES, "--all"]).await;
    assert_eq!(all["messages"].as_array().map(Vec::len), Some(6));
    assert_eq!(all["session"]["conversation"], 2);
    assert_eq!(
        house.ask("SELECT action || ' ' || before || ' ' || after FROM audit"),
        "new conversation 1 2"
    );
    let empty = refused(&house, &["sessions", "new", "local:home"]).await;
    assert_eq!(empty.code, 2, "{}", empty.stderr);
}

/// The conversation, the pin and the model follow; the old place begins anew.
#[tokio::test]
async fn a_moved_conversation_goes_on_elsewhere() {
    let house = talked().await;
    let gateway = house.open().await;
    let forum = house.telegram.forum(-1001);
    let (roses, other) = (forum.topic(101, "Roses"), forum.topic(102, "Other"));
    for line in ["/agent ada", "/model fake/other"] {
        roses.says(ALICE, line).await;
        house.settled(&gateway).await;
    }
    house.telegram.dm(ALICE).says("hello").await;
    house.close(gateway).await;
    let moved = told(&house, &["sessions", "move", "Roses", OTHER]).await;
    assert_snapshot!(moved, @"5 messages moved from Roses (telegram:topic:-1001:101) to telegram:topic:-1001:102, with the switch to Ada (ada) and the model fake/other.");
    let gateway = house.open().await;
    other.says(ALICE, "Do you know me?").await;
    house.close(gateway).await;
    let asked = house.model.last_request();
    assert!(asked.system.contains("(agent id: ada)"), "{}", asked.system);
    assert_eq!(asked.model, "other");
    assert!(asked.has("Which roses"), "{asked:?}");
    let list = in_json(&house, &["sessions"]).await;
    assert_eq!(list[0]["place"]["id"], OTHER);
    let others = list.as_array().into_iter().flatten();
    assert!(
        others.clone().all(|place| place["place"]["id"] != ROSES),
        "{list:#}"
    );
    let taken = refused(&house, &["sessions", "move", "telegram:dm:111", OTHER]).await;
    assert!(
        taken.stderr.contains("has a conversation of its own"),
        "{}",
        taken.stderr
    );
}

/// A running gateway makes the changes itself, and uses them at once.
#[tokio::test]
async fn beside_a_gateway_conversations_are_begun_anew_and_moved() {
    let house = talked().await;
    let gateway = house.open().await;
    let forum = house.telegram.forum(-1001);
    let (roses, other) = (forum.topic(101, "Roses"), forum.topic(102, "Other"));
    roses.says(ALICE, "/model fake/other").await;
    house.settled(&gateway).await;
    assert_snapshot!(told(&house, &["sessions", "new", "Roses"]).await, @"A new conversation begins in Roses (telegram:topic:-1001:101). The model fake/other, chosen with /model, went with the old one.");
    roses.says(BOB, "Hello again").await;
    house.settled(&gateway).await;
    let request = house.model.last_request();
    assert!(!request.has("What time is it?"));
    assert_eq!(
        request.model, "any",
        "the model of the place is looked up anew"
    );
    roses.says(ALICE, "/agent ada").await;
    house.settled(&gateway).await;
    assert_snapshot!(told(&house, &["sessions", "move", "Roses", OTHER]).await, @"7 messages moved from Roses (telegram:topic:-1001:101) to telegram:topic:-1001:102, with the switch to Ada (ada).");
    other.says(BOB, "Who are you?").await;
    house.settled(&gateway).await;
    let request = house.model.last_request();
    assert!(
        request.system.starts_with("You are Ada"),
        "{}",
        request.system
    );
    assert!(request.has("Hello again"));
    let forked = in_json(&house, &["sessions", "fork", OTHER]).await;
    assert_eq!(forked["to"]["id"], "local:home:fork-ada");
    house.model.enqueue(Script::text("Wait.").held());
    roses.says(BOB, "A long one").await;
    house.model.wait_for_open(1).await;
    let busy = refused(
        &house,
        &["sessions", "move", ROSES, "telegram:topic:-1001:103"],
    )
    .await;
    assert!(
        busy.stderr.contains("still being answered"),
        "{}",
        busy.stderr
    );
    house.model.release();
    house.close(gateway).await;
    assert_snapshot!(house.ask("SELECT group_concat(actor || ' ' || action, ', ') FROM audit"), @"cli new conversation, telegram:111 switch, cli move, cli fork");
}

#[tokio::test]
async fn a_place_is_found_by_key_or_by_its_only_name() {
    let house = talked().await;
    let unknown = refused(&house, &["sessions", "show", "Rosses"]).await;
    assert_eq!(unknown.code, 2);
    assert_snapshot!(unknown.stderr, @"
    error: no place is called `Rosses`. Did you mean Chat -1001/Roses (telegram:topic:-1001:101)?
    hint: `parlor sessions` lists places, `parlor sessions list --ignored` those where nobody answers
    ");
    // By its name, or by group and name, in every verb that takes a place.
    for name in ["roses", "Chat -1001/Roses"] {
        for arguments in [
            vec!["sessions", "show", name],
            vec!["route", "explain", name],
            vec!["queue", name],
            vec!["audit", "--place", name],
            vec!["pin", name, "rose"],
            vec!["stop", name],
            vec!["new", name],
        ] {
            let ran = run(house.home.path(), &arguments).await;
            assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
        }
    }
    assert_eq!(
        house.ask("SELECT key FROM pins JOIN places ON places.id = place_id"),
        ROSES
    );
    // Two places with one name are told apart by their groups.
    let gateway = house.open().await;
    let twin = house.telegram.forum(-1002).topic(7, "Roses");
    house.configure(
        "",
        &TEAM.replacen(
            "[[bindings]]",
            "[[bindings]]\nmatch = \"telegram:topic:-1002:7\"\nagent = \"rose\"\n[[bindings]]",
            1,
        ),
    );
    gateway.reload("a test").await;
    twin.says(BOB, "Hello").await;
    house.close(gateway).await;
    let several = refused(&house, &["route", "explain", "Roses"]).await;
    assert_snapshot!(several.stderr, @"
    error: several places are called `Roses`: Chat -1002/Roses (telegram:topic:-1002:7), Chat -1001/Roses (telegram:topic:-1001:101)
    hint: name the group too, such as `Chat -1002/Roses`, or write the key of the one you mean, such as telegram:topic:-1002:7
    ");
    told(&house, &["sessions", "show", "Chat -1002/Roses"]).await;
    let unused = refused(&house, &["sessions", "show", "telegram:topic:-1001:999"]).await;
    assert!(
        unused
            .stderr
            .contains("nothing was ever said in telegram:topic:-1001:999")
    );
    let person = refused(&house, &["sessions", "list", "--person", "Bobb"]).await;
    assert!(
        person.stderr.contains("Did you mean Bob?"),
        "{}",
        person.stderr
    );
}
