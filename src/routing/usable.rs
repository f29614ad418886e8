//! Whether people may use an agent in a place: collects the config's words about agent and place
//! for [`access::may_use`]. Pure.

use super::trial::is_about;
use super::{Pin, Rule, Table, route};
use crate::access::{self, Asker, NotForYou, Opening, Role, Standing};
use crate::config::{Access, Who};
use crate::domain::{AgentId, Origin};

/// The person who asks, and the place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visit<'a> {
    pub(crate) access: &'a Access,
    pub(crate) origin: &'a Origin,
    pub(crate) standing: &'a Standing,
}

impl<'a> Visit<'a> {
    fn asker(&self) -> Asker<'a> {
        Asker::Person {
            id: &self.origin.person,
            standing: self.standing,
        }
    }

    /// All people who can speak in the place: in a shared place guests too.
    fn speakers(&self) -> Asker<'a> {
        if self.origin.key.is_shared() {
            Asker::Everybody
        } else {
            self.asker()
        }
    }
}

impl Table {
    /// Whether the person may be answered by this agent here, without a switch.
    pub(crate) fn may_use(&self, agent: &AgentId, visit: Visit<'_>) -> Result<(), NotForYou> {
        let opening = self.opening(agent, visit.origin);
        self.ask(agent, opening, visit.asker())
    }

    /// Whether the person may work with this agent elsewhere: as a subagent or a peer.
    pub(crate) fn may_call(&self, agent: &AgentId, visit: Visit<'_>) -> Result<(), NotForYou> {
        let opening = match self.opening(agent, visit.origin) {
            Opening::Unwritten => Opening::Closed,
            opening => opening,
        };
        self.ask(agent, opening, visit.asker())
    }

    /// Whether the person may give the place to this agent. In a shared place the agent must be
    /// open to all people who can speak there, because the agent answers all of them from then on.
    pub(crate) fn may_switch(&self, agent: &AgentId, visit: Visit<'_>) -> Result<(), NotForYou> {
        self.may_use(agent, visit)?;
        let opening = self.opened_by(agent, visit.origin, visit.standing);
        self.ask(agent, opening, visit.speakers())
    }

    /// Whether a pin still counts: the place, the rule or the role of the pin's author may have
    /// changed.
    pub(crate) fn still_counts(&self, pin: &Pin, visit: Visit<'_>) -> Result<(), NotForYou> {
        let setter = Standing::of(visit.access, &pin.set_by, false);
        let opening = self.opened_by(&pin.agent, visit.origin, &setter);
        self.ask(&pin.agent, opening, visit.speakers())
    }

    fn ask(&self, agent: &AgentId, opening: Opening, asker: Asker<'_>) -> Result<(), NotForYou> {
        match self.open_to(agent) {
            Some(open_to) => access::may_use(agent, &open_to.who, opening, asker),
            None => access::may_use(agent, &Who::default(), opening, asker),
        }
    }

    /// How the config gives the agent to this place.
    fn opening(&self, agent: &AgentId, origin: &Origin) -> Opening {
        let names_place = self.open_to(agent).is_some_and(|open_to| {
            let mut places = open_to.places.iter();
            places.any(|place| is_about(place, origin))
        });
        let given = route(self, None, origin);
        match (names_place, given.agent == *agent, given.rule) {
            (true, ..) | (_, true, Rule::Binding { .. }) => Opening::Place,
            (_, true, Rule::Default | Rule::Pin { .. }) => Opening::Unwritten,
            (_, false, _) => Opening::Closed,
        }
    }

    /// The same after a switch by this person. The switch of an owner or admin counts like the
    /// operator's word, while the agent's `who` is not written.
    fn opened_by(&self, agent: &AgentId, origin: &Origin, setter: &Standing) -> Opening {
        match self.opening(agent, origin) {
            Opening::Closed if setter.with(agent) >= Role::Admin => Opening::Unwritten,
            opening => opening,
        }
    }
}
