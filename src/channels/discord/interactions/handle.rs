//! The means to respond to an interaction, also after a restart.

use serde::{Deserialize, Serialize};

use crate::domain::{DiscordId, ReplyHandle};

/// Kept in the rows of the interaction and of its answer, and gone with them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Handle {
    pub(crate) id: DiscordId,
    pub(crate) application: DiscordId,
    pub(crate) token: String,
    pub(crate) person: DiscordId,
    pub(crate) acknowledged: Acknowledged,
}

/// The first answer to an interaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Acknowledged {
    /// "Thinking…", for everyone to see.
    Deferred,
    /// "Thinking…", for the person alone.
    DeferredEphemeral,
    /// Nothing is shown.
    Silently,
}

impl Handle {
    pub(super) fn sealed(&self) -> ReplyHandle {
        ReplyHandle(serde_json::to_string(self).expect("texts and numbers are JSON"))
    }

    pub(super) fn open(sealed: &ReplyHandle) -> Option<Self> {
        serde_json::from_str(&sealed.0).ok()
    }
}
