//! Turns an agent's Markdown into what Telegram takes: plain text and a list of entities, cut into messages.
//!
//! Entities need no escaping and can not fail to parse, and Telegram counts its limits on exactly this text.
//! The rules: <https://core.telegram.org/bots/api#messageentity>.

mod blocks;
mod definitions;
mod layout;
mod split;
mod spoilers;
mod writer;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use layout::lay_out;
use split::{Limits, split};

/// Telegram's limit for one message, in UTF-16 units.
pub(crate) const MAX_UNITS: usize = 4096;

/// Telegram ignores the entities after these.
pub(crate) const MAX_ENTITIES: usize = 100;

/// Makes the messages for an answer. None, when there is nothing to see in it.
pub(crate) fn render(markdown: &str) -> Vec<Rendered> {
    split(&lay_out(markdown), Limits { units: MAX_UNITS, entities: MAX_ENTITIES })
}

/// The text of one message, and how it is styled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rendered {
    pub(crate) text: String,
    /// By offset, the outer before the inner.
    pub(crate) entities: Vec<Entity>,
}

/// A styled stretch of a message. Offset and length count UTF-16 units.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entity {
    #[serde(flatten)]
    pub(crate) kind: EntityKind,
    pub(crate) offset: usize,
    pub(crate) length: usize,
}

/// The styles we use, with the Bot API's names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum EntityKind {
    Bold,
    Italic,
    Strikethrough,
    Spoiler,
    Code,
    Pre {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        language: Option<String>,
    },
    TextLink {
        url: String,
    },
    Blockquote,
}
