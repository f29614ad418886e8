//! `/routes`: which agent has which place and why, and bindings.

use axum::Json;
use axum::extract::State;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::common::{Page, house, known_agent, limit, place, word};
use super::extract::{ApiJson, ApiQuery};
use crate::access::{Role, Standing, people};
use crate::admin::auth::{Administers, Reads};
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::answering::{Question, who_answers};
use crate::domain::Origin;
use crate::operations::bindings::{self, Binding};
use crate::operations::house::person_of;
use crate::operations::named::Named;
use crate::operations::place_tree::{Branch, Wanted};
use crate::routing::{self, Visit, names, pins};

pub(super) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(tree))
        .routes(routes!(explain))
        .routes(routes!(bind, unbind))
}

/// Which places.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct TreeQuery {
    /// telegram, discord, local or web.
    platform: Option<String>,
    /// Words in the name or the key of a place, or of a place inside.
    q: Option<String>,
    /// Groups, channels, private chats and rooms, each with everything inside.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// The `next` of the part before.
    cursor: Option<String>,
}

/// Places as a tree, those used last first, each with its agent and the rule behind it.
#[utoipa::path(get, path = "/routes/tree", tag = "routing", params(TreeQuery),
    responses((status = 200, body = Page<Branch>)))]
async fn tree(
    _: Reads,
    State(state): State<AdminState>,
    ApiQuery(query): ApiQuery<TreeQuery>,
) -> Result<Json<Page<Branch>>, Problem> {
    let platform = query.platform.as_deref();
    let behind = query.cursor.as_deref();
    let wanted = Wanted {
        platform: platform.map(|name| word("platform", name)).transpose()?,
        words: query.q.unwrap_or_default(),
        limit: limit(query.limit)? as usize,
        behind: behind.map(|next| word("cursor", next)).transpose()?,
    };
    let (items, next) = state.operations.part_of_place_tree(wanted).await?;
    let next = next.map(|position| position.to_string());
    Ok(Json(Page { items, next }))
}

/// Who asks where.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ExplainQuery {
    /// Key of the place; nobody needs to have used it.
    place: String,
    /// The writer, by id or name. Without one, the place's only person, else nobody in particular.
    person: Option<String>,
    /// guest, member, admin or owner, instead of the person's own.
    role: Option<String>,
    /// The topic's or thread's name, for rules that ask for one.
    name: Option<String>,
}

/// Who answers, and every rule that was tried.
#[derive(Debug, Serialize, ToSchema)]
struct Explained {
    place: Named,
    person: Option<Named>,
    role: String,
    /// The agent of the place.
    agent: Named,
    /// Whether it answers this person there.
    answers: bool,
    /// Why it does not.
    silence: Option<String>,
    /// The bot answers in this place at all.
    open: bool,
    /// A message must mention the bot or reply to it.
    needs_mention: bool,
    /// The deciding rule, and the steps from the strongest to the weakest.
    #[schema(value_type = Object)]
    explanation: Value,
}

/// Explains who answers a person in a place, as `parlor route explain` does.
#[utoipa::path(get, path = "/routes/explain", tag = "routing", params(ExplainQuery),
    responses((status = 200, body = Explained)))]
async fn explain(
    _: Reads,
    State(state): State<AdminState>,
    ApiQuery(query): ApiQuery<ExplainQuery>,
) -> Result<Json<Explained>, Problem> {
    let (key, house) = (place(&query.place)?, house(&state).await?);
    let role = query.role.as_deref().map(|role| {
        let parsed = role.parse::<Role>();
        parsed.map_err(|_| Problem::bad_request("role is guest, member, admin or owner"))
    });
    let role = role.transpose()?;
    let person = match query.person.as_deref() {
        Some(word) => {
            let found = house.names.find_person(word);
            found.map_err(|error| Problem::bad_request(error.to_string()))?
        }
        None => person_of(&key),
    };
    let mut origin = Origin::new(key, person);
    origin.name = query.name;
    house.follow(&mut origin);
    let (access, asked) = (house.config.clone(), origin.clone());
    let read = move |connection: &Connection| {
        Ok((
            people::standing(connection, &access.access, &asked.person)?,
            pins::from_chat(connection, &asked.key)?,
            names::load(connection, &asked.key)?,
        ))
    };
    let (standing, from_chat, name) = state.operations.db().read(read).await?;
    origin.name = origin.name.or(name);
    let standing = role.map_or(standing, Standing::just);
    let visit = Visit {
        access: &house.config.access,
        origin: &origin,
        standing: &standing,
    };
    let answer = who_answers(Question::said_to_the_bot(&house.table, visit, from_chat));
    let pin = answer.resolved.pin.as_ref();
    let mut explanation = routing::explain(&house.table, pin, &origin);
    explanation.route = answer.resolved.route.clone();
    let is_somebody = !origin.person.is_nobody();
    Ok(Json(Explained {
        place: house.names.place(&origin.key),
        person: is_somebody.then(|| house.names.person(&origin.person)),
        role: standing.with(answer.agent()).as_str().to_owned(),
        agent: house.agent(answer.agent()),
        answers: answer.silence.is_none(),
        silence: answer
            .silence
            .as_ref()
            .map(|silence| silence.as_str().to_owned()),
        open: answer.is_open,
        needs_mention: answer.needs_mention,
        explanation: serde_json::to_value(&explanation).map_err(|_| Problem::broken())?,
    }))
}

/// A place and its agent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct BindBody {
    place: String,
    agent: String,
}

/// Writes a binding of exactly this place into config.toml.
#[utoipa::path(put, path = "/routes/bindings", tag = "routing", request_body = BindBody,
    responses((status = 200, body = Binding), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn bind(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    ApiJson(body): ApiJson<BindBody>,
) -> Result<Json<Binding>, Problem> {
    let key = place(&body.place)?;
    known_agent(&state, &body.agent).await?;
    let bound = bindings::bind(&state.operations, &caller.who, &key, &body.agent).await?;
    Ok(Json(bound))
}

/// Which binding.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct UnbindQuery {
    /// Key of the place.
    place: String,
}

/// Takes the binding of exactly this place out of config.toml.
#[utoipa::path(delete, path = "/routes/bindings", tag = "routing", params(UnbindQuery),
    responses((status = 200, body = Binding), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn unbind(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    ApiQuery(query): ApiQuery<UnbindQuery>,
) -> Result<Json<Binding>, Problem> {
    let key = place(&query.place)?;
    let taken = bindings::unbind(&state.operations, &caller.who, &key).await?;
    let missing = || Problem::not_found(format!("config.toml has no binding of exactly {key}"));
    taken.map(Json).ok_or_else(missing)
}
