//! The dashboard and the HTTP API of a house with 10,000 sessions, measured from outside.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::report::{Figure, Unit};
use super::scene::Scene;
use super::{AGENTS, milliseconds};

const ROWS: &str = include_str!("large_house.sql");
/// Calls of each page and list. One more goes ahead.
const CALLS: usize = 40;
const FIRST_PAINT_MS: f64 = 300.0;
const LIST_MS: f64 = 50.0;

/// Path, keys of its three figures, and words of the first.
const PAGES: [(&str, [&str; 3], &str); 6] = [
    (
        "/house",
        ["house_first", "house_whole", "house_size"],
        "House: first byte",
    ),
    (
        "/overview",
        ["overview_first", "overview_whole", "overview_size"],
        "Overview: first byte",
    ),
    (
        "/conversations",
        [
            "conversations_first",
            "conversations_whole",
            "conversations_size",
        ],
        "Conversations: first byte",
    ),
    (
        "/people",
        ["people_first", "people_whole", "people_size"],
        "People: first byte",
    ),
    (
        "/usage",
        ["usage_first", "usage_whole", "usage_size"],
        "Usage: first byte",
    ),
    (
        "/delivery",
        ["delivery_first", "delivery_whole", "delivery_size"],
        "Delivery: first byte",
    ),
];

/// Path, and key and words of its time and its size.
const LISTS: [(&str, [&str; 2], &str); 7] = [
    (
        "/api/v1/sessions",
        ["list_sessions", "list_sessions_size"],
        "API: sessions",
    ),
    (
        "/api/v1/sessions?agent=rose",
        ["list_sessions_of_agent", "list_sessions_of_agent_size"],
        "API: sessions of an agent",
    ),
    (
        "/api/v1/routes/tree",
        ["list_places", "list_places_size"],
        "API: all places as a tree",
    ),
    (
        "/api/v1/people",
        ["list_people", "list_people_size"],
        "API: people",
    ),
    (
        "/api/v1/agents",
        ["list_agents", "list_agents_size"],
        "API: agents",
    ),
    (
        "/api/v1/audit",
        ["list_audit", "list_audit_size"],
        "API: audit",
    ),
    (
        "/api/v1/usage?period=7d",
        ["list_usage", "list_usage_size"],
        "API: usage of a week",
    ),
];

pub(crate) async fn measure(program: &Path) -> Vec<Figure> {
    let scene = Scene::set(program, AGENTS).await;
    let address = free_address();
    scene.add_to_config(&format!("\n[admin]\nlisten = \"{address}\"\n"));
    // The first start makes the rows of the agents.
    scene.start().await.stop().await;
    scene.fill(ROWS);
    let token = scene.token(program).await;
    let gateway = scene.start().await;
    let door = Door { address, token };
    door.wait().await;
    let mut figures = Vec::new();
    for (path, keys, words) in PAGES {
        figures.extend(door.page(path, keys, words).await);
    }
    for (path, keys, words) in LISTS {
        figures.extend(door.list(path, keys, words).await);
    }
    gateway.stop().await;
    figures
}

/// Free at this moment.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
    listener.local_addr().expect("it has an address")
}

/// The HTTP listener of the program.
struct Door {
    address: SocketAddr,
    token: String,
}

struct Answer {
    first_byte: Duration,
    whole: Duration,
    bytes: usize,
}

impl Door {
    async fn wait(&self) {
        while TcpStream::connect(self.address).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn page(&self, path: &str, keys: [&'static str; 3], words: &'static str) -> [Figure; 3] {
        let answers = self.answers(path).await;
        let first = answers.iter().map(|answer| milliseconds(answer.first_byte));
        let whole = answers.iter().map(|answer| milliseconds(answer.whole));
        [
            Figure::new(keys[0], words, Unit::Milliseconds)
                .target(FIRST_PAINT_MS)
                .samples(first),
            Figure::new(keys[1], "  whole page", Unit::Milliseconds).samples(whole),
            size(keys[2], "  size", &answers),
        ]
    }

    async fn list(&self, path: &str, keys: [&'static str; 2], words: &'static str) -> [Figure; 2] {
        let answers = self.answers(path).await;
        let whole = answers.iter().map(|answer| milliseconds(answer.whole));
        [
            Figure::new(keys[0], words, Unit::Milliseconds)
                .target_of(95, LIST_MS)
                .samples(whole),
            size(keys[1], "  size", &answers),
        ]
    }

    async fn answers(&self, path: &str) -> Vec<Answer> {
        self.call(path).await;
        let mut answers = Vec::new();
        for _ in 0..CALLS {
            answers.push(self.call(path).await);
        }
        answers
    }

    async fn call(&self, path: &str) -> Answer {
        let (address, token) = (self.address, &self.token);
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        let mut stream = TcpStream::connect(address).await.expect("somebody listens");
        let began = Instant::now();
        let sent = stream.write_all(request.as_bytes()).await;
        sent.expect("the program reads");
        let mut bytes = vec![stream.read_u8().await.expect("an answer")];
        let first_byte = began.elapsed();
        let rest = stream.read_to_end(&mut bytes).await;
        rest.expect("the whole answer");
        assert!(bytes.starts_with(b"HTTP/1.1 200"), "{path} is refused");
        Answer {
            first_byte,
            whole: began.elapsed(),
            bytes: bytes.len(),
        }
    }
}

fn size(key: &'static str, words: &'static str, answers: &[Answer]) -> Figure {
    let kibibytes = answers.iter().map(|answer| answer.bytes as f64 / 1024.0);
    Figure::new(key, words, Unit::Kibibytes).samples(kibibytes)
}
