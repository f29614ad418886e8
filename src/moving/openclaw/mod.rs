//! OpenClaw: `openclaw.json`, workspaces, and an SQLite file for each agent (older: JSONL files).

pub(in crate::moving) mod settings;

mod places;
mod sessions;

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::Wish;
use super::found::{Found, FoundAgent};
use super::mapping::{self, Token, ToolLists, short, words};
use super::plan;
use super::report::{Kind, System};
use super::some;
use super::source::{Source, slug};
use super::tree::{Tree, What};
use crate::config::{Names, Risk, SkillNames};

/// Files of a workspace with the same meaning here.
pub(super) const IDENTITY: [&str; 7] = [
    "IDENTITY.md",
    "SOUL.md",
    "AGENTS.md",
    "TOOLS.md",
    "USER.md",
    "MEMORY.md",
    "BOOTSTRAP.md",
];
/// Files of a workspace without a counterpart.
const OTHERS: [&str; 2] = ["HEARTBEAT.md", "BOOT.md"];

/// Settings without a counterpart.
const LEFT: [(&str, &str); 7] = [
    ("hooks", "there are no hooks here"),
    ("plugins", "there are no plugins here"),
    ("tts", "agents do not speak here"),
    ("talk", "agents do not speak here"),
    ("gateway", "the gateway has its own settings"),
    ("mcp", "MCP servers are set up by hand here"),
    ("env", "set variables where the gateway is started"),
];

pub(super) fn read(source: &Source, wish: &Wish) -> Option<Found> {
    let settings = settings::load(source);
    let is_there = |path: &str| {
        source
            .tree
            .what(Path::new(path))
            .is_ok_and(|what| what == Some(What::Folder))
    };
    if settings.is_none() && !["agents", "workspace", "state"].into_iter().any(is_there) {
        return None;
    }
    let settings = settings.unwrap_or_else(|| Value::Object(Map::new()));
    let env = source.text(&source.tree, ".env");
    let env = mapping::dotenv(&env.unwrap_or_default());
    let mut found = Found::default();
    let entries = entries(source, &settings);
    let default = default_of(&settings, &entries);
    for (id, entry) in &entries {
        let is_default = default.as_ref() == Some(id);
        found
            .agents
            .push(agent(source, &settings, (id, entry), is_default));
    }
    let places = places::Places {
        source,
        settings: &settings,
        wish,
        env: &env,
        default: default.as_deref(),
    };
    places.read(&mut found);
    providers(source, &settings, &env, &mut found);
    for (key, why) in LEFT {
        if settings.get(key).is_some_and(|value| !value.is_null()) {
            source.left(Kind::Setting, key, why);
        }
    }
    sessions::read(source, &mut found);
    schedules(source, &mut found, default.as_deref());
    Some(found)
}

/// The agents of the config, and folders without an entry in the config.
fn entries(source: &Source, settings: &Value) -> Vec<(String, Value)> {
    let agents = &settings["agents"];
    let mut entries: Vec<(String, Value)> = Vec::new();
    if let Some(map) = agents["entries"].as_object() {
        entries.extend(map.iter().map(|(id, entry)| (id.clone(), entry.clone())));
    }
    for entry in agents["list"].as_array().into_iter().flatten() {
        match entry["id"].as_str() {
            Some(id) => entries.push((id.to_owned(), entry.clone())),
            None => source.left(Kind::Agent, "agents.list", "an entry has no id"),
        }
    }
    for id in source.names(&source.tree, "agents", What::Folder) {
        if entries.iter().all(|(known, _)| *known != id) {
            entries.push((id, Value::Object(Map::new())));
        }
    }
    if entries.is_empty() {
        entries.push(("main".to_owned(), Value::Object(Map::new())));
    }
    let mut seen = std::collections::HashSet::new();
    entries.retain(|(id, _)| seen.insert(id.clone()));
    entries
}

fn default_of(settings: &Value, entries: &[(String, Value)]) -> Option<String> {
    let system = settings["agents"]["defaults"]["systemAgent"]["agentId"].as_str();
    if let Some(id) = system {
        return Some(id.to_owned());
    }
    let is_explicit = settings["agents"]["ownership"].as_str() == Some("explicit");
    let marked = entries.iter().find(|(_, entry)| entry["default"] == true);
    let main = entries.iter().find(|(id, _)| id == "main");
    let first = entries.first().filter(|_| !is_explicit);
    let main = main.filter(|_| !is_explicit);
    marked.or(main).or(first).map(|(id, _)| id.clone())
}

fn agent(
    source: &Source,
    settings: &Value,
    (id, entry): (&str, &Value),
    is_default: bool,
) -> FoundAgent {
    let mut agent = FoundAgent::new(id);
    agent.is_default = is_default;
    let workspace = workspace(source, settings, (id, entry), is_default);
    let defaults = &settings["agents"]["defaults"];
    let skills = entry.get("skills").or_else(|| defaults.get("skills"));
    let skills = skills.and_then(Value::as_array).map(|list| {
        let names = list.iter().filter_map(Value::as_str).filter_map(slug);
        names.collect::<Vec<String>>()
    });
    if let Some(tree) = &workspace {
        files(source, &mut agent, tree);
    }
    let is_wanted = |name: &str, _: &Path| {
        let slug = slug(name);
        skills
            .as_ref()
            .is_none_or(|listed| slug.is_some_and(|slug| listed.contains(&slug)))
    };
    if let Some(tree) = &workspace {
        source.add_skills(&mut agent, (tree, Path::new("skills")), is_wanted);
    }
    source.add_skills(&mut agent, (&source.tree, Path::new("skills")), is_wanted);
    settings_of(source, &mut agent, (entry, defaults), workspace.as_deref());
    agent.table.skills = skills.map(|names| SkillNames::Allow(Names(names)));
    agent
}

/// Identity files, memories and notes of a workspace.
fn files(source: &Source, agent: &mut FoundAgent, tree: &Arc<Tree>) {
    let beside = plan::beside(System::OpenClaw);
    for name in IDENTITY {
        source.add_file(agent, (tree, Path::new(name)), name);
    }
    for name in OTHERS {
        source.add_file(agent, (tree, Path::new(name)), beside.join(name));
    }
    source.add_notes(agent, (tree, Path::new("memory")), &beside);
    let known = |name: &str| {
        let is_folder = matches!(name, "memory" | "skills" | ".git" | ".openclaw");
        is_folder || IDENTITY.contains(&name) || OTHERS.contains(&name)
    };
    let entries = tree.entries(Path::new("")).unwrap_or_default();
    let others = entries
        .iter()
        .filter(|entry| !entry.name.to_str().is_some_and(known));
    match others.count() {
        0 => {}
        count => source.manual(
            Kind::File,
            tree.shown().display().to_string(),
            format!(
                "{} in it, besides its identity; copy what {} needs into its workspace",
                some(count, "other file or folder", "other files and folders"),
                agent.source_id
            ),
        ),
    }
}

/// The workspace of an agent. A path of another machine is looked for by its last name.
fn workspace(
    source: &Source,
    settings: &Value,
    (id, entry): (&str, &Value),
    is_default: bool,
) -> Option<Arc<Tree>> {
    let named = entry["workspace"].as_str().or_else(|| {
        let shared = settings["agents"]["defaults"]["workspace"].as_str();
        shared.filter(|_| is_default)
    });
    let mut tried = Vec::new();
    if let Some(named) = named {
        let path = named.strip_prefix("~/").map_or_else(
            || PathBuf::from(named),
            |rest| {
                source
                    .tree
                    .path()
                    .parent()
                    .unwrap_or(Path::new("/"))
                    .join(rest)
            },
        );
        let last = path.file_name().map(PathBuf::from);
        let home = source.tree.path().parent().map(Path::to_owned);
        tried.push(path);
        tried.extend(last.iter().map(|last| source.tree.path().join(last)));
        tried.extend(home.zip(last).map(|(home, last)| home.join(last)));
    }
    let has_plain_name = Path::new(id)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if has_plain_name {
        tried.push(source.tree.path().join(format!("workspace-{id}")));
    }
    if is_default {
        tried.push(source.tree.path().join("workspace"));
    }
    let trees = tried.iter().filter(|path| path.is_absolute());
    let mut trees = trees.filter_map(|path| {
        let inside = path.strip_prefix(source.tree.path());
        match inside {
            Ok(inside) if inside.as_os_str().is_empty() => None,
            Ok(inside) => source
                .is_folder(&source.tree, inside)
                .then(|| source.tree.below(inside).ok())?,
            Err(_) => source.outside(path),
        }
    });
    let found = trees.next().map(Arc::new);
    if let (None, Some(named)) = (&found, named) {
        let why = format!("the workspace of {id} is not there");
        source.left(Kind::File, named, why);
    }
    found
}

fn settings_of(
    source: &Source,
    agent: &mut FoundAgent,
    (entry, defaults): (&Value, &Value),
    workspace: Option<&Tree>,
) {
    let text = workspace.and_then(|tree| source.text(tree, "IDENTITY.md"));
    let text = text.unwrap_or_default();
    let identity = &entry["identity"];
    let line = |label| mapping::identity_line(&text, label);
    let of = |key: &str| identity[key].as_str().map(str::to_owned);
    let table = &mut agent.table;
    let name = of("name").or_else(|| entry["name"].as_str().map(str::to_owned));
    table.name = short(name.or_else(|| line("Name")).as_deref());
    table.emoji = short(of("emoji").or_else(|| line("Emoji")).as_deref());
    let theme = of("theme").or_else(|| line("Theme"));
    table.creature = short(theme.or_else(|| line("Creature")).as_deref());
    table.vibe = short(line("Vibe").as_deref());
    let model = entry.get("model").or_else(|| defaults.get("model"));
    let (primary, fallbacks) = match model {
        Some(Value::String(model)) => (Some(model.clone()), Vec::new()),
        Some(model) => {
            let primary = model["primary"].as_str().map(str::to_owned);
            (primary, words(model.get("fallbacks")))
        }
        None => (None, Vec::new()),
    };
    table.model = primary;
    if !fallbacks.is_empty() {
        table.fallback = Some(Names(fallbacks));
    }
    table.temperature = entry["params"]["temperature"].as_f64();
    let tools = &entry["tools"];
    let lists = ToolLists {
        allow: tools.get("allow").map(|list| words(Some(list))),
        deny: words(tools.get("deny")),
        max_risk: match tools["profile"].as_str() {
            None | Some("full") => None,
            Some("coding") => Some(Risk::Change),
            Some(_) => Some(Risk::Look),
        },
    };
    let unknown = lists.put_into(table);
    if !unknown.is_empty() {
        let what = format!("{}: tools {}", agent.source_id, unknown.join(", "));
        source.left(Kind::Setting, what, "there are no such tools here");
    }
    for key in ["sandbox", "heartbeat", "subagents", "groupChat"] {
        if entry.get(key).is_some_and(|value| !value.is_null()) {
            let what = format!("{}: {key}", agent.source_id);
            source.left(Kind::Setting, what, "it has no counterpart here");
        }
    }
}

fn providers(source: &Source, settings: &Value, env: &HashMap<String, String>, found: &mut Found) {
    let providers = settings["models"]["providers"].as_object();
    for (name, provider) in providers.into_iter().flatten() {
        let path = format!("models.providers.{name}");
        let token = match &provider["apiKey"] {
            Value::String(text) => Token::read(text, env),
            secret => match secret["source"].as_str() {
                Some("env") => Token::of(secret["id"].as_str().unwrap_or_default(), env),
                _ => Token::default(),
            },
        };
        let dialect = provider["api"].as_str().unwrap_or(name);
        let url = provider["baseUrl"].as_str();
        match mapping::provider((name, dialect), url, path.clone(), token) {
            Some(secret) => found.secrets.push(secret),
            None => source.left(Kind::Setting, path, "its dialect is not known here"),
        }
    }
    mapping::providers_in(env, &mut found.secrets, ".env");
}

/// Scheduled work, from the database or from the older file. Heartbeats are the system's own.
fn schedules(source: &Source, found: &mut Found, default: Option<&str>) {
    let mut jobs: Vec<Value> = Vec::new();
    if let Some(database) = source.database(&source.tree, "state/openclaw.sqlite") {
        let columns = [
            "job_json",
            "job_id",
            "agent_id",
            "name",
            "enabled",
            "schedule_kind",
            "schedule_expr",
            "schedule_tz",
            "every_ms",
            "at",
            "payload_message",
            "delivery_channel",
            "delivery_to",
            "delivery_thread_id",
        ];
        let read = database.rows(
            source,
            ("cron_jobs", &columns),
            ("", &["sort_order"]),
            |row| {
                if let Some(job) = row.json(0) {
                    return Some(job);
                }
                let mut job = Map::new();
                for (at, column) in columns.iter().enumerate().skip(1) {
                    if let Some(text) = row.text(at) {
                        job.insert((*column).to_owned(), text.into());
                    }
                }
                Some(Value::Object(job))
            },
        );
        jobs.extend(read);
    }
    if let Some(file) = source.json(&source.tree, "cron/jobs.json") {
        let listed = file["jobs"].as_array().or_else(|| file.as_array());
        jobs.extend(listed.into_iter().flatten().cloned());
    }
    for job in jobs {
        let name = job["name"].as_str().unwrap_or_default();
        if name.starts_with("Heartbeat (") {
            continue;
        }
        let agent = job["agentId"].as_str().or_else(|| job["agent_id"].as_str());
        let agent = agent.or(default).unwrap_or_default().to_owned();
        match found.agent(&agent) {
            Some(agent) => agent.schedules.push(job),
            None => source.left(Kind::Schedule, name, format!("no agent `{agent}` is there")),
        }
    }
}
