//! Names beside ids: what people, places and agents are called, as far as the home knows.

use std::collections::HashMap;

use rusqlite::Connection;

use super::named::Named;
use crate::access::{grants, people};
use crate::agents::shown_name;
use crate::config::{Config, People};
use crate::domain::{AgentId, PersonId, SessionKey, nearest};
use crate::records::transcript;
use crate::routing::names;
use crate::storage::{Db, StoreError};

/// Everything in a home that has a name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    declared: People,
    agents: HashMap<String, String>,
    people: HashMap<PersonId, String>,
    places: HashMap<SessionKey, String>,
}

impl Names {
    /// A config with problems names nobody, and its problems are told elsewhere.
    pub(crate) async fn load(db: &Db, config: Option<&Config>) -> Result<Self, StoreError> {
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

    pub(crate) fn agent(&self, id: &AgentId) -> Named {
        Named::new(id, self.agents.get(id.as_str()).map(String::as_str))
    }

    /// The person's own name on the platform, else the name in config.toml.
    pub(crate) fn person(&self, id: &PersonId) -> Named {
        Named::new(id, self.name_of_person(id))
    }

    /// The topic's or thread's name, or the name of the person in a conversation of their own.
    pub(crate) fn place(&self, key: &SessionKey) -> Named {
        let own = self.places.get(key).map(String::as_str);
        let name = own.or_else(|| match key {
            SessionKey::Local { topic, .. } => topic.as_ref().map(|topic| topic.as_str()),
            _ => self.name_of_person(&key.only_person()?),
        });
        Named::new(key, name)
    }

    /// `Family/Garden`, for a topic of a group whose names are both known.
    pub(crate) fn path(&self, key: &SessionKey) -> Option<String> {
        let (group, own) = (self.places.get(&key.whole_group()?)?, self.place(key).name?);
        (key.whole_group().as_ref() != Some(key)).then(|| format!("{group}/{own}"))
    }

    /// The person with this id, or the only one with this name.
    pub(crate) fn find_person(&self, word: &str) -> Result<PersonId, NoPerson> {
        if let Ok(id) = word.parse() {
            return Ok(id);
        }
        let wanted = word.trim().to_lowercase();
        let declared = self.declared.all().iter().filter_map(|person| {
            let main = person.ids.first();
            main.map(|id| (id, person.name.as_str()))
        });
        let known = self.people.iter().map(|(id, name)| (id, name.as_str()));
        let named: Vec<(&PersonId, &str)> = declared.chain(known).collect();
        let mut found: Vec<&PersonId> = Vec::new();
        for (id, name) in &named {
            let is_new = !found.iter().any(|other| self.declared.is_same(other, id));
            if name.to_lowercase() == wanted && is_new {
                found.push(id);
            }
        }
        match found.as_slice() {
            [id] => Ok((*id).clone()),
            [] => Err(NoPerson::Unknown {
                word: word.to_owned(),
                near: nearest(word, named.iter().map(|(_, name)| *name)).map(str::to_owned),
            }),
            several => Err(NoPerson::Several {
                word: word.to_owned(),
                ids: several.iter().map(ToString::to_string).collect(),
            }),
        }
    }

    fn name_of_person(&self, id: &PersonId) -> Option<&str> {
        let told = self.people.get(id).map(String::as_str);
        told.or_else(|| self.declared.of(id).map(|person| person.name.as_str()))
    }
}

/// Why no person is meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoPerson {
    #[error("nobody is called `{word}`.{} An id looks like telegram:12345678", near.as_ref().map(|near| format!(" Did you mean {near}?")).unwrap_or_default())]
    Unknown { word: String, near: Option<String> },
    #[error("several people are called `{word}`: {}", ids.join(", "))]
    Several { word: String, ids: Vec<String> },
}

type Stored = (HashMap<PersonId, String>, HashMap<SessionKey, String>);

fn stored(connection: &Connection) -> rusqlite::Result<Stored> {
    let mut known: HashMap<PersonId, String> = people::names(connection)?.into_iter().collect();
    // A name under a message is newer than the name of the day the person was let in.
    known.extend(transcript::names_of_people(connection)?);
    Ok((known, names::all(connection)?.into_iter().collect()))
}
