//! `parlor reload`: has the running gateway read its config anew.

use clap::Args;
use serde_json::json;

use super::operator::{self, odd_reply};
use super::{Outcome, print};
use crate::home::Home;
use crate::operations::{Reloaded, Reply, Request};

#[derive(Args)]
pub(super) struct Arguments {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(home: Home, Arguments { json }: Arguments) -> Outcome {
    let Reply::Reloaded(done) = operator::ask(&home, Request::Reload).await? else {
        return Err(odd_reply());
    };
    print::result(
        json,
        &json!({ "changed": done.changed, "reconnected": done.reconnected }),
        format_args!("{}", told(&done)),
    )
}

fn told(done: &Reloaded) -> String {
    if done.changed.is_empty() && done.reconnected.is_empty() {
        return "The config is reloaded. Nothing in it has changed.".to_owned();
    }
    let mut told = "The config is reloaded.".to_owned();
    if !done.changed.is_empty() {
        told += &format!(" Changed: {}.", done.changed.join(", "));
    }
    for platform in &done.reconnected {
        told += &format!(" The connection to {platform} is made again.");
    }
    told
}
