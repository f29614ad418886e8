//! Agents as an operator sees them: those of the config, folders and rows without a table, and the
//! archive.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use super::agents::find_agent;
use super::named::{Moment, Named};
use super::names::Names;
use super::{Operations, Refusal};
use crate::access::Role;
use crate::agents::memory::{self, Stats};
use crate::agents::{Agent, Identity, IdentityFile, Memories, Skills, agent_rows};
use crate::config::settings::{Setting, Settings};
use crate::config::{Spanned, ToolLimits, store};
use crate::domain::{AgentId, AgentUid, SessionKey};
use crate::home::Snapshot;
use crate::records::audit::Actor;
use crate::routing::{Pin, pins};
use crate::tenants::health::Health;
use crate::tenants::{self, Origin, Site};
use crate::tools::{KNOWN, Risk, policy};

/// An agent in the list.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct AgentLine {
    pub(crate) id: String,
    /// The emoji and the name, for people.
    pub(crate) label: String,
    pub(crate) name: String,
    pub(crate) emoji: Option<String>,
    pub(crate) creature: Option<String>,
    pub(crate) vibe: Option<String>,
    pub(crate) model: Option<String>,
    /// Names of the skills that it can read.
    pub(crate) skills: Vec<String>,
    /// Bindings of the config.
    pub(crate) bindings: usize,
    /// Places that were given to it from chat.
    pub(crate) pins: usize,
    /// Saved memories; null if memory is off.
    pub(crate) memories: Option<u32>,
    /// configured, discovered (a folder alone), stored (rows alone) or archived.
    #[schema(value_type = String)]
    pub(crate) origin: Origin,
    pub(crate) default: bool,
    /// The name of the archive, for an agent that was removed.
    pub(crate) archive: Option<String>,
    /// Whether it answers, and how its last turns ended; null unless configured.
    #[schema(value_type = Option<Object>)]
    pub(crate) health: Option<Health>,
}

/// All agents.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct AgentList {
    pub(crate) default_id: String,
    pub(crate) items: Vec<AgentLine>,
}

/// An agent with its belongings.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct AgentDetails {
    #[serde(flatten)]
    pub(crate) line: AgentLine,
    pub(crate) uid: String,
    /// The text of its IDENTITY.md, own or inherited.
    pub(crate) identity: Option<String>,
    /// The text of its SOUL.md, or of the file in its place.
    pub(crate) soul: Option<String>,
    pub(crate) system_prompt: Option<String>,
    pub(crate) fallback: Vec<String>,
    pub(crate) files: Vec<FileInfo>,
    /// What its bindings match.
    pub(crate) bound: Vec<Named>,
    pub(crate) pinned: Vec<Named>,
    /// Agents that it may write to and give work.
    pub(crate) peers: Vec<String>,
    pub(crate) tools: Vec<ToolInfo>,
    /// The lists in `[agents.<id>.tools]` of config.toml.
    pub(crate) listed_tools: ListedTools,
    /// The `[risk_profiles.<name>]` that counts for it.
    pub(crate) risk_profile: Option<String>,
    /// Its own highest risk: look, change or reach.
    pub(crate) max_risk: Option<String>,
    /// Every skill of the pool and of its own, those that it cannot read too.
    pub(crate) all_skills: Vec<SkillInfo>,
    /// The names in `skills` of config.toml; null is the whole pool.
    pub(crate) listed_skills: Option<Vec<String>>,
    pub(crate) limits: Vec<LimitInfo>,
    pub(crate) memory: Option<MemoryCounts>,
}

/// An identity file.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct FileInfo {
    pub(crate) file: String,
    /// own, inherited or absent, in words.
    pub(crate) origin: String,
    pub(crate) path: String,
    pub(crate) bytes: usize,
    pub(crate) problem: Option<String>,
}

/// The tools that config.toml names in an agent's own table.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ListedTools {
    /// Null: all.
    pub(crate) allow: Option<Vec<String>>,
    pub(crate) deny: Vec<String>,
}

impl ListedTools {
    fn of(limits: &ToolLimits) -> Self {
        let names = |list: &[Spanned<String>]| {
            let names = list.iter().map(|name| name.value.clone());
            names.collect::<Vec<_>>()
        };
        ListedTools {
            allow: limits.allow.as_deref().map(names),
            deny: names(&limits.deny),
        }
    }

    /// Whether these lists let the agent use a tool. Other rules may still refuse it.
    pub(crate) fn has(&self, tool: &str) -> bool {
        let is_in = |list: &[String]| list.iter().any(|name| name == tool);
        self.allow.as_deref().is_none_or(is_in) && !is_in(&self.deny)
    }
}

/// A tool, and who may have it used.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ToolInfo {
    pub(crate) tool: String,
    pub(crate) risk: String,
    /// Roles of the people for whom the agent may use it.
    pub(crate) asked_by: Vec<String>,
    /// The rule that refuses it to everybody.
    pub(crate) refused: Option<String>,
    /// The rule by which each call needs an approval.
    pub(crate) asks: Option<String>,
    /// The rule that refuses it for people of a role.
    pub(crate) withheld: Vec<RoleRefused>,
}

/// Why people of a role cannot have a tool used.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct RoleRefused {
    pub(crate) role: String,
    pub(crate) reason: String,
}

/// A skill, and whether the agent has it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct SkillInfo {
    pub(crate) skill: String,
    /// pool or local.
    pub(crate) origin: String,
    pub(crate) readable: bool,
    /// Why it has it, or why not.
    pub(crate) reason: String,
}

/// A limit of the agent, and where it comes from.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct LimitInfo {
    /// Such as tokens_per_day.
    pub(crate) limit: String,
    /// Null: no limit.
    pub(crate) most: Option<String>,
    /// `config.toml:12`, or default.
    pub(crate) origin: String,
    /// The line in config.toml.
    pub(crate) line: Option<usize>,
}

/// Numbers of memories.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct MemoryCounts {
    pub(crate) person: u32,
    pub(crate) place: u32,
    pub(crate) private: u32,
    pub(crate) global: u32,
    pub(crate) archived: u32,
    /// The size of MEMORY.md; null if there is none.
    pub(crate) memory_file_bytes: Option<u64>,
    pub(crate) last_saved_at: Option<Moment>,
}

const ROLES: [Role; 4] = [Role::Owner, Role::Admin, Role::Member, Role::Guest];

/// What the lines of all agents are made from.
struct Looked {
    snapshot: Arc<Snapshot>,
    stats: HashMap<AgentUid, Stats>,
    pins: Vec<(SessionKey, Pin)>,
    health: Vec<Health>,
}

impl Looked {
    async fn at(operations: &Operations) -> Result<Self, Refusal> {
        let snapshot = operations.snapshot().await?;
        let memories = Memories::new(operations.db.clone());
        let mut stats = HashMap::new();
        for agent in snapshot.registry.all() {
            if let Some(memory) = memories.of(agent) {
                stats.insert(agent.uid, memory.stats_of_all().await?);
            }
        }
        let health = operations.overview(&snapshot).await?.health;
        Ok(Looked {
            pins: operations.db.read(pins::all).await?,
            stats,
            health,
            snapshot,
        })
    }

    fn bindings_of(&self, agent: &Agent) -> Vec<&str> {
        let bindings = self.snapshot.config.bindings.iter();
        let own = bindings.filter(|binding| binding.agent.value == agent.id);
        own.map(|binding| binding.pattern.value.as_str()).collect()
    }

    fn pins_of<'a>(&'a self, agent: &'a Agent) -> impl Iterator<Item = &'a SessionKey> {
        let own = self.pins.iter().filter(|(_, pin)| pin.agent == agent.id);
        own.map(|(place, _)| place)
    }

    fn line(&self, agent: &Agent) -> AgentLine {
        let stats = self.stats.get(&agent.uid);
        let skills = Skills::load(agent);
        AgentLine {
            id: agent.id.to_string(),
            label: agent.label(),
            name: agent.name.clone(),
            emoji: agent.emoji.clone(),
            creature: agent.creature.clone(),
            vibe: agent.vibe.clone(),
            model: Some(agent.models.model.to_string()),
            skills: skills.names().into_iter().map(str::to_owned).collect(),
            bindings: self.bindings_of(agent).len(),
            pins: self.pins_of(agent).count(),
            memories: stats.map(|stats| stats.counts.private + stats.counts.global),
            origin: Origin::Configured,
            default: agent.is_default,
            archive: None,
            health: self
                .health
                .iter()
                .find(|health| health.agent == agent.id)
                .cloned(),
        }
    }
}

/// All agents: those of the config, then folders without a table, then agents known to the store
/// alone, then removed agents.
pub(crate) async fn list(operations: &Operations) -> Result<AgentList, Refusal> {
    let looked = Looked::at(operations).await?;
    let config = looked.snapshot.config.clone();
    let agents = looked.snapshot.registry.all().iter();
    let mut items: Vec<AgentLine> = agents.map(|agent| looked.line(agent)).collect();
    let discovered = tenants::discovered(&config, &operations.home);
    items.extend(discovered.iter().map(|id| unknown(id, Origin::Discovered)));
    let site = Site {
        home: operations.home.clone(),
        db: operations.db.clone(),
        by: Actor::Gateway,
    };
    for (id, rows) in tenants::stored_only(&site, &config).await? {
        items.push(AgentLine {
            memories: u32::try_from(rows.memories).ok(),
            ..unknown(&id, Origin::Stored)
        });
    }
    for archive in tenants::archives(&operations.home) {
        let uid = archive.uid;
        let count = operations
            .db
            .read(move |connection| memory::count_of(connection, uid));
        items.push(AgentLine {
            memories: Some(count.await?),
            archive: Some(archive.name),
            ..unknown(&archive.id, Origin::Archived)
        });
    }
    Ok(AgentList {
        default_id: looked.snapshot.registry.default_agent().id.to_string(),
        items,
    })
}

fn unknown(id: &AgentId, origin: Origin) -> AgentLine {
    AgentLine {
        id: id.to_string(),
        label: id.to_string(),
        name: id.to_string(),
        emoji: None,
        creature: None,
        vibe: None,
        model: None,
        skills: Vec::new(),
        bindings: 0,
        pins: 0,
        memories: Some(0),
        origin,
        default: false,
        archive: None,
        health: None,
    }
}

/// One agent of the config.
pub(crate) async fn details(operations: &Operations, word: &str) -> Result<AgentDetails, Refusal> {
    let looked = Looked::at(operations).await?;
    let agent = find_agent(&looked.snapshot.registry, word)?.clone();
    let names = Names::load(&operations.db, Some(&looked.snapshot.config)).await?;
    let rows = operations.db.read(agent_rows::load).await?;
    let is_new = rows.get(&agent.id).is_none_or(|row| !row.bootstrapped);
    let (read, config) = (agent.clone(), looked.snapshot.config.clone());
    let home = operations.home.clone();
    let loaded = tokio::task::spawn_blocking(move || {
        let text = store::read(&home).unwrap_or_default();
        let limits = limits_of(&Settings::of(&config, &text, &home), &read.id);
        (
            Identity::load(&read, is_new),
            skills_of(&Skills::load(&read)),
            limits,
        )
    });
    let loaded = loaded.await;
    let (identity, all_skills, limits) =
        loaded.map_err(|error| Refusal::failed(error.to_string()))?;
    let text = |file| {
        let loaded = identity.get(file).map(|loaded| loaded.content.clone());
        loaded.filter(|text| !text.is_empty())
    };
    let named = |pattern: &str| {
        let key = pattern.parse::<SessionKey>();
        key.map_or_else(|_| Named::new(pattern, None), |key| names.place(&key))
    };
    Ok(AgentDetails {
        line: looked.line(&agent),
        uid: agent.uid.to_string(),
        identity: text(IdentityFile::Identity),
        soul: text(IdentityFile::Soul),
        system_prompt: agent.system_prompt.clone(),
        fallback: agent
            .models
            .fallback
            .iter()
            .map(ToString::to_string)
            .collect(),
        files: identity.files().iter().map(file_info).collect(),
        bound: looked.bindings_of(&agent).into_iter().map(named).collect(),
        pinned: looked.pins_of(&agent).map(|key| names.place(key)).collect(),
        peers: agent.peers.iter().map(|peer| peer.id.to_string()).collect(),
        tools: KNOWN
            .iter()
            .map(|(name, risk)| tool_info(&agent, name, *risk))
            .collect(),
        listed_tools: ListedTools::of(&agent.tools.own),
        risk_profile: agent
            .tools
            .profile
            .as_ref()
            .map(|profile| profile.name.clone()),
        max_risk: agent.tools.max_risk.map(|risk| risk.as_str().to_owned()),
        all_skills,
        listed_skills: agent.skills.clone(),
        limits,
        memory: looked.stats.get(&agent.uid).map(|stats| MemoryCounts {
            person: stats.counts.person,
            place: stats.counts.place,
            private: stats.counts.private,
            global: stats.counts.global,
            archived: stats.counts.archived,
            memory_file_bytes: stats.memory_file_bytes,
            last_saved_at: stats.counts.last_saved_at.map(Moment),
        }),
    })
}

fn file_info(loaded: &crate::agents::LoadedFile) -> FileInfo {
    FileInfo {
        file: loaded.file.name().to_owned(),
        origin: loaded.origin.to_string(),
        path: loaded.path.display().to_string(),
        bytes: loaded.content.len(),
        problem: loaded.problem.clone(),
    }
}

fn skills_of(skills: &Skills) -> Vec<SkillInfo> {
    let readable = skills.readable.iter().map(|skill| SkillInfo {
        skill: skill.name.clone(),
        origin: skill.origin.to_string(),
        readable: true,
        reason: skill.because.to_string(),
    });
    let left_out = skills.left_out.iter().map(|skill| SkillInfo {
        skill: skill.name.clone(),
        origin: skill.origin.to_string(),
        readable: false,
        reason: skill.reason.to_string(),
    });
    let mut all: Vec<SkillInfo> = readable.chain(left_out).collect();
    all.sort_by(|one, other| one.skill.cmp(&other.skill));
    all
}

fn limits_of(settings: &Settings, agent: &AgentId) -> Vec<LimitInfo> {
    let section = format!("agents.{agent}.limits");
    let found = settings.below(&section).unwrap_or_default();
    let limit = |setting: &&Setting| LimitInfo {
        limit: setting
            .key
            .rsplit('.')
            .next()
            .unwrap_or_default()
            .to_owned(),
        // 0 is no limit.
        most: setting
            .value
            .as_ref()
            .filter(|most| most.as_f64() != Some(0.0))
            .map(ToString::to_string),
        origin: setting.origin(),
        line: setting.line,
    };
    found.iter().map(limit).collect()
}

fn tool_info(agent: &Agent, name: &str, risk: Risk) -> ToolInfo {
    let may = |role: &Role| policy::for_role(agent, name, risk, *role).is_ok();
    let roles = ROLES.into_iter().filter(may);
    let withheld = ROLES.into_iter().filter_map(|role| {
        let refusal = policy::for_role(agent, name, risk, role).err()?;
        Some(RoleRefused {
            role: role.as_str().to_owned(),
            reason: refusal.to_string(),
        })
    });
    let withheld = withheld.collect();
    let refused = policy::for_agent(&agent.tools, name, risk).err();
    let asks = policy::asks(&agent.tools, name).filter(|_| refused.is_none());
    ToolInfo {
        tool: name.to_owned(),
        risk: risk.as_str().to_owned(),
        asked_by: roles.map(|role| role.as_str().to_owned()).collect(),
        refused: refused.map(|refusal| refusal.to_string()),
        asks: asks.map(|rule| rule.to_string()),
        withheld,
    }
}
