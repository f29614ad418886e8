//! Every setting with its effective value, and the origin of the value: for `parlor config show`.
//!
//! The list is made from the schema, so a new key appears by itself. Secrets are told as set or not
//! set.

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value, json};
use toml::de::{DeTable, DeValue};

use super::documented::Documented;
use super::lookalikes::{looks_like_path, looks_like_variable};
use super::reader;
use super::report::line_of;
use super::schema::{Absence, Key, Kind, PLACES, SECRET, Shape};
use super::{Config, PersonLimits};
use crate::domain::nearest;

/// A setting, by its path in the file: `agents.rose.model`, `bindings[0].match`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Setting {
    pub(crate) key: String,
    /// Absent: not set. Of a secret: `set` or `not set`.
    pub(crate) value: Option<Value>,
    pub(crate) source: Source,
    /// The line of config.toml, counted from 1, where the value or its place is written.
    pub(crate) line: Option<usize>,
    /// The variable or file of a secret, or the other setting that decides.
    pub(crate) from: Option<String>,
    /// The meaning in words, for a form.
    #[serde(skip)]
    pub(crate) about: String,
    /// The words to choose from; empty where any value goes.
    #[serde(skip)]
    pub(crate) choices: Vec<&'static str>,
    #[serde(skip)]
    pub(crate) is_secret: bool,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Source {
    /// config.toml.
    File,
    /// Built in.
    Default,
    /// An environment variable, for secrets.
    Environment,
    /// A file of its own, for secrets.
    SecretFile,
    /// Another setting, which counts where this setting is not written.
    Other,
    NotSet,
}

impl Setting {
    /// Where the value comes from, in words: `config.toml:12`.
    pub(crate) fn origin(&self) -> String {
        origin(self.source, self.line, self.from.as_deref())
    }
}

pub(crate) fn origin(source: Source, line: Option<usize>, from: Option<&str>) -> String {
    let at = line.map_or_else(String::new, |line| format!("config.toml:{line}"));
    let (named, at) = (from.unwrap_or("hidden"), at.as_str());
    match source {
        Source::File => at.to_owned(),
        Source::Default => "default".to_owned(),
        Source::Environment => format!("environment variable {named}, {at}"),
        Source::SecretFile => format!("file {named}, {at}"),
        Source::Other if at.is_empty() => format!("{named}, default"),
        Source::Other => format!("{named}, {at}"),
        Source::NotSet => "not set".to_owned(),
    }
}

/// All settings of a checked config, in the order of the schema.
pub(crate) struct Settings {
    list: Vec<Setting>,
}

/// Nothing in the config is called so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no setting is called `{word}`{}", near.as_ref().map(|near| format!(". Did you mean `{near}`?")).unwrap_or_default())]
pub(crate) struct Unknown {
    word: String,
    near: Option<String>,
}

impl Settings {
    /// `text` is the text of the config's file.
    pub(crate) fn of(config: &Config, text: &str, home: &Path) -> Self {
        let (tree, _) = DeTable::parse_recoverable(text);
        let mut walk = Walk {
            config,
            text,
            home,
            documented: Documented::read(),
            list: Vec::new(),
        };
        if let Some((_, shape)) = PLACES.iter().find(|(place, _)| place.is_empty()) {
            walk.table(shape, "", "", Some(tree.get_ref()));
        }
        let mut settings = Settings { list: walk.list };
        settings.follow_others(config);
        settings
    }

    pub(crate) fn all(&self) -> &[Setting] {
        &self.list
    }

    /// The setting of this path.
    pub(crate) fn get(&self, key: &str) -> Option<&Setting> {
        self.list.iter().find(|setting| setting.key == key)
    }

    /// A section with all its settings, or a single setting.
    pub(crate) fn below(&self, word: &str) -> Result<Vec<&Setting>, Unknown> {
        let word = word.trim().trim_matches(['[', ']']);
        let is_below = |setting: &&Setting| {
            let rest = setting.key.strip_prefix(word);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let found: Vec<&Setting> = self.list.iter().filter(is_below).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let sections = self.list.iter().flat_map(|setting| {
            let dots = setting.key.match_indices('.').map(|(at, _)| at);
            dots.map(|at| &setting.key[..at])
                .chain([setting.key.as_str()])
        });
        Err(Unknown {
            word: word.to_owned(),
            near: nearest(word, sections).map(str::to_owned),
        })
    }

    /// Settings whose unwritten value comes from another setting.
    fn follow_others(&mut self, config: &Config) {
        for agent in &config.agents {
            let id = agent.id.as_str();
            self.follow(&format!("agents.{id}.model"), "default_model");
            let letters: String = capitalized(id);
            self.fall_back(&format!("agents.{id}.name"), json!(letters));
            self.fall_back(&format!("agents.{id}.who"), json!("member"));
        }
        for index in 0..config.bindings.len() {
            let key = format!("bindings[{index}].require_mention");
            self.follow(&key, "access.require_mention");
        }
        for (name, provider) in &config.providers {
            let key = format!("providers.{name}.base_url");
            self.correct(&key, json!(provider.base_url));
        }
        let limits = &config.access.limits;
        for (role, limits) in [("guest", &limits.guest), ("member", &limits.member)] {
            self.follow_limits(role, limits);
        }
    }

    /// A limit of all people counts where a role has none.
    fn follow_limits(&mut self, role: &str, limits: &PersonLimits) {
        let numbers = [
            ("messages_per_minute", u64::from(limits.messages_per_minute)),
            ("turns_per_minute", u64::from(limits.turns_per_minute)),
            ("tokens_per_day", limits.budget.day.tokens.unwrap_or(0)),
            ("tokens_per_month", limits.budget.month.tokens.unwrap_or(0)),
            ("turns_at_once", u64::from(limits.turns_at_once)),
        ];
        for (name, number) in numbers {
            let (key, of_all) = (
                format!("access.limits.{role}.{name}"),
                format!("access.limits.{name}"),
            );
            let is_of_all = self.get(&of_all).is_some_and(|of_all| {
                of_all.source == Source::File && of_all.value == Some(json!(number))
            });
            if is_of_all {
                self.follow(&key, &of_all);
            }
            self.correct(&key, json!(number));
        }
    }

    /// Takes the value of another setting, if this setting is not written.
    fn follow(&mut self, key: &str, other: &str) {
        let Some(Setting { value, line, .. }) = self.get(other).cloned() else {
            return;
        };
        if let Some(setting) = self.unwritten(key) {
            setting.value = value;
            setting.source = Source::Other;
            setting.line = line;
            setting.from = Some(other.to_owned());
        }
    }

    /// A default that depends on the name of the section.
    fn fall_back(&mut self, key: &str, value: Value) {
        if let Some(setting) = self.unwritten(key) {
            setting.value = Some(value);
            setting.source = Source::Default;
        }
    }

    /// A default that depends on other settings.
    fn correct(&mut self, key: &str, value: Value) {
        if let Some(setting) = self.unwritten(key) {
            setting.value = Some(value);
        }
    }

    fn unwritten(&mut self, key: &str) -> Option<&mut Setting> {
        let mut list = self.list.iter_mut();
        list.find(|setting| setting.key == key && setting.source != Source::File)
    }
}

fn capitalized(id: &str) -> String {
    let mut letters = id.chars();
    let first = letters.next();
    first
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

/// A walk through schema and file at the same time.
struct Walk<'a> {
    config: &'a Config,
    text: &'a str,
    home: &'a Path,
    documented: Documented,
    list: Vec<Setting>,
}

impl Walk<'_> {
    /// `place` names the kind of table in the schema, `path` this table in the file.
    fn table(
        &mut self,
        shape: &'static Shape,
        place: &str,
        path: &str,
        table: Option<&DeTable<'_>>,
    ) {
        for key in shape.keys {
            let (place, path) = (joined(place, key.name), joined(path, key.name));
            let value = table.and_then(|table| table.get(key.name));
            let inside = value.map(|value| value.get_ref());
            if let Some(shape) = shape_at(&place) {
                match inside {
                    Some(DeValue::Array(items)) => {
                        for (index, item) in items.iter().enumerate() {
                            let path = format!("{path}[{index}]");
                            self.table(shape, &place, &path, item.get_ref().as_table());
                        }
                    }
                    Some(inside) => self.table(shape, &place, &path, inside.as_table()),
                    None if has_defaults(&place) => self.table(shape, &place, &path, None),
                    None => {}
                }
            } else if let Some(shape) = shape_at(&format!("{place}.*")) {
                self.named(shape, &format!("{place}.*"), &path, inside);
            } else {
                let written = table.and_then(|table| table.get_key_value(key.name));
                let line = written.map(|(name, _)| line_of(&self.text[..name.span().start]));
                let setting = self.setting(key, &place, path, inside, line);
                self.list.push(setting);
            }
        }
    }

    /// Tables with a name of the operator's choice.
    fn named(
        &mut self,
        shape: &'static Shape,
        place: &str,
        path: &str,
        value: Option<&DeValue<'_>>,
    ) {
        let tables = value.and_then(DeValue::as_table);
        for (name, table) in tables.into_iter().flatten() {
            let path = joined(path, name.get_ref());
            self.table(shape, place, &path, table.get_ref().as_table());
        }
        // An agent need not be in the file.
        if path == "agents" {
            let agents = self.config.agents.iter();
            let unnamed: Vec<String> = agents
                .filter(|agent| agent.span.is_none())
                .map(|agent| joined(path, agent.id.as_str()))
                .collect();
            for path in unnamed {
                self.table(shape, place, &path, None);
            }
        }
    }

    fn setting(
        &self,
        key: &Key,
        place: &str,
        path: String,
        written: Option<&DeValue<'_>>,
        line: Option<usize>,
    ) -> Setting {
        let table = place.rsplit_once('.').map_or("", |(table, _)| table);
        let about = self.documented.meaning(table, key.name);
        let setting = |value, source| Setting {
            key: path.clone(),
            value,
            source,
            line,
            from: None,
            about: about.unwrap_or_default().to_owned(),
            choices: match key.kind {
                Kind::Word(words) => words(),
                _ => Vec::new(),
            },
            is_secret: is_secret(place, key),
        };
        match written {
            Some(value) if is_secret(place, key) => self.secret(setting(None, Source::File), value),
            Some(value) => setting(Some(in_json(value)), Source::File),
            None if key.absence == Absence::Default => {
                setting(self.default_of(place, key), Source::Default)
            }
            None => setting(None, Source::NotSet),
        }
    }

    /// The default, from the example file.
    fn default_of(&self, place: &str, key: &Key) -> Option<Value> {
        let table = place.rsplit_once('.').map_or("", |(table, _)| table);
        let shown = self.documented.key(table, key.name)?;
        let line = format!("x = {}", shown.value);
        let (tree, _) = DeTable::parse_recoverable(&line);
        tree.get_ref()
            .get("x")
            .map(|value| in_json(value.get_ref()))
    }

    /// Whether a secret is set, and its place. The secret itself is not shown.
    fn secret(&self, mut setting: Setting, value: &DeValue<'_>) -> Setting {
        let at = |name: &str| value.as_table()?.get(name)?.get_ref().as_str();
        let is_set = match (at("env"), at("file")) {
            (Some(variable), _) => {
                setting.source = Source::Environment;
                setting.from = looks_like_variable(variable).then(|| variable.to_owned());
                std::env::var(variable).is_ok_and(|text| !text.trim().is_empty())
            }
            (_, Some(path)) => {
                setting.source = Source::SecretFile;
                setting.from = looks_like_path(path).then(|| path.to_owned());
                let text = std::fs::read_to_string(self.home.join(path));
                text.is_ok_and(|text| !text.trim().is_empty())
            }
            _ => true,
        };
        setting.value = Some(json!(if is_set { "set" } else { "not set" }));
        setting
    }
}

fn joined(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

fn shape_at(place: &str) -> Option<&'static Shape> {
    let found = PLACES.iter().find(|(known, _)| *known == place);
    found.map(|(_, shape)| *shape)
}

/// Whether the defaults of a missing section count. Some sections stand for things that are off or
/// absent without the section.
fn has_defaults(place: &str) -> bool {
    !matches!(
        place,
        "telegram" | "discord" | "telegram.webhook" | "bindings" | "route_tests"
    )
}

/// A proxy's address may hold a password.
fn is_secret(place: &str, key: &Key) -> bool {
    let secrets = PLACES.iter().filter(|(_, shape)| shape.name == SECRET.name);
    let mut places = secrets.flat_map(|(places, _)| places.split('|'));
    matches!(key.kind, Kind::TextOrSecret) || places.any(|secret| secret == place)
}

fn in_json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => json!(text),
        DeValue::Integer(_) => reader::whole_number(value).map_or(Value::Null, Value::from),
        DeValue::Float(float) => float
            .as_str()
            .replace('_', "")
            .parse::<f64>()
            .map_or(Value::Null, Value::from),
        DeValue::Boolean(boolean) => json!(boolean),
        DeValue::Datetime(moment) => json!(moment.to_string()),
        DeValue::Array(items) => items.iter().map(|item| in_json(item.get_ref())).collect(),
        DeValue::Table(table) => table
            .iter()
            .map(|(name, value)| (name.get_ref().to_string(), in_json(value.get_ref())))
            .collect::<Map<String, Value>>()
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::config::tests::config;

    fn settings(text: &str) -> Settings {
        Settings::of(&config(text), text, Path::new("/nowhere"))
    }

    fn told(settings: &Settings, key: &str) -> String {
        let found = settings
            .get(key)
            .unwrap_or_else(|| panic!("{key} is missing"));
        let (value, line) = (&found.value, found.line.unwrap_or(0));
        let value = value.as_ref().map_or("none".into(), Value::to_string);
        let from = found.from.as_deref().unwrap_or("");
        format!("{key} = {value} ({:?} {line} {from})", found.source)
    }

    /// A key of the schema that is left out of the list could not be asked for.
    #[test]
    fn every_key_is_listed_with_its_line() {
        let example = include_str!("../../config.example.toml");
        let settings = settings(example);
        let lines: Vec<&str> = example.lines().collect();
        for (place, shape) in PLACES.iter().filter(|(_, shape)| shape.name != SECRET.name) {
            for key in shape.keys {
                let below = joined(place, key.name);
                if shape_at(&below).is_some() || shape_at(&format!("{below}.*")).is_some() {
                    continue;
                }
                let is_it = |setting: &&Setting| {
                    setting.key.ends_with(&format!(".{}", key.name)) || setting.key == key.name
                };
                let found: Vec<&Setting> = settings.all().iter().filter(is_it).collect();
                assert!(!found.is_empty(), "{below} is not listed");
            }
        }
        for setting in settings
            .all()
            .iter()
            .filter(|setting| setting.source == Source::File)
        {
            let name = setting.key.rsplit('.').next().unwrap();
            let line = lines[setting.line.unwrap() - 1];
            assert!(line.contains(name), "{}: {line}", setting.key);
        }
    }

    #[test]
    fn values_come_from_the_file_a_default_or_another_setting() {
        let text = "default_model = \"demo\"\n[access]\nrequire_mention = false\n[access.limits]\nturns_per_minute = 4\n[agents.rose]\nemoji = \"R\"\n[[bindings]]\nmatch = \"telegram\"\nagent = \"rose\"\n";
        let settings = settings(text);
        let keys = [
            "default_model",
            "switch",
            "agents.rose.emoji",
            "agents.rose.name",
            "agents.rose.model",
            "agents.rose.skills",
            "agents.rose.limits.max_steps",
            "agents.main.name",
            "access.limits.guest.turns_per_minute",
            "access.limits.guest.tokens_per_day",
            "access.limits.member.tokens_per_day",
            "bindings[0].require_mention",
        ];
        let told: Vec<String> = keys.map(|key| told(&settings, key)).to_vec();
        assert_snapshot!(told.join("\n"), @r#"
        default_model = "demo" (File 1 )
        switch = "handoff" (Default 0 )
        agents.rose.emoji = "R" (File 7 )
        agents.rose.name = "Rose" (Default 0 )
        agents.rose.model = "demo" (Other 1 default_model)
        agents.rose.skills = none (NotSet 0 )
        agents.rose.limits.max_steps = 40 (Default 0 )
        agents.main.name = "Main" (Default 0 )
        access.limits.guest.turns_per_minute = 4 (Other 5 access.limits.turns_per_minute)
        access.limits.guest.tokens_per_day = 500000 (Default 0 )
        access.limits.member.tokens_per_day = 0 (Default 0 )
        bindings[0].require_mention = false (Other 3 access.require_mention)
        "#);
        assert!(settings.get("telegram.api_url").is_none(), "it is off");
    }

    /// A secret is never told, wherever it is kept.
    #[test]
    fn secrets_are_set_or_not_set() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("token"), "zinnober").unwrap();
        let text = "[telegram]\ntoken = { file = \"token\" }\n[providers.a]\nkind = \"openai\"\napi_key = { env = \"PARLOR_TEST_NO_SUCH_KEY\" }\n";
        let settings = Settings::of(&config(text), text, home.path());
        let told = ["telegram.token", "providers.a.api_key"].map(|key| told(&settings, key));
        assert_snapshot!(told.join("\n"), @r#"
        telegram.token = "set" (SecretFile 2 token)
        providers.a.api_key = "not set" (Environment 5 PARLOR_TEST_NO_SUCH_KEY)
        "#);
    }

    #[test]
    fn sections_and_single_keys_are_found() {
        let settings = settings("[agents.rose]\n");
        assert_eq!(settings.below("agents.rose.model").unwrap().len(), 1);
        let rose = settings.below("[agents.rose]").unwrap();
        assert!(rose.len() > 20 && rose.iter().all(|one| one.key.starts_with("agents.rose.")));
        let near = |word: &str| settings.below(word).unwrap_err().to_string();
        assert_eq!(
            near("agents.rse"),
            "no setting is called `agents.rse`. Did you mean `agents.rose`?"
        );
        assert_eq!(near("zzz"), "no setting is called `zzz`");
    }
}
