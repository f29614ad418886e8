//! Connections from outside: a limited number, and silent connections are closed.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

use crate::open_files;

/// A caller silent for this long is hung up on. Every call takes less.
const SILENCE: Duration = Duration::from_secs(60);

/// Takes calls as long as there is room. The others wait with the system, as they do while we are
/// busy.
pub(super) struct Callers {
    listener: TcpListener,
    room: Arc<Semaphore>,
}

/// A caller. Hanging up gives its room to the next.
pub(super) struct Caller {
    stream: TcpStream,
    silence: Pin<Box<Sleep>>,
    _room: OwnedSemaphorePermit,
}

impl Callers {
    pub(super) fn new(listener: TcpListener) -> Self {
        Callers {
            listener,
            room: Arc::new(Semaphore::new(open_files::shares().callers)),
        }
    }
}

impl Listener for Callers {
    type Io = Caller;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Caller, SocketAddr) {
        let room = self
            .room
            .clone()
            .acquire_owned()
            .await
            .expect("it is never closed");
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (
            Caller {
                stream,
                silence: Box::pin(tokio::time::sleep(SILENCE)),
                _room: room,
            },
            address,
        )
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl AsyncRead for Caller {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(context, buffer) {
            self.silence.as_mut().reset(Instant::now() + SILENCE);
            return Poll::Ready(read);
        }
        self.silence
            .as_mut()
            .poll(context)
            .map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for Caller {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
