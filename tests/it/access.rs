//! Who is let in, and what everybody else gets: nothing.

use crate::support::House;
use crate::support::fake_telegram::{ALICE, BOB, CAROL, OTHER_BOT};

const BOUND: &str = r#"
[access]
owners = ["telegram:111"]
[agents.rose]
[[bindings]]
match = "telegram:topic:-1001:101"
agent = "rose"
"#;

#[tokio::test]
async fn strangers_unbound_groups_and_talk_that_is_not_for_us_reach_no_model() {
    let house = House::new(BOUND).await;
    let gateway = house.open().await;
    let stranger = house.telegram.dm(BOB);
    stranger.says("let me in").await;
    stranger.says("hello?").await;
    stranger.says("/agents").await;
    house
        .telegram
        .supergroup(-1009)
        .says(BOB, "@parlor_bot hello")
        .await;
    house
        .telegram
        .supergroup(-1009)
        .says(BOB, "/agent rose")
        .await;
    let bound = house.telegram.forum(-1001).topic(101, "Rose");
    bound.says(BOB, "talk among people").await;
    bound.says(ALICE, "also an owner's").await;
    house.settled(&gateway).await;
    assert!(house.model.journal().is_empty(), "no model call");
    let said: Vec<String> = house
        .telegram
        .sent()
        .into_iter()
        .map(|sent| sent.text)
        .collect();
    assert_eq!(said.len(), 2, "a hint, and that it counts still: {said:?}");
    assert!(
        said[0].starts_with("Hi Bob. This bot ") && said[0].contains("one hour"),
        "{said:?}"
    );
    assert_eq!(
        house.ask("SELECT count(*) FROM inbox WHERE state = 'refused'"),
        "7",
        "each is on record"
    );
    assert_eq!(
        house.ask("SELECT group_concat(DISTINCT outcome) FROM inbox"),
        "a guest,a guest who waits to be let in,no binding or /agent opens this place,observed"
    );
    gateway.shutdown().await;
}

#[tokio::test]
async fn an_owner_lets_a_stranger_in_with_the_code_they_were_told() {
    let house = House::new(BOUND).await;
    let gateway = house.open().await;
    let (bob, alice, carol) = (
        house.telegram.dm(BOB),
        house.telegram.dm(ALICE),
        house.telegram.dm(CAROL),
    );
    bob.says("hello").await;
    let hint = bob.wait_for_sent(1).await.text;
    let code = crate::first_minute::code_in(&hint);
    assert_eq!(code.len(), 8);
    carol.says("hello").await;
    carol.wait_for_sent(1).await;
    alice.says("/pair WRONG234").await;
    alice
        .says(&format!("/pair {} yes", code.to_lowercase()))
        .await;
    alice.says(&format!("/pair {code} yes")).await;
    assert_eq!(
        alice.wait_for_sent(1).await.text,
        "No such code is open. A code is valid for one hour; the person gets a new one by writing to the bot again."
    );
    assert_eq!(
        alice.wait_for_sent(2).await.text,
        "Bob (telegram:222) is in, let in by Alice. /unpair telegram:222 takes it back."
    );
    assert_eq!(
        alice.wait_for_sent(3).await.text,
        alice.texts()[1],
        "a code counts once"
    );
    bob.says("thank you").await;
    carol.says("and me?").await;
    house.settled(&gateway).await;
    assert_eq!(
        bob.texts().last().map(String::as_str),
        Some("re: thank you")
    );
    assert_eq!(carol.texts().len(), 2, "another code lets nobody else in");
    bob.says("/pair ABCD2345").await;
    assert_eq!(
        bob.wait_for_sent(5).await.text,
        "Only an owner or admin can let people in."
    );
    house.close(gateway).await;
}

#[tokio::test]
async fn private_chats_can_be_open_or_closed() {
    for (dms, answers) in [("open", 1), ("closed", 0)] {
        let house = House::new(&format!("[access]\ndms = \"{dms}\"\n")).await;
        let gateway = house.open().await;
        house.telegram.dm(BOB).says("hello").await;
        house.settled(&gateway).await;
        assert_eq!(house.telegram.dm(BOB).texts().len(), answers, "{dms}");
        gateway.shutdown().await;
    }
}

/// S4.22
#[tokio::test]
async fn a_private_chat_that_is_bound_to_its_person_has_that_agent() {
    let bound = "[access]\ndms = \"open\"\n[agents.main]\n[agents.rose]\n[[bindings]]\nmatch = \"telegram:dm:111\"\nagent = \"rose\"\n";
    let house = House::new(bound).await;
    let gateway = house.open().await;
    for (person, agent) in [
        (ALICE, "You are Rose (agent id: rose)."),
        (BOB, "You are Main (agent id: main)."),
    ] {
        house.telegram.dm(person).says("hello").await;
        house.settled(&gateway).await;
        assert_eq!(
            house.model.last_request().system.lines().next(),
            Some(agent)
        );
    }
    gateway.shutdown().await;
}

/// A binding chooses an agent; it opens the bot to nobody.
#[tokio::test]
async fn a_binding_lets_no_stranger_in() {
    let house =
        House::new("[agents.rose]\n[[bindings]]\nmatch = \"telegram:dm:222\"\nagent = \"rose\"\n")
            .await;
    let gateway = house.open().await;
    house.telegram.dm(BOB).says("hello").await;
    house.settled(&gateway).await;
    assert!(house.model.journal().is_empty());
    gateway.shutdown().await;
}

#[tokio::test]
async fn in_a_group_a_mention_a_reply_or_a_command_is_for_us() {
    let house = House::new(BOUND).await;
    let gateway = house.open().await;
    let rose = house.telegram.forum(-1001).topic(101, "Rose");
    rose.says(BOB, "@Parlor_Bot, hello").await;
    let answer = rose.wait_for_sent(1).await;
    assert_eq!(answer.text, "re: [Bob] hello", "the mention is taken off");
    rose.says(CAROL, "and me")
        .replying_to(answer.message_id)
        .await;
    assert_eq!(
        rose.wait_for_sent(2).await.text,
        "re: [Carol] [replying to you: “re: Bob hello”] and me"
    );
    rose.says(BOB, "hey you there")
        .mentioning("you", crate::support::fake_telegram::PARLOR_BOT)
        .await;
    assert_eq!(rose.wait_for_sent(3).await.text, "re: [Bob] hey you there");
    rose.says(BOB, "/agents@parlor_bot").await;
    assert!(
        rose.wait_for_sent(4)
            .await
            .text
            .contains("Rose · fake/any ← answers here")
    );
    rose.says(BOB, "/agents@other_bot").await;
    rose.says(OTHER_BOT, "@parlor_bot let us loop").await;
    rose.says_anonymously("@parlor_bot I am an admin").await;
    rose.says(BOB, "@parlor_bot_two hello").await;
    house.settled(&gateway).await;
    assert_eq!(rose.texts().len(), 4);
    gateway.shutdown().await;
}

#[tokio::test]
async fn an_owner_learns_how_to_open_a_place_and_can_open_it_with_a_pin() {
    let house = House::new(BOUND).await;
    let gateway = house.open().await;
    let lobby = house.telegram.forum(-1001).topic(55, "Lobby");
    lobby.says(ALICE, "@parlor_bot hello").await;
    assert_eq!(
        lobby.wait_for_sent(1).await.text,
        "Nobody answers here yet. /agent with an agent's name opens this place; /bind with one does it for good (telegram:topic:-1001:55 in config.toml)."
    );
    lobby.says(BOB, "/agent rose").await;
    lobby.says(ALICE, "/agent rose").await;
    assert_eq!(
        lobby.wait_for_sent(2).await.text,
        "Rose answers here from now on, and this topic is open to everybody in it. /agent reset undoes the switch, /agent close closes this topic again."
    );
    lobby.says(BOB, "@parlor_bot hello").await;
    assert_eq!(lobby.wait_for_sent(3).await.text, "re: [Bob] hello");
    house.close(gateway).await;
}

#[tokio::test]
async fn a_stranger_is_not_told_that_an_agent_is_gone() {
    let house = House::new("[access]\ndms = \"open\"\n[agents.main]\n[agents.rose]\n").await;
    let gateway = house.open().await;
    house.telegram.dm(BOB).says("/agent rose").await;
    house.close(gateway).await;
    house.configure("", "[access]\ndms = \"closed\"\n[agents.main]\n");
    let gateway = house.open().await;
    house.telegram.dm(BOB).says("hello").await;
    house.settled(&gateway).await;
    assert_eq!(
        house.telegram.dm(BOB).texts().len(),
        1,
        "only the answer to /agent"
    );
    gateway.shutdown().await;
}
