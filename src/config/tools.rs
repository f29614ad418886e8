//! Reads the limits of tools and files: `[risk_profiles.<name>]`, `[shared_paths.<name>]`,
//! `[access.tools]`, and the keys of an agent's table. The room `tools` checks the names of tools.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::declared::DeclaredAgents;
use super::reader::{Section, suggest, wrong_type};
use super::{Problem, Spanned, items, schema};
use crate::domain::AgentId;

/// Kinds of tools, the harmless first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Risk {
    /// Only reads the agent's own things.
    Look,
    /// Changes the agent's own things.
    Change,
    /// Reaches other people, other agents or the network.
    Reach,
}

/// All limits of tools in the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolRules {
    pub profiles: BTreeMap<String, RiskProfile>,
    /// Shared folders in file order.
    pub shared: Vec<SharedPath>,
    pub ceilings: Ceilings,
}

/// A choice of tools: `allow`, or else all tools, without `deny`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolLimits {
    pub allow: Option<Vec<Spanned<String>>>,
    pub deny: Vec<Spanned<String>>,
    /// Tools of which each call needs an approval.
    pub ask: Vec<Spanned<String>>,
}

/// A named set of limits for several agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RiskProfile {
    pub name: String,
    pub limits: ToolLimits,
    pub max_risk: Option<Risk>,
}

/// The highest risk of tools, by the role of the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ceilings {
    pub guest: Risk,
    pub member: Risk,
    pub admin: Risk,
    pub owner: Risk,
}

/// A folder that agents share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedPath {
    pub name: String,
    /// A folder outside the home; absent: `shared/<name>` in the home. The room `agents` checks
    /// whether the folder may be opened.
    pub path: Option<Spanned<PathBuf>>,
    pub max_mb: u32,
    pub agents: Siblings,
}

/// Agents by permission: agents under `write` may also read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Siblings {
    pub read: Vec<AgentId>,
    pub write: Vec<AgentId>,
}

/// The consequence when a turn has read words of lower trust than its asker's, and then reaches for
/// another place, another agent, or a web address not written by a trusted person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum AfterUntrusted {
    /// The call is run, and the log and `/status` name the sources that the turn had read.
    #[default]
    Label,
    /// The call needs an approval.
    Ask,
    /// The call is not run, and the model is told why.
    Refuse,
}

/// The keys about tools and files of an agent's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentTools {
    pub limits: ToolLimits,
    /// A name in [`ToolRules::profiles`].
    pub risk_profile: Option<String>,
    /// The highest risk of its tools, beside that of the profile.
    pub max_risk: Option<Risk>,
    pub after_untrusted: AfterUntrusted,
    /// Agents whose workspaces this agent may use.
    pub access: Siblings,
    /// The most its workspace may hold.
    pub workspace_mb: u32,
}

const WORKSPACE_MB: u32 = 500;
/// How much a shared folder may hold.
const SHARED_MB: u32 = 500;

impl Default for AgentTools {
    fn default() -> Self {
        AgentTools {
            limits: ToolLimits::default(),
            risk_profile: None,
            max_risk: None,
            after_untrusted: AfterUntrusted::default(),
            access: Siblings::default(),
            workspace_mb: WORKSPACE_MB,
        }
    }
}

impl Default for Ceilings {
    /// A guest can ask, and make an agent look things up, but cannot make the agent change or send
    /// anything.
    fn default() -> Self {
        Ceilings {
            guest: Risk::Look,
            member: Risk::Reach,
            admin: Risk::Reach,
            owner: Risk::Reach,
        }
    }
}

/// Agents as they are named in the file, before all are known.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    read: Vec<Spanned<String>>,
    write: Vec<Spanned<String>>,
}

pub(super) fn read(
    top: &Section<'_>,
    access: Option<&Section<'_>>,
    declared: &DeclaredAgents,
) -> ToolRules {
    let tools = access.and_then(|access| access.section("tools", &schema::CEILINGS));
    ToolRules {
        profiles: profiles(top),
        shared: shared(top, declared),
        ceilings: tools.map(|section| ceilings(&section)).unwrap_or_default(),
    }
}

/// Every name under `[risk_profiles]`.
pub(super) fn profile_names(top: &Section<'_>) -> Vec<String> {
    let table = top
        .value("risk_profiles")
        .and_then(|value| value.get_ref().as_table());
    table
        .into_iter()
        .flat_map(|table| table.keys())
        .map(|key| key.get_ref().to_string())
        .collect()
}

/// The keys of an agent's table. The names under `access` are checked when all agents are known.
pub(super) fn of_agent(section: &Section<'_>, profiles: &[String]) -> (AgentTools, Names) {
    let limits = match listed_tools(section) {
        Some(problem) => {
            section.problems.note(problem);
            ToolLimits::default()
        }
        None => section
            .section("tools", &schema::TOOL_LIMITS)
            .map(|section| limits(&section))
            .unwrap_or_default(),
    };
    let access = section
        .section("access", &schema::SIBLINGS)
        .map(|section| names(&section))
        .unwrap_or_default();
    let tools = AgentTools {
        limits,
        risk_profile: risk_profile(section, profiles),
        max_risk: section.choice("max_risk"),
        after_untrusted: section.choice("after_untrusted").unwrap_or_default(),
        access: Siblings::default(),
        workspace_mb: section.count("workspace_mb").unwrap_or(WORKSPACE_MB),
    };
    (tools, access)
}

/// `tools = ["now"]`: a list does not say whether its tools are the only ones or the missing ones.
fn listed_tools(section: &Section<'_>) -> Option<Problem> {
    let value = section.value("tools")?;
    let items = value.get_ref().as_array()?.iter();
    let names: Vec<String> = items
        .filter_map(|item| item.get_ref().as_str())
        .take(MOST_REPEATED)
        .map(|name| format!("\"{name}\""))
        .collect();
    let list = match names.is_empty() {
        true => "\"now\"".to_owned(),
        false => names.join(", "),
    };
    Some(
        wrong_type("`tools`", value, "a table")
            .help(format!("write `tools = {{ allow = [{list}] }}` for these tools alone, or `tools = {{ deny = [{list}] }}` for all others")),
    )
}

/// Names of a list that advice repeats.
const MOST_REPEATED: usize = 3;

impl Names {
    /// The existing agents; unknown names are noted. `own` is the agent with the list.
    pub(super) fn find(
        &self,
        declared: &DeclaredAgents,
        own: Option<&AgentId>,
        top: &Section<'_>,
    ) -> Siblings {
        let find = |names: &[Spanned<String>]| {
            let found = names.iter().filter_map(|name| {
                let agent = declared.find(name, top.problems)?;
                if own == Some(&agent.id) {
                    top.problems.note(itself(name));
                    return None;
                }
                Some(agent.id.clone())
            });
            found.collect()
        };
        Siblings {
            read: find(&self.read),
            write: find(&self.write),
        }
    }
}

fn profiles(top: &Section<'_>) -> BTreeMap<String, RiskProfile> {
    let mut profiles = BTreeMap::new();
    for named in top.named("risk_profiles") {
        let Some(section) = named.section(&schema::RISK_PROFILE) else {
            continue;
        };
        let name = named.name.value.clone();
        let profile = RiskProfile {
            name: name.clone(),
            limits: limits(&section),
            max_risk: section.choice("max_risk"),
        };
        profiles.insert(name, profile);
    }
    profiles
}

fn shared(top: &Section<'_>, declared: &DeclaredAgents) -> Vec<SharedPath> {
    let mut shared = Vec::new();
    for named in top.named("shared_paths") {
        let section = named.section(&schema::SHARED_PATH);
        let agents = section.as_ref().map(names).unwrap_or_default();
        let agents = agents.find(declared, None, top);
        let path = section.as_ref().and_then(outside_path);
        let max_mb = section
            .as_ref()
            .and_then(|section| section.at_least_one("max_mb"));
        // A folder's name has the form of an agent's id, so that a path has a single meaning.
        if AgentId::parse(&named.name.value).is_ok() {
            shared.push(SharedPath {
                name: named.name.value,
                path,
                max_mb: max_mb.unwrap_or(SHARED_MB),
                agents,
            });
        } else {
            top.problems.note(bad_name(&named.name));
        }
    }
    shared
}

fn outside_path(section: &Section<'_>) -> Option<Spanned<PathBuf>> {
    let text = section.text("path")?;
    if !Path::new(&text.value).is_absolute() {
        let problem = Problem::new(text.span, "`path` is not a whole path")
            .label("expected a path that begins with /")
            .help("write the folder's whole path, or leave `path` out for a folder in the home");
        section.problems.note(problem);
        return None;
    }
    Some(Spanned {
        value: PathBuf::from(text.value),
        span: text.span,
    })
}

fn ceilings(section: &Section<'_>) -> Ceilings {
    let default = Ceilings::default();
    Ceilings {
        guest: section.choice("guest").unwrap_or(default.guest),
        member: section.choice("member").unwrap_or(default.member),
        admin: section.choice("admin").unwrap_or(default.admin),
        owner: section.choice("owner").unwrap_or(default.owner),
    }
}

fn limits(section: &Section<'_>) -> ToolLimits {
    let list = |key| {
        section
            .list(key, |value| items::name(value, "a tool's name"))
            .map(|list| list.value)
    };
    ToolLimits {
        allow: list("allow"),
        deny: list("deny").unwrap_or_default(),
        ask: list("ask").unwrap_or_default(),
    }
}

fn names(section: &Section<'_>) -> Names {
    let list = |key| {
        section
            .list(key, |value| items::name(value, "an agent's id"))
            .map(|list| list.value)
            .unwrap_or_default()
    };
    Names {
        read: list("read"),
        write: list("write"),
    }
}

fn risk_profile(section: &Section<'_>, profiles: &[String]) -> Option<String> {
    let name = section.text("risk_profile")?;
    if !profiles.contains(&name.value) {
        section.problems.note(unknown_profile(&name, profiles));
        return None;
    }
    Some(name.value)
}

fn unknown_profile(name: &Spanned<String>, profiles: &[String]) -> Problem {
    let known: Vec<&str> = profiles.iter().map(String::as_str).collect();
    let advice = if known.is_empty() {
        format!("declare it under [risk_profiles.{}]", name.value)
    } else {
        suggest(&name.value, &known)
    };
    Problem::new(
        name.span.clone(),
        format!("unknown risk profile `{}`", name.value),
    )
    .label(format!("this file has no [risk_profiles.{}]", name.value))
    .help(advice)
}

fn itself(name: &Spanned<String>) -> Problem {
    Problem::new(
        name.span.clone(),
        format!("`{}` needs no access to itself", name.value),
    )
    .label("this is the agent's own id")
    .help("delete this name; an agent always has its own workspace")
}

fn bad_name(name: &Spanned<String>) -> Problem {
    Problem::new(
        name.span.clone(),
        format!("`{}` cannot be a shared folder's name", name.value),
    )
    .label("expected a short name")
    .help("use a-z, 0-9 and single hyphens inside, such as `handbook`")
}
