//! The web chat for browsers and programs: places, messages, files, and events as they come.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use serde::{Deserialize, Serialize};
use tokio::sync::{broadcast, watch};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::common::{known_agent, limit};
use super::extract::{ApiJson, ApiPath, ApiQuery};
use crate::admin::auth::{Administers, Reads};
use crate::admin::dashboard::{hue, markdown_html};
use crate::admin::problem::Problem;
use crate::admin::state::AdminState;
use crate::agents::Agent;
use crate::channels::web::{self, Body, Line, NotSaid, NotStored, Row, Speaker, WebChannel};
use crate::domain::SessionKey;
use crate::operations::Request;
use crate::operations::web_chat::WebPlace;

const MAX_NAME_CHARS: usize = 60;
/// Rows read at once for an event stream.
const PORTION: u32 = 100;
/// A comment this often keeps proxies from closing the stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Words so far are sent at most this often.
const SIGHT_EVERY: Duration = Duration::from_millis(80);

/// The places of the web chat, and the agents.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Chat {
    pub(crate) places: Vec<Place>,
    pub(crate) agents: Vec<ChatAgent>,
    pub(crate) default_agent: String,
}

/// A room or a topic.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ChatPlace)]
pub(crate) struct Place {
    pub(crate) key: String,
    pub(crate) room: String,
    pub(crate) topic: Option<String>,
    pub(crate) name: String,
    /// The id of the agent that answers here.
    pub(crate) agent: String,
    /// The rule that gives the place to the agent.
    pub(crate) rule: String,
    pub(crate) last_at: Option<i64>,
    pub(crate) last_text: Option<String>,
}

/// An agent, as a chat shows it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ChatAgent {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) emoji: Option<String>,
    pub(crate) label: String,
    /// A number from 0 to 7.
    pub(crate) hue: u32,
}

/// A message on the screen.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ChatMessage)]
pub(crate) struct Message {
    pub(crate) id: i64,
    pub(crate) place: String,
    /// The id that its sender gave to it.
    pub(crate) message: String,
    pub(crate) from: Author,
    pub(crate) speaker: Option<String>,
    /// The id of the agent that speaks.
    pub(crate) agent: Option<String>,
    /// Markdown.
    pub(crate) text: String,
    pub(crate) html: String,
    pub(crate) buttons: Vec<web::Button>,
    pub(crate) files: Vec<web::Stored>,
    /// Unix milliseconds.
    pub(crate) at: i64,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Author {
    Person,
    Agent,
    Gateway,
}

/// What is seen of a running turn.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Sight {
    pub(crate) place: String,
    pub(crate) running: bool,
    pub(crate) speaker: Option<String>,
    pub(crate) agent: Option<String>,
    /// The words so far.
    pub(crate) html: String,
    /// Why there is nothing to read yet.
    pub(crate) remark: Option<String>,
}

pub(super) fn router() -> OpenApiRouter<AdminState> {
    let files = OpenApiRouter::new().routes(routes!(keep_file));
    OpenApiRouter::new()
        .routes(routes!(places))
        .routes(routes!(messages, say))
        .merge(files.layer(file_limit()))
        .routes(routes!(file))
        .routes(routes!(events))
}

/// Which messages.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct WantedMessages {
    /// The session key of a place of the web chat.
    place: String,
    /// Only messages before this id.
    before: Option<i64>,
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
}

/// Messages of a place, oldest first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatMessages)]
struct Messages {
    messages: Vec<Message>,
    /// There are earlier ones.
    has_more: bool,
}

/// A line for an agent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewMessage {
    place: String,
    /// Made by the sender, so that a message sent twice is one.
    id: String,
    #[serde(default)]
    text: String,
    /// Ids of files that were sent before.
    #[serde(default)]
    files: Vec<String>,
    /// What people call the topic, with its first message.
    topic_name: Option<String>,
    /// Gives the place to this agent first.
    agent: Option<String>,
}

/// The name of a file.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct WantedName {
    /// As people see it.
    name: String,
}

/// Where to go on.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct WantedEvents {
    /// Only messages after this id. A browser that comes back says it in `Last-Event-ID`.
    after: Option<i64>,
}

/// Rooms and topics of the web chat, and the agents.
#[utoipa::path(get, path = "/chat/places", tag = "chat", responses((status = 200, body = Chat)))]
async fn places(State(state): State<AdminState>, _: Reads) -> Result<Json<Chat>, Problem> {
    chat_of(&state).await.map(Json)
}

/// Messages of a place of the web chat, oldest first.
#[utoipa::path(get, path = "/chat/messages", tag = "chat", params(WantedMessages), responses((status = 200, body = Messages)))]
async fn messages(
    State(state): State<AdminState>,
    _: Reads,
    ApiQuery(wanted): ApiQuery<WantedMessages>,
) -> Result<Json<Messages>, Problem> {
    let place = web_place(&wanted.place)?;
    let limit = limit(wanted.limit)?;
    let before = wanted.before.unwrap_or(i64::MAX);
    let mut messages = messages_of(&state, &place, before, limit + 1).await?;
    let has_more = messages.len() > limit as usize;
    if has_more {
        messages.remove(0);
    }
    Ok(Json(Messages { messages, has_more }))
}

/// Takes a line. An agent works for it with an owner's rights, so an owner must have sent it.
#[utoipa::path(post, path = "/chat/messages", tag = "chat", request_body = NewMessage,
    responses((status = 202, description = "The message is stored"), (status = 404, body = Problem, content_type = "application/problem+json"), (status = 409, body = Problem, content_type = "application/problem+json")))]
async fn say(
    State(state): State<AdminState>,
    Administers(caller): Administers,
    ApiJson(new): ApiJson<NewMessage>,
) -> Result<StatusCode, Problem> {
    let place = web_place(&new.place)?;
    let snapshot = state.operations.snapshot().await?;
    if !snapshot.config.has_web() {
        return Err(Problem::conflict("The web chat is off.").hint("Add [web] to config.toml."));
    }
    if let Some(agent) = new.agent {
        known_agent(&state, &agent).await?;
        let now = state.operations.web_place(place.clone()).await?;
        if now.is_none_or(|now| now.agent.as_str() != agent) {
            let pin = Request::Pin {
                place: place.clone(),
                agent,
            };
            state.operations.run(&caller.who, pin).await?;
        }
    }
    let line = Line {
        place,
        id: new.id,
        text: new.text,
        files: new.files,
        topic_name: new.topic_name.as_deref().and_then(topic_name),
    };
    state.monitor.web().say(line).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Keeps a file for a message that names it.
#[utoipa::path(post, path = "/chat/files", tag = "chat", params(WantedName),
    request_body(content = String, content_type = "application/octet-stream"), responses((status = 201, body = web::Stored)))]
async fn keep_file(
    State(state): State<AdminState>,
    _: Administers,
    ApiQuery(wanted): ApiQuery<WantedName>,
    content: Result<Bytes, BytesRejection>,
) -> Result<(StatusCode, Json<web::Stored>), Problem> {
    let content = content.map_err(|error| Problem::unread(error.status()))?;
    let stored = state
        .monitor
        .web()
        .store_file(&wanted.name, &content)
        .await?;
    Ok((StatusCode::CREATED, Json(stored)))
}

/// The name of a topic, of a length that fits a list.
fn topic_name(text: &str) -> Option<String> {
    let name: String = text.trim().chars().take(MAX_NAME_CHARS).collect();
    (!name.is_empty()).then_some(name)
}

/// The body of a call with a file.
fn file_limit() -> DefaultBodyLimit {
    DefaultBodyLimit::max(usize::try_from(web::MAX_FILE_BYTES).unwrap_or(usize::MAX))
}

/// The content of a file. Only pictures come with their own media type.
#[utoipa::path(get, path = "/chat/files/{id}", tag = "chat", params(("id" = String, Path, description = "Id of the file")),
    responses((status = 200, content((String = "application/octet-stream"), (String = "image/png"), (String = "image/jpeg"), (String = "image/gif"), (String = "image/webp"))),
        (status = 404, body = Problem, content_type = "application/problem+json")))]
async fn file(
    State(state): State<AdminState>,
    _: Reads,
    ApiPath(id): ApiPath<String>,
) -> Result<Response, Problem> {
    let gone = || Problem::not_found("This file is not here, or no longer.");
    let (file, path) = state.monitor.web().file(&id).await.ok_or_else(gone)?;
    let content = tokio::fs::read(path).await.map_err(|_| gone())?;
    let mut response = content.into_response();
    let headers = response.headers_mut();
    // Only pictures are shown; the rest is never a page of ours.
    let is_picture =
        ["image/png", "image/jpeg", "image/gif", "image/webp"].contains(&file.media_type.as_str());
    let media_type = match is_picture {
        true => file.media_type.as_str(),
        false => "application/octet-stream",
    };
    let name = percent_encoded(&file.name);
    let disposition = match is_picture {
        true => format!("inline; filename*=UTF-8''{name}"),
        false => format!("attachment; filename*=UTF-8''{name}"),
    };
    for (header, value) in [
        (header::CONTENT_TYPE, media_type),
        (header::CONTENT_DISPOSITION, disposition.as_str()),
        (header::CACHE_CONTROL, "private, max-age=86400"),
    ] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(header, value);
        }
    }
    Ok(response)
}

fn percent_encoded(name: &str) -> String {
    let mut encoded = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
                encoded.push(char::from(byte));
            }
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

/// Messages of all places as they come, each with its id, and what is seen of running turns.
#[utoipa::path(get, path = "/chat/events", tag = "chat",
    params(WantedEvents, ("Last-Event-ID" = Option<String>, Header, description = "The id of the last message that was read")),
    responses((status = 200, description = "Events `message`, `sight` and `places`", body = String, content_type = "text/event-stream")))]
async fn events(
    State(state): State<AdminState>,
    Reads(caller): Reads,
    ApiQuery(wanted): ApiQuery<WantedEvents>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let last = headers.get("last-event-id");
    let last = last.and_then(|id| id.to_str().ok()?.parse().ok());
    let after = match last.or(wanted.after) {
        Some(after) => after,
        None => state.monitor.web().newest().await?,
    };
    let alive = KeepAlive::new().interval(KEEP_ALIVE);
    let stream = Sse::new(stream(state, caller.key, after)).keep_alive(alive);
    Ok(stream.into_response())
}

/// The state of an event stream.
struct Reader {
    state: AdminState,
    /// The caller's key. Its end is the end of the stream.
    key: i64,
    web: WebChannel,
    /// The last row that was sent.
    after: i64,
    growth: watch::Receiver<u64>,
    sights: broadcast::Receiver<web::Sight>,
    snapshots: watch::Receiver<std::sync::Arc<crate::home::Snapshot>>,
    ready: VecDeque<Event>,
}

fn stream(
    state: AdminState,
    key: i64,
    after: i64,
) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
    let web = state.monitor.web().clone();
    let (now, sights) = web.sights();
    let mut snapshots = state.monitor.snapshots();
    snapshots.mark_unchanged();
    let mut growth = web.growth();
    // Rows from before are looked for at once.
    growth.mark_changed();
    let mut reader = Reader {
        growth,
        sights,
        snapshots,
        web,
        state,
        key,
        after,
        ready: VecDeque::new(),
    };
    for sight in now {
        reader.show(&sight);
    }
    futures_util::stream::unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        Some((Ok(event), reader))
    })
}

impl Reader {
    /// None when the gateway stops, or the key does not count any more.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if !self.state.entrance.has(self.key) {
                return None;
            }
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            tokio::select! {
                biased;
                grown = self.growth.changed() => {
                    grown.ok()?;
                    self.read().await;
                }
                changed = self.snapshots.changed() => {
                    changed.ok()?;
                    self.ready.push_back(Event::default().event("places").data("{}"));
                }
                sight = self.sights.recv() => self.take(sight).await,
                () = self.state.monitor.stopped() => return None,
                () = self.state.entrance.ended(self.key) => return None,
            }
        }
    }

    /// Reads the next rows. More of them are looked for at once.
    async fn read(&mut self) {
        let Ok(rows) = self.web.rows_after(self.after, PORTION).await else {
            // Tried again with the next row.
            return;
        };
        if rows.len() == PORTION as usize {
            self.growth.mark_changed();
        }
        let labels = Labels::of(&self.state);
        for row in rows {
            self.after = row.id;
            let event = Event::default().id(row.id.to_string());
            let message = labels.message(row);
            self.ready.extend(event.json_data(message).ok());
        }
    }

    /// Takes what is seen of turns, a little at a time: each sight has all words so far.
    async fn take(&mut self, first: Result<web::Sight, broadcast::error::RecvError>) {
        tokio::time::sleep(SIGHT_EVERY).await;
        let mut latest: Vec<web::Sight> = first.into_iter().collect();
        while let Ok(sight) = self.sights.try_recv() {
            latest.retain(|known| known.place != sight.place);
            latest.push(sight);
        }
        for sight in latest {
            self.show(&sight);
        }
    }

    fn show(&mut self, sight: &web::Sight) {
        let sight = Labels::of(&self.state).sight(sight);
        let event = Event::default().event("sight").json_data(sight);
        self.ready.extend(event.ok());
    }
}

/// Finds agents by their label.
struct Labels {
    snapshot: std::sync::Arc<crate::home::Snapshot>,
}

impl Labels {
    fn of(state: &AdminState) -> Self {
        Labels {
            snapshot: state.monitor.snapshots().borrow().clone(),
        }
    }

    fn agent(&self, label: &str) -> Option<String> {
        let mut agents = self.snapshot.registry.all().iter();
        let agent = agents.find(|agent| agent.label() == label)?;
        Some(agent.id.to_string())
    }

    fn message(&self, row: Row) -> Message {
        let Body {
            speaker,
            text,
            buttons,
            files,
            ..
        } = row.body;
        let (from, speaker) = match speaker {
            Speaker::Person(name) => (Author::Person, Some(name)),
            Speaker::Agent(label) => (Author::Agent, Some(label)),
            Speaker::Gateway => (Author::Gateway, None),
        };
        Message {
            id: row.id,
            place: row.place.to_string(),
            message: row.message,
            agent: speaker.as_deref().and_then(|label| self.agent(label)),
            from,
            speaker,
            html: markdown_html(&text),
            text,
            buttons,
            files,
            at: row.at,
        }
    }

    fn sight(&self, sight: &web::Sight) -> Sight {
        let preview = sight.preview.as_ref();
        let speaker = preview.and_then(|preview| preview.speaker.clone());
        Sight {
            place: sight.place.to_string(),
            running: preview.is_some(),
            agent: speaker.as_deref().and_then(|label| self.agent(label)),
            speaker,
            html: preview.map_or_else(String::new, |preview| markdown_html(&preview.text)),
            remark: preview.and_then(|preview| preview.remark.clone()),
        }
    }
}

pub(crate) async fn chat_of(state: &AdminState) -> Result<Chat, Problem> {
    let snapshot = state.operations.snapshot().await?;
    let latest = state.monitor.web().latest().await?;
    let places = state.operations.web_places().await?;
    let last = |place: &WebPlace| latest.iter().find(|row| row.place == place.key);
    let place = |place: WebPlace| Place {
        last_at: last(&place).map(|row| row.at),
        last_text: last(&place).map(|row| first_words(&row.body.text)),
        key: place.key.to_string(),
        room: place.room.to_string(),
        topic: place.topic.map(|topic| topic.to_string()),
        name: place.name,
        agent: place.agent.to_string(),
        rule: place.rule,
    };
    let agent = |agent: &std::sync::Arc<Agent>| ChatAgent {
        id: agent.id.to_string(),
        name: agent.name.clone(),
        emoji: agent.emoji.clone(),
        label: agent.label(),
        hue: hue(&agent.id),
    };
    Ok(Chat {
        places: places.into_iter().map(place).collect(),
        agents: snapshot.registry.all().iter().map(agent).collect(),
        default_agent: snapshot.config.default_agent.to_string(),
    })
}

/// A message in a line of a list.
fn first_words(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty());
    let plain: String = line
        .unwrap_or_default()
        .chars()
        .filter(|letter| !"*`#".contains(*letter))
        .take(80)
        .collect();
    plain.trim().to_owned()
}

pub(crate) async fn messages_of(
    state: &AdminState,
    place: &SessionKey,
    before: i64,
    most: u32,
) -> Result<Vec<Message>, Problem> {
    let rows = state.monitor.web().rows_before(place, before, most).await?;
    let labels = Labels::of(state);
    Ok(rows.into_iter().map(|row| labels.message(row)).collect())
}

pub(crate) fn sights_of(state: &AdminState) -> Vec<Sight> {
    let (now, _) = state.monitor.web().sights();
    let labels = Labels::of(state);
    now.iter().map(|sight| labels.sight(sight)).collect()
}

fn web_place(text: &str) -> Result<SessionKey, Problem> {
    let place = text.parse().ok();
    place
        .filter(|place| matches!(place, SessionKey::Web { .. }))
        .ok_or_else(|| {
            Problem::bad_request(format!("`{text}` is no place of the web chat."))
                .hint("A place looks like web:home or web:home:garden.")
        })
}

impl From<NotSaid> for Problem {
    fn from(refused: NotSaid) -> Self {
        match refused {
            NotSaid::Store(error) => error.into(),
            other => Problem::bad_request(other.to_string()),
        }
    }
}

impl From<NotStored> for Problem {
    fn from(refused: NotStored) -> Self {
        match refused {
            NotStored::Failed(error) => {
                tracing::warn!("a file of the web chat was not kept: {error}");
                Problem::broken()
            }
            other => Problem::bad_request(other.to_string()),
        }
    }
}
