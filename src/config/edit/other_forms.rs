//! Sections without a header of their own, lists with comments in them, and the place of a new
//! section of an agent.

use std::ops::Range;

use toml_edit::{Array, InlineTable, Table, Value};

use super::error::EditError;
use super::lines::{line_end, line_start, replaced};
use super::mentions::around;
use super::regions;

/// The place of a section that is written as `limits = { max_steps = 3 }`.
pub(super) fn inline(root: &Table, section: &str) -> Option<Range<usize>> {
    let mut names = section.split('.');
    let first = root.get(names.next()?)?;
    let found = names.try_fold(first, |item, name| item.as_table_like()?.get(name))?;
    found.as_inline_table()?.span()
}

/// The text with an inline table changed.
pub(super) fn with_inline(
    text: &str,
    span: Range<usize>,
    change: impl FnOnce(&mut InlineTable) -> Result<(), EditError>,
) -> Result<String, EditError> {
    let Ok(Value::InlineTable(mut table)) = text[span.clone()].parse() else {
        return Err(EditError::NotToml);
    };
    change(&mut table)?;
    table.fmt();
    table.decor_mut().clear();
    Ok(replaced(text, vec![(span, table.to_string())]))
}

/// The place of a new key of a section with dotted keys.
pub(super) struct Beside {
    pub(super) line: usize,
    /// The names before the key, with the dot: `limits.`
    pub(super) path: String,
}

/// The line below the last dotted key of a section, such as `limits.max_steps = 3`. None for a
/// section with a header.
pub(super) fn beside_dotted(text: &str, table: &Table) -> Option<Beside> {
    if !table.is_dotted() {
        return None;
    }
    let (name, _) = table.iter().last()?;
    let (key, value) = table.get_key_value(name)?;
    let (key, value) = (key.span()?, value.span()?);
    let line = line_end(text, value.end);
    let ends = text[..line].ends_with('\n');
    let path = text[line_start(text, key.start)..key.start].to_owned();
    ends.then_some(Beside { line, path })
}

/// The changes that make a list with comments into another, so that items which stay keep theirs.
/// None for a list without comments.
pub(super) fn list_changes(
    text: &str,
    list: &Array,
    wanted: &str,
) -> Option<Vec<(Range<usize>, String)>> {
    let span = list.span()?;
    if !text[span.clone()].contains('#') {
        return None;
    }
    let wanted = match wanted.parse() {
        Ok(Value::Array(wanted)) => wanted,
        _ => return None,
    };
    let has = |list: &Array, item: &Value| {
        let text = item.as_str();
        text.is_some() && list.iter().any(|known| known.as_str() == text)
    };
    let items: Vec<(Range<usize>, bool)> = list
        .iter()
        .filter_map(|item| Some((item.span()?, has(&wanted, item))))
        .collect();
    let gone = items.iter().enumerate().filter(|(_, (_, stays))| !stays);
    let cut = |(index, (item, _)): (usize, &(Range<usize>, bool))| {
        let before = index.checked_sub(1).map(|before| items[before].0.end);
        (around(text, item, before), String::new())
    };
    let mut changes: Vec<(Range<usize>, String)> = gone.map(cut).collect();
    let new = wanted.iter().filter(|item| !has(list, item));
    let new: String = new
        .map(|item| format!("{}, ", item.to_string().trim()))
        .collect();
    // Behind the bracket, because the last item may be one that goes.
    changes.push((span.start + 1..span.start + 1, new));
    Some(changes)
}

/// The end of the tables of the agent that a section belongs to, such as `agents.rose.limits`.
pub(super) fn behind_agent(text: &str, root: &Table, section: &str) -> Option<usize> {
    let (agent, _) = section.strip_prefix("agents.")?.split_once('.')?;
    let tables = regions::of_agents(text, root, |name| name == agent);
    let end = tables.iter().map(|region| region.lines.end).max()?;
    // Comments below belong to the table, unless the next header follows them.
    let mut below = end;
    while text[below..].starts_with('#') {
        below = line_end(text, below);
    }
    let is_of_next = text[below..].starts_with('[');
    Some(if is_of_next { end } else { below })
}

#[cfg(test)]
mod tests {
    use super::super::{set_section, unset};

    #[test]
    fn a_section_of_an_agent_is_written_beside_its_other_tables() {
        let check = |text: &str, expected: &str| {
            let keys = [("max_steps", "7".to_owned())];
            let text = set_section(text, "agents.rose.limits", &keys).unwrap();
            assert_eq!(text, expected);
        };
        check(
            "[agents.rose]\nname = \"R\" # hers\n\n[[bindings]]\nagent = \"rose\"\n",
            "[agents.rose]\nname = \"R\" # hers\n\n[agents.rose.limits]\nmax_steps = 7\n\n[[bindings]]\nagent = \"rose\"\n",
        );
        check(
            "[agents.rose]\nname = \"R\"\n#model = \"a/b\"\n\n[x]\n",
            "[agents.rose]\nname = \"R\"\n#model = \"a/b\"\n\n[agents.rose.limits]\nmax_steps = 7\n\n[x]\n",
        );
        check(
            "[agents.rose]\n# about x\n[x]\n",
            "[agents.rose]\n\n[agents.rose.limits]\nmax_steps = 7\n\n# about x\n[x]\n",
        );
        check(
            "[agents.rose]",
            "[agents.rose]\n\n[agents.rose.limits]\nmax_steps = 7\n",
        );
        check("a = 1\n", "a = 1\n\n[agents.rose.limits]\nmax_steps = 7\n");
    }

    #[test]
    fn sections_without_a_header_are_edited_in_their_form() {
        let check = |text: &str, set: &str, taken_out: &str| {
            let section = "agents.rose.limits";
            let keys = [("max_steps", "7".to_owned())];
            assert_eq!(set_section(text, section, &keys).unwrap(), set);
            assert_eq!(unset(text, section, "max_minutes").unwrap(), taken_out);
        };
        check(
            "[agents.rose]\nlimits = { max_minutes = 3 } # tight\nname = \"R\"\n",
            "[agents.rose]\nlimits = { max_minutes = 3, max_steps = 7 } # tight\nname = \"R\"\n",
            "[agents.rose]\nlimits = {} # tight\nname = \"R\"\n",
        );
        check(
            "[agents.rose]\nlimits.max_minutes = 3 # tight\nname = \"R\"\n",
            "[agents.rose]\nlimits.max_minutes = 3 # tight\nlimits.max_steps = 7\nname = \"R\"\n",
            "[agents.rose]\nname = \"R\"\n",
        );
    }

    #[test]
    fn items_that_stay_in_a_list_keep_their_comments() {
        let text =
            "[agents.rose.tools]\ndeny = [\n  \"shell\", # never\n  \"http\", # not yet\n]\n";
        let check = |wanted: &str, expected: &str| {
            let keys = [("deny", wanted.to_owned())];
            let text = set_section(text, "agents.rose.tools", &keys).unwrap();
            assert_eq!(text, expected);
            text.parse::<toml::Table>().unwrap();
        };
        check(
            "[\"http\"]",
            "[agents.rose.tools]\ndeny = [\n  \"http\", # not yet\n]\n",
        );
        check(
            "[\"shell\", \"spawn\"]",
            "[agents.rose.tools]\ndeny = [\"spawn\", \n  \"shell\", # never\n]\n",
        );
        check("[]", "[agents.rose.tools]\ndeny = [\n]\n");
    }
}
