//! `/pause background` and `/resume background`: an owner switches off work without a waiting
//! person.

use rusqlite::Connection;

use super::texts::work as texts;
use super::{CommandError, Context, Effect, Outcome};
use crate::access::Role;
use crate::domain::UserError;
use crate::operations::known_jobs;
use crate::records::pauses::{self, Work};
use crate::storage::StoreError;

pub(super) async fn pause(work: Work, context: &Context<'_>) -> Result<Outcome, CommandError> {
    refuse_others(context)?;
    if is_paused(work, context).await? {
        return Err(UserError::new(texts::PAUSED_ALREADY).into());
    }
    let snapshot = context.services.snapshots.current();
    let ahead = move |connection: &Connection| known_jobs::ahead(connection, &snapshot);
    let jobs = context.services.db.read(ahead).await?;
    Ok(Outcome::of(texts::paused(jobs), Effect::Pause(work)))
}

pub(super) async fn resume(work: Work, context: &Context<'_>) -> Result<Outcome, CommandError> {
    refuse_others(context)?;
    if !is_paused(work, context).await? {
        return Err(UserError::new(texts::NOT_PAUSED).into());
    }
    Ok(Outcome::of(texts::RESUMED, Effect::Resume(work)))
}

async fn is_paused(work: Work, context: &Context<'_>) -> Result<bool, StoreError> {
    let db = &context.services.db;
    let paused = db.read(move |connection| pauses::get(connection, work));
    Ok(paused.await?.is_some())
}

fn refuse_others(context: &Context<'_>) -> Result<(), UserError> {
    match context.standing.role() {
        Role::Owner => Ok(()),
        _ => Err(UserError::new(texts::ONLY_OWNERS_PAUSE)),
    }
}
