//! A bot's commands and button signatures, and its acknowledgements under way.

use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::components;
use super::menu::Menu;
use crate::channels::Text;
use crate::channels::discord::directory::id_in;
use crate::channels::discord::instructions::Instructions;
use crate::domain::{AgentId, Destination, DiscordId, Origin};
use crate::signing::Signer;

/// The longest wait of a shutdown for acknowledgements.
const SETTLED_WITHIN: Duration = Duration::from_secs(3);

/// Tells which agents a person may fetch in a place. None: the person may use no commands there.
pub(crate) type MayAsk =
    Arc<dyn Fn(Origin) -> BoxFuture<'static, Option<Vec<AgentId>>> + Send + Sync>;

pub(crate) struct Interactions {
    instructions: watch::Receiver<Instructions>,
    pub(super) may_ask: MayAsk,
    pub(super) signer: Signer,
    /// The application of the commands, from READY.
    pub(super) application: watch::Sender<Option<DiscordId>>,
    /// Acknowledgements under way. The sender is dropped at the end of the call.
    pub(super) under_way: Arc<DashMap<DiscordId, watch::Receiver<()>>>,
    pub(super) tasks: TaskTracker,
}

impl Interactions {
    pub(crate) fn new(
        instructions: watch::Receiver<Instructions>,
        may_ask: MayAsk,
        signer: Signer,
    ) -> Self {
        Interactions {
            instructions,
            may_ask,
            signer,
            application: watch::Sender::new(None),
            under_way: Arc::default(),
            tasks: TaskTracker::new(),
        }
    }

    pub(crate) fn know_application(&self, application: Option<DiscordId>) {
        self.application.send_replace(application);
    }

    /// The commands of this moment.
    pub(super) fn menu(&self) -> Menu {
        self.instructions.borrow().menu.clone()
    }

    /// Buttons or a menu for the choices of a text.
    pub(crate) fn components(&self, to: &Destination, text: &Text<'_>) -> Vec<Value> {
        components::components(&self.signer, to, text.choices)
    }

    /// Discord wants the flag with the deferral, before the answer is known. Private chats need no
    /// ephemeral messages, and would lose them soon.
    pub(super) fn is_ephemeral(&self, raw: &Value) -> bool {
        id_in(raw, "guild_id").is_some()
            && self
                .instructions
                .borrow()
                .menu
                .is_for_asker_alone(&raw["data"])
    }

    /// Returns after the acknowledgement of an interaction, whether successful or not.
    /// Acknowledgements of an earlier process are over.
    pub(super) async fn acknowledged(&self, interaction: DiscordId) {
        let under_way = self
            .under_way
            .get(&interaction)
            .map(|under_way| under_way.clone());
        if let Some(mut under_way) = under_way {
            drop(under_way.changed().await);
        }
    }

    /// Returns when no acknowledgement is under way any more.
    pub(crate) async fn settled(&self) {
        self.tasks.close();
        drop(timeout(SETTLED_WITHIN, self.tasks.wait()).await);
    }
}
