//! The last real messages: listed, and judged once more under other rules.

use std::collections::HashMap;

use rusqlite::Connection;
use serde::Serialize;
use utoipa::ToSchema;

use super::super::house::House;
use super::super::named::{Moment, Named};
use super::super::{Operations, Refusal};
use super::{Case, Rules};
use crate::access::people;
use crate::domain::{Addressed, AgentId, Origin, PersonId, SessionKey};
use crate::home::route_tests::why;
use crate::records::inbox::{self, Heard};
use crate::records::transcript;
use crate::routing::{self, FromChat, Judgment, Question, Visit, names, pins};

/// Messages that are judged once more.
pub(crate) const MOST_MESSAGES: usize = 500;
/// Messages of conversations that are looked at for words.
const MOST_WORDS: usize = 2 * MOST_MESSAGES;
/// The longest part of a message that is shown.
const MOST_CHARS: usize = 80;

/// Real messages under edited rules.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Replay {
    /// How many were judged.
    pub(crate) messages: usize,
    /// Those that would end in another way, the newest first.
    pub(crate) changed: Vec<Changed>,
}

/// A message that edited rules would answer in another way.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Changed {
    #[serde(flatten)]
    pub(crate) message: Message,
    pub(crate) after: Outcome,
}

/// A real message.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Message {
    /// The number of its row.
    pub(crate) id: i64,
    pub(crate) at: Moment,
    pub(crate) place: Named,
    /// The names of group and topic, where both are known.
    pub(crate) path: Option<String>,
    /// Null: nobody in particular.
    pub(crate) person: Option<Named>,
    /// Its first words, where a conversation has them.
    pub(crate) text: Option<String>,
    /// `privately`, `by_mention`, `by_reply`, `by_topic_name` or `not_at_all`.
    #[schema(value_type = String)]
    pub(crate) addressed: Addressed,
    /// Who would answer it now.
    pub(crate) now: Outcome,
}

/// Who answers a message, or why nobody does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Outcome {
    /// Null: nobody.
    pub(crate) agent: Option<Named>,
    /// The deciding rule, or the reason for the silence.
    pub(crate) why: String,
}

/// Judges the last messages under both rules.
pub(crate) async fn replay(
    operations: &Operations,
    now: &Rules,
    then: &Rules,
) -> Result<Replay, Refusal> {
    let (now, then) = (now.house.clone(), then.house.clone());
    let read = move |connection: &Connection| {
        let heard = inbox::heard(connection, i64::MAX, MOST_MESSAGES)?;
        let mut scene = Scene::new(connection)?;
        let mut changed = Vec::new();
        for message in &heard {
            let (before, after) = (scene.judged(&now, message)?, scene.judged(&then, message)?);
            if before.answered_by() != after.answered_by() {
                changed.push(Changed {
                    message: scene.message(&now, message, &before),
                    after: outcome(&then, &after),
                });
            }
        }
        Ok(Replay {
            messages: heard.len(),
            changed,
        })
    };
    Ok(operations.db.read(read).await?)
}

/// The last messages before this row, the newest first, as the rules of now judge them.
pub(crate) async fn recent(
    operations: &Operations,
    house: &House,
    before: i64,
    limit: usize,
) -> Result<Vec<Message>, Refusal> {
    let house = house.clone();
    let read = move |connection: &Connection| {
        let heard = inbox::heard(connection, before, limit)?;
        let mut scene = Scene::new(connection)?;
        let listed = heard.iter().map(|message| {
            let judged = scene.judged(&house, message)?;
            Ok(scene.message(&house, message, &judged))
        });
        listed.collect()
    };
    Ok(operations.db.read(read).await?)
}

/// A real message as a case. None for a number that is not there.
pub(crate) async fn message(operations: &Operations, id: i64) -> Result<Option<Case>, Refusal> {
    let read = move |connection: &Connection| {
        let found = inbox::heard(connection, id.saturating_add(1), 1)?;
        let found = found.into_iter().next().filter(|heard| heard.id == id);
        let Some(heard) = found else {
            return Ok(None);
        };
        let name = names::load(connection, &heard.origin.key)?;
        Ok(Some(Case {
            origin: Origin {
                name,
                ..heard.origin
            },
            addressed: heard.addressed,
            role: None,
            text: String::new(),
            is_command: std::sync::Arc::new(|_| false),
        }))
    };
    Ok(operations.db.read(read).await?)
}

/// What is read once for all messages of a place.
type Place = (FromChat, Option<String>);

/// The store, with what was read from it before.
struct Scene<'a> {
    connection: &'a Connection,
    places: HashMap<SessionKey, Place>,
    words: HashMap<(SessionKey, PersonId, i64), String>,
}

impl<'a> Scene<'a> {
    fn new(connection: &'a Connection) -> rusqlite::Result<Self> {
        Ok(Scene {
            connection,
            places: HashMap::new(),
            words: transcript::latest_words(connection, MOST_WORDS)?,
        })
    }

    fn place(&mut self, key: &SessionKey) -> rusqlite::Result<Place> {
        if let Some(known) = self.places.get(key) {
            return Ok(known.clone());
        }
        let found = (
            pins::from_chat(self.connection, key)?,
            names::load(self.connection, key)?,
        );
        self.places.insert(key.clone(), found.clone());
        Ok(found)
    }

    fn judged(&mut self, house: &House, message: &Heard) -> rusqlite::Result<Judgment> {
        let (from_chat, name) = self.place(&message.origin.key)?;
        let mut origin = message.origin.clone();
        house.follow(&mut origin);
        // Names of closed places are not stored.
        origin.name = name.or_else(|| house.names.topic(&origin.key));
        let access = &house.config.access;
        let standing = people::standing(self.connection, access, &origin.person)?;
        Ok(routing::judge(Question {
            table: &house.table,
            visit: Visit {
                access,
                origin: &origin,
                standing: &standing,
            },
            from_chat,
            addressed: message.addressed,
            is_command: false,
        }))
    }

    fn message(&self, house: &House, heard: &Heard, judged: &Judgment) -> Message {
        let Origin { key, person, .. } = &heard.origin;
        let spoken = (key.clone(), person.clone(), heard.sent_at);
        let text = self.words.get(&spoken).map(|text| beginning(text));
        Message {
            id: heard.id,
            at: Moment(heard.received_at),
            place: house.names.place(key),
            path: house.names.path(key),
            person: (!person.is_nobody()).then(|| house.names.person(person)),
            text: text.filter(|text| !text.is_empty()),
            addressed: heard.addressed,
            now: outcome(house, judged),
        }
    }
}

fn outcome(house: &House, judged: &Judgment) -> Outcome {
    let named = |agent: &AgentId| house.agent(agent);
    Outcome {
        agent: judged.answered_by().map(named),
        why: why(judged),
    }
}

/// The first line, cut.
fn beginning(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(MOST_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}
