//! `parlor reload`: has the running gateway read its config anew.

use clap::Args;
use serde_json::json;

use super::operator::{self, odd_reply};
use super::{Failure, Outcome, print};
use crate::domain::Platform;
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
    )?;
    let refused = done.refused.iter();
    let refused: Vec<String> = refused
        .map(
            |(platform, reason)| match done.reconnected.contains(platform) {
                true => format!("{platform} does not take the new settings: {reason}"),
                false => format!("{platform} is still off: {reason}"),
            },
        )
        .collect();
    match refused.is_empty() {
        true => Ok(()),
        false => Err(Failure::Failed(refused.join("\n"))
            .hint("the gateway goes on without it, and tries again as soon as config.toml or a secret is changed and reloaded")),
    }
}

fn told(done: &Reloaded) -> String {
    if done.changed.is_empty() && done.reconnected.is_empty() {
        return "The config is reloaded. Nothing in it has changed.".to_owned();
    }
    let mut told = "The config is reloaded.".to_owned();
    if !done.changed.is_empty() {
        told += &format!(" Changed: {}.", done.changed.join(", "));
    }
    let refuses = |platform: &&Platform| done.refused.iter().any(|(other, _)| other == *platform);
    for platform in done.reconnected.iter().filter(|it| !refuses(it)) {
        told += &format!(" The connection to {platform} is made again.");
    }
    told
}
