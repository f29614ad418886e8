//! Covers secrets in the config's text, before any of the text is shown.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::address::holds_token;
use super::foreign_keys;
use super::lookalikes::{
    is_plain_key, looks_like_path, looks_like_secret, looks_like_variable, variable_behind_dollar,
};
use super::odd_quotes;
use super::reader::Value;
use super::schema::PLACES;
use crate::domain::nearest;

/// Keys with a secret as value. A proxy's address may hold a password, and not always in the usual
/// place.
const SECRET_KEYS: [&str; 3] = ["token", "api_key", "proxy"];
/// Keys that sound secret, but are numbers of tokens.
const COUNTED_KEYS: [&str; 6] = [
    "max_tokens",
    "context_tokens",
    "recall_tokens",
    "tokens_per_turn",
    "tokens_per_day",
    "tokens_per_month",
];

/// The text with asterisks for secrets. The length stays the same, so every span still fits.
pub(super) fn cover(text: &str, tree: &DeTable<'_>, well_formed: bool) -> String {
    let mut spans = Vec::new();
    collect_from_table(text, tree, &mut spans);
    collect_lookalikes(text, &mut spans);
    if !well_formed {
        collect_from_lines(text, &mut spans);
    }
    with_asterisks(text, &spans)
}

fn collect_from_table(text: &str, table: &DeTable<'_>, spans: &mut Vec<Range<usize>>) {
    for (key, value) in table.iter() {
        let is_secret = SECRET_KEYS.contains(&key.get_ref().as_ref());
        let is_harmless = || {
            is_under_a_header(text, value)
                || is_counted(key.get_ref(), value)
                || is_name_of_variable(key.get_ref(), value)
        };
        if is_secret || sounds_secret(key.get_ref()) && !is_harmless() {
            collect_from_secret(value, spans);
        } else {
            collect_from_value(text, value, spans);
        }
    }
}

fn collect_from_value(text: &str, value: &Value<'_>, spans: &mut Vec<Range<usize>>) {
    match value.get_ref() {
        DeValue::Table(table) => collect_from_table(text, table, spans),
        DeValue::Array(array) => array
            .iter()
            .for_each(|item| collect_from_value(text, item, spans)),
        DeValue::String(string) if has_login(string) || holds_token(string) => {
            spans.push(value.span());
        }
        _ => {}
    }
}

/// Everything under a secret's key, except the names of places where secrets are kept.
fn collect_from_secret(value: &Value<'_>, spans: &mut Vec<Range<usize>>) {
    let DeValue::Table(table) = value.get_ref() else {
        if !names_a_variable(value) {
            spans.push(value.span());
        }
        return;
    };
    for (key, value) in table.iter() {
        let is_place = match (key.get_ref().as_ref(), value.get_ref().as_str()) {
            ("env", Some(name)) => is_variable(name),
            ("file", Some(path)) => looks_like_path(path),
            _ => false,
        };
        // The secret may be written where `env` belongs.
        if !is_plain_key(key.get_ref()) {
            spans.push(key.span());
        }
        if !is_place {
            collect_from_secret(value, spans);
        }
    }
}

/// `token = "$TELEGRAM_BOT_TOKEN"`, as in a shell.
fn names_a_variable(value: &Value<'_>) -> bool {
    let text = value.get_ref().as_str();
    text.is_some_and(|text| variable_behind_dollar(text).is_some())
}

/// Words that are secrets in any field, such as in a field of another name.
fn collect_lookalikes(text: &str, spans: &mut Vec<Range<usize>>) {
    let is_around = |c: char| c.is_whitespace() || "\"'=,{}[]()<>`".contains(c);
    let words = text
        .split(is_around)
        .flat_map(|word| word.split('/').chain([word]));
    for word in words.filter(|word| looks_like_secret(word.strip_prefix("bot").unwrap_or(word))) {
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        spans.push(start..start + word.len());
    }
}

/// After a syntax error the tree has gaps. So lines that seem to set a secret are covered to their
/// end, with all lines up to the next key or table, because the secret may have slipped into the
/// next line.
fn collect_from_lines(text: &str, spans: &mut Vec<Range<usize>>) {
    let mut start = 0;
    let mut goes_on = false;
    for line in text.split_inclusive('\n') {
        if let Some(column) = secret_column(line) {
            spans.push(start + column..start + line.len());
            goes_on = true;
        } else if line.contains(" = ") || line.starts_with(['[', '#']) {
            goes_on = false;
        } else if goes_on {
            spans.push(start..start + line.len());
        }
        start += line.len();
    }
}

/// The start of a secret's value in a line like `token "123"` or `token: 123`.
fn secret_column(line: &str) -> Option<usize> {
    let indent = line.len() - line.trim_start().len();
    let first_word_end = line[indent..].find([' ', '\t', ':']).map(|at| indent + at);
    let equal_signs = line.match_indices('=').map(|(at, _)| at);
    let mut ends_of_keys = first_word_end.into_iter().chain(equal_signs);
    let end_of_key = ends_of_keys.find(|at| {
        let (key, value) = (key_before(&line[..*at]), after_key(&line[*at..]));
        let is_counted = is_number(value) && sounds_counted(key);
        sounds_secret(key) && !names_a_place(value) && !is_counted
    })?;
    Some(line.len() - after_key(&line[end_of_key..]).len())
}

fn key_before(text: &str) -> &str {
    let is_around_keys = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '{' | ',' | '.');
    text.trim_end_matches(is_around_keys)
        .rsplit(is_around_keys)
        .next()
        .unwrap_or_default()
}

fn after_key(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '=', ':'])
}

fn names_a_place(value: &str) -> bool {
    let inside = value.strip_prefix('{').unwrap_or_default().trim_start();
    let Some((key, place)) = inside.split_once('=') else {
        return false;
    };
    let is_around = |c: char| c.is_whitespace() || c == '}';
    let place = place.trim_matches(is_around);
    let is_alone = !place.contains(['=', ',']);
    match key.trim() {
        "env" => is_alone && is_variable(place),
        "file" => is_alone && looks_like_path(odd_quotes::unquoted(place)),
        _ => false,
    }
}

/// A variable's name with quotes of any kind or none, also with the shell's dollar.
fn is_variable(text: &str) -> bool {
    let name = odd_quotes::unquoted(text);
    looks_like_variable(name) || variable_behind_dollar(name).is_some()
}

/// Also true for a slip of the pen such as `tokn`, because the report about an unknown key shows
/// the value.
fn sounds_secret(key: &str) -> bool {
    let key = key.to_lowercase();
    if COUNTED_KEYS.contains(&key.as_str()) {
        return false;
    }
    let has_word = ["token", "key", "secret", "passw"]
        .iter()
        .any(|word| key.contains(word));
    // A key in other letters: `"to\u006ben"`.
    if key.contains('\\') {
        return true;
    }
    // A known key is no slip of another; a search for the nearest key takes long.
    let is_slip = || {
        let near = nearest(&key, every_key());
        near.is_some_and(|near| SECRET_KEYS.contains(&near))
    };
    has_word || (!every_key().any(|known| known == key) && is_slip())
}

/// The keys a slip could have been meant for; without the others `name` would pass for a slip of
/// `api_key`.
fn every_key() -> impl Iterator<Item = &'static str> {
    PLACES.iter().flat_map(|(_, shape)| shape.names())
}

/// `[agents.keeper]`: a name that sounds secret, but an ordinary table.
fn is_under_a_header(text: &str, value: &Value<'_>) -> bool {
    value.get_ref().is_table() && !text[value.span().start..].starts_with('{')
}

/// `api_key_env = "OPENAI_API_KEY"`
fn is_name_of_variable(key: &str, value: &Value<'_>) -> bool {
    let text = value.get_ref().as_str().unwrap_or_default();
    foreign_keys::secret_behind(key).is_some() && looks_like_variable(text)
}

/// `token_per_day = 1000`: a slip in a number of tokens.
fn is_counted(key: &str, value: &Value<'_>) -> bool {
    let is_number = matches!(value.get_ref(), DeValue::Integer(_) | DeValue::Float(_));
    is_number && sounds_counted(key)
}

/// Whether a key is a number of tokens, or a slip of such a key.
fn sounds_counted(key: &str) -> bool {
    let is_slip = || nearest(key, every_key()).is_some_and(|near| COUNTED_KEYS.contains(&near));
    key.contains("tokens") || is_slip()
}

/// A plain number, in the text of a line.
fn is_number(text: &str) -> bool {
    let number = text.split('#').next().unwrap_or_default().trim();
    !number.is_empty()
        && number
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '_' | '-'))
}

/// `https://user:password@host`
fn has_login(string: &str) -> bool {
    string
        .split_once("://")
        .is_some_and(|(_, rest)| rest.contains('@') || rest.contains('?'))
}

fn with_asterisks(text: &str, spans: &[Range<usize>]) -> String {
    let covered = |at: usize| spans.iter().any(|span| span.contains(&at));
    let mut shown = String::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        if covered(at) && !matches!(character, '\n' | '\r') {
            shown.extend(std::iter::repeat_n('*', character.len_utf8()));
        } else {
            shown.push(character);
        }
    }
    shown
}
