//! A line between the gateway and a fake, which a test can break in the ways in which networks
//! break. The fake on its other side knows nothing of that.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, copy_bidirectional, sink,
};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// How the line works now. A change cuts all connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Open,
    /// Nothing listens.
    Refused,
    /// A connection is closed as soon as it is made.
    DroppedBefore,
    /// Requests arrive and take effect; the connection ends in the place of the answer.
    DroppedAfter,
    /// A connection is made, and then nothing is heard on it.
    Silent,
    /// Every byte of an answer comes by itself.
    Trickling,
    /// Something on the way answers 502 with a page for people.
    Page,
    /// Something on the way answers with a page that never ends.
    Endless,
    /// The answer is not HTTP at all.
    Noise,
}

pub(crate) struct Line {
    address: SocketAddr,
    way: watch::Sender<Way>,
    facts: Arc<watch::Sender<Facts>>,
    task: AbortHandle,
}

#[derive(Debug, Default, Clone, Copy)]
struct Facts {
    connections: usize,
    /// The most bytes of an endless page that a connection took.
    endless: usize,
    /// The port is taken, but nothing listens on it.
    is_deaf: bool,
}

/// As much of an endless page as a client gets that takes everything.
const ENDLESS_BYTES: usize = 256 * 1024 * 1024;
const PATIENCE: Duration = Duration::from_secs(20);

impl Line {
    /// `far` is `http://ADDRESS`, with or without a path.
    pub(crate) async fn to(far: &str) -> Self {
        let far = far.trim_start_matches("http://");
        let far: SocketAddr = (far.split('/').next().unwrap_or_default())
            .parse()
            .expect("the address of a fake");
        let listener = listen(bind("127.0.0.1:0".parse().expect("an address")));
        let address = listener.local_addr().expect("a bound listener");
        let (way, ways) = watch::channel(Way::Open);
        let facts = Arc::new(watch::Sender::default());
        let task = tokio::spawn(serve(listener, far, ways, facts.clone()));
        Line {
            address,
            way,
            facts,
            task: task.abort_handle(),
        }
    }

    /// The address of the fake's own, but over this line.
    pub(crate) fn instead_of(&self, url: &str) -> String {
        let rest = url.trim_start_matches("http://");
        let path = rest.split_once('/').map_or("", |(_, path)| path);
        let slash = if rest.contains('/') { "/" } else { "" };
        format!("http://{}{slash}{path}", self.address)
    }

    pub(crate) async fn become_way(&self, way: Way) {
        self.way.send_replace(way);
        let is_deaf = way == Way::Refused;
        self.wait(|facts| facts.is_deaf == is_deaf).await;
    }

    pub(crate) fn connections(&self) -> usize {
        self.facts.borrow().connections
    }

    /// Waits until so many connections were made since the start.
    pub(crate) async fn wait_for_connections(&self, count: usize) {
        self.wait(|facts| facts.connections >= count).await;
    }

    pub(crate) fn endless_bytes(&self) -> usize {
        self.facts.borrow().endless
    }

    async fn wait(&self, come_true: impl FnMut(&Facts) -> bool) {
        let mut facts = self.facts.subscribe();
        let waited = tokio::time::timeout(PATIENCE, facts.wait_for(come_true)).await;
        assert!(waited.is_ok(), "the line is at {:?}", self.facts.borrow());
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn bind(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_reuseaddr(true).expect("an option of sockets");
    socket.bind(address).expect("a free port");
    socket
}

fn listen(socket: TcpSocket) -> TcpListener {
    socket.listen(128).expect("a listener")
}

async fn serve(
    mut listener: TcpListener,
    far: SocketAddr,
    mut ways: watch::Receiver<Way>,
    facts: Arc<watch::Sender<Facts>>,
) {
    let address = listener.local_addr().expect("a bound listener");
    loop {
        let way = *ways.borrow_and_update();
        if way == Way::Refused {
            drop(listener);
            // The port stays ours meanwhile.
            let socket = bind(address);
            facts.send_modify(|facts| facts.is_deaf = true);
            if ways.wait_for(|way| *way != Way::Refused).await.is_err() {
                return;
            }
            listener = listen(socket);
            facts.send_modify(|facts| facts.is_deaf = false);
            continue;
        }
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((near, _)) = accepted else { continue };
                facts.send_modify(|facts| facts.connections += 1);
                let (mut changes, facts) = (ways.clone(), facts.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        ended = carry(near, far, way, &facts) => drop(ended),
                        _ = changes.changed() => {}
                    }
                });
            }
            changed = ways.changed() => if changed.is_err() { return },
        }
    }
}

async fn carry(
    mut near: TcpStream,
    far: SocketAddr,
    way: Way,
    facts: &watch::Sender<Facts>,
) -> std::io::Result<()> {
    match way {
        Way::Refused | Way::DroppedBefore => Ok(()),
        Way::Open => {
            let mut far = TcpStream::connect(far).await?;
            copy_bidirectional(&mut near, &mut far).await.map(drop)
        }
        Way::DroppedAfter => {
            let mut far = TcpStream::connect(far).await?;
            let (mut near_in, _near_out) = near.split();
            let (mut far_in, mut far_out) = far.split();
            tokio::select! {
                ended = copy(&mut near_in, &mut far_out) => ended.map(drop),
                ended = far_in.read_u8() => ended.map(drop),
            }
        }
        Way::Silent => std::future::pending().await,
        Way::Trickling => trickle(near, TcpStream::connect(far).await?).await,
        Way::Page => {
            let page = "<!DOCTYPE html><title>Bad Gateway</title>";
            answer(&mut near, "502 Bad Gateway", page.len()).await?;
            near.write_all(page.as_bytes()).await?;
            hang_up(near).await
        }
        Way::Endless => endless(near, facts).await,
        Way::Noise => {
            near.read_u8().await?;
            near.write_all(&[0xff, 0x00, b'\n', 0xfe].repeat(64))
                .await?;
            hang_up(near).await
        }
    }
}

async fn answer(near: &mut TcpStream, status: &str, length: usize) -> std::io::Result<()> {
    near.read_u8().await?;
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    near.write_all(head.as_bytes()).await
}

/// Reads the rest of the request, because a connection that is closed with unread bytes loses its answer.
async fn hang_up(mut near: TcpStream) -> std::io::Result<()> {
    near.shutdown().await?;
    copy(&mut near, &mut sink()).await.map(drop)
}

async fn trickle(mut near: TcpStream, mut far: TcpStream) -> std::io::Result<()> {
    near.set_nodelay(true)?;
    let (mut near_in, near_out) = near.split();
    let (far_in, mut far_out) = far.split();
    tokio::select! {
        ended = copy(&mut near_in, &mut far_out) => ended.map(drop),
        ended = byte_by_byte(far_in, near_out) => ended,
    }
}

async fn byte_by_byte(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
) -> std::io::Result<()> {
    loop {
        let byte = from.read_u8().await?;
        to.write_all(&[byte]).await?;
        tokio::task::yield_now().await;
    }
}

async fn endless(mut near: TcpStream, facts: &watch::Sender<Facts>) -> std::io::Result<()> {
    answer(&mut near, "200 OK", usize::MAX / 2).await?;
    let piece = vec![b'x'; 64 * 1024];
    for sent in (0..ENDLESS_BYTES).step_by(piece.len()) {
        facts.send_modify(|facts| facts.endless = facts.endless.max(sent));
        near.write_all(&piece).await?;
    }
    Ok(())
}
