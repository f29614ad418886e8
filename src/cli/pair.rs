//! `parlor pair CODE`, as `/pair` in chat. Works while the gateway runs.

use clap::Args;

use super::{Failure, Outcome, data};
use crate::access::people;
use crate::clock::now_ms;
use crate::home::Home;
use crate::storage::Db;

#[derive(Args)]
pub(super) struct Arguments {
    /// What the bot told the person
    code: String,
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    let db = Db::open(&home.database()).await?;
    let approved = db
        .write(move |tx| people::approve(tx, &arguments.code, "cli", now_ms()))
        .await?;
    let Some(known) = approved else {
        return Err(Failure::Failed("no code like that is open. A code counts for one hour; whoever was given it gets a new one by writing to the bot again".into()));
    };
    data(format_args!(
        "{} ({}) may now write to the bot.",
        known.name, known.person
    ));
    Ok(())
}
