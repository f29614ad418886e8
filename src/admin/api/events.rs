//! `/events`: what happens, as server-sent events. The id of each event is where a reader goes on
//! after a break.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use futures_util::stream;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::ApiQuery;
use crate::admin::auth::Reads;
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::operations::happenings::{self, Happening, Position};

/// Between two looks at the store.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// A line without meaning keeps the connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(super) fn router() -> OpenApiRouter<AdminState> {
    OpenApiRouter::new().routes(routes!(events))
}

/// Where to go on.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    /// As `Last-Event-ID`, for readers that cannot set a header.
    last_event_id: Option<String>,
}

/// Messages, ended turns, changes and new approvals from now on, or from behind the last event that was read.
#[utoipa::path(get, path = "/events", tag = "events",
    params(EventsQuery, ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was read")),
    responses((status = 200, description = "Events `message`, `turn`, `change` and `approval`", body = String, content_type = "text/event-stream")))]
async fn events(
    Reads(caller): Reads,
    State(state): State<AdminState>,
    ApiQuery(query): ApiQuery<EventsQuery>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let header = headers.get("last-event-id");
    let header = header.map(|id| id.to_str().unwrap_or_default().to_owned());
    let from = match header.or(query.last_event_id) {
        Some(id) => {
            let read = id.parse::<Position>();
            read.map_err(|()| Problem::bad_request("this is not the id of an event"))?
        }
        None => happenings::now(&state.operations).await?,
    };
    let reader = Reader {
        state,
        key: caller.key,
        position: from,
        ready: Vec::new(),
    };
    let events = stream::unfold(reader, |mut reader| async {
        let event = reader.next().await?;
        Some((Ok(event), reader))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

struct Reader {
    state: AdminState,
    /// The caller's key. Its end is the end of the stream.
    key: i64,
    position: Position,
    /// The last one first.
    ready: Vec<Happening>,
}

impl Reader {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(happening) = self.ready.pop() {
                self.position = happening.position;
                return Some(event(&happening));
            }
            if !self.state.entrance.has(self.key) || self.state.monitor.is_stopping() {
                return None;
            }
            let mut found = happenings::since(&self.state.operations, self.position)
                .await
                .ok()?;
            found.reverse();
            self.ready = found;
            if self.ready.is_empty() {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
    }
}

fn event(happening: &Happening) -> Event {
    let data = serde_json::to_string(happening).unwrap_or_default();
    Event::default()
        .event(happening.kind)
        .id(happening.position.to_string())
        .data(data)
}
