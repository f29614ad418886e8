//! Events and messages of Discord that are not quite JSON, or not even text: each costs only
//! itself.

use crate::support::House;
use crate::support::fake_discord::{BOB, CAROL, FakeDiscord, Room};

const OPEN: &str = "[access]\nrequire_mention = false\n[[bindings]]\nmatch = \"discord:channel:8101\"\nagent = \"main\"\n";
const BROKEN: &str = "SELECT count(*) FROM inbox WHERE state = 'broken'";

async fn house() -> (House, FakeDiscord, Room) {
    let house = House::new(OPEN).await;
    let discord = house.add_discord("").await;
    let general = discord.guild(8001, "Garden").text_channel(8101, "general");
    (house, discord, general)
}

/// Returns once everything that the start asks for is there.
async fn listening(house: &House) {
    house
        .wait_until_stored("SELECT count(*) FROM discord_heard", "2")
        .await;
}

/// Texts of which each becomes something on the wire that is no JSON: a string that is broken, or
/// no string.
fn poisons(discord: &FakeDiscord) -> Vec<String> {
    let (open, close) = ("[".repeat(200), "]".repeat(200));
    let kinds = [
        br#""a lone half: \ud800""#.to_vec(),
        br#""cut escape: \u12""#.to_vec(),
        br#""eats the quote: \""#.to_vec(),
        b"\"control character: \x01\"".to_vec(),
        format!("{open}1{close}").into_bytes(),
        b"1e400    ".to_vec(),
    ];
    let make = |(number, sent): (usize, &Vec<u8>)| {
        let text = format!("{number}{}", "x".repeat(sent.len() - 3));
        discord.garble(format!("\"{text}\"").as_bytes(), sent);
        text
    };
    kinds.iter().enumerate().map(make).collect()
}

/// The library ends a connection on which text comes that is none, and a resume brings the same
/// event again.
#[tokio::test]
async fn an_event_that_is_no_text_ends_its_session_and_nothing_else() {
    let (house, discord, general) = house().await;
    let process = house.spawn().await;
    listening(&house).await;
    general.says(BOB, "before").await;
    general.wait_for_sent(1).await;
    discord.garble(b"poison", b"poiso\xff");
    general.says(BOB, "poison").await;
    general.says(CAROL, "behind").await;
    discord.wait_for_resumes(3).await;
    discord.wait_for_identifies(2).await;
    general.wait_for_sent(2).await;
    general.says(BOB, "later").await;
    general.wait_for_sent(3).await;
    assert_eq!(
        (discord.identifies().len(), discord.resumes().len()),
        (2, 3)
    );
    house.wait_until_stored(BROKEN, "1").await;
    process
        .wait_for_log("3 resumes brought nothing new; beginning a new session")
        .await;
    assert!(!process.log().contains("poiso"), "{}", process.log());
    assert_eq!(process.stop().await, 0);
    assert_eq!(general.texts(), ["re: before", "re: behind", "re: later"]);
}

#[tokio::test]
async fn events_that_are_not_quite_json_cost_only_themselves() {
    let (house, discord, general) = house().await;
    let process = house.spawn().await;
    listening(&house).await;
    let poisons = poisons(&discord);
    for (number, poison) in poisons.iter().enumerate() {
        general.says(BOB, poison).await;
        general.says(CAROL, &format!("honest {number}")).await;
        general.wait_for_sent(number + 1).await;
    }
    house
        .wait_until_stored(BROKEN, &poisons.len().to_string())
        .await;
    let log = process.log();
    assert_eq!(
        log.matches("bytes that is not quite JSON").count(),
        poisons.len(),
        "{log}"
    );
    assert!(
        !log.contains("control character") && !log.contains("a lone half"),
        "{log}"
    );
    // Each number counted, so nothing was missing behind it.
    assert_eq!(
        (discord.identifies().len(), discord.resumes().len()),
        (1, 0),
        "{log}"
    );
    discord.drop_connections();
    discord.wait_for_resumes(1).await;
    assert_eq!(
        discord.resumes()[0]["seq"],
        discord.dispatched("MESSAGE_CREATE").last().unwrap()["s"]
    );
    assert_eq!(process.stop().await, 0);
    let answers: Vec<String> = (0..poisons.len())
        .map(|number| format!("re: honest {number}"))
        .collect();
    assert_eq!(general.texts(), answers);
}

/// Messages are asked for in pages, and a page is read message by message.
#[tokio::test]
async fn messages_beside_broken_ones_are_caught_up_with() {
    let (house, discord, general) = house().await;
    let process = house.spawn().await;
    listening(&house).await;
    assert_eq!(process.stop().await, 0);
    let mut poisons = poisons(&discord);
    discord.garble(b"no text", b"no tex\xff");
    poisons.push("no text".to_owned());
    for (number, poison) in poisons.iter().enumerate() {
        general.says(BOB, &format!("honest {number}")).await;
        general.says(BOB, poison).await;
    }
    let process = house.spawn().await;
    house
        .wait_until_stored(BROKEN, &poisons.len().to_string())
        .await;
    general.says(CAROL, "live").await;
    discord
        .wait_until(|journal| {
            journal
                .sent_in(general.id)
                .any(|sent| sent.text == "re: live")
        })
        .await;
    house
        .wait_until_stored("SELECT count(*) FROM inbox WHERE state = 'waiting'", "0")
        .await;
    assert_eq!(process.stop().await, 0);
    let answers = general.texts().join("\n");
    for number in 0..poisons.len() {
        assert_eq!(
            answers.matches(&format!("honest {number}")).count(),
            1,
            "{answers}"
        );
    }
}

/// The last message is the place to go on from, also if it is broken.
#[tokio::test]
async fn a_broken_message_is_asked_for_once() {
    let (house, discord, general) = house().await;
    let process = house.spawn().await;
    listening(&house).await;
    assert_eq!(process.stop().await, 0);
    discord.garble(b"eats the quote", b"eats the quot\\");
    general.says(BOB, "honest").await;
    let last = general.says(BOB, "eats the quote").await.message_id;
    let process = house.spawn().await;
    general.wait_for_sent(1).await;
    house
        .wait_until_stored(
            &format!("SELECT message >= {last} FROM discord_seen WHERE channel = 8101"),
            "1",
        )
        .await;
    assert_eq!(house.ask(BROKEN), "1");
    assert_eq!(process.stop().await, 0);
    assert_eq!(general.texts(), ["re: honest"]);
}
