//! The places that `config.toml` names for its secrets: variables and files. The secrets themselves
//! are not read.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

/// The file of the home with variables for a service, as lines `NAME=value`: a unit of systemd sees
/// nothing of a shell.
pub(crate) const ENVIRONMENT_FILE: &str = "environment";

/// Whether a text of such lines sets the variable.
pub(crate) fn sets_variable(text: &str, name: &str) -> bool {
    let mut lines = text.lines().map(str::trim_start);
    lines.any(|line| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.trim_start().starts_with('='))
    })
}

/// A secret named by the config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptSecret {
    /// The key of the secret, such as `telegram.token`.
    pub(crate) key: String,
    pub(crate) keeper: Keeper,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Keeper {
    /// The name of an environment variable.
    Variable(String),
    File(PathBuf),
}

/// Every secret of a config, by key. A text other than TOML names none.
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
    fn lines_that_set_a_variable_are_known() {
        let text = "# A=1\n B = 2\nCC=3";
        let known = ["A", "B", "C", "CC"].map(|name| sets_variable(text, name));
        assert_eq!(known, [false, true, false, true]);
    }

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
