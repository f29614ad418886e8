//! The agents of this home: names, models and files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::clock::now_ms;
use crate::config::{
    AfterUntrusted, AgentLimits, AgentSpec, Ceilings, Config, DefaultVisibility, MemorySwitch,
    RecallFilter, Risk, RiskProfile, ToolLimits,
};
use crate::domain::{AgentId, AgentUid, Marks, Platform, Zone, nearest};
use crate::metrics::{self, Counts};
use crate::signing::Signer;

pub mod agent_rows;
mod audience;
pub(crate) mod files;
mod folders;
mod identity;
pub mod memory;
mod model_choice;
mod scaffold;
mod sight;
pub(crate) mod skills;
mod workspace;

pub use agent_rows::{AgentRows, Former};
pub use audience::{Audience, Content, may_be_led};
pub use files::{FileView, Files, Found, Opened, PathError, RESULTS, Want, is_odd};
pub use identity::{
    FileOrigin, Identity, IdentityFile, LoadedFile, MAX_FILE_BYTES, check_personalities,
};
pub(crate) use identity::{head, read_file_of};
pub use memory::{Memories, Memory, Reader};
pub use model_choice::{AgentModels, Chosen, Source};
pub use scaffold::{ScaffoldError, Scaffolded, Team, ensure_home, write_agent, write_home};
pub(crate) use scaffold::{has_seed, is_as_shipped, is_seed, seed_agent, shipped_config};
pub use sight::{GUESTS, Sender, Sight, inbox_folder, sender_of};
pub use skills::Skills;
pub use workspace::{Entry, EntryKind, FileError, Workspace};

use files::Workspaces;

/// All agents of a config. Never changes; a new config makes a new registry.
#[derive(Debug, Clone)]
pub struct Registry {
    /// All agents, in file order.
    agents: Vec<Arc<Agent>>,
    /// Former ids of renamed agents.
    former: Vec<Former>,
}

/// A tenant of the process.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    pub id: AgentId,
    pub uid: AgentUid,
    /// The name people see.
    pub name: String,
    pub emoji: Option<String>,
    /// A kind of being, such as `hedgehog`.
    pub creature: Option<String>,
    /// The agent's manner in a few words.
    pub vibe: Option<String>,
    pub models: AgentModels,
    pub limits: AgentLimits,
    /// The time zone of notes, of times in the prompt, and of the tool `now`.
    pub zone: Zone,
    /// See [`Agent::marks`].
    pub(crate) marks: Marks,
    /// Names of allowed skills; `None` is the whole pool.
    pub skills: Option<Vec<String>>,
    /// Skills withheld from the agent, even if another list names them.
    pub denied_skills: Vec<String>,
    /// The file in place of SOUL.md, seen from the agent's folder.
    pub personality: Option<String>,
    /// The config's addition to SOUL.md.
    pub system_prompt: Option<String>,
    /// `agents/<id>` in the home folder; need not exist.
    pub folder: PathBuf,
    /// The home folder, with the inherited identity files.
    pub home: PathBuf,
    pub memory: MemoryRules,
    /// Answers in places without another agent.
    pub is_default: bool,
    /// The limits of the agent's tools.
    pub tools: ToolPolicy,
    /// The reach of the file tools.
    pub files: Files,
    /// Agents to write to and to give work.
    pub peers: Vec<Colleague>,
    /// The numbers of the agent.
    pub(crate) counts: Counts,
}

/// Another agent of a peer group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Colleague {
    pub id: AgentId,
    /// The group counts only in places of this platform.
    pub platform: Option<Platform>,
}

impl Colleague {
    /// Whether the peer may be reached from a place of this platform.
    pub fn counts_on(&self, platform: Option<Platform>) -> bool {
        self.platform.is_none() || self.platform == platform
    }
}

/// The config's limits of an agent's tools, for `tools::policy`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolPolicy {
    pub profile: Option<RiskProfile>,
    pub own: ToolLimits,
    pub max_risk: Option<Risk>,
    pub after_untrusted: AfterUntrusted,
    pub ceilings: Ceilings,
}

/// The memory settings of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryRules {
    pub is_on: bool,
    /// Size of recalled memories in a prompt; 0: no recall.
    pub recall_tokens: u32,
    /// Narrows recalled memories.
    pub recall_filter: RecallFilter,
    /// The visibility of memories saved without any.
    pub default_visibility: DefaultVisibility,
    /// Agents whose private memories this agent sees too.
    pub read_from: Vec<Peer>,
    /// Whether guests may learn of MEMORY.md, daily notes, private memories and USER.md.
    pub is_for_guests: bool,
}

/// An agent with memories for another to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    pub uid: AgentUid,
    pub folder: PathBuf,
}

impl Registry {
    /// `uids` has every agent of the config: new agents get their uid before a registry is made.
    pub fn new(config: &Config, home: &Path, uids: &HashMap<AgentId, AgentUid>) -> Self {
        let uid = |id: &AgentId| {
            *uids
                .get(id)
                .expect("the roster knows every agent of the config")
        };
        let workspaces = Workspaces::new(config, home);
        let agent = |spec: &AgentSpec| Arc::new(Agent::new(config, spec, home, uid, &workspaces));
        Registry {
            agents: config.agents.iter().map(agent).collect(),
            former: Vec::new(),
        }
    }

    /// Adds former ids of agents.
    pub fn knowing(self, former: Vec<Former>) -> Self {
        Registry { former, ..self }
    }

    pub fn get(&self, id: &AgentId) -> Option<&Arc<Agent>> {
        self.agents.iter().find(|agent| agent.id == *id)
    }

    pub fn by_uid(&self, uid: AgentUid) -> Option<&Arc<Agent>> {
        self.agents.iter().find(|agent| agent.uid == uid)
    }

    /// The agent with this id, this unique display name, or this former id. Case does not matter.
    pub fn find(&self, word: &str) -> Option<&Arc<Agent>> {
        let word = word.trim().to_lowercase();
        let by_id = self.agents.iter().find(|agent| agent.id.as_str() == word);
        by_id
            .or_else(|| self.only_one_named(&word))
            .or_else(|| self.formerly(&word))
    }

    fn formerly(&self, word: &str) -> Option<&Arc<Agent>> {
        let now = now_ms();
        let former = self
            .former
            .iter()
            .find(|former| former.id.as_str() == word && former.until > now)?;
        self.by_uid(former.uid)
    }

    /// Agents with an id or name close to an unknown word, the closest first.
    pub fn suggest(&self, word: &str) -> Vec<&Arc<Agent>> {
        const AT_MOST: usize = 3;
        let mut left: Vec<&Arc<Agent>> = self.agents.iter().collect();
        let mut suggested = Vec::new();
        while let Some(index) = closest(word, &left).filter(|_| suggested.len() < AT_MOST) {
            suggested.push(left.remove(index));
        }
        suggested
    }

    /// The agent of all places without another agent.
    pub fn default_agent(&self) -> &Arc<Agent> {
        self.agents
            .iter()
            .find(|agent| agent.is_default)
            .expect("a checked config's default agent is one of its agents")
    }

    /// All agents, in the order of the config file.
    pub fn all(&self) -> &[Arc<Agent>] {
        &self.agents
    }

    fn only_one_named(&self, lowercase_name: &str) -> Option<&Arc<Agent>> {
        let mut named = self
            .agents
            .iter()
            .filter(|agent| agent.name.to_lowercase() == lowercase_name);
        named.next().filter(|_| named.next().is_none())
    }
}

impl Agent {
    /// The marks in this agent's prompts. The secret word stays the same, so providers can cache a
    /// prompt. The word need not be hard to guess: all other texts have the word escaped.
    pub fn marks(&self) -> Marks {
        self.marks.clone()
    }

    fn new(
        config: &Config,
        spec: &AgentSpec,
        home: &Path,
        uid: impl Fn(&AgentId) -> AgentUid,
        workspaces: &Workspaces,
    ) -> Self {
        Agent {
            id: spec.id.clone(),
            uid: uid(&spec.id),
            name: shown_name(spec),
            emoji: spec.emoji.clone(),
            creature: spec.creature.clone(),
            vibe: spec.vibe.clone(),
            models: AgentModels::of(config, spec),
            limits: spec.limits,
            zone: spec.zone.clone(),
            marks: marks(uid(&spec.id), &spec.zone),
            skills: spec
                .skills
                .as_ref()
                .map(|list| list.iter().map(|entry| entry.value.clone()).collect()),
            denied_skills: spec.denied_skills.clone(),
            personality: spec.personality.as_ref().map(|path| path.value.clone()),
            system_prompt: spec.system_prompt.clone(),
            folder: folder_of(home, &spec.id),
            home: home.to_owned(),
            memory: MemoryRules::new(config, spec, home, &uid),
            is_default: spec.id == config.default_agent,
            tools: ToolPolicy::new(config, spec),
            files: workspaces.of(&spec.id, &spec.tools.access),
            peers: peers(config, &spec.id),
            counts: metrics::of_agent(uid(&spec.id), &spec.id),
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

fn marks(uid: AgentUid, zone: &Zone) -> Marks {
    let word = Signer::new(uid.0.as_bytes()).hash("marks");
    Marks::new(&word).in_zone(zone.clone())
}

impl MemoryRules {
    fn new(
        config: &Config,
        spec: &AgentSpec,
        home: &Path,
        uid: impl Fn(&AgentId) -> AgentUid,
    ) -> Self {
        let peer = |id: &AgentId| Peer {
            uid: uid(id),
            folder: folder_of(home, id),
        };
        let is_on = spec.memory.switch == MemorySwitch::On;
        MemoryRules {
            is_on,
            recall_tokens: if is_on && spec.memory.recall {
                spec.memory.recall_tokens
            } else {
                0
            },
            recall_filter: spec.memory.recall_filter.clone(),
            default_visibility: config.memory.default_visibility,
            read_from: spec.memory.read_from.iter().map(peer).collect(),
            is_for_guests: spec.memory.for_guests,
        }
    }
}

fn folder_of(home: &Path, id: &AgentId) -> PathBuf {
    home.join("agents").join(id.as_str())
}

impl ToolPolicy {
    pub(crate) fn new(config: &Config, spec: &AgentSpec) -> Self {
        let profile = spec
            .tools
            .risk_profile
            .as_ref()
            .and_then(|name| config.tools.profiles.get(name));
        ToolPolicy {
            profile: profile.cloned(),
            own: spec.tools.limits.clone(),
            max_risk: spec.tools.max_risk,
            after_untrusted: spec.tools.after_untrusted,
            ceilings: config.tools.ceilings,
        }
    }
}

/// All agents in a peer group with this agent, each once for a platform.
fn peers(config: &Config, id: &AgentId) -> Vec<Colleague> {
    let mut peers: Vec<Colleague> = Vec::new();
    for group in config
        .peer_groups
        .iter()
        .filter(|group| group.members.contains(id))
    {
        let others = group.members.iter().filter(|member| *member != id);
        for peer in others.map(|member| Colleague {
            id: member.clone(),
            platform: group.platform,
        }) {
            if !peers.contains(&peer) {
                peers.push(peer);
            }
        }
    }
    peers
}

fn closest(word: &str, agents: &[&Arc<Agent>]) -> Option<usize> {
    let known = agents
        .iter()
        .flat_map(|agent| [agent.id.as_str(), agent.name.as_str()]);
    let meant = nearest(word, known)?;
    agents
        .iter()
        .position(|agent| agent.id.as_str() == meant || agent.name == meant)
}

/// The name of an agent for people: its own, else the id with a capital letter.
pub(crate) fn shown_name(spec: &AgentSpec) -> String {
    spec.name
        .clone()
        .unwrap_or_else(|| capitalized(spec.id.as_str()))
}

fn capitalized(id: &str) -> String {
    let mut letters = id.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::config::{self, Access, GroupSessions, ModelRef};

    /// An agent of a home folder, as made by a registry.
    pub(crate) fn agent_of(home: &Path, id: &str) -> Agent {
        let config = config_with(vec![spec(id)]);
        Agent::new(
            &config,
            &config.agents[0],
            home,
            |_| AgentUid(Uuid::nil()),
            &Workspaces::new(&config, home),
        )
    }

    fn spec(id: &str) -> AgentSpec {
        AgentSpec::unnamed(AgentId::parse(id).unwrap())
    }

    fn named(id: &str, name: &str) -> AgentSpec {
        AgentSpec {
            name: Some(name.to_owned()),
            ..spec(id)
        }
    }

    fn config_with(agents: Vec<AgentSpec>) -> Config {
        Config {
            default_agent: AgentId::main(),
            default_model: ModelRef::Demo,
            group_sessions: GroupSessions::PerUser,
            switch: config::Switch::default(),
            max_running: Some(8),
            currency: config::Currency::default(),
            budget: config::Budget::default(),
            telegram: None,
            discord: None,
            web: config::WebChat::Off,
            providers: Default::default(),
            access: Access::default(),
            log: crate::config::Log::default(),
            admin: None,
            memory: config::Memory::default(),
            approvals: Default::default(),
            tools: Default::default(),
            hooks: Default::default(),
            peer_groups: Vec::new(),
            agents,
            bindings: Vec::new(),
            matches_left_out: Vec::new(),
            route_tests: Vec::new(),
        }
    }

    fn registry(agents: Vec<AgentSpec>) -> Registry {
        let config = config_with(agents);
        let uids = config
            .agents
            .iter()
            .zip(1..)
            .map(|(spec, number)| (spec.id.clone(), AgentUid(Uuid::from_u128(number))));
        Registry::new(&config, Path::new("home"), &uids.collect())
    }

    fn ids<'a>(agents: impl IntoIterator<Item = &'a Arc<Agent>>) -> Vec<&'a str> {
        agents.into_iter().map(|agent| agent.id.as_str()).collect()
    }

    /// S0.3
    #[test]
    fn an_agent_is_what_the_config_says_with_defaults_filled_in() {
        let own_model = ModelRef::Of {
            provider: "openai".into(),
            model: "gpt-5.4".into(),
        };
        let rose = AgentSpec {
            emoji: Some("🌹".into()),
            model: Some(own_model.clone()),
            ..spec("rose")
        };
        let registry = registry(vec![rose, spec("main")]);

        assert_eq!(ids(registry.all()), ["rose", "main"]);
        let [rose, main] = registry.all() else {
            panic!("two agents")
        };
        assert_eq!(
            (rose.label().as_str(), &rose.models.model, rose.is_default),
            ("🌹 Rose", &own_model, false)
        );
        assert_eq!(
            (main.label().as_str(), &main.models.model, main.is_default),
            ("Main", &ModelRef::Demo, true)
        );
        assert_eq!(rose.folder, Path::new("home").join("agents").join("rose"));
        assert_eq!(registry.by_uid(rose.uid), Some(rose));
        assert_eq!(registry.get(&main.id), Some(main));
    }

    #[test]
    fn people_find_agents_by_id_or_name_in_any_case() {
        let registry = registry(vec![
            spec("main"),
            named("night-desk", "Élodie Night"),
            named("desk", "Main"),
        ]);
        let check = |word: &str, expected: Option<&str>| {
            assert_eq!(
                registry.find(word).map(|agent| agent.id.as_str()),
                expected,
                "{word}"
            );
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
        let registry = registry(vec![
            spec("main"),
            named("editor", "Rosemary"),
            spec("rose"),
            spec("ada"),
        ]);
        assert_eq!(ids(registry.suggest("rosa")), ["rose", "editor"]);
        assert_eq!(ids(registry.suggest("xyzzy")), [] as [&str; 0]);
    }
}
