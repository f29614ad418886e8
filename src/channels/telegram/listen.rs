//! Listens to Telegram by either transport, and looks after the bot's menu and its rights beside
//! that.

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::receive::Receiver;
use super::{Instructions, WebhookSecrets, menu, polling, preflight, webhook};
use crate::channels::{Intake, ListenError};
use crate::config::Transport;
use crate::storage::Db;

pub(super) struct Listener {
    pub(super) receiver: Receiver,
    pub(super) transport: Transport,
    /// Telegram shows one of these with each call of the webhook.
    pub(super) webhook_secrets: WebhookSecrets,
    pub(super) instructions: watch::Receiver<Instructions>,
    /// Remembers the menu that Telegram was told.
    pub(super) db: Db,
}

impl Listener {
    pub(super) async fn listen(
        &self,
        intake: &Intake,
        stop: &CancellationToken,
    ) -> Result<(), ListenError> {
        let receive = async {
            match &self.transport {
                Transport::Polling => tokio::select! {
                    ended = polling::poll(&self.receiver, intake) => ended,
                    () = stop.cancelled() => Ok(()),
                },
                Transport::Webhook(webhook) => {
                    webhook::listen(&self.receiver, webhook, &self.webhook_secrets, intake, stop)
                        .await
                }
            }
        };
        tokio::select! {
            ended = receive => ended,
            () = self.look_after_account() => Ok(()),
        }
    }

    /// Runs beside the first updates, so that the questions cost no start-up time. Never ends.
    async fn look_after_account(&self) {
        let mut instructions = self.instructions.clone();
        let mut reported = None;
        loop {
            let current = instructions.borrow_and_update().clone();
            self.follow(&current, &mut reported).await;
            if instructions.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    async fn follow(&self, current: &Instructions, reported: &mut Option<preflight::Expectations>) {
        let api = &self.receiver.api;
        let me = self.receiver.me().await;
        menu::tell(api, &self.db, &current.menu).await;
        let is_known = reported.as_ref() == Some(&current.expectations);
        if let Some(me) = me.filter(|_| !is_known) {
            // A server that does not mention privacy mode gives no reason to warn.
            let reads_all = me.can_read_all_group_messages.unwrap_or(true);
            let memberships = &self.receiver.memberships;
            preflight::report(api, reads_all, &current.expectations, memberships).await;
            *reported = Some(current.expectations.clone());
        }
    }
}
