//! The connection to Discord's gateway in detail: who connects, what is logged of its end, and
//! events that never came.

use crate::support::House;
use crate::support::fake_discord::{BOB, FakeDiscord, Fault, Room, Route};
use crate::support::house::Process;

const OPEN: &str = "[access]\nrequire_mention = false\n[[bindings]]\nmatch = \"discord:channel:8101\"\nagent = \"main\"\n";

async fn house() -> (House, FakeDiscord, Room) {
    let house = House::new(OPEN).await;
    let discord = house.add_discord("").await;
    let general = discord.guild(8001, "Garden").text_channel(8101, "general");
    (house, discord, general)
}

/// <https://discord.com/developers/docs/reference#user-agent>
#[tokio::test]
async fn the_gateway_hears_the_same_name_as_the_rest() {
    let (house, discord, general) = house().await;
    let gateway = house.open_with(&discord).await;
    general.says(BOB, "hello").await;
    general.wait_for_sent(1).await;
    let name = format!("DiscordBot (parlor, {})", env!("CARGO_PKG_VERSION"));
    for route in [Route::GetGatewayBot, Route::Connect, Route::CreateMessage] {
        assert_eq!(discord.calls(route)[0].user_agent, name, "{route:?}");
    }
    gateway.settled().await;
    gateway.shutdown().await;
}

/// A lost event is fetched by a resume as soon as the next one comes, and what follows waits for
/// it.
#[tokio::test]
async fn an_event_that_never_came_is_noticed_and_fetched() {
    let (house, discord, general) = house().await;
    let process = house.spawn().await;
    // What the start asks for is there.
    house
        .wait_until_stored("SELECT count(*) FROM discord_heard", "2")
        .await;
    discord.lose_next_event();
    general.says(BOB, "one").await;
    general.says(BOB, "two").await;
    general.wait_for_sent(2).await;
    process
        .wait_for_log("an event of Discord is missing before number")
        .await;
    assert_eq!(
        (discord.identifies().len(), discord.resumes().len()),
        (1, 1)
    );
    assert_eq!(process.stop().await, 0);
    assert_eq!(general.texts(), ["re: one", "re: two"]);
}

#[tokio::test]
async fn the_log_has_the_reason_of_a_close() {
    let (house, discord, general) = house().await;
    let process = house.spawn().await;
    discord.connected().await;
    discord.close_connections(4000);
    process
        .wait_for_log("the connection to Discord ended: 4000, Unknown error.; resuming")
        .await;
    discord.wait_for_resumes(1).await;
    discord.close_connections(4009);
    process
        .wait_for_log(
            "the connection to Discord ended: 4009, Session timed out.; beginning a new session",
        )
        .await;
    discord.wait_for_identifies(2).await;
    general.says(BOB, "still there?").await;
    general.wait_for_sent(1).await;
    assert_eq!(process.stop().await, 0);
}

/// Before the greeting too a code says whether another try can help.
#[tokio::test]
async fn a_close_before_the_greeting_is_read_like_any_other() {
    let (house, discord, general) = house().await;
    discord.close_next_connection(4000);
    let process = house.spawn().await;
    discord.connected().await;
    general.says(BOB, "hello").await;
    general.wait_for_sent(1).await;
    assert_eq!(process.stop().await, 0);

    discord.close_next_connection(4014);
    let process = Process::start(house.home.path(), &["run"]);
    process
        .wait_for_log("Discord ended the connection for good: 4014, Disallowed intent(s).")
        .await;
    process.wait_for_log("discord is off: Discord does not let the bot read messages. Enable Message Content Intent").await;
    assert_eq!(discord.connections(), 3, "not tried again");
    assert_eq!(process.stop().await, 0);
}

/// Which field was wrong, and why; not a word of what was in it.
#[tokio::test]
async fn the_log_says_what_is_wrong_with_a_refused_message() {
    let (mut house, discord, general) = house().await;
    let process = house.spawn().await;
    discord.connected().await;
    discord
        .fail(Route::CreateMessage, Fault::INVALID_FORM)
        .once();
    general.says(BOB, "my secret plan").await;
    process
        .wait_for_log("Discord answered 400: Invalid Form Body: content BASE_TYPE_REQUIRED (50035)")
        .await;
    assert!(!process.log().contains("secret plan"), "{}", process.log());
    house.leave_leftovers();
    assert_eq!(process.stop().await, 0);
}
