//! Saved memories as text for people and for another import: JSON lines or Markdown. Pure.

use serde::{Deserialize, Serialize};

use super::Entry;
use super::rows::Provenance;
use super::saving::MAX_TEXT_BYTES;
use crate::config::Visibility;
use crate::domain::AgentId;

/// How memories are written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    JsonLines,
    Markdown,
}

/// A memory outside the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedMemory {
    pub agent: AgentId,
    pub visibility: Visibility,
    pub text: String,
    pub said: Provenance,
    pub created_at: i64,
}

impl ExportedMemory {
    /// Refuses a time before 1970 or after `latest`.
    pub(crate) fn within(self, latest: i64) -> Result<Self, String> {
        if (0..=latest).contains(&self.created_at) {
            return Ok(self);
        }
        Err(format!(
            "`created_at` is {}, which is before 1970 or after tomorrow",
            self.created_at
        ))
    }
}

/// A problem in a text, and its line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub(crate) struct ReadError {
    pub line: usize,
    pub reason: String,
}

/// Begins each memory in Markdown; invisible in a browser.
const MARK: &str = "<!-- memory ";
const MARK_END: &str = " -->";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    agent: String,
    visibility: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    person: Option<String>,
    created_at: i64,
}

pub(crate) fn write(entries: &[Entry], form: Form) -> String {
    entries.iter().map(|entry| write_one(entry, form)).collect()
}

fn write_one(entry: &Entry, form: Form) -> String {
    let written = Written {
        agent: entry.agent.clone(),
        visibility: entry.visibility.to_string(),
        text: (form == Form::JsonLines).then(|| entry.text.clone()),
        place: entry.said.place.as_ref().map(ToString::to_string),
        person: entry.said.person.as_ref().map(ToString::to_string),
        created_at: entry.created_at,
    };
    let json = serde_json::to_string(&written).expect("texts and numbers become JSON");
    match form {
        Form::JsonLines => format!("{json}\n"),
        Form::Markdown => {
            let lines: Vec<String> = entry.text.split('\n').map(escaped).collect();
            // `--` would end a comment early, and JSON may say a hyphen in another way.
            format!(
                "{MARK}{}{MARK_END}\n{}\n\n",
                json.replace("--", "-\\u002d"),
                lines.join("\n")
            )
        }
    }
}

/// Adds a backslash to lines that look like a mark, with or without backslashes in front.
fn escaped(line: &str) -> String {
    if line.trim_start_matches('\\').starts_with(MARK) {
        format!("\\{line}")
    } else {
        line.to_owned()
    }
}

fn unescaped(line: &str) -> &str {
    if line.starts_with('\\') && line.trim_start_matches('\\').starts_with(MARK) {
        &line[1..]
    } else {
        line
    }
}

/// Reads either form.
pub(crate) fn read(text: &str) -> Result<Vec<ExportedMemory>, ReadError> {
    if text.trim_start().starts_with(MARK) {
        read_markdown(text)
    } else {
        read_json_lines(text)
    }
}

fn read_json_lines(text: &str) -> Result<Vec<ExportedMemory>, ReadError> {
    let lines = text
        .split('\n')
        .zip(1..)
        .filter(|(line, _)| !line.trim().is_empty());
    lines
        .map(|(json, line)| read_line(json).map_err(|reason| ReadError { line, reason }))
        .collect()
}

/// Reads a line of the form with JSON.
pub(crate) fn read_line(json: &str) -> Result<ExportedMemory, String> {
    let mut written = parsed(json)?;
    let text = written.text.take().ok_or("`text` is missing")?;
    carried(&written, text)
}

fn read_markdown(text: &str) -> Result<Vec<ExportedMemory>, ReadError> {
    let mut found: Vec<(Written, usize, Vec<&str>)> = Vec::new();
    for (line, number) in text.split('\n').zip(1..) {
        match (line.strip_prefix(MARK), found.last_mut()) {
            (Some(json), _) => {
                let json = json
                    .trim_end()
                    .strip_suffix(MARK_END.trim_start())
                    .unwrap_or(json);
                let written = parsed(json).map_err(at(number))?;
                found.push((written, number, Vec::new()));
            }
            (None, Some((_, _, lines))) => lines.push(unescaped(line)),
            (None, None) => {}
        }
    }
    let memories = found.into_iter().map(|(written, number, lines)| {
        let text = lines.join("\n");
        // The empty line between two memories, and the end of the last line.
        let text = text
            .strip_suffix("\n\n")
            .or_else(|| text.strip_suffix('\n'))
            .unwrap_or(&text);
        carried(&written, text.to_owned()).map_err(at(number))
    });
    memories.collect()
}

fn at(line: usize) -> impl FnOnce(String) -> ReadError {
    move |reason| ReadError { line, reason }
}

fn parsed(json: &str) -> Result<Written, String> {
    serde_json::from_str(json.trim()).map_err(|error| format!("this is not a memory: {error}"))
}

/// A memory of a package, within the limits of a memory saved in a chat.
fn carried(written: &Written, text: String) -> Result<ExportedMemory, String> {
    let wrong = |what: &str, value: &str| format!("`{value}` is not a {what}");
    if text.trim().is_empty() {
        return Err("a memory without words".to_owned());
    }
    if text.len() > MAX_TEXT_BYTES {
        return Err(format!(
            "a memory has at most {} KiB",
            MAX_TEXT_BYTES / 1024
        ));
    }
    let said = Provenance {
        place: written
            .place
            .as_ref()
            .map(|key| key.parse().map_err(|_| wrong("place", key)))
            .transpose()?,
        person: written
            .person
            .as_ref()
            .map(|person| person.parse().map_err(|()| wrong("person", person)))
            .transpose()?,
    };
    let visibility: Visibility = written
        .visibility
        .parse()
        .map_err(|()| wrong("visibility", &written.visibility))?;
    let lacks = match visibility {
        Visibility::Person if said.person.is_none() => Some("person"),
        Visibility::Place if said.place.is_none() => Some("place"),
        _ => None,
    };
    if let Some(key) = lacks {
        return Err(format!(
            "`{key}` is missing, and the memory is for one {key}"
        ));
    }
    Ok(ExportedMemory {
        agent: AgentId::parse(&written.agent).map_err(|_| wrong("agent", &written.agent))?,
        visibility,
        text,
        said,
        created_at: written.created_at,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::domain::AgentUid;

    fn entry(text: &str, global: bool, place: bool) -> Entry {
        Entry {
            id: 7,
            owner: AgentUid(Uuid::nil()),
            agent: "night-desk".into(),
            visibility: if global {
                Visibility::Global
            } else {
                Visibility::Private
            },
            path: None,
            text: text.into(),
            said: Provenance {
                place: place.then(|| "telegram:topic:-100:7".parse().unwrap()),
                person: place.then(|| "telegram:5".parse().unwrap()),
            },
            labels: crate::domain::Labels::NONE,
            created_at: 1_800_000_000_000,
        }
    }

    #[test]
    fn both_forms_are_readable() {
        let entries = [
            entry("likes tea\n- green", false, true),
            entry("is open", true, false),
        ];
        insta::assert_snapshot!(write(&entries, Form::JsonLines), @r#"
        {"agent":"night-desk","visibility":"private","text":"likes tea\n- green","place":"telegram:topic:-100:7","person":"telegram:5","created_at":1800000000000}
        {"agent":"night-desk","visibility":"global","text":"is open","created_at":1800000000000}
        "#);
        insta::assert_snapshot!(write(&entries, Form::Markdown), @r#"
        <!-- memory {"agent":"night-desk","visibility":"private","place":"telegram:topic:-100:7","person":"telegram:5","created_at":1800000000000} -->
        likes tea
        - green

        <!-- memory {"agent":"night-desk","visibility":"global","created_at":1800000000000} -->
        is open
        "#);
    }

    #[test]
    fn what_cannot_be_read_names_its_line() {
        let told = |text: &str| read(text).unwrap_err().to_string();
        insta::assert_snapshot!(told("\n{\"agent\":\"x\"}"), @"line 2: this is not a memory: missing field `visibility` at line 1 column 13");
        insta::assert_snapshot!(told(r#"{"agent":"rose","visibility":"secret","text":"x","created_at":1}"#), @"line 1: `secret` is not a visibility");
        insta::assert_snapshot!(told(r#"{"agent":"rose","visibility":"private","created_at":1}"#), @"line 1: `text` is missing");
        insta::assert_snapshot!(told(r#"{"agent":"rose","visibility":"private","text":" ","created_at":1}"#), @"line 1: a memory without words");
        let long = format!(
            r#"{{"agent":"rose","visibility":"private","text":"{}","created_at":1}}"#,
            "x".repeat(8193)
        );
        insta::assert_snapshot!(told(&long), @"line 1: a memory has at most 8 KiB");
        assert_eq!(read("").unwrap(), []);
    }

    proptest! {
        /// S2.40
        #[test]
        fn what_was_written_reads_back_the_same(
            texts in proptest::collection::vec(("(\\PC|\n|\\\\|<!-- memory |-->){1,30}", any::<bool>(), any::<bool>()), 0..6),
        ) {
            // A memory has words, and no space at its ends.
            let texts = texts.iter().map(|(text, global, place)| (text.trim(), *global, *place));
            let entries: Vec<Entry> = texts.filter(|(text, ..)| !text.is_empty()).map(|(text, global, place)| entry(text, global, place)).collect();
            for form in [Form::JsonLines, Form::Markdown] {
                let read = read(&write(&entries, form)).unwrap();
                prop_assert_eq!(read.len(), entries.len());
                for (read, entry) in read.iter().zip(&entries) {
                    prop_assert_eq!(&read.text, &entry.text);
                    prop_assert_eq!((read.visibility, &read.said, read.created_at), (entry.visibility, &entry.said, entry.created_at));
                    prop_assert_eq!(read.agent.as_str(), entry.agent.as_str());
                }
            }
        }
    }
}
