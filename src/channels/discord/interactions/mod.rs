//! Slash commands, buttons and menus. Discord wants an answer within three seconds, so interactions
//! are acknowledged at once, beside everything else, and then handled like written commands.
//!
//! <https://discord.com/developers/docs/interactions/receiving-and-responding>

pub(super) mod acknowledge;
mod autocomplete;
mod callback;
mod components;
pub(super) mod handle;
pub(super) mod menu;
mod payload;
mod read;
pub(super) mod register;
pub(super) mod respond;
pub(super) mod state;

pub(super) use components::pressed;
pub(crate) use menu::{Menu, Offered, SlashCommand, SlashOption, Suggestion};
pub(crate) use state::MayAsk;
