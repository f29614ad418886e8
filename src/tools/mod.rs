//! What an agent can do besides talking.

mod now;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::access::Standing;
use crate::agents::Agent;
use crate::domain::{PersonId, SessionKey};
use crate::models::{ToolCall, ToolSpec};

/// Something a model can ask for. One value serves all agents: whose files, memories or places it may touch, the scope says.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    fn spec(&self) -> ToolSpec;

    /// What it can do to the world at most.
    fn risk(&self) -> Risk;

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
    pub standing: Standing,
}

/// Kinds of tools, the harmless first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Risk {
    /// Only looks at what is the agent's own.
    Look,
    /// Changes what is the agent's own.
    Change,
    /// Reaches other people, other agents or the network.
    Reach,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What the model gets to read.
    pub text: String,
}

impl Outcome {
    pub fn say(text: impl Into<String>) -> Self {
        Outcome { text: text.into() }
    }
}

/// The tools of one turn. What is offered is exactly what can be called.
#[derive(Clone)]
pub struct ToolBox {
    tools: Arc<[Arc<dyn Tool>]>,
}

impl ToolBox {
    pub fn standard() -> Self {
        ToolBox::of(vec![Arc::new(now::Now)])
    }

    /// With one more, which stands where it knows what it needs.
    pub fn and(self, tool: Arc<dyn Tool>) -> Self {
        ToolBox::of(self.tools.iter().cloned().chain([tool]).collect())
    }

    pub fn of(tools: Vec<Arc<dyn Tool>>) -> Self {
        ToolBox { tools: tools.into() }
    }

    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|tool| tool.spec()).collect()
    }

    /// Runs the tool, or tells the model which ones there are.
    pub async fn call(&self, scope: &Scope, call: &ToolCall) -> Outcome {
        match self.tools.iter().find(|tool| tool.spec().name == call.name) {
            Some(tool) => {
                let outcome = tool.call(scope, call.arguments.clone()).await;
                Outcome { text: bounded(outcome.text) }
            }
            None => Outcome::say(format!("There is no tool `{}`. You have: {}.", call.name, self.names().join(", "))),
        }
    }

    fn names(&self) -> Vec<String> {
        self.specs().into_iter().map(|spec| spec.name).collect()
    }
}

/// The longest tool result a model gets, in bytes.
const MAX_RESULT_BYTES: usize = 32 * 1024;

fn bounded(mut result: String) -> String {
    if result.len() > MAX_RESULT_BYTES {
        result.truncate(result.floor_char_boundary(MAX_RESULT_BYTES));
        result.push_str("\n[cut: the result was longer]");
    }
    result
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::agents::tests::agent_of;

    /// The terminal's turn with `main`.
    fn scope() -> Scope {
        let agent = Arc::new(agent_of(Path::new("home"), "main"));
        let (place, person) = ("local:desk".parse().unwrap(), "local:you".parse().unwrap());
        Scope { agent, place, person, standing: Standing::Owner }
    }

    #[tokio::test]
    async fn a_tool_that_does_not_exist_is_answered_with_those_that_do() {
        let call = ToolCall { id: "1".into(), name: "shell".into(), arguments: Value::Null };
        let outcome = ToolBox::standard().call(&scope(), &call).await;
        assert_eq!(outcome.text, "There is no tool `shell`. You have: now.");
    }

    #[test]
    fn a_huge_result_is_cut_at_a_character() {
        let cut = bounded("é".repeat(MAX_RESULT_BYTES));
        assert!(cut.ends_with("é\n[cut: the result was longer]"));
        assert!(cut.len() <= MAX_RESULT_BYTES + 40);
    }
}
