//! `/reload`: an owner has the config read anew.

use super::{CommandError, Context, Outcome};
use crate::access::Role;
use crate::domain::UserError;
use crate::home::Reload;

pub(super) async fn run(context: &Context<'_>) -> Result<Outcome, CommandError> {
    if context.standing.role() != Role::Owner {
        return Err(UserError::new("Only owners can reload the config.").into());
    }
    let (person, name) = (&context.inbound.origin.person, &context.inbound.person_name);
    let done = context
        .services
        .reload
        .ask_by(person, name, "/reload")
        .await;
    Ok(Outcome::say(told(done)))
}

fn told(done: Option<Reload>) -> String {
    match done {
        None => "I'm stopping, so the config is read at the next start.".into(),
        Some(Reload::Same) => NOTHING_NEW.into(),
        Some(Reload::Done { changed, renewed }) if changed.is_empty() && renewed.is_empty() => {
            NOTHING_NEW.into()
        }
        Some(Reload::Done { changed, renewed }) => {
            let mut told = "The config is reloaded.".to_owned();
            if !changed.is_empty() {
                told += &format!(" Changed: {}.", changed.join(", "));
            }
            for platform in renewed {
                told += &format!(" The connection to {platform} is made again.");
            }
            told
        }
        Some(Reload::Refused(problem)) => format!(
            "The config has a problem, so nothing changed.\n```\n{}\n```",
            problem.trim_end()
        ),
    }
}

const NOTHING_NEW: &str = "The config is reloaded. Nothing in it has changed.";
