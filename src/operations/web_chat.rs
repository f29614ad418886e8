//! The places of the web chat: rooms and topics, with the agent that answers in each.

use rusqlite::Connection;

use super::house::House;
use super::{Operations, Refusal};
use crate::domain::{AgentId, LocalName, Platform, SessionKey};
use crate::routing::places;

/// The room that every web chat has.
const HOME: &str = "home";

/// A place of the web chat.
#[derive(Debug, Clone)]
pub(crate) struct WebPlace {
    pub(crate) key: SessionKey,
    pub(crate) room: LocalName,
    pub(crate) topic: Option<LocalName>,
    /// What people call it.
    pub(crate) name: String,
    pub(crate) agent: AgentId,
    /// The rule that gives the place to the agent.
    pub(crate) rule: String,
}

/// The first place of a web chat.
pub(crate) fn first_place() -> SessionKey {
    SessionKey::Web {
        room: HOME.parse().expect("a plain name"),
        topic: None,
    }
}

impl Operations {
    /// The main chat, topics with a binding in the order of the config, then those in which somebody
    /// has written.
    pub(crate) async fn web_places(&self) -> Result<Vec<WebPlace>, Refusal> {
        let house = self.house().await?;
        let read = move |connection: &Connection| listed(connection, &house);
        Ok(self.db.read(read).await?)
    }

    /// A place of the web chat, also one that nobody has written in.
    pub(crate) async fn web_place(&self, key: SessionKey) -> Result<Option<WebPlace>, Refusal> {
        let house = self.house().await?;
        let read = move |connection: &Connection| one(connection, &house, key);
        Ok(self.db.read(read).await?)
    }
}

fn listed(connection: &Connection, house: &House) -> rusqlite::Result<Vec<WebPlace>> {
    let bound = house.config.bindings.iter();
    let bound = bound.filter_map(|binding| binding.pattern.value.parse().ok());
    let mut keys: Vec<SessionKey> = vec![first_place()];
    keys.extend(bound);
    keys.extend(places::on(connection, Platform::Web)?);
    let mut seen: Vec<SessionKey> = Vec::new();
    let mut found = Vec::new();
    for key in keys {
        if seen.contains(&key) {
            continue;
        }
        seen.push(key.clone());
        found.extend(one(connection, house, key)?);
    }
    Ok(found)
}

fn one(
    connection: &Connection,
    house: &House,
    key: SessionKey,
) -> rusqlite::Result<Option<WebPlace>> {
    let SessionKey::Web { room, topic } = &key else {
        return Ok(None);
    };
    let id = places::id(connection, &key)?;
    let holder = house.holder_at(connection, &key, id)?;
    let named = house.names.place(&key).name;
    let name = named.unwrap_or_else(|| match (topic, room.as_str()) {
        (Some(topic), _) => topic.to_string(),
        (None, HOME) => "Main".to_owned(),
        (None, room) => room.to_owned(),
    });
    Ok(Some(WebPlace {
        room: room.clone(),
        topic: topic.clone(),
        name: title(&name),
        agent: holder.agent,
        rule: holder.rule,
        key,
    }))
}

/// `garden-plans` reads as `Garden plans`.
fn title(name: &str) -> String {
    let is_slug = name.parse::<LocalName>().is_ok();
    if !is_slug {
        return name.to_owned();
    }
    let words = name.replace(['-', '_'], " ");
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => words,
    }
}
