//! S6.11: a program built with the feature `otlp` hands its spans to a collector, with agent and parent,
//! and without words of people. The real program talks to a collector over HTTP.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use tokio::process::Command;

const WORDS: &str = "zebra crossing";

/// Bodies that programs have sent to `/v1/traces`.
type Bodies = Arc<Mutex<Vec<Bytes>>>;

async fn collector() -> (String, Bodies) {
    let bodies = Bodies::default();
    let kept = bodies.clone();
    let take = post(move |body: Bytes| async move {
        kept.lock().expect("no test panics with it").push(body);
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let app = Router::new().route("/v1/traces", take);
    tokio::spawn(async move { axum::serve(listener, app).await });
    (address, bodies)
}

async fn ask(home: &std::path::Path, collector: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_parlor"));
    command
        .args(["ask", WORDS])
        .env("PARLOR_HOME", home)
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
    let output = command.output().await.expect("it runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Protobuf keeps texts as they are, so they can be looked for in the bytes.
fn has(bodies: &[Bytes], text: &str) -> bool {
    let contains = |body: &Bytes| {
        body.windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    bodies.iter().any(contains)
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_reach_a_collector_and_words_do_not() {
    let home = tempfile::tempdir().expect("a folder");
    let (collector, bodies) = collector().await;
    let answer = ask(home.path(), &collector).await;
    assert!(!answer.trim().is_empty());
    let bodies = bodies.lock().expect("no test panics with it").clone();
    for text in [
        "turn", "model", "agent.id", "main", "session", "local:", "parlor",
    ] {
        assert!(has(&bodies, text), "no {text} in {bodies:?}");
    }
    for text in [WORDS, answer.trim()] {
        assert!(!has(&bodies, text), "{text} in {bodies:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_gone_stops_nothing() {
    let home = tempfile::tempdir().expect("a folder");
    let answer = ask(home.path(), "http://127.0.0.1:9").await;
    assert!(!answer.trim().is_empty());
}
