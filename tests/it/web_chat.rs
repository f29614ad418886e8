//! The web chat over HTTP: lines that survive a kill, events that are resumed without a missing row,
//! and who may talk.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::support::house::{Process, ask, parlor, wait_until_stored};
use crate::webhook::free_address;

const PATIENCE: Duration = Duration::from_secs(30);

/// A home with two agents, whose web chat is at an address.
struct Home {
    folder: TempDir,
    address: String,
    http: reqwest::Client,
}

impl Home {
    fn new() -> Self {
        let (folder, address) = (tempfile::tempdir().expect("a folder"), free_address());
        let config = format!(
            "[web]\n[admin]\nlisten = \"{address}\"\n[agents.main]\n[agents.rose]\nemoji = \"🌹\"\n\
             [[bindings]]\nmatch = \"web:home:writing\"\nagent = \"rose\"\n"
        );
        std::fs::write(folder.path().join("config.toml"), config).expect("writes");
        let _already_installed = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build();
        Home {
            folder,
            address,
            http: http.expect("a client"),
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    async fn start(&self, times: usize) -> Process {
        let process = Process::start(self.path(), &["run"]);
        process
            .wait_for_log_lines("the admin listener is on", times)
            .await;
        process
    }

    /// A new token.
    async fn token(&self, name: &str, scope: &str) -> String {
        let output = parlor(self.path())
            .args(["token", "create", name, "--scope", scope])
            .output()
            .await
            .expect("the binary starts");
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        assert!(text.starts_with("parlor_"), "{output:?}");
        text
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/api/v1/chat{path}", self.address)
    }

    async fn say(&self, token: &str, place: &str, id: &str, text: &str) -> u16 {
        let body = json!({ "place": place, "id": id, "text": text });
        let sent = self
            .http
            .post(self.url("/messages"))
            .bearer_auth(token)
            .header("content-type", "application/json")
            .body(body.to_string())
            .send();
        sent.await.expect("an answer").status().as_u16()
    }

    async fn messages(&self, token: &str, place: &str) -> Vec<Value> {
        let url = self.url(&format!("/messages?place={place}"));
        let got = self.http.get(url).bearer_auth(token).send().await;
        let text = got.expect("an answer").text().await.expect("text");
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        answer["messages"].as_array().expect("a list").clone()
    }

    /// Returns when a place has so many messages.
    async fn wait_for(&self, token: &str, place: &str, count: usize) -> Vec<Value> {
        let looking = async {
            loop {
                let messages = self.messages(token, place).await;
                if messages.len() >= count {
                    return messages;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let found = timeout(PATIENCE, looking).await;
        found.unwrap_or_else(|_| panic!("{place} has fewer than {count} messages"))
    }

    /// Ids of message events after an id, until there are so many.
    async fn events(&self, token: &str, after: i64, count: usize) -> Vec<i64> {
        let request = self.http.get(self.url("/events")).bearer_auth(token);
        let request = request.header("last-event-id", after.to_string());
        let mut answer = request.send().await.expect("an answer");
        let (mut text, mut ids) = (String::new(), Vec::new());
        let reading = async {
            while ids.len() < count {
                let piece = answer.chunk().await.expect("it goes on");
                text.push_str(&String::from_utf8_lossy(&piece.expect("a piece")));
                ids = text
                    .lines()
                    .filter_map(|line| line.strip_prefix("id:"))
                    .map(|id| id.trim().parse().expect("a number"))
                    .collect();
            }
        };
        timeout(PATIENCE, reading).await.expect("events come");
        ids
    }
}

fn texts(messages: &[Value]) -> Vec<&str> {
    let text = |message: &Value| message["from"] == "person";
    let said = messages.iter().filter(|message| text(message));
    said.filter_map(|message| message["text"].as_str())
        .collect()
}

/// A line that was acknowledged is answered, whenever the process dies.
#[tokio::test]
async fn lines_acknowledged_before_a_kill_are_answered_once_after_it() {
    let home = Home::new();
    let process = home.start(1).await;
    let token = home.token("test", "admin").await;
    for number in 0..5 {
        let id = format!("line-{number}");
        let status = home.say(&token, "web:home:writing", &id, "hello").await;
        assert_eq!(status, 202);
    }
    process.kill().await;
    let process = home.start(2).await;
    // The browser does not know whether its last line has arrived, and sends it again.
    assert_eq!(
        home.say(&token, "web:home:writing", "line-4", "hello")
            .await,
        202
    );
    let waiting = "SELECT count(*) FROM inbox WHERE state = 'waiting'";
    wait_until_stored(home.path(), "SELECT count(*) FROM inbox", "5").await;
    wait_until_stored(home.path(), waiting, "0").await;
    let open = "SELECT count(*) FROM outbox WHERE state IN ('waiting', 'sending')";
    wait_until_stored(home.path(), open, "0").await;
    let messages = home.messages(&token, "web:home:writing").await;
    assert_eq!(texts(&messages).len(), 5, "{messages:?}");
    let answered = "SELECT count(*) FROM messages WHERE kind = 'agent'";
    let shown = messages.iter().filter(|message| message["from"] == "agent");
    assert_eq!(shown.count().to_string(), ask(home.path(), answered));
    assert!(messages.iter().any(|message| message["agent"] == "rose"));
    process.stop().await;
}

#[tokio::test]
async fn an_event_stream_is_resumed_without_a_missing_row() {
    let home = Home::new();
    let process = home.start(1).await;
    let token = home.token("test", "admin").await;
    home.say(&token, "web:home", "a", "one").await;
    home.wait_for(&token, "web:home", 2).await;
    let first = home.events(&token, 0, 2).await;
    home.say(&token, "web:home:writing", "b", "two").await;
    home.wait_for(&token, "web:home:writing", 2).await;
    process.kill().await;
    let process = home.start(2).await;
    home.say(&token, "web:home", "c", "three").await;
    home.wait_for(&token, "web:home", 4).await;
    let last = *first.last().expect("there are some");
    let rest = home.events(&token, last, 4).await;
    let all = ask(
        home.path(),
        "SELECT group_concat(id) FROM (SELECT id FROM web_screen ORDER BY id)",
    );
    let read: Vec<String> = first.iter().chain(&rest).map(i64::to_string).collect();
    assert_eq!(read.join(","), all);
    process.stop().await;
}

/// An agent works for a line with an owner's rights.
#[tokio::test]
async fn only_an_owners_key_talks() {
    let home = Home::new();
    let process = home.start(1).await;
    for (scope, status) in [("read", 403), ("operate", 403), ("admin", 202)] {
        let token = home.token(scope, scope).await;
        assert_eq!(
            home.say(&token, "web:home", scope, "hello").await,
            status,
            "{scope}"
        );
    }
    assert_eq!(
        home.say("parlor_made-up", "web:home", "x", "hello").await,
        401
    );
    let token = home.token("again", "admin").await;
    assert_eq!(home.say(&token, "telegram:dm:5", "y", "hello").await, 400);
    assert_eq!(home.say(&token, "web:home", "z", "  ").await, 400);
    process.stop().await;
}

/// A stream ends with the key that opened it.
#[tokio::test]
async fn a_revoked_key_ends_its_open_stream() {
    let home = Home::new();
    let process = home.start(1).await;
    let token = home.token("reader", "read").await;
    let request = home.http.get(home.url("/events")).bearer_auth(&token);
    let mut answer = request.send().await.expect("an answer");
    assert_eq!(answer.status().as_u16(), 200);
    let revoked = parlor(home.path())
        .args(["token", "revoke", "reader"])
        .output()
        .await
        .expect("the binary starts");
    assert!(revoked.status.success(), "{revoked:?}");
    let reading = async { while answer.chunk().await.expect("a clean end").is_some() {} };
    timeout(PATIENCE, reading).await.expect("the stream ends");
    process.stop().await;
}
