//! `/reload`: an owner has the config read anew.

use super::{CommandError, Context, Outcome};
use crate::access::Role;
use crate::domain::UserError;
use crate::operations::{Refusal, Reloaded, Reply, Request};
use crate::records::audit::Actor;

pub(super) async fn run(context: &Context<'_>) -> Result<Outcome, CommandError> {
    if context.standing.role() != Role::Owner {
        return Err(UserError::new("Only owners can reload the config.").into());
    }
    let by = Actor::of(context.inbound);
    let done = context.services.operations.run(&by, Request::Reload).await;
    Ok(Outcome::say(match done {
        Ok(Reply::Reloaded(reloaded)) => told(&reloaded),
        Ok(_) => NOTHING_NEW.to_owned(),
        // A report quotes config.toml, with the path of the file.
        Err(_) if !context.inbound.origin.key.is_private() => REPORT_IN_PRIVATE.to_owned(),
        Err(refusal) => refused(&refusal),
    }))
}

fn told(
    Reloaded {
        changed,
        reconnected,
        ..
    }: &Reloaded,
) -> String {
    if changed.is_empty() && reconnected.is_empty() {
        return NOTHING_NEW.to_owned();
    }
    let mut told = "The config is reloaded.".to_owned();
    if !changed.is_empty() {
        told += &format!(" Changed: {}.", changed.join(", "));
    }
    for platform in reconnected {
        told += &format!(" The connection to {platform} is made again.");
    }
    told
}

/// The text of a refusal begins with a line about the outcome, and a report follows.
fn refused(Refusal { text, .. }: &Refusal) -> String {
    match text.split_once('\n') {
        Some((_, report)) => format!(
            "The config has a problem, so nothing changed.\n```\n{}\n```",
            report.trim_end()
        ),
        None => format!("{}.", super::texts::agent::capital(text)),
    }
}

const REPORT_IN_PRIVATE: &str = "The config has a problem, so nothing changed. Others read along here, so I show the problem only in a private chat with me.";
const NOTHING_NEW: &str = "The config is reloaded. Nothing in it has changed.";
