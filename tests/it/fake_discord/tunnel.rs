//! serenity with its rate limiter on, which only ever talks to `https://discord.com`.

use reqwest_of_serenity::{Certificate, Client, Proxy};
use serenity::all::{ChannelId, HttpBuilder};

use super::bot::quiet;
use crate::support::fake_discord::{FakeDiscord, Fault, Outcome, Route};

#[tokio::test]
async fn serenity_waits_and_tries_again_when_it_is_told_to() {
    let discord = FakeDiscord::start().await;
    let general = discord.guild(8001, "Garden").text_channel(8101, "general");
    let tunnel = discord.tunnel().await;
    let root = Certificate::from_pem(tunnel.root_pem()).expect("a certificate");
    let client = Client::builder()
        .proxy(Proxy::all(tunnel.proxy_url()).expect("a proxy"))
        .add_root_certificate(root);
    let http = HttpBuilder::new(discord.token())
        .client(client.build().expect("a client"))
        .build();
    discord
        .fail(Route::CreateMessage, Fault::RateLimited(0.2))
        .once();

    ChannelId::new(general.id)
        .send_message(&http, quiet("hello"))
        .await
        .expect("sent in the end");

    let outcomes: Vec<Outcome> = discord
        .calls(Route::CreateMessage)
        .iter()
        .map(|call| call.outcome)
        .collect();
    assert_eq!(outcomes, [Outcome::Status(429), Outcome::Status(200)]);
    assert_eq!(general.texts(), ["hello"]);
}

#[tokio::test]
async fn the_tunnel_leads_nowhere_else() {
    let discord = FakeDiscord::start().await;
    let tunnel = discord.tunnel().await;
    let client = Client::builder()
        .proxy(Proxy::all(tunnel.proxy_url()).expect("a proxy"))
        .build()
        .expect("a client");

    client
        .get("https://gateway.discord.gg/")
        .send()
        .await
        .expect_err("refused");

    assert!(discord.journal().is_empty());
}
