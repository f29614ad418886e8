//! The agents that the file declares, for everything in the file that names one.

use super::reader::Problems;
use super::{AgentSpec, Problem, Spanned};
use crate::domain::{AgentId, nearest};

/// All agents of the file, and `main`.
#[derive(Default)]
pub(super) struct DeclaredAgents {
    pub(super) agents: Vec<AgentSpec>,
    /// Unusable ids. The problem is told at their table, and not again at every mention.
    pub(super) refused: Vec<String>,
}

impl DeclaredAgents {
    /// The agent of this name. An unknown name is noted as a problem.
    pub(super) fn find(&self, name: &Spanned<String>, problems: &Problems) -> Option<&AgentSpec> {
        let found = self
            .agents
            .iter()
            .find(|agent| agent.id.as_str() == name.value);
        if found.is_none() && !self.refused.contains(&name.value) {
            problems.note(self.unknown_agent(name));
        }
        found
    }

    fn unknown_agent(&self, name: &Spanned<String>) -> Problem {
        let near = nearest(
            &name.value,
            self.agents.iter().map(|agent| agent.id.as_str()),
        );
        let advice = match (near, AgentId::parse(&name.value)) {
            (Some(near), Ok(id)) => {
                format!("did you mean `{near}`? If not, add a section [agents.{id}]")
            }
            (Some(near), Err(_)) => format!("did you mean `{near}`?"),
            (None, Ok(id)) => format!("add a section [agents.{id}]"),
            (None, Err(error)) => error.to_string(),
        };
        Problem::new(name.span.clone(), format!("unknown agent `{}`", name.value))
            .label("no agent has this id")
            .help(advice)
    }
}
