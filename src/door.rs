//! A door for HTTP calls from outside: the server of the webhook, and of every other page of ours.
//!
//! A caller proves itself with the head of a call. Until then a connection has a few seconds, and
//! makes room for newer connections, so that strangers keep no known caller out.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, Response, header};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::open_files;

/// Time for the head of a stranger's call.
const HEAD_WITHIN: Duration = Duration::from_secs(5);
/// Time for a call, from the end of its head to the beginning of its answer, and for a stranger's
/// whole answer.
const CALL_WITHIN: Duration = Duration::from_secs(30);
/// Time of a known caller between two pieces of its answer, and for sending the head of its next
/// call. A stream of events goes on for as long as it is read.
const IDLE: Duration = Duration::from_secs(60);
/// How long the end of the server waits for running calls.
const FINISH_WITHIN: Duration = Duration::from_secs(5);
/// The pause after a connection could not be taken, such as at the limit of open files.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// Bytes of a head, and of the part of a body held for the application.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// Whether the head of a call proves its caller.
pub(crate) type Knows = Arc<dyn Fn(&Parts) -> bool + Send + Sync>;

/// An extension of calls from known callers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known;

/// Serves until `stop` is cancelled and the running calls are answered.
pub(crate) async fn serve(
    listener: TcpListener,
    knows: Knows,
    app: Router,
    stop: &CancellationToken,
) {
    let guests = Guests::default();
    let (calls, app) = (TaskTracker::new(), TowerToHyperService::new(app));
    loop {
        let taken = tokio::select! {
            () = stop.cancelled() => break,
            taken = listener.accept() => taken,
        };
        match taken {
            Ok((stream, _)) => {
                if let Some(guest) = guests.let_in(open_files::shares().callers) {
                    let (knows, app, stop) = (knows.clone(), app.clone(), stop.clone());
                    calls.spawn(guests.clone().host(guest, stream, knows, app, stop));
                }
                // Connections that have to go are closed before further connections are taken.
                tokio::task::yield_now().await;
            }
            Err(error) => pause(&error).await,
        }
    }
    drop(listener);
    calls.close();
    // Later calls are cut off, and repeated by their callers.
    drop(tokio::time::timeout(FINISH_WITHIN, calls.wait()).await);
    guests.close_all();
}

/// A caller that hung up while waiting is no reason for a pause.
async fn pause(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if !matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    ) {
        tracing::warn!("a connection from outside could not be taken: {error}");
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

/// A connection from outside.
struct Guest {
    is_known: AtomicBool,
    /// Moved on with each step of a call.
    deadline: Mutex<Instant>,
    /// Cancelled when the connection has to make room.
    leave: CancellationToken,
}

impl Guest {
    fn new() -> Self {
        Guest {
            is_known: AtomicBool::new(false),
            deadline: Mutex::new(Instant::now() + HEAD_WITHIN),
            leave: CancellationToken::new(),
        }
    }

    fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    fn give(&self, time: Duration) {
        *self.deadline() = Instant::now() + time;
    }

    fn deadline(&self) -> MutexGuard<'_, Instant> {
        self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when the connection has to end.
    async fn overdue(&self) {
        let late = async {
            loop {
                let deadline = *self.deadline();
                if deadline <= Instant::now() {
                    return;
                }
                tokio::time::sleep_until(deadline).await;
            }
        };
        tokio::select! {
            () = late => {}
            () = self.leave.cancelled() => {}
        }
    }
}

/// The open connections, the oldest first. Cheap to clone.
#[derive(Clone, Default)]
struct Guests(Arc<Mutex<VecDeque<Arc<Guest>>>>);

impl Guests {
    fn open(&self) -> MutexGuard<'_, VecDeque<Arc<Guest>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The oldest stranger makes room. None where all connections are of known callers.
    fn let_in(&self, most: usize) -> Option<Arc<Guest>> {
        let mut open = self.open();
        if open.len() >= most {
            let stranger = open.iter().position(|guest| !guest.is_known())?;
            if let Some(stranger) = open.remove(stranger) {
                stranger.leave.cancel();
            }
        }
        let guest = Arc::new(Guest::new());
        open.push_back(guest.clone());
        Some(guest)
    }

    fn close_all(&self) {
        self.open().iter().for_each(|guest| guest.leave.cancel());
    }

    /// Serves a connection until its end.
    async fn host(
        self,
        guest: Arc<Guest>,
        stream: TcpStream,
        knows: Knows,
        app: TowerToHyperService<Router>,
        stop: CancellationToken,
    ) {
        let answering = guest.clone();
        let service = service_fn(move |request| {
            answer(answering.clone(), knows.clone(), app.clone(), request)
        });
        let mut connection = std::pin::pin!(
            http1::Builder::new()
                // The deadline of the connection stands in for it.
                .header_read_timeout(None)
                .max_buf_size(MAX_HEAD_BYTES)
                .serve_connection(TokioIo::new(stream), service)
        );
        tokio::select! {
            // An error is the caller's: a broken head, or a connection that was cut.
            _ = connection.as_mut() => {}
            () = guest.overdue() => {}
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                if guest.is_known() {
                    tokio::select! {
                        _ = connection => {}
                        () = guest.overdue() => {}
                    }
                }
            }
        }
        self.open().retain(|other| !Arc::ptr_eq(other, &guest));
    }
}

/// A stranger's connection ends with its first answer.
async fn answer(
    guest: Arc<Guest>,
    knows: Knows,
    app: TowerToHyperService<Router>,
    request: Request<Incoming>,
) -> Result<Response<Body>, std::convert::Infallible> {
    guest.give(CALL_WITHIN);
    let (mut head, body) = request.into_parts();
    let is_known = knows(&head);
    if is_known {
        guest.is_known.store(true, Ordering::Relaxed);
        head.extensions.insert(Known);
    }
    let mut response = app.call(Request::from_parts(head, body)).await?;
    if is_known {
        guest.give(IDLE);
        response = response.map(|body| Body::new(Paced { body, guest }));
    } else {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    Ok(response)
}

/// The body of an answer, each piece of which gives its reader time for the next.
struct Paced {
    body: Body,
    guest: Arc<Guest>,
}

impl hyper::body::Body for Paced {
    type Data = <Body as hyper::body::Body>::Data;
    type Error = <Body as hyper::body::Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if polled.is_ready() {
            self.guest.give(IDLE);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
