//! The pages of the dashboard: server-rendered, with small scripts of our own.
//!
//! A page reads through `operations`; a script changes things through the public API only.

mod agent;
mod agents;
mod approvals;
mod assets;
mod audit;
mod chat;
mod config;
mod conversations;
mod delivery;
mod house;
mod jobs;
mod layout;
mod live;
mod logs;
mod markdown;
mod memory;
mod overview;
mod people;
mod system;
mod texts;
mod turns;
mod usage;
mod what_if;

use axum::Router;
use axum::extract::State;
use axum::middleware::map_response;
use axum::response::{Redirect, Response};
use axum::routing::get;

use super::auth::Reads;
use super::problem::Problem;
use super::state::AdminState;
use super::texts::page_of;

pub(super) use assets::address as asset_address;
pub(crate) use layout::hue;
pub(crate) use markdown::html as markdown_html;

/// Pages for those who are in.
pub(super) fn pages() -> Router<AdminState> {
    Router::new()
        .route("/", get(first_page))
        .route("/chat", get(chat::page))
        .route("/house", get(house::page))
        .route("/what-if", get(what_if::page))
        .route("/overview", get(overview::page))
        .route("/conversations", get(conversations::page))
        .route("/conversations/{key}", get(conversations::one))
        .route("/live", get(live::page))
        .route("/turns", get(turns::page))
        .route("/turns/{id}", get(turns::one))
        .route("/agents", get(agents::page))
        .route("/agents/{id}", get(agent::page))
        .route("/memory", get(memory::page))
        .route("/config", get(config::page))
        .route("/logs", get(logs::page))
        .route("/conversations/{key}/export", get(conversations::export))
        .route("/people", get(people::page))
        .route("/jobs", get(jobs::page))
        .route("/jobs/{id}", get(jobs::one))
        .route("/approvals", get(approvals::page))
        .route("/delivery", get(delivery::page))
        .route("/usage", get(usage::page))
        .route("/audit", get(audit::page))
        .route("/system", get(system::page))
        .layer(map_response(shown_to_a_person))
}

/// A problem of a page is a page too.
async fn shown_to_a_person(response: Response) -> Response {
    match response.extensions().get::<Problem>() {
        Some(problem) => page_of(problem),
        None => response,
    }
}

/// Style sheets and scripts, for everybody: they tell nothing about the house.
pub(super) fn assets() -> Router<AdminState> {
    Router::new()
        .route("/assets/{version}/{name}", get(assets::serve))
        .route("/favicon.ico", get(assets::icon))
}

async fn first_page(State(state): State<AdminState>, Reads(_): Reads) -> Result<Redirect, Problem> {
    let snapshot = state.operations.snapshot().await?;
    Ok(Redirect::to(match snapshot.config.has_web() {
        true => "/chat",
        false => "/overview",
    }))
}
