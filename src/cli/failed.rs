//! `parlor failed …`: what could not be delivered, and asking for it to be sent again. Works while the gateway runs.

use chrono::{DateTime, Local};
use clap::{Args, Subcommand};
use comfy_table::{Table, presets};

use super::{Failure, Outcome, data};
use crate::clock::now_ms;
use crate::delivery::undelivered::{self, Undelivered, When, Which};
use crate::gateway::Home;
use crate::storage::Db;

#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    /// List what could not be delivered (also without any verb)
    List {
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Have it sent again at the next start; in a gateway that runs, /retry in the chat does it at once
    Retry {
        /// A place such as telegram:topic:-100:7, or a number that `parlor failed` shows; without it, everything
        #[arg(value_name = "PLACE|ID")]
        what: Option<String>,
    },
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    let db = Db::open(&home.database()).await?;
    match arguments.verb.unwrap_or(Verb::List { json: false }) {
        Verb::List { json } => list(&db.read(|connection| undelivered::list(connection, &Which::All)).await?, json),
        Verb::Retry { what } => retry(&db, which(what.as_deref())?).await,
    }
}

fn which(what: Option<&str>) -> Result<Which, Failure> {
    let Some(text) = what else { return Ok(Which::All) };
    let number = text.parse().map(Which::Row).ok();
    number.or_else(|| text.parse().map(Which::Place).ok()).ok_or_else(|| {
        Failure::WrongUse(format!("`{text}` is neither a number from `parlor failed` nor a place such as telegram:topic:-100:7"))
    })
}

fn list(rows: &[Undelivered], json: bool) -> Outcome {
    if json {
        data(format_args!("{}", serde_json::to_string_pretty(rows)?));
        return Ok(());
    }
    if rows.is_empty() {
        data(format_args!("Everything was delivered."));
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["ID", "PLACE", "SINCE", "REASON", ""]);
    for row in rows {
        let mark = if row.retry_at_start { "sent again at the next start" } else { "" };
        table.add_row([row.id.to_string(), row.place.to_string(), since(row), row.error.clone(), mark.into()]);
    }
    data(format_args!("{}", table.trim_fmt()));
    Ok(())
}

fn since(row: &Undelivered) -> String {
    let since = DateTime::from_timestamp_millis(row.created_at).unwrap_or_default();
    since.with_timezone(&Local).format("%Y-%m-%d %H:%M").to_string()
}

async fn retry(db: &Db, which: Which) -> Outcome {
    let count = db
        .write(move |tx| {
            let rows = undelivered::list(tx, &which)?;
            undelivered::retry(tx, &rows, When::AtNextStart, now_ms())?;
            Ok(rows.len())
        })
        .await?;
    match count {
        0 => return Err(Failure::Failed("nothing like that is undelivered. `parlor failed` lists what is".into())),
        1 => data(format_args!("1 message is sent again at the next start of the gateway.")),
        count => data(format_args!("{count} messages are sent again at the next start of the gateway.")),
    }
    data(format_args!("In a gateway that runs now, an owner's /retry in the chat sends at once."));
    Ok(())
}
