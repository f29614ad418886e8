//! Checks on the disk whether the skills in the config exist.

use std::path::Path;

use super::shelf;
use crate::config::{AgentSpec, Config, Problem, Spanned};
use crate::domain::nearest;

/// A broken skill is no problem of the config; `parlor skill list` tells about the skill.
pub(crate) fn check(config: &Config, home: &Path) -> Vec<Problem> {
    if config.agents.iter().all(|spec| spec.skills.is_none()) {
        return Vec::new();
    }
    let pool = names(&super::pool(home));
    config
        .agents
        .iter()
        .flat_map(|spec| unknown(spec, &pool, home))
        .collect()
}

fn unknown(spec: &AgentSpec, pool: &[String], home: &Path) -> Vec<Problem> {
    let Some(listed) = &spec.skills else {
        return Vec::new();
    };
    let own = names(&home.join("agents").join(spec.id.as_str()).join("skills"));
    let is_there = |name: &str| pool.iter().chain(&own).any(|known| known == name);
    let missing = listed.iter().filter(|entry| !is_there(&entry.value));
    missing
        .map(|entry| no_such_skill(entry, spec, pool, &own))
        .collect()
}

fn no_such_skill(
    entry: &Spanned<String>,
    spec: &AgentSpec,
    pool: &[String],
    own: &[String],
) -> Problem {
    let known: Vec<&str> = pool.iter().chain(own).map(String::as_str).collect();
    let advice = match (
        nearest(&entry.value, known.iter().copied()),
        known.is_empty(),
    ) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, false) => format!("the skills are {}", known.join(", ")),
        (None, true) => format!(
            "write skills/{}/SKILL.md, or delete it from the list",
            entry.value
        ),
    };
    let label = format!("neither in skills/ nor in agents/{}/skills/", spec.id);
    Problem::new(
        entry.span.clone(),
        format!("no skill is called `{}`", entry.value),
    )
    .label(label)
    .help(advice)
}

fn names(folder: &Path) -> Vec<String> {
    shelf::read(folder)
        .into_iter()
        .map(|entry| entry.name)
        .collect()
}
