//! Looks at the bot's account and its places for `parlor doctor`. Changes nothing that people see.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use teloxide::requests::Payload;
use tokio::time::timeout;

use super::api::{Api, ApiError, Done};
use super::me::GetMe;
use super::memberships::Memberships;
use super::polling;
use super::preflight::{self, Expectations, Shortcoming};
use crate::config::{Telegram, Transport};
use crate::domain::{ChatId, TopicId};

/// A bot that does not answer by then is not waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// More topics than this are not asked about.
const MOST_TOPICS: usize = 20;

/// The bot as an operator should know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// The bot answers under this name.
    Well {
        username: Option<String>,
        /// How far Telegram's clock is ahead of ours.
        ahead_ms: i64,
    },
    TokenRefused,
    NotReached(String),
    /// A webhook is set although the config polls; its host.
    WebhookInTheWay(String),
    /// The config has a webhook, and Telegram calls another address; its host, if any.
    WebhookElsewhere(Option<String>),
    /// Telegram could not deliver to the webhook.
    WebhookFails(String),
    /// Another program polls with the same token.
    OtherPoller,
    Short(Shortcoming),
    /// A topic with a binding of its own, by its key.
    TopicGone(String),
    TopicClosed(String),
}

/// A topic with a binding of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BoundTopic {
    pub(crate) chat: ChatId,
    pub(crate) topic: TopicId,
    /// Its session key.
    pub(crate) key: String,
}

/// Whether a gateway listens with this token now. A second poll would take its updates away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listening {
    Yes,
    No,
}

#[derive(Serialize)]
struct GetWebhookInfo {}

/// <https://core.telegram.org/bots/api#webhookinfo>
#[derive(Debug, Default, Deserialize)]
struct WebhookInfo {
    url: Option<String>,
    last_error_message: Option<String>,
    last_error_date: Option<i64>,
}

impl Payload for GetWebhookInfo {
    type Output = WebhookInfo;
    const NAME: &'static str = "getWebhookInfo";
}

/// Shown for a moment as "typing", and refused where no message could be sent.
#[derive(Serialize)]
struct SendChatAction {
    chat_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_thread_id: Option<i32>,
    action: &'static str,
}

impl Payload for SendChatAction {
    type Output = Done;
    const NAME: &'static str = "sendChatAction";
}

pub(crate) async fn examine(
    config: &Telegram,
    expectations: &Expectations,
    topics: &[BoundTopic],
    listening: Listening,
) -> Vec<Found> {
    let platform = &config.platform;
    let api = Api::new(
        &platform.api_url,
        platform.token.clone(),
        config.proxy.clone(),
    );
    let looking = look(&api, config, expectations, topics, listening);
    let found = timeout(PATIENCE, looking).await;
    found.unwrap_or_else(|_| vec![Found::NotReached(LATE.into())])
}

const LATE: &str = "no answer within 10 s";

async fn look(
    api: &Api,
    config: &Telegram,
    expectations: &Expectations,
    topics: &[BoundTopic],
    listening: Listening,
) -> Vec<Found> {
    let me = match api.call(&GetMe {}).await {
        Ok(me) => me,
        Err(ApiError::Answered {
            code: 401 | 404, ..
        }) => return vec![Found::TokenRefused],
        Err(error) => return vec![Found::NotReached(error.to_string())],
    };
    let mut found = vec![Found::Well {
        username: me.username,
        ahead_ms: api.ahead_ms(),
    }];
    found.extend(webhook(api, &config.transport, listening).await);
    if config.transport == Transport::Polling && listening == Listening::No {
        let has_rival = !found.iter().any(is_webhook) && polling::has_rival(api).await;
        found.extend(has_rival.then_some(Found::OtherPoller));
    }
    // A server that does not mention privacy mode gives no reason to warn.
    let reads_all = me.can_read_all_group_messages.unwrap_or(true);
    let short = preflight::look(api, reads_all, expectations, &Memberships::default()).await;
    found.extend(short.into_iter().map(Found::Short));
    for topic in topics.iter().take(MOST_TOPICS) {
        found.extend(look_into(api, topic).await);
    }
    found
}

fn is_webhook(found: &Found) -> bool {
    matches!(found, Found::WebhookInTheWay(_))
}

async fn webhook(api: &Api, transport: &Transport, listening: Listening) -> Option<Found> {
    let info = api.call(&GetWebhookInfo {}).await.ok()?;
    let url = info.url.filter(|url| !url.is_empty());
    match (transport, url) {
        (Transport::Polling, Some(url)) => Some(Found::WebhookInTheWay(host(&url))),
        (Transport::Polling, None) => None,
        (Transport::Webhook(wanted), Some(url)) if url.starts_with(&wanted.url) => {
            let is_recent = |at: i64| at > crate::clock::now_ms() / 1000 - RECENTLY_S;
            let error = info.last_error_message?;
            is_recent(info.last_error_date?).then_some(Found::WebhookFails(error))
        }
        // The gateway sets it at its start.
        (Transport::Webhook(_), None) if listening == Listening::No => None,
        (Transport::Webhook(_), url) => Some(Found::WebhookElsewhere(url.map(|url| host(&url)))),
    }
}

/// Older errors of the webhook are no news.
const RECENTLY_S: i64 = 60 * 60;

/// The path of a webhook may be a secret.
fn host(url: &str) -> String {
    let parsed = reqwest::Url::parse(url).ok();
    let host = parsed.and_then(|url| url.host_str().map(str::to_owned));
    host.unwrap_or_else(|| "an address".into())
}

async fn look_into(api: &Api, topic: &BoundTopic) -> Option<Found> {
    const GENERAL: i32 = 1;
    let action = SendChatAction {
        chat_id: topic.chat.0,
        message_thread_id: Some(topic.topic.0).filter(|topic| *topic != GENERAL),
        action: "typing",
    };
    let Err(ApiError::Answered { description, .. }) = api.call(&action).await else {
        return None;
    };
    let key = topic.key.clone();
    if description.contains("thread not found") || description.contains("TOPIC_DELETED") {
        Some(Found::TopicGone(key))
    } else {
        description
            .contains("TOPIC_CLOSED")
            .then_some(Found::TopicClosed(key))
    }
}
