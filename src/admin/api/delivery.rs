//! `/delivery`: the send budgets; `/undelivered`: messages that could not be delivered.

use axum::Json;
use axum::extract::State;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::common::{Page, ask, house, place};
use super::extract::ApiJson;
use crate::admin::auth::{Operates, Reads};
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::delivery::undelivered::{self, Which};
use crate::operations::named::{Moment, Named};
use crate::operations::send_budgets::{SendBudget, send_budgets};
use crate::operations::{Reply, Request};

pub(super) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(budgets))
        .routes(routes!(list))
        .routes(routes!(retry))
        .routes(routes!(drop_them))
}

/// The send budgets of each platform: what is used of them right now, who waits how long, and waits
/// that the platform asked for.
#[utoipa::path(get, path = "/delivery/budgets", tag = "delivery", responses((status = 200, body = Page<SendBudget>)))]
async fn budgets(
    _: Reads,
    State(state): State<AdminState>,
) -> Result<Json<Page<SendBudget>>, Problem> {
    Ok(Json(Page::whole(send_budgets(&state.operations).await?)))
}

/// A message that could not be delivered.
#[derive(Debug, Serialize, ToSchema)]
struct UndeliveredLine {
    id: i64,
    place: Named,
    kind: String,
    error: String,
    created_at: Moment,
    /// Kept because delivery is off in the place.
    kept: bool,
}

/// Undelivered messages, oldest first.
#[utoipa::path(get, path = "/undelivered", tag = "delivery", responses((status = 200, body = Page<UndeliveredLine>)))]
async fn list(
    _: Reads,
    State(state): State<AdminState>,
) -> Result<Json<Page<UndeliveredLine>>, Problem> {
    let read = |connection: &Connection| undelivered::list(connection, &Which::All);
    let rows = state.operations.db().read(read).await?;
    let house = house(&state).await?;
    let lines = rows.into_iter().map(|row| UndeliveredLine {
        id: row.id,
        place: house.names.place(&row.place),
        kind: row.kind,
        error: row.error,
        created_at: Moment(row.created_at),
        kept: row.is_kept,
    });
    Ok(Json(Page::whole(lines.collect())))
}

/// Which messages: one of the three.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WhichBody {
    id: Option<i64>,
    /// All of this place, and of places within it.
    place: Option<String>,
    #[serde(default)]
    all: bool,
}

impl WhichBody {
    fn which(&self) -> Result<Which, Problem> {
        match (self.id, &self.place, self.all) {
            (Some(id), None, false) => Ok(Which::Row(id)),
            (None, Some(text), false) => place(text).map(Which::Place),
            (None, None, true) => Ok(Which::All),
            _ => Err(Problem::bad_request("name one of id, place and all")),
        }
    }
}

/// How many messages.
#[derive(Debug, Serialize, ToSchema)]
struct Counted {
    count: usize,
}

/// Sends messages again.
#[utoipa::path(post, path = "/undelivered/retry", tag = "delivery", request_body = WhichBody,
    responses((status = 200, body = Counted), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn retry(
    Operates(caller): Operates,
    State(state): State<AdminState>,
    ApiJson(body): ApiJson<WhichBody>,
) -> Result<Json<Counted>, Problem> {
    match ask(&state, &caller, Request::Retry(body.which()?)).await? {
        Reply::Retried(retried) => Ok(Json(Counted {
            count: retried.count,
        })),
        _ => Err(Problem::broken()),
    }
}

/// Deletes messages for good: nobody will get them.
#[utoipa::path(post, path = "/undelivered/drop", tag = "delivery", request_body = WhichBody,
    responses((status = 200, body = Counted), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn drop_them(
    Operates(caller): Operates,
    State(state): State<AdminState>,
    ApiJson(body): ApiJson<WhichBody>,
) -> Result<Json<Counted>, Problem> {
    match ask(&state, &caller, Request::Drop(body.which()?)).await? {
        Reply::Dropped(count) => Ok(Json(Counted { count })),
        _ => Err(Problem::broken()),
    }
}
