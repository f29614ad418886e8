//! Reads the memory keys of an agent's table, and checks the names in `read_memory_from`.

use super::declared::DeclaredAgents;
use super::reader::{Problems, Section};
use super::{AgentMemory, MemorySwitch, Problem, RecallFilter, Spanned, items};
use crate::domain::{AgentId, nearest};

/// The names in an agent's `read_memory_from`.
pub(super) struct Reading {
    pub(super) by: AgentId,
    pub(super) of: Vec<Spanned<String>>,
}

/// All keys but `read_memory_from`, because its names are checked when all agents are known.
pub(super) fn of_agent(section: &Section<'_>) -> AgentMemory {
    let default = AgentMemory::default();
    AgentMemory {
        switch: section.choice("memory").unwrap_or(default.switch),
        recall: section.boolean("recall").unwrap_or(default.recall),
        recall_tokens: section
            .count("recall_tokens")
            .unwrap_or(default.recall_tokens),
        recall_filter: RecallFilter {
            visibility: section.choices("recall_visibility"),
            kinds: section.choices("recall_kinds"),
            max_age_days: section.at_least_one("recall_max_age_days"),
        },
        read_from: Vec::new(),
        for_guests: section
            .boolean("memory_for_guests")
            .unwrap_or(default.for_guests),
    }
}

pub(super) fn reads(section: &Section<'_>) -> Vec<Spanned<String>> {
    section
        .list("read_memory_from", |value| {
            items::name(value, "an agent's id")
        })
        .map(|names| names.value)
        .unwrap_or_default()
}

/// Fills in `read_memory_from` of every agent. A wrong name is noted with the name of its reader.
pub(super) fn join(declared: &mut DeclaredAgents, readings: &[Reading], problems: &Problems) {
    for Reading { by, of } in readings {
        let mut read_from: Vec<AgentId> = Vec::new();
        for name in of {
            match looked_up(declared, by, name) {
                Ok(Some(other)) if !read_from.contains(&other) => read_from.push(other),
                Ok(_) => {}
                Err(problem) => problems.note(problem),
            }
        }
        let reader = declared.agents.iter_mut().find(|agent| agent.id == *by);
        reader
            .expect("an agent that reads has a table")
            .memory
            .read_from = read_from;
    }
}

/// `None` for an id with a problem at its declaration.
fn looked_up(
    declared: &DeclaredAgents,
    by: &AgentId,
    name: &Spanned<String>,
) -> Result<Option<AgentId>, Problem> {
    let refuse = |label: &str, help: String| {
        Problem::new(
            name.span.clone(),
            format!("`{by}` cannot read the memory of `{}`", name.value),
        )
        .label(label)
        .help(help)
    };
    let of = |id: &str| declared.agents.iter().find(|agent| agent.id.as_str() == id);
    let without_memory =
        |id: &str| of(id).is_some_and(|agent| agent.memory.switch == MemorySwitch::Off);
    match of(&name.value) {
        None if declared.refused.contains(&name.value) => Ok(None),
        None => Err(refuse(
            "no agent has this id",
            unknown(declared, by, &name.value),
        )),
        Some(other) if other.id == *by => Err(refuse(
            "this is the agent itself",
            "an agent always sees its own memories; delete this name".into(),
        )),
        Some(_) if without_memory(&name.value) => Err(refuse(
            "it has memory = \"off\"",
            format!(
                "delete this name, or set memory = \"on\" under [agents.{}]",
                name.value
            ),
        )),
        Some(_) if without_memory(by.as_str()) => Err(refuse(
            "the reader has memory = \"off\"",
            format!("delete this name, or set memory = \"on\" under [agents.{by}]"),
        )),
        Some(other) => Ok(Some(other.id.clone())),
    }
}

fn unknown(declared: &DeclaredAgents, by: &AgentId, name: &str) -> String {
    let others = || {
        declared
            .agents
            .iter()
            .map(|agent| agent.id.as_str())
            .filter(|id| *id != by.as_str())
    };
    match nearest(name, others()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "the other agents are {}",
            others().collect::<Vec<_>>().join(", ")
        ),
    }
}
