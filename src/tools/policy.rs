//! Decides about the tools of an agent for a person. Pure.
//!
//! The order is fixed: the risk profile, then the agent's own list and risk, then the ceiling of the
//! person's role. Within each, `deny` comes after `allow`. The reach of an allowed tool is decided
//! later, in `agents/files`: the boundary of the workspace, then the access list.

use std::fmt;

use super::{Parent, Reach, Reading, Relation};
use crate::access::Role;
use crate::agents::{Agent, Memory, ToolPolicy};
use crate::config::{AfterUntrusted, Config, Problem, Risk, Spanned, ToolLimits};
use crate::domain::{Labels, nearest};

/// A rule against a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    ProfileAllows {
        profile: String,
    },
    ProfileDenies {
        profile: String,
    },
    ProfileRisk {
        profile: String,
        risk: Risk,
        max: Risk,
    },
    AgentAllows,
    AgentDenies,
    AgentRisk {
        risk: Risk,
        max: Risk,
    },
    Ceiling {
        role: Role,
        risk: Risk,
        max: Risk,
    },
    /// The tool writes what stands in everybody's prompt.
    ForEverybody {
        role: Role,
    },
    /// A subagent or a peer has neither subagents, peers nor people of its own.
    Depth,
    Hops,
    Silent,
    /// A subagent or a peer makes no jobs.
    Timeless,
    /// A job makes no jobs.
    ByJob,
    /// The parent gave the subagent a shorter list.
    Task,
    Parent(Box<Refusal>),
    /// The turn has read words that count for less than those of its asker.
    Untrusted {
        read: Labels,
        role: Role,
        reach: Reach,
    },
}

/// An allowed call that takes words elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reached {
    Trusted,
    /// After words that count for less than those of the asker.
    Untrusted,
    /// The same, with an approval.
    Asks(Asks),
}

/// A rule by which a call needs an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asks {
    Profile { profile: String },
    Agent,
    Parent(Box<Asks>),
    Untrusted { read: Labels },
}

/// The rule by which each call of a tool needs an approval. It counts for tools that are not refused.
pub(crate) fn asks(policy: &ToolPolicy, tool: &str) -> Option<Asks> {
    let named = |limits: &ToolLimits| limits.ask.iter().any(|name| name.value == tool);
    let profile = policy
        .profile
        .as_ref()
        .filter(|profile| named(&profile.limits));
    match profile {
        Some(profile) => Some(Asks::Profile {
            profile: profile.name.clone(),
        }),
        None => named(&policy.own).then_some(Asks::Agent),
    }
}

/// The same in a turn of a subagent, by its parent's rules. A peer works by its own.
pub(crate) fn parent_asks(parent: &Parent, tool: &str) -> Option<Asks> {
    let rule = match parent.relation {
        Relation::Subagent => asks(&parent.agent.tools, tool),
        Relation::Peer => None,
    };
    rule.map(|rule| Asks::Parent(rule.into()))
}

/// Decides about a call that takes words elsewhere, by what its turn has read. A web address from a
/// person with at least the asker's role is trusted whatever the turn has read.
pub(crate) fn after_reading(
    rule: AfterUntrusted,
    read: &Reading,
    role: Role,
    reach: Reach,
) -> Result<Reached, Refusal> {
    let below = read.labels.below(role);
    let is_known = matches!(&reach, Reach::Address(address) if read.addresses.has(address));
    if below.is_empty() || is_known {
        return Ok(Reached::Trusted);
    }
    match rule {
        AfterUntrusted::Label => Ok(Reached::Untrusted),
        AfterUntrusted::Ask => Ok(Reached::Asks(Asks::Untrusted { read: below })),
        AfterUntrusted::Refuse => Err(Refusal::Untrusted {
            read: below,
            role,
            reach,
        }),
    }
}

/// The tools of an agent for a person of this role.
pub(crate) fn for_role(agent: &Agent, tool: &str, risk: Risk, role: Role) -> Result<(), Refusal> {
    decide(&agent.tools, tool, risk, role)?;
    // MEMORY.md stands in everybody's prompt, also in that of people with more rights.
    if tool == "memory_edit" && !Memory::may_publish(agent, role) {
        return Err(Refusal::ForEverybody { role });
    }
    Ok(())
}

pub(crate) fn decide(
    policy: &ToolPolicy,
    tool: &str,
    risk: Risk,
    role: Role,
) -> Result<(), Refusal> {
    for_agent(policy, tool, risk)?;
    let max = ceiling(policy, role);
    if risk > max {
        Err(Refusal::Ceiling { role, risk, max })
    } else {
        Ok(())
    }
}

/// The tools of an agent in a turn of a subagent or a peer.
pub(crate) fn for_run(parent: &Parent, tool: &str, risk: Risk, role: Role) -> Result<(), Refusal> {
    match tool {
        "spawn" => return Err(Refusal::Depth),
        "agent_send" => return Err(Refusal::Hops),
        "message_send" | "file_send" => return Err(Refusal::Silent),
        "schedule" => return Err(Refusal::Timeless),
        _ => {}
    }
    if parent
        .tools
        .as_ref()
        .is_some_and(|tools| !tools.iter().any(|name| name == tool))
    {
        return Err(Refusal::Task);
    }
    match parent.relation {
        Relation::Subagent => decide(&parent.agent.tools, tool, risk, role)
            .map_err(|refusal| Refusal::Parent(refusal.into())),
        Relation::Peer => Ok(()),
    }
}

/// The part of the decision without the person: the risk profile and the agent's own list.
pub(crate) fn for_agent(policy: &ToolPolicy, tool: &str, risk: Risk) -> Result<(), Refusal> {
    if let Some(profile) = &policy.profile {
        let name = || profile.name.clone();
        match within(&profile.limits, tool) {
            Within::NotAllowed => return Err(Refusal::ProfileAllows { profile: name() }),
            Within::Denied => return Err(Refusal::ProfileDenies { profile: name() }),
            Within::Yes => {}
        }
        if let Some(max) = profile.max_risk.filter(|max| risk > *max) {
            return Err(Refusal::ProfileRisk {
                profile: name(),
                risk,
                max,
            });
        }
    }
    match within(&policy.own, tool) {
        Within::NotAllowed => Err(Refusal::AgentAllows),
        Within::Denied => Err(Refusal::AgentDenies),
        Within::Yes => match policy.max_risk.filter(|max| risk > *max) {
            Some(max) => Err(Refusal::AgentRisk { risk, max }),
            None => Ok(()),
        },
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

fn ceiling(policy: &ToolPolicy, role: Role) -> Risk {
    match role {
        Role::Guest => policy.ceilings.guest,
        Role::Member => policy.ceilings.member,
        Role::Admin => policy.ceilings.admin,
        Role::Owner => policy.ceilings.owner,
    }
}

/// Unknown names of tools in the config.
pub(crate) fn check<'a>(
    config: &Config,
    tools: impl Iterator<Item = (&'a str, Risk)>,
) -> Vec<Problem> {
    let known: Vec<&str> = tools.map(|(name, _)| name).collect();
    let profiles = config
        .tools
        .profiles
        .values()
        .map(|profile| &profile.limits);
    let all = profiles.chain(config.agents.iter().map(|agent| &agent.tools.limits));
    let named = all.flat_map(|limits| {
        let allow = limits.allow.iter().flatten();
        allow.chain(&limits.deny).chain(&limits.ask)
    });
    named
        .filter(|name| !known.contains(&name.value.as_str()))
        .map(|name| unknown(name, &known))
        .collect()
}

fn unknown(name: &Spanned<String>, known: &[&str]) -> Problem {
    let advice = match nearest(&name.value, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the tools are {}", known.join(", ")),
    };
    Problem::new(name.span.clone(), format!("unknown tool `{}`", name.value))
        .label("no tool has this name")
        .help(advice)
}

impl fmt::Display for Asks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Asks::Profile { profile } => {
                write!(f, "the risk profile `{profile}` asks before each call")
            }
            Asks::Agent => f.write_str("the agent's `tools.ask` names it"),
            Asks::Parent(asks) => write!(f, "for the agent it works for, {asks}"),
            Asks::Untrusted { read } => write!(
                f,
                "the conversation has {} in it, and this takes words elsewhere",
                read.in_words()
            ),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::ProfileAllows { profile } => {
                write!(f, "the risk profile `{profile}` does not allow it")
            }
            Refusal::ProfileDenies { profile } => {
                write!(f, "the risk profile `{profile}` denies it")
            }
            Refusal::ProfileRisk { profile, risk, max } => {
                write!(
                    f,
                    "the risk profile `{profile}` stops at `{max}`, and this is a `{risk}` tool"
                )
            }
            Refusal::AgentAllows => f.write_str("the agent's `tools.allow` does not name it"),
            Refusal::Depth => f.write_str("a subagent cannot start another"),
            Refusal::Hops => {
                f.write_str("you were asked by another agent yourself, and messages go one hop")
            }
            Refusal::Silent => f.write_str(
                "you work for another agent, which gets your answer and decides what people see",
            ),
            Refusal::Timeless => f.write_str("you work for another agent, and make no jobs"),
            Refusal::ByJob => f.write_str("this turn is a job, and jobs make no jobs"),
            Refusal::Task => f.write_str("whoever gave you this task left it out"),
            Refusal::Parent(refusal) => {
                write!(f, "the agent you work for may not use it: {refusal}")
            }
            Refusal::ForEverybody { role } => {
                write!(
                    f,
                    "it writes what everybody who talks to you sees, and you answer {}. `memory_save` keeps something for the people here",
                    role.with_article()
                )
            }
            Refusal::Untrusted { read, role, reach } => {
                let what = match reach {
                    Reach::Place => "nothing goes to another place",
                    Reach::Agent => "nothing goes to another agent",
                    Reach::Address(_) => {
                        "no web address is fetched that nobody of that role wrote here"
                    }
                    Reach::Everybody => "nothing is written that everybody who talks to you sees",
                    Reach::Elsewhere => "nothing goes elsewhere",
                };
                write!(
                    f,
                    "you answer {}, and this conversation has {} in it. After that {what} (`after_untrusted = \"refuse\"`)",
                    role.with_article(),
                    read.in_words()
                )
            }
            Refusal::AgentDenies => f.write_str("the agent's `tools.deny` names it"),
            Refusal::AgentRisk { risk, max } => {
                write!(
                    f,
                    "the agent's `max_risk` is `{max}`, and this is a `{risk}` tool"
                )
            }
            Refusal::Ceiling { role, risk, max } => {
                write!(
                    f,
                    "a {} may use tools up to `{max}` (`[access.tools]`), and this is a `{risk}` tool",
                    role.as_str()
                )
            }
        }
    }
}

#[cfg(test)]
mod tests;
