//! Everybody the house knows: ids, roles, and where each comes from.

use std::collections::{BTreeSet, HashMap};

use rusqlite::Connection;

use crate::access::grants::{self, Granted, Grantor};
use crate::access::people::{self, Member};
use crate::access::{Role, Standing, numbers};
use crate::config::{Access, People, Person, PersonLines};
use crate::domain::{AgentId, PersonId, UserError, nearest};
use crate::records::ledger;
use crate::records::speakers;
use crate::turn::budget::Spent;

/// Where a role or an id comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// `[access] owners`, with its line.
    Owners(Option<usize>),
    /// `[people.<name>]`, with the line.
    File(usize),
    Granted(Grantor),
    /// Let in with a code.
    Paired(Grantor),
    /// Only seen.
    Nowhere,
}

/// A person of the house.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    /// The name in the file, or the name that an owner has given.
    pub(crate) name: Option<String>,
    /// The name on the platform, which can be anybody's.
    pub(crate) called: Option<String>,
    /// The first stands for the person.
    pub(crate) ids: Vec<(PersonId, Source)>,
    pub(crate) role: Role,
    pub(crate) role_from: Source,
    pub(crate) agents: Vec<(AgentId, Role, Source)>,
    pub(crate) last_seen: Option<i64>,
    /// Today.
    pub(crate) spent: Spent,
    /// Tokens of today that no price is known for.
    pub(crate) unpriced_tokens: u64,
}

impl Known {
    pub(crate) fn main(&self) -> &PersonId {
        &self.ids[0].0
    }

    pub(crate) fn has(&self, id: &PersonId) -> bool {
        self.ids.iter().any(|(own, _)| own == id)
    }

    /// `alice (telegram:1)`, or the id alone.
    pub(crate) fn label(&self) -> String {
        match self.name.as_ref().or(self.called.as_ref()) {
            Some(name) => format!("{name} ({})", self.main()),
            None => self.main().to_string(),
        }
    }
}

/// The file, with its owners and people, and the grants of now.
pub(super) struct Register<'a> {
    access: &'a Access,
    pub(super) people: People,
    granted: HashMap<PersonId, Granted>,
    members: HashMap<PersonId, Member>,
    called: HashMap<PersonId, String>,
    seen: HashMap<PersonId, i64>,
    spent_today: HashMap<PersonId, Spent>,
    unpriced_today: HashMap<PersonId, u64>,
    /// Owners and people, for roles.
    rights: Access,
}

impl<'a> Register<'a> {
    pub(super) fn load(
        connection: &Connection,
        access: &'a Access,
        now: i64,
    ) -> rusqlite::Result<Self> {
        let granted = grants::load(connection)?;
        let members = people::members(connection, u32::MAX)?;
        let mut called: HashMap<_, _> = people::names(connection)?.into_iter().collect();
        called.extend(speakers::names(connection)?);
        let mut seen: HashMap<_, _> = people::first_seen(connection)?.into_iter().collect();
        for (person, at) in speakers::last_words(connection)? {
            let known = seen.entry(person).or_insert(at);
            *known = (*known).max(at);
        }
        let everybody = grants::people(connection, &access.people)?;
        Ok(Register {
            access,
            rights: Access {
                people: everybody.clone(),
                owners: access.owners.clone(),
                ..Access::default()
            },
            people: everybody,
            spent_today: ledger::people_today(connection, now)?,
            unpriced_today: ledger::unpriced_today(connection, now)?,
            granted: granted
                .into_iter()
                .map(|granted| (granted.main.clone(), granted))
                .collect(),
            members: members
                .into_iter()
                .map(|member| (member.person.clone(), member))
                .collect(),
            called,
            seen,
        })
    }

    /// The ids that stand for everybody known: those of the file first.
    fn everybody(&self, connection: &Connection) -> rusqlite::Result<Vec<PersonId>> {
        let named = self
            .people
            .all()
            .iter()
            .filter_map(|person| person.ids.first());
        let owners = self.access.owners.iter();
        let mut members: Vec<&Member> = self.members.values().collect();
        members.sort_by(|one, other| (one.since, &one.person).cmp(&(other.since, &other.person)));
        let members = members.into_iter().map(|member| &member.person);
        let mut all: Vec<PersonId> = named.chain(owners).chain(members).cloned().collect();
        let mut others: Vec<PersonId> = self.called.keys().cloned().collect();
        others.sort();
        all.extend(others);
        all.extend(numbers::everybody(connection)?);
        let mut known = BTreeSet::new();
        let main = |id: PersonId| self.people.main_id(&id).clone();
        let is_person = |id: &PersonId| !id.is_nobody() && !matches!(id, PersonId::Local(_));
        let ids = all.into_iter().map(main).filter(is_person);
        Ok(ids.filter(|id| known.insert(id.clone())).collect())
    }

    fn lines(&self, person: &Person) -> PersonLines {
        self.people.lines(&person.name).cloned().unwrap_or_default()
    }

    pub(super) fn known(&self, id: &PersonId) -> Known {
        let ids = self.people.ids_of(id);
        let main = self.people.main_id(id).clone();
        let written = ids.iter().find_map(|id| self.people.written(id));
        let granted = self.granted.get(&main);
        let member = ids.iter().find_map(|id| self.members.get(id));
        let standing = Standing::of(&self.rights, id, member.is_some());
        let given = granted.and_then(|granted| granted.name.clone());
        let called = ids.iter().find_map(|id| self.called.get(id)).cloned();
        Known {
            name: written
                .map(|person| person.name.clone())
                .or(given.map(|(name, _)| name)),
            called,
            ids: ids
                .iter()
                .map(|id| (id.clone(), self.source_of_id(id, granted)))
                .collect(),
            role: standing.role(),
            role_from: self.source_of_role(ids, written, granted, member),
            agents: self.agents(&main, written, granted),
            last_seen: ids.iter().filter_map(|id| self.seen.get(id)).max().copied(),
            spent: self.spent_today.get(&main).copied().unwrap_or_default(),
            unpriced_tokens: ids
                .iter()
                .filter_map(|id| self.unpriced_today.get(id))
                .sum(),
        }
    }

    /// Whether a name or an id of the person has these words, in small letters.
    fn has(&self, id: &PersonId, words: &str) -> bool {
        let known = self.known(id);
        let names = known.name.iter().chain(&known.called);
        names
            .map(|name| name.to_lowercase())
            .any(|name| name.contains(words))
            || known
                .ids
                .iter()
                .any(|(id, _)| id.to_string().contains(words))
    }

    fn source_of_id(&self, id: &PersonId, granted: Option<&Granted>) -> Source {
        if let Some(person) = self.people.written(id) {
            let lines = self.lines(person);
            return Source::File(lines.ids.unwrap_or(lines.section));
        }
        if self.access.owners.contains(id) {
            return Source::Owners(self.access.owners_line);
        }
        let link = granted.and_then(|granted| granted.links.iter().find(|(own, _)| own == id));
        let named = granted.and_then(|granted| granted.name.as_ref().map(|(_, by)| by));
        match (link.map(|(_, by)| by).or(named), self.members.get(id)) {
            (Some(by), _) => Source::Granted(by.clone()),
            (None, Some(member)) => self.paired(member),
            (None, None) => Source::Nowhere,
        }
    }

    fn paired(&self, member: &Member) -> Source {
        let by = member.by.parse::<PersonId>().ok();
        let name = by.and_then(|by| {
            let written = self.people.written(&by).map(|person| person.name.clone());
            self.called.get(&by).cloned().or(written)
        });
        Source::Paired(Grantor {
            id: member.by.clone(),
            name,
            at: member.since,
        })
    }

    fn source_of_role(
        &self,
        ids: &[PersonId],
        written: Option<&std::sync::Arc<Person>>,
        granted: Option<&Granted>,
        member: Option<&Member>,
    ) -> Source {
        if ids.iter().any(|id| self.access.owners.contains(id)) {
            return Source::Owners(self.access.owners_line);
        }
        if let Some(person) = written.filter(|person| person.role.is_some()) {
            let lines = self.lines(person);
            return Source::File(lines.role.unwrap_or(lines.section));
        }
        let given = granted.and_then(|granted| granted.role.as_ref());
        match (given, member) {
            (Some((_, by)), _) => Source::Granted(by.clone()),
            (None, Some(member)) => self.paired(member),
            (None, None) => Source::Nowhere,
        }
    }

    fn agents(
        &self,
        main: &PersonId,
        written: Option<&std::sync::Arc<Person>>,
        granted: Option<&Granted>,
    ) -> Vec<(AgentId, Role, Source)> {
        let merged = self.people.of(main).map(|person| &person.agents);
        let roles = merged.into_iter().flatten();
        let sourced = roles.map(|(agent, role)| {
            let in_file = written.filter(|person| person.agents.contains_key(agent));
            let by = granted.and_then(|granted| granted.agents.get(agent));
            let source = match (in_file, by) {
                (Some(person), _) => {
                    let lines = self.lines(person);
                    Source::File(lines.agents.get(agent).copied().unwrap_or(lines.section))
                }
                (None, Some((_, by))) => Source::Granted(by.clone()),
                (None, None) => Source::Nowhere,
            };
            (agent.clone(), *role, source)
        });
        sourced.collect()
    }
}

/// Everybody known: from config.toml, granted, let in, and seen.
pub(crate) fn list(
    connection: &Connection,
    access: &Access,
    now: i64,
) -> rusqlite::Result<Vec<Known>> {
    let register = Register::load(connection, access, now)?;
    let everybody = register.everybody(connection)?;
    Ok(everybody.iter().map(|id| register.known(id)).collect())
}

/// Which people are shown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// In a name or an id; empty: everybody.
    pub(crate) words: String,
    pub(crate) limit: usize,
    /// Only those behind this person in the order of the list.
    pub(crate) behind: Option<PersonId>,
}

/// A part of the list of everybody known.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) people: Vec<Known>,
    pub(crate) has_more: bool,
}

pub(crate) fn page(
    connection: &Connection,
    access: &Access,
    wanted: &Wanted,
    now: i64,
) -> rusqlite::Result<Page> {
    let register = Register::load(connection, access, now)?;
    let mut everybody = register.everybody(connection)?;
    if let Some(behind) = &wanted.behind {
        let at = everybody.iter().position(|id| id == behind);
        everybody.drain(..at.map_or(0, |at| at + 1));
    }
    let words = wanted.words.trim().to_lowercase();
    let mut found = everybody
        .iter()
        .filter(|id| words.is_empty() || register.has(id, &words));
    let people = found.by_ref().take(wanted.limit);
    Ok(Page {
        people: people.map(|id| register.known(id)).collect(),
        has_more: found.next().is_some(),
    })
}

/// A person as they are without the code that let them in.
pub(crate) fn without_code(
    connection: &Connection,
    access: &Access,
    id: &PersonId,
    now: i64,
) -> rusqlite::Result<Known> {
    let mut register = Register::load(connection, access, now)?;
    register.members.remove(id);
    Ok(register.known(id))
}

/// How sure a name must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looking {
    /// Names on a platform will do.
    ToShow,
    /// Names on a platform can be anybody's, so an id or a name that an owner has given is needed.
    ToChange,
}

/// The person that a word means: an id, or a name.
pub(crate) fn find(
    connection: &Connection,
    access: &Access,
    word: &str,
    looking: Looking,
    now: i64,
) -> rusqlite::Result<Result<Known, UserError>> {
    if let Ok(id) = word.parse::<PersonId>() {
        if id.is_nobody() || matches!(id, PersonId::Local(_)) {
            return Ok(Err(UserError::new(format!("{word} is nobody's id."))));
        }
        let register = Register::load(connection, access, now)?;
        return Ok(Ok(register.known(&id)));
    }
    let known = list(connection, access, now)?;
    let is_same = |name: &Option<String>| {
        let name = name.as_deref().map(str::to_lowercase);
        name.is_some_and(|name| name == word.to_lowercase())
    };
    if let Some(found) = known.iter().find(|known| is_same(&known.name)) {
        return Ok(Ok(found.clone()));
    }
    let called: Vec<&Known> = known
        .iter()
        .filter(|known| is_same(&known.called))
        .collect();
    Ok(match (called.as_slice(), looking) {
        ([only], Looking::ToShow) => Ok((*only).clone()),
        ([], _) => Err(nobody(word, &known)),
        (several, _) => Err(write_the_id(word, several)),
    })
}

fn nobody(word: &str, known: &[Known]) -> UserError {
    let names = known
        .iter()
        .flat_map(|known| known.name.iter().chain(&known.called))
        .map(String::as_str);
    UserError::new(match nearest(word, names) {
        Some(near) => format!("Nobody is called {word}. Did you mean {near}?"),
        None => format!("Nobody is called {word}. An id works too, such as telegram:12345678."),
    })
}

fn write_the_id(word: &str, several: &[&Known]) -> UserError {
    let ids: Vec<String> = several
        .iter()
        .map(|known| known.main().to_string())
        .collect();
    UserError::new(format!(
        "Names on a platform can be anybody's, so write the id of {word}: {}.",
        ids.join(" or ")
    ))
}
