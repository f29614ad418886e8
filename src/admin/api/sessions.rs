//! `/sessions`: places with their conversations, and `/queue`: what is under way.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::agents::edited;
use super::common::{
    Page, Tagged, ask, house, known_agent, known_place, limit, no_agent, place, word,
};
use super::extract::{ApiJson, ApiPath, ApiQuery};
use crate::admin::auth::{Administers, Operates, Reads};
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::clock::now_ms;
use crate::domain::Platform;
use crate::operations::agent_view::AgentDetails;
use crate::operations::named::{Moment, Named};
use crate::operations::session_changes::{Forked, MovedTo, Renewed};
use crate::operations::session_list::{self, Listed, Wanted};
use crate::operations::session_state::{self, SessionState};
use crate::operations::transcripts::{self, Detail, Hit, Line};
use crate::operations::{AgentEdit, Ended, ForkOn, Reply, Request};
use crate::records::transcript::Extent;

pub(super) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(search))
        .routes(routes!(show))
        .routes(routes!(messages))
        .routes(routes!(switch, give_back))
        .routes(routes!(identity, set_identity))
        .routes(routes!(new))
        .routes(routes!(fork))
        .routes(routes!(move_to))
        .routes(routes!(stop))
        .routes(routes!(queue, clear))
}

/// Which sessions.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Only places of this agent.
    agent: Option<String>,
    /// telegram, discord or local.
    platform: Option<String>,
    /// Only places where this person talks: an id or a name.
    person: Option<String>,
    /// Only places used within so many seconds.
    since_seconds: Option<u32>,
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// The `next` of the part before.
    cursor: Option<String>,
}

/// Sessions, the latest first.
#[utoipa::path(get, path = "/sessions", tag = "sessions", params(ListQuery),
    responses((status = 200, body = Page<Listed>), (status = 404, body = Problem, content_type = "application/problem+json")))]
async fn list(
    _: Reads,
    State(state): State<AdminState>,
    ApiQuery(query): ApiQuery<ListQuery>,
) -> Result<Json<Page<Listed>>, Problem> {
    let house = house(&state).await?;
    let snapshot = state.operations.snapshot().await?;
    let registry = &snapshot.registry;
    let agent = query.agent.as_deref().map(|word| {
        let found = registry.find(word).map(|agent| agent.id.clone());
        found.ok_or_else(|| no_agent(registry, word))
    });
    let person = query.person.as_deref().map(|word| {
        let found = house.names.find_person(word);
        found.map_err(|error| Problem::bad_request(error.to_string()))
    });
    let platform = query.platform.as_deref();
    let since = query.since_seconds.map(i64::from);
    let wanted = Wanted {
        agent: agent.transpose()?,
        platform: platform
            .map(|text| word::<Platform>("platform", text))
            .transpose()?,
        person: person.transpose()?,
        since: since.map(|seconds| now_ms().saturating_sub(seconds * 1000)),
        limit: limit(query.limit)? as usize,
        behind: query.cursor.as_deref().map(place).transpose()?,
    };
    let read = move |connection: &Connection| session_list::list(connection, &house, &wanted);
    let page = state.operations.db().read(read).await?;
    let page = Page::new(page.sessions, page.has_more, |line| line.place.id.clone());
    Ok(Json(page))
}

/// Words of conversations.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct SearchQuery {
    /// Words that are all in a message.
    q: String,
    /// Only what was said by and to this agent.
    agent: Option<String>,
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

/// Messages with all of the words, in all conversations, the newest first.
#[utoipa::path(get, path = "/sessions/search", tag = "sessions", params(SearchQuery),
    responses((status = 200, body = Page<Hit>), (status = 404, body = Problem, content_type = "application/problem+json")))]
async fn search(
    _: Reads,
    State(state): State<AdminState>,
    ApiQuery(query): ApiQuery<SearchQuery>,
) -> Result<Json<Page<Hit>>, Problem> {
    let limit = limit(query.limit)?;
    let words: Vec<String> = query.q.split_whitespace().map(str::to_owned).collect();
    if words.is_empty() {
        return Err(Problem::bad_request("q has no words"));
    }
    let snapshot = state.operations.snapshot().await?;
    let registry = &snapshot.registry;
    let agent = query.agent.as_deref().map(|word| {
        let found = registry.find(word).map(|agent| agent.uid);
        found.ok_or_else(|| no_agent(registry, word))
    });
    let (agent, house) = (agent.transpose()?, house(&state).await?);
    let read = move |connection: &Connection| {
        transcripts::search(connection, &house, &words, agent, limit)
    };
    let hits = state.operations.db().read(read).await?;
    Ok(Json(Page::whole(hits)))
}

/// A place: who answers there and why, and what was set.
#[utoipa::path(get, path = "/sessions/{key}", tag = "sessions",
    params(("key" = String, Path, description = "Key of the place, as /whoami prints it")),
    responses((status = 200, body = SessionState), (status = 404, body = Problem, content_type = "application/problem+json")))]
async fn show(
    _: Reads,
    State(state): State<AdminState>,
    ApiPath(key): ApiPath<String>,
) -> Result<Json<SessionState>, Problem> {
    session(&state, &key).await.map(Json)
}

async fn session(state: &AdminState, text: &str) -> Result<SessionState, Problem> {
    let (key, house) = (known_place(state, text).await?, house(state).await?);
    let read = move |connection: &Connection| session_state::state(connection, &house, &key);
    let found = state.operations.db().read(read).await?;
    found.ok_or_else(|| Problem::not_found(format!("nobody has written in {text} yet")))
}

/// Which messages of a transcript.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct MessagesQuery {
    /// Also conversations from before the last /new.
    #[serde(default)]
    all: bool,
    /// With ids, labels and meta_json of each message.
    #[serde(default)]
    raw: bool,
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

/// The newest messages of a place, oldest first.
#[utoipa::path(get, path = "/sessions/{key}/messages", tag = "sessions",
    params(("key" = String, Path, description = "Key of the place"), MessagesQuery),
    responses((status = 200, body = Page<Line>), (status = 404, body = Problem, content_type = "application/problem+json")))]
async fn messages(
    _: Reads,
    State(state): State<AdminState>,
    ApiPath(key): ApiPath<String>,
    ApiQuery(query): ApiQuery<MessagesQuery>,
) -> Result<Json<Page<Line>>, Problem> {
    let limit = limit(query.limit)?;
    let (key, house) = (known_place(&state, &key).await?, house(&state).await?);
    let extent = match query.all {
        true => Extent::All,
        false => Extent::Current,
    };
    let detail = match query.raw {
        true => Detail::Raw,
        false => Detail::Readable,
    };
    let read = move |connection: &Connection| {
        transcripts::read(connection, &house, &key, (extent, limit), detail)
    };
    let lines = state.operations.db().read(read).await?;
    Ok(Json(Page::whole(lines)))
}

/// The new agent of a place.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SwitchBody {
    agent: String,
}

/// A place after a change of its agent.
#[derive(Debug, Serialize, ToSchema)]
struct Switched {
    place: String,
    before: String,
    agent: String,
    /// False if the place had this agent already.
    changed: bool,
    /// True if the change also opened the place.
    opened: bool,
}

impl Switched {
    fn of(reply: Reply) -> Result<Json<Self>, Problem> {
        let Reply::Given(given) = reply else {
            return Err(Problem::broken());
        };
        Ok(Json(Switched {
            place: given.place.to_string(),
            before: given.before.to_string(),
            agent: given.agent.to_string(),
            changed: given.is_new,
            opened: given.opened,
        }))
    }
}

/// Gives a place to an agent, as /agent does.
#[utoipa::path(put, path = "/sessions/{key}/agent", tag = "sessions", request_body = SwitchBody,
    params(("key" = String, Path, description = "Key of the place")),
    responses((status = 200, body = Switched), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn switch(
    Operates(caller): Operates,
    State(state): State<AdminState>,
    ApiPath(key): ApiPath<String>,
    ApiJson(body): ApiJson<SwitchBody>,
) -> Result<Json<Switched>, Problem> {
    known_agent(&state, &body.agent).await?;
    let place = known_place(&state, &key).await?;
    let agent = body.agent;
    Switched::of(ask(&state, &caller, Request::Pin { place, agent }).await?)
}

/// Takes the pin back, so that the config decides.
#[utoipa::path(delete, path = "/sessions/{key}/agent", tag = "sessions",
    params(("key" = String, Path, description = "Key of the place")),
    responses((status = 200, body = Switched), (status = 404, body = Problem, content_type = "application/problem+json")))]
async fn give_back(
    Operates(caller): Operates,
    State(state): State<AdminState>,
    ApiPath(key): ApiPath<String>,
) -> Result<Json<Switched>, Problem> {
    let place = known_place(&state, &key).await?;
    Switched::of(ask(&state, &caller, Request::Unpin { place }).await?)
}

/// The identity of the agent that answers in a place.
#[utoipa::path(get, path = "/sessions/{key}/identity", tag = "sessions",
    params(("key" = String, Path, description = "Key of the place")),
    responses((status = 200, body = AgentDetails, headers(("ETag" = String))), (status = 404, body = Problem, content_type = "application/problem+json")))]
async fn identity(
    _: Reads,
    State(state): State<AdminState>,
    ApiPath(key): ApiPath<String>,
) -> Result<Tagged<AgentDetails>, Problem> {
    let agent = session(&state, &key).await?.agent.id;
    super::agents::details(&state, &agent).await.map(Tagged)
}

/// Changes the identity of the agent that answers in a place.
#[utoipa::path(put, path = "/sessions/{key}/identity", tag = "sessions", request_body = AgentEdit,
    params(("key" = String, Path, description = "Key of the place"), ("If-Match" = Option<String>, Header, description = "The ETag that the change was made from")),
    responses((status = 200, body = AgentDetails, headers(("ETag" = String))), (status = 404, body = Problem, content_type = "application/problem+json"),
        (status = 409, body = Problem, content_type = "application/problem+json"), (status = 412, body = Problem, content_type = "application/problem+json")))]
async fn set_identity(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    ApiPath(key): ApiPath<String>,
    headers: HeaderMap,
    ApiJson(edit): ApiJson<AgentEdit>,
) -> Result<Tagged<AgentDetails>, Problem> {
    let agent = session(&state, &key).await?.agent.id;
    edited(&state, &caller, &agent, &headers, edit)
        .await
        .map(Tagged)
}

/// Begins a new conversation, as /new does.
#[utoipa::path(post, path = "/sessions/{key}/new", tag = "sessions",
    params(("key" = String, Path, description = "Key of the place")),
    responses((status = 200, body = Renewed), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn new(
    Operates(caller): Operates,
    State(state): State<AdminState>,
    ApiPath(key): ApiPath<String>,
) -> Result<Json<Renewed>, Problem> {
    let place = known_place(&state, &key).await?;
    match ask(&state, &caller, Request::Renew { place }).await? {
        Reply::Renewed(renewed) => Ok(Json(renewed)),
        _ => Err(Problem::broken()),
    }
}

/// Where a copy goes.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ForkBody {
    /// A new place of the terminal or the web chat, such as local:home:draft or web:home:draft.
    to: Option<String>,
    /// Where no place is named: a new topic of the terminal or of the web chat.
    #[serde(default)]
    on: ForkOn,
}

/// Copies a conversation to a place of the terminal or the web chat, where its agent goes on with it.
#[utoipa::path(post, path = "/sessions/{key}/fork", tag = "sessions", request_body = ForkBody,
    params(("key" = String, Path, description = "Key of the place")),
    responses((status = 200, body = Forked), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn fork(
    Operates(caller): Operates,
    State(state): State<AdminState>,
    ApiPath(key): ApiPath<String>,
    ApiJson(body): ApiJson<ForkBody>,
) -> Result<Json<Forked>, Problem> {
    let from = known_place(&state, &key).await?;
    let to = body.to.as_deref().map(place).transpose()?;
    let on = body.on;
    match ask(&state, &caller, Request::Fork { from, to, on }).await? {
        Reply::Forked(forked) => Ok(Json(*forked)),
        _ => Err(Problem::broken()),
    }
}

/// Where a conversation goes.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MoveBody {
    /// Key of a place without a conversation.
    to: String,
}

/// Moves a conversation with its pin and model to another place.
#[utoipa::path(post, path = "/sessions/{key}/move", tag = "sessions", request_body = MoveBody,
    params(("key" = String, Path, description = "Key of the place")),
    responses((status = 200, body = MovedTo), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn move_to(
    Administers(caller): Administers,
    State(state): State<AdminState>,
    ApiPath(key): ApiPath<String>,
    ApiJson(body): ApiJson<MoveBody>,
) -> Result<Json<MovedTo>, Problem> {
    let from = known_place(&state, &key).await?;
    let to = place(&body.to)?;
    match ask(&state, &caller, Request::Move { from, to }).await? {
        Reply::Moved(moved) => Ok(Json(*moved)),
        _ => Err(Problem::broken()),
    }
}

/// Turns and messages that were ended.
#[derive(Debug, Serialize, ToSchema)]
struct EndedBody {
    count: usize,
    places: usize,
}

impl From<Ended> for EndedBody {
    fn from(ended: Ended) -> Self {
        EndedBody {
            count: ended.count,
            places: ended.places,
        }
    }
}

/// Stops the answers under way in a place.
#[utoipa::path(post, path = "/sessions/{key}/stop", tag = "sessions",
    params(("key" = String, Path, description = "Key of the place")),
    responses((status = 200, body = EndedBody), (status = 404, body = Problem, content_type = "application/problem+json")))]
async fn stop(
    Operates(caller): Operates,
    State(state): State<AdminState>,
    ApiPath(key): ApiPath<String>,
) -> Result<Json<EndedBody>, Problem> {
    let place = Some(known_place(&state, &key).await?);
    match ask(&state, &caller, Request::Stop { place }).await? {
        Reply::Ended(ended) => Ok(Json(ended.into())),
        _ => Err(Problem::broken()),
    }
}

/// A turn or a message.
#[derive(Debug, Serialize, ToSchema)]
struct QueueLine {
    place: Named,
    agent: Option<Named>,
    /// The agent is paused.
    paused: bool,
    /// The name of the person who asked.
    by: String,
    /// running, parked or waiting.
    #[schema(value_type = String)]
    stage: crate::operations::ListedStage,
    since: Moment,
}

/// Filter of the queue.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct QueueQuery {
    /// Only in this place, and in places within it.
    place: Option<String>,
}

/// Answers under way, and messages that wait.
#[utoipa::path(get, path = "/queue", tag = "sessions", params(QueueQuery), responses((status = 200, body = Page<QueueLine>)))]
async fn queue(
    Reads(caller): Reads,
    State(state): State<AdminState>,
    ApiQuery(query): ApiQuery<QueueQuery>,
) -> Result<Json<Page<QueueLine>>, Problem> {
    let place = query.place.as_deref().map(place).transpose()?;
    let Reply::Queue(listed) = ask(&state, &caller, Request::Queue { place }).await? else {
        return Err(Problem::broken());
    };
    let house = house(&state).await?;
    let lines = listed.into_iter().map(|line| QueueLine {
        place: house.names.place(&line.place),
        agent: line.agent.map(|agent| house.agent(&agent)),
        paused: line.paused,
        by: line.by,
        stage: line.stage,
        since: Moment(line.since),
    });
    Ok(Json(Page::whole(lines.collect())))
}

/// Drops the messages that wait in a place.
#[utoipa::path(delete, path = "/queue", tag = "sessions", params(QueueQuery),
    responses((status = 200, body = EndedBody)))]
async fn clear(
    Operates(caller): Operates,
    State(state): State<AdminState>,
    ApiQuery(query): ApiQuery<QueueQuery>,
) -> Result<Json<EndedBody>, Problem> {
    let place = query.place.as_deref().map(place).transpose()?;
    match ask(&state, &caller, Request::Clear { place }).await? {
        Reply::Ended(ended) => Ok(Json(ended.into())),
        _ => Err(Problem::broken()),
    }
}
