//! The keys of `config.toml` as a JSON Schema, for editors: they complete keys, show the meaning of
//! a key, and underline mistakes while a person types.
//!
//! Draft 7, because editors for TOML read this version (taplo, Even Better TOML, Tombi). The schema
//! knows the form of the file; `parlor config check` knows the meaning of names.

use std::path::Path;

use serde_json::{Map, Value, json};
use toml::de::{DeTable, DeValue};

use super::documented::Documented;
use super::schema::{self, Absence, Key, Kind, PLACES, Shape};

/// The schema's name in the home folder, also named in the first line of the shipped config.
pub(crate) const SCHEMA_FILE: &str = "config.schema.json";

/// The whole schema as a file.
pub fn json_schema_text() -> String {
    format!("{:#}\n", json_schema())
}

/// Whether a home has the schema of another version.
pub(crate) fn is_schema_old(home: &Path) -> bool {
    let written = std::fs::read_to_string(home.join(SCHEMA_FILE));
    written.is_ok_and(|text| text != json_schema_text())
}

fn json_schema() -> Value {
    let documented = Documented::read();
    let mut root = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Parlor's config.toml",
    });
    let top = table(&documented, "", &schema::TOP);
    if let (Some(root), Value::Object(top)) = (root.as_object_mut(), top) {
        root.extend(top);
    }
    root
}

fn table(documented: &Documented, place: &str, shape: &Shape) -> Value {
    let properties: Map<String, Value> = shape
        .keys
        .iter()
        .map(|key| (key.name.to_owned(), value(documented, place, key)))
        .collect();
    let required: Vec<&str> = shape
        .keys
        .iter()
        .filter(|key| key.absence == Absence::Refused)
        .map(|key| key.name)
        .collect();
    let mut table = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    });
    if !required.is_empty() {
        table["required"] = json!(required);
    }
    if shape.name == schema::SECRET.name {
        // The table has either key, and not both.
        table["minProperties"] = json!(1);
        table["maxProperties"] = json!(1);
    }
    table
}

fn value(documented: &Documented, place: &str, key: &Key) -> Value {
    let path = match place {
        "" => key.name.to_owned(),
        place => format!("{place}.{}", key.name),
    };
    let many = format!("{path}.*");
    let mut value = match (shape_at(&path), shape_at(&many)) {
        (Some(shape), _) if key.is_list_of_tables() => json!({
            "type": "array",
            "items": table(documented, &path, shape),
        }),
        (Some(shape), _) => table(documented, &path, shape),
        (None, Some(shape)) => json!({
            "type": "object",
            "additionalProperties": table(documented, &many, shape),
        }),
        (None, None) => plain(documented, key),
    };
    let about = [documented.about(&path), documented.about(&many)]
        .into_iter()
        .find(|about| !about.is_empty());
    if let Some(meaning) = about.or_else(|| documented.meaning(place, key.name)) {
        value["description"] = json!(meaning);
    }
    let shown = documented.key(place, key.name).map(|shown| &shown.value);
    if let (Absence::Default, Some(Some(default))) = (key.absence, shown.map(|text| in_json(text)))
    {
        value["default"] = default;
    }
    value
}

/// The keys of a table. Several places may share an entry of the list.
fn shape_at(path: &str) -> Option<&'static Shape> {
    PLACES
        .iter()
        .find(|(places, _)| !path.is_empty() && places.split('|').any(|place| place == path))
        .map(|(_, shape)| *shape)
}

/// A value that is no table of its own.
fn plain(documented: &Documented, key: &Key) -> Value {
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    match key.kind {
        Kind::LikeExample => in_json(key.example).map_or_else(|| json!({}), |value| like(&value)),
        Kind::Word(words) => json!({ "enum": words() }),
        Kind::Words(words) => json!({ "type": "array", "items": { "enum": words() } }),
        Kind::AtLeast(least) => whole_number(least),
        Kind::Between(least, most) => {
            json!({ "type": "number", "minimum": least, "maximum": most })
        }
        Kind::Money => json!({ "type": "number", "minimum": 0, "maximum": 1_000_000_000 }),
        Kind::SwitchOrList => json!({ "anyOf": [{ "type": "boolean" }, texts] }),
        Kind::TextOrList => json!({ "anyOf": [{ "type": "string" }, texts] }),
        Kind::ListOrLists => json!({
            "anyOf": [texts, {
                "type": "object",
                "additionalProperties": false,
                "properties": { "allow": texts, "deny": texts },
            }],
        }),
        Kind::Ids => json!({ "type": "array", "items": id() }),
        Kind::Id => id(),
        Kind::TextOrSecret => {
            let secret = table(documented, "", &schema::SECRET);
            json!({ "anyOf": [{ "type": "string" }, secret] })
        }
        Kind::Tables => json!({ "type": "array" }),
        Kind::WordByName(words) => json!({
            "type": "object",
            "additionalProperties": { "enum": words() },
        }),
    }
}

/// A number, with or without quotes.
fn id() -> Value {
    json!({
        "anyOf": [{ "type": "string", "pattern": "^[0-9]+$" }, { "type": "integer", "minimum": 0 }],
    })
}

/// All values of the example's type.
fn like(example: &Value) -> Value {
    match example {
        Value::String(_) => json!({ "type": "string" }),
        Value::Bool(_) => json!({ "type": "boolean" }),
        Value::Number(number) if number.is_f64() => json!({ "type": "number", "minimum": 0 }),
        Value::Number(_) => whole_number(0),
        Value::Array(items) => json!({
            "type": "array",
            "items": items.first().map_or_else(|| json!({ "type": "string" }), like),
        }),
        Value::Object(_) => json!({ "type": "object" }),
        Value::Null => json!({}),
    }
}

fn whole_number(least: u32) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": u32::MAX })
}

/// A value of TOML as JSON. Dates have no counterpart, and no key takes a date.
fn in_json(text: &str) -> Option<Value> {
    let line = format!("x = {text}");
    let tree = DeTable::parse(&line).ok()?;
    let (_, value) = tree.get_ref().iter().next()?;
    Some(converted(value.get_ref()))
}

fn converted(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => json!(text),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(Value::Null, |number| json!(number)),
        DeValue::Float(number) => number
            .as_str()
            .parse::<f64>()
            .map_or(Value::Null, |number| json!(number)),
        DeValue::Boolean(switch) => json!(switch),
        DeValue::Datetime(date) => json!(date.to_string()),
        DeValue::Array(items) => items.iter().map(|item| converted(item.get_ref())).collect(),
        DeValue::Table(table) => Value::Object(object(table)),
    }
}

fn object(table: &DeTable<'_>) -> Map<String, Value> {
    table
        .iter()
        .map(|(key, value)| (key.get_ref().to_string(), converted(value.get_ref())))
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A whole file as JSON, for a validator.
    pub(in crate::config) fn file_in_json(text: &str) -> Value {
        let tree = DeTable::parse(text).expect("the file is TOML");
        Value::Object(object(tree.get_ref()))
    }
}
