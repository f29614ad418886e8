//! The way in from Telegram: a page that Telegram opens as a Mini App, and the check of what Telegram
//! says about the person who opened it.
//!
//! The page is the only one that may be framed, and only by Telegram's own site. Inside a frame no
//! cookie of ours counts, so there the page offers a link that opens the dashboard beside it.

use axum::Json;
use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use maud::{DOCTYPE, html};
use rusqlite::Transaction;
use serde::{Deserialize, Serialize};

use super::auth::{is_owner, kept};
use super::dashboard::asset_address;
use super::headers::FramedByTelegram;
use super::problem::Problem;
use super::state::AdminState;
use super::texts;
use crate::channels::telegram::init_data::{self, NotOpened, Opened};
use crate::clock::now_ms;
use crate::operations::http_keys::{self, Visitor};
use crate::records::http_keys::Scope;
use crate::records::mini_app_entries;

const MOST_BODY_BYTES: usize = 16 * 1024;

/// Open to strangers.
pub(super) fn entrance() -> Router<AdminState> {
    Router::new().route("/mini-app", get(page).post(enter))
}

async fn page(State(state): State<AdminState>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    if let Err(problem) = state.hosts.check_name(&head) {
        return texts::page_of(&problem);
    }
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Parlor" }
                link rel="stylesheet" href=(asset_address("app.css"));
                script type="module" src=(asset_address("mini-app.js")) {}
            }
            body {
                main.page {
                    h1 { "Parlor" }
                    p #state role="status" { "Signing you in…" }
                    p { a.button.main #go href="/" target="_blank" rel="noopener" hidden { "Open the dashboard" } }
                }
            }
        }
    };
    let mut response = page.into_response();
    response.extensions_mut().insert(FramedByTelegram);
    response
}

/// What the page sends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    init_data: String,
    /// The page is inside a frame.
    framed: bool,
}

#[derive(Serialize)]
struct Entered {
    /// Opens the dashboard from inside a frame, once and within a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
}

async fn enter(State(state): State<AdminState>, request: Request) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    state.hosts.check_own_page(&head)?;
    let body = to_bytes(body, MOST_BODY_BYTES).await;
    let entry: Option<Entry> = body
        .ok()
        .and_then(|body| serde_json::from_slice(&body).ok());
    let entry = entry.ok_or_else(|| Problem::bad_request(texts::UNREAD))?;
    let opened = match admitted(&state, &entry.init_data).await {
        Ok(opened) => opened,
        Err(problem) => {
            return Err(match state.failures.one_more() {
                Ok(()) => problem,
                Err(wait) => Problem::too_many_failures(wait),
            });
        }
    };
    let visitor = Visitor {
        name: match opened.name.is_empty() {
            true => opened.person.to_string(),
            false => opened.name,
        },
        person: Some(opened.person.to_string()),
        scope: Scope::Admin,
    };
    match entry.framed {
        true => Ok(linked(&state, &head, visitor)),
        false => signed_in(&state, &head, &visitor).await,
    }
}

/// The person, if Telegram vouches for them now, for the first time with this text, and they own the
/// house now.
async fn admitted(state: &AdminState, init_data: &str) -> Result<Opened, Problem> {
    let snapshot = state.operations.snapshot().await?;
    let telegram = snapshot.config.telegram.as_ref();
    let telegram = telegram.ok_or_else(|| Problem::entry(texts::NO_TELEGRAM))?;
    let token = telegram.platform.token.expose();
    let opened = init_data::opened(init_data, token, now_ms()).map_err(|why| {
        Problem::entry(match why {
            NotOpened::Unreadable | NotOpened::NotSigned => texts::NOT_FROM_TELEGRAM,
            NotOpened::TooOld => texts::ENTRY_IS_OVER,
        })
    })?;
    if !is_owner(state, &opened.person).await? {
        return Err(Problem::entry(texts::ENTRY_NEEDS_OWNER));
    }
    let (hash, until) = (opened.hash.clone(), opened.until);
    let write = move |tx: &Transaction<'_>| mini_app_entries::use_up(tx, &hash, until);
    match state.operations.db().write(write).await? {
        true => Ok(opened),
        false => Err(Problem::entry(texts::ENTRY_IS_OVER)),
    }
}

async fn signed_in(
    state: &AdminState,
    head: &Parts,
    visitor: &Visitor,
) -> Result<Response, Problem> {
    let (key, secret) = http_keys::sign_in(&state.operations, visitor).await?;
    let lasts = key.expires_at.unwrap_or_default() - now_ms();
    let is_encrypted = state.hosts.is_encrypted(head);
    let cookie = kept(head, &secret, lasts / 1000, is_encrypted);
    let mut response = Json(Entered { link: None }).into_response();
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

/// The use of the link is noted in the audit.
fn linked(state: &AdminState, head: &Parts, visitor: Visitor) -> Response {
    let code = state.entrance.make_link(visitor);
    let base = match state.hosts.is_encrypted(head) {
        true => state.settings.url.clone(),
        false => None,
    };
    let link = format!("{}/enter?code={code}", base.unwrap_or_default());
    Json(Entered { link: Some(link) }).into_response()
}
