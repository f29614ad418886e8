//! The tool `message_send`: lists an agent's other places, and sends a message to a place.

use rusqlite::{Connection, Transaction};
use serde_json::{Value, json};

use super::{Asker, Subagents};
use crate::access::Role;
use crate::channels::Text;
use crate::config::Groups;
use crate::delivery::outbox::Source;
use crate::delivery::{Delivery, Kind, outbox};
use crate::domain::{AgentUid, Destination, Labels, Origin, PersonId, SessionKey, nearest};
use crate::records::transcript::{self, Asked};
use crate::routing::{Visit, delivery_off, names, pins};
use crate::storage::StoreError;
use crate::tools::SendMessage;

/// The most sessions searched for places of an agent.
const MOST_LOOKED_AT: u32 = 200;
/// The most places shown in a list.
const MOST_LISTED: usize = 30;

/// A place of an agent.
struct Place {
    key: SessionKey,
    name: Option<String>,
}

impl Place {
    fn shown(&self) -> String {
        match &self.name {
            Some(name) => format!("`{}` (“{name}”)", self.key),
            None => format!("`{}`", self.key),
        }
    }

    fn is_called(&self, word: &str) -> bool {
        self.key.to_string() == word
            || self
                .name
                .as_ref()
                .is_some_and(|name| name.to_lowercase() == word.to_lowercase())
    }
}

/// A message on its way to another place.
pub(crate) struct OutgoingMessage {
    to: Destination,
    by: AgentUid,
    text: String,
    /// The inbox row of the sending turn.
    asked_in: i64,
    person: PersonId,
    /// What the sending turn had read.
    read: Labels,
    meta: Value,
    rows: Vec<outbox::Draft>,
    /// The place in words.
    shown: String,
    /// Delivery is off in the place.
    is_kept: bool,
}

impl OutgoingMessage {
    /// Writes the message to the outbox and to the transcript of its place.
    pub(crate) fn write(&self, tx: &Transaction<'_>, now: i64) -> rusqlite::Result<()> {
        let asked = Asked {
            inbox_id: self.asked_in,
            person: &self.person,
            read: self.read,
        };
        let said = transcript::append_sent(
            tx,
            self.to.place(),
            (self.by, &self.text),
            asked,
            &self.meta,
            now,
        )?;
        outbox::insert_of_agent(
            tx,
            &self.rows,
            Source {
                inbox_id: None,
                said_id: Some(said),
            },
            now,
        )
        .map(drop)
    }

    /// What became of the message, for the model.
    pub(crate) fn told(&self) -> String {
        match self.is_kept {
            true => format!(
                "Kept for {}: delivery is off there, and the message is sent once an owner or admin switches it on.",
                self.shown
            ),
            false => format!("Sent to {}.", self.shown),
        }
    }

    pub(crate) fn submit(&self, delivery: &Delivery) {
        delivery.submit(self.to.place(), self.rows.len());
    }
}

impl Subagents {
    /// The message to send, or a text for the model instead.
    pub(crate) async fn outgoing(
        &self,
        asker: &Asker<'_>,
        message: &SendMessage,
    ) -> Result<Result<OutgoingMessage, String>, StoreError> {
        let places = self.places_of(asker).await?;
        let Some(word) = &message.place else {
            return Ok(Err(list(&places)));
        };
        let word = self.current_key(word.trim());
        let mut called = places.iter().filter(|place| place.is_called(&word));
        let (found, another) = (called.next(), called.next());
        let Some(place) = found.filter(|_| another.is_none()) else {
            return Ok(Err(not_found(&word, &places, another.is_some())));
        };
        let to = Destination::of_agent(place.key.clone());
        let inbound = &asker.accepted.inbound;
        let label = asker.agent.label();
        let signed = format!(
            "{}\n\n_For {}._",
            message.text,
            escaped(&inbound.person_name)
        );
        let rows = self.inner.delivery.draft(
            &to,
            Kind::Final,
            &Text {
                speaker: Some(&label),
                ..Text::plain(&signed)
            },
        );
        let key = place.key.clone();
        let read = move |connection: &Connection| delivery_off::is_off(connection, &key);
        let is_kept = self.inner.db.read(read).await?;
        let meta = json!({
            "v": 1, "kind": "message_send", "source": { "session": inbound.origin.key.to_string(), "agent": asker.agent.id.as_str() },
            "trace_id": format!("inbox-{}", asker.accepted.id), "hop": 1,
        });
        Ok(Ok(OutgoingMessage {
            to,
            by: asker.agent.uid,
            text: message.text.clone(),
            asked_in: asker.accepted.id,
            person: inbound.origin.person.clone(),
            read: asker.read.labels,
            meta,
            rows,
            shown: place.shown(),
            is_kept,
        }))
    }

    /// An agent may know a key from before a group moved. It becomes the current key of the same
    /// place.
    fn current_key(&self, word: &str) -> String {
        word.parse().map_or_else(
            |_| word.to_owned(),
            |key| self.inner.aliases.current(&key).to_string(),
        )
    }

    /// The places of the agent: named by a binding, pinned, or with messages of the agent. The
    /// current place is left out. Private chats are left out too, except the asking person's own,
    /// or if an owner asks.
    async fn places_of(&self, asker: &Asker<'_>) -> Result<Vec<Place>, StoreError> {
        // A binding may still have the key from before a group moved.
        let bound: Vec<SessionKey> = asker
            .snapshot
            .table
            .places_of(&asker.agent.id)
            .map(|place| self.inner.aliases.current(place))
            .collect();
        let uid = asker.agent.uid;
        let known = self
            .inner
            .db
            .read(move |connection| known(connection, bound, uid))
            .await?;
        let mut places = Vec::new();
        for place in known {
            if self.is_open_to(asker, &place).await? {
                places.push(place);
            }
        }
        Ok(places)
    }

    async fn is_open_to(&self, asker: &Asker<'_>, place: &Place) -> Result<bool, StoreError> {
        let Asker {
            snapshot,
            accepted,
            agent,
            ..
        } = asker;
        let asked_in = &accepted.inbound.origin;
        if place.key == asked_in.key || !self.inner.delivery.reaches(&place.key) {
            return Ok(false);
        }
        if place.key.is_private()
            && accepted.role != Role::Owner
            && !is_chat_of(&place.key, &asked_in.person)
        {
            return Ok(false);
        }
        let mut origin = Origin {
            name: place.name.clone(),
            ..Origin::new(place.key.clone(), asked_in.person.clone())
        };
        self.inner.aliases.follow(&mut origin);
        let visit = Visit {
            access: &snapshot.config.access,
            origin: &origin,
            standing: &accepted.standing,
        };
        let route = self
            .inner
            .router
            .resolve(&snapshot.table, visit)
            .await?
            .route;
        let is_open = place.key.is_private()
            || route.opens_place
            || snapshot.config.access.groups == Groups::Open;
        Ok(is_open && route.agent == agent.id)
    }
}

fn known(
    connection: &Connection,
    bound: Vec<SessionKey>,
    uid: AgentUid,
) -> rusqlite::Result<Vec<Place>> {
    let mut keys = bound;
    keys.extend(pins::places_of(connection, uid)?);
    keys.extend(transcript::places_of(connection, uid, MOST_LOOKED_AT)?);
    let mut places: Vec<Place> = Vec::new();
    for key in keys {
        if !places.iter().any(|place| place.key == key) {
            let name = names::load(connection, &key)?;
            places.push(Place { key, name });
        }
    }
    Ok(places)
}

/// Whether a private chat is this person's own.
fn is_chat_of(key: &SessionKey, person: &PersonId) -> bool {
    match (key, person) {
        (SessionKey::TelegramDm { user, .. }, PersonId::Telegram(person)) => user == person,
        (SessionKey::DiscordDm { user }, PersonId::Discord(person)) => user == person,
        (SessionKey::Local { .. } | SessionKey::Web { .. }, PersonId::Local(_)) => true,
        _ => false,
    }
}

fn list(places: &[Place]) -> String {
    if places.is_empty() {
        return "Nothing was sent: there is no other place where you are the agent and this person may have you write.".into();
    }
    let mut lines = vec!["You can write to:".to_owned()];
    lines.extend(
        places
            .iter()
            .take(MOST_LISTED)
            .map(|place| format!("- {}", place.shown())),
    );
    if places.len() > MOST_LISTED {
        lines.push(format!("- and {} more", places.len() - MOST_LISTED));
    }
    lines.join("\n")
}

fn not_found(word: &str, places: &[Place], is_shared: bool) -> String {
    if is_shared {
        return format!(
            "Nothing was sent: several places are called “{word}”. Use the key.\n{}",
            list(places)
        );
    }
    // A key that is nearly right may be another person's chat, so only names are guessed.
    match nearest(
        word,
        places.iter().filter_map(|place| place.name.as_deref()),
    ) {
        Some(near) => {
            format!("Nothing was sent: `{word}` is no place of yours. Did you mean `{near}`?")
        }
        None => format!(
            "Nothing was sent: `{word}` is no place of yours. {}",
            list(places)
        ),
    }
}

/// Names are not Markdown.
fn escaped(name: &str) -> String {
    name.chars()
        .flat_map(|c| {
            c.is_ascii_punctuation()
                .then_some('\\')
                .into_iter()
                .chain([c])
        })
        .collect()
}
