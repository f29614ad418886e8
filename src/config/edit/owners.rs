//! The list `owners` under `[access]`.

use toml_edit::{Item, Value};

use super::error::EditError;
use super::lines::{line_end, replaced, whole_lines};
use super::tree::parse;
use crate::domain::PersonId;

/// The text with one more owner. A file that names the owner already stays as it is.
pub(super) fn add(text: &str, owner: &PersonId) -> Result<String, EditError> {
    let document = parse(text)?;
    let quoted = format!("\"{owner}\"");
    let is_written = |item: &&Item| {
        item.as_table()
            .is_none_or(|table| table.is_dotted() || !table.is_implicit())
    };
    let Some(access) = document.get("access").filter(is_written) else {
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
