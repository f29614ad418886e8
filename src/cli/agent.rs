//! `parlor agent …`: looks at agents, their files and their prompts, and leads to the verbs of
//! `changing`.

mod agents_md;
mod asking;
mod changing;
mod importing;
mod info;
mod listing;
mod steering;
mod texts;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};

use super::json::Named;
use super::names::Names;
use super::{Failure, Outcome, data, data_json, database, running_config};
use crate::agents::memory::Stats;
use crate::agents::{Agent, AgentRows, Identity, Memories, Registry};
use crate::clock::now_ms;
use crate::domain::{AgentUid, SessionKey, nearest};
use crate::home::{CheckedConfig, Home};
use crate::routing::{Pin, pins};
use crate::storage::Db;
use crate::tenants::Steering;
use crate::tenants::health::{self, Health, Patient};
use crate::turn::prompt::{self, Audience};

/// Without a verb, agents are listed.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Print the result as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// List agents, including archived ones and folders not in the config
    #[command(visible_alias = "ls")]
    List,
    /// Show an agent's state, model, files, skills, tools and places
    #[command(visible_alias = "show")]
    Info {
        /// Id or name of the agent
        agent: String,
    },
    /// Print the exact system prompt of an agent, as in a private chat
    Prompt {
        /// Id or name of the agent
        agent: String,
    },
    /// Print or write an agent's identity as one AGENTS.md, for other programs
    AgentsMd(agents_md::AgentsMd),
    /// Add an agent to config.toml, with files to begin with
    #[command(visible_aliases = ["new", "create"])]
    Add(asking::Add),
    /// Add an agent whose folder is there, but not its table in config.toml
    Adopt {
        /// Id of the agent, as `agent list` shows it
        id: String,
    },
    /// Copy an agent's settings, identity files and skills, but no memories
    #[command(visible_alias = "cp")]
    Clone {
        /// Id or name of the agent to copy
        agent: String,
        /// Id of the new agent: a-z, 0-9 and hyphens
        id: String,
    },
    /// Change an agent's id; history, memories, pins and bindings stay
    #[command(visible_alias = "mv")]
    Rename {
        /// Id or name of the agent now
        agent: String,
        /// The new id: a-z, 0-9 and hyphens
        id: String,
    },
    /// Choose the agent that answers where no binding decides
    Default {
        /// Id or name of the agent
        agent: String,
    },
    /// Archive an agent with its files and memories; `restore` undoes it
    #[command(visible_alias = "rm")]
    Remove {
        /// Id or name of the agent
        agent: String,
    },
    /// Hold an agent: messages for it are kept until `resume`
    Pause {
        /// Id or name of the agent
        agent: String,
    },
    /// Let a paused agent answer again
    Resume {
        /// Id or name of the agent
        agent: String,
    },
    /// Begin an agent's turns again, and forget that it failed
    Restart {
        /// Id or name of the agent
        agent: String,
    },
    /// Begin a fresh conversation in all places of an agent
    Reset(steering::Reset),
    /// Bring an archived agent back
    Restore(changing::Restore),
    /// Delete an agent for good: files, memories and messages
    Purge(changing::Purge),
    /// Look at archived agents
    #[command(subcommand)]
    Archive(changing::ArchiveVerb),
    /// Write an agent with files, memories and conversations into one file
    Export(changing::Export),
    /// Add an agent from a file that `agent export` wrote
    Import(changing::Import),
}

pub(super) async fn run(home: Home, Arguments { verb, json }: Arguments) -> Outcome {
    let changes = changing::Changes { home: &home, json };
    match verb.unwrap_or(Verb::List) {
        Verb::List => listing::list(&OpenHome::open(&home).await?, json).await,
        Verb::Info { agent } => {
            let open = OpenHome::open(&home).await?;
            info::info(&open, open.find(&agent)?, json).await
        }
        Verb::Prompt { agent } => {
            let open = OpenHome::open(&home).await?;
            print_prompt(&open, open.find(&agent)?, json)
        }
        Verb::AgentsMd(arguments) => {
            let open = OpenHome::open(&home).await?;
            let agent = open.find(&arguments.agent)?;
            agents_md::run(&arguments, agent, &open.identity(agent), json)
        }
        Verb::Add(arguments) => changes.add(arguments).await,
        Verb::Adopt { id } => changes.adopt(&id).await,
        Verb::Clone { agent, id } => changes.clone(&agent, &id).await,
        Verb::Rename { agent, id } => changes.rename(&agent, &id).await,
        Verb::Default { agent } => changes.default(&agent).await,
        Verb::Remove { agent } => changes.remove(&agent).await,
        Verb::Pause { agent } => steering::run(&home, &agent, Steering::Pause, json).await,
        Verb::Resume { agent } => steering::run(&home, &agent, Steering::Resume, json).await,
        Verb::Restart { agent } => steering::run(&home, &agent, Steering::Restart, json).await,
        Verb::Reset(arguments) => steering::reset(&home, &arguments, json).await,
        Verb::Restore(arguments) => changes.restore(arguments).await,
        Verb::Purge(arguments) => changes.purge(arguments).await,
        Verb::Archive(verb) => changes.archives(verb).await,
        Verb::Export(arguments) => changes.export(arguments).await,
        Verb::Import(arguments) => changes.import(arguments).await,
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
    /// Lasting pins of all agents.
    pins: Vec<(SessionKey, Pin)>,
    /// In the order of the registry.
    health: Vec<Health>,
}

impl OpenHome {
    async fn open(home: &Home) -> Result<Self, Failure> {
        let checked = running_config::checked(home).await?;
        let db = database::open(&home.database()).await?;
        let (registry, agent_rows) = checked.registry(home, &db).await?;
        let stats = stats(&registry, &Memories::new(db.clone())).await?;
        let pins = db.read(pins::all).await?;
        let health = health(&registry, &checked, &db).await?;
        Ok(OpenHome {
            home: home.path().to_owned(),
            db,
            checked,
            registry,
            agent_rows,
            stats,
            pins,
            health,
        })
    }

    async fn names(&self) -> Result<Names, Failure> {
        Ok(Names::load(&self.db, Some(&self.checked.config)).await?)
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

    fn pins_of<'a>(&'a self, agent: &'a Agent) -> impl Iterator<Item = &'a (SessionKey, Pin)> {
        self.pins.iter().filter(|(_, pin)| pin.agent == agent.id)
    }

    fn health_of(&self, agent: &Agent) -> Option<&Health> {
        self.health.iter().find(|health| health.agent == agent.id)
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

/// No turn is under way here: only a running gateway knows its turns.
async fn health(
    registry: &Registry,
    checked: &CheckedConfig,
    db: &Db,
) -> Result<Vec<Health>, Failure> {
    let agents = registry.all().iter();
    let agents: Vec<Patient> = agents.map(|agent| Patient::of(agent, None)).collect();
    let table = checked.table.clone();
    let read = move |connection: &rusqlite::Connection| {
        health::of(connection, &agents, &table, &HashMap::new(), now_ms())
    };
    Ok(db.read(read).await?)
}

/// An agent for JSON.
pub(super) fn named(agent: &Agent) -> Named {
    Named::new(&agent.id, Some(&agent.name))
}

/// The agent with this id or name, or an error with the names of all.
pub(super) fn find<'a>(registry: &'a Registry, word: &str) -> Result<&'a Arc<Agent>, Failure> {
    registry.find(word).ok_or_else(|| {
        let ids = registry.all().iter().map(|agent| agent.id.as_str());
        Failure::WrongUse(match nearest(word, ids.clone()) {
            Some(near) => format!("no agent is called {word}. Did you mean {near}?"),
            None => format!(
                "no agent is called {word}. The agents are: {}",
                ids.collect::<Vec<_>>().join(", ")
            ),
        })
    })
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
    let text = prompt::assemble(agent, &open.identity(agent), Audience::Private);
    if json {
        let value =
            serde_json::json!({ "agent": named(agent), "bytes": text.len(), "prompt": text });
        data_json(&value)?;
    } else {
        data(format_args!("{text}"));
    }
    Ok(())
}
