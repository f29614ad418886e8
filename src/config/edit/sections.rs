//! Keys of the top level and of sections such as `[telegram]`, set singly. A section switched off
//! by `#` is switched on in its place.

use toml_edit::{Item, Table};

use super::error::EditError;
use super::lines::{line_end, line_start, replaced, whole_lines, with_comments};
use super::other_forms::{behind_agent, beside_dotted, inline, list_changes, with_inline};
use super::tree::parse;

/// The text with a key of the top level. `value` is TOML.
pub(super) fn set_top(text: &str, key: &str, value: &str) -> Result<String, EditError> {
    let document = parse(text)?;
    if let Some(span) = document.get(key).and_then(Item::span) {
        return Ok(replaced(text, vec![(span, value.to_owned())]));
    }
    let line = format!("{key} = {value}\n");
    let first_header = first_header(text);
    if let Some(at) = switched_off(text, |words| is_key(words, key)).filter(|at| *at < first_header)
    {
        return Ok(replaced(text, vec![(at..line_end(text, at), line)]));
    }
    let at = with_comments(text, first_header);
    let (before, gap) = (
        whole_lines(&text[..at]),
        if at < text.len() { "\n" } else { "" },
    );
    Ok(format!("{before}{line}{gap}{}", &text[at..]))
}

/// The text with keys of a section: `providers.openai`, `telegram`. Values are written as they are.
pub(super) fn set(text: &str, section: &str, keys: &[(&str, String)]) -> Result<String, EditError> {
    let document = parse(text)?;
    if let Some(span) = inline(document.as_table(), section) {
        return with_inline(text, span, |table| {
            for (key, value) in keys {
                table.insert(*key, value.parse().map_err(|_| EditError::NotToml)?);
            }
            Ok(())
        });
    }
    if table(document.as_table(), section)?.is_none() {
        return Ok(add(text, document.as_table(), section, keys));
    }
    keys.iter().try_fold(text.to_owned(), |text, (key, value)| {
        set_one(&text, section, key, value)
    })
}

/// The text without a key of a section. A missing section or key is no mistake.
pub(super) fn unset(text: &str, section: &str, key: &str) -> Result<String, EditError> {
    let document = parse(text)?;
    if let Some(span) = inline(document.as_table(), section) {
        return with_inline(text, span, |table| {
            table.remove(key);
            Ok(())
        });
    }
    let Some(table) = table(document.as_table(), section)? else {
        return Ok(text.to_owned());
    };
    let Some((name, value)) = table.get_key_value(key) else {
        return Ok(text.to_owned());
    };
    let (Some(name), Some(value)) = (name.span(), value.span()) else {
        return Err(EditError::Form(
            format!("`{section}.{key}`"),
            "a key with a line of its own",
        ));
    };
    let lines = line_start(text, name.start)..line_end(text, value.end);
    Ok(replaced(text, vec![(lines, String::new())]))
}

fn set_one(text: &str, section: &str, key: &str, value: &str) -> Result<String, EditError> {
    let document = parse(text)?;
    let form = || EditError::Form(format!("`{section}`"), "a section with a header of its own");
    let table = table(document.as_table(), section)?.ok_or_else(form)?;
    if let Some(item) = table.get(key)
        && let Some(span) = item.span()
    {
        let changes = item
            .as_array()
            .and_then(|list| list_changes(text, list, value));
        let whole = || vec![(span, value.to_owned())];
        return Ok(replaced(text, changes.unwrap_or_else(whole)));
    }
    if let Some(at) = beside_dotted(text, table) {
        return Ok(replaced(
            text,
            vec![(at.line..at.line, format!("{}{key} = {value}\n", at.path))],
        ));
    }
    let header = table
        .span()
        .filter(|_| !table.is_dotted())
        .ok_or_else(form)?;
    let at = line_end(text, header.start);
    let gap = if text[..at].ends_with('\n') { "" } else { "\n" };
    Ok(replaced(
        text,
        vec![(at..at, format!("{gap}{key} = {value}\n"))],
    ))
}

/// A section with a header; None without the section. Other forms cannot be edited. The top level
/// has no name.
fn table<'a>(root: &'a Table, section: &str) -> Result<Option<&'a Table>, EditError> {
    let mut table = root;
    for name in section.split('.').filter(|name| !name.is_empty()) {
        table = match table.get(name) {
            None => return Ok(None),
            Some(Item::Table(inner)) => inner,
            Some(_) => {
                return Err(EditError::Form(
                    format!("`{section}`"),
                    "a section with a header of its own",
                ));
            }
        };
    }
    Ok(Some(table).filter(|table| !table.is_implicit() || table.is_dotted()))
}

/// A new section: in the place of its switched-off lines, else behind the other tables of its agent,
/// else at the end.
fn add(text: &str, root: &Table, section: &str, keys: &[(&str, String)]) -> String {
    let lines = lines_of(section, keys);
    let header = format!("[{section}]");
    let found = switched_off(text, |words| words == header);
    if let Some((at, end)) = found.map(|at| (at, end_of_block(text, at))) {
        let below = text[end..].lines().map(str::trim);
        let mut below = below.skip_while(|line| line.is_empty() || line.starts_with('#'));
        // Keys below would become keys of the section.
        if below.next().is_none_or(|line| line.starts_with('[')) {
            return replaced(text, vec![(at..end, lines)]);
        }
    }
    if let Some(at) = behind_agent(text, root, section) {
        let gap = if text[at..].starts_with('\n') || at == text.len() {
            ""
        } else {
            "\n"
        };
        return format!("{}\n{lines}{gap}{}", whole_lines(&text[..at]), &text[at..]);
    }
    let gap = if text.is_empty() { "" } else { "\n" };
    format!("{}{gap}{lines}", whole_lines(text))
}

/// The lines of a section.
pub(super) fn lines_of(section: &str, keys: &[(&str, String)]) -> String {
    let keys = keys.iter().map(|(key, value)| format!("{key} = {value}\n"));
    format!("[{section}]\n{}", keys.collect::<String>())
}

/// The end of the switched-off lines that begin here: `#` without a space.
fn end_of_block(text: &str, start: usize) -> usize {
    let mut at = line_end(text, start);
    while at < text.len() {
        let end = line_end(text, at);
        let line = text[at..end].trim_end();
        let is_key = line.starts_with('#') && line.contains('=') && !line.starts_with("# ");
        if !is_key {
            break;
        }
        at = end;
    }
    at
}

/// The start of the first line whose words behind `#` are meant.
fn switched_off(text: &str, is_meant: impl Fn(&str) -> bool) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.strip_prefix('#').map(str::trim).is_some_and(&is_meant) {
            return Some(at);
        }
        at += line.len();
    }
    None
}

fn is_key(words: &str, key: &str) -> bool {
    let rest = words.strip_prefix(key).unwrap_or_default();
    rest.trim_start().starts_with('=')
}

/// The start of the first line with a header, or the end.
fn first_header(text: &str) -> usize {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with('[') {
            return line_start(text, at);
        }
        at += line.len();
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_the_top_is_set_where_it_stands() {
        let check = |text: &str, expected: &str| {
            assert_eq!(
                set_top(text, "default_model", "\"demo\"").unwrap(),
                expected
            );
        };
        check("", "default_model = \"demo\"\n");
        check(
            "default_model = \"a/b\" # mine\n",
            "default_model = \"demo\" # mine\n",
        );
        check(
            "# A model.\n#default_model = \"a/b\"\n#\n#[providers.a]\n\n[x]\n",
            "# A model.\ndefault_model = \"demo\"\n#\n#[providers.a]\n\n[x]\n",
        );
        check(
            "a = 1\n# x\n[x]\n",
            "a = 1\ndefault_model = \"demo\"\n\n# x\n[x]\n",
        );
    }

    #[test]
    fn a_section_is_switched_on_or_added() {
        let keys = [("token", "{ file = \"secrets/telegram\" }".to_owned())];
        let check = |text: &str, expected: &str| {
            assert_eq!(set(text, "telegram", &keys).unwrap(), expected, "{text}");
        };
        check("", "[telegram]\ntoken = { file = \"secrets/telegram\" }\n");
        check(
            "# Telegram\n\n#[telegram]\n#token = { env = \"A\" }\n\n# Discord\n#[discord]\n",
            "# Telegram\n\n[telegram]\ntoken = { file = \"secrets/telegram\" }\n\n# Discord\n#[discord]\n",
        );
        check(
            "[telegram]\nstreaming = false\ntoken = { env = \"A\" } # here\n",
            "[telegram]\nstreaming = false\ntoken = { file = \"secrets/telegram\" } # here\n",
        );
        check(
            "[telegram]\nstreaming = false\n",
            "[telegram]\ntoken = { file = \"secrets/telegram\" }\nstreaming = false\n",
        );
        check(
            "#[telegram]\n\na = 1\n",
            "#[telegram]\n\na = 1\n\n[telegram]\ntoken = { file = \"secrets/telegram\" }\n",
        );
        check(
            "telegram = { streaming = true }\n",
            "telegram = { streaming = true, token = { file = \"secrets/telegram\" } }\n",
        );
        assert!(matches!(
            set("telegram = 1\n", "telegram", &keys),
            Err(EditError::Form(..))
        ));
    }

    #[test]
    fn the_shipped_blocks_are_switched_on() {
        let text = include_str!("../../../agents/config.toml");
        let keys = [("kind", "\"ollama\"".to_owned())];
        let text = set_top(text, "default_model", "\"ollama/llama3:8b\"").unwrap();
        let text = set(&text, "providers.ollama", &keys).unwrap();
        let config: toml::Table = text.parse().unwrap();
        assert_eq!(config["default_model"].as_str(), Some("ollama/llama3:8b"));
        assert_eq!(
            config["providers"]["ollama"]["kind"].as_str(),
            Some("ollama")
        );
    }
}
