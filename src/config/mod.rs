//! The checked configuration: `config.toml` with every name and number checked.
//!
//! `file` reads the text, `check` turns the text into these types, `report` shows all problems at
//! once. No check stops at the first problem: a broken value is left out or gets its default, so
//! that the rest can be checked too.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;

use crate::domain::{AgentId, PersonId, Platform, Role, Zone};

mod address;
mod admin;
mod agent_table;
mod agents;
mod approvals;
mod bindings;
mod brackets;
mod check;
mod choices;
mod commented_out;
mod currency;
mod declared;
mod discord;
mod documented;
pub(crate) mod edit;
mod elsewhere;
mod file;
mod foreign_keys;
mod hooks;
mod items;
mod jobs;
mod json_schema;
mod kept_secrets;
mod known_servers;
mod limits;
mod log;
mod lookalikes;
mod memory;
mod models;
mod numbers;
mod odd_characters;
mod odd_quotes;
mod peers;
mod people;
mod personality;
mod platform;
mod prices;
mod problem_list;
mod providers;
mod proxy;
mod reader;
mod redact;
mod report;
mod route_tests;
mod schema;
mod secrets;
pub(crate) mod settings;
pub(crate) mod store;
mod synonyms;
mod syntax;
pub(crate) mod system_error;
mod tools;
mod transport;
mod twice;

#[cfg(test)]
mod tests;

pub use admin::{Admin, MetricsAccess};
pub(crate) use agent_table::{
    AgentTable, HeartbeatKeys, JobKeys, Names, SkillLists, SkillNames, WhoWords,
};
pub use approvals::{Approvals, Approver};
pub use currency::Currency;
pub use documented::{Documented, Shown};
pub use file::{LoadError, draft, load};
pub(crate) use file::{read_file, read_home};
pub use hooks::{Hook, Signature as HookSignature};
pub use jobs::{HEARTBEAT, JobPrompt, JobSpec};
pub use json_schema::json_schema_text;
pub(crate) use json_schema::{SCHEMA_FILE, is_schema_old};
pub(crate) use kept_secrets::{ENVIRONMENT_FILE, Keeper, KeptSecret, kept_secrets, sets_variable};
pub(crate) use known_servers::{ModelServer, model_servers};
pub use log::{Log, LogFile, LogFormat, LogLevel, Rotate};
pub use peers::PeerGroup;
pub use people::{GrantedPerson, People, Person, PersonLines, Who};
pub use platform::{Answers, PlatformConfig, Quote};
pub(crate) use problem_list::ListedProblem;
pub(crate) use report::Severity;
pub use report::{Fault, Problem, Report, Source};
pub(crate) use route_tests::NOBODY;
pub use route_tests::RouteTest;
pub use schema::{Absence, Key, PLACES, Shape};
pub use secrets::{Secret, Secrets};
pub(crate) use store::write_schema;
pub use tools::{
    AfterUntrusted, AgentTools, Ceilings, Risk, RiskProfile, SharedPath, Siblings, ToolLimits,
    ToolRules,
};

/// All decisions of the operator. A running gateway never changes its config.
#[derive(Debug, Clone)]
pub struct Config {
    pub default_agent: AgentId,
    /// Used by agents without a model of their own.
    pub default_model: ModelRef,
    pub group_sessions: GroupSessions,
    pub switch: Switch,
    /// Turns at once, of all agents together. None: as many as the memory has room for.
    pub max_running: Option<usize>,
    /// The money of all prices and costs.
    pub currency: Currency,
    /// The most money and tokens for all agents together: `[limits]`.
    pub budget: Budget,
    /// Absent section: Telegram is off.
    pub telegram: Option<Telegram>,
    /// Absent section: Discord is off.
    pub discord: Option<Discord>,
    pub web: WebChat,
    pub providers: BTreeMap<String, Provider>,
    pub access: Access,
    pub memory: Memory,
    pub log: Log,
    /// Absent section: no listener.
    pub admin: Option<Admin>,
    pub tools: ToolRules,
    pub approvals: Approvals,
    /// Addresses for calls of other programs, by name.
    pub hooks: BTreeMap<String, Hook>,
    /// Peer groups in file order.
    pub peer_groups: Vec<PeerGroup>,
    /// Agents in file order; `main` is always among them.
    pub agents: Vec<AgentSpec>,
    /// Bindings in file order, as written; `routing` gives them their meaning.
    pub bindings: Vec<Binding>,
    /// The `match` texts of bindings that have another problem and are not in the list above;
    /// `routing` names their problems too.
    pub matches_left_out: Vec<Spanned<String>>,
    /// Route tests in file order.
    pub route_tests: Vec<RouteTest>,
}

/// The chat in a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebChat {
    Off,
    /// `[web]` is in the file.
    Meant,
    /// On because no other platform is.
    Implied,
}

/// Whether members of a plain group talk to the bot together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GroupSessions {
    #[default]
    PerUser,
    Shared,
}

/// The conversation an agent sees in a place where several agents have answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Switch {
    /// The whole conversation.
    #[default]
    Handoff,
    /// The agent's own part of the conversation.
    Separate,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telegram {
    pub platform: PlatformConfig,
    pub transport: Transport,
    /// The address of an HTTP proxy; secret, because the address may hold a password.
    pub proxy: Option<Secret>,
    pub limits: TelegramLimits,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discord {
    pub platform: PlatformConfig,
    pub limits: DiscordLimits,
}

/// Discord's limits for a bot; 0 means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiscordLimits {
    pub per_second: u32,
    pub channel_per_second: u32,
}

/// How Telegram's messages reach us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    Polling,
    Webhook(Webhook),
}

/// The word for a transport in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransportMode {
    /// We ask, and Telegram answers when there is news.
    #[default]
    Polling,
    /// Telegram calls an address of ours.
    Webhook,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// The address for Telegram, without a slash at the end.
    pub url: String,
    /// Where the calls arrive here, in plain HTTP: a reverse proxy has the certificate.
    pub listen: SocketAddr,
}

/// Telegram's limits for a bot; 0 means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TelegramLimits {
    pub per_second: u32,
    pub chat_per_second: u32,
    pub group_per_minute: u32,
}

/// A model server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    pub kind: ProviderKind,
    /// Always ends with a slash.
    pub base_url: String,
    /// A local server may need none.
    pub api_key: Option<Secret>,
    /// The address of an HTTP proxy; secret, because the address may hold a password.
    pub proxy: Option<Secret>,
    /// Prices by the names of its models.
    pub prices: BTreeMap<String, Price>,
    /// Models for `/model`, besides the models of agents.
    pub models: Vec<String>,
    pub vision: Vision,
    /// How much its models read at once. Absent: told by the model's name.
    pub context_tokens: Option<u32>,
    /// Why the key cannot be read here: "the environment variable OPENAI_API_KEY is not set".
    pub missing_key: Option<String>,
    pub lines: ProviderLines,
}

/// Lines of config.toml that advice about a provider names, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProviderLines {
    /// The name of the section.
    pub section: Option<usize>,
    pub api_key: Option<usize>,
    pub base_url: Option<usize>,
}

/// The models of a provider that get pictures.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Vision {
    /// Models whose names are known for vision.
    #[default]
    ByName,
    All,
    None,
    These(Vec<String>),
}

/// Millionths of the money in which the prices are written.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Default,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct Money(pub u64);

/// Prices of a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Price {
    pub input: Money,
    pub output: Money,
    /// Input from the provider's cache.
    pub cached: Money,
}

/// How much an agent may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentLimits {
    /// Model calls in a turn.
    pub max_steps: u32,
    /// The longest a turn may take.
    pub max_minutes: u32,
    /// Input and output. A turn above the limit is stopped before its next model call.
    pub tokens_per_turn: Option<u64>,
    pub budget: Budget,
    /// 0 means no limit.
    pub turns_per_minute: u32,
}

/// The most that may be spent: from midnight to midnight, and in a calendar month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget {
    pub day: Caps,
    pub month: Caps,
}

/// The most tokens and the most money. Absent: no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Caps {
    pub tokens: Option<u64>,
    pub cost: Option<Money>,
}

/// Limits of a person, for all agents together. 0 means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PersonLimits {
    /// Everything the person sends to the bot: questions, commands, buttons, files.
    pub messages_per_minute: u32,
    pub turns_per_minute: u32,
    pub budget: Budget,
    /// Turns running at the same time, over all places.
    pub turns_at_once: u32,
}

/// The limits of people, by role. Owners have no limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoleLimits {
    pub guest: PersonLimits,
    /// The limits of members and admins.
    pub member: PersonLimits,
}

/// The dialect a model server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderKind {
    OpenAi,
    OpenAiResponses,
    Anthropic,
    Gemini,
    Ollama,
}

/// `provider/model`, or the built-in demo model.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum ModelRef {
    #[default]
    Demo,
    Of {
        provider: String,
        model: String,
    },
}

/// Settings of an agent's models. Absent: the provider's own defaults.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ModelSettings {
    pub temperature: Option<f64>,
    /// The longest answer.
    pub max_tokens: Option<u32>,
    pub reasoning: Option<Reasoning>,
}

/// How long a model thinks before answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reasoning {
    None,
    Low,
    Medium,
    High,
}

/// Rules about people and places: may they use the bot?
#[derive(Debug, Clone)]
pub struct Access {
    pub owners: Vec<PersonId>,
    /// The line of `owners` in config.toml, counted from 1.
    pub owners_line: Option<usize>,
    /// People with ids on several platforms, or with a role: `[people.<name>]`.
    pub people: People,
    pub dms: Dms,
    pub groups: Groups,
    pub require_mention: bool,
    /// Talk among people in open places is kept for a while, as context.
    pub observe: bool,
    pub limits: RoleLimits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dms {
    /// A new person gets a code, and an owner approves the code.
    #[default]
    Pairing,
    Open,
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Groups {
    /// Only where a binding or a pin exists.
    #[default]
    Bound,
    /// Everywhere the bot is.
    Open,
}

/// An `[agents.<id>]` table.
#[derive(Debug, Clone)]
pub struct AgentSpec {
    pub id: AgentId,
    /// Absent: the id with a capital letter.
    pub name: Option<String>,
    pub emoji: Option<String>,
    /// A kind of being, such as `hedgehog`.
    pub creature: Option<String>,
    /// The agent's manner in a few words.
    pub vibe: Option<String>,
    /// The people who may use the agent.
    pub who: Who,
    pub model: Option<ModelRef>,
    pub limits: AgentLimits,
    /// Asked in this order when the model cannot answer.
    pub fallback: Vec<ModelRef>,
    pub settings: ModelSettings,
    /// The zone of the machine, unless the table names another.
    pub zone: Zone,
    /// Allowed skills; absent is the whole pool. The room `agents` checks whether they exist.
    pub skills: Option<Vec<Spanned<String>>>,
    /// Skills withheld from the agent, also ones that do not exist yet.
    pub denied_skills: Vec<String>,
    /// The file in place of SOUL.md, seen from the agent's folder. The room `agents` checks whether
    /// the file exists.
    pub personality: Option<Spanned<String>>,
    /// Added to the prompt behind SOUL.md.
    pub system_prompt: Option<String>,
    pub memory: AgentMemory,
    pub tools: AgentTools,
    /// Jobs in file order; the heartbeat is the last.
    pub jobs: Vec<JobSpec>,
    /// Where the table's name is in the file; `None` for an agent the file does not name.
    pub span: Option<Range<usize>>,
}

/// The memory of all agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// The visibility of a memory saved without any.
    pub default_visibility: DefaultVisibility,
}

/// The readers of a memory. An agent sees memories of its own, and memories of agents in its
/// `read_memory_from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Visibility {
    /// Visible to its agent, for the person of the memory: in private chats, and where this
    /// person searches.
    Person,
    /// Visible to its agent, in the place of the memory.
    Place,
    /// Visible to its agent, for all people in all places.
    Private,
    /// Visible to every agent.
    Global,
}

/// The memories to look up before an agent answers. The default is all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecallFilter {
    /// Empty: all.
    pub visibility: Vec<Visibility>,
    /// Empty: all.
    pub kinds: Vec<MemoryKind>,
    pub max_age_days: Option<u32>,
}

/// Where a memory is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// Saved on its own.
    Memory,
    /// A memory in the notes of a day.
    Note,
    /// A memory in MEMORY.md.
    File,
}

/// The visibility of memories saved without any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DefaultVisibility {
    /// A private chat makes a memory for its person, any other place a memory for the place.
    #[default]
    Apart,
    Private,
    Global,
}

/// Whether an agent has a memory at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemorySwitch {
    #[default]
    On,
    Off,
}

/// The memory of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentMemory {
    pub switch: MemorySwitch,
    /// Memories about a message are looked up before the agent answers.
    pub recall: bool,
    /// Size of the memories in the prompt.
    pub recall_tokens: u32,
    /// Narrows the memories of a look-up.
    pub recall_filter: RecallFilter,
    /// Agents whose memories this agent sees too.
    pub read_from: Vec<AgentId>,
    /// Whether guests may learn of MEMORY.md, daily notes, private memories and USER.md.
    pub for_guests: bool,
}

/// A `[[bindings]]` table. Its `match` text is read by `routing`.
#[derive(Debug, Clone)]
pub struct Binding {
    /// Counted from 0 in the order of the file, bindings with problems included.
    pub index: usize,
    /// The line of its `match`, counted from 1.
    pub line: usize,
    pub pattern: Spanned<String>,
    pub agent: Spanned<AgentId>,
    /// `/agent` is refused here, except for owners and admins.
    pub locked: bool,
    /// Overrides `access.require_mention` where this binding decides.
    pub require_mention: Option<bool>,
    pub users: Option<Spanned<Vec<PersonId>>>,
    pub roles: Option<Spanned<Vec<u64>>>,
    /// A glob on the topic's or thread's name.
    pub name: Option<Spanned<String>>,
    /// A forum tag.
    pub tag: Option<Spanned<String>>,
}

/// A value and its place in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spanned<T> {
    pub value: T,
    pub span: Range<usize>,
}

/// The readable parts of a config, with all problems so far.
///
/// Other rooms add problems of their own (`routing` knows the meaning of a binding). Only a draft
/// without problems becomes a config.
#[derive(Debug)]
pub struct Draft {
    pub config: Config,
    pub problems: Vec<Problem>,
    /// Keys of providers that cannot be read. Parlor starts without them.
    pub warnings: Vec<Problem>,
    pub source: Source,
    /// The purpose of reading the config.
    pub purpose: Secrets,
}

impl Config {
    /// The meaning of an empty file: a single agent, the demo model, and pairing for all people.
    pub fn embedded() -> Self {
        Config {
            default_agent: AgentId::main(),
            default_model: ModelRef::default(),
            group_sessions: GroupSessions::default(),
            switch: Switch::default(),
            max_running: None,
            currency: Currency::default(),
            budget: Budget::default(),
            telegram: None,
            discord: None,
            web: WebChat::Implied,
            providers: BTreeMap::new(),
            access: Access::default(),
            memory: Memory::default(),
            log: Log::default(),
            admin: None,
            hooks: BTreeMap::new(),
            peer_groups: Vec::new(),
            tools: ToolRules::default(),
            approvals: Approvals::default(),
            agents: vec![AgentSpec::unnamed(AgentId::main())],
            bindings: Vec::new(),
            matches_left_out: Vec::new(),
            route_tests: Vec::new(),
        }
    }

    /// The price of a model, if the file has any. The demo model costs nothing.
    pub fn price(&self, model: &ModelRef) -> Option<Price> {
        price(&self.providers, model)
    }
}

/// The price of a model, if its provider's table has any.
pub fn price(providers: &BTreeMap<String, Provider>, model: &ModelRef) -> Option<Price> {
    match model {
        ModelRef::Demo => Some(Price::default()),
        ModelRef::Of { provider, model } => providers.get(provider)?.prices.get(model).copied(),
    }
}

impl Default for AgentLimits {
    fn default() -> Self {
        AgentLimits {
            max_steps: 40,
            max_minutes: 30,
            tokens_per_turn: None,
            budget: Budget::default(),
            turns_per_minute: 0,
        }
    }
}

impl Caps {
    pub fn is_any(&self) -> bool {
        self.tokens.is_some() || self.cost.is_some()
    }
}

impl Budget {
    pub fn is_any(&self) -> bool {
        self.day.is_any() || self.month.is_any()
    }

    pub fn has_cost(&self) -> bool {
        self.day.cost.is_some() || self.month.cost.is_some()
    }
}

impl PersonLimits {
    /// Whether turns are counted against the person.
    pub fn has_budget(&self) -> bool {
        self.budget.is_any() || self.turns_per_minute > 0
    }
}

impl Default for RoleLimits {
    /// Generous for honest use: a guest who asks for an hour does not notice them.
    fn default() -> Self {
        RoleLimits {
            guest: PersonLimits {
                messages_per_minute: 10,
                turns_per_minute: 6,
                budget: Budget {
                    day: Caps {
                        tokens: Some(500_000),
                        cost: None,
                    },
                    month: Caps::default(),
                },
                turns_at_once: 2,
            },
            member: PersonLimits {
                messages_per_minute: 60,
                turns_per_minute: 0,
                budget: Budget::default(),
                turns_at_once: 8,
            },
        }
    }
}

impl RoleLimits {
    pub fn of(&self, role: Role) -> PersonLimits {
        match role {
            Role::Guest => self.guest,
            Role::Member | Role::Admin => self.member,
            Role::Owner => PersonLimits::default(),
        }
    }
}

impl std::fmt::Display for Money {
    /// Rounded to four decimals, without zeros at the end beyond the second. Amounts too small for
    /// this rounding are told in full.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if (1..50).contains(&self.0) {
            return write!(f, "0.{:06}", self.0);
        }
        let rounded = self.0.saturating_add(50) / 100;
        let (whole, decimals) = (rounded / 10_000, format!("{:04}", rounded % 10_000));
        let (always, rest) = decimals.split_at(2);
        write!(f, "{whole}.{always}{}", rest.trim_end_matches('0'))
    }
}

impl Default for TelegramLimits {
    /// From <https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this>.
    fn default() -> Self {
        TelegramLimits {
            per_second: 30,
            chat_per_second: 1,
            group_per_minute: 20,
        }
    }
}

impl Default for DiscordLimits {
    /// From <https://discord.com/developers/docs/topics/rate-limits#global-rate-limit>; the limit
    /// of a channel was observed.
    fn default() -> Self {
        DiscordLimits {
            per_second: 50,
            channel_per_second: 1,
        }
    }
}

impl Default for Access {
    fn default() -> Self {
        Access {
            owners: Vec::new(),
            owners_line: None,
            people: People::default(),
            dms: Dms::default(),
            groups: Groups::default(),
            require_mention: true,
            observe: true,
            limits: RoleLimits::default(),
        }
    }
}

impl Default for AgentMemory {
    fn default() -> Self {
        AgentMemory {
            switch: MemorySwitch::On,
            recall: true,
            recall_tokens: 1000,
            recall_filter: RecallFilter::default(),
            read_from: Vec::new(),
            for_guests: true,
        }
    }
}

impl Config {
    pub fn has_platform(&self) -> bool {
        self.telegram.is_some() || self.discord.is_some()
    }

    /// The turns of a place whose prompts are kept. None without a dashboard to show them.
    pub(crate) fn prompts_kept(&self) -> u32 {
        match &self.admin {
            Some(admin) => admin.prompts_kept,
            None if self.has_web() => admin::PROMPTS_KEPT,
            None => 0,
        }
    }

    pub fn has_web(&self) -> bool {
        self.web != WebChat::Off
    }

    /// Whether people can write to the gateway from anywhere but the terminal.
    pub fn has_channel(&self) -> bool {
        self.has_platform() || self.has_web()
    }

    /// The settings of a platform; none where the platform is off, and none for the terminal and
    /// the web chat.
    pub fn platform(&self, platform: Platform) -> Option<&PlatformConfig> {
        match platform {
            Platform::Telegram => self.telegram.as_ref().map(|telegram| &telegram.platform),
            Platform::Discord => self.discord.as_ref().map(|discord| &discord.platform),
            Platform::Local | Platform::Web => None,
        }
    }
}

impl AgentSpec {
    /// An agent the file says nothing about.
    pub(crate) fn unnamed(id: AgentId) -> Self {
        AgentSpec {
            id,
            name: None,
            emoji: None,
            creature: None,
            vibe: None,
            who: Who::default(),
            model: None,
            fallback: Vec::new(),
            settings: ModelSettings::default(),
            limits: AgentLimits::default(),
            zone: Zone::default(),
            skills: None,
            denied_skills: Vec::new(),
            personality: None,
            system_prompt: None,
            memory: AgentMemory::default(),
            tools: AgentTools::default(),
            jobs: Vec::new(),
            span: None,
        }
    }
}

impl Draft {
    /// The config, if there is no problem at all.
    pub fn finish(self) -> Result<Config, Report> {
        if self.problems.is_empty() {
            Ok(self.config)
        } else {
            Err(Report {
                source: self.source,
                problems: self.problems,
                purpose: self.purpose,
            })
        }
    }
}
