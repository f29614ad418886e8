//! The door of the HTTP API and the dashboard: who calls, from where, and with which rights.
//!
//! [`let_in`] stands before every handler of both. It looks at the name the caller used for this
//! listener, at the page the call comes from, and at the token or cookie; what it lets through has
//! a [`Caller`], which handlers take as [`Reads`], [`Operates`] or [`Administers`]. Calls that
//! change something need at least the scope `operate`, also where a handler forgets to ask.

mod caller;
mod cookie;
mod failures;
mod hosts;
mod owners;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::problem::Problem;
use super::state::AdminState;
use super::texts;
use crate::clock::now_ms;
use crate::records::http_keys::{Key, Kind, Scope};

pub(crate) use caller::{Administers, Caller, Operates, Reads};
pub(super) use cookie::{kept, taken_back};
pub(super) use failures::Failures;
pub(super) use hosts::{Hosts, names_this_machine};
pub(super) use owners::is_owner;

/// Lets known callers through, with their [`Caller`].
pub(super) async fn let_in(
    State(state): State<AdminState>,
    request: Request,
    next: Next,
) -> Response {
    let (mut head, body) = request.into_parts();
    let is_page = !head.uri.path().starts_with("/api/");
    match check(&state, &head) {
        Ok((key, caller)) => {
            if let Err(problem) = owners::still_counts(&state, &key).await {
                return refused(problem, is_page);
            }
            state.operations.key_used(&key).await;
            head.extensions.insert(caller);
            next.run(Request::from_parts(head, body)).await
        }
        Err(problem) => refused(problem, is_page),
    }
}

fn refused(problem: Problem, is_page: bool) -> Response {
    match is_page {
        true => texts::page_of(&problem),
        false => problem.into_response(),
    }
}

fn check(state: &AdminState, head: &Parts) -> Result<(Key, Caller), Problem> {
    let origin = state.hosts.check(head)?;
    let shown = Shown::by(head).ok_or_else(Problem::needs_key)?;
    let key = state.entrance.find(shown.secret(), now_ms());
    let key = key.filter(|key| key.kind == shown.kind());
    let Some(key) = key else {
        return Err(match state.failures.one_more() {
            Ok(()) => Problem::wrong_key(),
            Err(wait) => Problem::too_many_failures(wait),
        });
    };
    let changes = !matches!(head.method, Method::GET | Method::HEAD | Method::OPTIONS);
    if changes && key.kind == Kind::SignIn {
        origin.is_of_our_page()?;
    }
    let caller = Caller::of(&key);
    if changes {
        caller.needs(Scope::Operate)?;
    }
    Ok((key, caller))
}

/// The secret in the head of a call. A token counts before a cookie.
enum Shown<'a> {
    Token(&'a str),
    Cookie(&'a str),
}

impl<'a> Shown<'a> {
    fn by(head: &'a Parts) -> Option<Self> {
        let token = bearer(head).map(Shown::Token);
        token.or_else(|| cookie::shown(head).map(Shown::Cookie))
    }

    fn secret(&self) -> &'a str {
        match self {
            Shown::Token(secret) | Shown::Cookie(secret) => secret,
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Shown::Token(_) => Kind::Token,
            Shown::Cookie(_) => Kind::SignIn,
        }
    }
}

/// The token of `Authorization: Bearer …`.
pub(super) fn bearer(head: &Parts) -> Option<&str> {
    let shown = head.headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = shown.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim())
        .filter(|token| !token.is_empty())
}

/// Whether the head shows a key that counts, for the server of the listener.
pub(super) fn is_known(entrance: &crate::operations::http_keys::Entrance, head: &Parts) -> bool {
    Shown::by(head).is_some_and(|shown| {
        let key = entrance.find(shown.secret(), now_ms());
        key.is_some_and(|key| key.kind == shown.kind())
    })
}
