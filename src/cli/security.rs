//! `parlor security check`: tells where the house is more open than it may seem.

use clap::{Args, Subcommand};

use super::{Failure, Outcome, data_json, database, print, running_config};
use crate::doctor::security;
use crate::home::exposure::{Exposure, Level};
use crate::home::{CheckedConfig, Home};

/// Without a verb, the house is checked.
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
    /// List what guests or other users of this machine can reach, with the
    /// fix for each; exits with 1 if something needs a decision
    Check,
}

pub(super) async fn run(home: Home, Arguments { verb, json }: Arguments) -> Outcome {
    let Verb::Check = verb.unwrap_or(Verb::Check);
    let checked = running_config::checked(&home).await?;
    let found = look(&home, &checked).await?;
    if json {
        data_json(&found)?;
    } else {
        print::wrapped(&in_words(&found));
    }
    let serious = found.iter().filter(|found| found.level > Level::Note);
    match serious.count() {
        0 => Ok(()),
        _ if json => Err(Failure::told()),
        1 => Err(Failure::Failed("1 finding needs a decision".into())),
        more => Err(Failure::Failed(format!("{more} findings need a decision"))),
    }
}

fn in_words(found: &[Exposure]) -> String {
    if found.is_empty() {
        return "Nothing is more open than it should be.".into();
    }
    let one = |found: &Exposure| {
        let level = match found.level {
            Level::Danger => "danger",
            Level::Warning => "warning",
            Level::Note => "note",
        };
        format!("{level}: {}\n  fix: {}", found.finding, found.fix)
    };
    found.iter().map(one).collect::<Vec<_>>().join("\n")
}

async fn look(home: &Home, checked: &CheckedConfig) -> Result<Vec<Exposure>, Failure> {
    let parts = (&*checked.config, &*checked.table);
    if !home.database().exists() {
        return Ok(security::look(home.path(), parts, None).await?);
    }
    let db = database::open(&home.database()).await?;
    let (registry, _) = checked.registry(home, &db).await?;
    Ok(security::look(home.path(), parts, Some((&db, &registry))).await?)
}
