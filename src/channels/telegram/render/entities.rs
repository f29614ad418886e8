//! A rendered message: text and entities, as the Bot API takes them.

use serde::{Deserialize, Serialize};

/// The text and the styles of a message.
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
