//! Conversations on Discord: where people write, who answers there, and what the agent reads.

use serde_json::json;

use crate::support::House;
use crate::support::fake_discord::{
    ALICE, BOB, CAROL, FakeDiscord, GuildHandle, OTHER_BOT, PARLOR_BOT, Room, Route,
};

const GARDEN: u64 = 8001;

/// A server with a channel, a forum and a category of their own.
const TEAM: &str = r#"
[access]
owners = ["discord:111"]
dms = "open"
require_mention = false
[agents.main]
[agents.rose]
who = "guest"
name = "Rose"
emoji = "🌹"
[agents.ada]
who = "guest"
[agents.night-desk]
who = "guest"
[[bindings]]
match = "discord:channel:8101"
agent = "rose"
[[bindings]]
match = "discord:category:8200"
agent = "ada"
[[bindings]]
match = "discord:channel:8300"
agent = "main"
tag = "bug"
[[bindings]]
match = "discord:channel:8300"
agent = "ada"
name = "night *"
[[bindings]]
match = "discord:guild:8001"
roles = ["9001"]
agent = "night-desk"
"#;

async fn team() -> (House, FakeDiscord, GuildHandle) {
    House::with_garden("", TEAM).await
}

/// Who had the last turn.
fn asked(house: &House) -> String {
    house.ask("SELECT agents.slug FROM turns JOIN agents ON agents.uid = turns.agent_uid ORDER BY turns.id DESC LIMIT 1")
}

/// S0.1, S4.1, S4.4, S4.44: one process, one session on each platform, and each agent answers in
/// its place.
#[tokio::test]
async fn one_process_answers_on_both_platforms() {
    let house = House::new(&format!(
        "{TEAM}[[bindings]]\nmatch = \"telegram:topic:-1001:5\"\nagent = \"ada\"\n"
    ))
    .await;
    let discord = house.add_discord("").await;
    let general = discord
        .guild(GARDEN, "Garden")
        .text_channel(8101, "general");
    let gateway = house.open_with(&discord).await;
    let topic = house.telegram.forum(-1001).topic(5, "Ada");
    topic
        .says(crate::support::fake_telegram::BOB, "hello from a topic")
        .await;
    assert_eq!(
        topic.wait_for_sent(1).await.text,
        "re: [Bob] hello from a topic"
    );
    general.says(BOB, "hello from a channel").await;
    assert_eq!(
        general.wait_for_sent(1).await.text,
        "re: hello from a channel"
    );
    let dm = discord.dm(CAROL);
    dm.says("hello in private").await;
    assert_eq!(dm.wait_for_sent(1).await.text, "re: hello in private");
    gateway.settled().await;
    assert_eq!((discord.identifies().len(), discord.connections()), (1, 1));
    let agents = "SELECT group_concat(slug) FROM (SELECT slug FROM turns JOIN agents ON uid = agent_uid ORDER BY turns.id)";
    assert_eq!(
        house.ask(agents),
        "ada,rose,main",
        "the topic is Ada's, the channel Rose's"
    );
    gateway.shutdown().await;
    assert_eq!(discord.closed_by_bot(), [1000]);
}

/// Every kind of place has the key that DESIGN gives it; `/whoami` says it.
#[tokio::test]
async fn every_kind_of_place_has_its_key() {
    let (house, discord, guild) = team().await;
    let general = guild.text_channel(8101, "general");
    let category = guild.category(8200, "Lab");
    let voice = guild.voice_channel(8201, "Standup").below(&category);
    let news = guild.announcement_channel(8202, "news").below(&category);
    let old_thread = general.thread(8111, "old talk");
    let forum = guild.forum(8300, "questions", &[(71, "bug"), (72, "idea")]);
    let gateway = house.open_with(&discord).await;
    let whoami = async |room: &Room, expected: &str, agent: &str| {
        room.says(ALICE, "/whoami").await;
        let answer = room.wait_for_sent(1).await.text;
        assert!(
            answer.contains(&format!("`{expected}`")) && answer.contains(agent),
            "{expected} {agent}: {answer}"
        );
    };
    whoami(&general, "discord:channel:8101:111", "Rose").await;
    whoami(&old_thread, "discord:thread:8101:8111", "Rose").await;
    whoami(&voice, "discord:channel:8201:111", "Ada").await;
    let thread = news.creates_thread(BOB, "about the news").await;
    whoami(
        &thread,
        &format!("discord:thread:8202:{}", thread.id),
        "Ada",
    )
    .await;
    let post = forum.posts(ALICE, "It broke", &[71], "/whoami").await;
    let answer = post.wait_for_sent(1).await.text;
    assert!(
        answer.contains(&format!("`discord:thread:8300:{}`", post.id))
            && answer.contains("tag \"bug\""),
        "{answer}"
    );
    discord.dm(ALICE).says("/whoami").await;
    let answer = discord.dm(ALICE).wait_for_sent(1).await.text;
    assert!(answer.contains("`discord:dm:111`"), "{answer}");
    gateway.settled().await;
    assert_eq!(
        discord.calls(Route::GetChannel).len(),
        0,
        "events told everything"
    );
    gateway.shutdown().await;
}

/// Rules by tag, by name, by role, by category.
#[tokio::test]
async fn a_post_is_routed_by_its_tag_its_name_and_the_roles_of_its_author() {
    let (house, discord, guild) = team().await;
    guild.role(9001, "crew");
    guild.gives_roles(CAROL, &[9001]);
    let forum = guild.forum(8300, "questions", &[(71, "bug"), (72, "idea")]);
    let lounge = guild.text_channel(8400, "lounge");
    let gateway = house.open_with(&discord).await;
    let expect = async |room: &Room, count: usize, agent: &str| {
        room.wait_for_sent(count).await;
        gateway.settled().await;
        assert_eq!(asked(&house), agent);
    };
    let bug = forum
        .posts(BOB, "It broke", &[71], "it does not start")
        .await;
    expect(&bug, 1, "main").await;
    let night = forum.posts(BOB, "Night shift", &[], "who is there").await;
    expect(&night, 1, "ada").await;
    lounge.says(CAROL, "hello").await;
    expect(&lounge, 1, "night-desk").await;
    lounge.says(BOB, "is somebody there?").await;
    let idea = forum.posts(BOB, "An idea", &[72], "what about this").await;
    idea.renames("night idea").await;
    idea.says(BOB, "and now?").await;
    expect(&idea, 1, "ada").await;
    assert_eq!(lounge.texts().len(), 1, "nothing opens the lounge to Bob");
    gateway.shutdown().await;
}

/// A new post is a new session that begins with its first message, once.
#[tokio::test]
async fn a_new_post_is_answered_once() {
    let (house, discord, guild) = team().await;
    let forum = guild.forum(8300, "questions", &[(71, "bug")]);
    let gateway = house.open_with(&discord).await;
    let post = forum
        .posts(BOB, "It broke", &[71], "it does not start")
        .await;
    assert_eq!(
        post.wait_for_sent(1).await.text,
        "re: [Bob] it does not start"
    );
    discord.deliver_again(post.id, post.id);
    post.says(BOB, "still not").await;
    assert_eq!(post.wait_for_sent(2).await.text, "re: [Bob] still not");
    let request = house.model.last_request();
    assert_eq!(request.messages.len(), 3, "{:?}", request.messages);
    gateway.settled().await;
    assert_eq!(post.texts().len(), 2);
    gateway.shutdown().await;
}

/// S1.4, S1.23: the same commands as on Telegram, written as text.
#[tokio::test]
async fn commands_are_written_as_on_telegram() {
    let (house, discord, guild) = team().await;
    let general = guild.text_channel(8101, "general");
    let thread = general.thread(8111, "talk");
    let gateway = house.open_with(&discord).await;
    thread
        .says(BOB, &format!("{} /agent ada", PARLOR_BOT.mention()))
        .await;
    assert!(
        thread.wait_for_sent(1).await.text.contains("Ada"),
        "{:?}",
        thread.texts()
    );
    thread.says(BOB, "hello").await;
    thread.wait_for_sent(2).await;
    gateway.settled().await;
    assert_eq!(asked(&house), "ada");
    thread.says(BOB, "/agent nobody").await;
    let refused = thread.wait_for_sent(3).await.text;
    assert!(refused.contains("nobody"), "{refused}");
    thread.says(BOB, "/new").await;
    thread.wait_for_sent(4).await;
    thread.says(BOB, "hello anew").await;
    thread.wait_for_sent(5).await;
    gateway.settled().await;
    assert_eq!(asked(&house), "ada", "a new conversation keeps the agent");
    assert_eq!(house.model.last_request().messages.len(), 1);
    thread.says(BOB, "/agent reset").await;
    thread.wait_for_sent(6).await;
    thread.says(BOB, "hello again").await;
    thread.wait_for_sent(7).await;
    gateway.settled().await;
    assert_eq!(asked(&house), "rose");
    gateway.shutdown().await;
}

const MENTION: &str = r#"
[access]
owners = ["discord:111"]
[[bindings]]
match = "discord:channel:8101"
agent = "main"
"#;

/// Mentions, replies and nicknames turn to the bot; machines and Discord itself do not.
#[tokio::test]
async fn where_a_mention_is_wanted_only_that_is_answered() {
    let (house, discord, guild) = House::with_garden("nicknames = [\"parlor\"]", MENTION).await;
    let general = guild.text_channel(8101, "general");
    let thread = general.thread(8111, "talk");
    let gateway = house.open_with(&discord).await;
    thread.says(BOB, "we talk among ourselves").await;
    thread
        .says(OTHER_BOT, &format!("{} beep", PARLOR_BOT.mention()))
        .await;
    thread
        .says(BOB, &format!("{} through a hook", PARLOR_BOT.mention()))
        .through_webhook(5)
        .await;
    thread
        .says(BOB, &format!("{} pinned", PARLOR_BOT.mention()))
        .of_type(6)
        .await;
    thread
        .says(BOB, &format!("{}, are you there?", PARLOR_BOT.mention()))
        .await;
    let first = thread.wait_for_sent(1).await;
    assert_eq!(
        first.text,
        "re: [Bob] we talk among ourselves\n\n[Bob] are you there?"
    );
    thread.says(CAROL, "nice").await;
    thread
        .says(CAROL, "say more")
        .replying_to(first.message_id)
        .await;
    thread.wait_for_sent(2).await;
    thread.says(BOB, "Parlor, and you?").await;
    thread.wait_for_sent(3).await;
    gateway.settled().await;
    assert_eq!(thread.texts().len(), 3);
    let asked = house
        .model
        .last_request()
        .messages
        .into_iter()
        .map(|(_, text)| text)
        .collect::<Vec<_>>()
        .join("\n");
    let quoted = "[replying to you: “re: Bob we talk among ourselves Bob are you there?”] say more";
    for said in ["[Bob] we talk among ourselves", "[Carol] nice", quoted] {
        assert!(asked.contains(said), "{said} is not in {asked}");
    }
    for machine in ["beep", "hook", "pinned"] {
        assert!(!asked.contains(machine), "{machine} is in {asked}");
    }
    gateway.shutdown().await;
}

/// Files land in the workspace; stickers, polls, forwards and replies are put into words.
#[tokio::test]
async fn what_is_not_text_is_read_too() {
    let (house, discord, guild) = team().await;
    let general = guild.text_channel(8101, "general");
    let gateway = house.open_with(&discord).await;
    general
        .says(BOB, "two files")
        .attaching("a.txt", "text/plain", b"first")
        .attaching("b.txt", "text/plain", b"second")
        .await;
    let answer = general.wait_for_sent(1).await.text;
    assert!(
        answer.contains("two files") && answer.contains("saved as inbox/"),
        "{answer}"
    );
    let folder = house
        .home
        .path()
        .join("agents/rose/workspace/inbox/discord.channel.8101.222/guests");
    let mut stored: Vec<String> = std::fs::read_dir(folder)
        .expect("there is an inbox")
        .map(|entry| std::fs::read_to_string(entry.expect("an entry").path()).expect("it is text"))
        .collect();
    stored.sort();
    assert_eq!(stored, ["first", "second"]);
    general
        .says(BOB, "")
        .with(
            "sticker_items",
            json!([{ "id": "5", "name": "Wumpus", "format_type": 1 }]),
        )
        .await;
    assert_eq!(general.wait_for_sent(2).await.text, "re: [sticker Wumpus]");
    let snapshot = json!([{ "message": { "content": "news from afar", "type": 0 } }]);
    general
        .says(BOB, "")
        .with("message_snapshots", snapshot)
        .with("message_reference", json!({ "type": 1 }))
        .await;
    assert_eq!(
        general.wait_for_sent(3).await.text,
        "re: [forwarded] news from afar"
    );
    general
        .says(BOB, &format!("ask {} <:wave:5>", CAROL.mention()))
        .await;
    assert_eq!(general.wait_for_sent(4).await.text, "re: ask @Carol :wave:");
    gateway.shutdown().await;
}

/// An edit changes a message that waits; later it is noted, and so is a reaction.
#[tokio::test]
async fn edits_and_reactions_reach_the_agent() {
    let (house, discord, guild) = team().await;
    let thread = guild.text_channel(8101, "general").thread(8111, "talk");
    let gateway = house.open_with(&discord).await;
    house.model.hold();
    thread.says(BOB, "first").await;
    house.model.wait_for_open(1).await;
    let second = thread.says(BOB, "secnd").await;
    house
        .wait_until_stored("SELECT count(*) FROM inbox WHERE state = 'waiting'", "2")
        .await;
    thread.edits(second.message_id, "second").await;
    house
        .wait_until_stored(
            "SELECT count(*) FROM inbox WHERE outcome = 'replaced a waiting message'",
            "1",
        )
        .await;
    house.model.release();
    let answer = thread.wait_for_sent(2).await;
    assert_eq!(answer.text, "re: [Bob] second");
    gateway.settled().await;
    thread.reacts(CAROL, answer.message_id, "👍").await;
    thread.says(BOB, "third").await;
    thread.wait_for_sent(3).await;
    let asked = house
        .model
        .last_request()
        .messages
        .into_iter()
        .map(|(_, text)| text)
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        asked.contains("[Carol] [reacted 👍 to “re: [Bob] second”]"),
        "{asked}"
    );
    gateway.shutdown().await;
}

/// With `auto_bind`, a new thread or post that is called like an agent is that agent's.
#[tokio::test]
async fn a_thread_that_is_called_like_an_agent_is_given_to_it() {
    let (house, discord, guild) = House::with_garden("auto_bind = true", TEAM).await;
    let general = guild.text_channel(8101, "general");
    let gateway = house.open_with(&discord).await;
    let thread = general.creates_thread(BOB, "Ada").await;
    assert!(
        thread.wait_for_sent(1).await.text.contains("Ada"),
        "{:?}",
        thread.texts()
    );
    thread.says(BOB, "hello").await;
    thread.wait_for_sent(2).await;
    gateway.settled().await;
    assert_eq!(asked(&house), "ada");
    let other = general.creates_thread(BOB, "gardening").await;
    other.says(BOB, "hello").await;
    other.wait_for_sent(1).await;
    gateway.settled().await;
    assert_eq!(asked(&house), "rose");
    gateway.shutdown().await;
}

/// A channel is found by its name, alone or behind the server's, and a thread behind both.
#[tokio::test]
async fn places_are_found_by_server_and_channel() {
    let (house, discord, guild) = House::with_garden("", MENTION).await;
    let general = guild.text_channel(8101, "general");
    let thread = general.thread(8111, "talk");
    let gateway = house.open_with(&discord).await;
    let hello = format!("{} hello", PARLOR_BOT.mention());
    general.says(BOB, &hello).await;
    thread.says(BOB, &hello).await;
    general.wait_for_sent(1).await;
    thread.wait_for_sent(1).await;
    gateway.settled().await;
    gateway.shutdown().await;
    let home = house.home.path();
    for (word, key) in [
        ("Garden/general", "discord:channel:8101"),
        ("general", "discord:channel:8101"),
        ("garden/general/talk", "discord:thread:8101:8111"),
        ("talk", "discord:thread:8101:8111"),
    ] {
        let told = crate::cli::run(home, &["route", "explain", word, "--json"]).await;
        let told: serde_json::Value = serde_json::from_str(&told.stdout).expect("JSON");
        assert_eq!(told["origin"]["key"], key, "{word}");
    }
}
