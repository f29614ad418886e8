//! What most calls share: pages of a list, tags of a state, words of a query, replies of operations.

use axum::Json;
use axum::http::header;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::super::auth::Caller;
use super::super::problem::Problem;
use super::super::state::AdminState;
use crate::domain::SessionKey;
use crate::operations::agent_files::hash;
use crate::operations::house::House;
use crate::operations::{RefusalKind, Reply, Request};

/// A part of a list.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Page<T> {
    pub(super) items: Vec<T>,
    /// The `cursor` of the next part; null at the end.
    pub(super) next: Option<String>,
}

impl<T> Page<T> {
    /// `has_more`: the list goes on behind the last item.
    pub(super) fn new(items: Vec<T>, has_more: bool, cursor: impl Fn(&T) -> String) -> Self {
        let next = items.last().filter(|_| has_more).map(cursor);
        Page { items, next }
    }

    /// A list that is never long.
    pub(super) fn whole(items: Vec<T>) -> Self {
        Page { items, next: None }
    }
}

const USUAL_LIMIT: u32 = 50;
const MOST_LIMIT: u32 = 200;

/// The number of items, checked.
pub(super) fn limit(wanted: Option<u32>) -> Result<u32, Problem> {
    match wanted.unwrap_or(USUAL_LIMIT) {
        limit @ 1..=MOST_LIMIT => Ok(limit),
        _ => Err(Problem::bad_request(format!(
            "limit is a number from 1 to {MOST_LIMIT}"
        ))),
    }
}

/// A cursor that is a row's number.
pub(super) fn before(cursor: Option<&str>) -> Result<i64, Problem> {
    let Some(cursor) = cursor else {
        return Ok(i64::MAX);
    };
    let read = cursor.parse().ok().filter(|id| *id >= 0);
    read.ok_or_else(|| Problem::bad_request("cursor is not the `next` of another answer"))
}

/// The key of a place in a path or query.
pub(super) fn place(text: &str) -> Result<SessionKey, Problem> {
    let told = |error| Problem::bad_request(format!("`{text}` is not the key of a place: {error}"));
    text.parse::<SessionKey>().map_err(told)
}

/// Words of a query that are written as one of a short list.
pub(super) fn word<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, Problem> {
    let told = |_| Problem::bad_request(format!("`{text}` is no {name}"));
    text.parse::<T>().map_err(told)
}

/// 404 for a word that is no agent of the config.
pub(super) async fn known_agent(state: &AdminState, word: &str) -> Result<(), Problem> {
    let snapshot = state.operations.snapshot().await?;
    match snapshot.registry.find(word) {
        Some(_) => Ok(()),
        None => Err(no_agent(&snapshot.registry, word)),
    }
}

pub(super) fn no_agent(registry: &crate::agents::Registry, word: &str) -> Problem {
    let ids = registry.all().iter().map(|agent| agent.id.as_str());
    let known = ids.collect::<Vec<_>>().join(", ");
    Problem::not_found(format!("no agent is called {word}"))
        .hint(format!("the agents are: {known}"))
}

/// 404 for a place that nobody has used.
pub(super) async fn known_place(state: &AdminState, text: &str) -> Result<SessionKey, Problem> {
    let key = place(text)?;
    let wanted = key.clone();
    let read =
        move |connection: &rusqlite::Connection| crate::routing::places::id(connection, &wanted);
    match state.operations.db().read(read).await? {
        Some(_) => Ok(key),
        None => Err(Problem::not_found(format!(
            "nobody has written in {text} yet"
        ))),
    }
}

pub(super) async fn house(state: &AdminState) -> Result<House, Problem> {
    Ok(state.operations.house().await?)
}

/// Has an operation carried out.
pub(super) async fn ask(
    state: &AdminState,
    caller: &Caller,
    request: Request,
) -> Result<Reply, Problem> {
    Ok(state.operations.run(&caller.who, request).await?)
}

/// The same for a request about a thing that may not be there.
pub(super) async fn ask_about(
    state: &AdminState,
    caller: &Caller,
    request: Request,
) -> Result<Reply, Problem> {
    let reply = state.operations.run(&caller.who, request).await;
    reply.map_err(|refusal| match refusal.kind {
        RefusalKind::WrongUse => Problem::not_found(refusal.text),
        _ => refusal.into(),
    })
}

/// A state with its tag, for `If-Match` of a later change.
pub(super) struct Tagged<T>(pub(super) T);

impl<T: Serialize> IntoResponse for Tagged<T> {
    fn into_response(self) -> Response {
        let tag = tag(&self.0);
        let mut response = Json(self.0).into_response();
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            response.headers_mut().insert(header::ETAG, tag);
        }
        response
    }
}

/// The tag of a state.
pub(super) fn tag(state: &impl Serialize) -> String {
    let text = serde_json::to_string(state).unwrap_or_default();
    format!("\"{}\"", &hash(&text)[..32])
}

/// Refuses a change that was made from another state.
pub(super) fn check_tag(headers: &HeaderMap, state: &impl Serialize) -> Result<(), Problem> {
    let Some(wanted) = headers.get(header::IF_MATCH) else {
        return Ok(());
    };
    let (wanted, now) = (wanted.to_str().unwrap_or_default(), tag(state));
    let mut tags = wanted.split(',').map(str::trim);
    match tags.any(|tag| tag == "*" || tag == now) {
        true => Ok(()),
        false => Err(Problem::changed_meanwhile()),
    }
}
