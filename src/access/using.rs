//! Decides whether a person may use an agent in a place. Pure.

use std::fmt;

use super::Standing;
use crate::config::Who;
use crate::domain::{AgentId, PersonId, Role};

/// The people a decision is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Asker<'a> {
    Person {
        id: &'a PersonId,
        standing: &'a Standing,
    },
    /// All people who may speak in a shared place, hence guests too.
    Everybody,
}

/// How the config gives an agent to a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    /// A binding about the place names the agent, or `who` names the place: the agent is open to
    /// all people who may speak there.
    Place,
    /// The agent answers as the `default_agent`, or because an owner or admin has switched to this
    /// agent: open to all people while its `who` is not written.
    Unwritten,
    /// The config does not give the agent to the place.
    Closed,
}

/// A refusal: the agent, and the people with access to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotForYou {
    pub agent: AgentId,
    /// The lowest role with access to the agent. None: only the people and places of a list.
    pub least: Option<Role>,
}

impl fmt::Display for NotForYou {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.least {
            Some(Role::Guest) => write!(f, "`{}` is for everybody", self.agent),
            Some(Role::Owner) => write!(f, "`{}` is for owners", self.agent),
            Some(Role::Admin) => write!(f, "`{}` is for admins and owners", self.agent),
            Some(Role::Member) => write!(f, "`{}` is for members", self.agent),
            None => write!(f, "`{}` is for the people that its `who` names", self.agent),
        }
    }
}

/// Whether the asker may use the agent. Every door asks this function.
pub(crate) fn may_use(
    agent: &AgentId,
    who: &Who,
    opening: Opening,
    asker: Asker<'_>,
) -> Result<(), NotForYou> {
    let is_open = match opening {
        Opening::Place => true,
        Opening::Unwritten => !who.is_written,
        Opening::Closed => false,
    };
    let is_meant = match asker {
        Asker::Everybody => who.role == Some(Role::Guest),
        Asker::Person { id, standing } => {
            let has_role = who.role.is_some_and(|least| standing.with(agent) >= least);
            let mut ids = standing.ids().iter().chain([id]);
            has_role || ids.any(|id| who.people.contains(id))
        }
    };
    if is_open || is_meant {
        return Ok(());
    }
    Err(NotForYou {
        agent: agent.clone(),
        least: who.role,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Access, Person};

    fn who(role: Option<Role>, people: &[&str]) -> Who {
        Who {
            is_written: true,
            role,
            people: people.iter().map(|id| id.parse().unwrap()).collect(),
            places: Vec::new(),
        }
    }

    fn check(who: &Who, opening: Opening, role: Role, expected: bool) {
        let agent = AgentId::parse("rose").unwrap();
        let id: PersonId = "telegram:5".parse().unwrap();
        let standing = Standing::just(role);
        let asker = Asker::Person {
            id: &id,
            standing: &standing,
        };
        let may = may_use(&agent, who, opening, asker).is_ok();
        assert_eq!(may, expected, "{who:?} {opening:?} {role}");
    }

    #[test]
    fn an_agent_is_open_to_the_people_of_its_who_and_to_the_place_of_its_binding() {
        use Opening::{Closed, Place, Unwritten};
        use Role::{Admin, Guest, Member, Owner};
        for (least, role) in Role::ALL
            .into_iter()
            .flat_map(|least| Role::ALL.map(|role| (least, role)))
        {
            check(&who(Some(least), &[]), Closed, role, role >= least);
            check(&who(Some(least), &[]), Unwritten, role, role >= least);
            check(&who(Some(least), &[]), Place, role, true);
        }
        check(&Who::default(), Closed, Guest, false);
        check(&Who::default(), Unwritten, Guest, true);
        check(&Who::default(), Closed, Member, true);
        check(&Who::default(), Closed, Admin, true);
        // A list of people leaves out even owners.
        check(&who(None, &["telegram:6"]), Closed, Owner, false);
        check(&who(None, &["telegram:6"]), Unwritten, Owner, false);
        check(&who(None, &["telegram:5"]), Closed, Guest, true);
        check(&who(Some(Owner), &["telegram:5"]), Closed, Guest, true);
    }

    /// A list names one id of a person, and the person writes as another.
    #[test]
    fn a_list_of_people_counts_for_all_ids_of_a_person() {
        let [listed, writes_as]: [PersonId; 2] =
            ["telegram:6", "discord:6"].map(|id| id.parse().unwrap());
        let access = Access {
            people: [Person {
                name: "eve".into(),
                ids: vec![listed, writes_as.clone()],
                role: None,
                agents: [].into(),
                zone: None,
            }]
            .into_iter()
            .collect(),
            ..Access::default()
        };
        let agent = AgentId::parse("rose").unwrap();
        let asker = Asker::Person {
            id: &writes_as,
            standing: &Standing::of(&access, &writes_as, false),
        };
        let may = |who: &Who| may_use(&agent, who, Opening::Closed, asker).is_ok();
        assert!(may(&who(None, &["telegram:6"])));
        assert!(!may(&who(None, &["telegram:7"])));
    }

    #[test]
    fn a_shared_place_needs_an_agent_for_guests() {
        let agent = AgentId::parse("rose").unwrap();
        let open = |who: &Who, opening| may_use(&agent, who, opening, Asker::Everybody).is_ok();
        assert!(open(&who(Some(Role::Guest), &[]), Opening::Closed));
        assert!(!open(&who(Some(Role::Member), &[]), Opening::Closed));
        assert!(!open(&who(None, &["telegram:5"]), Opening::Closed));
        assert!(!open(&Who::default(), Opening::Closed));
        assert!(open(&Who::default(), Opening::Unwritten));
        assert!(open(&who(Some(Role::Owner), &[]), Opening::Place));
    }
}
