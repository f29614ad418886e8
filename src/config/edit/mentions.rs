//! Lists of agents: for memory, files, shared folders and peers.

use std::ops::Range;

use toml_edit::{Array, Item, Table, TableLike, Value};

use super::error::EditError;
use super::lines::{line_end, line_start, replaced};
use super::tree::parse;
use crate::domain::AgentId;

pub(super) struct List<'a> {
    /// The place in the file: `agents.main.read_memory_from`.
    pub(super) path: String,
    pub(super) array: &'a Array,
}

/// Groups of tables, and the lists in each table of a group.
const LISTS: [(&str, &[&str]); 3] = [
    (
        "agents",
        &["read_memory_from", "access.read", "access.write"],
    ),
    ("shared_paths", &["read", "write"]),
    ("peer_groups", &["members"]),
];

pub(super) fn lists(root: &Table) -> Vec<List<'_>> {
    let mut found = Vec::new();
    for (group, keys) in LISTS {
        let tables = root.get(group).and_then(Item::as_table_like);
        for (name, item) in tables.into_iter().flat_map(TableLike::iter) {
            for key in keys {
                if let Some(array) = at(item, key) {
                    found.push(List {
                        path: format!("{group}.{name}.{key}"),
                        array,
                    });
                }
            }
        }
    }
    found
}

fn at<'a>(item: &'a Item, path: &str) -> Option<&'a Array> {
    path.split('.')
        .try_fold(item, |item, key| item.as_table_like()?.get(key))?
        .as_array()
}

/// The text without the agent in any list, and the paths of the changed lists.
pub(super) fn drop_from_lists(
    text: &str,
    id: &AgentId,
) -> Result<(String, Vec<String>), EditError> {
    let document = parse(text)?;
    let (mut cuts, mut paths) = (Vec::new(), Vec::new());
    for list in lists(document.as_table()) {
        let items: Vec<(Range<usize>, bool)> = list
            .array
            .iter()
            .filter_map(|value| Some((value.span()?, value.as_str() == Some(id.as_str()))))
            .collect();
        if items.iter().any(|(_, is_meant)| *is_meant) {
            paths.push(list.path);
        }
        let meant = items
            .iter()
            .enumerate()
            .filter(|(_, (_, is_meant))| *is_meant);
        cuts.extend(meant.map(|(index, (item, _))| {
            (
                around(
                    text,
                    item,
                    index.checked_sub(1).map(|before| items[before].0.end),
                ),
                String::new(),
            )
        }));
    }
    Ok((replaced(text, cuts), paths))
}

/// The item with its comma. An item on a line of its own takes the whole line with its comment.
pub(super) fn around(text: &str, item: &Range<usize>, end_before: Option<usize>) -> Range<usize> {
    let after_comma = text[item.end..]
        .trim_start()
        .strip_prefix(',')
        .map(|rest| text.len() - rest.len());
    let end = after_comma.unwrap_or(item.end);
    let (line, rest_end) = (line_start(text, item.start), line_end(text, end));
    let rest = text[end..rest_end].trim();
    let has_line =
        text[line..item.start].trim().is_empty() && (rest.is_empty() || rest.starts_with('#'));
    match end_before {
        _ if has_line => line..rest_end,
        Some(before) if after_comma.is_none() && !text[before..item.start].contains('#') => {
            before..item.end
        }
        _ if after_comma.is_some() => item.start..end + spaces(&text[end..]),
        _ => item.clone(),
    }
}

fn spaces(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

/// Adds the agent at the end of a list. A missing list, or a list with the agent, gives nothing.
pub(super) fn add_to_list(
    text: &str,
    path: &str,
    id: &AgentId,
) -> Result<Option<String>, EditError> {
    let document = parse(text)?;
    let Some(list) = lists(document.as_table())
        .into_iter()
        .find(|list| list.path == path)
    else {
        return Ok(None);
    };
    if list
        .array
        .iter()
        .any(|value| value.as_str() == Some(id.as_str()))
    {
        return Ok(None);
    }
    let at_end = list
        .array
        .iter()
        .last()
        .and_then(Value::span)
        .map(|span| (span.end, format!(", \"{id}\"")));
    let at_start = || {
        list.array
            .span()
            .map(|span| (span.start + 1, format!("\"{id}\"")))
    };
    let change = at_end
        .or_else(at_start)
        .map(|(at, new)| vec![(at..at, new)]);
    Ok(change.map(|change| replaced(text, change)))
}
