//! `parlor agent …`: who the agents are, what they are made of, and what their model is told.

use std::sync::Arc;

use clap::{Args, Subcommand};
use comfy_table::{Table, presets};
use serde::Serialize;

use super::agent_tools::ToolReport;
use super::{Failure, Outcome, data};
use crate::agents::{Agent, Identity, Peer, Registry, Roster};
use crate::config::Secrets;
use crate::domain::nearest;
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
    let house = House { plan, registry, roster };
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
}

impl House {
    fn find(&self, word: &str) -> Result<&Agent, Failure> {
        self.registry.find(word).map(Arc::as_ref).ok_or_else(|| {
            let ids = self.registry.all().iter().map(|agent| agent.id.as_str());
            Failure::WrongUse(match nearest(word, ids.clone()) {
                Some(near) => format!("no agent is called {word}. Did you mean {near}?"),
                None => format!("no agent is called {word}. There are: {}", ids.collect::<Vec<_>>().join(", ")),
            })
        })
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

#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    name: &'a str,
    emoji: Option<&'a str>,
    model: String,
    bindings: usize,
    default: bool,
}

fn list(house: &House, json: bool) -> Outcome {
    let rows: Vec<Row<'_>> = house.registry.all().iter().map(|agent| row(house, agent)).collect();
    if json {
        data(format_args!("{}", serde_json::to_string_pretty(&rows)?));
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["ID", "NAME", "MODEL", "BINDINGS", ""]);
    for row in rows {
        let name = [row.emoji.unwrap_or(""), row.name].join(" ");
        let mark = if row.default { "default" } else { "" };
        table.add_row([row.id, name.trim(), &row.model, &row.bindings.to_string(), mark]);
    }
    data(format_args!("{}", table.trim_fmt()));
    Ok(())
}

fn row<'a>(house: &House, agent: &'a Agent) -> Row<'a> {
    Row {
        id: agent.id.as_str(),
        name: &agent.name,
        emoji: agent.emoji.as_deref(),
        model: agent.model.to_string(),
        bindings: house.bindings_of(agent).len(),
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
    /// Agents it may write to and give work.
    peers: Vec<String>,
    files: Vec<FileInfo>,
    #[serde(flatten)]
    tools: ToolReport,
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
        peers: agent.peers.iter().map(peer).collect(),
        files: file_infos(&identity),
        tools: ToolReport::of(agent),
    };
    if json {
        data(format_args!("{}", serde_json::to_string_pretty(&info)?));
    } else {
        data(format_args!("{}", info_text(agent, &info)));
    }
    Ok(())
}

fn peer(peer: &Peer) -> String {
    peer.platform.map_or_else(|| peer.id.to_string(), |platform| format!("{} (on {platform})", peer.id))
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
    let mut text = format!("{} ({})\nmodel: {}\n", agent.label(), agent.id, agent.model);
    let first = if info.bootstrapped { "done" } else { "not yet" };
    text.push_str(&format!("first turn: {first}\n"));
    for file in &info.files {
        let problem = file.problem.as_ref().map_or_else(String::new, |problem| format!(" ({problem})"));
        text.push_str(&format!("{}: {}{problem}\n", file.file, file.origin));
    }
    text.push_str(&info.tools.text());
    if !info.peers.is_empty() {
        text.push_str(&format!("peers: {}\n", info.peers.join(", ")));
    }
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
