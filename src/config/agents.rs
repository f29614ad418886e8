//! Reads `[agents.<id>]`, and refuses two agents with the same name.

use super::declared::DeclaredAgents;
use super::memory::{self, Reading};
use super::people::{self, People, WrittenWho};
use super::providers::ProviderNames;
use super::reader::{Nameless, Problems, Section, wrong_type};
use super::tools::{self, Names};
use super::twice::usable_name;
use super::{
    AgentLimits, AgentMemory, AgentSpec, AgentTools, Fault, JobSpec, ModelRef, ModelSettings,
    Problem, Spanned, Who,
};
use super::{jobs, limits, models, personality, providers, schema};
use crate::domain::{AgentId, InvalidAgentId, Zone};

const MAX_NAME_CHARS: usize = 64;
/// An emoji can be many characters: people, skin colours and joiners.
const MAX_EMOJI_CHARS: usize = 16;
/// The limit of `creature` and `vibe`, because both stand in a single sentence of the prompt.
const MAX_TRAIT_CHARS: usize = 200;

/// The people of each agent, as written. They are looked up after the agents, because roles of
/// people name agents.
pub(super) struct WrittenDoors(Vec<(AgentId, WrittenWho)>);

/// The fields of an agent's table.
#[derive(Default)]
struct Fields {
    name: Option<Spanned<String>>,
    emoji: Option<String>,
    creature: Option<String>,
    vibe: Option<String>,
    model: Option<ModelRef>,
    limits: AgentLimits,
    fallback: Vec<ModelRef>,
    settings: ModelSettings,
    zone: Zone,
    skills: SkillLists,
    personality: Option<Spanned<String>>,
    system_prompt: Option<String>,
    memory: AgentMemory,
    reads: Vec<Spanned<String>>,
    tools: AgentTools,
    access: Names,
    who: WrittenWho,
    jobs: Vec<JobSpec>,
}

/// An id with its name in the file.
type Naming = (AgentId, Spanned<String>);

pub(super) fn read(
    top: &Section<'_>,
    provider_names: &ProviderNames,
    profile_names: &[String],
) -> (DeclaredAgents, WrittenDoors) {
    let mut declared = DeclaredAgents {
        refused: top.names_below("agent"),
        is_unread: is_unread(top),
        ..DeclaredAgents::default()
    };
    let mut doors = WrittenDoors(Vec::new());
    let mut namings: Vec<Naming> = Vec::new();
    let mut readings: Vec<Reading> = Vec::new();
    let mut accesses: Vec<(AgentId, Names)> = Vec::new();
    let nameless = top.nameless("agents", &schema::AGENT);
    if let Some(nameless) = &nameless {
        top.problems.note(without_id(nameless));
    }
    let tables = top.named("agents").into_iter();
    for named in tables.filter(|named| nameless.is_none() || named.is_table()) {
        let fields = named
            .section(&schema::AGENT)
            .map(|section| fields(&section, provider_names, profile_names))
            .unwrap_or_default();
        match AgentId::parse(&named.name.value) {
            Ok(id) => {
                if ["defaults", "list"].contains(&id.as_str()) {
                    top.problems.warn(no_defaults(&named.name));
                }
                readings.push(Reading {
                    by: id.clone(),
                    of: fields.reads.clone(),
                });
                namings.extend(fields.name.clone().map(|name| (id.clone(), name)));
                accesses.push((id.clone(), fields.access.clone()));
                doors.0.push((id.clone(), fields.who.clone()));
                declared.agents.push(spec(id, fields, named.name));
            }
            Err(error) => {
                top.problems.note(bad_id(&named.name, &error));
                declared.refused.push(named.name.value);
            }
        }
    }
    declared.add_main();
    declared.connect(&accesses, top);
    declared.note_shared_names(&namings, top.problems);
    memory::join(&mut declared, &readings, top.problems);
    (declared, doors)
}

impl WrittenDoors {
    /// Gives each agent the people of its `who`.
    pub(super) fn open(self, declared: &mut DeclaredAgents, people: &People, top: &Section<'_>) {
        for (id, written) in self.0 {
            let who = written.read(people, top);
            if let Some(agent) = declared.agents.iter_mut().find(|agent| agent.id == id) {
                agent.who = who;
            }
        }
    }
}

impl DeclaredAgents {
    /// Gives each agent the workspaces of others that its table asks for.
    fn connect(&mut self, accesses: &[(AgentId, Names)], top: &Section<'_>) {
        for (id, names) in accesses {
            let siblings = names.find(self, Some(id), top);
            if let Some(agent) = self.agents.iter_mut().find(|agent| agent.id == *id) {
                agent.tools.access = siblings;
            }
        }
    }

    fn add_main(&mut self) {
        if !self.agents.iter().any(|agent| agent.id == AgentId::main()) {
            self.agents.insert(0, AgentSpec::unnamed(AgentId::main()));
        }
    }

    fn note_shared_names(&self, namings: &[Naming], problems: &Problems) {
        for (index, (id, name)) in namings.iter().enumerate() {
            let id_of_another = self
                .agents
                .iter()
                .map(|agent| &agent.id)
                .find(|other| *other != id && is_same(other.as_str(), &name.value));
            let earlier = namings[..index]
                .iter()
                .find(|(_, other)| is_same(&other.value, &name.value))
                .map(|(other, _)| other);
            if let Some(other) = id_of_another.or(earlier) {
                problems.note(shared_name(name, other));
            }
        }
    }
}

fn spec(id: AgentId, fields: Fields, table: Spanned<String>) -> AgentSpec {
    AgentSpec {
        id,
        name: fields.name.map(|name| name.value),
        emoji: fields.emoji,
        creature: fields.creature,
        vibe: fields.vibe,
        who: Who::default(),
        model: fields.model,
        limits: fields.limits,
        fallback: fields.fallback,
        settings: fields.settings,
        zone: fields.zone,
        skills: fields.skills.allow,
        denied_skills: fields.skills.deny,
        personality: fields.personality,
        system_prompt: fields.system_prompt,
        memory: fields.memory,
        tools: fields.tools,
        jobs: fields.jobs,
        span: Some(table.span),
    }
}

fn fields(
    section: &Section<'_>,
    provider_names: &ProviderNames,
    profile_names: &[String],
) -> Fields {
    let (tools, access) = tools::of_agent(section, profile_names);
    let zone = zone(section).unwrap_or_default();
    Fields {
        name: line(section, "name", MAX_NAME_CHARS),
        emoji: line(section, "emoji", MAX_EMOJI_CHARS).map(|emoji| emoji.value),
        creature: line(section, "creature", MAX_TRAIT_CHARS).map(|text| text.value),
        vibe: line(section, "vibe", MAX_TRAIT_CHARS).map(|text| text.value),
        model: providers::model(section, "model", provider_names),
        limits: limits::agent(section),
        fallback: models::fallback(section, provider_names),
        settings: models::settings(section),
        skills: skills(section),
        personality: personality::personality(section),
        system_prompt: personality::system_prompt(section),
        memory: memory::of_agent(section),
        reads: memory::reads(section),
        tools,
        access,
        who: people::written_who(section),
        jobs: jobs::read(section, &zone),
        zone,
    }
}

pub(super) fn zone(section: &Section<'_>) -> Option<Zone> {
    let name = section.text("time_zone")?;
    let zone = Zone::named(name.value.trim());
    if zone.is_none() {
        let advice = match Zone::meant(&name.value) {
            Some(zone) => format!("did you mean `{zone}`?"),
            None => "write a continent and a city, such as `Europe/Vienna`, or `UTC`".to_owned(),
        };
        let problem = Problem::new(
            name.span,
            format!("no time zone is called `{}`", name.value),
        )
        .label("not in the list of time zones")
        .help(advice);
        section.problems.note(problem);
    }
    zone
}

/// `skills` of an agent. `["invoices"]` is short for `{ allow = ["invoices"] }`.
#[derive(Default)]
struct SkillLists {
    allow: Option<Vec<Spanned<String>>>,
    deny: Vec<String>,
}

/// A broken list counts as absent, hence as the whole pool, but a config with a problem is never
/// used.
fn skills(section: &Section<'_>) -> SkillLists {
    let is_table = section
        .value("skills")
        .is_some_and(|value| value.get_ref().as_table().is_some());
    if !is_table {
        return SkillLists {
            allow: skill_names(section, "skills"),
            deny: Vec::new(),
        };
    }
    let lists = section.section("skills", &schema::SKILL_LISTS);
    lists.map_or_else(SkillLists::default, |lists| {
        let denied = skill_names(&lists, "deny").unwrap_or_default();
        SkillLists {
            allow: skill_names(&lists, "allow"),
            deny: denied.into_iter().map(|name| name.value).collect(),
        }
    })
}

/// Each name once.
fn skill_names(section: &Section<'_>, key: &str) -> Option<Vec<Spanned<String>>> {
    let list = section.list(key, |value| match value.get_ref().as_str() {
        Some(name) => Ok(Spanned {
            value: name.to_owned(),
            span: value.span(),
        }),
        None => Err(wrong_type("a skill's name", value, "text in quotes")
            .help("write it like `skills = [\"invoices\"]`")),
    })?;
    for (index, entry) in list.value.iter().enumerate() {
        if list.value[..index]
            .iter()
            .any(|earlier| earlier.value == entry.value)
        {
            let problem = Problem::new(
                entry.span.clone(),
                format!("`{}` is in the list twice", entry.value),
            );
            section
                .problems
                .note(problem.label("the second one").help("delete one of them"));
        }
    }
    Some(list.value)
}

/// A short text without line breaks.
fn line(section: &Section<'_>, key: &str, max_chars: usize) -> Option<Spanned<String>> {
    let text = section.text(key)?;
    let trimmed = text.value.trim();
    let fits = !trimmed.is_empty()
        && trimmed.chars().count() <= max_chars
        && !trimmed.contains(char::is_control);
    if !fits {
        let problem = Problem::new(text.span, format!("`{key}` is empty or too long"))
            .label(format!("expected 1 to {max_chars} characters in one line"));
        section
            .problems
            .note(problem.help(format!("write it like `{}`", section.usage(key))));
        return None;
    }
    Some(Spanned {
        value: trimmed.to_owned(),
        span: text.span,
    })
}

fn is_same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

fn shared_name(name: &Spanned<String>, other: &AgentId) -> Problem {
    Problem::new(
        name.span.clone(),
        format!("two agents answer to `{}`", name.value),
    )
    .label(format!("agent `{other}` has this name already"))
    .help("give each agent its own name; an agent also answers to its id")
}

/// `[agents.defaults]`, as another program has it.
fn no_defaults(name: &Spanned<String>) -> Problem {
    let problem = Problem::new(
        name.span.clone(),
        format!("[agents.{}] is an agent like any other", name.value),
    );
    problem
        .label("no other agent takes anything from it")
        .help("write each agent as `[agents.<id>]`; `default_model` and the sections at the top of the file count for all of them")
        .fault(Fault::Idle)
}

fn bad_id(id: &Spanned<String>, error: &InvalidAgentId) -> Problem {
    let problem = Problem::new(id.span.clone(), error.to_string()).label("not an agent id");
    match usable_name(&id.value) {
        Some(usable) => problem.help(format!(
            "write [agents.{usable}] and keep the rest for `name`"
        )),
        None => problem.help("choose another id"),
    }
}

/// `[agents]` with the keys of a single agent.
fn without_id(nameless: &Nameless<'_>) -> Problem {
    let id = nameless.text("name").and_then(usable_name);
    let header = id.map_or_else(|| "[agents.rose]".to_owned(), |id| format!("[agents.{id}]"));
    Problem::new(
        nameless.span.clone(),
        "an agent needs an id in its section's name",
    )
    .label("a key of an agent, but of which?")
    .help(format!("write `{header}` above it in place of `[agents]`"))
}

/// Whether agents are written, but not so that their ids can be told.
fn is_unread(top: &Section<'_>) -> bool {
    let is_table = top
        .value("agents")
        .is_none_or(|agents| agents.get_ref().is_table());
    !is_table || top.nameless("agents", &schema::AGENT).is_some()
}
