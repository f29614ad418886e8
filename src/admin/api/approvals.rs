//! `/approvals`: calls of tools that wait for a person's yes or no, and the yes or no.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::common::{Page, before, house, limit};
use super::extract::{ApiPath, ApiQuery};
use crate::admin::auth::{Caller, Operates, Reads};
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::domain::Role;
use crate::operations::approvals::{ApprovalLine, Decider, Shown, Undecided};
use crate::records::approvals::{self, State as Stage, Verdict};
use crate::records::http_keys::Scope;

pub(super) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show))
        .routes(routes!(allow))
        .routes(routes!(refuse))
}

/// Which approvals.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Only those that stand so.
    #[param(inline)]
    state: Option<Stage>,
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// The `next` of the part before.
    cursor: Option<String>,
}

/// Approvals, the newest first.
#[utoipa::path(get, path = "/approvals", tag = "approvals", params(ListQuery),
    responses((status = 200, body = Page<ApprovalLine>)))]
async fn list(
    _: Reads,
    State(state): State<AdminState>,
    ApiQuery(query): ApiQuery<ListQuery>,
) -> Result<Json<Page<ApprovalLine>>, Problem> {
    let limit = limit(query.limit)?;
    let page = approvals::Page {
        state: query.state,
        before: Some(before(query.cursor.as_deref())?),
        // One more tells whether the list goes on.
        most: limit + 1,
    };
    let mut shown = state.operations.approvals(page).await?;
    let has_more = shown.len() > limit as usize;
    shown.truncate(limit as usize);
    let names = house(&state).await?.names;
    let lines = shown.iter().map(|shown| ApprovalLine::of(shown, &names));
    Ok(Json(Page::new(lines.collect(), has_more, |line| {
        line.id.to_string()
    })))
}

/// An approval.
#[utoipa::path(get, path = "/approvals/{id}", tag = "approvals",
    params(("id" = i64, Path, description = "Number of the approval")),
    responses((status = 200, body = ApprovalLine), (status = 404, body = Problem, content_type = "application/problem+json")))]
async fn show(
    _: Reads,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<i64>,
) -> Result<Json<ApprovalLine>, Problem> {
    let found = state.operations.approval(id).await?;
    let shown = found.ok_or_else(|| unknown(id))?;
    line(&state, &shown).await
}

/// Allows the call once, with exactly these arguments. The scope operate decides like an admin, the
/// scope admin like an owner.
#[utoipa::path(post, path = "/approvals/{id}/allow", tag = "approvals",
    params(("id" = i64, Path, description = "Number of the approval")),
    responses((status = 200, body = ApprovalLine),
        (status = 403, description = "It takes more rights", body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "It waits no longer", body = Problem, content_type = "application/problem+json")))]
async fn allow(
    Operates(caller): Operates,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<i64>,
) -> Result<Json<ApprovalLine>, Problem> {
    let shown = decide(&state, &caller, id, Verdict::Allow).await?;
    line(&state, &shown).await
}

/// Refuses the call: it is not run, and the turn goes on. Who may is as for allowing.
#[utoipa::path(post, path = "/approvals/{id}/refuse", tag = "approvals",
    params(("id" = i64, Path, description = "Number of the approval")),
    responses((status = 200, body = ApprovalLine),
        (status = 403, description = "It takes more rights", body = Problem, content_type = "application/problem+json"),
        (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "It waits no longer", body = Problem, content_type = "application/problem+json")))]
async fn refuse(
    Operates(caller): Operates,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<i64>,
) -> Result<Json<ApprovalLine>, Problem> {
    let shown = decide(&state, &caller, id, Verdict::Refuse).await?;
    line(&state, &shown).await
}

/// The same for the page.
pub(in crate::admin) async fn decide(
    state: &AdminState,
    caller: &Caller,
    id: i64,
    verdict: Verdict,
) -> Result<Shown, Problem> {
    let role = match caller.scope {
        Scope::Admin => Role::Owner,
        Scope::Operate => Role::Admin,
        Scope::Read => Role::Guest,
    };
    let decider = Decider::WithRole(role);
    let decided = state
        .operations
        .decide_approval(&caller.who, decider, id, verdict)
        .await;
    let approval = decided.map_err(|undecided| match undecided {
        Undecided::Unknown(id) => unknown(id),
        Undecided::Before(_) => Problem::conflict(undecided.to_string()),
        Undecided::Beyond(_) => Problem::forbidden(undecided.to_string()),
        Undecided::Store(error) => error.into(),
        Undecided::Failed(refusal) => refusal.into(),
    })?;
    let shown = state.operations.shown(vec![approval]).await?.pop();
    shown.ok_or_else(|| unknown(id))
}

async fn line(state: &AdminState, shown: &Shown) -> Result<Json<ApprovalLine>, Problem> {
    let names = house(state).await?.names;
    Ok(Json(ApprovalLine::of(shown, &names)))
}

fn unknown(id: i64) -> Problem {
    Problem::not_found(format!("there is no approval {id}"))
}
