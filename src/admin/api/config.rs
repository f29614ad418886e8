//! `/config`: config.toml as a text: read, checked, compared, replaced, and put back as it was.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::common::Page;
use super::extract::{ApiJson, ApiPath};
use crate::admin::auth::{Administers, Caller, Operates, Reads};
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::operations::config_file::{self, Checked, ConfigText, Earlier, NotApplied};
use crate::operations::config_form;

pub(super) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(get, apply))
        .routes(routes!(check))
        .routes(routes!(diff))
        .routes(routes!(edit))
        .routes(routes!(history))
        .routes(routes!(earlier))
        .routes(routes!(roll_back))
}

/// A text with its hash as tag.
fn tagged(text: ConfigText) -> Response {
    let tag = [(header::ETAG, format!("\"{}\"", text.hash))];
    (tag, Json(text)).into_response()
}

/// The text of config.toml. Secrets are not in it: the file only names them.
#[utoipa::path(get, path = "/config", tag = "config",
    responses((status = 200, body = ConfigText, headers(("ETag" = String)))))]
async fn get(_: Administers, State(state): State<AdminState>) -> Result<Response, Problem> {
    Ok(tagged(config_file::read(&state.operations).await?))
}

/// A text of config.toml.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct TextBody {
    text: String,
}

/// Replaces config.toml, and has the gateway read it. A text with problems changes nothing.
#[utoipa::path(put, path = "/config", tag = "config", request_body = TextBody,
    params(("If-Match" = Option<String>, Header, description = "The ETag of the text that was edited; required")),
    responses((status = 200, body = ConfigText, headers(("ETag" = String))), (status = 409, body = Problem, content_type = "application/problem+json"),
        (status = 412, body = Problem, content_type = "application/problem+json"), (status = 428, body = Problem, content_type = "application/problem+json")))]
async fn apply(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    headers: HeaderMap,
    ApiJson(body): ApiJson<TextBody>,
) -> Result<Response, Problem> {
    applied(&state, &caller, &headers, body.text).await
}

async fn applied(
    state: &AdminState,
    caller: &Caller,
    headers: &HeaderMap,
    text: String,
) -> Result<Response, Problem> {
    let base = base(headers)?;
    let applied = config_file::apply(&state.operations, &caller.who, base, text).await;
    applied.map(tagged).map_err(not_applied)
}

/// The hash of the text that was edited.
pub(super) fn base(headers: &HeaderMap) -> Result<&str, Problem> {
    let base = headers.get(header::IF_MATCH);
    let base = base.ok_or_else(Problem::needs_tag)?;
    Ok(base.to_str().unwrap_or_default().trim_matches('"'))
}

pub(super) fn not_applied(error: NotApplied) -> Problem {
    match error {
        NotApplied::Stale(now) => {
            let facts = serde_json::json!({ "current": now });
            Problem::changed_meanwhile().facts(facts)
        }
        NotApplied::Problems(checked) => {
            let facts = serde_json::json!({ "problems": checked.problems });
            Problem::conflict("The text has problems, so nothing was changed.").facts(facts)
        }
        NotApplied::Refused(refusal) => refusal.into(),
    }
}

/// Checks a text, and changes nothing.
#[utoipa::path(post, path = "/config/check", tag = "config", request_body = TextBody,
    responses((status = 200, body = Checked)))]
async fn check(
    _: Operates,
    State(state): State<AdminState>,
    ApiJson(body): ApiJson<TextBody>,
) -> Result<Json<Checked>, Problem> {
    Ok(Json(
        config_file::check(&state.operations, body.text).await?,
    ))
}

/// A comparison, line by line.
#[derive(Debug, Serialize, ToSchema)]
struct Difference {
    /// Whether the texts are the same.
    same: bool,
    /// Each line with its mark: a space in both, `-` only in the file, `+` only in the text.
    lines: Vec<String>,
}

/// Compares a text with config.toml.
#[utoipa::path(post, path = "/config/diff", tag = "config", request_body = TextBody,
    responses((status = 200, body = Difference)))]
async fn diff(
    _: Administers,
    State(state): State<AdminState>,
    ApiJson(body): ApiJson<TextBody>,
) -> Result<Json<Difference>, Problem> {
    let now = config_file::read(&state.operations).await?;
    Ok(Json(Difference {
        same: now.text == body.text,
        lines: config_file::difference(&now.text, &body.text),
    }))
}

/// A setting in a text of config.toml.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct EditBody {
    text: String,
    /// Such as agents.rose.model.
    key: String,
    /// A text, a number, true, false or a list of texts; null takes the setting out.
    value: Option<serde_json::Value>,
}

/// A text of config.toml that is not saved.
#[derive(Debug, Serialize, ToSchema)]
struct EditedText {
    text: String,
}

/// Changes one setting in a text, keeps its comments, and saves nothing.
#[utoipa::path(post, path = "/config/edit", tag = "config", request_body = EditBody,
    responses((status = 200, body = EditedText), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn edit(_: Operates, ApiJson(body): ApiJson<EditBody>) -> Result<Json<EditedText>, Problem> {
    let text = config_form::edited(&body.text, &body.key, body.value.as_ref())?;
    Ok(Json(EditedText { text }))
}

/// Texts that were replaced through this API, the newest first.
#[utoipa::path(get, path = "/config/history", tag = "config", responses((status = 200, body = Page<Earlier>)))]
async fn history(
    _: Reads,
    State(state): State<AdminState>,
) -> Result<Json<Page<Earlier>>, Problem> {
    Ok(Json(Page::whole(
        config_file::history(&state.operations).await?,
    )))
}

/// An earlier text.
#[utoipa::path(get, path = "/config/history/{id}", tag = "config",
    params(("id" = i64, Path, description = "Number of the text")),
    responses((status = 200, body = ConfigText), (status = 404, body = Problem, content_type = "application/problem+json")))]
async fn earlier(
    _: Administers,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<i64>,
) -> Result<Json<ConfigText>, Problem> {
    text_of(&state, id).await.map(Json)
}

async fn text_of(state: &AdminState, id: i64) -> Result<ConfigText, Problem> {
    let found = config_file::earlier(&state.operations, id).await?;
    found.ok_or_else(|| Problem::not_found(format!("there is no earlier text {id}")))
}

/// Puts an earlier text back; the present one becomes an earlier text.
#[utoipa::path(post, path = "/config/history/{id}/restore", tag = "config",
    params(("id" = i64, Path, description = "Number of the text"), ("If-Match" = Option<String>, Header, description = "The ETag of the present text; required")),
    responses((status = 200, body = ConfigText, headers(("ETag" = String))), (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json"), (status = 412, body = Problem, content_type = "application/problem+json"),
        (status = 428, body = Problem, content_type = "application/problem+json")))]
async fn roll_back(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    headers: HeaderMap,
    ApiPath(id): ApiPath<i64>,
) -> Result<Response, Problem> {
    let text = text_of(&state, id).await?.text;
    applied(&state, &caller, &headers, text).await
}
