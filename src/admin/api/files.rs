//! `/agents/{id}/files`: identity files, and earlier versions of MEMORY.md.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::common::{Page, known_agent};
use super::extract::{ApiJson, ApiPath};
use crate::admin::auth::{Administers, Reads};
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::agents::memory::EditError;
use crate::agents::{IdentityFile, Memories, Memory};
use crate::operations::agent_files::{self, FileLine, FileText, NotWritten};

pub(super) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get, set, remove))
        .routes(routes!(versions))
        .routes(routes!(version))
        .routes(routes!(restore))
}

/// The identity files with size, time and origin.
#[utoipa::path(get, path = "/agents/{id}/files", tag = "files",
    params(("id" = String, Path, description = "Id or name of the agent")),
    responses((status = 200, body = Page<FileLine>), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn list(
    _: Reads,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<String>,
) -> Result<Json<Page<FileLine>>, Problem> {
    known_agent(&state, &id).await?;
    let files = agent_files::list(&state.operations, &id).await?;
    Ok(Json(Page::whole(files)))
}

/// A file with its text, and the inherited text beside it.
#[utoipa::path(get, path = "/agents/{id}/files/{name}", tag = "files",
    params(("id" = String, Path, description = "Id or name of the agent"), ("name" = String, Path, description = "SOUL.md, IDENTITY.md, AGENTS.md, TOOLS.md, USER.md, BOOTSTRAP.md or MEMORY.md")),
    responses((status = 200, body = FileText), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn get(
    _: Reads,
    State(state): State<AdminState>,
    ApiPath((id, name)): ApiPath<(String, String)>,
) -> Result<Json<FileText>, Problem> {
    let file = known_file(&state, &id, &name).await?;
    Ok(Json(agent_files::read(&state.operations, &id, file).await?))
}

/// A new text.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct FileBody {
    text: String,
    /// The `hash` of the text that it was made from.
    base: String,
}

/// Writes a file of the agent's own, as a whole. A `base` of another text is 409 with both texts.
#[utoipa::path(put, path = "/agents/{id}/files/{name}", tag = "files", request_body = FileBody,
    params(("id" = String, Path, description = "Id or name of the agent"), ("name" = String, Path, description = "Name of the file")),
    responses((status = 200, body = FileText), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn set(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    ApiPath((id, name)): ApiPath<(String, String)>,
    ApiJson(body): ApiJson<FileBody>,
) -> Result<Json<FileText>, Problem> {
    let file = known_file(&state, &id, &name).await?;
    let yours = body.text.clone();
    let target = (id.as_str(), file);
    let written = agent_files::write(
        &state.operations,
        &caller.who,
        target,
        body.text,
        Some(body.base),
    );
    match written.await {
        Ok(written) => Ok(Json(written)),
        Err(NotWritten::Refused(refusal)) => Err(refusal.into()),
        Err(NotWritten::Stale(now)) => Err(Problem::conflict(format!(
            "{name} was changed meanwhile. Look at both texts, and write again from the present one."
        ))
        .facts(json!({ "current": now, "yours": yours }))),
    }
}

/// Deletes the agent's own file, so that the inherited one counts.
#[utoipa::path(delete, path = "/agents/{id}/files/{name}", tag = "files",
    params(("id" = String, Path, description = "Id or name of the agent"), ("name" = String, Path, description = "Name of the file")),
    responses((status = 200, body = FileText), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn remove(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    ApiPath((id, name)): ApiPath<(String, String)>,
) -> Result<Json<FileText>, Problem> {
    let file = known_file(&state, &id, &name).await?;
    let left = agent_files::remove(&state.operations, &caller.who, &id, file).await?;
    Ok(Json(left))
}

/// An earlier MEMORY.md.
#[derive(Debug, Serialize, ToSchema)]
struct Version {
    version: String,
    bytes: u64,
}

/// Earlier versions of the agent's MEMORY.md.
#[utoipa::path(get, path = "/agents/{id}/memory/versions", tag = "files",
    params(("id" = String, Path, description = "Id or name of the agent")),
    responses((status = 200, body = Page<Version>), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn versions(
    _: Reads,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<String>,
) -> Result<Json<Page<Version>>, Problem> {
    let versions = memory(&state, &id).await?.versions().await.map_err(told)?;
    let versions = versions.into_iter().map(|version| Version {
        version: version.name,
        bytes: version.bytes,
    });
    Ok(Json(Page::whole(versions.collect())))
}

/// An earlier MEMORY.md with its text.
#[derive(Debug, Serialize, ToSchema)]
struct VersionText {
    version: String,
    text: String,
}

/// The text of an earlier version of the agent's MEMORY.md.
#[utoipa::path(get, path = "/agents/{id}/memory/versions/{version}", tag = "files",
    params(("id" = String, Path, description = "Id or name of the agent"), ("version" = String, Path, description = "Name of the version")),
    responses((status = 200, body = VersionText), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn version(
    _: Reads,
    State(state): State<AdminState>,
    ApiPath((id, version)): ApiPath<(String, String)>,
) -> Result<Json<VersionText>, Problem> {
    let text = memory(&state, &id).await?.version(version.clone()).await;
    let text = text.map_err(told)?;
    Ok(Json(VersionText { version, text }))
}

/// Which version comes back.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct VersionBody {
    version: String,
}

/// Brings an earlier MEMORY.md back; the present one becomes a version.
#[utoipa::path(post, path = "/agents/{id}/memory/restore", tag = "files", request_body = VersionBody,
    params(("id" = String, Path, description = "Id or name of the agent")),
    responses((status = 200, body = FileText), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn restore(
    _: Administers,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<String>,
    ApiJson(body): ApiJson<VersionBody>,
) -> Result<Json<FileText>, Problem> {
    let memory = memory(&state, &id).await?;
    memory.restore(body.version).await.map_err(told)?;
    let file = IdentityFile::Memory;
    Ok(Json(agent_files::read(&state.operations, &id, file).await?))
}

fn told(error: EditError) -> Problem {
    match error {
        EditError::Refused(error) => Problem::not_found(error.to_string()),
        EditError::Disk(error) => Problem::conflict(error.to_string()),
    }
}

async fn memory(state: &AdminState, id: &str) -> Result<Memory, Problem> {
    known_agent(state, id).await?;
    let snapshot = state.operations.snapshot().await?;
    let memories = Memories::new(state.operations.db().clone());
    let memory = snapshot
        .registry
        .find(id)
        .and_then(|agent| memories.of(agent));
    memory.ok_or_else(|| Problem::conflict(format!("{id} has no memory")))
}

async fn known_file(state: &AdminState, id: &str, name: &str) -> Result<IdentityFile, Problem> {
    known_agent(state, id).await?;
    let names = IdentityFile::ALL.map(IdentityFile::name).join(", ");
    agent_files::file_named(name).ok_or_else(|| {
        Problem::not_found(format!("{name} is no file of an agent"))
            .hint(format!("there are {names}"))
    })
}
