//! Lists sessions: every place with its agent, the rule behind it, its people, and what waits there.

use std::collections::HashSet;
use std::ops::ControlFlow;

use rusqlite::Connection;
use serde::Serialize;
use utoipa::ToSchema;

use super::house::{Holder, House, Settings, person_of};
use super::named::{Moment, Named};
use crate::answering::Silence;
use crate::domain::{AgentId, PersonId, Platform, SessionKey};
use crate::records::sessions::{self, Open, Used};
use crate::routing::places::PlaceId;

/// Sessions whose settings are read one by one. For more, all settings are read at once.
const MOST_ONE_BY_ONE: usize = 200;

/// Which sessions are listed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) agent: Option<AgentId>,
    pub(crate) platform: Option<Platform>,
    pub(crate) person: Option<PersonId>,
    /// Used since then.
    pub(crate) since: Option<i64>,
    pub(crate) limit: usize,
    /// Only those behind this place in the order of the list.
    pub(crate) behind: Option<SessionKey>,
}

/// A session in the list.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = SessionLine)]
pub(crate) struct Listed {
    pub(crate) place: Named,
    pub(crate) agent: Named,
    /// The rule that gives the place to the agent.
    pub(crate) rule: String,
    /// Why nobody answers there; absent: the agent does.
    pub(crate) silence: Option<&'static str>,
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
    /// Messages to people that wait to be sent.
    pub(crate) unsent: i64,
}

/// Sessions, the latest first, and whether there are more.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) sessions: Vec<Listed>,
    pub(crate) has_more: bool,
}

/// A look at every place costs a few statements, and each listed session a few more.
pub(crate) fn list(
    connection: &Connection,
    house: &House,
    wanted: &Wanted,
) -> rusqlite::Result<Page> {
    let sieve = Sieve::load(connection, house, wanted)?;
    let mut found: Vec<(Used, Holder)> = Vec::new();
    let mut has_more = false;
    let since = wanted.since.unwrap_or(i64::MIN);
    sessions::walk(connection, since, wanted.behind.as_ref(), |place| {
        let Some(holder) = sieve.pass(connection, &place)? else {
            return Ok(ControlFlow::Continue(()));
        };
        has_more = found.len() == wanted.limit;
        if has_more {
            return Ok(ControlFlow::Break(()));
        }
        found.push((place, holder));
        Ok(ControlFlow::Continue(()))
    })?;
    let open = Open::load(connection)?;
    let lines = found
        .into_iter()
        .map(|(place, holder)| line(connection, house, &open, &place, holder));
    Ok(Page {
        sessions: lines.collect::<rusqlite::Result<_>>()?,
        has_more,
    })
}

fn line(
    connection: &Connection,
    house: &House,
    open: &Open,
    place: &Used,
    holder: Holder,
) -> rusqlite::Result<Listed> {
    let (people, open) = (sessions::people(connection, place)?, open.of(place.id));
    Ok(Listed {
        place: house.names.place(&place.key),
        agent: house.agent(&holder.agent),
        rule: holder.rule,
        silence: holder.silence.as_ref().map(silence),
        people: people.iter().map(|id| house.names.person(id)).collect(),
        messages: sessions::messages(connection, place)?,
        last_active_at: place.active_at.map(Moment),
        waiting: open.waiting,
        unanswered: open.unanswered,
        undelivered: open.undelivered,
        unsent: open.unsent,
    })
}

/// Lets the wanted places through.
struct Sieve<'a> {
    house: &'a House,
    wanted: &'a Wanted,
    /// For a look at many places: agents are wanted of which few places may be.
    settings: Option<Settings>,
    /// Places where the wanted person has words in the running conversation.
    with_words: Option<HashSet<PlaceId>>,
}

impl<'a> Sieve<'a> {
    fn load(
        connection: &Connection,
        house: &'a House,
        wanted: &'a Wanted,
    ) -> rusqlite::Result<Self> {
        let many = wanted.agent.is_some() || wanted.limit > MOST_ONE_BY_ONE;
        let ids = wanted.person.as_ref();
        let ids = ids.map(|person| house.config.access.people.ids_of(person));
        Ok(Sieve {
            house,
            wanted,
            settings: many.then(|| Settings::load(connection)).transpose()?,
            with_words: ids
                .map(|ids| sessions::with_words_of(connection, ids))
                .transpose()?,
        })
    }

    /// The agent of a wanted place.
    fn pass(&self, connection: &Connection, place: &Used) -> rusqlite::Result<Option<Holder>> {
        if !is_on(&place.key, self.wanted.platform) || !self.is_with_person(place) {
            return Ok(None);
        }
        let holder = match &self.settings {
            Some(settings) => self.house.holder_among(settings, &place.key, Some(place)),
            None => self.house.holder(connection, place),
        };
        let is_wanted = |holder: &Holder| {
            let agent = self.wanted.agent.as_ref();
            agent.is_none_or(|agent| *agent == holder.agent)
        };
        Ok(Some(holder?).filter(is_wanted))
    }

    /// Whether a person wrote in the running conversation, or has the place alone. All ids of a
    /// person count.
    fn is_with_person(&self, place: &Used) -> bool {
        let Some(wanted) = &self.wanted.person else {
            return true;
        };
        let has_words = self.with_words.as_ref();
        let known = &self.house.config.access.people;
        has_words.is_some_and(|places| places.contains(&place.id))
            || known.is_same(&person_of(&place.key), wanted)
    }
}

/// The reason as `route explain` has it.
fn silence(silence: &Silence) -> &'static str {
    match silence {
        Silence::NotLetIn(_) => "not_let_in",
        Silence::PrivateChatsClosed => "private_chats_closed",
        _ => "place_closed",
    }
}

fn is_on(key: &SessionKey, platform: Option<Platform>) -> bool {
    platform.is_none_or(|platform| key.platform() == Some(platform))
}
