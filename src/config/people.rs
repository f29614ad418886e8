//! Reads `[people.<name>]` (a person with ids on several platforms and a role) and an agent's
//! `who`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::declared::DeclaredAgents;
use super::reader::{Problems, Section, Value, suggest, wrong_type};
use super::{Fault, Problem, Spanned, agents, items, schema};
use crate::domain::{AgentId, PersonId, Role, Zone};

/// A `[people.<name>]` table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    pub name: String,
    /// Never empty. The first stands for the person in counts.
    pub ids: Vec<PersonId>,
    /// The role with all agents.
    pub role: Option<Role>,
    /// The role with a single agent, in place of `role`.
    pub agents: BTreeMap<AgentId, Role>,
    /// The zone for times shown to the person.
    pub zone: Option<Zone>,
}

/// Lines of config.toml with facts about a person, counted from 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PersonLines {
    /// The name of the section.
    pub section: usize,
    pub ids: Option<usize>,
    pub role: Option<usize>,
    /// The value of `role` in the text.
    pub role_span: Option<Range<usize>>,
    pub agents: BTreeMap<AgentId, usize>,
}

/// Ids and roles of a person that an owner has granted while the gateway runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantedPerson {
    pub name: Option<String>,
    /// Never empty; the first stands for the person.
    pub ids: Vec<PersonId>,
    pub role: Option<Role>,
    pub agents: BTreeMap<AgentId, Role>,
}

/// The people named by the file, and people with grants made while the gateway runs. The file's
/// word counts first.
#[derive(Debug, Clone, Default)]
pub struct People {
    /// The people of the file, in its order.
    written: Vec<Arc<Person>>,
    lines: BTreeMap<String, PersonLines>,
    /// The people of the file first, in its order.
    all: Vec<Arc<Person>>,
    by_id: BTreeMap<PersonId, Arc<Person>>,
    /// The number of the included grants.
    revision: i64,
}

impl People {
    /// All people, the people of the file first and in its order.
    pub fn all(&self) -> &[Arc<Person>] {
        &self.all
    }

    /// The file's own table of the person with this id, without grants.
    pub fn written(&self, id: &PersonId) -> Option<&Arc<Person>> {
        let has_id = |person: &&Arc<Person>| person.ids.contains(id);
        self.written.iter().find(has_id)
    }

    /// Where the file names a person.
    pub fn lines(&self, name: &str) -> Option<&PersonLines> {
        self.lines.get(name)
    }

    pub fn revision(&self) -> i64 {
        self.revision
    }

    /// The file's people with these grants, in place of earlier grants.
    ///
    /// An id in the file stays with its table: a grant adds to the table with its main id, and
    /// takes no id from another table.
    #[must_use]
    pub fn granting(&self, granted: &[GrantedPerson], revision: i64) -> People {
        let mut people: Vec<Person> = self
            .written
            .iter()
            .map(|person| (**person).clone())
            .collect();
        for known in granted {
            let Some(main) = known.ids.first() else {
                continue;
            };
            let is_free = |id: &&PersonId| self.written(id).is_none();
            let free = known.ids.iter().filter(is_free).cloned();
            match people.iter_mut().find(|person| person.ids.contains(main)) {
                Some(person) => person.grant(known, free),
                None => people.push(Person {
                    name: known.name.clone().unwrap_or_else(|| main.to_string()),
                    ids: free.collect(),
                    role: known.role,
                    agents: known.agents.clone(),
                    zone: None,
                }),
            }
        }
        let all: People = people.into_iter().collect();
        People {
            written: self.written.clone(),
            lines: self.lines.clone(),
            revision,
            ..all
        }
    }

    pub fn of(&self, id: &PersonId) -> Option<&Arc<Person>> {
        self.by_id.get(id)
    }

    /// All ids of the person with this id.
    pub fn ids_of<'a>(&'a self, id: &'a PersonId) -> &'a [PersonId] {
        self.of(id)
            .map_or(std::slice::from_ref(id), |person| &person.ids)
    }

    /// The person's id in counts.
    pub fn main_id<'a>(&'a self, id: &'a PersonId) -> &'a PersonId {
        self.ids_of(id).first().unwrap_or(id)
    }

    /// Whether two ids belong to the same person.
    pub fn is_same(&self, one: &PersonId, other: &PersonId) -> bool {
        self.main_id(one) == self.main_id(other)
    }

    pub fn named(&self, name: &str) -> Option<&Arc<Person>> {
        self.all.iter().find(|person| person.name == name)
    }
}

impl FromIterator<Person> for People {
    fn from_iter<T: IntoIterator<Item = Person>>(people: T) -> Self {
        let mut known = People::default();
        for person in people {
            let person = Arc::new(person);
            for id in &person.ids {
                known.by_id.insert(id.clone(), person.clone());
            }
            known.all.push(person);
        }
        known.written = known.all.clone();
        known
    }
}

impl Person {
    fn grant(&mut self, granted: &GrantedPerson, free: impl Iterator<Item = PersonId>) {
        for id in free {
            if !self.ids.contains(&id) {
                self.ids.push(id);
            }
        }
        self.role = self.role.or(granted.role);
        for (agent, role) in &granted.agents {
            self.agents.entry(agent.clone()).or_insert(*role);
        }
    }
}

/// The line of a place in the file, counted from 1.
pub(super) fn line(source: &str, at: usize) -> usize {
    let before = source.bytes().take(at);
    before.filter(|byte| *byte == b'\n').count() + 1
}

pub(super) fn read(top: &Section<'_>, declared: &DeclaredAgents, source: &str) -> People {
    let mut taken: BTreeMap<PersonId, String> = BTreeMap::new();
    let (mut people, mut lines) = (Vec::new(), BTreeMap::new());
    for named in top.named("people") {
        let Some(section) = named.section(&schema::PERSON) else {
            continue;
        };
        let name = named.name.value;
        let ids = section.list("ids", spanned_person).unwrap_or(Spanned {
            value: Vec::new(),
            span: named.name.span.clone(),
        });
        let written = section
            .value("ids")
            .and_then(|ids| ids.get_ref().as_array());
        if written.is_some_and(|ids| ids.is_empty()) {
            section.problems.note(no_id(&ids));
        }
        for id in &ids.value {
            if let Some(other) = taken.insert(id.value.clone(), name.clone()) {
                section.problems.note(taken_id(id, &other));
            }
        }
        let of_key = |key| {
            let value = section.value(key)?;
            Some(line(source, value.span().start))
        };
        let agents = with_agents(&section, declared);
        let on_lines = PersonLines {
            section: line(source, named.name.span.start),
            ids: of_key("ids"),
            role: of_key("role"),
            role_span: section.value("role").map(Value::span),
            agents: agent_lines(&section, source),
        };
        lines.insert(name.clone(), on_lines);
        people.push(Person {
            ids: ids.value.into_iter().map(|id| id.value).collect(),
            role: section.choice("role"),
            zone: agents::zone(&section),
            agents,
            name,
        });
    }
    People {
        lines,
        ..people.into_iter().collect()
    }
}

/// Warns of roles that another rule overrides: whoever is in `owners`, or sits at the terminal, is an
/// owner.
pub(super) fn note_idle_roles(people: &People, owners: &[PersonId], problems: &Problems) {
    for person in &people.written {
        let (Some(role), Some(span)) = (
            person.role.filter(|role| *role != Role::Owner),
            people
                .lines(&person.name)
                .and_then(|lines| lines.role_span.clone()),
        ) else {
            continue;
        };
        let is_owner = |id: &&PersonId| owners.contains(id) || matches!(id, PersonId::Local(_));
        let Some(id) = person.ids.iter().find(is_owner) else {
            continue;
        };
        let (why, help) = match id {
            PersonId::Local(_) => (
                format!("{id} sits at the terminal of this machine, and is an owner there"),
                format!("take `role` out, or `{id}` out of `ids`"),
            ),
            _ => (
                format!("{id} is in `owners` of [access]"),
                format!("take `role` out, or `{id}` out of `owners`"),
            ),
        };
        let text = format!("`role = \"{role}\"` of {} has no effect", person.name);
        let problem = Problem::new(span, text).label(why).help(help);
        problems.warn(problem.fault(Fault::Idle));
    }
}

fn agent_lines(section: &Section<'_>, source: &str) -> BTreeMap<AgentId, usize> {
    let table = section
        .value("agents")
        .and_then(|value| value.get_ref().as_table());
    let entries = table.into_iter().flat_map(|table| table.iter());
    let on_line = entries.filter_map(|(key, value)| {
        let agent = AgentId::parse(key.get_ref()).ok()?;
        Some((agent, line(source, value.span().start)))
    });
    on_line.collect()
}

/// `agents = { coding = "member" }`.
fn with_agents(section: &Section<'_>, declared: &DeclaredAgents) -> BTreeMap<AgentId, Role> {
    let mut roles = BTreeMap::new();
    let Some(value) = section.value("agents") else {
        return roles;
    };
    let Some(table) = value.get_ref().as_table() else {
        section.refuse_type("agents", "a table");
        return roles;
    };
    for (key, value) in table.iter() {
        let name = Spanned {
            value: key.get_ref().to_string(),
            span: key.span(),
        };
        let agent = declared.find(&name, section.problems);
        match role(value) {
            Ok(role) => {
                roles.extend(agent.map(|agent| (agent.id.clone(), role)));
            }
            Err(problem) => section.problems.note(problem),
        }
    }
    roles
}

fn role(value: &Value<'_>) -> Result<Role, Problem> {
    let Some(text) = value.get_ref().as_str() else {
        return Err(wrong_type("a role", value, "text in quotes"));
    };
    text.parse().map_err(|()| {
        Problem::new(value.span(), format!("`{text}` is not a role"))
            .label("not one of the roles")
            .help(suggest(text, &Role::ALL.map(Role::as_str)))
            .fault(Fault::WrongWord)
    })
}

fn spanned_person(value: &Value<'_>) -> Result<Spanned<PersonId>, Problem> {
    items::person(value).map(|id| Spanned {
        value: id,
        span: value.span(),
    })
}

fn no_id(ids: &Spanned<Vec<Spanned<PersonId>>>) -> Problem {
    Problem::new(ids.span.clone(), "this person has no id")
        .label("nobody can be recognised by an empty list")
        .help("write at least one id, such as `ids = [\"telegram:12345678\"]`")
}

fn taken_id(id: &Spanned<PersonId>, other: &str) -> Problem {
    Problem::new(
        id.span.clone(),
        format!("`{}` belongs to two people", id.value),
    )
    .label(format!("[people.{other}] has this id already"))
    .help("delete it in one of the two")
}

/// The people an agent is open to: `who` of its table.
///
/// Besides, a binding opens its agent to all people who may speak in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// Whether the file has the key. Without the key, an owner's `/agent` opens the agent as a
    /// binding does.
    pub is_written: bool,
    /// People of this role or a higher role.
    pub role: Option<Role>,
    pub people: Vec<PersonId>,
    /// The agent is open to all people who may speak in these places. `routing` reads these texts.
    pub places: Vec<Spanned<String>>,
}

impl Default for Who {
    fn default() -> Self {
        Who {
            is_written: false,
            role: Some(Role::Member),
            people: Vec::new(),
            places: Vec::new(),
        }
    }
}

/// The words of an agent's `who`, before all people are known.
#[derive(Debug, Clone, Default)]
pub(super) struct WrittenWho(Option<Vec<Spanned<String>>>);

pub(super) fn written_who(section: &Section<'_>) -> WrittenWho {
    let Some(value) = section.value("who") else {
        return WrittenWho(None);
    };
    if let Some(word) = value.get_ref().as_str() {
        return WrittenWho(Some(vec![Spanned {
            value: word.to_owned(),
            span: value.span(),
        }]));
    }
    if !value.get_ref().is_array() {
        section.refuse_type("who", "a role, or a list of roles, people and places");
        return WrittenWho(None);
    }
    let words = section.list("who", |value| items::name(value, "each of `who`"));
    WrittenWho(words.map(|words| words.value))
}

impl WrittenWho {
    pub(super) fn read(self, people: &People, top: &Section<'_>) -> Who {
        let Some(words) = self.0 else {
            return Who::default();
        };
        let mut who = Who {
            is_written: true,
            role: None,
            people: Vec::new(),
            places: Vec::new(),
        };
        for word in words {
            who.add(word, people, top);
        }
        who
    }
}

impl Who {
    fn add(&mut self, word: Spanned<String>, people: &People, top: &Section<'_>) {
        if let Ok(role) = word.value.parse::<Role>() {
            self.role = Some(self.role.map_or(role, |known| known.min(role)));
        } else if let Some(person) = people.named(&word.value) {
            self.people.extend(person.ids.iter().cloned());
        } else if let Ok(id) = word.value.parse::<PersonId>() {
            self.people.extend(people.ids_of(&id).iter().cloned());
        } else if word.value.contains(':') {
            self.places.push(word);
        } else {
            top.problems.note(unknown_who(&word, people));
        }
    }
}

fn unknown_who(word: &Spanned<String>, people: &People) -> Problem {
    let known: Vec<&str> = Role::ALL
        .iter()
        .map(|role| role.as_str())
        .chain(people.all.iter().map(|person| person.name.as_str()))
        .collect();
    Problem::new(
        word.span.clone(),
        format!("`{}` is not a role, a person or a place", word.value),
    )
    .label("not a value for `who`")
    .help(format!(
        "{}\na person can also be written as `telegram:12345678`, and a place as /whoami prints it",
        suggest(&word.value, &known)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> PersonId {
        text.parse().unwrap()
    }

    fn granted(ids: &[&str], role: Option<Role>, agents: &[(&str, Role)]) -> GrantedPerson {
        GrantedPerson {
            name: None,
            ids: ids.iter().map(|text| id(text)).collect(),
            role,
            agents: agents
                .iter()
                .map(|(agent, role)| (AgentId::parse(agent).unwrap(), *role))
                .collect(),
        }
    }

    /// Alice has a role in the file, Bob only ids.
    fn file() -> People {
        let person = |name: &str, ids: &[&str], role| Person {
            name: name.into(),
            ids: ids.iter().map(|text| id(text)).collect(),
            role,
            agents: [(AgentId::parse("ops").unwrap(), Role::Guest)].into(),
            zone: None,
        };
        [
            person("alice", &["telegram:1"], Some(Role::Member)),
            person("bob", &["telegram:2"], None),
        ]
        .into_iter()
        .collect()
    }

    #[test]
    fn a_grant_adds_to_the_file_and_changes_nothing_in_it() {
        let grants = [
            granted(
                &["telegram:1", "discord:1", "telegram:2"],
                Some(Role::Owner),
                &[("ops", Role::Owner), ("dot", Role::Admin)],
            ),
            granted(&["telegram:2"], Some(Role::Admin), &[]),
            granted(&["discord:9", "telegram:9"], Some(Role::Member), &[]),
        ];
        let people = file().granting(&grants, 7);
        let alice = people.of(&id("discord:1")).unwrap();
        assert_eq!(
            (alice.name.as_str(), alice.role),
            ("alice", Some(Role::Member))
        );
        let with = |agent: &str| alice.agents.get(&AgentId::parse(agent).unwrap()).copied();
        assert_eq!(
            (with("ops"), with("dot")),
            (Some(Role::Guest), Some(Role::Admin))
        );
        assert!(
            !people.is_same(&id("telegram:1"), &id("telegram:2")),
            "Bob stays himself"
        );
        assert_eq!(
            people.of(&id("telegram:2")).unwrap().role,
            Some(Role::Admin)
        );
        assert_eq!(people.main_id(&id("telegram:9")), &id("discord:9"));
        assert_eq!((people.revision(), people.all().len()), (7, 3));
        // Grants taken back leave the file as it was.
        let people = people.granting(&[], 8);
        assert_eq!(people.all().len(), 2);
        assert_eq!(people.of(&id("telegram:2")).unwrap().role, None);
        assert!(people.of(&id("discord:1")).is_none());
    }
}
