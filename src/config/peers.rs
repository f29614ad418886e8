//! Reads `[peer_groups.<name>]`: agents with permission to write to each other and work for each
//! other.

use super::declared::DeclaredAgents;
use super::reader::Section;
use super::{Problem, Spanned, items, schema};
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
        let Some(written) = section.list("members", |value| items::name(value, "an agent's id"))
        else {
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

fn alone(name: &str, members: &Spanned<Vec<Spanned<String>>>) -> Problem {
    Problem::new(
        members.span.clone(),
        format!("the peer group `{name}` has fewer than two members"),
    )
    .label("nobody to talk to")
    .help("name at least two agents, or delete the group")
}

fn twice(name: &Spanned<String>) -> Problem {
    Problem::new(
        name.span.clone(),
        format!("`{}` is named twice", name.value),
    )
    .label("the second one")
    .help("delete one of them")
}
