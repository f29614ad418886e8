//! Checks once at the start whether the bot has the rights that the config needs, and warns in the
//! log.
//!
//! Runs beside everything else: no message waits, and a failed question is not asked again.

use serde::{Deserialize, Serialize};
use teloxide::requests::Payload;

use super::api::{Api, ApiError};
use crate::domain::ChatId;

/// More groups than this are not asked about.
const MOST_GROUPS: usize = 20;

/// The config's expectations of the bot in groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Expectations {
    /// The bot should hear everything in groups without a binding.
    pub hears_everything_elsewhere: bool,
    pub groups: Vec<ExpectedGroup>,
}

/// A group with a binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpectedGroup {
    pub chat: ChatId,
    /// The binding's `match`, for the operator.
    pub binding: String,
    /// Also messages without a mention of the bot.
    pub hears_everything: bool,
}

#[derive(Serialize)]
struct GetChatMember<'a> {
    chat_id: i64,
    user_id: &'a str,
}

/// <https://core.telegram.org/bots/api#chatmember>
#[derive(Debug, Deserialize)]
struct Member {
    status: Option<String>,
    is_member: Option<bool>,
    can_send_messages: Option<bool>,
}

impl Payload for GetChatMember<'_> {
    type Output = Member;
    const NAME: &'static str = "getChatMember";
}

#[derive(Serialize)]
struct GetChat {
    chat_id: i64,
}

#[derive(Deserialize)]
struct Chat {
    permissions: Option<Permissions>,
}

#[derive(Deserialize)]
struct Permissions {
    can_send_messages: Option<bool>,
}

impl Payload for GetChat {
    type Output = Chat;
    const NAME: &'static str = "getChat";
}

/// How the bot stands in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rank {
    Outside,
    /// Inside, but may not write.
    Mute,
    Member,
    /// Hears everything, in any privacy mode.
    Admin,
}

/// A right that the config needs and the bot lacks. The texts name the binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shortcoming {
    /// The bot is not in the group.
    Outside(String),
    /// The bot may not write in the group.
    Mute(String),
    /// The bot's privacy mode hides messages; names the part of the config that wants them.
    Privacy(String),
}

pub(super) async fn report(api: &Api, reads_all: bool, expectations: &Expectations) {
    for short in look(api, reads_all, expectations).await {
        match short {
            Shortcoming::Outside(binding) => tracing::warn!(
                "the bot is not in the group of the binding `{binding}`. Add it there, or remove the binding"
            ),
            Shortcoming::Mute(binding) => tracing::warn!(
                "the bot may not write in the group of the binding `{binding}`. Let it send messages there, or make it an admin"
            ),
            Shortcoming::Privacy(wanted_by) => tracing::warn!(
                "{wanted_by} says require_mention = false, but the bot's privacy mode is on, so Telegram shows it only commands, mentions and \
                 replies. Send /setprivacy to @BotFather, choose Disable, then remove the bot from the group and add it again"
            ),
        }
    }
}

pub(super) async fn look(
    api: &Api,
    reads_all: bool,
    expectations: &Expectations,
) -> Vec<Shortcoming> {
    let mut found = Vec::new();
    let mut deaf_to: Option<&str> = None;
    for group in expectations.groups.iter().take(MOST_GROUPS) {
        let binding = &group.binding;
        match rank(api, group.chat).await {
            Ok(Rank::Outside) => found.push(Shortcoming::Outside(binding.clone())),
            Ok(Rank::Mute) => found.push(Shortcoming::Mute(binding.clone())),
            Ok(Rank::Member) if group.hears_everything => deaf_to = deaf_to.or(Some(binding)),
            Ok(Rank::Member | Rank::Admin) => {}
            Err(error) => {
                tracing::debug!("asking about the group of the binding `{binding}`: {error}");
            }
        }
    }
    let wanted_by = match deaf_to {
        Some(binding) => Some(format!("the binding `{binding}`")),
        None => expectations
            .hears_everything_elsewhere
            .then(|| "[access]".to_owned()),
    };
    found.extend(wanted_by.filter(|_| !reads_all).map(Shortcoming::Privacy));
    found
}

async fn rank(api: &Api, chat: ChatId) -> Result<Rank, ApiError> {
    let member = match api
        .call(&GetChatMember {
            chat_id: chat.0,
            user_id: api.bot_id(),
        })
        .await
    {
        Ok(member) => member,
        // Telegram tells nothing about groups that removed the bot.
        Err(ApiError::Answered { code: 403, .. }) => return Ok(Rank::Outside),
        Err(ApiError::Answered {
            code: 400,
            description,
            ..
        }) if description.contains("chat not found") => {
            return Ok(Rank::Outside);
        }
        Err(error) => return Err(error),
    };
    match rank_of(&member) {
        // The rights of members are a setting of the group.
        Rank::Member => {
            let chat = api.call(&GetChat { chat_id: chat.0 }).await?;
            let may_send = chat
                .permissions
                .and_then(|permissions| permissions.can_send_messages);
            Ok(if may_send == Some(false) {
                Rank::Mute
            } else {
                Rank::Member
            })
        }
        rank => Ok(rank),
    }
}

fn rank_of(member: &Member) -> Rank {
    match member.status.as_deref() {
        Some("left" | "kicked") => Rank::Outside,
        Some("restricted") if member.is_member == Some(false) => Rank::Outside,
        Some("restricted") if member.can_send_messages == Some(false) => Rank::Mute,
        Some("administrator" | "creator") => Rank::Admin,
        _ => Rank::Member,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_member_is_told_from_a_guest_and_an_admin() {
        let check = |told: Value, expected| {
            let member: Member = serde_json::from_value(told).unwrap();
            assert_eq!(rank_of(&member), expected, "{member:?}");
        };
        check(json!({ "status": "member" }), Rank::Member);
        check(json!({ "status": "left" }), Rank::Outside);
        check(json!({ "status": "kicked" }), Rank::Outside);
        check(json!({ "status": "administrator" }), Rank::Admin);
        check(json!({ "status": "creator" }), Rank::Admin);
        check(
            json!({ "status": "restricted", "is_member": false, "can_send_messages": true }),
            Rank::Outside,
        );
        check(
            json!({ "status": "restricted", "is_member": true, "can_send_messages": false }),
            Rank::Mute,
        );
        check(
            json!({ "status": "restricted", "is_member": true, "can_send_messages": true }),
            Rank::Member,
        );
        check(
            json!({ "status": "restricted", "is_member": null, "can_send_messages": null }),
            Rank::Member,
        );
        check(json!({ "status": "something new" }), Rank::Member);
        check(json!({}), Rank::Member);
    }
}
