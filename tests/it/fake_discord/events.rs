//! What the gateway tells, to whom, and how it goes wrong.

use std::time::Duration;

use serenity::all::{GatewayError, GatewayIntents, MessageType};

use super::bot::{Bot, Got};
use crate::support::fake_discord::{
    ALICE, BOB, FakeDiscord, Invalidation, OTHER_BOT, PARLOR_BOT, Room,
};

async fn garden() -> (FakeDiscord, Room, Bot) {
    let discord = FakeDiscord::start().await;
    let general = discord.guild(8001, "Garden").text_channel(8101, "general");
    let bot = Bot::connect(&discord).await;
    (discord, general, bot)
}

#[tokio::test]
async fn a_forum_post_is_a_thread_and_then_a_message_with_its_id() {
    let discord = FakeDiscord::start().await;
    let forum = discord
        .guild(8001, "Garden")
        .forum(8102, "help", &[(51, "bug")]);
    let mut bot = Bot::connect(&discord).await;

    let post = forum.posts(ALICE, "Roses", &[51], "they wilt").await;

    let (mut thread, mut message) = (None, None);
    while thread.is_none() || message.is_none() {
        match bot.next().await {
            Got::Thread(id) => thread = Some(id),
            Got::Message(it) => message = Some(it),
            _ => {}
        }
    }
    let message = message.expect("seen");
    assert_eq!(
        (thread, message.id.get(), message.channel_id.get()),
        (Some(post.id), post.id, post.id)
    );
    assert_eq!(message.content, "they wilt");
}

#[tokio::test]
async fn messages_carry_what_real_ones_carry() {
    let (discord, general, mut bot) = garden().await;
    let first = general.says(ALICE, "hello").await;
    bot.next_message().await;

    general.says(BOB, "yes").replying_to(first.message_id).await;
    let reply = bot.next_message().await;
    assert_eq!(reply.kind, MessageType::InlineReply);
    assert_eq!(reply.referenced_message.expect("there").content, "hello");
    assert_eq!(reply.mentions[0].id.get(), ALICE.id);

    general.says(BOB, "").of_type(7).await;
    assert_eq!(bot.next_message().await.kind, MessageType::MemberJoin);
    general.says(OTHER_BOT, "beep").await;
    assert!(bot.next_message().await.author.bot);
    general
        .says(BOB, "from a bridge")
        .through_webhook(9001)
        .await;
    assert_eq!(
        bot.next_message().await.webhook_id.expect("told").get(),
        9001
    );
    general
        .says(BOB, "see")
        .attaching("a.txt", "text/plain", b"abc")
        .await;
    assert_eq!(bot.next_message().await.attachments[0].size, 3);
    let private = discord.dm(ALICE).says("psst").await;
    let message = bot.next_message().await;
    assert_eq!(
        (message.guild_id, message.channel_id.get()),
        (None, private.channel_id)
    );

    general.edits(first.message_id, "hello!").await;
    loop {
        if let Got::Edited(edited) = bot.next().await {
            assert_eq!(edited.content.as_deref(), Some("hello!"));
            break;
        }
    }
}

#[tokio::test]
async fn without_the_intent_only_what_concerns_the_bot_has_content() {
    let discord = FakeDiscord::start().await;
    discord.show_message_content(false);
    let general = discord.guild(8001, "Garden").text_channel(8101, "general");
    let mut bot = Bot::start(&discord, GatewayIntents::non_privileged()).await;
    while !matches!(bot.next().await, Got::Ready(_)) {}

    general.says(ALICE, "secret").await;
    assert_eq!(bot.next_message().await.content, "");
    general
        .says(ALICE, &format!("{} hello", PARLOR_BOT.mention()))
        .await;
    assert_eq!(
        bot.next_message().await.content,
        format!("{} hello", PARLOR_BOT.mention())
    );
    discord.dm(ALICE).says("private").await;
    assert_eq!(bot.next_message().await.content, "private");
}

#[tokio::test]
async fn a_bot_that_may_not_connect_is_told_why() {
    let discord = FakeDiscord::start().await;
    let all = GatewayIntents::non_privileged() | GatewayIntents::MESSAGE_CONTENT;
    discord.close_next_identify(4004);
    let ended = Bot::start(&discord, all).await.end().await;
    assert!(
        matches!(
            ended,
            serenity::Error::Gateway(GatewayError::InvalidAuthentication)
        ),
        "{ended}"
    );

    discord.show_message_content(false);
    let ended = Bot::start(&discord, all).await.end().await;
    assert!(
        matches!(
            ended,
            serenity::Error::Gateway(GatewayError::DisallowedGatewayIntents)
        ),
        "{ended}"
    );
    assert_eq!(discord.identifies().len(), 2);
}

#[tokio::test]
async fn a_request_to_reconnect_leads_to_a_resume() {
    let (discord, general, mut bot) = garden().await;
    discord.ask_to_reconnect();
    discord.wait_for_resumes(1).await;
    general.says(ALICE, "still there?").await;
    assert_eq!(bot.next_message().await.content, "still there?");
}

#[tokio::test]
async fn a_lost_session_starts_anew_and_its_gap_stays_in_the_history_only() {
    let (discord, general, mut bot) = garden().await;
    discord.invalidate_sessions(Invalidation::Lost);
    general.says(ALICE, "unheard").await;
    discord.wait_for_identifies(2).await;
    discord.connected().await;
    general.says(ALICE, "heard").await;
    assert_eq!(bot.next_message().await.content, "heard");
    assert_eq!(general.messages().len(), 2);
}

#[tokio::test]
async fn a_missing_ack_makes_serenity_start_anew() {
    let discord = FakeDiscord::start().await;
    discord.set_heartbeat_interval(Duration::from_millis(400));
    let _silent = discord.withhold_heartbeat_acks();
    let _bot = Bot::connect(&discord).await;
    discord.wait_for_identifies(2).await;
}

#[tokio::test]
async fn heartbeats_are_answered() {
    let discord = FakeDiscord::start().await;
    discord.set_heartbeat_interval(Duration::from_millis(300));
    let _bot = Bot::connect(&discord).await;
    discord.wait_for_heartbeats(4).await;
    assert_eq!(discord.identifies().len(), 1);
}

#[tokio::test]
async fn a_spoiled_event_is_lost_and_a_repeated_one_comes_twice() {
    let (discord, general, mut bot) = garden().await;
    discord.spoil_next("MESSAGE_CREATE", "author");
    general.says(ALICE, "spoiled").await;
    let said = general.says(ALICE, "whole").await;
    assert_eq!(bot.next_message().await.content, "whole");
    discord.deliver_again(said.channel_id, said.message_id);
    assert_eq!(bot.next_message().await.id.get(), said.message_id);
}

#[tokio::test]
async fn held_events_can_come_in_the_wrong_order() {
    let (discord, general, bot) = garden().await;
    drop(bot);
    let held = discord.hold_events();
    general.says(ALICE, "one").await;
    general.says(ALICE, "two").await;
    held.release_reversed();
    let events = discord.dispatched("MESSAGE_CREATE");
    assert_eq!(
        events
            .iter()
            .map(|it| it["d"]["content"].as_str())
            .collect::<Vec<_>>(),
        [Some("two"), Some("one")]
    );
    assert_eq!(
        events[1]["s"].as_u64(),
        events[0]["s"].as_u64().map(|number| number + 1)
    );
}
