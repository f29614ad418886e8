//! Pages for programs that watch the gateway: `/healthz`, `/readyz` and `/metrics`. They have nothing
//! to change anything with.

use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};

use super::auth::names_this_machine;
use crate::config::{self, MetricsAccess};
use crate::door::Known;
use crate::gateway::Monitor;
use crate::metrics;

#[derive(Clone)]
struct Site {
    monitor: Monitor,
    /// Only programs on this machine reach the listener.
    is_local: bool,
    has_token: bool,
    metrics: MetricsAccess,
}

pub(super) fn router(monitor: Monitor, settings: &config::Admin) -> Router {
    Router::new().fallback(page).with_state(Site {
        monitor,
        is_local: settings.is_local(),
        has_token: settings.token.is_some(),
        metrics: settings.metrics,
    })
}

async fn page(
    State(site): State<Site>,
    known: Option<Extension<Known>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let is_known = known.is_some();
    if site.is_local && !names_this_machine(&headers) {
        return told(StatusCode::FORBIDDEN, WRONG_NAME);
    }
    if !site.is_local && !is_known {
        return needs_token(NEEDS_TOKEN);
    }
    if !matches!(method, Method::GET | Method::HEAD) {
        return told(StatusCode::METHOD_NOT_ALLOWED, ONLY_GET);
    }
    match uri.path() {
        "/healthz" => told(StatusCode::OK, "ok\n"),
        "/readyz" => ready(&site).await,
        "/metrics" if is_known || site.metrics == MetricsAccess::Open => numbers(&site).await,
        "/metrics" if site.has_token => needs_token(NEEDS_TOKEN),
        "/metrics" => needs_token(NO_TOKEN),
        _ => told(StatusCode::NOT_FOUND, NOTHING_HERE),
    }
}

async fn ready(site: &Site) -> Response {
    let troubles = site.monitor.troubles().await;
    if troubles.is_empty() {
        return told(StatusCode::OK, "ready\n");
    }
    let lines: String = troubles
        .iter()
        .map(|trouble| format!("{trouble}\n"))
        .collect();
    told(
        StatusCode::SERVICE_UNAVAILABLE,
        &format!("not ready\n{lines}"),
    )
}

async fn numbers(site: &Site) -> Response {
    let text = metrics::render(site.monitor.gauges().await);
    ([(header::CONTENT_TYPE, metrics::MEDIA_TYPE)], text).into_response()
}

fn told(status: StatusCode, text: &str) -> Response {
    (status, text.to_owned()).into_response()
}

fn needs_token(text: &str) -> Response {
    let headers = [(header::WWW_AUTHENTICATE, "Bearer")];
    (StatusCode::UNAUTHORIZED, headers, text.to_owned()).into_response()
}

const NEEDS_TOKEN: &str =
    "This page needs the token of [admin]: send it as `Authorization: Bearer TOKEN`.\n";
const NO_TOKEN: &str = "This page needs a token, and config.toml has none. Add a line such as `token = { file = \"secrets/admin\" }` to [admin], or `metrics = \"open\"` for every program on this machine.\n";
const WRONG_NAME: &str =
    "This listener is for programs on this machine. Call it as 127.0.0.1 or localhost.\n";
const ONLY_GET: &str = "This page can only be read.\n";
const NOTHING_HERE: &str = "There is no such page. There are /healthz, /readyz and /metrics.\n";
