//! `parlor agent …`: who the agents are, what they are made of, and what their model is told.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Local};
use clap::{Args, Subcommand};
use comfy_table::{Table, presets};
use serde::Serialize;

use super::agent_tools::ToolReport;
use super::{Failure, Outcome, data};
use crate::agents::memory::Stats;
use crate::agents::{Agent, Identity, Memories, Registry, Roster};
use crate::config::Secrets;
use crate::domain::{AgentUid, nearest};
use crate::gateway::{Home, Plan};
use crate::storage::Db;
use crate::turn::prompt;

#[derive(Subcommand)]
pub(super) enum Verb {
    /// List all agents
    List {
        #[arg(long)]
        json: bool,
    },
    /// Tell where one agent's files come from, its model and its bindings
    Info(One),
    /// Print the exact system prompt of one agent
    Prompt(One),
}

#[derive(Args)]
pub(super) struct One {
    /// Its id or name
    agent: String,
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(home: Home, verb: Verb) -> Outcome {
    let plan = Plan::load(&home, Secrets::WherePresent)?;
    let db = Db::open(&home.database()).await?;
    let (registry, roster) = plan.registry(&home, &db).await?;
    let stats = stats(&registry, &Memories::new(db)).await?;
    let house = House { plan, registry, roster, stats };
    match verb {
        Verb::List { json } => list(&house, json),
        Verb::Info(one) => info(&house, house.find(&one.agent)?, one.json),
        Verb::Prompt(one) => print_prompt(&house, house.find(&one.agent)?, one.json),
    }
}

struct House {
    plan: Plan,
    registry: Registry,
    roster: Roster,
    /// By agent; none for one whose memory is off.
    stats: HashMap<AgentUid, Stats>,
}

impl House {
    fn find(&self, word: &str) -> Result<&Agent, Failure> {
        find(&self.registry, word).map(Arc::as_ref)
    }

    fn memories_of(&self, agent: &Agent) -> Option<u32> {
        self.stats.get(&agent.uid).map(|stats| stats.counts.private + stats.counts.global)
    }

    fn bindings_of(&self, agent: &Agent) -> Vec<&str> {
        let own = self.plan.config.bindings.iter().filter(|binding| binding.agent.value == agent.id);
        own.map(|binding| binding.pattern.value.as_str()).collect()
    }

    fn is_bootstrapped(&self, agent: &Agent) -> bool {
        self.roster.get(&agent.id).is_some_and(|known| known.bootstrapped)
    }

    fn identity(&self, agent: &Agent) -> Identity {
        Identity::load(agent, !self.is_bootstrapped(agent))
    }
}

/// The agent a word means, or which ones there are.
pub(super) fn find<'a>(registry: &'a Registry, word: &str) -> Result<&'a Arc<Agent>, Failure> {
    registry.find(word).ok_or_else(|| {
        let ids = registry.all().iter().map(|agent| agent.id.as_str());
        Failure::WrongUse(match nearest(word, ids.clone()) {
            Some(near) => format!("no agent is called {word}. Did you mean {near}?"),
            None => format!("no agent is called {word}. There are: {}", ids.collect::<Vec<_>>().join(", ")),
        })
    })
}

async fn stats(registry: &Registry, memories: &Memories) -> Result<HashMap<AgentUid, Stats>, Failure> {
    let mut stats = HashMap::new();
    for memory in registry.all().iter().filter_map(|agent| memories.of(agent)) {
        stats.insert(memory.agent().uid, memory.stats().await?);
    }
    Ok(stats)
}

#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    name: &'a str,
    emoji: Option<&'a str>,
    model: String,
    bindings: usize,
    /// What it saved; none if its memory is off.
    memories: Option<u32>,
    default: bool,
}

fn list(house: &House, json: bool) -> Outcome {
    let rows: Vec<Row<'_>> = house.registry.all().iter().map(|agent| row(house, agent)).collect();
    if json {
        data(format_args!("{}", serde_json::to_string_pretty(&rows)?));
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["ID", "NAME", "MODEL", "BINDINGS", "MEMORIES", ""]);
    for row in rows {
        let name = [row.emoji.unwrap_or(""), row.name].join(" ");
        let mark = if row.default { "default" } else { "" };
        let memories = row.memories.map_or_else(|| "off".to_owned(), |count| count.to_string());
        table.add_row([row.id, name.trim(), &row.model, &row.bindings.to_string(), &memories, mark]);
    }
    data(format_args!("{}", table.trim_fmt()));
    Ok(())
}

fn row<'a>(house: &House, agent: &'a Agent) -> Row<'a> {
    Row {
        id: agent.id.as_str(),
        name: &agent.name,
        emoji: agent.emoji.as_deref(),
        model: agent.brain.model.to_string(),
        bindings: house.bindings_of(agent).len(),
        memories: house.memories_of(agent),
        default: agent.is_default,
    }
}

#[derive(Serialize)]
struct Info<'a> {
    #[serde(flatten)]
    row: Row<'a>,
    uid: String,
    bootstrapped: bool,
    matches: Vec<&'a str>,
    files: Vec<FileInfo>,
    memory: Option<MemoryInfo>,
    #[serde(flatten)]
    tools: ToolReport,
}

#[derive(Serialize)]
struct MemoryInfo {
    private: u32,
    global: u32,
    archived: u32,
    /// Of MEMORY.md and daily notes.
    pieces: u32,
    memory_file_bytes: Option<u64>,
    /// Unix milliseconds.
    last_saved_at: Option<i64>,
}

#[derive(Serialize)]
struct FileInfo {
    file: &'static str,
    origin: String,
    path: String,
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

fn info(house: &House, agent: &Agent, json: bool) -> Outcome {
    let identity = house.identity(agent);
    let info = Info {
        row: row(house, agent),
        uid: agent.uid.to_string(),
        bootstrapped: house.is_bootstrapped(agent),
        matches: house.bindings_of(agent),
        files: file_infos(&identity),
        memory: house.stats.get(&agent.uid).map(memory_info),
        tools: ToolReport::of(agent),
    };
    if json {
        data(format_args!("{}", serde_json::to_string_pretty(&info)?));
    } else {
        data(format_args!("{}", info_text(agent, &info)));
    }
    Ok(())
}

fn memory_info(stats: &Stats) -> MemoryInfo {
    let counts = &stats.counts;
    MemoryInfo {
        private: counts.private,
        global: counts.global,
        archived: counts.archived,
        pieces: counts.pieces,
        memory_file_bytes: stats.memory_file_bytes,
        last_saved_at: counts.last_saved_at,
    }
}

fn memory_line(memory: Option<&MemoryInfo>) -> String {
    let Some(memory) = memory else { return "memory: off".into() };
    let file = memory.memory_file_bytes.map_or_else(|| "no MEMORY.md".to_owned(), |bytes| format!("MEMORY.md has {bytes} bytes"));
    let last = memory.last_saved_at.map_or_else(|| "nothing saved yet".to_owned(), |time| format!("last saved {}", moment(time)));
    format!("memory: {} private, {} global, {} pieces of files; {file}; {last}", memory.private, memory.global, memory.pieces)
}

/// A time as people here read it.
pub(super) fn moment(millis: i64) -> String {
    let moment = DateTime::from_timestamp_millis(millis).unwrap_or_default();
    moment.with_timezone(&Local).format("%Y-%m-%d %H:%M").to_string()
}

fn file_infos(identity: &Identity) -> Vec<FileInfo> {
    let info = |loaded: &crate::agents::LoadedFile| FileInfo {
        file: loaded.file.name(),
        origin: loaded.origin.to_string(),
        path: loaded.path.display().to_string(),
        bytes: loaded.content.len(),
        problem: loaded.problem.clone(),
    };
    identity.files().iter().map(info).collect()
}

fn info_text(agent: &Agent, info: &Info<'_>) -> String {
    let mut text = format!("{} ({})\nmodel: {}\n", agent.label(), agent.id, agent.brain.model);
    let first = if info.bootstrapped { "done" } else { "not yet" };
    text.push_str(&format!("first turn: {first}\n"));
    for file in &info.files {
        let problem = file.problem.as_ref().map_or_else(String::new, |problem| format!(" ({problem})"));
        text.push_str(&format!("{}: {}{problem}\n", file.file, file.origin));
    }
    text.push_str(&memory_line(info.memory.as_ref()));
    text.push('\n');
    text.push_str(&info.tools.text());
    match info.matches.as_slice() {
        [] => text.push_str("bindings: none"),
        matches => text.push_str(&format!("bindings: {}", matches.join(", "))),
    }
    text
}

fn print_prompt(house: &House, agent: &Agent, json: bool) -> Outcome {
    let text = prompt::assemble(agent, &house.identity(agent));
    if json {
        let value = serde_json::json!({ "agent": agent.id.as_str(), "bytes": text.len(), "prompt": text });
        data(format_args!("{}", serde_json::to_string_pretty(&value)?));
    } else {
        data(format_args!("{text}"));
    }
    Ok(())
}
