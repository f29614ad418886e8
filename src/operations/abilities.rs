//! What a turn of an agent would get for a person in a place: tools, skills, memories and limits,
//! each with the setting behind it.
//!
//! The same code as in a turn decides: the tools come from the view that a turn has, memories from
//! the scope of a recall.

use std::sync::Arc;

use rusqlite::Connection;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::access::Role;
use crate::agents::memory::Scope;
use crate::agents::{Agent, Memories, Reader, Skills};
use crate::answering::{read_in, toolbox};
use crate::clock::now_ms;
use crate::config::settings::{Setting, Settings, Source};
use crate::config::{Config, DefaultVisibility};
use crate::domain::{Labels, PersonId, SessionKey};
use crate::records::ledger::{self, Spender};
use crate::records::transcript;
use crate::records::view::View;
use crate::storage::{Db, StoreError};
use crate::tools::Withheld;
use crate::tools::policy::{Asks, Refusal};
use crate::turn::budget::{Span, Spent};

#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Abilities {
    pub(crate) tools: Vec<ToolRight>,
    pub(crate) skills: SkillRights,
    pub(crate) memory: MemoryRight,
    pub(crate) budgets: Vec<Budget>,
}

/// A setting that decides something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Cause {
    pub(crate) setting: String,
    #[schema(value_type = String)]
    pub(crate) source: Source,
    /// The line in config.toml.
    pub(crate) line: Option<usize>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ToolRight {
    pub(crate) tool: String,
    pub(crate) risk: &'static str,
    /// The rule that takes the tool away; absent: the model is offered it.
    pub(crate) refused: Option<String>,
    /// The rule by which each call needs an approval.
    pub(crate) asks: Option<String>,
    pub(crate) because: Option<Cause>,
    /// The position of the rule in the order of checks.
    #[serde(skip)]
    order: u8,
}

/// A rule that takes tools away, with what is left after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ToolsLeft {
    /// The setting, or the rule in words.
    pub(crate) rule: String,
    pub(crate) line: Option<usize>,
    /// The tools that this rule takes away.
    pub(crate) taken: Vec<String>,
    /// How many are left.
    pub(crate) left: usize,
}

/// The rules that take tools away, in the order in which they are asked.
pub(crate) fn tools_left(tools: &[ToolRight]) -> Vec<ToolsLeft> {
    let refused = tools.iter().filter(|right| right.refused.is_some());
    let mut refused: Vec<&ToolRight> = refused.collect();
    refused.sort_by_key(|right| right.order);
    let mut steps: Vec<ToolsLeft> = Vec::new();
    let mut left = tools.len();
    for right in refused {
        left -= 1;
        let cause = right.because.as_ref();
        let in_words = right.refused.clone().unwrap_or_default();
        let rule = cause.map_or(in_words, |cause| cause.setting.clone());
        match steps.last_mut().filter(|step| step.rule == rule) {
            Some(step) => {
                step.taken.push(right.tool.clone());
                step.left = left;
            }
            None => steps.push(ToolsLeft {
                rule,
                line: cause.and_then(|cause| cause.line),
                taken: vec![right.tool.clone()],
                left,
            }),
        }
    }
    steps
}

/// The position of a rule in the order of checks.
fn order(withheld: &Withheld) -> u8 {
    match withheld {
        Withheld::NoUse(_) => 0,
        Withheld::Refused(refusal) => match refusal {
            Refusal::ProfileAllows { .. } => 1,
            Refusal::ProfileDenies { .. } => 2,
            Refusal::ProfileRisk { .. } => 3,
            Refusal::AgentAllows => 4,
            Refusal::AgentDenies => 5,
            Refusal::AgentRisk { .. } => 6,
            Refusal::Ceiling { .. } => 7,
            Refusal::ForEverybody { .. } => 8,
            Refusal::Depth
            | Refusal::Hops
            | Refusal::Silent
            | Refusal::Timeless
            | Refusal::ByJob
            | Refusal::Task
            | Refusal::Parent(_)
            | Refusal::Untrusted { .. } => 9,
        },
    }
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct SkillRights {
    pub(crate) readable: Vec<SkillRight>,
    pub(crate) left_out: Vec<SkillRight>,
    pub(crate) because: Option<Cause>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct SkillRight {
    pub(crate) skill: String,
    /// `pool` or `local`.
    pub(crate) origin: String,
    pub(crate) reason: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct MemoryRight {
    pub(crate) on: bool,
    /// Memories that are put into the prompt without a search; empty where recall is off.
    pub(crate) recalls: Vec<String>,
    /// Memories that the agent can search.
    pub(crate) searches: Vec<String>,
    /// The default visibility of memories saved here.
    pub(crate) saves_for: &'static str,
    pub(crate) because: Option<Cause>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Budget {
    /// The setting.
    pub(crate) limit: String,
    /// Absent: no limit.
    pub(crate) most: Option<Value>,
    /// Set for a daily limit.
    pub(crate) spent_today: Option<Value>,
    /// Set for a monthly limit.
    pub(crate) spent_this_month: Option<Value>,
    #[schema(value_type = String)]
    pub(crate) source: Source,
    pub(crate) line: Option<usize>,
    /// The setting that this value is inherited from.
    pub(crate) from: Option<String>,
}

/// The person that a turn would be for.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    pub(crate) person: PersonId,
    pub(crate) role: Role,
    pub(crate) place: SessionKey,
}

/// What a turn of this agent would get now.
pub(crate) async fn abilities(
    db: &Db,
    config: &Arc<Config>,
    settings: &Settings,
    agent: &Arc<Agent>,
    asker: &Asker,
) -> Result<Abilities, StoreError> {
    let (view, place) = (View::of(config.switch, agent.uid), asker.place.clone());
    let read =
        move |connection: &Connection| Ok(read_in(&transcript::history(connection, &place, view)?));
    let read = db.read(read).await? | Labels::of(asker.role);
    Ok(Abilities {
        tools: tools(db, config, settings, agent, asker.role),
        skills: skills(settings, agent),
        memory: memory(config, settings, agent, asker, read),
        budgets: budgets(db, config, settings, agent, asker).await?,
    })
}

fn tools(
    db: &Db,
    config: &Arc<Config>,
    settings: &Settings,
    agent: &Arc<Agent>,
    role: Role,
) -> Vec<ToolRight> {
    let switch = config.switch;
    let all = toolbox(&Memories::new(db.clone()), db, Arc::new(move || switch));
    let view = all.view(agent, role);
    let right = |(tool, risk, withheld): (&str, crate::tools::Risk, Option<Withheld>)| {
        let asks = view.asks(tool).filter(|_| withheld.is_none());
        let because = match &withheld {
            Some(withheld) => deciding(agent, tool, withheld),
            None => asks.as_ref().and_then(|rule| asking(agent, rule)),
        };
        ToolRight {
            tool: tool.to_owned(),
            risk: risk.as_str(),
            order: withheld.as_ref().map_or(0, order),
            because: because.and_then(|setting| cause(settings, &setting)),
            asks: asks.map(|rule| rule.to_string()),
            refused: withheld.map(|withheld| match withheld {
                Withheld::NoUse(reason) => reason.to_owned(),
                Withheld::Refused(refusal) => refusal.to_string(),
            }),
        }
    };
    view.ruled().map(right).collect()
}

/// The setting behind a refusal; none for rules that no setting changes.
fn deciding(agent: &Agent, tool: &str, withheld: &Withheld) -> Option<String> {
    let own = |key: &str| format!("agents.{}.{key}", agent.id);
    Some(match withheld {
        Withheld::NoUse(_) if tool == "skill" => own("skills"),
        Withheld::NoUse(_) => own("memory"),
        Withheld::Refused(refusal) => match refusal {
            Refusal::ProfileAllows { profile } => format!("risk_profiles.{profile}.allow"),
            Refusal::ProfileDenies { profile } => format!("risk_profiles.{profile}.deny"),
            Refusal::ProfileRisk { profile, .. } => format!("risk_profiles.{profile}.max_risk"),
            Refusal::AgentAllows => own("tools.allow"),
            Refusal::AgentDenies => own("tools.deny"),
            Refusal::AgentRisk { .. } => own("max_risk"),
            Refusal::Ceiling { role, .. } => format!("access.tools.{role}"),
            Refusal::Parent(_)
            | Refusal::ForEverybody { .. }
            | Refusal::Depth
            | Refusal::Hops
            | Refusal::Silent
            | Refusal::Timeless
            | Refusal::ByJob
            | Refusal::Task
            | Refusal::Untrusted { .. } => return None,
        },
    })
}

/// The setting behind a rule that asks.
fn asking(agent: &Agent, rule: &Asks) -> Option<String> {
    Some(match rule {
        Asks::Profile { profile } => format!("risk_profiles.{profile}.ask"),
        Asks::Agent => format!("agents.{}.tools.ask", agent.id),
        Asks::Parent(_) | Asks::Untrusted { .. } => return None,
    })
}

pub(crate) fn cause(settings: &Settings, key: &str) -> Option<Cause> {
    let setting = settings.get(key)?;
    Some(Cause {
        setting: setting.key.clone(),
        source: setting.source,
        line: setting.line,
    })
}

fn skills(settings: &Settings, agent: &Agent) -> SkillRights {
    let skills = Skills::load(agent);
    let readable = skills.readable.iter().map(|skill| SkillRight {
        skill: skill.name.clone(),
        origin: skill.origin.to_string(),
        reason: skill.because.to_string(),
    });
    let left_out = skills.left_out.iter().map(|skill| SkillRight {
        skill: skill.name.clone(),
        origin: skill.origin.to_string(),
        reason: skill.reason.to_string(),
    });
    SkillRights {
        readable: readable.collect(),
        left_out: left_out.collect(),
        because: cause(settings, &format!("agents.{}.skills", agent.id)),
    }
}

fn memory(
    config: &Config,
    settings: &Settings,
    agent: &Agent,
    asker: &Asker,
    read: Labels,
) -> MemoryRight {
    let is_on = agent.memory.is_on;
    let ids = config.access.people.ids_of(&asker.person);
    let reader = Reader::new(&asker.person, ids, &asker.place, asker.role).having_read(read);
    let recalls = is_on && agent.memory.recall_tokens > 0;
    let saves_for = match agent.memory.default_visibility {
        _ if !is_on => "nobody",
        DefaultVisibility::Apart if asker.place.is_private() => "the person",
        DefaultVisibility::Apart => "the place",
        DefaultVisibility::Private => "the agent",
        DefaultVisibility::Global => "every agent",
    };
    let parts = |is_there: bool, scope: Scope<'_>| match is_there {
        true => scope.parts(),
        false => Vec::new(),
    };
    MemoryRight {
        on: is_on,
        recalls: parts(recalls, Scope::RecalledBy(agent, &reader)),
        searches: parts(is_on, Scope::Of(agent, &reader)),
        saves_for,
        because: cause(settings, &format!("agents.{}.memory", agent.id)),
    }
}

/// Owners have no limits of their own.
async fn budgets(
    db: &Db,
    config: &Arc<Config>,
    settings: &Settings,
    agent: &Agent,
    asker: &Asker,
) -> Result<Vec<Budget>, StoreError> {
    let person = config.access.people.main_id(&asker.person).clone();
    let uid = agent.uid;
    let sums = move |connection: &Connection| {
        let spender = |spender| SpentSoFar::of(connection, &spender, now_ms());
        Ok((
            spender(Spender::Agent(uid))?,
            spender(Spender::Person(person))?,
            spender(Spender::House)?,
        ))
    };
    let (of_agent, of_person, of_house) = db.read(sums).await?;
    let mut all = limits(settings, &format!("agents.{}.limits", agent.id), &of_agent);
    let role = match asker.role {
        Role::Guest => Some("guest"),
        Role::Member | Role::Admin => Some("member"),
        Role::Owner => None,
    };
    if let Some(role) = role {
        let section = format!("access.limits.{role}");
        all.extend(limits(settings, &section, &of_person));
    }
    all.extend(limits(settings, "limits", &of_house));
    Ok(all)
}

/// What one spender has spent.
struct SpentSoFar {
    day: Spent,
    month: Spent,
}

impl SpentSoFar {
    fn of(connection: &Connection, spender: &Spender, now: i64) -> rusqlite::Result<Self> {
        let spent = |span| ledger::sum(connection, spender, span, now).map(|sum| sum.spent);
        Ok(SpentSoFar {
            day: spent(Span::Day)?,
            month: spent(Span::Month)?,
        })
    }

    /// What is spent of the limit with this key.
    fn against(&self, key: &str) -> (Option<Value>, Option<Value>) {
        let cost = |spent: Spent| Some(json!(spent.cost.to_string()));
        match key.rsplit('.').next().unwrap_or_default() {
            "tokens_per_day" => (Some(json!(self.day.tokens)), None),
            "cost_per_day" => (cost(self.day), None),
            "tokens_per_month" => (None, Some(json!(self.month.tokens))),
            "cost_per_month" => (None, cost(self.month)),
            _ => (None, None),
        }
    }
}

fn limits(settings: &Settings, section: &str, spent: &SpentSoFar) -> Vec<Budget> {
    let found = settings.below(section).unwrap_or_default();
    let budget = |setting: &&Setting| {
        let (spent_today, spent_this_month) = spent.against(&setting.key);
        Budget {
            limit: setting.key.clone(),
            // 0 is no limit.
            most: setting
                .value
                .clone()
                .filter(|most| most.as_f64() != Some(0.0)),
            spent_today,
            spent_this_month,
            source: setting.source,
            line: setting.line,
            from: setting.from.clone(),
        }
    };
    found.iter().map(budget).collect()
}
