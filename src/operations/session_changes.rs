//! Changes of sessions: a conversation begun anew, copied to the terminal or the web chat, or moved
//! to another place. Each is one transaction with its entry in the audit.
//!
//! A running gateway makes the changes itself, and then forgets what it remembers about the places.

use rusqlite::{Connection, Transaction};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::house::House;
use super::named::Named;
use super::transcripts::{self, Detail, Kind};
use super::{Operations, Refusal};
use crate::access::Standing;
use crate::agents::agent_rows;
use crate::channels::local;
use crate::channels::web::{self, Speaker};
use crate::clock::now_ms;
use crate::config::ModelRef;
use crate::domain::{AgentId, LocalName, Origin, SessionKey};
use crate::records::audit::{self, Action, Actor, Change};
use crate::records::sessions::{self, Used};
use crate::records::transcript::Extent;
use crate::records::{model_overrides, transcript};
use crate::routing::places::Twin;
use crate::routing::{Pin, Visit, pins, places};

/// The room that forks go to.
const FORK_ROOM: &str = "home";
/// Names that are tried for a fork.
const MOST_NAMES: u32 = 1000;

/// Who changes, and when.
#[derive(Debug, Clone)]
struct By {
    actor: Actor,
    now: i64,
}

impl By {
    fn now(actor: &Actor) -> Self {
        By {
            actor: actor.clone(),
            now: now_ms(),
        }
    }
}

/// A change that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Refused {
    #[error("nothing was ever said in {0}")]
    Unused(SessionKey),
    #[error("there is no conversation in {0} since the last /new")]
    Empty(SessionKey),
    #[error(
        "{0} has a conversation of its own; begin a new one there first, with `parlor sessions new {0}`"
    )]
    Taken(SessionKey),
    #[error("{0} is in use already; name another place with --to")]
    InUse(SessionKey),
    #[error(
        "a message in {0} is still being answered; try again when it is done, or stop it there with /stop"
    )]
    Busy(SessionKey),
    #[error("{0} is a place of the gateway's own; only places of people can be changed")]
    Internal(SessionKey),
    #[error("{0} is the same place")]
    Same(SessionKey),
    #[error(
        "a fork is a place of the terminal or of the web chat, such as local:home:fork or web:home:fork"
    )]
    NotOurs,
    #[error("the web chat is off; add [web] to config.toml first")]
    WebOff,
    #[error(
        "{agent} is not open to you {}: {reason}. Add \"owner\" to `who` under [agents.{agent}]", .on.in_words()
    )]
    Closed {
        agent: AgentId,
        reason: String,
        on: ForkOn,
    },
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Refusal::failed(refused.to_string())
    }
}

type Changed<T> = rusqlite::Result<Result<T, Refused>>;

/// A conversation that was begun anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct Renewed {
    pub(crate) place: Named,
    /// The number of the new conversation.
    pub(crate) conversation: i64,
    /// Messages of the conversation before. They stay in the store.
    pub(crate) messages: i64,
    /// The model chosen with /model, which went with the conversation.
    pub(crate) model: Option<String>,
}

/// Where a fork goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ForkOn {
    #[default]
    Terminal,
    Web,
}

impl ForkOn {
    /// None for a place where no fork goes.
    fn of(place: &SessionKey) -> Option<Self> {
        match place {
            SessionKey::Local { .. } => Some(ForkOn::Terminal),
            SessionKey::Web { .. } => Some(ForkOn::Web),
            _ => None,
        }
    }

    fn place(self, room: LocalName, topic: Option<LocalName>) -> SessionKey {
        match self {
            ForkOn::Terminal => SessionKey::Local { room, topic },
            ForkOn::Web => SessionKey::Web { room, topic },
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            ForkOn::Terminal => "at the terminal",
            ForkOn::Web => "in the web chat",
        }
    }
}

/// A conversation that was copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct Forked {
    pub(crate) from: Named,
    pub(crate) to: Named,
    pub(crate) agent: Named,
    pub(crate) messages: usize,
    /// Chosen with /model.
    pub(crate) model: Option<String>,
    /// The line that goes on with the fork.
    pub(crate) command: String,
    /// The page that goes on with a fork in the web chat.
    pub(crate) link: Option<String>,
}

/// A conversation that was moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct MovedTo {
    pub(crate) from: Named,
    pub(crate) to: Named,
    pub(crate) messages: usize,
    /// The agent of the pin that followed.
    pub(crate) pinned: Option<Named>,
    /// Chosen with /model.
    pub(crate) model: Option<String>,
}

/// Begins a new conversation, as /new does.
pub(super) async fn renew(
    operations: &Operations,
    actor: &Actor,
    place: SessionKey,
) -> Result<Renewed, Refusal> {
    let (house, by, key) = (operations.house().await?, By::now(actor), place.clone());
    let write = move |tx: &Transaction<'_>| renewed(tx, &house, &key, &by);
    let renewed = operations.db.write(write).await??;
    follow(operations, &[&place]);
    Ok(renewed)
}

/// Copies a conversation to a place of the terminal or the web chat, where the same agent goes on
/// with it.
pub(super) async fn fork(
    operations: &Operations,
    actor: &Actor,
    from: SessionKey,
    (to, on): (Option<SessionKey>, ForkOn),
) -> Result<Forked, Refusal> {
    let (house, by) = (operations.house().await?, By::now(actor));
    let on = to.as_ref().map_or(Some(on), ForkOn::of);
    let on = on.ok_or(Refused::NotOurs)?;
    if on == ForkOn::Web && !house.config.has_web() {
        return Err(Refused::WebOff.into());
    }
    let write = move |tx: &Transaction<'_>| forked(tx, &house, &from, (to, on), &by);
    let forked = operations.db.write(write).await??;
    if let Ok(place) = forked.to.id.parse() {
        follow(operations, &[&place]);
    }
    Ok(forked)
}

/// Moves everything said in a place to another, with its pin and its model.
pub(super) async fn move_to(
    operations: &Operations,
    actor: &Actor,
    from: SessionKey,
    to: SessionKey,
) -> Result<MovedTo, Refusal> {
    let (house, by) = (operations.house().await?, By::now(actor));
    let (old, new) = (from.clone(), to.clone());
    let write = move |tx: &Transaction<'_>| moved(tx, &house, &old, &new, &by);
    let moved = operations.db.write(write).await??;
    follow(operations, &[&from, &to]);
    Ok(moved)
}

/// Has a running gateway look up anew what was set in these places.
fn follow(operations: &Operations, places: &[&SessionKey]) {
    let Some(live) = &operations.live else { return };
    for place in places {
        live.pins.changed(place);
        live.sessions.model_changed(place);
    }
    live.sessions.agent_changed();
}

fn renewed(tx: &Transaction<'_>, house: &House, key: &SessionKey, by: &By) -> Changed<Renewed> {
    let place = match source(tx, key)? {
        Ok(place) => place,
        Err(refused) => return Ok(Err(refused)),
    };
    let messages = sessions::messages(tx, &place)?;
    if messages == 0 {
        return Ok(Err(Refused::Empty(key.clone())));
    }
    let model = model_overrides::load(tx, key)?;
    model_overrides::clear(tx, key)?;
    transcript::start_anew(tx, key, by.now)?;
    let conversation = place.conversation + 1;
    let change = Change::new(Action::NewConversation).at(key);
    let change = change.from(place.conversation).to(conversation);
    audit::note(tx, &by.actor, &change, by.now)?;
    Ok(Ok(Renewed {
        place: house.names.place(key),
        conversation,
        messages,
        model: model.as_ref().map(ModelRef::to_string),
    }))
}

fn forked(
    tx: &Transaction<'_>,
    house: &House,
    from: &SessionKey,
    (to, on): (Option<SessionKey>, ForkOn),
    by: &By,
) -> Changed<Forked> {
    let place = match source(tx, from)? {
        Ok(place) if sessions::messages(tx, &place)? > 0 => place,
        Ok(_) => return Ok(Err(Refused::Empty(from.clone()))),
        Err(refused) => return Ok(Err(refused)),
    };
    let agent = house.holder(tx, &place)?.agent;
    // An agent that is new in the config may have no row yet.
    agent_rows::add(tx, std::slice::from_ref(&agent), by.now)?;
    let uid = agent_rows::uid_of(tx, &agent)?;
    let (Some(to), Some(uid)) = (target(tx, (to, on), &agent)?, uid) else {
        return Ok(Err(Refused::NotOurs));
    };
    // A place without a row is one that no gateway remembers anything about.
    if places::id(tx, &to)?.is_some() {
        return Ok(Err(Refused::InUse(to)));
    }
    if let Err(refused) = is_open(house, &agent, &to, on) {
        return Ok(Err(refused));
    }
    let new = places::ensure(tx, &to, by.now)?;
    let twin = Twin { old: place.id, new };
    transcript::touch(tx, &to, by.now)?;
    if on == ForkOn::Web {
        show(tx, house, (from, &to), by.now)?;
    }
    let messages = transcript::copy(tx, twin)?;
    transcript::append_mark(tx, &to, None, &forked_line(from), by.now)?;
    model_overrides::copy(tx, twin)?;
    let pin = Pin {
        agent: agent.clone(),
        once: false,
        set_by: local::person(),
        set_by_name: Some(local::person_name()),
        set_at: by.now,
        until: None,
    };
    pins::set(tx, &to, uid, &pin, by.now)?;
    let change = Change::new(Action::Fork).at(from).to(&to);
    audit::note(tx, &by.actor, &change, by.now)?;
    let model = model_overrides::load(tx, &to)?;
    Ok(Ok(Forked {
        from: house.names.place(from),
        to: house.names.place(&to),
        agent: house.agent(&agent),
        messages,
        model: model.as_ref().map(ModelRef::to_string),
        command: command(&to),
        link: (on == ForkOn::Web).then(|| format!("/chat?place={to}")),
    }))
}

/// Messages of a conversation that are shown on the screen of the web chat.
const MOST_SHOWN: u32 = 2000;

/// Puts the words of a conversation on the screen of the web chat, which has a store of its own.
fn show(
    tx: &Transaction<'_>,
    house: &House,
    (from, to): (&SessionKey, &SessionKey),
    now: i64,
) -> rusqlite::Result<()> {
    let extent = (Extent::Current, MOST_SHOWN);
    let lines = transcripts::read(tx, house, from, extent, Detail::Readable)?;
    let rows = lines.iter().map(|line| {
        let speaker = match (line.kind, &line.agent) {
            (Kind::Agent, Some(agent)) => Speaker::Agent(label(house, agent)),
            (Kind::Person | Kind::Agent, _) => Speaker::Person(name(line.person.as_ref())),
            (Kind::Handoff | Kind::Gateway, _) => Speaker::Gateway,
        };
        (speaker, line.words(), line.at.0)
    });
    let last = (Speaker::Gateway, forked_line(from), now);
    web::show(tx, to, rows.chain([last]))
}

fn name(person: Option<&Named>) -> String {
    let name = person.map(|person| person.name.as_ref().unwrap_or(&person.id));
    name.cloned().unwrap_or_default()
}

/// Emoji and name, as the screen tells agents apart.
fn label(house: &House, agent: &Named) -> String {
    let mut agents = house.config.agents.iter();
    let spec = agents.find(|spec| spec.id.as_str() == agent.id);
    match spec.and_then(|spec| spec.emoji.as_ref()) {
        Some(emoji) => format!("{emoji} {}", name(Some(agent))),
        None => name(Some(agent)),
    }
}

fn moved(
    tx: &Transaction<'_>,
    house: &House,
    from: &SessionKey,
    to: &SessionKey,
    by: &By,
) -> Changed<MovedTo> {
    if from == to {
        return Ok(Err(Refused::Same(to.clone())));
    }
    if to.is_internal() {
        return Ok(Err(Refused::Internal(to.clone())));
    }
    let old = match source(tx, from)? {
        Ok(place) => place,
        Err(refused) => return Ok(Err(refused)),
    };
    let taken = sessions::of(tx, to)?;
    if let Some(taken) = &taken
        && sessions::messages(tx, taken)? > 0
    {
        return Ok(Err(Refused::Taken(to.clone())));
    }
    for place in [Some(&old), taken.as_ref()].into_iter().flatten() {
        if sessions::is_busy(tx, place.id)? {
            return Ok(Err(Refused::Busy(place.key.clone())));
        }
    }
    if !transcript::has_any(tx, old.id)? {
        return Ok(Err(Refused::Unused(from.clone())));
    }
    let twin = Twin {
        old: old.id,
        new: places::ensure(tx, to, by.now)?,
    };
    let pinned = pins::from_chat(tx, from)?.pin;
    let model = model_overrides::load(tx, from)?;
    let messages = transcript::move_all(tx, twin)?;
    pins::carry(tx, twin)?;
    model_overrides::carry(tx, twin)?;
    let change = Change::new(Action::Move).at(from).from(from).to(to);
    audit::note(tx, &by.actor, &change, by.now)?;
    Ok(Ok(MovedTo {
        from: house.names.place(from),
        to: house.names.place(to),
        messages,
        pinned: pinned.map(|pin| house.agent(&pin.agent)),
        model: model.as_ref().map(ModelRef::to_string),
    }))
}

/// The place that is changed or copied.
fn source(connection: &Connection, key: &SessionKey) -> rusqlite::Result<Result<Used, Refused>> {
    if key.is_internal() {
        return Ok(Err(Refused::Internal(key.clone())));
    }
    let found = sessions::of(connection, key)?;
    Ok(found.ok_or_else(|| Refused::Unused(key.clone())))
}

/// The named place, else the first free one that is called after the agent.
fn target(
    connection: &Connection,
    (named, on): (Option<SessionKey>, ForkOn),
    agent: &AgentId,
) -> rusqlite::Result<Option<SessionKey>> {
    if named.is_some() {
        return Ok(named);
    }
    for number in 1..=MOST_NAMES {
        let name = match number {
            1 => format!("fork-{agent}"),
            more => format!("fork-{agent}-{more}"),
        };
        let (Ok(room), Ok(topic)) = (FORK_ROOM.parse::<LocalName>(), name.parse::<LocalName>())
        else {
            return Ok(None);
        };
        let key = on.place(room, Some(topic));
        if places::id(connection, &key)?.is_none() {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

fn is_open(house: &House, agent: &AgentId, to: &SessionKey, on: ForkOn) -> Result<(), Refused> {
    let access = &house.config.access;
    let origin = Origin::new(to.clone(), local::person());
    let standing = Standing::of(access, &origin.person, false);
    let visit = Visit {
        access,
        origin: &origin,
        standing: &standing,
    };
    let allowed = house.table.may_switch(agent, visit);
    allowed.map_err(|closed| Refused::Closed {
        agent: agent.clone(),
        reason: closed.to_string(),
        on,
    })
}

fn forked_line(from: &SessionKey) -> String {
    format!("a copy of the conversation in {from} up to here")
}

/// The line that goes on in a place.
fn command(place: &SessionKey) -> String {
    let SessionKey::Local { room, topic } = place else {
        return "parlor dashboard".to_owned();
    };
    let room = match room.as_str() {
        FORK_ROOM => String::new(),
        other => format!(" --room {other}"),
    };
    let topic = topic
        .as_ref()
        .map_or_else(String::new, |topic| format!(" --topic {topic}"));
    format!("parlor chat{room}{topic}")
}
