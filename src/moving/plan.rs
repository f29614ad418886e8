//! The plan of an import: the contents of the source, compared with the home. Pure.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::found::{Found, FoundAgent, FoundBinding};
use super::report::{Item, Kind, State, System};
use super::source::slug;
use crate::config::edit::NewRule;
use crate::config::{GroupSessions, SkillNames};
use crate::domain::{
    AgentId, AgentUid, DiscordId, Origin as Visit, PersonId, Platform, SessionKey, TelegramUserId,
};
use crate::records::imports::{Carried, Row, Rows};
use crate::routing;

/// The parts of the home with a meaning for an import.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The things carried from this source before.
    pub(super) carried: Rows,
    /// The agents of the home.
    pub(super) agents: HashMap<AgentUid, AgentId>,
    /// Ids not free for a new agent.
    pub(super) taken: HashSet<AgentId>,
    /// Members, and people with a role in the config.
    pub(super) members: HashSet<PersonId>,
    /// Bindings in the config without filters.
    pub(super) bindings: HashMap<String, AgentId>,
    /// Platforms in use here.
    pub(super) platforms: HashSet<Platform>,
    /// Places with an agent set from chat.
    pub(super) pinned: HashSet<SessionKey>,
}

/// The agent here for an agent of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    New(AgentId),
    Existing {
        id: AgentId,
        uid: AgentUid,
    },
    /// Not to be carried, and why.
    None(String),
}

impl Target {
    pub(super) fn id(&self) -> Option<&AgentId> {
        match self {
            Target::New(id) | Target::Existing { id, .. } => Some(id),
            Target::None(_) => None,
        }
    }
}

/// An id for each agent of the source, and a remark where the id differs from the source's.
pub(super) fn targets(
    agents: &[FoundAgent],
    known: &Known,
    wanted: &[(String, String)],
) -> Vec<(Target, Option<String>)> {
    let mut taken = known.taken.clone();
    // Agents of an earlier import keep the ids they have here.
    let choose = |agent: &FoundAgent| {
        let carried = known
            .carried
            .get(&(Carried::Agent, agent.source_id.clone()));
        let (target, why) = match carried.and_then(|row| Some((row, row.agent?))) {
            Some((row, uid)) => (again(row, uid, known), None),
            None => for_new(agent, known, &taken, wanted),
        };
        taken.extend(target.id().cloned());
        (target, why)
    };
    agents.iter().map(choose).collect()
}

fn again(row: &Row, uid: AgentUid, known: &Known) -> Target {
    match known.agents.get(&uid) {
        Some(id) => Target::Existing {
            id: id.clone(),
            uid,
        },
        None => Target::None(format!(
            "it was imported as {} and removed here; `parlor agent restore {}` brings it back",
            row.target, row.target
        )),
    }
}

fn for_new(
    agent: &FoundAgent,
    known: &Known,
    taken: &HashSet<AgentId>,
    wanted: &[(String, String)],
) -> (Target, Option<String>) {
    let mut wished = wanted.iter().filter(|(old, _)| *old == agent.source_id);
    if let Some((_, new)) = wished.next() {
        return match AgentId::parse(new) {
            Ok(id) if !taken.contains(&id) => (Target::New(id), None),
            Ok(id) => (Target::None(format!("`{id}` is taken here")), None),
            Err(error) => (Target::None(error.to_string()), None),
        };
    }
    let is_main = matches!(agent.source_id.as_str(), "main" | "default");
    let main = known.agents.iter().find(|(_, id)| **id == AgentId::main());
    if let Some((uid, id)) = main.filter(|_| is_main) {
        if !has_limits(agent) {
            let (id, uid) = (id.clone(), *uid);
            return (Target::Existing { id, uid }, None);
        }
        let id = free(id.as_str(), taken);
        let why = "it has limits that `main` here does not have, so it is an agent of its own";
        return (Target::New(id), Some(why.to_owned()));
    }
    let base = slug(&agent.source_id).unwrap_or_else(|| "agent".to_owned());
    let id = free(&base, taken);
    let why = match AgentId::parse(&base) {
        _ if id.as_str() == agent.source_id => None,
        Ok(base) if taken.contains(&base) => Some(format!("`{base}` is taken here")),
        Err(error) => Some(error.to_string()),
        Ok(_) => Some(format!("an id cannot be `{}` here", agent.source_id)),
    };
    (Target::New(id), why)
}

/// An agent with limits may do less than others.
fn has_limits(agent: &FoundAgent) -> bool {
    let table = &agent.table;
    let has_list =
        |names: &SkillNames| !matches!(names, SkillNames::Lists(lists) if lists.allow.is_none());
    table.max_risk.is_some()
        || table.tools.allow.is_some()
        || table.tools.deny.is_some()
        || table.tools.ask.is_some()
        || table.memory.is_some()
        || table.skills.as_ref().is_some_and(has_list)
}

/// The id, with a number if the id is taken.
fn free(base: &str, taken: &HashSet<AgentId>) -> AgentId {
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    let mut ids = std::iter::once(base.to_owned())
        .chain(numbered)
        .filter_map(|id| AgentId::parse(&id).ok());
    ids.find(|id| !taken.contains(id))
        .expect("some number is free")
}

/// A file of the home in the place of a file of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ours {
    pub(super) digest: String,
    /// The file is unchanged since the program shipped the file.
    pub(super) is_shipped: bool,
}

/// The step for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileStep {
    Write,
    /// Ours stays; the other is put into the workspace.
    Beside,
    Same(&'static str),
}

pub(super) fn file_step(theirs: &str, ours: Option<&Ours>, carried: Option<&Row>) -> FileStep {
    let was_carried = carried.is_some_and(|row| row.stamp == theirs);
    match ours {
        None if was_carried => FileStep::Same("it was deleted here"),
        None => FileStep::Write,
        Some(ours) if ours.digest == theirs => FileStep::Same(""),
        Some(_) if was_carried => FileStep::Same("it was changed here since"),
        Some(ours) if ours.is_shipped => FileStep::Write,
        Some(ours) if carried.is_some_and(|row| row.stamp == ours.digest) => FileStep::Write,
        Some(_) => FileStep::Beside,
    }
}

/// The folder, in an agent's folder, for files without another place here.
pub(super) fn beside(system: System) -> PathBuf {
    Path::new("workspace")
        .join("imported")
        .join(system.as_str())
}

/// A rule to be written, or why not.
pub(super) struct PlannedRule {
    pub(super) item: Item,
    pub(super) rule: Option<NewRule>,
}

/// The rules for carried agents. The first of several rules for the same places counts.
pub(super) fn rules(
    found: &Found,
    ids: &HashMap<String, AgentId>,
    known: &Known,
) -> Vec<PlannedRule> {
    let mut seen: HashSet<(String, Vec<u64>)> = HashSet::new();
    let plan = |binding: &FoundBinding| {
        let item = Item::new(Kind::Binding, &binding.source, State::New);
        let Some(agent) = ids.get(&binding.agent) else {
            let why = format!("no agent `{}` is carried", binding.agent);
            return left(item, State::Skipped, &why);
        };
        let item = item.to(format!("{} → {agent}", binding.pattern));
        if !seen.insert((binding.pattern.clone(), binding.roles.clone())) {
            return left(item, State::Skipped, "a rule above is for the same places");
        }
        if binding.users.as_ref().is_some_and(Vec::is_empty) {
            let why = "nobody whose id is known may write there, so the place stays closed";
            return left(item, State::Skipped, why);
        }
        let id = rule_id(binding);
        let was_carried = known.carried.contains_key(&(Carried::Rule, id));
        match known.bindings.get(&binding.pattern) {
            _ if was_carried => left(item, State::Same, ""),
            Some(ours) if ours == agent => left(item, State::Same, ""),
            Some(ours) if binding.roles.is_empty() => {
                let why = format!("config.toml gives this place to {ours}");
                left(item, State::Conflict, &why)
            }
            None if is_wide(binding, known) => {
                let why = "this platform is in use here, and the rule would change who answers everywhere; write it yourself if you want it";
                left(item, State::Manual, why)
            }
            _ => PlannedRule {
                item,
                rule: Some(NewRule {
                    pattern: binding.pattern.clone(),
                    agent: agent.clone(),
                    require_mention: binding.require_mention,
                    users: binding.users.clone(),
                    roles: binding.roles.clone(),
                }),
            },
        }
    };
    found.bindings.iter().map(plan).collect()
}

/// Whether the rule is for all of a platform in use here.
fn is_wide(binding: &FoundBinding, known: &Known) -> bool {
    let mut fields = binding.pattern.split(':');
    let platform = fields.next().and_then(|name| name.parse().ok());
    let is_all = matches!((fields.next(), fields.next()), (None | Some("dm"), None));
    is_all && platform.is_some_and(|platform: Platform| known.platforms.contains(&platform))
}

pub(super) fn rule_id(binding: &FoundBinding) -> String {
    let roles: Vec<String> = binding.roles.iter().map(ToString::to_string).collect();
    format!("{} {} {}", binding.pattern, roles.join(","), binding.agent)
}

fn left(item: Item, state: State, why: &str) -> PlannedRule {
    let item = Item { state, ..item };
    let item = match why {
        "" => item,
        why => item.because(why),
    };
    PlannedRule { item, rule: None }
}

/// Agents that a rule gives to more than single places. A rule for a place opens its agent there by
/// itself; these agents are open to all members, as in the source.
pub(super) fn reached_by_members(found: &Found) -> HashSet<String> {
    let wide = found.bindings.iter();
    let wide = wide.filter(|binding| binding.pattern.split(':').count() < 3);
    wide.map(|binding| binding.agent.clone()).collect()
}

/// Where a conversation goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Goes {
    /// Into its place, as a conversation of its own.
    Place(SessionKey),
    /// Behind the messages of an earlier import.
    More {
        place: SessionKey,
        from: usize,
    },
    Archive(&'static str),
    /// Everything was carried before.
    Nowhere(&'static str),
}

/// The agents of places, once the rules are in the config.
pub(super) struct Routes<'a> {
    pub(super) table: &'a routing::Table,
    pub(super) group_sessions: GroupSessions,
    pub(super) pinned: &'a HashSet<SessionKey>,
    /// People named by rules, in place of all people of a place.
    pub(super) people: &'a [PersonId],
}

impl Routes<'_> {
    /// The target of an agent's conversation that is not carried yet.
    pub(super) fn goes(&self, place: &SessionKey, agent: &AgentId) -> Goes {
        let is_whole_group = matches!(
            place,
            SessionKey::TelegramGroup { member: None, .. }
                | SessionKey::DiscordChannel { member: None, .. }
        );
        let is_of_member = matches!(
            place,
            SessionKey::TelegramGroup {
                member: Some(_),
                ..
            } | SessionKey::DiscordChannel {
                member: Some(_),
                ..
            }
        );
        if is_whole_group && self.group_sessions == GroupSessions::PerUser {
            return Goes::Archive("conversations in groups are one for each person here");
        }
        if is_of_member && self.group_sessions == GroupSessions::Shared {
            return Goes::Archive("conversations in groups are shared here");
        }
        if self.pinned.contains(place) {
            return Goes::Archive("the place was given to an agent here, with /agent");
        }
        let person = person_of(place);
        let people = person.iter().chain(self.people);
        let mut agents = people.map(|person| {
            let visit = Visit::new(place.clone(), person.clone());
            routing::route(self.table, None, &visit).agent
        });
        match agents.any(|holder| holder == *agent) {
            true => Goes::Place(place.clone()),
            false => Goes::Archive("another agent has the place here"),
        }
    }
}

/// The person in the key, else a person without an id.
fn person_of(place: &SessionKey) -> Option<PersonId> {
    place.only_person().or_else(|| match place.platform()? {
        Platform::Telegram => Some(PersonId::Telegram(TelegramUserId(0))),
        Platform::Discord => Some(PersonId::Discord(DiscordId(0))),
        Platform::Local | Platform::Web => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Names, Risk};

    fn id(text: &str) -> AgentId {
        AgentId::parse(text).unwrap()
    }

    fn uid() -> AgentUid {
        AgentUid(uuid::Uuid::now_v7())
    }

    fn home() -> Known {
        let taken = ["main", "rose"].map(id).into();
        Known {
            agents: [(uid(), id("main")), (uid(), id("rose"))].into(),
            taken,
            ..Known::default()
        }
    }

    fn chosen(ids: &[&str]) -> Vec<String> {
        let agents: Vec<FoundAgent> = ids.iter().map(|id| FoundAgent::new(*id)).collect();
        let targets = targets(&agents, &home(), &[("Kept".into(), "other".into())]);
        let ids = targets.into_iter().map(|(target, why)| {
            let word = match &target {
                Target::New(id) => format!("new {id}"),
                Target::Existing { id, .. } => format!("into {id}"),
                Target::None(why) => format!("none: {why}"),
            };
            why.map_or(word.clone(), |why| format!("{word} ({why})"))
        });
        ids.collect()
    }

    #[test]
    fn every_agent_gets_an_id_of_its_own() {
        insta::assert_debug_snapshot!(chosen(&["main", "rose", "Night_Desk", "night desk", "system", "Kept", "ß", "dot"]), @r#"
        [
            "into main",
            "new rose-2 (`rose` is taken here)",
            "new night-desk (an id cannot be `Night_Desk` here)",
            "new night-desk-2 (`night-desk` is taken here)",
            "new system-2 (`system` is a reserved word and cannot be an agent id)",
            "new other",
            "new agent (an id cannot be `ß` here)",
            "new dot",
        ]
        "#);
    }

    #[test]
    fn an_agent_with_limits_is_not_mixed_into_one_without() {
        let mut main = FoundAgent::new("main");
        main.table.max_risk = Some(Risk::Look);
        let (target, _) = targets(&[main], &home(), &[]).remove(0);
        assert_eq!(target, Target::New(id("main-2")));
        let mut main = FoundAgent::new("default");
        main.table.skills = Some(SkillNames::Allow(Names::default()));
        let (target, _) = targets(&[main], &home(), &[]).remove(0);
        assert_eq!(target, Target::New(id("main-2")));
    }

    #[test]
    fn a_file_of_the_home_is_never_lost() {
        let ours = |digest: &str, is_shipped| Ours {
            digest: digest.into(),
            is_shipped,
        };
        let row = |stamp: &str| Row {
            agent: None,
            target: String::new(),
            stamp: stamp.into(),
        };
        let check = |ours: Option<Ours>, carried: Option<Row>, expected: FileStep| {
            let step = file_step("new", ours.as_ref(), carried.as_ref());
            assert_eq!(step, expected, "{ours:?} {carried:?}");
        };
        check(None, None, FileStep::Write);
        check(
            None,
            Some(row("new")),
            FileStep::Same("it was deleted here"),
        );
        check(None, Some(row("old")), FileStep::Write);
        check(Some(ours("new", false)), None, FileStep::Same(""));
        check(Some(ours("mine", false)), None, FileStep::Beside);
        check(Some(ours("mine", true)), None, FileStep::Write);
        check(Some(ours("old", false)), Some(row("old")), FileStep::Write);
        check(
            Some(ours("mine", false)),
            Some(row("old")),
            FileStep::Beside,
        );
        let changed = FileStep::Same("it was changed here since");
        check(Some(ours("mine", false)), Some(row("new")), changed);
    }
}
