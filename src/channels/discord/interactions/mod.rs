//! Slash commands, buttons and menus. Discord wants an answer within three seconds, so a first one is given as soon as they
//! come, beside everything else. Then they take the way of a command that somebody wrote.
//!
//! <https://discord.com/developers/docs/interactions/receiving-and-responding>

mod answer;
mod first;
mod menu;
mod pickers;
mod read;
mod typing;

use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::DiscordChannel;
use super::directory::id_in;
use super::shard::Event;
use crate::channels::Text;
use crate::domain::{Destination, DiscordId};
use crate::signing::Signer;

pub(super) use answer::is_for_asker_alone;
pub(super) use menu::register;
pub use menu::{Menu, Offered, SlashCommand, SlashOption, Suggestion};
pub use typing::MayAsk;

/// How long the end waits for first answers that are being given.
const AT_THE_END: Duration = Duration::from_secs(3);

pub(super) struct Interactions {
    menu: Menu,
    may_ask: MayAsk,
    signer: Signer,
    /// Whose commands they are; Discord tells when it greets us.
    application: watch::Sender<Option<DiscordId>>,
    /// First answers that are being given. The end of the sender is the end of the call.
    under_way: Arc<DashMap<DiscordId, watch::Receiver<()>>>,
    tasks: TaskTracker,
}

/// Gives first answers to what wants one, and passes everything on in the order it came. Returns when no more comes.
pub(super) async fn answer_first(channel: &DiscordChannel, mut events: mpsc::Receiver<Event>, onward: mpsc::Sender<Event>) {
    while let Some(event) = events.recv().await {
        if let ("INTERACTION_CREATE", Ok(data)) = (event.kind.as_str(), &event.data) {
            channel.give_first_answer(data);
        }
        if onward.send(event).await.is_err() {
            return;
        }
    }
}

impl Interactions {
    pub(super) fn new(menu: Menu, may_ask: MayAsk, signer: Signer) -> Self {
        Interactions {
            menu,
            may_ask,
            signer,
            application: watch::Sender::new(None),
            under_way: Arc::default(),
            tasks: TaskTracker::new(),
        }
    }

    pub(super) fn know_application(&self, application: Option<DiscordId>) {
        self.application.send_replace(application);
    }

    /// Buttons or a menu to choose from.
    pub(super) fn components(&self, to: &Destination, text: &Text<'_>) -> Vec<Value> {
        pickers::components(&self.signer, to, text.choices)
    }

    /// Returns once the first answer to an interaction is given, or has failed. What an earlier process began is over.
    async fn first_is_given(&self, interaction: DiscordId) {
        let under_way = self.under_way.get(&interaction).map(|under_way| under_way.clone());
        if let Some(mut under_way) = under_way {
            drop(under_way.changed().await);
        }
    }

    /// Returns when no first answer is being given any more.
    pub(super) async fn settled(&self) {
        self.tasks.close();
        drop(timeout(AT_THE_END, self.tasks.wait()).await);
    }
}

/// Which command was pressed or chosen; none if we did not make that button for this place.
fn pressed(signer: &Signer, raw: &Value) -> Option<String> {
    let data = &raw["data"];
    let payload = data["values"][0].as_str().or_else(|| data["custom_id"].as_str())?;
    let person = person(raw)?;
    let scope = match id_in(raw, "guild_id") {
        Some(_) => pickers::Scope::Channel(id_in(raw, "channel_id")?),
        None => pickers::Scope::Private(person),
    };
    pickers::pressed(signer, scope, payload).map(str::to_owned)
}

/// On servers it is a member who did it.
fn user(raw: &Value) -> &Value {
    if raw["member"]["user"].is_object() { &raw["member"]["user"] } else { &raw["user"] }
}

fn person(raw: &Value) -> Option<DiscordId> {
    id_in(user(raw), "id")
}

/// What somebody did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Did {
    UsedCommand,
    PressedOrChose,
    Types,
    /// Nothing that we offered.
    Other,
}

fn did(raw: &Value) -> Did {
    match raw["type"].as_u64() {
        Some(2) => Did::UsedCommand,
        Some(3) => Did::PressedOrChose,
        Some(4) => Did::Types,
        _ => Did::Other,
    }
}
