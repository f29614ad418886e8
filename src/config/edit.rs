//! Edits of `config.toml` without a change of any other byte: pure text in, text out.
//!
//! The parsed tree tells where tables and values stand, and lines are cut out or put in there.
//! `DocumentMut` writes the new tables, but not the operator's file: `DocumentMut` groups scattered
//! dotted keys, respells headers, normalises line endings, and deletes comments beside a removed
//! table. [`super::store`] replaces the file, unless a person has changed the file meanwhile.

mod error;
mod headerless;
mod line_endings;
mod lines;
mod mentions;
mod other_forms;
mod owners;
mod regions;
mod rename;
mod sections;
mod tree;

use toml_edit::{Array, ArrayOfTables, Document, DocumentMut, Item, Table, TableLike, value};

use crate::domain::{AgentId, PersonId};
use lines::{line_start, replaced, whole_lines, with_comments};
use regions::{
    Region, cut, insert_behind_agents, insert_behind_bindings, insert_behind_route_tests,
};
use tree::{agent_of, binding_tables, parse, pattern_of, refuse_inline_agents};

pub(crate) use error::EditError;

/// An agent to be written into the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct NewAgent {
    pub name: Option<String>,
    pub emoji: Option<String>,
    pub creature: Option<String>,
    pub vibe: Option<String>,
    pub model: Option<String>,
    pub skills: Option<Vec<String>>,
}

/// An agent's tables, cut out of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TakenOut {
    /// The rest of the file.
    pub text: String,
    /// The tables, with the comments directly above them.
    pub piece: String,
    /// The `match` of each binding in the piece.
    pub bindings: Vec<String>,
    /// Lists that lost the agent: `agents.main.read_memory_from`.
    pub mentions: Vec<String>,
}

/// Adds an agent behind the last agent, or at the end.
pub(crate) fn add_agent(text: &str, id: &AgentId, agent: &NewAgent) -> Result<String, EditError> {
    let (plain, form) = line_endings::remove(text);
    Ok(form.put_back(&insert_behind_agents(&plain, &agent_table(id, agent))?))
}

/// Adds an agent with this table behind the last agent, or at the end.
pub(crate) fn add_table(text: &str, id: &AgentId, table: Table) -> Result<String, EditError> {
    let (plain, form) = line_endings::remove(text);
    Ok(form.put_back(&insert_behind_agents(&plain, &with_header(id, table))?))
}

fn agent_table(id: &AgentId, agent: &NewAgent) -> String {
    let mut table = Table::new();
    for (key, text) in [
        ("name", &agent.name),
        ("emoji", &agent.emoji),
        ("creature", &agent.creature),
        ("vibe", &agent.vibe),
        ("model", &agent.model),
    ] {
        if let Some(text) = text {
            table.insert(key, value(text));
        }
    }
    if let Some(skills) = &agent.skills {
        table.insert(
            "skills",
            value(skills.iter().map(String::as_str).collect::<Array>()),
        );
    }
    with_header(id, table)
}

/// The table as `[agents.<id>]`.
pub(crate) fn with_header(id: &AgentId, table: Table) -> String {
    let mut agents = Table::new();
    agents.set_implicit(true);
    agents.insert(id.as_str(), Item::Table(table));
    let mut document = DocumentMut::new();
    document.insert("agents", Item::Table(agents));
    document.to_string()
}

/// Adds a binding behind the last binding, or at the end.
pub(crate) fn add_binding(text: &str, pattern: &str, id: &AgentId) -> Result<String, EditError> {
    let (plain, form) = line_endings::remove(text);
    Ok(form.put_back(&insert_behind_bindings(
        &plain,
        &binding_table(pattern, id),
    )?))
}

/// A binding to be written into the file, with filters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewRule {
    pub(crate) pattern: String,
    pub(crate) agent: AgentId,
    pub(crate) require_mention: Option<bool>,
    /// Absent: all people who may speak there.
    pub(crate) users: Option<Vec<PersonId>>,
    /// Roles of a Discord server.
    pub(crate) roles: Vec<u64>,
}

/// Adds a binding with filters behind the last binding, or at the end.
pub(crate) fn add_rule(text: &str, rule: &NewRule) -> Result<String, EditError> {
    let mut binding = Table::from_iter([
        ("match", rule.pattern.as_str()),
        ("agent", rule.agent.as_str()),
    ]);
    if let Some(users) = &rule.users {
        let users = users.iter().map(ToString::to_string).collect::<Array>();
        binding.insert("users", value(users));
    }
    if !rule.roles.is_empty() {
        let roles = rule.roles.iter().map(ToString::to_string);
        binding.insert("roles", value(roles.collect::<Array>()));
    }
    if let Some(require_mention) = rule.require_mention {
        binding.insert("require_mention", value(require_mention));
    }
    let (plain, form) = line_endings::remove(text);
    Ok(form.put_back(&insert_behind_bindings(&plain, &as_binding(binding))?))
}

/// Adds a section with these keys at the end of the file.
pub(crate) fn add_section(text: &str, path: &[&str], section: Table) -> Result<String, EditError> {
    let (plain, form) = line_endings::remove(text);
    parse(&plain)?;
    let mut item = Item::Table(section);
    for (at, name) in path.iter().enumerate().skip(1).rev() {
        let mut around = Table::new();
        around.set_implicit(at > 0);
        around.insert(name, item);
        item = Item::Table(around);
    }
    if let Some(table) = item.as_table_mut().filter(|_| path.len() > 1) {
        table.set_implicit(true);
    }
    let mut document = DocumentMut::new();
    document.insert(path.first().copied().unwrap_or_default(), item);
    let gap = if plain.trim().is_empty() { "" } else { "\n" };
    Ok(form.put_back(&format!("{}{gap}{document}", whole_lines(&plain))))
}

/// Gives the binding of exactly these places to another agent, or adds a binding. Bindings with
/// filters are others.
pub(crate) fn bind(text: &str, pattern: &str, id: &AgentId) -> Result<String, EditError> {
    let (plain, form) = line_endings::remove(text);
    let document = parse(&plain)?;
    let found = binding_tables(document.as_table())
        .into_iter()
        .find(|table| is_plain(*table, pattern))
        .and_then(|table| table.get("agent")?.span());
    match found {
        Some(span) => Ok(form.put_back(&replaced(&plain, vec![(span, format!("\"{id}\""))]))),
        None => add_binding(text, pattern, id),
    }
}

/// Takes out the binding of exactly these places, with the comments directly above.
pub(crate) fn unbind(text: &str, pattern: &str) -> Result<String, EditError> {
    let (plain, form) = line_endings::remove(text);
    let found = regions::of_bindings(&plain, |table| is_plain(table, pattern))?;
    Ok(form.put_back(&cut(&plain, &found).rest))
}

/// The line of the header of this binding, counted from 1.
pub(crate) fn line_of_binding(text: &str, pattern: &str) -> Option<usize> {
    let (plain, _) = line_endings::remove(text);
    let document = parse(&plain).ok()?;
    let tables = binding_tables(document.as_table());
    let mut found = tables.into_iter().filter(|table| is_plain(*table, pattern));
    let start = found.next()?.span()?.start;
    Some(plain.get(..start)?.matches('\n').count() + 1)
}

/// Whether a binding is for these places and has no filter.
fn is_plain(binding: &dyn TableLike, pattern: &str) -> bool {
    let has_filter = ["users", "roles", "name", "tag"]
        .iter()
        .any(|filter| binding.contains_key(filter));
    pattern_of(binding) == pattern && !has_filter
}

fn binding_table(pattern: &str, id: &AgentId) -> String {
    as_binding(Table::from_iter([
        ("match", pattern),
        ("agent", id.as_str()),
    ]))
}

/// The table as an entry of `[[bindings]]`.
fn as_binding(binding: Table) -> String {
    let mut document = DocumentMut::new();
    document.insert(
        "bindings",
        Item::ArrayOfTables(ArrayOfTables::from_iter([binding])),
    );
    document.to_string()
}

/// Adds a route test behind the last, or at the end. Values are TOML.
pub(crate) fn add_route_test(text: &str, test: Table) -> Result<String, EditError> {
    let mut document = DocumentMut::new();
    document.insert(
        "route_tests",
        Item::ArrayOfTables(ArrayOfTables::from_iter([test])),
    );
    let (plain, form) = line_endings::remove(text);
    let added = insert_behind_route_tests(&plain, &document.to_string())?;
    Ok(form.put_back(&added))
}

/// Cuts out the agent's tables, the bindings to the agent, the route tests for the agent, and the
/// agent's name in lists of others.
pub(crate) fn take_out_agent(text: &str, id: &AgentId) -> Result<TakenOut, EditError> {
    let (plain, form) = line_endings::remove(text);
    let document = parse(&plain)?;
    let root = document.as_table();
    refuse_inline_agents(root, |name| name == id.as_str())?;
    let mut regions = regions::of_agents(&plain, root, |name| name == id.as_str());
    let bindings = regions::of_bindings(&plain, |table| agent_of(table) == Some(id.as_str()))?;
    let patterns = bindings.iter().map(|region| region.name.clone()).collect();
    regions.extend(bindings);
    let expects = |table: &dyn TableLike| agent_of(table) == Some(id.as_str());
    regions.extend(regions::of_route_tests(&plain, expects)?);
    let headerless = headerless::of_agent(&plain, root, id);
    let pieces = [
        headerless::as_table(&plain, id, &headerless),
        cut(&plain, &regions).piece,
    ];
    let pieces: Vec<&str> = pieces
        .iter()
        .map(String::as_str)
        .filter(|piece| !piece.is_empty())
        .collect();
    regions.extend(headerless.iter().map(|line| Region {
        name: id.to_string(),
        lines: line.lines.clone(),
    }));
    let (text, mentions) = mentions::drop_from_lists(&cut(&plain, &regions).rest, id)?;
    Ok(TakenOut {
        text: form.put_back(&text),
        piece: pieces.join("\n"),
        bindings: patterns,
        mentions,
    })
}

/// Inserts a cut-out piece again: agents behind agents, bindings behind bindings.
pub(crate) fn put_back(text: &str, piece: &str) -> Result<String, EditError> {
    let ((plain, form), (piece, _)) = (line_endings::remove(text), line_endings::remove(piece));
    let bindings = cut(&piece, &regions::of_bindings(&piece, |_| true)?);
    let mut text = insert_behind_agents(&plain, &bindings.rest)?;
    if !bindings.piece.is_empty() {
        text = insert_behind_bindings(&text, &bindings.piece)?;
    }
    Ok(form.put_back(&text))
}

/// Removes `[[bindings]]` and `[[route_tests]]` from a cut-out piece; returns the rest and their
/// `match` texts.
pub(crate) fn without_bindings(piece: &str) -> Result<(String, Vec<String>), EditError> {
    let mut document: DocumentMut = piece.parse().map_err(|_| EditError::NotToml)?;
    let patterns = binding_tables(document.as_table())
        .into_iter()
        .map(|table| pattern_of(table))
        .collect();
    document.remove("bindings");
    document.remove("route_tests");
    Ok((document.to_string(), patterns))
}

/// Removes the agent's name from a cut-out piece.
pub(crate) fn without_name(piece: &str, id: &AgentId) -> Result<String, EditError> {
    let mut document: DocumentMut = piece.parse().map_err(|_| EditError::NotToml)?;
    let agent = document
        .get_mut("agents")
        .and_then(|agents| agents.get_mut(id.as_str()))
        .and_then(Item::as_table_mut);
    if let Some(agent) = agent {
        agent.remove("name");
    }
    Ok(document.to_string())
}

/// Adds the agent to a list again, if the list still exists.
pub(crate) fn add_mention(
    text: &str,
    list: &str,
    id: &AgentId,
) -> Result<Option<String>, EditError> {
    let (plain, form) = line_endings::remove(text);
    Ok(mentions::add_to_list(&plain, list, id)?.map(|text| form.put_back(&text)))
}

/// Writes another id in every place that names the agent.
pub(crate) fn rename_agent(text: &str, old: &AgentId, new: &AgentId) -> Result<String, EditError> {
    let (plain, form) = line_endings::remove(text);
    Ok(form.put_back(&rename::rename_agent(&plain, old, new)?))
}

/// Adds an owner to `[access] owners`. An owner in the list changes nothing.
pub(crate) fn add_owner(text: &str, owner: &PersonId) -> Result<String, EditError> {
    let (plain, form) = line_endings::remove(text);
    Ok(form.put_back(&owners::add(&plain, owner)?))
}

/// Sets a key of the top level. `value` is TOML.
pub(crate) fn set_top(text: &str, key: &str, value: &str) -> Result<String, EditError> {
    let (plain, form) = line_endings::remove(text);
    Ok(form.put_back(&sections::set_top(&plain, key, value)?))
}

/// Sets keys of a section, such as `providers.openai`. Values are TOML.
pub(crate) fn set_section(
    text: &str,
    section: &str,
    keys: &[(&str, String)],
) -> Result<String, EditError> {
    let (plain, form) = line_endings::remove(text);
    Ok(form.put_back(&sections::set(&plain, section, keys)?))
}

/// Takes a key out of a section.
pub(crate) fn unset(text: &str, section: &str, key: &str) -> Result<String, EditError> {
    let (plain, form) = line_endings::remove(text);
    Ok(form.put_back(&sections::unset(&plain, section, key)?))
}

/// The lines of a section.
pub(crate) fn section_lines(section: &str, keys: &[(&str, String)]) -> String {
    sections::lines_of(section, keys)
}

/// Changes the key `default_agent` and nothing else.
pub(crate) fn set_default(text: &str, id: &AgentId) -> Result<String, EditError> {
    let (plain, form) = line_endings::remove(text);
    let document = parse(&plain)?;
    let value = format!("\"{id}\"");
    if let Some(span) = document.get("default_agent").and_then(Item::span) {
        return Ok(form.put_back(&replaced(&plain, vec![(span, value)])));
    }
    let first = document
        .as_table()
        .iter()
        .filter_map(|(name, item)| first_byte(&document, name, item))
        .min();
    let at = first.map_or(plain.len(), |byte| {
        with_comments(&plain, line_start(&plain, byte))
    });
    let mut below = plain[at..]
        .lines()
        .map(str::trim_start)
        .skip_while(|line| line.starts_with('#'));
    let is_header = below.next().is_some_and(|line| line.starts_with('['));
    let (before, gap) = (whole_lines(&plain[..at]), if is_header { "\n" } else { "" });
    Ok(form.put_back(&format!(
        "{before}default_agent = {value}\n{gap}{}",
        &plain[at..]
    )))
}

/// The start of an entry of the root: its key, or its header.
fn first_byte(document: &Document<&str>, name: &str, item: &Item) -> Option<usize> {
    let key = || document.as_table().key(name)?.span().map(|span| span.start);
    match item {
        Item::Table(table) if table.is_implicit() => table
            .iter()
            .filter_map(|(_, inner)| first_byte(document, "", inner))
            .min(),
        Item::Table(table) if !table.is_dotted() => table.span().map(|span| span.start),
        Item::ArrayOfTables(array) => array.span().map(|span| span.start),
        _ => key(),
    }
}

#[cfg(test)]
mod tests;
