//! The places that `config.toml` names for its secrets: variables and files. The secrets themselves
//! are not read.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

/// A secret that the config names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptSecret {
    /// Such as `telegram.token`.
    pub(crate) key: String,
    pub(crate) keeper: Keeper,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Keeper {
    /// The name of an environment variable.
    Variable(String),
    File(PathBuf),
}

/// Every secret of a config, by key. A text that is no TOML names none.
pub(crate) fn kept_secrets(text: &str, home: &Path) -> Vec<KeptSecret> {
    let mut found = Vec::new();
    if let Ok(table) = text.parse::<Table>() {
        collect(&table, "", home, &mut found);
    }
    found
}

fn collect(table: &Table, path: &str, home: &Path, found: &mut Vec<KeptSecret>) {
    for (name, value) in table {
        let key = match path {
            "" => name.clone(),
            _ => format!("{path}.{name}"),
        };
        below(value, &key, home, found);
    }
}

fn below(value: &Value, key: &str, home: &Path, found: &mut Vec<KeptSecret>) {
    match value {
        Value::Table(table) => match keeper(table, key, home) {
            Some(keeper) => found.push(KeptSecret {
                key: key.to_owned(),
                keeper,
            }),
            None => collect(table, key, home, found),
        },
        Value::Array(items) => items.iter().for_each(|item| below(item, key, home, found)),
        _ => {}
    }
}

/// `{ env = "…" }` or `{ file = "…" }`. The log's `file` is no secret.
fn keeper(table: &Table, key: &str, home: &Path) -> Option<Keeper> {
    let (name, place) = table.iter().next().filter(|_| table.len() == 1)?;
    let place = place.as_str()?;
    match name.as_str() {
        "env" => Some(Keeper::Variable(place.to_owned())),
        "file" if key != "log" => Some(Keeper::File(home.join(place))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_wherever_they_are_named() {
        let text = "[telegram]\ntoken = { env = \"TOKEN\" }\n[log]\nfile = \"logs/a\"\n\
                    [providers.a]\napi_key = { file = \"secrets/a\" }\n";
        let found = kept_secrets(text, Path::new("/home"));
        let told: Vec<String> = found
            .iter()
            .map(|secret| format!("{} {:?}", secret.key, secret.keeper))
            .collect();
        assert_eq!(
            told,
            [
                "providers.a.api_key File(\"/home/secrets/a\")",
                "telegram.token Variable(\"TOKEN\")"
            ]
        );
        assert!(kept_secrets("[telegram", Path::new("/home")).is_empty());
    }
}
