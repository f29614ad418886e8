//! `/remember`: adds a memory to the agent here.

use super::memory::{is_guest, memory};
use super::{CommandError, Context, Effect, Outcome};
use crate::agents::memory::{Provenance, told_by_a_guest};
use crate::config::Visibility;
use crate::domain::UserError;

pub(super) fn run(
    text: &str,
    visibility: Option<Visibility>,
    context: &Context<'_>,
) -> Result<Outcome, CommandError> {
    let memory = memory(context)?;
    let origin = &context.inbound.origin;
    let said = Provenance {
        place: Some(origin.key.clone()),
        person: Some(origin.person.clone()),
    };
    let text = if is_guest(context) {
        told_by_a_guest(text)
    } else {
        text.to_owned()
    };
    let saving = memory.saving(&text, visibility, said)?;
    // A guest of a group must not change the beliefs of all agents.
    if saving.visibility() == Visibility::Global && is_guest(context) {
        let told = "Only people I know can tell all agents something. `/remember --private` with your text tells the one here.";
        return Err(UserError::new(told).into());
    }
    let label = memory.agent().label();
    let reply = match saving.visibility() {
        Visibility::Private => format!("{label} remembers that."),
        Visibility::Global => format!("{label} remembers that, and every other agent can find it."),
    };
    Ok(Outcome::of(reply, Effect::Remember(saving)))
}
