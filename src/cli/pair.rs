//! `parlor pair`: lets a person in with a code, lists people, and takes a pairing back. Works while
//! the gateway runs.

use std::io::{IsTerminal, stdin};

use clap::{Args, Subcommand};
use comfy_table::{Table, presets};
use serde::Serialize;

use super::{Failure, Outcome, data, data_json, print, question};
use crate::access::people;
use crate::clock::now_ms;
use crate::domain::PersonId;
use crate::home::Home;
use crate::storage::Db;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// The code that the bot told the person
    code: Option<String>,
    /// Do not ask whether this is the right person
    #[arg(long)]
    yes: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// Show people who wait with a code, and people who were let in
    List {
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Take back that a person was let in
    Revoke {
        /// The person's id, such as telegram:12345678
        id: String,
    },
}

/// A person of the list.
#[derive(Serialize)]
struct Listed {
    id: String,
    name: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    let_in_by: Option<String>,
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    let db = Db::open(&home.database()).await?;
    match (arguments.verb, arguments.code) {
        (Some(Verb::List { json }), _) => list(&db, json).await,
        (Some(Verb::Revoke { id }), _) => revoke(&db, &id).await,
        (None, Some(code)) => approve(&db, code, arguments.yes).await,
        (None, None) => Err(Failure::WrongUse(
            "which code? Write it like `parlor pair ABCD2345`; `parlor pair list` shows who waits"
                .into(),
        )),
    }
}

async fn approve(db: &Db, code: String, yes: bool) -> Outcome {
    let wanted = code.clone();
    let found = db
        .read(move |connection| people::of_code(connection, &wanted, now_ms()))
        .await?;
    let Some(known) = found else {
        return Err(Failure::Failed(NO_SUCH_CODE.into()));
    };
    let is_asked = !yes && stdin().is_terminal() && print::is_seen();
    if is_asked && !is_right(&format!("{} ({})", known.name, known.person))? {
        return Err(Failure::Failed("nobody was let in".into()));
    }
    let approved = db
        .write(move |tx| people::approve(tx, &code, "cli", now_ms()))
        .await?;
    let Some(known) = approved else {
        return Err(Failure::Failed(NO_SUCH_CODE.into()));
    };
    data(format_args!(
        "{} ({}) may now write to the bot.",
        known.name, known.person
    ));
    Ok(())
}

fn is_right(person: &str) -> Result<bool, Failure> {
    question(format_args!("Let in {person}? [y/N] "));
    let mut line = String::new();
    stdin()
        .read_line(&mut line)
        .map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

async fn list(db: &Db, json: bool) -> Outcome {
    let read = |connection: &rusqlite::Connection| {
        Ok((
            people::waiting(connection, now_ms())?,
            people::members(connection, u32::MAX)?,
        ))
    };
    let (waiting, members) = db.read(read).await?;
    let waiting = waiting.into_iter().map(|waiting| Listed {
        id: waiting.person.to_string(),
        name: waiting.name,
        state: "waiting",
        code: Some(waiting.code),
        let_in_by: None,
    });
    let members = members.into_iter().map(|member| Listed {
        id: member.person.to_string(),
        name: member.name,
        state: "let in",
        code: None,
        let_in_by: Some(member.by),
    });
    let listed: Vec<Listed> = waiting.chain(members).collect();
    if json {
        data_json(&listed)?;
    } else if listed.is_empty() {
        data(format_args!(
            "Nobody waits, and nobody was let in with a code."
        ));
    } else {
        data(format_args!("{}", table(&listed)));
    }
    Ok(())
}

fn table(listed: &[Listed]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(["ID", "NAME", "STATE", "CODE"]);
    for person in listed {
        table.add_row([
            person.id.as_str(),
            person.name.as_str(),
            person.state,
            person.code.as_deref().unwrap_or_default(),
        ]);
    }
    table
}

async fn revoke(db: &Db, id: &str) -> Outcome {
    let Ok(person) = id.parse::<PersonId>() else {
        return Err(Failure::WrongUse(format!(
            "{id} is no id of a person; `parlor pair list` shows ids"
        )));
    };
    let revoked = db.write(move |tx| people::revoke(tx, &person)).await?;
    let Some(known) = revoked else {
        return Err(Failure::Failed(format!(
            "{id} was not let in with a code; owners and people with a role are in config.toml"
        )));
    };
    data(format_args!(
        "{} ({}) is a guest again.",
        known.name, known.person
    ));
    Ok(())
}

const NO_SUCH_CODE: &str = "no code like that is open. A code counts for one hour; the person gets a new one by writing to the bot again";
