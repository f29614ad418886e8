//! Agents without a header: `agents.rose.name = "Rose"`, or `rose = { name = "Rose" }` below
//! `[agents]`.

use std::ops::Range;

use toml_edit::{InlineTable, Item, Key, Table, Value};

use super::lines::{line_end, line_start};
use super::regions::comments_above;
use crate::domain::AgentId;

/// A key of an agent, with its value.
pub(super) struct Headerless<'a> {
    /// Whole lines, with the comments directly above.
    pub(super) lines: Range<usize>,
    /// The whole key in the text, dots and all.
    pub(super) path: Range<usize>,
    value: &'a Value,
}

/// The keys of an agent. Agents with a header have none here, nor do agents in `agents = { … }`.
pub(super) fn of_agent<'a>(text: &str, root: &'a Table, id: &AgentId) -> Vec<Headerless<'a>> {
    let mut found = Vec::new();
    let agents = root.get("agents").and_then(Item::as_table);
    match agents.and_then(|agents| agents.get_key_value(id.as_str())) {
        Some((key, Item::Value(value))) => found.extend(headerless(text, root, key, value)),
        Some((_, Item::Table(table))) if table.is_dotted() => {
            collect(text, root, table, &mut found);
        }
        _ => {}
    }
    found
}

fn collect<'a>(text: &str, root: &Table, table: &'a Table, found: &mut Vec<Headerless<'a>>) {
    for (name, item) in table.iter() {
        match item {
            Item::Value(value) => found.extend(
                table
                    .key(name)
                    .and_then(|key| headerless(text, root, key, value)),
            ),
            Item::Table(inner) if inner.is_dotted() => collect(text, root, inner, found),
            _ => {}
        }
    }
}

fn headerless<'a>(text: &str, root: &Table, key: &Key, value: &'a Value) -> Option<Headerless<'a>> {
    let (key, end) = (key.span()?, value.span()?.end);
    let line = line_start(text, key.start);
    let path = line + text[line..].len() - text[line..].trim_start().len()..key.end;
    Some(Headerless {
        lines: comments_above(text, root, line)..line_end(text, end),
        path,
        value,
    })
}

impl Headerless<'_> {
    /// The names in the key, and the position of the agent's id among them.
    fn names(&self, text: &str, id: &AgentId) -> Option<(Vec<Key>, usize)> {
        let names = Key::parse(&text[self.path.clone()]).ok()?;
        // At the root the id stands behind `agents`, and below `[agents]` at the start; an agent
        // may be called `agents`.
        let own = [1, 0].into_iter().find(|index| {
            names
                .get(*index)
                .is_some_and(|name| name.get() == id.as_str())
        })?;
        Some((names, own))
    }

    /// The key with another id.
    pub(super) fn renamed(
        &self,
        text: &str,
        old: &AgentId,
        new: &AgentId,
    ) -> Option<(Range<usize>, String)> {
        let (names, own) = self.names(text, old)?;
        let mut written: Vec<_> = names.iter().map(Key::display_repr).collect();
        written[own] = new.as_str().into();
        Some((self.path.clone(), written.join(".")))
    }

    /// The line in its form below the header `[agents.<id>]`.
    fn below_header(&self, text: &str, id: &AgentId) -> Option<String> {
        let (names, own) = self.names(text, id)?;
        let comments = &text[self.lines.start..line_start(text, self.path.start)];
        let value = self.value.span()?;
        let rest: Vec<_> = names[own + 1..].iter().map(Key::display_repr).collect();
        Some(match self.value {
            Value::InlineTable(table) if rest.is_empty() => {
                let behind = text[value.end..self.lines.end].trim();
                let behind = if behind.is_empty() {
                    String::new()
                } else {
                    format!("{behind}\n")
                };
                format!("{comments}{behind}{}", keys_of(text, table))
            }
            _ => format!(
                "{comments}{} = {}",
                rest.join("."),
                &text[value.start..self.lines.end]
            ),
        })
    }
}

fn keys_of(text: &str, table: &InlineTable) -> String {
    let values = table.get_values().into_iter().filter_map(|(names, value)| {
        let names: Vec<_> = names.iter().map(|name| name.display_repr()).collect();
        Some(format!("{} = {}\n", names.join("."), &text[value.span()?]))
    });
    values.collect()
}

/// A table with a header and the same keys, which can be put back anywhere.
pub(super) fn as_table(text: &str, id: &AgentId, all: &[Headerless<'_>]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let lines = all
        .iter()
        .filter_map(|key| key.below_header(text, id))
        .map(|line| line.trim_end().to_owned() + "\n");
    format!("[agents.{id}]\n{}", lines.collect::<String>())
}
