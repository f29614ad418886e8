//! `/people`: admins see all people and their roles; owners change a role.

use super::parse::PeopleWish;
use super::texts::people as texts;
use super::{CommandError, Context, Effect, Outcome};
use crate::access::Role;
use crate::clock::now_ms;
use crate::domain::UserError;
use crate::operations::known_people::{self, Looking};
use crate::operations::people::{self, Plan, Wish};

pub(super) async fn run(wish: PeopleWish, context: &Context<'_>) -> Result<Outcome, CommandError> {
    if context.standing.role() < Role::Admin {
        return Err(UserError::new(texts::ONLY_ADMINS).into());
    }
    match wish {
        PeopleWish::List => list(context).await,
        PeopleWish::Show(who) => show(who, context).await,
        PeopleWish::Role { who, role, agent } => {
            change(Wish::Role { who, role, agent }, context).await
        }
    }
}

/// Others read along in a group, and ids, roles and spending are private.
fn only_in_private(context: &Context<'_>) -> Result<(), UserError> {
    match context.inbound.origin.key.is_private() {
        true => Ok(()),
        false => Err(UserError::new(texts::IN_PRIVATE)),
    }
}

async fn list(context: &Context<'_>) -> Result<Outcome, CommandError> {
    only_in_private(context)?;
    let config = context.snapshot.config.clone();
    let read = move |connection: &rusqlite::Connection| {
        known_people::list(connection, &config.access, now_ms())
    };
    let known = context.services.db.read(read).await?;
    let currency = &context.snapshot.config.currency;
    Ok(Outcome::say(texts::list(&known, currency)))
}

async fn show(who: String, context: &Context<'_>) -> Result<Outcome, CommandError> {
    only_in_private(context)?;
    let config = context.snapshot.config.clone();
    let read = move |connection: &rusqlite::Connection| {
        known_people::find(connection, &config.access, &who, Looking::ToShow, now_ms())
    };
    let known = context.services.db.read(read).await??;
    let currency = &context.snapshot.config.currency;
    Ok(Outcome::say(texts::show(&known, currency)))
}

async fn change(wish: Wish, context: &Context<'_>) -> Result<Outcome, CommandError> {
    if context.standing.role() != Role::Owner {
        return Err(UserError::new(texts::ONLY_OWNERS).into());
    }
    let config = context.snapshot.config.clone();
    let read =
        move |connection: &rusqlite::Connection| people::plan(connection, &config, &wish, now_ms());
    let plan: Plan = context.services.db.read(read).await??;
    let reply = texts::changed(&plan);
    Ok(Outcome::of(reply, Effect::ChangePerson(Box::new(plan))))
}
