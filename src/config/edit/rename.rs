//! Another id in every place of the file that names an agent.

use std::ops::Range;

use toml_edit::{Item, Key, Table, Value};

use super::error::EditError;
use super::lines::replaced;
use super::regions::with_headers;
use super::tree::{agents_of, has_agent, items, parse};
use super::{headerless, mentions};
use crate::domain::AgentId;

type Change = (Range<usize>, String);

pub(super) fn rename_agent(text: &str, old: &AgentId, new: &AgentId) -> Result<String, EditError> {
    let document = parse(text)?;
    let root = document.as_table();
    let renamed = replaced(
        text,
        [keys(text, root, old, new), values(root, old, new)].concat(),
    );
    let after = parse(&renamed)?;
    // Half a rename is an error, such as of an agent in a form that is not handled above.
    let is_left = old != new && has_agent(after.as_table(), old);
    if is_left || has_agent(root, old) != has_agent(after.as_table(), new) {
        return Err(EditError::agent(old.as_str()));
    }
    Ok(renamed)
}

/// The agent's id as a key: in headers, in dotted keys, in an inline table.
fn keys(text: &str, root: &Table, old: &AgentId, new: &AgentId) -> Vec<Change> {
    let headers = agents_of(root)
        .into_iter()
        .flat_map(|(_, table)| with_headers(table));
    let headers = headers.filter_map(|(header, _)| header_change(text, &header, old, new));
    let dotted = headerless::of_agent(text, root, old);
    let dotted = dotted
        .iter()
        .filter_map(|line| line.renamed(text, old, new));
    let inline = root
        .get("agents")
        .and_then(Item::as_inline_table)
        .and_then(|agents| agents.key(old.as_str())?.span());
    headers
        .chain(dotted)
        .chain(inline.map(|span| (span, new.to_string())))
        .collect()
}

fn header_change(
    text: &str,
    header: &Range<usize>,
    old: &AgentId,
    new: &AgentId,
) -> Option<Change> {
    let written = &text[header.clone()];
    let inner = written.trim_start_matches('[').trim_end_matches(']');
    let brackets = written.len() - written.trim_start_matches('[').len();
    let keys = Key::parse(inner).ok()?;
    if keys.get(1)?.get() != old.as_str() {
        return None;
    }
    let mut path: Vec<_> = keys.iter().map(Key::display_repr).collect();
    path[1] = new.as_str().into();
    Some((
        header.clone(),
        format!(
            "{}{}{}",
            "[".repeat(brackets),
            path.join("."),
            "]".repeat(brackets)
        ),
    ))
}

/// The agent's id as a value: the default agent, bindings, route tests, lists.
fn values(root: &Table, old: &AgentId, new: &AgentId) -> Vec<Change> {
    let mut values: Vec<&Value> = root
        .get("default_agent")
        .and_then(Item::as_value)
        .into_iter()
        .collect();
    for list in ["bindings", "route_tests"] {
        let named = items(root, list).into_iter();
        values.extend(named.filter_map(|item| item.get("agent")?.as_value()));
    }
    values.extend(
        mentions::lists(root)
            .into_iter()
            .flat_map(|list| list.array.iter()),
    );
    let named = values
        .into_iter()
        .filter(|value| value.as_str() == Some(old.as_str()));
    named
        .filter_map(|value| Some((value.span()?, format!("\"{new}\""))))
        .collect()
}
