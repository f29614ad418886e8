//! Connecting, listening and coming back, as serenity does it.

use serenity::all::{ChannelId, ChannelType, CreateAllowedMentions, EditMessage};

use super::bot::{Bot, Got, quiet};
use crate::support::fake_discord::{ALICE, FakeDiscord, PARLOR_BOT, Route};

#[tokio::test]
async fn serenity_sees_the_guild_with_all_kinds_of_channels() {
    let discord = FakeDiscord::start().await;
    let guild = discord.guild(8001, "Garden");
    let category = guild.category(8100, "plants");
    let general = guild.text_channel(8101, "general").below(&category);
    guild.forum(8102, "help", &[(51, "bug")]);
    guild.voice_channel(8103, "voice");
    guild.announcement_channel(8104, "news");
    guild.stage(8105, "stage");
    general.thread(8201, "roses");
    let mut bot = Bot::start(&discord, serenity::all::GatewayIntents::non_privileged()).await;

    let (mut ready, mut seen) = (None, None);
    while ready.is_none() || seen.is_none() {
        match bot.next().await {
            Got::Ready(it) => ready = Some(it),
            Got::Guild(it) => seen = Some(it),
            other => panic!("{other:?}"),
        }
    }

    let (ready, seen) = (ready.expect("seen"), seen.expect("seen"));
    assert_eq!(ready.user.id.get(), PARLOR_BOT.id);
    assert_eq!(seen.name, "Garden");
    assert_eq!(seen.channels.len(), 6);
    assert_eq!(
        seen.channels[&ChannelId::new(8102)].available_tags[0].name,
        "bug"
    );
    assert_eq!(
        seen.channels[&ChannelId::new(8102)].kind,
        ChannelType::Forum
    );
    assert_eq!(
        seen.channels[&ChannelId::new(8101)].parent_id,
        Some(ChannelId::new(8100))
    );
    assert_eq!(seen.threads[0].parent_id, Some(ChannelId::new(8101)));
    assert_eq!(discord.calls(Route::GetGateway).len(), 1);
}

#[tokio::test]
async fn what_people_say_arrives_and_what_the_bot_says_stands_there() {
    let discord = FakeDiscord::start().await;
    let guild = discord.guild(8001, "Garden");
    guild.gives_roles(ALICE, &[61]);
    let general = guild.text_channel(8101, "general");
    let mut bot = Bot::connect(&discord).await;

    let said = general
        .says(ALICE, &format!("hello {}", PARLOR_BOT.mention()))
        .await;
    let message = bot.next_message().await;
    assert_eq!(message.id.get(), said.message_id);
    assert_eq!(message.guild_id.expect("in a guild").get(), 8001);
    assert_eq!(
        message.member.as_ref().expect("a member").roles[0].get(),
        61
    );
    assert_eq!(message.mentions[0].id.get(), PARLOR_BOT.id);

    bot.http
        .broadcast_typing(message.channel_id)
        .await
        .expect("typing");
    discord.wait_for_typing(general.id).await;
    let mut answer = message
        .channel_id
        .send_message(&bot.http, quiet("@everyone hi").reference_message(&message))
        .await
        .expect("sent");
    assert_eq!(
        general.wait_for_sent(1).await.reply_to,
        Some(said.message_id)
    );
    let edit = EditMessage::new()
        .content("hi all")
        .allowed_mentions(CreateAllowedMentions::new());
    answer.edit(&bot.http, edit).await.expect("edited");
    let sent = discord
        .wait_for_text(answer.id.get(), |text| text == "hi all")
        .await;
    assert_eq!(sent.versions, ["@everyone hi", "hi all"]);
    assert_eq!(general.texts(), ["hi all"]);
}

#[tokio::test]
async fn a_dropped_connection_is_resumed_and_what_was_missed_is_replayed() {
    let discord = FakeDiscord::start().await;
    let general = discord.guild(8001, "Garden").text_channel(8101, "general");
    let mut bot = Bot::connect(&discord).await;
    general.says(ALICE, "one").await;
    assert_eq!(bot.next_message().await.content, "one");

    discord.drop_connections();
    discord.disconnected().await;
    general.says(ALICE, "two").await;

    assert_eq!(bot.next_message().await.content, "two");
    assert_eq!(discord.wait_for_resumes(1).await["session_id"], "session-1");
    assert_eq!(discord.identifies().len(), 1);
}
