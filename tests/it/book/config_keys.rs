//! The reference page of the config: which keys there are, from the code; what they mean and what
//! their defaults are, from `config.example.toml`, which tests in `src/config` keep complete and
//! true.

use parlor::config::{Absence, Key, PLACES, Shape};

const BEGINNING: &str = "\
<!-- Written by tests/it/book.rs from src/config/schema.rs and config.example.toml: `UPDATE_BOOK=1 cargo test book` writes it anew. -->

# Settings

Every key of `config.toml`. `config.example.toml` in the repository shows all of them in one file. Nothing in it is needed: an
empty file gives you one agent, `main`, in the terminal chat. `parlor config check` shows everything that is wrong with a file.

A key with a default may be left out. A key that says *needed* must be there once its table is there. A key with neither is off
until it is written.
";

/// Keys that the example file shows inside of a line, where it has no room for comments.
const INLINE: [(&str, &str); 5] = [
    ("input", "Money for a million tokens that the model reads."),
    (
        "output",
        "Money for a million tokens that the model writes.",
    ),
    (
        "cached",
        "Money for a million tokens that the provider had in its cache. Without the key, they cost as much as `input`.",
    ),
    ("env", "The environment variable that has the secret."),
    (
        "file",
        "The file that has the secret. A relative path begins in the home folder.",
    ),
];
const SECRETS: &str = "A token or a key is written as `{ env = \"…\" }` or as `{ file = \"…\" }`, and never as plain text.";

/// A key as the example file has it.
struct Shown {
    /// With a star for each name that the operator chooses.
    place: String,
    key: String,
    value: String,
    comment: String,
}

/// The example file, read line by line.
#[derive(Default)]
struct Example {
    keys: Vec<Shown>,
    /// What is said above a table, by its place.
    tables: Vec<(String, String)>,
}

pub(super) fn page(example: &str) -> String {
    let example = Example::read(example);
    let sections: String = PLACES
        .iter()
        .map(|(place, shape)| section(&example, place, shape))
        .collect();
    format!("{BEGINNING}{sections}")
}

impl Example {
    fn read(text: &str) -> Self {
        let (mut example, mut place, mut comment) = (Example::default(), String::new(), Vec::new());
        for line in text.lines() {
            if let Some(words) = line.strip_prefix('#') {
                comment.push(words.trim());
            } else if line.starts_with('[') {
                place = starred(line.trim_matches(['[', ']']));
                example.tables.push((place.clone(), comment.join(" ")));
                comment.clear();
            } else if let Some((key, value)) = line.split_once(" = ") {
                let comment = std::mem::take(&mut comment).join(" ");
                example.keys.push(Shown {
                    place: place.clone(),
                    key: key.to_owned(),
                    value: value.to_owned(),
                    comment,
                });
            } else {
                comment.clear();
            }
        }
        example
    }

    fn key(&self, place: &str, key: &str) -> Option<&Shown> {
        self.keys
            .iter()
            .find(|shown| shown.place == place && shown.key == key)
    }

    /// What is said about a key: there, where a key of the same name is explained, or together with
    /// the key above it.
    fn meaning(&self, place: &str, key: &str) -> &str {
        let told = |shown: &&Shown| !shown.comment.is_empty();
        let own = self.key(place, key).filter(told);
        let namesake = || self.keys.iter().filter(told).find(|shown| shown.key == key);
        let above = || {
            let at = self
                .keys
                .iter()
                .position(|shown| shown.place == place && shown.key == key)?;
            self.keys[..at].iter().rev().find(told)
        };
        let inline = || {
            INLINE
                .iter()
                .find(|(name, _)| *name == key)
                .map(|(_, meaning)| *meaning)
        };
        let found = own
            .or_else(namesake)
            .or_else(above)
            .map(|shown| shown.comment.as_str());
        inline().or(found).unwrap_or_else(|| {
            panic!("config.example.toml says nothing about `{key}` of [{place}]")
        })
    }

    fn about(&self, place: &str) -> &str {
        let at = |place: &str| self.tables.iter().find(|(name, _)| name == place);
        // Prices stand in one table, with a line for each model.
        let table = at(place).or_else(|| at(place.trim_end_matches(".*")));
        table.map_or("", |(_, comment)| comment)
    }
}

/// Tables whose last part is a name that the operator chooses.
fn starred(table: &str) -> String {
    let named = PLACES
        .iter()
        .filter_map(|(place, _)| place.split_once(".*").map(|(group, _)| group));
    let steps: Vec<&str> = table.split('.').collect();
    match named.into_iter().find(|group| *group == steps[0]) {
        Some(group) => [&[group, "*"], &steps[2..]].concat().join("."),
        None => table.to_owned(),
    }
}

fn section(example: &Example, place: &str, shape: &Shape) -> String {
    let about = if place.contains('|') {
        SECRETS
    } else {
        example.about(place)
    };
    let about = if about.is_empty() {
        String::new()
    } else {
        format!("{}\n\n", escaped(about))
    };
    let rows: String = shape
        .keys
        .iter()
        .filter(|key| !is_top_table(place, key))
        .map(|key| row(example, place, key))
        .collect();
    format!(
        "\n## {}\n\n{about}| key | default | example | what it means |\n|---|---|---|---|\n{rows}",
        heading(place)
    )
}

/// The tables themselves are the sections of the page.
fn is_top_table(place: &str, key: &Key) -> bool {
    place.is_empty()
        && PLACES
            .iter()
            .any(|(other, _)| other.split('.').next() == Some(key.name))
}

fn heading(place: &str) -> String {
    match place {
        "" => "At the top of the file".to_owned(),
        "bindings" => "`[[bindings]]`".to_owned(),
        secrets if secrets.contains('|') => "Secrets".to_owned(),
        prices if prices.ends_with(".prices.*") => "`[providers.<name>.prices]`".to_owned(),
        agent if agent.starts_with("agents.") => format!("`[{}]`", agent.replace('*', "<id>")),
        table => format!("`[{}]`", table.replace('*', "<name>")),
    }
}

fn row(example: &Example, place: &str, key: &Key) -> String {
    let name = key.name;
    if let Some(table) = table_of(place, name) {
        let heading = heading(table);
        let anchor: String = heading
            .chars()
            .filter(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        return format!("| `{name}` | | | A table of its own: [{heading}](#{anchor}) |\n");
    }
    let value = example
        .key(place, name)
        .map(|shown| format!("`{}`", shown.value.replace('|', "\\|")))
        .unwrap_or_default();
    let (default, example_value) = match key.absence {
        Absence::Default => (value, String::new()),
        Absence::Refused => ("*needed*".to_owned(), value),
        Absence::Nothing => (String::new(), value),
    };
    format!(
        "| `{name}` | {default} | {example_value} | {} |\n",
        escaped(example.meaning(place, name))
    )
}

/// The section about a key that is a table.
fn table_of(place: &str, key: &str) -> Option<&'static str> {
    let table = format!("{place}.{key}");
    PLACES
        .iter()
        .map(|(place, _)| *place)
        .find(|place| *place == table || *place == format!("{table}.*"))
}

fn escaped(text: &str) -> String {
    let linked = |word: &str| match word.strip_prefix("docs/src/") {
        Some(page) => format!("[{word}](../{page})"),
        None => word.to_owned(),
    };
    let text = text.replace('|', "\\|").replace('<', "\\<");
    text.split(' ').map(linked).collect::<Vec<_>>().join(" ")
}
