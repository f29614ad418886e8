//! The admin listener: the dashboard and the HTTP API for people and programs that run the gateway,
//! and `/healthz`, `/readyz` and `/metrics` for programs that watch it.
//!
//! Nothing is listened on without `[admin]`, the web chat, or `parlor dashboard`. The API and
//! the pages are behind the door in `auth`; other machines reach them through a proxy with TLS only.
//! A hook is behind a token or signature of its own.

mod api;
mod auth;
mod dashboard;
mod enter;
mod headers;
mod hooks;
mod mini_app;
mod problem;
mod state;
mod texts;
mod watchers;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config;
use crate::door::{self, Knows};
use crate::gateway::Monitor;
use crate::operations::http_keys::{Entrance, Site};
use crate::signing::same_text;
use crate::telemetry;
use state::AdminState;

/// The pause before an address that is taken is tried again.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(5);
/// Of a listener that the config does not name.
const UNNAMED: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const USUAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7717);
/// Bytes of the body of a call.
const MOST_BODY_BYTES: usize = 1024 * 1024;

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
    // A gateway that is being made has no operations of its own.
    let Some(entrance) = monitor.operations().entrance().cloned() else {
        return;
    };
    let (mut snapshots, mut wishes) = (monitor.snapshots(), entrance.wishes());
    loop {
        let settings = {
            let snapshot = snapshots.borrow_and_update();
            settings(&snapshot.config, *wishes.borrow_and_update())
        };
        let over = stop.child_token();
        let listening = async {
            if let Some(settings) = &settings {
                listen(&monitor, &entrance, settings, &over).await;
                entrance.moved_to(Site::Closed);
            }
        };
        let changed = async {
            loop {
                let is_over = tokio::select! {
                    changed = snapshots.changed() => changed.is_err(),
                    changed = wishes.changed() => changed.is_err(),
                    () = stop.cancelled() => return,
                };
                let config = snapshots.borrow_and_update().config.clone();
                let wanted = *wishes.borrow_and_update();
                if is_over || self::settings(&config, wanted) != settings {
                    return over.cancel();
                }
            }
        };
        tokio::join!(listening, changed);
        if stop.is_cancelled() {
            return;
        }
    }
}

/// The config's listener, else one of this machine where it is wanted, as the web chat does.
fn settings(config: &config::Config, is_wanted: bool) -> Option<config::Admin> {
    let unnamed = || config::Admin::listening_on(UNNAMED);
    let is_wanted = is_wanted || config.has_web();
    config.admin.clone().or_else(|| is_wanted.then(unnamed))
}

/// The usual address where the config names none, so that a browser finds its cookie again. Another
/// gateway may have it; then any free port will do.
async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    if address != UNNAMED {
        return TcpListener::bind(address).await;
    }
    match TcpListener::bind(USUAL).await {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind(address).await,
    }
}

/// `port 7717 is taken by another program`.
fn why_off(address: SocketAddr, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("port {} is taken by another program", address.port())
        }
        _ => format!("cannot listen on {address}: {error}"),
    }
}

/// Serves until `over`. An address that is taken is tried again: the gateway goes on without.
async fn listen(
    monitor: &Monitor,
    entrance: &Entrance,
    settings: &config::Admin,
    over: &CancellationToken,
) {
    let address = settings.listen;
    let mut is_told = false;
    let listener = loop {
        match bind(address).await {
            Ok(listener) => break listener,
            Err(error) => {
                let reason = why_off(address, &error);
                entrance.moved_to(Site::Off(reason.clone()));
                if !is_told {
                    tracing::error!(
                        "the admin listener is off: {reason}. Stop the program that has the address, or set another `listen` under [admin]; trying on"
                    );
                }
                is_told = true;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(TRY_AGAIN_AFTER) => {}
            () = over.cancelled() => return,
        }
    };
    let address = listener.local_addr().unwrap_or(address);
    if let Err(refusal) = monitor.operations().keys_changed().await {
        tracing::error!(
            "nobody can sign in, because the keys cannot be read: {}",
            refusal.text
        );
    }
    let state = AdminState::new(monitor.clone(), entrance.clone(), settings.clone());
    entrance.moved_to(match (state.hosts.is_safe(), &settings.url) {
        (false, _) => Site::Unsafe(address),
        (true, Some(url)) => Site::At(url.clone()),
        (true, None) => Site::At(format!("http://{address}")),
    });
    tracing::info!(target: telemetry::DETAIL, "the admin listener is on {address}");
    door::serve(listener, knows(entrance, settings), app(state), over).await;
}

/// All pages. Those of the dashboard and the API are behind the door.
fn app(state: AdminState) -> Router {
    let door = from_fn_with_state(state.clone(), auth::let_in);
    let pages = Router::new()
        .merge(dashboard::pages())
        .merge(enter::exit())
        .route_layer(door.clone());
    // Around the nest, so that the door sees whole paths.
    let calls = Router::new().nest("/api/v1", api::router()).layer(door);
    Router::new()
        .merge(pages)
        .merge(calls)
        .merge(enter::entrance())
        .merge(mini_app::entrance())
        .merge(dashboard::assets())
        .merge(hooks::router(state.monitor.clone()))
        .fallback_service(watchers::router(state.monitor.clone(), &state.settings))
        .layer(DefaultBodyLimit::max(MOST_BODY_BYTES))
        .layer(from_fn(headers::on_every_answer))
        .with_state(state)
}

/// Callers that show the token of the config, or a key.
fn knows(entrance: &Entrance, settings: &config::Admin) -> Knows {
    let (token, entrance) = (settings.token.clone(), entrance.clone());
    Arc::new(move |head| {
        let token = token.as_ref().map(config::Secret::expose);
        let token = token.filter(|token| !token.is_empty());
        let shown = auth::bearer(head);
        let shows = |token| shown.is_some_and(|shown| same_text(shown, token));
        token.is_some_and(shows) || auth::is_known(&entrance, head)
    })
}
