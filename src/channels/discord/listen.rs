//! Connects to the gateway with the recommended number of shards, and keeps listening.

use std::time::Duration;

use futures_util::future::select_all;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::api::{ApiError, Call};
use super::bot::Bot;
use super::close_codes::BAD_TOKEN;
use super::identify_limit::{IdentifyLimit, StartLimit};
use super::intake::{EventLoop, QUEUE};
use super::interactions::acknowledge::acknowledge_all;
use super::interactions::register::register;
use super::preflight;
use super::shard::Shard;
use super::socket::Network;
use crate::channels::{Health, Intake, ListenError};

/// The longest wait for the close of the connections.
const GOODBYE: Duration = Duration::from_secs(3);

/// <https://discord.com/developers/docs/events/gateway#get-gateway-bot>
#[derive(Deserialize)]
struct GatewayInfo {
    url: String,
    #[serde(default = "one")]
    shards: u64,
    #[serde(default)]
    session_start_limit: StartLimit,
}

fn one() -> u64 {
    1
}

pub(super) async fn listen(
    bot: &Bot,
    intake: &Intake,
    stop: &CancellationToken,
) -> Result<(), ListenError> {
    // The gateway's TLS has no default cryptography.
    crate::http::install_crypto();
    let info = tokio::select! {
        info = gateway_info(bot) => info?,
        () = stop.cancelled() => return Ok(()),
    };
    let (events, received) = mpsc::channel(QUEUE);
    let identify_limit = IdentifyLimit::new(info.session_start_limit);
    let shard = |number| Shard {
        url: &info.url,
        dial: &Network,
        api: &bot.api,
        number,
        total: info.shards,
        events: events.clone(),
        identify_limit: &identify_limit,
    };
    let shards: Vec<Shard<'_, Network>> = (0..info.shards).map(shard).collect();
    drop(events);
    let check = async {
        tokio::join!(preflight::report(bot), register(bot));
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = take_in(bot, intake, stop, shards, received) => ended,
        () = check => Ok(()),
    }
}

async fn take_in(
    bot: &Bot,
    intake: &Intake,
    stop: &CancellationToken,
    shards: Vec<Shard<'_, Network>>,
    received: mpsc::Receiver<super::shard::Event>,
) -> Result<(), ListenError> {
    // All shards have the same token, so a refusal for good ends them all.
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
    let event_loop = EventLoop::new(bot, intake, stop);
    tokio::select! {
        ended = &mut running => return ended,
        ((), ()) = async { tokio::join!(acknowledge_all(bot, received, queue), event_loop.run(passed_on)) } => {}
        () = stop.cancelled() => {}
    }
    // The receiver of events is gone, so the shards close their connections.
    drop(timeout(GOODBYE, running).await);
    Ok(())
}

/// Asks for the gateway's address until Discord answers.
async fn gateway_info(bot: &Bot) -> Result<GatewayInfo, ListenError> {
    let mut backoff = Health::backoff();
    loop {
        match bot
            .api
            .call::<GatewayInfo>(Call::get("/gateway/bot".into()))
            .await
        {
            Ok(info) if !bot.api.may_connect_to(&info.url) => {
                return Err(ListenError(
                    "Discord wants the bot to connect without encryption, which would show its token".into(),
                ));
            }
            Ok(info) => match exhausted(&info) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Ok(info),
            },
            Err(ApiError::Answered { status: 401, .. }) => {
                return Err(ListenError(BAD_TOKEN.into()));
            }
            Err(error) => {
                bot.api.health().is_deaf(error.to_string());
                tracing::warn!(
                    "asking Discord where to connect: {error}; trying again in {} s",
                    backoff.peek().as_secs()
                );
                bot.api.health().pause(&mut backoff).await;
            }
        }
    }
}

/// The wait for more IDENTIFYs, because Discord resets the token of a bot above its limit.
fn exhausted(info: &GatewayInfo) -> Option<Duration> {
    let limit = info.session_start_limit;
    (limit.remaining < info.shards).then(|| Duration::from_millis(limit.reset_after))
}
