//! `/pair CODE`: an owner lets a stranger in.

use super::{CommandError, Context, Effect, Outcome};
use crate::access::{Role, people};
use crate::clock::now_ms;
use crate::domain::UserError;

pub(super) async fn run(code: String, context: &Context<'_>) -> Result<Outcome, CommandError> {
    if context.role != Role::Owner {
        return Err(UserError::new("Only an owner can let people in.").into());
    }
    let wanted = code.clone();
    let found = context
        .services
        .db
        .read(move |connection| people::of_code(connection, &wanted, now_ms()))
        .await?;
    let Some(known) = found else {
        return Err(UserError::new("No code like that is open. A code counts for one hour; whoever was given it gets a new one by writing to the bot again.").into());
    };
    let reply = format!("{} ({}) may now write to me.", known.name, known.person);
    Ok(Outcome::of(reply, Effect::Approve { code }))
}
