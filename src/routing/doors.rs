//! The ways by which guests come to an agent, for the operator. Pure.

use super::filter::Filter;
use super::pattern::Target;
use super::table::Bound;
use super::{Pin, Table};
use crate::access::{Role, Standing};
use crate::config::{Access, Dms, Groups};
use crate::domain::{AgentId, Platform, SessionKey};

/// A way by which guests come to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Door {
    /// A binding, by its target.
    Binding { target: String },
    /// A place in `who`.
    Place(String),
    /// `who = "guest"`: guests fetch the agent with `/agent`.
    Who,
    /// The `default_agent` of open groups or private chats, with no `who`.
    Default,
    /// An owner or admin has switched a shared place to the agent, and the agent has no `who`.
    Pin(SessionKey),
}

/// The settings of all places made in chat.
#[derive(Debug, Default)]
pub(crate) struct SetInChat {
    pub(crate) pins: Vec<(SessionKey, Pin)>,
    pub(crate) opened: Vec<SessionKey>,
}

impl Table {
    /// The ways by which guests come to an agent.
    pub(crate) fn doors_of(&self, agent: &AgentId, access: &Access, set: &SetInChat) -> Vec<Door> {
        let bound = self.bindings().filter(|bound| bound.agent == *agent);
        let mut doors: Vec<Door> = bound
            .filter(|bound| lets_guests_through(bound) && reaches_guests(&bound.target, access))
            .map(|bound| Door::Binding {
                target: bound.text.to_string(),
            })
            .collect();
        let Some(open_to) = self.open_to(agent) else {
            return doors;
        };
        let named = open_to.places.iter();
        doors.extend(
            named
                .filter(|place| reaches_guests(place, access))
                .map(|place| Door::Place(place.to_string())),
        );
        if open_to.who.role == Some(Role::Guest) && self.has_open_places(access, set) {
            doors.push(Door::Who);
        }
        if open_to.who.is_written {
            return doors;
        }
        let is_open = access.dms == Dms::Open
            || access.groups == Groups::Open
            || set.opened.iter().any(SessionKey::is_shared);
        if is_open && self.default_agent() == agent {
            doors.push(Door::Default);
        }
        let opened = set.pins.iter().filter(|(place, pin)| {
            let setter = Standing::of(access, &pin.set_by, false);
            pin.agent == *agent && place.is_shared() && setter.with(agent) >= Role::Admin
        });
        doors.extend(opened.map(|(place, _)| Door::Pin(place.clone())));
        doors
    }

    /// Whether guests can write anywhere.
    pub(crate) fn has_open_places(&self, access: &Access, set: &SetInChat) -> bool {
        access.dms == Dms::Open
            || access.groups == Groups::Open
            || !set.opened.is_empty()
            || self
                .bindings()
                .any(|bound| reaches_guests(&bound.target, access))
    }
}

fn lets_guests_through(bound: &Bound) -> bool {
    let mut filters = bound.filters.iter();
    !filters.any(|filter| matches!(filter, Filter::Users(_)))
}

fn reaches_guests(target: &Target, access: &Access) -> bool {
    match target {
        Target::Place(SessionKey::Local { .. } | SessionKey::Web { .. })
        | Target::Platform(Platform::Local | Platform::Web)
        | Target::Person(_) => false,
        Target::Place(key) if key.is_private() => access.dms == Dms::Open,
        Target::Place(_) | Target::EveryTopic(_) | Target::Category(_) | Target::Server(_) => true,
        Target::PrivateChats(_) => access.dms == Dms::Open,
        Target::Platform(_) => access.dms == Dms::Open || access.groups == Groups::Open,
    }
}
