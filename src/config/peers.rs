//! Reads `[peer_groups.<name>]`: agents with permission to write to each other and work for each
//! other.

use super::agents::DeclaredAgents;
use super::reader::{Section, Value, wrong_type};
use super::{Problem, Spanned, schema};
use crate::domain::{AgentId, Platform};

/// Agents with permission to reach each other. Membership is always mutual.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerGroup {
    pub name: String,
    pub members: Vec<AgentId>,
    /// Counts only in places of this platform.
    pub platform: Option<Platform>,
}

pub(super) fn read(top: &Section<'_>, declared: &DeclaredAgents) -> Vec<PeerGroup> {
    let mut groups = Vec::new();
    for named in top.named("peer_groups") {
        let Some(section) = named.section(&schema::PEER_GROUP) else {
            continue;
        };
        let Some(written) = section.list("members", member) else {
            continue;
        };
        let members = members(&written.value, declared, top);
        if written.value.len() < 2 {
            top.problems.note(alone(&named.name.value, &written));
        }
        groups.push(PeerGroup {
            name: named.name.value,
            members,
            platform: section.choice("platform"),
        });
    }
    groups
}

fn members(
    written: &[Spanned<String>],
    declared: &DeclaredAgents,
    top: &Section<'_>,
) -> Vec<AgentId> {
    let mut members: Vec<AgentId> = Vec::new();
    for name in written {
        let Some(agent) = declared.find(name, top.problems) else {
            continue;
        };
        if members.contains(&agent.id) {
            top.problems.note(twice(name));
        } else {
            members.push(agent.id.clone());
        }
    }
    members
}

fn member(value: &Value<'_>) -> Result<Spanned<String>, Problem> {
    match value.get_ref().as_str() {
        Some(text) => Ok(Spanned {
            value: text.to_owned(),
            span: value.span(),
        }),
        None => Err(wrong_type("a member", value, "an agent's id in quotes")),
    }
}

fn alone(name: &str, members: &Spanned<Vec<Spanned<String>>>) -> Problem {
    Problem::new(
        members.span.clone(),
        format!("the peer group `{name}` connects nobody"),
    )
    .label("fewer than two members")
    .help("name at least two agents, or remove the group")
}

fn twice(name: &Spanned<String>) -> Problem {
    Problem::new(
        name.span.clone(),
        format!("`{}` is named twice", name.value),
    )
    .label("a member already")
    .help("name each agent once")
}
