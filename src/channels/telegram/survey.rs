//! A look at a bot before the gateway runs: its account, a webhook, and who wrote to it where.
//!
//! Updates are looked at and not confirmed, so the gateway gets them all later, and answers them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use teloxide::requests::Payload;

use super::api::{self, Api, ApiError, Done};
use super::receive::ALLOWED_UPDATES;
use super::updates;
use crate::channels::describe::name_line;
use crate::config::Secret;
use crate::domain::{PersonId, SessionKey};

/// How long Telegram holds a look open while nothing is there.
const HOLD: Duration = Duration::from_secs(2);
/// Telegram shows so many updates at most, and newer ones only after these are confirmed.
const WHOLE_PAGE: usize = 100;

/// A bot that nobody listens to yet.
pub(crate) struct Survey {
    api: Api,
}

/// The bot as Telegram knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    /// Without the `@`.
    pub(crate) username: String,
    /// Privacy mode is off: the bot sees every message of its groups.
    pub(crate) reads_all: bool,
    pub(crate) joins_groups: bool,
    /// The address to which another program has had messages sent.
    pub(crate) webhook: Option<String>,
}

/// A message that was seen: by whom, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sighting {
    pub(crate) person: PersonId,
    pub(crate) person_name: String,
    pub(crate) place: SessionKey,
    /// The group.
    pub(crate) title: Option<String>,
    /// The topic in it.
    pub(crate) topic: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SurveyError {
    #[error("Telegram knows no bot with this token")]
    WrongToken,
    #[error("another program listens to this bot")]
    AnotherListener,
    #[error("a webhook is set for this bot")]
    Webhook,
    #[error(
        "so many messages wait for this bot that yours is not shown. Press Enter to go on: once `parlor run` has taken them in, the bot gives you a code, and `parlor pair CODE --owner` lets you in"
    )]
    Crowded,
    #[error("{0}")]
    Other(String),
}

impl From<ApiError> for SurveyError {
    fn from(error: ApiError) -> Self {
        match error {
            ApiError::Answered {
                code: 401 | 404, ..
            } => SurveyError::WrongToken,
            ApiError::Answered {
                code: 409,
                description,
                ..
            } => match description.contains("webhook") {
                true => SurveyError::Webhook,
                false => SurveyError::AnotherListener,
            },
            other => SurveyError::Other(other.to_string()),
        }
    }
}

#[derive(Serialize)]
struct GetMe {}

#[derive(Deserialize)]
struct Me {
    username: Option<String>,
    can_read_all_group_messages: Option<bool>,
    can_join_groups: Option<bool>,
}

impl Payload for GetMe {
    type Output = Me;
    const NAME: &'static str = "getMe";
}

#[derive(Serialize)]
struct GetWebhookInfo {}

#[derive(Deserialize)]
struct WebhookInfo {
    url: Option<String>,
}

impl Payload for GetWebhookInfo {
    type Output = WebhookInfo;
    const NAME: &'static str = "getWebhookInfo";
}

#[derive(Serialize)]
struct DeleteWebhook {}

impl Payload for DeleteWebhook {
    type Output = Done;
    const NAME: &'static str = "deleteWebhook";
}

#[derive(Serialize)]
struct Look {
    timeout: u64,
    allowed_updates: &'static [&'static str],
}

impl Payload for Look {
    /// Never read as a whole: a broken update would cost all others.
    type Output = ();
    const NAME: &'static str = "getUpdates";

    fn timeout_hint(&self) -> Option<Duration> {
        Some(HOLD)
    }
}

impl Survey {
    pub(crate) fn new(api_url: &str, token: Secret, proxy: Option<Secret>) -> Self {
        Survey {
            api: Api::new(api_url, token, proxy),
        }
    }

    pub(crate) async fn account(&self) -> Result<Account, SurveyError> {
        let me = self.api.call(&GetMe {}).await?;
        let webhook = self.api.call(&GetWebhookInfo {}).await?.url;
        Ok(Account {
            username: me.username.unwrap_or_default(),
            reads_all: me.can_read_all_group_messages == Some(true),
            joins_groups: me.can_join_groups != Some(false),
            webhook: webhook.filter(|url| !url.is_empty()),
        })
    }

    /// Messages that wait for the bot stay.
    pub(crate) async fn remove_webhook(&self) -> Result<(), SurveyError> {
        self.api.call(&DeleteWebhook {}).await?;
        Ok(())
    }

    /// What waits for the bot. Returns soon, also with nothing.
    pub(crate) async fn look(&self) -> Result<Vec<Sighting>, SurveyError> {
        let look = Look {
            timeout: HOLD.as_secs(),
            allowed_updates: ALLOWED_UPDATES,
        };
        let (status, body) = self.api.call_unread(&look).await?;
        let Some(answer) = updates::read_answer(&body).filter(|_| status.is_success()) else {
            return Err(api::refusal(status, &body).into());
        };
        if answer.updates.len() >= WHOLE_PAGE {
            return Err(SurveyError::Crowded);
        }
        let contents = answer.updates.iter();
        Ok(contents
            .filter_map(|update| sighting(update.content.as_ref().ok()?))
            .collect())
    }
}

/// None for anything but the message of a person.
fn sighting(update: &Value) -> Option<Sighting> {
    let message = update
        .get("message")
        .filter(|message| message.is_object())?;
    let (chat, from) = (message.get("chat")?, message.get("from")?);
    let is_person = from["is_bot"] == false && message["sender_chat"].is_null();
    let person = from["id"].as_i64().filter(|_| is_person)?;
    let names = [&from["first_name"], &from["last_name"]].map(|name| name.as_str());
    let names: Vec<&str> = names.into_iter().flatten().collect();
    let id = chat["id"].as_i64()?;
    let thread = message["message_thread_id"].as_i64();
    let thread = thread.filter(|_| message["is_topic_message"] == true);
    let is_forum = chat["is_forum"] == true;
    let place = match (chat["type"].as_str()?, thread) {
        ("private", _) => format!("telegram:dm:{person}"),
        ("supergroup", Some(topic)) => format!("telegram:topic:{id}:{topic}"),
        // Messages in General come without a topic.
        ("supergroup", None) if is_forum => format!("telegram:topic:{id}:1"),
        ("group" | "supergroup", _) => format!("telegram:group:{id}"),
        _ => return None,
    };
    let name = |text: &Value| text.as_str().map(name_line);
    let created = &message["reply_to_message"]["forum_topic_created"]["name"];
    let topic = name(created).or_else(|| name(&message["forum_topic_created"]["name"]));
    let general = || Some("General".to_owned()).filter(|_| is_forum);
    Some(Sighting {
        person: format!("telegram:{person}").parse().ok()?,
        person_name: name_line(&names.join(" ")),
        place: place.parse().ok()?,
        title: name(&chat["title"]),
        topic: if thread.is_some() { topic } else { general() },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_tells_who_writes_where() {
        let check = |chat: Value, rest: Value, expected: &str| {
            let mut message = json!({ "message_id": 1, "date": 1, "chat": chat,
                "from": { "id": 11, "is_bot": false, "first_name": "Alice", "last_name": "B" } });
            message
                .as_object_mut()
                .unwrap()
                .extend(rest.as_object().unwrap().clone());
            let seen = sighting(&json!({ "update_id": 1, "message": message }));
            let told = seen.map(|seen| {
                format!(
                    "{} {} {:?} {:?}",
                    seen.person_name, seen.place, seen.title, seen.topic
                )
            });
            assert_eq!(told.as_deref().unwrap_or("nothing"), expected);
        };
        let forum = json!({ "id": -100, "type": "supergroup", "title": "Team", "is_forum": true });
        check(
            json!({ "id": 11, "type": "private" }),
            json!({}),
            "Alice B telegram:dm:11 None None",
        );
        check(
            forum.clone(),
            json!({ "message_thread_id": 7, "is_topic_message": true,
                "reply_to_message": { "forum_topic_created": { "name": "Writing" } } }),
            "Alice B telegram:topic:-100:7 Some(\"Team\") Some(\"Writing\")",
        );
        check(
            forum.clone(),
            json!({}),
            "Alice B telegram:topic:-100:1 Some(\"Team\") Some(\"General\")",
        );
        check(
            json!({ "id": -5, "type": "group", "title": "Old" }),
            json!({ "message_thread_id": 7 }),
            "Alice B telegram:group:-5 Some(\"Old\") None",
        );
        check(forum, json!({ "sender_chat": { "id": -100 } }), "nothing");
        check(json!({ "id": -9, "type": "channel" }), json!({}), "nothing");
    }
}
