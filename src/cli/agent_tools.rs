//! The tools of an agent for `parlor agent info`: allowed tools, and the rule behind each refusal.

use serde::Serialize;

use crate::access::Role;
use crate::agents::Agent;
use crate::tools::{KNOWN, policy};

#[derive(Serialize)]
pub(super) struct ToolReport {
    tools: Vec<ToolInfo>,
    /// Folders besides its own workspace.
    reaches: Vec<Reach>,
}

#[derive(Serialize)]
struct ToolInfo {
    tool: String,
    risk: &'static str,
    /// The roles with this tool; empty when a rule refuses the tool to all.
    asked_by: Vec<&'static str>,
    refused: Option<String>,
    /// The rule by which each call needs an approval.
    asks: Option<String>,
}

#[derive(Serialize)]
struct Reach {
    prefix: String,
    may_write: bool,
}

const ROLES: [Role; 4] = [Role::Owner, Role::Admin, Role::Member, Role::Guest];

impl ToolReport {
    pub(super) fn of(agent: &Agent) -> Self {
        let info = |(name, risk): (&str, _)| ToolInfo {
            tool: name.to_owned(),
            risk: crate::tools::Risk::as_str(risk),
            asked_by: ROLES
                .into_iter()
                .filter(|role| policy::for_role(agent, name, risk, *role).is_ok())
                .map(Role::as_str)
                .collect(),
            refused: policy::for_agent(&agent.tools, name, risk)
                .err()
                .map(|refusal| refusal.to_string()),
            asks: policy::asks(&agent.tools, name)
                .filter(|_| policy::for_agent(&agent.tools, name, risk).is_ok())
                .map(|rule| rule.to_string()),
        };
        let reach = |opened: &crate::agents::Opened| Reach {
            prefix: opened.prefix.clone(),
            may_write: opened.may_write,
        };
        ToolReport {
            tools: KNOWN.iter().copied().map(info).collect(),
            reaches: agent.files.others().iter().map(reach).collect(),
        }
    }

    /// Lines for people, each with its line break.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for role in ROLES {
            let names = self
                .tools
                .iter()
                .filter(|tool| tool.asked_by.contains(&role.as_str()));
            let names: Vec<&str> = names.map(|tool| tool.tool.as_str()).collect();
            let names = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            text.push_str(&format!(
                "tools when {} asks: {names}\n",
                role.with_article()
            ));
        }
        for tool in &self.tools {
            if let Some(rule) = &tool.asks {
                text.push_str(&format!("asks: {}: {rule}\n", tool.tool));
            }
            if let Some(reason) = &tool.refused {
                text.push_str(&format!("refused: {}: {reason}\n", tool.tool));
            }
        }
        for reach in &self.reaches {
            let right = if reach.may_write {
                "read and write"
            } else {
                "read"
            };
            text.push_str(&format!("also reaches: {}/ ({right})\n", reach.prefix));
        }
        text
    }
}
