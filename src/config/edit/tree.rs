//! Agents and bindings in the parsed file.

use toml_edit::{Array, Document, Item, Table, TableLike};

use super::error::EditError;
use crate::domain::AgentId;

pub(super) fn parse(text: &str) -> Result<Document<&str>, EditError> {
    Document::parse(text).map_err(|_| EditError::NotToml)
}

pub(super) fn has_agent(root: &Table, id: &AgentId) -> bool {
    root.get("agents")
        .and_then(Item::as_table_like)
        .is_some_and(|agents| agents.contains_key(id.as_str()))
}

/// Agents that are tables, with or without a header.
pub(super) fn agents_of(root: &Table) -> Vec<(&str, &Table)> {
    let agents = root
        .get("agents")
        .and_then(Item::as_table)
        .into_iter()
        .flat_map(Table::iter);
    agents
        .filter_map(|(name, item)| Some((name, item.as_table()?)))
        .collect()
}

/// Refuses `agents = { … }`, because an inline table can neither be added to nor be taken from.
pub(super) fn refuse_inline_agents(
    root: &Table,
    is_meant: impl Fn(&str) -> bool,
) -> Result<(), EditError> {
    let agents = root.get("agents").and_then(Item::as_inline_table);
    match agents.and_then(|agents| agents.iter().find(|(name, _)| is_meant(name))) {
        Some((name, _)) => Err(EditError::agent(name)),
        None => Ok(()),
    }
}

/// Bindings as `[[bindings]]` tables.
pub(super) fn binding_tables(root: &Table) -> Vec<&Table> {
    tables(root, "bindings")
}

/// The items of a list that are tables with double brackets.
pub(super) fn tables<'a>(root: &'a Table, list: &str) -> Vec<&'a Table> {
    root.get(list)
        .and_then(Item::as_array_of_tables)
        .into_iter()
        .flat_map(|tables| tables.iter())
        .collect()
}

/// The items of a list of tables, in either form.
pub(super) fn items<'a>(root: &'a Table, name: &str) -> Vec<&'a dyn TableLike> {
    let tables = tables(root, name)
        .into_iter()
        .map(|table| table as &dyn TableLike);
    let list = root
        .get(name)
        .and_then(Item::as_array)
        .into_iter()
        .flat_map(Array::iter);
    tables
        .chain(
            list.filter_map(|value| value.as_inline_table().map(|table| table as &dyn TableLike)),
        )
        .collect()
}

/// The `match` of a binding.
pub(super) fn pattern_of(binding: &dyn TableLike) -> String {
    binding
        .get("match")
        .and_then(Item::as_str)
        .unwrap_or_default()
        .to_owned()
}

pub(super) fn agent_of(binding: &dyn TableLike) -> Option<&str> {
    binding.get("agent").and_then(Item::as_str)
}
