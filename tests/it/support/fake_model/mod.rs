//! A model server on loopback that speaks every dialect Parlor speaks, and does what a test tells
//! it to.
//!
//! The test holds a `FakeModel`; clones are the same server. Nothing here depends on the order of
//! events or on time: waiting is for a fact ("three requests have come"), never for a while, unless
//! `delay` asks for one.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::serve::ListenerExt;
use futures_util::{Stream, stream};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::AbortHandle;

mod dialects;
mod marks;

pub(crate) use dialects::Dialect;
use dialects::Frames;

/// A test that waits longer than this waits for something that will not come.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the server does with one request.
#[derive(Debug, Clone)]
pub(crate) enum Script {
    Text(String),
    ToolCalls(Vec<(String, Value)>),
    TextAndToolCalls(String, Vec<(String, Value)>),
    /// A call with this number, where calls have numbers.
    FarToolCall(String, usize),
    /// Refuses with this status.
    Status {
        code: u16,
        headers: Vec<(String, String)>,
        body: String,
    },
    /// Says the text, then sends an error in the dialect's way, though the status was 200.
    ErrorInStream {
        after: String,
        kind: String,
        message: String,
    },
    /// Anthropic's dialect only: a signed thought, then the calls.
    ThoughtAndToolCalls(String, Vec<(String, Value)>),
    /// Ends in order, but because of a limit and not because all was said.
    Limited(Limited),
    /// Does not stop by itself before so much was sent as no client should take.
    Flood(Flood),
    /// Sends so many pieces (words) of the text and stops.
    Cut {
        text: String,
        after: usize,
        how: Cut,
    },
    /// Sends so many pieces of the text, waits for `release`, and goes on.
    Pause {
        text: String,
        after: usize,
    },
    /// The same with several pauses; each `release` ends one.
    Pauses {
        text: String,
        after: Vec<usize>,
    },
    /// Waits for `release` before it sends anything.
    Held(Box<Script>),
}

/// As much of an answer as a limit allowed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Limited {
    pub(crate) thought: String,
    pub(crate) text: String,
    /// With their arguments as far as they came.
    pub(crate) calls: Vec<(String, String)>,
    pub(crate) by: Limit,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Limit {
    #[default]
    Tokens,
    /// Only Anthropic tells it from the other.
    Window,
}

/// What a server sends without end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flood {
    Text,
    Thoughts,
    /// Of one tool call. Where a dialect has no pieces of arguments, they are in one event.
    Arguments,
    Calls,
    /// An event that never ends.
    Event,
    /// An event of many lines that never ends.
    Lines,
    /// A page with status 500.
    ErrorPage,
}

impl Flood {
    pub(crate) const ALL: [Self; 7] = [
        Self::Text,
        Self::Thoughts,
        Self::Arguments,
        Self::Calls,
        Self::Event,
        Self::Lines,
        Self::ErrorPage,
    ];
    /// The end of a flood, for a client that takes everything.
    pub(crate) const BYTES: usize = 48 * 1024 * 1024;
}

/// How an answer stops in the middle.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cut {
    /// The body ends in order, only too early.
    Ended,
    /// The connection breaks.
    Torn,
}

impl Script {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Cut off after this at the most tokens that an answer may have.
    pub(crate) fn limited(text: impl Into<String>) -> Self {
        Self::Limited(Limited {
            text: text.into(),
            ..Limited::default()
        })
    }

    pub(crate) fn tool_call(name: &str, arguments: Value) -> Self {
        Self::ToolCalls(vec![(name.to_owned(), arguments)])
    }

    /// The same, but not before `release`.
    pub(crate) fn held(self) -> Self {
        Self::Held(Box::new(self))
    }

    pub(crate) fn status(code: u16, body: &str) -> Self {
        Self::Status {
            code,
            headers: Vec::new(),
            body: body.to_owned(),
        }
    }

    pub(crate) fn with_header(self, name: &str, value: &str) -> Self {
        match self {
            Self::Status {
                code,
                mut headers,
                body,
            } => {
                headers.push((name.to_owned(), value.to_owned()));
                Self::Status {
                    code,
                    headers,
                    body,
                }
            }
            other => panic!("only a status has headers, not {other:?}"),
        }
    }
}

/// A request as it came, with what all dialects have in common read out of it.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) dialect: Dialect,
    pub(crate) model: String,
    pub(crate) system: String,
    /// Roles are `user`, `assistant`, `call` (the text is the tool's name and its arguments) and
    /// `tool` (its result). Marks are short, see [`marks`].
    pub(crate) messages: Vec<(String, String)>,
    pub(crate) tools: Vec<String>,
    pub(crate) raw: Value,
    /// Path and query, without the part that chooses the dialect.
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) api_key: Option<String>,
    /// Size of the body.
    pub(crate) bytes: usize,
    pub(crate) arrived: Instant,
    /// When the last piece of the answer was handed to the wire.
    pub(crate) answered: Option<Instant>,
}

impl Request {
    /// What the model was told last: a person's words or a tool's result.
    pub(crate) fn last_text(&self) -> &str {
        self.messages.last().map_or("", |(_, text)| text.as_str())
    }

    /// Whether the text is anywhere in the request.
    pub(crate) fn has(&self, text: &str) -> bool {
        let said = || self.messages.iter().any(|(_, said)| said.contains(text));
        self.raw.to_string().contains(text) || said()
    }

    /// What tools have said, in the order of the calls.
    pub(crate) fn results(&self) -> Vec<&str> {
        self.messages
            .iter()
            .filter(|(role, _)| role == "tool")
            .map(|(_, text)| text.as_str())
            .collect()
    }
}

/// Tokens that every answer reports. Cached ones are part of the input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tokens {
    pub(crate) input: u64,
    pub(crate) cached: u64,
    pub(crate) output: u64,
}

#[derive(Clone)]
pub(crate) struct FakeModel {
    server: Arc<Server>,
    shared: Arc<Shared>,
}

/// The list of models, as every dialect finds it.
async fn models() -> axum::Json<Value> {
    axum::Json(json!({ "data": [{ "id": "any" }], "models": [{ "name": "any" }] }))
}

impl FakeModel {
    /// Listens on a free port of loopback, in the current runtime, until the last clone is gone.
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a free port");
        let address = listener
            .local_addr()
            .expect("a bound listener has an address");
        // Small pieces must not wait for each other, as they do not at a real provider.
        let listener =
            listener.tap_io(|stream| stream.set_nodelay(true).expect("TCP has no-delay"));
        let shared = Arc::new(Shared::default());
        let router = Router::new().route("/{*path}", axum::routing::post(serve).get(models));
        let router = router
            .layer(DefaultBodyLimit::disable())
            .with_state(shared.clone());
        let task = tokio::spawn(async move {
            axum::serve(listener, router)
                .await
                .expect("the fake model serves");
        });
        Self {
            server: Arc::new(Server {
                address,
                task: task.abort_handle(),
            }),
            shared,
        }
    }

    /// What goes into `base_url` of a provider; ends with a slash.
    pub(crate) fn base_url(&self, dialect: Dialect) -> String {
        format!("http://{}/{}", self.server.address, dialect.prefix())
    }

    /// The next request gets this, before any rule.
    pub(crate) fn enqueue(&self, script: Script) {
        self.shared.plan().queue.push_back((String::new(), script));
    }

    /// The next request whose last text contains this gets the script.
    pub(crate) fn enqueue_when(&self, contains: &str, script: Script) {
        self.shared
            .plan()
            .queue
            .push_back((contains.to_owned(), script));
    }

    /// From now on every request whose last text contains this gets the text.
    pub(crate) fn reply_when(&self, contains: &str, text: &str) {
        self.shared
            .plan()
            .rules
            .push((contains.to_owned(), text.to_owned()));
    }

    /// Answers what no script and no rule answers. At first that is `re: <last text>`, or `tool
    /// said: <result>`.
    pub(crate) fn answer_with(&self, answer: impl Fn(&Request) -> Script + Send + 'static) {
        self.shared.plan().answer = Box::new(answer);
    }

    pub(crate) fn report_tokens(&self, tokens: Tokens) {
        self.shared.plan().tokens = tokens;
    }

    /// From now on every request is answered this much later.
    pub(crate) fn delay(&self, delay: Duration) {
        self.shared.plan().delay = delay;
    }

    /// From now on requests are taken in, but none is answered before `release`.
    pub(crate) fn hold(&self) {
        self.shared.gate.send_modify(|gate| gate.held = true);
    }

    /// Lets everything go on that waits: for `hold`, in `Script::Held`, in `Script::Pause`.
    pub(crate) fn release(&self) {
        self.shared.gate.send_modify(|gate| {
            gate.held = false;
            gate.releases += 1;
        });
    }

    /// All requests so far, in order of arrival.
    pub(crate) fn journal(&self) -> Vec<Request> {
        self.shared.plan().journal.clone()
    }

    /// The requests whose last text contains this.
    pub(crate) fn asked_about(&self, text: &str) -> Vec<Request> {
        self.journal()
            .into_iter()
            .filter(|request| request.last_text().contains(text))
            .collect()
    }

    pub(crate) fn last_request(&self) -> Request {
        self.journal().pop().expect("a request has come")
    }

    /// Requests that came and are neither answered in full nor given up by their client.
    pub(crate) fn open_now(&self) -> usize {
        self.shared.facts.borrow().open
    }

    /// Requests since the start.
    pub(crate) fn requests(&self) -> usize {
        self.shared.facts.borrow().requests
    }

    /// The most requests that were open at the same time.
    pub(crate) fn most_at_once(&self) -> usize {
        self.shared.facts.borrow().most_at_once
    }

    /// How often a client went away before its answer was complete.
    pub(crate) fn disconnects(&self) -> usize {
        self.shared.facts.borrow().disconnects
    }

    /// Bytes of floods that clients took, or that the system took for them.
    pub(crate) fn flooded(&self) -> usize {
        self.shared.facts.borrow().flooded
    }

    /// Waits until so many requests have come since the start.
    pub(crate) async fn wait_for_requests(&self, count: usize) {
        self.wait_until(&format!("{count} requests"), |facts| {
            facts.requests >= count
        })
        .await;
    }

    /// Waits until so many requests are open at this moment.
    pub(crate) async fn wait_for_open(&self, count: usize) {
        self.wait_until(&format!("{count} open requests"), |facts| {
            facts.open == count
        })
        .await;
    }

    /// Waits until a client has gone away in the middle.
    pub(crate) async fn wait_for_disconnect(&self) {
        self.wait_until("a disconnect", |facts| facts.disconnects > 0)
            .await;
    }

    async fn wait_until(&self, what: &str, come_true: impl FnMut(&Facts) -> bool) {
        let mut facts = self.shared.facts.subscribe();
        let waited = tokio::time::timeout(PATIENCE, facts.wait_for(come_true)).await;
        if waited.is_err() {
            panic!(
                "no {what} in {PATIENCE:?}; now {:?}, journal: {:#?}",
                self.shared.facts.borrow(),
                self.journal()
            );
        }
    }
}

struct Server {
    address: SocketAddr,
    task: AbortHandle,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the handlers and the test share. Locks are short and never held over an await.
#[derive(Default)]
struct Shared {
    plan: Mutex<Plan>,
    gate: watch::Sender<Gate>,
    facts: watch::Sender<Facts>,
}

struct Plan {
    /// What the last text must contain, and what is done then. Each entry is used once.
    queue: VecDeque<(String, Script)>,
    rules: Vec<(String, String)>,
    answer: Box<dyn Fn(&Request) -> Script + Send>,
    tokens: Tokens,
    delay: Duration,
    journal: Vec<Request>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            rules: Vec::new(),
            answer: Box::new(echo),
            tokens: Tokens {
                input: 105,
                cached: 90,
                output: 7,
            },
            delay: Duration::ZERO,
            journal: Vec::new(),
        }
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct Gate {
    held: bool,
    releases: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct Facts {
    requests: usize,
    open: usize,
    most_at_once: usize,
    disconnects: usize,
    flooded: usize,
}

impl Shared {
    fn plan(&self) -> std::sync::MutexGuard<'_, Plan> {
        self.plan
            .lock()
            .expect("no test panics with the plan in its hands")
    }

    /// Writes the request down and decides, in one step, so that two at once cannot get the same
    /// script.
    fn take_in(&self, request: Request) -> Taken {
        let mut plan = self.plan();
        let script = choose(&mut plan, &request);
        plan.journal.push(request);
        Taken {
            number: plan.journal.len() - 1,
            script,
            tokens: plan.tokens,
            delay: plan.delay,
        }
    }

    async fn wait_while(&self, mut waiting: impl FnMut(&Gate) -> bool) {
        let mut gate = self.gate.subscribe();
        let _ = gate.wait_for(|gate| !waiting(gate)).await;
    }
}

/// A request that is in the journal, with what is to be done about it.
struct Taken {
    /// Its place in the journal.
    number: usize,
    script: Script,
    tokens: Tokens,
    delay: Duration,
}

fn choose(plan: &mut Plan, request: &Request) -> Script {
    let last = request.last_text();
    if let Some(index) = plan
        .queue
        .iter()
        .position(|(contains, _)| last.contains(contains.as_str()))
    {
        return plan.queue.remove(index).expect("position found it").1;
    }
    match plan
        .rules
        .iter()
        .find(|(contains, _)| last.contains(contains.as_str()))
    {
        Some((_, text)) => Script::Text(text.clone()),
        None => (plan.answer)(request),
    }
}

fn echo(request: &Request) -> Script {
    match request.messages.last() {
        Some((role, text)) if role == "tool" => Script::Text(format!("tool said: {text}")),
        _ => Script::Text(format!("re: {}", request.last_text())),
    }
}

async fn serve(
    State(shared): State<Arc<Shared>>,
    Path(path): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let Some(dialect) = Dialect::of_path(&path) else {
        return status(404, &[], format!("the fake model does not know {path}"));
    };
    let request = dialect.read(&path, query.as_deref(), headers, &body);
    let model = request.model.clone();
    let Taken {
        number,
        script,
        tokens,
        delay,
    } = shared.take_in(request);
    // Before the request counts as come: what a test releases afterwards must count for this one.
    let released = shared.gate.borrow().releases;
    let mut open = Open::new(shared.clone(), number);

    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    shared.wait_while(|gate| gate.held).await;
    let script = match script {
        Script::Held(script) => {
            shared.wait_while(|gate| gate.releases == released).await;
            *script
        }
        script => script,
    };
    let frames = Frames {
        dialect,
        model,
        tokens,
    };
    match script {
        Script::Text(text) => streamed(frames.answer(&text, &[]), open),
        Script::ToolCalls(calls) => streamed(frames.answer("", &calls), open),
        Script::TextAndToolCalls(text, calls) => streamed(frames.answer(&text, &calls), open),
        Script::FarToolCall(name, number) => streamed(frames.far_call(&name, number), open),
        Script::ThoughtAndToolCalls(thought, calls) => {
            streamed(frames.thoughtful(&thought, &calls), open)
        }
        Script::Limited(limited) => streamed(frames.limited(&limited), open),
        Script::Flood(flood) => flooding(flood, frames, open),
        Script::Status {
            code,
            headers,
            body,
        } => {
            open.complete();
            status(code, &headers, body)
        }
        Script::ErrorInStream {
            after,
            kind,
            message,
        } => streamed(frames.failing(&after, &kind, &message), open),
        Script::Cut { text, after, how } => streamed(frames.cut(&text, after, how), open),
        Script::Pause { text, after } => streamed(frames.pausing(&text, &[after], released), open),
        Script::Pauses { text, after } => streamed(frames.pausing(&text, &after, released), open),
        Script::Held(_) => panic!("a held script holds another held one"),
    }
}

fn status(code: u16, headers: &[(String, String)], body: String) -> Response<Body> {
    let mut response =
        Response::builder().status(StatusCode::from_u16(code).expect("a status code"));
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response
        .body(Body::from(body))
        .expect("headers of the script are valid")
}

/// One thing that happens to the body of an answer.
#[derive(Debug, Clone)]
enum Step {
    Send(String),
    /// Until somebody calls `release` more often than this.
    WaitForRelease(u64),
    Tear,
}

fn streamed(steps: Vec<Step>, open: Open) -> Response<Body> {
    let body = Body::from_stream(body(steps.into(), open));
    Response::builder()
        .header("content-type", "text/event-stream")
        .body(body)
        .expect("a fixed header is valid")
}

fn flooding(flood: Flood, frames: Frames, open: Open) -> Response<Body> {
    let sending = stream::unfold(
        (0, 0, frames, open),
        move |(number, sent, frames, mut open)| async move {
            if sent >= Flood::BYTES {
                open.complete();
                return None;
            }
            let piece = frames.flood(flood, number);
            open.shared
                .facts
                .send_modify(|facts| facts.flooded += piece.len());
            Some((
                Ok::<_, Torn>(piece.clone()),
                (number + 1, sent + piece.len(), frames, open),
            ))
        },
    );
    let code = if flood == Flood::ErrorPage { 500 } else { 200 };
    let response = Response::builder()
        .status(code)
        .header("content-type", "text/event-stream");
    response
        .body(Body::from_stream(sending))
        .expect("a fixed header is valid")
}

fn body(steps: VecDeque<Step>, open: Open) -> impl Stream<Item = Result<String, Torn>> {
    stream::unfold((steps, open), |(mut steps, mut open)| async move {
        loop {
            let step = steps.pop_front()?;
            // A client may leave as soon as it has the last piece; that is no disconnect.
            if steps.is_empty() {
                open.complete();
            }
            match step {
                Step::Send(text) => return Some((Ok(text), (steps, open))),
                Step::WaitForRelease(released) => {
                    open.shared
                        .wait_while(|gate| gate.releases == released)
                        .await;
                }
                Step::Tear => {
                    // The server writes what it has when it finds nothing more to send; after an
                    // error it would not.
                    tokio::task::yield_now().await;
                    return Some((Err(Torn), (steps, open)));
                }
            }
        }
    })
}

/// An error of a body makes the server break the connection.
#[derive(Debug, thiserror::Error)]
#[error("torn on purpose")]
struct Torn;

/// Counts a request as open while it lives; dropped before `complete`, the client has gone away.
struct Open {
    shared: Arc<Shared>,
    /// The request's place in the journal.
    number: usize,
    complete: bool,
}

impl Open {
    fn new(shared: Arc<Shared>, number: usize) -> Self {
        shared.facts.send_modify(|facts| {
            facts.requests += 1;
            facts.open += 1;
            facts.most_at_once = facts.most_at_once.max(facts.open);
        });
        Self {
            shared,
            number,
            complete: false,
        }
    }

    fn complete(&mut self) {
        self.complete = true;
        self.shared.plan().journal[self.number].answered = Some(Instant::now());
        self.shared.facts.send_modify(|facts| facts.open -= 1);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.complete {
            self.shared.facts.send_modify(|facts| {
                facts.open -= 1;
                facts.disconnects += 1;
            });
        }
    }
}
