use std::net::SocketAddr;

use axum::Extension;
use axum::http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// A server for callers with the header `secret: right`.
async fn opened() -> (SocketAddr, CancellationToken) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
    let app = Router::new().fallback(
        |known: Option<Extension<Known>>, request: Request<Body>| async move {
            let body = axum::body::to_bytes(request.into_body(), 1024).await;
            match (known, body) {
                (Some(_), Ok(_)) => StatusCode::OK,
                (Some(_), Err(_)) => StatusCode::BAD_REQUEST,
                (None, _) => StatusCode::NOT_FOUND,
            }
        },
    );
    let knows: Knows = Arc::new(|head| {
        head.headers
            .get("secret")
            .is_some_and(|secret| secret == "right")
    });
    let stopping = stop.clone();
    tokio::spawn(async move { serve(listener, knows, app, &stopping).await });
    (address, stop)
}

const KNOWN: &str = "GET / HTTP/1.1\r\nhost: x\r\nsecret: right\r\n\r\n";
const STRANGE: &str = "GET / HTTP/1.1\r\nhost: x\r\nsecret: wrong\r\n\r\n";

async fn send(address: SocketAddr, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

/// All that is answered until the connection ends.
async fn rest(stream: &mut TcpStream) -> String {
    let mut rest = Vec::new();
    // A connection that is cut off may end with an error.
    drop(stream.read_to_end(&mut rest).await);
    String::from_utf8(rest).unwrap()
}

/// The head of an answer without a body.
async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// The clock runs ahead whenever all wait, so the seconds are those of the clock.
#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_end_has_five_seconds() {
    let (address, _stop) = opened().await;
    let began = Instant::now();
    for half in ["", "GET", "GET / HTTP/1.1\r\nhost: x\r\nsecret: right\r\n"] {
        let mut stream = send(address, half).await;
        assert_eq!(rest(&mut stream).await, "", "{half}");
    }
    assert_eq!(began.elapsed().as_secs(), 3 * HEAD_WITHIN.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_head_that_drips_has_five_seconds_in_all() {
    let (address, _stop) = opened().await;
    let mut stream = send(address, "GET / HTTP/1.1\r\n").await;
    let began = Instant::now();
    while stream.write_all(b"a: b\r\n").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(began.elapsed() < 2 * HEAD_WITHIN, "still open");
    }
    assert!(began.elapsed() >= HEAD_WITHIN);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_end_has_half_a_minute() {
    let (address, _stop) = opened().await;
    let began = Instant::now();
    let call = "POST / HTTP/1.1\r\nhost: x\r\nsecret: right\r\ncontent-length: 9\r\n\r\nhalf";
    let mut stream = send(address, call).await;
    assert_eq!(rest(&mut stream).await, "");
    assert_eq!(began.elapsed().as_secs(), CALL_WITHIN.as_secs());
}

#[tokio::test]
async fn only_known_callers_stay_connected() {
    let (address, _stop) = opened().await;
    let mut known = send(address, KNOWN).await;
    for _ in 0..3 {
        assert!(head(&mut known).await.starts_with("HTTP/1.1 200 OK\r\n"));
        known.write_all(KNOWN.as_bytes()).await.unwrap();
    }
    let mut stranger = send(address, &STRANGE.repeat(3)).await;
    let told = rest(&mut stranger).await;
    assert!(told.starts_with("HTTP/1.1 404 Not Found\r\n"), "{told}");
    assert!(told.contains("connection: close\r\n"), "{told}");
    assert_eq!(told.matches("HTTP/1.1").count(), 1, "{told}");
}

/// Time for the next call, and no more.
#[tokio::test(start_paused = true)]
async fn a_known_caller_that_falls_silent_is_hung_up_on() {
    let (address, _stop) = opened().await;
    let mut known = send(address, KNOWN).await;
    head(&mut known).await;
    let began = Instant::now();
    assert_eq!(rest(&mut known).await, "");
    assert_eq!(began.elapsed().as_secs(), IDLE.as_secs());
}

#[tokio::test]
async fn strangers_make_room_for_newer_callers_and_known_callers_stay() {
    let (address, _stop) = opened().await;
    let most = open_files::shares().callers;
    let mut known = send(address, KNOWN).await;
    head(&mut known).await;
    let mut strangers = Vec::new();
    for _ in 0..3 * most {
        strangers.push(send(address, "GET / HTTP/1.1\r\n").await);
    }
    let mut late = send(address, KNOWN).await;
    assert!(head(&mut late).await.starts_with("HTTP/1.1 200"));
    known.write_all(KNOWN.as_bytes()).await.unwrap();
    assert!(head(&mut known).await.starts_with("HTTP/1.1 200"));
    // Two known callers and the strangers that fit beside them.
    let closed = strangers.len() - (most - 2);
    for stranger in &mut strangers[..closed] {
        assert_eq!(rest(stranger).await, "");
    }
    for stranger in &mut strangers[closed..] {
        stranger.write_all(b"\r\n").await.unwrap();
        assert!(head(stranger).await.starts_with("HTTP/1.1 404"));
    }
}

#[tokio::test]
async fn where_all_are_known_a_further_caller_is_turned_away() {
    let (address, _stop) = opened().await;
    let mut known = Vec::new();
    for _ in 0..open_files::shares().callers {
        let mut caller = send(address, KNOWN).await;
        head(&mut caller).await;
        known.push(caller);
    }
    let mut late = TcpStream::connect(address).await.unwrap();
    assert_eq!(rest(&mut late).await, "");
    let mut first = known.remove(0);
    first.write_all(KNOWN.as_bytes()).await.unwrap();
    assert!(head(&mut first).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_head_has_a_length() {
    let (address, _stop) = opened().await;
    let long = format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "b".repeat(64 * 1024));
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The connection may be closed before all is sent.
    drop(stream.write_all(long.as_bytes()).await);
    let told = rest(&mut stream).await;
    assert!(
        told.is_empty() || told.starts_with("HTTP/1.1 431"),
        "{told}"
    );
}

#[tokio::test]
async fn strangers_do_not_hold_up_the_end() {
    let (address, stop) = opened().await;
    let mut silent = TcpStream::connect(address).await.unwrap();
    let mut known = send(address, KNOWN).await;
    head(&mut known).await;
    let began = Instant::now();
    stop.cancel();
    assert_eq!(rest(&mut known).await, "");
    assert_eq!(rest(&mut silent).await, "");
    assert!(began.elapsed() < HEAD_WITHIN);
}
