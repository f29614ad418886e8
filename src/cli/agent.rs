//! `parlor agent …`: who the agents are, what they are made of, what their model is told, and everything that changes them.

mod changing;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use chrono::{DateTime, Local};
use clap::{Args, Subcommand};
use comfy_table::{Table, presets};
use serde::Serialize;

use super::agent_tools::ToolReport;
use super::{Failure, Outcome, data};
use crate::agents::memory::{self, Stats};
use crate::agents::skills::Skill;
use crate::agents::{Agent, Colleague, Identity, Memories, Registry, Roster, Skills};
use crate::config::Secrets;
use crate::domain::{AgentId, AgentUid, nearest};
use crate::gateway::{Home, Plan};
use crate::storage::Db;
use crate::tenants::{self, Archive, Origin, Site};
use crate::turn::prompt;

#[derive(Subcommand)]
pub(super) enum Verb {
    /// List all agents, also removed ones and what was left by hand
    List {
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Tell where one agent's files come from, its model, skills, tools, bindings and last error
    Info(One),
    /// Print the exact system prompt of one agent
    Prompt(One),
    /// Add a new agent to config.toml, with files to begin with
    Add(changing::Add),
    /// Take in what was left by hand, such as a folder in agents/
    Adopt {
        /// Its id, as `agent list` shows it
        id: String,
    },
    /// Make an agent like another: settings, identity files and skills, no memory
    Clone {
        /// Whom to copy: id or name
        agent: String,
        /// The id of the new one: a-z, 0-9 and hyphens
        id: String,
    },
    /// Give an agent another id; history, memory, pins and bindings stay
    Rename {
        /// Its id or name now
        agent: String,
        /// Its new id: a-z, 0-9 and hyphens
        id: String,
    },
    /// Say who answers where no binding decides
    Default {
        /// Its id or name
        agent: String,
    },
    /// Put an agent aside: files and memories are archived, and can be restored
    Remove {
        /// Its id or name
        agent: String,
    },
    /// Bring a removed agent back
    Restore(changing::Restore),
    /// Destroy an agent for good: files, memories, and what it said
    Purge(changing::Purge),
    /// Look at removed agents
    #[command(subcommand)]
    Archive(changing::ArchiveVerb),
    /// Write an agent with files, memories and conversations into one file
    Export(changing::Export),
    /// Take in an agent that was exported
    Import(changing::Import),
}

#[derive(Args)]
pub(super) struct One {
    /// Its id or name
    agent: String,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(home: Home, verb: Verb) -> Outcome {
    match verb {
        Verb::List { json } => list(&House::open(&home).await?, json).await,
        Verb::Info(one) => {
            let house = House::open(&home).await?;
            info(&house, house.find(&one.agent)?, one.json).await
        }
        Verb::Prompt(one) => {
            let house = House::open(&home).await?;
            print_prompt(&house, house.find(&one.agent)?, one.json)
        }
        Verb::Add(arguments) => changing::add(&home, arguments).await,
        Verb::Adopt { id } => changing::adopt(&home, &id).await,
        Verb::Clone { agent, id } => changing::clone(&home, &agent, &id).await,
        Verb::Rename { agent, id } => changing::rename(&home, &agent, &id).await,
        Verb::Default { agent } => changing::default(&home, &agent).await,
        Verb::Remove { agent } => changing::remove(&home, &agent).await,
        Verb::Restore(arguments) => changing::restore(&home, arguments).await,
        Verb::Purge(arguments) => changing::purge(&home, arguments).await,
        Verb::Archive(verb) => changing::archives(&home, verb).await,
        Verb::Export(arguments) => changing::export(&home, arguments).await,
        Verb::Import(arguments) => changing::import(&home, arguments).await,
    }
}

struct House {
    home: PathBuf,
    db: Db,
    plan: Plan,
    registry: Registry,
    roster: Roster,
    /// By agent; none for one whose memory is off.
    stats: HashMap<AgentUid, Stats>,
}

impl House {
    async fn open(home: &Home) -> Result<Self, Failure> {
        let plan = Plan::load(home, Secrets::WherePresent)?;
        let db = Db::open(&home.database()).await?;
        let (registry, roster) = plan.registry(home, &db).await?;
        let stats = stats(&registry, &Memories::new(db.clone())).await?;
        Ok(House { home: home.path().to_owned(), db, plan, registry, roster, stats })
    }

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
struct Row {
    id: String,
    name: String,
    emoji: Option<String>,
    model: Option<String>,
    effective_skills: Vec<String>,
    bindings: usize,
    /// What it saved; none if its memory is off.
    memories: Option<u32>,
    origin: Origin,
    default: bool,
    state: String,
}

async fn list(house: &House, json: bool) -> Outcome {
    let rows = rows(house).await?;
    if json {
        data(format_args!("{}", serde_json::to_string_pretty(&rows)?));
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["ID", "NAME", "MODEL", "SKILLS", "BINDINGS", "MEMORIES", "STATE"]);
    for row in rows {
        let name = [row.emoji.as_deref().unwrap_or(""), &row.name].join(" ");
        let [skills, bindings] = [row.effective_skills.len(), row.bindings].map(|count| count.to_string());
        let memories = row.memories.map_or_else(|| "off".to_owned(), |count| count.to_string());
        table.add_row([row.id, name.trim().to_owned(), row.model.unwrap_or_default(), skills, bindings, memories, row.state]);
    }
    data(format_args!("{}", table.trim_fmt()));
    Ok(())
}

/// Everyone in the config, then folders nobody named, then what only the store has, then those who were removed.
async fn rows(house: &House) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for agent in house.registry.all() {
        rows.push(row(house, agent));
    }
    rows.extend(tenants::discovered(&house.plan.config, &house.home).iter().map(discovered));
    let site = Site { home: house.home.clone(), db: house.db.clone() };
    for (id, known) in tenants::stored_only(&site, &house.plan.config).await? {
        let state = format!("no longer in config.toml; `parlor agent adopt {id}` takes it in again");
        let memories = u32::try_from(known.memories).ok();
        rows.push(Row { memories, ..without_config(&id, Origin::Stored, state) });
    }
    for archive in tenants::archives(&house.home) {
        let uid = archive.uid;
        let memories = house.db.read(move |connection| memory::count_of(connection, uid)).await?;
        rows.push(Row { memories: Some(memories), ..removed(&archive) });
    }
    Ok(rows)
}

fn row(house: &House, agent: &Agent) -> Row {
    Row {
        id: agent.id.to_string(),
        name: agent.name.clone(),
        emoji: agent.emoji.clone(),
        model: Some(agent.brain.model.to_string()),
        effective_skills: Skills::load(agent).names().into_iter().map(str::to_owned).collect(),
        bindings: house.bindings_of(agent).len(),
        memories: house.memories_of(agent),
        origin: Origin::Configured,
        default: agent.is_default,
        state: if agent.is_default { "default".into() } else { String::new() },
    }
}

fn without_config(id: &AgentId, origin: Origin, state: String) -> Row {
    let (name, emoji, model, effective_skills) = (String::new(), None, None, Vec::new());
    Row {
        id: id.to_string(),
        name,
        emoji,
        model,
        effective_skills,
        bindings: 0,
        memories: Some(0),
        origin,
        default: false,
        state,
    }
}

fn discovered(id: &AgentId) -> Row {
    without_config(id, Origin::Discovered, format!("discovered; `parlor agent adopt {id}` takes it in"))
}

fn removed(archive: &Archive) -> Row {
    without_config(&archive.id, Origin::Archived, format!("archived as {}", archive.name))
}

#[derive(Serialize)]
struct Info<'a> {
    #[serde(flatten)]
    row: Row,
    uid: String,
    bootstrapped: bool,
    matches: Vec<&'a str>,
    /// Agents it may write to and give work.
    peers: Vec<String>,
    files: Vec<FileInfo>,
    /// The file that stands in for SOUL.md, if the config names one.
    personality: Option<&'a str>,
    /// How much the config adds to it.
    system_prompt_bytes: Option<usize>,
    skills: Vec<Skill>,
    memory: Option<MemoryInfo>,
    #[serde(flatten)]
    tools: ToolReport,
    /// When its last turn without an answer ended, and why.
    last_error: Option<LastError>,
}

#[derive(Serialize)]
struct LastError {
    at: i64,
    reason: String,
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
    #[serde(skip)]
    shown: String,
    origin: String,
    path: String,
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

async fn info(house: &House, agent: &Agent, json: bool) -> Outcome {
    let (identity, uid) = (house.identity(agent), agent.uid);
    let last_error = house.db.read(move |connection| tenants::last_error(connection, uid)).await?;
    let info = Info {
        row: row(house, agent),
        uid: agent.uid.to_string(),
        bootstrapped: house.is_bootstrapped(agent),
        matches: house.bindings_of(agent),
        peers: agent.peers.iter().map(peer).collect(),
        files: file_infos(&identity),
        personality: agent.personality.as_deref(),
        system_prompt_bytes: agent.system_prompt.as_ref().map(String::len),
        skills: identity.skills().readable.clone(),
        last_error: last_error.map(|(at, reason)| LastError { at, reason }),
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

fn peer(peer: &Colleague) -> String {
    peer.platform.map_or_else(|| peer.id.to_string(), |platform| format!("{} (on {platform})", peer.id))
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
    let pieces = if memory.pieces == 1 { "1 piece".to_owned() } else { format!("{} pieces", memory.pieces) };
    format!("memory: {} private, {} global, {pieces} of files; {file}; {last}", memory.private, memory.global)
}

/// A time as people here read it.
pub(super) fn moment(millis: i64) -> String {
    let moment = DateTime::from_timestamp_millis(millis).unwrap_or_default();
    moment.with_timezone(&Local).format("%Y-%m-%d %H:%M").to_string()
}

fn file_infos(identity: &Identity) -> Vec<FileInfo> {
    let info = |loaded: &crate::agents::LoadedFile| FileInfo {
        file: loaded.file.name(),
        shown: loaded.stand_in.as_ref().map_or_else(|| loaded.name().to_owned(), |path| format!("personality {path}")),
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
        text.push_str(&format!("{}: {}{problem}\n", file.shown, file.origin));
    }
    if let Some(bytes) = info.system_prompt_bytes {
        text.push_str(&format!("system_prompt: {bytes} bytes\n"));
    }
    for skill in &info.skills {
        text.push_str(&format!("skill {}: {}, {}\n", skill.name, skill.origin, skill.because));
    }
    if info.skills.is_empty() {
        text.push_str("skills: none\n");
    }
    text.push_str(&memory_line(info.memory.as_ref()));
    text.push('\n');
    text.push_str(&info.tools.text());
    if !info.peers.is_empty() {
        text.push_str(&format!("peers: {}\n", info.peers.join(", ")));
    }
    match info.matches.as_slice() {
        [] => text.push_str("bindings: none\n"),
        matches => text.push_str(&format!("bindings: {}\n", matches.join(", "))),
    }
    match &info.last_error {
        None => text.push_str("last error: none"),
        Some(error) => text.push_str(&format!("last error: {}, {}", time(error.at), error.reason)),
    }
    text
}

fn time(at: i64) -> String {
    DateTime::from_timestamp_millis(at).unwrap_or_default().with_timezone(&Local).format("%Y-%m-%d %H:%M").to_string()
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
