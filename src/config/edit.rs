//! Edits of `config.toml` that leave every other byte as it is: pure text in, text out. The tree only tells where things stand.
//!
//! [`super::store`] puts an edited text in the place of the old one, if that is still what was read.

use std::ops::Range;

use toml_edit::{Array, Document, DocumentMut, Item, Key, Table, Value};

use crate::domain::AgentId;

/// An agent that is to be written into the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewAgent {
    pub name: Option<String>,
    pub emoji: Option<String>,
    pub model: Option<String>,
    pub skills: Option<Vec<String>>,
}

/// A file that cannot be edited by program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("config.toml is not TOML, so it was not changed. `parlor config check` shows where")]
    NotToml,
    #[error("{0} is written in a way that cannot be edited by program. Write it as {1}, or make this change by hand")]
    Form(String, &'static str),
}

/// What was taken out of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenOut {
    /// The file without it.
    pub text: String,
    /// The tables, with the comments directly above them.
    pub piece: String,
    /// The `match` of each binding that went with the agent.
    pub bindings: Vec<String>,
    /// Other agents whose lists named it, and no longer do.
    pub mentions: Vec<String>,
}

/// Behind the last agent, or at the end.
pub fn add_agent(text: &str, id: &AgentId, agent: &NewAgent) -> Result<String, EditError> {
    let mut table = format!("[agents.{id}]\n");
    let quoted = |value: &str| Value::from(value).to_string();
    for (key, value) in [("name", &agent.name), ("emoji", &agent.emoji), ("model", &agent.model)] {
        if let Some(value) = value {
            table.push_str(&format!("{key} = {}\n", quoted(value)));
        }
    }
    if let Some(skills) = &agent.skills {
        table.push_str(&format!("skills = {}\n", skills.iter().map(String::as_str).collect::<Array>()));
    }
    insert_behind_agents(text, &table)
}

/// Tables as they were taken out.
pub fn put_back(text: &str, piece: &str) -> Result<String, EditError> {
    let bindings = cut(piece, &binding_regions(piece, |_| true)?);
    let text = insert_behind_agents(text, &bindings.rest)?;
    if bindings.piece.is_empty() { Ok(text) } else { insert_behind_bindings(&text, &bindings.piece) }
}

/// A piece without what it says about places, and what it said.
pub fn without_bindings(piece: &str) -> Result<(String, Vec<String>), EditError> {
    let regions = binding_regions(piece, |_| true)?;
    let matches = regions.iter().map(|region| region.name.clone()).collect();
    Ok((cut(piece, &regions).rest, matches))
}

pub fn add_binding(text: &str, pattern: &str, id: &AgentId) -> Result<String, EditError> {
    let table = format!("[[bindings]]\nmatch = {}\nagent = \"{id}\"\n", Value::from(pattern));
    insert_behind_bindings(text, &table)
}

/// The agent's tables, the bindings that name it, and every mention in lists of others.
pub fn take_out_agent(text: &str, id: &AgentId) -> Result<TakenOut, EditError> {
    let mut regions = agent_regions(text, |name| name == id.as_str())?;
    let bindings = binding_regions(text, |table| agent_of(table) == Some(id.as_str()))?;
    let matches = bindings.iter().map(|region| region.name.clone()).collect();
    regions.extend(bindings);
    let done = cut(text, &regions);
    let (text, mentions) = drop_mentions(&done.rest, id)?;
    Ok(TakenOut { text, piece: done.piece, bindings: matches, mentions })
}

/// Another id in every place that names the agent.
pub fn rename_agent(text: &str, old: &AgentId, new: &AgentId) -> Result<String, EditError> {
    let document = parse(text)?;
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    for header in headers(document.as_table()) {
        changes.extend(renamed_header(text, &header, old, new));
    }
    let mut values: Vec<&Value> = document.get("default_agent").and_then(Item::as_value).into_iter().collect();
    for table in bindings_of(document.as_table())? {
        values.extend(table.get("agent").and_then(Item::as_value));
    }
    for (_, agent) in agents_of(document.as_table()) {
        values.extend(lists_of_agents(agent).into_iter().flat_map(Array::iter));
    }
    let named = values.into_iter().filter(|value| value.as_str() == Some(old.as_str()));
    changes.extend(named.filter_map(|value| Some((value.span()?, format!("\"{new}\"")))));
    Ok(replaced(text, changes))
}

/// That one key and nothing else.
pub fn set_default(text: &str, id: &AgentId) -> Result<String, EditError> {
    let document = parse(text)?;
    let value = format!("\"{id}\"");
    if let Some(span) = document.get("default_agent").and_then(Item::span) {
        return Ok(replaced(text, vec![(span, value)]));
    }
    let first = document.as_table().iter().filter_map(|(name, item)| first_byte(&document, name, item)).min();
    let at = first.map_or(text.len(), |byte| with_comments(text, line_start(text, byte)));
    let is_header = text[at..]
        .lines()
        .find(|line| !line.trim_start().starts_with('#'))
        .is_some_and(|line| line.trim_start().starts_with('['));
    let gap = if is_header { "\n" } else { "" };
    Ok(format!("{}default_agent = {value}\n{gap}{}", &text[..at], &text[at..]))
}

fn parse(text: &str) -> Result<Document<&str>, EditError> {
    Document::parse(text).map_err(|_| EditError::NotToml)
}

/// Whole lines of a file that belong to one table.
struct Region {
    name: String,
    lines: Range<usize>,
}

struct Cut {
    rest: String,
    piece: String,
}

fn cut(text: &str, regions: &[Region]) -> Cut {
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
        // The blank line that stood behind it would be one too many.
        let doubled = rest.is_empty() || rest.ends_with("\n\n");
        if doubled && text[at..].starts_with('\n') {
            at += 1;
        }
    }
    rest.push_str(&text[at..]);
    Cut { rest, piece }
}

fn agent_regions(text: &str, is_meant: impl Fn(&str) -> bool) -> Result<Vec<Region>, EditError> {
    let document = parse(text)?;
    let mut regions = Vec::new();
    for (name, table) in agents_of(document.as_table()).into_iter().filter(|(name, _)| is_meant(name)) {
        if table.is_dotted() {
            return Err(EditError::Form(format!("agent {name}"), "a table [agents.<id>]"));
        }
        collect_tables(text, document.as_table(), name, table, &mut regions);
    }
    let inline = document.get("agents").and_then(Item::as_inline_table).map(|table| table.iter().any(|(name, _)| is_meant(name)));
    let inner_inline = document.get("agents").and_then(Item::as_table).into_iter().flat_map(Table::iter);
    let inner_inline = inner_inline.filter(|(name, item)| is_meant(name) && item.is_value()).count();
    if inline == Some(true) || inner_inline > 0 {
        return Err(EditError::Form("the agent".into(), "a table [agents.<id>]"));
    }
    Ok(regions)
}

/// A table and those inside it that have headers of their own.
fn collect_tables(text: &str, root: &Table, name: &str, table: &Table, regions: &mut Vec<Region>) {
    if let Some(header) = table.span().filter(|_| !table.is_implicit()) {
        regions.push(Region { name: name.to_owned(), lines: region(text, root, &header, table) });
    }
    for (_, item) in table.iter() {
        match item {
            Item::Table(inner) if !inner.is_dotted() => collect_tables(text, root, name, inner, regions),
            Item::ArrayOfTables(array) => array.iter().for_each(|inner| collect_tables(text, root, name, inner, regions)),
            _ => {}
        }
    }
}

fn binding_regions(text: &str, is_meant: impl Fn(&Table) -> bool) -> Result<Vec<Region>, EditError> {
    let document = parse(text)?;
    let tables = bindings_of(document.as_table())?;
    let meant = tables.into_iter().filter(|table| is_meant(table));
    let region_of = |table: &Table| {
        let name = table.get("match").and_then(Item::as_str).unwrap_or_default().to_owned();
        Some(Region { name, lines: region(text, document.as_table(), &table.span()?, table) })
    };
    Ok(meant.filter_map(region_of).collect())
}

fn bindings_of(root: &Table) -> Result<Vec<&Table>, EditError> {
    match root.get("bindings") {
        None => Ok(Vec::new()),
        Some(Item::ArrayOfTables(tables)) => Ok(tables.iter().collect()),
        Some(_) => Err(EditError::Form("`bindings`".into(), "[[bindings]] tables")),
    }
}

fn agents_of(root: &Table) -> Vec<(&str, &Table)> {
    let agents = root.get("agents").and_then(Item::as_table).into_iter().flat_map(Table::iter);
    agents.filter_map(|(name, item)| Some((name, item.as_table()?))).collect()
}

fn agent_of(binding: &Table) -> Option<&str> {
    binding.get("agent").and_then(Item::as_str)
}

/// Lists in an agent's table that name other agents.
const LISTS_OF_AGENTS: [&str; 3] = ["read_memory_from", "read", "write"];

fn lists_of_agents(agent: &Table) -> Vec<&Array> {
    let inner = agent.iter().filter_map(|(_, item)| item.as_table()).flat_map(lists_of_agents);
    let own = LISTS_OF_AGENTS.iter().filter_map(|key| agent.get(key)?.as_array());
    own.chain(inner).collect()
}

fn drop_mentions(text: &str, id: &AgentId) -> Result<(String, Vec<String>), EditError> {
    let document = parse(text)?;
    let names = |array: &Array| array.iter().any(|value| value.as_str() == Some(id.as_str()));
    let agents = agents_of(document.as_table());
    let mentions = agents.iter().filter(|(_, agent)| lists_of_agents(agent).into_iter().any(names));
    let mentions: Vec<String> = mentions.map(|(name, _)| (*name).to_owned()).collect();
    if mentions.is_empty() {
        return Ok((text.to_owned(), mentions));
    }
    let mut document: DocumentMut = text.parse().map_err(|_| EditError::NotToml)?;
    for name in &mentions {
        if let Some(agent) = document.get_mut("agents").and_then(|agents| agents.get_mut(name)).and_then(Item::as_table_mut) {
            drop_from_lists(agent, id);
        }
    }
    Ok((document.to_string(), mentions))
}

fn drop_from_lists(agent: &mut Table, id: &AgentId) {
    for (key, item) in agent.iter_mut() {
        match item {
            Item::Table(inner) => drop_from_lists(inner, id),
            Item::Value(Value::Array(array)) if LISTS_OF_AGENTS.contains(&key.get()) => {
                array.retain(|value| value.as_str() != Some(id.as_str()));
                let first = array.get_mut(0).map(Value::decor_mut);
                if let Some(decor) = first.filter(|decor| decor.prefix().and_then(|prefix| prefix.as_str()) == Some(" ")) {
                    decor.set_prefix("");
                }
            }
            _ => {}
        }
    }
}

/// From the comment directly above the header to the end of the last value's line.
fn region(text: &str, root: &Table, header: &Range<usize>, table: &Table) -> Range<usize> {
    let end = last_byte(table).max(header.end);
    // A line of a text above can look like a comment.
    let above = last_value_before(root, header.start);
    with_comments(text, line_start(text, header.start)).max(line_end_after(text, above))..line_end(text, end)
}

/// The end of the last value that stands above a place in the file.
fn last_value_before(table: &Table, byte: usize) -> usize {
    let ends = table.iter().map(|(_, item)| match item {
        Item::Value(value) => value.span().map(|span| span.end).filter(|end| *end <= byte).unwrap_or(0),
        Item::Table(inner) => last_value_before(inner, byte),
        Item::ArrayOfTables(array) => array.iter().map(|inner| last_value_before(inner, byte)).max().unwrap_or(0),
        Item::None => 0,
    });
    ends.max().unwrap_or(0)
}

/// The start of the line behind a value; the start of the file where there is none.
fn line_end_after(text: &str, value_end: usize) -> usize {
    if value_end == 0 { 0 } else { line_end(text, value_end) }
}

/// Of the values that stand below a header itself.
fn last_byte(table: &Table) -> usize {
    let ends = table.iter().map(|(_, item)| match item {
        Item::Value(value) => value.span().map_or(0, |span| span.end),
        Item::Table(inner) if inner.is_dotted() => last_byte(inner),
        _ => 0,
    });
    ends.max().unwrap_or(0)
}

fn line_start(text: &str, byte: usize) -> usize {
    text[..byte].rfind('\n').map_or(0, |index| index + 1)
}

fn line_end(text: &str, byte: usize) -> usize {
    text[byte..].find('\n').map_or(text.len(), |index| byte + index + 1)
}

/// Up over lines that are comments.
fn with_comments(text: &str, mut start: usize) -> usize {
    while start > 0 {
        let above = line_start(text, start - 1);
        if !text[above..start].trim_start().starts_with('#') {
            break;
        }
        start = above;
    }
    start
}

fn insert_behind_agents(text: &str, table: &str) -> Result<String, EditError> {
    Ok(insert(text, last_end(&agent_regions(text, |_| true)?), table))
}

fn insert_behind_bindings(text: &str, table: &str) -> Result<String, EditError> {
    Ok(insert(text, last_end(&binding_regions(text, |_| true)?), table))
}

fn last_end(regions: &[Region]) -> Option<usize> {
    regions.iter().map(|region| region.lines.end).max()
}

/// A table with an empty line before it.
fn insert(text: &str, at: Option<usize>, table: &str) -> String {
    let (before, after) = text.split_at(at.unwrap_or(text.len()));
    let gap = match before {
        "" => "",
        before if before.ends_with("\n\n") => "",
        before if before.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let behind = if after.is_empty() || after.starts_with('\n') { "" } else { "\n" };
    format!("{before}{gap}{}\n{behind}{after}", table.trim_matches('\n'))
}

/// The headers of all tables below `agents`.
fn headers(root: &Table) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    agents_of(root).into_iter().for_each(|(_, table)| collect_headers(table, &mut found));
    found
}

fn collect_headers(table: &Table, found: &mut Vec<Range<usize>>) {
    found.extend(table.span().filter(|_| !table.is_implicit() && !table.is_dotted()));
    for (_, item) in table.iter() {
        match item {
            Item::Table(inner) => collect_headers(inner, found),
            Item::ArrayOfTables(array) => array.iter().for_each(|inner| collect_headers(inner, found)),
            _ => {}
        }
    }
}

fn renamed_header(text: &str, header: &Range<usize>, old: &AgentId, new: &AgentId) -> Option<(Range<usize>, String)> {
    let written = &text[header.clone()];
    let inner = written.trim_start_matches('[').trim_end_matches(']');
    let brackets = written.len() - written.trim_start_matches('[').len();
    let keys = Key::parse(inner).ok()?;
    if keys.get(1)?.get() != old.as_str() {
        return None;
    }
    let mut path: Vec<_> = keys.iter().map(Key::display_repr).collect();
    path[1] = new.as_str().into();
    Some((header.clone(), format!("{}{}{}", "[".repeat(brackets), path.join("."), "]".repeat(brackets))))
}

fn first_byte(document: &Document<&str>, name: &str, item: &Item) -> Option<usize> {
    let key = || document.as_table().key(name)?.span().map(|span| span.start);
    match item {
        Item::Table(table) if table.is_implicit() => table.iter().filter_map(|(_, inner)| first_byte(document, "", inner)).min(),
        Item::Table(table) if !table.is_dotted() => table.span().map(|span| span.start),
        Item::ArrayOfTables(array) => array.span().map(|span| span.start),
        _ => key(),
    }
}

fn replaced(text: &str, mut changes: Vec<(Range<usize>, String)>) -> String {
    changes.sort_by_key(|(range, _)| range.start);
    let (mut done, mut at) = (String::new(), 0);
    for (range, new) in changes {
        done.push_str(&text[at..range.start]);
        done.push_str(&new);
        at = range.end;
    }
    done + &text[at..]
}

#[cfg(test)]
mod tests;
