//! `parlor run`: the gateway, until a signal ends it.

use tokio::signal::unix::{SignalKind, signal};

use super::{Failure, Outcome};
use crate::agents::ensure_home;
use crate::gateway::{Gateway, Home};

pub(super) async fn run(home: Home) -> Outcome {
    ensure_home(home.path())?;
    let gateway = Gateway::start(home).await?;
    tracing::info!("the gateway is up");
    let mut terminate = signal(SignalKind::terminate())?;
    let deserted = tokio::select! {
        _ = tokio::signal::ctrl_c() => None,
        _ = terminate.recv() => None,
        reason = gateway.deserted() => Some(reason),
    };
    tracing::info!("stopping: finishing what is under way");
    gateway.shutdown().await;
    deserted.map_or(Ok(()), |reason| Err(Failure::Failed(reason)))
}
