//! `parlor run`: the gateway, until a signal.

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use super::{Failure, Outcome};
use crate::agents::ensure_home;
use crate::gateway::Gateway;
use crate::home::Home;
use crate::open_files;

#[derive(Args, Default)]
pub(super) struct Arguments {
    /// Begin with an empty database where there was one that is gone; never touches one that is
    /// there
    #[arg(long)]
    new_database: bool,
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    ensure_home(home.path())?;
    if arguments.new_database {
        home.begin_anew()?;
    }
    open_files::warn_if_few();
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
