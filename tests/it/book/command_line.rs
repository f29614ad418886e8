//! The reference page of the command line, from the definition that reads it.

use clap::{Arg, Command};

const BEGINNING: &str = "\
<!-- Written by tests/it/book.rs from src/cli/: `UPDATE_BOOK=1 cargo test book` writes it anew. -->

# Command line

Results go to stdout, and everything else goes to stderr. The program ends with 0 when all went well, with 1 when something
failed, and with 2 when the command line was wrong. With `--json` a verb prints its result, or its error, as [JSON](json.md).
[Operating](../guide/operating.md) says which verbs work while a gateway runs.

`parlor help` and `--help` show the same as this page, `parlor completions` makes a shell complete verbs, agents and places, and
`parlor man` writes manual pages. Tables are as wide as the terminal, or as the variable `COLUMNS` says; in a pipe every row is one
line.

These options work with every verb:

";

pub(super) fn page() -> String {
    let mut parlor = parlor::cli::command();
    parlor.build();
    let everywhere: Vec<&Arg> = parlor
        .get_arguments()
        .filter(|argument| argument.is_global_set())
        .collect();
    let verbs: String = below(&parlor)
        .map(|verb| section(verb, &parlor, "parlor", 2))
        .collect();
    format!("{BEGINNING}{}{verbs}", table(&everywhere))
}

/// Without the verb that explains the others.
fn below(verb: &Command) -> impl Iterator<Item = &Command> {
    verb.get_subcommands()
        .filter(|verb| verb.get_name() != "help")
}

/// A verb, and those below it.
fn section(verb: &Command, above: &Command, parent: &str, level: usize) -> String {
    let name = format!("{parent} {}", verb.get_name());
    let about = verb
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    let own: Vec<&Arg> = verb
        .get_arguments()
        .filter(|argument| is_own(argument, above))
        .collect();
    let mut text = format!("\n{} `{name}`\n\n{}.", "#".repeat(level), escaped(&about));
    let aliases: Vec<String> = verb
        .get_visible_aliases()
        .map(|alias| format!("`{alias}`"))
        .collect();
    if !aliases.is_empty() {
        text.push_str(&format!(" Also {}.", aliases.join(", ")));
    }
    text.push('\n');
    if below(verb).next().is_none() {
        let usage = verb.clone().render_usage().to_string();
        text.push_str(&format!(
            "\n```text\n{}\n```\n",
            usage.trim_start_matches("Usage: ")
        ));
    }
    if !own.is_empty() {
        text.push_str(&format!("\n{}", table(&own)));
    }
    if let Some(examples) = verb.get_after_help() {
        let examples = examples.to_string();
        let lines = examples.lines().skip(1).map(str::trim_start);
        let lines = lines.collect::<Vec<_>>().join("\n");
        text.push_str(&format!("\nFor example:\n\n```sh\n{lines}\n```\n"));
    }
    text + &below(verb)
        .map(|part| section(part, verb, &name, level + 1))
        .collect::<String>()
}

/// Not one that comes from the verb above.
fn is_own(argument: &Arg, above: &Command) -> bool {
    let is_from_above = argument.is_global_set()
        && above
            .get_arguments()
            .any(|other| other.get_id() == argument.get_id());
    !is_from_above && !matches!(argument.get_id().as_str(), "help" | "version")
}

fn table(arguments: &[&Arg]) -> String {
    let rows: String = arguments.iter().map(|argument| row(argument)).collect();
    format!("| argument | what it is | default |\n|---|---|---|\n{rows}")
}

fn row(argument: &Arg) -> String {
    let help = argument
        .get_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let values: Vec<String> = argument
        .get_possible_values()
        .iter()
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    let takes_one_of = argument.get_action().takes_values() && !values.is_empty();
    let one_of = if takes_one_of {
        format!("; one of {}", values.join(", "))
    } else {
        String::new()
    };
    let environment = argument.get_env().map(|name| {
        format!(
            "; also by the environment variable `{}`",
            name.to_string_lossy()
        )
    });
    let defaults = argument
        .get_default_values()
        .iter()
        .filter(|_| argument.get_action().takes_values());
    let default = defaults
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect::<Vec<_>>()
        .join(", ");
    format!(
        "| `{}` | {}{one_of}{} | {default} |\n",
        written(argument),
        escaped(&help),
        environment.unwrap_or_default()
    )
}

/// As a person types it: `-a, --agent <AGENT>`.
fn written(argument: &Arg) -> String {
    if argument.is_positional() {
        return argument.to_string().replace('|', "\\|");
    }
    let long = argument.get_long().map(|long| format!("--{long}"));
    let short = argument.get_short().map(|short| format!("-{short}"));
    let names = short.into_iter().chain(long).collect::<Vec<_>>().join(", ");
    let values = argument
        .get_value_names()
        .filter(|_| argument.get_action().takes_values())
        .unwrap_or_default();
    format!(
        "{names}{}",
        values
            .iter()
            .map(|value| format!(" <{value}>"))
            .collect::<String>()
    )
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "\\<")
}
