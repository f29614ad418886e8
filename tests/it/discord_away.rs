//! What people did on Discord while nobody listened, in places that the bot had never seen.

use std::time::Duration;

use parlor::gateway::Gateway;

use crate::support::House;
use crate::support::fake_discord::{ALICE, BOB, CAROL, FakeDiscord, Room, Route};

const BOUND: &str = r#"
[access]
owners = ["discord:111"]
require_mention = false
[agents.main]
[agents.rose]
who = "guest"
[[bindings]]
match = "discord:channel:8101"
agent = "main"
[[bindings]]
match = "discord:category:8200"
agent = "main"
"#;

/// Returns once the bot knows from when on it listens: to the server and to private chats.
async fn open(house: &House, discord: &FakeDiscord) -> Gateway {
    let gateway = house.open_with(discord).await;
    house
        .wait_until_stored("SELECT count(*) FROM discord_heard", "2")
        .await;
    gateway
}

/// Starts for the second time, so that everything in between was missed.
async fn open_again(house: &House, discord: &FakeDiscord) -> Gateway {
    let gateway = house.open().await;
    discord.wait_for_identifies(2).await;
    gateway
}

/// What is said live waits until everything that was missed is in.
async fn caught_up(gateway: &Gateway, place: &Room) {
    let answers = place.texts().len();
    place.says(CAROL, "back").await;
    place.wait_for_sent(answers + 1).await;
    gateway.settled().await;
}

#[tokio::test]
async fn a_thread_and_a_post_made_meanwhile_are_answered() {
    let (house, discord, guild) = House::with_garden("", BOUND).await;
    let general = guild.text_channel(8101, "general");
    let forum = guild
        .forum(8201, "questions", &[])
        .below(&guild.category(8200, "Lab"));
    let elsewhere = guild.text_channel(8301, "elsewhere");
    open(&house, &discord).await.shutdown().await;
    let thread = general.creates_thread(BOB, "talk").await;
    thread.says(BOB, "anybody?").await;
    thread.says(CAROL, "me neither").await;
    let post = forum.posts(BOB, "It broke", &[], "help me").await;
    let closed = elsewhere.creates_thread(BOB, "not ours").await;
    closed.says(BOB, "nobody is here").await;
    let gateway = open_again(&house, &discord).await;
    assert_eq!(post.wait_for_sent(1).await.text, "re: [Bob] help me");
    thread.wait_for_sent(1).await;
    caught_up(&gateway, &general).await;
    let answers = thread.texts().join("\n");
    assert!(
        answers.contains("anybody?") && answers.contains("me neither"),
        "{answers}"
    );
    assert_eq!(closed.texts(), [""; 0], "nothing opens that place");
    let asked =
        |call: &crate::support::fake_discord::journal::Call| call.channel_id == Some(closed.id);
    assert!(
        !discord.calls(Route::GetMessages).iter().any(asked),
        "so it is not even asked about"
    );
    gateway.shutdown().await;
}

/// Where every place is open, every place is looked at; what was said before the bot first came is
/// not.
#[tokio::test]
async fn an_open_house_is_caught_up_with_everywhere() {
    let open_house = "[access]\ngroups = \"open\"\nrequire_mention = false\n";
    let (house, discord, guild) = House::with_garden("", open_house).await;
    let (general, quiet) = (
        guild.text_channel(8101, "general"),
        guild.text_channel(8102, "quiet"),
    );
    quiet.says(BOB, "long before").await;
    open(&house, &discord).await.shutdown().await;
    general.says(BOB, "while you were out").await;
    let made = guild.text_channel(8103, "made meanwhile");
    made.says(BOB, "in a new channel").await;
    let gateway = open_again(&house, &discord).await;
    assert_eq!(
        general.wait_for_sent(1).await.text,
        "re: while you were out"
    );
    assert_eq!(made.wait_for_sent(1).await.text, "re: in a new channel");
    caught_up(&gateway, &general).await;
    assert_eq!(quiet.texts(), [""; 0]);
    let asked: Vec<_> = discord
        .calls(Route::GetMessages)
        .into_iter()
        .filter_map(|call| call.channel_id)
        .collect();
    assert!(
        !asked.contains(&quiet.id),
        "its last message is known to be old"
    );
    gateway.shutdown().await;
}

/// Discord does not say who wrote in private; owners and people who were let in are looked up.
#[tokio::test]
async fn a_first_private_message_of_somebody_known_is_answered() {
    let (house, discord, guild) = House::with_garden("", BOUND).await;
    let general = guild.text_channel(8101, "general");
    open(&house, &discord).await.shutdown().await;
    house.tell(
        "INSERT INTO people (id, name, paired_at, created_at) VALUES ('discord:222', 'Bob', 1, 1)",
    );
    discord.dm(ALICE).says("it is me").await;
    discord.dm(BOB).says("me too").await;
    discord.dm(CAROL).says("and me").await;
    let gateway = open_again(&house, &discord).await;
    assert_eq!(
        discord.dm(ALICE).wait_for_sent(1).await.text,
        "re: it is me"
    );
    assert_eq!(discord.dm(BOB).wait_for_sent(1).await.text, "re: me too");
    caught_up(&gateway, &general).await;
    assert_eq!(discord.dm(CAROL).texts(), [""; 0], "nobody knows of her");
    assert_eq!(discord.calls(Route::CreateDm).len(), 2);
    gateway.shutdown().await;
}

/// With open private chats, those who talked to the bot on a server may have written too.
#[tokio::test]
async fn a_first_private_message_of_somebody_who_talked_elsewhere_is_answered() {
    let open_dms = "[access]\ndms = \"open\"\nrequire_mention = false\n[[bindings]]\nmatch = \"discord:channel:8101\"\nagent = \"main\"\n";
    let (house, discord, guild) = House::with_garden("", open_dms).await;
    let general = guild.text_channel(8101, "general");
    let gateway = open(&house, &discord).await;
    general.says(BOB, "hello").await;
    general.wait_for_sent(1).await;
    gateway.settled().await;
    gateway.shutdown().await;
    discord.dm(BOB).says("in private").await;
    let gateway = open_again(&house, &discord).await;
    assert_eq!(
        discord.dm(BOB).wait_for_sent(1).await.text,
        "re: in private"
    );
    gateway.settled().await;
    gateway.shutdown().await;
}

/// The name of a thread made meanwhile counts as if it had just been made.
#[tokio::test]
async fn a_thread_made_meanwhile_is_bound_by_its_name() {
    let (house, discord, guild) = House::with_garden("auto_bind = true", BOUND).await;
    let general = guild.text_channel(8101, "general");
    open(&house, &discord).await.shutdown().await;
    let thread = general.creates_thread(BOB, "rose").await;
    thread.says(BOB, "are you there?").await;
    let gateway = open_again(&house, &discord).await;
    assert!(
        thread.wait_for_sent(1).await.text.contains("Rose"),
        "{:?}",
        thread.texts()
    );
    assert_eq!(
        thread.wait_for_sent(2).await.text,
        "re: [Bob] are you there?"
    );
    gateway.settled().await;
    let agents =
        "SELECT group_concat(agents.slug) FROM turns JOIN agents ON agents.uid = turns.agent_uid";
    assert_eq!(house.ask(agents), "rose");
    gateway.shutdown().await;
}

/// A server that takes the bot in has talked before, and not to the bot.
#[tokio::test]
async fn what_was_said_before_the_bot_came_is_left_alone() {
    let (house, discord, guild) =
        House::with_garden("", BOUND.replace("8101", "9101").as_str()).await;
    guild.text_channel(8101, "general");
    let gateway = open(&house, &discord).await;
    gateway.shutdown().await;
    let orchard = discord.guild(9001, "Orchard");
    let general = orchard.text_channel(9101, "general");
    let thread = general.creates_thread(BOB, "talk").await;
    thread.says(BOB, "among ourselves").await;
    let gateway = open_again(&house, &discord).await;
    caught_up(&gateway, &general).await;
    assert_eq!(thread.texts(), [""; 0]);
    gateway.shutdown().await;
}

/// The first messages of a place come as events. Asked for as missed ones too, the later of them
/// would overtake those that wait behind READY.
#[tokio::test]
async fn a_place_that_was_just_bound_has_missed_nothing() {
    let (house, discord, guild) = House::with_garden("", BOUND).await;
    let general = guild.text_channel(8101, "general");
    let gateway = open(&house, &discord).await;
    caught_up(&gateway, &general).await;
    gateway.shutdown().await;
    assert_eq!(discord.calls(Route::GetMessages).len(), 0);
    general.says(CAROL, "and meanwhile").await;
    let gateway = open_again(&house, &discord).await;
    general.wait_for_sent(2).await;
    gateway.shutdown().await;
    assert!(!discord.calls(Route::GetMessages).is_empty());
}

/// What was missed in a known channel says nothing about a thread that nobody knew of yet.
#[tokio::test]
async fn a_thread_that_was_silent_before_the_channels_went_on_is_answered() {
    let (house, discord, guild) = House::with_garden("", BOUND).await;
    let general = guild.text_channel(8101, "general");
    let gateway = open(&house, &discord).await;
    caught_up(&gateway, &general).await;
    gateway.shutdown().await;
    discord.advance(Duration::from_secs(60));
    let thread = general.creates_thread(BOB, "talk").await;
    thread.says(BOB, "anybody?").await;
    discord.advance(Duration::from_secs(60));
    general.says(CAROL, "much later").await;
    let gateway = open_again(&house, &discord).await;
    assert_eq!(thread.wait_for_sent(1).await.text, "re: [Bob] anybody?");
    assert_eq!(general.wait_for_sent(2).await.text, "re: much later");
    gateway.shutdown().await;
}
