//! Edits of `config.toml` that leave every other byte as it is: pure text in, text out. The tree only tells where things stand.
//!
//! [`super::store`] puts an edited text in the place of the old one, if that is still what was read.

mod dress;
mod loose;
mod mentions;

use std::ops::Range;

use toml_edit::{Array, Document, Item, Key, Table, TableLike, Value};

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

impl EditError {
    fn agent(name: &str) -> Self {
        EditError::Form(format!("agent {name}"), "a table [agents.<id>]")
    }

    fn bindings() -> Self {
        EditError::Form("`bindings`".into(), "[[bindings]] tables")
    }
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
    /// Lists that named it, and no longer do: `agents.main.read_memory_from`.
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
    let (plain, dress) = dress::take_off(text);
    Ok(dress.put_on(&insert_behind_agents(&plain, &table)?))
}

/// Tables as they were taken out.
pub fn put_back(text: &str, piece: &str) -> Result<String, EditError> {
    let ((plain, dress), (piece, _)) = (dress::take_off(text), dress::take_off(piece));
    let bindings = cut(&piece, &binding_regions(&piece, |_| true)?);
    let mut text = insert_behind_agents(&plain, &bindings.rest)?;
    if !bindings.piece.is_empty() {
        text = insert_behind_bindings(&text, &bindings.piece)?;
    }
    Ok(dress.put_on(&text))
}

/// A piece without what it says about places, and what it said.
pub fn without_bindings(piece: &str) -> Result<(String, Vec<String>), EditError> {
    let regions = binding_regions(piece, |_| true)?;
    let matches = regions.iter().map(|region| region.name.clone()).collect();
    Ok((cut(piece, &regions).rest, matches))
}

pub fn add_binding(text: &str, pattern: &str, id: &AgentId) -> Result<String, EditError> {
    let (plain, dress) = dress::take_off(text);
    let table = format!("[[bindings]]\nmatch = {}\nagent = \"{id}\"\n", Value::from(pattern));
    Ok(dress.put_on(&insert_behind_bindings(&plain, &table)?))
}

/// The agent's tables, the bindings that name it, and every mention in lists of others.
pub fn take_out_agent(text: &str, id: &AgentId) -> Result<TakenOut, EditError> {
    let (plain, dress) = dress::take_off(text);
    let document = parse(&plain)?;
    refuse_one_value(&document, |name| name == id.as_str())?;
    let mut regions = agent_regions(&plain, &document, |name| name == id.as_str());
    let bindings = binding_regions(&plain, |table| agent_of(table) == Some(id.as_str()))?;
    let matches = bindings.iter().map(|region| region.name.clone()).collect();
    regions.extend(bindings);
    let loose = loose::of_agent(&plain, document.as_table(), id);
    let pieces = [loose::as_table(&plain, id, &loose), cut(&plain, &regions).piece];
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).filter(|piece| !piece.is_empty()).collect();
    regions.extend(loose.iter().map(|loose| Region { name: id.to_string(), lines: loose.lines.clone() }));
    let (text, mentions) = mentions::drop_from_lists(&cut(&plain, &regions).rest, id)?;
    Ok(TakenOut { text: dress.put_on(&text), piece: pieces.join("\n"), bindings: matches, mentions })
}

/// The agent in a list that lost it, if that is still there.
pub fn add_mention(text: &str, list: &str, id: &AgentId) -> Result<Option<String>, EditError> {
    let (plain, dress) = dress::take_off(text);
    Ok(mentions::add_to_list(&plain, list, id)?.map(|text| dress.put_on(&text)))
}

/// Another id in every place that names the agent.
pub fn rename_agent(text: &str, old: &AgentId, new: &AgentId) -> Result<String, EditError> {
    let (plain, dress) = dress::take_off(text);
    let document = parse(&plain)?;
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    for header in headers(document.as_table()) {
        changes.extend(renamed_header(&plain, &header, old, new));
    }
    let loose = loose::of_agent(&plain, document.as_table(), old);
    changes.extend(loose.iter().filter_map(|loose| loose.renamed(&plain, old, new)));
    let in_one_value = document.get("agents").and_then(Item::as_inline_table).and_then(|agents| agents.key(old.as_str())?.span());
    changes.extend(in_one_value.map(|span| (span, new.to_string())));
    let mut values: Vec<&Value> = document.get("default_agent").and_then(Item::as_value).into_iter().collect();
    values.extend(bindings(document.as_table()).into_iter().filter_map(|binding| binding.get("agent")?.as_value()));
    values.extend(mentions::lists(document.as_table()).into_iter().flat_map(|list| list.array.iter()));
    let named = values.into_iter().filter(|value| value.as_str() == Some(old.as_str()));
    changes.extend(named.filter_map(|value| Some((value.span()?, format!("\"{new}\"")))));
    let renamed = replaced(&plain, changes);
    // Whatever form it has that nobody thought of: half a rename is none.
    if (old != new && has_agent(&parse(&renamed)?, old)) || has_agent(&document, old) != has_agent(&parse(&renamed)?, new) {
        return Err(EditError::agent(old.as_str()));
    }
    Ok(dress.put_on(&renamed))
}

fn has_agent(document: &Document<&str>, id: &AgentId) -> bool {
    document.get("agents").and_then(Item::as_table_like).is_some_and(|agents| agents.contains_key(id.as_str()))
}

/// That one key and nothing else.
pub fn set_default(text: &str, id: &AgentId) -> Result<String, EditError> {
    let (plain, dress) = dress::take_off(text);
    let document = parse(&plain)?;
    let value = format!("\"{id}\"");
    if let Some(span) = document.get("default_agent").and_then(Item::span) {
        return Ok(dress.put_on(&replaced(&plain, vec![(span, value)])));
    }
    let first = document.as_table().iter().filter_map(|(name, item)| first_byte(&document, name, item)).min();
    let at = first.map_or(plain.len(), |byte| with_comments(&plain, line_start(&plain, byte)));
    let is_header = plain[at..]
        .lines()
        .find(|line| !line.trim_start().starts_with('#'))
        .is_some_and(|line| line.trim_start().starts_with('['));
    let (before, gap) = (whole_lines(&plain[..at]), if is_header { "\n" } else { "" });
    Ok(dress.put_on(&format!("{before}default_agent = {value}\n{gap}{}", &plain[at..])))
}

/// A last line without an end would swallow what comes behind it.
fn whole_lines(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
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

fn agent_regions(text: &str, document: &Document<&str>, is_meant: impl Fn(&str) -> bool) -> Vec<Region> {
    let mut regions = Vec::new();
    for (name, table) in agents_of(document.as_table()).into_iter().filter(|(name, _)| is_meant(name)) {
        collect_tables(text, document.as_table(), name, table, &mut regions);
    }
    regions
}

/// `agents = { … }` can neither be added to nor be taken from.
fn refuse_one_value(document: &Document<&str>, is_meant: impl Fn(&str) -> bool) -> Result<(), EditError> {
    let agents = document.get("agents").and_then(Item::as_inline_table);
    match agents.and_then(|agents| agents.iter().find(|(name, _)| is_meant(name))) {
        Some((name, _)) => Err(EditError::agent(name)),
        None => Ok(()),
    }
}

/// A table and those inside it that have headers of their own.
fn collect_tables(text: &str, root: &Table, name: &str, table: &Table, regions: &mut Vec<Region>) {
    if let Some(header) = table.span().filter(|_| !table.is_implicit() && !table.is_dotted()) {
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

fn binding_regions(text: &str, is_meant: impl Fn(&dyn TableLike) -> bool) -> Result<Vec<Region>, EditError> {
    let document = parse(text)?;
    let tables = bindings_of(document.as_table());
    if tables.is_empty() && bindings(document.as_table()).into_iter().any(&is_meant) {
        return Err(EditError::bindings());
    }
    let region_of = |table: &Table| {
        let name = table.get("match").and_then(Item::as_str).unwrap_or_default().to_owned();
        Some(Region { name, lines: region(text, document.as_table(), &table.span()?, table) })
    };
    Ok(tables.into_iter().filter(|table| is_meant(*table)).filter_map(region_of).collect())
}

/// Those that are tables of their own. A list of inline tables is as good, as long as none of them is meant.
fn bindings_of(root: &Table) -> Vec<&Table> {
    root.get("bindings").and_then(Item::as_array_of_tables).into_iter().flat_map(|tables| tables.iter()).collect()
}

/// All of them, in whichever form.
fn bindings(root: &Table) -> Vec<&dyn TableLike> {
    let tables = bindings_of(root).into_iter().map(|table| table as &dyn TableLike);
    let list = root.get("bindings").and_then(Item::as_array).into_iter().flat_map(Array::iter);
    tables.chain(list.filter_map(|value| value.as_inline_table().map(|table| table as &dyn TableLike))).collect()
}

fn agents_of(root: &Table) -> Vec<(&str, &Table)> {
    let agents = root.get("agents").and_then(Item::as_table).into_iter().flat_map(Table::iter);
    agents.filter_map(|(name, item)| Some((name, item.as_table()?))).collect()
}

fn agent_of(binding: &dyn TableLike) -> Option<&str> {
    binding.get("agent").and_then(Item::as_str)
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
    let document = parse(text)?;
    refuse_one_value(&document, |_| true)?;
    Ok(insert(text, last_end(&agent_regions(text, &document, |_| true)), table))
}

fn insert_behind_bindings(text: &str, table: &str) -> Result<String, EditError> {
    if parse(text)?.get("bindings").is_some_and(Item::is_value) {
        return Err(EditError::bindings());
    }
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
        // Two cuts may meet, as those of neighbours in a list.
        done.push_str(text.get(at..range.start).unwrap_or_default());
        done.push_str(&new);
        at = at.max(range.end);
    }
    done + &text[at..]
}

#[cfg(test)]
mod tests;
