//! Connects to the gateway, as often as Discord wants it, and keeps listening.

use std::time::Duration;

use futures_util::future::select_all;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::api::{ApiError, Call};
use super::closing::BAD_TOKEN;
use super::greetings::{Greetings, StartLimit};
use super::intake::{QUEUE, Taker};
use super::shard::Shard;
use super::socket::Network;
use super::{DiscordChannel, checks, interactions};
use crate::channels::{Health, Intake, ListenError};

/// How long connections may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(3);

/// <https://discord.com/developers/docs/events/gateway#get-gateway-bot>
#[derive(Deserialize)]
struct Door {
    url: String,
    #[serde(default = "one")]
    shards: u64,
    #[serde(default)]
    session_start_limit: StartLimit,
}

fn one() -> u64 {
    1
}

pub(super) async fn listen(channel: &DiscordChannel, intake: &Intake, stop: &CancellationToken) -> Result<(), ListenError> {
    // The gateway's TLS has no default cryptography.
    crate::http::install_crypto();
    let door = tokio::select! {
        door = door(channel) => door?,
        () = stop.cancelled() => return Ok(()),
    };
    let (events, received) = mpsc::channel(QUEUE);
    let greetings = Greetings::new(door.session_start_limit);
    let shard = |number| Shard {
        url: &door.url,
        dial: &Network,
        api: &channel.api,
        number,
        total: door.shards,
        events: events.clone(),
        greetings: &greetings,
    };
    let shards: Vec<Shard<'_, Network>> = (0..door.shards).map(shard).collect();
    drop(events);
    let check = async {
        tokio::join!(checks::report(channel), interactions::register(channel));
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = take_in(channel, intake, stop, shards, received) => ended,
        () = check => Ok(()),
    }
}

async fn take_in(
    channel: &DiscordChannel,
    intake: &Intake,
    stop: &CancellationToken,
    shards: Vec<Shard<'_, Network>>,
    received: mpsc::Receiver<super::shard::Event>,
) -> Result<(), ListenError> {
    // The first connection that is refused for good ends them all: they have one token.
    let running = async {
        let mut running: Vec<_> = shards.iter().map(|shard| Box::pin(shard.run())).collect();
        loop {
            let (ended, _, rest) = select_all(running).await;
            if ended.is_err() || rest.is_empty() {
                return ended;
            }
            running = rest;
        }
    };
    let mut running = std::pin::pin!(running);
    let (queue, passed_on) = mpsc::channel(QUEUE);
    let taker = Taker::new(channel, intake, stop);
    tokio::select! {
        ended = &mut running => return ended,
        ((), ()) = async { tokio::join!(interactions::answer_first(channel, received, queue), taker.run(passed_on)) } => {}
        () = stop.cancelled() => {}
    }
    // Nobody takes events any more, so the connections say goodbye.
    drop(timeout(GOODBYE, running).await);
    Ok(())
}

/// Where to connect, asked until Discord says it.
async fn door(channel: &DiscordChannel) -> Result<Door, ListenError> {
    let mut backoff = Health::backoff();
    loop {
        match channel.api.call::<Door>(Call::get("/gateway/bot".into())).await {
            Ok(door) if !channel.api.may_connect_to(&door.url) => {
                return Err(ListenError(
                    "Discord wants the bot to connect without encryption, which would show its token".into(),
                ));
            }
            Ok(door) => match exhausted(&door) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Ok(door),
            },
            Err(ApiError::Answered { status: 401, .. }) => return Err(ListenError(BAD_TOKEN.into())),
            Err(error) => {
                tracing::warn!("asking Discord where to connect: {error}; trying again in {} s", backoff.peek().as_secs());
                channel.api.health().pause(&mut backoff).await;
            }
        }
    }
}

/// Discord takes back the token of a bot that connects anew too often.
fn exhausted(door: &Door) -> Option<Duration> {
    let limit = door.session_start_limit;
    (limit.remaining < door.shards).then(|| Duration::from_millis(limit.reset_after))
}
