//! The fake itself under test: if it were kinder than Telegram, every other test would be worth
//! less.

mod faults;
mod methods;
mod outside;
mod polling;
mod shapes;

use reqwest::{Client, Response};
use serde_json::{Value, json};

use crate::support::fake_telegram::FakeTelegram;

/// The plainest bot there is: one method call, one answer.
#[derive(Clone)]
struct Bot {
    client: Client,
    base: String,
}

impl Bot {
    fn new(telegram: &FakeTelegram) -> Self {
        Self::with_token(telegram, telegram.token())
    }

    fn with_token(telegram: &FakeTelegram, token: &str) -> Self {
        // Another test may have been first; all want the same provider.
        let _already_installed = rustls::crypto::ring::default_provider().install_default();
        Self {
            client: Client::new(),
            base: format!("{}/bot{token}", telegram.api_url()),
        }
    }

    async fn try_call(&self, method: &str, params: Value) -> reqwest::Result<Response> {
        self.client
            .post(format!("{}/{method}", self.base))
            .json(&params)
            .send()
            .await
    }

    /// The body of the answer, whose `error_code` must agree with the HTTP status.
    async fn call(&self, method: &str, params: Value) -> Value {
        body(
            self.try_call(method, params)
                .await
                .expect("the fake answers"),
        )
        .await
    }

    /// What went wrong, as `400 Bad Request: …`.
    async fn refusal(&self, method: &str, params: Value) -> String {
        let body = self.call(method, params).await;
        format!(
            "{} {}",
            body["error_code"],
            body["description"].as_str().expect("refused")
        )
    }

    async fn send(&self, params: Value) -> i64 {
        self.call("sendMessage", params).await["result"]["message_id"]
            .as_i64()
            .expect("sent")
    }

    /// The ids of what a poll without waiting brings.
    async fn poll(&self, params: Value) -> Vec<i64> {
        let body = self.call("getUpdates", params).await;
        let updates = body["result"].as_array().expect("a list of updates");
        updates
            .iter()
            .map(|update| {
                update["update_id"]
                    .as_i64()
                    .expect("every update has an id")
            })
            .collect()
    }
}

async fn body(response: Response) -> Value {
    let status = response.status().as_u16();
    let body: Value = response.json().await.expect("the answer is JSON");
    let expected = if body["ok"] == true {
        json!(200)
    } else {
        body["error_code"].clone()
    };
    assert_eq!(expected, status, "{body}");
    body
}
