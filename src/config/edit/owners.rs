//! The list `owners` under `[access]`.

use toml_edit::{Item, Value};

use super::error::EditError;
use super::lines::{line_end, replaced, whole_lines};
use super::tree::parse;
use crate::domain::PersonId;

/// The text with another owner. A file that names the owner already stays as it is.
pub(super) fn add(text: &str, owner: &PersonId) -> Result<String, EditError> {
    let document = parse(text)?;
    let quoted = format!("\"{owner}\"");
    let is_written = |item: &&Item| {
        item.as_table()
            .is_none_or(|table| table.is_dotted() || !table.is_implicit())
    };
    let Some(access) = document.get("access").filter(is_written) else {
        if let Some(switched_on) = switch_on(text, &quoted) {
            return Ok(switched_on);
        }
        let gap = if text.is_empty() { "" } else { "\n" };
        return Ok(format!(
            "{}{gap}[access]\nowners = [{quoted}]\n",
            whole_lines(text)
        ));
    };
    let listed = access.as_table_like().and_then(|table| table.get("owners"));
    let at = match listed {
        Some(Item::Value(Value::Array(owners))) => {
            let is_there = |value: &Value| value.as_str() == Some(&owner.to_string());
            if owners.iter().any(is_there) {
                return Ok(text.to_owned());
            }
            match owners.iter().last().and_then(Value::span) {
                Some(last) => Some((last.end, format!(", {quoted}"))),
                None => owners.span().map(|list| (list.start + 1, quoted)),
            }
        }
        Some(_) => None,
        None => {
            let header = access.as_table().filter(|table| !table.is_dotted());
            let header = header.and_then(toml_edit::Table::span);
            header.map(|header| {
                (
                    line_end(text, header.start),
                    format!("owners = [{quoted}]\n"),
                )
            })
        }
    };
    let (at, new) = at.ok_or_else(|| {
        EditError::Form(
            "`access`".into(),
            "a table [access] with owners = [\"telegram:12345678\"]",
        )
    })?;
    let is_cut_off = at == text.len() && !text.ends_with('\n') && new.starts_with("owners");
    let new = if is_cut_off { format!("\n{new}") } else { new };
    Ok(replaced(text, vec![(at..at, new)]))
}

/// The text with its switched-off section `#[access]` switched on and extended by the owner. None
/// without such a section, or if the section would take up keys below it.
fn switch_on(text: &str, quoted: &str) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let at = lines
        .iter()
        .position(|line| switched_off(line) == Some("[access]"))?;
    let is_owners = |line: &&str| {
        let words = switched_off(line).unwrap_or_default();
        let rest = words.strip_prefix("owners").unwrap_or_default();
        rest.trim_start().starts_with('=')
    };
    let below = at + 1 + usize::from(lines.get(at + 1).is_some_and(is_owners));
    let next = lines[below..].iter().map(|line| line.trim());
    let mut next = next.skip_while(|line| line.is_empty() || line.starts_with('#'));
    if next.next().is_some_and(|line| !line.starts_with('[')) {
        return None;
    }
    let owners = format!("[access]\nowners = [{quoted}]\n");
    Some(
        [&lines[..at].concat(), &owners, &lines[below..].concat()]
            .map(String::as_str)
            .concat(),
    )
}

/// The words of a line behind its `#`.
fn switched_off(line: &str) -> Option<&str> {
    line.trim().strip_prefix('#').map(str::trim)
}
