//! A line of the log file, read back: as the log writes it for people, or as JSON.

use std::fmt::Write;

use chrono::{DateTime, Local};
use serde_json::{Map, Value};

use crate::telemetry::SYSTEM;

/// Keys of JSON lines that stand at the beginning of a line of text.
const HEAD: [&str; 4] = ["time", "level", "agent", "message"];

pub(super) struct Entry {
    /// As in the file.
    line: String,
    /// With the keys of the JSON form. None for a line that the log did not write.
    read: Option<Map<String, Value>>,
    is_json: bool,
}

impl Entry {
    pub(super) fn read(line: &str) -> Self {
        let is_json = line.starts_with('{');
        let read = match is_json {
            true => serde_json::from_str(line).ok(),
            false => of_text(line),
        };
        Entry {
            line: line.to_owned(),
            read,
            is_json,
        }
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.read.as_ref()?.get(key)?.as_str()
    }

    pub(super) fn is_about_agent(&self, agent: &str) -> bool {
        self.read.is_some() && self.text("agent").unwrap_or(SYSTEM) == agent
    }

    /// The place itself, and places in it.
    pub(super) fn is_about_place(&self, place: &str) -> bool {
        let place = place.trim_end_matches(':');
        self.text("session").is_some_and(|session| {
            let rest = session.strip_prefix(place);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        })
    }

    pub(super) fn is_about_message(&self, reference: u64) -> bool {
        let told = self.read.as_ref().and_then(|read| read.get("ref"));
        told.and_then(Value::as_u64) == Some(reference)
    }

    pub(super) fn is_since(&self, since: DateTime<Local>) -> bool {
        let time = self.text("time");
        let time = time.and_then(|time| DateTime::parse_from_rfc3339(time).ok());
        time.is_some_and(|time| time >= since)
    }

    pub(super) fn as_json(&self) -> Value {
        match &self.read {
            Some(read) => Value::Object(read.clone()),
            None => serde_json::json!({ "message": self.line }),
        }
    }

    pub(super) fn as_text(&self) -> String {
        let Some(read) = self.read.as_ref().filter(|_| self.is_json) else {
            return self.line.clone();
        };
        let text = |key| self.text(key).unwrap_or_default();
        let level = text("level").to_ascii_uppercase();
        let agent = self.text("agent").unwrap_or(SYSTEM);
        let mut shown = format!("{} {level:>5} [{agent}] {}", text("time"), text("message"));
        for (key, value) in read.iter().filter(|(key, _)| !HEAD.contains(&key.as_str())) {
            let _ = write!(shown, " {key}={value}");
        }
        shown
    }
}

/// `TIME LEVEL [AGENT] MESSAGE KEY=VALUE …`
fn of_text(line: &str) -> Option<Map<String, Value>> {
    let (time, rest) = line.split_once(' ')?;
    DateTime::parse_from_rfc3339(time).ok()?;
    let (level, rest) = rest.trim_start().split_once(' ')?;
    let (agent, rest) = rest.strip_prefix('[')?.split_once(']')?;
    let (message, fields) = message_and_fields(rest.trim_start());
    let mut read = Map::new();
    read.insert("time".into(), time.into());
    read.insert("level".into(), level.to_ascii_lowercase().into());
    let agent = Some(agent).filter(|agent| *agent != SYSTEM);
    read.insert("agent".into(), agent.map_or(Value::Null, Value::from));
    for (key, value) in fields {
        read.insert(key.to_owned(), value);
    }
    read.insert("message".into(), message.into());
    Some(read)
}

/// The fields are the end of the line, from the first place on where everything reads as fields.
fn message_and_fields(text: &str) -> (&str, Vec<(&str, Value)>) {
    let places = text
        .match_indices(' ')
        .map(|(at, _)| at)
        .filter(|at| key_and_rest(&text[at + 1..]).is_some());
    for at in places {
        if let Some(fields) = fields(&text[at + 1..]) {
            return (&text[..at], fields);
        }
    }
    match fields(text) {
        Some(fields) if !fields.is_empty() => ("", fields),
        _ => (text, Vec::new()),
    }
}

fn fields(mut text: &str) -> Option<Vec<(&str, Value)>> {
    let mut found = Vec::new();
    while !text.is_empty() {
        let (key, rest) = key_and_rest(text)?;
        let (value, rest) = value_and_rest(rest)?;
        found.push((key, value));
        text = rest.strip_prefix(' ').unwrap_or(rest);
    }
    Some(found)
}

fn key_and_rest(text: &str) -> Option<(&str, &str)> {
    let (key, rest) = text.split_once('=')?;
    let is_key = !key.is_empty()
        && key
            .bytes()
            .all(|b| b.is_ascii_lowercase() || matches!(b, b'.' | b'_'));
    is_key.then_some((key, rest))
}

/// A word, or text in quotes as in JSON.
fn value_and_rest(text: &str) -> Option<(Value, &str)> {
    if text.starts_with('"') {
        let mut quoted = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let value = quoted.next()?.ok()?;
        return Some((value, &text[quoted.byte_offset()..]));
    }
    let (word, rest) = text
        .split_once(' ')
        .map_or((text, ""), |(word, _)| (word, &text[word.len()..]));
    let number = word.parse::<u64>().map(Value::from).ok();
    let float = || {
        word.parse::<f64>()
            .ok()
            .and_then(|float| serde_json::Number::from_f64(float).map(Value::Number))
    };
    Some((number.or_else(float).unwrap_or_else(|| word.into()), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"2026-11-16T09:12:40+01:00  INFO [rose] rose answered session=telegram:topic:-100:7 rule="bindings[0]: exact \"topic\" a=b" seconds=3.2 ref=161"#;

    #[test]
    fn a_line_of_text_is_read_back() {
        let entry = Entry::read(TEXT);
        insta::assert_snapshot!(entry.as_json(), @r#"{"time":"2026-11-16T09:12:40+01:00","level":"info","agent":"rose","session":"telegram:topic:-100:7","rule":"bindings[0]: exact \"topic\" a=b","seconds":3.2,"ref":161,"message":"rose answered"}"#);
        assert_eq!(entry.as_text(), TEXT);
        let none = Entry::read("2026-11-16T09:12:40+01:00  WARN [system] with a=b in it");
        insta::assert_snapshot!(none.as_json(), @r#"{"time":"2026-11-16T09:12:40+01:00","level":"warn","agent":null,"message":"with a=b in it"}"#);
        let alien = Entry::read("thread panicked at x");
        insta::assert_snapshot!(alien.as_json(), @r#"{"message":"thread panicked at x"}"#);
        assert!(!alien.is_about_agent("system"));
    }

    #[test]
    fn lines_are_found_by_what_they_are_about() {
        let json = r#"{"time":"2026-11-16T09:12:40.123+01:00","level":"info","agent":"rose","session":"telegram:topic:-100:7","ref":161,"message":"rose answered"}"#;
        for line in [TEXT, json] {
            let entry = Entry::read(line);
            assert!(entry.is_about_agent("rose") && !entry.is_about_agent("ros"));
            assert!(entry.is_about_message(161) && !entry.is_about_message(16));
            assert!(entry.is_about_place("telegram:topic:-100:7"));
            assert!(entry.is_about_place("telegram:topic:-100"));
            assert!(!entry.is_about_place("telegram:topic:-10"));
            let at = |text: &str| {
                DateTime::parse_from_rfc3339(text)
                    .unwrap()
                    .with_timezone(&Local)
            };
            assert!(entry.is_since(at("2026-11-16T08:12:40+00:00")));
            assert!(!entry.is_since(at("2026-11-16T09:12:41+01:00")));
        }
        insta::assert_snapshot!(Entry::read(json).as_text(), @r#"2026-11-16T09:12:40.123+01:00  INFO [rose] rose answered session="telegram:topic:-100:7" ref=161"#);
    }
}
