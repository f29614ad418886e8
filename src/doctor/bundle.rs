//! An archive for a bug report: facts about a house without its secrets and its words.
//!
//! Packed: the findings, the versions, the shape of the config, the number of rows in each table.
//! Not packed: texts of the config, names, ids, messages, prompts, files, logs.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};
use tar::{Builder, Header};

use crate::config::read_home;
use crate::operations::diagnosis::Diagnosis;
use crate::storage;

/// Keys with a fixed set of values, or with a name of an agent or model.
const CHOICES: [&str; 16] = [
    "kind",
    "mode",
    "dms",
    "groups",
    "switch",
    "group_sessions",
    "level",
    "format",
    "rotate",
    "visibility",
    "default_visibility",
    "reasoning",
    "default_agent",
    "model",
    "default_model",
    "agent",
];

/// Writes the archive, to a new file.
pub(crate) fn write(home: &Path, diagnosis: &Diagnosis, target: &Path) -> io::Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(target)?;
    let mut tar = Builder::new(GzEncoder::new(file, Compression::default()));
    let parts = [
        ("doctor.json", findings(home, diagnosis)),
        ("version.json", version()),
        ("config.json", config(home)),
        ("rows.json", rows(home)),
    ];
    for (name, value) in parts {
        let text = serde_json::to_vec_pretty(&value)?;
        let mut header = Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        tar.append_data(
            &mut header,
            Path::new("parlor-report").join(name),
            &text[..],
        )?;
    }
    let mut file = tar.into_inner()?.finish()?;
    file.flush()?;
    file.sync_all()
}

/// Findings with their id and state. Many sentences name places, people and files, so only checks
/// without such names keep their sentences.
fn findings(home: &Path, diagnosis: &Diagnosis) -> Value {
    const TOLD: [&str; 7] = [
        "gateway",
        "database",
        "home.modes",
        "home.disk",
        "home.sync",
        "backup",
        "clock",
    ];
    let home = home.display().to_string();
    let findings = diagnosis.findings.iter().map(|found| {
        let is_told = TOLD.contains(&found.id.as_str());
        let text = is_told.then(|| found.text.replace(&home, "HOME"));
        json!({ "id": found.id, "state": found.state, "text": text })
    });
    json!({
        "findings": findings.collect::<Vec<_>>(),
        "belongings": diagnosis.belongings,
    })
}

fn version() -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "commit": env!("PARLOR_COMMIT"),
        "schema": storage::schema(),
        "platform": env!("PARLOR_TARGET"),
    })
}

/// The keys of the config. Numbers and switches have their value, texts do not.
fn config(home: &Path) -> Value {
    let text = read_home(home)
        .map(|source| source.text)
        .unwrap_or_default();
    match text.parse::<toml::Table>() {
        Ok(table) => shape_of(&table),
        Err(_) => Value::String("it is no TOML".into()),
    }
}

/// Names in tables of these keys are chosen by the operator.
const NAMED: [&str; 6] = [
    "agents",
    "providers",
    "people",
    "peer_groups",
    "shared_paths",
    "hooks",
];

fn shape_of(table: &toml::Table) -> Value {
    let mut keys = Map::new();
    for (key, value) in table {
        let value = match value {
            toml::Value::Table(inner) if NAMED.contains(&key.as_str()) => {
                let entries = inner.values().map(|value| shape("", value));
                Value::Array(entries.collect())
            }
            value => shape(key, value),
        };
        keys.insert(key.clone(), value);
    }
    Value::Object(keys)
}

fn shape(key: &str, value: &toml::Value) -> Value {
    match value {
        toml::Value::Boolean(value) => json!(value),
        toml::Value::Integer(_) | toml::Value::Float(_) if is_an_id(value) => json!("(number)"),
        toml::Value::Integer(value) => json!(value),
        toml::Value::Float(value) => json!(value),
        toml::Value::String(text) if CHOICES.contains(&key) => json!(choice(text)),
        toml::Value::String(_) => json!("(text)"),
        toml::Value::Datetime(_) => json!("(time)"),
        toml::Value::Array(items) => {
            Value::Array(items.iter().map(|item| shape(key, item)).collect())
        }
        toml::Value::Table(table) => shape_of(table),
    }
}

/// Ids of people and groups are large numbers.
fn is_an_id(value: &toml::Value) -> bool {
    const LARGE: i64 = 10_000_000;
    value
        .as_integer()
        .is_some_and(|number| number.abs() > LARGE)
}

/// A word of the config's language stays; a name chosen by the operator is left out.
fn choice(text: &str) -> &str {
    const WORDS: [&str; 24] = [
        "openai",
        "openai-responses",
        "anthropic",
        "gemini",
        "ollama",
        "polling",
        "webhook",
        "pairing",
        "open",
        "closed",
        "bound",
        "handoff",
        "separate",
        "per-user",
        "shared",
        "error",
        "warn",
        "info",
        "debug",
        "trace",
        "text",
        "json",
        "daily",
        "main",
    ];
    if WORDS.contains(&text) {
        text
    } else {
        "(text)"
    }
}

/// Rows by table.
fn rows(home: &Path) -> Value {
    let counted = storage::peek(&home.join("parlor.db"), |connection| {
        let mut tables = connection.prepare(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
        )?;
        let names: Vec<String> = tables
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        let mut counts = Map::new();
        for name in names {
            let sql = format!("SELECT count(*) FROM \"{name}\"");
            let count: i64 = connection.query_row(&sql, [], |row| row.get(0))?;
            counts.insert(name, count.into());
        }
        Ok(Value::Object(counts))
    });
    counted.unwrap_or(Value::Null)
}
