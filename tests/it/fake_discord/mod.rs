//! The fake itself under test: if it were kinder than Discord, every other test would be worth
//! less.

mod bot;
mod calls;
mod connection;
mod events;
mod faults;
mod interactions;
mod outside;
mod tunnel;

use reqwest::{Client, Method, Response};
use serde_json::{Value, json};

use crate::support::fake_discord::FakeDiscord;

/// The plainest client there is: one call, one answer.
#[derive(Clone)]
struct Caller {
    client: Client,
    base: String,
    token: String,
}

impl Caller {
    fn new(discord: &FakeDiscord) -> Self {
        // Another test may have been first; all want the same provider.
        let _already_installed = rustls::crypto::ring::default_provider().install_default();
        Self {
            client: Client::new(),
            base: format!("{}/api/v10", discord.url()),
            token: format!("Bot {}", discord.token()),
        }
    }

    async fn try_call(&self, method: &str, path: &str, body: Value) -> reqwest::Result<Response> {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let request = self
            .client
            .request(method, format!("{}{path}", self.base))
            .header("authorization", &self.token);
        if body.is_null() {
            request.send().await
        } else {
            request.json(&body).send().await
        }
    }

    /// Status and body; an empty body is `Null`.
    async fn call(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let response = self
            .try_call(method, path, body)
            .await
            .expect("the fake answers");
        let status = response.status().as_u16();
        (status, response.json().await.unwrap_or_default())
    }

    /// What went wrong, as `400 50006 Cannot send an empty message`.
    async fn refusal(&self, method: &str, path: &str, body: Value) -> String {
        let (status, body) = self.call(method, path, body).await;
        assert!(status >= 400, "{body}");
        let errors = body
            .get("errors")
            .map(|errors| format!(" {errors}"))
            .unwrap_or_default();
        format!(
            "{status} {} {}{errors}",
            body["code"],
            body["message"].as_str().expect("a message")
        )
    }

    /// Sends a message that pings nobody and returns its id.
    async fn send(&self, channel_id: u64, text: &str) -> u64 {
        let (status, message) = self
            .call(
                "POST",
                &format!("/channels/{channel_id}/messages"),
                quiet(text),
            )
            .await;
        assert_eq!(status, 200, "{message}");
        message["id"]
            .as_str()
            .expect("an id")
            .parse()
            .expect("a number")
    }
}

fn quiet(text: &str) -> Value {
    json!({ "content": text, "allowed_mentions": { "parse": [] } })
}
