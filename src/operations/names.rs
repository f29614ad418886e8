//! Names beside ids: what people, places and agents are called, as far as the home knows.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::Connection;

use super::named::Named;
use crate::access::{grants, people};
use crate::agents::shown_name;
use crate::config::{Config, People};
use crate::domain::{AgentId, PersonId, SessionKey, nearest};
use crate::records::speakers;
use crate::routing::names;
use crate::storage::{Db, StoreError};

/// Everything in a home that has a name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    declared: People,
    agents: HashMap<String, String>,
    people: Arc<HashMap<PersonId, String>>,
    places: Arc<HashMap<SessionKey, String>>,
}

impl Names {
    /// A config with problems names nobody, and its problems are told elsewhere.
    pub(crate) async fn load(db: &Db, config: Option<&Config>) -> Result<Self, StoreError> {
        let (people, places) = db.read(stored).await?;
        let written = config
            .map(|config| config.access.people.clone())
            .unwrap_or_default();
        let declared = db
            .read(move |connection| grants::people(connection, &written))
            .await?;
        Ok(Names {
            declared,
            agents: config.map(names_of_agents).unwrap_or_default(),
            people: Arc::new(people),
            places: Arc::new(places),
        })
    }

    /// The same under another config, which has what was granted in chat.
    pub(crate) fn under(&self, config: &Config) -> Self {
        Names {
            declared: config.access.people.clone(),
            agents: names_of_agents(config),
            ..self.clone()
        }
    }

    /// The same with names of further places.
    pub(crate) fn with_places(mut self, places: Vec<(SessionKey, String)>) -> Self {
        let known = Arc::make_mut(&mut self.places);
        for (key, name) in places {
            known.entry(key).or_insert(name);
        }
        self
    }

    pub(crate) fn agent(&self, id: &AgentId) -> Named {
        Named::new(id, self.agents.get(id.as_str()).map(String::as_str))
    }

    /// The person's own name on the platform, else the name in config.toml.
    pub(crate) fn person(&self, id: &PersonId) -> Named {
        Named::new(id, self.name_of_person(id))
    }

    /// The author of a pin. The id of the terminal is nobody's name.
    pub(crate) fn author(&self, id: &PersonId) -> Named {
        let named = self.person(id);
        let at_terminal = matches!(id, PersonId::Local(_)).then(|| match &named.name {
            Some(name) => format!("{name} at the terminal"),
            None => "the person at the terminal".to_owned(),
        });
        named.called(at_terminal)
    }

    /// The topic's or thread's name, or the name of the person in a conversation of their own. For
    /// people such a conversation is `Bob's private chat` or `Plain group, with Bob`.
    pub(crate) fn place(&self, key: &SessionKey) -> Named {
        let own = self.places.get(key).map(String::as_str);
        let name = own.or_else(|| match key {
            SessionKey::Local { topic, .. } | SessionKey::Web { topic, .. } => {
                topic.as_ref().map(|topic| topic.as_str())
            }
            _ => self.name_of_person(&key.only_person()?),
        });
        Named::new(key, name).called(self.words(key))
    }

    /// What a place is called where its name would be a person's alone, or is not known.
    fn words(&self, key: &SessionKey) -> Option<String> {
        let person = key.only_person();
        let person = person.and_then(|person| self.name_of_person(&person));
        let own = self.places.get(key).map(String::as_str);
        match key {
            SessionKey::TelegramDm { topic: Some(_), .. } if own.is_some() => None,
            SessionKey::TelegramDm { .. } | SessionKey::DiscordDm { .. } => {
                person.map(|person| format!("{person}'s private chat"))
            }
            SessionKey::TelegramGroup {
                member: Some(_), ..
            }
            | SessionKey::DiscordChannel {
                member: Some(_), ..
            } => {
                let group = self.places.get(&key.whole_group()?).map(String::as_str);
                match (group.or(own), person) {
                    (Some(group), Some(person)) => Some(format!("{group}, with {person}")),
                    (Some(group), None) => Some(group.to_owned()),
                    (None, Some(person)) => Some(format!("a group, with {person}")),
                    (None, None) => None,
                }
            }
            SessionKey::Cron { agent, job } => Some(format!("job {agent}/{job}")),
            _ => None,
        }
    }

    /// The name of a topic or thread, as far as it is known.
    pub(crate) fn topic(&self, key: &SessionKey) -> Option<String> {
        self.places.get(key).cloned()
    }

    /// `Family/Garden`, for a topic of a group whose names are both known.
    pub(crate) fn path(&self, key: &SessionKey) -> Option<String> {
        let (group, own) = (self.places.get(&key.whole_group()?)?, self.place(key).name?);
        (key.whole_group().as_ref() != Some(key)).then(|| format!("{group}/{own}"))
    }

    /// `Family/Garden (telegram:topic:-100:7)`, as far as the names are known.
    pub(crate) fn path_text(&self, key: &SessionKey) -> String {
        let path = self.path(key).or_else(|| self.place(key).name);
        Named::new(key, path.as_deref()).text()
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

    /// Names of people, places and agents.
    #[cfg(test)]
    pub(crate) fn made_of(
        people: &[(&str, &str)],
        places: &[(&str, &str)],
        agents: &[(&str, &str)],
    ) -> Self {
        let owned = |name: &&str| (*name).to_owned();
        let people = people.iter();
        let people = people.map(|(id, name)| (id.parse().expect("an id"), owned(name)));
        let places = places.iter();
        let places = places.map(|(key, name)| (key.parse().expect("a key"), owned(name)));
        let agents = agents.iter().map(|(id, name)| (owned(id), owned(name)));
        Names {
            declared: People::default(),
            agents: agents.collect(),
            people: Arc::new(people.collect()),
            places: Arc::new(places.collect()),
        }
    }

    fn name_of_person(&self, id: &PersonId) -> Option<&str> {
        let told = self.people.get(id).map(String::as_str);
        told.or_else(|| self.declared.of(id).map(|person| person.name.as_str()))
    }
}

fn names_of_agents(config: &Config) -> HashMap<String, String> {
    let agents = config.agents.iter();
    let named = agents.map(|agent| (agent.id.to_string(), shown_name(agent)));
    named.collect()
}

/// Why no person is meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoPerson {
    #[error("nobody is called `{word}`.{} An id looks like telegram:12345678", near.as_ref().map(|near| format!(" Did you mean {near}?")).unwrap_or_default())]
    Unknown { word: String, near: Option<String> },
    #[error("several people are called `{word}`: {}", ids.join(", "))]
    Several { word: String, ids: Vec<String> },
}

pub(super) type Stored = (HashMap<PersonId, String>, HashMap<SessionKey, String>);

pub(super) fn stored(connection: &Connection) -> rusqlite::Result<Stored> {
    let mut known: HashMap<PersonId, String> = people::names(connection)?.into_iter().collect();
    // A name under a message is newer than the name of the day the person was let in.
    known.extend(speakers::names(connection)?);
    Ok((known, names::all(connection)?.into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of everything a place is called for people; programs keep the name.
    #[test]
    fn a_place_is_not_called_by_a_persons_name_alone() {
        let names = Names::made_of(
            &[("telegram:12", "Bob")],
            &[
                ("telegram:group:-100", "Plain group"),
                ("telegram:topic:-200:7", "Writing"),
                ("telegram:dm:12:5", "Notes"),
                ("telegram:group:-300:12", "Only seen"),
            ],
            &[],
        );
        let check = |key: &str, name: Option<&str>, expected: &str| {
            let place = names.place(&key.parse().unwrap());
            assert_eq!(place.name.as_deref(), name, "{key}");
            assert_eq!(place.text(), expected, "{key}");
        };
        check(
            "telegram:dm:12",
            Some("Bob"),
            "Bob's private chat (telegram:dm:12)",
        );
        check(
            "telegram:dm:12:6",
            Some("Bob"),
            "Bob's private chat (telegram:dm:12:6)",
        );
        check(
            "telegram:dm:12:5",
            Some("Notes"),
            "Notes (telegram:dm:12:5)",
        );
        check("telegram:dm:13", None, "telegram:dm:13");
        check(
            "telegram:group:-100",
            Some("Plain group"),
            "Plain group (telegram:group:-100)",
        );
        check(
            "telegram:group:-100:12",
            Some("Bob"),
            "Plain group, with Bob (telegram:group:-100:12)",
        );
        check(
            "telegram:group:-100:13",
            None,
            "Plain group (telegram:group:-100:13)",
        );
        check(
            "telegram:group:-300:12",
            Some("Only seen"),
            "Only seen, with Bob (telegram:group:-300:12)",
        );
        check(
            "telegram:group:-400:12",
            Some("Bob"),
            "a group, with Bob (telegram:group:-400:12)",
        );
        check(
            "telegram:topic:-200:7",
            Some("Writing"),
            "Writing (telegram:topic:-200:7)",
        );
        check("cron:rose:plan", None, "job rose/plan (cron:rose:plan)");
        check("local:home", None, "local:home");
    }
}
