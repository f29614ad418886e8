//! The house: giving a place to another agent, with a way back.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::common::{known_agent, place};
use super::extract::{ApiJson, ApiPath};
use crate::admin::auth::Administers;
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::operations::giving::Way;

pub(super) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new().routes(routes!(give))
}

/// A place for an agent.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Giving {
    /// Null: the rules decide again.
    agent: Option<String>,
    way: Way,
}

/// The same call with `undo` takes the change back.
#[derive(Debug, Serialize, ToSchema)]
struct GivenBody {
    undo: Giving,
}

/// Gives a place to an agent, or back to the rules, and tells how that is undone.
#[utoipa::path(put, path = "/house/places/{key}", tag = "routing", request_body = Giving,
    params(("key" = String, Path, description = "Key of the place; nobody needs to have used it")),
    responses((status = 200, body = GivenBody), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn give(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    ApiPath(key): ApiPath<String>,
    ApiJson(giving): ApiJson<Giving>,
) -> Result<Json<GivenBody>, Problem> {
    let (place, Giving { agent, way }) = (place(&key)?, giving);
    if let Some(agent) = &agent {
        known_agent(&state, agent).await?;
    }
    let given = state
        .operations
        .give_place(&caller.who, place, agent.as_deref(), way);
    let undo = Giving {
        agent: given.await?,
        way,
    };
    Ok(Json(GivenBody { undo }))
}
