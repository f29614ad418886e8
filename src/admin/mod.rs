//! The listener for programs that watch the gateway: `/healthz`, `/readyz` and `/metrics`.
//!
//! It has nothing to change anything with. Nothing is listened on without `[admin]`; other machines
//! are let in only if the config says so, and then with a token only. A page of the internet that is
//! open in a browser on this machine is kept out by the name it calls.

mod pages;

use std::sync::Arc;
use std::time::Duration;

use axum::http::header;
use axum::http::request::Parts;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config;
use crate::door::{self, Knows};
use crate::gateway::Monitor;
use crate::home::Snapshot;
use crate::signing::same_text;

/// The pause before an address that is taken is tried again.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// The running listener, or none while the config has no `[admin]`.
pub(crate) struct Admin {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Admin {
    /// Follows the config from now on.
    pub(crate) fn start(monitor: Monitor) -> Self {
        let stop = CancellationToken::new();
        let task = tokio::spawn(follow(monitor, stop.clone()));
        Admin { stop, task }
    }

    /// Returns when the running calls are answered.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            tracing::error!("the admin listener ended badly: {error}");
        }
    }
}

/// Listens as each config says, until `stop`.
async fn follow(monitor: Monitor, stop: CancellationToken) {
    let mut snapshots = monitor.snapshots();
    loop {
        let settings = snapshots.borrow_and_update().config.admin.clone();
        let over = stop.child_token();
        let listening = async {
            if let Some(settings) = &settings {
                listen(monitor.clone(), settings, &over).await;
            }
        };
        let changed = async {
            until_changed(&mut snapshots, settings.as_ref()).await;
            over.cancel();
        };
        tokio::join!(listening, async {
            tokio::select! {
                () = changed => {}
                () = stop.cancelled() => {}
            }
        });
        if stop.is_cancelled() {
            return;
        }
    }
}

/// Returns when a snapshot has other settings. Never returns once there are no more snapshots.
async fn until_changed(
    snapshots: &mut watch::Receiver<Arc<Snapshot>>,
    settings: Option<&config::Admin>,
) {
    let is_other = |snapshot: &Arc<Snapshot>| snapshot.config.admin.as_ref() != settings;
    if snapshots.wait_for(is_other).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Serves until `over`. An address that is taken is tried again: the gateway goes on without.
async fn listen(monitor: Monitor, settings: &config::Admin, over: &CancellationToken) {
    let address = settings.listen;
    let mut is_told = false;
    let listener = loop {
        match TcpListener::bind(address).await {
            Ok(listener) => break listener,
            Err(error) if !is_told => {
                tracing::error!("the admin listener is off: cannot listen on {address}: {error}");
                is_told = true;
            }
            Err(_) => {}
        }
        tokio::select! {
            () = tokio::time::sleep(TRY_AGAIN_AFTER) => {}
            () = over.cancelled() => return,
        }
    };
    tracing::info!("the admin listener is on {address}");
    let app = pages::router(monitor, settings);
    door::serve(listener, knows(settings), app, over).await;
}

/// Callers that show the token.
fn knows(settings: &config::Admin) -> Knows {
    let token = settings.token.clone();
    Arc::new(move |head| {
        let token = token.as_ref().map(config::Secret::expose);
        token.is_some_and(|token| !token.is_empty() && shows(head, token))
    })
}

fn shows(head: &Parts, token: &str) -> bool {
    let shown = head.headers.get(header::AUTHORIZATION);
    let shown = shown.and_then(|shown| shown.to_str().ok());
    let shown = shown.and_then(|shown| {
        let (scheme, token) = shown.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    shown.is_some_and(|shown| same_text(shown, token))
}
