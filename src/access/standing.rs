//! The roles of a person: with all agents, and with each agent.

use std::sync::Arc;

use super::Role;
use crate::config::{Access, Person};
use crate::domain::{AgentId, PersonId};

/// All ids of people with at least this role: owners, and people whose role is in config.toml or
/// was granted.
pub(crate) fn people_with(access: &Access, least: Role) -> Vec<PersonId> {
    let owners = access.owners.iter();
    let owners = owners.flat_map(|owner| access.people.ids_of(owner));
    let named = access.people.all().iter();
    let named = named.filter(|person| person.role.is_some_and(|role| role >= least));
    let mut found = Vec::new();
    for person in owners.chain(named.flat_map(|person| &person.ids)) {
        if !found.contains(person) {
            found.push(person.clone());
        }
    }
    found
}

/// The ids for notices to owners: the ids in `[access] owners`, and all ids of other owners.
pub(crate) fn owners(access: &Access) -> Vec<PersonId> {
    let is_listed = |person: &PersonId| {
        let ids = access.people.ids_of(person);
        ids.iter().any(|id| access.owners.contains(id))
    };
    let others = people_with(access, Role::Owner);
    let others = others.into_iter().filter(|person| !is_listed(person));
    access.owners.iter().cloned().chain(others).collect()
}

/// The roles of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    role: Role,
    /// The person's table in the config, with roles for single agents.
    person: Option<Arc<Person>>,
}

impl Standing {
    /// Not known to the house.
    pub const GUEST: Standing = Standing {
        role: Role::Guest,
        person: None,
    };

    /// `is_paired`: any of the person's ids was let in with a code.
    pub fn of(access: &Access, person: &PersonId, is_paired: bool) -> Self {
        let known = access.people.of(person);
        let ids = access.people.ids_of(person);
        let is_owner = ids
            .iter()
            .any(|id| matches!(id, PersonId::Local(_)) || access.owners.contains(id));
        let written = known.and_then(|person| person.role);
        let role = match (is_owner, written, is_paired) {
            (true, ..) => Role::Owner,
            // The file's word counts, also against the higher role of a pairing.
            (false, Some(role), _) => role,
            (false, None, true) => Role::Member,
            (false, None, false) => Role::Guest,
        };
        Standing {
            role,
            person: known.cloned(),
        }
    }

    /// The same role with every agent, for turns requested by another turn.
    pub fn just(role: Role) -> Self {
        Standing { role, person: None }
    }

    /// All ids of the person, if the house knows several.
    pub(super) fn ids(&self) -> &[PersonId] {
        self.person.as_ref().map_or(&[], |person| &person.ids)
    }

    /// The role with all agents; decides about the house itself.
    pub fn role(&self) -> Role {
        self.role
    }

    /// With this agent. An owner of the house is the owner of every agent.
    pub fn with(&self, agent: &AgentId) -> Role {
        if self.role == Role::Owner {
            return Role::Owner;
        }
        let own = self
            .person
            .as_ref()
            .and_then(|person| person.agents.get(agent));
        own.copied().unwrap_or(self.role)
    }

    /// The lowest role with any agent, for words not addressed to an agent.
    pub fn lowest(&self) -> Role {
        if self.role == Role::Owner {
            return Role::Owner;
        }
        let with_one = self.person.iter().flat_map(|person| person.agents.values());
        with_one.copied().fold(self.role, Role::min)
    }

    /// The highest role with any agent; decides whether the person may speak at all.
    pub fn highest(&self) -> Role {
        let with_one = self.person.iter().flat_map(|person| person.agents.values());
        with_one.copied().fold(self.role, Role::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::People;

    fn person(id: &str) -> PersonId {
        id.parse().unwrap()
    }

    fn agent(id: &str) -> AgentId {
        AgentId::parse(id).unwrap()
    }

    fn house() -> Access {
        let people: People = [
            Person {
                name: "alice".into(),
                ids: vec![person("telegram:1"), person("discord:1")],
                role: None,
                agents: [].into(),
                zone: None,
            },
            Person {
                name: "bob".into(),
                ids: vec![person("telegram:2"), person("discord:2")],
                role: Some(Role::Admin),
                agents: [(agent("coding"), Role::Member)].into(),
                zone: None,
            },
            Person {
                name: "carol".into(),
                ids: vec![person("telegram:3")],
                role: None,
                agents: [(agent("coding"), Role::Member)].into(),
                zone: None,
            },
            Person {
                name: "dan".into(),
                ids: vec![person("telegram:4")],
                role: Some(Role::Guest),
                agents: [].into(),
                zone: None,
            },
        ]
        .into_iter()
        .collect();
        Access {
            owners: vec![person("telegram:1")],
            people,
            ..Access::default()
        }
    }

    #[test]
    fn a_granted_owner_is_told_like_one_of_the_file() {
        let mut access = house();
        access.people = [Person {
            name: "eve".into(),
            ids: vec![person("telegram:5")],
            role: Some(Role::Owner),
            agents: [].into(),
            zone: None,
        }]
        .into_iter()
        .collect();
        assert_eq!(
            owners(&access),
            [person("telegram:1"), person("telegram:5")]
        );
        assert_eq!(owners(&house()), [person("telegram:1")]);
    }

    #[test]
    fn a_role_counts_for_all_ids_of_a_person_and_for_all_agents_or_one() {
        let check = |id: &str, is_paired: bool, role, with_coding, lowest, highest| {
            let standing = Standing::of(&house(), &person(id), is_paired);
            assert_eq!(standing.role(), role, "{id}");
            assert_eq!(standing.with(&agent("coding")), with_coding, "{id}");
            assert_eq!(standing.lowest(), lowest, "{id}");
            assert_eq!(standing.highest(), highest, "{id}");
        };
        use Role::{Admin, Guest, Member, Owner};
        check("telegram:1", false, Owner, Owner, Owner, Owner);
        check("discord:1", false, Owner, Owner, Owner, Owner);
        check("discord:2", false, Admin, Member, Member, Admin);
        check("telegram:3", false, Guest, Member, Guest, Member);
        check("telegram:3", true, Member, Member, Member, Member);
        check("telegram:4", true, Guest, Guest, Guest, Guest);
        check("telegram:9", false, Guest, Guest, Guest, Guest);
        check("telegram:9", true, Member, Member, Member, Member);
        check("local:home", false, Owner, Owner, Owner, Owner);
    }
}
