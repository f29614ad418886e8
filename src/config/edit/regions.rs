//! The lines of each table: found, cut out, put in.

use std::ops::Range;

use toml_edit::{Item, Table, TableLike};

use super::error::EditError;
use super::lines::{line_end, line_start, with_comments};
use super::tree::{agents_of, items, parse, pattern_of, refuse_inline_agents, tables};

/// The lines of a table, with the comments directly above its header.
pub(super) struct Region {
    /// The agent's id, or the binding's `match`.
    pub(super) name: String,
    pub(super) lines: Range<usize>,
}

/// A text in two.
pub(super) struct Cut {
    pub(super) rest: String,
    pub(super) piece: String,
}

pub(super) fn cut(text: &str, regions: &[Region]) -> Cut {
    let mut sorted: Vec<&Range<usize>> = regions.iter().map(|region| &region.lines).collect();
    sorted.sort_by_key(|lines| lines.start);
    let (mut rest, mut piece, mut at) = (String::new(), String::new(), 0);
    for lines in sorted {
        rest.push_str(&text[at..lines.start]);
        if !piece.is_empty() {
            piece.push('\n');
        }
        piece.push_str(&text[lines.clone()]);
        at = lines.end;
        // A blank line before the cut makes the blank line behind superfluous.
        let doubled = rest.is_empty() || rest.ends_with("\n\n");
        if doubled && text[at..].starts_with('\n') {
            at += 1;
        }
    }
    rest.push_str(&text[at..]);
    Cut { rest, piece }
}

/// The regions of agents, with the tables inside them.
pub(super) fn of_agents(text: &str, root: &Table, is_meant: impl Fn(&str) -> bool) -> Vec<Region> {
    let mut regions = Vec::new();
    for (name, table) in agents_of(root)
        .into_iter()
        .filter(|(name, _)| is_meant(name))
    {
        for (header, table) in with_headers(table) {
            regions.push(Region {
                name: name.to_owned(),
                lines: lines_of(text, root, &header, table),
            });
        }
    }
    regions
}

/// The regions of the meant bindings. A list of inline tables is refused only if the list has a
/// meant binding.
pub(super) fn of_bindings(
    text: &str,
    is_meant: impl Fn(&dyn TableLike) -> bool,
) -> Result<Vec<Region>, EditError> {
    let found = of_list(text, "bindings", is_meant)?;
    found.ok_or_else(EditError::bindings)
}

/// The regions of the meant route tests. A list of inline tables is refused only if the list has a
/// meant test.
pub(super) fn of_route_tests(
    text: &str,
    is_meant: impl Fn(&dyn TableLike) -> bool,
) -> Result<Vec<Region>, EditError> {
    let found = of_list(text, "route_tests", is_meant)?;
    found.ok_or_else(EditError::route_tests)
}

/// None: a meant table is an inline table.
fn of_list(
    text: &str,
    list: &str,
    is_meant: impl Fn(&dyn TableLike) -> bool,
) -> Result<Option<Vec<Region>>, EditError> {
    let document = parse(text)?;
    let root = document.as_table();
    let tables = tables(root, list);
    if tables.is_empty() && items(root, list).into_iter().any(&is_meant) {
        return Ok(None);
    }
    let region_of = |table: &Table| {
        let lines = lines_of(text, root, &table.span()?, table);
        Some(Region {
            name: pattern_of(table),
            lines,
        })
    };
    Ok(Some(
        tables
            .into_iter()
            .filter(|table| is_meant(*table))
            .filter_map(region_of)
            .collect(),
    ))
}

/// A table and its inner tables with headers of their own, each with its header's place.
pub(super) fn with_headers(table: &Table) -> Vec<(Range<usize>, &Table)> {
    let own = table
        .span()
        .filter(|_| !table.is_implicit() && !table.is_dotted())
        .map(|header| (header, table));
    let inner = table.iter().flat_map(|(_, item)| match item {
        Item::Table(inner) => with_headers(inner),
        Item::ArrayOfTables(array) => array.iter().flat_map(with_headers).collect(),
        _ => Vec::new(),
    });
    own.into_iter().chain(inner).collect()
}

/// The lines from the comment directly above the header to the end of the last value.
fn lines_of(text: &str, root: &Table, header: &Range<usize>, table: &Table) -> Range<usize> {
    let end = last_value(table).max(header.end);
    comments_above(text, root, line_start(text, header.start))..line_end(text, end)
}

/// The start of the comments directly above a line. Lines of a multi-line text can look like
/// comments, so the search ends at the value above.
pub(super) fn comments_above(text: &str, root: &Table, line: usize) -> usize {
    let above = last_value_before(root, line);
    let above = if above == 0 { 0 } else { line_end(text, above) };
    with_comments(text, line).max(above)
}

/// The end of the last value above a place in the file.
fn last_value_before(table: &Table, byte: usize) -> usize {
    let ends = table.iter().map(|(_, item)| match item {
        Item::Value(value) => value
            .span()
            .map(|span| span.end)
            .filter(|end| *end <= byte)
            .unwrap_or(0),
        Item::Table(inner) => last_value_before(inner, byte),
        Item::ArrayOfTables(array) => array
            .iter()
            .map(|inner| last_value_before(inner, byte))
            .max()
            .unwrap_or(0),
        Item::None => 0,
    });
    ends.max().unwrap_or(0)
}

/// The end of the last value below a header itself.
fn last_value(table: &Table) -> usize {
    let ends = table.iter().map(|(_, item)| match item {
        Item::Value(value) => value.span().map_or(0, |span| span.end),
        Item::Table(inner) if inner.is_dotted() => last_value(inner),
        _ => 0,
    });
    ends.max().unwrap_or(0)
}

pub(super) fn insert_behind_agents(text: &str, table: &str) -> Result<String, EditError> {
    let document = parse(text)?;
    refuse_inline_agents(document.as_table(), |_| true)?;
    Ok(insert_behind(
        text,
        &of_agents(text, document.as_table(), |_| true),
        table,
    ))
}

pub(super) fn insert_behind_bindings(text: &str, table: &str) -> Result<String, EditError> {
    if parse(text)?.get("bindings").is_some_and(Item::is_value) {
        return Err(EditError::bindings());
    }
    Ok(insert_behind(text, &of_bindings(text, |_| true)?, table))
}

pub(super) fn insert_behind_route_tests(text: &str, table: &str) -> Result<String, EditError> {
    if parse(text)?.get("route_tests").is_some_and(Item::is_value) {
        return Err(EditError::route_tests());
    }
    Ok(insert_behind(text, &of_route_tests(text, |_| true)?, table))
}

/// Inserts behind the last region, or at the end of the file, with an empty line before the table.
fn insert_behind(text: &str, regions: &[Region], table: &str) -> String {
    let at = regions.iter().map(|region| region.lines.end).max();
    let (before, after) = text.split_at(at.unwrap_or(text.len()));
    let gap = match before {
        "" => "",
        before if before.ends_with("\n\n") => "",
        before if before.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let behind = if after.is_empty() || after.starts_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{before}{gap}{}\n{behind}{after}", table.trim_matches('\n'))
}
