//! `/approvals`, `/approve` and `/refuse`: people decide about calls of tools.

use super::texts::approvals as texts;
use super::{CommandError, Context, Effect, Outcome};
use crate::access::Role;
use crate::answering::approval_texts;
use crate::clock::now_ms;
use crate::domain::UserError;
use crate::operations::Refusal;
use crate::operations::approvals::{Decider, Shown, Undecided, is_same_place};
use crate::records::approvals::{Approval, Page, State, Verdict};
use crate::records::audit::Actor;

/// Approvals of a list. In a place there are never as many.
const MOST: u32 = 30;

pub(super) async fn list(context: &Context<'_>) -> Result<Outcome, CommandError> {
    let role = context.standing.role();
    if role.max(context.role) < Role::Member {
        return Err(UserError::new(texts::NEEDS_MEMBER).into());
    }
    let here = &context.inbound.origin.key;
    // Others read along in a shared place, so it shows its own alone.
    let sees_all = role >= Role::Admin && here.is_private();
    let page = Page {
        state: Some(State::Waiting),
        before: None,
        most: if sees_all { MOST } else { u32::MAX },
    };
    let operations = &context.services.operations;
    let mut open = operations.approvals(page).await.map_err(user_error)?;
    open.retain(|shown| sees_all || is_same_place(here, &shown.place));
    let choices = match open.as_slice() {
        [only] => approval_texts::choices(only.id),
        _ => Vec::new(),
    };
    let told = texts::list(&open, now_ms(), |shown| {
        let other = shown.place != *here;
        other.then(|| place_of(shown))
    });
    Ok(Outcome::say(told).offering(choices))
}

pub(super) async fn decide(
    id: i64,
    verdict: Verdict,
    context: &Context<'_>,
) -> Result<Outcome, CommandError> {
    let inbound = context.inbound;
    let decider = Decider::Person {
        id: inbound.origin.person.clone(),
        place: inbound.origin.key.clone(),
        pressed: inbound.extras.pressed.clone(),
    };
    let operations = &context.services.operations;
    let decided = operations
        .decide_approval(&Actor::of(inbound), decider, id, verdict)
        .await;
    let is_press = inbound.extras.pressed.is_some();
    match decided {
        Ok(approval) => Ok(told(context, &approval)),
        // The buttons go, and the message says who was faster.
        Err(Undecided::Before(approval)) if is_press => Ok(told(context, &approval)),
        Err(Undecided::Before(approval)) => Err(UserError::new(texts::decided_before(
            id,
            &approval_texts::outcome(&approval),
        ))
        .into()),
        Err(Undecided::Unknown(id)) => Err(UserError::new(texts::unknown(id)).into()),
        Err(Undecided::Beyond(least)) => Err(UserError::new(texts::beyond(least)).into()),
        Err(Undecided::Store(error)) => Err(error.into()),
        Err(Undecided::Failed(refusal)) => Err(user_error(refusal)),
    }
}

fn told(context: &Context<'_>, approval: &Approval) -> Outcome {
    let agent = context.snapshot.registry.by_uid(approval.wanted.agent);
    let agent = agent.map_or_else(|| "An agent".to_owned(), |agent| agent.label());
    let told = match context.inbound.extras.pressed {
        Some(_) => approval_texts::ended(approval, &agent, &context.inbound.origin.key),
        None => texts::decided(approval, &approval_texts::outcome(approval)),
    };
    Outcome::of(told, Effect::Nothing).in_place()
}

fn place_of(shown: &Shown) -> String {
    match &shown.place_name {
        Some(name) => format!("“{name}”"),
        None => format!("`{}`", shown.place),
    }
}

fn user_error(refusal: Refusal) -> CommandError {
    UserError::new(refusal.text).into()
}
