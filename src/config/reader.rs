//! Reads tables of the parsed file key by key and notes problems, without ever stopping.

use std::cell::RefCell;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::choices::Choice;
use super::elsewhere;
use super::foreign_keys;
use super::known_servers;
use super::lookalikes::{is_plain_key, looks_like_secret};
use super::schema::{self, Absence, Key, Shape};
use super::synonyms;
use super::twice;
use super::{Fault, Problem, Spanned};
use crate::domain::nearest;

/// A value of the file with its place.
pub(super) type Value<'a> = toml::Spanned<DeValue<'a>>;

/// The problems so far. All sections of a reading share the list, hence the cell.
#[derive(Default)]
pub(super) struct Problems {
    found: RefCell<Vec<Problem>>,
    warnings: RefCell<Vec<Problem>>,
}

impl Problems {
    pub(super) fn note(&self, problem: Problem) {
        self.found.borrow_mut().push(problem);
    }

    /// Notes a problem that does not prevent the start.
    pub(super) fn warn(&self, warning: Problem) {
        self.warnings.borrow_mut().push(warning);
    }

    pub(super) fn count(&self) -> usize {
        self.found.borrow().len()
    }

    /// The problems, and the warnings.
    pub(super) fn into_lists(self) -> (Vec<Problem>, Vec<Problem>) {
        (self.found.into_inner(), self.warnings.into_inner())
    }
}

/// A table of the file. Each read gives the value of a key, if present and right; problems are
/// noted.
pub(super) struct Section<'a> {
    shape: &'static Shape,
    /// The name in the header's last part, such as `rose`.
    own_name: String,
    table: &'a DeTable<'a>,
    pub(super) problems: &'a Problems,
}

/// A table among several of its kind, with its name or, in a list, its place.
pub(super) struct Named<'a> {
    pub(super) name: Spanned<String>,
    /// The key of the whole group, such as `agents`.
    group: &'static str,
    value: &'a Value<'a>,
    problems: &'a Problems,
}

/// A table without its required name.
pub(super) struct Nameless<'a> {
    /// The place of the table's first key.
    pub(super) span: Range<usize>,
    table: &'a DeTable<'a>,
}

impl<'a> Nameless<'a> {
    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        self.table.get(key)?.get_ref().as_str()
    }
}

const BOOLEAN: &str = "`true` or `false`";

impl<'a> Section<'a> {
    /// A missing key is shown at the table's name.
    pub(super) fn open(
        shape: &'static Shape,
        table: &'a DeTable<'a>,
        name: &Spanned<String>,
        problems: &'a Problems,
    ) -> Self {
        for (key, value) in table
            .iter()
            .filter(|(key, _)| shape.key(key.get_ref()).is_none())
        {
            problems.note(unknown_key(shape, key.get_ref(), key.span(), value));
        }
        let required = shape
            .keys
            .iter()
            .filter(|key| key.absence == Absence::Refused);
        let section = Section {
            shape,
            own_name: name.value.clone(),
            table,
            problems,
        };
        for key in required.filter(|key| !section.has_under_any_name(key.name)) {
            problems.note(missing_key(&section, key, name));
        }
        section
    }

    /// Whether a key is there, or told already: under its own name, that of another program, or
    /// misspelt.
    pub(super) fn has_under_any_name(&self, name: &str) -> bool {
        let mut keys = self.table.keys().map(|key| &**key.get_ref());
        keys.any(|key: &str| {
            let behind = foreign_keys::secret_behind(key);
            let is_unknown = || self.shape.key(key).is_none();
            key == name
                || synonyms::of(self.shape, key) == Some(name)
                || behind == Some(name)
                || behind.and_then(|behind| synonyms::of(self.shape, behind)) == Some(name)
                || is_unknown() && elsewhere::slip_of(self.shape, key) == Some(name)
        })
    }

    /// The names below a section that should have another name, such as `[agent.ada]`.
    pub(super) fn names_below(&self, foreign: &str) -> Vec<String> {
        let table = self.table.get(foreign).map(|value| value.get_ref());
        let table = table.and_then(DeValue::as_table).into_iter().flatten();
        table.map(|(key, _)| key.get_ref().to_string()).collect()
    }

    /// The keys of a single table where tables with names belong, as in `[providers]` with a
    /// `kind`.
    pub(super) fn nameless(&self, group: &str, shape: &Shape) -> Option<Nameless<'a>> {
        let table = self.value(group)?.get_ref().as_table()?;
        let (key, _) = table
            .iter()
            .filter(|(key, value)| {
                shape.key(key.get_ref()).is_some() && !value.get_ref().is_table()
            })
            .min_by_key(|(key, _)| key.span().start)?;
        Some(Nameless {
            span: key.span(),
            table,
        })
    }

    /// The kind of table, in words.
    pub(super) fn shape_name(&self) -> &'static str {
        self.shape.name
    }

    pub(super) fn value(&self, name: &str) -> Option<&'a Value<'a>> {
        debug_assert!(
            self.shape.key(name).is_some(),
            "`{name}` is asked for but not listed as a key of {}",
            self.shape.name
        );
        self.table.get(name)
    }

    pub(super) fn text(&self, name: &str) -> Option<Spanned<String>> {
        self.read(name, "text in quotes", |value| {
            Some(value.as_str()?.to_owned())
        })
    }

    pub(super) fn boolean(&self, name: &str) -> Option<bool> {
        Some(self.read(name, BOOLEAN, DeValue::as_bool)?.value)
    }

    pub(super) fn count(&self, name: &str) -> Option<u32> {
        let value = self.value(name)?;
        let count = whole_number(value.get_ref()).and_then(|number| number.try_into().ok());
        if count.is_none() {
            let is_integer = value.get_ref().is_integer();
            let (message, label) = match is_integer {
                true => (
                    format!("`{name}` must be 0 or more, and at most {}", u32::MAX),
                    "too small or too large".to_owned(),
                ),
                false => (format!("`{name}` must be a whole number"), found(value)),
            };
            let problem = Problem::new(value.span(), message)
                .label(label)
                .fault(Fault::WrongType);
            self.problems
                .note(problem.help(format!("write it like `{}`", self.usage(name))));
        }
        count
    }

    /// A count above 0.
    pub(super) fn at_least_one(&self, name: &str) -> Option<u32> {
        let count = self.count(name)?;
        if count == 0 {
            let span = self
                .value(name)
                .map(toml::Spanned::span)
                .unwrap_or_default();
            let problem = Problem::new(span, format!("`{name}` cannot be 0"))
                .label("nothing could ever be done")
                .fault(Fault::WrongType);
            self.problems.note(problem.help(format!(
                "write 1 or more, such as `{}`, or delete the line",
                self.usage(name)
            )));
        }
        Some(count).filter(|count| *count > 0)
    }

    pub(super) fn choice<T: Choice>(&self, name: &str) -> Option<T> {
        let text = self.text(name)?;
        let choice = text.value.parse().ok();
        if choice.is_none() {
            self.refuse_word(name, &text, &T::words());
        }
        choice
    }

    /// A list of words, each once. Absent and empty are the same.
    pub(super) fn choices<T: Choice + PartialEq>(&self, name: &str) -> Vec<T> {
        let words = self.list(name, |value| {
            let Some(word) = value.get_ref().as_str() else {
                return Err(wrong_type("a word", value, "text in quotes"));
            };
            let text = Spanned {
                value: word.to_owned(),
                span: value.span(),
            };
            let choice = word.parse::<T>().ok();
            choice.ok_or_else(|| wrong_choice(name, &text, &T::words()))
        });
        let mut choices = Vec::new();
        for choice in words.map(|words| words.value).unwrap_or_default() {
            if !choices.contains(&choice) {
                choices.push(choice);
            }
        }
        choices
    }

    /// Notes a word that the key does not take.
    pub(super) fn refuse_word(&self, name: &str, text: &Spanned<String>, words: &[&str]) {
        self.problems.note(wrong_choice(name, text, words));
    }

    /// The readable items; `item` makes problems of the others.
    pub(super) fn list<T>(
        &self,
        name: &str,
        item: impl Fn(&Value<'_>) -> Result<T, Problem>,
    ) -> Option<Spanned<Vec<T>>> {
        let value = self.value(name)?;
        let Some(array) = value.get_ref().as_array() else {
            self.refuse_type(name, "a list");
            return None;
        };
        let mut items = Vec::new();
        for value in array.iter() {
            match item(value) {
                Ok(item) => items.push(item),
                Err(problem) => self.problems.note(problem),
            }
        }
        Some(Spanned {
            value: items,
            span: value.span(),
        })
    }

    pub(super) fn section(&self, name: &str, shape: &'static Shape) -> Option<Section<'a>> {
        let (key, value) = self.table.get_key_value(name)?;
        let Some(table) = value.get_ref().as_table() else {
            self.refuse_type(name, "a section");
            return None;
        };
        let name = Spanned {
            value: name.to_owned(),
            span: key.span(),
        };
        Some(Section::open(shape, table, &name, self.problems))
    }

    /// All tables inside the table `name`, in file order.
    pub(super) fn named(&self, name: &'static str) -> Vec<Named<'a>> {
        let Some(value) = self.value(name) else {
            return Vec::new();
        };
        let Some(table) = value.get_ref().as_table() else {
            self.refuse_group(name, value);
            return Vec::new();
        };
        let mut all: Vec<_> = table
            .iter()
            .map(|(key, value)| Named {
                name: Spanned {
                    value: key.get_ref().to_string(),
                    span: key.span(),
                },
                group: name,
                value,
                problems: self.problems,
            })
            .collect();
        all.sort_by_key(|named| named.name.span.start);
        all
    }

    /// All tables of a list of tables.
    pub(super) fn items(&self, name: &'static str) -> Vec<Named<'a>> {
        let Some(value) = self.value(name) else {
            return Vec::new();
        };
        let Some(array) = value.get_ref().as_array() else {
            self.problems
                .note(not_a_list(&self.items_header(name), value));
            return Vec::new();
        };
        let named = |value: &'a Value<'a>| Named {
            name: Spanned {
                value: name.to_owned(),
                span: value.span(),
            },
            group: name,
            value,
            problems: self.problems,
        };
        array.iter().map(named).collect()
    }

    /// The name in the header of a list's items: `bindings`, or `agents.rose.jobs`.
    fn items_header(&self, list: &str) -> String {
        match self.shape.name == schema::AGENT.name {
            true => format!("agents.{}.{list}", self.own_name),
            false => list.to_owned(),
        }
    }

    /// `[[agents]]`, or another value where sections with names belong.
    fn refuse_group(&self, group: &str, value: &Value<'_>) {
        let items = value.get_ref().as_array().map(|items| items.iter());
        let first = items.into_iter().flatten().next();
        let first = first.and_then(|item| item.get_ref().as_table());
        match first {
            Some(table) => {
                let name = ["id", "name"].iter().find_map(|key| table.get(*key));
                let name = name.and_then(|name| name.get_ref().as_str());
                let problem = twice::double_brackets(value.span(), group, name);
                self.problems.note(problem.fault(Fault::WrongType));
            }
            None => self.refuse_type(group, "a section for each name"),
        }
    }

    /// Notes a value of a wrong type.
    pub(super) fn refuse_type(&self, name: &str, expected: &str) {
        if let Some(value) = self.value(name) {
            let quoted = value.get_ref().as_str().map(str::trim);
            let meant =
                quoted.filter(|text| expected == BOOLEAN && ["true", "false"].contains(text));
            // A single item is most often meant as a list of one.
            let item = value.get_ref().as_str().filter(|text| {
                expected == "a list"
                    && !looks_like_secret(text)
                    && !text.contains(['"', '\\', '\n'])
            });
            let help = match (meant, item) {
                (Some(meant), _) => format!("write `{name} = {meant}`, without quotes"),
                (None, Some(item)) => format!("write `{name} = [\"{item}\"]`"),
                (None, None) => format!("write it like `{}`", self.usage(name)),
            };
            let problem = wrong_type(&format!("`{name}`"), value, expected);
            self.problems.note(problem.help(help));
        }
    }

    /// How a key is written, as an example.
    pub(super) fn usage(&self, name: &str) -> String {
        self.shape.key(name).map(Key::usage).unwrap_or_default()
    }

    fn read<T>(
        &self,
        name: &str,
        expected: &str,
        convert: impl Fn(&DeValue<'a>) -> Option<T>,
    ) -> Option<Spanned<T>> {
        let value = self.value(name)?;
        let converted = convert(value.get_ref());
        if converted.is_none() {
            self.refuse_type(name, expected);
        }
        converted.map(|converted| Spanned {
            value: converted,
            span: value.span(),
        })
    }
}

impl<'a> Named<'a> {
    pub(super) fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    /// The names of a table that holds nothing but another table, with points between them.
    pub(super) fn only_table_below(&self) -> Option<String> {
        let mut table = self.value.get_ref().as_table()?;
        let mut names = Vec::new();
        while let Some((key, value)) = table.iter().next().filter(|_| table.len() == 1)
            && let Some(below) = value.get_ref().as_table()
        {
            names.push(key.get_ref().to_string());
            table = below;
        }
        (!names.is_empty()).then(|| names.join("."))
    }

    pub(super) fn section(&self, shape: &'static Shape) -> Option<Section<'a>> {
        let Some(table) = self.value.get_ref().as_table() else {
            self.problems.note(self.not_a_table(shape));
            return None;
        };
        Some(Section::open(shape, table, &self.name, self.problems))
    }

    /// `agents.rose = "Rose"`, or `[[agents.rose]]`.
    fn not_a_table(&self, shape: &Shape) -> Problem {
        let (group, name) = (self.group, &self.name.value);
        if name == group {
            return wrong_type(&format!("each of `{group}`"), self.value, "a table")
                .help(format!("write it as `[[{group}]]`, with its keys below"));
        }
        let header = format!("[{group}.{name}]");
        if shape.name == schema::PRICE.name {
            return wrong_type(&format!("the price of `{name}`"), self.value, "a table with two prices")
                .help(format!("write `\"{name}\" = {{ input = 2.0, output = 8.0 }}`, in money for a million tokens"));
        }
        let problem = wrong_type(&format!("`{name}`"), self.value, "a section");
        match self.value.get_ref() {
            DeValue::Array(_) => problem.help(format!("write single brackets: `{header}`")),
            DeValue::String(text) if shape.key("name").is_some() => {
                problem.help(format!("write\n{header}\nname = \"{text}\""))
            }
            _ => problem.help(format!("write `{header}`, with its keys below")),
        }
    }
}

/// A number for an id or a limit. TOML also has negative numbers.
pub(super) fn whole_number(value: &DeValue<'_>) -> Option<u64> {
    let integer = value.as_integer()?;
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// "did you mean `b`?", or all names if none is near.
pub(super) fn suggest(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known here: {}", quoted(known)),
    }
}

pub(super) fn quoted(words: &[&str]) -> String {
    words
        .iter()
        .map(|word| format!("`{word}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

pub(super) fn wrong_type(subject: &str, value: &Value<'_>, expected: &str) -> Problem {
    Problem::new(value.span(), format!("{subject} must be {expected}"))
        .label(found(value))
        .fault(Fault::WrongType)
}

fn found(value: &Value<'_>) -> String {
    let kind = match value.get_ref() {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "`true` or `false`",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    format!("this is {kind}")
}

/// `[bindings]`, or another value in the place of a list of tables.
fn not_a_list(name: &str, value: &Value<'_>) -> Problem {
    // Jobs are lists of agents; all others are lists of the file.
    let path = match name {
        "jobs" => "agents.<id>.jobs",
        name => name,
    };
    let header = format!("[[{path}]]");
    match value.get_ref() {
        DeValue::Table(_) => {
            Problem::new(value.span(), format!("`[{path}]` needs double brackets"))
                .label(format!("write `{header}`"))
                .help(format!(
                    "each one is an item of a list, so write `{header}` before each"
                ))
                .fault(Fault::WrongType)
        }
        _ => wrong_type(&format!("`{name}`"), value, "a list of sections")
            .help(format!("write `{header}`, with its keys below")),
    }
}

fn wrong_choice(name: &str, text: &Spanned<String>, words: &[&str]) -> Problem {
    let advice = match nearest(&text.value, words.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? The choices are {}", quoted(words)),
        None => format!("the choices are {}", quoted(words)),
    };
    Problem::new(
        text.span.clone(),
        format!("`{name}` cannot be `{}`", text.value),
    )
    .label("not one of the choices")
    .help(advice)
    .fault(Fault::WrongWord)
}

fn first_key<'a>(table: &'a DeTable<'_>) -> &'a str {
    let mut keys = table.keys();
    keys.next().map_or("", |key| key.get_ref())
}

fn unknown_key(shape: &Shape, key: &str, span: Range<usize>, value: &Value<'_>) -> Problem {
    // The first key below, if the key is a table.
    let below = value.get_ref().as_table().map(first_key);
    let foreign = foreign_keys::advice(shape, key, below, value.get_ref().as_str());
    let advice = foreign.unwrap_or_else(|| elsewhere::advice(shape, key, below));
    // Under a secret, the secret itself may be written where a key belongs.
    let (shown, advice) = match shape.name == schema::SECRET.name && !is_plain_key(key) {
        true => (
            "unknown key".to_owned(),
            format!("known here: {}", quoted(&shape.names().collect::<Vec<_>>())),
        ),
        false => (format!("unknown key `{key}`"), advice),
    };
    Problem::new(span, shown)
        .label(format!("not a key of {}", shape.name))
        .help(advice)
        .fault(Fault::UnknownKey)
}

fn missing_key(section: &Section<'_>, key: &Key, name: &Spanned<String>) -> Problem {
    let shape = section.shape;
    let is_kind = shape.name == schema::PROVIDER.name && key.name == "kind";
    let setup = is_kind.then(|| known_servers::setup(&name.value)).flatten();
    let advice = match setup {
        Some(lines) => {
            let is_lacking = |line: &&str| {
                let (key, _) = line.split_once(" = ").unwrap_or((line, ""));
                !section.has_under_any_name(key)
            };
            let lines: Vec<&str> = lines.lines().filter(is_lacking).collect();
            format!("add below [providers.{}]\n{}", name.value, lines.join("\n"))
        }
        None => format!("add a line such as `{}`", key.usage()),
    };
    Problem::new(name.span.clone(), format!("missing key `{}`", key.name))
        .label(format!("{} needs `{}`", shape.name, key.name))
        .help(advice)
        .fault(Fault::MissingKey)
}
