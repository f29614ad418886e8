//! Looks at the bot's account and its places for `parlor doctor`. Changes nothing.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use super::api::{Api, ApiError, Call};
use super::expected_places::{Expected, ExpectedPlace};
use crate::config::Discord;

/// A bot that does not answer by then is not waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bindings to look at; each may cost some calls.
const MOST_ASKED: usize = 20;

/// The bot as an operator should know it. Texts name the binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    Well {
        username: Option<String>,
        /// How far Discord's clock is ahead of ours.
        ahead_ms: i64,
    },
    TokenRefused,
    NotReached(String),
    /// Message Content Intent is off.
    NoMessageContent,
    NotOnServer(String),
    CannotSee(String),
    Lacks {
        binding: String,
        missing: Vec<&'static str>,
    },
    /// No slash command is registered.
    NoCommands,
}

/// <https://discord.com/developers/docs/resources/application#application-object-application-flags>
const MESSAGE_CONTENT: u64 = (1 << 18) | (1 << 19);

/// <https://discord.com/developers/docs/topics/permissions#permissions-bitwise-permission-flags>
const ADMINISTRATOR: u64 = 1 << 3;
const VIEW_CHANNEL: u64 = 1 << 10;
const SEND_MESSAGES: u64 = 1 << 11;
const READ_MESSAGE_HISTORY: u64 = 1 << 16;
const SEND_IN_THREADS: u64 = 1 << 38;

/// Ids are text.
#[derive(Deserialize)]
struct Application {
    id: String,
    #[serde(default)]
    flags: u64,
}

#[derive(Deserialize)]
struct Me {
    id: String,
    username: Option<String>,
}

pub(crate) async fn examine(config: &Discord, expected: &[ExpectedPlace]) -> Vec<Found> {
    let platform = &config.platform;
    let api = Api::new(&platform.api_url, platform.token.clone());
    let found = timeout(PATIENCE, look(&api, expected)).await;
    found.unwrap_or_else(|_| vec![Found::NotReached("no answer within 10 s".into())])
}

async fn look(api: &Api, expected: &[ExpectedPlace]) -> Vec<Found> {
    let me: Me = match api.call(Call::get("/users/@me".into())).await {
        Ok(me) => me,
        Err(ApiError::Answered { status: 401, .. }) => return vec![Found::TokenRefused],
        Err(error) => return vec![Found::NotReached(error.to_string())],
    };
    let mut found = vec![Found::Well {
        username: me.username,
        ahead_ms: api.now_ms() - crate::clock::now_ms(),
    }];
    let application = api.call::<Application>(Call::get("/applications/@me".into()));
    if let Ok(application) = application.await {
        if application.flags & MESSAGE_CONTENT == 0 {
            found.push(Found::NoMessageContent);
        }
        let path = format!("/applications/{}/commands", application.id);
        let commands = api.call::<Vec<Value>>(Call::get(path)).await;
        found.extend(
            commands
                .is_ok_and(|list| list.is_empty())
                .then_some(Found::NoCommands),
        );
    }
    for place in expected.iter().take(MOST_ASKED) {
        found.extend(look_at(api, &me.id, place).await);
    }
    found
}

async fn look_at(api: &Api, me: &str, place: &ExpectedPlace) -> Option<Found> {
    let binding = place.binding.clone();
    let (channel, is_server) = match place.what {
        Expected::Server(server) => {
            let asked = api.call::<Value>(Call::get(format!("/guilds/{server}")));
            return is_closed(&asked.await).then_some(Found::NotOnServer(binding));
        }
        Expected::Category(id) => (id, false),
        Expected::Channel(id) => (id, true),
    };
    let asked = api
        .call::<Value>(Call::get(format!("/channels/{channel}")))
        .await;
    if is_closed(&asked) {
        return Some(Found::CannotSee(binding));
    }
    let channel = asked.ok().filter(|_| is_server)?;
    let missing = missing(api, me, &channel).await?;
    if missing.contains(&"View Channel") {
        return Some(Found::CannotSee(binding));
    }
    (!missing.is_empty()).then_some(Found::Lacks { binding, missing })
}

fn is_closed(asked: &Result<Value, ApiError>) -> bool {
    matches!(
        asked,
        Err(ApiError::Answered {
            status: 403 | 404,
            ..
        })
    )
}

/// Permissions that the bot needs in a channel and does not have. A thread has those of its channel.
async fn missing(api: &Api, me: &str, channel: &Value) -> Option<Vec<&'static str>> {
    const PUBLIC_THREADS: [u64; 3] = [10, 11, 12];
    let kind = channel["type"].as_u64().unwrap_or_default();
    let is_thread = PUBLIC_THREADS.contains(&kind);
    let above;
    let channel = match (is_thread, channel["parent_id"].as_str()) {
        (true, Some(parent)) => {
            above = api
                .call::<Value>(Call::get(format!("/channels/{parent}")))
                .await
                .ok()?;
            &above
        }
        _ => channel,
    };
    let server = channel["guild_id"].as_str()?;
    let server: Value = api
        .call(Call::get(format!("/guilds/{server}")))
        .await
        .ok()?;
    let path = format!("/guilds/{}/members/{me}", server["id"].as_str()?);
    let member: Value = api.call(Call::get(path)).await.ok()?;
    let may = permissions(&server, &member, &channel["permission_overwrites"], me);
    let send = if is_thread {
        (SEND_IN_THREADS, "Send Messages in Threads")
    } else {
        (SEND_MESSAGES, "Send Messages")
    };
    let needed = [
        (VIEW_CHANNEL, "View Channel"),
        send,
        (READ_MESSAGE_HISTORY, "Read Message History"),
    ];
    let missing = needed.into_iter().filter(|(bit, _)| may & bit == 0);
    Some(missing.map(|(_, name)| name).collect())
}

/// <https://discord.com/developers/docs/topics/permissions#permission-overwrites>
fn permissions(server: &Value, member: &Value, overwrites: &Value, me: &str) -> u64 {
    let everyone = server["id"].as_str().unwrap_or_default();
    let own: Vec<&str> = strings(&member["roles"]);
    let roles = server["roles"].as_array().into_iter().flatten();
    let counts = |id: &str| id == everyone || own.contains(&id);
    let base = roles
        .filter(|role| role["id"].as_str().is_some_and(counts))
        .fold(0, |may, role| may | bits(&role["permissions"]));
    if base & ADMINISTRATOR != 0 || server["owner_id"].as_str() == Some(me) {
        return u64::MAX;
    }
    let of = |ids: &[&str]| {
        let list = overwrites.as_array().into_iter().flatten();
        let own = list.filter(|entry| entry["id"].as_str().is_some_and(|id| ids.contains(&id)));
        own.fold((0, 0), |(deny, allow), entry| {
            (deny | bits(&entry["deny"]), allow | bits(&entry["allow"]))
        })
    };
    [of(&[everyone]), of(&own), of(&[me])]
        .into_iter()
        .fold(base, |may, (deny, allow)| may & !deny | allow)
}

fn strings(list: &Value) -> Vec<&str> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).collect()
}

fn bits(text: &Value) -> u64 {
    text.as_str()
        .and_then(|text| text.parse().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn overwrites_count_in_discords_order() {
        let server = json!({ "id": "1", "owner_id": "9", "roles": [
            { "id": "1", "permissions": (VIEW_CHANNEL | SEND_MESSAGES).to_string() },
            { "id": "2", "permissions": READ_MESSAGE_HISTORY.to_string() },
            { "id": "3", "permissions": ADMINISTRATOR.to_string() },
        ]});
        let me = "7";
        let check = |roles: Value, overwrites: Value, expected: u64| {
            let member = json!({ "roles": roles });
            assert_eq!(
                permissions(&server, &member, &overwrites, me),
                expected,
                "{overwrites}"
            );
        };
        let all = VIEW_CHANNEL | SEND_MESSAGES | READ_MESSAGE_HISTORY;
        check(json!([]), json!([]), VIEW_CHANNEL | SEND_MESSAGES);
        check(json!(["2"]), json!([]), all);
        check(json!(["3"]), json!([]), u64::MAX);
        let denied =
            |id: &str, bit: u64| json!({ "id": id, "deny": bit.to_string(), "allow": "0" });
        let allowed =
            |id: &str, bit: u64| json!({ "id": id, "deny": "0", "allow": bit.to_string() });
        check(
            json!(["2"]),
            json!([denied("1", SEND_MESSAGES)]),
            all & !SEND_MESSAGES,
        );
        check(
            json!(["2"]),
            json!([denied("1", SEND_MESSAGES), allowed("2", SEND_MESSAGES)]),
            all,
        );
        check(
            json!(["2"]),
            json!([allowed("2", SEND_MESSAGES), denied("7", SEND_MESSAGES)]),
            all & !SEND_MESSAGES,
        );
        check(json!(["2"]), json!([denied("8", SEND_MESSAGES)]), all);
    }
}
