//! A look at a bot before the gateway runs: its account, intents, owner, servers and channels. By
//! calls alone: there is no connection to the gateway, so nobody sees the bot come online.
//!
//! <https://discord.com/developers/docs/resources/application#get-current-application>

use serde_json::Value;
use serenity::all::Permissions;

use super::api::{Api, ApiError, Call};
use crate::channels::describe::name_line;
use crate::config::Secret;
use crate::domain::{PersonId, SessionKey};

/// The intent for the text of messages, given to a bot in many servers, or in few.
const MESSAGE_CONTENT: u64 = (1 << 18) | (1 << 19);
/// Servers whose channels are listed.
const MOST_SERVERS: usize = 10;
/// Text channels, announcements and forums.
const KINDS_WITH_MESSAGES: [u64; 3] = [0, 5, 15];

/// A bot that nobody listens to yet.
pub(crate) struct Survey {
    api: Api,
}

/// The bot as Discord knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: String,
    application: String,
    /// The text of messages is shown to the bot.
    pub(crate) reads_text: bool,
    /// The person who made the application. Teams have no such person.
    pub(crate) maker: Option<(PersonId, String)>,
}

impl Account {
    /// Where an administrator of a server lets the bot in, with the permissions that it needs.
    pub(crate) fn invitation(&self) -> String {
        let permissions = Permissions::VIEW_CHANNEL
            | Permissions::SEND_MESSAGES
            | Permissions::SEND_MESSAGES_IN_THREADS
            | Permissions::READ_MESSAGE_HISTORY
            | Permissions::ATTACH_FILES
            | Permissions::ADD_REACTIONS;
        format!(
            "https://discord.com/oauth2/authorize?client_id={}&scope=bot+applications.commands&permissions={}",
            self.application,
            permissions.bits()
        )
    }

    /// Where the intent is switched on.
    pub(crate) fn settings(&self) -> String {
        format!(
            "https://discord.com/developers/applications/{}/bot",
            self.application
        )
    }
}

/// A channel that an agent could have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Channel {
    pub(crate) place: SessionKey,
    pub(crate) name: String,
    pub(crate) server: String,
}

impl Survey {
    pub(crate) fn new(api_url: &str, token: Secret) -> Self {
        Survey {
            api: Api::new(api_url, token),
        }
    }

    /// Or why not, in words.
    pub(crate) async fn account(&self) -> Result<Account, String> {
        let me = self.get("/users/@me").await?;
        let application = self.get("/applications/@me").await?;
        let flags = application["flags"].as_u64().unwrap_or_default();
        let owner = &application["owner"];
        let maker = || {
            let id = owner["id"]
                .as_str()
                .filter(|_| application["team"].is_null())?;
            let name = owner["global_name"]
                .as_str()
                .or_else(|| owner["username"].as_str());
            let person = format!("discord:{id}").parse().ok()?;
            Some((person, name_line(name.unwrap_or_default())))
        };
        Ok(Account {
            name: name_line(me["username"].as_str().unwrap_or_default()),
            application: application["id"].as_str().unwrap_or_default().to_owned(),
            reads_text: flags & MESSAGE_CONTENT != 0,
            maker: maker(),
        })
    }

    pub(crate) async fn channels(&self) -> Result<Vec<Channel>, String> {
        let servers = self.get("/users/@me/guilds").await?;
        let mut channels = Vec::new();
        for server in servers.as_array().into_iter().flatten().take(MOST_SERVERS) {
            let Some(id) = server["id"].as_str() else {
                continue;
            };
            let listed = self.get(&format!("/guilds/{id}/channels")).await?;
            let name = name_line(server["name"].as_str().unwrap_or_default());
            let of_server = listed.as_array().into_iter().flatten();
            channels.extend(of_server.filter_map(|channel| channel_of(channel, &name)));
        }
        Ok(channels)
    }

    async fn get(&self, path: &str) -> Result<Value, String> {
        let answered = self.api.call::<Value>(Call::get(path.to_owned())).await;
        answered.map_err(|error| match error {
            ApiError::Answered { status: 401, .. } => {
                "Discord knows no bot with this token".to_owned()
            }
            other => other.to_string(),
        })
    }
}

fn channel_of(channel: &Value, server: &str) -> Option<Channel> {
    let id = channel["id"].as_str()?;
    let has_messages = KINDS_WITH_MESSAGES.contains(&channel["type"].as_u64()?);
    has_messages.then_some(())?;
    Some(Channel {
        place: format!("discord:channel:{id}").parse().ok()?,
        name: name_line(channel["name"].as_str().unwrap_or_default()),
        server: server.to_owned(),
    })
}
