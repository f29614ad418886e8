//! `/jobs`: turns of agents at a time.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::common::{Page, ask, ask_about, known_agent, place};
use super::extract::{ApiJson, ApiPath, ApiQuery};
use crate::admin::auth::{Administers, Caller, Operates, Reads};
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::operations::job_lines::{JobDetails, JobLine};
use crate::operations::jobs::{JobView, JobWish};
use crate::operations::names::Names;
use crate::operations::{JobReply, JobRequest, Reply, Request};

pub(super) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(list, add))
        .routes(routes!(show, remove))
        .routes(routes!(run))
        .routes(routes!(pause))
        .routes(routes!(resume))
}

#[derive(Debug, Deserialize, IntoParams)]
struct ListQuery {
    /// Only jobs of this agent.
    agent: Option<String>,
}

/// All jobs, by agent and name.
#[utoipa::path(get, path = "/jobs", tag = "jobs", params(ListQuery),
    responses((status = 200, body = Page<JobLine>), (status = 404, body = Problem, content_type = "application/problem+json")))]
async fn list(
    Reads(caller): Reads,
    State(state): State<AdminState>,
    ApiQuery(query): ApiQuery<ListQuery>,
) -> Result<Json<Page<JobLine>>, Problem> {
    if let Some(agent) = &query.agent {
        known_agent(&state, agent).await?;
    }
    let request = JobRequest::List { agent: query.agent };
    let JobReply::List(jobs) = carried_out(&state, &caller, request).await? else {
        return Err(Problem::broken());
    };
    let names = names(&state).await?;
    let lines = jobs.iter().map(|job| JobLine::of(job, &names));
    Ok(Json(Page::whole(lines.collect())))
}

/// A new job. It has one of `cron`, `every` and `at`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct JobBody {
    /// Absent: the default agent.
    agent: Option<String>,
    /// Small letters, digits, - and _.
    name: String,
    /// What to do, in words for the agent.
    task: String,
    /// Minute, hour, day, month, weekday.
    cron: Option<String>,
    /// Such as 30m, 2h or 1d.
    every: Option<String>,
    /// Such as 2026-12-24 18:00.
    at: Option<String>,
    /// Absent: the agent's.
    time_zone: Option<String>,
    /// The place that gets the answers. Absent: nobody.
    place: Option<String>,
    /// Makes the turns part of the conversation in the place.
    #[serde(default)]
    in_conversation: bool,
    /// No run between these times of day: 22:00-07:00.
    quiet: Option<String>,
    /// Has one late run stand for all that were missed.
    #[serde(default)]
    once_if_missed: bool,
}

/// Adds a job. Its turns have the rights of the operator.
#[utoipa::path(post, path = "/jobs", tag = "jobs", request_body = JobBody,
    responses((status = 201, body = JobLine), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn add(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    ApiJson(body): ApiJson<JobBody>,
) -> Result<(StatusCode, Json<JobLine>), Problem> {
    if let Some(agent) = &body.agent {
        known_agent(&state, agent).await?;
    }
    let wish = JobWish {
        agent: body.agent,
        name: body.name,
        cron: body.cron,
        every: body.every,
        at: body.at,
        time_zone: body.time_zone,
        prompt: body.task,
        place: body.place.as_deref().map(place).transpose()?,
        in_conversation: body.in_conversation,
        quiet: body.quiet,
        once_if_missed: body.once_if_missed,
    };
    let request = Request::Job(JobRequest::Add(Box::new(wish)));
    let reply = reply(ask(&state, &caller, request).await?)?;
    let line = line(&state, &changed(reply)?).await?;
    Ok((StatusCode::CREATED, Json(line)))
}

/// A job with its latest runs.
#[utoipa::path(get, path = "/jobs/{id}", tag = "jobs", params(("id" = i64, Path)),
    responses((status = 200, body = JobDetails), (status = 404, body = Problem, content_type = "application/problem+json")))]
async fn show(
    Reads(caller): Reads,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<i64>,
) -> Result<Json<JobDetails>, Problem> {
    let request = JobRequest::Show { which: number(id) };
    let JobReply::Shown { job, runs } = carried_out(&state, &caller, request).await? else {
        return Err(Problem::broken());
    };
    let names = names(&state).await?;
    Ok(Json(JobDetails::of(&job, &runs, &names)))
}

/// Removes a job. 409 for one of config.toml, which is removed there.
#[utoipa::path(delete, path = "/jobs/{id}", tag = "jobs", params(("id" = i64, Path)),
    responses((status = 200, body = JobLine), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn remove(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<i64>,
) -> Result<Json<JobLine>, Problem> {
    change(&state, &caller, JobRequest::Remove { which: number(id) }).await
}

/// Runs a job now, whatever its schedule says.
#[utoipa::path(post, path = "/jobs/{id}/run", tag = "jobs", params(("id" = i64, Path)),
    responses((status = 200, body = JobLine), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn run(
    Operates(caller): Operates,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<i64>,
) -> Result<Json<JobLine>, Problem> {
    change(&state, &caller, JobRequest::Run { which: number(id) }).await
}

/// Has a job rest.
#[utoipa::path(post, path = "/jobs/{id}/pause", tag = "jobs", params(("id" = i64, Path)),
    responses((status = 200, body = JobLine), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn pause(
    Operates(caller): Operates,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<i64>,
) -> Result<Json<JobLine>, Problem> {
    change(&state, &caller, JobRequest::Pause { which: number(id) }).await
}

/// Has a job go on with its next time.
#[utoipa::path(post, path = "/jobs/{id}/resume", tag = "jobs", params(("id" = i64, Path)),
    responses((status = 200, body = JobLine), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn resume(
    Operates(caller): Operates,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<i64>,
) -> Result<Json<JobLine>, Problem> {
    change(&state, &caller, JobRequest::Resume { which: number(id) }).await
}

/// A number that is not taken for a name.
fn number(id: i64) -> String {
    format!("#{id}")
}

async fn change(
    state: &AdminState,
    caller: &Caller,
    request: JobRequest,
) -> Result<Json<JobLine>, Problem> {
    let job = changed(carried_out(state, caller, request).await?)?;
    line(state, &job).await.map(Json)
}

async fn carried_out(
    state: &AdminState,
    caller: &Caller,
    request: JobRequest,
) -> Result<JobReply, Problem> {
    reply(ask_about(state, caller, Request::Job(request)).await?)
}

fn reply(reply: Reply) -> Result<JobReply, Problem> {
    match reply {
        Reply::Job(reply) => Ok(*reply),
        _ => Err(Problem::broken()),
    }
}

fn changed(reply: JobReply) -> Result<JobView, Problem> {
    match reply {
        JobReply::Began(job)
        | JobReply::Paused(job)
        | JobReply::Resumed(job)
        | JobReply::Removed(job)
        | JobReply::Added(job) => Ok(job),
        JobReply::List(_) | JobReply::Shown { .. } => Err(Problem::broken()),
    }
}

async fn line(state: &AdminState, job: &JobView) -> Result<JobLine, Problem> {
    let names = names(state).await?;
    Ok(JobLine::of(job, &names))
}

async fn names(state: &AdminState) -> Result<Arc<Names>, Problem> {
    Ok(state.operations.house().await?.names)
}
