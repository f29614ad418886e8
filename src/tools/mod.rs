//! The tools of agents, and the policy about them.

mod addresses;
mod agent_send;
mod background;
mod files;
mod long_results;
mod memory;
mod message_send;
mod now;
pub(crate) mod policy;
mod reading;
mod schedule;
mod skill;
mod spawn;
mod web;

use std::sync::Arc;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::access::Role;
use crate::agents::{Agent, FileView, Reader, Sight, may_be_led};
use crate::config::People;
use crate::domain::{
    AgentId, Labels, Marked, Marks, OutgoingFile, PersonId, Said, SessionKey, Source,
};
use crate::fail_points;
use crate::models::{ToolCall, ToolSpec};
use crate::sandbox::Job;

pub use crate::config::Risk;
pub(crate) use addresses::Addresses;
pub(crate) use long_results::{Results, clear as clear_results};
pub use reading::{Reach, Reading};
pub(crate) use schedule::SCHEDULE;
pub use schedule::{NewSchedule, ScheduleWish};

/// A tool for models. A single value serves all agents: the scope says whose files, memories and
/// places a call may touch.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    fn spec(&self) -> ToolSpec;

    /// The worst effect on the world.
    fn risk(&self) -> Risk;

    /// Whether the agent has a use for the tool. Without a use, the tool is neither offered nor
    /// called.
    fn fits(&self, _agent: &Agent) -> bool {
        true
    }

    /// Why an agent without a use for the tool has none.
    fn lacks(&self) -> &'static str {
        "the agent has no use for it"
    }

    /// Whether a long result is kept for the rest of the turn. Else the model gets its beginning
    /// alone.
    fn keeps_long_results(&self) -> bool {
        true
    }

    /// Where a call with these arguments takes words. A tool that reaches out says where; unless it
    /// does, the worst is taken.
    fn reach(&self, _scope: &Scope, _arguments: &Value) -> Option<Reach> {
        (self.risk() == Risk::Reach).then_some(Reach::Elsewhere)
    }

    /// A failure is told in the outcome's text, for the model to act on.
    async fn call(&self, scope: &Scope, arguments: Value) -> Outcome;
}

/// The agent and person behind a call. A tool reaches data through the agent of its scope, never
/// through an id from a model.
#[derive(Debug, Clone)]
pub struct Scope {
    pub agent: Arc<Agent>,
    /// Where the turn was asked for.
    pub place: SessionKey,
    /// The key of the place before its group became a supergroup.
    pub former_place: Option<SessionKey>,
    /// The person, or the first of several.
    pub person: PersonId,
    /// All ids of the person; empty if several people asked.
    pub ids: Vec<PersonId>,
    /// The role with the agent.
    pub role: Role,
    /// Whether the person owns the house, and so every agent.
    pub owns_house: bool,
    /// Set when another agent's turn asked for this turn.
    pub parent: Option<Arc<Parent>>,
    /// The place that reads the answer, if it is not the place of the turn.
    pub told_in: Option<SessionKey>,
    /// No person has asked: the turn of a job.
    pub is_job: bool,
    /// The people of the config, whose numbers stand in results.
    pub people: Arc<People>,
    /// Long results of this turn.
    pub(crate) results: Arc<Results>,
    /// What the turn had read before this round of calls. Calls of a round do not know each other's
    /// results.
    pub read: Reading,
}

impl Scope {
    /// The place of the people that the turn is for: for a subagent or a peer, its parent's.
    pub fn asked_in(&self) -> &SessionKey {
        let parents = self.parent.as_ref().map(|parent| &parent.place);
        parents.or(self.told_in.as_ref()).unwrap_or(&self.place)
    }

    /// The person and place that memories are read and saved for.
    pub fn reader(&self) -> Reader {
        let place = self.asked_in();
        // The result of a subagent may be told in the turn of another person, where others write.
        let is_apart = self.parent.is_none() || place.is_private();
        let ids: &[PersonId] = if is_apart { &self.ids } else { &[] };
        Reader::new(&self.person, ids, place, self.role).having_read(self.read.labels)
    }

    /// The files of the agent, as the people of the turn may see them.
    pub fn files(&self) -> FileView {
        let place = self.asked_in();
        let of_people = || Sight::Of {
            places: std::iter::once(place)
                .chain(&self.former_place)
                .cloned()
                .collect(),
            ids: if place.is_private() {
                self.ids.clone()
            } else {
                Vec::new()
            },
        };
        // Where others read the answer, their words must not lead to files of an owner.
        let is_led = may_be_led(Some(place), self.role, self.read.labels);
        let own = if self.role == Role::Owner && !is_led {
            Sight::Everything
        } else {
            of_people()
        };
        let siblings = if self.role == Role::Owner && self.owns_house && !is_led {
            Sight::Everything
        } else {
            of_people()
        };
        FileView::new(&self.agent.files, own, siblings, self.results.folder())
            .having_read(self.read.labels | Labels::of(self.role))
    }
}

/// The parent of a subagent's or peer's turn. A subagent never has more rights than its parent.
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

/// The relation of a turn to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// Does a part of its parent's work, with at most the parent's rights.
    Subagent,
    /// Another agent that was asked, with its own tools.
    Peer,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// For the model.
    pub text: String,
    /// Where the text comes from.
    pub form: Form,
    /// Remarks of the gateway behind the text.
    pub notes: Vec<String>,
    /// Work for the rooms that run turns.
    pub effects: Vec<Effect>,
    /// Where the words of the text come from.
    pub read: Labels,
    /// Set for a call that was not run because it needs an approval first: the rule, for people.
    pub(crate) asks: Option<String>,
}

/// Where the text of a result comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// The tool's own words.
    Plain,
    /// Somebody else's.
    Of(Box<Source>),
    /// Words of several, with marks already.
    Marked,
}

/// Work of a tool within the turn's own transactions, so that a crash repeats none of it: files are
/// written with the turn's end, all else with the call's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// To the place of the turn.
    SendFile(OutgoingFile),
    Spawn(Spawn),
    AskPeer(AskPeer),
    SendMessage(SendMessage),
    Schedule(ScheduleWish),
    /// Done already: a file was written at this path, as the agent names it.
    Wrote(String),
}

impl Effect {
    /// Whether the effect belongs to the end of the turn rather than to the call's result.
    pub(crate) fn is_for_the_end(&self) -> bool {
        matches!(self, Effect::SendFile(_) | Effect::Wrote(_))
    }
}

/// Files that a turn has written, each once, in the order of the first writing.
pub(crate) fn written_files(effects: &[Effect]) -> Vec<&str> {
    let mut paths: Vec<&str> = Vec::new();
    for effect in effects {
        if let Effect::Wrote(path) = effect
            && !paths.contains(&path.as_str())
        {
            paths.push(path);
        }
    }
    paths
}

/// Files from a turn to its place.
pub(crate) fn sent_files(effects: &[Effect]) -> impl Iterator<Item = &OutgoingFile> {
    effects.iter().filter_map(|effect| {
        if let Effect::SendFile(file) = effect {
            Some(file)
        } else {
            None
        }
    })
}

/// Runs a subagent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawn {
    pub agent: AgentId,
    pub task: String,
    /// The subagent's only tools, within its agent's policy.
    pub tools: Option<Vec<String>>,
    pub then: OnFinish,
    /// A short name of the task, for the announcement of its end.
    #[serde(default)]
    pub label: Option<String>,
    /// Words to sort announcements by.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// How a parent learns of a subagent's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFinish {
    /// The parent waits: the result of the subagent is the result of the call.
    Wait,
    /// The parent goes on, and reads the result in its next turn.
    Announce,
    /// The parent goes on, and is woken to tell the result to the people in its place.
    Report,
}

/// Asks another agent and waits for the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskPeer {
    pub agent: AgentId,
    pub text: String,
}

/// Writes a message in another place of the same agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendMessage {
    /// A session key or a topic's name. `subagents` looks up the place.
    pub place: Option<String>,
    pub text: String,
}

impl Outcome {
    pub fn say(text: impl Into<String>) -> Self {
        Outcome {
            text: text.into(),
            form: Form::Plain,
            notes: Vec::new(),
            effects: Vec::new(),
            read: Labels::NONE,
            asks: None,
        }
    }

    /// A call that needs an approval first.
    fn asking(rule: &policy::Asks) -> Self {
        Outcome {
            asks: Some(rule.to_string()),
            ..Outcome::say("")
        }
    }

    /// The same with words from somewhere.
    pub fn labelled(self, read: impl Into<Labels>) -> Self {
        Outcome {
            read: self.read | read.into(),
            ..self
        }
    }

    /// Words of somebody else.
    pub fn of(source: Source, text: impl Into<String>) -> Self {
        Outcome {
            form: Form::Of(Box::new(source)),
            ..Outcome::say(text)
        }
    }

    pub fn noting(mut self, note: Option<String>) -> Self {
        self.notes.extend(note);
        self
    }

    /// Words of several.
    pub fn marked(text: Marked) -> Self {
        Outcome {
            form: Form::Marked,
            ..Outcome::say(text.into_text())
        }
    }

    /// The text as a model reads it, for the journal too.
    pub(crate) fn finished(mut self, marks: &Marks) -> Self {
        let notes = std::mem::take(&mut self.notes);
        let text = match std::mem::replace(&mut self.form, Form::Marked) {
            Form::Plain => marks.escape(&self.text).into_owned(),
            Form::Of(source) => marks.mark(&Said::new(*source, std::mem::take(&mut self.text))),
            Form::Marked => std::mem::take(&mut self.text),
        };
        let notes = notes
            .into_iter()
            .map(|note| marks.mark(&Said::gateway(note)));
        let all: Vec<String> = Some(text)
            .filter(|text| !text.is_empty())
            .into_iter()
            .chain(notes)
            .collect();
        self.text = all.join("\n\n");
        self
    }

    /// The same with a file that was written.
    pub(crate) fn wrote(mut self, path: String) -> Self {
        self.effects.push(Effect::Wrote(path));
        self
    }

    /// An outcome without a text: the effect's result becomes the text.
    fn wish(effect: Effect) -> Self {
        Outcome {
            effects: vec![effect],
            ..Outcome::say("")
        }
    }
}

impl From<String> for Outcome {
    fn from(text: String) -> Self {
        Outcome::say(text)
    }
}

/// All tools, each shared by all agents.
#[derive(Clone)]
pub struct ToolBox {
    tools: Arc<[Arc<Entry>]>,
}

/// A tool with its spec, which is made once.
struct Entry {
    spec: Arc<ToolSpec>,
    risk: Risk,
    tool: Box<dyn Tool>,
}

/// Whether a person has allowed exactly this call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Consent {
    Wanted,
    Given,
}

/// Why a turn does not have a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Withheld {
    /// The agent has no use for it, for this reason.
    NoUse(&'static str),
    Refused(policy::Refusal),
}

/// The tools of a turn. The model is offered exactly the tools it can call.
#[derive(Clone)]
pub struct ToolView {
    tools: Arc<[Arc<Entry>]>,
    agent: Arc<Agent>,
    role: Role,
    parent: Option<Arc<Parent>>,
    is_job: bool,
}

impl ToolBox {
    pub fn standard() -> Self {
        let mut tools: Vec<Box<dyn Tool>> = vec![
            Box::new(now::Now),
            Box::new(skill::ReadSkill),
            Box::new(web::WebFetch::default()),
        ];
        tools.extend(files::all());
        tools.push(Box::new(spawn::SpawnTool));
        tools.push(Box::new(agent_send::AgentSend));
        tools.push(Box::new(message_send::MessageSend));
        tools.push(Box::new(schedule::Schedule));
        Self::of(tools)
    }

    pub fn of(tools: Vec<Box<dyn Tool>>) -> Self {
        let entry = |tool: Box<dyn Tool>| {
            Arc::new(Entry {
                spec: Arc::new(tool.spec()),
                risk: tool.risk(),
                tool,
            })
        };
        ToolBox {
            tools: tools.into_iter().map(entry).collect(),
        }
    }

    /// Adds tools with needs of their own, such as a store.
    pub fn with(self, more: Vec<Box<dyn Tool>>) -> Self {
        ToolBox {
            tools: self
                .tools
                .iter()
                .chain(ToolBox::of(more).tools.iter())
                .cloned()
                .collect(),
        }
    }

    /// The tools of an agent for a person of this role.
    pub fn view(&self, agent: &Arc<Agent>, role: Role) -> ToolView {
        ToolView {
            tools: self.tools.clone(),
            agent: agent.clone(),
            role,
            parent: None,
            is_job: false,
        }
    }

    /// Names of all tools with their risks.
    pub fn names(&self) -> impl Iterator<Item = (&str, Risk)> {
        self.tools
            .iter()
            .map(|entry| (entry.spec.name.as_str(), entry.risk))
    }
}

impl ToolView {
    /// The same for a turn of a subagent or a peer.
    pub fn within(self, parent: Option<Arc<Parent>>) -> Self {
        ToolView { parent, ..self }
    }

    /// The same for the turn of a job.
    pub fn of_job(self, is_job: bool) -> Self {
        ToolView { is_job, ..self }
    }

    pub fn specs(&self) -> Vec<Arc<ToolSpec>> {
        self.offered().map(|entry| entry.spec.clone()).collect()
    }

    /// Runs the tool, or tells the model why not.
    pub async fn call(&self, scope: &Scope, call: &ToolCall) -> Outcome {
        self.call_with(scope, call, Consent::Wanted).await
    }

    /// The same for a call that a person has allowed. All other rules count as they are now.
    pub(crate) async fn call_allowed(&self, scope: &Scope, call: &ToolCall) -> Outcome {
        self.call_with(scope, call, Consent::Given).await
    }

    async fn call_with(&self, scope: &Scope, call: &ToolCall, consent: Consent) -> Outcome {
        let Some(entry) = self.fitting().find(|entry| entry.spec.name == call.name) else {
            let names: Vec<&str> = self
                .offered()
                .map(|entry| entry.spec.name.as_str())
                .collect();
            return Outcome::say(format!(
                "There is no tool `{}`. You have: {}.",
                call.name,
                names.join(", ")
            ));
        };
        if let Err(refusal) = self.decide(entry) {
            tracing::info!(agent.id = %self.agent.id, tool = %call.name, "refused: {refusal}");
            return Outcome::say(format!(
                "The tool `{}` was not run: {refusal}. Go on without it.",
                call.name
            ));
        }
        let reach = entry.tool.reach(scope, &call.arguments);
        let asks = match self.decide_reach(scope, reach, &entry.spec.name) {
            Ok(asks) => asks,
            Err(refusal) => {
                tracing::info!(agent.id = %self.agent.id, tool = %entry.spec.name, turn.read = %scope.read.labels, "refused: it reaches out after untrusted words");
                return Outcome::say(format!(
                    "The tool `{}` was not run: {refusal}. Go on without it, and tell the person if that matters.",
                    call.name
                ));
            }
        };
        if text_bytes(&call.arguments) > MAX_ARGUMENT_BYTES {
            return Outcome::say(format!(
                "The tool `{}` was not run: its arguments have more than {} MB. Call it with less.",
                call.name,
                MAX_ARGUMENT_BYTES / (1024 * 1024)
            ));
        }
        let asks = self.asks(&entry.spec.name).or(asks);
        if let Some(rule) = asks.filter(|_| consent == Consent::Wanted) {
            return Outcome::asking(&rule);
        }
        // The refusal names the tool as the registry does: a name from a model can be any text.
        tracing::debug!(agent.id = %self.agent.id, tool = %entry.spec.name, "tool called");
        let passing = fail_points::calls(fail_points::Call::Tool);
        let outcome = entry.tool.call(scope, call.arguments.clone()).await;
        passing.ended();
        let is_kept = entry.tool.keeps_long_results()
            && self.offered().any(|entry| entry.spec.name == "file_read");
        let outcome = long_results::fit(scope, &entry.spec.name, is_kept, outcome).await;
        outcome.finished(&self.agent.marks())
    }

    /// The rule by which each call of a tool needs an approval, if there is one.
    pub(crate) fn asks(&self, tool: &str) -> Option<policy::Asks> {
        let parents = self.parent.as_ref();
        policy::asks(&self.agent.tools, tool).or_else(|| policy::parent_asks(parents?, tool))
    }

    /// Every tool with its risk, and the rule that takes it away.
    pub(crate) fn ruled(&self) -> impl Iterator<Item = (&str, Risk, Option<Withheld>)> {
        self.tools.iter().map(|entry| {
            let withheld = if entry.tool.fits(&self.agent) {
                self.decide(entry).err().map(Withheld::Refused)
            } else {
                Some(Withheld::NoUse(entry.tool.lacks()))
            };
            (entry.spec.name.as_str(), entry.risk, withheld)
        })
    }

    fn offered(&self) -> impl Iterator<Item = &Entry> {
        self.fitting().filter(|entry| self.decide(entry).is_ok())
    }

    fn fitting(&self) -> impl Iterator<Item = &Entry> {
        self.tools
            .iter()
            .map(AsRef::as_ref)
            .filter(|entry| entry.tool.fits(&self.agent))
    }

    fn decide(&self, entry: &Entry) -> Result<(), policy::Refusal> {
        policy::for_role(&self.agent, &entry.spec.name, entry.risk, self.role)?;
        if self.is_job && entry.spec.name == SCHEDULE {
            return Err(policy::Refusal::ByJob);
        }
        let Some(parent) = &self.parent else {
            return Ok(());
        };
        policy::for_run(parent, &entry.spec.name, entry.risk, self.role)
    }

    /// Decides about a call that takes words elsewhere, by what the turn has read. The tool stays
    /// in the list, because the arguments decide too.
    fn decide_reach(
        &self,
        scope: &Scope,
        reach: Option<Reach>,
        tool: &str,
    ) -> Result<Option<policy::Asks>, policy::Refusal> {
        let Some(reach) = reach else { return Ok(None) };
        let parents = self.parent.as_ref().map(|parent| &parent.agent);
        let rules = std::iter::once(&self.agent).chain(parents);
        let strictest = rules.map(|agent| agent.tools.after_untrusted).max();
        let rule = strictest.unwrap_or_default();
        let asks = match policy::after_reading(rule, &scope.read, self.role, reach)? {
            policy::Reached::Trusted => return Ok(None),
            policy::Reached::Untrusted => None,
            policy::Reached::Asks(asks) => Some(asks),
        };
        tracing::info!(agent.id = %self.agent.id, %tool, turn.read = %scope.read.labels, "reaches out after untrusted words");
        Ok(asks)
    }
}

pub use memory::tools as memory_tools;

/// The work that tools leave to a child process.
pub(crate) fn jobs() -> [&'static Job; 2] {
    [&files::SEARCH, &web::PAGE]
}

/// Names and risks of all tools, for code without a [`ToolBox`].
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
    ("schedule", Risk::Change),
    ("memory_search", Risk::Look),
    ("memory_save", Risk::Change),
    ("memory_note", Risk::Change),
    ("memory_edit", Risk::Change),
    ("transcript_search", Risk::Look),
];

/// The tool that reaches the people of the turn's own place.
pub(crate) const FILE_SEND: &str = "file_send";

/// Bytes of a call's arguments. Adapters of remote models have a lower limit for all calls of an
/// answer.
const MAX_ARGUMENT_BYTES: usize = 2 * 1024 * 1024;

/// The texts of a JSON value, and a byte for each value.
fn text_bytes(value: &Value) -> usize {
    1 + match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(text_bytes).sum(),
        Value::Object(values) => values
            .iter()
            .map(|(key, value)| key.len() + text_bytes(value))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Reads a model's arguments for a tool. The error is a sentence for the model.
fn read_arguments<A: DeserializeOwned>(arguments: Value) -> Result<A, Outcome> {
    let read = serde_json::from_value(arguments);
    read.map_err(|error| {
        Outcome::say(format!(
            "The arguments do not fit: {error}. Nothing was done."
        ))
    })
}

/// The result of a subagent, not longer than a model reads.
pub(crate) fn bounded(mut result: Outcome) -> Outcome {
    if result.text.len() > long_results::MAX_RESULT_BYTES {
        let end = result
            .text
            .floor_char_boundary(long_results::MAX_RESULT_BYTES);
        result.text.truncate(end);
        result.notes.push("cut: the result was longer".to_owned());
    }
    result
}

#[cfg(test)]
mod tests;
