//! `parlor forget`: deletes a saved memory, as `/forget` does in a chat.

use clap::Args;
use serde_json::json;

use super::names::Names;
use super::operator::{self, odd_reply};
use super::{Outcome, database, print};
use crate::config::Secrets;
use crate::home::{CheckedConfig, Home};
use crate::operations::{Reply, Request};

#[derive(Args)]
pub(super) struct Arguments {
    /// Id or name of the agent [default: the default agent]
    #[arg(long, short, value_name = "AGENT")]
    agent: Option<String>,
    /// Number of the memory, as `parlor memory list` shows it
    #[arg(value_parser = number)]
    id: i64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(home: Home, Arguments { agent, id, json }: Arguments) -> Outcome {
    let Reply::Forgotten(done) = operator::ask(&home, Request::Forget { agent, id }).await? else {
        return Err(odd_reply());
    };
    let config = CheckedConfig::load(&home, Secrets::WherePresent).ok();
    let config = config.as_ref().map(|checked| &*checked.config);
    let names = Names::load(&database::open(&home.database()).await?, config).await?;
    print::result(
        json,
        &json!({ "agent": names.agent(&done.agent), "id": done.id }),
        format_args!("{} has forgotten memory {}.", done.agent, done.id),
    )
}

fn number(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| {
        "a memory is named by its number, which `parlor recall WORDS` shows".to_owned()
    })
}
