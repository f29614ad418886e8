//! A small bot on serenity, which keeps what it gets.

use std::sync::Arc;
use std::time::Duration;

use serenity::all::{
    ClientBuilder, Context, CreateAllowedMentions, CreateMessage, EventHandler, GatewayIntents,
    Guild, Http, HttpBuilder, Interaction, Message, MessageUpdateEvent, Ready, ResumedEvent,
};
use serenity::async_trait;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::support::fake_discord::FakeDiscord;

/// What reached the bot.
#[derive(Debug)]
pub(super) enum Got {
    Ready(Box<Ready>),
    Resumed,
    Guild(Box<Guild>),
    Message(Box<Message>),
    Edited(Box<MessageUpdateEvent>),
    Interaction(Box<Interaction>),
    Thread(u64),
}

pub(super) struct Bot {
    pub(super) http: Arc<Http>,
    got: mpsc::UnboundedReceiver<Got>,
    client: JoinHandle<serenity::Result<()>>,
}

struct Handler(mpsc::UnboundedSender<Got>);

impl Handler {
    fn note(&self, got: Got) {
        // A bot at its end hears no more.
        let _ended = self.0.send(got);
    }
}

#[async_trait]
impl EventHandler for Handler {
    async fn ready(&self, _: Context, ready: Ready) {
        self.note(Got::Ready(ready.into()));
    }

    async fn resume(&self, _: Context, _: ResumedEvent) {
        self.note(Got::Resumed);
    }

    async fn guild_create(&self, _: Context, guild: Guild, _: Option<bool>) {
        self.note(Got::Guild(guild.into()));
    }

    async fn message(&self, _: Context, message: Message) {
        self.note(Got::Message(message.into()));
    }

    async fn message_update(
        &self,
        _: Context,
        _: Option<Message>,
        _: Option<Message>,
        event: MessageUpdateEvent,
    ) {
        self.note(Got::Edited(event.into()));
    }

    async fn interaction_create(&self, _: Context, interaction: Interaction) {
        self.note(Got::Interaction(interaction.into()));
    }

    async fn thread_create(&self, _: Context, thread: serenity::all::GuildChannel) {
        self.note(Got::Thread(thread.id.get()));
    }
}

pub(super) fn http(discord: &FakeDiscord) -> Http {
    // Another test may have been first; all want the same provider.
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    HttpBuilder::new(discord.token())
        .proxy(discord.url())
        .ratelimiter_disabled(true)
        .build()
}

impl Bot {
    /// Connected, with READY and the guilds behind it.
    pub(super) async fn connect(discord: &FakeDiscord) -> Self {
        let intents = GatewayIntents::non_privileged() | GatewayIntents::MESSAGE_CONTENT;
        let mut bot = Self::start(discord, intents).await;
        while !matches!(bot.next().await, Got::Ready(_)) {}
        bot
    }

    pub(super) async fn start(discord: &FakeDiscord, intents: GatewayIntents) -> Self {
        let (sender, got) = mpsc::unbounded_channel();
        let mut client = ClientBuilder::new_with_http(http(discord), intents)
            .event_handler(Handler(sender))
            .await
            .expect("a client");
        let http = client.http.clone();
        let client = tokio::spawn(async move { client.start().await });
        Self { http, got, client }
    }

    /// The next thing that reached the bot.
    pub(super) async fn next(&mut self) -> Got {
        let got = tokio::time::timeout(Duration::from_secs(20), self.got.recv()).await;
        got.expect("something comes within 20 s")
            .expect("the bot runs")
    }

    /// The next message; everything before it is skipped.
    pub(super) async fn next_message(&mut self) -> Message {
        loop {
            if let Got::Message(message) = self.next().await {
                return *message;
            }
        }
    }

    pub(super) async fn next_interaction(&mut self) -> Interaction {
        loop {
            if let Got::Interaction(interaction) = self.next().await {
                return *interaction;
            }
        }
    }

    /// How the client ended.
    pub(super) async fn end(self) -> serenity::Error {
        let ended = tokio::time::timeout(Duration::from_secs(20), self.client)
            .await
            .expect("the client ends");
        ended.expect("no panic").expect_err("the client gives up")
    }
}

/// A message that pings nobody.
pub(super) fn quiet(text: &str) -> CreateMessage {
    CreateMessage::new()
        .content(text)
        .allowed_mentions(CreateAllowedMentions::new())
}
