//! `/remember`: adds a memory to the agent here.

use super::memory::{memory, reader};
use super::{CommandError, Context, Effect, Outcome};
use crate::agents::memory::NotSaved;
use crate::config::Visibility;
use crate::domain::UserError;

pub(super) async fn run(
    text: &str,
    visibility: Option<Visibility>,
    context: &Context<'_>,
) -> Result<Outcome, CommandError> {
    let (memory, reader) = (memory(context)?, reader(context));
    let saving = memory.saving(&reader, text, visibility).map_err(told)?;
    memory.room_for(&saving).await?.map_err(told)?;
    let label = memory.agent().label();
    let reply = match saving.visibility() {
        Visibility::Person => format!("{label} remembers that, for you alone."),
        Visibility::Place => format!("{label} remembers that, for this place."),
        Visibility::Private => {
            format!("{label} remembers that, for everybody who talks to this agent.")
        }
        Visibility::Global => format!("{label} remembers that, and every other agent can find it."),
    };
    Ok(Outcome::of(reply, Effect::Remember(saving)))
}

fn told(not_saved: NotSaved) -> UserError {
    UserError::new(match not_saved {
        NotSaved::ForEverybody => "Only an owner can have something remembered for everybody. `/remember` with your text alone keeps it here.".to_owned(),
        NotSaved::Full(most) => format!(
            "{most} things that you said are remembered, and that is the most. `/forget` takes one away."
        ),
        other => other.to_string(),
    })
}
