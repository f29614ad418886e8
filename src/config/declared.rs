//! The agents declared by the file, for all keys with an agent's name.

use super::reader::{Problems, quoted};
use super::twice::usable_name;
use super::{AgentSpec, Problem, Spanned};
use crate::domain::{AgentId, nearest};

/// All agents of the file, and `main`.
#[derive(Default)]
pub(super) struct DeclaredAgents {
    pub(super) agents: Vec<AgentSpec>,
    /// Unusable ids. The problem is told at their table, and not again at every mention.
    pub(super) refused: Vec<String>,
    /// Agents are written in a form without ids. The problem is told there, and not at every
    /// mention.
    pub(super) is_unread: bool,
}

impl DeclaredAgents {
    /// The agent of this name. An unknown name is noted as a problem.
    pub(super) fn find(&self, name: &Spanned<String>, problems: &Problems) -> Option<&AgentSpec> {
        let found = self
            .agents
            .iter()
            .find(|agent| agent.id.as_str() == name.value);
        if found.is_none() && !self.is_unread && !self.is_refused(&name.value) {
            problems.note(self.unknown_agent(name));
        }
        found
    }

    /// Whether a name belongs to a refused table, or to the table after its correction.
    fn is_refused(&self, name: &str) -> bool {
        let mut refused = self.refused.iter();
        refused.any(|refused| {
            refused == name || usable_name(refused).is_some_and(|usable| usable.as_str() == name)
        })
    }

    /// The ids of the file, and only a few of many.
    fn some_ids(&self) -> String {
        const MOST: usize = 8;
        let ids: Vec<&str> = self.agents.iter().map(|agent| agent.id.as_str()).collect();
        let more = if ids.len() > MOST { ", …" } else { "" };
        format!("{}{more}", quoted(&ids[..ids.len().min(MOST)]))
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
            (None, Ok(id)) => format!(
                "add a section [agents.{id}], or name an agent of this file: {}",
                self.some_ids()
            ),
            (None, Err(error)) => error.to_string(),
        };
        Problem::new(name.span.clone(), format!("unknown agent `{}`", name.value))
            .label("no agent has this id")
            .help(advice)
    }
}
