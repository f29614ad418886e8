//! Telegram: raw long polling in, text with entities out.
//!
//! teloxide brings the Bot API's types; the HTTP calls are our own, because teloxide's client sleeps ten seconds inside
//! every call that meets a 5xx and hides what a failed call said.

mod api;
mod listen;
mod parse;
mod render;
mod send;

use async_trait::async_trait;
use teloxide::types::Me;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::{Channel, Intake, Limits, ListenError, Pace, Part, Progress, SendError};
use crate::config::{GroupSessions, Telegram};
use crate::domain::{Destination, MessageId, Platform};

/// One bot's connection.
pub struct TelegramChannel {
    api: api::Api,
    limits: Limits,
    group_sessions: GroupSessions,
    /// Who we are; asked for once.
    me: OnceCell<Me>,
}

impl TelegramChannel {
    pub fn new(config: &Telegram, group_sessions: GroupSessions) -> Self {
        let limits = Limits {
            all_per_second: config.limits.per_second,
            chat_per_second: config.limits.chat_per_second,
            group_per_minute: config.limits.group_per_minute,
        };
        TelegramChannel { api: api::Api::new(&config.api_url, config.token.clone()), limits, group_sessions, me: OnceCell::new() }
    }
}

#[async_trait]
impl Channel for TelegramChannel {
    fn platform(&self) -> Platform {
        Platform::Telegram
    }

    async fn listen(&self, intake: Intake, stop: CancellationToken) -> Result<(), ListenError> {
        listen::listen(self, &intake, &stop).await
    }

    fn render(&self, _speaker: Option<&str>, markdown: &str) -> Vec<Part> {
        send::render(markdown)
    }

    async fn send(&self, to: &Destination, part: &Part) -> Result<MessageId, SendError> {
        send::send(&self.api, to, part).await
    }

    async fn progress(&self, to: &Destination, progress: Progress<'_>) {
        if let Progress::Working = progress {
            send::typing(&self.api, to).await;
        }
    }

    fn pace(&self, to: &Destination) -> Option<Pace> {
        send::address(to).map(|address| Pace { chat: address.chat_id, is_group: address.chat_id < 0, limits: self.limits })
    }
}
