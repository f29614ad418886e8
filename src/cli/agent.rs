//! `parlor agent …`: looks at agents, their files and their prompts, and leads to the verbs of
//! `changing`.

mod changing;
mod info;
mod listing;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use chrono::{DateTime, Local};
use clap::{Args, Subcommand};

use super::{Failure, Outcome, data, data_json};
use crate::agents::memory::Stats;
use crate::agents::{Agent, AgentRows, Identity, Memories, Registry};
use crate::config::Secrets;
use crate::domain::{AgentUid, nearest};
use crate::home::{CheckedConfig, Home};
use crate::storage::Db;
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
        Verb::List { json } => listing::list(&OpenHome::open(&home).await?, json).await,
        Verb::Info(one) => {
            let open = OpenHome::open(&home).await?;
            info::info(&open, open.find(&one.agent)?, one.json).await
        }
        Verb::Prompt(one) => {
            let open = OpenHome::open(&home).await?;
            print_prompt(&open, open.find(&one.agent)?, one.json)
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

struct OpenHome {
    home: PathBuf,
    db: Db,
    checked: CheckedConfig,
    registry: Registry,
    agent_rows: AgentRows,
    /// By agent; none where memory is off.
    stats: HashMap<AgentUid, Stats>,
}

impl OpenHome {
    async fn open(home: &Home) -> Result<Self, Failure> {
        let checked = CheckedConfig::load(home, Secrets::WherePresent)?;
        let db = Db::open(&home.database()).await?;
        let (registry, agent_rows) = checked.registry(home, &db).await?;
        let stats = stats(&registry, &Memories::new(db.clone())).await?;
        Ok(OpenHome {
            home: home.path().to_owned(),
            db,
            checked,
            registry,
            agent_rows,
            stats,
        })
    }

    fn find(&self, word: &str) -> Result<&Agent, Failure> {
        find(&self.registry, word).map(Arc::as_ref)
    }

    fn memories_of(&self, agent: &Agent) -> Option<u32> {
        self.stats
            .get(&agent.uid)
            .map(|stats| stats.counts.private + stats.counts.global)
    }

    fn bindings_of(&self, agent: &Agent) -> Vec<&str> {
        let own = self
            .checked
            .config
            .bindings
            .iter()
            .filter(|binding| binding.agent.value == agent.id);
        own.map(|binding| binding.pattern.value.as_str()).collect()
    }

    fn is_bootstrapped(&self, agent: &Agent) -> bool {
        self.agent_rows
            .get(&agent.id)
            .is_some_and(|known| known.bootstrapped)
    }

    fn identity(&self, agent: &Agent) -> Identity {
        Identity::load(agent, !self.is_bootstrapped(agent))
    }
}

/// The agent with this id or name, or an error with the names of all.
pub(super) fn find<'a>(registry: &'a Registry, word: &str) -> Result<&'a Arc<Agent>, Failure> {
    registry.find(word).ok_or_else(|| {
        let ids = registry.all().iter().map(|agent| agent.id.as_str());
        Failure::WrongUse(match nearest(word, ids.clone()) {
            Some(near) => format!("no agent is called {word}. Did you mean {near}?"),
            None => format!(
                "no agent is called {word}. There are: {}",
                ids.collect::<Vec<_>>().join(", ")
            ),
        })
    })
}

/// A time in the zone of this machine.
pub(super) fn moment(millis: i64) -> String {
    let moment = DateTime::from_timestamp_millis(millis).unwrap_or_default();
    moment
        .with_timezone(&Local)
        .format("%Y-%m-%d %H:%M")
        .to_string()
}

async fn stats(
    registry: &Registry,
    memories: &Memories,
) -> Result<HashMap<AgentUid, Stats>, Failure> {
    let mut stats = HashMap::new();
    for memory in registry.all().iter().filter_map(|agent| memories.of(agent)) {
        stats.insert(memory.agent().uid, memory.stats_of_all().await?);
    }
    Ok(stats)
}

fn print_prompt(open: &OpenHome, agent: &Agent, json: bool) -> Outcome {
    let text = prompt::assemble(agent, &open.identity(agent));
    if json {
        let value =
            serde_json::json!({ "agent": agent.id.as_str(), "bytes": text.len(), "prompt": text });
        data_json(&value)?;
    } else {
        data(format_args!("{text}"));
    }
    Ok(())
}
