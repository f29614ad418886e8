//! Names beside ids: what people, places and agents are called, as far as the home knows.

use std::collections::HashMap;

use rusqlite::Connection;

use super::Failure;
use super::json::Named;
use crate::access::{grants, people};
use crate::agents::shown_name;
use crate::config::{Config, People};
use crate::domain::{AgentId, PersonId, SessionKey};
use crate::records::transcript;
use crate::routing::names;
use crate::storage::Db;

/// Everything in a home that has a name.
#[derive(Debug, Default)]
pub(super) struct Names {
    declared: People,
    agents: HashMap<String, String>,
    people: HashMap<PersonId, String>,
    places: HashMap<SessionKey, String>,
}

impl Names {
    /// A config with problems names nobody, and its problems are told elsewhere.
    pub(super) async fn load(db: &Db, config: Option<&Config>) -> Result<Self, Failure> {
        let (people, places) = db.read(stored).await?;
        let agents = config
            .map(|config| config.agents.as_slice())
            .unwrap_or_default();
        let written = config
            .map(|config| config.access.people.clone())
            .unwrap_or_default();
        let declared = db
            .read(move |connection| grants::people(connection, &written))
            .await?;
        Ok(Names {
            declared,
            agents: agents
                .iter()
                .map(|agent| (agent.id.to_string(), shown_name(agent)))
                .collect(),
            people,
            places,
        })
    }

    pub(super) fn agent(&self, id: &AgentId) -> Named {
        Named::new(id, self.agents.get(id.as_str()).map(String::as_str))
    }

    /// The person's own name on the platform, else the name in config.toml.
    pub(super) fn person(&self, id: &PersonId) -> Named {
        Named::new(id, self.name_of_person(id))
    }

    /// The topic's or thread's name, or the name of the person in a conversation of their own.
    pub(super) fn place(&self, key: &SessionKey) -> Named {
        let own = self.places.get(key).map(String::as_str);
        let name = own.or_else(|| match key {
            SessionKey::Local { topic, .. } => topic.as_ref().map(|topic| topic.as_str()),
            _ => self.name_of_person(&person_in(key)?),
        });
        Named::new(key, name)
    }

    fn name_of_person(&self, id: &PersonId) -> Option<&str> {
        let told = self.people.get(id).map(String::as_str);
        told.or_else(|| self.declared.of(id).map(|person| person.name.as_str()))
    }
}

type Stored = (HashMap<PersonId, String>, HashMap<SessionKey, String>);

fn stored(connection: &Connection) -> rusqlite::Result<Stored> {
    let mut known: HashMap<PersonId, String> = people::names(connection)?.into_iter().collect();
    // A name under a message is newer than the name of the day the person was let in.
    known.extend(transcript::names_of_people(connection)?);
    Ok((known, names::all(connection)?.into_iter().collect()))
}

/// The person whose own conversation a place is.
fn person_in(key: &SessionKey) -> Option<PersonId> {
    match key {
        SessionKey::TelegramDm { user, .. }
        | SessionKey::TelegramGroup {
            member: Some(user), ..
        } => Some(PersonId::Telegram(*user)),
        SessionKey::DiscordDm { user }
        | SessionKey::DiscordChannel {
            member: Some(user), ..
        } => Some(PersonId::Discord(*user)),
        _ => None,
    }
}
