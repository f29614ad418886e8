//! `/doctor`: the problems of the house, for owners. A quick look: the next message waits behind
//! the command, so models and platforms are not asked anew.

use super::texts::doctor as texts;
use super::{CommandError, Context, Outcome};
use crate::access::Role;
use crate::doctor::{self, Depth};
use crate::domain::UserError;

pub(super) async fn run(context: &Context<'_>) -> Result<Outcome, CommandError> {
    if context.standing.role() != Role::Owner {
        return Err(UserError::new(texts::NEEDS_OWNER).into());
    }
    let place = &context.inbound.origin.key;
    if !place.is_private() {
        return Err(UserError::new(texts::IN_PRIVATE).into());
    }
    let looked = doctor::in_gateway(&context.services.operations, Depth::Quick).await;
    let diagnosis = looked.map_err(|refusal| UserError::new(refusal.text))?;
    Ok(Outcome::say(texts::told(&diagnosis)))
}
