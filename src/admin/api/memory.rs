//! `/memories`: listed, searched, recalled, added and deleted.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::common::{Page, ask_about, before, known_agent, limit, place, word};
use super::extract::{ApiJson, ApiPath, ApiQuery};
use crate::admin::auth::{Operates, Reads};
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::config::Visibility;
use crate::operations::memories::{self, MemoryLine, View};
use crate::operations::{Reply, Request};

pub(super) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(list, remember))
        .routes(routes!(search))
        .routes(routes!(recall))
        .routes(routes!(forget))
}

/// Whose memories, for whom.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Id or name of the agent; without one, only global memories.
    agent: Option<String>,
    /// Also memories for this person, such as telegram:12345678.
    person: Option<String>,
    /// Also memories for this place.
    place: Option<String>,
    /// At most so many.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// The `next` of the part before.
    cursor: Option<String>,
}

async fn view(
    state: &AdminState,
    agent: Option<String>,
    person: Option<&str>,
    at: Option<&str>,
) -> Result<View, Problem> {
    if let Some(agent) = &agent {
        known_agent(state, agent).await?;
    }
    Ok(View {
        agent,
        person: person
            .map(|person| word("person's id", person))
            .transpose()?,
        place: at.map(place).transpose()?,
    })
}

/// Memories, the newest first.
#[utoipa::path(get, path = "/memories", tag = "memory", params(ListQuery),
    responses((status = 200, body = Page<MemoryLine>), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn list(
    _: Reads,
    State(state): State<AdminState>,
    ApiQuery(query): ApiQuery<ListQuery>,
) -> Result<Json<Page<MemoryLine>>, Problem> {
    let limit = limit(query.limit)?;
    let before = before(query.cursor.as_deref())?;
    let view = view(
        &state,
        query.agent,
        query.person.as_deref(),
        query.place.as_deref(),
    )
    .await?;
    let lines = memories::list(&state.operations, &view, before, limit).await?;
    let has_more = lines.len() == limit as usize;
    Ok(Json(Page::new(lines, has_more, |line| line.id.to_string())))
}

/// What is searched for.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct SearchQuery {
    /// Words to search for.
    q: String,
    /// Id or name of the agent; without one, only global memories.
    agent: Option<String>,
    person: Option<String>,
    place: Option<String>,
    /// person, place, private or global.
    visibility: Option<String>,
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

/// Memories with any of the words, the best first.
#[utoipa::path(get, path = "/memories/search", tag = "memory", params(SearchQuery),
    responses((status = 200, body = Page<MemoryLine>), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn search(
    _: Reads,
    State(state): State<AdminState>,
    ApiQuery(query): ApiQuery<SearchQuery>,
) -> Result<Json<Page<MemoryLine>>, Problem> {
    let limit = limit(query.limit)?;
    let visibility = visibility(query.visibility.as_deref())?;
    let view = view(
        &state,
        query.agent,
        query.person.as_deref(),
        query.place.as_deref(),
    )
    .await?;
    let visibility = visibility.into_iter().collect();
    let lines = memories::search(&state.operations, &view, &query.q, visibility, limit).await?;
    Ok(Json(Page::whole(lines)))
}

fn visibility(text: Option<&str>) -> Result<Option<Visibility>, Problem> {
    text.map(|text| word("visibility: write person, place, private or global", text))
        .transpose()
}

/// Before which answer.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct RecallQuery {
    /// The message that is about to be answered.
    q: String,
    /// Id or name of the agent; without one, global memories are searched.
    agent: Option<String>,
    person: Option<String>,
    place: Option<String>,
    /// person, place, private or global.
    visibility: Option<String>,
}

/// What an agent is reminded of.
#[derive(Debug, Serialize, ToSchema)]
struct Recalled {
    /// As it stands in the prompt; empty where recall is off.
    recalled: Vec<String>,
    /// The memories that fit.
    found: Vec<MemoryLine>,
}

/// What the agent would be reminded of before it answers a message.
#[utoipa::path(get, path = "/memories/recall", tag = "memory", params(RecallQuery),
    responses((status = 200, body = Recalled), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn recall(
    _: Reads,
    State(state): State<AdminState>,
    ApiQuery(query): ApiQuery<RecallQuery>,
) -> Result<Json<Recalled>, Problem> {
    let visibility = visibility(query.visibility.as_deref())?;
    let view = view(
        &state,
        query.agent,
        query.person.as_deref(),
        query.place.as_deref(),
    )
    .await?;
    let visibility = visibility.into_iter().collect();
    let found = memories::search(&state.operations, &view, &query.q, visibility, 10).await?;
    let recalled = memories::recall(&state.operations, &view, &query.q).await?;
    Ok(Json(Recalled { recalled, found }))
}

/// A memory to be kept.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RememberBody {
    text: String,
    /// Id or name of the agent; without one, the default agent.
    agent: Option<String>,
    /// private or global; without it, as the config says.
    visibility: Option<String>,
}

/// Gives an agent something to remember.
#[utoipa::path(post, path = "/memories", tag = "memory", request_body = RememberBody,
    responses((status = 201, body = MemoryLine), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn remember(
    Operates(caller): Operates,
    State(state): State<AdminState>,
    ApiJson(body): ApiJson<RememberBody>,
) -> Result<(StatusCode, Json<MemoryLine>), Problem> {
    let visibility = visibility(body.visibility.as_deref())?;
    if !matches!(
        visibility,
        None | Some(Visibility::Private | Visibility::Global)
    ) {
        return Err(Problem::bad_request("visibility is private or global here"));
    }
    if let Some(agent) = &body.agent {
        known_agent(&state, agent).await?;
    }
    let said = (body.agent.as_deref(), body.text.as_str());
    let saved = memories::remember(&state.operations, &caller.who, said, visibility).await?;
    Ok((StatusCode::CREATED, Json(saved)))
}

/// Whose memory.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ForgetQuery {
    /// Id or name of the agent; without one, the default agent.
    agent: Option<String>,
}

/// Deletes a saved memory for good.
#[utoipa::path(delete, path = "/memories/{id}", tag = "memory",
    params(("id" = i64, Path, description = "Number of the memory"), ForgetQuery),
    responses((status = 204), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn forget(
    Operates(caller): Operates,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<i64>,
    ApiQuery(query): ApiQuery<ForgetQuery>,
) -> Result<StatusCode, Problem> {
    let request = Request::Forget {
        agent: query.agent,
        id,
    };
    match ask_about(&state, &caller, request).await? {
        Reply::Forgotten(_) => Ok(StatusCode::NO_CONTENT),
        _ => Err(Problem::broken()),
    }
}
