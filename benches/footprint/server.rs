//! The scene on Discord: a server with a channel for each topic of the forum.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::fake_discord::{ALICE, FakeDiscord, Room, Route};
use super::fake_model::Request;
use super::{PAUSE, PLAIN, milliseconds};

const SERVER: u64 = 8001;
const FIRST_CHANNEL: u64 = 8101;
/// Channels in which nobody speaks.
const FIRST_OTHER_CHANNEL: u64 = 1_000_000;

pub(crate) const TOKEN_VARIABLE: &str = "PARLOR_FOOTPRINT_DISCORD_TOKEN";

pub(crate) struct Server {
    discord: FakeDiscord,
    channels: Vec<Room>,
    /// When each message was written.
    said: Mutex<Vec<Instant>>,
}

impl Server {
    pub(crate) async fn open(channels: usize) -> Self {
        let discord = FakeDiscord::start().await;
        let guild = discord.guild(SERVER, "Garden");
        let channels = (FIRST_CHANNEL..)
            .take(channels)
            .map(|id| guild.text_channel(id, &format!("channel-{id}")))
            .collect();
        Server {
            discord,
            channels,
            said: Mutex::default(),
        }
    }

    pub(crate) fn token(&self) -> &str {
        self.discord.token()
    }

    /// The platform's table of the config.
    pub(crate) fn table(&self) -> String {
        format!(
            "[discord]\ntoken = {{ env = \"{TOKEN_VARIABLE}\" }}\napi_url = \"{}\"\n\
             limits = {{ per_second = 0, channel_per_second = 0 }}\n",
            self.discord.url()
        )
    }

    pub(crate) fn place(channel: usize) -> String {
        format!("discord:channel:{}", number(FIRST_CHANNEL, channel))
    }

    pub(crate) fn other_place(channel: usize) -> String {
        format!("discord:channel:{}", number(FIRST_OTHER_CHANNEL, channel))
    }

    /// The SQL of the key of another channel, `number` of them counted from one.
    pub(crate) fn other_key() -> String {
        format!("'discord:channel:' || ({FIRST_OTHER_CHANNEL} + number)")
    }

    pub(crate) async fn connected(&self) {
        self.discord.connected().await;
    }

    /// So many messages and their answers, one at a time.
    pub(crate) async fn exchange(&self, messages: usize) {
        let already = self.discord.sent().len();
        for number in 0..messages {
            let channel = &self.channels[number % self.channels.len()];
            self.said().push(Instant::now());
            channel.says(ALICE, PLAIN).await;
            self.discord.wait_for_sent(already + number + 1).await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// For messages that came one at a time: milliseconds on the way in and on the way out.
    pub(crate) fn overheads(&self, requests: &[Request]) -> (Vec<f64>, Vec<f64>) {
        let inward = requests.iter().zip(self.said().clone());
        let inward = inward.map(|(request, said)| milliseconds(request.arrived - said));
        let sends = self.discord.calls(Route::CreateMessage);
        let outward = sends.iter().zip(requests).map(|(send, request)| {
            let answered = request.answered.expect("the model has answered");
            milliseconds(send.at - answered)
        });
        (inward.collect(), outward.collect())
    }

    fn said(&self) -> std::sync::MutexGuard<'_, Vec<Instant>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn number(first: u64, index: usize) -> u64 {
    first + u64::try_from(index).expect("a small number")
}
