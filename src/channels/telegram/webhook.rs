//! The webhook: Telegram calls us. A call is answered with 200 only once its update is on disk;
//! else Telegram calls again.
//!
//! Plain HTTP, because a reverse proxy has the certificate. Telegram proves itself with a secret,
//! so the path does not matter, and callers without the secret learn nothing.
//! <https://core.telegram.org/bots/api#setwebhook>

use std::sync::Arc;
use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::{Extension, Router};
use serde::Serialize;
use teloxide::requests::Payload;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::api::{ApiError, Done};
use super::receive::{ALLOWED_UPDATES, Receiver, Stored, refused};
use super::updates::{self, Update};
use super::webhook_secrets::WebhookSecrets;
use crate::channels::{Health, Intake, ListenError};
use crate::config::{Secret, Webhook};
use crate::door::{self, Known, Knows};

/// Updates are a few kilobytes; a long update with all its entities stays far below.
const MAX_BODY_BYTES: usize = 1024 * 1024;
/// Updates in the queue for the store. When full, calls wait, and Telegram limits the number of its
/// calls.
const CAPACITY: usize = 64;
/// A later call is answered with 503. Telegram's own patience is longer.
const STORE_WITHIN: Duration = Duration::from_secs(20);
const SECRET_HEADER: &str = "x-telegram-bot-api-secret-token";

/// An update on its way to the store. Dropping `stored` unanswered means a failure.
struct Delivery {
    update: Update,
    stored: oneshot::Sender<()>,
}

pub(super) async fn listen(
    receiver: &Receiver,
    webhook: &Webhook,
    secrets: &WebhookSecrets,
    intake: &Intake,
    stop: &CancellationToken,
) -> Result<(), ListenError> {
    let listener = TcpListener::bind(webhook.listen).await.map_err(|error| {
        ListenError(format!(
            "cannot listen on {}: {error}. Set another `listen` under [telegram.webhook]",
            webhook.listen
        ))
    })?;
    let (deliveries, received) = mpsc::channel(CAPACITY);
    let app = Router::new().fallback(knock).with_state(deliveries);
    let served = door::serve(listener, from_telegram(secrets.clone()), app, stop);
    // Beside the server, so that Telegram's first calls find the server running.
    let work = async {
        tokio::select! {
            refused = announce(receiver, webhook, secrets.newest()) => refused,
            stored = store_all(receiver, intake, received) => stored,
        }
    };
    tokio::select! {
        () = served => Ok(()),
        ended = work => ended,
    }
}

/// Stores updates in their order, all waiting updates together.
async fn store_all(
    receiver: &Receiver,
    intake: &Intake,
    mut received: mpsc::Receiver<Delivery>,
) -> Result<(), ListenError> {
    let mut waiting = Vec::new();
    while received.recv_many(&mut waiting, CAPACITY).await > 0 {
        let (updates, answers): (Vec<_>, Vec<_>) = waiting
            .drain(..)
            .map(|delivery| (delivery.update, delivery.stored))
            .unzip();
        if let Stored::Yes = receiver.store(intake, &updates).await? {
            for answer in answers {
                // The caller may have hung up; then the same update comes again, and is known.
                let _ = answer.send(());
            }
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct SetWebhook<'a> {
    url: &'a str,
    secret_token: &'a str,
    allowed_updates: &'static [&'static str],
}

impl Payload for SetWebhook<'_> {
    type Output = Done;
    const NAME: &'static str = "setWebhook";
}

/// Sets the webhook at every start, because Telegram does not reveal its secret. Ends only with a
/// refusal.
async fn announce(
    receiver: &Receiver,
    webhook: &Webhook,
    secret: &Secret,
) -> Result<(), ListenError> {
    let api = &receiver.api;
    let request = SetWebhook {
        url: &webhook.url,
        secret_token: secret.expose(),
        allowed_updates: ALLOWED_UPDATES,
    };
    let mut backoff = Health::backoff();
    while let Err(error) = api.call(&request).await {
        if let ApiError::Answered {
            code: 401 | 404, ..
        } = error
        {
            return Err(refused());
        }
        tracing::warn!(
            "setting the webhook {}: {error}; trying again in {} s",
            webhook.url,
            backoff.peek().as_secs()
        );
        api.health().is_deaf(error.to_string());
        api.health().pause(&mut backoff).await;
    }
    api.health().hears();
    tracing::info!(
        "Telegram calls {}; listening on {}",
        webhook.url,
        webhook.listen
    );
    receiver.say_connected("webhook").await?;
    std::future::pending().await
}

/// Calls with a secret that Telegram was told.
fn from_telegram(secrets: WebhookSecrets) -> Knows {
    Arc::new(move |head| head.method == Method::POST && shows_secret(&head.headers, &secrets))
}

fn shows_secret(headers: &HeaderMap, secrets: &WebhookSecrets) -> bool {
    let told = headers
        .get(SECRET_HEADER)
        .and_then(|told| told.to_str().ok());
    told.is_some_and(|told| secrets.accept(told))
}

/// The answer is a status and nothing else.
async fn knock(
    State(deliveries): State<mpsc::Sender<Delivery>>,
    known: Option<Extension<Known>>,
    request: Request,
) -> StatusCode {
    if known.is_none() {
        return StatusCode::NOT_FOUND;
    }
    let let_in = async {
        let update = read(request).await?;
        let (stored, wait) = oneshot::channel();
        let delivered = deliveries.send(Delivery { update, stored }).await.is_ok();
        if delivered && wait.await.is_ok() {
            Ok(())
        } else {
            Err(StatusCode::SERVICE_UNAVAILABLE)
        }
    };
    match tokio::time::timeout(STORE_WITHIN, let_in).await {
        Ok(Ok(())) => StatusCode::OK,
        Ok(Err(status)) => status,
        Err(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Every body is taken, and kept as broken if unreadable: Telegram would repeat a refused update
/// for ever.
async fn read(request: Request) -> Result<Update, StatusCode> {
    let told_length = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse().ok());
    if told_length.is_some_and(|length: usize| length > MAX_BODY_BYTES) {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let body = to_bytes(request.into_body(), MAX_BODY_BYTES)
        .await
        .map_err(|_| StatusCode::PAYLOAD_TOO_LARGE)?;
    if body.is_empty() {
        return Err(StatusCode::BAD_REQUEST);
    }
    Ok(updates::read_one(&body))
}
