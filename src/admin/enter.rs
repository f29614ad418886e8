//! The way in and out for browsers: `/enter?code=…` turns a link of `parlor dashboard` into a cookie,
//! `/leave` ends it.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use super::auth::{Operates, kept, taken_back};
use super::problem::Problem;
use super::state::AdminState;
use super::texts;
use crate::clock::now_ms;
use crate::operations::http_keys;

/// Open to strangers.
pub(super) fn entrance() -> Router<AdminState> {
    Router::new().route("/enter", get(enter).head(nothing))
}

/// For those who are in.
pub(super) fn exit() -> Router<AdminState> {
    Router::new().route("/leave", post(leave))
}

async fn enter(State(state): State<AdminState>, request: Request) -> Response {
    match entered(&state, request).await {
        Ok(response) => response,
        Err(problem) => texts::page_of(&problem),
    }
}

/// A look at the link, such as by a chat that shows previews, does not use it up.
async fn nothing() -> StatusCode {
    StatusCode::NO_CONTENT
}

async fn entered(state: &AdminState, request: Request) -> Result<Response, Problem> {
    let (head, _) = request.into_parts();
    state.hosts.check_name(&head)?;
    let code = head.uri.query().and_then(|query| {
        let mut pairs = query.split('&');
        pairs.find_map(|pair| pair.strip_prefix("code="))
    });
    let visitor = code.and_then(|code| state.entrance.take_link(code));
    let Some(visitor) = visitor else {
        return Err(match state.failures.one_more() {
            Ok(()) => Problem::link_is_over(),
            Err(wait) => Problem::too_many_failures(wait),
        });
    };
    let (key, secret) = http_keys::sign_in(&state.operations, &visitor).await?;
    let lasts = key.expires_at.unwrap_or_default() - now_ms();
    let is_encrypted = state.hosts.is_encrypted(&head);
    let cookie = kept(&head, &secret, lasts / 1000, is_encrypted);
    let mut response = texts::entered();
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

async fn leave(
    State(state): State<AdminState>,
    Operates(caller): Operates,
    request: Request,
) -> Result<Response, Problem> {
    let (head, _) = request.into_parts();
    let which = caller.key.to_string();
    http_keys::revoke(&state.operations, &caller.who, which).await?;
    let cookie = taken_back(&head, state.hosts.is_encrypted(&head));
    let headers = [
        (header::SET_COOKIE, cookie),
        (header::LOCATION, "/".parse().expect("a path")),
    ];
    Ok((StatusCode::SEE_OTHER, headers).into_response())
}
