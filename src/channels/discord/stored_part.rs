//! The parts of an answer as outbox rows keep them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::interactions::handle::Handle;
use crate::channels::{Part, SendError};
use crate::domain::DiscordId;

/// A call to Discord.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "to", rename_all = "snake_case")]
pub(super) enum StoredPart {
    Channel { content: Content },
    Interaction(InteractionPart),
}

/// A part of the response to an interaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InteractionPart {
    pub(super) handle: Handle,
    /// Counted from 0.
    pub(super) number: usize,
    pub(super) is_ephemeral: bool,
    pub(super) content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Content {
    /// A whole answer, as a file.
    File { markdown: String },
    Message {
        text: String,
        /// The message to quote.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quote: Option<DiscordId>,
        /// The quote is left out unless other people wrote after this message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        if_others_wrote_after: Option<DiscordId>,
        /// Rows of buttons and menus, as Discord takes them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        components: Vec<Value>,
    },
}

impl StoredPart {
    pub(super) fn read(part: &Part) -> Result<Self, SendError> {
        serde_json::from_str(&part.0).map_err(|error| SendError::Refused(error.to_string()))
    }

    pub(super) fn into_part(self) -> Part {
        Part(serde_json::to_string(&self).expect("texts and numbers are JSON"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::channels::discord::interactions::handle::Acknowledged;

    #[test]
    fn a_part_is_the_same_after_a_restart() {
        let message = Content::Message {
            text: "hi".into(),
            quote: Some(DiscordId(u64::MAX)),
            if_others_wrote_after: None,
            components: vec![json!({ "type": 1 })],
        };
        let handle = Handle {
            id: DiscordId(1),
            application: DiscordId(2),
            token: "t".into(),
            person: DiscordId(3),
            acknowledged: Acknowledged::Deferred,
        };
        let file = Content::File {
            markdown: "long".into(),
        };
        let parts = [
            StoredPart::Channel { content: message },
            StoredPart::Interaction(InteractionPart {
                handle,
                number: 1,
                is_ephemeral: true,
                content: file,
            }),
        ];
        for part in parts {
            assert_eq!(StoredPart::read(&part.clone().into_part()).unwrap(), part);
        }
    }
}
