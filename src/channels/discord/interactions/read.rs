//! Reads an interaction as the command that somebody could have written.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Did, Interactions, did, person, pressed, user};
use crate::channels::discord::content;
use crate::channels::discord::directory::{Surroundings, id_in};
use crate::channels::discord::parse::{Reader, origin, sent_at};
use crate::domain::{Addressed, DiscordId, Extras, Inbound, MessageId, ReplyHandle};

/// What is needed to answer an interaction, also after a restart. In the rows of the message and of its answer, and gone with
/// them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Handle {
    pub(super) id: DiscordId,
    pub(super) application: DiscordId,
    pub(super) token: String,
    pub(super) person: DiscordId,
    pub(super) first: First,
}

/// What the first answer was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum First {
    /// "Thinking…", for everyone to see.
    Later,
    /// "Thinking…", for the one who asked.
    LaterForAskerAlone,
    /// Nothing that can be seen.
    Nothing,
}

impl Interactions {
    /// None for what has been answered for good.
    pub(in crate::channels::discord) fn read(&self, reader: &Reader<'_>, raw: &Value, around: &Surroundings) -> Option<Inbound> {
        let (id, channel, person) = (id_in(raw, "id")?, id_in(raw, "channel_id")?, person(raw)?);
        let (text, first) = match did(raw) {
            Did::UsedCommand if self.is_for_asker_alone(raw) => (self.menu.line(&raw["data"]), First::LaterForAskerAlone),
            Did::UsedCommand => (self.menu.line(&raw["data"]), First::Later),
            Did::PressedOrChose => (pressed(&self.signer, raw)?, First::Nothing),
            Did::Types | Did::Other => return None,
        };
        let application = id_in(raw, "application_id")?;
        let handle = Handle { id, application, token: raw["token"].as_str()?.to_owned(), person, first };
        let key = reader.key(channel, person, around);
        Some(Inbound {
            update_id: format!("interaction:{id}"),
            addressed: if key.is_private() { Addressed::Privately } else { Addressed::ByMention },
            origin: origin(key, person, raw, around),
            person_name: content::display_name(user(raw), &raw["member"]),
            text,
            message: MessageId(id.to_string()),
            sent_at: sent_at(id),
            extras: Extras { reply: Some(handle.sealed()), ..Extras::default() },
        })
    }
}

impl Handle {
    fn sealed(&self) -> ReplyHandle {
        ReplyHandle(serde_json::to_string(self).expect("texts and numbers are JSON"))
    }

    pub(super) fn open(sealed: &ReplyHandle) -> Option<Self> {
        serde_json::from_str(&sealed.0).ok()
    }
}
