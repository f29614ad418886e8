//! A line of the log, as text for people or as JSON for programs.
//!
//! The bracket with the agent, or with `system`, comes right behind time and level. No other
//! bracket in a line has an agent's id, so a search for `[rose]` finds the lines about Rose and no
//! others.

use std::fmt::Write;

use serde_json::{Map, Number, Value};
use tracing::Level;

use super::fields::Fields;
use super::local_time::LocalTime;
use crate::config::PLACES;
use crate::printable::{escape_json, printable_line};

/// Stands in the bracket of lines about no agent; no agent can have this id.
pub(crate) const SYSTEM: &str = "system";

pub(super) struct Line<'a> {
    pub(super) level: Level,
    pub(super) fields: &'a Fields,
}

/// How a line of text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) time: LocalTime,
    pub(super) in_colour: bool,
}

impl Line<'_> {
    /// Ends with a line break. A message of several lines becomes as many lines, each with the
    /// whole beginning, so that a search in a log finds all of them. A person at a terminal reads
    /// them below each other.
    pub(super) fn text(&self, look: Look) -> String {
        let time = look.time.now();
        let paint = |code: &str, text: &str| match look.in_colour {
            true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        };
        let level = paint(colour(self.level), &format!("{:>5}", self.level.as_str()));
        let head = format!("{} {level} [{}]", paint("2", &time), self.agent());
        let mut shown = String::new();
        let mut lines = self.fields.message.trim_end().split('\n');
        let first = lines.next().unwrap_or_default();
        let _ = write!(shown, "{head} {}", said(first));
        for (name, value) in &self.fields.others {
            let _ = write!(
                shown,
                " {}{}",
                paint("2", &format!("{name}=")),
                worded(value)
            );
        }
        shown.push('\n');
        for line in lines {
            let line = said(line);
            let _ = match look.time {
                LocalTime::Short if line.is_empty() => writeln!(shown),
                LocalTime::Short => writeln!(shown, "  {line}"),
                _ => writeln!(shown, "{head} {line}"),
            };
        }
        shown
    }

    /// Ends with a line break.
    pub(super) fn json(&self) -> String {
        let mut object = Map::new();
        object.insert("time".into(), LocalTime::Exact.now().into());
        object.insert(
            "level".into(),
            self.level.as_str().to_ascii_lowercase().into(),
        );
        let agent = self.fields.agent.as_deref();
        object.insert("agent".into(), agent.map_or(Value::Null, Value::from));
        for (name, value) in &self.fields.others {
            object.insert((*name).to_owned(), value.clone());
        }
        object.insert("message".into(), self.fields.message.clone().into());
        format!("{}\n", escape_json(&Value::Object(object).to_string()))
    }

    fn agent(&self) -> &str {
        self.fields.agent.as_deref().unwrap_or(SYSTEM)
    }
}

fn colour(level: Level) -> &'static str {
    match level {
        Level::ERROR => "31",
        Level::WARN => "33",
        Level::INFO => "32",
        Level::DEBUG => "34",
        Level::TRACE => "35",
    }
}

/// Words of a message on a single line.
fn said(words: &str) -> String {
    unbracketed(&printable_line(words))
}

/// A value as text: quoted as in JSON unless the value reads as a single word.
fn worded(value: &Value) -> String {
    let text = match value {
        Value::String(text) => printable_line(text),
        Value::Number(number) => return rounded(number),
        other => return other.to_string(),
    };
    let is_word = !text.is_empty()
        && !text
            .chars()
            .any(|c| c.is_whitespace() || matches!(c, '"' | '='));
    let text = unbracketed(&text);
    if is_word {
        text
    } else {
        Value::from(text).to_string()
    }
}

/// Seconds with three decimals are enough for people.
fn rounded(number: &Number) -> String {
    match (number.is_f64(), number.as_f64()) {
        (true, Some(number)) => format!("{number:.3}"),
        _ => number.to_string(),
    }
}

/// Words in the form of an agent's bracket get round brackets. Numbers and sections stay:
/// `bindings[0]`.
fn unbracketed(words: &str) -> String {
    let mut shown = String::with_capacity(words.len());
    let mut rest = words;
    while let Some((before, behind)) = rest.split_once('[') {
        shown += before;
        match behind.split_once(']') {
            Some((inside, after)) if is_like_an_agent(inside) => {
                let _ = write!(shown, "({inside})");
                rest = after;
            }
            _ => {
                shown.push('[');
                rest = behind;
            }
        }
    }
    shown + rest
}

fn is_like_an_agent(word: &str) -> bool {
    let is_slug = word
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    is_slug && word.bytes().any(|b| b.is_ascii_lowercase()) && !is_section(word)
}

/// Sections of the config, such as `[access]`, stay as people write them.
fn is_section(word: &str) -> bool {
    let mut top = PLACES.iter().filter(|(place, _)| place.is_empty());
    top.any(|(_, shape)| shape.keys.iter().any(|key| key.name == word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(agent: Option<&str>, message: &str) -> Fields {
        let mut fields = Fields {
            agent: agent.map(str::to_owned),
            message: message.to_owned(),
            ..Fields::default()
        };
        fields.put("session", "telegram:topic:-100:7".into());
        fields.put("inbox.id", 12.into());
        fields.put("route.rule", "bindings[0]: exact topic".into());
        fields.put("said", "see [rose] \u{1b}[2J\nand \"x\"".into());
        fields.put("model.seconds", 1.23456.into());
        fields
    }

    fn text(fields: &Fields, in_colour: bool) -> String {
        let look = Look {
            time: LocalTime::Short,
            in_colour,
        };
        let line = Line {
            level: Level::WARN,
            fields,
        };
        // `17 Nov 09:12:03`
        line.text(look)
            .lines()
            .enumerate()
            .map(|(index, line)| match (index, in_colour) {
                (0, true) => line.split_at(23).1.to_owned() + "\n",
                (0, false) => line.split_at(15).1.to_owned() + "\n",
                _ => format!("{line}\n"),
            })
            .collect()
    }

    #[test]
    fn text_of_lines() {
        insta::assert_snapshot!(text(&line(Some("rose"), "it failed"), false), @r#"  WARN [rose] it failed session=telegram:topic:-100:7 ref=12 rule="bindings[0]: exact topic" said="see (rose) [2J and \"x\"" model.seconds=1.235"#);
        let several = line(None, "the config:\nerror [rose]\n\n  | ^^\n");
        let shown = text(&several, false);
        let (_, below) = shown.split_once('\n').unwrap();
        assert_eq!(below, "  error (rose)\n\n    | ^^\n");
        let in_a_log = Line {
            level: Level::WARN,
            fields: &several,
        };
        let in_a_log = in_a_log.text(Look {
            time: LocalTime::Whole,
            in_colour: false,
        });
        assert!(
            in_a_log.lines().all(|line| line.contains(" WARN [system]")),
            "{in_a_log}"
        );
        assert!(
            text(&line(None, "x"), true)
                .contains("\u{1b}[33m WARN\u{1b}[0m [system] x \u{1b}[2msession=\u{1b}[0m")
        );
    }

    #[test]
    fn json_of_lines() {
        let fields = line(Some("rose"), "it\nfailed");
        let line = Line {
            level: Level::WARN,
            fields: &fields,
        };
        let json = line.json();
        assert_eq!(json.matches('\n').count(), 1);
        let mut read: Map<String, Value> = serde_json::from_str(&json).unwrap();
        assert!(read.shift_remove("time").is_some());
        insta::assert_snapshot!(serde_json::to_string(&read).unwrap(), @r#"{"level":"warn","agent":"rose","session":"telegram:topic:-100:7","ref":12,"rule":"bindings[0]: exact topic","said":"see [rose] \u001b[2J\nand \"x\"","model.seconds":1.23456,"message":"it\nfailed"}"#);
    }
}
