//! An agent's table by itself, as a package carries it: a field of a known kind for each key.
//!
//! A package may come from strangers. Its table is read into this type and written from this type,
//! so no text of the package can become another table of the file.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};
use toml_edit::{Array, InlineTable, Item, Table, Value};

use super::{AfterUntrusted, MemorySwitch, Reasoning, Risk, RiskProfile, Spanned};
use crate::domain::{AgentId, Role};
use crate::jobs::{Timetable, When, in_words};

/// Names in a list.
const MOST_NAMES: usize = 256;

/// The keys of `[agents.<id>]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AgentTable {
    pub(crate) name: Option<String>,
    pub(crate) emoji: Option<String>,
    pub(crate) creature: Option<String>,
    pub(crate) vibe: Option<String>,
    pub(crate) time_zone: Option<String>,
    pub(crate) who: Option<WhoWords>,
    pub(crate) model: Option<String>,
    pub(crate) fallback: Option<Names>,
    pub(crate) temperature: Option<f64>,
    pub(crate) max_tokens: Option<u32>,
    #[serde(deserialize_with = "word")]
    pub(crate) reasoning: Option<Reasoning>,
    pub(crate) skills: Option<SkillNames>,
    pub(crate) personality: Option<String>,
    pub(crate) system_prompt: Option<String>,
    #[serde(deserialize_with = "word")]
    pub(crate) memory: Option<MemorySwitch>,
    pub(crate) recall: Option<bool>,
    pub(crate) recall_tokens: Option<u32>,
    pub(crate) recall_visibility: Option<Names>,
    pub(crate) recall_kinds: Option<Names>,
    pub(crate) recall_max_age_days: Option<u32>,
    pub(crate) read_memory_from: Option<Names>,
    pub(crate) memory_for_guests: Option<bool>,
    pub(crate) tools: ToolNames,
    pub(crate) risk_profile: Option<String>,
    #[serde(deserialize_with = "word")]
    pub(crate) max_risk: Option<Risk>,
    #[serde(deserialize_with = "word")]
    pub(crate) after_untrusted: Option<AfterUntrusted>,
    pub(crate) access: Option<AccessNames>,
    pub(crate) workspace_mb: Option<u32>,
    pub(crate) limits: LimitKeys,
    pub(crate) jobs: Vec<JobKeys>,
    pub(crate) heartbeat: Option<HeartbeatKeys>,
}

/// The keys of a job.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct JobKeys {
    name: Option<String>,
    cron: Option<String>,
    every: Option<String>,
    at: Option<String>,
    time_zone: Option<String>,
    prompt: Option<String>,
    prompt_file: Option<String>,
    place: Option<String>,
    context: Option<String>,
    quiet: Option<String>,
    missed: Option<String>,
    jitter: Option<String>,
    enabled: Option<bool>,
}

/// The keys of a heartbeat.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct HeartbeatKeys {
    every: Option<String>,
    hours: Option<String>,
    place: Option<String>,
    context: Option<String>,
    enabled: Option<bool>,
}

impl JobKeys {
    /// The keys of a job that was not made in the file.
    pub(crate) fn of(name: &str, timetable: &Timetable, zone: Option<&str>, prompt: &str) -> Self {
        let (mut cron, mut every, mut at) = (None, None, None);
        match &timetable.when {
            When::Cron { cron: text, .. } => cron = Some(text.as_str().to_owned()),
            When::Every { ms, .. } => every = Some(in_words(*ms)),
            When::At(moment) => {
                let moment = chrono::DateTime::from_timestamp_millis(*moment).unwrap_or_default();
                at = Some(moment.format("%Y-%m-%dT%H:%M:%SZ").to_string());
            }
        }
        JobKeys {
            name: Some(name.to_owned()),
            cron,
            every,
            at,
            time_zone: zone.map(str::to_owned),
            prompt: Some(prompt.to_owned()),
            quiet: timetable.quiet.map(|quiet| quiet.to_string()),
            missed: Some(timetable.missed.to_string()),
            ..JobKeys::default()
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// The job on arrival in another house: at rest, and without its old place.
    pub(crate) fn at_rest(&self) -> Self {
        JobKeys {
            place: None,
            context: None,
            enabled: Some(false),
            ..self.clone()
        }
    }

    fn inline(&self) -> InlineTable {
        let text = |text: &Option<String>| text.as_deref().map(Value::from);
        inline([
            ("name", text(&self.name)),
            ("cron", text(&self.cron)),
            ("every", text(&self.every)),
            ("at", text(&self.at)),
            ("time_zone", text(&self.time_zone)),
            ("prompt", text(&self.prompt)),
            ("prompt_file", text(&self.prompt_file)),
            ("place", text(&self.place)),
            ("context", text(&self.context)),
            ("quiet", text(&self.quiet)),
            ("missed", text(&self.missed)),
            ("jitter", text(&self.jitter)),
            ("enabled", self.enabled.map(Value::from)),
        ])
    }
}

impl HeartbeatKeys {
    /// As [`JobKeys::at_rest`].
    pub(crate) fn at_rest(&self) -> Self {
        HeartbeatKeys {
            place: None,
            context: None,
            enabled: Some(false),
            ..self.clone()
        }
    }

    fn inline(&self) -> InlineTable {
        let text = |text: &Option<String>| text.as_deref().map(Value::from);
        inline([
            ("every", text(&self.every)),
            ("hours", text(&self.hours)),
            ("place", text(&self.place)),
            ("context", text(&self.context)),
            ("enabled", self.enabled.map(Value::from)),
        ])
    }
}

/// `who`: a word or several.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum WhoWords {
    One(String),
    Several(Names),
}

impl WhoWords {
    /// The role, if the word is a role.
    pub(crate) fn role(&self) -> Option<Role> {
        match self {
            WhoWords::One(word) => word.parse().ok(),
            WhoWords::Several(_) => None,
        }
    }

    fn value(&self) -> Value {
        match self {
            WhoWords::One(word) => word.as_str().into(),
            WhoWords::Several(names) => names.list().into(),
        }
    }
}

/// `skills`: a list, or the lists `allow` and `deny`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(
    untagged,
    expecting = "`skills` is a list of names, or a table with the lists `allow` and `deny`"
)]
pub(crate) enum SkillNames {
    Allow(Names),
    Lists(SkillLists),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SkillLists {
    pub(crate) allow: Option<Names>,
    pub(crate) deny: Option<Names>,
}

impl SkillNames {
    pub(crate) fn lists(self) -> SkillLists {
        match self {
            SkillNames::Allow(names) => SkillLists {
                allow: Some(names),
                deny: None,
            },
            SkillNames::Lists(lists) => lists,
        }
    }

    fn value(&self) -> Value {
        match self {
            SkillNames::Allow(names) => names.list().into(),
            SkillNames::Lists(lists) => {
                let list = |names: &Option<Names>| names.as_ref().map(|names| names.list().into());
                inline([("allow", list(&lists.allow)), ("deny", list(&lists.deny))]).into()
            }
        }
    }
}

/// The keys of `tools`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ToolNames {
    pub(crate) allow: Option<Names>,
    pub(crate) deny: Option<Names>,
    pub(crate) ask: Option<Names>,
}

/// The keys of `access`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AccessNames {
    read: Option<Names>,
    write: Option<Names>,
}

/// The keys of `limits`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LimitKeys {
    pub(crate) max_steps: Option<u32>,
    pub(crate) max_minutes: Option<u32>,
    pub(crate) tokens_per_turn: Option<u32>,
    pub(crate) tokens_per_day: Option<u32>,
    pub(crate) cost_per_day: Option<f64>,
    pub(crate) tokens_per_month: Option<u32>,
    pub(crate) cost_per_month: Option<f64>,
    pub(crate) turns_per_minute: Option<u32>,
}

/// A short list of names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub(crate) struct Names(pub(crate) Vec<String>);

impl TryFrom<Vec<String>> for Names {
    type Error = String;

    fn try_from(names: Vec<String>) -> Result<Self, String> {
        if names.len() > MOST_NAMES {
            return Err(format!("a list has more than {MOST_NAMES} names"));
        }
        Ok(Names(names))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    agents: BTreeMap<String, AgentTable>,
}

fn word<'de, D: Deserializer<'de>, T: FromStr>(deserializer: D) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let known = text.parse().map(Some);
    known.map_err(|_| serde::de::Error::custom(format_args!("this key cannot be `{text}`")))
}

impl AgentTable {
    /// Reads a text with the table of this agent and nothing else. An agent without settings has no
    /// table. The error names the mistake and its line.
    pub(crate) fn read(text: &str, id: &AgentId) -> Result<Self, String> {
        let mut file: File = toml::from_str(text).map_err(|error| {
            let before = error
                .span()
                .and_then(|span| text.get(..span.start))
                .unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            // The list of all keys would be longer than the reason.
            let reason = error.message();
            let reason = reason.split(", expected one of").next().unwrap_or(reason);
            format!("line {line}: {reason}")
        })?;
        let table = file.agents.remove(id.as_str()).unwrap_or_default();
        match file.agents.into_keys().next() {
            None => Ok(table),
            Some(other) => Err(format!(
                "it has a table [agents.{other}], and the agent is {id}"
            )),
        }
    }

    /// Puts the limits of a risk profile into the table itself. A profile of the same name may have
    /// other limits in another house.
    pub(crate) fn take_in_profile(&mut self, profile: &RiskProfile) {
        let named = |names: &[Spanned<String>]| -> Vec<String> {
            names.iter().map(|name| name.value.clone()).collect()
        };
        if let Some(allowed) = profile.limits.allow.as_deref().map(named) {
            let both = match self.tools.allow.take() {
                None => allowed,
                Some(Names(own)) => own
                    .into_iter()
                    .filter(|name| allowed.contains(name))
                    .collect(),
            };
            self.tools.allow = Some(Names(both));
        }
        let lists = [
            (&profile.limits.deny, &mut self.tools.deny),
            (&profile.limits.ask, &mut self.tools.ask),
        ];
        for (shared, own) in lists.map(|(shared, own)| (named(shared), own)) {
            if !shared.is_empty() {
                let Names(own) = own.get_or_insert_default();
                own.extend(shared);
                own.sort();
                own.dedup();
            }
        }
        self.max_risk = match (self.max_risk, profile.max_risk) {
            (Some(own), Some(shared)) => Some(own.min(shared)),
            (own, shared) => own.or(shared),
        };
        self.risk_profile = None;
    }

    /// The table for the file, without tables inside.
    pub(crate) fn written(&self) -> Table {
        let mut table = Table::new();
        let words = [
            ("name", self.name.as_deref()),
            ("emoji", self.emoji.as_deref()),
            ("creature", self.creature.as_deref()),
            ("vibe", self.vibe.as_deref()),
            ("time_zone", self.time_zone.as_deref()),
            ("model", self.model.as_deref()),
            ("reasoning", self.reasoning.map(Reasoning::as_str)),
            ("personality", self.personality.as_deref()),
            ("system_prompt", self.system_prompt.as_deref()),
            ("memory", self.memory.map(MemorySwitch::as_str)),
            ("risk_profile", self.risk_profile.as_deref()),
            ("max_risk", self.max_risk.map(Risk::as_str)),
            (
                "after_untrusted",
                self.after_untrusted.map(AfterUntrusted::as_str),
            ),
        ];
        put_all(&mut table, words);
        put_all(
            &mut table,
            [("who", self.who.as_ref().map(WhoWords::value))],
        );
        put_all(
            &mut table,
            [
                ("max_tokens", self.max_tokens.map(i64::from)),
                ("recall_tokens", self.recall_tokens.map(i64::from)),
                (
                    "recall_max_age_days",
                    self.recall_max_age_days.map(i64::from),
                ),
                ("workspace_mb", self.workspace_mb.map(i64::from)),
            ],
        );
        put_all(&mut table, [("temperature", self.temperature)]);
        put_all(
            &mut table,
            [
                ("recall", self.recall),
                ("memory_for_guests", self.memory_for_guests),
            ],
        );
        put_all(
            &mut table,
            [
                ("fallback", self.fallback.as_ref().map(Names::list)),
                (
                    "recall_visibility",
                    self.recall_visibility.as_ref().map(Names::list),
                ),
                ("recall_kinds", self.recall_kinds.as_ref().map(Names::list)),
                (
                    "read_memory_from",
                    self.read_memory_from.as_ref().map(Names::list),
                ),
            ],
        );
        let skills = self.skills.as_ref().map(SkillNames::value);
        put_all(&mut table, [("skills", skills)]);
        let access = self.access.as_ref().map(AccessNames::inline);
        let inner = [
            ("tools", Some(self.tools.inline())),
            ("access", access),
            ("limits", Some(self.limits.inline())),
        ];
        put_all(
            &mut table,
            inner.map(|(key, inner)| (key, inner.filter(|inner| !inner.is_empty()))),
        );
        let jobs: Array = self.jobs.iter().map(JobKeys::inline).collect();
        let heartbeat = self.heartbeat.as_ref().map(HeartbeatKeys::inline);
        put_all(
            &mut table,
            [("jobs", Some(jobs).filter(|jobs| !jobs.is_empty()))],
        );
        put_all(&mut table, [("heartbeat", heartbeat)]);
        table
    }
}

fn put_all<T: Into<Value>, const N: usize>(table: &mut Table, entries: [(&str, Option<T>); N]) {
    for (key, entry) in entries {
        if let Some(entry) = entry {
            table.insert(key, Item::Value(entry.into()));
        }
    }
}

fn inline<const N: usize>(entries: [(&str, Option<Value>); N]) -> InlineTable {
    let present = entries
        .into_iter()
        .filter_map(|(key, entry)| Some((key, entry?)));
    present.collect()
}

impl Names {
    fn list(&self) -> Array {
        self.0.iter().map(String::as_str).collect()
    }
}

impl ToolNames {
    fn inline(&self) -> InlineTable {
        let list = |names: &Option<Names>| names.as_ref().map(|names| names.list().into());
        inline([
            ("allow", list(&self.allow)),
            ("deny", list(&self.deny)),
            ("ask", list(&self.ask)),
        ])
    }
}

impl AccessNames {
    fn inline(&self) -> InlineTable {
        let list = |names: &Option<Names>| names.as_ref().map(|names| names.list().into());
        inline([("read", list(&self.read)), ("write", list(&self.write))])
    }
}

impl LimitKeys {
    fn inline(&self) -> InlineTable {
        let count = |count: Option<u32>| count.map(|count| i64::from(count).into());
        inline([
            ("max_steps", count(self.max_steps)),
            ("max_minutes", count(self.max_minutes)),
            ("tokens_per_turn", count(self.tokens_per_turn)),
            ("tokens_per_day", count(self.tokens_per_day)),
            ("cost_per_day", self.cost_per_day.map(Value::from)),
            ("tokens_per_month", count(self.tokens_per_month)),
            ("cost_per_month", self.cost_per_month.map(Value::from)),
            ("turns_per_minute", count(self.turns_per_minute)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ToolLimits, edit, schema};
    use super::*;

    fn rose() -> AgentId {
        AgentId::parse("rose").unwrap()
    }

    fn read(keys: &str) -> Result<AgentTable, String> {
        AgentTable::read(&format!("[agents.rose]\n{keys}"), &rose())
    }

    /// Names are strings without lines of their own, so a list of them is one line of the error.
    fn refused(text: &str) -> String {
        let told = AgentTable::read(text, &rose()).unwrap_err();
        told.split(", expected").next().unwrap().to_owned()
    }

    /// A key that is new in the config has a field here too.
    #[test]
    fn every_key_of_an_agent_is_read_and_written() {
        for (shape, inner) in [
            (&schema::AGENT, None),
            (&schema::TOOL_LIMITS, Some("tools")),
            (&schema::SKILL_LISTS, Some("skills")),
            (&schema::SIBLINGS, Some("access")),
            (&schema::AGENT_LIMITS, Some("limits")),
            (&schema::HEARTBEAT, Some("heartbeat")),
            (&schema::JOB, Some("jobs")),
        ] {
            for key in shape.keys {
                let entry = key.usage();
                let line = match inner {
                    None => entry,
                    Some("jobs") => format!("jobs = [{{ {entry} }}]"),
                    Some(inner) => format!("{inner} = {{ {entry} }}"),
                };
                let table = read(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
                let again = read(&table.written().to_string()).unwrap();
                assert_eq!(table, again, "{line}");
                assert_ne!(table, AgentTable::default(), "{line}");
            }
        }
    }

    #[test]
    fn anything_but_the_table_of_the_agent_is_refused() {
        insta::assert_snapshot!(refused("[agents.rose]\n[agents.rose.memory]\ndefault_visibility = \"global\""), @"line 2: invalid type: map");
        insta::assert_snapshot!(refused("[memory]\ndefault_visibility = \"global\""), @"line 1: unknown field `memory`");
        insta::assert_snapshot!(refused("[agents.rose]\nname = { access = 1 }"), @"line 2: invalid type: map");
        insta::assert_snapshot!(refused("[agents.rose]\nname = [\"x\"]"), @"line 2: invalid type: sequence");
        insta::assert_snapshot!(refused("[agents.rose]\nmodel.access = 1"), @"line 2: invalid type: map");
        insta::assert_snapshot!(refused("[agents.rose]\nsecret = 1"), @"line 2: unknown field `secret`");
        insta::assert_snapshot!(refused("[agents.rose.tools]\nevery = true"), @"line 2: unknown field `every`");
        insta::assert_snapshot!(refused("[agents.rose]\nmax_tokens = -1"), @"line 2: invalid value: integer `-1`");
        insta::assert_snapshot!(refused("[agents.rose]\nmax_risk = \"all\""), @"line 2: this key cannot be `all`");
        insta::assert_snapshot!(refused("[agents.main]\nname = \"Rose\""), @"it has a table [agents.main], and the agent is rose");
        insta::assert_snapshot!(refused("[agents.rose]\n[[agents.rose.skills]]\nx = 1"), @"line 2: `skills` is a list of names, or a table with the lists `allow` and `deny`");
        insta::assert_snapshot!(refused("default_agent = \"rose\""), @"line 1: unknown field `default_agent`");
        insta::assert_snapshot!(refused("[[bindings]]\nmatch = \"*\""), @"line 1: unknown field `bindings`");
        insta::assert_snapshot!(refused("[agents.rose"), @"line 1: unclosed table");
        let many = format!("[agents.rose]\nskills = [{}]", "\"a\", ".repeat(300));
        insta::assert_snapshot!(refused(&many), @"line 2: `skills` is a list of names, or a table with the lists `allow` and `deny`");
        assert_eq!(AgentTable::read("", &rose()), Ok(AgentTable::default()));
    }

    /// Texts with quotes, brackets and line breaks stay texts.
    #[test]
    fn a_text_cannot_end_its_table() {
        let evil = "\"\"\"\n[memory]\ndefault_visibility = \"global\"\n'''\n[agents.main]\n";
        let table = AgentTable {
            name: Some(evil.into()),
            system_prompt: Some(evil.into()),
            skills: Some(SkillNames::Allow(Names(vec![evil.into()]))),
            ..AgentTable::default()
        };
        let text = edit::add_table("[memory]\n", &rose(), table.written()).unwrap();
        let parsed: toml::Table = text.parse().unwrap();
        assert_eq!(parsed["memory"].as_table().unwrap().len(), 0);
        assert_eq!(parsed["agents"].as_table().unwrap().len(), 1);
        assert_eq!(parsed["agents"]["rose"]["name"].as_str(), Some(evil));
    }

    #[test]
    fn the_limits_of_a_profile_are_added_to_those_of_the_agent() {
        let names = |names: &[&str]| -> Vec<Spanned<String>> {
            let spanned = names.iter().map(|name| Spanned {
                value: (*name).to_owned(),
                span: 0..0,
            });
            spanned.collect()
        };
        let profile = RiskProfile {
            name: "careful".into(),
            limits: ToolLimits {
                allow: Some(names(&["now", "file_read"])),
                deny: names(&["web_fetch"]),
                ask: names(&["message_send"]),
            },
            max_risk: Some(Risk::Change),
        };
        let with = |keys: &str| {
            let mut table = read(keys).unwrap();
            table.take_in_profile(&profile);
            table.written().to_string()
        };
        insta::assert_snapshot!(with("risk_profile = \"careful\""), @r#"
        max_risk = "change"
        tools = { allow = ["now", "file_read"], deny = ["web_fetch"], ask = ["message_send"] }
        "#);
        insta::assert_snapshot!(with("tools = { allow = [\"now\", \"skill\"], deny = [\"now\"], ask = [\"schedule\"] }\nmax_risk = \"look\""), @r#"
        max_risk = "look"
        tools = { allow = ["now"], deny = ["now", "web_fetch"], ask = ["message_send", "schedule"] }
        "#);
    }
}
