//! Keeps `config.example.toml` complete and true.

use toml::de::{DeTable, DeValue};

use super::config;
use crate::config::reader::Value;
use crate::config::schema::{Absence, PLACES};
use crate::config::{Config, ProviderLines};

pub(super) const EXAMPLE: &str = include_str!("../../../config.example.toml");

/// The checked config, printed for comparison.
/// Lines are only for advice.
fn meaning(text: &str) -> String {
    let mut config = config(text);
    for provider in config.providers.values_mut() {
        provider.lines = ProviderLines::default();
    }
    format!("{config:#?}")
}

/// All tables at these places; a `*` matches every table, and a list gives all its items.
pub(super) fn tables_at<'a>(tree: &'a DeTable<'a>, places: &str) -> Vec<&'a DeTable<'a>> {
    let at_place = |place: &str| {
        let steps = place.split('.').filter(|step| !step.is_empty());
        steps.fold(vec![tree], |tables, step| {
            tables
                .into_iter()
                .flat_map(|table| step_into(table, step))
                .collect()
        })
    };
    places.split('|').flat_map(at_place).collect()
}

fn step_into<'a>(table: &'a DeTable<'a>, step: &str) -> Vec<&'a DeTable<'a>> {
    let matching = table
        .iter()
        .filter(|(key, _)| step == "*" || key.get_ref() == step);
    matching.flat_map(|(_, value)| tables_in(value)).collect()
}

fn tables_in<'a>(value: &'a Value<'a>) -> Vec<&'a DeTable<'a>> {
    match value.get_ref() {
        DeValue::Table(table) => vec![table],
        DeValue::Array(array) => array
            .iter()
            .filter_map(|item| item.get_ref().as_table())
            .collect(),
        _ => Vec::new(),
    }
}

#[test]
fn the_example_has_no_problems() {
    meaning(EXAMPLE);
}

#[test]
fn the_example_shows_every_key() {
    let tree = DeTable::parse(EXAMPLE).unwrap();
    for (place, shape) in PLACES {
        let tables = tables_at(tree.get_ref(), place);
        for key in shape.names() {
            assert!(
                tables.iter().any(|table| table.contains_key(key)),
                "config.example.toml lacks `{key}` of {}",
                shape.name
            );
        }
    }
}

/// Takes each key with a default out, alone: the meaning must stay the same.
#[test]
fn the_example_shows_the_defaults() {
    let tree = DeTable::parse(EXAMPLE).unwrap();
    let meaning_with_all = meaning(EXAMPLE);
    for (place, shape) in PLACES {
        for key in shape
            .keys
            .iter()
            .filter(|key| key.absence == Absence::Default)
        {
            for table in tables_at(tree.get_ref(), place) {
                let Some((written, _)) = table.get_key_value(key.name) else {
                    continue;
                };
                // A comment sign over the first letter keeps the positions of all other keys.
                let start = written.span().start;
                let without = format!("{}#{}", &EXAMPLE[..start], &EXAMPLE[start + 1..]);
                assert_eq!(
                    meaning(&without),
                    meaning_with_all,
                    "`{}` of {} shows another value than the default",
                    key.name,
                    shape.name
                );
            }
        }
    }
}

#[test]
fn an_empty_file_means_the_embedded_config() {
    assert_eq!(meaning(""), format!("{:#?}", Config::embedded()));
}
