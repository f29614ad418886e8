//! `/allow`: an owner raises a limit for today or this month.

use super::texts::usage as texts;
use super::{CommandError, Context, Effect, Outcome};
use crate::access::Role;
use crate::clock::now_ms;
use crate::domain::UserError;
use crate::operations::budgets::{self, Wish};

pub(super) async fn run(wish: Wish, context: &Context<'_>) -> Result<Outcome, CommandError> {
    if context.standing.role() != Role::Owner {
        return Err(UserError::new(texts::ONLY_OWNERS_ALLOW).into());
    }
    let config = context.snapshot.config.clone();
    let read = move |connection: &rusqlite::Connection| {
        budgets::plan(connection, &config, &wish, now_ms())
    };
    let raise = context.services.db.read(read).await??;
    let reply = texts::allowed(&raise, &context.snapshot.config.currency);
    Ok(Outcome::of(reply, Effect::Raise(Box::new(raise))))
}
