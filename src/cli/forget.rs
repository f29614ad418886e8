//! `parlor forget`: deletes a saved memory, as `/forget` does in a chat.

use clap::Args;
use serde_json::json;

use super::json::Named;
use super::operator::{self, odd_reply};
use super::{Outcome, print};
use crate::home::Home;
use crate::operations::{Reply, Request};

#[derive(Args)]
pub(super) struct Arguments {
    /// Id or name of the agent [default: the default agent]
    #[arg(long, short, value_name = "AGENT")]
    agent: Option<String>,
    /// Number of the memory, as `parlor memory list` shows it
    id: i64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(home: Home, Arguments { agent, id, json }: Arguments) -> Outcome {
    let Reply::Forgotten(done) = operator::ask(&home, Request::Forget { agent, id }).await? else {
        return Err(odd_reply());
    };
    print::result(
        json,
        &json!({ "agent": Named::new(&done.agent, None), "id": done.id }),
        format_args!("{} has forgotten memory {}.", done.agent, done.id),
    )
}
