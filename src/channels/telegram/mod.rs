//! Telegram: raw long polling or a webhook in, text with entities out.
//!
//! teloxide brings the Bot API's types; the HTTP calls are our own, because teloxide's client
//! sleeps ten seconds inside every call that meets a 5xx and hides the text of a failure.

mod address;
mod addressing;
mod api;
mod buttons;
mod content;
pub(crate) mod examine;
mod files;
pub(crate) mod fuzz;
pub(crate) mod init_data;
mod listen;
mod me;
mod memberships;
mod menu;
mod parse;
mod polling;
mod position;
mod preflight;
mod presses;
mod reaction_updates;
mod reactions;
mod receive;
mod render;
mod send;
mod sending_files;
mod stream;
mod survey;
mod types;
mod updates;
mod webhook;
mod webhook_secrets;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::nicknames::Nicknames;
use super::{
    Abilities, Barred, Channel, FetchError, Health, Intake, Limits, ListenError, Outcome, Part,
    Progress, Revision, SendError, Streaming, Text, Ticket,
};
use crate::config::{Answers, GroupSessions, Telegram};
use crate::domain::{Destination, FileRef, MessageId, OutgoingFile, Platform, SessionKey};
use crate::signing::Signer;
use crate::storage::Db;

use listen::Listener;
use memberships::Memberships;
use presses::Presses;
use reactions::{FAILED, WORKING};
use receive::Receiver;

pub(crate) use menu::{Menu, MenuEntry};
pub(crate) use preflight::{Expectations, ExpectedGroup, Shortcoming};
pub(super) use sending_files::MAX_UPLOAD_BYTES;
pub(crate) use survey::{Account, Sighting, Survey, SurveyError};
pub(crate) use webhook_secrets::WebhookSecrets;

/// <https://core.telegram.org/bots/api#sendchataction>: "5 seconds or less".
const TYPING_LASTS: Duration = Duration::from_secs(5);

/// The connection of a bot.
pub(crate) struct TelegramChannel {
    api: Arc<api::Api>,
    listener: Listener,
    limits: Limits,
    /// Whether answers are shown while they are written.
    streaming: bool,
    style: Answers,
    max_file_mb: u32,
    signer: Signer,
    newest: Arc<send::Newest>,
    presses: Arc<Presses>,
    memberships: Arc<Memberships>,
}

/// The dependencies of a bot besides its config.
pub(crate) struct ChannelDeps {
    pub signer: Signer,
    pub webhook_secrets: WebhookSecrets,
    pub instructions: watch::Receiver<Instructions>,
    /// How many agents there are, for the operator.
    pub agents: usize,
    pub db: Db,
}

/// What the rest of the config asks of the bot. Followed while connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instructions {
    pub menu: Menu,
    pub expectations: Expectations,
}

impl TelegramChannel {
    pub(crate) fn new(config: &Telegram, group_sessions: GroupSessions, deps: ChannelDeps) -> Self {
        let limits = Limits {
            all_per_second: config.limits.per_second,
            chat_per_second: config.limits.chat_per_second,
            group_per_minute: config.limits.group_per_minute,
        };
        let platform = &config.platform;
        let api = Arc::new(api::Api::new(
            &platform.api_url,
            platform.token.clone(),
            config.proxy.clone(),
        ));
        let newest = Arc::new(send::Newest::default());
        let presses = Arc::new(Presses::default());
        let memberships = Arc::new(Memberships::default());
        let nicknames = Nicknames::new(&platform.nicknames);
        let gather = platform.gather();
        let receiver = Receiver::new(
            api.clone(),
            group_sessions,
            nicknames,
            gather,
            deps.signer.clone(),
            newest.clone(),
        )
        .noting(presses.clone())
        .knowing(memberships.clone())
        .for_agents(deps.agents);
        let listener = Listener {
            receiver,
            transport: config.transport.clone(),
            webhook_secrets: deps.webhook_secrets,
            instructions: deps.instructions,
            db: deps.db,
        };
        let (streaming, style, max_file_mb) =
            (platform.streaming, platform.answers, platform.max_file_mb);
        TelegramChannel {
            api,
            listener,
            limits,
            streaming,
            style,
            max_file_mb,
            signer: deps.signer,
            newest,
            presses,
            memberships,
        }
    }
}

#[async_trait]
impl Channel for TelegramChannel {
    fn abilities(&self) -> Abilities {
        let shown = |streaming| {
            if self.streaming {
                streaming
            } else {
                Streaming::Off
            }
        };
        Abilities {
            platform: Platform::Telegram,
            limits: Some(self.limits),
            typing_lasts: Some(TYPING_LASTS),
            reactions: self.style.reactions,
            changes: true,
            streaming_in_private: shown(stream::IN_PRIVATE),
            streaming_in_groups: shown(stream::IN_GROUPS),
        }
    }

    async fn listen(&self, intake: Intake, stop: CancellationToken) -> Result<(), ListenError> {
        self.listener.listen(&intake, &stop).await
    }

    fn render(&self, to: &Destination, text: &Text<'_>) -> Vec<Part> {
        send::render(&self.signer, self.style, to, text)
    }

    async fn send(
        &self,
        to: &Destination,
        part: &Part,
        _ticket: &Ticket,
    ) -> Result<MessageId, SendError> {
        let seen = send::Seen {
            newest: &self.newest,
            presses: &self.presses,
        };
        let sent = send::send(&self.api, self.style, seen, to, part).await;
        let sent = sent.map_err(|error| send::without_group(to, error));
        match &sent {
            Ok(_) => self.memberships.learn(to.place(), None),
            Err(SendError::PlaceLost(loss)) => self.memberships.learn(to.place(), Some(*loss)),
            Err(_) => {}
        }
        sent
    }

    fn barred(&self, place: &SessionKey) -> Option<Barred> {
        self.memberships.barred(place)
    }

    fn is_hard_of_hearing(&self, place: &SessionKey) -> bool {
        self.memberships.is_hard_of_hearing(place)
    }

    async fn progress(&self, to: &Destination, progress: Progress<'_>) -> Result<(), SendError> {
        match progress {
            Progress::Working => send::typing(&self.api, to).await,
            Progress::Text { .. } | Progress::Remark { .. } => Ok(()),
            Progress::Taken => {
                if let Some(press) = to.reply() {
                    self.presses.settle(&press.0);
                }
                Ok(())
            }
            Progress::Begun(message) => reactions::set(&self.api, to, message, Some(WORKING)).await,
            Progress::Over(message, outcome) => {
                let emoji = (outcome == Outcome::Failed).then_some(FAILED);
                reactions::set(&self.api, to, message, emoji).await
            }
        }
    }

    async fn revise(&self, to: &Destination, revision: Revision<'_>) -> Result<(), SendError> {
        stream::revise(&self.api, self.style, to, revision).await
    }

    async fn send_file(
        &self,
        to: &Destination,
        file: &OutgoingFile,
        path: &Path,
        _ticket: &Ticket,
    ) -> Result<MessageId, SendError> {
        sending_files::send_file(&self.api, self.style, to, file, path).await
    }

    async fn fetch(&self, file: &FileRef, to: &Path) -> Result<(), FetchError> {
        files::fetch(&self.api, file, to, self.max_file_mb).await
    }

    fn health(&self) -> Option<&Health> {
        Some(self.api.health())
    }

    async fn is_reachable(&self) -> bool {
        self.api.call(&me::GetMe {}).await.is_ok()
    }
}
