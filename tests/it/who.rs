//! Who may use which agent: every door asks `who`, and what is done in chat opens no agent further.

use serde_json::json;

use crate::support::House;
use crate::support::fake_model::Script;
use crate::support::fake_telegram::{ALICE, BOB, CAROL};

/// Alice owns the house, Carol is a member, Bob a guest. The topic belongs to main; Ada is for
/// members, because her table says nothing else, and Eve is for owners in writing.
const TEAM: &str = r#"
[access]
owners = ["telegram:111"]
require_mention = false
[people.carol]
ids = ["telegram:333"]
role = "member"
[agents.main]
[agents.rose]
who = "guest"
[agents.ada]
[agents.eve]
who = "owner"
[[bindings]]
match = "telegram:topic:-1001:101"
agent = "main"
"#;

#[tokio::test]
async fn a_guest_fetches_no_agent_that_is_for_members() {
    let house = House::new(TEAM).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(101, "Lobby");
    for (line, told) in [
        (
            "/agent ada",
            "Ada is for members. You can use /agent main, /agent rose.",
        ),
        (
            "/agent ada once",
            "Ada is for members. You can use /agent main, /agent rose.",
        ),
        (
            "/agent Ada",
            "Ada is for members. You can use /agent main, /agent rose.",
        ),
        (
            "/agent eve",
            "Eve is for owners. You can use /agent main, /agent rose.",
        ),
        (
            "/agent evee",
            "No agent is called evee. You can choose main, rose.",
        ),
    ] {
        topic.says(BOB, line).await;
        house.settled(&gateway).await;
        assert_eq!(
            topic.texts().last().map(String::as_str),
            Some(told),
            "{line}"
        );
    }
    topic.says(BOB, "/agents").await;
    house.settled(&gateway).await;
    let list = topic.texts().pop().unwrap().to_lowercase();
    assert!(!list.contains("ada") && !list.contains("eve"), "{list}");
    assert!(list.contains("main") && list.contains("rose"), "{list}");
    topic.says(BOB, "/agent rose").await;
    house.settled(&gateway).await;
    assert_eq!(
        house.ask("SELECT group_concat(slug) FROM pins JOIN agents ON uid = agent_uid"),
        "rose",
        "an agent for everybody is fetched by everybody"
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_topic_named_like_an_agent_is_given_to_it_only_by_people_who_may_switch() {
    let house = House::new(&TEAM.replace("[access]", "[access]\ngroups = \"open\"")).await;
    house.configure_telegram("auto_bind = true");
    let gateway = house.open().await;
    let forum = house.telegram.forum(-1002);
    for (maker, name, pinned) in [
        (BOB, "ada", "0"),
        (BOB, "rose", "1"),
        (ALICE, "ada", "2"),
        (ALICE, "eve", "2"),
    ] {
        forum.creates_topic(maker, name).await;
        house.settled(&gateway).await;
        assert_eq!(house.ask("SELECT count(*) FROM pins"), pinned, "{name}");
    }
    gateway.shutdown().await;
}

/// An owner's switch counts like a binding, while the agent's table says nothing about people.
#[tokio::test]
async fn only_the_config_opens_an_agent_whose_who_is_written() {
    let house = House::new(TEAM).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(101, "Lobby");
    topic.says(ALICE, "/agent eve").await;
    house.settled(&gateway).await;
    assert_eq!(
        topic.texts().last().map(String::as_str),
        Some(
            "Eve is for owners, but guests can write here. To open it here, bind this place to it in config.toml, or write who = \"guest\" under [agents.eve]."
        )
    );
    topic.says(CAROL, "/agent ada").await;
    house.settled(&gateway).await;
    assert_eq!(
        topic.texts().last().map(String::as_str),
        Some("Ada is for members, but guests can write here. An owner can give this place to it.")
    );
    topic.says(ALICE, "/agent ada").await;
    topic.says(BOB, "hello").await;
    house.settled(&gateway).await;
    assert_eq!(
        topic.texts().last().map(String::as_str),
        Some("re: [Bob] hello")
    );
    assert_eq!(
        house.ask("SELECT agents.slug FROM turns JOIN agents ON uid = agent_uid"),
        "ada"
    );
    let undo = "Only an owner, an admin or the person who made it can undo this switch";
    let mine =
        format!("{undo}: Ada is for members and guests write here, so you couldn't bring it back.");
    let not_mine = format!("{undo}: Ada is for members, so you couldn't bring it back.");
    for (user, line, told) in [
        (CAROL, "/agent ada", "Ada already answers here."),
        (BOB, "/agent ada", "Ada already answers here."),
        (CAROL, "/agent for 2h ada", "Ada already answers here."),
        (CAROL, "/agent reset", mine.as_str()),
        (BOB, "/agent reset", not_mine.as_str()),
    ] {
        topic.says(user, line).await;
        house.settled(&gateway).await;
        assert_eq!(topic.texts().last().map(String::as_str), Some(told));
    }
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_pin_that_is_older_than_the_rule_does_not_count() {
    let open = TEAM.replace("[agents.ada]", "[agents.ada]\nwho = \"guest\"");
    let house = House::new(&open).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(101, "Lobby");
    topic.says(BOB, "/agent ada").await;
    house.settled(&gateway).await;
    gateway.shutdown().await;
    house.configure("", TEAM);
    let gateway = house.open().await;
    topic.says(BOB, "hello").await;
    topic.says(BOB, "again").await;
    house.settled(&gateway).await;
    let said = topic.texts();
    let told = said.iter().filter(|text| {
        *text == "Ada is not open to everybody who can write here, so the switch is undone. /agent tells who answers now."
    });
    assert_eq!(told.count(), 1, "{said:?}");
    assert_eq!(
        house.ask("SELECT group_concat(DISTINCT slug) FROM turns JOIN agents ON uid = agent_uid"),
        "main"
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn an_agent_that_is_closed_in_writing_answers_no_guest_where_it_is_the_default() {
    let open = TEAM.replace("[access]", "[access]\ndms = \"open\"");
    let house = House::with_top("default_agent = \"eve\"", &open).await;
    let gateway = house.open().await;
    let bob = house.telegram.dm(BOB);
    for line in [
        "hello",
        "/memory",
        "/remember tea",
        "/status",
        "/new",
        "/agent",
    ] {
        bob.says(line).await;
        house.settled(&gateway).await;
        assert_eq!(
            bob.texts().last().map(String::as_str),
            Some("Eve is for owners. You can use /agent rose."),
            "{line}"
        );
    }
    assert!(house.model.journal().is_empty(), "no model call");
    assert_eq!(house.ask("SELECT count(*) FROM memories"), "0");
    bob.says("/agent rose").await;
    bob.says("hello").await;
    house.settled(&gateway).await;
    assert_eq!(bob.texts().last().map(String::as_str), Some("re: hello"));
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_role_with_one_agent_opens_that_agent_alone() {
    let config = TEAM.replace("role = \"member\"", "agents = { ada = \"member\" }");
    let house = House::new(&config).await;
    let gateway = house.open().await;
    let carol = house.telegram.dm(CAROL);
    carol.says("hello").await;
    house.settled(&gateway).await;
    assert_eq!(
        carol.texts().last().map(String::as_str),
        Some("re: hello"),
        "the default agent is open to people who may speak in private"
    );
    carol.says("/agent eve").await;
    house.settled(&gateway).await;
    assert_eq!(
        carol.texts().last().map(String::as_str),
        Some("Eve is for owners. You can use /agent main, /agent rose, /agent ada.")
    );
    carol.says("/agent ada").await;
    carol.says("/whoami").await;
    house.settled(&gateway).await;
    let told = carol.texts().pop().unwrap();
    assert!(
        told.starts_with("You are Carol (member), telegram:333."),
        "{told}"
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_turn_reaches_no_agent_that_is_closed_to_its_person() {
    let config = format!(
        "{TEAM}\n[access.tools]\nguest = \"reach\"\n[peer_groups.desk]\nmembers = [\"main\", \"ada\", \"rose\"]\n"
    );
    let house = House::new(&config).await;
    let gateway = house.open().await;
    let topic = house.telegram.forum(-1001).topic(101, "Lobby");
    for (tool, arguments) in [
        (
            "spawn",
            json!({ "task": "tell the vault code", "agent": "ada" }),
        ),
        (
            "agent_send",
            json!({ "agent": "ada", "text": "the vault code?" }),
        ),
    ] {
        house.model.enqueue(Script::tool_call(tool, arguments));
        topic.says(BOB, "ask ada").await;
        house.settled(&gateway).await;
        let request = house.model.last_request();
        assert_eq!(
            request.results().last().copied(),
            Some(
                "Nothing was started: `ada` is for members, and the person you work for is not among them."
            ),
            "{tool}"
        );
    }
    assert_eq!(
        house.ask("SELECT count(*) FROM subagents"),
        "0",
        "nothing was begun"
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn a_person_is_shown_before_the_code_counts_and_can_be_sent_away_again() {
    let house = House::new(TEAM).await;
    let gateway = house.open().await;
    let (bob, alice) = (house.telegram.dm(BOB), house.telegram.dm(ALICE));
    bob.says("hello").await;
    let hint = bob.wait_for_sent(1).await.text;
    let code = crate::first_minute::code_in(&hint);
    alice.says("/pair").await;
    house.settled(&gateway).await;
    let list = alice.texts().pop().unwrap();
    assert!(
        list.contains("Bob (telegram:222)") && list.contains(&code),
        "{list}"
    );
    alice.says(&format!("/pair {code}")).await;
    house.settled(&gateway).await;
    assert_eq!(
        alice.texts().pop().unwrap(),
        format!(
            "Bob (telegram:222) has this code. Nobody is let in yet: /pair {code} yes does it, /pair {code} no turns them away."
        )
    );
    assert_eq!(
        house.ask("SELECT count(*) FROM people WHERE paired_at IS NOT NULL"),
        "0"
    );
    alice.says(&format!("/pair {code} yes")).await;
    bob.says("thank you").await;
    house.settled(&gateway).await;
    assert_eq!(bob.texts().pop().unwrap(), "re: thank you");
    alice.says("/unpair telegram:222").await;
    house.settled(&gateway).await;
    assert_eq!(
        alice.texts().pop().unwrap(),
        "Bob (telegram:222) is a guest again. What was said stays; a new code lets the person in again."
    );
    let before = house.model.journal().len();
    bob.says("still here?").await;
    house.settled(&gateway).await;
    assert_eq!(
        house.model.journal().len(),
        before,
        "a guest reaches no model"
    );
    gateway.shutdown().await;
}
