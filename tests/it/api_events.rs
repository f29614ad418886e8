//! The stream of events: what happens is told, and a reader that comes back misses nothing.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::admin_door::{Site, fine};
use crate::support::fake_telegram::ALICE;
use crate::support::http::Call;

/// A reader of the stream.
struct Reader {
    lines: Lines<BufReader<OwnedReadHalf>>,
    _writing: OwnedWriteHalf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Event {
    kind: String,
    id: String,
}

impl Reader {
    async fn open(site: &Site, token: &str, last: Option<&str>) -> Self {
        let stream = TcpStream::connect(&site.address)
            .await
            .expect("somebody listens");
        let (reading, mut writing) = stream.into_split();
        let last = last.map_or_else(String::new, |id| format!("Last-Event-ID: {id}\r\n"));
        let head = format!(
            "GET /api/v1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n{last}\r\n",
            site.address
        );
        writing.write_all(head.as_bytes()).await.expect("it reads");
        let mut reader = Reader {
            lines: BufReader::new(reading).lines(),
            _writing: writing,
        };
        let first = reader.line().await.expect("an answer");
        assert!(first.contains("200"), "{first}");
        while reader.line().await.is_some_and(|line| !line.is_empty()) {}
        reader
    }

    async fn line(&mut self) -> Option<String> {
        let line = tokio::time::timeout(Duration::from_secs(20), self.lines.next_line());
        line.await.expect("a line in time").expect("text")
    }

    /// None at the end of the stream.
    async fn next(&mut self) -> Option<Event> {
        let mut event = Event {
            kind: String::new(),
            id: String::new(),
        };
        loop {
            let line = self.line().await?;
            // The last chunk. The connection itself may be used again.
            if line == "0" {
                return None;
            }
            if let Some(kind) = line.strip_prefix("event: ") {
                kind.clone_into(&mut event.kind);
            } else if let Some(id) = line.strip_prefix("id: ") {
                id.clone_into(&mut event.id);
            } else if line.is_empty() && !event.kind.is_empty() {
                return Some(event);
            }
        }
    }

    /// The next events, up to one of this kind.
    async fn until(&mut self, kind: &str) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let event = self.next().await.expect("the stream goes on");
            let is_last = event.kind == kind;
            events.push(event);
            if is_last {
                return events;
            }
        }
    }
}

#[tokio::test]
async fn a_reader_that_comes_back_misses_nothing() {
    let site = Site::open("").await;
    let token = site.token("read").await;
    let mut reader = Reader::open(&site, &token, None).await;
    let topic = site.house.telegram.forum(-1001).topic(101, "Garden");
    topic.says(ALICE, "one").await;
    topic.wait_for_sent(1).await;
    let first = reader.until("turn").await;
    let kinds: Vec<&str> = first.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["message", "message", "turn"]);
    let last = first.last().expect("a turn").id.clone();
    drop(reader);
    topic.says(ALICE, "two").await;
    topic.wait_for_sent(2).await;
    fine(site.home(), &["pin", "telegram:topic:-1001:101", "main"]).await;
    let mut again = Reader::open(&site, &token, Some(&last)).await;
    let missed = again.until("change").await;
    let kinds: Vec<&str> = missed.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(
        kinds.iter().filter(|kind| **kind == "message").count(),
        3,
        "two and the handoff: {kinds:?}"
    );
    assert_eq!(
        kinds.iter().filter(|kind| **kind == "turn").count(),
        1,
        "{kinds:?}"
    );
    // From the middle of what was missed, the rest comes again and nothing else.
    let mut middle = Reader::open(&site, &token, Some(&missed[0].id)).await;
    assert_eq!(middle.until("change").await, missed[1..]);
    let odd = Call::get("/api/v1/events")
        .token(&token)
        .header("Last-Event-ID", "soon");
    assert_eq!(site.send(odd).await.status, 400);
    site.house
        .wait_until_stored("SELECT count(*) FROM outbox WHERE state <> 'sent'", "0")
        .await;
    site.stop().await;
}

#[tokio::test]
async fn a_stream_ends_with_its_token() {
    let site = Site::open("").await;
    let token = site.token("read").await;
    let mut reader = Reader::open(&site, &token, None).await;
    fine(site.home(), &["token", "revoke", "read"]).await;
    while let Some(event) = reader.next().await {
        assert_eq!(event.kind, "change", "the revocation itself");
    }
    site.stop().await;
}
