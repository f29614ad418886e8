//! `parlor failed …`: lists undelivered messages, has them sent again, or drops them. Works while
//! the gateway runs.

use chrono::{DateTime, Local};
use clap::{Args, Subcommand};
use comfy_table::{Table, presets};
use rusqlite::Connection;

use super::{Failure, Outcome, data, data_json};
use crate::clock::now_ms;
use crate::delivery::outbox::{self, Troubles};
use crate::delivery::undelivered::{self, Undelivered, When, Which};
use crate::home::Home;
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
    /// Have it sent again at the next start; in a gateway that runs, /retry in the chat does it at
    /// once
    Retry {
        /// A place such as telegram:topic:-100:7, or a number that `parlor failed` shows; without
        /// it, everything
        #[arg(value_name = "PLACE|ID")]
        what: Option<String>,
    },
    /// Let go of it for good: nobody will get it
    Drop {
        /// A place such as telegram:topic:-100:7, a number that `parlor failed` shows, or `all`
        #[arg(value_name = "PLACE|ID|all")]
        what: String,
    },
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    let db = Db::open(&home.database()).await?;
    match arguments.verb.unwrap_or(Verb::List { json: false }) {
        Verb::List { json } => {
            let looked_up = |connection: &Connection| {
                Ok((
                    undelivered::list(connection, &Which::All)?,
                    outbox::troubles(connection, now_ms())?,
                ))
            };
            let (rows, troubles) = db.read(looked_up).await?;
            list(&rows, &troubles, json)
        }
        Verb::Retry { what } => retry(&db, which(what.as_deref())?).await,
        Verb::Drop { what } if what == EVERYTHING => forget(&db, Which::All).await,
        Verb::Drop { what } => forget(&db, which(Some(&what))?).await,
    }
}

/// The word for all rows, so that a forgotten argument drops none.
const EVERYTHING: &str = "all";

fn which(what: Option<&str>) -> Result<Which, Failure> {
    let Some(text) = what else {
        return Ok(Which::All);
    };
    let number = text.parse().map(Which::Row).ok();
    number.or_else(|| text.parse().map(Which::Place).ok()).ok_or_else(|| {
        Failure::WrongUse(format!("`{text}` is neither a number from `parlor failed` nor a place such as telegram:topic:-100:7"))
    })
}

fn list(rows: &[Undelivered], troubles: &Troubles, json: bool) -> Outcome {
    if json {
        data_json(rows)?;
        return Ok(());
    }
    let others = others(troubles);
    match (rows.is_empty(), others.is_empty()) {
        (true, true) => data(format_args!("Everything was delivered.")),
        (true, false) => data(format_args!("Nothing was given up.")),
        (false, _) => show(rows),
    }
    others.iter().for_each(|line| data(format_args!("{line}")));
    Ok(())
}

/// Counts of rows that still wait, or were sent twice.
fn others(troubles: &Troubles) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some((place, reason)) = &troubles.oldest {
        let have = if troubles.waiting == 1 {
            "1 message has".to_owned()
        } else {
            format!("{} messages have", troubles.waiting)
        };
        let (are, reason) = (
            if troubles.waiting == 1 { "is" } else { "are" },
            reason.as_deref().unwrap_or("not tried yet"),
        );
        lines.push(format!("{have} waited for more than a minute and {are} still tried; the oldest is for {place} ({reason})."));
    }
    match troubles.repeated {
        0 => {}
        1 => lines.push("1 message was sent twice, because its first answer was lost; it may be there twice.".to_owned()),
        count => lines
            .push(format!("{count} messages were sent twice, because their first answers were lost; they may be there twice.")),
    }
    lines
}

fn show(rows: &[Undelivered]) {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(["ID", "PLACE", "SINCE", "REASON", ""]);
    for row in rows {
        let mark = if row.retry_at_start {
            "sent again at the next start"
        } else {
            ""
        };
        table.add_row([
            row.id.to_string(),
            row.place.to_string(),
            since(row),
            row.error.clone(),
            mark.into(),
        ]);
    }
    data(format_args!("{}", table.trim_fmt()));
}

fn since(row: &Undelivered) -> String {
    let since = DateTime::from_timestamp_millis(row.created_at).unwrap_or_default();
    since
        .with_timezone(&Local)
        .format("%Y-%m-%d %H:%M")
        .to_string()
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
        0 => return Err(nothing_like_that()),
        1 => data(format_args!(
            "1 message is sent again at the next start of the gateway."
        )),
        count => data(format_args!(
            "{count} messages are sent again at the next start of the gateway."
        )),
    }
    data(format_args!(
        "In a gateway that runs now, an owner's /retry in the chat sends at once."
    ));
    Ok(())
}

async fn forget(db: &Db, which: Which) -> Outcome {
    let count = db
        .write(move |tx| {
            let rows = undelivered::list(tx, &which)?;
            undelivered::forget(tx, &rows)?;
            Ok(rows.len())
        })
        .await?;
    match count {
        0 => return Err(nothing_like_that()),
        1 => data(format_args!("1 message is dropped. Nobody will get it.")),
        count => data(format_args!(
            "{count} messages are dropped. Nobody will get them."
        )),
    }
    Ok(())
}

fn nothing_like_that() -> Failure {
    Failure::Failed("nothing like that is undelivered. `parlor failed` lists what is".into())
}
