//! Keeps the book's page about JSON true: each verb runs, and each field of its JSON is in the
//! verb's table, and no other.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::cli::{fresh_home, run};
use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB, Fault};

/// The fields that the page has for a verb.
fn documented(verb: &str) -> BTreeSet<String> {
    let page = include_str!("../../docs/src/reference/json.md");
    let heading = format!("\n## `parlor {verb}`\n");
    let (_, section) = page
        .split_once(&heading)
        .unwrap_or_else(|| panic!("the page has no section about `parlor {verb}`"));
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| Some(row.split_once('`')?.0.to_owned()))
        .collect()
}

/// The fields of a value, as the page writes them. Agents, people, places and money are one field.
fn fields(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) if is_one(object) && !path.is_empty() => {
            found.insert(path.to_owned());
        }
        Value::Object(object) => {
            for (key, value) in object {
                let dot = if path.is_empty() { "" } else { "." };
                fields(value, &format!("{path}{dot}{key}"), found);
            }
        }
        Value::Array(items) => {
            let inside = format!("{path}[]");
            if items.is_empty() {
                found.insert(inside.clone());
            }
            for item in items {
                fields(item, &inside, found);
            }
        }
        _ => {
            found.insert(path.to_owned());
        }
    }
}

fn is_one(object: &serde_json::Map<String, Value>) -> bool {
    let keys: Vec<&str> = object.keys().map(String::as_str).collect();
    keys == ["id", "name"] || keys == ["amount", "currency"]
}

/// A list that is empty and an object that is null leave their fields open.
fn stands_for(shown: &str, field: &str) -> bool {
    shown == field
        || field.starts_with(&format!("{shown}."))
        || (shown.ends_with("[]") && field.starts_with(shown))
}

fn check(verb: &str, json: &str) -> Value {
    let value: Value =
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{verb}: {error}: {json}"));
    let mut shown = BTreeSet::new();
    match &value {
        Value::Array(items) => {
            assert!(!items.is_empty(), "`parlor {verb}` lists nothing");
            for item in items {
                fields(item, "", &mut shown);
            }
        }
        object => fields(object, "", &mut shown),
    }
    let documented = documented(verb);
    let missing: Vec<&String> = shown
        .iter()
        .filter(|shown| !documented.iter().any(|field| stands_for(shown, field)))
        .collect();
    let too_many: Vec<&String> = documented
        .iter()
        .filter(|field| !shown.iter().any(|shown| stands_for(shown, field)))
        .collect();
    assert!(
        missing.is_empty() && too_many.is_empty(),
        "docs/src/reference/json.md, `parlor {verb}`: not on the page: {missing:?}; only on the page: {too_many:?}"
    );
    value
}

async fn checked(home: &Path, verb: &str, arguments: &[&str]) -> Value {
    let words: Vec<&str> = verb
        .split(' ')
        .chain(arguments.iter().copied())
        .chain(["--json"])
        .collect();
    let ran = run(home, &words).await;
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (0, ""),
        "{words:?}: {}",
        ran.stdout
    );
    check(verb, &ran.stdout)
}

/// Every time has the zone of the machine as a number, also where that is UTC.
fn assert_times_have_a_zone(value: &Value) {
    match value {
        Value::Array(items) => items.iter().for_each(assert_times_have_a_zone),
        Value::Object(object) => object.values().for_each(assert_times_have_a_zone),
        Value::String(text) => {
            let is_time = chrono::DateTime::parse_from_rfc3339(text).is_ok();
            assert!(!is_time || !text.ends_with('Z'), "{text}");
        }
        _ => {}
    }
}

const HOUSE: &str = r#"prices = { any = { input = 2.5, output = 10 } }
[access]
owners = ["telegram:111"]
require_mention = false
[agents.main]
[agents.rose]
who = "guest"
name = "Rose"
[agents.ada]
[[bindings]]
match = "telegram:topic:-1001234:101"
agent = "rose"
[limits]
cost_per_day = 100.0
"#;

#[tokio::test]
async fn the_json_page_names_every_field() {
    let house = House::new(HOUSE).await;
    let home = house.home.path();
    checked(home, "init", &[]).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1_001_234).topic(101, "Roses");
    let closed = house.telegram.forum(-1_001_234).topic(102, "Closed");
    topic.says(BOB, "hello").await;
    house.settled(&gateway).await;
    topic.says(ALICE, "/remember Bob likes tea").await;
    closed.says(ALICE, "/agent rose").await;
    house.settled(&gateway).await;
    house
        .telegram
        .fail(
            "sendMessage",
            Fault::Refused(400, "Bad Request: TOPIC_CLOSED"),
        )
        .only_in(-1_001_234)
        .times(2);
    closed.says(ALICE, "one").await;
    closed.says(ALICE, "two").await;
    house.settled(&gateway).await;
    gateway.shutdown().await;

    checked(home, "version", &[]).await;
    let made = run(
        home,
        &[
            "people",
            "role",
            "telegram:222",
            "admin",
            "--agent",
            "rose",
            "--json",
        ],
    );
    let made: Value = serde_json::from_str(&made.await.stdout).expect("JSON");
    assert_eq!(made["agents"][0]["role"], "admin");
    checked(home, "people list", &[]).await;
    let raised = checked(home, "allow", &["house", "2.00", "today"]).await;
    assert_eq!(raised["most_cost"]["amount"], "102.00");
    checked(home, "pause", &["background"]).await;
    let agents = checked(home, "agent list", &[]).await;
    assert_eq!(agents[0]["state"], "ready");
    assert_times_have_a_zone(&agents);
    let info = checked(home, "agent info", &["rose"]).await;
    assert_eq!(info["bound"][0]["name"], "Roses");
    assert_eq!(info["pinned"][0]["place"]["name"], "Closed");
    assert_eq!(info["pinned"][0]["set_by"]["name"], "Alice");
    checked(home, "agent prompt", &["rose"]).await;
    checked(home, "skill list", &[]).await;
    let memories = checked(
        home,
        "recall",
        &[
            "-a",
            "rose",
            "--place",
            "telegram:topic:-1001234:101",
            "--person",
            "telegram:111",
            "tea",
        ],
    )
    .await;
    assert_eq!(memories[0]["person"]["name"], "Alice");
    assert!(
        memories[0]["created_at"]
            .as_str()
            .is_some_and(|time| chrono::DateTime::parse_from_rfc3339(time).is_ok()),
        "{memories}"
    );
    checked(
        home,
        "memory list",
        &[
            "-a",
            "rose",
            "--place",
            "telegram:topic:-1001234:101",
            "--person",
            "telegram:111",
        ],
    )
    .await;
    let list = checked(home, "sessions list", &[]).await;
    assert_eq!(list[0]["place"]["name"], "Closed");
    assert_eq!(list[0]["undelivered"], 2);
    let shown = checked(home, "sessions show", &["Roses", "--raw"]).await;
    assert_eq!(shown["messages"][0]["person"]["name"], "Bob");
    let shown = checked(home, "sessions show", &["Closed", "--raw"]).await;
    assert_eq!(shown["session"]["pin"]["set_by"]["name"], "Alice");
    checked(home, "sessions search", &["hello"]).await;
    let file = home.join("roses.md").display().to_string();
    checked(home, "sessions export", &["Roses", "--out", &file]).await;
    checked(home, "sessions fork", &["Roses"]).await;
    checked(home, "sessions new", &["Roses"]).await;
    let to = "telegram:topic:-1001234:103";
    checked(home, "sessions move", &["Roses", to]).await;
    checked(home, "config show", &["agents.rose"]).await;
    checked(home, "remember", &["Lunch is at noon"]).await;
    let exported = checked(home, "memory export", &[]).await;
    assert_eq!(exported.as_array().map(Vec::len), Some(2), "{exported}");
    let none = run(home, &["memory", "export", "--agent", "ada", "--json"]).await;
    assert_eq!(none.stdout.trim(), "[]");
    let asked = checked(home, "ask", &["-a", "rose", "hello"]).await;
    assert_eq!(asked["agent"]["name"], "Rose");
    house.model.enqueue(Script::status(401, "no"));
    let failed = run(home, &["ask", "hello", "--json"]).await;
    check("ask", &failed.stdout);
    let failed = checked(home, "failed list", &[]).await;
    assert_eq!(failed[0]["place"]["name"], "Closed");
    checked(home, "failed retry", &[]).await;
    checked(home, "failed drop", &["all"]).await;
    house.tell(
        "INSERT INTO approvals (inbox_id, round, number, place_id, agent_uid, tool, arguments, hash, why, labels,
                                person, person_name, role, least, asked_at, expires_at)
         SELECT 999, 0, number, 1, uid, 'now', 'zone: Vienna', 'ab', 'the list names it', 0,
                'telegram:111', 'Alice', 'owner', 'owner', 0, 9000000000000
         FROM agents, (SELECT 0 AS number UNION SELECT 1) WHERE slug = 'rose'",
    );
    let waiting = checked(home, "approvals list", &[]).await;
    assert_eq!(waiting[0]["person"]["name"], "Alice");
    checked(home, "approvals allow", &["1"]).await;
    checked(home, "approvals refuse", &["2"]).await;
    let audit = checked(home, "audit", &[]).await;
    let by_alice = audit.as_array().into_iter().flatten();
    let mut by_alice = by_alice.filter(|entry| entry["by"]["name"] == "Alice");
    assert!(by_alice.next().is_some(), "{audit:#}");
    checked(home, "agent pause", &["rose"]).await;
    let paused = checked(home, "agent info", &["rose"]).await;
    assert_eq!(paused["health"]["state"], "paused");
    checked(home, "agent resume", &["rose"]).await;
    checked(home, "agent restart", &["rose"]).await;
    checked(home, "agent reset", &["rose", "--yes"]).await;
    let add = [
        "plan",
        "Plan the day.",
        "--every",
        "2h",
        "--quiet-hours",
        "22:00-07:00",
    ];
    checked(home, "job add", &add).await;
    checked(home, "job list", &[]).await;
    checked(home, "job show", &["plan"]).await;
    checked(home, "job pause", &["plan"]).await;
    checked(home, "job resume", &["plan"]).await;
    checked(home, "job remove", &["plan"]).await;
    let usage = checked(home, "usage", &["--by", "agent"]).await;
    assert_eq!(usage["total"]["cost"]["currency"], "USD");
    let people = run(home, &["usage", "--by", "person", "--json"])
        .await
        .stdout;
    let people: Value = serde_json::from_str(&people).expect("JSON");
    assert_eq!(
        people["by"]["person"][0]["name"].as_str().map(str::len),
        Some(5)
    );
}

#[tokio::test]
async fn the_json_page_names_every_field_of_changes() {
    let home = fresh_home().await;
    let home = home.path();
    checked(home, "agent add", &["dot"]).await;
    std::fs::create_dir_all(home.join("agents/eve")).expect("makes");
    checked(home, "agent adopt", &["eve"]).await;
    checked(home, "agent clone", &["dot", "spot"]).await;
    checked(home, "agent rename", &["spot", "speck"]).await;
    checked(home, "agent default", &["dot"]).await;
    checked(home, "agent default", &["main"]).await;
    checked(home, "agent remove", &["speck"]).await;
    checked(home, "agent archive list", &[]).await;
    checked(home, "agent restore", &["speck"]).await;
    checked(home, "agent purge", &["speck", "--yes"]).await;
    let package = home.join("dot.tar.gz").display().to_string();
    checked(home, "agent export", &["dot", "-o", &package]).await;
    checked(home, "agent import", &[&package, "--as", "dot2"]).await;
    checked(home, "agent agents-md", &["dot"]).await;
    let elsewhere = tempfile::tempdir().expect("a folder");
    let there = elsewhere.path().display().to_string();
    let config = format!("{there}/openclaw.json");
    checked(home, "export openclaw", &[&config]).await;
    std::fs::create_dir(format!("{there}/workspace")).expect("makes");
    std::fs::write(format!("{there}/workspace/USER.md"), "Ann").expect("writes");
    let _open = std::fs::File::open(format!("{there}/workspace/USER.md")).expect("opens");
    checked(home, "import", &["openclaw", &there]).await;
    checked(home, "skill check", &[]).await;
    run(home, &["remember", "tea"]).await;
    let exported = run(home, &["memory", "export"]).await.stdout;
    let file = home.join("memories.jsonl");
    std::fs::write(&file, exported).expect("writes");
    checked(home, "memory import", &[&file.display().to_string()]).await;
    let backup = home.join("backups/a.tar.gz").display().to_string();
    std::fs::create_dir(home.join("backups")).expect("makes");
    checked(home, "backup", &[&backup]).await;
    checked(home, "restore", &[&backup]).await;
    checked(home, "doctor", &[]).await;
    let folder = home.join("man1").display().to_string();
    checked(home, "man", &["--out", &folder]).await;
}

#[tokio::test]
async fn the_json_page_names_every_field_of_a_running_gateway() {
    let house = House::new(HOUSE).await;
    let home = house.home.path();
    let gateway = house.open().await;
    let place = "telegram:topic:-1001234:101";
    let topic = house.telegram.forum(-1_001_234).topic(101, "Roses");
    house.model.hold();
    topic.says(ALICE, "a long one").await;
    house.model.wait_for_open(1).await;
    let status = checked(home, "status", &[]).await;
    assert_eq!(status["turns"][0]["place"]["name"], "Roses");
    checked(home, "queue", &[]).await;
    checked(home, "stop", &[place]).await;
    house.model.release();
    house.settled(&gateway).await;
    checked(home, "pin", &[place, "rose"]).await;
    let begun = checked(home, "new", &[place]).await;
    assert_eq!(begun["place"]["name"], "Roses");
    checked(home, "remember", &["-a", "rose", "Lunch is at noon"]).await;
    let forgotten = checked(home, "forget", &["-a", "rose", "1"]).await;
    assert_eq!(forgotten["agent"]["name"], "Rose");
    checked(home, "reload", &[]).await;
    checked(home, "token create", &["ci", "--expires", "1d"]).await;
    checked(home, "token list", &[]).await;
    checked(home, "token revoke", &["ci"]).await;
    house.close(gateway).await;
}

/// Findings are the result, so there is no error beside them.
#[tokio::test]
async fn findings_are_a_result_and_end_with_one() {
    let home = fresh_home().await;
    let config = home.path().join("config.toml");
    let text = std::fs::read_to_string(&config).expect("a config");
    std::fs::write(&config, format!("{text}\n[access]\ndms = \"open\"\n")).expect("writes");
    let ran = run(home.path(), &["security", "check", "--json"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""), "{}", ran.stdout);
    check("security check", &ran.stdout);
    let skill = home.path().join("skills/broken");
    std::fs::create_dir_all(&skill).expect("makes");
    std::fs::write(skill.join("SKILL.md"), "no front matter").expect("writes");
    let ran = run(home.path(), &["skill", "check", "--json"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""), "{}", ran.stdout);
    let value = check("skill check", &ran.stdout);
    assert_eq!(value["unusable"], 1);
}
