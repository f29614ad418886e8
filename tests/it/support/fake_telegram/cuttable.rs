//! A listener whose connections a handler can cut instead of answering, and whose bytes a test can
//! garble on their way out.

use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::response::Response;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// Lets a handler cut the connection its request came on.
#[derive(Clone, Default)]
pub(crate) struct Connection {
    is_cut: Arc<AtomicBool>,
}

impl Connection {
    /// The returned response never reaches the wire: writing it fails, and with that the connection
    /// ends.
    pub(crate) fn cut(&self) -> Response {
        self.is_cut.store(true, Ordering::Release);
        Response::default()
    }
}

impl Connected<IncomingStream<'_, CuttableListener>> for Connection {
    fn connect_info(stream: IncomingStream<'_, CuttableListener>) -> Self {
        stream.io().connection.clone()
    }
}

/// Bytes that become others of the same length on the wire, so that every length that was told
/// beforehand stays true.
#[derive(Clone, Default)]
pub(crate) struct Garbling(Arc<Mutex<Vec<Swap>>>);

struct Swap {
    written: Vec<u8>,
    sent: Vec<u8>,
}

impl Garbling {
    pub(crate) fn add(&self, written: &[u8], sent: &[u8]) {
        assert_eq!(
            written.len(),
            sent.len(),
            "only bytes of the same length can be swapped"
        );
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Swap {
                written: written.to_vec(),
                sent: sent.to_vec(),
            });
    }

    fn apply<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let mut garbled = Cow::Borrowed(bytes);
        for Swap { written, sent } in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            while let Some(at) = garbled
                .windows(written.len())
                .position(|window| window == written)
            {
                garbled.to_mut()[at..at + sent.len()].copy_from_slice(sent);
            }
        }
        garbled
    }
}

pub(crate) struct CuttableListener {
    pub(crate) listener: TcpListener,
    pub(crate) garbling: Garbling,
}

impl Listener for CuttableListener {
    type Io = CuttableStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (CuttableStream, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.listener).await;
        stream.set_nodelay(true).expect("TCP has no-delay");
        (
            CuttableStream {
                stream,
                connection: Connection::default(),
                garbling: self.garbling.clone(),
            },
            address,
        )
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

pub(crate) struct CuttableStream {
    stream: TcpStream,
    connection: Connection,
    garbling: Garbling,
}

impl AsyncRead for CuttableStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for CuttableStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.connection.is_cut.load(Ordering::Acquire) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let bytes = self.garbling.apply(bytes);
        Pin::new(&mut self.stream).poll_write(context, &bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
