//! What an operator writes about one agent, from nothing at all to everything that other gateways
//! have in an entry.

use serde_json::json;

use crate::support::House;
use crate::support::fake_discord;
use crate::support::fake_model::{Request, Script};
use crate::support::fake_telegram::{ALICE, BOB, CAROL};

fn spoken_to(request: &Request) -> &str {
    request.system.lines().next().unwrap_or_default()
}

/// S4.39, S0.58, S0.7: no agent, no binding, no switch in the config, and everybody is answered
/// everywhere.
#[tokio::test]
async fn one_agent_answers_everywhere_without_a_word_about_routing() {
    let house =
        House::new("[access]\ndms = \"open\"\ngroups = \"open\"\nrequire_mention = false\n").await;
    let discord = house.add_discord("").await;
    let guild = discord.guild(8001, "Garden");
    let (channel, forum) = (
        guild.text_channel(8101, "general"),
        guild.forum(8300, "questions", &[]),
    );
    let gateway = house.open_with(&discord).await;
    let telegram = &house.telegram;
    telegram.dm(ALICE).says("in private").await;
    telegram.group(-7).says(BOB, "in a group").await;
    telegram.forum(-1001).says(BOB, "in General").await;
    telegram
        .forum(-1001)
        .topic(5, "Tea")
        .says(CAROL, "in a topic")
        .await;
    house.settled(&gateway).await;
    channel.says(fake_discord::BOB, "in a channel").await;
    channel.wait_for_sent(1).await;
    let post = forum
        .posts(fake_discord::BOB, "Why", &[], "in a post")
        .await;
    post.wait_for_sent(1).await;
    discord
        .dm(fake_discord::CAROL)
        .says("in private there")
        .await;
    discord.dm(fake_discord::CAROL).wait_for_sent(1).await;
    gateway.settled().await;

    let asked = house.model.journal();
    assert_eq!(asked.len(), 7);
    assert!(
        asked
            .iter()
            .all(|request| spoken_to(request) == "You are Main (agent id: main)."),
        "one agent"
    );
    let answers = [
        telegram.dm(ALICE).texts(),
        telegram.group(-7).texts(),
        telegram.forum(-1001).topic(5, "Tea").texts(),
    ];
    assert_eq!(
        answers,
        [
            ["re: in private"],
            ["re: in a group"],
            ["re: [Carol] in a topic"]
        ]
    );
    assert_eq!(house.ask("SELECT group_concat(slug) FROM agents"), "main");
    assert_eq!(house.ask("SELECT count(*) FROM pins"), "0");
    gateway.shutdown().await;
}

/// An entry with id, model, topics, private chats and a workspace, in our words.
const CODER: &str = r#"
[access]
dms = "open"
tools = { guest = "reach" }
require_mention = false
[agents.main]
[agents.coder]
model = "fake/big"
workspace_mb = 5
[[bindings]]
match = "telegram:topic:-1001:101"
agent = "coder"
[[bindings]]
match = "telegram:topic:-1001:102"
agent = "coder"
[[bindings]]
match = "telegram:dm:111"
agent = "coder"
[[bindings]]
match = "discord:dm"
agent = "coder"
"#;

/// S4.19: `id` and `workspace` are the table's name, `topics` and `dm` are bindings, `model` is
/// `model`, and `dm_scope` needs no key.
#[tokio::test]
async fn everything_in_another_gateways_agent_entry_can_be_said() {
    let house = House::new(CODER).await;
    let discord = house.add_discord("").await;
    let gateway = house.open_with(&discord).await;
    house.model.enqueue(Script::tool_call(
        "file_write",
        json!({ "path": "note.md", "content": "x" }),
    ));
    house
        .telegram
        .forum(-1001)
        .topic(101, "Code")
        .says(BOB, "in its topic")
        .await;
    house.settled(&gateway).await;
    house
        .telegram
        .forum(-1001)
        .topic(102, "More")
        .says(BOB, "in its other topic")
        .await;
    house.telegram.dm(ALICE).says("in private").await;
    house.settled(&gateway).await;
    discord.dm(fake_discord::BOB).says("in private there").await;
    discord.dm(fake_discord::BOB).wait_for_sent(1).await;
    let coders = house.model.journal();
    assert_eq!(coders.len(), 5);
    for request in coders {
        assert_eq!(
            (spoken_to(&request), request.model.as_str()),
            ("You are Coder (agent id: coder).", "big")
        );
    }
    assert!(
        house
            .home
            .path()
            .join("agents/coder/workspace/note.md")
            .exists()
    );
    house.telegram.dm(BOB).says("in another private chat").await;
    house.settled(&gateway).await;
    let other = house.model.last_request();
    assert_eq!(
        (spoken_to(&other), other.model.as_str()),
        ("You are Main (agent id: main).", "any"),
        "the chat of another person"
    );
    gateway.shutdown().await;
}

/// S4.21: one agent for all private chats, and the setting that makes groups one conversation does
/// not make these one.
#[tokio::test]
async fn two_people_never_share_a_private_conversation() {
    let rest = "[access]\ndms = \"open\"\n[agents.rose]\n[[bindings]]\nmatch = \"telegram:dm\"\nagent = \"rose\"\n\
                [[bindings]]\nmatch = \"discord:dm\"\nagent = \"rose\"\n";
    let house = House::with_top("group_sessions = \"shared\"", rest).await;
    let discord = house.add_discord("").await;
    let gateway = house.open_with(&discord).await;
    for round in 1..=2 {
        for person in [ALICE, BOB] {
            house
                .telegram
                .dm(person)
                .says(&format!("{} {round}", person.first_name))
                .await;
            house.settled(&gateway).await;
        }
        for person in [fake_discord::ALICE, fake_discord::BOB] {
            discord
                .dm(person)
                .says(&format!("discord's {} {round}", person.name))
                .await;
            discord.dm(person).wait_for_sent(round).await;
        }
    }
    let journal = house.model.journal();
    let heard: Vec<Vec<&str>> = journal[4..]
        .iter()
        .map(|request| {
            request
                .messages
                .iter()
                .map(|(_, text)| text.as_str())
                .collect()
        })
        .collect();
    let own = |name: &str| {
        vec![
            format!("{name} 1"),
            format!("re: {name} 1"),
            format!("{name} 2"),
        ]
    };
    let discords = |name: &str| own(&format!("discord's {name}"));
    assert_eq!(
        heard,
        [
            own("Alice"),
            own("Bob"),
            discords(fake_discord::ALICE.name),
            discords(fake_discord::BOB.name)
        ]
    );
    gateway.settled().await;
    gateway.shutdown().await;
}
