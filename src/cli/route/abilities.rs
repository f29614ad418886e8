//! Tools, skills, memory and limits of a turn for people, each with the setting behind it.

use serde_json::Value;

use crate::config::settings;
use crate::operations::abilities::{
    Abilities, Budget, Cause, MemoryRight, SkillRight, SkillRights, ToolRight,
};

/// A line for each fact.
pub(super) fn told(abilities: &Abilities) -> String {
    let mut lines = tools(&abilities.tools);
    lines.extend(skills(&abilities.skills));
    lines.extend(memory(&abilities.memory));
    lines.extend(abilities.budgets.iter().filter_map(limit));
    lines.join("\n")
}

/// `agents.rose.model, config.toml:12`.
pub(super) fn origin(cause: &Cause) -> String {
    let origin = settings::origin(cause.source, cause.line, None);
    format!("{}, {origin}", cause.setting)
}

fn because(cause: Option<&Cause>) -> String {
    cause.map_or_else(String::new, |cause| format!(" ({})", origin(cause)))
}

fn tools(tools: &[ToolRight]) -> Vec<String> {
    let offered = tools.iter().filter(|right| right.refused.is_none());
    let offered: Vec<&str> = offered.map(|right| right.tool.as_str()).collect();
    let mut refused: Vec<(String, Vec<&str>)> = Vec::new();
    for right in tools {
        let Some(reason) = &right.refused else {
            continue;
        };
        let cause = format!("{reason}{}", because(right.because.as_ref()));
        match refused.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, tools)) => tools.push(&right.tool),
            None => refused.push((cause, vec![&right.tool])),
        }
    }
    let refused = refused
        .iter()
        .map(|(cause, tools)| format!("without {}: {cause}", listed(tools)));
    let asking = tools.iter().filter_map(|right| {
        let rule = right.asks.as_ref()?;
        let cause = because(right.because.as_ref());
        Some(format!("asks before {}: {rule}{cause}", right.tool))
    });
    std::iter::once(format!("tools: {}", listed(&offered)))
        .chain(asking)
        .chain(refused)
        .collect()
}

fn skills(skills: &SkillRights) -> Vec<String> {
    let one = |right: &SkillRight| format!("{} ({}: {})", right.skill, right.origin, right.reason);
    let readable: Vec<String> = skills.readable.iter().map(one).collect();
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for right in &skills.left_out {
        match reasons.iter_mut().find(|(known, _)| *known == right.reason) {
            Some((_, skills)) => skills.push(&right.skill),
            None => reasons.push((&right.reason, vec![&right.skill])),
        }
    }
    let left_out = reasons.iter().map(|(reason, skills)| {
        let noun = if skills.len() == 1 { "skill" } else { "skills" };
        format!("without {noun} {}: {reason}", listed(skills))
    });
    let because = because(skills.because.as_ref());
    std::iter::once(format!("skills: {}{because}", listed(&readable)))
        .chain(left_out)
        .collect()
}

fn memory(memory: &MemoryRight) -> Vec<String> {
    let because = because(memory.because.as_ref());
    if !memory.on {
        return vec![format!("memory: off{because}")];
    }
    vec![
        format!(
            "memory: on{because}; what is saved is for {}",
            memory.saves_for
        ),
        format!("recalls: {}", listed(&memory.recalls)),
        format!("finds: {}", listed(&memory.searches)),
    ]
}

/// Limits that are none are left out.
fn limit(budget: &Budget) -> Option<String> {
    let plain = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let most = budget.most.as_ref().map(plain)?;
    let spent = match (&budget.spent_today, &budget.spent_this_month) {
        (Some(spent), _) => format!(", {} used today", plain(spent)),
        (None, Some(spent)) => format!(", {} used this month", plain(spent)),
        (None, None) => String::new(),
    };
    let origin = settings::origin(budget.source, budget.line, budget.from.as_deref());
    Some(format!("limit {}: {most}{spent} ({origin})", budget.limit))
}

fn listed<T: AsRef<str>>(items: &[T]) -> String {
    if items.is_empty() {
        return "none".into();
    }
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    items.join(", ")
}
