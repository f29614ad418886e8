//! The schema for editors says the same as the checks.

use std::collections::BTreeSet;
use std::ops::Range;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;
use toml::de::DeTable;

use super::example::{EXAMPLE, tables_at};
use super::{drafted, shipped};
use crate::config::json_schema::tests::file_in_json;
use crate::config::{Fault, PLACES, json_schema_text};

/// The schema, ready to judge files.
struct Editor {
    schemas: Schemas,
    schema: SchemaIndex,
}

impl Editor {
    fn new() -> Self {
        const ADDRESS: &str = "http://parlor.test/config.schema.json";
        let schema: Value = serde_json::from_str(&json_schema_text()).expect("it is JSON");
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.add_resource(ADDRESS, schema).expect("a new name");
        let schema = compiler
            .compile(ADDRESS, &mut schemas)
            .unwrap_or_else(|error| panic!("not a JSON Schema: {error:#}"));
        Editor { schemas, schema }
    }

    /// What the editor underlines.
    fn check(&self, text: &str) -> Result<(), String> {
        self.schemas
            .validate(&file_in_json(text), self.schema)
            .map_err(|error| format!("{error:#}"))
    }
}

/// Values of every form.
const SAMPLES: [&str; 17] = [
    "\"zzz\"",
    "-1",
    "0",
    "1",
    "5000",
    "1.5",
    "3.5",
    "99999999999",
    "true",
    "[]",
    "[\"zzz\"]",
    "[1]",
    "[[\"zzz\"]]",
    "{}",
    "{ zzz = 1 }",
    "{ env = \"X\" }",
    "{ env = \"X\", file = \"y\" }",
];

/// Whether the form of a file is refused, by the key's type, its words, or unknown and missing keys.
fn has_wrong_form(text: &str) -> bool {
    let is_form = |fault: Fault| {
        matches!(
            fault,
            Fault::UnknownKey | Fault::MissingKey | Fault::WrongType | Fault::WrongWord
        )
    };
    drafted(text)
        .problems
        .iter()
        .any(|problem| is_form(problem.fault))
}

#[test]
fn the_example_and_the_shipped_file_fit_the_schema() {
    let editor = Editor::new();
    assert_eq!(editor.check(EXAMPLE), Ok(()));
    assert_eq!(editor.check(shipped::CONFIG), Ok(()));
    assert_eq!(editor.check(""), Ok(()));
}

/// The section of the example file around a value, with its parents and another value. What other
/// sections say matters to the meaning only.
fn with_value(span: Range<usize>, value: &str) -> String {
    let headers = EXAMPLE.match_indices("\n[").map(|(at, _)| at + 1);
    let starts: Vec<usize> = [0]
        .into_iter()
        .chain(headers)
        .chain([EXAMPLE.len()])
        .collect();
    let sections: Vec<Range<usize>> = starts.windows(2).map(|pair| pair[0]..pair[1]).collect();
    let name = |section: &Range<usize>| {
        let line = EXAMPLE[section.clone()].lines().next().unwrap_or_default();
        line.trim_matches(['[', ']']).to_owned()
    };
    let own = sections
        .iter()
        .find(|section| section.contains(&span.start))
        .expect("every value is in a section");
    let parents = sections.iter().filter(|section| {
        section.start > 0 && name(own).starts_with(&format!("{}.", name(section)))
    });
    let parents: String = parents.map(|section| &EXAMPLE[section.clone()]).collect();
    format!(
        "{}{}{value}{}",
        if own.start == 0 { "" } else { &parents },
        &EXAMPLE[own.start..span.start],
        &EXAMPLE[span.end..own.end]
    )
}

/// Each key of the example file gets a value of each form, alone: the editor and `parlor config
/// check` agree about it. A key that is added to the code without its kind fails here.
#[test]
fn the_schema_refuses_what_the_checks_refuse() {
    let editor = Editor::new();
    let mut wrong = BTreeSet::new();
    let mut compare = |key: &str, sample: &str, text: &str| {
        let (checks, editor) = (!has_wrong_form(text), editor.check(text).is_ok());
        if checks != editor {
            let verdict = |accepts| if accepts { "accept" } else { "refuse" };
            wrong.insert(format!(
                "{key} = {sample}: the checks {} it, the schema would {}",
                verdict(checks),
                verdict(editor)
            ));
        }
    };
    let tree = DeTable::parse(EXAMPLE).unwrap();
    for (place, shape) in PLACES {
        for table in tables_at(tree.get_ref(), place) {
            for (key, value) in table.iter() {
                let is_section =
                    value.get_ref().is_table() && !EXAMPLE[value.span().start..].starts_with('{');
                let is_list = ["bindings", "jobs", "route_tests"].contains(&key.get_ref().as_ref());
                if is_section || value.get_ref().is_array() && is_list {
                    continue;
                }
                for sample in SAMPLES {
                    let text = with_value(value.span(), sample);
                    compare(&format!("[{place}] {}", key.get_ref()), sample, &text);
                }
            }
        }
        if place.is_empty() {
            for key in shape.names() {
                for sample in SAMPLES {
                    compare(key, sample, &format!("{key} = {sample}\n"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Every key is in the schema, with its meaning, and no other key is allowed.
#[test]
fn the_schema_has_every_key() {
    let schema: Value = serde_json::from_str(&json_schema_text()).unwrap();
    for (places, shape) in PLACES {
        for place in places.split('|') {
            let mut table = &schema;
            for step in place.split('.').filter(|step| !step.is_empty()) {
                table = match step {
                    "*" => &table["additionalProperties"],
                    key => &table["properties"][key],
                };
                if table["items"].is_object() {
                    table = &table["items"];
                }
            }
            assert_eq!(table["additionalProperties"], false, "{place}");
            for key in shape.names() {
                let meaning = table["properties"][key]["description"].as_str();
                assert!(
                    meaning.is_some_and(|meaning| !meaning.is_empty()),
                    "`{key}` of [{place}] is not in the schema, or without a meaning"
                );
            }
        }
    }
}

/// The file in the repository, for people who look at it there.
#[test]
fn the_schema_in_the_repository_is_that_of_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/config.schema.json");
    if std::env::var_os("UPDATE_BOOK").is_some() {
        std::fs::write(path, json_schema_text()).expect("the file can be written");
    }
    assert!(
        std::fs::read_to_string(path).is_ok_and(|text| text == json_schema_text()),
        "config.schema.json is not what the code says. `UPDATE_BOOK=1 cargo test` writes it anew."
    );
}

#[test]
fn both_files_name_their_schema_in_the_first_line() {
    for text in [EXAMPLE, shipped::CONFIG] {
        assert_eq!(text.lines().next(), Some("#:schema ./config.schema.json"));
    }
}
