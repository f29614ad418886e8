//! The HTTP side: reads calls, applies faults and holds, writes answers; hands WebSockets over to
//! the gateway.
//!
//! <https://discord.com/developers/docs/reference>

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{
    ConnectInfo, DefaultBodyLimit, FromRequest, Multipart, Query, Request as HttpRequest, State,
    WebSocketUpgrade,
};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::compression::Encoding;
use super::faults::Fault;
use super::journal::{Call, Outcome};
use super::routes::{self, Route};
use super::wire::{Answer, ApiError, Request, UploadedFile};
use super::{Shared, TOKEN, gateway, rest};
use crate::support::fake_telegram::cuttable::{Connection, CuttableListener};
use crate::support::faults::HoldPoint;

/// More than Discord takes, so that it is the fake that refuses.
const MAX_BODY_BYTES: usize = 64 << 20;

pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let garbling = shared.garbling.clone();
    let app = Router::new()
        .fallback(handle)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(shared);
    let app = app.into_make_service_with_connect_info::<Connection>();
    axum::serve(CuttableListener { listener, garbling }, app)
        .await
        .expect("axum serves until aborted");
}

async fn handle(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(connection): ConnectInfo<Connection>,
    http: HttpRequest,
) -> Response {
    if http.headers().contains_key(header::UPGRADE) {
        return upgrade(shared, connection, http).await;
    }
    let line = format!("{} {}", http.method(), http.uri());
    let may_call = is_authorized(http.headers());
    let request = match read(http).await {
        Ok(request) => request,
        Err(error) => return error_answer(&error),
    };
    let call = Admitted::new(&shared, line, &request);
    let response = if may_call || needs_no_token(request.route) {
        call.run(&request).await
    } else {
        Some(error_answer(&ApiError::new(401, 0, "401: Unauthorized")))
    };
    call.settle(response.as_ref());
    let date = shared.world().clock.date().parse().expect("a plain header");
    response.map_or_else(
        || connection.cut(),
        |mut response| {
            response.headers_mut().insert(header::DATE, date);
            response
        },
    )
}

async fn upgrade(shared: Arc<Shared>, connection: Connection, http: HttpRequest) -> Response {
    let encoding = Encoding::from_query(http.uri().query().unwrap_or(""));
    let line = format!("GET {}", http.uri());
    let request = Request {
        route: Route::Connect,
        variables: vec![],
        query: Default::default(),
        body: Value::Null,
        files: vec![],
        user_agent: user_agent(http.headers()),
    };
    let call = Admitted::new(&shared, line, &request);
    let refused = match call.fault {
        None => {
            released(&call.before_effect).await;
            None
        }
        Some(_) => call.run(&request).await.or_else(|| Some(connection.cut())),
    };
    let response = match refused {
        Some(refused) => refused,
        None => match WebSocketUpgrade::from_request(http, &()).await {
            Ok(upgrade) => {
                let shared = shared.clone();
                upgrade.on_upgrade(move |socket| gateway::serve(socket, shared, encoding))
            }
            Err(error) => error.into_response(),
        },
    };
    call.settle(Some(&response));
    response
}

fn user_agent(headers: &HeaderMap) -> String {
    headers
        .get(header::USER_AGENT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("")
        .to_owned()
}

fn is_authorized(headers: &HeaderMap) -> bool {
    let authorization = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    authorization.strip_prefix("Bot ") == Some(TOKEN)
}

/// An interaction's token is in the path; the gateway's address and the CDN are for everybody.
fn needs_no_token(route: Route) -> bool {
    use Route as R;
    matches!(
        route,
        R::GetGateway
            | R::Download
            | R::InteractionCallback
            | R::GetOriginal
            | R::EditOriginal
            | R::DeleteOriginal
            | R::CreateFollowup
            | R::EditFollowup
            | R::DeleteFollowup
    )
}

/// A journaled call with the fault and the holds that were in force when it came.
struct Admitted<'a> {
    shared: &'a Shared,
    number: usize,
    fault: Option<Fault>,
    before_effect: Vec<watch::Receiver<bool>>,
    before_answer: Vec<watch::Receiver<bool>>,
}

impl<'a> Admitted<'a> {
    fn new(shared: &'a Shared, line: String, request: &Request) -> Self {
        let mut world = shared.world();
        let (route, channel_id) = (request.route, rest::channel_of(&world, request));
        let files = request
            .files
            .iter()
            .map(|file| file.filename.clone())
            .collect();
        let body = Arc::new(request.body.clone());
        let (at, user_agent) = (Instant::now(), request.user_agent.clone());
        let call = Call {
            route,
            line,
            channel_id,
            body,
            files,
            user_agent,
            at,
            outcome: Outcome::Unanswered,
        };
        let number = world.journal.note(call);
        let fault = world.faults.take(&route, channel_id);
        let before_effect = world
            .faults
            .holds(&route, channel_id, HoldPoint::BeforeEffect);
        let before_answer = world
            .faults
            .holds(&route, channel_id, HoldPoint::BeforeAnswer);
        drop(world);
        shared.progress.send_replace(());
        Self {
            shared,
            number,
            fault,
            before_effect,
            before_answer,
        }
    }

    /// `None` means that the connection is to be cut.
    async fn run(&self, request: &Request) -> Option<Response> {
        released(&self.before_effect).await;
        let response = match self.fault {
            None => Some(self.perform(request)),
            Some(Fault::Html(status)) => Some(html_page(status)),
            Some(Fault::RateLimited(seconds)) => Some(rate_limited(seconds, "user")),
            Some(Fault::GloballyRateLimited(seconds)) => Some(rate_limited(seconds, "global")),
            Some(Fault::DroppedBefore) => None,
            Some(Fault::DroppedAfter) => {
                let _took_effect = self.perform(request);
                None
            }
            Some(Fault::InvalidJson) => {
                let _took_effect = self.perform(request);
                Some(response(200, "application/json", r#"{"id":"12"#.into()))
            }
            Some(Fault::HtmlAfter(status)) => {
                let _took_effect = self.perform(request);
                Some(html_page(status))
            }
            Some(fault) => fault.api_error().map(|error| error_answer(&error)),
        };
        released(&self.before_answer).await;
        response
    }

    fn perform(&self, request: &Request) -> Response {
        if request.route == Route::Download {
            return download(self.shared, request.variable(0));
        }
        let result = rest::perform(&mut self.shared.world(), request);
        self.shared.progress.send_replace(());
        match result {
            Ok(Answer::Json(body)) => response(200, "application/json", body.to_string()),
            Ok(Answer::NoContent) => StatusCode::NO_CONTENT.into_response(),
            Err(error) => error_answer(&error),
        }
    }

    fn settle(&self, response: Option<&Response>) {
        let outcome = response.map_or(Outcome::Dropped, |response| {
            Outcome::Status(response.status().as_u16())
        });
        self.shared.world().journal.settle(self.number, outcome);
        self.shared.progress.send_replace(());
    }
}

async fn released(holds: &[watch::Receiver<bool>]) {
    for hold in holds {
        // An error means that the hold is gone, which releases as well.
        let mut hold = hold.clone();
        let _gone = hold.wait_for(|released| *released).await;
    }
}

fn download(shared: &Shared, path: &str) -> Response {
    match shared.world().files.get(path) {
        Some(content) => Response::new(Body::from(content.clone())),
        None => response(
            404,
            "text/plain",
            "This content is no longer available.".into(),
        ),
    }
}

async fn read(http: HttpRequest) -> Result<Request, ApiError> {
    let (route, variables) = routes::find(http.method().as_str(), http.uri().path());
    let query =
        Query::try_from_uri(http.uri()).map_or_else(|_| Default::default(), |Query(pairs)| pairs);
    let content_type = http
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("")
        .to_owned();
    let user_agent = user_agent(http.headers());
    let (body, files) = if content_type.starts_with("multipart/form-data") {
        read_multipart(http).await?
    } else {
        (read_json(http).await?, Vec::new())
    };
    Ok(Request {
        route,
        variables,
        query,
        body,
        files,
        user_agent,
    })
}

async fn read_json(http: HttpRequest) -> Result<Value, ApiError> {
    let bytes = axum::body::to_bytes(http.into_body(), MAX_BODY_BYTES)
        .await
        .map_err(unreadable)?;
    if bytes.is_empty() {
        Ok(Value::Null)
    } else {
        serde_json::from_slice(&bytes).map_err(unreadable)
    }
}

/// `payload_json` and any number of `files[n]`.
async fn read_multipart(http: HttpRequest) -> Result<(Value, Vec<UploadedFile>), ApiError> {
    // Read to its very end first: a connection with something left in it is closed after the
    // answer.
    let (head, body) = http.into_parts();
    let bytes = axum::body::to_bytes(body, MAX_BODY_BYTES)
        .await
        .map_err(unreadable)?;
    let mut parts = Multipart::from_request(HttpRequest::from_parts(head, bytes.into()), &())
        .await
        .map_err(unreadable)?;
    let (mut body, mut files) = (Value::Null, Vec::new());
    while let Some(part) = parts.next_field().await.map_err(unreadable)? {
        let name = part.name().unwrap_or("").to_owned();
        if name == "payload_json" {
            body = serde_json::from_str(&part.text().await.map_err(unreadable)?)
                .map_err(unreadable)?;
            continue;
        }
        let index = name
            .strip_prefix("files[")
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap_or(&name)
            .to_owned();
        let filename = part.file_name().unwrap_or("unknown").to_owned();
        let content_type = part.content_type().map(str::to_owned);
        let content = part.bytes().await.map_err(unreadable)?.to_vec();
        files.push(UploadedFile {
            index,
            filename,
            content_type,
            content,
        });
    }
    Ok((body, files))
}

fn unreadable(error: impl std::fmt::Display) -> ApiError {
    ApiError::new(
        400,
        50109,
        format!("The request body contains invalid JSON. ({error})"),
    )
}

fn error_answer(error: &ApiError) -> Response {
    response(error.status, "application/json", error.json().to_string())
}

/// <https://discord.com/developers/docs/topics/rate-limits>
fn rate_limited(seconds: f64, scope: &str) -> Response {
    let body = json!({ "message": "You are being rate limited.", "retry_after": seconds, "global": scope == "global" });
    let mut answer = response(429, "application/json", body.to_string());
    let mut set = |name: &'static str, value: String| {
        answer
            .headers_mut()
            .insert(name, value.parse().expect("a plain header"));
    };
    // The header has whole seconds, the body the exact time.
    set("retry-after", format!("{}", seconds.ceil()));
    set("x-ratelimit-scope", scope.into());
    if scope == "global" {
        set("x-ratelimit-global", "true".into());
    } else {
        set("x-ratelimit-limit", "5".into());
        set("x-ratelimit-remaining", "0".into());
        set("x-ratelimit-reset-after", format!("{seconds:.3}"));
        set(
            "x-ratelimit-reset",
            format!("{:.3}", now_seconds() + seconds),
        );
        set("x-ratelimit-bucket", "abcd1234".into());
    }
    set("via", "1.1 google".into());
    answer
}

fn now_seconds() -> f64 {
    std::time::UNIX_EPOCH
        .elapsed()
        .expect("the clock is past 1970")
        .as_secs_f64()
}

fn html_page(status: u16) -> Response {
    let page = format!(
        "<html>\r\n<head><title>{status}</title></head>\r\n<body><center><h1>{status}</h1></center></body>\r\n</html>\r\n"
    );
    response(status, "text/html", page)
}

fn response(status: u16, content_type: &str, body: String) -> Response {
    let status = StatusCode::from_u16(status).expect("faults use real status codes");
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, content_type)
        .body(Body::from(body))
        .expect("valid headers")
}
