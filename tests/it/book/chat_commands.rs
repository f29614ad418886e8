//! The reference page of the chat commands, from the list that `/help` shows.

use parlor::commands::{Argument, Audience, Offers, SPECS, Spec};
use parlor::domain::Role;

const BEGINNING: &str = "\
<!-- Written by tests/it/book.rs from src/commands/specs.rs: `UPDATE_BOOK=1 cargo test book` writes it anew. -->

# Chat commands

The same commands work on Telegram, on Discord and in `parlor chat`. Telegram shows them as the bot's menu and Discord as slash
commands. Square brackets mean that an argument may be left out, and a bar separates alternatives.

Everybody who may speak in a place may use the commands there, except those for owners. [People and
access](../guide/access.md#what-people-may-have-done) says what a guest is refused. The last column says who sees the reply where
the platform can show a message to one person alone, as Discord can.

| command | what it does | for | reply seen by |
|---|---|---|---|
";

const ARGUMENTS: &str = "
## Arguments

Discord asks for each argument by itself. In a written command they follow the name, separated by spaces.

| command | argument | what it is | choices |
|---|---|---|---|
";

pub(super) fn page() -> String {
    let commands: String = SPECS.iter().map(command).collect();
    let arguments: String = SPECS
        .iter()
        .flat_map(|spec| spec.options.iter().map(|option| argument(spec, option)))
        .collect();
    format!("{BEGINNING}{commands}{ARGUMENTS}{arguments}")
}

fn command(spec: &Spec) -> String {
    let line = format!("/{} {}", spec.name, spec.arguments);
    let people = match spec.least {
        Role::Guest => "everybody",
        Role::Member => "members and above",
        Role::Admin => "admins and owners",
        Role::Owner => "owners",
    };
    let readers = match spec.audience {
        Audience::Place => "the place",
        Audience::Asker => "the person who asked",
    };
    format!(
        "| `{}` | {} | {people} | {readers} |\n",
        line.trim().replace('|', "\\|"),
        spec.summary
    )
}

fn argument(spec: &Spec, argument: &Argument) -> String {
    let need = if argument.is_required {
        ""
    } else {
        " (optional)"
    };
    format!(
        "| `/{}` | {}{need} | {} | {} |\n",
        spec.name,
        argument.name,
        argument.summary,
        choices(argument.offers)
    )
}

fn choices(offers: Offers) -> String {
    let or = |words: &[&str]| {
        words
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    match offers {
        Offers::Nothing => "free text".to_owned(),
        Offers::Words(words) => or(words),
        Offers::Agents([]) => "an agent".to_owned(),
        Offers::Agents(words) => format!("an agent, or {}", or(words)),
        Offers::Models(words) => format!("a model, or {}", or(words)),
    }
}
