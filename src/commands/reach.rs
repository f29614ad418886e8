//! Decides which work in a place a person may end: their own, and work for people with the same or
//! a lower role.

use rusqlite::Connection;

use super::texts::work as texts;
use super::{CommandError, Context};
use crate::access::{Role, people};
use crate::domain::UserError;
use crate::lanes::{Item, Queue};
use crate::records::transcript;

/// Work in a place, split by the person's right to end the work.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reach {
    pub(super) within: Vec<Item>,
    pub(super) beyond: Vec<Item>,
}

/// A place of a single person has only this person's work.
pub(super) fn split(context: &Context<'_>, items: impl IntoIterator<Item = Item>) -> Reach {
    let origin = &context.inbound.origin;
    let people = &context.snapshot.config.access.people;
    let is_within = |item: &Item| {
        !origin.key.is_shared()
            || item.role <= context.role
            || people.is_same(&item.person, &origin.person)
    };
    let (within, beyond) = items.into_iter().partition(is_within);
    Reach { within, beyond }
}

/// Refuses a fresh conversation to a guest where people of a higher role talk or wait.
pub(super) async fn may_start_anew(context: &Context<'_>) -> Result<(), CommandError> {
    let origin = &context.inbound.origin;
    if !origin.key.is_shared() || context.role >= Role::Member {
        return Ok(());
    }
    let Queue {
        current,
        parked,
        waiting,
        subagents,
    } = context.services.sessions.queue(origin);
    let open = current
        .into_iter()
        .chain(parked)
        .chain(waiting)
        .chain(subagents);
    let others_work = !split(context, open).beyond.is_empty();
    if others_work || speaks_above(context).await? {
        return Err(UserError::new(texts::OTHERS_TALK).into());
    }
    Ok(())
}

/// Whether words of a person with a higher role are in the conversation.
async fn speaks_above(context: &Context<'_>) -> Result<bool, CommandError> {
    let (place, role) = (context.inbound.origin.key.clone(), context.role);
    let (access, agent) = (
        context.snapshot.config.access.clone(),
        context.route.agent.clone(),
    );
    let look = move |connection: &Connection| {
        for person in transcript::speakers(connection, &place)? {
            if people::standing(connection, &access, &person)?.with(&agent) > role {
                return Ok(true);
            }
        }
        Ok(false)
    };
    Ok(context.services.db.read(look).await?)
}
