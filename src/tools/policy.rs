//! Decides which tools an agent has, and for whom. Pure.
//!
//! The order is fixed: the risk profile, then the agent's own list, then the ceiling of whoever asks. Within each, `deny` comes
//! after `allow`. What a tool that may run can touch is decided after that, in `agents/files`: the boundary of the workspace,
//! then the access list.

use std::fmt;

use crate::access::Standing;
use crate::agents::ToolPolicy;
use crate::config::{Config, Problem, Risk, Spanned, ToolLimits};
use crate::domain::nearest;

/// The rule that keeps a tool from an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    ProfileAllows { profile: String },
    ProfileDenies { profile: String },
    ProfileRisk { profile: String, risk: Risk, max: Risk },
    AgentAllows,
    AgentDenies,
    Ceiling { standing: Standing, risk: Risk, max: Risk },
}

pub fn decide(policy: &ToolPolicy, tool: &str, risk: Risk, standing: Standing) -> Result<(), Refusal> {
    for_agent(policy, tool, risk)?;
    let max = ceiling(policy, standing);
    if risk > max { Err(Refusal::Ceiling { standing, risk, max }) } else { Ok(()) }
}

/// Whoever asks.
pub fn for_agent(policy: &ToolPolicy, tool: &str, risk: Risk) -> Result<(), Refusal> {
    if let Some(profile) = &policy.profile {
        let name = || profile.name.clone();
        match within(&profile.limits, tool) {
            Within::NotAllowed => return Err(Refusal::ProfileAllows { profile: name() }),
            Within::Denied => return Err(Refusal::ProfileDenies { profile: name() }),
            Within::Yes => {}
        }
        if let Some(max) = profile.max_risk.filter(|max| risk > *max) {
            return Err(Refusal::ProfileRisk { profile: name(), risk, max });
        }
    }
    match within(&policy.own, tool) {
        Within::NotAllowed => Err(Refusal::AgentAllows),
        Within::Denied => Err(Refusal::AgentDenies),
        Within::Yes => Ok(()),
    }
}

enum Within {
    Yes,
    NotAllowed,
    Denied,
}

fn within(limits: &ToolLimits, tool: &str) -> Within {
    let names = |list: &[Spanned<String>]| list.iter().any(|name| name.value == tool);
    if limits.allow.as_ref().is_some_and(|allow| !names(allow)) {
        Within::NotAllowed
    } else if names(&limits.deny) {
        Within::Denied
    } else {
        Within::Yes
    }
}

fn ceiling(policy: &ToolPolicy, standing: Standing) -> Risk {
    match standing {
        Standing::Stranger => policy.ceilings.guest,
        Standing::Paired => policy.ceilings.member,
        Standing::Owner => policy.ceilings.owner,
    }
}

/// Names of tools in the config that no tool has.
pub fn check<'a>(config: &Config, tools: impl Iterator<Item = (&'a str, Risk)>) -> Vec<Problem> {
    let known: Vec<&str> = tools.map(|(name, _)| name).collect();
    let profiles = config.tools.profiles.values().map(|profile| &profile.limits);
    let all = profiles.chain(config.agents.iter().map(|agent| &agent.tools.limits));
    let named = all.flat_map(|limits| limits.allow.iter().flatten().chain(&limits.deny));
    named.filter(|name| !known.contains(&name.value.as_str())).map(|name| unknown(name, &known)).collect()
}

fn unknown(name: &Spanned<String>, known: &[&str]) -> Problem {
    let advice = match nearest(&name.value, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are: {}", known.join(", ")),
    };
    Problem::new(name.span.clone(), format!("unknown tool `{}`", name.value)).label("no tool has this name").help(advice)
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::ProfileAllows { profile } => write!(f, "the risk profile `{profile}` does not allow it"),
            Refusal::ProfileDenies { profile } => write!(f, "the risk profile `{profile}` denies it"),
            Refusal::ProfileRisk { profile, risk, max } => {
                write!(f, "the risk profile `{profile}` stops at `{max}`, and this is a `{risk}` tool")
            }
            Refusal::AgentAllows => f.write_str("the agent's `tools.allow` does not name it"),
            Refusal::AgentDenies => f.write_str("the agent's `tools.deny` names it"),
            Refusal::Ceiling { standing, risk, max } => {
                write!(f, "a {} may use tools up to `{max}` (`[access.tools]`), and this is a `{risk}` tool", standing.as_str())
            }
        }
    }
}

#[cfg(test)]
mod tests;
