//! The ways to open a closed place that work there: a pin, where an agent can be pinned, or a binding.

use crate::access::Standing;
use crate::channels::local;
use crate::config::{Config, GroupSessions};
use crate::domain::{AgentId, Origin, SessionKey};
use crate::routing::{Table, Visit};

/// How an operator opens a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opening {
    place: SessionKey,
    /// The agent of the rules.
    agent: AgentId,
    way: Way,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    Pin,
    /// The agent cannot be pinned there, but this other one can.
    PinOther(AgentId),
    /// No agent can be pinned there.
    Bind,
    /// Each member of the group has a conversation of their own.
    BindGroup(SessionKey),
}

impl Opening {
    /// `agent` would answer, were the place open.
    pub(crate) fn of(config: &Config, table: &Table, place: &SessionKey, agent: &AgentId) -> Self {
        let group = place.whole_group().filter(|_| !place.is_shared());
        let group = group.or_else(|| is_of_members(config, place).then(|| place.clone()));
        let mut agents = config.agents.iter().map(|spec| &spec.id);
        let way = match group {
            Some(group) => Way::BindGroup(group),
            None if may_pin(config, table, place, agent) => Way::Pin,
            None => agents
                .find(|id| may_pin(config, table, place, id))
                .map_or(Way::Bind, |other| Way::PinOther(other.clone())),
        };
        Opening {
            place: place.clone(),
            agent: agent.clone(),
            way,
        }
    }

    /// A sentence or two.
    pub(crate) fn told(&self) -> String {
        let Opening { place, agent, way } = self;
        match way {
            Way::Pin => format!(
                "`parlor pin {place} {agent}` opens it, and so does `/bind {agent}`, written there by an owner."
            ),
            Way::PinOther(other) => format!(
                "`parlor pin {place} {other}` opens it. `/bind {agent}`, written there by an owner, opens it too, and {} then.",
                for_everybody(agent)
            ),
            Way::Bind => format!(
                "`/bind {agent}`, written there by an owner, opens it, and {} then.",
                for_everybody(agent)
            ),
            Way::BindGroup(group) => format!("{} opens it for everybody.", bound(group, agent)),
        }
    }

    /// The same as the fix of a finding.
    pub(crate) fn fix(&self) -> String {
        let Opening { place, agent, way } = self;
        match way {
            Way::Pin => format!("parlor pin {place} {agent}, or /bind {agent} there"),
            Way::PinOther(other) => format!(
                "parlor pin {place} {other}, or /bind {agent} there: {} then",
                for_everybody(agent)
            ),
            Way::Bind => format!("/bind {agent} there: {} then", for_everybody(agent)),
            Way::BindGroup(group) => bound(group, agent).replace('`', ""),
        }
    }
}

/// Where each person has a conversation of their own, a group as such has none to pin.
pub(crate) fn is_of_members(config: &Config, place: &SessionKey) -> bool {
    config.group_sessions == GroupSessions::PerUser && place.is_plain_group()
}

/// The consequence of a binding of an agent that is not for everybody.
fn for_everybody(agent: &AgentId) -> String {
    format!("everybody who may write there can use {agent}")
}

/// The ways that bind a group.
pub(crate) fn bound(group: &SessionKey, agent: &AgentId) -> String {
    format!(
        "`/bind {agent}`, written there by an owner, or in config.toml `[[bindings]]` with `match = \"{group}\"` and `agent = \"{agent}\"`"
    )
}

/// Whether the agent is for everybody who can write there, so that an operator can pin it.
fn may_pin(config: &Config, table: &Table, place: &SessionKey, agent: &AgentId) -> bool {
    let origin = Origin::new(place.clone(), local::person());
    let standing = Standing::of(&config.access, &origin.person, false);
    let visit = Visit {
        access: &config.access,
        origin: &origin,
        standing: &standing,
    };
    table.may_switch(agent, visit).is_ok()
}
