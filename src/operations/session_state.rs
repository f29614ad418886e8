//! The state of a session: who answers and why, what was set from chat, and what is going on.

use rusqlite::Connection;
use serde::Serialize;
use utoipa::ToSchema;

use super::house::House;
use super::named::{Moment, Named};
use crate::agents::AgentModels;
use crate::domain::{PersonId, SessionKey};
use crate::records::sessions::{self, Open, Used};
use crate::records::{journal, model_overrides};

/// The form of [`SessionState`], counted up when a field changes its meaning.
const VERSION: u32 = 1;

#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct SessionState {
    pub(crate) v: u32,
    pub(crate) place: Named,
    pub(crate) agent: Named,
    /// The rule that gives the place to the agent.
    pub(crate) rule: String,
    /// Nothing but the key of the place decides.
    #[serde(skip)]
    pub(crate) is_sure: bool,
    /// `/agent` is for owners and admins here.
    pub(crate) locked: bool,
    /// Set by the binding; absent: as `access.require_mention` says.
    pub(crate) require_mention: Option<bool>,
    pub(crate) pin: Option<PinState>,
    /// Opened from chat, by whom and when.
    pub(crate) opened: Option<SetBy>,
    /// The model of the next turn.
    pub(crate) model: String,
    pub(crate) model_override: Option<ModelOverride>,
    /// Counts up with every /new.
    pub(crate) conversation: i64,
    /// Of the running conversation.
    pub(crate) messages: i64,
    pub(crate) people: Vec<Named>,
    pub(crate) first_seen_at: Moment,
    pub(crate) last_active_at: Option<Moment>,
    pub(crate) waiting: i64,
    pub(crate) unanswered: i64,
    pub(crate) undelivered: i64,
    /// Messages to people that wait to be sent.
    pub(crate) unsent: i64,
    /// Turns that have called tools and are not over.
    pub(crate) unfinished: Vec<Unfinished>,
    pub(crate) last_turn: Option<LastTurn>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct PinState {
    pub(crate) agent: Named,
    /// For the next message only.
    pub(crate) once: bool,
    pub(crate) set_by: Named,
    pub(crate) set_at: Moment,
    /// A pin whose agent is gone, or closed to the people there, does not count.
    pub(crate) counts: bool,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct SetBy {
    pub(crate) by: Named,
    pub(crate) at: Moment,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ModelOverride {
    pub(crate) model: String,
    pub(crate) set_by: Named,
    pub(crate) set_at: Moment,
    /// Whether the agent may use it.
    pub(crate) counts: bool,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Unfinished {
    pub(crate) agent: Named,
    /// Put aside for other messages.
    pub(crate) parked: bool,
    pub(crate) started_at: Moment,
    /// Names of the tools it has called.
    pub(crate) tools: Vec<String>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct LastTurn {
    pub(crate) agent: Option<Named>,
    pub(crate) model: String,
    /// The rule that chose the agent then.
    pub(crate) rule: String,
    pub(crate) outcome: String,
    pub(crate) ended_at: Moment,
}

/// The state of a place; none where the place has no row.
pub(crate) fn state(
    connection: &Connection,
    house: &House,
    key: &SessionKey,
) -> rusqlite::Result<Option<SessionState>> {
    let Some(place) = sessions::of(connection, key)? else {
        return Ok(None);
    };
    let holder = house.holder(connection, &place)?;
    let open = Open::load(connection)?.of(place.id);
    let (model, model_override) = models(connection, house, &place, &holder.agent)?;
    let resolved = &holder.resolved;
    let pin = resolved.pin.as_ref().or(resolved.stale_pin.as_ref());
    let by = |id: &PersonId, name: Option<&String>| match name {
        Some(name) => Named::new(id, Some(name)),
        None => house.names.person(id),
    };
    Ok(Some(SessionState {
        v: VERSION,
        place: house.names.place(key),
        agent: house.agent(&holder.agent),
        rule: holder.rule.clone(),
        is_sure: holder.is_sure,
        locked: resolved.route.locked,
        require_mention: resolved.route.require_mention,
        pin: pin.map(|pin| PinState {
            agent: house.agent(&pin.agent),
            once: pin.once,
            set_by: by(&pin.set_by, pin.set_by_name.as_ref()),
            set_at: Moment(pin.set_at),
            counts: resolved.pin.is_some(),
        }),
        opened: resolved.opened.as_ref().map(|opened| SetBy {
            by: by(&opened.by, opened.by_name.as_ref()),
            at: Moment(opened.at),
        }),
        model,
        model_override,
        conversation: place.conversation,
        messages: sessions::messages(connection, &place)?,
        people: sessions::people(connection, &place)?
            .iter()
            .map(|id| house.names.person(id))
            .collect(),
        first_seen_at: Moment(place.created_at),
        last_active_at: place.active_at.map(Moment),
        waiting: open.waiting,
        unanswered: open.unanswered,
        undelivered: open.undelivered,
        unsent: open.unsent,
        unfinished: unfinished(connection, house, key)?,
        last_turn: sessions::last_turn(connection, place.id)?.map(|turn| LastTurn {
            agent: turn
                .agent
                .and_then(|uid| house.agent_of(uid))
                .map(|id| house.agent(id)),
            model: turn.model,
            rule: turn.route,
            outcome: turn.outcome,
            ended_at: Moment(turn.ended_at),
        }),
    }))
}

fn models(
    connection: &Connection,
    house: &House,
    place: &Used,
    agent: &crate::domain::AgentId,
) -> rusqlite::Result<(String, Option<ModelOverride>)> {
    let row = model_overrides::row(connection, &place.key)?;
    let specs = &house.config.agents;
    let Some(spec) = specs.iter().find(|spec| spec.id == *agent) else {
        return Ok((String::new(), None));
    };
    let wanted = row.as_ref().and_then(|row| row.model.parse().ok());
    let chosen = AgentModels::of(&house.config, spec).choose(wanted.as_ref());
    let model = chosen.model.to_string();
    let chosen = row.map(|row| ModelOverride {
        counts: row.model == model,
        set_by: row.set_by.parse().map_or_else(
            |_| Named::new(&row.set_by, None),
            |id| house.names.person(&id),
        ),
        set_at: Moment(row.set_at),
        model: row.model,
    });
    Ok((model, chosen))
}

fn unfinished(
    connection: &Connection,
    house: &House,
    key: &SessionKey,
) -> rusqlite::Result<Vec<Unfinished>> {
    let turns = journal::unfinished(connection, key)?;
    let one = |turn: journal::UnfinishedTurn| {
        let agent = house.agent_of(turn.agent);
        Ok(Unfinished {
            agent: agent.map_or_else(|| Named::new(turn.agent, None), |id| house.agent(id)),
            parked: turn.is_parked,
            started_at: Moment(turn.started_at),
            tools: journal::tools_called(connection, turn.inbox_id)?,
        })
    };
    turns.into_iter().map(one).collect()
}
