//! `parlor failed …`: lists undelivered messages, has them sent again, or drops them.

use clap::{Args, Subcommand};
use rusqlite::Connection;
use serde::Serialize;
use serde_json::json;

use super::json::{Named, moment, time};
use super::names::Names;
use super::operator::{self, odd_reply};
use super::table::{Column, table};
use super::{Failure, Outcome, data, data_json, database, meant_place, print, running_config};
use crate::clock::now_ms;
use crate::delivery::held;
use crate::delivery::outbox::{self, Troubles};
use crate::delivery::undelivered::{self, Undelivered, Which};
use crate::home::Home;
use crate::operations::{Reply, Request, Retried};

/// Without a verb, messages are listed.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Print the result as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// List messages that could not be delivered
    #[command(visible_alias = "ls")]
    List,
    /// Send messages again: at once, or at the next start of the gateway
    Retry {
        /// Name or key of a place, or an id that `parlor failed` shows [default:
        /// all messages]
        #[arg(value_name = "PLACE|ID")]
        what: Option<String>,
    },
    /// Delete messages for good: nobody will get them
    #[command(visible_alias = "rm")]
    Drop {
        /// Name or key of a place, an id that `parlor failed` shows, or `all`
        #[arg(value_name = "PLACE|ID|all")]
        what: String,
    },
}

pub(super) async fn run(home: Home, Arguments { verb, json }: Arguments) -> Outcome {
    match verb.unwrap_or(Verb::List) {
        Verb::List => {
            let db = database::open(&home.database()).await?;
            let looked_up = |connection: &Connection| {
                Ok((
                    undelivered::list(connection, &Which::All)?,
                    outbox::troubles(connection, now_ms())?,
                ))
            };
            let (rows, troubles) = db.read(looked_up).await?;
            let config = running_config::checked(&home).await.ok();
            let config = config.as_ref().map(|checked| &*checked.config);
            let names = Names::load(&db, config).await?;
            let others = others(&troubles, &names, home.is_running());
            list(&rows, &others, &names, json)
        }
        Verb::Retry { what } => {
            let which = which(&home, what.as_deref()).await?;
            retry(&home, which, json).await
        }
        Verb::Drop { what } if what == EVERYTHING => forget(&home, Which::All, json).await,
        Verb::Drop { what } => {
            let which = which(&home, Some(&what)).await?;
            forget(&home, which, json).await
        }
    }
}

/// The word for all rows, so that a forgotten argument drops none.
const EVERYTHING: &str = "all";

async fn which(home: &Home, what: Option<&str>) -> Result<Which, Failure> {
    let Some(text) = what else {
        return Ok(Which::All);
    };
    match text.parse() {
        Ok(number) => Ok(Which::Row(number)),
        Err(_) => meant_place::place(home, text).await.map(Which::Place),
    }
}

/// A message for programs.
#[derive(Serialize)]
struct Listed {
    id: i64,
    place: Named,
    kind: String,
    created_at: String,
    error: String,
    retry_at_start: bool,
}

fn list(rows: &[Undelivered], others: &[String], names: &Names, json: bool) -> Outcome {
    if json {
        let listed = rows.iter().map(|row| Listed {
            id: row.id,
            place: names.place(&row.place),
            kind: row.kind.clone(),
            created_at: time(row.created_at),
            error: row.error.clone(),
            retry_at_start: row.retry_at_start,
        });
        return data_json(&listed.collect::<Vec<_>>());
    }
    match (rows.is_empty(), others.is_empty()) {
        (true, true) => data(format_args!("Everything was delivered.")),
        (true, false) => data(format_args!("Nothing was given up.")),
        (false, _) => data(format_args!("{}", shown(rows, names))),
    }
    others.iter().for_each(|line| data(format_args!("{line}")));
    Ok(())
}

/// Counts of rows that still wait, or were sent twice.
fn others(troubles: &Troubles, names: &Names, has_gateway: bool) -> Vec<String> {
    let mut lines = Vec::new();
    // Without a gateway nothing is being tried, for however long it has waited.
    let tried = troubles.oldest.as_ref().filter(|_| has_gateway);
    if let Some((place, reason)) = tried {
        let key = place.parse().ok();
        let place = key.map_or_else(|| place.clone(), |key| names.place(&key).text());
        let have = if troubles.waiting == 1 {
            "1 message has".to_owned()
        } else {
            format!("{} messages have", troubles.waiting)
        };
        let (are, reason) = (
            if troubles.waiting == 1 { "is" } else { "are" },
            reason.as_deref().unwrap_or("not tried yet"),
        );
        lines.push(format!("{have} waited for more than a minute and {are} still being tried; the oldest is for {place}: {reason}."));
    }
    let told = tried.map_or(0, |_| troubles.waiting);
    let unsent = troubles.on_the_way - told;
    if unsent > 0 {
        lines.push(print::to_type(&held::unsent(unsent, has_gateway)).into_owned());
    }
    match troubles.repeated {
        0 => {}
        1 => lines.push("1 message was sent twice, because its first answer was lost; it may be there twice.".to_owned()),
        count => lines
            .push(format!("{count} messages were sent twice, because their first answers were lost; they may be there twice.")),
    }
    lines
}

fn shown(rows: &[Undelivered], names: &Names) -> String {
    let columns = [
        Column::Number("ID"),
        Column::Words("PLACE"),
        Column::Words("SINCE"),
        Column::Words("REASON"),
        Column::Words("RETRY"),
    ];
    let cells = rows.iter().map(|row| {
        let retry = if row.retry_at_start {
            "at the next start"
        } else {
            "no"
        };
        [
            row.id.to_string(),
            names.place(&row.place).text(),
            moment(row.created_at),
            row.error.clone(),
            retry.to_owned(),
        ]
    });
    table(columns, cells.collect())
}

async fn retry(home: &Home, which: Which, json: bool) -> Outcome {
    let Reply::Retried(Retried { count, at_once }) =
        operator::ask(home, Request::Retry(which)).await?
    else {
        return Err(odd_reply());
    };
    let retry = if at_once { "now" } else { "at_next_start" };
    let messages = if count == 1 {
        "1 message".to_owned()
    } else {
        format!("{count} messages")
    };
    let told = match (at_once, count) {
        (true, 1) => "1 message is being sent again.".to_owned(),
        (true, _) => format!("{messages} are being sent again."),
        (false, _) => format!("{messages} will be sent again at the next start of the gateway."),
    };
    print::result(
        json,
        &json!({ "messages": count, "retry": retry }),
        format_args!("{told}"),
    )
}

async fn forget(home: &Home, which: Which, json: bool) -> Outcome {
    let Reply::Dropped(count) = operator::ask(home, Request::Drop(which)).await? else {
        return Err(odd_reply());
    };
    let told = match count {
        1 => "1 message is deleted. Nobody will get it.".to_owned(),
        count => format!("{count} messages are deleted. Nobody will get them."),
    };
    print::result(json, &json!({ "messages": count }), format_args!("{told}"))
}
