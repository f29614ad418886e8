//! The fields of an interaction.
//!
//! <https://discord.com/developers/docs/interactions/receiving-and-responding#interaction-object>

use serde_json::Value;

use crate::channels::discord::directory::id_in;
use crate::domain::DiscordId;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InteractionKind {
    Command,
    /// A button or a menu.
    Component,
    Autocomplete,
    /// Parlor offers no forms or other kinds.
    Other,
}

pub(super) fn kind(raw: &Value) -> InteractionKind {
    match raw["type"].as_u64() {
        Some(2) => InteractionKind::Command,
        Some(3) => InteractionKind::Component,
        Some(4) => InteractionKind::Autocomplete,
        _ => InteractionKind::Other,
    }
}

/// Servers name a member, private chats a user.
pub(super) fn user(raw: &Value) -> &Value {
    if raw["member"]["user"].is_object() {
        &raw["member"]["user"]
    } else {
        &raw["user"]
    }
}

pub(super) fn person(raw: &Value) -> Option<DiscordId> {
    id_in(user(raw), "id")
}
