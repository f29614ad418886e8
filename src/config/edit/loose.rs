//! Agents without a header: `agents.rose.name = "Rose"`, or `rose = { name = "Rose" }` below `[agents]`.

use std::ops::Range;

use toml_edit::{InlineTable, Item, Key, Table, Value};

use super::{line_end, line_start, with_comments};
use crate::domain::AgentId;

/// One line that says something about an agent, or all of it.
pub(super) struct Loose<'a> {
    /// Whole lines, with the comments directly above.
    pub(super) lines: Range<usize>,
    /// The key as it is written, dots and all.
    pub(super) path: Range<usize>,
    value: &'a Value,
}

/// Those of one agent. Nothing for agents that have a header; `agents = { … }` is in one value and has no lines.
pub(super) fn of_agent<'a>(text: &str, root: &'a Table, id: &AgentId) -> Vec<Loose<'a>> {
    let mut found = Vec::new();
    let agents = root.get("agents").and_then(Item::as_table);
    match agents.and_then(|agents| agents.get_key_value(id.as_str())) {
        Some((key, Item::Value(value))) => found.extend(loose(text, key, value)),
        Some((_, Item::Table(table))) if table.is_dotted() => collect(text, table, &mut found),
        _ => {}
    }
    found
}

fn collect<'a>(text: &str, table: &'a Table, found: &mut Vec<Loose<'a>>) {
    for (name, item) in table.iter() {
        match item {
            Item::Value(value) => found.extend(table.key(name).and_then(|key| loose(text, key, value))),
            Item::Table(inner) if inner.is_dotted() => collect(text, inner, found),
            _ => {}
        }
    }
}

fn loose<'a>(text: &str, key: &Key, value: &'a Value) -> Option<Loose<'a>> {
    let (key, end) = (key.span()?, value.span()?.end);
    let line = line_start(text, key.start);
    let path = line + text[line..].len() - text[line..].trim_start().len()..key.end;
    Some(Loose { lines: with_comments(text, line)..line_end(text, end), path, value })
}

impl Loose<'_> {
    /// The names in the key from the agent's own on, and how many come before.
    fn names(&self, text: &str, id: &AgentId) -> Option<(Vec<Key>, usize)> {
        let names = Key::parse(&text[self.path.clone()]).ok()?;
        let own = names.iter().take(2).position(|name| name.get() == id.as_str())?;
        Some((names, own))
    }

    /// The key with another id in it.
    pub(super) fn renamed(&self, text: &str, old: &AgentId, new: &AgentId) -> Option<(Range<usize>, String)> {
        let (names, own) = self.names(text, old)?;
        let mut written: Vec<_> = names.iter().map(Key::display_repr).collect();
        written[own] = new.as_str().into();
        Some((self.path.clone(), written.join(".")))
    }

    /// The same below a header of the agent's own.
    fn below_header(&self, text: &str, id: &AgentId) -> Option<String> {
        let (names, own) = self.names(text, id)?;
        let comments = &text[self.lines.start..line_start(text, self.path.start)];
        let value = self.value.span()?;
        let rest: Vec<_> = names[own + 1..].iter().map(Key::display_repr).collect();
        Some(match self.value {
            Value::InlineTable(table) if rest.is_empty() => {
                let behind = text[value.end..self.lines.end].trim();
                let behind = if behind.is_empty() { String::new() } else { format!("{behind}\n") };
                format!("{comments}{behind}{}", keys_of(text, table))
            }
            _ => format!("{comments}{} = {}", rest.join("."), &text[value.start..self.lines.end]),
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

/// A table with a header that says the same, so that it can be put back anywhere.
pub(super) fn as_table(text: &str, id: &AgentId, all: &[Loose<'_>]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let lines = all.iter().filter_map(|loose| loose.below_header(text, id)).map(|line| line.trim_end().to_owned() + "\n");
    format!("[agents.{id}]\n{}", lines.collect::<String>())
}
