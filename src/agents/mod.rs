//! The agents of this house: who they are called, what answers for them and where their files are.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::{AgentSpec, Ceilings, Config, ModelRef, RiskProfile, ToolLimits};
use crate::domain::{AgentId, AgentUid, Platform, nearest};

mod files;
mod identity;
pub mod roster;
mod scaffold;
mod workspace;

pub use files::{Files, Found, Opened, PathError, Want};
pub(crate) use identity::head;
pub use identity::{FileOrigin, Identity, IdentityFile, LoadedFile, MAX_FILE_BYTES};
pub use roster::Roster;
pub use scaffold::{ScaffoldError, Scaffolded, ensure_home, write_home};
pub use workspace::{Entry, EntryKind, FileError, Workspace};

use files::Workspaces;

/// All agents of one config. Never changes; a new config makes a new one.
#[derive(Debug, Clone)]
pub struct Registry {
    /// In file order.
    agents: Vec<Arc<Agent>>,
}

/// A tenant of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    pub id: AgentId,
    pub uid: AgentUid,
    /// The name people see.
    pub name: String,
    pub emoji: Option<String>,
    /// Its own, else the config's default.
    pub model: ModelRef,
    /// `agents/<id>` in the home folder; it need not exist.
    pub folder: PathBuf,
    /// The home folder, whose identity files it inherits.
    pub home: PathBuf,
    /// Answers where nothing else is said.
    pub is_default: bool,
    /// Which tools it may be given.
    pub tools: ToolPolicy,
    /// What the file tools reach.
    pub files: Files,
    /// Whom it may write to and give work.
    pub peers: Vec<Peer>,
}

/// Another agent of a peer group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    pub id: AgentId,
    /// The group counts only in places of this platform.
    pub platform: Option<Platform>,
}

impl Peer {
    /// Whether it may be reached from a place of this platform.
    pub fn counts_on(&self, platform: Option<Platform>) -> bool {
        self.platform.is_none() || self.platform == platform
    }
}

/// Everything in the config that limits an agent's tools. `tools::policy` decides by it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolPolicy {
    pub profile: Option<RiskProfile>,
    pub own: ToolLimits,
    pub ceilings: Ceilings,
}

impl Registry {
    /// `uids` holds one for every agent of the config: the roster hands them out before a registry is made.
    pub fn new(config: &Config, home: &Path, uids: &HashMap<AgentId, AgentUid>) -> Self {
        let uid = |id: &AgentId| *uids.get(id).expect("the roster knows every agent of the config");
        let workspaces = Workspaces::new(config, home);
        let agent = |spec: &AgentSpec| Arc::new(Agent::new(config, spec, home, uid(&spec.id), &workspaces));
        Registry { agents: config.agents.iter().map(agent).collect() }
    }

    pub fn get(&self, id: &AgentId) -> Option<&Arc<Agent>> {
        self.agents.iter().find(|agent| agent.id == *id)
    }

    pub fn by_uid(&self, uid: AgentUid) -> Option<&Arc<Agent>> {
        self.agents.iter().find(|agent| agent.uid == uid)
    }

    /// The agent a person means by this word: an id, or a display name that only one agent has. Case does not matter.
    pub fn find(&self, word: &str) -> Option<&Arc<Agent>> {
        let word = word.trim().to_lowercase();
        self.agents.iter().find(|agent| agent.id.as_str() == word).or_else(|| self.only_one_named(&word))
    }

    /// Agents whose id or name is close to a word that `find` did not know, the closest first.
    pub fn suggest(&self, word: &str) -> Vec<&Arc<Agent>> {
        const AT_MOST: usize = 3;
        let mut left: Vec<&Arc<Agent>> = self.agents.iter().collect();
        let mut suggested = Vec::new();
        while let Some(index) = closest(word, &left).filter(|_| suggested.len() < AT_MOST) {
            suggested.push(left.remove(index));
        }
        suggested
    }

    /// Answers where nothing else is said.
    pub fn default_agent(&self) -> &Arc<Agent> {
        self.agents.iter().find(|agent| agent.is_default).expect("a checked config's default agent is one of its agents")
    }

    /// In the order of the config file.
    pub fn all(&self) -> &[Arc<Agent>] {
        &self.agents
    }

    fn only_one_named(&self, lowercase_name: &str) -> Option<&Arc<Agent>> {
        let mut named = self.agents.iter().filter(|agent| agent.name.to_lowercase() == lowercase_name);
        named.next().filter(|_| named.next().is_none())
    }
}

impl Agent {
    fn new(config: &Config, spec: &AgentSpec, home: &Path, uid: AgentUid, workspaces: &Workspaces) -> Self {
        Agent {
            id: spec.id.clone(),
            uid,
            name: spec.name.clone().unwrap_or_else(|| capitalized(spec.id.as_str())),
            emoji: spec.emoji.clone(),
            model: spec.model.clone().unwrap_or_else(|| config.default_model.clone()),
            folder: home.join("agents").join(spec.id.as_str()),
            home: home.to_owned(),
            is_default: spec.id == config.default_agent,
            tools: ToolPolicy::new(config, spec),
            files: workspaces.of(&spec.id, &spec.tools.access),
            peers: peers(config, &spec.id),
        }
    }

    /// How the agent is shown in chat: `🌹 Rose`.
    pub fn label(&self) -> String {
        match &self.emoji {
            Some(emoji) => format!("{emoji} {}", self.name),
            None => self.name.clone(),
        }
    }
}

impl ToolPolicy {
    fn new(config: &Config, spec: &AgentSpec) -> Self {
        let profile = spec.tools.risk_profile.as_ref().and_then(|name| config.tools.profiles.get(name));
        ToolPolicy { profile: profile.cloned(), own: spec.tools.limits.clone(), ceilings: config.tools.ceilings }
    }
}

/// Everybody who is in a peer group with this agent, each once for a platform.
fn peers(config: &Config, id: &AgentId) -> Vec<Peer> {
    let mut peers: Vec<Peer> = Vec::new();
    for group in config.peer_groups.iter().filter(|group| group.members.contains(id)) {
        let others = group.members.iter().filter(|member| *member != id);
        for peer in others.map(|member| Peer { id: member.clone(), platform: group.platform }) {
            if !peers.contains(&peer) {
                peers.push(peer);
            }
        }
    }
    peers
}

fn closest(word: &str, agents: &[&Arc<Agent>]) -> Option<usize> {
    let known = agents.iter().flat_map(|agent| [agent.id.as_str(), agent.name.as_str()]);
    let meant = nearest(word, known)?;
    agents.iter().position(|agent| agent.id.as_str() == meant || agent.name == meant)
}

fn capitalized(id: &str) -> String {
    let mut letters = id.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::config::{Access, Dms, GroupSessions, Groups};

    /// An agent of a home folder, as a registry would make it.
    pub(crate) fn agent_of(home: &Path, id: &str) -> Agent {
        let config = config_with(vec![spec(id)]);
        Agent::new(&config, &config.agents[0], home, AgentUid(Uuid::nil()), &Workspaces::new(&config, home))
    }

    fn spec(id: &str) -> AgentSpec {
        AgentSpec { id: AgentId::parse(id).unwrap(), name: None, emoji: None, model: None, tools: Default::default(), span: None }
    }

    fn named(id: &str, name: &str) -> AgentSpec {
        AgentSpec { name: Some(name.to_owned()), ..spec(id) }
    }

    fn config_with(agents: Vec<AgentSpec>) -> Config {
        Config {
            default_agent: AgentId::main(),
            default_model: ModelRef::Offline,
            group_sessions: GroupSessions::PerUser,
            telegram: None,
            providers: Default::default(),
            access: Access { owners: Vec::new(), dms: Dms::Pairing, groups: Groups::Bound, require_mention: true, observe: true },
            tools: Default::default(),
            peer_groups: Vec::new(),
            agents,
            bindings: Vec::new(),
        }
    }

    fn registry(agents: Vec<AgentSpec>) -> Registry {
        let config = config_with(agents);
        let uids = config.agents.iter().zip(1..).map(|(spec, number)| (spec.id.clone(), AgentUid(Uuid::from_u128(number))));
        Registry::new(&config, Path::new("home"), &uids.collect())
    }

    fn ids<'a>(agents: impl IntoIterator<Item = &'a Arc<Agent>>) -> Vec<&'a str> {
        agents.into_iter().map(|agent| agent.id.as_str()).collect()
    }

    /// S0.3
    #[test]
    fn an_agent_is_what_the_config_says_with_defaults_filled_in() {
        let own_model = ModelRef::Of { provider: "openai".into(), model: "gpt-5.4".into() };
        let rose = AgentSpec { emoji: Some("🌹".into()), model: Some(own_model.clone()), ..spec("rose") };
        let registry = registry(vec![rose, spec("main")]);

        assert_eq!(ids(registry.all()), ["rose", "main"]);
        let [rose, main] = registry.all() else { panic!("two agents") };
        assert_eq!((rose.label().as_str(), &rose.model, rose.is_default), ("🌹 Rose", &own_model, false));
        assert_eq!((main.label().as_str(), &main.model, main.is_default), ("Main", &ModelRef::Offline, true));
        assert_eq!(rose.folder, Path::new("home").join("agents").join("rose"));
        assert_eq!(registry.by_uid(rose.uid), Some(rose));
        assert_eq!(registry.get(&main.id), Some(main));
    }

    #[test]
    fn people_find_agents_by_id_or_name_in_any_case() {
        let registry = registry(vec![spec("main"), named("night-desk", "Élodie Night"), named("desk", "Main")]);
        let check = |word: &str, expected: Option<&str>| {
            assert_eq!(registry.find(word).map(|agent| agent.id.as_str()), expected, "{word}");
        };
        check("night-desk", Some("night-desk"));
        check("NIGHT-Desk", Some("night-desk"));
        check(" élodie night ", Some("night-desk"));
        check("ÉLODIE NIGHT", Some("night-desk"));
        check("main", Some("main"));
        check("night", None);
        check("", None);
    }

    #[test]
    fn a_name_two_agents_share_finds_neither() {
        let registry = registry(vec![named("ada", "Twin"), named("rose", "Twin")]);
        assert_eq!(registry.find("twin"), None);
        assert_eq!(ids(registry.suggest("twin")).len(), 2);
    }

    #[test]
    fn a_misspelled_word_suggests_the_nearest_agents_first() {
        let registry = registry(vec![spec("main"), named("editor", "Rosemary"), spec("rose"), spec("ada")]);
        assert_eq!(ids(registry.suggest("rosa")), ["rose", "editor"]);
        assert_eq!(ids(registry.suggest("xyzzy")), [] as [&str; 0]);
    }
}
