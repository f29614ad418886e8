//! What `parlor route explain` says about a turn is what the model gets.

use std::collections::BTreeSet;

use insta::assert_snapshot;
use serde_json::Value;

use crate::cli::run;
use crate::support::House;
use crate::support::fake_model::Request;
use crate::support::fake_telegram::{ALICE, BOB, CAROL, User};

/// Alice owns the house, Carol is a member, Bob a guest.
const TEAM: &str = r#"
[access]
owners = ["telegram:111"]
require_mention = false
[people.carol]
ids = ["telegram:333"]
role = "member"
[access.tools]
member = "change"
[risk_profiles.careful]
deny = ["file_delete"]
[agents.main]
[agents.rose]
name = "Rose"
model = "fake/small"
tools = { deny = ["web_fetch"] }
risk_profile = "careful"
skills = ["minutes"]
[agents.rose.limits]
tokens_per_day = 5_000_000
[agents.plain]
skills = []
memory = "off"
[[bindings]]
match = "telegram:topic:-1001:101"
agent = "rose"
[[bindings]]
match = "telegram:topic:-1001:102"
agent = "plain"
"#;

const SKILL: &str = "---\nname: minutes\ndescription: Writes minutes.\n---\nShort.\n";

async fn house() -> House {
    let house = House::new(TEAM).await;
    house.write("skills/minutes/SKILL.md", SKILL);
    house.write(
        "skills/letters/SKILL.md",
        &SKILL.replace("minutes", "letters"),
    );
    house
}

async fn explained(house: &House, key: &str, more: &[&str]) -> Value {
    let words: Vec<&str> = ["route", "explain", key, "--json"]
        .iter()
        .chain(more)
        .copied()
        .collect();
    let ran = run(house.home.path(), &words).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).expect("JSON")
}

fn offered(explained: &Value) -> BTreeSet<String> {
    let tools = explained["abilities"]["tools"].as_array().expect("tools");
    tools
        .iter()
        .filter(|tool| tool["refused"].is_null())
        .filter_map(|tool| tool["tool"].as_str())
        .map(str::to_owned)
        .collect()
}

/// S0.22: tools, model and skills are those of the request that follows.
fn agrees(explained: &Value, request: &Request) {
    let tools: BTreeSet<String> = request.tools.iter().cloned().collect();
    assert_eq!(offered(explained), tools);
    let model = explained["model"]["model"].as_str().unwrap_or_default();
    assert_eq!(model, format!("fake/{}", request.model));
    let skills = explained["abilities"]["skills"]["readable"].as_array();
    let skills: Vec<&str> = skills
        .into_iter()
        .flatten()
        .filter_map(|skill| skill["skill"].as_str())
        .collect();
    for name in ["minutes", "letters"] {
        let listed = request.system.contains(&format!("{name}: "));
        assert_eq!(skills.contains(&name), listed, "{name}: {}", request.system);
    }
}

#[tokio::test]
async fn what_is_explained_is_what_a_turn_gets() {
    let house = house().await;
    let gateway = house.open().await;
    let forum = house.telegram.forum(-1001);
    let people: [(User, &str); 3] = [(ALICE, "owner"), (CAROL, "member"), (BOB, "guest")];
    let mut seen = BTreeSet::new();
    for number in [101, 102] {
        let topic = forum.topic(number, "A topic");
        let key = format!("telegram:topic:-1001:{number}");
        for (user, role) in people {
            let person = format!("telegram:{}", user.id);
            let by_user = explained(&house, &key, &["--user", &person]).await;
            let by_person = explained(&house, &key, &["--as", &person]).await;
            assert_eq!(by_user, by_person);
            assert_eq!(by_user["role"], role);
            let by_role = explained(&house, &key, &["--as", role]).await;
            assert_eq!(offered(&by_user), offered(&by_role));
            topic.says(user, "hello").await;
            house.settled(&gateway).await;
            agrees(&by_user, &house.model.last_request());
            seen.insert(offered(&by_user));
        }
    }
    assert!(seen.len() >= 4, "the cases differ: {seen:?}");
    gateway.shutdown().await;
}

/// Every tool that is taken away has its rule and the line behind it.
#[tokio::test]
async fn everything_has_its_reason() {
    let house = house().await;
    let gateway = house.open().await;
    house
        .telegram
        .forum(-1001)
        .topic(101, "Roses")
        .says(BOB, "hello")
        .await;
    house.close(gateway).await;
    let ran = run(
        house.home.path(),
        &[
            "route",
            "explain",
            "telegram:topic:-1001:101",
            "--as",
            "telegram:222",
            "--all",
        ],
    )
    .await;
    let (_, told) = ran.stdout.split_once("\nmodel: ").expect("a model");
    // The other tools are alike.
    let is_shown = |line: &&str| {
        let tool = line
            .strip_prefix("without ")
            .and_then(|rest| rest.split(':').next());
        let shown = ["web_fetch", "file_write", "file_delete", "skill letters"];
        let is_shown = |tools: &str| tools.split(", ").any(|tool| shown.contains(&tool));
        !line.starts_with("tools: ") && tool.is_none_or(is_shown)
    };
    let told = format!("model: {told}");
    let told: Vec<&str> = told.lines().filter(is_shown).collect();
    assert_snapshot!(told.join("\n"), @"
    model: fake/small (agents.rose.model, config.toml:24)
    without web_fetch: the agent's `tools.deny` names it (agents.rose.tools.deny, config.toml:25)
    without file_write, file_edit, spawn, schedule, memory_save, memory_note, memory_edit: a guest may use tools up to `look` (`[access.tools]`), and this is a `change` tool (access.tools.guest, default)
    without file_delete: the risk profile `careful` denies it (risk_profiles.careful.deny, config.toml:20)
    skills: minutes (pool: its `skills` names it) (agents.rose.skills, config.toml:27)
    without skill letters: its `skills` does not name it
    memory: on (agents.rose.memory, default); what is saved is for the place
    recalls: memories of Rose, memories for telegram:topic:-1001:101, global memories
    finds: memories of Rose, memories for telegram:222, memories for telegram:topic:-1001:101, global memories
    limit agents.rose.limits.max_steps: 40 (default)
    limit agents.rose.limits.max_minutes: 30 (default)
    limit agents.rose.limits.tokens_per_day: 5000000, 112 used today (config.toml:29)
    ");
    let wrong = run(
        house.home.path(),
        &[
            "route",
            "explain",
            "telegram:topic:-1001:101",
            "--as",
            "boss",
        ],
    )
    .await;
    assert_eq!(wrong.code, 2);
    assert_snapshot!(wrong.stderr, @"
    error: nobody is called `boss`. Did you mean Bob? An id looks like telegram:12345678
    hint: a role is guest, member, admin or owner
    ");
}
