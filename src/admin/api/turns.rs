//! `/turns`: what turns took, and one of them from its message to its delivery.

use axum::Json;
use axum::extract::State;
use rusqlite::Connection;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::common::{Page, before, house, limit, no_agent, place};
use super::extract::{ApiPath, ApiQuery};
use crate::admin::auth::{Caller, Reads};
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::operations::turns::{self, Sight, TurnLine, TurnView};
use crate::records::http_keys::Scope;
use crate::records::turn_story::Wanted;

pub(super) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show))
}

/// Prompts have words of people, and of the operator's files.
pub(in crate::admin) fn sight(caller: &Caller) -> Sight {
    match caller.scope {
        Scope::Admin => Sight::Everything,
        Scope::Read | Scope::Operate => Sight::Sizes,
    }
}

/// Which turns.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Only turns of this agent.
    agent: Option<String>,
    /// Only turns in this place.
    place: Option<String>,
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// The `next` of the part before.
    cursor: Option<String>,
}

/// Ended turns, the latest first.
#[utoipa::path(get, path = "/turns", tag = "turns", params(ListQuery),
    responses((status = 200, body = Page<TurnLine>), (status = 404, body = Problem, content_type = "application/problem+json")))]
async fn list(
    _: Reads,
    State(state): State<AdminState>,
    ApiQuery(query): ApiQuery<ListQuery>,
) -> Result<Json<Page<TurnLine>>, Problem> {
    let limit = limit(query.limit)?;
    let snapshot = state.operations.snapshot().await?;
    let registry = &snapshot.registry;
    let agent = query.agent.as_deref().map(|word| {
        let found = registry.find(word).map(|agent| agent.uid.to_string());
        found.ok_or_else(|| no_agent(registry, word))
    });
    let key = query.place.as_deref().map(place).transpose()?;
    let wanted = Wanted {
        agent_uid: agent.transpose()?,
        place: key.map(|key| key.to_string()),
        before: Some(before(query.cursor.as_deref())?),
    };
    let house = house(&state).await?;
    // One more tells whether the list goes on.
    let read = move |connection: &Connection| turns::latest(connection, &house, &wanted, limit + 1);
    let mut lines = state.operations.db().read(read).await?;
    let has_more = lines.len() > limit as usize;
    lines.truncate(limit as usize);
    Ok(Json(Page::new(lines, has_more, |line| {
        line.row.to_string()
    })))
}

/// A turn with its timeline, and its prompt by section. Words of the prompt are for the scope admin.
#[utoipa::path(get, path = "/turns/{id}", tag = "turns",
    params(("id" = i64, Path, description = "Number of the message that was answered")),
    responses((status = 200, body = TurnView), (status = 404, body = Problem, content_type = "application/problem+json")))]
async fn show(
    Reads(caller): Reads,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<i64>,
) -> Result<Json<TurnView>, Problem> {
    turn(&state, &caller, id).await.map(Json)
}

/// The same for the page.
pub(in crate::admin) async fn turn(
    state: &AdminState,
    caller: &Caller,
    id: i64,
) -> Result<TurnView, Problem> {
    let (house, sight) = (house(state).await?, sight(caller));
    let read = move |connection: &Connection| turns::one(connection, &house, id, sight);
    let found = state.operations.db().read(read).await?;
    found.ok_or_else(|| {
        Problem::not_found("This turn is not kept any more, or never was.".to_owned())
    })
}
