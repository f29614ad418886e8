//! The HTTP side: reads calls in every encoding, applies faults and holds, writes answers in the
//! Bot API's envelope.
//!
//! <https://core.telegram.org/bots/api#making-requests>

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{
    ConnectInfo, DefaultBodyLimit, Form, FromRequest, Multipart, Query, Request, State,
};
use axum::http::{StatusCode, header};
use axum::response::Response;
use axum::{Json, Router};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::super::faults::HoldPoint;
use super::cuttable::{Connection, CuttableListener, Garbling};
use super::faults::Fault;
use super::journal::Outcome;
use super::methods;
use super::wire::{ApiError, int};
use super::{Shared, TOKEN, updates};

/// What Telegram takes in one call.
const MAX_BODY_BYTES: usize = 50 * 1024 * 1024;

pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let app = Router::new()
        .fallback(handle)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(shared)
        .into_make_service_with_connect_info::<Connection>();
    axum::serve(
        CuttableListener {
            listener,
            garbling: Garbling::default(),
        },
        app,
    )
    .await
    .expect("axum serves until aborted");
}

async fn handle(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(connection): ConnectInfo<Connection>,
    request: Request,
) -> Response {
    if let Some(file_id) = request
        .uri()
        .path()
        .strip_prefix(&format!("/file/bot{TOKEN}/files/"))
    {
        return file(&shared, file_id);
    }
    let Some((token, method)) = split_path(request.uri().path()) else {
        return answer(Err(ApiError::new(404, "Not Found")));
    };
    let (token, method) = (token.to_owned(), methods::canonical_name(method));
    let params = match read_params(request).await {
        Ok(params) => Arc::new(params),
        Err(error) => return answer(Err(error)),
    };

    let call = Admitted::new(&shared, method, params);
    let response = if token == TOKEN {
        call.run().await
    } else {
        Some(answer(Err(ApiError::new(401, "Unauthorized"))))
    };
    call.settle(response.as_ref());
    let behind = *shared.behind.lock().expect("nobody panicked");
    let date = chrono::Utc::now() - behind;
    let date = date.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let date = date.parse().expect("a plain header");
    response.map_or_else(
        || connection.cut(),
        |mut response| {
            response
                .headers_mut()
                .insert(axum::http::header::DATE, date);
            response
        },
    )
}

/// A journaled call with the fault and the holds that were in force when it came.
struct Admitted<'a> {
    shared: &'a Shared,
    number: usize,
    method: String,
    params: Arc<Value>,
    fault: Option<Fault>,
    before_effect: Vec<watch::Receiver<bool>>,
    before_answer: Vec<watch::Receiver<bool>>,
}

impl<'a> Admitted<'a> {
    fn new(shared: &'a Shared, method: String, params: Arc<Value>) -> Self {
        let mut world = shared.world();
        let number = world.journal.note(method.clone(), params.clone());
        let chat_id = int(&params, "chat_id");
        let fault = world.faults.take(&method, chat_id);
        let before_effect = world
            .faults
            .holds(&method, chat_id, HoldPoint::BeforeEffect);
        let before_answer = world
            .faults
            .holds(&method, chat_id, HoldPoint::BeforeAnswer);
        drop(world);
        shared.progress.send_replace(());
        Self {
            shared,
            number,
            method,
            params,
            fault,
            before_effect,
            before_answer,
        }
    }

    /// `None` means that the connection is to be cut.
    async fn run(&self) -> Option<Response> {
        released(&self.before_effect).await;
        let response = match self.fault {
            None => Some(answer(self.perform().await)),
            Some(Fault::Html(status)) => Some(html_page(status)),
            Some(Fault::DroppedBefore) => None,
            Some(Fault::DroppedAfter) => {
                let _took_effect = self.perform().await;
                None
            }
            Some(Fault::InvalidJson) => {
                let _took_effect = self.perform().await;
                Some(json_response(
                    200,
                    r#"{"ok":true,"result":{"message_"#.into(),
                ))
            }
            Some(Fault::HtmlAfter(status)) => {
                let _took_effect = self.perform().await;
                Some(html_page(status))
            }
            Some(fault @ Fault::RefusedAfter(..)) => {
                let _took_effect = self.perform().await;
                fault.api_error().map(|error| answer(Err(error)))
            }
            Some(fault) => fault.api_error().map(|error| answer(Err(error))),
        };
        released(&self.before_answer).await;
        response
    }

    /// The whole answer, with its envelope.
    async fn perform(&self) -> Result<Vec<u8>, ApiError> {
        if self.method == "getUpdates" {
            return updates::get_updates(self.shared, &self.params).await;
        }
        let result = methods::perform(&mut self.shared.world(), &self.method, &self.params);
        self.shared.progress.send_replace(());
        if self.method == "setWebhook" {
            self.shared.arrivals.send_replace(());
        }
        let dress = self.shared.world().answers;
        result.map(|result| dress.envelope(&self.method, result))
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

fn file(shared: &Shared, file_id: &str) -> Response {
    match shared.world().files.get(file_id) {
        Some(content) => Response::new(Body::from(content.clone())),
        None => answer(Err(ApiError::new(404, "Not Found"))),
    }
}

/// `/bot<token>/<method>`
fn split_path(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("/bot")?
        .split_once('/')
        .filter(|(_, method)| !method.is_empty() && !method.contains('/'))
}

/// Parameters of the query and the body, of which the body wins.
async fn read_params(request: Request) -> Result<Value, ApiError> {
    let query = Query::<Vec<(String, String)>>::try_from_uri(request.uri())
        .map_or_else(|_| Vec::new(), |Query(pairs)| pairs);
    let mut params: Map<String, Value> = query.into_iter().map(typed).collect();
    let content_type = request
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("")
        .to_owned();
    if content_type.starts_with("application/json") {
        let Json(body) = Json::<Map<String, Value>>::from_request(request, &())
            .await
            .map_err(unreadable)?;
        params.extend(body);
    } else if content_type.starts_with("application/x-www-form-urlencoded") {
        let Form(pairs) = Form::<Vec<(String, String)>>::from_request(request, &())
            .await
            .map_err(unreadable)?;
        params.extend(pairs.into_iter().map(typed));
    } else if content_type.starts_with("multipart/form-data") {
        // Read to its very end first: a connection with something left in it is closed after the
        // answer.
        let (head, body) = request.into_parts();
        let bytes = axum::body::to_bytes(body, MAX_BODY_BYTES)
            .await
            .map_err(unreadable)?;
        let request = Request::from_parts(head, bytes.into());
        let mut parts = Multipart::from_request(request, &())
            .await
            .map_err(unreadable)?;
        while let Some(part) = parts.next_field().await.map_err(unreadable)? {
            let name = part.name().unwrap_or("").to_owned();
            match part.file_name().map(str::to_owned) {
                Some(file_name) => {
                    let content = part.bytes().await.map_err(unreadable)?;
                    let text = std::str::from_utf8(&content).ok();
                    params.insert(
                        name,
                        json!({ "file_name": file_name, "size": content.len(), "text": text }),
                    );
                }
                None => params.extend([typed((name, part.text().await.map_err(unreadable)?))]),
            }
        }
    }
    Ok(Value::Object(params))
}

fn unreadable(error: impl std::fmt::Display) -> ApiError {
    ApiError::new(400, format!("Bad Request: can't parse request: {error}"))
}

/// Outside JSON all values are text; numbers, flags and objects are written as JSON inside it.
fn typed((name, value): (String, String)) -> (String, Value) {
    const ALWAYS_TEXT: [&str; 4] = ["text", "caption", "callback_query_id", "url"];
    let parsed = if ALWAYS_TEXT.contains(&name.as_str()) {
        None
    } else {
        serde_json::from_str(&value).ok()
    };
    (name, parsed.unwrap_or(Value::String(value)))
}

fn answer(result: Result<Vec<u8>, ApiError>) -> Response {
    match result {
        Ok(body) => json_response(200, body),
        Err(error) => json_response(error.status, error.json().to_string().into()),
    }
}

fn json_response(status: u16, body: Vec<u8>) -> Response {
    response(status, "application/json", body)
}

fn html_page(status: u16) -> Response {
    let page = format!(
        "<html>\r\n<head><title>{status}</title></head>\r\n<body><center><h1>{status}</h1></center></body>\r\n</html>\r\n"
    );
    response(status, "text/html", page.into())
}

fn response(status: u16, content_type: &str, body: Vec<u8>) -> Response {
    let status = StatusCode::from_u16(status).expect("faults use real status codes");
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, content_type)
        .body(Body::from(body))
        .expect("valid headers")
}
