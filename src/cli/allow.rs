//! `parlor allow`: raises a limit for today or this month. Works while the gateway runs: the next
//! message counts with it.

use clap::Args;

use super::actor::actor;
use super::usage::LimitLine;
use super::{Failure, Outcome, database, print, running_config};
use crate::clock::now_ms;
use crate::commands::texts::usage as texts;
use crate::home::Home;
use crate::operations::budgets;

#[derive(Args)]
pub(super) struct Arguments {
    /// An agent, a person's id or name, or house
    #[arg(value_name = "WHO")]
    whom: String,
    /// How much more: money such as 2.00, or tokens such as 50000 tokens; then
    /// today or this month
    #[arg(value_name = "AMOUNT", required = true, num_args = 1..)]
    amount: Vec<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(home: Home, arguments: Arguments) -> Outcome {
    let words: Vec<&str> = std::iter::once(&arguments.whom)
        .chain(&arguments.amount)
        .flat_map(|argument| argument.split_whitespace())
        .collect();
    let Some(wish) = budgets::parse(&words) else {
        return Err(Failure::WrongUse(HOW.into()));
    };
    let checked = running_config::checked(&home).await?;
    let db = database::open(&home.database()).await?;
    let config = checked.config.clone();
    let write = move |tx: &rusqlite::Transaction<'_>| {
        let now = now_ms();
        let raise = budgets::plan(tx, &config, &wish, now)?;
        if let Ok(raise) = &raise {
            raise.write(tx, &actor(), now)?;
        }
        Ok(raise)
    };
    let raise = db.write(write).await?.map_err(|error| {
        // The same sentence is said in a chat.
        Failure::Failed(error.to_string().replace("`/allow ", "`parlor allow "))
    })?;
    let currency = &checked.config.currency;
    let told = texts::allowed(&raise, currency);
    let limit = LimitLine::of(&raise.account(), currency);
    print::result(arguments.json, &limit, format_args!("{told}"))
}

const HOW: &str = "who gets how much? Write it like `parlor allow rose 2.00 today`, `parlor allow rose 50000 tokens today` or `parlor allow house 5 this month`";
