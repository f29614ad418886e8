//! The life of the connection to Discord: it breaks, is resumed, is refused. Nothing is lost, and
//! nothing is answered twice.

use std::time::Duration;

use serde_json::json;

use crate::support::House;
use crate::support::fake_discord::{
    BOB, CAROL, FakeDiscord, Fault, Invalidation, PARLOR_BOT, Room, Route,
};
use crate::support::house::Process;

const GARDEN: u64 = 8001;
const OPEN: &str = "[access]\ndms = \"open\"\nrequire_mention = false\n[[bindings]]\nmatch = \"discord:channel:8101\"\nagent = \"main\"\n";

async fn house() -> (House, FakeDiscord, Room) {
    let (house, discord, garden) = House::with_garden("", OPEN).await;
    let general = garden.text_channel(8101, "general");
    (house, discord, general)
}

async fn answered(room: &Room, text: &str, count: usize) {
    room.says(BOB, text).await;
    assert_eq!(room.wait_for_sent(count).await.text, format!("re: {text}"));
}

#[tokio::test]
async fn a_connection_that_breaks_is_resumed_and_nothing_is_missing() {
    let (house, discord, general) = house().await;
    let gateway = house.open_with(&discord).await;
    answered(&general, "one", 1).await;
    discord.drop_connections();
    general.says(BOB, "two").await;
    general.wait_for_sent(2).await;
    discord.ask_to_reconnect();
    general.says(BOB, "three").await;
    general.wait_for_sent(3).await;
    discord.close_connections(4000);
    general.says(BOB, "four").await;
    general.wait_for_sent(4).await;
    discord.invalidate_sessions(Invalidation::CanResume);
    general.says(BOB, "five").await;
    general.wait_for_sent(5).await;
    gateway.settled().await;
    assert_eq!(
        general.texts(),
        ["re: one", "re: two", "re: three", "re: four", "re: five"]
    );
    assert_eq!(
        (discord.identifies().len(), discord.resumes().len()),
        (1, 4)
    );
    gateway.shutdown().await;
}

/// serenity would throw the session away here.
#[tokio::test]
async fn a_heartbeat_without_an_answer_leads_to_a_resume() {
    let (house, discord, general) = house().await;
    discord.set_heartbeat_interval(Duration::from_millis(300));
    let gateway = house.open_with(&discord).await;
    discord.wait_for_heartbeats(2).await;
    assert_eq!(
        discord.connections(),
        1,
        "heartbeats that are answered keep it"
    );
    let silence = discord.withhold_heartbeat_acks();
    discord.wait_for_resumes(1).await;
    drop(silence);
    answered(&general, "still here", 1).await;
    assert_eq!(discord.identifies().len(), 1);
    gateway.shutdown().await;
}

/// A lost session means a gap, which is asked for.
#[tokio::test]
async fn what_was_said_in_a_lost_session_is_asked_for() {
    let (house, discord, general) = house().await;
    let gateway = house.open_with(&discord).await;
    answered(&general, "one", 1).await;
    gateway.settled().await;
    discord.forget_sessions();
    general.says(BOB, "two").await;
    general.says(CAROL, "three").await;
    discord.drop_connections();
    discord.close_connections(4000);
    discord.wait_for_identifies(2).await;
    general.wait_for_sent(3).await;
    gateway.settled().await;
    let mut texts = general.texts();
    texts.sort();
    assert_eq!(texts, ["re: one", "re: three", "re: two"]);
    gateway.shutdown().await;
}

/// Killed without a goodbye, and people wrote meanwhile. Private chats too.
#[tokio::test]
async fn what_was_said_while_the_process_was_gone_is_answered_once() {
    let (house, discord, general) = house().await;
    let thread = general.thread(8111, "talk");
    let dm = discord.dm(CAROL);
    let process = house.spawn().await;
    discord.connected().await;
    answered(&general, "one", 1).await;
    dm.says("hello").await;
    dm.wait_for_sent(1).await;
    thread.says(BOB, "in a thread").await;
    thread.wait_for_sent(1).await;
    house
        .wait_until_stored("SELECT count(*) FROM discord_seen", "3")
        .await;
    process.kill().await;
    discord.disconnected().await;
    general.says(BOB, "while you were out").await;
    dm.says("me too").await;
    thread.says(BOB, "and here").await;
    let process = house.spawn().await;
    general.wait_for_sent(2).await;
    dm.wait_for_sent(2).await;
    thread.wait_for_sent(2).await;
    answered(&general, "back", 3).await;
    assert_eq!(process.stop().await, 0);
    assert_eq!(
        general.texts(),
        ["re: one", "re: while you were out", "re: back"]
    );
    assert_eq!(dm.texts(), ["re: hello", "re: me too"]);
    assert_eq!(
        thread.texts(),
        ["re: [Bob] in a thread", "re: [Bob] and here"]
    );
}

/// A bound channel in which nothing was ever said counts from the first start on.
#[tokio::test]
async fn a_bound_channel_is_caught_up_with_even_if_it_was_silent() {
    let (house, discord, general) = house().await;
    let gateway = house.open_with(&discord).await;
    house
        .wait_until_stored("SELECT count(*) FROM discord_seen", "1")
        .await;
    gateway.shutdown().await;
    general.says(BOB, "anybody?").await;
    discord.fail(Route::GetMessages, Fault::Html(503)).once();
    discord
        .fail(Route::GetMessages, Fault::RateLimited(0.3))
        .once();
    let gateway = house.open_with(&discord).await;
    assert_eq!(general.wait_for_sent(1).await.text, "re: anybody?");
    gateway.shutdown().await;
}

/// What was missed has its server, its roles and its thread, though Discord does not send them
/// along.
#[tokio::test]
async fn a_missed_message_is_routed_as_if_it_had_just_come() {
    let rules = "[access]\nrequire_mention = false\n[agents.rose]\n[agents.main]\n\
                 [[bindings]]\nmatch = \"discord:guild:8001\"\nroles = [\"9001\"]\nagent = \"rose\"\n";
    let house = House::new(rules).await;
    let discord = house.add_discord("").await;
    let guild = discord.guild(GARDEN, "Garden");
    guild.role(9001, "crew");
    guild.gives_roles(BOB, &[9001]);
    let thread = guild.text_channel(8101, "general").thread(8111, "talk");
    let gateway = house.open_with(&discord).await;
    thread.says(BOB, "one").await;
    thread.wait_for_sent(1).await;
    gateway.shutdown().await;
    thread.says(BOB, "two").await;
    thread.says(CAROL, "three").await;
    let gateway = house.open_with(&discord).await;
    assert_eq!(thread.wait_for_sent(2).await.text, "re: [Bob] two");
    gateway.settled().await;
    assert_eq!(
        house.ask(
            "SELECT group_concat(DISTINCT key) FROM inbox JOIN places ON places.id = place_id"
        ),
        "discord:thread:8101:8111"
    );
    assert_eq!(thread.texts().len(), 2, "Carol is not of the crew");
    gateway.shutdown().await;
}

#[tokio::test]
async fn the_same_message_twice_is_one() {
    let (house, discord, general) = house().await;
    let gateway = house.open_with(&discord).await;
    let said = general.says(BOB, "one").await;
    discord.deliver_again(said.channel_id, said.message_id);
    answered(&general, "two", 2).await;
    gateway.settled().await;
    assert_eq!(general.texts().len(), 2);
    gateway.shutdown().await;
}

/// Messages of one channel are answered in the order they were written, however fast they come.
#[tokio::test]
async fn messages_do_not_overtake_each_other() {
    let (house, discord, general) = house().await;
    let thread = general.thread(8111, "talk");
    let gateway = house.open_with(&discord).await;
    for number in 0..30 {
        thread.says(BOB, &format!("number {number}")).await;
    }
    house
        .wait_until_stored(
            "SELECT count(*) FROM inbox WHERE outcome = 'answered'",
            "30",
        )
        .await;
    gateway.settled().await;
    let answers = thread.texts().join("\n");
    let numbers: Vec<&str> = answers
        .lines()
        .filter_map(|line| line.rsplit_once("number ").map(|(_, number)| number))
        .collect();
    let expected: Vec<String> = (0..30).map(|number| number.to_string()).collect();
    assert_eq!(numbers, expected, "whether one by one or as a backlog");
    gateway.shutdown().await;
}

/// serenity would drop these without a word.
#[tokio::test]
async fn an_event_with_a_field_missing_is_read_or_kept_for_the_operator() {
    let (house, discord, general) = house().await;
    let gateway = house.open_with(&discord).await;
    discord.spoil_next("MESSAGE_CREATE", "timestamp");
    answered(&general, "without a time", 1).await;
    discord.spoil_next("MESSAGE_CREATE", "content");
    general.says(BOB, "without its words").await;
    answered(&general, "whole", 2).await;
    gateway.settled().await;
    assert_eq!(
        house.ask("SELECT outcome FROM inbox WHERE state = 'broken'"),
        "a message without content"
    );
    discord.dispatch_raw(Some(GARDEN), "SOMETHING_NEW", json!({ "a": 1 }));
    answered(&general, "still here", 3).await;
    gateway.shutdown().await;
}

/// Each of these would come again with every try.
#[tokio::test]
async fn a_refusal_for_good_stops_discord_and_leaves_telegram_alone() {
    for (code, words) in [
        (
            4004,
            "Discord does not accept the bot token. Create a new one on the Bot page of the developer portal",
        ),
        (
            4014,
            "Enable Message Content Intent on the Bot page of the developer portal",
        ),
        (4013, "Discord does not know an intent that Parlor asks for"),
        (
            4010,
            "Discord wants this bot to connect in another number of pieces",
        ),
        (
            4011,
            "Discord wants this bot to connect in another number of pieces",
        ),
        (4012, "Discord no longer speaks the version of its API"),
    ] {
        let (house, discord, _) = house().await;
        discord.close_every_identify(Some(code));
        let process = house.spawn().await;
        process.wait_for_log(words).await;
        let dm = house.telegram.dm(crate::support::fake_telegram::BOB);
        dm.says("are you there?").await;
        assert_eq!(dm.wait_for_sent(1).await.text, "re: are you there?");
        assert_eq!(discord.identifies().len(), 1, "{code} is not tried again");
        assert_eq!(process.stop().await, 0);
    }
}

#[tokio::test]
async fn a_token_that_discord_does_not_know_is_told_at_once() {
    let (house, discord, _) = house().await;
    house.write("secrets/discord", "NzAw.not.ours");
    let process = house.spawn().await;
    process
        .wait_for_log("discord is off: Discord does not accept the bot token")
        .await;
    assert!(!process.log().contains("NzAw.not.ours"));
    assert_eq!(discord.identifies().len(), 0);
    assert_eq!(process.stop().await, 0);
}

/// Without the intent messages come empty; the operator is told once what to do.
#[tokio::test]
async fn messages_without_text_are_explained_once() {
    let (house, discord, general) = house().await;
    let process = house.spawn().await;
    discord.connected().await;
    for _ in 0..12 {
        general.says(BOB, "").await;
    }
    process
        .wait_for_log(
            "messages from Discord come without their text. Enable Message Content Intent",
        )
        .await;
    answered(
        &general,
        &format!("{} hello", PARLOR_BOT.mention()).replace(&PARLOR_BOT.mention(), "hey"),
        1,
    )
    .await;
    assert_eq!(process.log().matches("come without their text").count(), 1);
    assert_eq!(process.stop().await, 0);
}

/// Discord may want several connections, five seconds apart.
#[tokio::test]
async fn as_many_connections_are_made_as_discord_wants() {
    let (house, discord, general) = house().await;
    discord.recommend_shards(2);
    discord.require_sharding();
    let gateway = house.open().await;
    discord.wait_for_identifies(2).await;
    let shards: Vec<_> = discord
        .identifies()
        .iter()
        .map(|identify| identify["shard"].clone())
        .collect();
    assert_eq!(shards, [json!([0, 2]), json!([1, 2])]);
    discord.connected().await;
    answered(&general, "hello", 1).await;
    gateway.shutdown().await;
}

/// A gateway that does not answer at first, and one that goes away later.
#[tokio::test]
async fn an_outage_is_waited_out() {
    let (house, discord, general) = house().await;
    discord
        .fail(Route::GetGatewayBot, Fault::Html(502))
        .times(2);
    let gateway = house.open_with(&discord).await;
    answered(&general, "one", 1).await;
    discord.reject_next_resume();
    discord.drop_connections();
    discord.wait_for_identifies(2).await;
    answered(&general, "two", 2).await;
    gateway.shutdown().await;
}

/// A stop does not wait for a connection that is being made.
#[tokio::test]
async fn a_stop_is_quick_whatever_the_connection_does() {
    let (house, discord, _) = house().await;
    discord.close_every_identify(Some(4000));
    let process = Process::start(house.home.path(), &["run"]);
    discord.wait_for_identifies(1).await;
    let begun = std::time::Instant::now();
    assert_eq!(process.stop().await, 0);
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
}

/// The operator hears which bindings the bot cannot serve.
#[tokio::test]
async fn bindings_out_of_reach_are_told_at_the_start() {
    let rules = "[[bindings]]\nmatch = \"discord:guild:8999\"\nagent = \"main\"\n\
                 [[bindings]]\nmatch = \"discord:channel:8998\"\nagent = \"main\"\n";
    let house = House::new(rules).await;
    let discord = house.add_discord("").await;
    discord.guild(GARDEN, "Garden");
    let process = house.spawn().await;
    process
        .wait_for_log("the bot is not on the server of the binding `discord:guild:8999`. Invite it there, or remove the binding")
        .await;
    process
        .wait_for_log("the bot cannot see the place of the binding `discord:channel:8998`. Give its role View Channel there")
        .await;
    assert_eq!(process.stop().await, 0);
}
