//! `/agents`: the agents of the house.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::common::{Tagged, ask, ask_about, check_tag, known_agent, no_agent};
use super::extract::{ApiJson, ApiPath};
use crate::admin::auth::{Administers, Caller, Operates, Reads};
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::config::edit::NewAgent;
use crate::operations::agent_view::{self, AgentDetails, AgentList};
use crate::operations::agents::{self, EditPreview};
use crate::operations::{AgentEdit, AgentReply, AgentRequest, Reply, Request};
use crate::tenants::{Adding, Steering};

pub(super) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(set_default))
        .routes(routes!(get, update, remove))
        .routes(routes!(preview))
        .routes(routes!(restore))
        .routes(routes!(adopt))
        .routes(routes!(clone))
        .routes(routes!(rename))
        .routes(routes!(pause))
        .routes(routes!(resume))
}

/// All agents: configured, discovered, stored and archived.
#[utoipa::path(get, path = "/agents", tag = "agents", responses((status = 200, body = AgentList)))]
async fn list(_: Reads, State(state): State<AdminState>) -> Result<Json<AgentList>, Problem> {
    Ok(Json(agent_view::list(&state.operations).await?))
}

/// One agent with its identity, soul, files, skills, tools, model and memory counts.
#[utoipa::path(get, path = "/agents/{id}", tag = "agents",
    params(("id" = String, Path, description = "Id or name of the agent")),
    responses((status = 200, body = AgentDetails, headers(("ETag" = String))), (status = 404, body = Problem, content_type = "application/problem+json")))]
async fn get(
    _: Reads,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<String>,
) -> Result<Tagged<AgentDetails>, Problem> {
    details(&state, &id).await.map(Tagged)
}

pub(super) async fn details(state: &AdminState, id: &str) -> Result<AgentDetails, Problem> {
    known_agent(state, id).await?;
    let mut details = agent_view::details(&state.operations, id).await?;
    // Numbers of the moment are no part of the state that a change is made from.
    details.line.health = None;
    Ok(details)
}

/// A new agent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewAgentBody {
    /// Small letters, digits and hyphens.
    id: String,
    /// The name that people see.
    #[serde(alias = "label")]
    name: Option<String>,
    emoji: Option<String>,
    creature: Option<String>,
    vibe: Option<String>,
    /// `provider/model`
    model: Option<String>,
    /// Names of allowed skills; without it, the whole pool.
    skills: Option<Vec<String>>,
    /// The text of SOUL.md.
    soul: Option<String>,
    /// Places to bind to it, as `match` in config.toml.
    #[serde(default)]
    bindings: Vec<String>,
}

/// Makes an agent with files from the template, and takes it into config.toml.
#[utoipa::path(post, path = "/agents", tag = "agents", request_body = NewAgentBody,
    responses((status = 201, body = AgentDetails, headers(("Location" = String), ("ETag" = String))), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn create(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    ApiJson(body): ApiJson<NewAgentBody>,
) -> Result<Response, Problem> {
    let adding = Adding {
        id: body.id,
        entry: NewAgent {
            name: body.name,
            emoji: body.emoji,
            creature: body.creature,
            vibe: body.vibe,
            model: body.model,
            skills: body.skills,
        },
        personality: body.soul,
        bindings: body.bindings,
    };
    let AgentReply::Added(added) = agent(&state, &caller, AgentRequest::Add(adding)).await? else {
        return Err(Problem::broken());
    };
    made(&state, added.id.as_str()).await
}

/// The answer with a new agent.
async fn made(state: &AdminState, id: &str) -> Result<Response, Problem> {
    let details = details(state, id).await?;
    let location = [(header::LOCATION, format!("/api/v1/agents/{id}"))];
    Ok((StatusCode::CREATED, location, Tagged(details)).into_response())
}

/// Changes keys of the agent's table: absent ones stay, null takes one out.
#[utoipa::path(patch, path = "/agents/{id}", tag = "agents", request_body = AgentEdit,
    params(("id" = String, Path, description = "Id or name of the agent"), ("If-Match" = Option<String>, Header, description = "The ETag that the change was made from")),
    responses((status = 200, body = AgentDetails, headers(("ETag" = String))), (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json"), (status = 412, body = Problem, content_type = "application/problem+json")))]
async fn update(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<String>,
    headers: HeaderMap,
    ApiJson(edit): ApiJson<AgentEdit>,
) -> Result<Tagged<AgentDetails>, Problem> {
    edited(&state, &caller, &id, &headers, edit)
        .await
        .map(Tagged)
}

/// Shows which lines of config.toml a change of the agent would write, and changes nothing.
#[utoipa::path(post, path = "/agents/{id}/preview", tag = "agents", request_body = AgentEdit,
    params(("id" = String, Path, description = "Id or name of the agent")),
    responses((status = 200, body = EditPreview), (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn preview(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<String>,
    ApiJson(edit): ApiJson<AgentEdit>,
) -> Result<Json<EditPreview>, Problem> {
    let snapshot = state.operations.snapshot().await?;
    let known = snapshot.registry.find(&id);
    let known = known.ok_or_else(|| no_agent(&snapshot.registry, &id))?;
    let preview = agents::preview(&state.operations, &caller.who, known.id.as_str(), edit);
    Ok(Json(preview.await?))
}

/// Also for the identity of a session's agent.
pub(super) async fn edited(
    state: &AdminState,
    caller: &Caller,
    id: &str,
    headers: &HeaderMap,
    edit: AgentEdit,
) -> Result<AgentDetails, Problem> {
    let before = details(state, id).await?;
    check_tag(headers, &before)?;
    let request = AgentRequest::Edit {
        agent: before.line.id.clone(),
        edit: Box::new(edit),
    };
    agent(state, caller, request).await?;
    details(state, id).await
}

/// Puts the agent into the archive: memories are hidden, bindings taken out, files kept.
#[utoipa::path(delete, path = "/agents/{id}", tag = "agents",
    params(("id" = String, Path, description = "Id of the agent"), ("If-Match" = Option<String>, Header, description = "The ETag that the change was made from")),
    responses((status = 200, description = "What was put away", body = Object), (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json"), (status = 412, body = Problem, content_type = "application/problem+json")))]
async fn remove(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<String>,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    let before = details(&state, &id).await?;
    check_tag(&headers, &before)?;
    let request = AgentRequest::Remove {
        agent: before.line.id,
    };
    let AgentReply::Removed(removed) = agent(&state, &caller, request).await? else {
        return Err(Problem::broken());
    };
    Ok(Json(json!({
        "id": removed.archive.id,
        "archive": removed.archive.name,
        "bindings": removed.bindings,
        "mentions": removed.mentions,
        "rows": removed.rows,
    })))
}

/// What an agent comes back as.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RestoreBody {
    /// Another id, if its own is taken.
    #[serde(rename = "as")]
    as_id: Option<String>,
}

/// Brings an archived agent back, by its id or the name of its archive.
#[utoipa::path(post, path = "/agents/{id}/restore", tag = "agents", request_body = RestoreBody,
    params(("id" = String, Path, description = "Id of the agent, or name of the archive")),
    responses((status = 200, body = AgentDetails), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn restore(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<String>,
    ApiJson(body): ApiJson<RestoreBody>,
) -> Result<Tagged<AgentDetails>, Problem> {
    let request = AgentRequest::Restore {
        which: id,
        as_id: body.as_id,
    };
    let AgentReply::Restored(restored) = agent_about(&state, &caller, request).await? else {
        return Err(Problem::broken());
    };
    details(&state, restored.id.as_str()).await.map(Tagged)
}

/// Takes a folder that was made by hand into config.toml.
#[utoipa::path(post, path = "/agents/{id}/adopt", tag = "agents",
    params(("id" = String, Path, description = "Name of the folder below agents/")),
    responses((status = 200, body = AgentDetails), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn adopt(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<String>,
) -> Result<Tagged<AgentDetails>, Problem> {
    let request = AgentRequest::Adopt { id };
    let AgentReply::Adopted(id) = agent_about(&state, &caller, request).await? else {
        return Err(Problem::broken());
    };
    details(&state, id.as_str()).await.map(Tagged)
}

/// Another id.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct IdBody {
    /// Small letters, digits and hyphens.
    to: String,
}

/// Makes another agent with the same settings, identity files and skills, and without memory.
#[utoipa::path(post, path = "/agents/{id}/clone", tag = "agents", request_body = IdBody,
    params(("id" = String, Path, description = "Id or name of the agent")),
    responses((status = 201, body = AgentDetails, headers(("Location" = String), ("ETag" = String))), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn clone(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<String>,
    ApiJson(body): ApiJson<IdBody>,
) -> Result<Response, Problem> {
    known_agent(&state, &id).await?;
    let request = AgentRequest::Clone {
        from: id,
        to: body.to,
    };
    match agent(&state, &caller, request).await? {
        AgentReply::Cloned(id) => made(&state, id.as_str()).await,
        _ => Err(Problem::broken()),
    }
}

/// Gives an agent another id. History, memory, pins and bindings stay.
#[utoipa::path(post, path = "/agents/{id}/rename", tag = "agents", request_body = IdBody,
    params(("id" = String, Path, description = "Id or name of the agent")),
    responses((status = 200, body = AgentDetails), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn rename(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<String>,
    ApiJson(body): ApiJson<IdBody>,
) -> Result<Tagged<AgentDetails>, Problem> {
    known_agent(&state, &id).await?;
    let request = AgentRequest::Rename {
        from: id,
        to: body.to,
    };
    match agent(&state, &caller, request).await? {
        AgentReply::Renamed { to, .. } => details(&state, to.as_str()).await.map(Tagged),
        _ => Err(Problem::broken()),
    }
}

/// The agent of places without another.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DefaultBody {
    agent: String,
}

/// The default agent before and now.
#[derive(Debug, Serialize, ToSchema)]
struct DefaultChanged {
    before: String,
    after: String,
}

/// Makes an agent the default.
#[utoipa::path(put, path = "/agents/default", tag = "agents", request_body = DefaultBody,
    responses((status = 200, body = DefaultChanged), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn set_default(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    ApiJson(body): ApiJson<DefaultBody>,
) -> Result<Json<DefaultChanged>, Problem> {
    let snapshot = state.operations.snapshot().await?;
    let registry = &snapshot.registry;
    let known = registry.find(&body.agent);
    let known = known.ok_or_else(|| no_agent(registry, &body.agent))?;
    let request = AgentRequest::SetDefault {
        agent: known.id.to_string(),
    };
    agent(&state, &caller, request).await?;
    Ok(Json(DefaultChanged {
        before: registry.default_agent().id.to_string(),
        after: known.id.to_string(),
    }))
}

/// The agent begins no turn; messages wait.
#[utoipa::path(post, path = "/agents/{id}/pause", tag = "agents",
    params(("id" = String, Path, description = "Id or name of the agent")),
    responses((status = 200, body = Object), (status = 404, body = Problem, content_type = "application/problem+json")))]
async fn pause(
    Operates(caller): Operates,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<String>,
) -> Result<Json<Value>, Problem> {
    steer(&state, &caller, id, Steering::Pause).await
}

/// The agent goes on with what waits.
#[utoipa::path(post, path = "/agents/{id}/resume", tag = "agents",
    params(("id" = String, Path, description = "Id or name of the agent")),
    responses((status = 200, body = Object), (status = 404, body = Problem, content_type = "application/problem+json")))]
async fn resume(
    Operates(caller): Operates,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<String>,
) -> Result<Json<Value>, Problem> {
    steer(&state, &caller, id, Steering::Resume).await
}

async fn steer(
    state: &AdminState,
    caller: &Caller,
    id: String,
    steering: Steering,
) -> Result<Json<Value>, Problem> {
    known_agent(state, &id).await?;
    let request = AgentRequest::Steer {
        agent: id,
        steering,
    };
    let AgentReply::Steered { agent, steered } = self::agent(state, caller, request).await? else {
        return Err(Problem::broken());
    };
    Ok(Json(json!({ "agent": agent, "result": steered })))
}

async fn agent(
    state: &AdminState,
    caller: &Caller,
    request: AgentRequest,
) -> Result<AgentReply, Problem> {
    match ask(state, caller, Request::Agent(request)).await? {
        Reply::Agent(reply) => Ok(*reply),
        _ => Err(Problem::broken()),
    }
}

async fn agent_about(
    state: &AdminState,
    caller: &Caller,
    request: AgentRequest,
) -> Result<AgentReply, Problem> {
    match ask_about(state, caller, Request::Agent(request)).await? {
        Reply::Agent(reply) => Ok(*reply),
        _ => Err(Problem::broken()),
    }
}
