//! What an agent can do besides talking.

mod now;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::models::{ToolCall, ToolSpec};

/// Something a model can ask for.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    fn spec(&self) -> ToolSpec;

    /// What the model gets to read. A failure is told in the text, so that the model can act on it.
    async fn call(&self, arguments: Value) -> String;
}

/// The tools of one turn. What is offered is exactly what can be called.
#[derive(Clone)]
pub struct ToolBox {
    tools: Arc<[Arc<dyn Tool>]>,
}

impl ToolBox {
    pub fn standard() -> Self {
        ToolBox { tools: Arc::new([Arc::new(now::Now)]) }
    }

    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|tool| tool.spec()).collect()
    }

    /// Runs the tool, or tells the model which ones there are.
    pub async fn call(&self, call: &ToolCall) -> String {
        match self.tools.iter().find(|tool| tool.spec().name == call.name) {
            Some(tool) => bounded(tool.call(call.arguments.clone()).await),
            None => format!("There is no tool `{}`. You have: {}.", call.name, self.names().join(", ")),
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
    use super::*;

    #[tokio::test]
    async fn a_tool_that_does_not_exist_is_answered_with_those_that_do() {
        let call = ToolCall { id: "1".into(), name: "shell".into(), arguments: Value::Null };
        assert_eq!(ToolBox::standard().call(&call).await, "There is no tool `shell`. You have: now.");
    }

    #[test]
    fn a_huge_result_is_cut_at_a_character() {
        let cut = bounded("é".repeat(MAX_RESULT_BYTES));
        assert!(cut.ends_with("é\n[cut: the result was longer]"));
        assert!(cut.len() <= MAX_RESULT_BYTES + 40);
    }
}
