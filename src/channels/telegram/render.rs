//! Turns an agent's Markdown into Telegram's form: plain text and a list of entities, cut into
//! messages.
//!
//! Entities need no escaping and can not fail to parse, and Telegram counts its limits on exactly
//! this text. The rules: <https://core.telegram.org/bots/api#messageentity>.

mod blocks;
mod definitions;
mod entities;
mod layout;
mod split;
mod spoilers;
mod writer;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use layout::lay_out;
use split::{Limits, split};

pub(crate) use entities::{Entity, EntityKind, Rendered};

/// Telegram's limit for a message, in UTF-16 units.
pub(crate) const MAX_UNITS: usize = 4096;

/// Telegram ignores the entities after these.
pub(crate) const MAX_ENTITIES: usize = 100;

/// Makes the messages for an answer. An answer without visible text makes none.
pub(crate) fn render(markdown: &str) -> Vec<Rendered> {
    split(
        &lay_out(markdown),
        Limits {
            units: MAX_UNITS,
            entities: MAX_ENTITIES,
        },
    )
}
