//! Signet keeps identities, memories and skills; it has no chats and no tokens.

use std::collections::HashMap;
use std::path::{Component, Path};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::Wish;
use super::found::{Found, FoundAgent, FoundMemory};
use super::mapping::short;
use super::openclaw::IDENTITY;
use super::plan;
use super::report::{Kind, System};
use super::source::{Database, Source, slug};
use super::tree::{Tree, What};
use crate::config::{Names, SkillNames, Visibility};

/// The agent in the folder itself.
const DEFAULT: &str = "default";

pub(super) fn read(source: &Source, wish: &Wish) -> Option<Found> {
    let is_there = |path: &str| {
        source
            .tree
            .what(Path::new(path))
            .is_ok_and(|what| what.is_some())
    };
    let marks = [
        "agent.yaml",
        "AGENT.yaml",
        "memory/memories.db",
        "agents",
        "AGENTS.md",
    ];
    if !marks.into_iter().any(is_there) {
        return None;
    }
    let names = ["agent.yaml", "AGENT.yaml", "config.yaml"];
    let text = names
        .iter()
        .find_map(|name| source.text(&source.tree, name));
    let settings = text.and_then(|text| {
        let read = serde_saphyr::from_str::<Value>(&text);
        let noted = |error: serde_saphyr::Error| {
            let error = error.to_string();
            source.left(
                Kind::File,
                "agent.yaml",
                error.lines().next().unwrap_or_default(),
            );
        };
        read.map_err(noted).ok().filter(Value::is_object)
    });
    let settings = settings.unwrap_or_else(|| Value::Object(Map::new()));
    let roster: HashMap<String, Value> = settings["agents"]["roster"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|entry| Some((entry["name"].as_str()?.to_owned(), entry.clone())))
        .collect();
    let mut found = Found::default();
    found
        .agents
        .push(agent(source, DEFAULT, None, &Value::Null));
    let mut names: Vec<String> = roster.keys().cloned().collect();
    names.extend(source.names(&source.tree, "agents", What::Folder));
    names.sort();
    names.dedup();
    for name in names.iter().filter(|name| *name != DEFAULT) {
        let folder = Path::new("agents").join(name);
        let is_plain = folder
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        let is_there = is_plain && source.is_folder(&source.tree, &folder);
        let entry = roster.get(name).unwrap_or(&Value::Null);
        found
            .agents
            .push(agent(source, name, is_there.then_some(&folder), entry));
    }
    groups(&roster, &mut found);
    memories(source, wish, &mut found);
    Some(found)
}

fn agent(
    source: &Source,
    name: &str,
    folder: Option<&std::path::PathBuf>,
    entry: &Value,
) -> FoundAgent {
    let mut agent = FoundAgent::new(name);
    agent.is_default = name == DEFAULT;
    let tree: &Arc<Tree> = &source.tree;
    let beside = plan::beside(System::Signet);
    // A file that an agent does not have is the one of the folder itself, but for what it remembers.
    let own = folder.map(|folder| folder.as_path());
    let folders: Vec<&Path> = own.into_iter().chain([Path::new("")]).collect();
    for folder in &folders {
        let is_own = folder.as_os_str().is_empty() == (name == DEFAULT);
        for file in IDENTITY {
            let is_inherited = matches!(
                file,
                "SOUL.md" | "IDENTITY.md" | "AGENTS.md" | "TOOLS.md" | "USER.md"
            );
            if is_own || is_inherited {
                source.add_file(&mut agent, (tree, &folder.join(file)), file);
            }
        }
        if is_own {
            source.add_file(
                &mut agent,
                (tree, &folder.join("HEARTBEAT.md")),
                beside.join("HEARTBEAT.md"),
            );
        }
    }
    if name == DEFAULT {
        source.add_notes(&mut agent, (tree, Path::new("memory")), &beside);
    }
    let text = folders
        .iter()
        .find_map(|folder| source.text(tree, folder.join("IDENTITY.md")));
    let line = text.as_deref().and_then(|text| {
        let mut lines = text
            .lines()
            .map(|line| line.trim().trim_start_matches(['-', '*', ' ']));
        lines
            .find_map(|line| line.strip_prefix("name:"))
            .map(str::to_owned)
    });
    agent.table.name =
        short(line.as_deref()).or_else(|| short(Some(name)).filter(|_| name != DEFAULT));
    agent.table.model = entry["model"].as_str().map(str::to_owned);
    let listed = entry["skills"].as_array().map(|list| {
        let names = list.iter().filter_map(Value::as_str).filter_map(slug);
        names.collect::<Vec<String>>()
    });
    let is_wanted = |skill: &str, _: &Path| {
        let slug = slug(skill);
        listed
            .as_ref()
            .is_none_or(|listed| slug.is_some_and(|slug| listed.contains(&slug)))
    };
    source.add_skills(&mut agent, (tree, Path::new("skills")), is_wanted);
    agent.table.skills = listed.map(|names| SkillNames::Allow(Names(names)));
    agent
}

/// Agents of one group read each other's memories there. Here the operator says so.
fn groups(roster: &HashMap<String, Value>, found: &mut Found) {
    let group = |entry: &Value| {
        let memory = &entry["memory"];
        let policy = memory
            .get("read_policy")
            .or_else(|| entry.get("read_policy"));
        let named = memory
            .get("policy_group")
            .or_else(|| entry.get("policy_group"));
        let nested = policy.and_then(|policy| policy.get("group")?.as_str());
        let flat = named.and_then(Value::as_str);
        let is_group = policy.is_some_and(|policy| policy == "group" || policy["type"] == "group");
        nested.or(flat).filter(|_| is_group).map(str::to_owned)
    };
    let groups: HashMap<&String, String> = roster
        .iter()
        .filter_map(|(name, entry)| Some((name, group(entry)?)))
        .collect();
    for agent in &mut found.agents {
        let Some(own) = groups.get(&agent.source_id) else {
            continue;
        };
        let others = groups
            .iter()
            .filter(|(name, group)| **name != agent.source_id.as_str() && *group == own);
        let mut others: Vec<String> = others.filter_map(|(name, _)| slug(name)).collect();
        others.sort();
        if !others.is_empty() {
            agent.table.read_memory_from = Some(Names(others));
        }
    }
}

/// Rows that were written by the way, such as at the end of a session.
fn is_by_the_way(kind: Option<&str>, source: Option<&str>) -> bool {
    kind == Some("episodic")
        || matches!(
            source,
            Some("session_end" | "session-end" | "summary" | "transcript" | "chunk")
        )
}

fn memories(source: &Source, wish: &Wish, found: &mut Found) {
    let Some(database) = source.database(&source.tree, "memory/memories.db") else {
        return;
    };
    let columns = [
        "id",
        "content",
        "agent_id",
        "visibility",
        "is_deleted",
        "stale_at",
        "memory_kind",
        "source_type",
        "created_at",
        "pinned",
    ];
    let (mut by_the_way, mut gone, mut lost) = (0, 0, 0);
    let rows = database.rows(
        source,
        ("memories", &columns),
        ("", &["created_at", "id"]),
        |row| {
            let agent = row.word(2).unwrap_or_else(|| DEFAULT.to_owned());
            let visibility = row.word(3).unwrap_or_else(|| "global".to_owned());
            if row.flag(4).unwrap_or(false) || row.word(5).is_some() || visibility == "archived" {
                gone += 1;
                return Some(None);
            }
            if is_by_the_way(row.word(6).as_deref(), row.word(7).as_deref()) && !wish.everything {
                by_the_way += 1;
                return Some(None);
            }
            let memory = FoundMemory {
                source_id: format!("{agent}/{}", row.text(0)?),
                text: row.word(1)?,
                visibility: match visibility.as_str() {
                    "global" => Visibility::Global,
                    _ => Visibility::Private,
                },
                created_at: row.time(8).unwrap_or(0),
            };
            Some(Some((agent, memory, row.flag(9).unwrap_or(false))))
        },
    );
    let mut rows: Vec<(String, FoundMemory, bool)> = rows.into_iter().flatten().collect();
    // Pinned ones come first.
    rows.sort_by_key(|(_, _, is_pinned)| !is_pinned);
    for (agent, memory, _) in rows {
        match found.agent(&agent) {
            Some(agent) => agent.memories.push(memory),
            None => lost += 1,
        }
    }
    let said = |count, why: &str| {
        if count > 0 {
            source.left(Kind::Memory, super::some(count, "memory", "memories"), why);
        }
    };
    said(gone, "deleted, archived or out of date there");
    said(by_the_way, "noted by the way; --all brings them");
    said(lost, "their agent is not there");
    schedules(source, &database, found);
}

fn schedules(source: &Source, database: &Database, found: &mut Found) {
    let jobs = [
        "id",
        "name",
        "prompt",
        "cron_expression",
        "harness",
        "enabled",
    ];
    let rows = database.rows(source, ("scheduled_tasks", &jobs), ("", &["id"]), |row| {
        let mut job = Map::new();
        for (at, column) in jobs.iter().enumerate() {
            if let Some(text) = row.text(at) {
                job.insert((*column).to_owned(), text.into());
            }
        }
        Some(Value::Object(job))
    });
    if let Some(agent) = found.agent(DEFAULT) {
        agent.schedules.extend(rows);
    }
}
