//! `/retry`: an owner has undelivered answers sent again, here or, from a private chat, everywhere.

use super::texts::deliver;
use super::texts::work as texts;
use super::{CommandError, Context, Effect, Outcome};
use crate::access::Role;
use crate::delivery::undelivered::{self, Which};
use crate::domain::{SessionKey, UserError};

pub(super) async fn run(context: &Context<'_>) -> Result<Outcome, CommandError> {
    if context.standing.role() != Role::Owner {
        return Err(UserError::new(texts::RETRY_NEEDS_OWNER).into());
    }
    let which = meant(&context.inbound.origin.key);
    let rows = context
        .services
        .db
        .read(move |connection| undelivered::list(connection, &which))
        .await?;
    let (kept, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.is_kept);
    let stay = (!kept.is_empty()).then(|| deliver::stay_kept(kept.len()));
    let told = [Some(texts::resent(rows.len())), stay];
    let told = told.into_iter().flatten().collect::<Vec<_>>().join(" ");
    Ok(match rows.is_empty() {
        true => Outcome::say(told),
        false => Outcome::of(told, Effect::Retry(rows)),
    })
}

/// Where members have conversations of their own, the place people see is the group.
fn meant(here: &SessionKey) -> Which {
    match here.whole_group() {
        _ if here.is_private() => Which::All,
        Some(group) if !here.is_shared() => Which::Place(group),
        _ => Which::Place(here.clone()),
    }
}
