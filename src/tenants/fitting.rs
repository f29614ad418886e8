//! Fits the table of an imported agent into this house: its limits come along, its rights do not.

use super::editing::Editing;
use super::error::TenantError;
use crate::config::edit;
use crate::config::{
    AgentLimits, AgentTable, AgentTools, HeartbeatKeys, JobKeys, Names, Risk, SkillLists,
    SkillNames, WhoWords,
};
use crate::domain::{AgentId, Role};
use crate::tools;

/// The config with the agent's table.
#[derive(Debug)]
pub(super) struct Fitted {
    pub(super) text: String,
    /// The agent's table alone.
    pub(super) table: String,
    /// Keys and names without effect here.
    pub(super) left_out: Vec<String>,
    /// Limits that did not fit, for which the agent got read-only tools instead.
    pub(super) tightened: Vec<String>,
}

type Take = fn(&mut AgentTable, &AgentTable);

/// Limits of the agent at home. The agent may do no more here, so a stricter limit replaces a limit
/// that does not fit.
const LIMITS: [(&str, Take); 15] = [
    ("who", |to, from| to.who = from.who.clone()),
    ("max_risk", |to, from| to.max_risk = from.max_risk),
    ("after_untrusted", |to, from| {
        to.after_untrusted = from.after_untrusted;
    }),
    ("tools", |to, from| to.tools = from.tools.clone()),
    ("limits.max_steps", |to, from| {
        to.limits.max_steps = from.limits.max_steps;
    }),
    ("limits.max_minutes", |to, from| {
        to.limits.max_minutes = from.limits.max_minutes;
    }),
    ("limits.tokens_per_turn", |to, from| {
        to.limits.tokens_per_turn = from.limits.tokens_per_turn;
    }),
    ("limits.tokens_per_day", |to, from| {
        to.limits.tokens_per_day = from.limits.tokens_per_day;
    }),
    ("limits.cost_per_day", |to, from| {
        to.limits.cost_per_day = from.limits.cost_per_day;
    }),
    ("limits.tokens_per_month", |to, from| {
        to.limits.tokens_per_month = from.limits.tokens_per_month;
    }),
    ("limits.cost_per_month", |to, from| {
        to.limits.cost_per_month = from.limits.cost_per_month;
    }),
    ("limits.turns_per_minute", |to, from| {
        to.limits.turns_per_minute = from.limits.turns_per_minute;
    }),
    ("workspace_mb", |to, from| {
        to.workspace_mb = from.workspace_mb;
    }),
    ("memory", |to, from| to.memory = from.memory),
    ("memory_for_guests", |to, from| {
        to.memory_for_guests = from.memory_for_guests;
    }),
];

/// Keys that give the agent no rights. The last ones are the likeliest to fit its old home only.
const HARMLESS: [(&str, Take); 18] = [
    ("emoji", |to, from| to.emoji = from.emoji.clone()),
    ("creature", |to, from| to.creature = from.creature.clone()),
    ("vibe", |to, from| to.vibe = from.vibe.clone()),
    ("time_zone", |to, from| {
        to.time_zone = from.time_zone.clone();
    }),
    ("temperature", |to, from| to.temperature = from.temperature),
    ("max_tokens", |to, from| to.max_tokens = from.max_tokens),
    ("reasoning", |to, from| to.reasoning = from.reasoning),
    ("system_prompt", |to, from| {
        to.system_prompt = from.system_prompt.clone();
    }),
    ("recall", |to, from| to.recall = from.recall),
    ("recall_tokens", |to, from| {
        to.recall_tokens = from.recall_tokens;
    }),
    ("recall_visibility", |to, from| {
        to.recall_visibility = from.recall_visibility.clone();
    }),
    ("recall_kinds", |to, from| {
        to.recall_kinds = from.recall_kinds.clone();
    }),
    ("recall_max_age_days", |to, from| {
        to.recall_max_age_days = from.recall_max_age_days;
    }),
    ("personality", |to, from| {
        to.personality = from.personality.clone();
    }),
    // They act by themselves, so they rest until the operator has looked at them.
    ("jobs", |to, from| {
        to.jobs = from.jobs.iter().map(JobKeys::at_rest).collect();
    }),
    ("heartbeat", |to, from| {
        to.heartbeat = from.heartbeat.as_ref().map(HeartbeatKeys::at_rest);
    }),
    ("name", |to, from| to.name = from.name.clone()),
    ("model", |to, from| to.model = from.model.clone()),
];

/// Takes over as much of the table as passes the check of the config. Blocks on the disk; the
/// agent's files are in their place, because the check looks for its skills.
pub(super) fn fit(
    editing: &Editing,
    mut wanted: AgentTable,
    id: &AgentId,
) -> Result<Fitted, TenantError> {
    let mut fitting = Fitting {
        editing,
        id,
        table: AgentTable::default(),
        left_out: Vec::new(),
        tightened: Vec::new(),
    };
    editing.check(&fitting.text(&fitting.table)?)?;
    fitting.leave_rights(&mut wanted);
    fitting.drop_unknown_tools(&mut wanted);
    for (key, take) in LIMITS {
        if !fitting.take(key, take, &wanted)? {
            fitting.tightened.push(key.to_owned());
        }
    }
    fitting.take_profile(&wanted)?;
    for (key, take) in HARMLESS {
        fitting.take(key, take, &wanted)?;
    }
    fitting.take_skills(wanted.skills)?;
    if !fitting.tightened.is_empty() {
        fitting.table.max_risk = Some(Risk::Look);
    }
    let text = fitting.text(&fitting.table)?;
    editing.check(&text)?;
    Ok(Fitted {
        text,
        table: edit::with_header(id, fitting.table.written()),
        left_out: fitting.left_out,
        tightened: fitting.tightened,
    })
}

struct Fitting<'a> {
    editing: &'a Editing,
    id: &'a AgentId,
    table: AgentTable,
    left_out: Vec<String>,
    tightened: Vec<String>,
}

/// People and places of another house mean nothing here, and a package must not open its agent: a
/// list becomes owners only. Returns whether `who` has changed.
fn close(who: &mut Option<WhoWords>) -> bool {
    match who.as_ref().map(WhoWords::role) {
        None | Some(Some(Role::Member | Role::Admin | Role::Owner)) => false,
        Some(Some(Role::Guest)) => {
            *who = None;
            true
        }
        Some(None) => {
            *who = Some(WhoWords::One(Role::Owner.as_str().to_owned()));
            true
        }
    }
}

impl Fitting<'_> {
    fn text(&self, table: &AgentTable) -> Result<String, TenantError> {
        Ok(edit::add_table(
            &self.editing.text,
            self.id,
            table.written(),
        )?)
    }

    /// Takes over a key if the config is right with the key. Returns whether the key fits.
    fn take(&mut self, key: &str, take: Take, wanted: &AgentTable) -> Result<bool, TenantError> {
        let mut more = self.table.clone();
        take(&mut more, wanted);
        let fits = more == self.table || self.editing.check(&self.text(&more)?).is_ok();
        if fits {
            self.table = more;
        } else {
            self.left_out.push(key.to_owned());
        }
        Ok(fits)
    }

    /// Leaves rights out, because only the operator of this house gives rights. A limit above the
    /// usual limit here would be a right too.
    fn leave_rights(&mut self, wanted: &mut AgentTable) {
        let usual = AgentLimits::default();
        let rights = [
            ("who", close(&mut wanted.who)),
            ("fallback", wanted.fallback.take().is_some()),
            ("read_memory_from", wanted.read_memory_from.take().is_some()),
            ("access", wanted.access.take().is_some()),
            (
                "limits.max_steps",
                cut(&mut wanted.limits.max_steps, usual.max_steps),
            ),
            (
                "limits.max_minutes",
                cut(&mut wanted.limits.max_minutes, usual.max_minutes),
            ),
            (
                "workspace_mb",
                cut(&mut wanted.workspace_mb, AgentTools::default().workspace_mb),
            ),
        ];
        let left = rights.into_iter().filter(|(_, is_left)| *is_left);
        self.left_out.extend(left.map(|(key, _)| key.to_owned()));
    }

    /// An unknown tool can be neither used nor denied.
    fn drop_unknown_tools(&mut self, wanted: &mut AgentTable) {
        let lists = [
            ("tools.allow", &mut wanted.tools.allow),
            ("tools.deny", &mut wanted.tools.deny),
            ("tools.ask", &mut wanted.tools.ask),
        ];
        for (key, list) in lists {
            let Some(Names(names)) = list else { continue };
            let is_known = |name: &String| tools::KNOWN.iter().any(|(known, _)| known == name);
            let (known, unknown) = std::mem::take(names).into_iter().partition(is_known);
            *names = known;
            let unknown: Vec<String> = unknown;
            let told = unknown.iter().map(|name| format!("{key} `{name}`"));
            self.left_out.extend(told);
        }
    }

    /// A package of an older version names a profile without the limits of the profile.
    fn take_profile(&mut self, wanted: &AgentTable) -> Result<(), TenantError> {
        if wanted.risk_profile.is_some() {
            let take: Take = |to, from| to.risk_profile = from.risk_profile.clone();
            self.take("risk_profile", take, wanted)?;
            self.tightened.push("risk_profile".to_owned());
        }
        Ok(())
    }

    /// An agent with a list has no more skills than its list, also if some are not here.
    fn take_skills(&mut self, wanted: Option<SkillNames>) -> Result<(), TenantError> {
        let Some(SkillLists { allow, deny }) = wanted.map(SkillNames::lists) else {
            return Ok(());
        };
        let Some(Names(allow)) = allow else {
            self.table.skills = Some(SkillNames::Lists(SkillLists { allow: None, deny }));
            return Ok(());
        };
        let mut taken = Names::default();
        let skills = |names: &Names| {
            let (allow, deny) = (Some(names.clone()), deny.clone());
            match deny {
                None => SkillNames::Allow(names.clone()),
                deny => SkillNames::Lists(SkillLists { allow, deny }),
            }
        };
        self.table.skills = Some(skills(&taken));
        for name in allow {
            let mut names = taken.clone();
            names.0.push(name.clone());
            let mut more = self.table.clone();
            more.skills = Some(skills(&names));
            if self.editing.check(&self.text(&more)?).is_ok() {
                (self.table, taken) = (more, names);
            } else {
                self.left_out.push(format!("skills `{name}`"));
            }
        }
        Ok(())
    }
}

/// Takes out a value above the usual value. Returns whether the value was taken out.
fn cut(value: &mut Option<u32>, usual: u32) -> bool {
    let is_above = value.is_some_and(|value| value > usual);
    if is_above {
        *value = None;
    }
    is_above
}
