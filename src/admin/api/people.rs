//! `/people` and `/pairing`: everybody known, their roles, and those who wait to be let in.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use rusqlite::{Connection, Transaction};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::common::{Page, known_agent, limit, word};
use super::extract::{ApiJson, ApiPath, ApiQuery};
use crate::access::Role;
use crate::access::people::Decision;
use crate::admin::auth::{Administers, Caller, Operates, Reads};
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::clock::now_ms;
use crate::operations::known_people::{self, Known, Looking, Source, Wanted};
use crate::operations::named::{Moment, Named};
use crate::operations::pairing::{self, Guestbook};
use crate::operations::people::{self, Wish};

pub(super) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(list, add))
        .routes(routes!(show, remove))
        .routes(routes!(set_role))
        .routes(routes!(guests))
        .routes(routes!(decide))
        .routes(routes!(unpair))
}

/// A person.
#[derive(Debug, Serialize, ToSchema)]
struct PersonLine {
    /// The id that stands for the person.
    id: String,
    /// The name in config.toml, or one that an owner has given.
    name: Option<String>,
    /// The name on the platform, which can be anybody's.
    called: Option<String>,
    ids: Vec<String>,
    role: String,
    /// owners, config, granted, paired or seen.
    role_from: String,
    /// Other roles with single agents.
    agents: Vec<AgentRole>,
    last_seen_at: Option<Moment>,
    tokens_today: u64,
    /// Millionths of the currency.
    cost_today_micros: u64,
    /// Tokens of today that no price is known for.
    unpriced_tokens_today: u64,
}

#[derive(Debug, Serialize, ToSchema)]
struct AgentRole {
    agent: String,
    role: String,
}

impl PersonLine {
    fn of(known: &Known) -> Self {
        let agents = known.agents.iter().map(|(agent, role, _)| AgentRole {
            agent: agent.to_string(),
            role: role.to_string(),
        });
        PersonLine {
            id: known.main().to_string(),
            name: known.name.clone(),
            called: known.called.clone(),
            ids: known.ids.iter().map(|(id, _)| id.to_string()).collect(),
            role: known.role.to_string(),
            role_from: source(&known.role_from).to_owned(),
            agents: agents.collect(),
            last_seen_at: known.last_seen.map(Moment),
            tokens_today: known.spent.tokens,
            cost_today_micros: known.spent.cost.0,
            unpriced_tokens_today: known.unpriced_tokens,
        }
    }
}

fn source(source: &Source) -> &'static str {
    match source {
        Source::Owners(_) => "owners",
        Source::File(_) => "config",
        Source::Granted(_) => "granted",
        Source::Paired(_) => "paired",
        Source::Nowhere => "seen",
    }
}

/// Which people.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Words in a name or an id.
    q: Option<String>,
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// The `next` of the part before.
    cursor: Option<String>,
}

/// Everybody known.
#[utoipa::path(get, path = "/people", tag = "people", params(ListQuery), responses((status = 200, body = Page<PersonLine>)))]
async fn list(
    _: Reads,
    State(state): State<AdminState>,
    ApiQuery(query): ApiQuery<ListQuery>,
) -> Result<Json<Page<PersonLine>>, Problem> {
    let config = state.operations.snapshot().await?.config.clone();
    let behind = query.cursor.as_deref();
    let wanted = Wanted {
        words: query.q.unwrap_or_default(),
        limit: limit(query.limit)? as usize,
        behind: behind.map(|id| word("person's id", id)).transpose()?,
    };
    let read = move |connection: &Connection| {
        known_people::page(connection, &config.access, &wanted, now_ms())
    };
    let known_people::Page { people, has_more } = state.operations.db().read(read).await?;
    let lines = people.iter().map(PersonLine::of).collect();
    Ok(Json(Page::new(lines, has_more, |line: &PersonLine| {
        line.id.clone()
    })))
}

/// One person, by id or name.
#[utoipa::path(get, path = "/people/{who}", tag = "people",
    params(("who" = String, Path, description = "Id such as telegram:12345678, or a name")),
    responses((status = 200, body = PersonLine), (status = 404, body = Problem, content_type = "application/problem+json")))]
async fn show(
    _: Reads,
    State(state): State<AdminState>,
    ApiPath(who): ApiPath<String>,
) -> Result<Json<PersonLine>, Problem> {
    let config = state.operations.snapshot().await?.config.clone();
    let read = move |connection: &Connection| {
        known_people::find(connection, &config.access, &who, Looking::ToShow, now_ms())
    };
    let known = state.operations.db().read(read).await?;
    let known = known.map_err(|error| Problem::not_found(error.to_string()))?;
    Ok(Json(PersonLine::of(&known)))
}

/// A new person.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PersonBody {
    name: String,
    /// Such as telegram:12345678.
    ids: Vec<String>,
    /// guest, member, admin or owner.
    role: Option<String>,
}

/// Adds a person with a name and ids.
#[utoipa::path(post, path = "/people", tag = "people", request_body = PersonBody,
    responses((status = 201, body = PersonLine), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn add(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    ApiJson(body): ApiJson<PersonBody>,
) -> Result<(StatusCode, Json<PersonLine>), Problem> {
    let ids = body.ids.iter().map(|id| word("person's id", id));
    let wish = Wish::Add {
        name: body.name,
        ids: ids.collect::<Result<_, _>>()?,
        role: Some(role(body.role.as_deref().unwrap_or("member"))?),
        agents: Vec::new(),
    };
    let added = change(&state, &caller, wish).await?;
    Ok((StatusCode::CREATED, Json(added)))
}

/// A role.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RoleBody {
    /// guest, member, admin or owner.
    role: String,
    /// With this agent alone.
    agent: Option<String>,
}

fn role(text: &str) -> Result<Role, Problem> {
    let read = text.parse::<Role>();
    read.map_err(|_| Problem::bad_request("role is guest, member, admin or owner"))
}

/// Gives a person another role, with all agents or with one.
#[utoipa::path(put, path = "/people/{who}/role", tag = "people", request_body = RoleBody,
    params(("who" = String, Path, description = "Id, or the name that an owner has given")),
    responses((status = 200, body = PersonLine), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn set_role(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    ApiPath(who): ApiPath<String>,
    ApiJson(body): ApiJson<RoleBody>,
) -> Result<Json<PersonLine>, Problem> {
    if let Some(agent) = &body.agent {
        known_agent(&state, agent).await?;
    }
    let wish = Wish::Role {
        who,
        role: role(&body.role)?,
        agent: body.agent,
    };
    change(&state, &caller, wish).await.map(Json)
}

/// Takes back everything that was granted to a person.
#[utoipa::path(delete, path = "/people/{who}", tag = "people",
    params(("who" = String, Path, description = "Id, or the name that an owner has given")),
    responses((status = 200, body = PersonLine), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn remove(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    ApiPath(who): ApiPath<String>,
) -> Result<Json<PersonLine>, Problem> {
    change(&state, &caller, Wish::Remove { who })
        .await
        .map(Json)
}

async fn change(state: &AdminState, caller: &Caller, wish: Wish) -> Result<PersonLine, Problem> {
    let config = state.operations.snapshot().await?.config.clone();
    let by = caller.who.clone();
    let write = move |tx: &Transaction<'_>| {
        let (access, now) = (&config.access, now_ms());
        let plan = match people::plan(tx, &config, &wish, now)? {
            Ok(plan) => plan,
            Err(error) => return Ok(Err(error)),
        };
        plan.write(tx, &by, now)?;
        let main = plan.person().to_string();
        known_people::find(tx, access, &main, Looking::ToChange, now)
    };
    let known = state.operations.db().write(write).await?;
    let known = known.map_err(|error| Problem::conflict(error.to_string()))?;
    Ok(PersonLine::of(&known))
}

/// Who waits with a code, and who was let in with one.
#[utoipa::path(get, path = "/pairing", tag = "people", responses((status = 200, body = Guestbook)))]
async fn guests(_: Operates, State(state): State<AdminState>) -> Result<Json<Guestbook>, Problem> {
    Ok(Json(pairing::guestbook(&state.operations).await?))
}

/// The answer to a code.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DecisionBody {
    /// false turns the person away.
    let_in: bool,
}

/// Lets the person with this code in, or turns them away.
#[utoipa::path(post, path = "/pairing/{code}", tag = "people", request_body = DecisionBody,
    params(("code" = String, Path, description = "The code that the bot told the person")),
    responses((status = 200, body = Named), (status = 404, body = Problem, content_type = "application/problem+json")))]
async fn decide(
    Operates(caller): Operates,
    State(state): State<AdminState>,
    ApiPath(code): ApiPath<String>,
    ApiJson(body): ApiJson<DecisionBody>,
) -> Result<Json<Named>, Problem> {
    let decision = match body.let_in {
        true => Decision::LetIn,
        false => Decision::TurnedAway,
    };
    let decided = pairing::decide(&state.operations, &caller.who, code, decision).await?;
    let closed = || {
        Problem::not_found(
            "no such code is open. A code is valid for one hour; the person gets a new one by writing to the bot again",
        )
    };
    decided.map(Json).ok_or_else(closed)
}

/// Makes somebody who was let in with a code a guest again.
#[utoipa::path(delete, path = "/pairing/people/{id}", tag = "people",
    params(("id" = String, Path, description = "Id such as telegram:12345678")),
    responses((status = 200, body = Named), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn unpair(
    Operates(caller): Operates,
    State(state): State<AdminState>,
    ApiPath(id): ApiPath<String>,
) -> Result<Json<Named>, Problem> {
    let person = word("person's id", &id)?;
    Ok(Json(
        pairing::revoke(&state.operations, &caller.who, person).await?,
    ))
}
