//! The reference page of the config: which keys there are, from the code; what they mean and what
//! their defaults are, from `config.example.toml`, which tests in `src/config` keep complete and
//! true.

use parlor::config::{Absence, Documented, Key, PLACES, Shape};

const BEGINNING: &str = "\
<!-- Written by tests/it/book.rs from src/config/schema.rs and config.example.toml: `UPDATE_BOOK=1 cargo test book` writes it anew. -->

# Settings

Every key of `config.toml`. `config.example.toml` in the repository shows all of them in one file. Nothing in it is needed: an
empty file gives you one agent, `main`, in the terminal chat. `parlor config check` shows everything that is wrong with a file.

A key with a default may be left out. A key that says *needed* must be there once its table is there. A key with neither is off
until it is written.
";

const SECRETS: &str = "A token or a key is written as `{ env = \"…\" }` or as `{ file = \"…\" }`, and never as plain text.";

pub(super) fn page() -> String {
    let example = Documented::read();
    let sections: String = PLACES
        .iter()
        .map(|(place, shape)| section(&example, place, shape))
        .collect();
    format!("{BEGINNING}{sections}")
}

fn section(example: &Documented, place: &str, shape: &Shape) -> String {
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

fn row(example: &Documented, place: &str, key: &Key) -> String {
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
        escaped(example.meaning(place, name).unwrap_or_else(|| {
            panic!("config.example.toml says nothing about `{name}` of [{place}]")
        }))
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
