//! Reads an interaction as a written command line.

use serde_json::Value;

use super::callback::EPHEMERAL;
use super::components::pressed;
use super::handle::{Acknowledged, Handle};
use super::payload::{InteractionKind, kind, person, user};
use super::state::Interactions;
use crate::channels::discord::content;
use crate::channels::discord::directory::{Surroundings, id_in};
use crate::channels::discord::parse::{Reader, origin, sent_at};
use crate::domain::{Addressed, Extras, Inbound, MessageId};

impl Interactions {
    /// None for an interaction with no answer beyond its acknowledgement.
    pub(crate) fn read(
        &self,
        reader: &Reader<'_>,
        raw: &Value,
        around: &Surroundings,
    ) -> Option<Inbound> {
        let (id, channel, person) = (id_in(raw, "id")?, id_in(raw, "channel_id")?, person(raw)?);
        let (text, acknowledged) = match kind(raw) {
            InteractionKind::Command if self.is_ephemeral(raw) => (
                self.menu().line(&raw["data"]),
                Acknowledged::DeferredEphemeral,
            ),
            InteractionKind::Command => (self.menu().line(&raw["data"]), Acknowledged::Deferred),
            InteractionKind::Component => (pressed(&self.signer, raw)?, Acknowledged::Silently),
            InteractionKind::Autocomplete | InteractionKind::Other => return None,
        };
        let application = id_in(raw, "application_id")?;
        let handle = Handle {
            id,
            application,
            token: raw["token"].as_str()?.to_owned(),
            person,
            acknowledged,
        };
        let key = reader.key(channel, person, around);
        Some(Inbound {
            update_id: format!("interaction:{id}"),
            addressed: if key.is_private() {
                Addressed::Privately
            } else {
                Addressed::ByMention
            },
            origin: origin(key, person, raw, around),
            person_name: content::display_name(user(raw), &raw["member"]),
            text,
            message: MessageId(id.to_string()),
            sent_at: sent_at(id),
            extras: Extras {
                reply: Some(handle.sealed()),
                pressed: changeable(&raw["message"]),
                ..Extras::default()
            },
        })
    }
}

/// The message with the pressed button. A message that only one person sees cannot be changed for
/// all.
fn changeable(message: &Value) -> Option<MessageId> {
    let flags = message["flags"].as_u64().unwrap_or(0);
    id_in(message, "id")
        .filter(|_| flags & EPHEMERAL == 0)
        .map(|id| MessageId(id.to_string()))
}
