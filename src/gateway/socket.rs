//! Serves `parlor.sock`: takes requests of operators on this machine, and answers them through
//! `operations`.

use std::collections::HashMap;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{GatewayState, terminals};
use crate::doctor::{self, Depth};
use crate::operations::socket::{self, Socket};
use crate::operations::terminal::{FromTerminal, Visitor};
use crate::operations::wire::{self, Answered, Asked, FrameError, Greeting};
use crate::operations::{self, Event, Refusal, Reply, Request, Subject};
use crate::records::audit::Actor;

/// Clients at once. A further one is turned away.
const MOST_CLIENTS: usize = 16;
/// Requests and streams of a client at once. A further one is refused.
const MOST_OPEN: usize = 8;
/// Frames that wait to be written to a client. When full, its streams wait.
const QUEUE: usize = 32;
/// A client that asks nothing for so long, and waits for nothing, is let go.
const IDLE: Duration = Duration::from_secs(60);
/// A client that reads nothing for so long is let go.
const UNREAD: Duration = Duration::from_secs(10);
/// The pause after a connection could not be taken, as with too many open files.
const PAUSE: Duration = Duration::from_secs(1);
/// The time between two events of [`Subject::Status`].
const PULSE: Duration = Duration::from_secs(1);

const TOO_MANY: &str = "too many requests at once";
const STOPPING: &str = "the gateway is stopping";
const BROKEN: &str = "something broke while this was done; the log of the gateway says what";

/// Without a socket the gateway works, and only its operator's verbs do not reach it.
pub(super) fn open(state: &Arc<GatewayState>, tasks: &TaskTracker) {
    match socket::make(&state.home) {
        Ok(socket) => drop(tasks.spawn(serve(state.clone(), socket, tasks.clone()))),
        Err(error) => tracing::warn!(
            "verbs of the command line do not reach this gateway, because parlor.sock cannot be made: {error}"
        ),
    }
}

/// Takes clients until the gateway stops.
async fn serve(state: Arc<GatewayState>, socket: Socket, tasks: TaskTracker) {
    let places = Arc::new(Semaphore::new(MOST_CLIENTS));
    loop {
        let accepted = tokio::select! {
            accepted = socket.listener.accept() => accepted,
            () = state.stop.cancelled() => return,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!("a client of parlor.sock could not be taken: {error}");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let Some(actor) = owner_of(&stream) else {
            continue;
        };
        match places.clone().try_acquire_owned() {
            Ok(place) => {
                let client = Client {
                    state: state.clone(),
                    tasks: tasks.clone(),
                    actor,
                    gone: CancellationToken::new(),
                    _place: place,
                };
                state.clients.spawn(client.talk(stream));
            }
            Err(_) => turn_away(&stream),
        }
    }
}

/// The user of a client, if the user may give orders: the one who runs the gateway, or root.
fn owner_of(stream: &UnixStream) -> Option<Actor> {
    let uid = match stream.peer_cred() {
        Ok(peer) => peer.uid(),
        Err(error) => {
            tracing::warn!("a client of parlor.sock is not known: {error}");
            return None;
        }
    };
    if uid != nix::unistd::geteuid().as_raw() && uid != 0 {
        tracing::warn!(
            uid,
            "a client of parlor.sock was refused: it is another user's"
        );
        return None;
    }
    Some(operations::actor(uid))
}

fn turn_away(stream: &UnixStream) {
    let bye = Answered::Bye {
        reason: "too many programs talk to the gateway right now".to_owned(),
    };
    let frames = [
        serde_json::to_string(&Greeting::of_this_process()),
        serde_json::to_string(&bye),
    ];
    let text: String = frames
        .into_iter()
        .flatten()
        .map(|line| line + "\n")
        .collect();
    // A fresh connection has room for so little.
    drop(stream.try_write(text.as_bytes()));
}

/// A connected client.
struct Client {
    state: Arc<GatewayState>,
    tasks: TaskTracker,
    actor: Actor,
    /// Cancelled when the client reads no more.
    gone: CancellationToken,
    _place: OwnedSemaphorePermit,
}

impl Client {
    async fn talk(self, stream: UnixStream) {
        let (reading, writing) = stream.into_split();
        let (frames, waiting) = mpsc::channel(QUEUE);
        let writer = tokio::spawn(write_all(writing, waiting, self.gone.clone()));
        let streams = CancellationToken::new();
        let ended = self
            .take_requests(BufReader::new(reading), &frames, &streams)
            .await;
        if let Err(error) = ended {
            let bye = Answered::Bye {
                reason: error.to_string(),
            };
            // A client that reads nothing is not told.
            drop(frames.try_send(bye));
        }
        streams.cancel();
        // Requests under way still have their replies written.
        drop(frames);
        drop(writer.await);
    }

    async fn take_requests(
        &self,
        mut from: BufReader<tokio::net::unix::OwnedReadHalf>,
        frames: &mpsc::Sender<Answered>,
        streams: &CancellationToken,
    ) -> Result<(), FrameError> {
        let room = Arc::new(Semaphore::new(MOST_OPEN));
        let mut open: HashMap<u64, CancellationToken> = HashMap::new();
        // A terminal is shown the last answers of a gateway that stops.
        let mut end = self.state.stop.clone();
        while let Some(asked) = self.next(&mut from, &room, &end).await? {
            open.retain(|_, stream| !stream.is_cancelled());
            match asked {
                Asked::Stop { id } => {
                    if let Some(stream) = open.remove(&id) {
                        stream.cancel();
                    }
                }
                Asked::Ask { id, request } => {
                    let permit = match room.clone().try_acquire_owned() {
                        Ok(permit) if !self.state.stop.is_cancelled() => permit,
                        refused => {
                            let why = refused.map_or(TOO_MANY, |_| STOPPING);
                            let refusal = Refusal::failed(why);
                            drop(frames.send(Answered::Refused { id, refusal }).await);
                            continue;
                        }
                    };
                    let order = Order {
                        id,
                        frames: frames.clone(),
                        _permit: permit,
                    };
                    match *request {
                        Request::Terminal(request) => {
                            self.tasks
                                .spawn(order.for_terminal(self.state.clone(), request));
                        }
                        Request::Doctor => {
                            self.tasks.spawn(order.for_doctor(self.state.clone()));
                        }
                        Request::Watch(Subject::Terminal(visitor)) => {
                            let stream = streams.child_token();
                            open.insert(id, stream.clone());
                            end = stream.clone();
                            self.state.clients.spawn(order.visit(
                                self.state.clone(),
                                visitor,
                                stream,
                            ));
                        }
                        Request::Watch(Subject::Status) => {
                            let stream = streams.child_token();
                            open.insert(id, stream.clone());
                            self.tasks.spawn(order.stream(self.state.clone(), stream));
                        }
                        request => {
                            let (state, actor) = (self.state.clone(), self.actor.clone());
                            self.tasks.spawn(order.carry_out(state, actor, request));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The next frame. None when the client has no more to say, or at the end.
    async fn next(
        &self,
        from: &mut BufReader<tokio::net::unix::OwnedReadHalf>,
        room: &Semaphore,
        end: &CancellationToken,
    ) -> Result<Option<Asked>, FrameError> {
        let reading = wire::read(from, wire::MOST_ASKED_BYTES);
        tokio::pin!(reading);
        loop {
            tokio::select! {
                read = &mut reading => return read,
                () = end.cancelled() => return Ok(None),
                () = self.gone.cancelled() => return Ok(None),
                () = tokio::time::sleep(IDLE) => {
                    if room.available_permits() == MOST_OPEN {
                        return Ok(None);
                    }
                }
            }
        }
    }
}

/// A request under way.
pub(super) struct Order {
    id: u64,
    frames: mpsc::Sender<Answered>,
    _permit: OwnedSemaphorePermit,
}

impl Order {
    /// Goes on when the client leaves: a change is not left half done.
    async fn carry_out(self, state: Arc<GatewayState>, actor: Actor, request: Request) {
        let id = self.id;
        let running = AssertUnwindSafe(state.operations.run(&actor, request));
        let refused = |refusal| Answered::Refused { id, refusal };
        let answered = match running.catch_unwind().await {
            Ok(Ok(reply)) => Answered::Reply { id, reply },
            Ok(Err(refusal)) => refused(refusal),
            Err(_) => refused(Refusal::failed(BROKEN)),
        };
        drop(self.frames.send(answered).await);
    }

    async fn for_terminal(self, state: Arc<GatewayState>, request: FromTerminal) {
        let id = self.id;
        let answered = match terminals::answer(&state, request).await {
            Ok(told) => Answered::Reply {
                id,
                reply: Reply::Terminal(told),
            },
            Err(refusal) => Answered::Refused { id, refusal },
        };
        drop(self.frames.send(answered).await);
    }

    async fn for_doctor(self, state: Arc<GatewayState>) {
        let id = self.id;
        let answered = match doctor::in_gateway(&state.operations, Depth::Full).await {
            Ok(diagnosis) => Answered::Reply {
                id,
                reply: Reply::Doctor(Box::new(diagnosis)),
            },
            Err(refusal) => Answered::Refused { id, refusal },
        };
        drop(self.frames.send(answered).await);
    }

    /// Tells of the gateway until the client or the gateway stops.
    async fn stream(self, state: Arc<GatewayState>, ended: CancellationToken) {
        let events = async {
            loop {
                let Ok(status) = operations::status(&state.operations).await else {
                    return;
                };
                if self.event(Event::Status(Box::new(status))).await.is_err() {
                    return;
                }
                tokio::time::sleep(PULSE).await;
            }
        };
        tokio::select! {
            () = events => {}
            () = ended.cancelled() => {}
            () = state.stop.cancelled() => {}
        }
        self.end(&ended).await;
    }

    /// Serves a terminal until it leaves, or the gateway has written its last answer.
    async fn visit(self, state: Arc<GatewayState>, visitor: Visitor, ended: CancellationToken) {
        let serving = async {
            if let Err(refusal) = terminals::serve(&state, visitor, &self).await {
                let refused = Answered::Refused {
                    id: self.id,
                    refusal,
                };
                drop(self.frames.send(refused).await);
            }
        };
        tokio::select! {
            biased;
            () = serving => {}
            () = ended.cancelled() => {}
        }
        self.end(&ended).await;
    }

    async fn end(self, ended: &CancellationToken) {
        ended.cancel();
        drop(self.frames.send(Answered::End { id: self.id }).await);
    }

    pub(super) async fn event(&self, event: Event) -> Result<(), mpsc::error::SendError<Answered>> {
        self.frames
            .send(Answered::Event { id: self.id, event })
            .await
    }
}

/// Writes frames until all their senders are gone, or the client reads no more.
async fn write_all(
    mut to: OwnedWriteHalf,
    mut frames: mpsc::Receiver<Answered>,
    gone: CancellationToken,
) {
    let _gone = gone.drop_guard();
    if write(&mut to, &Greeting::of_this_process()).await.is_err() {
        return;
    }
    while let Some(frame) = frames.recv().await {
        if let Err(error) = write(&mut to, &frame).await {
            tracing::debug!("a client of parlor.sock is gone: {error}");
            return;
        }
    }
}

async fn write(to: &mut OwnedWriteHalf, frame: &impl serde::Serialize) -> io::Result<()> {
    timeout(UNREAD, wire::write(to, frame))
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
