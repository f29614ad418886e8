//! The HTTP API, `/api/v1`: everything that an operator can ask and change, through the functions of
//! `operations`. Errors are problem details, and the OpenAPI document is made from this code.

mod agents;
pub(super) mod approvals;
mod common;
mod config;
mod delivery;
mod document;
mod events;
mod extract;
mod files;
mod house;
mod jobs;
mod memory;
mod people;
mod routes;
mod sessions;
mod system;
mod usage;
mod what_if;

pub(super) mod chat;
pub(super) mod turns;

use std::sync::Arc;

use axum::Router;
use axum::http::header;
use axum::routing::get;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use super::auth::Reads;
use super::problem::Problem;
use super::state::AdminState;
use super::texts;

#[derive(OpenApi)]
#[openapi(components(schemas(Problem)), servers((url = "/api/v1")))]
struct Document;

pub(super) fn router() -> Router<AdminState> {
    let (router, document) = OpenApiRouter::with_openapi(Document::openapi())
        .merge(agents::router())
        .merge(files::router())
        .merge(memory::router())
        .merge(sessions::router())
        .merge(routes::router())
        .merge(what_if::router())
        .merge(people::router())
        .merge(jobs::router())
        .merge(approvals::router())
        .merge(delivery::router())
        .merge(turns::router())
        .merge(usage::router())
        .merge(config::router())
        .merge(system::router())
        .merge(events::router())
        .merge(house::router())
        .merge(chat::router())
        .split_for_parts();
    let document = document::completed(document).to_json().unwrap_or_default();
    let document: Arc<str> = document.into();
    let page = move |_: Reads| {
        let document = document.clone();
        async move {
            let json = [(header::CONTENT_TYPE, "application/json")];
            (json, document.to_string())
        }
    };
    router
        .route("/openapi.json", get(page))
        .fallback(async || Problem::not_found(texts::NO_SUCH_CALL))
        .method_not_allowed_fallback(async || Problem::wrong_method())
}
