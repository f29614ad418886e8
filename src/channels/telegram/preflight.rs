//! Checks once at the start whether the bot has the rights that the config needs, and warns in the
//! log.
//!
//! Runs beside everything else: no message waits, and a failed question is not asked again.

use serde::{Deserialize, Serialize};
use teloxide::requests::Payload;

use super::api::{Api, ApiError};
use super::memberships::{Member, Memberships, Rank};
use super::send::CHAT_NOT_FOUND;
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
struct Told {
    status: Option<String>,
    is_member: Option<bool>,
    can_send_messages: Option<bool>,
}

impl Payload for GetChatMember<'_> {
    type Output = Told;
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

/// A right that the config needs and the bot lacks. The texts name the binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shortcoming {
    /// Telegram knows no such group.
    NoSuchGroup(String),
    /// The bot is not in the group.
    Outside(String),
    /// The bot may not write in the group.
    Mute(String),
    /// The bot's privacy mode hides messages; names the part of the config that wants them.
    Privacy(String),
}

pub(super) async fn report(
    api: &Api,
    reads_all: bool,
    expectations: &Expectations,
    memberships: &Memberships,
) {
    memberships.set_privacy_mode(!reads_all);
    for short in look(api, reads_all, expectations, memberships).await {
        match short {
            Shortcoming::NoSuchGroup(binding) => tracing::warn!(
                "Telegram does not know the group of the binding `{binding}`. Correct its number (/whoami in the group tells it), or add the bot there"
            ),
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
    memberships: &Memberships,
) -> Vec<Shortcoming> {
    let mut found = Vec::new();
    let mut deaf_to: Option<&str> = None;
    for group in expectations.groups.iter().take(MOST_GROUPS) {
        let binding = &group.binding;
        let rank = rank(api, group.chat).await;
        if let Ok(rank) = &rank {
            memberships.note(group.chat, *rank);
        }
        match rank {
            Ok(Rank::Unknown) => found.push(Shortcoming::NoSuchGroup(binding.clone())),
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
        }) if description.contains(CHAT_NOT_FOUND) => {
            return Ok(Rank::Unknown);
        }
        Err(error) => return Err(error),
    };
    match member.rank() {
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

impl Told {
    fn rank(&self) -> Rank {
        let member = Member {
            status: self.status.as_deref(),
            is_member: self.is_member,
            can_send_messages: self.can_send_messages,
        };
        member.rank()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_member_is_told_from_a_guest_and_an_admin() {
        let check = |told: Value, expected| {
            let member: Told = serde_json::from_value(told).unwrap();
            assert_eq!(member.rank(), expected, "{member:?}");
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
