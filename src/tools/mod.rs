//! What an agent can do besides talking.

mod agent_send;
mod background;
mod files;
mod long_results;
mod memory;
mod message_send;
mod now;
pub mod policy;
mod skill;
mod spawn;
mod web;

use std::sync::Arc;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::access::Role;
use crate::agents::Agent;
use crate::domain::{AgentId, OutgoingFile, PersonId, SessionKey};
use crate::models::{ToolCall, ToolSpec};

pub use crate::config::Risk;

/// Something a model can ask for. One value serves all agents: whose files, memories or places it may touch, the scope says.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    fn spec(&self) -> ToolSpec;

    /// What it can do to the world at most.
    fn risk(&self) -> Risk;

    /// Whether the agent has use for it. One that does not fit is neither offered nor called.
    fn fits(&self, _agent: &Agent) -> bool {
        true
    }

    /// A failure is told in the outcome's text, so that the model can act on it.
    async fn call(&self, scope: &Scope, arguments: Value) -> Outcome;
}

/// On whose behalf a tool runs. A tool reaches data through the agent of its scope, never through an id that a model wrote.
#[derive(Debug, Clone)]
pub struct Scope {
    pub agent: Arc<Agent>,
    /// Where the turn was asked for.
    pub place: SessionKey,
    pub person: PersonId,
    pub role: Role,
    /// Set when another agent's turn asked for this one.
    pub parent: Option<Arc<Parent>>,
}

/// The turn that a run belongs to. What the run may do is never more than what its parent may.
#[derive(Debug, Clone)]
pub struct Parent {
    pub agent: Arc<Agent>,
    /// Where the parent was asked.
    pub place: SessionKey,
    /// The run's own name.
    pub run: String,
    pub relation: Relation,
    /// The only tools of the run, if the parent said so.
    pub tools: Option<Vec<String>>,
}

/// What a run is to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// Does a part of its parent's work, with no more rights than it.
    Subagent,
    /// Another agent that was asked, with its own tools.
    Peer,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What the model gets to read.
    pub text: String,
    /// What sessions are to do about it.
    pub effects: Vec<Effect>,
}

/// Something a tool wants done that belongs to the turn's own writing, so that it happens once: files with the turn's end, all
/// else with the call's result, which is then what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// To the place of the turn.
    SendFile(OutgoingFile),
    Spawn(Spawn),
    AskPeer(AskPeer),
    SendMessage(SendMessage),
}

/// The files that a turn sends to its place.
pub(crate) fn sent_files(effects: &[Effect]) -> impl Iterator<Item = &OutgoingFile> {
    effects.iter().filter_map(|effect| if let Effect::SendFile(file) = effect { Some(file) } else { None })
}

/// Runs a subagent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawn {
    pub agent: AgentId,
    pub task: String,
    /// The only tools it gets, as far as it may have them at all.
    pub tools: Option<Vec<String>>,
    pub then: OnFinish,
}

/// What a parent does about a run's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFinish {
    /// Waits for it: the result is the call's result.
    Wait,
    /// Goes on, and knows of it in its next turn.
    Announce,
    /// Goes on, and is woken to tell about it where it was asked.
    Report,
}

/// Asks another agent and waits for what it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskPeer {
    pub agent: AgentId,
    pub text: String,
}

/// Says something in another place of the same agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendMessage {
    /// A session key or a topic's name; whoever carries it out knows the places.
    pub place: Option<String>,
    pub text: String,
}

impl Outcome {
    pub fn say(text: impl Into<String>) -> Self {
        Outcome { text: text.into(), effects: Vec::new() }
    }

    /// Whoever carries it out says what came of it.
    fn wish(effect: Effect) -> Self {
        Outcome { text: String::new(), effects: vec![effect] }
    }
}

/// All tools there are, one of each for all agents.
#[derive(Clone)]
pub struct ToolBox {
    tools: Arc<[Arc<Entry>]>,
}

/// A tool, with what it says about itself asked only once.
struct Entry {
    spec: ToolSpec,
    risk: Risk,
    tool: Box<dyn Tool>,
}

/// The tools of one turn. What is offered is exactly what can be called.
#[derive(Clone)]
pub struct ToolView {
    tools: Arc<[Arc<Entry>]>,
    agent: Arc<Agent>,
    role: Role,
    parent: Option<Arc<Parent>>,
}

impl ToolBox {
    pub fn standard() -> Self {
        let mut tools: Vec<Box<dyn Tool>> =
            vec![Box::new(now::Now), Box::new(skill::ReadSkill), Box::new(web::WebFetch::default())];
        tools.extend(files::all());
        tools.push(Box::new(spawn::SpawnTool));
        tools.push(Box::new(agent_send::AgentSend));
        tools.push(Box::new(message_send::MessageSend));
        Self::of(tools)
    }

    pub fn of(tools: Vec<Box<dyn Tool>>) -> Self {
        let entry = |tool: Box<dyn Tool>| Arc::new(Entry { spec: tool.spec(), risk: tool.risk(), tool });
        ToolBox { tools: tools.into_iter().map(entry).collect() }
    }

    /// And these, which need what not everybody has.
    pub fn with(self, more: Vec<Box<dyn Tool>>) -> Self {
        ToolBox { tools: self.tools.iter().chain(ToolBox::of(more).tools.iter()).cloned().collect() }
    }

    /// What an agent has when somebody of this role asks.
    pub fn view(&self, agent: &Arc<Agent>, role: Role) -> ToolView {
        ToolView { tools: self.tools.clone(), agent: agent.clone(), role, parent: None }
    }

    /// Every tool's name and what it can do at most.
    pub fn names(&self) -> impl Iterator<Item = (&str, Risk)> {
        self.tools.iter().map(|entry| (entry.spec.name.as_str(), entry.risk))
    }
}

impl ToolView {
    /// The same for a run that belongs to another turn.
    pub fn within(self, parent: Option<Arc<Parent>>) -> Self {
        ToolView { parent, ..self }
    }

    pub fn specs(&self) -> Vec<ToolSpec> {
        self.offered().map(|entry| entry.spec.clone()).collect()
    }

    /// Runs the tool, or tells the model why not.
    pub async fn call(&self, scope: &Scope, call: &ToolCall) -> Outcome {
        let Some(entry) = self.fitting().find(|entry| entry.spec.name == call.name) else {
            let names: Vec<&str> = self.offered().map(|entry| entry.spec.name.as_str()).collect();
            return Outcome::say(format!("There is no tool `{}`. You have: {}.", call.name, names.join(", ")));
        };
        if let Err(refusal) = self.decide(entry) {
            tracing::info!(agent.id = %self.agent.id, tool = %call.name, "refused: {refusal}");
            return Outcome::say(format!("The tool `{}` was not run: {refusal}. Go on without it.", call.name));
        }
        // Under its own name: what a model writes instead can be anything.
        tracing::debug!(agent.id = %self.agent.id, tool = %entry.spec.name, "tool called");
        let outcome = entry.tool.call(scope, call.arguments.clone()).await;
        let can_read_files = self.offered().any(|entry| entry.spec.name == "file_read");
        Outcome { text: long_results::fit(scope, &call.name, can_read_files, outcome.text).await, ..outcome }
    }

    fn offered(&self) -> impl Iterator<Item = &Entry> {
        self.fitting().filter(|entry| self.decide(entry).is_ok())
    }

    fn fitting(&self) -> impl Iterator<Item = &Entry> {
        self.tools.iter().map(AsRef::as_ref).filter(|entry| entry.tool.fits(&self.agent))
    }

    fn decide(&self, entry: &Entry) -> Result<(), policy::Refusal> {
        policy::decide(&self.agent.tools, &entry.spec.name, entry.risk, self.role)?;
        let Some(parent) = &self.parent else { return Ok(()) };
        policy::for_run(parent, &entry.spec.name, entry.risk, self.role)
    }
}

pub use memory::tools as memory_tools;

/// Every tool with what it can do at most, for those who have no [`ToolBox`] at hand.
pub const KNOWN: &[(&str, Risk)] = &[
    ("now", Risk::Look),
    ("skill", Risk::Look),
    ("web_fetch", Risk::Reach),
    ("file_read", Risk::Look),
    ("file_write", Risk::Change),
    ("file_edit", Risk::Change),
    ("file_list", Risk::Look),
    ("file_search", Risk::Look),
    ("file_delete", Risk::Change),
    ("file_send", Risk::Reach),
    ("spawn", Risk::Change),
    ("agent_send", Risk::Reach),
    ("message_send", Risk::Reach),
    ("memory_search", Risk::Look),
    ("memory_save", Risk::Change),
    ("memory_note", Risk::Change),
    ("memory_edit", Risk::Change),
    ("transcript_search", Risk::Look),
];
/// What a model wrote for a tool; what does not fit is told to it.
fn read_arguments<A: DeserializeOwned>(arguments: Value) -> Result<A, Outcome> {
    let read = serde_json::from_value(arguments);
    read.map_err(|error| Outcome::say(format!("The arguments do not fit: {error}. Nothing was done.")))
}

/// What is told of a run's result.
pub(crate) fn bounded(mut result: String) -> String {
    if result.len() > long_results::MAX_RESULT_BYTES {
        result.truncate(result.floor_char_boundary(long_results::MAX_RESULT_BYTES));
        result.push_str("\n[cut: the result was longer]");
    }
    result
}

#[cfg(test)]
mod tests;
