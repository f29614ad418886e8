//! The floors that Parlor is compared with: the smallest gateway there can be, and the smallest
//! durable one. This program is its own floor when called with `--floor`.
//!
//! Both poll, ask the model for each message and send its answer. The durable one has every update
//! synced to disk before the poll that confirms it, and every answer before it is sent. Writes that
//! wait together are one commit.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use reqwest::Client;
use rusqlite::Connection;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

pub(crate) const HOME_VARIABLE: &str = "PARLOR_FLOOR_HOME";
/// With the token of the bot.
pub(crate) const TELEGRAM_VARIABLE: &str = "PARLOR_FLOOR_TELEGRAM";
pub(crate) const MODEL_VARIABLE: &str = "PARLOR_FLOOR_MODEL";
const POLL_SECONDS: u32 = 50;
/// Writes that wait for the disk. More make their tasks wait.
const MOST_WAITING: usize = 16_384;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bare,
    Durable,
}

/// Runs until a signal asks for the end.
pub(crate) async fn run(kind: Kind) {
    let variable = |name| std::env::var(name).expect("the benchmark says where everything is");
    let floor = Arc::new(Floor {
        client: Client::builder()
            .tls_backend_preconfigured(no_certificates())
            .build()
            .expect("a client without certificates"),
        telegram: variable(TELEGRAM_VARIABLE),
        model: variable(MODEL_VARIABLE),
        disk: (kind == Kind::Durable)
            .then(|| Disk::open(Path::new(&variable(HOME_VARIABLE)).join("floor.db"))),
    });
    let mut end = signal(SignalKind::terminate()).expect("signals can be listened for");
    tokio::select! {
        () = floor.poll() => {}
        _ = end.recv() => {}
    }
}

/// All servers of the benchmark speak plain HTTP.
fn no_certificates() -> rustls::ClientConfig {
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .expect("the usual versions")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}

struct Floor {
    client: Client,
    telegram: String,
    model: String,
    disk: Option<Disk>,
}

impl Floor {
    async fn poll(self: Arc<Self>) {
        let mut offset = 0;
        loop {
            let poll = json!({ "offset": offset, "timeout": POLL_SECONDS });
            let answer = self.telegram("getUpdates", &poll).await;
            let Value::Array(updates) = answer["result"].clone() else {
                panic!("the fake Telegram answers a poll with a list")
            };
            if let Some(last) = updates.last() {
                offset = number(&last["update_id"]) + 1;
            }
            self.store_updates(&updates).await;
            for update in updates {
                let floor = self.clone();
                tokio::spawn(async move { floor.answer(&update).await });
            }
        }
    }

    async fn answer(&self, update: &Value) {
        let message = &update["message"];
        if message["from"]["is_bot"] == true {
            return;
        }
        let text = self.ask(&message["text"]).await;
        let send = json!({
            "chat_id": message["chat"]["id"],
            "message_thread_id": message["message_thread_id"],
            "text": text,
        });
        if let Some(disk) = &self.disk {
            disk.store_answer(number(&update["update_id"]), send.to_string())
                .await;
        }
        self.telegram("sendMessage", &send).await;
    }

    /// The text of a streamed answer, put together.
    async fn ask(&self, text: &Value) -> String {
        let request = json!({
            "model": "x",
            "stream": true,
            "messages": [{ "role": "user", "content": text }],
        });
        let url = format!("{}chat/completions", self.model);
        let answer = self.client.post(url).json(&request).send().await;
        let answer = answer.expect("the fake model answers").text().await;
        let answer = answer.expect("the fake model answers with text");
        let events = answer
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .filter_map(|event| serde_json::from_str::<Value>(event).ok());
        events
            .filter_map(|event| Some(event["choices"][0]["delta"]["content"].as_str()?.to_owned()))
            .collect()
    }

    async fn telegram(&self, method: &str, parameters: &Value) -> Value {
        let url = format!("{}/{method}", self.telegram);
        let answer = self.client.post(url).json(parameters).send().await;
        let answer = answer.expect("the fake Telegram answers").json().await;
        answer.expect("the fake Telegram answers with JSON")
    }

    async fn store_updates(&self, updates: &[Value]) {
        if let Some(disk) = &self.disk
            && !updates.is_empty()
        {
            let rows = updates
                .iter()
                .map(|update| (number(&update["update_id"]), update.to_string()));
            disk.store_updates(rows.collect()).await;
        }
    }
}

fn number(value: &Value) -> i64 {
    value.as_i64().expect("ids are numbers")
}

/// One thread that writes; all writes that wait are one commit.
struct Disk {
    writes: mpsc::Sender<Write>,
}

struct Write {
    what: What,
    done: oneshot::Sender<()>,
}

enum What {
    Updates(Vec<(i64, String)>),
    Answer(i64, String),
}

impl Disk {
    fn open(path: PathBuf) -> Self {
        let (writes, waiting) = mpsc::channel(MOST_WAITING);
        std::thread::spawn(move || write_all(&path, waiting));
        Disk { writes }
    }

    async fn store_updates(&self, updates: Vec<(i64, String)>) {
        self.write(What::Updates(updates)).await;
    }

    async fn store_answer(&self, update_id: i64, answer: String) {
        self.write(What::Answer(update_id, answer)).await;
    }

    async fn write(&self, what: What) {
        let (done, written) = oneshot::channel();
        let sent = self.writes.send(Write { what, done }).await;
        assert!(sent.is_ok(), "the thread writes as long as we run");
        written.await.expect("every write is answered");
    }
}

fn write_all(path: &Path, mut waiting: mpsc::Receiver<Write>) {
    let store = Connection::open(path).expect("the folder is writable");
    let made = store.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE IF NOT EXISTS updates (id INTEGER PRIMARY KEY, body TEXT NOT NULL, answer TEXT) STRICT;",
    );
    made.expect("a table can be made");
    let mut writes = Vec::new();
    while waiting.blocking_recv_many(&mut writes, MOST_WAITING) > 0 {
        commit(&store, &writes).expect("the disk works");
        for write in writes.drain(..) {
            // The benchmark may have ended in between.
            let _ = write.done.send(());
        }
    }
}

fn commit(store: &Connection, writes: &[Write]) -> rusqlite::Result<()> {
    let transaction = store.unchecked_transaction()?;
    for write in writes {
        match &write.what {
            What::Updates(updates) => {
                let sql = "INSERT OR IGNORE INTO updates (id, body) VALUES (?1, ?2)";
                let mut insert = store.prepare_cached(sql)?;
                for (id, body) in updates {
                    insert.execute((id, body))?;
                }
            }
            What::Answer(id, answer) => {
                let sql = "UPDATE updates SET answer = ?2 WHERE id = ?1";
                store.prepare_cached(sql)?.execute((id, answer))?;
            }
        }
    }
    transaction.commit()
}
