//! `parlor security check`: tells where the house is more open than it may seem.

use clap::Subcommand;

use super::{Failure, Outcome, data, data_json};
use crate::config::Secrets;
use crate::doctor::security;
use crate::home::exposure::{Exposure, Level};
use crate::home::{CheckedConfig, Home};
use crate::storage::Db;

#[derive(Subcommand)]
pub(super) enum Verb {
    /// List what guests or other users of this machine can reach, with the
    /// fix for each; exits with 1 if something needs a decision
    Check {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
}

pub(super) async fn run(home: Home, Verb::Check { json }: Verb) -> Outcome {
    let checked = CheckedConfig::load(&home, Secrets::WherePresent)?;
    let found = look(&home, &checked).await?;
    if json {
        data_json(&found)?;
    } else {
        data(format_args!("{}", in_words(&found)));
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
    let db = Db::open(&home.database()).await?;
    let (registry, _) = checked.registry(home, &db).await?;
    Ok(security::look(home.path(), parts, Some((&db, &registry))).await?)
}
