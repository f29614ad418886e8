//! Lists sessions: every place with its agent, the rule behind it, its people, and what waits there.

use rusqlite::Connection;
use serde::Serialize;

use super::house::{House, person_of};
use super::named::{Moment, Named};
use crate::domain::{AgentId, PersonId, Platform, SessionKey};
use crate::records::sessions::{self, Open};

/// Which sessions are listed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) agent: Option<AgentId>,
    pub(crate) platform: Option<Platform>,
    pub(crate) person: Option<PersonId>,
    /// Used since then.
    pub(crate) since: Option<i64>,
    pub(crate) limit: usize,
}

/// A session in the list.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Listed {
    pub(crate) place: Named,
    pub(crate) agent: Named,
    /// The rule that gives the place to the agent.
    pub(crate) rule: String,
    /// Those who wrote in the running conversation, the last one first.
    pub(crate) people: Vec<Named>,
    /// Messages of the running conversation.
    pub(crate) messages: i64,
    pub(crate) last_active_at: Option<Moment>,
    /// Messages that wait for an answer, or are being answered.
    pub(crate) waiting: i64,
    /// Messages whose turn failed.
    pub(crate) unanswered: i64,
    /// Parts of answers that could not be delivered.
    pub(crate) undelivered: i64,
}

/// Sessions, the latest first, and whether there are more.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) sessions: Vec<Listed>,
    pub(crate) has_more: bool,
}

pub(crate) fn list(
    connection: &Connection,
    house: &House,
    wanted: &Wanted,
) -> rusqlite::Result<Page> {
    let open = Open::load(connection)?;
    let mut page = Page {
        sessions: Vec::new(),
        has_more: false,
    };
    for place in sessions::all(connection, wanted.since.unwrap_or(i64::MIN))? {
        if !is_on(&place.key, wanted.platform) {
            continue;
        }
        let holder = house.holder(connection, &place)?;
        if wanted
            .agent
            .as_ref()
            .is_some_and(|agent| *agent != holder.agent)
        {
            continue;
        }
        let people = sessions::people(connection, &place)?;
        if !is_with(house, &place.key, &people, wanted.person.as_ref()) {
            continue;
        }
        if page.sessions.len() == wanted.limit {
            page.has_more = true;
            break;
        }
        let open = open.of(place.id);
        page.sessions.push(Listed {
            place: house.names.place(&place.key),
            agent: house.agent(&holder.agent),
            rule: holder.rule,
            people: people.iter().map(|id| house.names.person(id)).collect(),
            messages: sessions::messages(connection, &place)?,
            last_active_at: place.active_at.map(Moment),
            waiting: open.waiting,
            unanswered: open.unanswered,
            undelivered: open.undelivered,
        });
    }
    Ok(page)
}

fn is_on(key: &SessionKey, platform: Option<Platform>) -> bool {
    platform.is_none_or(|platform| key.platform() == Some(platform))
}

/// Whether a person wrote in the running conversation, or has the place alone. All ids of a person
/// count.
fn is_with(
    house: &House,
    key: &SessionKey,
    people: &[PersonId],
    wanted: Option<&PersonId>,
) -> bool {
    let Some(wanted) = wanted else { return true };
    let known = &house.config.access.people;
    known.is_same(&person_of(key), wanted)
        || people.iter().any(|person| known.is_same(person, wanted))
}
