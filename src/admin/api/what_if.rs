//! `/routes/what-if`: a message walked through the rules, and real messages replayed under edited
//! rules before they are saved; `/routes/tests`: cases that are kept.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::common::{Page, before, limit, place, word};
use super::config::{base, not_applied};
use super::extract::{ApiJson, ApiQuery};
use crate::access::Role;
use crate::admin::auth::{Administers, Operates, Reads};
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::commands::{self, tell_operator};
use crate::config::ListedProblem;
use crate::domain::{DiscordId, Origin};
use crate::home::route_tests::addressed;
use crate::operations::config_file::NotApplied;
use crate::operations::house::person_of;
use crate::operations::route_cases::{self, Kept, Wish};
use crate::operations::what_if::{self, Case, Message, Replay, Rules, Walk};
use crate::routing::Visit;

/// The longest text of a config that is tried.
const MOST_BYTES: usize = 512 * 1024;

pub(super) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(messages))
        .routes(routes!(try_out))
        .routes(routes!(keep))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct MessagesQuery {
    /// 1 to 200; 50 without it.
    limit: Option<u32>,
    /// The `next` of another answer.
    cursor: Option<String>,
}

/// The last messages that people wrote, the newest first, each with its answer under the rules of
/// now. Commands, edits and reactions are not among them.
#[utoipa::path(get, path = "/routes/messages", tag = "routing", params(MessagesQuery),
    responses((status = 200, body = Page<Message>)))]
async fn messages(
    _: Reads,
    State(state): State<AdminState>,
    ApiQuery(query): ApiQuery<MessagesQuery>,
) -> Result<Json<Page<Message>>, Problem> {
    let limit = limit(query.limit)? as usize;
    let before = before(query.cursor.as_deref())?;
    let rules = Rules::running(&state.operations).await?;
    let found = what_if::recent(&state.operations, &rules.house, before, limit + 1);
    let mut found = found.await?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    Ok(Json(Page::new(found, has_more, |message| {
        message.id.to_string()
    })))
}

/// A made-up message.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CaseBody {
    /// Key of the place; nobody needs to have used it.
    place: String,
    /// The writer, by id or name. Without one, the place's only person, else nobody in particular.
    person: Option<String>,
    /// guest, member, admin or owner, instead of the person's own.
    role: Option<String>,
    /// The words. A nickname of the bot is a mention, and a command is answered by Parlor itself.
    text: Option<String>,
    /// Whether the message mentions the bot; true without it.
    mention: Option<bool>,
    /// Whether it answers a message of the bot.
    reply: Option<bool>,
    /// The name of the topic or thread.
    topic: Option<String>,
    /// The id of the Discord server.
    server: Option<String>,
    /// The id of the Discord category.
    category: Option<String>,
    /// Ids of roles that the writer has on the server.
    #[serde(default)]
    roles: Vec<String>,
    /// Tags of a forum post.
    #[serde(default)]
    tags: Vec<String>,
}

/// What to try: one message at most, and rules.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WhatIfBody {
    /// An edited config.toml, of at most 512 KB. Without one, the rules that count now.
    text: Option<String>,
    /// A made-up message.
    case: Option<CaseBody>,
    /// A real message, by the `id` that `/routes/messages` tells.
    message: Option<i64>,
}

/// A walk with a sentence about it.
#[derive(Debug, Serialize, ToSchema)]
struct Told {
    /// Who answers, or why nobody does: one or two sentences.
    told: String,
    #[serde(flatten)]
    walk: Walk,
}

/// What would happen.
#[derive(Debug, Serialize, ToSchema)]
struct WhatIf {
    /// No problem of the text is an error.
    ok: bool,
    #[schema(value_type = Vec<Object>)]
    problems: Vec<ListedProblem>,
    /// The way of the message; null without one, and where the text has problems.
    walk: Option<Told>,
    /// The last 500 messages under the edited rules; null without a text, and where it has problems.
    replay: Option<Replay>,
}

/// Walks a message through the rules, and replays the last 500 real messages under edited rules.
/// Nothing is changed.
#[utoipa::path(post, path = "/routes/what-if", tag = "routing", request_body = WhatIfBody,
    responses((status = 200, body = WhatIf), (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn try_out(
    _: Operates,
    State(state): State<AdminState>,
    ApiJson(body): ApiJson<WhatIfBody>,
) -> Result<Json<WhatIf>, Problem> {
    let operations = &state.operations;
    let running = Rules::running(operations).await?;
    let (rules, problems) = match bounded(body.text)? {
        None => (None, Vec::new()),
        Some(text) => match running.edited(operations, text).await? {
            (Some(rules), checked) => (Some(rules), checked.problems),
            (None, checked) => {
                return Ok(Json(WhatIf {
                    ok: false,
                    problems: checked.problems,
                    walk: None,
                    replay: None,
                }));
            }
        },
    };
    let meant = rules.as_ref().unwrap_or(&running);
    let walk = match case(&state, meant, body.case, body.message).await? {
        Some(case) => Some(walked(&state, meant, &case).await?),
        None => None,
    };
    let replay = match &rules {
        Some(then) => Some(what_if::replay(operations, &running, then).await?),
        None => None,
    };
    Ok(Json(WhatIf {
        ok: true,
        problems,
        walk,
        replay,
    }))
}

async fn walked(state: &AdminState, rules: &Rules, case: &Case) -> Result<Told, Problem> {
    let walked = what_if::walk(&state.operations, rules, case).await?;
    let config = rules.config();
    let visit = Visit {
        access: &config.access,
        origin: &walked.origin,
        standing: &walked.standing,
    };
    let told = match walked.walk.is_command {
        true => super::texts::COMMAND_WALKS.to_owned(),
        false => tell_operator(
            (config, &rules.house.table),
            &walked.answer,
            visit,
            &rules.house.names,
        ),
    };
    Ok(Told {
        told,
        walk: walked.walk,
    })
}

fn bounded(text: Option<String>) -> Result<Option<String>, Problem> {
    match text {
        Some(text) if text.len() > MOST_BYTES => {
            Err(Problem::unread(StatusCode::PAYLOAD_TOO_LARGE))
        }
        text => Ok(text),
    }
}

/// The message of a call, if it has one.
async fn case(
    state: &AdminState,
    rules: &Rules,
    made_up: Option<CaseBody>,
    real: Option<i64>,
) -> Result<Option<Case>, Problem> {
    match (made_up, real) {
        (Some(_), Some(_)) => Err(Problem::bad_request("name a case or a message, not both")),
        (Some(body), None) => made_up_case(rules, body).map(Some),
        (None, Some(id)) => {
            let found = what_if::message(&state.operations, id).await?;
            let missing = || Problem::not_found(format!("there is no message {id}"));
            found.ok_or_else(missing).map(Some)
        }
        (None, None) => Ok(None),
    }
}

fn made_up_case(rules: &Rules, body: CaseBody) -> Result<Case, Problem> {
    let key = place(&body.place)?;
    let role = match body.role.as_deref() {
        Some(text) => Some(word::<Role>("role", text)?),
        None => None,
    };
    let person = match body.person.as_deref() {
        Some(word) => {
            let found = rules.house.names.find_person(word);
            found.map_err(|error| Problem::bad_request(error.to_string()))?
        }
        None => person_of(&key),
    };
    let id = |name: &str, text: &str| -> Result<DiscordId, Problem> {
        let told = |_| Problem::bad_request(format!("{name} is an id of Discord: a number"));
        text.parse().map(DiscordId).map_err(told)
    };
    let optional = |name: &str, text: Option<&str>| text.map(|text| id(name, text)).transpose();
    let roles = body.roles.iter().map(|text| id("roles", text));
    let text = body.text.unwrap_or_default();
    let said = (body.mention.unwrap_or(true), body.reply.unwrap_or(false));
    let parsed = commands::parse(&text);
    Ok(Case {
        addressed: addressed(rules.config(), &key, &text, said),
        role,
        is_command: Arc::new(move |role| parsed.is_command_of(role)),
        text,
        origin: Origin {
            roles: roles.collect::<Result<_, _>>()?,
            server: optional("server", body.server.as_deref())?,
            category: optional("category", body.category.as_deref())?,
            name: body.topic,
            tags: body.tags,
            ..Origin::new(key, person)
        },
    })
}

/// A case to be kept: made up or real.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct KeepBody {
    /// A made-up message.
    case: Option<CaseBody>,
    /// A real message, by the `id` that `/routes/messages` tells.
    message: Option<i64>,
    /// What the test is called. Without it, the agent and the place.
    name: Option<String>,
    /// The expected agent, or `nobody`. Without it, as the rules say.
    agent: Option<String>,
    /// An edited config.toml to which the case is added; nothing is saved then.
    text: Option<String>,
}

/// Keeps a case as `[[route_tests]]` in config.toml, and has the gateway read it. With a `text`, the
/// case is added to that text, which is returned and not saved.
#[utoipa::path(post, path = "/routes/tests", tag = "routing", request_body = KeepBody,
    params(("If-Match" = Option<String>, Header, description = "The ETag of config.toml; required without a `text`")),
    responses((status = 200, body = Kept, headers(("ETag" = String))), (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json"), (status = 412, body = Problem, content_type = "application/problem+json"),
        (status = 428, body = Problem, content_type = "application/problem+json")))]
async fn keep(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    headers: HeaderMap,
    ApiJson(body): ApiJson<KeepBody>,
) -> Result<Response, Problem> {
    let operations = &state.operations;
    let running = Rules::running(operations).await?;
    let case = case(&state, &running, body.case, body.message).await?;
    let case = case.ok_or_else(|| Problem::bad_request("name a case or a message to keep"))?;
    let wish = Wish {
        case,
        name: body.name,
        agent: body.agent,
    };
    let kept = match bounded(body.text)? {
        Some(text) => {
            let added = route_cases::add(operations, text, &wish).await?;
            added.map_err(|checked| not_applied(NotApplied::Problems(checked)))?
        }
        None => {
            let kept = route_cases::keep(operations, &caller.who, base(&headers)?, &wish).await;
            kept.map_err(not_applied)?
        }
    };
    let tag = [(header::ETAG, format!("\"{}\"", kept.config.hash))];
    Ok((tag, Json(kept)).into_response())
}
