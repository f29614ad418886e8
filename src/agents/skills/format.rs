//! Reads a `SKILL.md`: YAML front matter, then Markdown, after the Agent Skills format
//! (<https://agentskills.io>). Pure.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::domain::nearest;

const MAX_NAME_CHARS: usize = 64;
const MAX_DESCRIPTION_CHARS: usize = 1024;
const MAX_COMPATIBILITY_CHARS: usize = 500;
/// Remarks about a file. Further ones are counted.
const MOST_REMARKS: usize = 10;

const FENCE: &str = "---";
const KEYS: [&str; 6] = [
    "name",
    "description",
    "license",
    "compatibility",
    "metadata",
    "allowed-tools",
];

/// The parts of the front matter with a meaning for the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub name: String,
    /// A text without line breaks.
    pub description: String,
    /// Problems of a usable skill.
    pub remarks: Vec<Flaw>,
}

/// A problem in a file, and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// Counted from 1.
    pub line: usize,
    pub message: String,
}

impl Flaw {
    pub(super) fn new(line: usize, message: impl Into<String>) -> Self {
        Flaw {
            line,
            message: message.into(),
        }
    }
}

/// Checks the whole front matter. `folder` is the name of the skill's folder.
pub(crate) fn parse(text: &str, folder: &str) -> Result<Manifest, Vec<Flaw>> {
    let parts = split(text).map_err(|flaw| vec![flaw])?;
    let fields: BTreeMap<String, Value> =
        serde_saphyr::from_str(parts.front).map_err(|error| vec![not_yaml(&error)])?;
    let mut reader = Reader {
        front: parts.front,
        fields,
        flaws: Vec::new(),
    };
    let name = reader.name(folder);
    let description = reader.description();
    reader.extras();
    let remarks = reader.unknown_keys();
    match (name, description, reader.flaws.as_slice()) {
        (Some(name), Some(description), []) => Ok(Manifest {
            name,
            description,
            remarks,
        }),
        _ => Err(reader.flaws),
    }
}

/// The text below the front matter; the whole text without front matter.
pub(crate) fn body(text: &str) -> &str {
    split(text).map_or(text, |parts| parts.body).trim()
}

/// Whether a text can be a skill's name.
pub(crate) fn is_name(text: &str) -> bool {
    let plain = text
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    let fits = (1..=MAX_NAME_CHARS).contains(&text.len());
    fits && plain && !text.starts_with('-') && !text.ends_with('-') && !text.contains("--")
}

struct Parts<'a> {
    front: &'a str,
    body: &'a str,
}

fn split(text: &str) -> Result<Parts<'_>, Flaw> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first = text.split_inclusive('\n').next().unwrap_or_default();
    if first.trim_end() != FENCE {
        return Err(Flaw::new(
            1,
            "the file must begin with a line `---`, and `name` and `description` below it",
        ));
    }
    let mut end = first.len();
    for line in text[first.len()..].split_inclusive('\n') {
        if line.trim_end() == FENCE {
            return Ok(Parts {
                front: &text[first.len()..end],
                body: &text[end + line.len()..],
            });
        }
        end += line.len();
    }
    Err(Flaw::new(
        1,
        "the front matter has no end: a second line `---` is missing",
    ))
}

fn not_yaml(error: &serde_saphyr::Error) -> Flaw {
    // The parser did not get the first line of the file, the fence.
    let line = error.location().map_or(1, |location| {
        usize::try_from(location.line()).unwrap_or(1).max(1)
    }) + 1;
    let text = error.without_snippet().to_string();
    let what = text.lines().next().unwrap_or_default();
    Flaw::new(
        line,
        format!("the front matter is not YAML with `key: value` lines: {what}"),
    )
}

struct Reader<'a> {
    front: &'a str,
    fields: BTreeMap<String, Value>,
    flaws: Vec<Flaw>,
}

impl Reader<'_> {
    fn name(&mut self, folder: &str) -> Option<String> {
        let name = self.required("name")?;
        if !is_name(&name) {
            let rule = "1 to 64 of a-z, 0-9 and single hyphens inside";
            self.note(
                "name",
                format!("`name` is {rule}, such as `{}`", usable(&name, folder)),
            );
            return None;
        }
        if name != folder {
            self.note(
                "name",
                format!("`name` is `{name}` but the folder is `{folder}`; give both the same name"),
            );
            return None;
        }
        Some(name)
    }

    fn description(&mut self) -> Option<String> {
        let text = self.required("description")?;
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.chars().count() {
            0 => self.note(
                "description",
                "`description` is empty; say what the skill does and when to use it".into(),
            ),
            count if count > MAX_DESCRIPTION_CHARS => {
                let most = MAX_DESCRIPTION_CHARS;
                self.note(
                    "description",
                    format!("`description` has {count} characters, at most {most} are allowed"),
                );
            }
            _ => return Some(line),
        }
        None
    }

    fn required(&mut self, key: &str) -> Option<String> {
        if !self.fields.contains_key(key) {
            self.flaws.push(Flaw::new(
                1,
                format!("`{key}` is missing from the front matter"),
            ));
        }
        self.text(key)
    }

    fn text(&mut self, key: &str) -> Option<String> {
        match self.fields.get(key)? {
            Value::String(text) => Some(text.clone()),
            _ => {
                self.note(key, format!("`{key}` must be text; put it in quotes"));
                None
            }
        }
    }

    /// Keys with a check, but without use.
    fn extras(&mut self) {
        self.text("license");
        let compatibility = self
            .text("compatibility")
            .map_or(0, |text| text.chars().count());
        if compatibility > MAX_COMPATIBILITY_CHARS {
            let most = MAX_COMPATIBILITY_CHARS;
            self.note(
                "compatibility",
                format!(
                    "`compatibility` has {compatibility} characters, at most {most} are allowed"
                ),
            );
        }
        let is_text_map = |value: &Value| {
            value
                .as_object()
                .is_some_and(|map| map.values().all(Value::is_string))
        };
        if self
            .fields
            .get("metadata")
            .is_some_and(|value| !is_text_map(value))
        {
            self.note(
                "metadata",
                "`metadata` must be a map from text to text; put its values in quotes".into(),
            );
        }
        let is_tools = |value: &Value| {
            value.is_string()
                || value
                    .as_array()
                    .is_some_and(|all| all.iter().all(Value::is_string))
        };
        if self
            .fields
            .get("allowed-tools")
            .is_some_and(|value| !is_tools(value))
        {
            self.note(
                "allowed-tools",
                "`allowed-tools` must be names of tools with spaces between them".into(),
            );
        }
    }

    fn unknown_keys(&self) -> Vec<Flaw> {
        let unknown: Vec<&String> = self
            .fields
            .keys()
            .filter(|key| !KEYS.contains(&key.as_str()))
            .collect();
        let remark = |key: &&String| {
            let meant = nearest(key, KEYS)
                .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            Flaw::new(
                self.line_of(key),
                format!(
                    "`{}` is not a key of a skill, so it is ignored{meant}",
                    short(key)
                ),
            )
        };
        let mut remarks: Vec<Flaw> = unknown.iter().take(MOST_REMARKS).map(remark).collect();
        let more = unknown.len() - remarks.len();
        if more > 0 {
            remarks.push(Flaw::new(1, format!("and {more} more keys like these")));
        }
        remarks
    }

    fn note(&mut self, key: &str, message: String) {
        self.flaws.push(Flaw::new(self.line_of(key), message));
    }

    /// The line of a key. Keys begin their line; a key in another form is shown at the front
    /// matter's begin.
    fn line_of(&self, key: &str) -> usize {
        let is_key = |line: &str| {
            let line = line.trim_start().trim_start_matches(['"', '\'']);
            line.strip_prefix(key).is_some_and(|rest| {
                rest.trim_start_matches(['"', '\''])
                    .trim_start()
                    .starts_with(':')
            })
        };
        self.front
            .lines()
            .position(is_key)
            .map_or(1, |index| index + 2)
    }
}

/// A wrong name without its wrong characters, else the folder's name.
fn usable(name: &str, folder: &str) -> String {
    let words = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let joined = words.collect::<Vec<_>>().join("-").to_lowercase();
    let fitting = [joined.as_str(), folder]
        .into_iter()
        .find(|candidate| is_name(candidate));
    fitting.unwrap_or("meeting-notes").to_owned()
}

fn short(text: &str) -> String {
    text.chars()
        .take(MAX_NAME_CHARS)
        .filter(|c| !c.is_control())
        .collect()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;

    fn flaws(text: &str) -> String {
        let found = match parse(text, "invoices") {
            Ok(manifest) => manifest.remarks,
            Err(flaws) => flaws,
        };
        found
            .iter()
            .map(|flaw| format!("{}: {}", flaw.line, flaw.message))
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn a_skill_with_everything_is_read() {
        let text = "\u{feff}---\r\nname: invoices\r\ndescription: >\r\n  Writes invoices.\r\n  Use it for bills.\r\nlicense: MIT\r\n\
                    compatibility: any\r\nmetadata:\r\n  author: ann\r\nallowed-tools: now skill\r\n---\r\n\r\n# Steps\r\n";
        let manifest = parse(text, "invoices").unwrap();
        assert_eq!(
            (manifest.name.as_str(), manifest.remarks.len()),
            ("invoices", 0)
        );
        assert_eq!(manifest.description, "Writes invoices. Use it for bills.");
        assert_eq!(body(text), "# Steps");
    }

    #[test]
    fn each_flaw_is_told_with_its_line() {
        assert_snapshot!(flaws("# Just a file\n"), @"1: the file must begin with a line `---`, and `name` and `description` below it");
        assert_snapshot!(flaws("---\nname: invoices\n"), @"1: the front matter has no end: a second line `---` is missing");
        assert_snapshot!(flaws("---\nname: Invoices 2\n\ndescription:\n---\n"), @"
        2: `name` is 1 to 64 of a-z, 0-9 and single hyphens inside, such as `invoices-2`
        4: `description` must be text; put it in quotes
        ");
        assert_snapshot!(flaws("---\nname: bills\n---\n"), @"
        2: `name` is `bills` but the folder is `invoices`; give both the same name
        1: `description` is missing from the front matter
        ");
        assert_snapshot!(flaws("---\nname: 7\ndescription: \" \"\nmetadata:\n  n: 1\nlicense: [a]\n---\n"), @"
        2: `name` must be text; put it in quotes
        3: `description` is empty; say what the skill does and when to use it
        6: `license` must be text; put it in quotes
        4: `metadata` must be a map from text to text; put its values in quotes
        ");
        assert_snapshot!(flaws("---\nname: invoices\ndescription: x\nlicence: MIT\n---\n"), @"4: `licence` is not a key of a skill, so it is ignored; did you mean `license`?");
        let many: String = (0..15_000).map(|n| format!("key{n:05}: 1\n")).collect();
        let many = flaws(&format!("---\nname: invoices\ndescription: x\n{many}---\n"));
        let (first, rest) = many.split_once('\n').unwrap();
        assert_eq!(
            first,
            "4: `key00000` is not a key of a skill, so it is ignored"
        );
        assert!(
            rest.ends_with("\n1: and 14990 more keys like these"),
            "{rest}"
        );
        assert_eq!(rest.lines().count(), 10);
        let broken = flaws("---\nname: invoices\ndescription: \"open\n---\n");
        assert!(
            broken.starts_with("4: the front matter is not YAML")
                || broken.starts_with("3: the front matter"),
            "{broken}"
        );
        assert!(flaws("---\n- a\n- b\n---\n").starts_with("2: the front matter is not YAML"));
    }

    #[test]
    fn names_follow_the_format() {
        for good in ["a", "invoices", "pdf-2-text", &"x".repeat(64)] {
            assert!(is_name(good), "{good}");
        }
        for bad in [
            "",
            "A",
            "-a",
            "a-",
            "a--b",
            "a_b",
            "a b",
            "é",
            "../a",
            &"x".repeat(65),
        ] {
            assert!(!is_name(bad), "{bad}");
        }
    }

    proptest! {
        /// Any front matter: no panic, and each problem has a line of the file.
        #[test]
        fn any_front_matter_is_read_or_refused_with_a_line(front in "(name|description|license|metadata|[a-z&*!|>%@`'\"{}\\[\\],:#?é\t -]|\n){0,60}") {
            check_lines(&format!("---\n{front}\n---\nbody"))?;
        }

        #[test]
        fn any_text_is_read_or_refused_with_a_line(text in any::<String>()) {
            check_lines(&text)?;
            check_lines(&format!("---\n{text}\n---\n"))?;
        }

        #[test]
        fn a_description_of_any_kind_keeps_within_its_limit(description in "[a-zé ]{0,1100}") {
            let text = format!("---\nname: invoices\ndescription: \"{description}\"\n---\n");
            let length = description.split_whitespace().collect::<Vec<_>>().join(" ").chars().count();
            prop_assert_eq!(parse(&text, "invoices").is_ok(), (1..=MAX_DESCRIPTION_CHARS).contains(&length));
        }
    }

    fn check_lines(text: &str) -> Result<(), TestCaseError> {
        let lines = text.split('\n').count();
        match parse(text, "invoices") {
            Ok(manifest) => {
                prop_assert!(is_name(&manifest.name) && !manifest.description.is_empty());
            }
            Err(flaws) => {
                prop_assert!(!flaws.is_empty());
                prop_assert!(
                    flaws
                        .iter()
                        .all(|flaw| (1..=lines + 1).contains(&flaw.line)),
                    "{:?} in {lines} lines",
                    flaws
                );
            }
        }
        Ok(())
    }
}
